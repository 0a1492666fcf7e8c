"""What an attempt that may have happened means for those after it, when the code says something else by then."""

from __future__ import annotations

import pytest
from msgspec import Raw

from surefoot.core import values
from surefoot.core.command import Execute
from surefoot.core.entry import Due, EffectDoubted, EffectIntended, EffectRaised, EffectSettled, RunAdopted, RunCreated
from surefoot.core.history import PastEffect, PastState
from surefoot.core.programs.calls import Call, effect
from surefoot.core.retry import RetryPolicy
from surefoot.core.seal import GENESIS, Sealer, to_body
from surefoot.core.state import RunState

FAILURE = Raw(values.encode_error(ValueError("no")))
BEGUN = (RunCreated("wf", Raw(b"{}"), "d"), RunAdopted("w", "h", 1, "c"))


def folded(*entries) -> PastEffect:
    """The call pay#1, of which these are recorded."""
    sealer, seal, state = Sealer(b"s" * 16, "r"), GENESIS, RunState("r")
    for seq, entry in enumerate((*BEGUN, *entries), 1):
        kind, body, _ = to_body(entry)
        record = sealer.seal(seq=seq, epoch=int(seq > 1), at=seq, kind=kind, body=body, previous=seal)
        seal = record.seal
        state.fold(record)
    return state.calls["pay#1"]


def intended(attempt: int, marked: str = "") -> EffectIntended:
    return EffectIntended("pay#1", "d", Raw(b"{}"), "k", "retry", attempt, marked=marked)


def test_attempt_that_may_have_happened_by_hand_is_not_covered_by_a_later_transaction():
    """Nobody settled the first. Only if every attempt that may have happened left its marker there, one can be missed."""
    by_hand, there = intended(1), intended(2, marked="sqlite:////app.db")

    assert folded(by_hand, there).marked == ""
    assert folded(there, there).marked == "sqlite:////app.db"
    assert folded(by_hand, EffectSettled("pay#1", False, 1), there).marked == "sqlite:////app.db"


@pytest.mark.parametrize("policy", ["ask", "fail", "check"])
def test_retry_that_is_due_is_not_made_once_the_code_no_longer_calls_it_safe(policy):
    """An earlier attempt may have happened, and on_crash="retry" was taken back."""
    past = folded(intended(1), intended(2), EffectRaised("pay#1", FAILURE, 2, Due(1)))
    assert past.state is PastState.RETRYING

    wishes = effect(Call("r", "pay#1", Raw(b"{}"), "d", RetryPolicy(), key="k", policy=policy, checkable=True), past)

    assert type(next(wishes).entry) is EffectDoubted
    assert not isinstance(_next(wishes), Execute)


def _next(wishes):
    try:
        return next(wishes)
    except StopIteration as end:
        return end.value
