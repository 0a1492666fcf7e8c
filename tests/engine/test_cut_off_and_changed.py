"""A call that a time-out cut off, and code that has changed: ordinary edits of a block that was over strand no run."""

from __future__ import annotations

import pytest

CODE = """
import asyncio, os, sys
import surefoot.aio as sf

def ledger(line):
    with open("ledger", "a") as file:
        file.write(f"{line}\\n")

@sf.step
async def ask(question, seconds=0.0):
    await asyncio.sleep(seconds)
    ledger(f"ask {question}")
    return question

@sf.step
async def other():
    await asyncio.sleep(1.5)
    ledger("other")

@sf.effect
async def send(to):
    ledger(f"send {to}")

@sf.effect
async def pay(amount):
    await asyncio.sleep(0.5)
    ledger(f"pay {amount}")

@sf.workflow
async def wf():
    way = "in time"
    try:
        async with LIMIT:
            await send("in")
            await SLOW
            await send("never")
    except TimeoutError:
        way = "late"
    await send(way)
    if "die" in sys.argv:
        os._exit(9)
    await ask("end")
    return way

if __name__ == "__main__":
    try:
        print(asyncio.run(wf.run("r")))
    except sf.Stopped as stop:
        print(type(stop).__name__, stop)
        sys.exit(3)
"""
LIMITS = {"sf": 'sf.timeout("200ms")', "asyncio": "asyncio.timeout(0.2)"}
STEP, EFFECT = 'ask("slow", 5.0)', "pay(1)"
SAYS = """
import sys
from surefoot.cli.main import main
sys.exit(main(["match", "r", "pay#1", "--keep"]))
"""
LATE = ["send in", "send late", "ask end"]


def code(limit, slow):
    return CODE.replace("LIMIT", LIMITS[limit]).replace("SLOW", slow)


def interrupted(program, limit, slow):
    program.write(code(limit, slow))
    assert program.run("die").returncode == 9


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("slow", ['ask("slower", 5.0)', 'ask("slow", 0.0)'])
def test_a_step_that_was_cut_off_may_be_reworded(program, ledger, limit, slow):
    """It gave nothing, so that its arguments are nobody's business: it is cut off again."""
    interrupted(program, limit, STEP)
    program.write(code(limit, slow))

    again = program.run()

    assert again.stdout.strip() == "late", again.stdout
    assert ledger.lines == LATE


@pytest.mark.parametrize("limit", LIMITS)
def test_a_step_that_was_cut_off_may_get_noted_parameters(program, ledger, limit):
    """`noted=` may be added in the deploy that changes them."""
    interrupted(program, limit, STEP)
    program.write(code(limit, 'ask("slower", 5.0)').replace("@sf.step\n", '@sf.step(noted=("question",))\n', 1))

    again = program.run()

    assert again.stdout.strip() == "late", again.stdout
    assert ledger.lines == LATE


@pytest.mark.parametrize("limit", LIMITS)
def test_a_call_of_the_step_that_was_cut_off_may_be_put_in_front(program, ledger, limit):
    """It is not the one that was cut off: what was done before that is yet to come. It runs once, also after a kill."""
    interrupted(program, limit, STEP)
    program.write(code(limit, STEP).replace('await send("in")', 'await ask("put in"); await send("in")'))
    assert program.run("die").returncode == 9

    again = program.run()

    assert again.stdout.strip() == "late", again.stdout
    assert ledger.lines == ["send in", "send late", "ask put in", "ask end"]


def test_a_slow_step_that_is_put_in_front_of_what_was_done_is_not_cut_off(program, ledger):
    """The time of the block is over, on record; but what was done in it comes behind the step."""
    interrupted(program, "sf", STEP)
    program.write(code("sf", STEP).replace('await send("in")', 'await other(); await send("in")'))

    again = program.run()

    assert again.stdout.strip() == "late", again.stdout
    assert ledger.lines == ["send in", "send late", "other", "ask end"]


@pytest.mark.parametrize("cure", ["noted", "keep"])
@pytest.mark.parametrize("limit", LIMITS)
def test_an_effect_that_was_cut_off_stops_with_cures_that_work(program, ledger, limit, cure):
    """Each of them goes on, and what was done is not done again."""
    interrupted(program, limit, EFFECT)
    new = code(limit, "pay(2)")
    program.write(new)

    stop = program.run()

    assert stop.returncode == 3, stop.stdout
    assert "amount: 1 -> 2" in stop.stdout
    assert "--new" not in stop.stdout
    assert '@sf.effect(noted=("amount",)) on pay' in stop.stdout
    assert "surefoot match r 'pay#1' --keep" in stop.stdout
    if cure == "noted":
        program.write(new.replace("@sf.effect\nasync def pay", '@sf.effect(noted=("amount",))\nasync def pay'))
    else:
        program.write(SAYS, name="says.py")
        assert program.run(name="says.py").returncode == 0

    again = program.run()

    assert again.stdout.strip() == "late", again.stdout
    assert ledger.lines == ["send in", "pay 1", "send late", "ask end"]


def test_another_time_out_is_for_new_runs_and_that_is_told(program, ledger):
    """What cut the call off is not recorded of `asyncio.timeout`: a run in flight keeps it, by `sf.patched`."""
    interrupted(program, "asyncio", STEP)
    program.write(code("sf", STEP))

    stop = program.run()

    assert stop.returncode == 3, stop.stdout
    assert "in new runs:   async with sf.timeout(...)" in stop.stdout
    assert 'in this run:   keep the old way: if sf.patched("…"): … else: …' in stop.stdout
    both = f'({LIMITS["sf"]} if sf.patched("limit") else {LIMITS["asyncio"]})'
    program.write(CODE.replace("LIMIT", both).replace("SLOW", STEP))
    again = program.run()
    assert again.stdout.strip() == "late", again.stdout
    assert ledger.lines == LATE
