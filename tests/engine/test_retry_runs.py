"""Trying again what failed: exactly that, and under the same keys; what succeeded stays, and what was undone is not
taken for done."""

from __future__ import annotations

import asyncio
import signal
import threading

import pytest

import surefoot as sf
import surefoot.aio
from surefoot.engine.process import config
from surefoot.engine.upkeep.tombstones import bury, candidates
from tests.working import ended, kinds, wait_until

DRIVERS = ["blocking", "async", "worker"]


def drive(how, workflow, run_id, *args):
    """The run, driven to where it ends or stands, and what came of it."""
    if how == "blocking":
        return workflow.run(run_id, *args)
    if how == "async":
        return asyncio.run(workflow.run(run_id, *args))
    workflow.start(run_id, *args)
    with sf.Worker(workflows=[workflow]):
        wait_until(lambda: sf.get_run(run_id).status in ("done", "failed", "stopped"))
    return sf.get_run(run_id).result(timeout=30)


def order(how, ledger, mended):
    """Reads, pays, and books: booking fails until it is mended."""

    def wrote(line):
        ledger.write(line)
        return line

    def booked(what):
        ledger.write(f"book {what}")
        if not mended:
            raise sf.Fatal("no such account")
        return f"booked {what}"

    if how == "async":

        @sf.effect(name="pay")
        async def pay(what):
            return wrote(f"pay {what}")

        @sf.step(name="book")
        async def book(what):
            return booked(what)

        @sf.workflow(name="ordering_async")
        async def ordering():
            return [await pay("a"), await book("a"), await pay("b")]

    else:

        @sf.effect(name="pay")
        def pay(what):
            return wrote(f"pay {what}")

        @sf.step(name="book")
        def book(what):
            return booked(what)

        @sf.workflow(name=f"ordering_{how}")
        def ordering():
            return [pay("a"), book("a"), pay("b")]

    return ordering


@pytest.mark.parametrize("how", DRIVERS)
def test_the_failed_call_runs_again_and_what_succeeded_stays(how, ledger):
    """An effect that was executed is not executed a second time because something after it failed."""
    mended: list[int] = []
    workflow = order(how, ledger, mended)
    with pytest.raises(sf.Fatal, match="no such account"):
        drive(how, workflow, "r")
    mended.append(1)
    with pytest.raises(sf.Fatal):
        drive(how, workflow, "r")  # It has failed, and stays so until somebody says otherwise.

    assert sf.get_run("r").retry(failed=True, by="ann", note="account opened") == ["book#1"]

    assert sf.get_run("r").status == "queued"
    assert drive(how, workflow, "r") == ["pay a", "booked a", "pay b"]
    assert ledger.lines == ["pay a", "book a", "book a", "pay b"]
    [entry] = [entry for entry in sf.get_run("r").entries() if entry.kind == "CallsReopened"]
    assert entry.data == {"addresses": ["book#1"], "by": "ann", "note": "account opened"}
    assert sf.get_run("r").verify() == len(sf.get_run("r").entries())


@pytest.mark.parametrize("how", DRIVERS)
def test_in_a_map_exactly_the_calls_that_failed_run_again(how, ledger):
    """A run that is done: one of twenty documents could not be read, and the code has made do without it."""
    mended: list[int] = []

    def number(n):
        ledger.write(f"read {n}")
        if n == 3 and not mended:
            raise sf.Fatal("no PDF")
        return n

    if how == "async":

        @sf.step(name="read")
        async def read(n):
            return number(n)

        @sf.workflow(name="reading_async")
        async def reading():
            return len((await sf.aio.map(read, range(20), key=str, on_error="collect")).ok)

    else:

        @sf.step(name="read")
        def read(n):
            return number(n)

        @sf.workflow(name=f"reading_{how}")
        def reading():
            return len(sf.map(read, range(20), key=str, on_error="collect").ok)

    assert drive(how, reading, "r") == 19
    mended.append(1)

    assert sf.get_run("r").retry() == ["[3]/read#1"]

    assert [run.id for run in sf.runs(status="queued")] == ["r"], "the list of runs knows that it is open again"
    assert drive(how, reading, "r") == 20
    assert ledger.counts["read 3"] == 2
    assert len(ledger.lines) == 21


@pytest.mark.parametrize("how", DRIVERS)
def test_where_the_workflow_itself_had_the_bug_the_run_is_opened_again(how, ledger):
    mended: list[int] = []

    def wrote(line):
        ledger.write(line)

    if how == "async":

        @sf.effect(name="send")
        async def send(to):
            wrote(to)

        @sf.workflow(name="buggy_async")
        async def buggy():
            await send("a")
            if not mended:
                raise RuntimeError("bug")
            await send("b")

    else:

        @sf.effect(name="send")
        def send(to):
            wrote(to)

        @sf.workflow(name=f"buggy_{how}")
        def buggy():
            send("a")
            if not mended:
                raise RuntimeError("bug")
            send("b")

    with pytest.raises(RuntimeError, match="bug"):
        drive(how, buggy, "r")
    mended.append(1)

    assert sf.get_run("r").retry(failed=True) == []
    drive(how, buggy, "r")

    assert ledger.lines == ["a", "b"]


def test_a_failed_effect_runs_under_its_key_and_its_attempts_are_counted_on(ledger):
    """Whoever is on the other side sees one request, made again; and its retries are its own again."""
    mended: list[int] = []

    @sf.effect(on_crash="retry", retries=1, backoff=sf.Backoff(first="0s"))
    def pay(amount):
        ledger.write(f"{amount} {sf.attempt()} {sf.key()}")
        if not mended or len(ledger.lines) < 4:
            raise sf.NotDone("refused")
        return "paid"

    @sf.workflow
    def paying():
        return pay(5)

    with pytest.raises(sf.NotDone):
        paying.run("r")
    mended.append(1)
    assert sf.get_run("r").retry() == ["pay#1"]
    assert [call.status for call in sf.get_run("r").steps()] == ["cleared"]

    assert paying.run("r") == "paid"

    assert [line.split()[1] for line in ledger.lines] == ["1", "2", "3", "4"]
    assert len({line.split()[2] for line in ledger.lines}) == 1, "one key"


def test_mended_code_may_ask_for_a_failed_effect_with_other_arguments(ledger):
    """Nothing was done with the old ones; often they were the very mistake."""
    address = ["nobody"]

    @sf.effect
    def send(to):
        ledger.write(to)
        if to == "nobody":
            raise sf.NotDone("no such address")

    @sf.workflow
    def sending():
        send(address[0])

    with pytest.raises(sf.NotDone):
        sending.run("r")
    address[0] = "ada"
    sf.get_run("r").retry()

    sending.run("r")

    assert ledger.lines == ["nobody", "ada"]


def test_an_effect_that_failed_in_doubt_is_asked_about_and_not_run(ledger):
    """on_crash="fail" let the run go on with the failure; nobody has found out since whether it happened."""
    mended: list[int] = []

    @sf.effect(on_crash="fail")
    def pay():
        ledger.write(sf.key())
        if not mended:
            raise TimeoutError("no answer")
        return "paid"

    @sf.workflow
    def paying():
        return pay()

    with pytest.raises(sf.StepFailed, match="InDoubt"):
        paying.run("r")
    mended.append(1)
    run = sf.get_run("r")
    assert [one.in_doubt for one in run.would_retry()] == [["pay#1"]]
    assert run.retry() == ["pay#1"]
    assert [past.address for past in run.state().in_doubt()] == ["pay#1"]
    assert run.plan().in_doubt == [("pay#1", "stop and ask a person")]

    for _ in range(2):
        with pytest.raises(sf.InDoubt, match=r"pay#1: started .* it is not tried again before somebody knows"):
            paying.run("r")
    assert len(ledger.lines) == 1
    run.settle("pay#1", not_happened=True, by="ann")
    assert paying.run("r") == "paid"
    assert len(ledger.lines) == 2
    assert len(set(ledger.lines)) == 1


def test_a_yes_was_for_one_execution(ledger):
    """Somebody agreed that it runs, and it did; that it runs once more is another question."""
    mended: list[int] = []

    @sf.effect(approve=True)
    def wire():
        ledger.write("wire")
        if not mended:
            raise sf.NotDone("bank is closed")
        return "wired"

    @sf.workflow
    def wiring():
        return wire()

    with pytest.raises(sf.WaitingForAnswer):
        wiring.run("r")
    sf.get_run("r").answer("wire#1.approval", True)
    with pytest.raises(sf.NotDone):
        wiring.run("r")
    mended.append(1)
    sf.get_run("r").retry()

    with pytest.raises(sf.WaitingForAnswer):
        wiring.run("r")
    assert ledger.lines == ["wire"]
    sf.get_run("r").answer("wire#1.approval", True)
    assert wiring.run("r") == "wired"


def test_only_the_named_calls_are_tried_again(ledger):
    mended: list[int] = []

    @sf.step
    def read(n):
        ledger.write(n)
        if not mended:
            raise sf.Fatal("no")
        return n

    @sf.workflow
    def reading():
        return sorted(sf.map(read, [1, 2, 3], on_error="collect").ok.values())

    assert reading.run("r") == []
    mended.append(1)

    assert sf.get_run("r").retry(at=["map#1.2/read#1", "map#1.0/read#1"]) == ["map#1.2/read#1", "map#1.0/read#1"]
    assert reading.run("r") == [1, 3]
    assert sf.get_run("r").retry(at="map#1.1/read#1") == ["map#1.1/read#1"]
    assert reading.run("r") == [1, 2, 3]
    assert ledger.counts == {"1": 2, "2": 2, "3": 2}


def test_a_wait_whose_time_was_over_is_no_failed_call_but_may_be_named():
    """Code that goes on without an answer went on as intended. Whoever wants to wait anew says so."""

    @sf.workflow
    def asking():
        try:
            return sf.ask("how much?", timeout="0.01s")
        except TimeoutError:
            return "nobody answered"

    assert asking.using(wait="5s").run("r") == "nobody answered"
    run = sf.get_run("r")
    with pytest.raises(sf.UsageError, match="nothing failed in it; it is done"):
        run.retry()

    assert run.retry(at="ask#1") == ["ask#1"]

    assert asking.using(wait="5s").run("r") == "nobody answered"
    assert kinds("r").count("QuestionAsked") == 2


# --- refused ------------------------------------------------------------------------------------------


@pytest.fixture
def done(ledger):
    @sf.step
    def work():
        return 1

    @sf.effect
    def act():
        ledger.write("act")

    @sf.workflow
    def working():
        act()
        return work()

    working.run("r")
    return working


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ({"failed": True}, "run r: nothing failed in it; it is done"),
        ({"at": "act#1"}, r"act#1 did not fail: it is done\. To go back .*: surefoot runs rewind r --at 'act#1'"),
        ({"at": "act#2"}, r"has no recorded call 'act#2'\. Near it: act#1"),
        ({"failed": True, "at": "act#1"}, "say either failed=True or at="),
        ({"failed": False}, "say either failed=True or at="),
    ],
)
def test_what_did_not_fail_is_refused_and_leaves_no_trace(done, words, why):
    before = kinds("r")

    with pytest.raises(sf.UsageError, match=why):
        sf.get_run("r").retry(**words)
    assert kinds("r") == before


def test_an_open_run_in_which_nothing_failed_is_to_be_resumed():
    @sf.workflow
    def asking():
        return sf.ask("how much?")

    with pytest.raises(sf.WaitingForAnswer):
        asking.run("r")

    with pytest.raises(
        sf.UsageError, match=r"nothing failed in it; it is waiting\. To go on with it: surefoot runs res"
    ):
        sf.get_run("r").retry()


def failing_run(run_id="r"):
    @sf.step
    def fail():
        raise sf.Fatal("no")

    @sf.workflow
    def failing():
        fail()

    with pytest.raises(sf.Fatal):
        failing.run(run_id)
    return failing


def test_a_pruned_run_has_nothing_left_to_try():
    failing_run()
    runtime = config.runtime(create=False)
    for one in candidates(runtime.store, runtime.clock, older_than_seconds=0, statuses=frozenset({"failed"})):
        assert bury(runtime.store, runtime.clock, one, by="ann", note="") is None

    with pytest.raises(sf.UsageError, match="run r was pruned"):
        sf.get_run("r").retry()


def test_a_cancelled_run_stays_so(ledger):
    """Somebody ended it, and what its sagas had done may be undone."""

    @sf.step
    def fail():
        raise sf.Fatal("no")

    @sf.workflow
    def asking():
        try:
            fail()
        except sf.Fatal:
            sf.ask("and now?")

    with pytest.raises(sf.WaitingForAnswer):
        asking.run("r")
    sf.get_run("r").cancel()

    with pytest.raises(sf.UsageError, match="run r was cancelled: it is not tried again"):
        sf.get_run("r").retry()


def test_a_run_that_a_living_process_drives_is_refused():
    here, go = threading.Event(), threading.Event()

    @sf.step
    def fail():
        raise sf.Fatal("no")

    @sf.step
    def slow():
        here.set()
        assert go.wait(30)

    @sf.workflow
    def driven():
        try:
            fail()
        except sf.Fatal:
            slow()

    thread = threading.Thread(target=lambda: driven.run("r"))
    thread.start()
    assert here.wait(30)
    try:
        with pytest.raises(sf.UsageError, match="which is alive"):
            sf.get_run("r").retry()
    finally:
        go.set()
        thread.join()


# --- sagas --------------------------------------------------------------------------------------------


def trip(ledger, mended, *, caught=False):
    @sf.effect
    def book(what):
        ledger.write(f"book {what}")

    @book.undo
    def _(what, result):
        ledger.write(f"cancel {what}")

    @sf.step
    def confirm():
        ledger.write("confirm")
        if not mended:
            raise sf.Fatal("no")

    @sf.step
    def report():
        ledger.write("report")

    @sf.workflow(name=f"trip_{caught}")
    def travelling():
        try:
            with sf.saga():
                book("hotel")
                if caught:
                    if not mended:
                        raise LookupError("bug")
                else:
                    confirm()
                book("train")
        except LookupError:
            report()
            raise

    return travelling


def test_what_a_saga_has_undone_is_not_taken_for_done(ledger):
    """The hotel was cancelled because the confirmation failed: with it confirmed there would be a trip without one."""
    mended: list[int] = []
    travelling = trip(ledger, mended)
    with pytest.raises(sf.Fatal):
        travelling.run("r")
    mended.append(1)

    with pytest.raises(sf.UsageError, match=r"book#1 came before, and no longer stands: it was done, and book.undo#1"):
        sf.get_run("r").retry()
    assert ledger.lines == ["book hotel", "confirm", "cancel hotel"]

    fork = sf.get_run("r").fork("s", at="book#1").run
    fork.resume()
    assert ledger.lines[3:] == ["book hotel", "confirm", "book train"]


def test_a_saga_undone_by_a_bug_of_the_workflow_is_found_before_anything_runs(ledger):
    """Nobody can tell from the record alone why it was undone; the replay can, before the next call."""
    mended: list[int] = []
    travelling = trip(ledger, mended, caught=True)
    with pytest.raises(LookupError):
        travelling.run("r")
    mended.append(1)
    sf.get_run("r").retry()

    with pytest.raises(sf.CodeChanged, match=r"book#2: not begun, for book#1 no longer stands"):
        travelling.run("r")
    assert ledger.lines == ["book hotel", "cancel hotel", "report"]


@pytest.mark.parametrize("how", ["blocking", "async"])
def test_an_undo_that_failed_in_the_middle_of_a_saga_is_tried_again(how, ledger):
    """What was undone around it is no reason to leave it: an undo builds on nothing but its own effect."""
    mended: list[int] = []

    def taken_back(what):
        if what == "b" and not mended:
            raise sf.NotDone("closed")
        ledger.write(f"cancel {what}")

    @sf.effect(name="book")
    def book(what):
        ledger.write(f"book {what}")

    @book.undo
    def _(what, result):
        taken_back(what)

    @sf.workflow(name=f"middle_{how}")
    def blocking():
        with sf.saga():
            for what in "abc":
                book(what)
            raise LookupError("no flight")

    @sf.workflow(name="middle_async")
    async def in_tasks():
        async with sf.aio.saga():
            for what in "abc":
                book(what)
            raise LookupError("no flight")

    travelling = blocking if how == "blocking" else in_tasks
    with pytest.raises(sf.NotDone, match="closed"):
        drive(how, travelling, "r")
    run = sf.get_run("r")
    assert run.state().left == ("book#2",)
    with pytest.raises(sf.UsageError, match=r"surefoot runs retry r --at 'book.undo#2'"):
        run.rewind("book.undo#2")
    mended.append(1)

    assert run.retry(at="book.undo#2") == ["book.undo#2"]
    with pytest.raises(LookupError, match="no flight"):
        drive(how, travelling, "r")

    assert ledger.lines == ["book a", "book b", "book c", "cancel c", "cancel a", "cancel b"]
    assert run.state().left == ()


def test_a_refused_retry_of_all_that_failed_offers_the_undos(ledger):
    """The confirmation cannot be tried again without the hotel; what was left of the trip can be cancelled."""

    @sf.effect
    def book(what):
        ledger.write(f"book {what}")

    @book.undo
    def _(what, result):
        if what == "train":
            raise sf.NotDone("closed")

    @sf.step
    def confirm():
        raise sf.Fatal("no")

    @sf.workflow
    def travelling():
        with sf.saga():
            book("hotel")
            book("train")
            confirm()

    with pytest.raises(sf.NotDone):
        travelling.run("r")

    with pytest.raises(sf.UsageError, match=r"only undo what is left\?   surefoot runs retry r --at 'book.undo#1'"):
        sf.get_run("r").retry()


def test_a_saga_that_is_undone_as_before_is_in_nobodys_way(ledger):
    """What failed in it stays failed; a call after it is tried again."""
    mended: list[int] = []

    @sf.effect
    def book():
        ledger.write("book")

    @book.undo
    def _(result):
        ledger.write("cancel")

    @sf.step
    def fail(what):
        ledger.write(what)
        if what == "always" or not mended:
            raise sf.Fatal("no")

    @sf.workflow
    def travelling():
        try:
            with sf.saga():
                book()
                fail("always")
        except sf.Fatal:
            fail("at first")
        return "home"

    with pytest.raises(sf.Fatal):
        travelling.run("r")
    mended.append(1)
    with pytest.raises(sf.UsageError, match="no longer stands"):
        sf.get_run("r").retry(at="fail#1")

    assert sf.get_run("r").retry(at="fail#2") == ["fail#2"]
    assert travelling.run("r") == "home"
    assert ledger.lines == ["book", "always", "cancel", "at first", "at first"]


# --- children -----------------------------------------------------------------------------------------


def family(ledger, mended, how):
    @sf.step(name="try_it")
    def try_it():
        ledger.write("try")
        if not mended:
            raise sf.Fatal("no")
        return "child's"

    @sf.workflow(name=f"little_{how}")
    def little():
        return try_it()

    @sf.effect(name="announce")
    def announce():
        ledger.write("announce")

    @sf.workflow(name=f"big_{how}")
    def big():
        announce()
        return sf.child(little, "c")

    return big, little


def test_a_call_that_failed_with_its_child_run_has_the_child_tried_again(ledger):
    """A child that has ended gives the same failure for ever: to ask it once more would change nothing."""
    mended: list[int] = []
    big, _ = family(ledger, mended, "blocking")
    with pytest.raises(sf.Fatal):
        big.run("p")
    mended.append(1)
    assert [(one.run, one.steps) for one in sf.get_run("p").would_retry()] == [("c", ["try_it#1"]), ("p", ["child#1"])]

    assert sf.get_run("p").retry(by="ann") == ["child#1"]

    [entry] = [entry for entry in sf.get_run("c").entries() if entry.kind == "CallsReopened"]
    assert entry.data["note"] == "run p is tried again"
    assert big.run("p") == "child's"
    assert ledger.lines == ["announce", "try", "try"]


def test_a_parent_hears_when_a_child_that_was_tried_again_has_ended(ledger):
    """Else it would look by itself only minutes later."""
    mended: list[int] = []
    big, little = family(ledger, mended, "worker")
    big.start("p")
    with sf.Worker(workflows=[big, little]):
        wait_until(ended("p"))
    mended.append(1)
    sf.get_run("p").retry()
    with sf.Worker(workflows=[big]) as worker:
        wait_until(lambda: sf.get_run("p").status == "waiting")
        wait_until(lambda: not worker.busy)

    with sf.Worker(workflows=[big, little]):
        assert sf.get_run("p").result(timeout=30) == "child's"

    assert kinds("p").count("ChildEnded") == 2
    assert ledger.lines == ["announce", "try", "try"]


def test_a_cancelled_child_would_end_the_same_way(ledger):
    @sf.workflow
    def little():
        sf.ask("?")

    @sf.workflow
    def big():
        return sf.child(little, "c")

    little.start("c")
    sf.get_run("c").cancel()
    with pytest.raises(sf.Cancelled):
        big.run("p")

    with pytest.raises(sf.UsageError, match="its child run c was cancelled, and would end the same way"):
        sf.get_run("p").retry()


# --- crashes, and what else reads a journal ------------------------------------------------------------


def test_a_crash_at_any_point_of_the_retry_loses_nothing(program, ledger):
    """The retry is one durable entry, and the calls it opens are recorded like any others."""
    program.write(
        """
        import os, signal, sys
        import surefoot as sf

        how = sys.argv[1]

        def ledger(line):
            with open("ledger", "a") as file:
                file.write(line + "\\n")

        def die(when):
            if how == when:
                os.kill(os.getpid(), signal.SIGKILL)

        @sf.effect
        def pay():
            ledger("pay")
            return 1

        @sf.step
        def read():
            ledger("read")
            if how == "failing":
                raise sf.Fatal("no")
            die("in step")
            return 2

        @sf.effect(on_crash="retry")
        def send():
            ledger("send " + sf.key())
            if how == "failing":
                raise sf.NotDone("no")
            die("in effect")
            return 3

        @sf.workflow
        def wf():
            total = pay()
            for call in (read, send):
                try:
                    total += call()
                except Exception:
                    pass
            return total

        if how == "reopening":
            sf.get_run("r").retry()
            os.kill(os.getpid(), signal.SIGKILL)
        print(wf.run("r"))
        """
    )
    assert program.run("failing").stdout == "1\n"
    for killed in ("reopening", "in step", "in effect"):
        assert program.run(killed).returncode == -signal.SIGKILL, killed

    ended = program.run("calmly")

    assert ended.stdout == "6\n", ended.stderr
    counts = ledger.counts
    assert (counts["pay"], counts["read"]) == (1, 3), "failed, killed, done"
    assert len(counts) == 3, "send has one key"


def test_a_run_that_was_tried_again_is_forked_exported_and_told(ledger, tmp_path):
    mended: list[int] = []
    workflow = order("blocking", ledger, mended)
    with pytest.raises(sf.Fatal):
        workflow.run("r")
    mended.append(1)
    sf.get_run("r").retry(by="ann")
    workflow.run("r")

    fork = sf.get_run("r").fork("s", at="pay#2").run
    assert fork.resume() == ["pay a", "booked a", "pay b"]
    assert ledger.counts == {"pay a": 1, "book a": 2, "pay b": 2}
    assert fork.verify()
    before = sf.get_run("r").state_at("pay#1")
    assert before.value("pay#1") == "pay a"


def test_async_code_has_it_too(ledger):
    mended: list[int] = []
    workflow = order("async", ledger, mended)

    async def main():
        with pytest.raises(sf.Fatal):
            await workflow.run("r")
        mended.append(1)
        run = await surefoot.aio.get_run("r")
        assert await run.retry(failed=True) == ["book#1"]
        return await workflow.run("r")

    assert asyncio.run(main()) == ["pay a", "booked a", "pay b"]
