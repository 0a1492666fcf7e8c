"""`async with sf.timeout(...)`: the deadline and how the block ended are recorded, so that replay goes the same way."""

from __future__ import annotations

import asyncio

import pytest

import surefoot as sf
import surefoot.aio as asf
from tests.working import ended, wait_until

APP = """
import asyncio, os, sys
import surefoot.aio as sf

def ledger(line):
    with open("ledger", "a") as file:
        file.write(f"{line}\\n")

def slow():
    return "quick" not in sys.argv

def dies(where):
    if f"die-{where}" in sys.argv:
        os._exit(9)

@sf.step
async def work(n):
    ledger(f"work {n}")
    if slow() and n == 2:
        dies("inside")
        await asyncio.Event().wait()
    return n

@sf.effect
async def pay(n):
    ledger(f"pay {n}")
    if slow() and n == 2:
        await asyncio.sleep(0.3)
    return n

@sf.effect
async def tell(way):
    ledger(f"tell {way}")

async def step():
    await work(1)
    await work(2)
    await pay(3)

async def effect():
    await pay(1)
    await pay(2)
    await pay(3)

async def foreign():
    await work(1)
    if slow():
        await asyncio.Event().wait()
    await pay(3)

async def nap():
    await work(1)
    await sf.sleep("1h" if slow() else 0)
    await pay(3)

async def branches():
    await sf.gather(work(1), work(2))
    await pay(3)

async def tasks():
    async def one(n):
        with sf.scope(f"task {n}"):
            await work(n)
    async with asyncio.TaskGroup() as group:
        group.create_task(one(1))
        group.create_task(one(2))
    await pay(3)

async def caught():
    await work(1)
    try:
        await work(2)
    except asyncio.CancelledError:
        await pay("caught")
        raise

@sf.workflow
async def wf(way):
    try:
        async with sf.timeout(0.2):
            await globals()[way]()
        came = "in time"
    except TimeoutError as error:
        came = f"late: {error}"
    await tell(came)
    dies("after")
    return came

if __name__ == "__main__":
    try:
        print(asyncio.run(wf.run("r", sys.argv[1])))
    except sf.Stopped as stop:
        print(type(stop).__name__, stop)
        sys.exit(3)
"""
WAYS = ["step", "effect", "foreign", "nap", "branches", "tasks", "caught"]
LATE = "late: timeout#1: not done within 0.2 s"


@pytest.mark.parametrize("way", WAYS)
def test_a_block_that_was_cut_off_is_cut_off_again_though_everything_is_quick_now(program, ledger, way):
    """The other way was never taken: told "late", the run must not go on as if it had been in time."""
    program.write(APP)
    assert program.run(way, "die-after").returncode == 9
    before = ledger.lines
    assert before[-1] == f"tell {LATE}"

    again = program.run(way, "quick")

    assert again.stdout.strip() == LATE, again.stderr
    assert ledger.lines == before, "nothing runs again, and nothing of the way that was not taken"
    assert "pay 3" not in before


@pytest.mark.parametrize("way", WAYS)
def test_a_block_that_ended_in_time_is_never_cut_off_by_a_replay(program, ledger, way):
    program.write(APP.replace("sf.timeout(0.2)", "sf.timeout(30)"))  # In time also on a busy machine.
    assert program.run(way, "quick", "die-after").returncode == 9
    before = ledger.lines
    assert before[-1] == "tell in time"
    program.write(APP.replace("sf.timeout(0.2)", "sf.timeout(0)"))

    again = program.run(way, "quick")

    assert again.stdout.strip() == "in time", again.stderr
    assert ledger.lines == before


def test_the_deadline_survives_a_crash(program, ledger):
    """It passed while nobody was there. What is on record is replayed first; then the block is over."""
    program.write(APP.replace("sf.timeout(0.2)", 'sf.timeout("3s")'))
    assert program.run("step", "die-inside").returncode == 9
    begun = ledger.lines
    program.write(APP.replace("sf.timeout(0.2)", 'sf.timeout("1h")'))

    again = program.run("step")

    assert "late" in again.stdout, again.stderr
    assert "tell" in ledger.lines[-1]
    assert ledger.lines[: len(begun)] == begun
    assert "pay 3" not in ledger.lines


def test_a_deadline_that_has_passed_lets_nothing_new_begin(program, ledger):
    program.write(APP.replace("sf.timeout(0.2)", 'sf.timeout("1s")'))
    assert program.run("step", "die-inside").returncode == 9
    begun = ledger.lines
    program.write("import time\ntime.sleep(1)\n" + APP)

    assert "late" in program.run("step", "quick").stdout
    assert [line for line in ledger.lines[len(begun) :] if not line.startswith("tell")] == []


def test_what_is_recorded_is_replayed_before_a_deadline_that_has_passed_strikes(program, ledger):
    """A foreign await between recorded calls takes its time again: the calls behind it are not left out."""
    program.write(
        """
        import asyncio, os, sys
        import surefoot.aio as sf

        @sf.effect
        async def lock(n):
            open("ledger", "a").write(f"lock {n}\\n")
            return n

        @sf.effect
        async def release(locks):
            open("ledger", "a").write(f"release {locks}\\n")

        @sf.workflow
        async def wf():
            locks = []
            try:
                async with sf.timeout("500ms"):
                    locks.append(await lock(1))
                    await asyncio.sleep(0.1)
                    locks.append(await lock(2))
                    await asyncio.sleep(60)
            except TimeoutError:
                if sys.argv[1:]:
                    os._exit(9)
            await release(locks)

        asyncio.run(wf.run("r"))
        """
    )
    assert program.run("die").returncode == 9
    program.run()
    assert ledger.lines == ["lock 1", "lock 2", "release [1, 2]"]


def test_the_deadline_and_how_it_ended_are_entries():
    @asf.workflow
    async def wf() -> list[str]:
        ways = []
        for n in (0, 1):
            try:
                async with asf.timeout(0.05 if n == 0 else "1h"):
                    await asf.sleep(30 if n == 0 else 0)
                ways.append("in time")
            except TimeoutError:
                ways.append("late")
        return ways

    assert asyncio.run(wf.run("r")) == ["late", "in time"]
    noted = [(entry.kind, entry.data["address"]) for entry in sf.get_run("r").entries() if "address" in entry.data]
    assert noted == [
        ("TimerSet", "timeout#1"),
        ("TimerSet", "sleep#1"),
        ("CallCancelled", "sleep#1"),
        ("TimerFired", "timeout#1"),
        ("TimerSet", "timeout#2"),
        ("TimerSet", "sleep#2"),
        ("TimerFired", "sleep#2"),
        ("ValueNoted", "timeout#2"),
    ]
    assert sf.get_run("r").verify() > 0


def test_an_error_in_the_block_is_passed_on_as_it_is():
    @asf.workflow
    async def wf() -> None:
        async with asf.timeout("1h"):
            raise ValueError("own")

    with pytest.raises(ValueError, match="own"):
        asyncio.run(wf.run("r"))


def test_a_block_without_a_limit_in_blocking_code_is_refused_with_the_cure():
    @sf.workflow
    def blocking() -> None:
        with sf.timeout("1s"):
            pass

    @asf.workflow
    async def mixed() -> None:
        with asf.timeout("1s"):
            pass

    for run in (lambda: blocking.run("r1"), lambda: asyncio.run(mixed.run("r2"))):
        with pytest.raises(sf.UsageError, match=r"async with sf\.timeout.*@sf\.step\(timeout="):
            run()
    assert {run.status for run in sf.runs()} == {"queued"}


def test_a_question_in_a_block_whose_time_is_over_is_not_waited_for(program, ledger):
    """The run stands still for a person; whoever runs it after the deadline goes on without an answer."""
    program.write(
        """
        import asyncio, sys, time
        import surefoot.aio as sf

        @sf.workflow
        async def wf():
            try:
                async with sf.timeout("1s"):
                    await sf.approve("well?")
                return "answered"
            except TimeoutError:
                return "nobody answered"

        try:
            print(asyncio.run(wf.run("r")))
        except sf.WaitingForAnswer:
            print("waiting")
        """
    )
    assert program.run().stdout == "waiting\n"
    program.write("import time\ntime.sleep(1)\n" + (program.folder / "app.py").read_text())
    assert program.run().stdout == "nobody answered\n"


@asf.workflow
async def long_wait(kind: str) -> str:
    try:
        async with asf.timeout(0.3):
            if kind == "sleep":
                await asf.sleep("1h")
            else:
                await asf.approve("well?")
        return "in time"
    except TimeoutError:
        return "late"


@pytest.mark.parametrize("kind", ["sleep", "approve"])
def test_a_worker_takes_a_run_up_when_the_time_of_its_block_is_over(kind, monkeypatch, kinds):
    """It had let go of it: the wait inside takes an hour, or an answer."""
    monkeypatch.setattr("surefoot.engine.drive.takeover.UNWIND_SECONDS", 0.0)
    asyncio.run(long_wait.start("r", kind))
    with sf.Worker(workflows=[long_wait]):
        wait_until(ended("r"))
    assert sf.get_run("r").result() == "late"
    assert kinds("r").count("RunAdopted") > 1
