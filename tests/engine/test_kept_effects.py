"""What lets a record stand for other arguments never shifts a loop: each call keeps its own, or the run stops."""

from __future__ import annotations

import pytest

import surefoot as sf


class Cut(BaseException):
    """The process ends here, as far as the run can tell."""


@pytest.fixture
def kept(ledger):
    @sf.effect(on_change="keep")
    def pay(to: str) -> str:
        ledger.write(f"pay {to}")
        return f"paid {to}"

    return pay


@pytest.fixture
def noted(ledger):
    @sf.effect(noted="to")
    def pay(to: str) -> str:
        ledger.write(f"pay {to}")
        return f"paid {to}"

    return pay


def loop(effect, items, *, cut=False):
    def body():
        paid = [effect(item) for item in items]
        if cut:
            raise Cut
        return paid

    return sf.workflow(name="wf")(body)


def begun(effect, items="abc"):
    with pytest.raises(Cut):
        loop(effect, items, cut=True).run("r")


@pytest.mark.parametrize("declared", ["kept", "noted"])
@pytest.mark.parametrize("items", ["zabc", "azbc", "abzc"])
def test_a_call_put_into_a_loop_shifts_nobody(declared, items, request, ledger):
    """Each would be given what the next one did, and the last one would be paid twice."""
    effect = request.getfixturevalue(declared)
    begun(effect)
    place = items.index("z") + 1

    with pytest.raises(sf.CodeChanged, match="Was a call put in front") as stop:
        loop(effect, items).run("r")

    assert ledger.lines == ["pay a", "pay b", "pay c"]
    assert stop.value.cures[0] == (f"pay#{place} is new?", f"surefoot match r 'pay#{place}' --new")


@pytest.mark.parametrize("declared", ["kept", "noted"])
def test_said_to_be_new_it_is_made_once_and_the_others_keep_theirs(declared, request, ledger):
    effect = request.getfixturevalue(declared)
    begun(effect)
    wf = loop(effect, "zabc")
    with pytest.raises(sf.CodeChanged):
        wf.run("r")
    sf.get_run("r").match("pay#1", new=True)

    assert wf.run("r") == ["paid z", "paid a", "paid b", "paid c"]
    assert ledger.lines == ["pay a", "pay b", "pay c", "pay z"]


@pytest.mark.parametrize("declared", ["kept", "noted"])
def test_calls_that_changed_places_keep_their_own(declared, request, ledger):
    effect = request.getfixturevalue(declared)
    begun(effect)

    assert loop(effect, "cab").run("r") == ["paid c", "paid a", "paid b"]
    assert len(ledger.lines) == 3


@pytest.mark.parametrize("declared", ["kept", "noted"])
def test_a_call_that_was_taken_out_is_missed_and_not_taken_over(declared, request, ledger):
    effect = request.getfixturevalue(declared)
    begun(effect)

    with pytest.raises(sf.CodeChanged, match="has not asked for pay#1"):
        loop(effect, "bcd").run("r")
    assert len(ledger.lines) == 3


@pytest.mark.parametrize("declared", ["kept", "noted"])
def test_what_is_asked_for_by_nobody_else_is_kept(declared, request, ledger):
    effect = request.getfixturevalue(declared)
    begun(effect)

    assert loop(effect, "xbc").run("r") == ["paid a", "paid b", "paid c"]
    assert len(ledger.lines) == 3


def test_what_a_person_gave_away_is_not_made_again_in_silence(kept, ledger):
    """Ann says that z is what was done for a. The code then asks for a: nobody has said that this is to be paid again."""
    begun(kept, "a")
    wf = loop(kept, "za")
    with pytest.raises(sf.CodeChanged):
        wf.run("r")
    sf.get_run("r").match("pay#1", keep=True)

    with pytest.raises(sf.CodeChanged) as stop:
        wf.run("r")

    assert stop.value.cures[0] == ("pay#2 is new, and is made once more?", "surefoot match r 'pay#2' --new")
    assert ledger.lines == ["pay a"]


def test_a_word_for_all_calls_shifts_nobody(ledger):
    @sf.effect
    def pay(to: str) -> str:
        ledger.write(f"pay {to}")
        return f"paid {to}"

    begun(pay)
    wf = loop(pay, "zabc")
    with pytest.raises(sf.CodeChanged):
        wf.run("r")
    sf.get_run("r").match("*", keep=True)

    with pytest.raises(sf.CodeChanged, match="Was a call put in front"):
        wf.run("r")
    assert len(ledger.lines) == 3


def test_what_is_configured_for_steps_keeps_no_effect(ledger, monkeypatch):
    """What an effect or a child did is never kept for other arguments unless that very effect says so."""
    from surefoot.engine.process.config import settings

    monkeypatch.setattr(settings, "on_change", "keep")

    @sf.effect
    def pay(to: str) -> None:
        ledger.write(f"pay {to}")

    begun(pay, "a")

    with pytest.raises(sf.CodeChanged):
        loop(pay, "z").run("r")
