"""Starting is resuming: the way from `.run(id, …)` to a result, a failure or a stop.

First try to create the run; if it is there already, look at it: ended runs give their result, runs with
an open question give the same stop, runs that a living process drives are waited for, all others are
taken up. Logic once, as a generator; blocking and async drivers perform it.
"""

from __future__ import annotations

import inspect
import shlex
import threading
import time
import unicodedata
from collections.abc import Callable, Generator
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import Raw, Struct
from msgspec.structs import replace

from surefoot.core import values
from surefoot.core.command import Append, Done, Failed, Halted, Returned
from surefoot.core.entry import NOTHING, Due, Kept, RunCreated, RunReleased, Stop, Value
from surefoot.core.history import cures, located
from surefoot.core.matching import Learned
from surefoot.core.standing import HANDED_BACK
from surefoot.core.state import DONE, DRIVEN, ENDED, FAILED, RunState
from surefoot.core.timer import MICROS, Moment, remaining
from surefoot.engine import code, current, deploying, drive, fallback, journal, parents, worldview
from surefoot.engine.config import FALLBACK, alert, log, settings
from surefoot.engine.defaults import Unplaced
from surefoot.engine.ending import conclude
from surefoot.engine.identity import Identity, moved
from surefoot.engine.pasting import at, name_store, pasteable
from surefoot.engine.request import Request
from surefoot.engine.runtime import Runtime, runtime_of
from surefoot.engine.session import Session
from surefoot.engine.signals import ContinueSignal, Suspended
from surefoot.engine.spec import Binder
from surefoot.engine.worldview import OnDrift
from surefoot.errors import (
    STOPS,
    Cancelled,
    Fenced,
    JournalCorrupt,
    NotFound,
    RunConflict,
    Stopped,
    SurefootError,
    UsageError,
    ValueRejected,
)
from surefoot.store.contract import HELD_SECONDS, Head, Store
from surefoot.store.liveness import is_ours, vouched

if TYPE_CHECKING:
    from surefoot.engine.gate import Rehearsal

LONGEST_ID = 200
DECLARED = "declared"
APPROVALS = (DECLARED, "every", "never")
FIRST_NAP, LONGEST_NAP = 0.01, 0.25
QUIET_SECONDS = 1.0
"""Who waits longer than this for another process is told so."""
MOST_FALLBACKS = 3
"""In one go. Damage that comes back each time is a disk to be replaced."""
CLOCK_SLACK_MICROS = 60_000_000
UNWIND_SECONDS = 5.0
"""A worker does not keep a run in memory for a wait that is longer."""
MOST_STARTS = 5
"""A run that was taken up so often without getting any further is quarantined."""


NOTHING_RETURNED = Returned(NOTHING, 0)


class Options(Struct, frozen=True):
    """What `.using(...)` sets, apart from the workflow's own parameters."""

    store: str | None = None
    queue: str = ""
    labels: dict[str, str] = {}
    delay_seconds: float | None = None
    wait_seconds: float | None = None
    child_of: str = ""


class Plan(Struct, frozen=True):
    """The workflow to run and the arguments to run it with, encoded."""

    workflow: str
    version: int
    fn: Callable[..., Any]
    binder: Binder
    args: bytes | None
    """None: those on record (a resume)."""
    digest: str = ""
    on_corruption: str | None = None
    """What to do with a damaged journal; None: as configured."""
    watch: tuple[Any, ...] = ()
    on_drift: OnDrift = worldview.STOP
    approve: str = DECLARED
    on_failure: str = ""
    """`stop`: an exception that the workflow lets out is a stop, and no end."""
    secrets: tuple[values.Secret[Any], ...] = ()
    """Those among the arguments, as long as this process has them."""
    identity: Identity | None = None
    """Which workflow this is, to tell it from others of the same name; None: the name alone says so."""
    defaults: Raw = NOTHING
    """Of the parameters that were not passed."""


# -- wishes of the loop below ---------------------------------------------------------------------------


class Do(Struct, frozen=True):
    """Blocking I/O of our own."""

    fn: Callable[[], Any]


class Nap(Struct, frozen=True):
    seconds: float


class Claim(Struct, frozen=True):
    """Take the run over (or create it). Raises what the journal says."""

    session: Session
    created: RunCreated | None


class Invoke(Struct, frozen=True):
    session: Session
    fn: Callable[[], Any]


class Write(Struct, frozen=True):
    session: Session
    append: Append


Loop = Generator[Do | Nap | Claim | Invoke | Write, Any, Any]


def running(runtime: Runtime, plan: Plan, run: str, options: Options) -> Loop:
    """Everything `.run` does, from the first look to the result."""
    check_id(run)
    _refuse_self(run)
    patience = None if options.wait_seconds is None else time.monotonic() + options.wait_seconds
    nap, napped = FIRST_NAP, 0.0
    may_create = plan.args is not None
    fallbacks = hearings = 0
    session: Session | None = None
    parked_until: Due | None = None
    while True:
        state, session = None, None
        try:
            if may_create:
                session = Session(runtime, RunState(run), None, wait_seconds=options.wait_seconds or 0.0)
                session.follow(plan.watch, plan.on_drift, plan.approve, plan.on_failure)
                yield from _enlisted(session, _create(session, plan, options))
                return (yield from _enlisted(session, _drive(session, plan)))
            found = yield Do(partial(journal.load, runtime.store, run))
            if found is None:
                raise not_found(run, runtime.store.url)
            state, head = found
            require_same(plan, state, runtime.store)
            if state.status in ENDED:
                return recorded_end(runtime.store, state)
            _warn_of_clock(runtime, state)
            if _is_for_people(state, options) and state.needs_answer(partial(_is_due, runtime.clock.read())):
                raise revive(state.stops, run, runtime.store.url)
            if _is_parked(runtime, state):
                yield from _parked(runtime, state, told=state.due == parked_until)
                parked_until = state.due
                continue
            if not driven_elsewhere(runtime, state):
                session = Session(runtime, state, head, wait_seconds=options.wait_seconds or 0.0)
                session.hearings = hearings
                session.follow(plan.watch, plan.on_drift, plan.approve, plan.on_failure)
                return (yield from _enlisted(session, _drive(session, plan)))
        except AlreadyThere:
            may_create = False  # The ordinary way of a resume: look at what is there.
            continue
        except Suspended:
            may_create = False  # What the workflow itself needs is away: wait for it here.
            hearings += session is not None and session.is_unheard
            continue
        except (DrivenHere, LostClaim):
            pass  # This process drives it already, or another was quicker: wait for them.
        except JournalCorrupt as error:
            fallbacks += 1
            if fallbacks > MOST_FALLBACKS:
                _tell(runtime, run, error)
                raise
            runtime = yield Do(partial(step_back, runtime, plan, run, error, session))
            may_create = False
            continue
        who = "this process" if state is None else claimant(state)
        if patience is not None and time.monotonic() > patience:
            raise TimeoutError(f"run {run} is still driven by {who}; waited {options.wait_seconds:g} s for it")
        if napped < QUIET_SECONDS <= napped + nap:
            log.warning("run %s: waiting for %s, which drives it or is not known to be dead yet", run, who)
        yield Nap(nap)
        napped += nap
        nap = min(nap * 1.5, LONGEST_NAP)


def _is_for_people(state: RunState, options: Options) -> bool:
    """Whether nothing comes of waiting here: nobody has the patience, or a failure is to be mended first."""
    return not options.wait_seconds or any(stop.reason == "WorkflowFailed" for stop in state.stops)


def _is_parked(runtime: Runtime, state: RunState) -> bool:
    return (
        bool(state.parked)
        and state.cancel is None
        and state.due is not None
        and not _is_due(runtime.clock.read(), state.due)
    )


def _parked(runtime: Runtime, state: RunState, *, told: bool) -> Loop:
    """Sleep in the process until it is time to look again, or somebody has written something."""
    due = state.due
    if due is None:
        raise AssertionError(state.run)
    if not told:
        left = remaining(due, runtime.clock.read())
        log.warning("run %s: waiting for %.0f s: it is parked: %s", state.run, left, state.parked)
    seen = yield Do(runtime.store.changes)
    while (left := remaining(due, runtime.clock.read())) > 0 and (yield Do(runtime.store.changes)) == seen:
        yield Nap(runtime.clock.nap(left))


def taking_up(runtime: Runtime, plan: Plan, run: str, found: tuple[RunState, Head]) -> Loop:
    """What a worker does with a run that was handed to it: as above, but it waits for nobody.

    It claims the run before anything of it is executed, so that one which kills its workers leaves a trace each time.
    `PassedBy`: nothing of it was executed here.
    """
    state, head = found
    if not _is_ready(runtime, state):
        if state.standing.wake is None:  # Else its line is right, and only this machine's wall clock is ahead.
            yield Do(partial(fallback.renew_row, runtime.store, run))
        raise PassedBy
    if state.standing.wake is not None and (yield Do(partial(parents.waits_in_vain, runtime, state, head))):
        raise PassedBy
    _warn_of_clock(runtime, state)
    session = Session(runtime, state, head, unwind_seconds=UNWIND_SECONDS)
    session.follow(plan.watch, plan.on_drift, plan.approve, plan.on_failure)
    try:
        yield from _enlisted(session, _claimed(session, plan))
    except (DrivenHere, LostClaim):
        raise PassedBy from None
    except Suspended:
        if not session.is_unheard:
            runtime.has_driven(run, session.journal.epoch, plan.fn)
        raise
    except JournalCorrupt as error:
        yield Do(partial(step_back, runtime, plan, run, error, session))
        raise  # It is ready to be taken up again.


def _claimed(session: Session, plan: Plan) -> Loop:
    poison = _quarantine(session.state) if session.state.starts >= MOST_STARTS else None
    if poison is None and (yield from _is_tried_first(session)):
        yield from _gate(session, plan)
        yield from _left_to_others(session)
    session.rehearses = poison is None and not session.rehearsed and _is_gated(session, plan)
    try:
        yield Claim(session, None)
    except Fenced:
        raise LostClaim from None
    if session.rehearses:
        yield from _gate(session, plan)
        yield from _handed_over(session)
    if session.stops:
        return answer(session, (yield from _concluding(session, NOTHING_RETURNED)))
    if poison is not None:
        session.stops.append(poison)
        return answer(session, (yield from _concluding(session, NOTHING_RETURNED)))
    return (yield from _drive(session, plan))


def _is_tried_first(session: Session) -> Loop:
    """Whether it is rehearsed before it is claimed. One that may have been handed out before, and got nowhere, is claimed
    first: should its code kill this worker, too, that is known, and counted.
    """
    state, runtime = session.state, session.runtime
    now = runtime.clock.now()
    if state.starts == 0 and (deploying.stands_at_code(state) or _is_handed_out_first(state, now)):
        return True
    return (yield Do(lambda: deploying.tries_first(runtime.store, state, code.digest(), now)))


def _is_handed_out_first(state: RunState, now: int) -> bool:
    """Nobody else can have been given it since it is ready: for so long it would have been kept for them."""
    wake = state.standing.wake
    return wake is not None and now - wake < HELD_SECONDS * MICROS


def _handed_over(session: Session) -> Loop:
    """As below, for one that was claimed, and that nobody has taken up in vain: it is handed back, as if it had not been."""
    store, state = session.runtime.store, session.state
    if state.starts > 1 or not deploying.is_about_code(session.stops):
        return
    if (yield Do(lambda: deploying.may_be_served_elsewhere(store, state, code.digest()))):
        yield Write(session, Append(RunReleased(HANDED_BACK)))
        raise LeftToOthers


def _left_to_others(session: Session) -> Loop:
    """The rehearsal has met a stop. Nothing is claimed if another worker's code may go on, nor if it is the same stop."""
    if not deploying.is_about_code(session.stops):
        return
    if tuple(session.stops) == session.state.stops:
        raise PassedBy
    store, state = session.runtime.store, session.state
    if (yield Do(lambda: deploying.may_be_served_elsewhere(store, state, code.digest()))):
        raise LeftToOthers


def _is_ready(runtime: Runtime, state: RunState) -> bool:
    """The index is a cache, and a wall clock may be wrong: the journal and the boot clock decide."""
    if state.status in ENDED or driven_elsewhere(runtime, state):
        return False
    if deploying.stands_at_code(state):
        return True  # Whoever hands it out has other code than it was stopped by.
    if state.claimant is not None:
        return True  # Its process is gone.
    due = state.due if state.due is not None else state.created.due if state.created and state.seq == 1 else None
    if due is not None and state.standing.wake == due.at:
        return _is_due(runtime.clock.read(), due)
    return state.standing.wake is not None


def _quarantine(state: RunState) -> Stop:
    run = shlex.quote(state.run)
    message = (
        f"run {state.run}: quarantined: it was taken up {state.starts} times, and each time it ended before anything "
        f"new was recorded; last by {state.last_claimant}"
        + (f": {state.let_go_why}. " if state.let_go_why else _died(state))
        + "No worker takes it up any more."
    )
    cures = (("look", f"surefoot runs show {run}"), ("mended? try again", f"surefoot runs release {run}"))
    return Stop("Quarantined", message, facts={"starts": str(state.starts)}, cures=cures)


def _died(state: RunState) -> str:
    if state.rehearsing:
        return ", which died while rehearsing: its code was being replayed, and nothing of it executed. "
    return ", which died. "


def step_back(runtime: Runtime, plan: Plan, run: str, error: JournalCorrupt, session: Session | None = None) -> Runtime:
    """Go back to the longest valid prefix of a damaged run, if that is wanted; the runtime to go on with."""
    if not _may_step_back(plan, session, error):
        _tell(runtime, run, error)
        raise error
    return runtime_of(fallback.step_back(runtime.store, runtime.clock, run, error))


def _tell(runtime: Runtime, run: str, error: JournalCorrupt) -> None:
    name_store(error, runtime.store.url)
    alert(f"{type(error).__name__}: {error.summary}", error.cures, run=run, kind=type(error).__name__)


def _may_step_back(plan: Plan, session: Session | None, error: JournalCorrupt) -> bool:
    """Whether this very run is damaged. What user code met in another run or store is not ours to mend."""
    ours = session is None or session.own_damage is error
    return ours and (plan.on_corruption or settings.on_corruption) == FALLBACK


class AlreadyThere(Exception):
    """The run exists, so it cannot be created."""


class DrivenHere(Exception):
    """This process drives the run already, in another thread or task."""


class LostClaim(Exception):
    """The run was claimed by another process before anything was executed here."""


class PassedBy(Exception):
    """A run that was handed to this worker is not ready, or somebody else was quicker."""


class LeftToOthers(PassedBy):
    """The code here cannot go on with it; that of another worker may. Nothing was claimed."""


def _enlisted(session: Session, part: Loop) -> Loop:
    """Do this as the one session of this process that drives the run; let go of the claim if it is cut off."""
    if not session.runtime.enlist(session):
        raise DrivenHere
    cut_off = True
    try:
        result = yield from part
        cut_off = False
    except (AlreadyThere, LostClaim):
        raise
    except BaseException as error:
        if session.live and not session.journal.closed:
            with suppress(SurefootError):
                yield Write(session, Append(RunReleased(f"interrupted by {type(error).__name__}")))
        raise
    finally:
        if cut_off or session.journal.closed:
            session.runtime.discharge(session)
    return result


def _create(session: Session, plan: Plan, options: Options) -> Loop:
    created = created_entry(plan, options)
    try:
        yield Claim(session, created)
    except Fenced:
        raise AlreadyThere from None


def _warn_of_clock(runtime: Runtime, state: RunState) -> None:
    if state.newest_at > runtime.clock.now() + CLOCK_SLACK_MICROS:
        log.warning("run %s: the clock is behind the newest recorded time; order does not depend on it", state.run)


def _is_due(now: Moment, due: Due) -> bool:
    return remaining(due, now) <= 0


def _gate(session: Session, plan: Plan) -> Loop:
    """Rehearse, and answer how the session has to begin: as a new one that knows what was learnt, or with stops.

    Found here, a stop is recorded at the head that was rehearsed; nothing was executed in any branch.
    """
    from surefoot.engine import gate  # It stands on sessions; few starts are resumes.

    state, session.rehearsed = session.state, True
    if not (session.rehearses or _is_gated(session, plan)):
        return
    if (plain := gate.plain_functions(state, plan.fn)) is not None:
        session.stops.append(plain)
        return
    learned: Learned | None = None
    found: list[Stop] = []
    for _ in range(gate.MOST_REHEARSALS):
        rehearsal = gate.Rehearsal(session.runtime, state, session.journal.head, learned=learned, claimed=session.live)
        with gate.on_stage(rehearsal):
            outcome = yield from _performed(rehearsal, plan)
            stops, learnt = rehearsal.judged(outcome), rehearsal.learnt()
            hides = bool(rehearsal.declared) and rehearsal.may_stop()
        if rehearsal.trouble is not None and not stops:
            session.own_damage = rehearsal.own_damage
            if (unreadable := gate.as_stop(state.run, rehearsal.trouble)) is None:
                raise rehearsal.trouble
            stops = [unreadable]
        if stops and (otherwise := rehearsal.otherwise()) is not None:
            found, learned = found or stops, otherwise
            continue
        if not stops and (learnt.unproven or (rehearsal.reruns and learnt.hidden)):
            learnt, stops = yield from _behind_new_steps(session, plan, learnt)
        if not learnt.inserted - (learned.inserted if learned is not None else frozenset()):
            break
        learned = learnt
    stops = (found or stops) if stops else []
    if hides and not stops:
        stops, passed = yield from _look_ahead(session, plan, learnt)
        learnt = replace(learnt, ahead=passed)
    told = {past.address for past, _, _ in rehearsal.kept} - learnt.unproven
    session.learn_from(learnt, told | set(rehearsal.counted))
    session.stops += stops
    if not stops:
        for note in rehearsal.notes(learnt.unproven):
            log.warning("%s", note)


def _behind_new_steps(session: Session, plan: Plan, learned: Learned) -> Loop:
    """The same with what is found behind new steps: effects that prove a kept answer right, or that it is another call's.
    And a stop, if too many steps would run again there.
    """
    from surefoot.engine import gate
    from surefoot.engine.lookahead import MOST_PASSED, Lookahead

    ahead = Lookahead(session.runtime, session.state, session.journal.head, learned=learned, most=MOST_PASSED)
    with gate.on_stage(ahead):
        yield from _performed(ahead, plan)
        found = ahead.learnt()
    return replace(learned, inserted=found.inserted, unproven=learned.unproven & found.unproven), ahead.costly()


def _performed(rehearsal: Rehearsal, plan: Plan) -> Loop:
    from surefoot.engine import gate

    rehearsal.follow(plan.watch, plan.on_drift, plan.approve)
    args, kwargs = recorded_arguments(rehearsal, plan)
    outcome = yield Invoke(rehearsal, partial(plan.fn, *args, **kwargs))
    if isinstance(outcome, BaseException) and gate.interrupts(outcome, rehearsal):
        raise outcome
    return outcome


def _look_ahead(session: Session, plan: Plan, learned: Learned) -> Loop:
    """What would stop the run behind effects that are declared new, before one of them is executed; and those that were
    looked behind. What they give is not known: it is a stop only if it is one also if they give None.
    """
    from surefoot.engine import gate
    from surefoot.engine.lookahead import MOST_PASSED, Lookahead

    passed: frozenset[str] = frozenset()
    for as_none in (False, True):
        for _ in range(gate.MOST_REHEARSALS):
            ahead = Lookahead(
                session.runtime, session.state, session.journal.head, learned=learned, as_none=as_none, most=MOST_PASSED
            )
            with gate.on_stage(ahead):
                outcome = yield from _performed(ahead, plan)
                stops = [] if ahead.trouble is not None else ahead.judged(outcome)
            passed |= {address for kind, address in ahead.passed if kind == "effect"}
            if not ahead.matcher.found_inserted - learned.inserted:
                break
            learned = replace(learned, inserted=learned.inserted | ahead.matcher.found_inserted)
        if not stops:
            return [], passed
    return stops, passed


def _is_gated(session: Session, plan: Plan) -> bool:
    """Whether its code is rehearsed before anything is executed."""
    from surefoot.engine import gate

    state = session.state
    is_needed = gate.is_needed(state) or deploying.stands_at_code(state)
    return is_needed and not session.runtime.drove(state.run, state.epoch, plan.fn)


def _drive(session: Session, plan: Plan) -> Loop:
    """Rehearse, look at the world, run the function, record how it ended; again and again while it continues as new."""
    if session.state.calls and not session.rehearsed:
        yield from _gate(session, plan)
        if session.stops:
            return answer(session, (yield from _concluding(session, NOTHING_RETURNED)))
    if session.watches and session.state.cancel is None:
        yield from _verified(session)
        if session.stops:
            return answer(session, (yield from _concluding(session, NOTHING_RETURNED)))
    while True:
        args, kwargs = recorded_arguments(session, plan)
        outcome = yield Invoke(session, partial(plan.fn, *args, **kwargs))
        if isinstance(session.trouble, Fenced) and not session.live:
            raise LostClaim
        try:
            ending = yield from _concluding(session, outcome)
        except Fenced:
            if session.live:
                raise
            raise LostClaim from None  # Only the end was missing, and another process was quicker to write it.
        if not isinstance(ending, ContinueSignal):
            yield from _told_parent(session, ending)
            return answer(session, ending)
        try:
            request = next_arguments(session.run, plan, ending)
        except UsageError as misuse:
            ending = yield from _concluding(session, session.misused(misuse))
            raise ending from misuse.__cause__
        yield Write(session, Append(session.continued(request)))
        session.begin_segment()


def next_arguments(run: str, plan: Plan, signal: ContinueSignal) -> Request:
    """What the next segment begins with, as it is stored."""
    try:
        raw, digest = values.encode_args(plan.binder.bind(signal.args_, signal.kwargs_))
        return Request(Raw(raw), digest, plan.binder.left_out(signal.args_, signal.kwargs_))
    except (TypeError, ValueRejected) as error:
        raise UsageError(f"run {run}: sf.continue_as_new cannot go on with these arguments: {error}") from error


def _told_parent(session: Session, ending: Any) -> Loop:
    created = session.state.created
    if created is not None and created.child_of and isinstance(ending, Done | Failed | Cancelled):
        try:
            yield Do(partial(parents.tell, session.runtime, session.run, created.child_of))
        except SurefootError as error:
            # It has ended all the same, and its parent looks by itself now and then.
            log.warning("run %s has ended; %s could not be told: %s", session.run, created.child_of, error)


def _verified(session: Session) -> Loop:
    """Before anything runs: is the world as this run left it? What is accepted from here on is recorded."""
    found = session.judge((yield Do(session.look_at_world)), resuming=True)
    if isinstance(found, Stop):
        session.stops.append(found)
    elif found is not None:
        try:
            yield Write(session, Append(found))
        except Fenced:
            if session.live:
                raise
            raise LostClaim from None  # While we looked, another process took the run up.


def recorded_arguments(session: Session, plan: Plan) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments on record, and the defaults, as the function at hand takes them; CodeChanged if it no longer does.

    A default of a parameter that the function no longer has says nothing to it.
    """
    session.mask.learn(plan.secrets)
    try:
        bound: Any = values.decode(session.whole(session.state.args))
        bound.update(plan.binder.defaults.others(session.whole(session.state.defaults), may_be_gone=True))
        return plan.binder.call_with(bound)
    except Stopped as error:
        raise located(error, session.run, "its arguments") from None
    except Unplaced as error:
        why = f"a secret was in the default of {error}, where it has none now"
    except TypeError as error:
        why = str(error)
    message = f"run {session.run}: the parameters of workflow {plan.workflow} have changed: {why}"
    stop = Stop("CodeChanged", message, cures=cures(session.run))
    raise revive((stop,), session.run, session.runtime.store.url)


def _concluding(session: Session, outcome: Any) -> Loop:
    program = conclude(session, outcome)
    try:
        wish = next(program)
        while True:
            yield Write(session, wish)
            wish = program.send(None)
    except StopIteration as end:
        return end.value


def answer(session: Session, ending: Any) -> Any:
    match ending:
        case Done(raw):
            return session.decoded(raw)
        case Failed():
            raise session.originals.traced(session.revive(ending), ending.cause)
        case Halted():
            raise revive(tuple(session.stops), session.run, session.runtime.store.url)
        case _:
            raise ending


def created_entry(plan: Plan, options: Options, due: Any = None) -> RunCreated:
    mine = plan.identity or Identity(plan.workflow)
    return RunCreated(
        plan.workflow, Raw(plan.args or b"{}"), plan.digest, plan.version, settings.namespace, options.queue,
        dict(options.labels), due, child_of=options.child_of, module=mine.origin, named=mine.named,
        defaults=plan.defaults,
    )  # fmt: skip


def driven_elsewhere(runtime: Runtime, state: RunState) -> bool:
    """Whether a living process drives the run: this one, or another whose lock is held."""
    if runtime.drives(state.run):
        return True
    holder = state.claimant
    if holder is None or state.status not in DRIVEN:
        return False
    # A claim of our own that nobody here drives was given up without a word: it binds nobody.
    return not is_ours(holder.worker) and runtime.store.alive(holder.worker)


def claimant(state: RunState) -> str:
    holder = state.claimant
    return "nobody" if holder is None else f"worker {holder.worker[:8]} on host {holder.host} (pid {holder.pid})"


def living_claimant(runtime: Runtime, state: RunState) -> str:
    """Who drives the run, and how sure that is."""
    worker = state.claimant.worker if state.claimant is not None else ""
    return f"{claimant(state)}, {vouched(runtime.store, worker)}"


def recorded_end(store: Store, state: RunState) -> Any:
    if state.pruned is not None:
        when = datetime.fromtimestamp(state.pruned_at / 1e6, UTC).strftime("%Y-%m-%d")
        raise NotFound(
            f"run {state.run} ended {state.status} and was pruned on {when}: what it recorded is no longer kept in "
            f"{store.url}. It does not run again; for a new task use another run id."
        )
    try:
        if state.status == DONE:
            return values.decode(journal.whole(store, state.run, state.value))
        failure = values.decode_error(state.error) if state.status == FAILED else None
    except Stopped as error:
        raise located(error, state.run, "its result") from None
    if failure is not None:
        raise failure
    raise Cancelled(f"run {state.run} was cancelled")


def revive(stops: tuple[Stop, ...], run: str, where: str) -> Stopped:
    """The exception for recorded stops: the first, with all of them in `.stops`."""
    revived = tuple(
        STOPS[stop.reason](
            stop.message, run_id=run, address=stop.address, facts=stop.facts, cures=pasteable(stop.cures, where)
        )
        for stop in stops
    )
    for stopped in revived:
        stopped.store = where
    revived[0].stops = revived
    return revived[0]


def require_same(plan: Plan, state: RunState, store: Store) -> None:
    created, where = state.created, store.url
    if created is None:
        raise AssertionError(state.run)
    mine = plan.identity or Identity(plan.workflow)
    if not mine.owns(created):
        raise _belongs_elsewhere(created, mine, state.run, where)
    if plan.args is None or created.digest == plan.digest:
        return
    if journal.digest_today(store, state.run, created.args) != plan.digest:
        raise RunConflict(
            f"run {state.run} in {where} was started with other arguments.\n"
            f"  recorded: {_shown(state, created.args)}\n  given now: {plan.args.decode()[:400]}\n"
            "  Use another run id for another task, or the same arguments to go on with this one."
        )


def _belongs_elsewhere(created: RunCreated, mine: Identity, run: str, where: str) -> RunConflict | Stopped:
    """Another workflow's run; or this one's, from before it was moved. Which of them, nobody but a person can say."""
    if created.workflow != mine.name:
        return RunConflict(
            f"run {run} in {where} belongs to workflow {created.workflow!r}, not {mine.name!r}. "
            f'Choose another run id; or, if it was renamed: @sf.workflow(was="{created.workflow}") on {mine.name}.'
        )
    message = (
        f"run {run}: it belongs to workflow {created.workflow!r} of {created.module}; the code at hand has {mine.origin}. "
        "Nothing was executed."
    )
    stop = Stop(
        "CodeChanged", message, facts={"recorded": created.module, "now": mine.origin}, cures=moved(created, mine)
    )
    return revive((stop,), run, where)


def _shown(state: RunState, args: Value) -> str:
    if state.pruned is not None:
        return "only their fingerprint is kept: the run was pruned"
    if isinstance(args, Kept):
        return f"{args.reference.size} bytes"
    return bytes(args).decode()[:400]


def check_id(run: object) -> None:
    if not isinstance(run, str):
        raise UsageError(f"a run id is a string, not {type(run).__name__}: wf.run('task-42', ...)")
    if not run or len(run) > LONGEST_ID or run != run.strip():
        raise UsageError(f"a run id has 1 to {LONGEST_ID} characters and no space at its ends: {run[:40]!r}")
    if not run.isprintable() or unicodedata.normalize("NFC", run) != run:
        raise UsageError(f"a run id holds printable characters only, in Unicode's NFC form: {run[:40]!r}")


def _refuse_self(run: str) -> None:
    place = current.get()
    inside = place is not None and place is not current.OUTSIDE
    if inside and place.session.run == run and not place.session.ended:
        raise place.session.misused(UsageError(f"run {run} was started from inside itself; it would wait for ever"))


def not_found(run: str, where: str) -> NotFound:
    return NotFound(f"there is no run {run!r} in {where}. `surefoot runs` lists those that are there.")


# -- the blocking driver ---------------------------------------------------------------------------------


def run_blocking(runtime: Runtime, plan: Plan, run: str, options: Options) -> Any:
    with at(runtime.store.url):
        return carry_out(running(runtime, plan, run, options))


def carry_out(loop: Loop) -> Any:
    try:
        return _carry_out(loop)
    except BaseException as error:
        if inspect.getgeneratorstate(loop) == inspect.GEN_CLOSED:
            raise  # That is how the loop itself ended.
        return _carry_out(loop, error)  # Ctrl-C between two wishes: the loop has to let go of its claim.


def _carry_out(loop: Loop, error: BaseException | None = None) -> Any:
    pause = threading.Event()
    reply: Any = None
    try:
        while True:
            wish = loop.send(reply) if error is None else loop.throw(error)
            reply, error = None, None
            try:
                reply = _perform(wish, pause)
            except BaseException as failure:  # noqa: BLE001 - the loop decides
                error = failure
    except StopIteration as end:
        return end.value


def _perform(wish: Any, pause: Any) -> Any:
    match wish:
        case Invoke(session, fn):
            return drive.invoke(session, fn)
        case Do(fn):
            return fn()
        case Nap(length):
            return pause.wait(length)
        case Claim(session, created):
            return drive.claim(session, session.claim(created))
        case Write(session, append):
            drive.go_live(session)
            return drive.append(session, append.entry)
        case _:
            raise AssertionError(wish)
