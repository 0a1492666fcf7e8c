"""Cancelled between two calls, or beside others that end at the same moment, then killed: the same way again, or a stop."""

from __future__ import annotations

import time

import pytest

from tests.working import wait_until

COMMON = """
import asyncio, os, sys
import surefoot.aio as sf

sf.configure(in_flight="0s")

def ledger(line):
    with open("ledger", "a") as file:
        file.write(f"{line}\\n")

def quick():
    return "quick" in sys.argv

def dies():
    if "die" in sys.argv:
        os._exit(9)

@sf.step
async def look(n):
    return n

@sf.effect
async def pay(n):
    ledger(f"pay {n}")
    return n

@sf.effect
async def tell(way):
    ledger(f"tell {way}")
"""
MAIN = """
if __name__ == "__main__":
    try:
        print(asyncio.run(wf.run("r")))
    except sf.Stopped as stop:
        print(type(stop).__name__, stop)
        sys.exit(3)
"""
DEALT_WITH = f"""{COMMON}
@sf.workflow
async def wf():
    came = "in time"
    try:
        async with asyncio.timeout(None if "never" in sys.argv else 0.2):
            await look(1)
            await asyncio.sleep(0 if quick() else 60)  # a library call
            if "left" not in sys.argv:
                await pay(2)
    except TimeoutError:
        came = "late"
    await look(3)  # the same in both ways
    dies()
    await tell(came)
    return came
{MAIN}"""


def test_a_time_out_that_was_dealt_with_between_two_calls_comes_again(program, ledger):
    """By the next call nothing shows any more that it struck. Quick enough, the code paid, and was late all the same."""
    program.write(DEALT_WITH)
    assert program.run("die").returncode == 9
    assert ledger.lines == []

    again = program.run("quick")

    assert again.stdout.strip() == "late", again.stdout + again.stderr
    assert ledger.lines == ["tell late"], "what the code had not come to does not begin"


@pytest.mark.parametrize("how", [("never",), ("left",)])
def test_if_it_does_not_come_again_the_run_stops_before_anything_new(program, ledger, how):
    program.write(DEALT_WITH)
    assert program.run("die").returncode == 9

    again = program.run("quick", *how)

    assert again.returncode == 3, again.stdout + again.stderr
    assert "was cancelled before it came to look#2" in again.stdout
    assert "sf.timeout" in again.stdout
    assert ledger.lines == []


def test_one_that_strikes_only_now_stops_the_run_at_the_next_call_on_record(program, ledger):
    """What took no time before takes too long now: told "in time", the run must not go on as if it had been late."""
    program.write(DEALT_WITH)
    assert program.run("quick", "left", "die").returncode == 9

    again = program.run("left")

    assert again.returncode == 3, again.stdout + again.stderr
    assert "look#2: the code was cancelled before it came to this call" in again.stdout
    assert "sf.timeout" in again.stdout
    assert ledger.lines == []
    assert program.run("quick", "left").stdout.strip() == "in time"


TOGETHER = f"""{COMMON}
gate = None

@sf.step
async def bid(n):
    await gate.wait()
    return n

@sf.workflow
async def wf():
    global gate
    gate = asyncio.Event()

    async def one(n):
        with sf.scope(f"bidder {{n}}"):
            await asyncio.sleep(0.02 * (3 - n) if quick() else 0.01 * n)
            return await bid(n)

    tasks = [asyncio.create_task(one(n)) for n in range(3)]
    asyncio.get_running_loop().call_later(0.2, gate.set)
    done, rest = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in rest:
        task.cancel()
    if rest:
        await asyncio.wait(rest)
    won = sorted(task.result() for task in done)
    print(won, flush=True)
    await look(9)
    dies()
    await tell(won)
    return won
{MAIN}"""


def test_what_ended_together_ends_together_again(program, ledger):
    """On replay one after the other was handed over, and whoever waited for the first cancelled the rest."""
    program.write(TOGETHER)
    first = program.run("die")
    assert (first.returncode, first.stdout.strip()) == (9, "[0, 1, 2]")

    again = program.run("quick")

    assert again.stdout.split("\n")[-2] == "[0, 1, 2]", again.stdout + again.stderr
    assert ledger.lines == ["tell [0, 1, 2]"]


LIMIT_SECONDS = 0.5
OVER = f"""{COMMON}
@sf.effect
async def charge(n):
    ledger(f"charge {{n}}")
    dies()
    return n

@charge.check
def charged(n):
    return sf.unknown("the gateway is down")

@sf.workflow
async def wf():
    got = []
    try:
        async with sf.timeout({LIMIT_SECONDS}):
            got.append(await charge(1))
            await asyncio.sleep(60)
    except TimeoutError:
        pass
    await tell(got)
    return got
{MAIN}"""


def test_a_call_in_doubt_that_a_limit_cuts_off_stays_cut_off_once_it_is_settled(program, ledger):
    """The time of the block was over when the run was taken up. The code went on without it, and so it does again."""
    program.write(OVER)
    assert program.run("die").returncode == 9
    died = time.monotonic()
    wait_until(lambda: time.monotonic() - died > LIMIT_SECONDS)  # A process may well be there again before.
    stopped = program.run()
    assert stopped.returncode == 3, stopped.stdout + stopped.stderr
    assert ledger.lines == ["charge 1", "tell []"], stopped.stdout + stopped.stderr
    program.write("import app, surefoot as sf\nsf.get_run('r').settle('charge#1', happened=1)\n", "settle.py")
    assert program.run(name="settle.py").returncode == 0

    again = program.run()

    assert again.stdout.strip() == "[]", again.stdout + again.stderr
    assert ledger.lines == ["charge 1", "tell []"]


IN_TIME = OVER.replace(f"sf.timeout({LIMIT_SECONDS})", "sf.timeout(60)")


def test_a_call_in_doubt_in_a_block_whose_time_is_not_over_is_not_made_again(program, ledger):
    """To be held up by a limit that has not struck is no reason to take it for another call."""
    program.write(IN_TIME)
    assert program.run("die").returncode == 9

    stopped = program.run()

    assert stopped.returncode == 3, stopped.stdout + stopped.stderr
    assert ledger.lines == ["charge 1"]


ALIKE = f"""{COMMON}
@sf.step
async def work(n):
    ledger(f"work {{n}}")
    return n

@sf.workflow
async def wf():
    try:
        async with sf.timeout(0.1):
            await pay(await work(1))
            await asyncio.sleep(0 if quick() else 60)  # a library call
            ledger(f"given {{await work(2)}}")
        came = "in time"
    except TimeoutError:
        came = "late"
    await work(3)
    dies()
    await tell(came)
    return came
{MAIN}"""


def test_a_call_behind_a_block_is_not_taken_for_the_one_that_the_block_was_cut_off_before(program, ledger):
    """Both are `work#2`: what is recorded there came after the block was cut off, so the block had not come to it."""
    program.write(ALIKE)
    assert program.run("die").returncode == 9

    again = program.run("quick")

    assert again.stdout.strip() == "late", again.stdout + again.stderr
    assert ledger.lines == ["work 1", "pay 1", "work 3", "tell late"]


SAGA = f"""{COMMON}
@sf.effect
async def book(n):
    ledger(f"book {{n}}")
    return n

@book.undo
async def unbook(n, result):
    ledger(f"unbook {{n}}")

@sf.step
async def slow():
    await asyncio.sleep(60)

@sf.workflow
async def wf():
    came = "in time"
    try:
        async with asyncio.timeout(0.3):
            async with sf.saga():
                await book(1)
                await slow()
    except TimeoutError:
        came = "late"
    await look(2)
    dies()
    await tell(came)
    return came
{MAIN}"""


def test_a_saga_that_a_time_out_cancelled_is_cancelled_again_and_the_code_goes_on(program, ledger):
    """The call behind it was said to be cancelled only now, at each resume, and the run could only be given up."""
    program.write(SAGA)
    assert program.run("die").returncode == 9

    again = program.run()

    assert again.stdout.strip() == "late", again.stdout + again.stderr
    assert ledger.lines == ["book 1", "unbook 1", "tell late"]
