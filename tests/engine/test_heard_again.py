"""A branch that is let go of to be rehearsed once more has not ended: its recorded effects do not stop the others.

Branches run one after the other here (`concurrency=1`), so the order does not depend on luck.
"""

from __future__ import annotations

import asyncio

import pytest

import surefoot as sf
from surefoot import aio


class Cut(BaseException):
    """The process ends here, as far as the run can tell."""


def versions(ledger):
    """Old code that dies when its first branch has paid, and new code with steps in front of what that branch did."""

    @sf.step
    def fresh():
        ledger.write("fresh")
        return 1

    @sf.step
    def read(what):
        ledger.write(f"read {what}")
        return what

    @sf.effect
    def pay(what):
        ledger.write(f"pay {what}")
        return what

    @sf.effect
    def put(what):
        ledger.write(f"put {what}")
        return what

    def cut():
        raise Cut

    def first_old():
        pay(read("a"))

    def first_new():
        assert fresh() == 1  # A rehearsal does not see what follows this question.
        read("b")  # It takes the number of the recorded one, and whether it is another one is seen behind it only.
        return pay(read("a"))

    return (first_old, cut), (first_new, lambda: put("c"))


def test_another_branch_is_not_stopped_for_what_it_has_not_asked_for_yet(ledger):
    old, new = versions(ledger)
    with pytest.raises(Cut):
        sf.workflow(name="wf")(lambda: sf.map(lambda one: one(), old, concurrency=1)).run("r")

    result = sf.workflow(name="wf")(lambda: sf.map(lambda one: one(), new, concurrency=1)).run("r")

    assert result == ["a", "c"]
    assert sorted(ledger.lines) == ["fresh", "pay a", "put c", "read a", "read b"]


def test_in_tasks_it_is_the_same(ledger):
    old, new = versions(ledger)

    def workflow(branches):
        async def in_order(one):
            return await asyncio.to_thread(one)

        @sf.workflow(name="wf")
        async def wf():
            return await aio.map(in_order, branches, concurrency=1)

        return wf

    with pytest.raises(Cut):
        asyncio.run(workflow(old).run("r"))

    assert asyncio.run(workflow(new).run("r")) == ["a", "c"]
    assert sorted(ledger.lines) == ["fresh", "pay a", "put c", "read a", "read b"]
