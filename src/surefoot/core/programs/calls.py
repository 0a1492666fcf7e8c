"""The life of a step and of an effect: what is recorded, in which order, and what doubt leads to.

Step: run, then record. Effect: record the intent, run, record the outcome; what lies between the two
is in doubt if it is cut off. These two generators are the only code that writes call entries.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, assert_never

from msgspec import Raw, Struct

from surefoot.core import doubt
from surefoot.core.command import (
    After,
    Append,
    Done,
    Ending,
    Execute,
    Failed,
    Halted,
    Pause,
    Program,
    Raised,
    Returned,
    Unstorable,
    Wish,
)
from surefoot.core.entry import (
    EffectDone,
    EffectDoubted,
    EffectIntended,
    EffectRaised,
    EffectRecovered,
    EffectSuspected,
    EffectUnstorable,
    StepDone,
    StepRaised,
)
from surefoot.core.history import Past, PastState
from surefoot.core.retry import RetryPolicy, Wait, after_doubt, next_try, proves_nothing_happened

Part = Generator[Wish, Any, Ending | None]


class Call(Struct, frozen=True):
    """One call as it was asked for."""

    run: str
    address: str
    args: Raw
    digest: str
    retry: RetryPolicy
    timeout: float | None = None
    key: str = ""
    policy: str = ""
    unsure: tuple[type[BaseException], ...] = ()


def step(call: Call, past: Past | None) -> Program:
    """Run until it returns, or until no further attempt is due."""
    attempt = 0
    if past is not None:
        attempt = past.attempt
        if past.due is not None:
            yield Pause(past.due)
    while True:
        attempt += 1
        outcome = yield Execute(attempt)
        if type(outcome) is Returned:
            yield Append(StepDone(call.address, call.digest, call.args, outcome.raw, outcome.started, attempt))
            return Done(outcome.raw)
        wait = next_try(call.retry, outcome.error, attempt, harmless=True)
        due = None if wait is None else (yield After(wait.seconds, wait.jitter))
        yield Append(StepRaised(call.address, call.digest, call.args, outcome.raw, attempt, due))
        if due is None:
            return Failed(outcome.raw, outcome.error)
        yield Pause(due)


def effect(call: Call, past: Past | None) -> Program:
    """Run at most once by our own decision, unless a retry is declared harmless."""
    attempt, failures = (0, 0) if past is None else (past.attempt, past.failures)
    if past is not None:
        ending = yield from _take_up(call, past)
        if ending is not None:
            return ending
    while True:
        attempt += 1
        deadline = None if call.timeout is None else (yield After(call.timeout))
        # Durable before the call: if the process dies in between, the effect is known to be in doubt.
        yield Append(EffectIntended(call.address, call.digest, call.args, call.key, call.policy, attempt, deadline))
        outcome = yield Execute(attempt)
        match outcome:
            case Returned(raw, _):
                yield Append(EffectDone(call.address, raw, attempt))
                return Done(raw)
            case Unstorable(why):
                yield Append(EffectUnstorable(call.address, why, attempt))
                return Halted(doubt.unstorable(call.run, call.address, why))
            case Raised(error, raw) if proves_nothing_happened(error, call.retry, call.unsure):
                failures += 1
                wait = next_try(call.retry, error, failures, harmless=call.policy == "retry")
                due = None if wait is None else (yield After(wait.seconds, wait.jitter))
                yield Append(EffectRaised(call.address, raw, attempt, due))
                if due is None:
                    return Failed(raw, error)
                yield Pause(due)
            case Raised(error, raw):
                failures += 1
                yield Append(EffectDoubted(call.address, raw, attempt))
                question = doubt.raised(call.run, call.address, error)
                ending = yield from _in_doubt(call, question, attempt, failures, crashed=False)
                if ending is not None:
                    return ending
            case _:
                assert_never(outcome)


def recovered(call: Call, value: Raw, attempt: int) -> Program:
    """Reached after a fallback, and an intact record proves that it was executed."""
    yield Append(EffectRecovered(call.address, call.digest, call.args, call.key, call.policy, value, attempt))
    return Done(value)


def suspected(call: Call, attempt: int) -> Program:
    """Reached after a fallback, and it may be one of the calls whose record was lost: in doubt, before anything runs."""
    yield Append(EffectSuspected(call.address, call.digest, call.args, call.key, call.policy, attempt))
    past = Past(call.address, "effect", PastState.IN_DOUBT, 0)
    past.attempt, past.suspected = attempt, True
    return (yield from effect(call, past))


def _take_up(call: Call, past: Past) -> Part:
    """Go on with an effect that was begun before. None: run it (again)."""
    match past.state:
        case PastState.RETRYING if past.due is not None:
            yield Pause(past.due)
        case PastState.UNSTORABLE:
            return Halted(doubt.unstorable(call.run, call.address, past.why))
        case PastState.IN_DOUBT:
            crashed = past.error is None
            question = doubt.recorded(call.run, past)
            return (yield from _in_doubt(call, question, past.attempt, past.failures, crashed=crashed))
        case PastState.CLEARED:
            pass
        case _:
            raise AssertionError(past.state)
    return None


def _in_doubt(call: Call, question: doubt.Question, attempt: int, failures: int, *, crashed: bool) -> Part:
    """The declared policy decides. None: it is safe to run the effect again, with the same key."""
    match call.policy:
        case "retry":
            wait = Wait(0.0, False) if crashed else after_doubt(call.retry, failures)
            if wait is None:
                return Halted(question.stop("it was tried as often as allowed"))
            if wait.seconds:
                yield Pause((yield After(wait.seconds, wait.jitter)))
            return None
        case "fail":
            raw = question.failure()
            yield Append(EffectRaised(call.address, raw, attempt))
            return Failed(raw)
        case _:
            return Halted(question.stop("it has no check"))
