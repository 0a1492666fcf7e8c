"""A run seen from outside: what it did, why it stopped, and what people can do about it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, overload

import msgspec
from msgspec import UNSET, Raw, Struct

from surefoot.core import values
from surefoot.core.address import as_recorded
from surefoot.core.entry import Acknowledged, Drift, Entry, Progressed, Value
from surefoot.core.history import Past, PastCall, PastEffect, PastQuestion, PastState
from surefoot.core.seal import GENESIS, Record, from_record
from surefoot.core.state import ENDED, STOPPED, WAITING, RunState
from surefoot.core.stops import revive
from surefoot.core.timer import Duration, seconds
from surefoot.engine.declare.plan import Options, check_id
from surefoot.engine.declare.registry import registry
from surefoot.engine.declare.rehearsal import would_do
from surefoot.engine.drive import claimant, start
from surefoot.engine.drive.outcome import not_found, recorded_end, refuse_ended
from surefoot.engine.operate import cancels, decisions, resume_plan, run_list
from surefoot.engine.operate.decisions import (
    Accept,
    Acknowledge,
    Answer,
    Cancel,
    Match,
    Release,
    Retry,
    Rewind,
    SendEvent,
    Settle,
)
from surefoot.engine.process import config, engines, journal
from surefoot.engine.process.runtime import Runtime
from surefoot.errors import Stopped, UsageError
from surefoot.store.contract import Head, IndexRow, RunQuery

if TYPE_CHECKING:
    from surefoot.engine.operate.forks import Fork, StateAt
    from surefoot.engine.operate.retries import Reopening
    from surefoot.engine.operate.supposing import Supposed


class Seen(Struct, frozen=True):
    """Where a journal ended when it was looked at: its last entry, by number and seal."""

    seq: int
    seal: str
    """Hexadecimal."""

    @classmethod
    def at(cls, head: Head) -> Seen:
        return cls(head.seq, head.seal.hex())

    @property
    def head(self) -> Head:
        try:
            return Head(self.seq, bytes.fromhex(self.seal))
        except ValueError:
            raise UsageError(f"seen: {self.seal!r} is no seal: {2 * len(GENESIS)} hexadecimal digits") from None


class JournalEntry(Struct, frozen=True):
    """One entry of the journal, for people and programs to read."""

    seq: int
    at: datetime
    epoch: int
    kind: str
    data: dict[str, Any]
    """The recorded fact as plain JSON data. A value above 1 KB shows as `{"$large": bytes}`; `Run.steps` has it."""


class RecordedCall(Struct, frozen=True):
    """One call of a run: the request, the outcome, and the process."""

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
    """JSON, as recorded; empty if there is none."""
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
        self.looks_anywhere = True
        """False: it looks at the world only where the run saw it last; elsewhere what the stop recorded counts."""
        self._kept: tuple[RunState, Head] | None = None
        self._head: Head | None = None

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
        self._head = found[1]
        return found

    @property
    def seen(self) -> Seen:
        """Where the journal ended when it was last read through this handle. Verbs take it as `seen=`: then what is said is
        about the run as it was looked at, or is not recorded.
        """
        return Seen.at(self._head if self._head is not None else self._loaded()[1])

    def _loaded_anew(self) -> tuple[RunState, Head]:
        """A state of its own, which may be changed."""
        found = journal.load(self.runtime.store, self.id)
        if found is None:
            raise not_found(self.id, self.runtime.store.url)
        return found

    def require_unmoved(self, seen: Seen) -> None:
        """`Outdated`, if anything was recorded since it was looked at."""
        journal.require_unmoved(self.id, self._loaded()[1], seen.head)

    def _taken(self) -> tuple[RunState, Head]:
        """The state and the head, for a method that changes the run."""
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

    def story(self) -> list[tuple[Record, Entry]]:
        """Every record with its entry: when, under which claim, and what."""
        return [(record, from_record(record)) for record in self._records()]

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
        """The bytes of a recorded value, inline or kept by parts."""
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

    @overload
    def plan(self) -> resume_plan.ResumePlan: ...

    @overload
    def plan(self, *, supposing: Mapping[str, Any] | decisions.Said, by: str | None = None) -> Supposed: ...

    def plan(
        self, *, supposing: Mapping[str, Any] | decisions.Said | None = None, by: str | None = None
    ) -> resume_plan.ResumePlan | Supposed:
        """What a resume would do now, found by replaying without executing anything.

        `supposing`: if this were said before, as an object: `{"do": "settle", "address": "pay#1", "not_happened": True}`.
        It is refused as the verb would refuse it. `by`: who would say it.
        """
        if supposing is None:
            return resume_plan.plan(self.runtime, *self._loaded(), looks_anywhere=self.looks_anywhere)
        from surefoot.engine.operate.supposing import suppose

        return suppose(self, supposing, _who(by, "", ""))

    # -- acting ---------------------------------------------------------------------------------------
    #
    # `by` is who says so, `note` why, and `via` by which way: all of it is recorded. With `seen`, what is said is about the
    # run as it was looked at (`Run.seen`): if anything was recorded since, it is `Outdated`, and nothing is.

    def resume(self) -> Any:
        """Go on with the run in this process; the workflow must have been imported."""
        found = self._taken()
        if found[0].status not in ENDED and engines.bell().drives:
            engines.bell().reopen(journal.index_row(found[0]), self.runtime.store.url)
        return self._resumed(found)

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
        happened: Any = UNSET,
        not_happened: bool = False,
        failed: bool = False,
        by: str | None = None,
        note: str = "",
        via: str = "",
        seen: Seen | None = None,
    ) -> None:
        """Answer for an in-doubt effect: it happened and gave this value, or it did not happen, and is run again.

        `failed`: it did not happen, and the call fails with the exception it ended with, so that `except` clauses and
        sagas go on. One that was cut off fails with `sf.NotDone`.

        If the effect is defined in this process, the value is held against what it says to return; plain data stands for
        a dataclass or a Struct.
        """
        said = Settle(address=address, happened=happened, not_happened=bool(not_happened), failed=bool(failed))
        self._say(said, _who(by, note, via), seen)

    def cancel(self, *, by: str | None = None, note: str = "", via: str = "", seen: Seen | None = None) -> None:
        """Ask the run to end. Without a living process it ends at once, after its sagas were undone.

        That takes the code: where it is not at hand, what the run did stays done. What is in doubt is looked at by its
        check; what nobody can tell is alerted of, and named by `surefoot runs show`.
        """
        who = _who(by, note, via)

        def decide(state: RunState) -> Entry | None:
            refuse_ended(state)
            if (definition := cancels.undoes_here(self.runtime, state)) is not None and definition.is_async:
                self._require_no_loop("cancel")
            return decisions.entry(self, state, Cancel(), who)

        found = self._visited(decide, seen)
        cancels.carry_out(self.runtime, found, lambda: self._resumed(found))

    def left_done_by_cancel(self) -> list[str]:
        """Effects that a cancellation from here would leave done, because only the code knows whether to undo them."""
        return cancels.would_leave_done(self.runtime, self.state())

    def _require_no_loop(self, verb: str) -> None:
        """The verb drives an async workflow to its end, and a running loop cannot wait for that."""
        import asyncio

        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return
        raise UsageError(
            f"run {self.id}: its workflow is async, and run.{verb}() would block the loop that calls it. In async code: "
            f"await (await surefoot.aio.get_run({self.id!r})).{verb}()"
        )

    def answer(
        self,
        name: str,
        value: Any,
        *,
        by: str | None = None,
        groups: Iterable[str] = (),
        note: str = "",
        via: str = "",
        shown: str = "",
        seen: Seen | None = None,
    ) -> None:
        """Answer an open question (`approve#1`): true or false, or what was asked for. The first answer counts.

        `shown` is the digest of the question as you saw it (or how it begins): an answer to another one is refused.
        `groups`: those that whoever answers is in. A question that is for a group is answered by anybody in it.
        """
        who = msgspec.structs.replace(_who(by, note, via), groups=tuple(groups))
        self._say(Answer(question=name, value=value, shown=shown), who, seen)

    def drift(self) -> list[Drift]:
        """What is not as this run left it, found by looking now. Changes nothing."""
        return decisions.findings(self, self.state()).drift

    def accept_drift(
        self,
        witness: str | None = None,
        *,
        only: Mapping[str, str] | None = None,
        by: str | None = None,
        note: str = "",
        via: str = "",
        seen: Seen | None = None,
    ) -> list[str]:
        """Accept the world as it is found now, for this witness or for all that have drifted. What was accepted.

        A witness that cannot be observed has to be named: to accept that means that the run no longer watches it.
        `only`: part -> what was found there, as you saw it (`Drift.actual`). These parts are accepted and no others; if
        one of them is not like that any more, it is `Outdated`, and nothing is accepted.
        """
        return sorted(
            {found.witness for found in self.take_as_found(witness, only=only, by=by, note=note, via=via, seen=seen)}
        )

    def take_as_found(
        self,
        witness: str | None = None,
        *,
        only: Mapping[str, str] | None = None,
        by: str | None = None,
        note: str = "",
        via: str = "",
        seen: Seen | None = None,
    ) -> list[Drift]:
        """The same. Returns each part that was accepted."""
        said, who = Accept(witness=witness, found=None if only is None else dict(only)), _who(by, note, via)
        accepted: list[Drift] = []

        def decide(state: RunState) -> Entry:
            entry, accepted[:] = decisions.accepted(self, state, said, who)
            return entry

        self._visit(decide, seen)
        return accepted

    def rewind(
        self, address: str, *, by: str | None = None, note: str = "", via: str = "", seen: Seen | None = None
    ) -> list[str]:
        """Rewind the run to before a call. Steps run again; effects from there on are in doubt. Returns these effects."""
        return [past.address for past in self._say(Rewind(at=address), _who(by, note, via), seen).in_doubt()]

    def set_aside_by_rewind(self, address: str) -> tuple[list[Past], list[PastEffect]]:
        """What a rewind to before this call would set aside; and which effects of these would be in doubt."""
        state = self.state()
        first = decisions.way_back(state, as_recorded(address))
        return [past for past in state.calls.values() if past.first >= first], state.executed_since(first)

    def retry(
        self,
        *,
        failed: bool | None = None,
        at: str | Iterable[str] = (),
        by: str | None = None,
        note: str = "",
        via: str = "",
        seen: Seen | None = None,
    ) -> list[str]:
        """Have the calls that failed tried again: all of them, or those at these addresses. Everything else stays.

        Also in a run that is done or has failed. Where no call failed, but the workflow itself did, the run is opened
        again. What its own child runs failed at is tried again too. Nothing is executed now. The calls of this run.
        """
        from surefoot.engine.operate import retries

        said = Retry(failed=failed, at=(at,) if isinstance(at, str) else tuple(at))
        return retries.retry(self, said, _who(by, note, via), seen)

    def would_retry(self, *, failed: bool | None = None, at: str | Iterable[str] = ()) -> list[Reopening]:
        """What a retry would have tried again, child runs first. UsageError, where that is not possible."""
        from surefoot.engine.operate import retries

        return retries.outlook(self, failed=failed, at=at)

    def fork(
        self,
        new_id: str,
        *,
        at: str,
        by: str | None = None,
        note: str = "",
        via: str = "",
        seen: Seen | None = None,
    ) -> Fork:
        """A new run that reuses what was recorded before that call, and goes on by itself. This one is only read."""
        from surefoot.engine.operate import forks

        return forks.fork(self, new_id, at=at, by=by, note=note, via=via, seen=seen)

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
        via: str = "",
        seen: Seen | None = None,
    ) -> None:
        """Say what a call of changed code is: the recorded call `is_`, a new one, or one whose changed arguments do not
        matter (`keep`) or do (`rerun`). `*` stands for any characters.
        """
        said = Match(address=address, is_=is_, new=new, keep=keep, rerun=rerun)
        self._say(said, _who(by, note, via), seen)

    def send_event(
        self,
        name: str,
        value: Any,
        *,
        id: str,  # noqa: A002 - the recorded field
        by: str | None = None,
        via: str = "",
        seen: Seen | None = None,
    ) -> None:
        """Deliver an event; a second one with the same id is the same event."""
        self._say(SendEvent(name=name, value=value, id=id), _who(by, "", via), seen)

    def release(self, *, by: str | None = None, note: str = "", via: str = "", seen: Seen | None = None) -> None:
        """Let workers take the run up again after it was quarantined."""
        self._say(Release(), _who(by, note, via), seen)

    def acknowledge(
        self,
        about: str | Iterable[str] = (),
        *,
        by: str | None = None,
        note: str = "",
        via: str = "",
        seen: Seen | None = None,
    ) -> list[str]:
        """Say that what is only to be known of this run was seen: then it is off everybody's list. By kind, what that was.

        `about`: only these kinds (`failed`, `left`, `fell_back`, `landed_late`). What comes later is told again.
        """
        kinds = (about,) if isinstance(about, str) else tuple(about)
        said, who, acknowledged = Acknowledge(about=kinds), _who(by, note, via), list[str]()

        def decide(state: RunState) -> Entry | None:
            entry = decisions.entry(self, state, said, who)
            acknowledged[:] = entry.about if isinstance(entry, Acknowledged) else ()
            return entry

        self._visit(decide, seen)
        return acknowledged

    def _say(self, said: decisions.Action, who: decisions.Who, seen: Seen | None) -> RunState:
        return self._visit(lambda state: decisions.entry(self, state, said, who), seen)

    def _visit(self, decide: Any, seen: Seen | None = None) -> RunState:
        found = self._visited(decide, seen)
        self._kept = found if self._keeps else None
        return found[0]

    def _visited(self, decide: Any, seen: Seen | None = None) -> tuple[RunState, Head]:
        would_do("visit of run", self.id)
        known = self._taken() if self._keeps else None
        store, clock = self.runtime.store, self.runtime.clock
        found = journal.visit(store, clock, self.id, decide, known, seen=None if seen is None else seen.head)
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


def _who(by: str | None, note: str, via: str) -> decisions.Who:
    return decisions.Who(by or whoami(), note, via)


def whoami() -> str:
    """The name of the acting person, if none is given: the operating system's user."""
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
