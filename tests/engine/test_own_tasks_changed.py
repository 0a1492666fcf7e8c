"""Tasks of the workflow's own (a TaskGroup with `sf.scope`), and code that has changed: it stops before any effect."""

from __future__ import annotations

import pytest

CODE = """
import asyncio, os, sys
import surefoot.aio as sf
from surefoot.engine.session import turns

turns.PATIENCE_SECONDS = 0.5

def ledger(line):
    with open("ledger", "a") as file:
        file.write(f"{line}\\n")

@sf.effect
async def send(to):
    ledger(f"send {to}")

@sf.step
async def ask(question, seconds=0.0):
    await asyncio.sleep(seconds)
    return question

async def asks(n):
    with sf.scope(f"k{n}"):
        await ask(f"q{n}", 0.6 if n == 3 else 0.05 * n)  # The last is never where it is killed.
        await send(f"u{n}")
        if n == 2 and "die" in sys.argv:
            os._exit(9)

async def sends(n):
    with sf.scope(f"k{n}"):
        if n == 3:
            await asyncio.sleep(0.6)
            if "die" in sys.argv:
                os._exit(9)
        await send(f"u{n}")

async def comes_late(n):
    if n == 0:
        await asyncio.sleep(0.1)  # Slower than the others, and not on record.
    await sends(n)

@sf.workflow
async def wf(way):
    async with asyncio.TaskGroup() as group:
        for n in range(4):
            group.create_task(globals()[way](n))
    return "done"

if __name__ == "__main__":
    try:
        print(asyncio.run(wf.run("r", sys.argv[1])))
    except sf.Stopped as stop:
        print(type(stop).__name__, stop)
        sys.exit(3)
"""
WAYS = ["asks", "sends", "comes_late"]
RENAMED = ('sf.scope(f"k{n}")', 'sf.scope(f"key{n}")')
DROPPED = ("range(4)", "range(1, 4)")


@pytest.fixture
def interrupted(program, ledger):
    """A run of that way that was killed when three of four tasks had sent."""

    def killed(way):
        program.write(CODE)
        assert program.run(way, "die").returncode == 9
        assert sorted(ledger.lines) == ["send u0", "send u1", "send u2"]

    return killed


@pytest.mark.parametrize("edit", [RENAMED, DROPPED], ids=["renamed", "dropped"])
@pytest.mark.parametrize("way", WAYS)
def test_a_scope_that_no_task_opens_any_more_stops_the_run_before_an_effect(interrupted, program, ledger, way, edit):
    """Whose effects are those of the scope that is gone? The new one may be one of them."""
    interrupted(way)
    program.write(CODE.replace(*edit))

    again = program.run(way)

    assert again.returncode == 3, again.stdout
    assert again.stdout.startswith("CodeChanged"), again.stdout
    assert ledger.counts.total() == 3


@pytest.mark.parametrize("way", WAYS)
def test_a_label_that_is_declared_renamed_goes_on(interrupted, program, ledger, way):
    """The cure that the stop names."""
    interrupted(way)
    program.write(CODE.replace(RENAMED[0], 'sf.scope(f"key{n}", was=f"k{n}")'))

    again = program.run(way)

    assert again.stdout.strip() == "done", again.stdout
    assert sorted(ledger.lines) == [f"send u{n}" for n in range(4)]


@pytest.mark.parametrize("way", WAYS)
def test_tasks_whose_code_has_not_changed_go_on(interrupted, program, ledger, way):
    """However late a task comes to its scope."""
    interrupted(way)

    again = program.run(way)

    assert again.stdout.strip() == "done", again.stdout
    assert sorted(ledger.lines) == [f"send u{n}" for n in range(4)]


def test_a_scope_that_is_opened_behind_a_new_step_is_waited_for(interrupted, program, ledger):
    """A step may be added anywhere, and take long: what it hides is not taken for gone."""
    interrupted("sends")
    slow = 'async def comes_late(n):\n    with sf.scope(f"first {n}"):\n        if n == 0: await ask("new", 2.0)\n'
    program.write(CODE.replace("async def comes_late(n):\n", slow).replace("(globals()[way](n))", "(comes_late(n))"))

    again = program.run("sends")

    assert again.stdout.strip() == "done", again.stdout
    assert sorted(ledger.lines) == [f"send u{n}" for n in range(4)]


ASKED = '        await ask(f"q{n}", 0.6 if n == 3 else 0.05 * n)'
TOLD = ASKED.replace("await", "ledger(await") + ")"


@pytest.mark.parametrize(
    ("code", "given"),
    [
        ('        ledger(await ask(f"n{n}"))\n' + TOLD, ["n0", "n1", "n2", "n3", "q0", "q1", "q2", "q3"]),
        (TOLD.replace("q{n}", "reworded {n}"), ["q0", "q1", "q2", "reworded 3"]),
    ],
    ids=["put in front", "reworded"],
)
def test_each_task_is_heard_before_one_that_comes_to_something_new_ends_them(interrupted, program, ledger, code, given):
    """A TaskGroup cancels the others for it. Not heard, what was put in front there was given the recorded answer, and what
    was only reworded ran again, though effects were executed after it.
    """
    interrupted("asks")
    program.write(CODE.replace(ASKED, code))

    again = program.run("asks")

    assert again.returncode == 0, again.stdout + again.stderr
    told = {line for line in ledger.lines if not line.startswith("send")}
    assert sorted(told) == given
    assert sorted(line for line in ledger.lines if line not in told) == [f"send u{n}" for n in range(4)]


LOCKED = (
    "    await sends(n)\n",
    """    async with LOCK:
        await sends(n)
""",
)


def test_a_task_that_waits_for_this_one_may_open_its_scope_later(program, ledger):
    """Unchanged code: another task has got the lock first this time, so that what is on record comes behind it."""
    code = CODE.replace(*LOCKED).replace("async def asks(n)", "LOCK = asyncio.Lock()\n\nasync def asks(n)")
    first = code.replace("if n == 0:\n        await asyncio.sleep(0.1)", "await asyncio.sleep(0.1 * (n == 0))")
    program.write(first.replace("if n == 3:", "if n == 2:"))
    assert program.run("comes_late", "die").returncode == 9
    assert ledger.lines == ["send u1"]
    program.write(code.replace("if n == 0:\n        await asyncio.sleep(0.1)", "await asyncio.sleep(0.1 * (n != 0))"))

    again = program.run("comes_late")

    assert again.stdout.strip() == "done", again.stdout + again.stderr
    assert sorted(ledger.lines) == [f"send u{n}" for n in range(4)]
