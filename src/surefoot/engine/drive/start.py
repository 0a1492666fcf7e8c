"""Starting is resuming: the way from `.run(id, …)` to a result, a failure or a stop.

First try to create the run, in one append. If it is there already, read it: ended runs return their result, runs with
an open question raise the same stop, runs that a living process drives are waited for, all others are taken up. A run
that is there, or taken, is an ordinary event, and so a value.
"""

from __future__ import annotations

import time
from contextlib import suppress
from functools import partial
from typing import Any, assert_never

from msgspec import Struct

from surefoot.core.claim import Claimed, Driven, Exists, Lost, Refusal
from surefoot.core.command import Append, Claim, Do, Done, Failed, Halted, Invoke, Nap, Returned, Routine, T, Within
from surefoot.core.entry import NOTHING, Due, RunCreated, RunReleased
from surefoot.core.state import ENDED, RunState
from surefoot.core.stops import revive
from surefoot.core.timer import remaining
from surefoot.engine.declare import current
from surefoot.engine.declare.plan import (
    Options,
    Plan,
    check_id,
    created_entry,
    next_arguments,
    recorded_arguments,
    require_same,
)
from surefoot.engine.declare.signals import ContinueSignal, LostSignal
from surefoot.engine.drive import claimant, fallback, parents, perform
from surefoot.engine.drive.conclusion import Suspended, conclude
from surefoot.engine.drive.outcome import answer, not_found, recorded_end
from surefoot.engine.process import journal
from surefoot.engine.process.config import FALLBACK, alert_error, log, settings
from surefoot.engine.process.runtime import Runtime, runtime_of
from surefoot.engine.process.whereabouts import at
from surefoot.engine.session.claim import Birth
from surefoot.engine.session.frame import Frame
from surefoot.engine.session.session import Session
from surefoot.errors import Cancelled, JournalCorrupt, SurefootError, UsageError
from surefoot.store.contract import Head

FIRST_NAP, LONGEST_NAP = 0.01, 0.25
QUIET_SECONDS = 1.0
"""A longer wait for another process is logged."""
MOST_FALLBACKS = 3
"""The limit of one start. Damage that returns each time is a broken disk."""
CLOCK_SLACK_MICROS = 60_000_000
NOTHING_RETURNED = Returned(NOTHING, 0)


Drive = Done | Failed | Halted | Suspended | Exists | Lost | BaseException
"""How a drive ended. The caller gets the exception: the run was cancelled, interrupted, or in trouble."""


Found = tuple[RunState, Head] | None


class Answer(Struct, frozen=True):
    """The run has ended, and this is its result."""

    value: Any


Tried = Answer | Exists | Suspended | Lost | Driven


class Parked(Struct, frozen=True):
    """Something that the workflow itself needs is away until `due`."""

    due: Due
    why: str


class Begun(Struct, frozen=True):
    """A hosted unit that was executed, and has asked for its run on the way."""

    session: Session
    outcome: Returned | BaseException


class Start:
    """A single `.run(id, …)`."""

    def __init__(
        self, runtime: Runtime, plan: Plan, run: str, options: Options, found: Found = None, begun: Begun | None = None
    ) -> None:
        check_id(run)
        _refuse_self(run)
        self._runtime = runtime
        self._plan = plan
        self._run = run
        self._options = options
        self._creates = plan.args is not None
        self._found = found
        """The run as just read."""
        self._begun = begun
        self._session: Session | None = None
        self._driver = ""
        """The process that is waited for, in words."""
        self._patience = None if options.wait_seconds is None else time.monotonic() + options.wait_seconds
        self._nap, self._napped = FIRST_NAP, 0.0
        self._fallbacks = self._hearings = 0
        self._told_until: Due | None = None

    def loop(self) -> Routine[Any]:
        """From the first look to the result."""
        while True:
            self._session, self._driver = None, "this process"
            try:
                outcome = yield from self._tried()
            except JournalCorrupt as error:
                yield from self._stepped_back(error)
                continue
            match outcome:
                case Answer(value):
                    return value
                case Exists():
                    self._creates = False  # The usual path of a resume: read the existing run.
                case Suspended():
                    self._creates = False  # Something that the workflow itself needs is away: wait for it here.
                case Parked(due, why):
                    yield from self._parked(due, why)
                case Lost() | Driven():
                    yield from self._waited()
                case _:
                    assert_never(outcome)

    def _tried(self) -> Routine[Tried | Parked]:
        """Create the run, or read the existing one."""
        if self._begun is not None:
            return (yield from self._ended(self._begun))
        hosted = self._plan.hosted
        if self._creates and hosted is None:
            return (yield from self._driven(RunState(self._run), None, created_entry(self._plan, self._options)))
        runtime, options = self._runtime, self._options
        found, self._found = self._found, None
        found = found or (yield Do(partial(journal.load, runtime.store, self._run)))
        if found is None:
            if hosted is not None:
                return (yield from self._driven(RunState(self._run), None))
            raise not_found(self._run, runtime.store.url)
        state, head = found
        require_same(self._plan, state, runtime.store)
        if state.status in ENDED:
            return Answer(recorded_end(runtime.store, state))
        warn_of_clock(runtime, state)
        # Waiting here is useless if the caller does not wait, or if a person has to fix a failure first.
        is_for_people = not options.wait_seconds or any(stop.reason == "WorkflowFailed" for stop in state.stops)
        if is_for_people and state.needs_answer(partial(is_due, runtime)):
            raise revive(state.stops, self._run, runtime.store.url)
        if state.parked and state.cancel is None and state.due is not None and not is_due(runtime, state.due):
            return Parked(state.due, state.parked)
        self._driver = claimant.described(state)
        if claimant.is_driven(runtime, state):
            return Driven()
        return (yield from self._driven(state, head))

    def _driven(self, state: RunState, head: Head | None, created: RunCreated | None = None) -> Routine[Tried]:
        session = session_for(self._runtime, self._plan, state, head, wait_seconds=self._options.wait_seconds or 0.0)
        session.lookup.hearings, self._session = self._hearings, session
        if head is None and self._plan.hosted is not None:
            session.claim.birth = Birth(created_entry(self._plan, self._options), self._plan.hosted.ready)
        outcome = yield from enlisted(session, _begun(session, self._plan, created))
        self._hearings += session.lookup.is_unheard
        if isinstance(outcome, Exists | Suspended | Lost | Driven):
            return outcome
        return Answer(answer(session, outcome))

    def _ended(self, begun: Begun) -> Routine[Tried]:
        """What was executed already has come to its end."""
        session, self._session = begun.session, begun.session
        self._begun, self._creates = None, False
        ending = yield Within(Frame(session), _enlisted(session, _concluded(session, begun.outcome)))
        if isinstance(ending, Exists | Suspended | Lost | Driven):
            return ending
        return Answer(answer(session, ending))

    def _stepped_back(self, error: JournalCorrupt) -> Routine[None]:
        self._fallbacks += 1
        if self._fallbacks > MOST_FALLBACKS:
            _tell(self._runtime, self._run, error)
            raise error
        self._runtime = yield Do(partial(step_back, self._runtime, self._plan, self._run, error, self._session))
        self._creates = False

    def _parked(self, due: Due, why: str) -> Routine[None]:
        """Sleep in the process until it is time to look again, or a visitor has written an entry."""
        runtime = self._runtime
        if due != self._told_until:
            left = remaining(due, runtime.clock.read())
            log.warning("run %s: waiting for %.0f s: it is parked: %s", self._run, left, why)
        self._told_until = due
        seen = yield Do(runtime.store.changes)
        while (left := remaining(due, runtime.clock.read())) > 0 and (yield Do(runtime.store.changes)) == seen:
            yield Nap(runtime.clock.nap(left))

    def _waited(self) -> Routine[None]:
        """This process or another one already drives the run: wait for it."""
        if self._patience is not None and time.monotonic() > self._patience:
            waited = self._options.wait_seconds
            raise TimeoutError(f"run {self._run} is still driven by {self._driver}; waited {waited:g} s for it")
        if self._napped < QUIET_SECONDS <= self._napped + self._nap:
            who = self._driver
            log.warning("run %s: waiting for %s, which drives it or is not known to be dead yet", self._run, who)
        yield Nap(self._nap)
        self._napped += self._nap
        self._nap = min(self._nap * 1.5, LONGEST_NAP)


def warn_of_clock(runtime: Runtime, state: RunState) -> None:
    if state.newest_at > runtime.clock.now() + CLOCK_SLACK_MICROS:
        log.warning("run %s: the clock is behind the newest recorded time; order does not depend on it", state.run)


def is_due(runtime: Runtime, due: Due) -> bool:
    return remaining(due, runtime.clock.read()) <= 0


def step_back(runtime: Runtime, plan: Plan, run: str, error: JournalCorrupt, session: Session | None = None) -> Runtime:
    """Go back to the longest valid prefix of a damaged run, if that is wanted. Returns the runtime to go on with."""
    # Damage that user code met in another run or store is not repaired here.
    is_ours = session is None or session.stops.own_damage is error
    if not is_ours or (plan.definition.on_corruption or settings.on_corruption) != FALLBACK:
        _tell(runtime, run, error)
        raise error
    return runtime_of(fallback.step_back(runtime.store, runtime.clock, run, error))


def _tell(runtime: Runtime, run: str, error: JournalCorrupt) -> None:
    error.name_store(runtime.store.url)
    alert_error(error, run)


# -- one drive -------------------------------------------------------------------------------------------


def session_for(
    runtime: Runtime, plan: Plan, state: RunState, head: Head | None, *, wait_seconds: float = 0.0,
    unwind_seconds: float | None = None,
) -> Session:  # fmt: skip
    session = Session(runtime, state, head, wait_seconds=wait_seconds, unwind_seconds=unwind_seconds)
    session.follow(plan.definition.watch, plan.definition.on_drift, plan.definition.approve, plan.definition.on_failure)
    # What a framework executes is no workflow code: what it does besides its calls would be done once more.
    session.rehearsed = plan.hosted is not None
    return session


def enlisted(session: Session, part: Routine[T]) -> Routine[T | Driven | Refusal]:
    """Do this as the one session of this process that drives the run. Release the claim if this is cut off."""
    return (yield Within(Frame(session), _enlisted(session, part))) if session.runtime.enlist(session) else Driven()


def _enlisted(session: Session, part: Routine[T]) -> Routine[T | Refusal]:
    try:
        return (yield from part)
    except BaseException as error:
        if isinstance(error, LostSignal) and session.stops.lost is not None:
            return session.stops.lost  # Only the end was missing, and another process wrote it first.
        if session.claim.live and not session.journal.closed:
            with suppress(SurefootError):
                yield Append(RunReleased(f"interrupted by {type(error).__name__}"))
        raise
    finally:
        session.runtime.discharge(session)


def _begun(session: Session, plan: Plan, created: RunCreated | None) -> Routine[Drive]:
    """An existing run is claimed only when something new has to happen."""
    claim = (yield Claim(created)) if created is not None else Claimed()
    return (yield from drive(session, plan)) if isinstance(claim, Claimed) else claim


def drive(session: Session, plan: Plan) -> Routine[Drive]:
    """Rehearse, look at the world, run the function, record its end; repeated while it continues as new."""
    if session.state.calls and not session.rehearsed:
        from surefoot.engine.drive import dry_run  # Few starts are resumes.

        yield from dry_run.rehearsing(session, plan)
    if not session.stops.found and session.state.cancel is None:
        drifted = yield from session.world.verified(resuming=True)
        session.stops.found += [] if drifted is None else [drifted]
    stands = bool(session.stops.found)
    ending = (yield from conclude(session, NOTHING_RETURNED)) if stands else (yield from _invoked(session, plan))
    while isinstance(ending, ContinueSignal):
        try:
            request = next_arguments(session.run, plan, ending)
        except UsageError as misuse:
            ending = yield from conclude(session, session.stops.misused(misuse))
            if isinstance(ending, BaseException):
                ending.__cause__ = misuse.__cause__
            return ending
        yield Append(session.continued(request))
        session.begin_segment()
        ending = yield from _invoked(session, plan)
    yield from _told_parent(session, ending)
    return ending


def _invoked(session: Session, plan: Plan) -> Routine[Drive]:
    if plan.hosted is not None:
        body = plan.hosted.body
    else:
        args, kwargs = recorded_arguments(session, plan)
        body = partial(plan.definition.fn, *args, **kwargs)
    outcome = yield Invoke(session, body)
    return (yield from _concluded(session, outcome))


def _concluded(session: Session, outcome: Returned | BaseException) -> Routine[Drive]:
    return session.stops.lost or (yield from conclude(session, outcome))


def wake(runtime: Runtime, plan: Plan, run: str, options: Options) -> Session:
    """The session of a hosted unit that comes to its first call. It is new, and is not rehearsed."""
    check_id(run)
    session = session_for(runtime, plan, RunState(run), None)
    if plan.hosted is not None:
        session.claim.birth = Birth(created_entry(plan, options), plan.hosted.ready)
    if not runtime.enlist(session):
        session.stops.lost = Lost("this process drives it already")  # This one begins anew, behind that one.
    return session


def _told_parent(session: Session, ending: Drive) -> Routine[None]:
    created = session.state.created
    if created is not None and created.child_of and isinstance(ending, Done | Failed | Cancelled):
        try:
            yield Do(partial(parents.tell, session.runtime, session.run, created.child_of))
        except SurefootError as error:
            # The run has ended anyway, and its parent checks by itself from time to time.
            log.warning("run %s has ended; %s could not be told: %s", session.run, created.child_of, error)


def _refuse_self(run: str) -> None:
    place = current.get()
    inside = place is not None and place is not current.OUTSIDE
    if inside and place.session.run == run and not place.session.flight.ended:
        raise place.session.stops.misuse(f"run {run} was started from inside itself; it would wait for ever")


def run_blocking(
    runtime: Runtime, plan: Plan, run: str, options: Options, found: Found = None, begun: Begun | None = None
) -> Any:
    with at(runtime.store.url):
        return perform.run(Start(runtime, plan, run, options, found, begun).loop())


async def run_async(
    runtime: Runtime, plan: Plan, run: str, options: Options, found: Found = None, begun: Begun | None = None
) -> Any:
    """The same for tasks."""
    from surefoot.engine.drive import acts_async, perform_async  # Blocking programs do not need asyncio.

    await acts_async.admitted(runtime)
    with at(runtime.store.url):
        return await perform_async.run(Start(runtime, plan, run, options, found, begun).loop())
