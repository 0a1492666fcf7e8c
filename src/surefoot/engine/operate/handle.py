"""A run seen from outside: what it did, why it stands still, and what people can do about it."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw, Struct

from surefoot.core import values
from surefoot.core.address import as_recorded
from surefoot.core.cure import command
from surefoot.core.entry import (
    AnswerGiven,
    CancelRequested,
    CodeMatched,
    Drift,
    DriftAccepted,
    EffectSettled,
    EventSent,
    Progressed,
    QuarantineLifted,
    RunRewound,
    Value,
)
from surefoot.core.expectation import UNSEEN
from surefoot.core.history import Past, PastCall, PastEffect, PastQuestion, PastState
from surefoot.core.reopening import failed_undos, undo_again, undone_across, why_not
from surefoot.core.seal import Record, from_record
from surefoot.core.state import ENDED, STOPPED, WAITING, RunState
from surefoot.core.stops import revive
from surefoot.core.timer import Duration, remaining, seconds
from surefoot.core.visible import shorten, visible
from surefoot.engine.declare import drifts
from surefoot.engine.declare.plan import Options, check_id
from surefoot.engine.declare.registry import registry
from surefoot.engine.declare.rehearsal import would_do
from surefoot.engine.drive import claimant, start
from surefoot.engine.drive.outcome import not_found, recorded_end, refuse_ended
from surefoot.engine.operate import cancels, resume_plan, run_list
from surefoot.engine.operate.return_type import fitted
from surefoot.engine.process import config, journal
from surefoot.engine.process.runtime import Runtime
from surefoot.engine.session import questions
from surefoot.errors import Stopped, UsageError
from surefoot.store.contract import Head, IndexRow, RunQuery

if TYPE_CHECKING:
    from collections.abc import Iterable

    from surefoot.engine.operate.forks import Fork, StateAt
    from surefoot.engine.operate.retries import Reopening

_NOT_GIVEN: Any = object()
_SETTLED: Final = (PastState.DONE, PastState.CLEARED, PastState.FAILED)


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


class Run:
    """A handle on one run. Every look reads the journal and verifies it."""

    def __init__(self, runtime: Runtime, run_id: str, row: IndexRow | None = None, *, keeps: bool = False) -> None:
        self.id = run_id
        self.runtime = runtime
        self.row = row
        self._keeps = keeps
        self._kept: tuple[RunState, Head] | None = None

    def __repr__(self) -> str:
        return f"<Run {self.id}>"

    # -- looking --------------------------------------------------------------------------------------

    def state(self) -> RunState:
        """The run as its journal tells it now."""
        return self._loaded()[0]

    def _loaded(self) -> tuple[RunState, Head]:
        if self._kept is not None:
            stored = self.runtime.store.read(self.id, self._kept[1].seq)
            if not stored.records and stored.head == self._kept[1]:
                return self._kept
        found = journal.load(self.runtime.store, self.id)
        if found is None:
            raise not_found(self.id, self.runtime.store.url)
        self._kept = found if self._keeps else None
        return found

    def _taken(self) -> tuple[RunState, Head]:
        """The same, for a method that changes the run."""
        found, self._kept = self._loaded(), None
        return found

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
        return revive(stops, self.id, self.runtime.store.url).stops if stops else ()

    @property
    def progress(self) -> Progressed | None:
        return self.state().progress

    @property
    def published(self) -> dict[str, Any]:
        return {name: values.decode(self.whole(raw)) for name, raw in self.state().published.items()}

    def is_driven(self) -> bool:
        """Whether a living process drives the run at this moment."""
        return claimant.is_driven(self.runtime, self.state())

    def entries(self) -> list[JournalEntry]:
        return [journal_entry(record) for record in self._records()]

    def _records(self) -> list[Record]:
        found = journal.records(self.runtime.store, self.id)
        if not found:
            raise not_found(self.id, self.runtime.store.url)
        return found

    def steps(self) -> list[RecordedCall]:
        """The recorded calls of the current segment, in the order they were first recorded."""
        return [self.recorded(past) for past in self.state().calls.values() if isinstance(past, PastCall)]

    def recorded(self, past: Past) -> RecordedCall:
        """A folded call for people and programs to read."""
        error = "" if past.error is None else ": ".join(values.error_summary(past.error))
        effect = past if isinstance(past, PastEffect) else None
        return RecordedCall(
            address=past.address,
            kind=past.kind,
            status=past.state.value,
            attempts=max(past.attempt, 1) if isinstance(past, PastCall) else 1,
            started=_when(past.at),
            ended=_when(past.ended) if past.ended else None,
            by=past.claimant,
            args=self._text(past.args),
            result=self._text(past.value),
            error=error if past.state is not PastState.DONE else "",
            key=effect.key if effect else "",
            on_crash=effect.policy if effect else "",
            learned_by=past.learned_by if isinstance(past, PastEffect | PastQuestion) else "",
        )

    def _text(self, value: Value | None) -> str:
        return "" if value is None else bytes(self.whole(value)).decode()

    def whole(self, value: Value) -> Raw:
        """The bytes of a recorded value, wherever they are kept."""
        return journal.whole(self.runtime.store, self.id, value)

    def verify(self) -> int:
        """Check every seal, the chain, the head and every value. The number of entries; damage is JournalCorrupt."""
        from surefoot.engine.upkeep import verification

        return verification.verify_run(self.runtime.store, self.id)

    def state_at(self, address: str, *, segment: int | None = None) -> StateAt:
        """What was recorded up to and including that call; of several segments the newest that has it is meant."""
        from surefoot.engine.operate import forks

        return forks.state_at(self, address, segment=segment)

    def result(self, timeout: Duration | None = None) -> Any:
        """Wait for the run to end. Raises its failure, its stop, or TimeoutError."""
        deadline = None if timeout is None else time.monotonic() + seconds(timeout)
        pause, nap = threading.Event(), start.FIRST_NAP
        while True:
            state = self.state()
            if state.status in ENDED:
                return recorded_end(self.runtime.store, state)
            if state.stops and state.status in (STOPPED, WAITING):
                raise revive(state.stops, self.id, self.runtime.store.url)
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"run {self.id} is still {state.status}")
            pause.wait(nap)
            nap = min(nap * 1.5, start.LONGEST_NAP)

    def plan(self) -> resume_plan.ResumePlan:
        """What a resume would do now, found by replaying without executing anything."""
        return resume_plan.plan(self.runtime, *self._loaded())

    # -- acting ---------------------------------------------------------------------------------------

    def resume(self) -> Any:
        """Go on with the run in this process; the workflow must have been imported."""
        return self._resumed(self._taken())

    def _resumed(self, found: tuple[RunState, Head]) -> Any:
        definition = registry.find_for(found[0].created)
        plan = definition.resume_plan()
        if definition.is_async:
            import asyncio

            self._require_no_loop("resume")
            return asyncio.run(start.run_async(self.runtime, plan, self.id, Options(), found))
        return start.run_blocking(self.runtime, plan, self.id, Options(), found)

    def settle(
        self,
        address: str,
        *,
        happened: Any = _NOT_GIVEN,
        not_happened: bool = False,
        failed: bool = False,
        by: str | None = None,
        note: str = "",
    ) -> None:
        """Answer for an in-doubt effect: it happened and gave this value, or it did not happen, and is run again.

        `failed`: it did not happen, and the call fails with the exception it ended with, so that `except` clauses and
        sagas go on. One that was cut off fails with `sf.NotDone`.

        If the effect is defined in this process, the value is held against what it says to return; plain data stands for
        a dataclass or a Struct.
        """
        address = as_recorded(address)
        if (happened is not _NOT_GIVEN) + bool(not_happened) + bool(failed) != 1:
            raise UsageError("settle: say one of happened=VALUE, not_happened=True and failed=True")
        denied = bool(not_happened or failed)

        def decide(state: RunState) -> EffectSettled:
            past = self._doubtful(state, address, not_happened=denied)
            value = None if denied else fitted(self.id, address, happened)
            raw = Raw(values.encode(value))
            return EffectSettled(
                address, not denied, past.attempt, raw, "person", by or whoami(), note, failed=bool(failed)
            )

        self._visit(decide)

    def _doubtful(self, state: RunState, address: str, *, not_happened: bool) -> PastEffect:
        past = state.effect(address)
        doubtful = ", ".join(past.address for past in state.in_doubt()) or "nothing"
        if past is None or past not in state.in_doubt():
            settled = "" if past is None else self._settled(past)
            raise UsageError(f"run {self.id}: {address} is not in doubt{settled}. In doubt: {doubtful}.")
        if claimant.is_driven(self.runtime, state):
            raise UsageError(
                f"run {self.id}: {address} is being executed by {claimant.described_living(self.runtime, state)}. "
                "Wait for it, or end that process first."
            )
        if not_happened and past.state is PastState.UNSTORABLE:
            raise UsageError(f"run {self.id}: {address} did happen; only its value is unknown. Settle it with a value.")
        return past

    def _settled(self, past: PastEffect) -> str:
        """Who said what about it before, and how that is taken back."""
        if not past.learned_by or past.state not in _SETTLED:
            return ""
        who = past.learned_by.removeprefix("person ")
        said = f": settled by {who} at {_when(past.ended):%Y-%m-%d %H:%M:%S} UTC as"
        if past.state is PastState.FAILED:
            return f"{said} not happened, so that it fails"
        if past.state is PastState.CLEARED or past.value is None:
            return f"{said} not happened, so that the next resume runs it"
        value = shorten(visible(self._text(past.value)), 100)
        return f"{said} {value}; take it back: {command('runs rewind', self.id, at=past.address)}"

    def cancel(self, *, by: str | None = None, note: str = "") -> None:
        """Ask the run to end. Without a living process it ends at once, after its sagas were undone.

        That takes the code: where it is not at hand, what the run did stays done. What is in doubt is looked at by its
        check; what nobody can tell is alerted of, and named by `surefoot runs show`.
        """

        def decide(state: RunState) -> CancelRequested | None:
            refuse_ended(state)
            if (definition := cancels.undoes_here(self.runtime, state)) is not None and definition.is_async:
                self._require_no_loop("cancel")
            return None if state.cancel is not None else CancelRequested(by or whoami(), note)

        found = self._visited(decide)
        cancels.carry_out(self.runtime, found, lambda: self._resumed(found))

    def left_done_by_cancel(self) -> list[str]:
        """Effects that a cancellation from here would leave done, because only the code knows whether to undo them."""
        return cancels.would_leave_done(self.runtime, self.state())

    def _require_no_loop(self, verb: str) -> None:
        """It drives an async workflow to its end, and a loop that runs already cannot wait for that."""
        import asyncio

        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return
        raise UsageError(
            f"run {self.id}: its workflow is async, and run.{verb}() would block the loop that calls it. In async code: "
            f"await (await surefoot.aio.get_run({self.id!r})).{verb}()"
        )

    def answer(self, name: str, value: Any, *, by: str | None = None, note: str = "", shown: str = "") -> None:
        """Answer an open question (`approve#1`): true or false, or what was asked for. The first answer counts.

        `shown` is the digest of the question as you saw it (or how it begins): an answer to another one is refused.
        """
        address, who = as_recorded(name), by or whoami()

        def decide(state: RunState) -> AnswerGiven:
            past = self._open_question(state, address, who)
            if not past.shown.startswith(shown):
                raise UsageError(f"run {self.id}: {address} asks something else than you saw. Look at it again.")
            given = questions.plain(past, value)
            questions.require_fit(past, given)
            return AnswerGiven(address, past.shown, Raw(values.encode(given)), who, note)

        self._visit(decide)

    def _open_question(self, state: RunState, address: str, who: str) -> PastQuestion:
        past = state.question(address)
        names = [one.address for one in state.questions()]
        if past is None:
            raise UsageError(f"run {self.id} has no question {address!r}. Open: {', '.join(names) or 'none'}.")
        if past.state is PastState.DONE:
            raise UsageError(
                f"run {self.id}: {address} was answered by {past.learned_by} already; the first answer counts."
            )
        over = past.due is not None and remaining(past.due, self.runtime.clock.read()) <= 0
        if past.state is not PastState.OPEN or over:
            means = "the no, or what on_timeout= says," if past.form == "approve" else "that nobody answered"
            more = f" Resume the run: {means} is recorded then." if past.state is PastState.OPEN else ""
            raise UsageError(f"run {self.id}: the time to answer {address} is over.{more}")
        refuse_ended(state)
        if past.answerers and who not in past.answerers:
            raise UsageError(f"run {self.id}: {address} is for {', '.join(past.answerers)}, not for {who}.")
        return past

    def drift(self) -> list[Drift]:
        """What is not as this run left it, found by looking now. Changes nothing."""
        return self._findings(self.state()).drift

    def _findings(self, state: RunState) -> drifts.Findings:
        definition = registry.known_for(state.created)
        return drifts.look(state.world, definition.watch if definition is not None else ())

    def accept_drift(self, witness: str | None = None, *, by: str | None = None, note: str = "") -> list[str]:
        """Accept the world as it is found now, for this witness or for all that have drifted. What was accepted.

        A witness that cannot be observed has to be named: to accept that means that the run no longer watches it.
        """
        return sorted({found.witness for found in self.take_as_found(witness, by=by, note=note)})

    def take_as_found(self, witness: str | None = None, *, by: str | None = None, note: str = "") -> list[Drift]:
        """The same, telling each part that was accepted."""
        accepted: list[Drift] = []

        def decide(state: RunState) -> DriftAccepted:
            claimant.refuse_driven(self.runtime, state)
            refuse_ended(state)
            # Looked at here, so that it is held against the very state that the entry follows.
            findings = self._findings(state)
            accepted[:] = self._acceptable(state, findings.drift, witness)
            wanted = {found.witness for found in accepted}
            sights = tuple(sight for sight in findings.sights if sight.witness in wanted)
            unwatched = {found.witness: found.actual for found in accepted if found.what == UNSEEN}
            return DriftAccepted(sights, by or whoami(), note, unwatched)

        self._visit(decide)
        return accepted

    def _acceptable(self, state: RunState, drift: list[Drift], witness: str | None) -> list[Drift]:
        wanted = [found for found in drift if witness in (None, found.witness)]
        if not wanted:
            drifted = ", ".join(sorted({found.witness for found in drift})) or "nothing"
            what = "nothing" if witness is None else witness
            raise UsageError(f"run {self.id}: {what} has{' not' if witness else ''} drifted. Drifted: {drifted}.")
        seen = [found for found in wanted if found.what != UNSEEN]
        if seen:
            return seen
        lines = "; ".join(found.line() for found in wanted)
        if any(found.actual == drifts.CODE_NEEDED for found in wanted):
            try:
                registry.find_for(state.created)
            except UsageError as error:
                # A look that only lacks the code is no reason to stop looking.
                raise UsageError(f"run {self.id}: {lines}. {error}") from None
        if witness is None:
            raise UsageError(f"run {self.id}: {lines}. Name the witness, if the run shall no longer watch it")
        return wanted

    def rewind(self, address: str, *, by: str | None = None, note: str = "") -> list[str]:
        """Rewind the run to before a call. Steps run again; effects from there on are in doubt. Returns these effects."""
        address = as_recorded(address)

        def decide(state: RunState) -> RunRewound:
            claimant.refuse_driven(self.runtime, state, " End it first.")
            return RunRewound(address, by or whoami(), note, self._way_back(state, address))

        return [past.address for past in self._visit(decide).in_doubt()]

    def set_aside_by_rewind(self, address: str) -> tuple[list[Past], list[PastEffect]]:
        """What a rewind to before this call would set aside; and which effects of these would be in doubt."""
        state = self.state()
        first = self._way_back(state, as_recorded(address))
        return [past for past in state.calls.values() if past.first >= first], state.executed_since(first)

    def _way_back(self, state: RunState, address: str) -> int:
        """The first entry of that call. Refused: an effect in front of it would count as done that was undone since."""
        past = state.calls.get(address)
        if past is None:
            from surefoot.engine.operate import forks

            raise forks.unknown_call(self.id, address, list(state.calls))
        first = past.first
        one = undone_across(state, first)
        if one is not None and past in failed_undos(state):
            raise UsageError(
                f"run {self.id}: it cannot go back to before {address}: what was undone after it would be in doubt.\n"
                f"  only undo what is left?   {undo_again(self.id, [address], when='')}"
            )
        if one is not None:
            rewind = command("runs rewind", self.id, at=one.effect.address)
            raise UsageError(
                f"run {self.id}: it cannot go back to before {address}: {one.effect.address} came before that, and no "
                f"longer stands: {why_not(one)}\n  go back to before it?   {rewind}"
            )
        return first

    def retry(
        self, *, failed: bool | None = None, at: str | Iterable[str] = (), by: str | None = None, note: str = ""
    ) -> list[str]:
        """Have the calls that failed tried again: all of them, or those at these addresses. Everything else stays.

        Also in a run that is done or has failed. Where no call failed, but the workflow itself did, the run is opened
        again. What its own child runs failed at is tried again too. Nothing is executed now. The calls of this run.
        """
        from surefoot.engine.operate import retries

        return retries.retry(self, failed=failed, at=at, by=by or whoami(), note=note)

    def would_retry(self, *, failed: bool | None = None, at: str | Iterable[str] = ()) -> list[Reopening]:
        """What a retry would have tried again, child runs first. UsageError, where that is not possible."""
        from surefoot.engine.operate import retries

        return retries.outlook(self, failed=failed, at=at)

    def fork(self, new_id: str, *, at: str, by: str | None = None, note: str = "") -> Fork:
        """A new run that reuses what was recorded before that call, and goes on by itself. This one is only read."""
        from surefoot.engine.operate import forks

        return forks.fork(self, new_id, at=at, by=by, note=note)

    def match(
        self,
        address: str,
        *,
        is_: str | None = None,
        new: bool = False,
        keep: bool = False,
        rerun: bool = False,
        by: str | None = None,
        note: str = "",
    ) -> None:
        """Say what a call of changed code is: the recorded call `is_`, a new one, or one whose changed arguments do not
        matter (`keep`) or do (`rerun`). `*` stands for any characters.
        """
        from surefoot.engine.operate import matches

        def decide(state: RunState) -> CodeMatched:
            claimant.refuse_driven(self.runtime, state)
            return matches.word(state, address, is_=is_, new=new, keep=keep, rerun=rerun, by=by or whoami(), note=note)

        self._visit(decide)

    def send_event(self, name: str, value: Any, *, id: str, by: str | None = None) -> None:  # noqa: A002 - the recorded field
        """Deliver an event; a second one with the same id is the same event."""
        raw = Raw(values.encode(value))

        def decide(state: RunState) -> EventSent | None:
            refuse_ended(state)
            return None if state.has_event(id) else EventSent(name, raw, id, by or whoami())

        self._visit(decide)

    def release(self, *, by: str | None = None, note: str = "") -> None:
        """Let workers take the run up again after it was quarantined."""

        def decide(state: RunState) -> QuarantineLifted:
            if not any(stop.reason == "Quarantined" for stop in state.stops):
                raise UsageError(f"run {self.id} is not quarantined: {state.status}.")
            return QuarantineLifted(by or whoami(), note)

        self._visit(decide)

    def _visit(self, decide: Any) -> RunState:
        found = self._visited(decide)
        self._kept = found if self._keeps else None
        return found[0]

    def _visited(self, decide: Any) -> tuple[RunState, Head]:
        would_do("visit of run", self.id)
        known = self._taken() if self._keeps else None
        found = journal.visit(self.runtime.store, self.runtime.clock, self.id, decide, known)
        if found is None:
            raise not_found(self.id, self.runtime.store.url)
        return found


def get_run(run_id: str, *, store: str | None = None) -> Run:
    """The run with that id. NotFound names the store that was looked in."""
    return opened(run_id, store)


def opened(run_id: str, store: str | None, *, keeps: bool = False) -> Run:
    """The same. `keeps`: for one command; the journal is read and verified once, and after that only what is new."""
    check_id(run_id)
    run = Run(config.runtime(store, create=False), run_id, keeps=keeps)
    run.state()
    return run


def runs(
    *,
    status: str | None = None,
    workflow: str | None = None,
    labels: dict[str, str] | None = None,
    need: str | None = None,
    queue: str | None = None,
    limit: int = 100,
    before: str = "",
    store: str | None = None,
) -> list[Run]:
    """The runs of a store, newest first. The next page: `before` is the id of the last run of this one.

    `need` is what waits for a person, by kind: `"in_doubt"`, `"question"` …; `"*"` for whatever does.
    """
    query = run_list.checked(RunQuery(status, workflow, labels or {}, limit, need, queue, before))
    runtime = config.runtime(store, create=False)
    return [Run(runtime, one.run, one.row) for one in run_list.listed(runtime, query)]


def whoami() -> str:
    """Who acts, where no name is given: the operating system's user."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def journal_entry(record: Record) -> JournalEntry:
    entry = from_record(record)
    data = msgspec.json.decode(record.body)
    for name in data.pop("large", ()):
        data[name] = {"$large": getattr(entry, name).reference.size}
    return JournalEntry(record.seq, _when(record.at), record.epoch, type(entry).__name__, data)


def _when(micros: int) -> datetime:
    return datetime.fromtimestamp(micros / 1e6, UTC)
