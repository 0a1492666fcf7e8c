"""One call that the journal does not answer: the answers for its program, and its outcome.

The program decides (`core.programs.calls`), a driver performs, and this class stands between them: the place in which
the user's function runs, its check and its undo, what it touches, and its outcome as recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Final

from msgspec import Raw, Struct

from surefoot.core import values
from surefoot.core.clients import Known, known
from surefoot.core.command import (
    Append,
    Done,
    Ending,
    Execute,
    Failed,
    Halted,
    Hold,
    Idle,
    Left,
    Observe,
    Outcome,
    Program,
    Raised,
    Returned,
    Trace,
    Unstorable,
    Wish,
)
from surefoot.core.doubt import Doubt
from surefoot.core.entry import NOTHING, Drift, EffectIntended, Sight, StepStarted, Stop
from surefoot.core.history import CHILD, DOUBTFUL, Past, PastCall, PastEffect, PastState
from surefoot.core.programs.calls import Call, called_off, effect
from surefoot.core.programs.landing import GONE
from surefoot.core.verdict import Happened, Partial, Unknown, Verdict, judged
from surefoot.engine.declare.call_spec import CallSpec
from surefoot.engine.declare.context import Args, Kwargs
from surefoot.engine.declare.current import Inside, Place
from surefoot.engine.declare.defaults import hides
from surefoot.engine.declare.drifts import checked_witnesses, observe
from surefoot.engine.process.observer import AnswerLost, observers
from surefoot.engine.process.observer import Call as Made
from surefoot.engine.session import late
from surefoot.engine.session.effects_done import note
from surefoot.engine.session.fate import traced
from surefoot.errors import Fenced, Stopped, StoreUnavailable, ValueRejected

if TYPE_CHECKING:
    from surefoot.engine.session.session import Session


_CALLERS: Final = frozenset({"surefoot.engine.drive.acts", "surefoot.engine.drive.acts_async"})
"""The modules in which user functions are called."""


class Attempt(Struct, eq=False):
    """A call that the journal does not answer, as the performers make it. It has all members of a `Frame`."""

    session: Session
    place: Place
    spec: CallSpec
    call: Call
    args: Args
    kwargs: Kwargs
    past: PastCall | None
    program: Program
    supervised: bool = False
    """Whether a person has to approve it first."""
    ending: Ending | None = None
    inside: Any = None
    """Where user code of this call runs, or ran last: its function or its check."""
    _touched: tuple[Any, ...] | None = None
    _untouched: bool = True
    _version: int = 0
    """The version of the run's expectation when this call last observed what it touches."""
    _drift: list[Drift] = []

    shields: ClassVar = True

    def overtaken(self) -> Program | None:
        """While this process claimed the run or waited, a person may have settled the effect that is in doubt here."""
        past = self.session.state.effect(self.call.address)
        if past is None or not self.is_settled():
            return None
        self.past = past
        if (ending := recorded_ending(past)) is not None:
            return _ended(ending)
        if self.session.stops.is_called_off(self.place):
            return called_off(self.call, past)
        return effect(self.call, past)  # The settlement came first: the result of our check does not count.

    def is_settled(self) -> bool:
        """Whether a visitor has settled the effect that was in doubt when this began."""
        past = self.session.state.effect(self.call.address)
        return past is not None and past.visited != (self.past.visited if isinstance(self.past, PastEffect) else 0)

    def own(self) -> tuple[Args, Kwargs]:
        """The arguments for user code, as recorded: earlier user code may have changed those at hand."""
        call = self.call
        if self._untouched and not hides(call.args):
            self._untouched = False
            if call.defaults is NOTHING:
                return self.args, self.kwargs
            return self.spec.binder.with_defaults(self.args, self.kwargs, call.defaults)
        return self.spec.own(self.args, self.kwargs, call.args, call.defaults)

    def enter(self, attempt: int) -> Place:
        """The place in which the user's function is executed."""
        if self.spec.kind == "step":
            call = self.call
            self.session.journal.lazily(StepStarted(call.address, call.digest, call.args, attempt))
        place = self._entered(self.spec.kind, attempt)
        if attempt > 1:
            observers.call_retried(self._made())
        if observers.hear_calls:
            observers.call_began(self._made())
        return place

    def _entered(self, kind: str, attempt: int) -> Place:
        call, place = self.call, self.place
        self.inside = Inside(kind, call.address, call.key, attempt, call.digest)
        return Place(self.session, place.scope, place.owner, inside=self.inside, line=place.line)

    def lapsed(self) -> bool:
        """Whether other processes may consider this one dead: then no effect begins, though its intent is durable."""
        return self.spec.kind == "effect" and not self.session.runtime.store.holds()

    def looks_first(self) -> bool:
        """An unknown check leaves no trace, and neither does an open question: nothing new has happened."""
        past = self.past
        in_doubt = past is not None and past.state is PastState.IN_DOUBT
        return self.supervised or (in_doubt and self.spec.on_crash in ("check", "retry"))

    def needs_claim(self, wish: Wish) -> bool:
        """Whether this wish changes something. Looking, or waiting for an answer, needs no claim."""
        return not isinstance(wish, Idle) and not (self.supervised and isinstance(wish, Observe | Hold))

    def held_back(self, wish: Wish) -> Program | None:
        """Another branch found changed code: no effect begins from then on, not even a retry, and no child.

        A cancelled run is still undone: that needs no new call of the code.
        """
        if isinstance(wish, Append):
            begins = type(wish.entry) is EffectIntended
        else:
            begins = isinstance(wish, Execute) and self.spec.name == CHILD
        stop = self.session.stops.changed_code() if begins and self.session.state.cancel is None else None
        return None if stop is None else _ended(Halted(stop))

    def looking(self) -> Place:
        """The place in which a check looks: it may ask for the key, but for no recorded value."""
        made = self.inside.attempt if self.inside is not None else 0
        place = self._entered("check", max(1, made, self.past.attempt if self.past is not None else 0))
        if observers.hear_calls:
            observers.check_began(self._made())
        return place

    def require_check(self) -> Callable[..., Any]:
        if self.spec.check is None:
            raise self.session.stops.misuse(
                f'effect {self.spec.name} says on_crash="check" but has no check: decorate one with '
                f"@{self.spec.name}.check"
            )
        return self.spec.check

    def busy(self) -> Verdict | None:
        """A call that used up its time may still be running in this process: then its check is unknown."""
        if not self.session.runtime.still_running(self.call.key):
            return None
        return Unknown("its last attempt is still running in this process, after its time was over")

    def abandon(self, is_alive: Callable[[], bool]) -> None:
        """An attempt runs on although its call has ended. Until it ends, no check looks in this process."""
        self.session.runtime.leave_running(self.call.key, is_alive)

    def landed(self, number: int, error: BaseException | None) -> None:
        """An abandoned attempt has ended after all."""
        if self.spec.kind == "effect":
            late.landed(self.session, self.call.address, number, error)

    def judged(self, returned: object) -> Verdict:
        """The verdict of the check, its value encoded."""
        verdict = self._judged(returned)
        if observers.hear_calls:
            observers.check_ended(self._made(), verdict)
        return verdict

    def _judged(self, returned: object) -> Verdict:
        self._check_misuse()
        verdict = judged(returned)
        if isinstance(verdict, Partial | Unknown):
            verdict = type(verdict)(self.session.mask(verdict.why))
        if not isinstance(verdict, Happened):
            return verdict
        try:
            return Happened(Raw(values.encode(verdict.value)))
        except ValueRejected as error:
            return Unknown(f"the value that its check gave cannot be stored: {error}")

    def seen(self, wish: Trace | Observe | Hold | Left) -> Any:
        """Answers a program's question about the world, where no user code of the call is needed."""
        if isinstance(wish, Trace):  # May the process that began the last attempt still be in it?
            return traced(self.session, self.past) if isinstance(self.past, PastEffect) else GONE
        if isinstance(wish, Observe):
            return self.sights()
        return self.held(wish.sights) if isinstance(wish, Hold) else self.left()

    def sights(self) -> tuple[tuple[Sight, ...], tuple[str, ...]]:
        """What the effect touches, as it is now; and the witnesses that could not be observed."""
        if self._touched is None:  # Asked for once: the same witnesses are observed before and after.
            self._touched = self._witnesses()
        self._version = self.session.state.world.version
        unwatched = self.session.state.world.unwatched
        return observe([witness for witness in self._touched if witness.name not in unwatched])

    def held(self, sights: tuple[Sight, ...]) -> Stop | bool | None:
        """Compares the observation with what the run expects: None, or the stop. True: observe again.

        Other branches may have recorded changes of theirs since the observation began. A difference is foreign if a
        second observation, begun when all those changes were known, finds the very same.
        """
        session = self.session
        drift, version = ([], 0) if session.dry else session.world.unlike(sights)
        before, self._drift = self._drift, drift
        if drift and version != self._version and drift != before:
            return True
        return session.world.judge_before(self.call.address, drift) if drift else None

    def left(self) -> tuple[tuple[Sight, ...], tuple[Sight, ...]]:
        """How the effect left what it touches: as declared by the effect, if it does, else as found."""
        found, _ = self.sights()
        if self.spec.leaves is None:
            return found, ()
        before = self.session.state.world.touched(self.call.address)
        args, kwargs = self.spec.binder.ordered(*self.own())
        left = self.spec.leaves(_parts(before), _parts(found), *args, **kwargs)
        names = {sight.witness for sight in found}
        seen = (*found, *(sight for sight in before if sight.witness not in names))
        after = tuple(_with(sight, left) for sight in seen)
        return after, tuple(sight for sight in found if sight.parts != _with(sight, left).parts)

    def _witnesses(self) -> tuple[Any, ...]:
        try:
            return checked_witnesses(self.spec.touched_by(*self.own()))
        except Exception as error:
            where = f"run {self.session.run}, {self.call.address}: touches= names no witness"
            raise self.session.stops.misuse(f"{where}: {type(error).__name__}: {error}") from error

    def repair(self, attempt: int) -> Ending | Attempt:
        """The undo of an effect that happened in part, as an effect with an address of its own."""
        undo, place = self.spec.undo, self.place
        if undo is None:
            raise AssertionError(self.call.address)
        address = f"{self.call.address}.repair{attempt}"
        args, kwargs = self.spec.undoing(*self.own(), None)
        before, place.undoing = place.undoing, True  # In a cancelled run too.
        try:
            return self.session.begin_at(place, address, undo, args, kwargs)
        finally:
            place.undoing = before

    def cut_short(self) -> None:
        """The caller was cancelled, so nothing gets the outcome. What the call did, and open questions, still count."""
        place, session, address = self.place, self.session, self.call.address
        if isinstance(self.ending, Done):
            note(place, self.spec, self.args, self.kwargs, self.ending, self.call)
        elif isinstance(self.ending, Halted):
            session.stops.stopped(place, self.ending.stop)
        elif self.ending is None and not session.stops.is_given_up():
            past = session.state.effect(address)
            if past is not None and past.state in DOUBTFUL:
                question = Doubt(session.run, address, "it may have happened", self.call.args)
                session.stops.stopped(place, question.stop("its caller was cancelled before that was found out"))

    def returned(self, value: object, started: int) -> Outcome:
        self._check_misuse()
        outcome: Returned | Unstorable
        try:
            outcome = Returned(Raw(values.encode(value)), started)
        except ValueRejected as error:
            if self.spec.kind != "effect":
                where = f"run {self.session.run}, {self.call.address}: its result cannot be stored: {error}"
                raise self.session.stops.misused(ValueRejected(where, path=error.path)) from error
            outcome = Unstorable(self.session.mask(str(error)))
        return self._told(outcome)

    def raised(self, error: BaseException, started: int) -> Outcome:
        return self._told(self._raised(error, started))

    def _made(self) -> Made:
        """This attempt, as observers get it."""
        session, inside = self.session, self.inside
        return Made(session.run, session.state.segment, inside.address, inside.attempt, inside.key, self.spec)

    def _told(self, outcome: Outcome) -> Outcome:
        if observers.hear_calls:
            try:
                observers.call_ended(self._made(), outcome)
            except AnswerLost as lost:
                return self._raised(lost.error, getattr(outcome, "started", 0))
        return outcome

    def _raised(self, error: BaseException, started: int) -> Raised:
        self._check_misuse()
        if isinstance(error, Stopped | StoreUnavailable | Fenced):
            # Another run's stop, or a store in trouble: no statement about this call, and not its outcome.
            raise self.session.stops.misused(error)
        runtime = self.session.runtime
        runs_in = runtime.store.worker if runtime.still_running(self.call.key) else ""
        proven = self.spec.kind == "effect" and self._did_nothing(error)
        return Raised(error, Raw(values.encode_error(error, self.session.mask)), runs_in, proven, started)

    def _did_nothing(self, error: BaseException) -> bool:
        """Whether the origin of the exception proves that nothing was done."""
        from surefoot.core.guard import is_guard

        if self.inside.rolled_back is error:
            return True
        # User code that raises such an exception by hand means it.
        says_otherwise = isinstance(error, BaseExceptionGroup) or known(error) is Known.UNSURE
        return not says_otherwise and is_guard(error, self.spec.guarded, _CALLERS)

    def _check_misuse(self) -> None:
        """Misuse inside this very call. Trouble elsewhere in the run must not prevent the record of its outcome."""
        if self.inside.misuse is not None:
            raise self.inside.misuse


def _ended(ending: Ending) -> Program:
    """A program without wishes."""
    yield from ()
    return ending


def _parts(sights: Iterable[Sight]) -> dict[str, str]:
    return {part: value for sight in sights for part, value in sight.parts.items()}


def _with(sight: Sight, left: dict[str, str]) -> Sight:
    return Sight(sight.witness, {part: left.get(part, value) for part, value in sight.parts.items()}, sight.spec)


def recorded_ending(past: Past) -> Ending | None:
    """How a recorded call ended; None: it has not ended."""
    if past.state is PastState.DONE and past.value is not None:
        return Done(past.value)
    if past.state is PastState.FAILED and past.error is not None:
        return Failed(past.error)
    return None
