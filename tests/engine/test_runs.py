"""Start is resume: one id, one run, one result."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta

import pytest

import surefoot as sf
from surefoot import aio
from surefoot.core.claim import Lost
from surefoot.engine.drive import acts
from surefoot.engine.process import config, journal
from surefoot.engine.session.session import Session


def test_a_finished_run_returns_its_recorded_result_without_running(ledger):
    """A second `.run` with the same id is the same run, not another one."""

    @sf.step
    def look() -> str:
        ledger.write("look")
        return "seen"

    @sf.workflow
    def wf(word: str) -> str:
        return word + look()

    assert wf.run("r", "a-") == "a-seen"
    assert wf.run("r", "a-") == "a-seen"
    assert ledger.lines == ["look"]
    assert sf.get_run("r").status == "done"
    assert sf.get_run("r").result() == "a-seen"


def test_other_arguments_under_the_same_id_are_a_conflict():
    """An id belongs to one business task."""

    @sf.workflow
    def wf(word: str) -> str:
        return word

    wf.run("r", "a")

    with pytest.raises(sf.RunConflict, match="other arguments"):
        wf.run("r", "b")


def test_another_workflow_under_the_same_id_is_a_conflict():
    @sf.workflow
    def one() -> int:
        return 1

    @sf.workflow
    def two() -> int:
        return 2

    one.run("r")

    with pytest.raises(sf.RunConflict, match="belongs to workflow 'one'"):
        two.run("r")


def test_a_parameter_with_a_new_default_is_no_other_argument():
    """Arguments count as they were passed."""

    @sf.workflow(name="wf")
    def before(a: int) -> int:
        return a

    @sf.workflow(name="wf")
    def later(a: int, b: int = 5) -> int:
        return a + b

    before.run("r", 1)

    assert later.run("r", 1) == 1


def test_an_unknown_run_names_the_store_it_was_looked_for_in():
    @sf.workflow
    def wf() -> None: ...

    wf.run("known")

    with pytest.raises(sf.NotFound, match=r"no run 'unknown' in sqlite:///\.surefoot/runs\.db"):
        sf.get_run("unknown")


def test_reading_never_creates_a_store(tmp_path):
    with pytest.raises(sf.NotFound):
        sf.get_run("x")
    with pytest.raises(sf.NotFound):
        sf.runs()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("bad", ["", " x", "x\n", "a\x1b[31m", "e\u0301", "x" * 201, 7])
def test_ids_that_people_could_mistake_are_refused(bad):
    @sf.workflow
    def wf() -> None: ...

    with pytest.raises(sf.UsageError, match="run id"):
        wf.run(bad)


def test_a_failed_run_raises_the_same_failure_again(ledger):
    """Built-in exceptions come back as themselves, the first time and on replay."""

    @sf.workflow
    def wf() -> None:
        ledger.write("ran")
        raise KeyError("missing")

    for _ in range(2):
        with pytest.raises(KeyError, match="missing"):
            wf.run("r")
    assert ledger.lines == ["ran"]
    assert sf.get_run("r").status == "failed"


def test_an_exception_of_an_unknown_class_is_step_failed_both_times():
    """`except` in user code must behave the same after a crash, where the class is only a name."""

    class Odd(Exception):
        def __init__(self, a, b):
            super().__init__(f"{a} and {b}")

    @sf.step
    def fail() -> None:
        raise Odd(1, 2)

    @sf.workflow
    def wf() -> str:
        try:
            fail()
        except sf.StepFailed as error:
            sf.now()
            return f"{type(error).__name__}|{error.type}|{error.message}|{error.__cause__}"
        return "no"

    assert wf.run("r") == "StepFailed|Odd|1 and 2|None"


def test_two_threads_of_one_process_share_one_run(ledger):
    """The second caller waits for the first and gets its result."""
    inside, go_on = threading.Event(), threading.Event()

    @sf.step
    def slow() -> str:
        ledger.write("slow")
        inside.set()
        assert go_on.wait(30)
        return "done"

    @sf.workflow
    def wf() -> str:
        return slow()

    results = []
    first = threading.Thread(target=lambda: results.append(wf.run("r")))
    first.start()
    assert inside.wait(30)
    second = threading.Thread(target=lambda: results.append(wf.run("r")))
    second.start()
    go_on.set()
    first.join(30)
    second.join(30)

    assert results == ["done", "done"]
    assert ledger.lines == ["slow"]


def test_start_queues_and_resume_runs(kinds):
    """`start` leaves the run for a worker; whoever resumes it drives it."""

    @sf.workflow
    def queued_wf(a: int) -> int:
        return a * 2

    run = queued_wf.using(labels={"customer": "42"}).start("q", 21)
    assert run.status == "queued"
    assert run.labels == {"customer": "42"}

    assert run.resume() == 42
    assert kinds("q") == ["RunCreated", "RunAdopted", "RunDone"]


def test_runs_are_listed_newest_first_and_by_status_workflow_and_label():
    @sf.workflow
    def good() -> int:
        return 1

    @sf.workflow
    def bad() -> int:
        raise ValueError

    for n in range(3):
        good.using(labels={"n": str(n)}).run(f"good-{n}")
    with pytest.raises(ValueError):
        bad.run("bad")

    assert [run.id for run in sf.runs()] == ["bad", "good-2", "good-1", "good-0"]
    assert [run.id for run in sf.runs(status="failed")] == ["bad"]
    assert [run.id for run in sf.runs(workflow="good", limit=2)] == ["good-2", "good-1"]
    assert [run.id for run in sf.runs(labels={"n": "1"})] == ["good-1"]
    with pytest.raises(sf.UsageError, match="is none of"):
        sf.runs(status="lost")


def test_a_run_that_starts_itself_is_refused():
    """It would wait for its own end."""

    @sf.workflow
    def wf() -> None:
        wf.run("r")

    with pytest.raises(sf.UsageError, match="inside itself"):
        wf.run("r")


def test_a_workflow_called_inside_a_run_is_inlined():
    @sf.step
    def one() -> int:
        return 1

    @sf.workflow
    def inner() -> int:
        return one()

    @sf.workflow
    def outer() -> int:
        return inner() + inner()

    assert outer.run("r") == 2
    assert [call.address for call in sf.get_run("r").steps()] == ["one#1", "one#2"]


def test_outside_a_run_everything_is_just_a_function():
    @sf.step
    def one(a: int) -> int:
        """Docs stay."""
        return a

    @sf.effect
    def two() -> int:
        return 2

    @sf.workflow
    def wf() -> int:
        return one(1) + two()

    assert wf() == 3
    assert one.__doc__ == "Docs stay."
    assert one.__name__ == "one"
    with pytest.raises(sf.UsageError, match="only inside a run"):
        sf.now()


def test_cancelling_a_run_nobody_drives_ends_it_at_once():
    @sf.workflow
    def wf() -> None: ...

    run = wf.start("r")
    run.cancel(by="ann", note="not needed")

    assert run.status == "cancelled"
    with pytest.raises(sf.Cancelled):
        wf.run("r")
    with pytest.raises(sf.UsageError, match="ended already"):
        run.cancel()


def test_cancelling_a_living_run_ends_it_at_its_next_verb(ledger):
    @sf.step
    def first() -> None:
        sf.get_run("r").cancel(by="ann")

    @sf.step
    def second() -> None:
        ledger.write("second")

    @sf.workflow
    def wf() -> None:
        first()
        second()

    with pytest.raises(sf.Cancelled, match="by ann"):
        wf.run("r")
    assert ledger.lines == []
    assert sf.get_run("r").status == "cancelled"


@pytest.mark.parametrize("verb", ["resume", "cancel"])
def test_an_async_run_is_driven_from_async_code_only_by_an_awaitable_handle(verb):
    """To block the loop that has to drive it would wait for ever; nothing is recorded before that is said."""
    cut = [True]

    @sf.effect
    async def book() -> None: ...

    @book.undo
    async def _(result: None) -> None: ...

    @sf.workflow(name="async trip")
    async def wf() -> str:
        async with sf.saga():
            await book()
            if cut:
                raise KeyboardInterrupt
        return "done"

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(wf.run("r"))
    cut.clear()
    before = len(sf.get_run("r").entries())

    async def main() -> None:
        with pytest.raises(sf.UsageError, match=rf"await \(await surefoot\.aio\.get_run\('r'\)\)\.{verb}\(\)"):
            getattr(sf.get_run("r"), verb)()
        assert len(sf.get_run("r").entries()) == before
        await getattr(await aio.get_run("r"), verb)()

    asyncio.run(main())
    assert sf.get_run("r").status == ("done" if verb == "resume" else "cancelled")


def test_a_started_async_run_is_waited_for_without_blocking_the_loop():
    """The same words, awaitable where they wait: a blocking handle would hold up the very loop that drives the run."""

    @sf.workflow(name="async answer")
    async def wf() -> int:
        return 42

    async def main() -> int:
        run = await wf.start("r")
        assert (run.id, run.status) == ("r", "queued")
        await wf.run("r")
        return await run.result(timeout="10s")

    assert asyncio.run(main()) == 42
    handle = asyncio.run(wf.using().start("r"))
    assert asyncio.run(handle.result()) == 42, "in blocking code, a loop of its own does for each"


def test_a_result_is_waited_for_as_long_as_any_duration_says():
    """Everywhere else a time is written as "90s" too."""

    @sf.workflow
    def wf() -> int:
        return 42

    run = wf.start("r")

    for timeout in ("1ms", 0.001, timedelta(milliseconds=1)):
        with pytest.raises(TimeoutError, match="still queued"):
            run.result(timeout=timeout)
    with pytest.raises(sf.UsageError, match="not a duration"):
        run.result(timeout="soon")


def test_a_run_asleep_notices_its_cancellation():
    asleep = threading.Event()

    @sf.workflow
    def wf() -> None:
        asleep.set()
        sf.sleep("1h")

    def cancel() -> None:
        assert asleep.wait(30)
        while sf.get_run("r").status != "sleeping":
            pass
        sf.get_run("r").cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    with pytest.raises(sf.Cancelled):
        wf.run("r")
    thread.join(30)


def test_plan_lists_what_a_resume_would_do_and_does_none_of_it(ledger):
    @sf.step
    def look() -> int:
        return 1

    @sf.effect
    def charge() -> None:
        if sf.attempt() == 1:
            raise TimeoutError("no reply")
        ledger.write("charged")

    @sf.effect
    def mail() -> None:
        ledger.write("mail")

    @sf.workflow
    def planned() -> None:
        look()
        charge()
        mail()

    with pytest.raises(sf.InDoubt):
        planned.run("r")
    before = sf.get_run("r").entries()
    plan = sf.get_run("r").plan()

    assert plan.in_doubt == [("charge#1", "stop and ask a person")]
    assert plan.replayed == ["look#1"]
    assert plan.effects == [], "nothing runs before a person has answered"
    assert sf.get_run("r").entries() == before
    assert ledger.lines == []


def test_a_call_with_a_missing_argument_does_not_use_up_the_id():
    """A slip of the pen is not a run that failed."""

    @sf.workflow
    def wf(a: int, *, b: int) -> int:
        return a + b

    for args, kwargs in [((), {}), ((1,), {}), ((1, 2), {"b": 3}), ((1,), {"b": 2, "c": 3})]:
        with pytest.raises(TypeError):
            wf.run("r", *args, **kwargs)

    assert wf.run("r", 1, b=2) == 3


def test_a_claim_fails_if_the_claimant_before_goes_on():
    """Whoever looked dead, or let go for a moment, and then wrote on: their run is not taken from under their feet."""

    @sf.step
    def one() -> int:
        return 1

    @sf.workflow
    def wf() -> int:
        late = Session(runtime, *journal.load(runtime.store, "r"))
        one()
        claim = acts.claim(late)
        assert isinstance(claim, Lost)
        assert "taken over" in claim.why
        return 2

    runtime = config.runtime(create=True)

    assert wf.run("r") == 2
    assert [entry.kind for entry in sf.get_run("r").entries()].count("RunAdopted") == 1


def test_a_forked_child_does_not_believe_that_it_drives_its_parents_run(program):
    """A process that was forked in the middle of a run has none of its threads."""
    program.write(
        """
        import os, sys
        import surefoot as sf
        from surefoot.engine.process.runtime import driven_here
        from surefoot.engine.process import config

        @sf.step
        def fork():
            store = config.runtime(create=False).store
            assert driven_here(store, "r")
            child = os.fork()
            if not child:
                os._exit(7 if driven_here(store, "r") else 0)
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

        @sf.workflow
        def wf():
            return fork()

        print(wf.run("r"))
        """
    )
    assert program.run().stdout == "0\n"
