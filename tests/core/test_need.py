"""What waits for a person is told by kind, the most urgent first, and is gone once it was answered."""

from __future__ import annotations

import pytest
from msgspec import Raw

from surefoot.core import need, values
from surefoot.core.entry import AnswerGiven, Due, EffectSettled, QuestionAsked, RunDone, RunFailed, RunStopped, Stop
from tests.core.test_state import ADOPTED, CREATED, INTENT, NULL, folded

QUESTION = QuestionAsked("approve#1", "approve", "?", "shown")
ASKED = Stop("WaitingForAnswer", "why", "approve#1", {"question": "May I?"})
DOUBT = Stop("InDoubt", "why", "e#1")


@pytest.mark.parametrize(
    ("stop", "kind", "brief"),
    [
        (DOUBT, need.IN_DOUBT, "InDoubt e#1"),
        (Stop("Drifted", "m"), need.DRIFT, "Drifted"),
        (Stop("CodeChanged", "m", "a#1"), need.CODE_CHANGED, "CodeChanged a#1"),
        (Stop("Quarantined", "m"), need.QUARANTINED, "Quarantined"),
        (ASKED, need.QUESTION, "approve#1: May I?"),
        (Stop("WaitingForAnswer", "m", "wait_event#1", {"event": "go"}), need.EVENT, "waiting for event 'go'"),
        (Stop("SomethingNew", "m"), need.STOPPED, "SomethingNew"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_stop_is_of_a_kind(stop, kind, brief):
    found = folded(CREATED, ADOPTED, RunStopped((stop,))).standing.need

    assert (found.kind, found.address) == (kind, stop.address)
    assert brief in found.brief


def test_most_urgent_of_several_is_shown():
    """A question can wait; an effect in doubt blocks what it touched."""
    found = need.of_stops([ASKED, DOUBT], Due(99))

    assert found == need.Need(need.IN_DOUBT, "e#1", "InDoubt e#1", 99)


def test_answered_one_by_one_the_rest_is_shown():
    """Else an inbox would show what somebody has dealt with already."""
    stopped = [CREATED, ADOPTED, INTENT, QUESTION, RunStopped((DOUBT, ASKED))]
    settled = EffectSettled("e#1", False, 1)
    answered = AnswerGiven("approve#1", "shown", Raw(b"true"), "ann")

    assert folded(*stopped, settled).standing.need.kind == need.QUESTION
    assert folded(*stopped, settled, answered).standing.need == need.NO_NEED


def test_end_of_a_run_needs_somebody_only_if_it_failed_or_left_something():
    failed = RunFailed(Raw(values.encode_error(ValueError("no \x1b[31m such order"))))

    assert folded(CREATED, ADOPTED, RunDone(NULL)).standing.need == need.NO_NEED
    assert folded(CREATED, ADOPTED, RunDone(NULL, ("pay#1",))).standing.need.kind == need.LEFT
    assert folded(CREATED, ADOPTED, failed).standing.need.kind == need.FAILED
    assert "\x1b" not in folded(CREATED, ADOPTED, failed).standing.need.brief


def test_brief_is_short_and_cannot_act_on_a_terminal():
    """It goes from user code into lists and pages as it is."""
    stop = Stop("WaitingForAnswer", "m", "a#1", {"question": "\x1b]0;owned\x07" + "x" * 10_000})

    found = need.of_stops([stop])

    assert found.brief.isprintable()
    assert len(found.brief) <= 200
