"""A run seen from outside: what it did, why it stands still, and what people can do about it."""

from __future__ import annotations

import contextvars
import threading
import time
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Raw, Struct

from surefoot.core import values
from surefoot.core.address import as_recorded
from surefoot.core.entry import (
    AnswerGiven,
    CancelRequested,
    DriftAccepted,
    EffectSettled,
    EventSent,
    Progressed,
    RunCancelled,
    RunRewound,
    Value,
)
from surefoot.core.expectation import Drift
from surefoot.core.history import Past, PastState
from surefoot.core.state import ENDED, STATUSES, STOPPED, WAITING, RunState
from surefoot.core.timer import remaining
from surefoot.engine import config, drive, journal, people, start, worldview
from surefoot.engine.registry import Definition, registry
from surefoot.engine.rehearsal import rehearsing, would_do
from surefoot.engine.runtime import Runtime
from surefoot.engine.session import Session
from surefoot.engine.signals import PlanSignal, StopSignal
from surefoot.errors import Damaged, Fenced, Stopped, UsageError
from surefoot.store.contract import IndexRow, RunQuery

_NOT_GIVEN: Any = object()


class JournalEntry(Struct, frozen=True):
    """One entry of the journal, for people and programs to read."""

    seq: int
    at: datetime
    epoch: int
    kind: str
    data: dict[str, Any]
    """The recorded fact as plain JSON data. A value above 1 KB shows as `{"$large": bytes}`; `Run.steps` has it."""


class RecordedCall(Struct, frozen=True):
    """One call of a run: what was asked, what came of it, and by which process."""

    address: str
    kind: str
    status: str
    attempts: int
    started: datetime
    ended: datetime | None
    by: str
    args: str
    """JSON, as recorded."""
    result: str
    """JSON, as recorded; empty while there is none."""
    error: str
    key: str
    on_crash: str
    learned_by: str


class ResumePlan(Struct, frozen=True):
    """What a resume would do now. Nothing is executed by looking."""

    run_id: str
    status: str
    replayed: list[str]
    in_doubt: list[tuple[str, str]]
    """(address, what a resume does about it)."""
    next: list[tuple[str, str]] | None
    """(kind, address) of the calls that would be executed next; None: the code is not at hand."""
    stops: list[str]
    """What would stop the resume before anything new is executed."""

    @property
    def effects(self) -> list[str]:
        """Addresses of the effects that would run."""
        return [address for kind, address in self.next or [] if kind == "effect"]


class Run:
    """A handle on one run. Every look reads the journal and verifies it."""

    def __init__(self, runtime: Runtime, run_id: str, row: IndexRow | None = None) -> None:
        self.id = run_id
        self.runtime = runtime
        self.row = row

    def __repr__(self) -> str:
        return f"<Run {self.id}>"

    # -- looking --------------------------------------------------------------------------------------

    def state(self) -> RunState:
        """The run as its journal tells it now."""
        found = journal.load(self.runtime.store, self.id)
        if found is None:
            raise start.not_found(self.id, self.runtime.store.url)
        return found[0]

    @property
    def status(self) -> str:
        """queued, running, sleeping, waiting, stopped, done, failed or cancelled."""
        return self.state().status

    @property
    def workflow(self) -> str:
        created = self.state().created
        return "" if created is None else created.workflow

    @property
    def labels(self) -> dict[str, str]:
        created = self.state().created
        return {} if created is None else dict(created.labels)

    @property
    def stop(self) -> Stopped | None:
        """Why the run stands still; None if it does not."""
        return next(iter(self.stops), None)

    @property
    def stops(self) -> tuple[Stopped, ...]:
        stops = self.state().stops
        return start.revive(stops, self.id, self.runtime.store.url).stops if stops else ()

    @property
    def progress(self) -> Progressed | None:
        return self.state().progress

    @property
    def published(self) -> dict[str, Any]:
        return {name: values.decode(self.whole(raw)) for name, raw in self.state().published.items()}

    def is_driven(self) -> bool:
        """Whether a living process drives the run at this moment."""
        return start.driven_elsewhere(self.runtime, self.state())

    def entries(self) -> list[JournalEntry]:
        found = journal.records(self.runtime.store, self.id)
        if not found:
            raise start.not_found(self.id, self.runtime.store.url)
        return [journal_entry(record) for record in found]

    def steps(self) -> list[RecordedCall]:
        """The recorded calls of the current segment, in the order they were first recorded."""
        return [self._recorded(past) for past in self.state().calls.values() if past.kind in ("step", "effect")]

    def _recorded(self, past: Past) -> RecordedCall:
        args, result = (None if value is None else self.whole(value) for value in (past.args, past.value))
        return _recorded(past, args, result)

    def whole(self, value: Value) -> Raw:
        """The bytes of a recorded value, wherever they are kept."""
        return journal.whole(self.runtime.store, self.id, value)

    def verify(self) -> int:
        """Check every seal, the chain, the head and every value. The number of entries; damage is JournalCorrupt."""
        from surefoot.engine import verifying

        return verifying.verify_run(self.runtime.store, self.id)

    def result(self, timeout: float | None = None) -> Any:
        """Wait for the run to end. Raises its failure, its stop, or TimeoutError."""
        deadline = None if timeout is None else time.monotonic() + timeout
        pause, nap = threading.Event(), start.FIRST_NAP
        while True:
            state = self.state()
            if state.status in ENDED:
                return start.recorded_end(self.runtime.store, state)
            if state.status in (STOPPED, WAITING):
                raise start.revive(state.stops, self.id, self.runtime.store.url)
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"run {self.id} is still {state.status}")
            pause.wait(nap)
            nap = min(nap * 1.5, start.LONGEST_NAP)

    def plan(self) -> ResumePlan:
        """What a resume would do now, found by replaying without executing anything."""
        found = journal.load(self.runtime.store, self.id)
        if found is None:
            raise start.not_found(self.id, self.runtime.store.url)
        state, head = found
        in_doubt = [(past.address, _would_settle(past)) for past in state.in_doubt()]
        definition = registry.known(state.created.workflow) if state.created else None
        stops = [stop.message for stop in state.stops]
        upcoming: list[tuple[str, str]] | None = None
        if definition is not None and state.status not in ENDED:
            session = Session(self.runtime, state, head, dry=True)
            try:
                _rehearse(session, definition)
            except Stopped as stop:
                stops = stops or [stop.summary]
            if session.trouble is not None:
                stops = stops or [str(session.trouble)]
            in_doubt += [(address, _by_policy(policy)) for address, policy in session.suspects]
            asking = {address for address, what in in_doubt if what.startswith("stop")}
            upcoming = [(kind, address) for kind, address in session.planned if address not in asking]
            stops = stops or [stop.message for stop in session.stops]
        replayed = [past.address for past in state.calls.values() if past.state in (PastState.DONE, PastState.FAILED)]
        return ResumePlan(self.id, state.status, replayed, in_doubt, upcoming, stops)

    # -- acting ---------------------------------------------------------------------------------------

    def resume(self) -> Any:
        """Go on with the run in this process; the workflow must have been imported."""
        state = self.state()
        definition = registry.find(state.created.workflow if state.created else "")
        if definition.is_async:
            import asyncio

            from surefoot.engine import start_async

            return asyncio.run(start_async.run_async(self.runtime, definition.resume_plan(), self.id, start.Options()))
        return start.run_blocking(self.runtime, definition.resume_plan(), self.id, start.Options())

    def settle(
        self,
        address: str,
        *,
        happened: Any = _NOT_GIVEN,
        not_happened: bool = False,
        by: str | None = None,
        note: str = "",
    ) -> None:
        """Answer for an in-doubt effect: it happened and gave this value, or it did not happen."""
        address = as_recorded(address)
        if (happened is not _NOT_GIVEN) == bool(not_happened):
            raise UsageError("settle: say either happened=VALUE or not_happened=True")
        raw = Raw(b"null" if not_happened else values.encode(happened))

        def decide(state: RunState) -> EffectSettled:
            past = self._doubtful(state, address, not_happened=bool(not_happened))
            return EffectSettled(address, not not_happened, past.attempt, raw, "person", by or whoami(), note)

        self._visit(decide)

    def _doubtful(self, state: RunState, address: str, *, not_happened: bool) -> Past:
        past = state.calls.get(address)
        doubtful = ", ".join(past.address for past in state.in_doubt()) or "nothing"
        if past is None or past not in state.in_doubt():
            raise UsageError(f"run {self.id}: {address} is not in doubt. In doubt: {doubtful}.")
        if start.driven_elsewhere(self.runtime, state):
            raise UsageError(
                f"run {self.id}: {address} is being executed by {start.claimant(state)}, which is alive. "
                "Wait for it, or end that process first."
            )
        if not_happened and past.state is PastState.UNSTORABLE:
            raise UsageError(f"run {self.id}: {address} did happen; only its value is unknown. Settle it with a value.")
        return past

    def cancel(self, *, by: str | None = None, note: str = "") -> None:
        """Ask the run to end. Without a living process it ends at once."""

        def decide(state: RunState) -> CancelRequested | None:
            if state.status in ENDED:
                raise UsageError(f"run {self.id} has ended already: {state.status}")
            return None if state.cancel is not None else CancelRequested(by or whoami(), note)

        state = self._visit(decide)
        if not start.driven_elsewhere(self.runtime, state):
            self._end_cancelled()

    def _end_cancelled(self) -> None:
        found = journal.load(self.runtime.store, self.id)
        if found is None or found[0].status in ENDED:
            return
        session = Session(self.runtime, *found)
        try:
            drive.go_live(session)
            session.journal.append(RunCancelled())
        except Fenced:
            return  # Somebody took the run up at this moment, and sees the request at its first verb.
        finally:
            self.runtime.discharge(session)

    def answer(self, name: str, value: Any, *, by: str | None = None, note: str = "") -> None:
        """Answer an open question (`approve#1`): true or false, or what was asked for. The first answer counts."""
        address, who = as_recorded(name), by or whoami()
        raw = Raw(values.encode(value))

        def decide(state: RunState) -> AnswerGiven:
            past = self._open_question(state, address, who)
            people.require_fit(past, value)
            return AnswerGiven(address, past.shown, raw, who, note)

        self._visit(decide)

    def _open_question(self, state: RunState, address: str, who: str) -> Past:
        past = state.calls.get(address)
        names = [one.address for one in state.questions()]
        if past is None or past.kind != "question":
            raise UsageError(f"run {self.id} has no question {address!r}. Open: {', '.join(names) or 'none'}.")
        if past.state is not PastState.OPEN or state.status in ENDED:
            said = f"answered by {past.learned_by}" if past.learned_by else "closed"
            raise UsageError(f"run {self.id}: {address} is {said} already; the first answer counts.")
        if past.due is not None and remaining(past.due, self.runtime.clock.read()) <= 0:
            raise UsageError(f"run {self.id}: the time to answer {address} is over.")
        if past.answerers and who not in past.answerers:
            raise UsageError(f"run {self.id}: {address} is for {', '.join(past.answerers)}, not for {who}.")
        return past

    def drift(self) -> list[Drift]:
        """What is not as this run left it, found by looking now. Changes nothing."""
        return self._findings(self.state()).drift

    def _findings(self, state: RunState) -> worldview.Findings:
        definition = registry.known(state.created.workflow) if state.created else None
        return worldview.look(state.world, definition.watch if definition is not None else ())

    def accept_drift(self, witness: str | None = None, *, by: str | None = None, note: str = "") -> list[str]:
        """Accept the world as it is found now, for this witness or for all that have drifted. What was accepted."""
        findings = self._findings(self.state())
        drifted = {found.witness for found in findings.drift}
        if witness is not None and witness not in drifted:
            raise UsageError(
                f"run {self.id}: {witness} has not drifted. Drifted: {', '.join(sorted(drifted)) or 'none'}."
            )
        unseen = [
            found for found in findings.drift if found.what == "not observable" and witness in (None, found.witness)
        ]
        if unseen:
            raise UsageError(f"run {self.id}: what cannot be observed cannot be accepted: {unseen[0].line()}")
        wanted = drifted if witness is None else {witness}
        sights = tuple(sight for sight in findings.sights if sight.witness in wanted)
        if not sights:
            raise UsageError(f"run {self.id}: nothing has drifted.")

        def decide(state: RunState) -> DriftAccepted:
            if start.driven_elsewhere(self.runtime, state):
                raise UsageError(f"run {self.id} is being driven by {start.claimant(state)}, which is alive.")
            return DriftAccepted(sights, by or whoami(), note)

        self._visit(decide)
        return sorted(wanted)

    def rewind(self, address: str, *, by: str | None = None, note: str = "") -> list[str]:
        """Send the run back to before a call. Steps run again; effects from there on are in doubt. These effects."""
        address = as_recorded(address)

        def decide(state: RunState) -> RunRewound:
            if start.driven_elsewhere(self.runtime, state):
                raise UsageError(
                    f"run {self.id} is being driven by {start.claimant(state)}, which is alive. End it first."
                )
            past = state.calls.get(address)
            if past is None:
                known = ", ".join(list(state.calls)[-10:]) or "none"
                raise UsageError(f"run {self.id} has no recorded call {address!r}. The last ones: {known}.")
            return RunRewound(address, by or whoami(), note, past.first)

        return [past.address for past in self._visit(decide).in_doubt()]

    def send_event(self, name: str, value: Any, *, id: str, by: str | None = None) -> None:  # noqa: A002 - the recorded field
        """Deliver an event; a second one with the same id is the same event."""
        raw = Raw(values.encode(value))

        def decide(state: RunState) -> EventSent | None:
            if state.status in ENDED:
                raise UsageError(f"run {self.id} has ended already: {state.status}")
            return None if state.has_event(id) else EventSent(name, raw, id, by or whoami())

        self._visit(decide)

    def _visit(self, decide: Any) -> RunState:
        would_do("visit of run", self.id)
        state = journal.visit(self.runtime.store, self.runtime.clock, self.id, decide)
        if state is None:
            raise start.not_found(self.id, self.runtime.store.url)
        return state


def get_run(run_id: str, *, store: str | None = None) -> Run:
    """The run with that id. NotFound names the store that was looked in."""
    start.check_id(run_id)
    run = Run(config.runtime(store, create=False), run_id)
    run.state()
    return run


def runs(
    *,
    status: str | None = None,
    workflow: str | None = None,
    labels: dict[str, str] | None = None,
    limit: int = 100,
    offset: int = 0,
    store: str | None = None,
) -> list[Run]:
    """The runs of a store, newest first."""
    if status is not None and status not in STATUSES:
        raise UsageError(f"status={status!r} is none of {', '.join(STATUSES)}")
    runtime = config.runtime(store, create=False)
    query = RunQuery(status, workflow, labels or {}, limit, offset)
    found = [Run(runtime, listed.run, listed.row) for listed in runtime.store.runs(query)]
    return [run for run in found if run.row is not None or _fits(run, query)]


def _fits(run: Run, query: RunQuery) -> bool:
    """A run whose cached line is missing or damaged: its journal decides. Damaged too: it is listed."""
    try:
        row = run.row = journal.index_row(run.state())
    except Damaged:
        return True
    wanted = (query.status in (None, row.status), query.workflow in (None, row.workflow))
    return all(wanted) and all(row.labels.get(key) == value for key, value in query.labels.items())


def whoami() -> str:
    """Who acts, where nobody is named: the operating system's user."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def journal_entry(record: Any) -> JournalEntry:
    from surefoot.core.seal import from_record

    entry = from_record(record)
    at = datetime.fromtimestamp(record.at / 1e6, UTC)
    data = msgspec.json.decode(record.body)
    for name in data.pop("large", ()):
        data[name] = {"$large": getattr(entry, name).reference.size}
    return JournalEntry(record.seq, at, record.epoch, type(entry).__name__, data)


def _recorded(past: Past, args: Raw | None, result: Raw | None) -> RecordedCall:
    error = "" if past.error is None else ": ".join(values.error_summary(past.error))
    return RecordedCall(
        address=past.address,
        kind=past.kind,
        status=past.state.value,
        attempts=max(past.attempt, 1),
        started=datetime.fromtimestamp(past.at / 1e6, UTC),
        ended=datetime.fromtimestamp(past.ended / 1e6, UTC) if past.ended else None,
        by=past.claimant,
        args=bytes(args or b"").decode(),
        result=bytes(result or b"").decode(),
        error=error if past.state is not PastState.DONE else "",
        key=past.key,
        on_crash=past.policy,
        learned_by=past.learned_by,
    )


def _would_settle(past: Past) -> str:
    if past.state is PastState.UNSTORABLE:
        return "stop: its value must be given by a person"
    return _by_policy(past.policy)


def _by_policy(policy: str) -> str:
    return {"retry": "run again with the same key", "fail": "fail the call"}.get(policy, "stop and ask a person")


def _rehearse(session: Session, definition: Definition) -> None:
    """Replay up to the first calls that would be executed."""
    args, kwargs = start.recorded_arguments(session, definition.resume_plan())
    with rehearsing(session):
        if definition.is_async:
            outcome = _in_a_loop_of_its_own(session, lambda: definition.fn(*args, **kwargs))
        else:
            outcome = drive.invoke(session, lambda: definition.fn(*args, **kwargs))
    if isinstance(outcome, BaseException) and not isinstance(outcome, PlanSignal | StopSignal | Exception):
        raise outcome


def _in_a_loop_of_its_own(session: Session, fn: Any) -> Any:
    import asyncio

    from surefoot.engine import drive_async

    box: list[Any] = []
    context = contextvars.copy_context()
    thread = threading.Thread(
        target=lambda: box.append(context.run(asyncio.run, drive_async.invoke(session, fn))), daemon=True
    )
    thread.start()
    thread.join()
    return box[0]
