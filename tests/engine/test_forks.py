"""Time travel: what a run had recorded at a call, and forks that go on from there while the parent stays as it is."""

from __future__ import annotations

import signal
import threading

import pytest

import surefoot as sf
from surefoot import witness
from surefoot.engine.operate import forks

LARGE = "x" * 5000


def its_file(path, *_):
    """What a writing effect touches."""
    return witness.file(path)


def journal_of(run_id):
    """Every byte the store has of a run."""
    return sf.get_run(run_id).runtime.store.read(run_id)


@pytest.fixture
def shop(ledger):
    """A run of three steps and three effects, done."""

    @sf.step
    def price(item: int) -> dict:
        ledger.write(f"price {item}")
        return {"item": item, "text": LARGE}

    @sf.effect
    def buy(item: int) -> str:
        ledger.write(f"buy {item} {sf.key()}")
        return f"bought {item}"

    @sf.workflow
    def shopping(items: int) -> list[str]:
        sf.publish("items", items)
        bought = []
        for item in range(items):
            price(item)
            bought.append(buy(item))
            sf.progress(item + 1, items)
        return bought

    shopping.run("parent", 3)
    return shopping


# --- looking back ----------------------------------------------------------------------------------


def test_the_state_at_a_call_is_what_was_recorded_up_to_and_including_it(shop):
    """To find out where it went wrong, one has to see what was known then."""
    then = sf.get_run("parent").state_at("buy#2")

    assert [call.address for call in then.calls] == ["price#1", "buy#1", "price#2", "buy#2"]
    assert (then.status, then.segment, then.set_aside) == ("running", 1, False)
    assert then.published == {"items": 3}
    assert then.progress == (1, 3, "")
    assert then.value("buy#2") == "bought 1"
    assert then.value("price#1") == {"item": 0, "text": LARGE}, "a value that is kept by parts"
    assert then.args("price#2") == {"item": 1}


def test_an_unknown_address_is_refused_and_near_ones_are_named(shop):
    run = sf.get_run("parent")

    with pytest.raises(sf.UsageError, match=r"no recorded call 'byu#2'. Near it: buy#2"):
        run.state_at("byu#2")
    with pytest.raises(sf.UsageError, match=r"no recorded call 'price#3'"):
        run.state_at("buy#2").value("price#3")


def test_a_settled_effect_shows_the_answer_that_it_was_given():
    """The answer is part of the call, though it was recorded after the run had stopped."""

    @sf.effect
    def pay() -> str:
        raise ConnectionError("lost")

    @sf.workflow
    def wf() -> str:
        return pay()

    with pytest.raises(sf.InDoubt):
        wf.run("r")
    with pytest.raises(sf.UsageError, match="had no result then: ConnectionError: lost"):
        sf.get_run("r").state_at("pay#1").value("pay#1")
    sf.get_run("r").settle("pay#1", happened="paid", by="ann")

    then = sf.get_run("r").state_at("pay#1")
    assert (then.value("pay#1"), then.call("pay#1").learned_by) == ("paid", "person ann")


def test_earlier_segments_can_be_looked_at():
    """A run that continued as new has not forgotten how it came there."""

    @sf.step
    def work(n: int) -> int:
        return n * 10

    @sf.workflow
    def wf(n: int) -> int:
        if n < 3:
            work(n)
            sf.continue_as_new(n + 1)
        return n

    assert wf.run("r", 1) == 3
    run = sf.get_run("r")

    assert (run.state_at("work#1").segment, run.state_at("work#1").value("work#1")) == (2, 20)
    assert run.state_at("work#1", segment=1).value("work#1") == 10
    with pytest.raises(sf.UsageError, match="no recorded call"):
        run.state_at("work#1", segment=3)
    with pytest.raises(sf.UsageError, match=r"belongs to segment 2, and the run is in segment 3"):
        run.fork("f", at="work#1")


def test_what_was_set_aside_by_a_rewind_can_be_looked_at_and_says_so(shop):
    run = sf.get_run("parent")
    run.rewind("price#3", by="ann")

    then = run.state_at("price#3")

    assert (then.set_aside, then.value("price#3")["item"]) == (True, 2)
    assert run.state_at("buy#2").set_aside is False


# --- forking ---------------------------------------------------------------------------------------


def test_a_fork_reuses_what_came_before_the_point_and_executes_the_rest_with_keys_of_its_own(shop, ledger):
    parent = sf.get_run("parent")
    before, done = journal_of("parent"), ledger.lines

    fork = parent.fork("fork", at="buy#2", by="ann", note="what if")

    assert fork.reused == ["price#1", "buy#1", "price#2"]
    assert fork.would_execute == ["buy#2", "buy#3"]
    assert (fork.run.id, fork.run.status, fork.run.published) == ("fork", "queued", {"items": 3})
    assert ledger.lines == done, "nothing is executed by forking"
    assert shop.run("fork", 3) == shop.run("parent", 3)
    again = [line.split() for line in ledger.lines[len(done) :]]
    assert [words[:2] for words in again] == [["buy", "1"], ["price", "2"], ["buy", "2"]]
    assert not {words[2] for words in again if words[0] == "buy"} & {words.split()[-1] for words in done}
    assert journal_of("parent") == before, "the parent is untouched, byte for byte"
    assert fork.run.verify() == len(fork.run.entries())


def test_a_fork_names_its_parent_and_the_record_up_to_which_it_took_over(shop):
    parent = sf.get_run("parent")

    fork = parent.fork("fork", at="buy#2", by="ann", note="what if").run

    created, *_, released = fork.entries()
    assert (created.data["parent"], created.data["at"]) == ("parent", "buy#2")
    seals = {record.seal.hex(): record.seq for record in journal_of("parent").records}
    assert seals[created.data["parent_seal"]] == parent.state_at("price#2").seq
    assert released.data["why"] == "forked from parent before buy#2 by ann: what if"


def test_copied_effects_keep_the_key_they_were_executed_with(shop):
    """It is a fact about the parent's execution, and what a person looks for at the provider."""
    parent = sf.get_run("parent")
    fork = parent.fork("fork", at="price#3").run
    shop.run("fork", 3)

    keys = {call.address: call.key for call in parent.steps() if call.kind == "effect"}
    forked = {call.address: call.key for call in fork.steps() if call.kind == "effect"}
    assert [address for address in keys if keys[address] == forked[address]] == ["buy#1", "buy#2"]


def test_large_values_are_shared_not_copied(shop):
    """Forks are cheap: what is large is there once."""
    store = sf.get_run("parent").runtime.store
    parts = set(store.part_ids())

    fork = sf.get_run("parent").fork("fork", at="buy#3").run

    assert set(store.part_ids()) == parts
    assert fork.state_at("price#3").value("price#3") == {"item": 2, "text": LARGE}


def test_large_arguments_of_the_run_are_taken_over():
    @sf.step
    def size(text: str) -> int:
        return len(text)

    @sf.workflow
    def wf(text: str) -> int:
        return size(text)

    wf.run("r", LARGE)
    fork = sf.get_run("r").fork("f", at="size#1").run

    assert wf.run(fork.id, LARGE) == len(LARGE), "same id and arguments: the same run"


def test_the_same_fork_again_is_the_same_fork_and_another_is_a_conflict(shop):
    """A script that died after forking can simply be started again."""
    parent = sf.get_run("parent")
    first = parent.fork("fork", at="buy#2")
    entries = len(first.run.entries())

    again = parent.fork("fork", at="buy#2")

    assert (again.reused, again.would_execute) == (first.reused, first.would_execute)
    assert len(again.run.entries()) == entries
    shop.run("fork", 3)
    assert parent.fork("fork", at="buy#2").reused == first.reused, "also after it has gone on"
    with pytest.raises(sf.RunConflict, match="forked from parent before buy#2"):
        parent.fork("fork", at="buy#3")
    with pytest.raises(sf.RunConflict, match="exists already, and is no fork of it"):
        parent.fork("parent", at="buy#3")


def test_a_fork_can_be_forked(shop, ledger):
    shop.run("parent", 3)
    shop.run(sf.get_run("parent").fork("child", at="buy#2").run.id, 3)

    grandchild = sf.get_run("child").fork("grandchild", at="buy#3")

    assert shop.run(grandchild.run.id, 3) == ["bought 0", "bought 1", "bought 2"]
    assert [ledger.lines[-1].split()[:2], len(ledger.lines)] == [["buy", "2"], 6 + 3 + 1]


@pytest.mark.parametrize("bad", ["buy#9", "nonsense", ""])
def test_an_unknown_point_is_refused(shop, bad):
    with pytest.raises(sf.UsageError, match="has no recorded call"):
        sf.get_run("parent").fork("fork", at=bad)
    with pytest.raises(sf.NotFound):
        sf.get_run("fork")


def test_a_fork_with_an_id_that_is_no_id_is_refused(shop):
    with pytest.raises(sf.UsageError, match="run id"):
        sf.get_run("parent").fork(" f", at="buy#2")


def test_doubt_before_the_point_is_refused_with_the_cure(ledger):
    """A fork must not go on with something of which nobody knows whether it happened."""

    paying = threading.Event()

    @sf.effect
    def pay() -> str:
        paying.set()
        raise ConnectionError

    @sf.effect
    def mail() -> str:
        ledger.write("mail")
        return "sent"

    def mail_then() -> str:
        assert paying.wait(30)
        return mail()

    @sf.workflow
    def wf() -> list:
        return list(sf.gather(pay, mail_then))

    with pytest.raises(sf.InDoubt):
        wf.run("r")
    run = sf.get_run("r")

    with pytest.raises(sf.UsageError, match=r"gather#1.0/pay#1 came before it and is in doubt(.|\n)*surefoot settle r"):
        run.fork("f", at="gather#1.1/mail#1")
    run.settle("gather#1.0/pay#1", happened="paid")
    fork = run.fork("f", at="gather#1.1/mail#1")
    assert wf.run(fork.run.id) == ["paid", "sent"]
    assert ledger.lines == ["mail", "mail"]


def test_doubt_at_the_point_is_no_hindrance(ledger):
    """The way around an effect that nobody can settle: the fork executes it, under a key of its own, and says so."""
    fail = [True]

    @sf.effect
    def pay() -> str:
        ledger.write(sf.key())
        if fail:
            raise ConnectionError
        return "paid"

    @sf.workflow
    def wf() -> str:
        return pay()

    with pytest.raises(sf.InDoubt):
        wf.run("r")
    fail.clear()

    fork = sf.get_run("r").fork("f", at="pay#1")

    assert fork.would_execute == ["pay#1"]
    assert wf.run(fork.run.id) == "paid"
    assert len(set(ledger.lines)) == 2


def test_what_had_not_ended_begins_anew(ledger):
    """An effect that was settled as not happened is not carried on in the fork: its key is not the parent's."""
    fail, paying = [True], threading.Event()

    @sf.effect
    def pay() -> str:
        ledger.write(sf.key())
        paying.set()
        if fail:
            raise ConnectionError
        return "paid"

    @sf.step
    def other() -> int:
        return 1

    def other_then() -> int:
        assert paying.wait(30)
        return other()

    @sf.workflow
    def wf() -> list:
        return list(sf.gather(pay, other_then))

    with pytest.raises(sf.InDoubt):
        wf.run("r")
    run = sf.get_run("r")
    run.settle("gather#1.0/pay#1", not_happened=True)
    fail.clear()

    fork = run.fork("f", at="gather#1.1/other#1")

    assert (fork.reused, fork.would_execute) == ([], ["gather#1.0/pay#1"])
    assert wf.run(fork.run.id) == ["paid", 1]
    assert fork.run.steps()[0].attempts == 1
    assert len(set(ledger.lines)) == 2


def test_values_timers_events_answers_and_sights_are_taken_over(tmp_path):
    """All that the code was told before the point it is told again."""
    (tmp_path / "in.txt").write_text("1")

    @sf.step
    def last(text: str) -> str:
        return text

    @sf.workflow
    def wf() -> list:
        told = [str(sf.uuid4()), sf.random(), sf.watch(witness.file("in.txt"))]
        sf.sleep(0.001)
        told.append(sf.wait_event("go"))
        decision = sf.approve("sure?")
        told += [decision.approved, decision.by, sf.ask("how many?", type=int)]
        last("end")
        return told

    with pytest.raises(sf.WaitingForAnswer):
        wf.run("r")
    run = sf.get_run("r")
    run.send_event("go", {"speed": 3}, id="e1", by="bob")
    with pytest.raises(sf.WaitingForAnswer):
        wf.run("r")
    run.answer("approve#1", True, by="ann")
    with pytest.raises(sf.WaitingForAnswer):
        wf.run("r")
    run.answer("ask#1", 7, by="ann")
    told = wf.run("r")

    fork = run.fork("f", at="last#1")

    assert wf.run(fork.run.id) == told
    assert fork.run.stops == ()


def test_an_event_that_came_after_the_point_is_there_for_the_wait_that_began_before_it():
    """Branches overlap: the wait is taken over, and what it got with it."""
    waiting = threading.Event()

    @sf.step
    def other() -> int:
        return 1

    def wait() -> int:
        try:
            return sf.wait_event("go")
        finally:
            waiting.set()

    def other_then() -> int:
        assert waiting.wait(30)
        return other()

    @sf.workflow
    def wf() -> list:
        return list(sf.gather(wait, other_then))

    with pytest.raises(sf.WaitingForAnswer):
        wf.run("r")
    run = sf.get_run("r")
    run.send_event("go", 5, id="e1")
    run.send_event("unheard", 6, id="e2")
    assert wf.run("r") == [5, 1]

    fork = run.fork("f", at="gather#1.1/other#1")

    assert fork.reused == ["gather#1.0/wait_event#1"]
    assert wf.run("f") == [5, 1]
    assert [entry.data["id"] for entry in fork.run.entries() if entry.kind == "EventSent"] == ["e1"]


def test_a_point_before_an_answer_asks_again():
    @sf.workflow
    def wf() -> list:
        return [sf.wait_event("go"), bool(sf.approve("sure?"))]

    with pytest.raises(sf.WaitingForAnswer):
        wf.run("r")
    run = sf.get_run("r")
    run.send_event("go", 1, id="e1")
    with pytest.raises(sf.WaitingForAnswer):
        wf.run("r")
    run.answer("approve#1", True)
    assert wf.run("r") == [1, True]

    with pytest.raises(sf.WaitingForAnswer, match=r"approve#1"):
        wf.run(run.fork("f", at="approve#1").run.id)
    with pytest.raises(sf.WaitingForAnswer, match=r"wait_event#1"):
        wf.run(run.fork("g", at="wait_event#1").run.id)


def test_a_yes_to_an_effect_is_not_used_twice(ledger):
    """It was given for one execution. The fork's own is another."""

    @sf.effect(approve=True)
    def pay(amount: int) -> str:
        ledger.write("pay")
        return "paid"

    @sf.workflow
    def wf() -> str:
        return pay(5)

    with pytest.raises(sf.WaitingForAnswer):
        wf.run("r")
    run = sf.get_run("r")
    run.answer("pay#1.approval", True)
    assert wf.run("r") == "paid"

    fork = run.fork("f", at="pay#1")

    with pytest.raises(sf.WaitingForAnswer, match=r"pay#1\.approval"):
        wf.run(fork.run.id)
    assert ledger.lines == ["pay"]


def test_a_no_before_the_point_stays_a_no():
    @sf.effect(approve=True)
    def pay() -> str:
        raise AssertionError

    @sf.step
    def then() -> str:
        return "went on"

    @sf.workflow
    def wf() -> str:
        try:
            return pay()
        except sf.Fatal:
            return then()

    with pytest.raises(sf.WaitingForAnswer):
        wf.run("r")
    sf.get_run("r").answer("pay#1.approval", False)
    assert wf.run("r") == "went on"

    assert wf.run(sf.get_run("r").fork("f", at="then#1").run.id) == "went on"


def test_a_fork_does_not_undo_what_its_parent_did(ledger):
    """The booking is the parent's, which still relies on it."""
    fail: list[int] = []

    @sf.effect
    def book(what: str) -> str:
        ledger.write(f"book {what}")
        return what

    @book.undo
    def _(what: str, result: str) -> None:
        ledger.write(f"cancel {what}")

    @sf.workflow
    def trip() -> str:
        with sf.saga():
            book("flight")
            book("hotel")
            if fail:
                raise ValueError("no car")
        return "booked"

    assert trip.run("r") == "booked"
    fork = sf.get_run("r").fork("f", at="book#2").run
    fail.append(1)

    with pytest.raises(ValueError, match="no car"):
        trip.run(fork.id)

    assert ledger.lines == ["book flight", "book hotel", "book hotel", "cancel hotel"]


def test_a_rewound_parent_is_forked_as_it_now_is(ledger):
    """What was set aside does not come back, and a settled answer counts, not what was recorded before."""
    calls: list[str] = []

    @sf.effect
    def pay() -> str:
        calls.append("pay")
        return "first"

    @sf.step
    def number() -> int:
        calls.append("number")
        return len(calls)

    @sf.step
    def end() -> str:
        return "end"

    @sf.workflow
    def wf() -> list:
        sf.approve("go?")
        return [number(), pay(), number(), end()]

    with pytest.raises(sf.WaitingForAnswer):
        wf.run("r")  # The stop is not taken over, so that positions in the fork are others than in the parent.
    run = sf.get_run("r")
    run.answer("approve#1", True)
    wf.run("r")
    run.rewind("pay#1")
    run.settle("pay#1", happened="second")
    result = wf.run("r")
    assert result == [1, "second", 4, "end"]

    fork = run.fork("f", at="end#1")

    assert fork.reused == ["approve#1", "number#1", "pay#1", "number#2"]
    assert wf.run(fork.run.id) == result
    fork.run.rewind("pay#1")
    assert [call.status for call in fork.run.steps()] == ["done", "in doubt"]


def test_a_later_segment_is_forked_with_its_arguments_and_number():
    @sf.step
    def work(n: int) -> int:
        return n * 10

    @sf.workflow
    def wf(n: int) -> list:
        sf.publish(f"seen-{n}", n)
        if n == 1:
            sf.publish("only", "once")
        first, second = work(n), work(n + 1)
        if n < 3:
            sf.continue_as_new(n + 1)
        return [first, second]

    assert wf.run("r", 1) == [30, 40]

    fork = sf.get_run("r").fork("f", at="work#2")

    assert fork.reused == ["work#1"]
    assert fork.run.state().segment == 3
    assert wf.run("f", 1) == [30, 40]
    assert fork.run.published == {"seen-1": 1, "only": "once", "seen-2": 2, "seen-3": 3}


@pytest.mark.parametrize("how", ["failed", "cancelled"])
def test_a_run_that_ended_badly_can_be_forked(how):
    """The commonest use: try again from before it went wrong, and keep what happened for the record."""
    mended: list[int] = []

    @sf.step
    def work() -> int:
        if how == "cancelled" and not mended:
            sf.get_run("r").cancel()
        return 1

    @sf.step
    def more() -> int:
        if not mended:
            raise ValueError("broken")
        return 2

    @sf.workflow
    def wf() -> int:
        return work() + more()

    with pytest.raises((ValueError, sf.Cancelled)):
        wf.run("r")
    mended.append(1)

    fork = sf.get_run("r").fork("f", at="more#1" if how == "failed" else "work#1").run

    assert wf.run(fork.id) == 3
    assert sf.get_run("r").status == how


def test_a_running_parent_can_be_forked_and_goes_on():
    """It is only read."""
    here, go = threading.Event(), threading.Event()

    @sf.step
    def first() -> int:
        return 1

    @sf.step
    def slow() -> int:
        here.set()
        assert go.wait(30)
        return 2

    @sf.workflow
    def wf() -> int:
        return first() + slow()

    box: list[int] = []
    thread = threading.Thread(target=lambda: box.append(wf.run("r")))
    thread.start()
    assert here.wait(30)
    try:
        fork = sf.get_run("r").fork("f", at="first#1")
        assert (fork.run.status, fork.run.is_driven()) == ("queued", False)
    finally:
        go.set()
        thread.join()
    assert box == [3]
    assert wf.run(fork.run.id) == 3


def test_a_fork_expects_the_world_as_it_was_at_the_point(tmp_path):
    """What the parent changed afterwards is news to the fork: it stops and asks, instead of going on with it."""

    @sf.effect(touches=[its_file])
    def write(path: str, text: str) -> int:
        (tmp_path / path).write_text(text)
        return len(text)

    @sf.workflow(watch=[witness.files("*.txt")])
    def wf() -> int:
        return write("a.txt", "1") + write("b.txt", "22")

    assert wf.run("r") == 3
    fork = sf.get_run("r").fork("f", at="write#2").run

    with pytest.raises(sf.Drifted, match=r"file:b.txt: added"):
        wf.run(fork.id)
    fork.accept_drift(by="ann")
    assert wf.run(fork.id) == 3


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_crash_while_forking_leaves_all_of_it_or_nothing(program, moment):
    """M-04: a fork is visible only when it is complete."""
    program.write(
        """
        import os, signal, sys
        import surefoot as sf

        @sf.step
        def one(): return 1

        @sf.effect
        def two(): return 2

        @sf.workflow
        def wf(): return one() + two() + one()

        wf.run("r")
        run = sf.get_run("r")
        append = run.runtime.store.append
        def dying(batch):
            if sys.argv[1] == "after":
                append(batch)
            os.kill(os.getpid(), signal.SIGKILL)
        run.runtime.store.append = dying
        run.fork("f", at="one#2")
        """
    )
    assert program.run(moment).returncode == -signal.SIGKILL
    before = journal_of("r")

    if moment == "before":
        with pytest.raises(sf.NotFound):
            sf.get_run("f")
    fork = sf.get_run("r").fork("f", at="one#2")

    assert fork.reused == ["one#1", "two#1"]
    assert fork.run.verify() == 6
    assert journal_of("r") == before


def test_two_who_fork_at_once_get_the_same_fork(shop, monkeypatch):
    parent = sf.get_run("parent")
    prepare = forks.prepare

    def slow(*args, **kwargs):
        draft = prepare(*args, **kwargs)
        monkeypatch.setattr(forks, "prepare", prepare)
        parent.fork("fork", at="buy#2", by="bob")
        return draft

    monkeypatch.setattr(forks, "prepare", slow)

    fork = parent.fork("fork", at="buy#2", by="ann")

    assert fork.run.entries()[-1].data["why"].endswith("by bob")


def test_a_pruned_parent_cannot_be_forked_but_its_forks_stay_whole(shop):
    from surefoot.engine.upkeep import tombstones

    run = sf.get_run("parent")
    fork = run.fork("fork", at="buy#3").run
    store, clock = run.runtime.store, run.runtime.clock
    for found in tombstones.candidates(store, clock, older_than_seconds=0):
        tombstones.bury(store, clock, found)
    tombstones.sweep(store)

    with pytest.raises(sf.UsageError, match="was pruned"):
        run.fork("other", at="buy#2")
    assert run.fork("fork", at="buy#3").reused == ["price#1", "buy#1", "price#2", "buy#2", "price#3"]
    assert fork.state_at("price#3").value("price#3")["text"] == LARGE
    assert shop.run(fork.id, 3) == ["bought 0", "bought 1", "bought 2"]


async def _async_fork():
    from surefoot import aio

    ran: list[int] = []

    @aio.step
    async def work(n: int) -> int:
        ran.append(n)
        return n

    @aio.workflow
    async def wf() -> list:
        return list(await aio.map(work, [1, 2, 3], key=str))

    assert await wf.run("r") == [1, 2, 3]
    last = sf.get_run("r").steps()[-1].address
    fork = sf.get_run("r").fork("f", at=last)
    assert await wf.run("f") == [1, 2, 3]
    return ran, last, fork


def test_branches_of_async_code_are_forked_too():
    """Scopes and branches are part of the address, so a point inside one is as good as any."""
    import asyncio

    ran, last, fork = asyncio.run(_async_fork())

    assert len(fork.reused) == 2
    assert last not in fork.reused
    assert len(ran) == 4
