"""Would this code strand runs in flight? Every unfinished run is rehearsed with it, before it is deployed.

A rehearsal is a dry replay: recorded calls are answered by the journal, and the first call that would really be
executed ends it. No run is claimed and nothing is written. What the code does *between* its calls is done, as in
every replay. How the replay ends is judged by the session itself, as in a resume; its wishes to write are dropped.

A run is *stranded* if this code cannot go on with it. Doubt, waiting and damage have other causes and are told apart.
It is *perhaps stranded* if an effect that was executed has not been asked for where the replay ends: in code that has not
changed, everything on record comes before what is new. Calls may have been put in front of it; or the resume executes
what is next, and finds only at its end that the effect is gone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

from msgspec import Struct

from surefoot.core import doubt
from surefoot.core.command import Done, Failed, Returned
from surefoot.core.entry import CallsUnclaimed, Entry, RunCreated, Stop
from surefoot.core.history import Past, cures, located, not_asked_yet
from surefoot.core.matching import Learned
from surefoot.core.state import ENDED, RunState
from surefoot.engine import drive, gate, journal, start
from surefoot.engine.ending import conclude
from surefoot.engine.registry import Definition, registry
from surefoot.engine.rehearsal import rehearsing
from surefoot.engine.removing import is_removed
from surefoot.engine.runtime import Runtime
from surefoot.engine.session import Session
from surefoot.engine.signals import ContinueSignal
from surefoot.errors import (
    CodeChanged,
    Damaged,
    Fenced,
    Stopped,
    StoreUnavailable,
    SurefootError,
    UsageError,
)
from surefoot.store.contract import Head, RunQuery

GOES_ON: Final = "goes on"
WAITS: Final = "waits"
"""For an answer, an event, a release: for something that is not code."""
IN_DOUBT: Final = "in doubt"
STRANDED: Final = "stranded"
PERHAPS: Final = "perhaps stranded"
DAMAGED: Final = "damaged"
VERDICTS: Final = (DAMAGED, STRANDED, PERHAPS, IN_DOUBT, WAITS, GOES_ON)
"""The most pressing first."""

_NOT_THE_CODE: Final = frozenset({"InDoubt", "WaitingForAnswer", "Drifted", "Quarantined"})
_OF_PEOPLE: Final = frozenset({"InDoubt", "WaitingForAnswer"})
_EVERY_RUN: Final = 2**62


class Finding(Struct, frozen=True):
    """What this code would do with one run."""

    run: str
    verdict: str
    workflow: str = ""
    version: int = 0
    """The workflow's version on record; 0: unknown."""
    code_version: int = 0
    """The version of the code at hand; 0: it does not have the workflow."""
    status: str = ""
    driven: bool = False
    """A living process drives it at this moment, with the code that process has."""
    why: tuple[BaseException, ...] = ()
    """What stops it; what the workflow would fail with."""
    in_doubt: tuple[Stopped, ...] = ()
    """Effects that a person has to answer for, whichever code it is."""
    next: tuple[tuple[str, str], ...] = ()
    """(kind, address) of what would be executed next."""
    unclaimed: tuple[str, ...] = ()
    """Recorded steps that the code no longer asks for: told, and no reason to stop."""


class _Verdict(Struct, frozen=True):
    name: str
    why: tuple[BaseException, ...] = ()
    unclaimed: tuple[str, ...] = ()


def unfinished(runtime: Runtime) -> list[str]:
    """The runs that have not ended, newest first; also those whose line in the run list cannot be read."""
    listed = runtime.store.runs(RunQuery(limit=_EVERY_RUN))
    return [one.run for one in listed if one.row is None or one.row.status not in ENDED]


def preflight(runtime: Runtime, runs: list[str]) -> Iterator[Finding | None]:
    """One answer for each run, in order. None: it has ended meanwhile."""
    return (check(runtime, run) for run in runs)


def check(runtime: Runtime, run: str) -> Finding | None:
    """Rehearse one run with the workflows this process knows."""
    try:
        found = journal.load(runtime.store, run)
    except Stopped as error:
        return Finding(run, _blame(error), why=(error,))
    if found is None or found[0].status in ENDED:
        return None
    state, head = found
    driven = start.driven_elsewhere(runtime, state)
    held, state.stops = state.stops, ()  # What stopped it under other code is asked anew.
    doubts = tuple(stop for stop in doubt.open_questions(state) if stop.reason == "InDoubt")
    in_doubt = () if driven else _revived(doubts, run, runtime.store.url)
    name = state.created.workflow if state.created else ""
    session = Rehearsal(runtime, state, head)
    definition: Definition | None = None
    try:
        definition = _definition(run, state.created)
        verdict = _judge(session, definition)
    except (Stopped, UsageError) as error:
        verdict = _Verdict(_blame(error), (error,))
    in_doubt += _revived(_suspected(session), run, runtime.store.url)
    if verdict.name in (GOES_ON, WAITS):
        verdict = _held_up(verdict, in_doubt, _revived(_still_open(held), run, runtime.store.url))
    return Finding(
        run,
        verdict.name,
        name,
        state.created.version if state.created else 0,
        definition.version if definition else 0,
        state.status,
        driven,
        verdict.why,
        in_doubt,
        tuple(session.planned),
        verdict.unclaimed,
    )


def _definition(run: str, created: RunCreated | None) -> Definition:
    name = "" if created is None else created.workflow
    try:
        return registry.find_for(created)
    except UsageError as error:
        if registry._known.get(name):  # several have that name, or another one has it
            raise UsageError(f"run {run}: {error}") from None
    raise CodeChanged(
        f"run {run}: its workflow {name!r} is not in the code at hand.",
        run_id=run,
        facts={"recorded": name, "asked": "nothing"},
        cures=(
            ("elsewhere?", "add --app MODULE for the module that defines it"),
            ("renamed?", f"@sf.workflow(name={name!r}) keeps the name that runs know it by"),
        ),
    )


def _still_open(held: tuple[Stop, ...]) -> tuple[Stop, ...]:
    """Recorded stops that no replay asks again. (Doubt and waiting are asked again, and so is the code.)"""
    return tuple(stop for stop in held if stop.reason in ("Drifted", "Quarantined"))


def _suspected(session: Session) -> tuple[Stop, ...]:
    """Effects that are in doubt because entries of the run were lost, and which a person has to answer for."""
    asking = [address for address, policy in session.suspects if policy not in ("retry", "fail")]
    return tuple(doubt.lost(session.run, address).stop("it has no check") for address in asking)


def _held_up(verdict: _Verdict, in_doubt: tuple[Stopped, ...], held: tuple[Stopped, ...]) -> _Verdict:
    if in_doubt:
        return _Verdict(IN_DOUBT, (*held, *verdict.why), verdict.unclaimed)
    return _Verdict(WAITS, (*held, *verdict.why), verdict.unclaimed) if held else verdict


def _revived(stops: tuple[Stop, ...], run: str, where: str) -> tuple[Stopped, ...]:
    return start.revive(stops, run, where).stops if stops else ()


def _blame(error: BaseException) -> str:
    return DAMAGED if isinstance(error, Damaged) else STRANDED


# --- the rehearsal ---------------------------------------------------------------------------------


class Rehearsal(gate.Rehearsal):
    """One that remembers which failures came from the journal."""

    def __init__(self, runtime: Runtime, state: RunState, head: Head, *, learned: Learned | None = None) -> None:
        super().__init__(runtime, state, head, learned=learned)
        self._recorded_failures: list[BaseException] = []

    def unasked(self) -> list[Past]:
        """Executed effects that no branch has asked for, although each has come to what it would do next."""
        heard = bool(self.planned or self.stops) and all(stop.reason in _OF_PEOPLE for stop in self.stops)
        if not heard or self.trouble is not None or self.state.cancel is not None:
            return []
        # Whoever sent the run back may want it to go another way.
        missing = [past for past in self.matcher.unasked() if not past.rewound and not is_removed(past)]
        return [past for past in missing if not (self.has_strays and "[" in past.address)]

    def would_strand(self) -> Stop | None:
        """What speaks against going on, though nothing stops the run before it executes something."""
        missing = self.unasked()
        if not missing:
            return None
        if self.planned:
            at = f"{', '.join(address for _, address in self.planned[:5])} would run"
        else:
            at = f"the run stands still at {', '.join(stop.address for stop in self.stops[:5])}"
        return not_asked_yet(self.run, missing, at)

    def revive(self, ending: Failed) -> BaseException:
        error = super().revive(ending)
        if error is not self.trouble:
            self._recorded_failures.append(error)
        return error

    def failed_before(self, error: BaseException) -> bool:
        """Whether it is a recorded failure, or was raised because of one: then it is no news."""
        seen: list[BaseException] = []
        story: BaseException | None = error
        while story is not None and story not in seen:
            if any(story is one for one in self._recorded_failures):
                return True
            seen.append(story)
            story = story.__cause__ or story.__context__
        return False


def _judge(session: Rehearsal, definition: Definition) -> _Verdict:
    plan = definition.resume_plan()
    try:
        args, kwargs = start.recorded_arguments(session, plan)
    except Stopped as error:
        raise located(error, session.run, "its arguments") from None
    if session.state.cancel is not None:
        return _Verdict(GOES_ON)  # To its end: the first verb it comes to cancels it.
    if (plain := gate.plain_functions(session.state, definition.fn)) is not None:
        return _Verdict(STRANDED, _revived((plain,), session.run, session.runtime.store.url))
    outcome = perform(session, definition, lambda: definition.fn(*args, **kwargs))
    if session.trouble is not None:
        return _trouble(session.trouble)
    changed = tuple(session.judged(outcome))
    if changed:
        return _Verdict(STRANDED, _revived(changed, session.run, session.runtime.store.url))
    if (perhaps := session.would_strand()) is not None:
        return _Verdict(PERHAPS, _revived((perhaps,), session.run, session.runtime.store.url))
    if session.stops:
        return _stopped(session)
    if session.planned:
        return _Verdict(GOES_ON)
    ending, wishes = _concluded(session, outcome)
    unclaimed = tuple(address for wish in wishes if isinstance(wish, CallsUnclaimed) for address in wish.addresses)
    if session.stops:
        return _stopped(session)
    return _Verdict(*_of_the_end(session, plan, ending), unclaimed)


def perform(session: Rehearsal, definition: Definition, fn: Callable[[], Any]) -> Returned | BaseException:
    """Replay the code up to where each branch would do something new, and say how it ended."""
    with rehearsing(session):
        outcome = _in_a_loop(session, fn) if definition.is_async else drive.invoke(session, fn)
    if isinstance(outcome, KeyboardInterrupt):
        raise outcome
    return outcome


def _in_a_loop(session: Rehearsal, fn: Callable[[], Any]) -> Returned | BaseException:
    """In a thread of its own: whoever asks may be inside a loop already."""
    import asyncio
    import contextvars

    from surefoot.engine import drive_async

    box: list[Returned | BaseException] = []

    def work() -> None:
        try:
            box.append(asyncio.run(drive_async.invoke(session, fn)))
        except BaseException as error:  # noqa: BLE001 - a task of the workflow's own ended the loop: that is the outcome
            box.append(error)

    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,), daemon=True)
    thread.start()
    thread.join()
    return box[0]


def _concluded(session: Session, outcome: Returned | BaseException) -> tuple[Any, list[Entry]]:
    """What a resume would make of that end, and what it would write."""
    wishes: list[Entry] = []
    program = conclude(session, outcome)
    try:
        while True:
            wishes.append(next(program).entry)
    except StopIteration as end:
        return end.value, wishes


def _stopped(session: Session) -> _Verdict:
    stops = _revived(tuple(session.stops), session.run, session.runtime.store.url)
    code = [stop for stop in stops if type(stop).__name__ not in _NOT_THE_CODE]
    if not code:
        return _Verdict(WAITS, stops)
    damaged = any(isinstance(stop, Damaged) for stop in code)
    return _Verdict(DAMAGED if damaged else STRANDED, tuple(code))


def _trouble(error: SurefootError) -> _Verdict:
    if isinstance(error, StoreUnavailable):
        raise error  # It says nothing about the run.
    return _Verdict(_blame(error), (error,))


def _of_the_end(session: Rehearsal, plan: start.Plan, ending: Any) -> tuple[str, tuple[BaseException, ...]]:
    """The verdict on a run that comes to an end without executing anything more."""
    if isinstance(ending, Done):
        return GOES_ON, ()
    if isinstance(ending, Failed):
        error = ending.cause
        return (GOES_ON, ()) if error is None or session.failed_before(error) else (STRANDED, (error,))
    if isinstance(ending, ContinueSignal):
        return _of_the_next_segment(session, plan, ending)
    if isinstance(ending, SurefootError) and not isinstance(ending, Fenced):
        found = _trouble(ending)
        return found.name, found.why
    return STRANDED, (_left(session.run, ending),)


def _of_the_next_segment(
    session: Session, plan: start.Plan, signal: ContinueSignal
) -> tuple[str, tuple[BaseException, ...]]:
    try:
        start.next_arguments(session.run, plan, signal)
    except UsageError as misuse:
        return STRANDED, (UsageError(str(misuse)),)  # Without its cause: no line of the user's raised that.
    return GOES_ON, ()


def _left(run: str, ending: BaseException) -> Stopped:
    return CodeChanged(
        f"run {run}: the workflow is left by {type(ending).__name__}, not by return or an ordinary exception.",
        run_id=run,
        cures=cures(run),
    )
