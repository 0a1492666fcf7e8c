"""What is only to be known of a run is on everybody's list until somebody says to have seen it."""

from __future__ import annotations

import pytest

import surefoot as sf
from surefoot.engine.process import journal
from surefoot.engine.process.config import runtime
from surefoot.store.contract import RunQuery
from tests.engine.test_fallback import garble


def needs(run_id="r"):
    """What the index says, which has to be what the journal deserves."""
    store = runtime(None, create=False).store
    row = next(one.row for one in store.runs(RunQuery()) if one.run == run_id)
    assert row == journal.index_row(journal.load(store, run_id)[0])
    return row.need


@pytest.fixture
def failing():
    @sf.workflow(name="ack_failing")
    def wf() -> None:
        raise ValueError("no such order")

    def fail():
        with pytest.raises(ValueError):
            wf.run("r")
        return sf.get_run("r")

    return fail


@pytest.fixture
def leaving():
    """A run that is over and has left an effect in doubt."""

    @sf.effect(on_crash="fail")
    def pay() -> int:
        raise ConnectionError("lost")

    @sf.workflow(name="ack_leaving")
    def wf() -> str:
        try:
            pay()
        except sf.StepFailed:
            return "went on"
        return "paid"

    wf.run("r")
    return sf.get_run("r")


def test_failure_that_was_seen_is_on_nobodys_list(failing):
    run = failing()
    assert needs() == "failed"

    assert run.acknowledge(by="ann", note="known", via="console") == ["failed"]

    assert needs() == ""
    assert run.status == "failed"
    assert run.entries()[-1].data == {"by": "ann", "note": "known", "about": ["failed"], "via": "console"}


def test_what_was_seen_already_is_not_recorded_again(failing):
    run = failing()
    run.acknowledge()
    before = run.entries()

    assert run.acknowledge() == []
    assert before == run.entries()


def test_failing_again_is_told_again(failing):
    """What was seen was the first failure."""
    run = failing()
    run.acknowledge()
    run.retry(failed=True)
    assert needs() == ""

    with pytest.raises(ValueError):
        run.resume()

    assert needs() == "failed"


def test_run_that_goes_on_has_not_failed(failing):
    """Else it would be on the list while it runs."""
    run = failing()

    run.retry(failed=True)

    assert run.state().to_know == ()
    assert needs() == ""


def test_effect_left_in_doubt_is_seen_or_settled(leaving):
    assert needs() == "left"
    assert [(one.kind, one.address) for one in leaving.state().to_know] == [("left", "pay#1")]

    leaving.acknowledge("left")

    assert needs() == ""


def test_what_nobody_has_seen_stays(leaving):
    """A word about failures is none about what was left."""
    assert leaving.acknowledge("failed") == []
    assert needs() == "left"
    with pytest.raises(sf.UsageError, match="about=drift"):
        leaving.acknowledge(["left", "drift"])


def test_run_that_fell_back_is_told_until_somebody_has_seen_it():
    @sf.step
    def look(n: int) -> int:
        return n

    @sf.workflow(name="ack_fell_back")
    def wf() -> int:
        if stop:
            look(1)
            raise KeyboardInterrupt
        return look(1)

    stop = [True]
    with pytest.raises(KeyboardInterrupt):
        wf.run("r")
    stop.clear()
    garble(3)
    assert wf.run("r") == 1
    assert needs() == "fell_back"

    sf.get_run("r").acknowledge()

    assert needs() == ""
