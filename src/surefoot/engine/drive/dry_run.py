"""The rehearsals before a drive: the code is replayed dry, so that a stop comes before anything is executed.

A rehearsal that finds inserted calls is repeated with that knowledge. `gate.py` has a single rehearsal, and what it
finds.
"""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace

from surefoot.core.command import Invoke, Returned, Routine
from surefoot.core.entry import Stop
from surefoot.core.matching.learned import Learned
from surefoot.engine.declare.plan import Plan, recorded_arguments
from surefoot.engine.drive import deploys, gate
from surefoot.engine.drive.lookahead import MOST_PASSED, Lookahead
from surefoot.engine.process.config import log
from surefoot.engine.session.session import Session


def is_needed(session: Session, plan: Plan) -> bool:
    """Whether its code is rehearsed before anything is executed."""
    state = session.state
    is_needed = gate.is_needed(state) or deploys.stands_at_code(state)
    return is_needed and not session.runtime.drove(state.run, state.epoch, plan.definition.fn)


def rehearsing(session: Session, plan: Plan) -> Routine[None]:
    """Rehearse, and prepare the session: it begins anew with what was learnt, or with stops.

    A stop found here is recorded at the head that was rehearsed; no branch has executed anything.
    """
    state, session.rehearsed = session.state, True
    if not (session.claim.rehearses or is_needed(session, plan)):
        return
    if (plain := gate.plain_functions(state, plan.definition.fn)) is not None:
        session.stops.found.append(plain)
        return
    learned: Learned | None = None
    found: list[Stop] = []
    for _ in range(gate.MOST_REHEARSALS):
        rehearsal = gate.Rehearsal(
            session.runtime, state, session.journal.head, learned=learned, claimed=session.claim.live
        )
        with gate.on_stage(rehearsal):
            outcome = yield from _performed(rehearsal, plan)
            stops, learnt = rehearsal.judged(outcome), rehearsal.learnt()
            hides = bool(rehearsal.fence.declared) and rehearsal.replay.may_stop()
        if rehearsal.stops.trouble is not None and not stops:
            session.stops.own_damage = rehearsal.stops.own_damage
            if (unreadable := gate.as_stop(state.run, rehearsal.stops.trouble)) is None:
                raise rehearsal.stops.trouble
            stops = [unreadable]
        if stops and (otherwise := rehearsal.otherwise()) is not None:
            found, learned = found or stops, otherwise
            continue
        if not stops and (learnt.unproven or (rehearsal.lookup.reruns and learnt.hidden)):
            learnt, stops = yield from _behind_new_steps(session, plan, learnt)
        if not learnt.inserted - (learned.inserted if learned is not None else frozenset()):
            break
        learned = learnt
    stops = (found or stops) if stops else []
    if hides and not stops:
        stops, passed = yield from _look_ahead(session, plan, learnt)
        learnt = replace(learnt, ahead=passed)
    told = {past.address for past, _, _ in rehearsal.lookup.kept} - learnt.unproven
    session.lookup.learn_from(learnt, told | set(rehearsal.lookup.counted))
    session.stops.found += stops
    if not stops:
        for note in rehearsal.notes(learnt.unproven):
            log.warning("%s", note)


def _behind_new_steps(session: Session, plan: Plan, learned: Learned) -> Routine[tuple[Learned, list[Stop]]]:
    """The same, with findings behind new steps: effects that prove a kept answer right, or prove that it belongs to
    another call. And a stop, if too many steps would run again there.
    """
    ahead = Lookahead(session.runtime, session.state, session.journal.head, learned=learned, most=MOST_PASSED)
    with gate.on_stage(ahead):
        yield from _performed(ahead, plan)
        found = ahead.learnt()
    return replace(learned, inserted=found.inserted, unproven=learned.unproven & found.unproven), ahead.costly()


def _performed(rehearsal: gate.Rehearsal, plan: Plan) -> Routine[Returned | BaseException]:
    rehearsal.follow(plan.definition.watch, plan.definition.on_drift, plan.definition.approve)
    args, kwargs = recorded_arguments(rehearsal, plan)
    outcome: Returned | BaseException = yield Invoke(rehearsal, partial(plan.definition.fn, *args, **kwargs))
    if isinstance(outcome, BaseException) and gate.interrupts(outcome, rehearsal):
        raise outcome
    return outcome


def _look_ahead(session: Session, plan: Plan, learned: Learned) -> Routine[tuple[list[Stop], frozenset[str]]]:
    """The stops behind effects that are declared new, found before one of them is executed; and those effects. Their
    results are unknown: a stop counts only if it also occurs with None as results.
    """
    passed: frozenset[str] = frozenset()
    for as_none in (False, True):
        for _ in range(gate.MOST_REHEARSALS):
            ahead = Lookahead(
                session.runtime, session.state, session.journal.head, learned=learned, as_none=as_none, most=MOST_PASSED
            )
            with gate.on_stage(ahead):
                outcome = yield from _performed(ahead, plan)
                stops = [] if ahead.stops.trouble is not None else ahead.judged(outcome)
            passed |= {address for kind, address in ahead.passed if kind == "effect"}
            if not ahead.replay.matcher.steps.found_inserted - learned.inserted:
                break
            learned = replace(learned, inserted=learned.inserted | ahead.replay.matcher.steps.found_inserted)
        if not stops:
            return [], passed
    return stops, passed
