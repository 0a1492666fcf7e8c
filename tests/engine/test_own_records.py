"""What a drive records itself is no past of it: a later call that has the same number is another call."""

from __future__ import annotations

import pytest

import surefoot as sf


class Cut(BaseException):
    """The process ends here, as far as the run can tell."""


@pytest.fixture
def calls(ledger):
    @sf.step
    def look(at: int) -> int:
        ledger.write(f"look {at}")
        return len(ledger.lines)

    @sf.effect
    def pay(to: str) -> int:
        ledger.write(f"pay {to}")
        return len(ledger.lines)

    return look, pay


def cut_behind(body):
    """A process that does this much and then ends, in the middle of the run."""

    @sf.workflow(name="wf")
    def old():
        body()
        raise Cut

    with pytest.raises(Cut):
        old.run("r")


def redeployed(body):
    return sf.workflow(name="wf")(body).run("r")


def test_two_equal_steps_put_in_front_both_run(calls, ledger):
    """The first takes the number behind those on record, and that is the one which the second asks for."""
    look, _ = calls
    cut_behind(lambda: look(1))

    assert redeployed(lambda: [look(7), look(7), look(1)]) == [2, 3, 1]
    assert ledger.lines == ["look 1", "look 7", "look 7"]


def test_so_do_they_in_front_of_an_effect(calls, ledger):
    look, pay = calls
    cut_behind(lambda: (look(1), pay("ada")))

    assert redeployed(lambda: [look(7), look(7), look(1), pay("ada")]) == [3, 4, 1, 2]
    assert ledger.lines == ["look 1", "pay ada", "look 7", "look 7"]


def test_two_equal_effects_that_a_person_called_new_are_both_made(calls, ledger):
    _, pay = calls
    cut_behind(lambda: pay("ada"))
    with pytest.raises(sf.CodeChanged):
        redeployed(lambda: [pay("bob"), pay("bob"), pay("ada")])
    sf.get_run("r").match("pay#1", new=True)

    with pytest.raises(sf.CodeChanged):
        redeployed(lambda: [pay("bob"), pay("bob"), pay("ada")])
    sf.get_run("r").match("pay#2", new=True)
    assert redeployed(lambda: [pay("bob"), pay("bob"), pay("ada")]) == [2, 3, 1]
    assert ledger.lines == ["pay ada", "pay bob", "pay bob"]
