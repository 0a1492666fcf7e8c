"""What a run leaves in doubt is told, whichever way the run ends: alerted, on record, and listed first."""

from __future__ import annotations

from contextlib import suppress

import pytest

import surefoot as sf
from surefoot.view.standing import stands


@pytest.fixture
def heard():
    told: list[str] = []
    sf.configure(alerts=[lambda alert: told.append(str(alert))])
    yield told
    sf.configure(alerts=[])


def trip(ledger):
    @sf.effect(on_crash="fail")
    def hotel() -> None:
        ledger.write("hotel")
        raise TimeoutError("no answer")

    @hotel.undo
    def _(result):
        ledger.write("cancel hotel")

    @sf.workflow
    def wf() -> None:
        with suppress(sf.StepFailed):
            hotel()
        sf.wait_event("never")

    return wf


@pytest.mark.parametrize("at_hand", [True, False])
def test_an_effect_that_failed_in_doubt_is_told_when_its_run_is_cancelled(ledger, heard, monkeypatch, at_hand):
    """Whoever cancels takes it for undone; nobody knows whether the hotel is booked."""
    with pytest.raises(sf.WaitingForAnswer):
        trip(ledger).run("r")
    heard.clear()
    if not at_hand:
        monkeypatch.setattr("surefoot.engine.declare.registry.registry._known", {})
    run = sf.get_run("r")

    run.cancel()

    assert run.status == "cancelled"
    assert [line for line in heard if "nobody knows whether these effects happened: hotel#1" in line]
    assert run.state().left == ("hotel#1",)
    assert ledger.lines == ["hotel"]


def test_what_a_cancelled_run_leaves_in_doubt_is_listed_until_somebody_has_looked(ledger):
    @sf.effect
    def hotel() -> None:
        ledger.write("hotel")
        raise TimeoutError("no answer")

    @sf.workflow
    def wf() -> None:
        hotel()

    with pytest.raises(sf.InDoubt):
        wf.run("r")
    run = sf.get_run("r")
    run.cancel()
    assert stands(run.state(), driven=False, now=0).left == ("hotel#1",)

    run.settle("hotel#1", happened=None)

    assert not stands(run.state(), driven=False, now=0).left
