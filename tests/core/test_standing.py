"""Who may take a run up next, and from when on: a run that could go on must never be forgotten."""

from __future__ import annotations

import pytest
from msgspec import Raw
from msgspec.structs import replace

from surefoot.core.entry import (
    AnswerGiven,
    CancelRequested,
    ChildEnded,
    CodeMatched,
    Due,
    EffectIntended,
    EffectLandedLate,
    EffectSettled,
    EventSent,
    FellBack,
    QuarantineLifted,
    QuestionAsked,
    RunAdopted,
    RunCancelled,
    RunCreated,
    RunDone,
    RunReleased,
    RunStopped,
    RunSuspended,
    StepDone,
    StepStarted,
    Stop,
)
from surefoot.core.need import NO_NEED
from surefoot.core.readiness import HANDED_BACK, Standing
from tests.core.test_state import ADOPTED, CREATED, INTENT, NULL, STEP, STOPPED, folded

QUESTION = QuestionAsked("approve#1", "approve", "?", "shown")
WAITING = RunStopped((Stop("WaitingForAnswer", "why", "approve#1"),))
YES = AnswerGiven("approve#1", "shown", Raw(b"true"), "ann")
LISTENING = RunStopped((Stop("WaitingForAnswer", "why", "wait_event#1", {"event": "go"}),))
LATER = Due(10_000_000)
QUARANTINED = RunStopped((Stop("Quarantined", "why"),))

CHECKED = replace(INTENT, policy="check")
LANDED = EffectLandedLate(INTENT.address, INTENT.key, INTENT.attempt, "w", "host", 1, "returned")
CHANGED = RunStopped((Stop("CodeChanged", "why", "s#1"),))
MATCHED = CodeMatched("*", "rerun", "ann")

# The n-th entry is recorded at time n.
STORIES = {
    "queued": ([CREATED], Standing(1)),
    "delayed": ([RunCreated("wf", Raw(b"{}"), "d", due=LATER)], Standing(10_000_000)),
    "driven": ([CREATED, ADOPTED, STEP], Standing(None, "w")),
    "handed back": ([CREATED, ADOPTED, STEP, RunReleased(HANDED_BACK)], Standing(4)),
    "in trouble": ([CREATED, ADOPTED, RunReleased("UsageError")], Standing(3 + 2_000_000)),
    "in trouble again": (
        [CREATED, ADOPTED, RunReleased("UsageError"), ADOPTED, RunReleased("UsageError")],
        Standing(5 + 4_000_000),
    ),
    "asleep": ([CREATED, ADOPTED, RunSuspended(LATER)], Standing(10_000_000)),
    "asleep and cancelled": ([CREATED, ADOPTED, RunSuspended(LATER), CancelRequested("ann")], Standing(4)),
    "cancelled while it fell asleep": ([CREATED, ADOPTED, CancelRequested("ann"), RunSuspended(LATER)], Standing(4)),
    "waits for a child": ([CREATED, ADOPTED, RunSuspended(None, ("c",))], Standing(3 + 300_000_000)),
    "waits for a child and a timer": ([CREATED, ADOPTED, RunSuspended(LATER, ("c",))], Standing(10_000_000)),
    "child ended": ([CREATED, ADOPTED, RunSuspended(LATER, ("c",)), ChildEnded("c")], Standing(4)),
    "child was quicker": ([CREATED, ADOPTED, ChildEnded("c"), RunSuspended(LATER, ("c",))], Standing(4)),
    "another's child ended": ([CREATED, ADOPTED, RunSuspended(LATER, ("c",)), ChildEnded("d")], Standing(10_000_000)),
    "in doubt": ([CREATED, ADOPTED, INTENT, STOPPED], Standing(reason="InDoubt")),
    "settled": ([CREATED, ADOPTED, INTENT, STOPPED, EffectSettled("e#1", False, 1)], Standing(5, reason="InDoubt")),
    "landed late": ([CREATED, ADOPTED, CHECKED, STOPPED, LANDED], Standing(5, reason="InDoubt")),
    "landing was quicker": ([CREATED, ADOPTED, CHECKED, LANDED, STOPPED], Standing(5, reason="InDoubt")),
    "landed late, and it stopped again": (
        [CREATED, ADOPTED, CHECKED, STOPPED, LANDED, ADOPTED, STOPPED],
        Standing(reason="InDoubt"),
    ),
    "landed late, and nobody looks": ([CREATED, ADOPTED, INTENT, LANDED, STOPPED], Standing(reason="InDoubt")),
    "asked": ([CREATED, ADOPTED, QUESTION, WAITING], Standing(reason="WaitingForAnswer")),
    "asked, with a time": (
        [CREATED, ADOPTED, QUESTION, RunStopped(WAITING.stops, LATER)],
        Standing(10_000_000, reason="WaitingForAnswer"),
    ),
    "answered": ([CREATED, ADOPTED, QUESTION, WAITING, YES], Standing(5, reason="WaitingForAnswer")),
    "answer was quicker": ([CREATED, ADOPTED, QUESTION, YES, WAITING], Standing(5, reason="WaitingForAnswer")),
    "event was quicker": (
        [CREATED, ADOPTED, EventSent("go", NULL, "i"), LISTENING],
        Standing(4, reason="WaitingForAnswer"),
    ),
    "another event": (
        [CREATED, ADOPTED, EventSent("come", NULL, "i"), LISTENING],
        Standing(reason="WaitingForAnswer"),
    ),
    "cancelled, and it stopped again": (
        [CREATED, ADOPTED, CancelRequested("ann"), STOPPED, ADOPTED, STOPPED],
        Standing(reason="InDoubt"),
    ),
    "matched": ([CREATED, ADOPTED, CHANGED, MATCHED], Standing(4, reason="CodeChanged")),
    "match was quicker": ([CREATED, ADOPTED, MATCHED, CHANGED], Standing(4, reason="CodeChanged")),
    "matched, and it stopped again": (
        [CREATED, ADOPTED, CHANGED, MATCHED, ADOPTED, CHANGED],
        Standing(reason="CodeChanged"),
    ),
    "handed back after progress, then in trouble": (
        [CREATED, ADOPTED, STEP, RunReleased(HANDED_BACK), ADOPTED, RunReleased("UsageError")],
        Standing(6 + 2_000_000),
    ),
    "drifted": ([CREATED, ADOPTED, RunStopped((Stop("Drifted", "why"),))], Standing(reason="Drifted")),
    "quarantined": ([CREATED, ADOPTED, QUARANTINED], Standing(reason="Quarantined")),
    "released": ([CREATED, ADOPTED, QUARANTINED, QuarantineLifted("ann")], Standing(4, reason="Quarantined")),
    "done": ([CREATED, ADOPTED, RunDone(NULL)], Standing()),
    "cancelled": ([CREATED, ADOPTED, CancelRequested("ann"), RunCancelled()], Standing()),
    "fell back": ([CREATED, ADOPTED, FellBack(2, 1, 1, "why")], Standing(3)),
    "fell back after its end": ([CREATED, ADOPTED, RunDone(NULL), FellBack(3, 1, 1, "why")], Standing()),
}


@pytest.mark.parametrize("story", STORIES)
def test_standing_follows_from_the_entries(story):
    entries, expected = STORIES[story]
    assert replace(folded(*entries).standing, need=NO_NEED) == expected


def test_starts_count_until_the_run_gets_further():
    """Entries that a run makes each time it is taken up, only to die again, are no progress; an outcome is."""
    step = StepStarted("a#1", "d", Raw(b"{}"))
    again = EffectIntended("e#1", "d", Raw(b"{}"), "k", "retry", 2)
    assert folded(CREATED, ADOPTED, step, ADOPTED, INTENT, ADOPTED, again).starts == 3
    assert folded(CREATED, ADOPTED, ADOPTED, StepDone("a#1", "d", Raw(b"{}"), NULL, 1), ADOPTED).starts == 1
    assert folded(CREATED, ADOPTED, ADOPTED, RunReleased(HANDED_BACK)).starts == 1
    assert folded(CREATED, ADOPTED, QUARANTINED, QuarantineLifted("ann")).starts == 0


def test_answers_of_others_are_no_progress():
    assert folded(CREATED, ADOPTED, EventSent("n", NULL, "i"), RunAdopted("w", "h", 1, "d")).starts == 2
