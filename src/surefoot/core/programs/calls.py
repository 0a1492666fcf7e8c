"""The life of a step and of an effect: what is recorded, in which order, and what doubt leads to.

Step: run, then record. Effect: record the intent, run, record the outcome; between the two, the effect
is in doubt if it is cut off. Only the generators here write the outcome of a call.
Three entries are written where they are learnt: a step's start, a late landing, a person's answer.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, assert_never

from msgspec import Raw, Struct

from surefoot.core import doubt, parking, values
from surefoot.core.command import (
    After,
    Append,
    CalledOff,
    Done,
    Ending,
    Execute,
    Failed,
    Halted,
    Hold,
    Left,
    Observe,
    Pause,
    Program,
    Raised,
    Repair,
    Returned,
    Unstorable,
    Verify,
    Wish,
)
from surefoot.core.entry import (
    NOTHING,
    Due,
    EffectDone,
    EffectDoubted,
    EffectIntended,
    EffectRaised,
    EffectRecovered,
    EffectSettled,
    EffectSuspected,
    EffectUnstorable,
    Sight,
    StepDone,
    StepRaised,
    Stop,
    Value,
    WorldSeen,
)
from surefoot.core.history import PastCall, PastEffect, PastState
from surefoot.core.programs.landing import Landing
from surefoot.core.proof import NotDoneTypes, is_secondhand, proves_not_done
from surefoot.core.retry import RetryPolicy, after_doubt, next_try
from surefoot.core.timer import Moment, remaining
from surefoot.core.verdict import Happened, NotHappened, Partial, Unknown, Verdict
from surefoot.errors import Unavailable

Part = Generator[Wish, Any, Ending | None]


Consent = Callable[[tuple[Sight, ...], int], Generator[Wish, Any, tuple[Ending | None, bool]]]
"""What the effect touches, as it is now, and the attempt -> the ending if there is no yes (else None); whether a person
was waited for."""


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
    not_done: NotDoneTypes = None
    touches: bool = False
    """Whether the call names what it touches."""
    checkable: bool = False
    undoable: bool = False
    in_flight: float = 0.0
    """For how many seconds an attempt that was cut off may still be on its way."""
    lingers: bool = False
    """Whether these count from the end of its `timeout`, as the other side may go on; else `timeout` is the limit."""
    marks: str = ""
    """The database in which a marker commits with the call. Its key prevents a second execution there, by any process:
    a call on its way does no harm."""
    key_ttl: float | None = None
    """For how many seconds after its first use a retry under its key is safe; None: for ever."""
    consent: Consent | None = None
    """Asks a person for a yes to run it, where one is needed."""
    defaults: Raw = NOTHING
    """The defaults of the parameters that were not passed, by name."""
    origin: str = ""
    """Where the function is defined, unless its name says that."""
    asked_as: int = 0
    """Of a step: the number under which the code asks for it, if its address has another one."""

    @property
    def begun(self) -> tuple[str, str, Raw, str, str]:
        """The first fields of every entry that begins an effect."""
        return self.address, self.digest, self.args, self.key, self.policy

    @property
    def shown(self) -> Value | None:
        """The arguments, for people: what was passed, and the defaults of what was not."""
        return doubt.called_with(self.args, self.defaults)


def step(call: Call, past: PastCall | None) -> Program:
    """Run until it returns, or until no further attempt is due."""
    attempt = parks = 0
    if past is not None:
        attempt, parks = past.attempt, past.parks
        if past.due is not None:
            yield Pause(past.due, parking.recorded(past))
    while True:
        attempt += 1
        outcome = yield Execute(attempt)
        if type(outcome) is Returned:
            yield Append(
                StepDone(call.address, call.digest, call.args, outcome.raw, outcome.started, attempt, call.asked_as)
            )
            return Done(outcome.raw)
        if (away := parking.unavailable(outcome.error)) is not None:
            parks += 1
            due = yield After(parking.seconds_until(away, parks))
            yield Append(
                StepRaised(
                    call.address,
                    call.digest,
                    call.args,
                    outcome.raw,
                    attempt,
                    due,
                    True,
                    call.asked_as,
                    outcome.started,
                )
            )
            yield Pause(due, parking.told(call.address, away))
            continue
        wait = next_try(call.retry, outcome.error, attempt - parks)
        due = None if wait is None else (yield After(wait.seconds, wait.jitter))
        yield Append(
            StepRaised(
                call.address, call.digest, call.args, outcome.raw, attempt, due, False, call.asked_as, outcome.started
            )
        )
        if due is None:
            return Failed(outcome.raw, outcome.error)
        yield Pause(due)


def effect(call: Call, past: PastEffect | None) -> Program:
    """Run at most once by our own decision, unless a retry is declared harmless."""
    attempt, failures, expires = (0, 0, None) if past is None else (past.attempt, past.failures, past.expires)
    parks = 0 if past is None else past.parks
    if past is not None:
        ending = yield from _take_up(call, past)
        if ending is not None:
            return ending
    unproven = None if past is None else _Unproven.by(call, past)
    begun = past is not None and not (past.rewound or past.reopened or past.suspected)
    while True:
        if unproven is not None and (yield from _is_stale(call, expires)):
            ending = yield from _too_late(call, unproven, attempt)
            if ending is not None:
                return ending
            unproven = None
        attempt += 1
        before: tuple[Sight, ...] = ()
        if call.touches or call.consent is not None:
            # A retry in doubt, under its key, was approved as it is.
            ending, before = yield from _ready(call, attempt=attempt, asks=unproven is None or not begun)
            if ending is not None:
                return ending
        deadline = None if call.timeout is None else (yield After(call.timeout))
        lands = (yield After(seconds)) if (seconds := _flight(call)) else None
        if expires is None and call.key_ttl is not None:
            expires = yield After(call.key_ttl)
        # Durable before the call: if the process dies in between, the effect is known to be in doubt.
        yield Append(
            EffectIntended(
                *call.begun, attempt, deadline, before, expires, call.defaults, lands, call.marks, call.origin
            )
        )
        begun = True
        outcome = yield Execute(attempt)
        if isinstance(outcome, Raised) and (away := _away(outcome)) is not None:
            parks += 1
            due = yield After(parking.seconds_until(away, parks))
            yield from _left_behind(call, before, "which did nothing")
            yield Append(EffectRaised(call.address, outcome.raw, attempt, due, parked=True))
            if unproven is not None:
                unproven = _Unproven.after_nothing(call, outcome.raw, unproven.landing)
            yield Pause(due, parking.told(call.address, away))
            continue
        match outcome:
            case Returned(raw, _):
                # A part that cannot be observed now is accepted as found next: the outcome has to be recorded first.
                after, found = (yield Left()) if call.touches else ((), ())
                yield Append(EffectDone(call.address, raw, attempt, after, found))
                return Done(raw)
            case Unstorable(why):
                yield Append(EffectUnstorable(call.address, why, attempt))
                return Halted(doubt.unstorable(call.run, call.address, why, call.shown))
            case Raised(error, raw) if proves_not_done(error, call.not_done, guarded=outcome.proven):
                failures += 1
                wait = next_try(call.retry, error, failures)
                due = None if wait is None else (yield After(wait.seconds, wait.jitter))
                if due is None and unproven is not None:
                    # This attempt did nothing; an earlier one may have happened. "Failed" would be a guess.
                    yield Append(EffectDoubted(call.address, raw, attempt, outcome.runs_in))
                    question = doubt.did_nothing(call.run, call.address, _told(raw), call.shown)
                    return Halted(question.stop("it is not tried again"))
                yield from _left_behind(call, before, "which failed")
                yield Append(EffectRaised(call.address, raw, attempt, due))
                if due is None:
                    return Failed(raw, error)
                if unproven is not None:
                    unproven = _Unproven.after_nothing(call, raw, unproven.landing)
                yield Pause(due)
            case Raised(error, raw):
                failures += 1
                wait = after_doubt(call.retry, failures) if _retries(call) else None
                due = None if wait is None else (yield After(wait.seconds, wait.jitter))
                yield Append(EffectDoubted(call.address, raw, attempt, outcome.runs_in, due))
                secondhand = is_secondhand(error)
                nameable = isinstance(error, Exception) and not secondhand
                question = doubt.raised(call.run, call.address, _told(raw), call.shown, nameable=nameable)
                if secondhand:
                    question = question.because("a call inside of it, or another run, raised that")
                landing = Landing(call.address, lands or deadline, deadline is not None)
                ending = yield from _in_doubt(call, question, attempt, failures, outcome, due, landing)
                if ending is not None:
                    return ending
                unproven = _Unproven(question, landing) if _retries(call) else None
            case _:
                assert_never(outcome)


def _away(outcome: Raised) -> Unavailable | None:
    """What the effect itself reports away, so that it did nothing. From another call inside it, this proves nothing."""
    is_own = outcome.proven or not is_secondhand(outcome.error)
    return parking.unavailable(outcome.error) if is_own else None


def _ready(call: Call, *, attempt: int, asks: bool) -> Generator[Wish, Any, tuple[Ending | None, tuple[Sight, ...]]]:
    """Right before it runs: what it touches is as the run expects it, and as shown to the person who approved it.

    One observation is compared with both, and recorded with the intent. The next observation finds what changes while a
    person is waited for.
    """
    while True:
        before, unseen = (yield Observe()) if call.touches else ((), ())
        if unseen:
            return Halted(unobservable(call, unseen)), ()
        stop = (yield Hold(before)) if before else None
        if stop is True:
            continue
        if stop is not None:
            return Halted(stop), ()
        if call.consent is None or not asks:
            return None, before
        ending, waited = yield from call.consent(before, attempt)
        if ending is not None or not (waited and call.touches):
            return ending, before


class _Unproven(Struct, frozen=True):
    """An attempt may have happened: only its key makes another attempt safe."""

    question: doubt.Doubt
    landing: Landing
    """For how long it may still be on its way."""
    failure: Raw | None = None
    """The last attempt did nothing, on record; an earlier one may have happened."""

    @classmethod
    def by(cls, call: Call, past: PastEffect) -> _Unproven | None:
        """What earlier processes left behind, after the policy allowed another attempt."""
        if past.state is PastState.IN_DOUBT:
            return cls(doubt.recorded(call.run, past), _landing(call, past)) if _retries(call) else None
        if not past.unproven or past.error is None:
            return None
        return cls.after_nothing(call, past.error, _landing(call, past))

    @classmethod
    def after_nothing(cls, call: Call, failure: Raw, landing: Landing) -> _Unproven:
        """Another attempt did nothing: an earlier one may have happened, or may still be on its way."""
        return cls(doubt.did_nothing(call.run, call.address, _told(failure), call.shown), landing, failure)


def _told(failure: Raw) -> str:
    """As recorded: the exception itself may contain a secret."""
    kind, text = values.error_summary(failure)
    return f"{kind}: {text}"


def _retries(call: Call) -> bool:
    """Whether an attempt in doubt is followed by another one without a look at the world."""
    return call.policy == "retry"


def _is_stale(call: Call, expires: Due | None) -> Generator[Wish, Any, bool]:
    """Whether its key is too old for a safe retry; also if its age is unknown."""
    if call.key_ttl is None:
        return False
    if expires is None:
        return True
    now: Due = yield After(0.0)
    return remaining(expires, Moment(now.at, now.boot, now.boot_at)) <= 0


def _too_late(call: Call, last: _Unproven, attempt: int) -> Part:
    """The effect may have happened, and the other side may have forgotten its key by now. None: it did not happen."""
    question = last.question.because("its key is older than key_ttl, so that a retry is no longer safe")
    if last.failure is not None:
        yield Append(EffectDoubted(call.address, last.failure, attempt))
    if not call.checkable:
        return Halted(question.stop("it has no check"))
    return (yield from _looked(call, question, attempt, 0, None, last.landing))


def denied(call: Call, failure: Raw, attempt: int) -> EffectRaised:
    """A person refused. The call ends like this on every replay, whatever the code asks for by then."""
    return EffectRaised(
        call.address, failure, attempt, denied=True, digest=call.digest, args=call.args, defaults=call.defaults
    )


def recovered(call: Call, value: Raw, attempt: int) -> Program:
    """Reached after a fallback: an intact record proves that the effect was executed."""
    yield Append(EffectRecovered(*call.begun, value, attempt, call.defaults))
    return Done(value)


def suspected(call: Call, attempt: int) -> Program:
    """Reached after a fallback: its record may be among the lost ones, so it is in doubt before anything runs."""
    yield Append(EffectSuspected(*call.begun, attempt, call.defaults))
    seconds = (_flight(call) or call.in_flight) if call.checkable else 0.0
    lands = (yield After(seconds)) if seconds else None
    past = PastEffect(call.address, PastState.IN_DOUBT, 0, attempt=attempt, suspected=True, lands=lands)
    return (yield from effect(call, past))


def called_off(call: Call, past: PastEffect) -> Program:
    """The run was cancelled while this was in doubt. It does not run again; but if it happened, it can be undone."""
    if past.state is PastState.IN_DOUBT and call.checkable:
        verdict = yield from _landing(call, past).looked(patient=False)
        ending = yield from _judged(call, doubt.recorded(call.run, past), past.attempt, 0, None, verdict)
        if isinstance(ending, Done):
            return ending
    return CalledOff()


def _take_up(call: Call, past: PastEffect) -> Part:
    """Go on with an effect that was begun before. None: run it (again)."""
    match past.state:
        case PastState.RETRYING if past.unproven and not _retries(call) and past.error is not None:
            # Another run was safe by its key. The code no longer declares that, and an attempt may have happened.
            yield Append(EffectDoubted(call.address, past.error, past.attempt))
            question = doubt.did_nothing(call.run, call.address, _told(past.error), call.shown)
            return (yield from _in_doubt(call, question, past.attempt, 0, None, None, _landing(call, past)))
        case PastState.RETRYING if past.due is not None:
            yield Pause(past.due, parking.recorded(past))
        case PastState.UNSTORABLE:
            return Halted(doubt.unstorable(call.run, call.address, past.why, call.shown))
        case PastState.IN_DOUBT:
            question = doubt.recorded(call.run, past)
            if call.policy == "retry" and past.rewound and not _is_same(call, past):
                # The key stands for the earlier request: with it, another request might be done, or ignored.
                return Halted(question.stop("to run it now would be no retry: other arguments, or another run's key"))
            if call.policy == "retry" and past.spent and not (yield from _is_stale(call, past.expires)):
                return (yield from _spent(call, question, past))
            if call.policy == "fail" and past.reopened:
                # It failed because it was in doubt, and a person wants another try: only a person knows the outcome.
                return Halted(question.stop("it is not tried again before somebody knows"))
            crashed = past.error is None
            failures = 0 if crashed else past.failures
            landing = _landing(call, past)
            return (yield from _in_doubt(call, question, past.attempt, failures, None, past.due, landing))
        case PastState.CLEARED:
            pass
        case _:
            raise AssertionError(past.state)
    return None


def _is_same(call: Call, past: PastEffect) -> bool:
    """Whether running it again repeats what was done: same arguments, same key. In a fork the key is the parent's."""
    return past.executed_with in ("", call.digest) and past.key in ("", call.key)


def _flight(call: Call) -> float:
    """For how many seconds from its intent a call may be on its way, where its time-out alone does not say."""
    if not call.checkable or not call.in_flight or (call.timeout is not None and not call.lingers):
        return 0.0
    return call.in_flight + (call.timeout or 0.0)


def _landing(call: Call, past: PastEffect) -> Landing:
    if call.marks:
        return Landing(call.address, past.deadline, unmarked=_unmarked(call, past))
    return Landing.of(past, call.in_flight, lingers=call.lingers)


def _unmarked(call: Call, past: PastEffect) -> str:
    """Why it may have happened although its marker is missing; empty: it did not happen."""
    if not past.marked:
        return f"{call.marks} has no marker of it, but it is not on record that it ran as a transaction"
    if past.marked != call.marks:
        return f"{call.marks} has no marker of it, but it ran as a transaction in {past.marked}"
    if past.key != call.key:
        return f"{call.marks} has no marker of it under the key of this run, but it ran under another one"
    return ""


def _in_doubt(
    call: Call, question: doubt.Doubt, attempt: int, failures: int, failed: Raised | None, due: Due | None,
    landing: Landing,
) -> Part:  # fmt: skip
    """The declared policy decides. None: it is safe to run the effect again, with the same key.

    `failed`: how it ended, if it did so in this process; else it was cut off. `due`: when it may be tried again.
    `landing`: for how long it may still be on its way.
    """
    match call.policy:
        case "retry":
            if failures and after_doubt(call.retry, failures) is None:
                return Halted(question.stop("it was tried as often as allowed"))
            if due is not None:
                yield Pause(due)
            return None
        case "fail":
            raw = question.failure()
            yield Append(EffectRaised(call.address, raw, attempt))
            yield from _left_behind(call, (), "whose outcome is not known")
            return Failed(raw)
        case "check":
            return (yield from _looked(call, question, attempt, failures, failed, landing))
        case _:
            return Halted(question.stop("it has no check"))


def _spent(call: Call, question: doubt.Doubt, past: PastEffect) -> Part:
    """Its key was used, and its effect was reversed. The other side would repeat its answer, and do nothing."""
    if call.checkable:
        verdict = yield from _landing(call, past).looked()
        if isinstance(verdict, Happened):
            return (yield from _found(call, past.attempt, verdict.value))
        question = question.because("its check does not find it")
    return Halted(question.spent())


def _found(call: Call, attempt: int, raw: Raw) -> Part:
    """The check found that it happened. The outcome and how it left the world are one entry. With two entries and a
    crash in between, the next process would take any change it finds for the effect's own.
    """
    after, _ = (yield Left()) if call.touches else ((), ())
    yield Append(EffectSettled(call.address, True, attempt, raw, "check", after=after))
    return Done(raw)


def _looked(
    call: Call, question: doubt.Doubt, attempt: int, failures: int, failed: Raised | None, landing: Landing
) -> Part:
    """A check looks at the world. What it learns is on record before anything is done about it."""
    verdict = yield from landing.looked()
    return (yield from _judged(call, question, attempt, failures, failed, verdict))


def _judged(
    call: Call, question: doubt.Doubt, attempt: int, failures: int, failed: Raised | None, verdict: Verdict
) -> Part:
    match verdict:
        case Happened(raw):
            return (yield from _found(call, attempt, raw))
        case NotHappened():
            yield Append(EffectSettled(call.address, False, attempt, learned_by="check"))
            return (yield from _as_before(call)) or (yield from _try_again(call, attempt, failures, failed))
        case Partial(why) if call.undoable:
            ending = yield Repair(attempt)
            if isinstance(ending, Halted | CalledOff):
                return ending
            if isinstance(ending, Failed):
                return Halted(question.stop(f"it happened in part ({why}), and undoing that failed"))
            yield Append(EffectSettled(call.address, False, attempt, learned_by="check, after undoing a part"))
            return (yield from _as_before(call))
        case Partial(why):
            return Halted(question.stop(f"its check says that it happened in part: {why}"))
        case Unknown(why):
            return Halted(question.stop(f"its check could not tell: {why}"))
        case _:
            raise AssertionError(verdict)


def _left_behind(call: Call, before: tuple[Sight, ...], how: str) -> Part:
    """A call that ended badly may still have touched the world. What the run itself did is not drift."""
    after, _ = (yield Observe()) if call.touches else ((), ())
    if after != before:
        yield Append(WorldSeen(after, why=f"{call.address}, {how}"))
    return None


def _as_before(call: Call) -> Part:
    """It did not happen, so what it touches must be as before; if not, others changed it."""
    stop = (yield Verify()) if call.touches else None
    return None if stop is None else Halted(stop)


def unobservable(call: Call, unseen: tuple[str, ...]) -> Stop:
    message = (
        f"run {call.run}, {call.address}: what it touches cannot be observed, so it was not run: {'; '.join(unseen)}. "
        "Once it can be, or the code no longer names it in touches=, resume"
    )
    return Stop("Drifted", message, call.address, {"unseen": "; ".join(unseen)})


def _try_again(call: Call, attempt: int, failures: int, failed: Raised | None) -> Part:
    """It did not happen. After a crash it runs again; after a failure, only while retries are left."""
    if failed is None:
        return None
    wait = next_try(call.retry, failed.error, failures)
    due = None if wait is None else (yield After(wait.seconds, wait.jitter))
    yield Append(EffectRaised(call.address, failed.raw, attempt, due))
    if due is None:
        return Failed(failed.raw, failed.error)
    yield Pause(due)
    return None
