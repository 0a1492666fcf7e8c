"""`raise sf.Unavailable`: what a run needs is away. It is parked: nothing was done, nothing failed, no retry is used up."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading

import pytest

import surefoot as sf
import surefoot.aio
from surefoot.testing.clock import FastClock, installed
from tests.working import kinds, wait_until

DRIVERS = ["blocking", "async", "worker"]


@pytest.fixture
def clock():
    with installed(FastClock()) as clock:
        yield clock


def drive(how, workflow, run_id, clock, times=1):
    """To the end; a worker is told each time that so many seconds have passed."""
    if how == "blocking":
        return workflow.run(run_id)
    if how == "async":
        return asyncio.run(workflow.run(run_id))
    workflow.start(run_id)
    with sf.Worker(workflows=[workflow]) as worker:
        for number in range(1, times + 1):
            wait_until(lambda number=number: kinds(run_id).count("RunSuspended") == number)
            wait_until(lambda: not worker.busy)
            assert sf.get_run(run_id).status == "sleeping"
            clock.forward(sf.get_run(run_id).state().due.at / 1e6 - clock.now() / 1e6 + 0.001)
        return sf.get_run(run_id).result(timeout=30)


def waits(run_id):
    """For how many seconds each attempt or drive was parked."""
    parked = [entry for entry in sf.get_run(run_id).entries() if entry.data.get("parked") or entry.data.get("why")]
    return [round(entry.data["due"]["at"] / 1e6 - entry.at.timestamp()) for entry in parked]


def with_calls(how, kind, body, **options):
    """A workflow that makes one call of that kind."""
    decorate = sf.step if kind == "step" else sf.effect
    if how == "async":

        @decorate(name="ask", **options)
        async def ask():
            return body()

        @sf.workflow(name=f"asking_{kind}_async")
        async def asking():
            return await ask()

    else:

        @decorate(name="ask", **options)
        def ask():
            return body()

        @sf.workflow(name=f"asking_{kind}_{how}")
        def asking():
            return ask()

    return asking


@pytest.mark.parametrize("kind", ["step", "effect"])
@pytest.mark.parametrize("how", DRIVERS)
def test_a_call_that_is_parked_goes_on_when_told_and_uses_up_no_retry(how, kind, clock, ledger):
    """An outage of an hour must not be what uses up two retries; and sf.attempt() tells how often it really ran."""

    def body():
        ledger.write(f"{sf.attempt()} {sf.key() if kind == 'effect' else ''}")
        if sf.attempt() <= 3:
            raise sf.Unavailable("the bank is closed", retry_after="5m")
        return "asked"

    asking = with_calls(how, kind, body)

    assert drive(how, asking, "r", clock, times=3) == "asked"

    assert waits("r") == [300, 300, 300]
    assert [line.split()[0] for line in ledger.lines] == ["1", "2", "3", "4"]
    assert len({line.partition(" ")[2] for line in ledger.lines}) == 1, "one key"
    assert kinds("r").count("RunStopped") == 0


@pytest.mark.parametrize("how", DRIVERS)
def test_the_workflow_itself_may_be_parked(how, clock, ledger):
    """Its own code has found that it cannot go on now. What it did is not done again when it comes to that place anew."""

    opens = clock.now() + 400 * 1_000_000

    def look():
        if clock.now() < opens:
            raise sf.Unavailable("no licence")

    if how == "async":

        @sf.effect(name="pay")
        async def pay():
            ledger.write("pay")

        @sf.workflow(name="looking_async")
        async def looking():
            await pay()
            look()
            return "seen"

    else:

        @sf.effect(name="pay")
        def pay():
            ledger.write("pay")

        @sf.workflow(name=f"looking_{how}")
        def looking():
            pay()
            look()
            return "seen"

    assert drive(how, looking, "r", clock, times=3) == "seen"

    assert ledger.lines == ["pay"]
    assert waits("r") == [60, 120, 240], "nobody said when to look again"
    suspended = [entry for entry in sf.get_run("r").entries() if entry.kind == "RunSuspended"]
    assert {entry.data["why"] for entry in suspended} == {"no licence"}


def test_it_looks_again_after_a_minute_then_twice_as_long_up_to_fifteen(clock):
    calls = []

    @sf.step
    def ask():
        calls.append(sf.attempt())
        if len(calls) <= 6:
            raise sf.Unavailable("away")
        return "there"

    @sf.workflow
    def asking():
        return ask()

    assert asking.run("r") == "there"
    assert waits("r") == [60, 120, 240, 480, 900, 900]


def test_it_is_no_retry_but_what_fails_otherwise_is(clock, ledger):
    """Parked, failed, parked, failed: with one retry the second failure is the last."""

    @sf.step(retries=1)
    def ask():
        ledger.write(sf.attempt())
        raise sf.Unavailable("away") if sf.attempt() % 2 else ValueError("no")

    @sf.workflow
    def asking():
        ask()

    with pytest.raises(ValueError, match="no"):
        asking.run("r")
    assert ledger.lines == ["1", "2", "3", "4"]


def test_a_crash_while_it_is_parked_does_not_begin_the_counting_anew(program, ledger):
    program.write(
        """
        import os, signal, sys
        import surefoot as sf
        from surefoot.testing.clock import FastClock, installed

        @sf.effect
        def ask():
            with open("ledger", "a") as file:
                file.write(f"{sf.attempt()} {sf.key()}\\n")
            if sys.argv[1] == "away":
                raise sf.Unavailable("away")
            return "there"

        @sf.workflow
        def wf():
            return ask()

        def on_wait(side, now):
            if sys.argv[1] == "away" and waited.append(side) is None and len(waited) > int(sys.argv[2]):
                os.kill(os.getpid(), signal.SIGKILL)

        waited = []
        with installed(FastClock(on_wait=on_wait)):
            print(wf.run("r"))
        """
    )
    assert program.run("away", "0").returncode == -signal.SIGKILL
    assert program.run("away", "2").returncode == -signal.SIGKILL, "it slept to its end, tried, and was parked again"

    ended = program.run("there")

    assert ended.stdout == "there\n", ended.stderr
    assert waits("r") == [60, 120]
    assert [line.split()[0] for line in ledger.lines] == ["1", "2", "3"]
    assert len({line.split()[1] for line in ledger.lines}) == 1


def test_an_earlier_attempt_in_doubt_stays_so(clock, ledger):
    """That this attempt did nothing proves nothing about the one before."""

    @sf.effect(on_crash="retry", retries=1, backoff=sf.Backoff(first="1s"))
    def pay():
        ledger.write(sf.key())
        match sf.attempt():
            case 1:
                raise TimeoutError("no answer")
            case 2:
                raise sf.Unavailable("away")
            case _:
                raise sf.Fatal("refused")

    @sf.workflow
    def paying():
        pay()

    with pytest.raises(sf.InDoubt, match=r"its last attempt did nothing .* but an earlier one may have happened"):
        paying.run("r")
    assert len(ledger.lines) == 3


# --- branches, sagas, and code that catches everything --------------------------------------------------


@pytest.mark.parametrize("how", DRIVERS)
def test_the_other_branches_go_on_first_and_nothing_is_collected_as_failed(how, clock, ledger):
    def worked(n):
        ledger.write(f"work {n}")
        if n == 1 and ledger.counts["work 1"] == 1:
            raise sf.Unavailable("away")
        return n

    if how == "async":

        @sf.step(name="work")
        async def work(n):
            return worked(n)

        @sf.workflow(name="many_async")
        async def many():
            return sorted((await sf.aio.map(work, range(4), concurrency=1, on_error="collect")).ok)

    else:

        @sf.step(name="work")
        def work(n):
            return worked(n)

        @sf.workflow(name=f"many_{how}")
        def many():
            return sorted(sf.map(work, range(4), concurrency=1, on_error="collect").ok)

    assert drive(how, many, "r", clock) == [0, 1, 2, 3]
    assert ledger.counts["work 1"] == 2
    assert len(ledger.lines) == 5


@pytest.mark.parametrize("how", DRIVERS)
def test_code_between_calls_may_park_its_branch(how, clock, ledger):
    opens = clock.now() + 30 * 1_000_000

    def here(n):
        if n == 1 and clock.now() < opens:
            raise sf.Unavailable("away")

    if how == "async":

        @sf.step(name="work")
        async def work(n):
            ledger.write(f"work {n}")
            return n

        async def branch(n):
            here(n)
            return await work(n)

        @sf.workflow(name="branching_async")
        async def branching():
            return sorted((await sf.aio.map(branch, range(3), on_error="collect")).ok)

    else:

        @sf.step(name="work")
        def work(n):
            ledger.write(f"work {n}")
            return n

        def branch(n):
            here(n)
            return work(n)

        @sf.workflow(name=f"branching_{how}")
        def branching():
            return sorted(sf.map(branch, range(3), on_error="collect").ok)

    assert drive(how, branching, "r", clock) == [0, 1, 2]
    assert [ledger.counts[f"work {n}"] for n in range(3)] == [1, 1, 1]


@pytest.mark.parametrize("how", DRIVERS)
def test_a_saga_is_not_undone_because_something_is_away(how, clock, ledger):
    """The run is intact and goes on; nor may code around the block make a failure of it."""

    opens = clock.now() + 30 * 1_000_000

    def missing():
        if clock.now() < opens:
            raise sf.Unavailable("away")

    if how == "async":

        @sf.effect(name="book")
        async def book():
            ledger.write("book")

        @book.undo
        async def _(result):
            ledger.write("cancel")

        @sf.workflow(name="trip_async")
        async def trip():
            try:
                async with sf.saga():
                    await book()
                    missing()
            except Exception:
                ledger.write("swallowed")
            return "home"

    else:

        @sf.effect(name="book")
        def book():
            ledger.write("book")

        @book.undo
        def _(result):
            ledger.write("cancel")

        @sf.workflow(name=f"trip_{how}")
        def trip():
            try:
                with sf.saga():
                    book()
                    missing()
            except Exception:
                ledger.write("swallowed")
            return "home"

    assert drive(how, trip, "r", clock) == "home"
    assert ledger.lines == ["book"]


def test_code_that_catches_everything_does_not_swallow_it(clock, ledger):
    """Agent frameworks take an exception of a tool for its answer; a worker has to let go of the run all the same."""

    @sf.step
    def tool():
        ledger.write("tool")
        if sf.attempt() == 1:
            raise sf.Unavailable("away")
        return "answer"

    @sf.workflow
    def agent():
        try:
            return tool()
        except BaseException:
            return "no tool"

    assert drive("worker", agent, "r", clock) == "answer"
    assert ledger.lines == ["tool", "tool"]


def test_a_group_in_which_all_is_away_is_parked_and_any_other_is_not(clock):
    tries = []

    @sf.step
    def both(others):
        tries.append(others)
        if len(tries) == 1:
            parts = [sf.Unavailable("a", retry_after=10), sf.Unavailable("b", retry_after=20), *others]
            raise ExceptionGroup("both", parts)
        return "there"

    @sf.workflow
    def asking(others):
        return both([ValueError("no")] if others else [])

    assert asking.run("r", False) == "there"
    assert waits("r") == [20]
    tries.clear()
    with pytest.raises(ExceptionGroup):
        asking.run("s", True)


# --- waiting, and what people see ------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["call", "workflow"])
def test_a_run_that_is_parked_in_this_process_notices_that_it_is_cancelled(where):
    """It sleeps for a day: whoever cancels it does not wait for that."""
    here = threading.Event()

    def away():
        here.set()
        raise sf.Unavailable("away", retry_after="1d")

    @sf.step
    def ask():
        away()

    @sf.workflow(name=f"asking_{where}")
    def asking():
        ask() if where == "call" else away()

    ends = []

    def work():
        with pytest.raises(sf.Cancelled):
            asking.run("r")
        ends.append("cancelled")

    thread = threading.Thread(target=work)
    thread.start()
    assert here.wait(30)
    wait_until(lambda: sf.get_run("r").status == "sleeping")
    with contextlib.suppress(sf.Cancelled):
        sf.get_run("r").cancel(by="ann")
    thread.join(30)

    assert ends == ["cancelled"]


@pytest.mark.parametrize("bad", ["soon", "5 minutes", -1, True, "", [5], float("nan")])
def test_a_time_that_is_none_is_refused_where_it_is_written(bad):
    with pytest.raises(sf.UsageError, match=r"Unavailable\(retry_after="):
        sf.Unavailable("away", retry_after=bad)


def test_outside_of_runs_it_is_an_exception_like_any_other():
    @sf.step
    def ask():
        raise sf.Unavailable("away", "90s")

    with sf.outside(), pytest.raises(sf.Unavailable, match="away"):
        ask()


@pytest.mark.parametrize("where", ["call", "workflow"])
def test_people_see_that_it_is_parked_and_why(where, clock):
    from surefoot.view import page, standing

    @sf.step
    def ask():
        raise sf.Unavailable("the bank is closed", retry_after="1d")

    @sf.workflow(name=f"seen_{where}")
    def asking():
        if where == "workflow":
            raise sf.Unavailable("the bank is closed", retry_after="1d")
        ask()

    asking.start("r")
    with sf.Worker(workflows=[asking]) as worker:
        wait_until(lambda: "RunSuspended" in kinds("r"))
        wait_until(lambda: not worker.busy)
    state = sf.get_run("r").state()

    how = standing.stands(state, driven=False, now=clock.now())
    assert how.brief.startswith("parked: the bank is closed; looks again at ")
    assert not how.needs_a_person
    assert page.page(state, driven=False, now=clock.now()).headline.startswith("parked: the bank is closed")


def test_a_secret_in_the_reason_is_not_recorded_shown_or_logged(clock, caplog):
    """People write into a reason what the client said, and clients repeat what they were given."""

    @sf.step
    def ask(token: sf.Secret) -> str:
        if sf.attempt() == 1:
            raise sf.Unavailable(f"no answer for {token.reveal()}")
        return token.reveal()[:3]

    opens = clock.now() + 90 * 1_000_000

    @sf.workflow(on_failure="stop")
    def asking() -> None:
        ask(sf.Secret("hush-hush-1234"))
        if clock.now() < opens:
            raise sf.Unavailable("also for hush-hush-1234")
        raise ValueError("hush-hush-1234 again")

    with pytest.raises(sf.WorkflowFailed) as stop:
        asking.run("r")

    told = str(stop.value) + caplog.text + "".join(str(entry.data) for entry in sf.get_run("r").entries())
    assert "no answer for ***" in told
    assert "also for ***" in told
    assert "ValueError: *** again" in told
    assert "hush-hush" not in told


# --- on_failure="stop" ------------------------------------------------------------------------------------


def stopping(how, ledger, mended):
    def wrote(line):
        ledger.write(line)

    if how == "async":

        @sf.effect(name="pay")
        async def pay(what):
            wrote(what)

        @sf.workflow(name="stopping_async", on_failure="stop")
        async def workflow():
            await pay("a")
            if not mended:
                raise KeyError("bug")
            await pay("b")
            return "done"

    else:

        @sf.effect(name="pay")
        def pay(what):
            wrote(what)

        @sf.workflow(name=f"stopping_{how}", on_failure="stop")
        def workflow():
            pay("a")
            if not mended:
                raise KeyError("bug")
            pay("b")
            return "done"

    return workflow


@pytest.mark.parametrize("how", DRIVERS)
def test_a_failure_is_a_stop_that_a_retry_opens(how, ledger):
    """Code has bugs, and a run that has done things is worth more than its exception."""
    mended: list[int] = []
    workflow = stopping(how, ledger, mended)

    def run():
        if how == "blocking":
            return workflow.run("r")
        if how == "async":
            return asyncio.run(workflow.run("r"))
        workflow.start("r")
        with sf.Worker(workflows=[workflow]):
            return sf.get_run("r").result(timeout=30)

    for _ in range(2):
        with pytest.raises(sf.WorkflowFailed, match=r"run r: the workflow raised KeyError: 'bug'") as stop:
            run()
    assert stop.value.exit_code == 3
    assert stop.value.cures == (
        ("fixed?", "surefoot runs retry r --failed"),
        ("give up?", "surefoot runs cancel r"),
    )
    assert sf.get_run("r").status == "stopped"
    assert kinds("r").count("RunStopped") == 1, "the same stop is written once"
    mended.append(1)
    with pytest.raises(sf.WorkflowFailed):
        run()  # Not before somebody says so, however long one waits.
    if how == "blocking":
        with pytest.raises(sf.WorkflowFailed):
            workflow.using(wait="1s").run("r")

    assert sf.get_run("r").retry() == []

    assert run() == "done"
    assert ledger.lines == ["a", "b"]


def test_it_may_be_given_up(ledger):
    workflow = stopping("blocking", ledger, [])
    with pytest.raises(sf.WorkflowFailed):
        workflow.run("r")

    sf.get_run("r").cancel(by="ann")

    assert sf.get_run("r").status == "cancelled"


def test_a_failed_call_that_was_let_out_is_tried_again(ledger):
    mended: list[int] = []

    @sf.step
    def read():
        ledger.write("read")
        if not mended:
            raise sf.Fatal("no")
        return 1

    @sf.workflow(on_failure="stop")
    def reading():
        return read()

    with pytest.raises(sf.WorkflowFailed, match="Fatal: no"):
        reading.run("r")
    mended.append(1)

    assert sf.get_run("r").retry() == ["read#1"]
    assert reading.run("r") == 1
    assert ledger.lines == ["read", "read"]


def test_another_failure_is_another_stop(ledger):
    """Whoever is alerted of the second has to hear that it is not the first."""
    bugs = ["first"]

    @sf.workflow(on_failure="stop")
    def buggy():
        raise LookupError(bugs[0])

    heard = []
    sf.configure(alerts=[heard.append])
    try:
        for bugs[0] in ("first", "second"):
            with pytest.raises(sf.WorkflowFailed, match=bugs[0]):
                buggy.run("r")
            sf.get_run("r").retry()
    finally:
        sf.configure(alerts=[])
    assert [("first" in str(text), "second" in str(text)) for text in heard] == [(True, False), (False, True)]


def test_a_saga_in_it_is_undone_as_usual(ledger):
    @sf.effect
    def book():
        ledger.write("book")

    @book.undo
    def _(result):
        ledger.write("cancel")

    @sf.workflow(on_failure="stop")
    def trip():
        with sf.saga():
            book()
            raise ValueError("no")

    with pytest.raises(sf.WorkflowFailed):
        trip.run("r")
    assert ledger.lines == ["book", "cancel"]
    with pytest.raises(sf.UsageError, match="no longer stands"):
        sf.get_run("r").retry()
