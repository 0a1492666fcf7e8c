"""Would this code strand runs in flight? Every unfinished run is rehearsed with the code before it is deployed.

A rehearsal is a dry replay: the journal answers recorded calls, and the first call that would really be
executed ends it. No run is claimed and nothing is written. The code *between* the calls runs, as in
every replay. The session itself judges the end of the replay, as in a resume; its wishes to write are dropped.

A step that has not run ends nothing here (`lookahead.py`): so a preflight sees further than the rehearsal before a
resume, which has the fence behind it.

A run is *stranded* if this code cannot go on with it. Doubt, waiting and damage have other causes, and findings of
their own. It is *perhaps stranded* if the rehearsal ends too early to decide: an executed effect has not been asked for
there, or is asked for with arguments that are not known yet. That is reported in one line: if something is wrong, the
fence stops the run before an effect is executed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from surefoot.core import doubt, shapes
from surefoot.core.address import split
from surefoot.core.code_changes import cures, not_asked_yet, not_known_yet
from surefoot.core.command import Done, Failed, Returned
from surefoot.core.cure import Advice, Command
from surefoot.core.entry import CallsUnclaimed, RunCreated, Stop
from surefoot.core.history import PastCall
from surefoot.core.matching.learned import Learned
from surefoot.core.state import ENDED
from surefoot.core.stops import located, revive
from surefoot.engine.declare import placeholder
from surefoot.engine.declare.plan import Plan, next_arguments, recorded_arguments
from surefoot.engine.declare.registry import Definition, registry
from surefoot.engine.declare.signals import ContinueSignal, PlanSignal
from surefoot.engine.drive import acts, claimant, gate, start
from surefoot.engine.drive.conclusion import foreseen
from surefoot.engine.drive.lookahead import Lookahead
from surefoot.engine.process import journal
from surefoot.engine.process.runtime import Runtime
from surefoot.engine.session.session import Session
from surefoot.errors import CodeChanged, Damaged, Fenced, Stopped, StoreUnavailable, SurefootError, UsageError
from surefoot.store.contract import RunQuery

GOES_ON: Final = "goes on"
WAITS: Final = "waits"
"""Waits for an answer, an event, a release: for something other than code."""
IN_DOUBT: Final = "in doubt"
STRANDED: Final = "stranded"
PERHAPS: Final = "perhaps stranded"
DAMAGED: Final = "damaged"

_NOT_THE_CODE: Final = frozenset({"InDoubt", "WaitingForAnswer", "Drifted", "Quarantined"})
_OF_PEOPLE: Final = frozenset({"InDoubt", "WaitingForAnswer"})
_EVERY_RUN: Final = 2**62
_Outcome = Returned | BaseException


class Finding(Struct, frozen=True):
    """The result of this code for one run."""

    run: str
    verdict: str
    workflow: str = ""
    version: int = 0
    """The workflow's version on record; 0: unknown."""
    code_version: int = 0
    """The version of the code at hand; 0: it does not have the workflow."""
    status: str = ""
    driven: bool = False
    """A living process drives it at this moment, with its own code."""
    why: tuple[BaseException, ...] = ()
    """The stops of the run; or the failure of the workflow."""
    in_doubt: tuple[Stopped, ...] = ()
    """Effects that a person has to settle, with any code."""
    next: tuple[tuple[str, str], ...] = ()
    """(kind, address) of the calls that would be executed next."""
    unclaimed: tuple[str, ...] = ()
    """Recorded steps that the code no longer asks for: shown, but no reason to stop."""
    kept: tuple[tuple[str, str], ...] = ()
    """(address, why) of recorded calls whose outcome stands, though they are asked for with other arguments; and of
    verbs without arguments whose number differs now."""
    again: tuple[str, ...] = ()
    """Recorded steps that are asked for with other arguments, and would run again."""
    filled_in: tuple[str, ...] = ()
    """Changed fields of recorded values of an installed package: filled with a default, or dropped."""


class _Verdict(Struct, frozen=True):
    name: str
    why: tuple[BaseException, ...] = ()
    unclaimed: tuple[str, ...] = ()


def unfinished(runtime: Runtime) -> list[str]:
    """The runs that have not ended, newest first; including those whose row in the run list cannot be read."""
    listed = runtime.store.runs(RunQuery(limit=_EVERY_RUN))
    return [one.run for one in listed if one.row is None or one.row.status not in ENDED]


class Patience(Struct, frozen=True):
    """After how long slow code is reported, and to which function: the function gets the current line of the code."""

    seconds: float = gate.PATIENCE_SECONDS
    tell: Callable[[str], object] = str


PATIENT: Final = Patience()


def check(runtime: Runtime, run: str, *, patience: Patience = PATIENT) -> Finding | None:
    """Rehearse one run with the workflows this process knows. None: it has ended meanwhile."""
    try:
        found = journal.load(runtime.store, run)
    except Stopped as error:
        return Finding(run, _blame(error), why=(error,))
    if found is None or found[0].status in ENDED:
        return None
    state, head = found
    driven = claimant.is_driven(runtime, state)
    # Stops that occurred under other code are checked anew.
    in_doubt = () if driven else _revived(doubt.open_doubts(state), run, runtime.store.url)
    name, version = (state.created.workflow, state.created.version) if state.created else ("", 0)
    session = Rehearsal(runtime, state, head)
    definition: Definition | None = None
    with shapes.noting() as filled_in:
        try:
            if state.created is not None and state.created.hosted:
                verdict = _Verdict(GOES_ON)  # Its framework has the code, and executes it from the first line.
            else:
                definition = _definition(run, state.created)
                session, outcome = _rehearsed(session, definition, patience)
                verdict = _judge(session, definition, outcome)
        except (Stopped, UsageError) as error:
            verdict = _Verdict(_blame(error), (error,))
    in_doubt += _revived(_suspected(session), run, runtime.store.url)
    if verdict.name in (GOES_ON, WAITS):
        # Recorded stops that no replay checks again. (Doubt, waiting and the code are checked again.)
        still_open = tuple(stop for stop in state.stops if stop.reason in ("Drifted", "Quarantined"))
        held = _revived(still_open, run, runtime.store.url)
        if in_doubt or held:
            verdict = _Verdict(IN_DOUBT if in_doubt else WAITS, (*held, *verdict.why), verdict.unclaimed)
    upcoming = (*session.passed, *session.stops.planned)
    kept = sorted((past.address, why) for past, _, why in session.lookup.kept)
    counted = ((found.address, found.why) for found in session.lookup.counted.values())
    again = tuple(past.address for past in sorted(session.lookup.again, key=lambda past: past.first))
    return Finding(
        run, verdict.name, name, version, definition.version if definition else 0, state.status, driven, verdict.why,
        in_doubt, upcoming, verdict.unclaimed, (*kept, *counted), again, tuple(filled_in),
    )  # fmt: skip


def _definition(run: str, created: RunCreated | None) -> Definition:
    name = "" if created is None else created.workflow
    try:
        return registry.find_for(created)
    except UsageError as error:
        if registry._known.get(name):  # several workflows have that name, or another one has it
            raise UsageError(f"run {run}: {error}") from None
    raise CodeChanged(
        f"run {run}: its workflow {name!r} is not in the code at hand.",
        run_id=run,
        facts={"recorded": name, "asked": "nothing"},
        cures=(
            Advice("elsewhere?", "add --app MODULE for the module that defines it"),
            Advice("renamed?", f'@sf.workflow(was="{name}") on the function that it is now'),
        ),
    )


def _suspected(session: Session) -> tuple[Stop, ...]:
    """Effects that are in doubt because entries of the run were lost, and that a person has to settle."""
    asking = [address for address, policy in session.losses.suspects if policy not in ("retry", "fail")]
    return tuple(doubt.lost(session.run, address).stop("it has no check") for address in asking)


def _revived(stops: tuple[Stop, ...], run: str, where: str) -> tuple[Stopped, ...]:
    return revive(stops, run, where).stops if stops else ()


def _blame(error: BaseException) -> str:
    return DAMAGED if isinstance(error, Damaged) else STRANDED


# --- the rehearsal ---------------------------------------------------------------------------------


class Rehearsal(Lookahead):
    """A rehearsal that reports what would be done, and what prevents it."""

    on_slow: Callable[[str], object] = str
    """Called with the current line of the code, if it takes long."""

    def takes_long(self) -> None:
        super().takes_long()
        self.on_slow(self.where())

    # -- how it ends --------------------------------------------------------------------------------

    def unasked(self) -> list[PastCall]:
        """Executed effects that no branch has asked for, although each has reached its next new call."""
        heard = bool(self.stops.planned or self.passed or self.stops.found) and all(
            stop.reason in _OF_PEOPLE for stop in self.stops.found
        )
        if not heard or self.stops.trouble is not None or self.state.cancel is not None:
            return []
        # Rewound effects do not count: the person may want the run to take another path.
        missed = [past for past in self.replay.missed() if not (self.scopes.has_strays and "[" in past.address)]
        asked = self.replay.matcher.asked
        if any(past.kind == "saga" and past.address in asked for past in self.replay.matcher.recorded()):
            # The run was cancelled, and does not go beyond its records: its undos come after them.
            missed = [past for past in missed if not split(past.address)[1].endswith(".undo")]
        return missed

    def would_strand(self) -> Stop | None:
        """A stop that prevents going on, although none comes before the next execution."""
        missing = self.unasked()
        if not missing:
            return None
        if coming := [*self.passed, *self.stops.planned]:
            at = f"{', '.join(address for _, address in coming[:5])} would run"
        else:
            at = f"the run stands still at {', '.join(stop.address for stop in self.stops.found[:5])}"
        return not_asked_yet(self.run, missing, at)


def _rehearsed(
    first: Rehearsal, definition: Definition, patience: Patience, *, as_none: bool = False
) -> tuple[Rehearsal, _Outcome]:
    runtime, state, head = first.runtime, first.state, first.journal.head

    def anew(learned: Learned | None) -> Rehearsal:
        session = Rehearsal(runtime, state, head, learned=learned, as_none=as_none)
        session.patience_seconds, session.on_slow = patience.seconds, patience.tell
        return session

    if state.cancel is not None or gate.plain_functions(state, definition.fn) is not None:
        return anew(None), start.NOTHING_RETURNED
    return rehearsed(anew, definition)


def rehearsed(anew: Callable[[Learned | None], Rehearsal], definition: Definition) -> tuple[Rehearsal, _Outcome]:
    """Rehearse again as long as inserted steps are found, as before a resume.

    Not for code in which a recorded effect is a plain function now (`gate.plain_functions`): it would be executed.
    """
    plan, learned = definition.resume_plan(), None
    found: tuple[Rehearsal, _Outcome] | None = None
    for _ in range(gate.MOST_REHEARSALS):
        session = anew(learned)
        try:
            args, kwargs = recorded_arguments(session, plan)
        except Stopped as error:
            raise located(error, session.run, "its arguments") from None
        outcome = perform(session, definition, partial(definition.fn, *args, **kwargs))
        if session.passed and isinstance(outcome, Exception) and not session.failed_before(outcome):
            # Some functions refuse a placeholder without reading it: its type is unknown too.
            outcome = PlanSignal()
        if session.stops.changed_code() is not None and (otherwise := session.otherwise()) is not None:
            found, learned = found or (session, outcome), otherwise
            continue
        if not session.replay.matcher.steps.found_inserted - (learned.inserted if learned is not None else frozenset()):
            break
        learned = session.learnt()
    if found is not None and session.stops.changed_code() is not None:
        return found
    return session, outcome


def _judge(session: Rehearsal, definition: Definition, outcome: _Outcome) -> _Verdict:
    if session.state.cancel is not None:
        return _Verdict(GOES_ON)  # To its end: its first verb cancels it.
    if (plain := gate.plain_functions(session.state, definition.fn)) is not None:
        return _Verdict(STRANDED, _told(session, plain))
    if session.stops.trouble is not None:
        return _trouble(session.stops.trouble)
    judged = session.judged(outcome)
    if changed := [stop for stop in judged if stop.reason not in _OF_PEOPLE]:
        sure = not session.passed or _is_stopped_with_none(session, definition)
        return _Verdict(STRANDED if sure else PERHAPS, _told(session, *changed))
    if judged:
        return _Verdict(IN_DOUBT, _told(session, *judged))
    if (perhaps := session.would_strand()) is not None:
        return _Verdict(PERHAPS, _told(session, perhaps))
    if session.blurred:
        return _Verdict(PERHAPS, _told(session, not_known_yet(session.run, session.blurred, session.passed[0][1])))
    if session.stops.found:
        return _stopped(session)
    if session.stops.planned or session.looked:
        return _Verdict(GOES_ON)
    ending, wishes = foreseen(session, outcome)
    unclaimed = tuple(address for wish in wishes if isinstance(wish, CallsUnclaimed) for address in wish.addresses)
    if session.stops.found:
        return _stopped(session)
    return replace(_of_the_end(session, definition.resume_plan(), ending), unclaimed=unclaimed)


def _told(session: Rehearsal, *stops: Stop) -> tuple[Stopped, ...]:
    return _revived(tuple(map(_foreseen, stops)), session.run, session.runtime.store.url)


def _foreseen(stop: Stop) -> Stop:
    """No run has this stop yet, and an answer to a question that was not asked is refused."""
    needs_stop = {"is", "new", "keep"} if "unasked" in stop.facts else {"is", "new"}
    cures = (
        replace(cure, when=f"{cure.when} (once it has stopped)")
        if isinstance(cure, Command) and cure.verb == "match" and needs_stop & cure.options.keys()
        else cure
        for cure in stop.cures
    )
    return replace(stop, cures=tuple(cures))


def _is_stopped_with_none(session: Rehearsal, definition: Definition) -> bool:
    """Whether the code also stops if the steps that have not run return None: `is None` cannot be noticed.

    Code that fails with None reads the value, and would have been noticed: then the first answer stands.
    """
    again, outcome = _rehearsed(session, definition, Patience(session.patience_seconds, session.on_slow), as_none=True)
    return bool(again.judged(outcome)) or (again.looked and not again.stops.planned)


def perform(session: Rehearsal, definition: Definition, fn: Callable[[], Any]) -> _Outcome:
    """Replay the code up to the first new call of each branch, and return how it ended."""
    with gate.on_stage(session):
        outcome = _in_a_loop(session, fn) if definition.is_async else acts.invoke(session, fn)
    if isinstance(outcome, KeyboardInterrupt):
        raise outcome
    return outcome


def _in_a_loop(session: Rehearsal, fn: Callable[[], Any]) -> _Outcome:
    from surefoot.engine.drive import acts_async

    try:
        return acts_async.in_a_thread(acts_async.invoke(session, fn))
    except BaseException as error:  # noqa: BLE001 - a task of the workflow's own ended the loop: that is the outcome
        return error


def _stopped(session: Session) -> _Verdict:
    stops = _revived(tuple(session.stops.found), session.run, session.runtime.store.url)
    code = [stop for stop in stops if type(stop).__name__ not in _NOT_THE_CODE]
    if not code:
        return _Verdict(WAITS, stops)
    damaged = any(isinstance(stop, Damaged) for stop in code)
    return _Verdict(DAMAGED if damaged else STRANDED, tuple(code))


def _trouble(error: SurefootError) -> _Verdict:
    if isinstance(error, StoreUnavailable):
        raise error  # This proves nothing about the run.
    return _Verdict(_blame(error), (error,))


def _of_the_end(session: Rehearsal, plan: Plan, ending: Any) -> _Verdict:
    """The verdict on a run that ends without executing anything more."""
    if isinstance(ending, Done):
        return _Verdict(GOES_ON)
    if isinstance(ending, Failed):
        error = ending.cause
        return _Verdict(GOES_ON) if error is None or session.failed_before(error) else _Verdict(STRANDED, (error,))
    if isinstance(ending, ContinueSignal):
        try:
            with placeholder.opaque():
                next_arguments(session.run, plan, ending)
        except placeholder.Opaque:
            pass  # The next segment begins with the result of a step that has not run.
        except UsageError as misuse:  # Raised without its cause: no line of the user raised that.
            return _Verdict(STRANDED, (UsageError(str(misuse)),))
        return _Verdict(GOES_ON)
    if isinstance(ending, SurefootError) and not isinstance(ending, Fenced):
        return _trouble(ending)
    left = CodeChanged(
        f"run {session.run}: the workflow is left by {type(ending).__name__}, not by return or an ordinary exception.",
        run_id=session.run,
        cures=cures(session.run),
    )
    return _Verdict(STRANDED, (left,))
