"""What a resume would do now, found by rehearsing it: recorded calls are answered, and nothing is executed.

The rehearsal ends at the first calls that would really run. The order is that of a resume: open questions stop first,
then the world is observed, and only then does anything new happen.
"""

from __future__ import annotations

from msgspec import Struct

from surefoot.core import doubt
from surefoot.core.address import split
from surefoot.core.command import Done, Failed
from surefoot.core.entry import Drift
from surefoot.core.expectation import UNSEEN
from surefoot.core.history import PastEffect, PastState
from surefoot.core.matching.learned import Learned
from surefoot.core.state import CANCELLED, DONE, ENDED, FAILED, RunState
from surefoot.core.timer import remaining
from surefoot.engine.declare import drifts
from surefoot.engine.declare.registry import Definition, registry
from surefoot.engine.declare.signals import ContinueSignal, RunSignal
from surefoot.engine.drive.conclusion import foreseen
from surefoot.engine.operate import places
from surefoot.engine.process.runtime import Runtime
from surefoot.errors import Cancelled, Stopped
from surefoot.store.contract import Head


class ResumePlan(Struct, frozen=True):
    """What a resume would do now. Nothing is executed by looking."""

    run_id: str
    status: str
    replayed: list[str]
    """Recorded calls that the code asks for before the rehearsal ends; all of them if there is no code."""
    in_doubt: list[tuple[str, str]]
    """(address, what a resume does about it)."""
    next: list[tuple[str, str]] | None
    """(kind, address) of the calls that would be executed next; None: the code is not at hand."""
    stops: list[str]
    """The stops of the resume before anything new is executed."""
    drift: list[str] = []
    """Changes to the world as the run left it, observed now."""
    on_drift: str = ""
    """The reaction of a resume to drift: `stop`, `warn`, `accept`, or `decide` by the workflow's own function. `later`:
    the resume stops at an open question first, and observes the world after the answer."""
    questions: list[tuple[str, str]] = []
    """(address, question) of questions without an answer yet."""
    unasked: list[str] = []
    """Executed effects that the code has not asked for by then: it may no longer ask for them, and the resume would
    find that out only at its end."""
    recorded: int = 0
    """How many calls are on record with an outcome, asked for or not."""
    ending: str = ""
    """How the run would end with nothing new executed: `done`, `failed` or `cancelled`; empty: it would not."""

    @property
    def effects(self) -> list[str]:
        """Addresses of the effects that would run, including an effect whose check decides."""
        return [address for kind, address in self.next or [] if kind == "effect"]


def plan(runtime: Runtime, state: RunState, head: Head, *, looks_anywhere: bool = True) -> ResumePlan:
    """What a resume of this run would do now. `looks_anywhere`: as in `Run`."""
    definition = registry.known_for(state.created)
    is_cancelled = state.cancel is not None
    in_doubt = [
        (past.address, _of_cancelled(state, past, definition) if is_cancelled else doubt.would_do(state, past))
        for past in state.in_doubt()
    ]
    questions = [(past.address, past.question) for past in state.questions()]
    stops = [str(stop) for stop in state.stops]
    stands = state.needs_answer(lambda due: remaining(due, runtime.clock.read()) <= 0)
    looks = looks_anywhere or places.is_here(state)
    drift, on_drift = _foreseen_drift(state, definition, stands=stands, looks=looks)
    upcoming: list[tuple[str, str]] | None = None
    unasked: list[str] = []
    ending = ""
    replayed = recorded = [past for past in state.calls.values() if past.state in (PastState.DONE, PastState.FAILED)]
    if definition is not None and state.status not in ENDED:
        rehearsed = _rehearsed(runtime, state, head, definition)
        unasked, ending = rehearsed.unasked, rehearsed.ending
        replayed = [past for past in recorded if past.address in rehearsed.asked - rehearsed.stopped_at]
        stops = stops if stands else rehearsed.stops
        in_doubt += [(address, doubt.on_resume(policy)) for address, policy in rehearsed.suspects]
        asking = {address for address, what in in_doubt if what.startswith("stop")}
        # Where it only stands still, a resume does not even begin: a rehearsal sees past a quarantine.
        planned = [] if stands else rehearsed.planned
        upcoming = [(kind, address) for kind, address in planned if address not in asking]
        if on_drift == drifts.STOP:
            # The world is observed before anything runs.
            stops, upcoming, ending = [str(drifts.drifted(state.run, drift))], [], ""
    return ResumePlan(
        state.run, state.status, [past.address for past in replayed], in_doubt, upcoming, stops,
        [found.line() for found in drift], on_drift, questions if state.status not in ENDED else [], unasked,
        len(recorded), ending if not (stops or upcoming) else "",
    )  # fmt: skip


def _of_cancelled(state: RunState, past: PastEffect, definition: Definition | None) -> str:
    """A run that is cancelled asks nobody: what no check can tell stays in doubt, and is alerted of. But an undo is done to
    its end.
    """
    if split(past.address)[1].endswith(".undo"):
        return doubt.would_do(state, past)
    if past.policy == "check" and past.state is PastState.IN_DOUBT and definition is not None:
        return doubt.on_resume("check")
    return "leave it in doubt: the run ends"


def _foreseen_drift(
    state: RunState, definition: Definition | None, *, stands: bool, looks: bool
) -> tuple[list[Drift], str]:
    """The drift, and the reaction of a resume. The workflow's own function is not called."""
    watch = () if definition is None else definition.watch
    if state.status in ENDED or not (state.world.sights or watch):
        return [], ""
    drift = drifts.look(state.world, watch).drift if looks else places.recorded(state)
    if not drift:
        return [], ""
    if stands:
        return drift, "later"
    if any(found.what == UNSEEN for found in drift):
        return drift, drifts.STOP
    on_drift = drifts.STOP if definition is None else definition.on_drift
    return drift, on_drift if isinstance(on_drift, str) else "decide"


# --- the rehearsal ---------------------------------------------------------------------------------


class _Rehearsed(Struct, frozen=True):
    planned: list[tuple[str, str]]
    suspects: list[tuple[str, str]]
    stops: list[str]
    unasked: list[str]
    asked: frozenset[str]
    stopped_at: frozenset[str]
    """Calls that are asked for and have no recorded answer."""
    ending: str = ""


def _rehearsed(runtime: Runtime, state: RunState, head: Head, definition: Definition) -> _Rehearsed:
    """Replay up to the first calls that would be executed, or to the end that would be recorded."""
    # Imported here, since few programs plan and all import this module.
    from surefoot.engine.drive import gate
    from surefoot.engine.operate import preflight

    if (plain := gate.plain_functions(state, definition.fn)) is not None:
        return _Rehearsed([], [], [str(plain)], [], frozenset(), frozenset())

    def anew(learned: Learned | None) -> preflight.Rehearsal:
        session = preflight.Rehearsal(runtime, state, head, learned=learned, passes_on=False)
        # The plan reports questions to people, and the calls that would run.
        session.is_gate = session.lookup.sees_through_reruns = False
        session.stops.minds_cancel = True
        session.follow(definition.watch, definition.on_drift, definition.approve, definition.on_failure)
        return session

    try:
        session, outcome = preflight.rehearsed(anew, definition)
    except Stopped as stop:
        return _Rehearsed([], [], [stop.summary], [], frozenset(), frozenset({stop.address}))
    changed = session.judged(outcome)
    session.stops.found += [stop for stop in changed if stop not in session.stops.found]
    if changed:
        session.stops.planned.clear()  # The stop comes before anything runs, in every branch.
    ending = ""
    if not (session.stops.planned or session.stops.found or session.stops.trouble):
        # Else an outcome may only be a TaskGroup's form of our own signals.
        if isinstance(outcome, BaseException) and not isinstance(outcome, RunSignal | Exception):
            raise outcome
        # A recorded effect that the code no longer asks for stops the run at its end. Nothing is appended here.
        end, _ = foreseen(session, outcome)
        ending = _ending(end)
        if isinstance(end, ContinueSignal):
            session.stops.planned.append(("continue_as_new", f"segment {session.state.segment + 1}"))
    stops = [] if session.stops.trouble is None else [str(session.stops.trouble)]
    stops += [str(stop) for stop in session.stops.found]
    stopped_at = frozenset(stop.address for stop in session.stops.found)
    unasked = [past.address for past in session.unasked()]
    asked = frozenset(session.replay.matcher.asked)
    return _Rehearsed(session.stops.planned, session.losses.suspects, stops, unasked, asked, stopped_at, ending)


def _ending(end: object) -> str:
    match end:
        case Done():
            return DONE
        case Failed():
            return FAILED
        case Cancelled():
            return CANCELLED
        case _:
            return ""
