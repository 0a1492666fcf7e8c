"""Cancelled, by whoever: what happened is on record, what a saga did is undone, what nobody knows is named."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading

import pytest

import surefoot as sf
from surefoot import aio, witness
from surefoot.engine.session.attempt import Attempt
from surefoot.view import page

SOON = sf.Backoff(first=0.05, jitter=False)


class Agency:
    """Books and cancels, in tasks. `on` says what else happens while it does so."""

    def __init__(self, **undo):
        self.log: list[str] = []
        self.on: dict[str, object] = {}

        @aio.effect
        async def book(n: object) -> str:
            await self.do(f"book {n}")
            return f"#{n}"

        @book.undo(**undo) if undo else book.undo
        async def _(n, result):
            await self.do(f"cancel {n} {result}")

        @aio.effect
        async def mail(n: object) -> None:
            await self.do(f"mail {n}")

        self.book, self.mail = book, mail

    async def do(self, what: str) -> None:
        self.log.append(what)
        if what in self.on:
            self.on.pop(what)()
            await asyncio.sleep(0)


@pytest.fixture
def agency():
    return Agency()


def statuses(run_id="r"):
    return {call.address: call.status for call in sf.get_run(run_id).steps()}


def kinds(run_id="r"):
    return [entry.kind for entry in sf.get_run(run_id).entries()]


async def for_ever():
    await asyncio.Event().wait()


async def now_over(limit):
    """The time is over, and the code waits for something."""
    limit.reschedule(asyncio.get_running_loop().time())
    await for_ever()


# -- the outcome of an effect ---------------------------------------------------------------------------------------


def test_an_effect_whose_caller_is_cancelled_while_its_touches_are_observed_is_recorded_and_undone():
    """It happened. To lose that would make the saga leave it behind, and a resume do it again."""
    log, looks, cancelled = [], [], threading.Event()

    def look():
        looks.append(1)
        if len(looks) == 2:
            loop.call_soon_threadsafe(lambda: (task.cancel(), cancelled.set()))
            assert cancelled.wait(20)
        return "x"

    @aio.effect(touches=[witness.observe("thing", look)])
    async def pay() -> str:
        log.append("pay")
        return "paid"

    @pay.undo
    async def _(result):
        log.append(f"undo {result}")

    @aio.effect
    async def plan_b() -> None:
        log.append("plan b")

    @aio.workflow
    async def wf() -> str:
        nonlocal loop, task
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        try:
            async with aio.saga():
                await pay()
        except asyncio.CancelledError:
            task.uncancel()
            await plan_b()
        return "done"

    loop = task = None
    assert asyncio.run(wf.run("r")) == "done"
    assert log == ["pay", "undo paid", "plan b"]
    assert set(statuses().values()) == {"done"}


def test_a_check_that_looks_after_a_lost_connection_is_heard_out():
    """What it finds is on record before the cancellation is passed on."""
    looks = []

    @aio.effect
    async def pay() -> str:
        raise ConnectionError("lost")

    @pay.check
    async def _():
        looks.append(1)
        if len(looks) == 1:
            task.cancel()
            await asyncio.sleep(0)
        return sf.happened("paid")

    @aio.workflow
    async def wf() -> str:
        nonlocal task
        task = asyncio.current_task()
        with contextlib.suppress(asyncio.CancelledError):
            await pay()
        task.uncancel()
        return await pay()

    task = None
    assert asyncio.run(wf.run("r")) == "paid"
    assert statuses() == {"pay#1": "done", "pay#2": "done"}
    assert len(looks) == 2


@pytest.mark.parametrize("noticed", [True, False])
def test_a_run_does_not_end_while_an_effect_is_in_doubt(agency, monkeypatch, noticed):
    """Cancelled before the retry that would have settled it: to go on without it is to guess."""
    if not noticed:
        monkeypatch.setattr(Attempt, "cut_short", lambda *_: None)
    tries = []

    @aio.effect(on_crash="retry", backoff=SOON)
    async def pay() -> str:
        tries.append(aio.key())
        if len(tries) == 1:
            task.cancel()
            raise ConnectionError("lost")
        return "paid"

    @aio.workflow
    async def wf() -> str:
        nonlocal task
        task = asyncio.current_task()
        try:
            async with aio.saga():
                await agency.book(1)
                return await pay()
        except asyncio.CancelledError:
            task.uncancel()
            return "gave up"

    task = None
    with pytest.raises(sf.InDoubt) as stop:
        asyncio.run(wf.run("r"))
    assert stop.value.address == "pay#1"
    if noticed:
        assert agency.log == ["book 1"]  # What is in doubt may have happened: such a run stops, and undoes nothing.
        assert asyncio.run(wf.run("r")) == "paid"
        assert len(set(tries)) == 1


# -- a saga that is left by a cancellation ----------------------------------------------------------------------------


def test_a_saga_whose_time_is_over_is_undone(agency):
    """A time-out around a block is a failure of the block."""

    @aio.workflow
    async def trip() -> None:
        async with asyncio.timeout(None) as limit, aio.saga():
            await agency.book(1)
            await agency.book(2)
            await now_over(limit)

    with pytest.raises(TimeoutError):
        asyncio.run(trip.run("r"))
    assert agency.log == ["book 1", "book 2", "cancel 2 #2", "cancel 1 #1"]
    assert sf.get_run("r").status == "failed"
    assert kinds().index("SagaCancelled") < [entry.data.get("address") for entry in sf.get_run("r").entries()].index(
        "book.undo#1"
    )


def test_a_saga_whose_sibling_fails_is_undone(agency):
    @aio.workflow
    async def trip() -> None:
        booked = asyncio.Event()

        async def books():
            with aio.scope("a"):
                async with aio.saga():
                    await agency.book(1)
                    booked.set()
                    await for_ever()

        async def fails():
            await booked.wait()
            raise ValueError("no")

        async with asyncio.TaskGroup() as group:
            group.create_task(books())
            group.create_task(fails())

    with pytest.raises(Exception, match="unhandled errors"):
        asyncio.run(trip.run("r"))
    assert agency.log == ["book 1", "cancel 1 #1"]
    assert sf.get_run("r").status == "failed"


def test_a_stop_in_a_sibling_undoes_nothing_and_the_run_goes_on(agency):
    """A task group cancels the others when one stops. The run is intact."""

    @aio.workflow
    async def trip() -> str:
        booked = asyncio.Event()

        async def books():
            with aio.scope("a"):
                try:
                    async with aio.saga():
                        await agency.book(1)
                        booked.set()
                        await answered.wait()
                except asyncio.CancelledError:
                    await agency.mail("instead")  # Whatever it makes of it: the run has stopped.
                    raise

        async def asks():
            with aio.scope("b"):
                await booked.wait()
                await aio.approve("on?")
                answered.set()

        async with asyncio.TaskGroup() as group:
            group.create_task(books())
            group.create_task(asks())
        return "done"

    answered = asyncio.Event()
    with pytest.raises(sf.WaitingForAnswer):
        asyncio.run(trip.run("r"))
    assert agency.log == ["book 1"]
    sf.get_run("r").answer("[b]/approve#1", value=True)
    answered = asyncio.Event()
    assert asyncio.run(trip.run("r")) == "done"
    assert agency.log == ["book 1"]


@pytest.mark.parametrize("who", ["caller", "loop"])
@pytest.mark.parametrize("swallowed", [True, False])
def test_a_run_that_is_given_up_by_whoever_waits_for_it_undoes_nothing(agency, who, swallowed):
    """An impatient caller, a loop that ends: an interruption of the process, and no failure of the run."""
    first = [True]

    @aio.workflow
    async def trip() -> str:
        try:
            async with aio.saga():
                await agency.book(1)
                if first[0]:
                    booked.set()
                    await for_ever()
        except asyncio.CancelledError:
            if not swallowed:
                raise
            await agency.mail("instead")
        return "done"

    async def main():
        nonlocal booked
        booked = asyncio.Event()
        running = asyncio.create_task(trip.run("r"))
        await booked.wait()
        if who == "caller":
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running

    booked = None
    asyncio.run(main())
    assert agency.log == ["book 1"]
    assert sf.get_run("r").status == "queued"
    first[0] = False
    assert asyncio.run(trip.run("r")) == "done"
    assert agency.log == ["book 1"]


def test_a_cancellation_while_undoing_waits_until_all_is_undone(agency):
    """It would leave the rest done, and nobody would come back to it."""

    @aio.workflow
    async def trip() -> None:
        nonlocal task
        task = asyncio.current_task()
        async with aio.saga():
            for n in (1, 2, 3):
                await agency.book(n)
            raise ValueError("no")

    task = None
    agency.on["cancel 2 #2"] = lambda: task.cancel("again")
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(trip.run("r"))
    assert agency.log[3:] == ["cancel 3 #3", "cancel 2 #2", "cancel 1 #1"]


def test_a_run_that_is_given_up_while_undoing_goes_on_undoing_later(agency):
    @aio.workflow(name="given up while undoing")
    async def trip() -> None:
        async with asyncio.timeout(None) as limit, aio.saga():
            for n in (1, 2, 3):
                await agency.book(n)
            await now_over(limit)
            await agency.book(4)

    async def main():
        nonlocal running
        running = asyncio.create_task(trip.run("r"))
        await running

    running = None
    agency.on["cancel 2 #2"] = lambda: running.cancel("enough")
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
    assert agency.log[3:] == ["cancel 3 #3", "cancel 2 #2"]
    assert sf.get_run("r").status == "queued"
    assert sf.get_run("r").plan().next == [("effect", "book.undo#3")]
    with pytest.raises(TimeoutError):
        asyncio.run(trip.run("r"))
    assert agency.log[3:] == ["cancel 3 #3", "cancel 2 #2", "cancel 1 #1"]
    assert sf.get_run("r").status == "failed"


def test_what_branches_did_in_a_cancelled_saga_is_undone_also_by_a_replay(agency):
    """Branches that were cut off end where they were cut off, the others are replayed."""

    @aio.workflow
    async def trip() -> None:
        async def branch(n):
            await agency.book(n)
            if n == 3:
                limit.reschedule(asyncio.get_running_loop().time())
            if n != 2:
                await for_ever()

        async with asyncio.timeout(None) as limit, aio.saga():
            await aio.map(branch, [1, 2, 3], key=str, concurrency=2)

    async def main():
        nonlocal running
        running = asyncio.create_task(trip.run("r"))
        await running

    running = None
    agency.on["cancel 3 #3"] = lambda: running.cancel("enough")
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
    assert agency.log[3:] == ["cancel 3 #3"]
    with pytest.raises(TimeoutError):
        asyncio.run(trip.run("r"))
    assert agency.log[3:] == ["cancel 3 #3", "cancel 2 #2", "cancel 1 #1"]


KILLED = """
import asyncio, os, signal, sys
import surefoot.aio as sf

DIE, LIMIT = os.environ.get("DIE", ""), float(os.environ.get("LIMIT", "0")) or None

def ledger(line):
    fd = os.open("ledger", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, (line + "\\n").encode())
    os.close(fd)

@sf.effect(in_flight="0s")
async def book(n):
    ledger(f"book {n}")
    return n * 10

@book.undo
async def _(n, result):
    if DIE == f"before {n}":
        os.kill(os.getpid(), signal.SIGKILL)
    ledger(f"undo {n} {result}")
    if DIE == f"after {n}":
        os.kill(os.getpid(), signal.SIGKILL)

@book.undo.check
async def _(n, result):
    return sf.happened() if f"undo {n} {result}" in open("ledger").read().splitlines() else sf.not_happened()

@sf.step
async def slow():
    if DIE:
        limit.reschedule(asyncio.get_running_loop().time())
        await asyncio.Event().wait()

@sf.workflow(name="trip")
async def trip():
    global limit
    async with asyncio.timeout(LIMIT) as limit:
        async with sf.saga():
            await book(1)
            async with sf.saga():
                await book(2)
                await slow()
                await book(3)

if __name__ == "__main__":
    try:
        asyncio.run(trip.run("r"))
    except sf.Stopped as stop:
        print(type(stop).__name__, stop.address)
    except TimeoutError:
        print("over")
"""


@pytest.mark.parametrize("point", ["before 2", "after 2", "before 1", "after 1"])
def test_a_cancelled_saga_killed_while_undoing_goes_on_undoing_and_begins_nothing_new(program, ledger, point):
    """On replay nothing is slow any more: but what was being undone must not go on as if it had not been."""
    program.write(KILLED)
    assert program.run(DIE=point).returncode == -signal.SIGKILL

    ended = program.run(LIMIT="0.2")

    assert (ended.stdout.strip(), ended.returncode) == ("over", 0), ended.stderr
    assert ledger.lines == ["book 1", "book 2", "undo 2 20", "undo 1 10"]
    assert sf.get_run("r").status == "failed"


def test_a_cancelled_saga_that_nothing_cancels_again_is_undone_and_then_stops(program, ledger):
    """Whether the code would have gone on, and how, nobody knows."""
    program.write(KILLED)
    assert program.run(DIE="before 1").returncode == -signal.SIGKILL

    ended = program.run()

    assert ended.stdout.strip() == "CodeChanged saga#1", ended.stderr
    assert "waiting at most" in ended.stderr
    assert ledger.lines == ["book 1", "book 2", "undo 2 20", "undo 1 10"]
    assert "This time nothing cancelled it" in sf.get_run("r").stop.summary
    sf.get_run("r").cancel()
    assert sf.get_run("r").status == "cancelled"


# -- a run that is cancelled while something is in doubt -----------------------------------------------------------------


class Desk:
    """A blocking workflow whose saga stops with an effect in doubt; what its check says may be chosen."""

    def __init__(self, verdict=None, *, ends="lost", name="desk"):
        self.log: list[str] = []

        @sf.effect
        def book(n: int) -> int:
            self.log.append(f"book {n}")
            return n

        @book.undo
        def _(n, result):
            self.log.append(f"cancel {n}")

        @sf.effect(on_crash="ask") if verdict is None else sf.effect
        def pay() -> object:
            self.log.append("pay")
            if ends == "lost":
                raise KeyboardInterrupt
            return object()

        if verdict is not None:
            pay.check(lambda: verdict)

        @pay.undo
        def _(result):
            self.log.append(f"refund {result}")

        @sf.workflow(name=name)
        def wf() -> None:
            with sf.saga():
                book(1)
                pay()
                book(2)

        self.wf = wf

    def cut_off(self):
        with pytest.raises((KeyboardInterrupt, sf.InDoubt)):
            self.wf.run("r")


@pytest.fixture
def alerts():
    heard = []
    sf.configure(alerts=[heard.append])
    yield heard
    sf.configure(alerts=[])


@pytest.mark.parametrize(
    ("verdict", "undone"),
    [
        (sf.happened("paid"), ["refund paid", "cancel 1"]),
        (sf.not_happened(), ["cancel 1"]),
        (sf.partial("half"), ["refund None", "cancel 1"]),
    ],
)
def test_cancelling_looks_at_what_is_in_doubt_and_undoes_it_if_it_happened(verdict, undone, alerts):
    desk = Desk(verdict)
    desk.cut_off()

    sf.get_run("r").cancel(by="ann")

    assert desk.log == ["book 1", "pay", *undone]
    run = sf.get_run("r")
    assert (run.status, run.state().in_doubt(), alerts) == ("cancelled", [], [])


@pytest.mark.parametrize(
    ("desk", "told"),
    [
        (Desk, "no outcome recorded, and the run was cancelled. If it happened, it is not undone"),
        (lambda: Desk(sf.unknown("?")), "If it happened, it is not undone"),
        (lambda: Desk(ends="unstorable"), "It is not undone"),
    ],
)
def test_what_nobody_can_tell_is_named_when_the_run_is_cancelled(desk, told, alerts, caplog):
    """It may have happened, and nothing undid it: that must not be left for somebody to find out by chance."""
    desk = desk()
    desk.cut_off()
    alerts.clear()

    sf.get_run("r").cancel(by="ann")

    assert desk.log == ["book 1", "pay", "cancel 1"]
    assert sf.get_run("r").status == "cancelled"
    assert [(alert.run, alert.kind) for alert in alerts] == [("r", "InDoubt")]
    assert told in alerts[0]
    assert told in caplog.text
    seen = page.page(sf.get_run("r").state(), driven=False, now=0)
    assert told in seen.reasons[0].message
    assert "look:" in [cure.when for cure in seen.reasons[0].cures]
    assert "what became of 1 effect is not known" in seen.headline
    sf.get_run("r").settle("pay#1", happened="paid", by="ann", note="refunded by hand")
    assert page.page(sf.get_run("r").state(), driven=False, now=0).reasons == ()


def test_what_is_in_doubt_is_named_where_the_code_is_not_at_hand(program, alerts):
    program.write("""
        import os, signal
        import surefoot as sf

        @sf.effect
        def pay():
            os.kill(os.getpid(), signal.SIGKILL)

        @sf.workflow(name="elsewhere")
        def wf():
            pay()

        wf.run("r")
    """)
    assert program.run().returncode == -signal.SIGKILL

    sf.get_run("r").cancel()

    assert sf.get_run("r").status == "cancelled"
    assert [alert.kind for alert in alerts] == ["InDoubt"]


# -- a call that goes on after its time -------------------------------------------------------------------------------------


LEFT = """
import os, signal, sys, threading
import surefoot as sf

me = sys.argv[1]

@sf.effect(timeout=0.5)
def pay():
    if me != "other":
        print("begun", flush=True)
        if me == "interrupted":
            os.kill(os.getpid(), signal.SIGINT)
        with open("go") as gate:
            gate.read()
    with open("ledger", "a") as ledger:
        ledger.write(me + "\\n")
    return me

@pay.check
def _():
    return sf.happened("found") if os.path.exists("ledger") else sf.not_happened()

@sf.workflow(name="w")
def wf():
    return pay()

try:
    print("returned", wf.run("r"), flush=True)
except (sf.InDoubt, KeyboardInterrupt) as error:
    print(error, flush=True)
    if me != "other":
        for thread in threading.enumerate():
            if thread.name == "surefoot-timed":
                thread.join()
"""


@pytest.mark.parametrize("how", ["late", "interrupted"])
@pytest.mark.parametrize("end", ["ends", "is killed"])
def test_not_happened_is_not_believed_while_the_call_runs_in_another_living_process(program, ledger, how, end):
    """Its thread could not be ended and may do it at any moment; then it would be done twice."""
    os.mkfifo("go")
    program.write(LEFT)
    first = program.start(how)
    try:
        assert first.stdout.readline() == "begun\n"
        first.stdout.readline()  # It has given up waiting; its thread has not.

        refused = program.run("other")

        assert "may still be running in worker" in refused.stdout, refused.stderr
        assert ledger.lines == []
        if end == "ends":
            with open("go", "w"):
                pass
            first.wait(30)
    finally:
        first.kill()
        first.communicate(timeout=30)
    ended = program.run("other")
    assert ended.stdout == f"returned {'found' if end == 'ends' else 'other'}\n", ended.stderr
    assert ledger.lines == [how if end == "ends" else "other"]


def test_a_timed_call_whose_caller_was_interrupted_is_not_checked_while_it_runs_here():
    """Ctrl-C ends the waiting, and not the thread."""
    release, looks = threading.Event(), []

    @sf.effect(timeout=0.5)
    def pay() -> str:
        os.kill(os.getpid(), signal.SIGINT)
        release.wait(30)
        return "paid"

    @pay.check
    def _():
        looks.append(1)
        return sf.not_happened()

    @sf.workflow
    def wf() -> str:
        return pay()

    try:
        with pytest.raises(KeyboardInterrupt):
            wf.run("r")
        with pytest.raises(sf.InDoubt, match="still running in this process"):
            wf.run("r")
        assert looks == []
    finally:
        release.set()
