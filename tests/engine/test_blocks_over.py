"""`sf.timeout`: its deadline passes while nobody drives. What was open in the block is cut off where it was, for good."""

from __future__ import annotations

import asyncio

import pytest

import surefoot as sf
import surefoot.aio as asf
from surefoot.testing.clock import FastClock, installed
from tests.working import wait_until

APP = """
import asyncio, os, sys, time
from contextlib import nullcontext
import surefoot.aio as sf
from surefoot.engine.drive import acts_async
from surefoot.testing.clock import FastClock, installed

sf.configure(in_flight="0s")

def ledger(line):
    with open("ledger", "a") as file:
        file.write(f"{line}\\n")

async def dies(*_):
    os._exit(9)

if "die" in sys.argv:
    acts_async.stay = dies  # as soon as it waits

@sf.effect
async def pay(n):
    ledger(f"pay {n}")

@sf.effect(approve=True)
async def wire(n):
    ledger(f"wire {n}")

async def approve():
    return bool(await sf.approve("Pay 500?"))

async def ask():
    return await sf.ask("How much?")

async def wait():
    return await sf.wait_event("paid")

async def sleep():
    await sf.sleep("1h")

async def effect():
    await wire(1)

async def behind(way):
    if way == "approve":
        await sf.approve("Go on?")
    elif way == "ask":
        await sf.ask("And now?")
    elif way == "effect":
        await wire(2)
    elif way == "sleep":
        await sf.sleep("0.1s")
    await sf.wait_event("go")

@sf.workflow
async def wf(way):
    try:
        async with sf.timeout("1m"):
            came = await globals()[way]()
    except TimeoutError:
        came = "late"
    ledger(came)
    await behind(way)
    await pay(came)
    return came

if __name__ == "__main__":
    hours_later = installed(FastClock(time.time_ns() // 1000 + 36_000_000_000))
    try:
        with hours_later if "later" in sys.argv else nullcontext():
            print(asyncio.run(wf.run("r", sys.argv[1])))
    except sf.Stopped as stop:
        print(type(stop).__name__, stop)
        sys.exit(3)
"""


def addresses(kind):
    return [entry.data["address"] for entry in sf.get_run("r").entries() if entry.kind == kind]


def goes_on(program, way):
    sf.send_event("r", "go")
    return program.run(way)


@pytest.mark.parametrize(
    ("way", "question", "next_one", "answer"),
    [
        ("approve", "approve#1", "approve#2", True),
        ("ask", "ask#1", "ask#2", 500),
        ("effect", "wire#1.approval", "wire#2.approval", True),
    ],
)
def test_a_question_of_a_block_that_is_over_takes_no_answer_any_more(program, ledger, way, question, next_one, answer):
    """The code saw that nobody answered. A late yes turned that around on the next resume, and it paid."""
    program.write(APP)
    assert program.run(way).returncode == 3
    assert f"WaitingForAnswer run r, {next_one}" in program.run(way, "later").stdout

    with pytest.raises(sf.UsageError, match=r"the time to answer .* is over"):
        sf.get_run("r").answer(question, answer)

    sf.get_run("r").answer(next_one, answer)
    again = goes_on(program, way)
    assert again.stdout.strip() == "late", again.stdout + again.stderr
    behind = ["wire 2"] if way == "effect" else []
    assert [line for line in ledger.lines if line != "late"] == [*behind, "pay late"]


def test_an_event_that_a_block_waited_for_is_not_the_next_one_that_is_waited_for(program, ledger):
    """The record of the block was taken for the wait behind it: CodeChanged, with the same code."""
    program.write(APP)
    assert "waiting for event 'paid'" in program.run("wait").stdout

    assert "wait_event#2: waiting for event 'go'" in program.run("wait", "later").stdout

    again = goes_on(program, "wait")
    assert again.stdout.strip() == "late", again.stdout + again.stderr


def test_a_sleep_that_a_block_was_cut_off_in_is_not_the_next_sleep(program):
    """The next one, of a moment, took the record of the block and slept its hour."""
    program.write(APP)
    assert program.run("sleep", "die").returncode == 9

    assert program.run("sleep", "later").returncode == 3

    assert addresses("TimerSet") == ["timeout#1", "sleep#1", "sleep#2"]
    assert addresses("CallCancelled") == ["sleep#1"]
    assert goes_on(program, "sleep").stdout.strip() == "late"


@asf.workflow
async def asks_twice() -> str:
    try:
        async with asf.timeout("1m"):
            return "in time" if await asf.approve("Pay 500?") else "no"
    except TimeoutError:
        return "late" if await asf.approve("Go on without?") else "given up"


def test_a_worker_goes_on_without_an_answer_that_comes_too_late(monkeypatch):
    monkeypatch.setattr("surefoot.engine.drive.takeover.UNWIND_SECONDS", 0.0)
    with pytest.raises(sf.WaitingForAnswer):
        asyncio.run(asks_twice.run("r"))
    run = sf.get_run("r")
    with installed(FastClock()) as clock:
        clock.forward("2m")
        with sf.Worker(workflows=[asks_twice]):
            wait_until(lambda: "approve#2" in addresses("QuestionAsked"))
            with pytest.raises(sf.UsageError, match=r"the time to answer .* is over"):
                run.answer("approve#1", True)
            run.answer("approve#2", True)
            wait_until(lambda: run.status == "done")
    assert run.result() == "late"
