"""The rehearsal before a resume: it leaves no trace, whatever the code does there, and what goes wrong is told.

Old code sends a mail and is interrupted; new code is rehearsed, or taken up, in the same process.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import os
import sys
import threading

import pytest

import surefoot as sf
import surefoot.aio
from surefoot.engine.drive import dry_run, gate, perform, perform_async
from surefoot.engine.process import config, journal
from surefoot.engine.session.frame import Frame
from surefoot.engine.session.session import Session
from tests.working import kinds, wait_until

COLOURS = ("blocking", "async")


@pytest.fixture
def sent(ledger):
    """A run that has sent a mail, and was interrupted then."""

    @sf.effect(name="send")
    def send(to):
        ledger.write(f"send {to}")
        return "ok"

    @sf.effect(name="send")
    async def send_async(to):
        ledger.write(f"send {to}")
        return "ok"

    @sf.workflow(name="job")
    def old():
        send("ann")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        old.run("r")
    assert ledger.lines == ["send ann"]
    return {"blocking": send, "async": send_async}


def deployed(fn):
    return sf.workflow(name="job")(fn)


def everything():
    """All that is on record, in every run."""
    return {run.id: [(entry.kind, entry.data) for entry in run.entries()] for run in sf.runs()}


def rehearse(workflow):
    """What a resume does before it takes the run up, and nothing else."""
    runtime = config.runtime(create=False)
    state, head = journal.load(runtime.store, "r")
    session = Session(runtime, state, head)
    plan = workflow.definition.resume_plan()
    if workflow.definition.is_async:
        asyncio.run(perform_async.run(dry_run.rehearsing(session, plan), Frame(session)))
    else:
        perform.run(dry_run.rehearsing(session, plan), Frame(session))
    return session


def run(workflow):
    return asyncio.run(workflow.run("r")) if workflow.definition.is_async else workflow.run("r")


# -- no trace ---------------------------------------------------------------------------------------------


@sf.step
def think():
    raise AssertionError("a step was executed")


@sf.effect
def pay():
    raise AssertionError("an effect was executed")


@pay.check
def _pay_check():
    raise AssertionError("a check looked")


@sf.workflow(name="part")
def part():
    raise AssertionError("a child was started")


class Anything:
    name = "anything"

    def observe(self):
        raise AssertionError("a witness looked")


def outside():
    with sf.outside():
        pay()


THINGS = {
    "step": think,
    "effect": pay,
    "child": lambda: sf.child(part, "c"),
    "another run": lambda: part.run("c"),
    "another run started": lambda: part.start("c"),
    "effect outside": outside,
    "approve": lambda: sf.approve("ok?"),
    "ask": lambda: sf.ask("what?"),
    "sleep": lambda: sf.sleep("1h"),
    "wait for an event": lambda: sf.wait_event("news"),
    "event sent": lambda: sf.send_event("r", "news", 1),
    "watch": lambda: sf.watch(Anything()),
    "verify": sf.verify,
    "time": sf.now,
    "random": sf.random,
    "uuid": sf.uuid4,
    "patched": lambda: sf.patched("x"),
    "progress": lambda: sf.progress(1, 2),
    "publish": lambda: sf.publish("url", "x"),
    "continue as new": sf.continue_as_new,
    "gather": lambda: sf.gather(think, pay),
    "map": lambda: sf.map(lambda _: pay(), range(3)),
}


@pytest.mark.parametrize("thing", THINGS)
def test_a_rehearsal_leaves_no_trace(thing, sent, ledger):
    """No entry, no claim, no child, no event, no key used: whatever the code comes to next."""
    before = everything()

    @deployed
    def new():
        sent["blocking"]("ann")
        THINGS[thing]()

    session = rehearse(new)

    assert everything() == before
    assert not session.stops.found
    assert not session.claim.live
    assert ledger.lines == ["send ann"]


def test_an_event_that_came_is_still_there_after_the_rehearsal(sent):
    """Seen in the rehearsal; taken in the drive that follows in the same process."""

    def waits():
        sent["blocking"]("ann")
        return sf.wait_event("news")

    def waits_as_well():
        return waits()

    with pytest.raises(sf.WaitingForAnswer):
        deployed(waits).run("r")
    sf.send_event("r", "news", 7)
    before = everything()
    new = deployed(waits_as_well)
    rehearse(new)

    assert everything() == before
    assert new.run("r") == 7


def test_what_the_rehearsal_asked_for_counts_as_unasked_in_the_drive(sent):
    """Else the fence would be open: the rehearsal has asked for everything."""

    @deployed
    def new():
        sent["blocking"]("ann")

    rehearsal = rehearse(new)

    assert rehearsal.replay.matcher.asked == set()


# -- code that does not behave ----------------------------------------------------------------------------


@pytest.mark.parametrize("colour", COLOURS)
def test_code_that_hangs_is_told_of_with_run_and_line(colour, sent, monkeypatch, caplog):
    """Nothing is claimed meanwhile, so that another process may go on with the run."""
    monkeypatch.setattr(gate, "PATIENCE_SECONDS", 0.05)
    told, before = threading.Event(), everything()

    class Tells(logging.Handler):
        def emit(self, record):
            seen.append((record.getMessage(), everything()))
            told.set()

    seen: list = []

    def blocking():
        sent["blocking"]("ann")
        told.wait(30)  # HERE

    async def in_tasks():
        await sent["async"]("ann")
        while not told.is_set():  # noqa: ASYNC110 - it is set by another thread
            await asyncio.sleep(0.01)  # HERE

    handler = Tells(logging.WARNING)
    logging.getLogger("surefoot").addHandler(handler)
    try:
        rehearse(deployed(blocking if colour == "blocking" else in_tasks))
    finally:
        logging.getLogger("surefoot").removeHandler(handler)

    message, meanwhile = seen[0]
    lines, first = inspect.getsourcelines(blocking if colour == "blocking" else in_tasks)
    line = first + next(number for number, text in enumerate(lines) if "HERE" in text)
    assert "run r: its code is being replayed" in message
    assert f"test_rehearsal.py, line {line}, in " in message
    assert "nothing is claimed" in message
    assert meanwhile == before


def test_a_worker_goes_on_with_other_runs_while_a_rehearsal_hangs(sent):
    """One run's code must not hold up the others."""
    goes_on, hangs = threading.Event(), threading.Event()

    @deployed
    def new():
        sent["blocking"]("ann")
        hangs.set()
        goes_on.wait(30)
        return "r is done"

    @sf.workflow
    def other():
        return "other is done"

    with sf.Worker(workflows=[new, other]):
        assert hangs.wait(30)
        try:
            assert other.start("other").result(timeout=30) == "other is done"
            assert sf.get_run("r").state().claimant is None
        finally:
            goes_on.set()
        assert sf.get_run("r").result(timeout=30) == "r is done"


@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize("leaves", [SystemExit, KeyboardInterrupt, GeneratorExit])
def test_code_that_leaves_in_the_rehearsal_leaves_the_run_as_it_is(colour, leaves, sent, ledger):
    """sys.exit() in the code between calls: whoever resumes gets it, and nothing was claimed."""
    before = everything()

    def blocking():
        sent["blocking"]("ann")
        raise leaves

    async def in_tasks():
        await sent["async"]("ann")
        raise leaves

    with pytest.raises(leaves):
        run(deployed(blocking if colour == "blocking" else in_tasks))

    assert everything() == before
    assert ledger.lines == ["send ann"]


ENDS = """
import os, sys
import surefoot as sf

@sf.effect
def send(to):
    with open("sent", "a") as file: file.write(to)

@sf.workflow
def job():
    send("ann")
    os._exit(int(sys.argv[1]))

job.run("r")
"""


def test_a_process_that_ends_in_the_rehearsal_leaves_the_run_as_it_is(program):
    """os._exit() cannot be caught; but nothing was written, so there is nothing to be put right."""
    program.write(ENDS)
    assert program.run("5").returncode == 5
    before = everything()

    assert program.run("7").returncode == 7

    assert everything() == before
    assert (program.folder / "sent").read_text() == "ann"


@pytest.mark.processes
def test_code_that_forks_in_the_rehearsal_takes_the_run_up_in_one_process_only(sent, ledger, capfd):
    """The child comes back from the workflow as its parent does; it must not go on with the run beside it."""

    @sf.effect
    def book():
        ledger.write("book")

    children = []

    @deployed
    def new():
        sent["blocking"]("ann")
        if not children and (child := os.fork()):
            children.append(child)
        elif not children:
            children.append(0)
        book()
        return "done"

    mine = os.getpid()
    try:
        result = new.run("r")
    except BaseException as error:
        if os.getpid() == mine:
            raise
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        sys.stderr.flush()
        os._exit(3)
    if os.getpid() != mine:
        os._exit(0)
    _, status = os.waitpid(children[0], 0)

    assert result == "done"
    assert ledger.lines == ["send ann", "book"]
    assert kinds("r").count("RunDone") == 1
    assert os.waitstatus_to_exitcode(status) == 3
    assert "opened in another process" in capfd.readouterr().err


def test_code_that_prints_prints_once_more_and_that_is_all(sent, capsys):
    @deployed
    def new():
        sent["blocking"]("ann")
        sys.stdout.write("here\n")
        return "done"

    assert new.run("r") == "done"

    assert capsys.readouterr().out == "here\n" * 2


@pytest.mark.parametrize("colour", COLOURS)
def test_code_that_raises_before_it_asks_for_what_was_done_is_a_stop(colour, sent, ledger):
    """A bug in new code must not end a run as failed whose effects it never came to."""

    def blocking():
        raise RuntimeError("bug")

    async def in_tasks():
        raise RuntimeError("bug")

    with pytest.raises(sf.CodeChanged, match="send#1"):
        run(deployed(blocking if colour == "blocking" else in_tasks))

    assert kinds("r")[-2:] == ["RunAdopted", "RunStopped"]
    assert ledger.lines == ["send ann"]
    assert sf.get_run("r").status == "stopped"


def test_an_equal_stop_is_recorded_once(sent):
    """A script that is started again and again, or a worker that looks again, must not fill the journal."""

    @sf.effect
    def other(): ...

    @deployed
    def new():
        other()

    stopped = []
    for _ in range(3):
        with pytest.raises(sf.CodeChanged, match="other#1"):
            new.run("r")
        stopped.append(everything())

    assert kinds("r").count("RunStopped") == 1
    assert stopped[0] == stopped[1] == stopped[2]


def test_code_that_swallows_everything_comes_no_further_in_the_rehearsal(sent, ledger):
    """`except BaseException` around a call that would be executed: the next call is not reached either."""

    @deployed
    def new():
        sent["blocking"]("ann")
        for call in (think, pay, part.run):
            with contextlib.suppress(BaseException):
                call()

    before = everything()
    session = rehearse(new)

    assert everything() == before
    assert not session.stops.found


def test_nothing_is_waited_for_that_is_known(sent):
    """A rehearsal that comes to nothing new says nothing."""

    @deployed
    def new():
        sent["blocking"]("ann")
        return "done"

    before = threading.active_count()
    rehearse(new)

    wait_until(lambda: threading.active_count() <= before)
