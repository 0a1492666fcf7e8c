"""One call that the journal does not answer: what its program may ask of it, and what it makes of the outcome.

The program decides (`core.programs.calls`), a driver carries out, and this stands between them: the place in which the
user's function runs, its check and its undo, what it touches, and its outcome as it is recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from surefoot.core import values
from surefoot.core.command import (
    After,
    Done,
    Ending,
    Failed,
    Look,
    Observe,
    Outcome,
    Pause,
    Program,
    Raised,
    Returned,
    Unstorable,
    Wish,
)
from surefoot.core.entry import Sight, StepStarted
from surefoot.core.history import Past, PastState
from surefoot.core.programs.calls import Call, called_off, effect
from surefoot.core.timer import remaining
from surefoot.core.verdict import Happened, Unknown, Verdict, judged
from surefoot.engine import people
from surefoot.engine.current import Inside, Place
from surefoot.engine.meters import meters
from surefoot.engine.spec import CallSpec, hides
from surefoot.engine.worldview import checked_witnesses, observe
from surefoot.errors import Fenced, Stopped, StoreUnavailable, UsageError, ValueRejected
from surefoot.store.liveness import is_ours, vouched

if TYPE_CHECKING:
    from surefoot.engine.session import Session


class Attempt:
    """A call that is not answered by the journal: what the drivers carry out."""

    __slots__ = (
        "_begun", "_touched", "_untouched", "args", "call", "ending", "inside", "kwargs", "past", "place", "program",
        "session", "spec", "supervised",
    )  # fmt: skip

    def __init__(
        self, session: Session, place: Place, spec: CallSpec, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any],
        past: Past | None, program: Program, *, supervised: bool = False,
    ) -> None:  # fmt: skip
        self.supervised = supervised
        """Whether a person has to agree first."""
        self.session = session
        self.place = place
        self.spec = spec
        self.call = call
        self.args = args
        self.kwargs = kwargs
        self.past = past
        self.program = program
        self._begun = None if past is None else past.state
        self._touched: tuple[Any, ...] | None = None
        self._untouched = True
        self.ending: Ending | None = None
        """How the call ended, for a caller that was cancelled meanwhile."""

    def settled_meanwhile(self) -> Ending | None:
        """While the run was being claimed, somebody may have settled the very effect that is in doubt here."""
        past = self.past
        if past is None or past.state is self._begun:
            return None
        self._begun = past.state
        if (ending := recorded_ending(past)) is None and self.session.is_called_off(self.place):
            self.program = called_off(self.call, past)
        elif ending is None:
            self.program = effect(self.call, past)  # Their word came first: what our check saw does not count.
            if self.session.needs_approval(self.spec, past):
                self.program = people.supervised(self.place, self.call, self.spec.name, self.program)
        return ending

    def own(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments for user code, as they were recorded: whoever had them before may have changed them."""
        if self._untouched and not hides(self.call.args):
            self._untouched = False
            return self.args, self.kwargs
        return self.spec.own(self.args, self.kwargs, self.call.args)

    def enter(self, attempt: int) -> Place:
        """The place in which the user's function is executed."""
        call, session = self.call, self.session
        if self.spec.kind == "step":
            session.journal.lazily(StepStarted(call.address, call.digest, call.args, attempt))
        if attempt > 1:
            meters.retried()
        self.inside = Inside(self.spec.kind, call.address, call.key, attempt)
        return Place(session, self.place.scope, self.place.owner, inside=self.inside, line=self.place.line)

    def lapsed(self) -> bool:
        """Whether others may take this process for dead: then no effect begins, though its intent is durable."""
        return self.spec.kind == "effect" and not self.session.runtime.store.holds()

    def looks_first(self) -> bool:
        """A check that cannot tell leaves no trace, nor does a question that is open: nothing new has happened."""
        past = self.past
        in_doubt = past is not None and past.state is PastState.IN_DOUBT
        return self.supervised or (in_doubt and self.spec.on_crash in ("check", "retry"))

    def needs_claim(self, wish: Wish) -> bool:
        """Whether this wish changes something. Whoever only looks, or waits for an answer, need not drive the run."""
        return not isinstance(wish, Look | Pause | After) and not (self.supervised and isinstance(wish, Observe))

    def looking(self) -> Place:
        """The place in which a check looks: it may ask for the key, and for nothing that is recorded."""
        call = self.call
        self.inside = Inside("check", call.address, call.key, max(1, self.past.attempt if self.past is not None else 1))
        return Place(self.session, self.place.scope, self.place.owner, inside=self.inside, line=self.place.line)

    def require_check(self) -> Callable[..., Any]:
        if self.spec.check is None:
            raise self.session.misused(
                UsageError(
                    f'effect {self.spec.name} says on_crash="check" but has no check: decorate one with '
                    f"@{self.spec.name}.check"
                )
            )
        return self.spec.check

    def busy(self) -> Verdict | None:
        """A call that used up its time may still be running in this process: then nobody can say."""
        if self.session.runtime.still_running(self.call.key):
            return Unknown("its last attempt is still running in this process, after its time was over")
        return None

    def abandon(self, is_alive: Callable[[], bool]) -> None:
        """An attempt goes on although nobody waits for it any more: for as long, nobody in this process checks."""
        self.session.runtime.leave_running(self.call.key, is_alive)

    def judged(self, returned: object) -> Verdict:
        """What the check said, its value encoded."""
        self._check_misuse()
        verdict = judged(returned)
        if not isinstance(verdict, Happened):
            on_its_way = "" if isinstance(verdict, Unknown) else self._on_its_way()
            return Unknown(on_its_way) if on_its_way else verdict
        try:
            return Happened(Raw(values.encode(verdict.value)))
        except ValueRejected as error:
            return Unknown(f"the value that its check gave cannot be stored: {error}")

    def _on_its_way(self) -> str:
        """Why what is not there yet may still come: the attempt of an earlier process has not ended for certain."""
        past = self.past
        if past is None or past.state is not PastState.IN_DOUBT:
            return ""
        if past.deadline is not None and remaining(past.deadline, self.session.now()) > 0:
            return "the call was given more time than has passed, and may still be on its way"
        worker, store = past.runs_in, self.session.runtime.store
        if not worker or worker == store.worker or is_ours(worker) or not store.alive(worker):
            return ""  # Those of this process are known one by one (`busy`).
        alive = vouched(store, worker)
        return f"the call may still be running in {past.claimant}, {alive}; end that process and resume"

    def sights(self) -> tuple[tuple[Sight, ...], tuple[str, ...]]:
        """What the effect touches, as it is now; and what of it could not be observed."""
        if self._touched is None:  # Asked for once: what is looked at afterwards is what was looked at before.
            self._touched = self._witnesses()
        unwatched = self.session.state.world.unwatched
        return observe([witness for witness in self._touched if witness.name not in unwatched])

    def _witnesses(self) -> tuple[Any, ...]:
        try:
            return checked_witnesses(self.spec.touched_by(*self.own()))
        except Exception as error:
            where = f"run {self.session.run}, {self.call.address}: touches= names no witness"
            misuse = UsageError(f"{where}: {type(error).__name__}: {error}")
            raise self.session.misused(misuse) from error

    def repair(self, attempt: int) -> Ending | Attempt:
        """The undo of what this effect did in part, as an effect with an address of its own."""
        undo, place = self.spec.undo, self.place
        if undo is None:
            raise AssertionError(self.call.address)
        address = f"{self.call.address}.repair{attempt}"
        args, kwargs = self.spec.undoing(*self.own(), None)
        before, place.undoing = place.undoing, True  # Also in a cancelled run.
        try:
            return self.session.begin_at(place, address, undo, args, kwargs)
        finally:
            place.undoing = before

    def returned(self, value: object, started: int) -> Outcome:
        self._check_misuse()
        try:
            return Returned(Raw(values.encode(value)), started)
        except ValueRejected as error:
            if self.spec.kind == "effect":
                return Unstorable(str(error))
            where = f"run {self.session.run}, {self.call.address}: its result cannot be stored: {error}"
            raise self.session.misused(ValueRejected(where, path=error.path)) from error

    def raised(self, error: BaseException) -> Outcome:
        self._check_misuse()
        if isinstance(error, Stopped | StoreUnavailable | Fenced):
            # Another run's stop, or a store's trouble: it says nothing about this call, and is not its outcome.
            raise self.session.misused(error)
        runtime = self.session.runtime
        runs_in = runtime.store.worker if runtime.still_running(self.call.key) else ""
        return Raised(error, Raw(values.encode_error(error)), runs_in)

    def _check_misuse(self) -> None:
        """Misuse inside this very call. Trouble elsewhere in the run must not keep its outcome off the record."""
        if self.inside.misuse is not None:
            raise self.inside.misuse


def recorded_ending(past: Past) -> Ending | None:
    """How a recorded call ended; None while it has not."""
    if past.state is PastState.DONE and past.value is not None:
        return Done(past.value)
    if past.state is PastState.FAILED and past.error is not None:
        return Failed(past.error)
    return None
