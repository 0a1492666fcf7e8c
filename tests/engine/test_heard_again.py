"""A branch that is let go of to be rehearsed once more has not ended: its recorded effects do not stop the others.

Nothing here depends on luck: branches run one after the other (`concurrency=1`), or the rehearsal decides.
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


# -- calls that were made in the scope around the branches ------------------------------------------------------------


def wrapped(ledger):
    """Old code that pays and then dies; the calls of new code, which has them in branches (`was=""`)."""

    @sf.step
    def fresh():
        ledger.write("fresh")

    @sf.effect
    def pay(what):
        ledger.write(f"pay {what}")
        return what

    @sf.effect
    def put(what):
        ledger.write(f"put {what}")
        return what

    def old():
        pay("a")
        raise Cut

    def first():
        fresh()
        return pay("a")

    with pytest.raises(Cut):
        sf.workflow(name="wf")(old).run("r")
    return fresh, first, put


def test_a_declared_gather_goes_on_though_a_new_step_hides_what_its_branch_asks_for(ledger):
    """The recorded effect is on one line with every branch, and belongs to the branch that declares it."""
    _, first, put = wrapped(ledger)

    assert sf.workflow(name="wf")(lambda: sf.gather(first, lambda: put("c"), was="")).run("r") == ["a", "c"]

    assert sorted(ledger.lines) == ["fresh", "pay a", "put c"]


@pytest.mark.parametrize("what", ["a", "c"], ids=["same arguments", "other arguments"])
def test_what_no_branch_asks_for_stops_the_others_before_they_do_anything(what, ledger):
    """The declaration says where its calls were, and not that any effect may begin: this one may be the recorded one."""
    fresh, _, put = wrapped(ledger)

    with pytest.raises(sf.CodeChanged, match="put#1"):
        sf.workflow(name="wf")(lambda: sf.gather(fresh, lambda: put(what), was="")).run("r")

    assert set(ledger.lines) <= {"fresh", "pay a"}
