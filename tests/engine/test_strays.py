"""Cancellations, interruptions and strays: each was found by somebody who tried to break the engine."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading

import pytest

import surefoot as sf
import surefoot.aio as asf
from surefoot.store.memory import MemoryStore


def test_threads_starting_one_new_run_at_once_all_get_its_result(ledger):
    """The second comes while the first is still creating the run: not "no such run"."""

    @sf.step
    def look(run: str) -> int:
        ledger.write(run)
        return 1

    @sf.workflow
    def wf(run: str) -> int:
        return look(run)

    for n in range(10):
        barrier, results = threading.Barrier(4), []

        def start(run: str = f"r{n}", barrier: threading.Barrier = barrier, results: list[int] = results) -> None:
            barrier.wait()
            results.append(wf.run(run, run))

        threads = [threading.Thread(target=start) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert results == [1, 1, 1, 1]
    assert max(ledger.counts.values()) == 1


def test_tasks_starting_one_new_run_at_once_all_get_its_result(ledger):
    @asf.step
    async def look() -> int:
        ledger.write("look")
        return 1

    @asf.workflow
    async def wf() -> int:
        return await look()

    async def main() -> list[int]:
        return await asyncio.gather(*(wf.run("r") for _ in range(5)))

    assert asyncio.run(main()) == [1] * 5
    assert ledger.lines == ["look"]


def test_a_cancellation_is_passed_on_although_the_effect_in_flight_fails(ledger, kinds):
    started, release = asyncio.Event(), asyncio.Event()

    @asf.effect
    async def pay() -> None:
        started.set()
        await release.wait()
        raise sf.NotDone("declined")

    @asf.effect
    async def pay_again() -> None:
        ledger.write("again")

    @asf.workflow
    async def wf() -> None:
        with contextlib.suppress(sf.NotDone):
            await pay()
        await pay_again()

    async def main() -> None:
        task = asyncio.create_task(wf.run("r"))
        await started.wait()
        task.cancel()
        await asyncio.sleep(0)
        release.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert ledger.lines == []
    assert kinds("r")[-2:] == ["EffectRaised", "RunReleased"]


def test_a_cancelled_step_does_not_sit_out_its_back_off(ledger):
    tasks: list[asyncio.Task[None]] = []

    @asf.step(retries=3, backoff=sf.Backoff(first="1h"))
    async def flaky() -> None:
        ledger.write("attempt")
        asyncio.get_running_loop().call_soon(tasks[0].cancel)
        raise ValueError

    @asf.workflow
    async def wf() -> None:
        await flaky()

    async def main() -> None:
        tasks.append(asyncio.create_task(wf.run("r")))
        with pytest.raises(asyncio.CancelledError):
            await tasks[0]

    asyncio.run(main())
    assert ledger.lines == ["attempt"]


@pytest.mark.parametrize("turns", range(12))
def test_a_run_cancelled_while_it_starts_lets_go_of_its_claim(turns):
    """Otherwise another process would wait as long as this one lives."""

    @asf.step
    async def look() -> int:
        return 1

    @asf.workflow
    async def wf() -> int:
        return await look()

    async def main() -> None:
        task = asyncio.create_task(wf.run("r"))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    asyncio.run(main())
    with contextlib.suppress(sf.NotFound):
        assert sf.get_run("r").status in ("queued", "done")
    assert asyncio.run(wf.run("r")) == 1


def test_threads_under_a_plain_asyncio_gather_are_refused():
    """Which of them calls first is luck, and luck would decide which value it gets on replay."""

    @sf.step(ignore=("client",))
    def ask(client: str) -> str:
        return client

    @asf.workflow
    async def wf() -> list[str]:
        return list(await asyncio.gather(asyncio.to_thread(ask, "a"), asyncio.to_thread(ask, "b")))

    with pytest.raises(sf.UsageError, match="thread"):
        asyncio.run(wf.run("r"))


def test_a_blocking_workflow_runs_where_a_loop_is_running():
    """In a notebook there is always one."""

    @sf.step
    def look() -> int:
        return 1

    @sf.workflow
    def wf() -> list[int]:
        sf.sleep(0)
        return [look(), *sf.gather(look, look)]

    async def cell() -> list[int]:
        return wf.run("r")

    assert asyncio.run(cell()) == [1, 1, 1]


@pytest.mark.parametrize(
    "verb",
    [
        lambda: sf.progress("3/10"),
        lambda: sf.progress(float("nan"), 1),
        lambda: sf.progress(1, 2, None),
        lambda: sf.progress(object()),
        lambda: sf.publish(3, 1),
        lambda: sf.wait_event(5),
        lambda: sf.patched("\udce9"),
    ],
)
def test_what_cannot_be_read_back_is_refused_before_it_is_written(verb):
    """A journal that its own reader calls corrupt would be the worst we could do."""

    @sf.step
    def look() -> int:
        return 1

    @sf.workflow
    def wf() -> int:
        verb()
        return look()

    with pytest.raises(sf.UsageError, match="cannot be recorded as given"):
        wf.run("r")
    assert sf.get_run("r").status == "queued"


def test_odd_file_names_are_fine_as_keys():
    @sf.step
    def look() -> int:
        return 1

    @sf.workflow
    def wf() -> list[int]:
        return sf.map(lambda _: look(), ["\udce9.txt", "a\nb", "[x]/y#1"], key=str)

    assert wf.run("r") == [1, 1, 1]
    assert len(sf.get_run("r").steps()) == 3


def test_renamed_parameters_stop_a_run_instead_of_failing_it():
    @sf.workflow(name="renamed")
    def before(amount: int) -> int:
        raise KeyboardInterrupt

    @sf.workflow(name="renamed")
    def later(total: int = 0, *rest: int) -> int:
        return total

    with pytest.raises(KeyboardInterrupt):
        before.run("r", 5)
    from surefoot.engine.drive import start
    from surefoot.engine.process import config

    plan = later.definition.resume_plan()
    with pytest.raises(sf.CodeChanged, match="recorded as amount"):
        start.run_blocking(config.runtime(create=False), plan, "r", start.Options())
    assert sf.get_run("r").status == "queued"


def test_plan_tells_of_renamed_parameters_before_anybody_resumes():

    def body(amount: int) -> int:
        raise KeyboardInterrupt

    def renamed(total: int) -> int:
        return total

    renamed.__qualname__, renamed.__module__ = body.__qualname__, body.__module__
    with pytest.raises(KeyboardInterrupt):
        sf.workflow(name="renamed-for-plan")(body).run("r", 5)
    sf.workflow(name="renamed-for-plan")(renamed)
    plan = sf.get_run("r").plan()

    assert len(plan.stops) == 1
    assert "recorded as amount" in plan.stops[0]
    assert plan.next == []


def test_a_swallowed_continue_as_new_continues_all_the_same():
    @sf.workflow
    def wf(n: int) -> str:
        if n == 0:
            with contextlib.suppress(BaseException):
                sf.continue_as_new(1)
            return "swallowed"
        return "continued"

    assert wf.run("r", 0) == "continued"


@pytest.mark.parametrize("seconds", [float("inf"), float("nan"), -1])
def test_retry_after_nonsense_is_refused(seconds):
    with pytest.raises(sf.UsageError, match="RetryAfter"):
        sf.RetryAfter(seconds)


def test_crashes_do_not_use_up_the_retries_of_an_effect(program, ledger):
    program.write(
        """
        import os, sys
        import surefoot as sf

        @sf.effect(on_crash="retry", retries=1, backoff=sf.Backoff(first=0))
        def act():
            with open("ledger", "a") as file:
                file.write("act\\n")
            if sys.argv[1:]:
                os._exit(9)
            raise ValueError("transient")

        @sf.workflow
        def wf():
            act()

        try:
            wf.run("r")
        except sf.InDoubt:  # it failed in the end, but the attempts that were cut off may have happened, and did
            print("in doubt")
        """
    )
    for _ in range(3):
        program.run("crash")

    assert program.run().stdout == "in doubt\n"
    assert len(ledger.lines) == 5


def test_many_threads_hammering_one_store_lose_and_duplicate_nothing(monkeypatch):
    """The lead changes hands thousands of times: there is never a second leader, and every append returns."""
    busy, overlaps, whole = threading.Lock(), [], MemoryStore.append

    def append(self, batch):
        if not busy.acquire(blocking=False):
            overlaps.append(1)
            return whole(self, batch)
        try:
            return whole(self, batch)
        finally:
            busy.release()

    monkeypatch.setattr(MemoryStore, "append", append)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    @sf.step
    def look(i: int) -> int:
        return i

    @sf.workflow
    def wf(k: int) -> int:
        return sum(look(i) for i in range(20))

    results: list[int] = []
    threads = [
        threading.Thread(target=lambda k=k: results.extend(
            wf.using(store="memory:hammer").run(f"r{k}-{n}", k) for n in range(10)
        ))
        for k in range(8)
    ]  # fmt: skip
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(50)
    finally:
        sys.setswitchinterval(interval)

    assert overlaps == []
    assert results == [190] * 80
    assert all(run.verify() == 23 for run in sf.runs(store="memory:hammer", limit=200))


def test_an_interrupt_that_the_standard_library_garbles_is_no_failure_of_the_run(monkeypatch):
    """Ctrl-C inside Thread.start can surface as "release unlocked lock"; the run has not failed for that."""
    real, calls = threading.Thread.start, []

    def start(self: threading.Thread) -> None:
        if self.name == "surefoot-branch":
            calls.append(1)
            if len(calls) == 2:
                try:
                    raise KeyboardInterrupt
                finally:
                    raise RuntimeError("release unlocked lock")
        real(self)

    @sf.step
    def look() -> int:
        return 1

    @sf.workflow
    def wf() -> list[int]:
        return sf.gather(look, look, look)

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(KeyboardInterrupt):
        wf.run("r")
    assert sf.get_run("r").status == "queued"
    monkeypatch.setattr(threading.Thread, "start", real)
    assert wf.run("r") == [1, 1, 1]
