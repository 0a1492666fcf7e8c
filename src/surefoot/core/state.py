"""What a run has been through, folded from its journal.

From which status an entry of a claimant may come, and to which status it leads, is in TRANSITIONS below; where that
depends on the entry's content, in `status_after`. A visitor's entry changes the status in one case only: the run was
stopped and can go on now, so it is queued again (`_answered`, `_child_ended`). Stores and drivers may move entries, and
a driver keeps the status for the index by the same table; only this file may say what entries mean.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable
from typing import Any, Final

from msgspec import Raw, Struct
from msgspec.structs import replace

from surefoot.core import values
from surefoot.core.address import approval_of
from surefoot.core.entry import (
    ITEMS_DONE,
    NOTHING,
    VISITORS,
    Acknowledged,
    AnswerGiven,
    CallCancelled,
    CallKept,
    CallsReopened,
    CancelRequested,
    ChildEnded,
    CodeMatched,
    DriftAccepted,
    Due,
    EffectDone,
    EffectDoubted,
    EffectIntended,
    EffectLandedLate,
    EffectRaised,
    EffectRecovered,
    EffectSettled,
    EffectSuspected,
    EffectUnstorable,
    Entry,
    EventSent,
    EventTaken,
    FellBack,
    OfCall,
    Progressed,
    Published,
    QuarantineLifted,
    QuestionAsked,
    QuestionExpired,
    RunAdopted,
    RunCancelled,
    RunContinued,
    RunCreated,
    RunDone,
    RunFailed,
    RunLeft,
    RunMoved,
    RunPruned,
    RunReleased,
    RunRewound,
    RunStopped,
    RunSuspended,
    SagaCancelled,
    StepDone,
    StepRaised,
    StepStarted,
    Stop,
    TimerFired,
    TimerSet,
    Value,
    ValueNoted,
    WaitExpired,
    WaitStarted,
    WorldSeen,
)
from surefoot.core.expectation import ACCEPTED, Expectation
from surefoot.core.history import (
    DOUBTFUL,
    Past,
    PastEffect,
    PastNote,
    PastQuestion,
    PastSaga,
    PastSight,
    PastState,
    PastStep,
    PastTimer,
    PastValue,
    PastWait,
)
from surefoot.core.need import LEFT, NO_NEED, TELLING, TO_KNOW, Need, News, news_after, of_news, of_stops
from surefoot.core.readiness import HANDED_BACK, MOVING, NOBODY, Standing, moved
from surefoot.core.seal import Record, from_record
from surefoot.errors import JournalCorrupt, NotDone

_UNDO: Final = ".undo"
_NUMBERED: Final = re.compile(r"(?:.*/)?([^/]*)#\d+")
"""The name of a call without its scopes; not what is part of a call (`pay#1.repair1`)."""
NONE: Final = ""
QUEUED: Final = "queued"
RUNNING: Final = "running"
SLEEPING: Final = "sleeping"
WAITING: Final = "waiting"
STOPPED: Final = "stopped"
DONE: Final = "done"
FAILED: Final = "failed"
CANCELLED: Final = "cancelled"
MOVED: Final = "moved"

ENDED: Final = frozenset({DONE, FAILED, CANCELLED})
OPEN: Final = frozenset({QUEUED, RUNNING, SLEEPING, WAITING, STOPPED})
DRIVEN: Final = frozenset({RUNNING, SLEEPING})
STATUSES: Final = (QUEUED, RUNNING, SLEEPING, WAITING, STOPPED, DONE, FAILED, CANCELLED, MOVED)

TRANSITIONS: Final[dict[type[Entry], tuple[frozenset[str], str]]] = {
    RunCreated: (frozenset({NONE}), QUEUED),
    RunAdopted: (OPEN, RUNNING),
    RunReleased: (DRIVEN, QUEUED),
    RunStopped: (DRIVEN, STOPPED),  # or WAITING, when all it needs is an answer
    RunSuspended: (DRIVEN, SLEEPING),  # or WAITING, when it waits for other runs
    RunContinued: (DRIVEN, RUNNING),
    RunDone: (DRIVEN, DONE),
    RunFailed: (DRIVEN, FAILED),
    RunCancelled: (DRIVEN, CANCELLED),
    TimerSet: (DRIVEN, SLEEPING),
    FellBack: (OPEN | ENDED, QUEUED),  # one that has ended stays as it is
    RunRewound: (OPEN | ENDED, QUEUED),
    CallsReopened: (OPEN | ENDED, QUEUED),
    RunPruned: (frozenset({NONE}), DONE),  # or as it had ended
    RunLeft: (OPEN | ENDED | {NONE}, MOVED),  # and nothing follows
}
"""Entry -> (from which statuses, to which). Any other entry of the claimant means RUNNING, from DRIVEN."""


MAY_PARK: Final = frozenset({StepRaised, EffectRaised})
"""Entries that may say that what a call needs is away: then the run sleeps."""
_MOVING: Final = frozenset(TRANSITIONS) | MAY_PARK
NO_PROGRESS: Final = frozenset({RunAdopted, RunReleased, StepStarted, EffectIntended, *VISITORS})
"""Entries that are no progress: made each time by a run that dies on every start, or made by others."""


def status_after(entry: Entry, status: str) -> str:
    """The status of a run that had this one, after an entry."""
    kind = type(entry)
    if kind not in TRANSITIONS:
        if kind in MAY_PARK and entry.parked:  # type: ignore[attr-defined]
            return SLEEPING
        return status if kind in VISITORS else RUNNING
    if isinstance(entry, FellBack):
        return status if status in ENDED else QUEUED
    if isinstance(entry, RunStopped):
        return WAITING if all(stop.reason == "WaitingForAnswer" for stop in entry.stops) else STOPPED
    if isinstance(entry, RunSuspended):
        return WAITING if entry.children else SLEEPING
    if isinstance(entry, RunPruned):
        return entry.status
    return TRANSITIONS[type(entry)][1]


class Event(Struct, eq=False):
    """An event that was sent to the run; at most one wait takes it."""

    id: str
    name: str
    value: Value
    by: str
    taken: bool = False
    taken_at: int = 0
    """The entry that took it."""


class RunState:
    """A run as recorded in its journal. Calls and events are those of the current segment; results stay."""

    def __init__(self, run: str) -> None:
        self.run = run
        self.status = NONE
        self.seq = 0
        self.epoch = 0
        self.segment = 1
        self.created: RunCreated | None = None
        self.created_at = 0
        self.newest_at = 0
        self.args: Any = None
        self.digest = ""
        self.defaults: Any = NOTHING
        """The defaults of the workflow's parameters that were not passed."""
        self.claimant: RunAdopted | None = None
        """The process that drives it, or did when it was cut off; None: no process claims it."""
        self.stops: tuple[Stop, ...] = ()
        """The stops that still need an answer."""
        self.answered = False
        """Whether something was answered since the run stopped: then a resume may get further."""
        self.calls: dict[str, Past] = {}
        self.cuts: dict[str, CallCancelled] = {}
        """Calls that were cut off by a cancellation from inside, or were the first after one."""
        self.cut_at: dict[str, int] = {}
        self.adoptions: list[int] = []
        """When processes took the run up, microseconds since 1970, in rising order."""
        self.events: list[Event] = []
        self.value: Any = None
        self.error: Any = None
        self.left: tuple[str, ...] = ()
        """Effects left in doubt or done by a run that has ended: a person should look at them."""
        self.left_effects: dict[str, PastEffect] = {}
        """Effects that earlier segments left in doubt or done, as they were left. The segments' other calls are forgotten."""
        self._left_by_segments = 0
        self.cancel: CancelRequested | None = None
        self.progress: Progressed | None = None
        self.published: dict[str, Any] = {}
        self.fallbacks: tuple[tuple[int, FellBack], ...] = ()
        """Where the run fell back, and what is known of the entries that were lost there."""
        self.world = Expectation()
        self.matches: tuple[tuple[int, CodeMatched], ...] = ()
        """People's declarations which calls of changed code and which recorded calls are the same, oldest first."""
        self.rewinds: tuple[RunRewound, ...] = ()
        """The entries to which people rewound the run, oldest first."""
        self.reopenings: tuple[CallsReopened, ...] = ()
        """Requests of people to try failed calls again, oldest first."""
        self.landed_late: tuple[EffectLandedLate, ...] = ()
        """Effects that a process finished after it had lost its claim."""
        self.to_know: tuple[News, ...] = ()
        """What somebody should know of it, and nobody has said to have seen."""
        self.pruned: RunPruned | None = None
        self.pruned_at = 0
        self.gone: RunLeft | None = None
        """The store that it moved to, or moves to now."""
        self.gone_at = 0
        self.came: tuple[RunMoved, ...] = ()
        """The stores that it has moved here from, oldest first."""
        self.standing: Standing = NOBODY
        """Which worker may take it up next, and from when on."""
        self.starts = 0
        """How often it was taken up since it last made progress."""
        self.code = ""
        """The digest of the code that last took it up; empty: unknown."""
        self.news = False
        """Whether a visitor has written an entry since it was last taken up."""
        self.rehearsing = False
        """Whether the last claimant has only rehearsed the code, as far as is known."""
        self.let_go_why = ""
        """Why it was last released, if it was released in good order."""
        self.children: tuple[str, ...] = ()
        """The child runs it waits for, while no process drives it."""
        self.ended_children: set[str] = set()
        self.due: Due | None = None
        """When a run that is suspended goes on."""
        self.parked = ""
        """What is away that the workflow itself needs, while the run is suspended for it."""
        self.parks = 0
        """How often in a row it was parked, with no new record in between."""
        self._who = self._host = self._folder = ""
        self._claim_epoch = 0
        self.segment_began = 0
        self._event_ids: set[str] = set()

    def fold(self, record: Record) -> Entry:
        """Take in one verified record. Raises JournalCorrupt if it cannot follow what came before."""
        entry = from_record(record)
        self.apply(entry, record)
        return entry

    def apply(self, entry: Entry, record: Record) -> None:
        """The same, for a process that has the entry of that record, because it wrote the entry."""
        kind = type(entry)
        self.seq = record.seq
        self.newest_at = max(self.newest_at, record.at)
        if kind not in VISITORS:
            self._move(entry, record)
            self.rehearsing = False
        elif self.status == NONE:
            raise self._impossible(record, kind)
        else:
            self.news = True
        if kind not in NO_PROGRESS:
            self.starts = 0
            if kind is not RunSuspended:
                self.parks = 0
        handler = _HANDLERS.get(kind)
        if kind in MOVING:
            standing = moved(entry, record.at, self.standing, starts=self.starts, answered=self.is_answered)
            if standing is not None:
                self.standing = NOBODY if self.status in ENDED and kind is FellBack else standing  # It remains ended.
        if kind in TELLING:
            self.to_know = self.news_after(entry, self.to_know, record.seq, record.at)
        if handler is not None:
            known = self.world.version
            handler(self, entry, record)
            if self.world.version != known:
                self.world.host, self.world.folder = self._host, self._folder

    def news_after(self, entry: Entry, known: tuple[News, ...], seq: int, at: int) -> tuple[News, ...]:
        """What somebody should know after this entry, which may not be written yet."""
        return news_after(entry, known, seq=seq, at=at, segment_began=self.segment_began)

    def needs_answer(self, now_due: Callable[[Due], bool]) -> bool:
        """Whether a resume would meet the same open questions and nothing else."""
        if self.status not in (STOPPED, WAITING) or not self.stops or self.cancel is not None or self.answered:
            return False
        limits = (past.due for past in self.calls.values() if isinstance(past, PastTimer) and past.is_limit)
        if any(due is not None and now_due(due) for due in limits):
            return False
        return all(self._unanswered(stop, now_due) for stop in self.stops)

    def effect(self, address: str) -> PastEffect | None:
        past = self.calls.get(address)
        return past if isinstance(past, PastEffect) else None

    def question(self, address: str) -> PastQuestion | None:
        past = self.calls.get(address)
        return past if isinstance(past, PastQuestion) else None

    def effects(self) -> list[PastEffect]:
        """The effects of the segment. From a copy: another thread may fold meanwhile."""
        return [past for past in list(self.calls.values()) if isinstance(past, PastEffect)]

    def in_doubt(self) -> list[PastEffect]:
        return [past for past in self.effects() if past.state in DOUBTFUL and not self._is_overtaken(past)]

    def _is_overtaken(self, past: Past) -> bool:
        """Whether it undid a part of an effect whose check has run since: the present state is known."""
        whole, found, _ = past.address.rpartition(".repair")
        effect = self.calls.get(whole) if found else None
        return effect is not None and effect.seq > past.seq and effect.state not in DOUBTFUL

    def left_in(self, past: PastEffect) -> RunAdopted | None:
        """The claimant that was in this effect when it was cut off, without an outcome: it may still be in the call."""
        if past.error is not None or past.state is not PastState.IN_DOUBT or past.suspected or past.landed is not None:
            return None  # The call had ended. (`runs_in` names the worker of a call that went on after its time.)
        if self.claimant is not None and past.epoch == self._claim_epoch and not past.rewound:
            return self.claimant
        return past.taken_from

    def executed_since(self, seq: int) -> list[PastEffect]:
        """Effects recorded from that entry on that happened, or may have: a rewind puts these in doubt."""
        return [past for past in self.effects() if past.first >= seq and past.may_have_happened]

    def questions(self) -> list[PastQuestion]:
        """The open questions."""
        questions = (past for past in self.calls.values() if isinstance(past, PastQuestion))
        return [past for past in questions if past.state is PastState.OPEN]

    @property
    def last_claimant(self) -> str:
        return self._who

    def is_answered(self, still: Entry) -> bool:
        """Whether a run with this stop could go on: an answer or a cancellation came before the stop was written."""
        if not self.news:
            return False  # No visitor has written since the run was taken up.
        if self.cancel is not None:
            return True
        children = still.children if isinstance(still, RunSuspended | RunStopped) else ()
        stops = still.stops if isinstance(still, RunStopped) else ()
        return not self.ended_children.isdisjoint(children) or any(map(self._has_answer, stops))

    def _has_answer(self, stop: Stop) -> bool:
        past = self.calls.get(stop.address)
        if stop.reason == "InDoubt":
            # An effect that landed after the check ran may be found now.
            return past is not None and (past.state not in DOUBTFUL or _is_looked_for(past))
        if stop.reason == "WaitingForAnswer":
            event = stop.facts.get("event")
            if event is not None:
                return self.event_for(event) is not None
            return past is not None and past.state is not PastState.OPEN
        # A person may have declared how the call is matched; if that did not help, one more try is lost.
        return stop.reason == "CodeChanged" and bool(self.matches)

    def _unanswered(self, stop: Stop, now_due: Callable[[Due], bool]) -> bool:
        if stop.reason in ("Quarantined", "WorkflowFailed"):
            return True
        past = self.calls.get(stop.address)
        if stop.reason == "InDoubt" and isinstance(past, PastEffect):
            asks = past.policy not in ("retry", "fail", "check") or past.state is PastState.UNSTORABLE
            return asks and past.state in DOUBTFUL
        if stop.reason == "WaitingForAnswer" and isinstance(past, PastWait | PastQuestion):
            expired = past.due is not None and now_due(past.due)
            # Also an event of another name: the code may wait for that by now.
            came = isinstance(past, PastWait) and any(not event.taken for event in self.events)
            return past.state is PastState.OPEN and not expired and not came
        return False

    def open_need(self) -> Need:
        """What of its stops still waits for a person."""
        return of_stops(self.stops, self.due, self.standing.need.since)

    def event_for(self, name: str, taken: Container[str] = ()) -> Event | None:
        """The first event of that name that no wait has taken, and that is not in `taken`."""
        events = (event for event in self.events if event.name == name and not event.taken)
        return next((event for event in events if event.id not in taken), None)

    def has_event(self, event_id: str) -> bool:
        return event_id in self._event_ids

    def _drop_news(self, gone: Callable[[News], bool]) -> None:
        self.to_know = tuple(one for one in self.to_know if not gone(one))
        if self.standing.need.kind in TO_KNOW:
            self.standing = replace(self.standing, need=of_news(self.to_know))

    def _move(self, entry: Entry, record: Record) -> None:
        kind = type(entry)
        if self.status is RUNNING and record.epoch == self.epoch and kind not in _MOVING:
            return  # By far the most common: a call of a run that goes on.
        sources, _ = TRANSITIONS.get(kind, (DRIVEN, RUNNING))
        if (
            self.status not in sources
            or record.epoch < self.epoch
            or (kind is RunAdopted) != (record.epoch > self.epoch)
        ):
            raise self._impossible(record, kind)
        self.status = status_after(entry, self.status)
        self.epoch = record.epoch

    def _impossible(self, record: Record, kind: type[Entry]) -> JournalCorrupt:
        return JournalCorrupt(
            f"run {self.run}: entry {record.seq} ({kind.__name__}, epoch {record.epoch}) cannot follow a run that is "
            f"{self.status or 'not created'} in epoch {self.epoch}.",
            run_id=self.run,
        )

    def _note(self, kind: type[Past], address: str, state: PastState, record: Record, **facts: Any) -> None:
        """Notes a further entry about this call, or the first one."""
        known = self.calls.get(address)
        if type(known) is kind:
            # The claimant of an effect is the process that made the attempt, even if another one records the outcome.
            claimant = known.claimant if kind is PastEffect else self._who
            past = replace(known, state=state, epoch=record.epoch, seq=record.seq, claimant=claimant, **facts)
        else:
            facts.setdefault("at", record.at)
            past = kind(
                address, state, epoch=record.epoch, seq=record.seq, first=record.seq, claimant=self._who, **facts
            )
        self.calls[address] = past


def _created(state: RunState, entry: RunCreated, record: Record) -> None:
    state.created, state.created_at = entry, record.at
    state.args, state.digest, state.defaults = entry.args, entry.digest, entry.defaults


def _fell_back(state: RunState, entry: FellBack, record: Record) -> None:
    state.fallbacks += ((record.seq, entry),)
    for past in state.in_doubt():
        state.calls[past.address] = replace(past, outcome_lost=True)
    state.claimant, state.stops, state.children, state.due = None, (), (), None


def _pruned(state: RunState, entry: RunPruned, record: Record) -> None:
    state.pruned, state.pruned_at = entry, record.at
    state.created = RunCreated(entry.workflow, NOTHING, entry.digest, labels=entry.labels)
    state.created_at = entry.created


def _left(state: RunState, entry: RunLeft, record: Record) -> None:
    state.gone, state.gone_at = entry, record.at
    state.claimant, state.to_know = None, ()
    if state.created is None:
        state.created = RunCreated(entry.workflow, NOTHING, entry.digest, labels=entry.labels)
        state.created_at = entry.created


def _moved(state: RunState, entry: RunMoved, record: Record) -> None:
    state.came += (entry,)


def _adopted(state: RunState, entry: RunAdopted, record: Record) -> None:
    if state.claimant is not None:  # It did not release the run: dead, or only silent.
        for past in state.in_doubt():
            state.calls[past.address] = replace(past, taken_from=state.left_in(past))
    state._claim_epoch = record.epoch
    state.claimant, state.let_go_why, state.news = entry, "", False
    state.starts += 1
    state.adoptions.append(max(record.at, state.adoptions[-1] if state.adoptions else 0))
    state.children, state.due, state.parked = (), None, ""
    state._host, state._folder = entry.host, entry.folder
    state.code, state.rehearsing = entry.code, entry.rehearses
    state._who = f"worker {entry.worker[:8]} on host {entry.host} (pid {entry.pid})"
    state.stops = ()
    state.left = state.left[: state._left_by_segments]  # The run goes on: its earlier end no longer counts.


def _released(state: RunState, entry: RunReleased, record: Record) -> None:
    state.claimant, state.let_go_why = None, entry.why
    if entry.why == HANDED_BACK:
        state.starts = max(state.starts - 1, 0)


def _suspended(state: RunState, entry: RunSuspended, record: Record) -> None:
    state.claimant = None
    state.children, state.due, state.parked = entry.children, entry.due, entry.why
    state.parks += bool(entry.why)


def _stopped(state: RunState, entry: RunStopped, record: Record) -> None:
    state.claimant, state.answered = None, False
    state.stops, state.children, state.due = entry.stops, entry.children, entry.due


def _ended(state: RunState, entry: RunDone | RunFailed | RunCancelled, record: Record) -> None:
    state.claimant = None
    state.left += entry.left
    if isinstance(entry, RunDone):
        state.value = entry.value
    elif isinstance(entry, RunFailed):
        state.error = entry.error


def _cancel_requested(state: RunState, entry: CancelRequested, record: Record) -> None:
    state.cancel = entry
    if state.claimant is None and state.status not in ENDED:
        state.standing = Standing(record.at, need=state.open_need())


def _quarantine_lifted(state: RunState, entry: QuarantineLifted, record: Record) -> None:
    state.starts = 0
    state.stops = tuple(stop for stop in state.stops if stop.reason != "Quarantined")
    _answered(state, record)


def _child_ended(state: RunState, entry: ChildEnded, record: Record) -> None:
    state.ended_children.add(entry.child)
    if entry.child in state.children:
        state.children = tuple(child for child in state.children if child != entry.child)
        state.standing = Standing(record.at, need=state.open_need())
        if not state.stops:
            state.status = QUEUED


def _continued(state: RunState, entry: RunContinued, record: Record) -> None:
    state.segment += 1
    left = {address: past for address in entry.left if (past := state.effect(address)) is not None}
    state.left_effects = state.left_effects | left
    state.calls, state.cuts = {}, {}
    state.matches = ()
    state.left += entry.left
    state._left_by_segments, state.segment_began = len(state.left), record.seq
    state.args, state.digest, state.defaults = entry.args, entry.digest, entry.defaults


def _step_started(state: RunState, entry: StepStarted, record: Record) -> None:
    # The attempt that was cut off does not count: a crash must not use up retries.
    facts = {"digest": entry.digest, "args": entry.args, "attempt": entry.attempt - 1}
    state._note(PastStep, entry.address, PastState.STARTED, record, **facts)


def _step_done(state: RunState, entry: StepDone, record: Record) -> None:
    known = state.calls.get(entry.address)
    first, parks = (known.first, known.parks) if isinstance(known, PastStep) else (record.seq, 0)
    state.calls[entry.address] = PastStep(  # By far the most common: made in one go.
        entry.address, PastState.DONE, entry.started, entry.args, entry.value, None, state._who, record.epoch,
        record.seq, first, record.at, digest=entry.digest, attempt=entry.attempt, parks=parks, asked_as=entry.asked_as,
    )  # fmt: skip


def _step_raised(state: RunState, entry: StepRaised, record: Record) -> None:
    known = state.calls.get(entry.address)
    parks = known.parks if isinstance(known, PastStep) else 0
    state._note(
        PastStep, entry.address, PastState.FAILED if entry.due is None else PastState.RETRYING, record,
        digest=entry.digest, args=entry.args, attempt=entry.attempt, error=entry.error, due=entry.due, ended=record.at,
        parked=entry.parked, parks=parks + entry.parked, asked_as=entry.asked_as, at=entry.started or record.at,
    )  # fmt: skip


def _effect_intended(state: RunState, entry: EffectIntended, record: Record) -> None:
    known = state.effect(entry.address)
    first, cleared_by, expires, unproven, marked = record.seq, "", entry.expires, False, entry.marked
    failures = parks = visited = 0
    executed_with = ""
    if known is not None:
        # This attempt records its own outcome: an earlier answer of a person was about an earlier attempt.
        cleared_by, expires = known.learned_by or known.cleared_by, known.expires or entry.expires
        unproven = known.unproven or known.state is PastState.IN_DOUBT
        if unproven and known.marked != entry.marked:
            marked = ""  # An earlier attempt that may have happened elsewhere leaves no marker here.
        failures, parks, visited, executed_with = known.failures, known.parks, known.visited, known.executed_with
        if not known.rewound:  # A rewound one runs again here: this is its new place.
            first = known.first
    # A call with a time-out may run in a thread of its own, which goes on when its caller is interrupted.
    runs_in = "" if entry.deadline is None or state.claimant is None else state.claimant.worker
    state.calls[entry.address] = PastEffect(
        entry.address, PastState.IN_DOUBT, record.at, entry.args, digest=entry.digest, defaults=entry.defaults,
        attempt=entry.attempt, failures=failures, parks=parks, deadline=entry.deadline, lands=entry.lands,
        runs_in=runs_in, key=entry.key, expires=expires, policy=entry.policy, cleared_by=cleared_by,
        claimant=state._who, epoch=record.epoch, seq=record.seq, first=first, executed_with=executed_with,
        unproven=unproven, visited=visited, marked=marked, origin=entry.origin,
    )  # fmt: skip
    if entry.before:
        state.world.begin(entry.address, entry.before, record.seq)


def _effect_done(state: RunState, entry: EffectDone, record: Record) -> None:
    state._note(PastEffect, entry.address, PastState.DONE, record, value=entry.value, ended=record.at, error=None)
    state.world.left(entry.address, entry.after, record.seq)


def _effect_raised(state: RunState, entry: EffectRaised, record: Record) -> None:
    final = entry.due is None
    known = state.effect(entry.address)
    # It was in doubt, and a check found that it did not happen.
    counted = known is not None and known.state is PastState.CLEARED and known.error is not None
    failures, parks, policy = (0, 0, "") if known is None else (known.failures, known.parks, known.policy)
    gave_up = final and policy == "fail" and was_in_doubt(entry.error)
    denied: dict[str, Any] = {}
    if entry.denied:  # This attempt was not begun; but an earlier one may have happened.
        gave_up = known is not None and (known.unproven or known.state is PastState.IN_DOUBT)
        denied = {"digest": entry.digest, "args": entry.args, "defaults": entry.defaults}
    state._note(
        PastEffect, entry.address, PastState.FAILED if final else PastState.RETRYING, record, error=entry.error,
        due=entry.due, ended=record.at, failures=failures + (not counted and not entry.parked), parked=entry.parked,
        parks=parks + entry.parked, gave_up=gave_up, **denied,
    )  # fmt: skip
    state.world.end(entry.address, as_found=gave_up)


def _effect_doubted(state: RunState, entry: EffectDoubted, record: Record) -> None:
    known = state.effect(entry.address)
    counted = known is not None and known.state is PastState.RETRYING  # It failed, and then its key grew too old.
    failures = (0 if known is None else known.failures) + (not counted)
    state._note(
        PastEffect, entry.address, PastState.IN_DOUBT, record, error=entry.error, failures=failures,
        runs_in=entry.runs_in, due=entry.due,
    )  # fmt: skip


def _effect_settled(state: RunState, entry: EffectSettled, record: Record) -> None:
    past = state.effect(entry.address)
    if past is None or past.attempt != entry.attempt:
        return  # The answer is for an attempt that is no longer open: used up, or never asked.
    if past.state not in DOUBTFUL:
        return
    facts: dict[str, Any] = {}
    if entry.happened:
        facts = {"state": PastState.DONE, "value": entry.value}
    elif past.state is PastState.IN_DOUBT and entry.failed:
        error = past.error or _settled_as_failed(entry)
        facts = {"state": PastState.FAILED, "unproven": False, "gave_up": False, "error": error}
    elif past.state is PastState.IN_DOUBT:
        facts = {"state": PastState.CLEARED, "unproven": False}
    state.calls[entry.address] = replace(
        past, learned_by=entry.learned_by + (f" {entry.by}" if entry.by else ""), ended=record.at, runs_in="",
        first=record.seq if past.rewound else past.first, visited=record.seq if entry.by else past.visited, **facts,
    )  # fmt: skip
    state.world.settled(entry, record.seq)
    if entry.by and state.status in ENDED:  # Whoever looked knows.
        state._drop_news(lambda one: one.kind == LEFT and one.address == entry.address)
    _answered(state, record, entry.address)


def _settled_as_failed(entry: EffectSettled) -> Raw:
    """For a call that was cut off, and so has no exception of its own."""
    said = f"{entry.by or 'a person'} has settled that it did not happen and shall fail"
    return Raw(values.encode_error(NotDone(said + (f": {entry.note}" if entry.note else ""))))


def _answered(state: RunState, record: Record, *addresses: str) -> None:
    """Once no stop is open, the run is ready to go on; it may make progress before that."""
    state.answered = True
    state.stops = tuple(stop for stop in state.stops if stop.address not in addresses)
    if state.claimant is not None and state.standing.need.address in addresses:
        state.standing = replace(state.standing, need=NO_NEED)
    if state.claimant is None and state.status in OPEN:
        state.standing = Standing(record.at, reason=state.standing.reason, need=state.open_need())
    if state.status in (STOPPED, WAITING) and not state.stops:
        state.status = QUEUED


def _landed_late(state: RunState, entry: EffectLandedLate, record: Record) -> None:
    """If the effect was not begun again, it must not count as not happened; its check may find it now."""
    state.landed_late += (entry,)
    past = state.effect(entry.address)
    if past is None or (past.key, past.attempt) != (entry.key, entry.attempt):
        return
    if past.state is PastState.CLEARED:
        past = replace(past, state=PastState.IN_DOUBT, learned_by="", cleared_by="", visited=record.seq)
    if past.state is PastState.IN_DOUBT:
        # The call has ended in that process.
        past = state.calls[entry.address] = replace(past, landed=entry, taken_from=None, runs_in="")
        if _is_looked_for(past):
            _answered(state, record, entry.address)


def _is_looked_for(past: Past) -> bool:
    """Whether it has landed late, and its policy resolves that without a person."""
    return isinstance(past, PastEffect) and past.landed is not None and past.policy in ("check", "retry")


def _effect_suspected(state: RunState, entry: EffectSuspected, record: Record) -> None:
    state._note(
        PastEffect, entry.address, PastState.IN_DOUBT, record, at=record.at, digest=entry.digest, args=entry.args,
        attempt=entry.attempt, key=entry.key, policy=entry.policy, suspected=True, error=None, defaults=entry.defaults,
        marked="",
    )  # fmt: skip


def _call_kept(state: RunState, entry: CallKept, record: Record) -> None:
    past = state.calls.get(entry.address)
    if past is not None:
        state.calls[entry.address] = replace(past, kept=entry.digest)


def _code_matched(state: RunState, entry: CodeMatched, record: Record) -> None:
    """If the declaration does not resolve the stop, the next process that takes the run up stops again."""
    state.matches += ((record.seq, entry),)
    state.stops = tuple(stop for stop in state.stops if stop.reason != "CodeChanged")
    _answered(state, record)


def _call_cancelled(state: RunState, entry: CallCancelled, record: Record) -> None:
    state.cuts[entry.address], state.cut_at[entry.address] = entry, record.seq
    past = state.calls.get(entry.address)
    if past is not None and not entry.before and past.state is PastState.STARTED:
        state.calls[entry.address] = replace(past, why="cut off by a cancellation inside the run")


def _value_noted(state: RunState, entry: ValueNoted, record: Record) -> None:
    known = state.calls.get(entry.address)
    kind = PastValue if known is None else type(known)  # A time-out that did not strike is noted at its timer.
    state._note(kind, entry.address, PastState.DONE, record, value=entry.value)


def _progressed(state: RunState, entry: Progressed, record: Record) -> None:
    if entry.address == ITEMS_DONE:
        if state.progress is None or state.progress.address == ITEMS_DONE:
            state.progress = entry  # The workflow's own report counts more.
        return
    state.progress = entry
    state._note(PastNote, entry.address, PastState.DONE, record)


def _published(state: RunState, entry: Published, record: Record) -> None:
    state.published[entry.name] = entry.value
    state._note(PastNote, entry.address, PastState.DONE, record)


def _event_sent(state: RunState, entry: EventSent, record: Record) -> None:
    if entry.id in state._event_ids:
        return
    state._event_ids.add(entry.id)
    state.events.append(Event(entry.id, entry.name, entry.value, entry.by))
    waiting = next((stop for stop in state.stops if stop.facts.get("event") == entry.name), None)
    if waiting is not None:
        _answered(state, record, waiting.address)


def _event_taken(state: RunState, entry: EventTaken, record: Record) -> None:
    event = next((event for event in state.events if event.id == entry.id), None)
    if event is None:
        raise state._impossible(record, EventTaken)
    event.taken, event.taken_at = True, record.seq
    facts = {"name": event.name, "value": event.value, "ended": record.at}
    state._note(PastWait, entry.address, PastState.DONE, record, **facts)


def _rewound(state: RunState, entry: RunRewound, record: Record) -> None:
    """Steps run again. Effects were executed, and a rewind does not undo them: they are in doubt."""
    aside = {address: past for address, past in state.calls.items() if past.first >= entry.seq}
    spent = reversed_since(aside.values())
    for address, past in aside.items():
        if isinstance(past, PastEffect) and past.may_have_happened:
            noted = aside.get(_note_of(address)) or state.calls.get(_note_of(address))
            # Without its digest, which would cause CodeChanged. What the code asks for now may well be something else.
            again = PastEffect(
                address, PastState.IN_DOUBT, past.at, args=past.args, defaults=past.defaults, rewound=True,
                attempt=past.attempt, key=past.key, policy=past.policy, claimant=past.claimant, first=past.first,
                seq=record.seq, expires=past.expires, spent=spent.get(address, ""), marked=past.marked,
                before=noted.value if isinstance(noted, PastValue) else past.before,
                executed_with=past.made_with, origin=past.origin,
            )  # fmt: skip
            if past.state is PastState.IN_DOUBT:  # It may still be on its way.
                again = replace(
                    again, deadline=past.deadline, runs_in=past.runs_in, lands=past.lands,
                    taken_from=state.left_in(past),
                )  # fmt: skip
            state.calls[address] = again
        else:
            state.calls.pop(address, None)  # A yes went with its effect.
        state.calls.pop(approval_of(address), None)  # An approval is for one execution.
    state.cuts = {address: cut for address, cut in state.cuts.items() if state.cut_at[address] < entry.seq}
    for event in state.events:
        if event.taken_at >= entry.seq:
            event.taken, event.taken_at = False, 0
    state.world.forget_since(entry.seq, aside)
    state.rewinds += (entry,)
    state.claimant, state.stops, state.value, state.error, state.cancel = None, (), None, None, None
    state.children, state.due = (), None


def _reopened(state: RunState, entry: CallsReopened, record: Record) -> None:
    """What failed is tried again. Everything else stays on record, also later calls."""
    for address in entry.addresses:
        past = state.calls.get(address)
        if past is None or past.state is not PastState.FAILED:
            continue
        if isinstance(past, PastEffect):
            _reopen_effect(state, past, entry.by)
        else:
            del state.calls[address]
        state.calls.pop(approval_of(address), None)  # An approval is for one execution.
    state.reopenings += (entry,)
    state.claimant, state.stops, state.value, state.error, state.cancel = None, (), None, None, None
    state.children, state.due, state.answered = (), None, False
    state.ended_children.clear()  # A child that is tried again ends again, and its parent has to get that end.


def _reopen_effect(state: RunState, past: PastEffect, by: str) -> None:
    """The effect did nothing, and runs under its key. If that was not known, it is still not known: the effect is in
    doubt, and a person is asked.

    Not `past.seq`: after a fallback, an attempt that is newer than its last entry may be among those that were lost.
    """
    again = replace(
        past, reopened=True, error=None, due=None, ended=0, failures=0, parks=0,
        why=f"failed before; to be tried again, says {by}",
    )  # fmt: skip
    if past.gave_up:
        state.calls[past.address] = replace(again, state=PastState.IN_DOUBT, gave_up=False, policy="ask")
        return
    # No digest: nothing was done with these arguments, and the fixed code may ask with others. With the same arguments,
    # it is the same request.
    state.calls[past.address] = replace(
        again, state=PastState.CLEARED, unproven=False, deadline=None, runs_in="", digest="",
        executed_with=past.made_with,
    )  # fmt: skip
    noted = state.calls.get(_note_of(past.address))
    if isinstance(noted, PastValue):
        del state.calls[noted.address]  # The state before it has to be noted when it runs.


def reversed_since(aside: Iterable[Past]) -> dict[str, str]:
    """Undone effects that a rewind sets aside, and their undos: how each was reversed, in words.

    An undo does not name the call it belongs to, so all earlier ones of that name count: a person is asked about them.
    """
    effects, undos = _by_name(aside)
    found: dict[str, str] = {}
    for name, last in ((name, pasts[-1]) for name, pasts in undos.items()):
        undone = [past for past in effects.get(name, ()) if past.first < last.first]
        found.update({past.address: f"{last.address} may have undone it" for past in undone})
        if undone:
            again = (past.address for past in undos[name] if past.first > undone[0].first)
            found.update(dict.fromkeys(again, "what it undid may have been done again"))
    return found


def _by_name(calls: Iterable[Past]) -> tuple[dict[str, list[Past]], dict[str, list[Past]]]:
    """Effects and undos that may have happened, in order, by the name of the effect."""
    effects: dict[str, list[Past]] = {}
    undos: dict[str, list[Past]] = {}
    for past in sorted(calls, key=lambda past: past.first):
        is_done = isinstance(past, PastEffect) and past.may_have_happened
        if is_done and (numbered := _NUMBERED.fullmatch(past.address)) is not None:
            kind = undos if numbered[1].endswith(_UNDO) else effects
            kind.setdefault(numbered[1].removesuffix(_UNDO), []).append(past)
    return effects, undos


def _note_of(address: str) -> str:
    """The address at which an effect notes the state before it."""
    name, _, number = address.rpartition("#")
    return f"{name}.before#{number}"


def was_in_doubt(error: Raw) -> bool:
    """Whether it failed by its policy because its outcome was unknown (`doubt.Doubt.failure`)."""
    kind, message = values.error_summary(error)
    return kind == "StepFailed" and message.startswith("InDoubt: ")


def _world_seen(state: RunState, entry: WorldSeen, record: Record) -> None:
    state.world.found(entry, record.seq)
    if entry.address:
        state._note(PastSight, entry.address, PastState.DONE, record, value=entry.value)


def _drift_accepted(state: RunState, entry: DriftAccepted, record: Record) -> None:
    state.world.see(entry.sights, f"{ACCEPTED}{entry.by}", record.seq)
    state.world.unwatch(entry.unwatched)
    state.stops = tuple(stop for stop in state.stops if stop.reason != "Drifted")
    _answered(state, record)


def _question_asked(state: RunState, entry: QuestionAsked, record: Record) -> None:
    known = state.question(entry.address)
    at, first = (record.at, record.seq) if known is None else (known.at, known.first)
    # It is open, whatever answers this address had before.
    state.calls[entry.address] = PastQuestion(
        entry.address, PastState.OPEN, at, args=entry.details, due=entry.due, form=entry.form,
        shown=entry.shown, answerers=entry.by, schema=entry.schema, question=entry.question, claimant=state._who,
        epoch=record.epoch, seq=record.seq, first=first,
    )  # fmt: skip


def _answer_given(state: RunState, entry: AnswerGiven, record: Record) -> None:
    past = state.question(entry.address)
    if past is None or past.state is not PastState.OPEN or past.shown != entry.shown:
        return  # That question is no longer open.
    state.calls[entry.address] = replace(
        past, state=PastState.DONE, value=entry.value, ended=record.at, seq=record.seq, learned_by=entry.by,
        why=entry.note,
    )  # fmt: skip
    _answered(state, record, entry.address)


def _question_expired(state: RunState, entry: QuestionExpired, record: Record) -> None:
    past = state.calls.get(entry.address)
    if past is not None and past.state is PastState.OPEN:  # else an answer came first
        state.calls[entry.address] = replace(past, state=PastState.FAILED, ended=record.at)


def _acknowledged(state: RunState, entry: Acknowledged, record: Record) -> None:
    state._drop_news(lambda one: not entry.about or one.kind in entry.about)


_Handler = Callable[[RunState, Any, Record], None]


def _noted(kind: type[Past], becomes: PastState, *fields: str, **facts: Any) -> _Handler:
    """The handler of an entry about the outcome of a call: these fields and these facts become the call's past."""

    def handler(state: RunState, entry: OfCall, record: Record) -> None:
        told = {**facts, **{name: getattr(entry, name) for name in fields}}
        if becomes in (PastState.DONE, PastState.FAILED):
            told["ended"] = record.at
        state._note(kind, entry.address, becomes, record, **told)

    return handler


_RECOVERED: Final = ("digest", "args", "attempt", "key", "policy", "value", "defaults")

_HANDLERS: Final[dict[type[Entry], _Handler]] = {
    RunCreated: _created,
    RunAdopted: _adopted,
    RunReleased: _released,
    RunStopped: _stopped,
    RunDone: _ended,
    RunFailed: _ended,
    CancelRequested: _cancel_requested,
    RunCancelled: _ended,
    RunSuspended: _suspended,
    QuarantineLifted: _quarantine_lifted,
    ChildEnded: _child_ended,
    RunContinued: _continued,
    FellBack: _fell_back,
    RunRewound: _rewound,
    WorldSeen: _world_seen,
    DriftAccepted: _drift_accepted,
    QuestionAsked: _question_asked,
    AnswerGiven: _answer_given,
    QuestionExpired: _question_expired,
    RunPruned: _pruned,
    RunLeft: _left,
    RunMoved: _moved,
    StepStarted: _step_started,
    StepDone: _step_done,
    StepRaised: _step_raised,
    EffectIntended: _effect_intended,
    EffectDone: _effect_done,
    EffectRaised: _effect_raised,
    EffectDoubted: _effect_doubted,
    EffectSettled: _effect_settled,
    EffectUnstorable: _noted(PastEffect, PastState.UNSTORABLE, "why"),
    EffectSuspected: _effect_suspected,
    EffectRecovered: _noted(PastEffect, PastState.DONE, *_RECOVERED, learned_by="an intact record that was set aside"),
    SagaCancelled: _noted(PastSaga, PastState.DONE, "seconds", why="cancelled: what was done in it is undone"),
    CallKept: _call_kept,
    CodeMatched: _code_matched,
    CallCancelled: _call_cancelled,
    CallsReopened: _reopened,
    EffectLandedLate: _landed_late,
    Acknowledged: _acknowledged,
    ValueNoted: _value_noted,
    Progressed: _progressed,
    Published: _published,
    TimerSet: _noted(PastTimer, PastState.OPEN, "due"),
    TimerFired: _noted(PastTimer, PastState.DONE),
    WaitStarted: _noted(PastWait, PastState.OPEN, "name", "due"),
    EventSent: _event_sent,
    EventTaken: _event_taken,
    WaitExpired: _noted(PastWait, PastState.FAILED),
}
"""Entries without a handler are facts for people: they change nothing."""
