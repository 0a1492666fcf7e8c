"""What a retry opens, as the journal tells it: pure folding, no engine."""

from __future__ import annotations

import pytest
from msgspec import Raw

from surefoot.core import values
from surefoot.core.entry import (
    CallsReopened,
    EffectDone,
    EffectIntended,
    EffectRaised,
    RunAdopted,
    RunCreated,
    RunFailed,
    StepRaised,
    ValueNoted,
)
from surefoot.core.history import PastEffect, PastState, PastStep
from surefoot.core.reopening import undone, undone_around
from surefoot.core.seal import GENESIS, Sealer, to_body
from surefoot.core.state import RunState
from surefoot.errors import StepFailed

NO = Raw(values.encode_error(ValueError("no")))
UNKNOWN = Raw(values.encode_error(StepFailed("InDoubt", "e#1: nobody knows")))


def folded(*entries):
    state, sealer, previous, epoch = RunState("r"), Sealer(b"store", "r"), GENESIS, 0
    for seq, entry in enumerate(entries, 1):
        kind, body, _ = to_body(entry)
        epoch += isinstance(entry, RunAdopted)
        record = sealer.seal(seq=seq, epoch=epoch, at=seq, kind=kind, body=body, previous=previous)
        state.fold(record)
        previous = record.seal
    return state


def run_with(*entries):
    begun = (RunCreated("wf", Raw(b"{}"), "d"), RunAdopted("w", "h", 1, "c"))
    return folded(*begun, *entries)


def intended(policy="ask", attempt=1):
    return EffectIntended("e#1", "digest", Raw(b"{}"), "key", policy, attempt)


def test_a_failed_step_is_forgotten():
    raised = StepRaised("s#1", "digest", Raw(b"{}"), NO, 3)
    state = run_with(raised, RunFailed(NO), CallsReopened(("s#1",), "ann"))

    assert "s#1" not in state.calls
    assert (state.status, state.error, state.standing.wake) == ("queued", None, 5)


def test_a_failed_effect_is_cleared_with_its_key_and_its_attempts():
    """Its place in the journal stays: a fallback has to know that a later attempt may be among what is lost."""
    noted = ValueNoted("e.before#1", Raw(b"1"))
    state = run_with(noted, intended(), EffectRaised("e#1", NO, 1), RunFailed(NO), CallsReopened(("e#1",), "ann"))
    past = state.calls["e#1"]

    assert (past.state, past.key, past.attempt, past.failures) == (PastState.CLEARED, "key", 1, 0)
    assert (past.first, past.seq, past.digest, past.error) == (4, 5, "", None)
    assert "e.before#1" not in state.calls, "what is there before it is noted anew"


def test_one_that_gave_up_is_in_doubt_with_the_arguments_it_was_made_with():
    entries = (intended("fail"), EffectRaised("e#1", UNKNOWN, 1), RunFailed(UNKNOWN), CallsReopened(("e#1",), "ann"))
    state = run_with(*entries)
    past = state.calls["e#1"]

    assert state.in_doubt() == [past]
    assert (past.digest, past.policy) == ("digest", "ask")


def test_who_is_named_and_asked_about_is_who_began_the_attempt():
    """Process 1 began it and was killed; process 2 only said that it failed. The one to look for is 1."""
    begun = (RunCreated("wf", Raw(b"{}"), "d"), RunAdopted("w1", "h", 1, "c"), intended("fail"))
    after = (RunAdopted("w2", "h", 2, "c"), EffectRaised("e#1", UNKNOWN, 1), RunFailed(UNKNOWN))
    state = folded(*begun, *after, CallsReopened(("e#1",), "ann"))
    past = state.calls["e#1"]

    assert past.claimant == "worker w1 on host h (pid 1)"
    assert state.left_in(past).worker == "w1"


def test_what_did_not_fail_is_left_as_it_is():
    """Who writes the entry has looked; who reads it takes nobody's word for it."""
    state = run_with(intended(), EffectDone("e#1", Raw(b"1"), 1), RunFailed(NO), CallsReopened(("e#1", "x#1"), "ann"))

    assert state.calls["e#1"].state is PastState.DONE


def past(address, first, state=PastState.DONE, kind=PastEffect):
    return kind(address, state, 0, first=first)


def pairs(*calls):
    return {(one.effect.address, one.undo.address) for one in undone(calls)}


def test_an_undo_takes_back_the_newest_that_still_stands():
    calls = [past("a#1", 1), past("a#2", 2), past("a.undo#1", 3), past("a#3", 4), past("a.undo#2", 5)]

    assert pairs(*calls) == {("a#2", "a.undo#1"), ("a#3", "a.undo#2")}


def test_an_undo_takes_back_only_what_was_done_in_its_scope():
    """Branches undo for themselves; what is around them undoes what was done in them."""
    calls = [past("[x]/a#1", 1), past("[y]/a#1", 2), past("[x]/a.undo#1", 3), past("a.undo#1", 4)]

    assert pairs(*calls) == {("[x]/a#1", "[x]/a.undo#1"), ("[y]/a#1", "a.undo#1")}


def test_an_undo_that_failed_has_taken_nothing_back():
    assert pairs(past("a#1", 1), past("a.undo#1", 2, PastState.FAILED)) == set()


def test_after_an_undo_that_failed_the_next_one_takes_back_an_earlier_effect():
    """A saga goes on with the others. To take the newest for undone would let a retry build on what is gone."""
    calls = [past("a#1", 1), past("a#2", 2), past("a.undo#1", 3, PastState.FAILED), past("a.undo#2", 4)]

    assert pairs(*calls) == {("a#1", "a.undo#2")}


def test_an_undo_builds_on_nothing_that_was_undone_around_it():
    """b.undo#1 failed in the middle of a saga; a#1 was undone after it, as it should be."""
    failed = past("b.undo#1", 4, PastState.FAILED)
    state = RunState("r")
    calls = (past("a#1", 1), past("b#1", 2), past("f#1", 3, PastState.FAILED), failed, past("a.undo#1", 5))
    state.calls = {one.address: one for one in calls}

    assert undone_around(state, [failed]) is None
    assert undone_around(state, [state.calls["f#1"], failed]) is not None


@pytest.mark.parametrize(
    ("address", "first", "concerns"),
    [("f#1", 2, True), ("map#1.3/f#1", 2, True), ("f#1", 4, False), ("f#1", 0, False), ("[other]/f#1", 2, True)],
)
def test_a_call_between_an_effect_and_its_undo_builds_on_it(address, first, concerns):
    failed = past(address, first, PastState.FAILED, PastStep)
    state = RunState("r")
    state.calls = {one.address: one for one in (past("a#1", 1), past("a.undo#1", 3), failed)}

    assert (undone_around(state, [failed]) is not None) == concerns
