"""One run on one page: its state, why, what helps, and every call it made.

A call that was started and has no outcome is *under way* while its process is alive. When that process is gone, the
same record means something else: a step was cut off and may run again, an effect is in doubt.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from msgspec import Raw, Struct

from surefoot.core import values
from surefoot.core.doubt import called_with
from surefoot.core.entry import NOTHING, CallsReopened, EffectLandedLate, Kept, RunRewound, Value
from surefoot.core.history import Past, PastCall, PastEffect, PastNote, PastQuestion, PastState
from surefoot.core.state import CANCELLED, DONE, ENDED, QUEUED, STOPPED, WAITING, RunState
from surefoot.view import answers, standing, text
from surefoot.view.lanes import Bar, Story, timeline
from surefoot.view.standing import Asked, Reason, Stands
from surefoot.view.words import UNKNOWN_APP, Help

Whole = Callable[[Value], Raw]

CALL_WIDTH = 60
VALUE_WIDTH = 400
NAMED_CALLS = 5


class CallLine(Struct, frozen=True):
    """One recorded call. Text is made visible and shortened; `raw_*` is JSON as recorded."""

    address: str
    kind: str
    status: str
    in_doubt: bool
    attempts: int
    started: int
    ended: int
    took: str
    process: int
    """Number of the process in `Page.processes`, counted from 1; 0: unknown."""
    args: str
    result: str
    learned_by: str
    cleared_by: str
    """Who settled it as not happened, before it ran again."""
    raw_args: str
    raw_defaults: str
    raw_result: str
    error: str
    key: str
    on_crash: str


class Page(Struct, frozen=True):
    run: str
    workflow: str
    version: int
    status: str
    stands: str
    needs_a_person: bool
    headline: str
    labels: dict[str, str]
    created: int
    newest: int
    segment: int
    driver: str
    driven: bool
    progress: str
    cancelled_by: str
    child_of: str
    """The run that started this one and waits for it; empty: none."""
    forked_from: str
    """`p before pay#2`; empty: it is no fork."""
    rewinds: tuple[str, ...]
    """Where people rewound it to, and who did."""
    landed_late: tuple[str, ...]
    """Effects that a process executed after it had lost its claim, and what that means."""
    retries: tuple[str, ...]
    """What people requested to be tried again, and who did."""
    reasons: tuple[Reason, ...]
    cures: tuple[Help, ...]
    calls: tuple[CallLine, ...]
    processes: tuple[str, ...]
    published: dict[str, str]
    """Name -> JSON as recorded."""
    args: str
    defaults: str
    """JSON of the defaults in force, by name; empty: none is on record."""
    result: str
    """JSON as recorded; empty while there is none."""
    error: tuple[str, str] | None
    """Type and message of the failure that ended the run."""
    left: tuple[str, ...]
    """Effects left in doubt or done at its end."""


def page(
    state: RunState, *, driven: bool, now: int, where: str = "", app: str = UNKNOWN_APP,
    whole: Whole | None = None,
) -> Page:  # fmt: skip
    """`where`: the URL of the store, for commands. `whole` gives the bytes of values that are kept by parts; without it, and for calls, their size is shown."""
    created = state.created
    how = standing.stands(state, driven=driven, now=now)
    processes: list[str] = []
    let_go = state.claimant is None and bool(state.due or state.children)
    calls = tuple(
        _call(past, processes, driven=driven, let_go=let_go)
        for past in state.calls.values()
        if not isinstance(past, PastNote)
    )
    return Page(
        run=state.run,
        workflow=created.workflow if created else "",
        version=created.version if created else 0,
        status=state.status,
        stands=how.status,
        needs_a_person=how.needs_a_person,
        headline=_headline(state, how),
        labels=dict(created.labels) if created else {},
        created=state.created_at,
        newest=state.newest_at,
        segment=state.segment,
        driver=standing.process(state.claimant),
        driven=driven,
        progress=progress_text(state),
        cancelled_by=_cancelled_by(state),
        child_of=created.child_of if created else "",
        forked_from=f"{created.parent} before {created.at}" if created and created.parent else "",
        rewinds=tuple(_rewind(entry) for entry in state.rewinds),
        landed_late=tuple(_late(state, entry) for entry in state.landed_late),
        retries=tuple(_retry(entry) for entry in state.reopenings),
        reasons=standing.reasons(how.stops, where, _asked(state, whole), app),
        cures=standing.what_helps(state.run, how, where, app),
        calls=calls,
        processes=tuple(processes),
        published={name: _json(raw, whole) for name, raw in state.published.items()},
        args=_json(state.args, whole),
        defaults=_defaults(state.defaults, whole),
        result=_json(state.value, whole) if state.status == DONE else "",
        error=None if how.failure is None else (how.failure.type, how.failure.message),
        left=how.left,
    )


_HEADLINES = {
    standing.ABANDONED: "cut off: its process is gone, everything it recorded is safe, and it is ready to go on",
    standing.READY: "ready to go on; nobody drives it",
    QUEUED: "queued: waits for a worker or a resume",
    STOPPED: "stopped: needs a person",
    WAITING: "waiting for an answer",
}


def _headline(state: RunState, how: Stands) -> str:
    known = how.left if state.status != CANCELLED else state.left  # Effects in doubt are counted below.
    behind = f"; {standing.left_in_words(known)}" if known else ""
    if how.failure is not None:
        return text.shorten(f"failed: {how.failure}", VALUE_WIDTH - len(behind)) + behind
    if state.pruned is not None:
        return f"pruned {text.clock_time(state.pruned_at)}: it had ended {state.status}, and what it recorded is gone"
    asked = ", asked to cancel" if state.cancel is not None and state.status not in ENDED else ""
    back = [entry for _, entry in state.fallbacks]
    fell = f"; fell back to entry {back[-1].after} ({back[-1].why})" if back else ""
    doubts = len(state.in_doubt()) if state.status == CANCELLED else 0
    left = f"; what became of {doubts} effect{'s' if doubts > 1 else ''} is not known" if doubts else ""
    told = _HEADLINES.get(how.status, how.status) if how.wait is None else str(how.wait)
    told += f", parked: {how.parked}" if how.parked else ""
    return text.shorten(told + asked + left + behind + fell, VALUE_WIDTH)


def _asked(state: RunState, whole: Whole | None) -> dict[str, Asked]:
    """The open questions by address, each with all that an answer is bound to."""
    return {
        past.address: Asked(
            form=past.form,
            question=past.question,
            details="" if (details := _json(past.args, whole)) == "null" else details,
            wanted=past.schema,
            by=past.answerers,
            due=past.due.at if past.due is not None else 0,
            shown=past.shown,
        )
        for past in state.questions()
    }


def _rewind(entry: RunRewound) -> str:
    return f"to before {entry.address} by {entry.by}" + (f": {entry.note}" if entry.note else "")


def _late(state: RunState, entry: EffectLandedLate) -> str:
    who = f"worker {entry.worker[:8]} on host {entry.host} (pid {entry.pid})"
    past = state.effect(entry.address)
    is_again = past is not None and past.key == entry.key and past.attempt > entry.attempt
    twice = "; it was begun again, so that it may have been done TWICE" if is_again else ""
    return text.visible(f"{entry.address} (attempt {entry.attempt}) by {who}: {entry.outcome}{twice}")


def _retry(entry: CallsReopened) -> str:
    what = text.some(entry.addresses, NAMED_CALLS) or "the workflow itself"
    return f"{what}, says {entry.by}" + (f": {entry.note}" if entry.note else "")


def _cancelled_by(state: RunState) -> str:
    if state.cancel is None:
        return ""
    return state.cancel.by + (f": {state.cancel.note}" if state.cancel.note else "")


def progress_text(state: RunState) -> str:
    found = state.progress
    if found is None:
        return ""
    total = "" if found.total is None else f" of {found.total:g}"
    return text.shorten(f"{found.done:g}{total}" + (f": {found.note}" if found.note else ""), 100)


def calls_done(state: RunState) -> int:
    """How many steps and effects of the current segment have a recorded outcome."""
    ended = (PastState.DONE, PastState.FAILED)
    return sum(isinstance(past, PastCall) and past.state in ended for past in state.calls.values())


class CallPage(Struct, frozen=True):
    """One call, whole: nothing of it is shortened."""

    run: str
    line: CallLine
    """Its values as recorded, however large."""
    process: str
    """Who made its last attempt."""
    attempts: tuple[Bar, ...]
    """Every attempt that the journal has of it, oldest first."""
    asked: Asked | None
    """Of an open question."""
    seqs: tuple[int, ...]
    """Its entries, by position."""


def call_page(state: RunState, address: str, story: Story, *, driven: bool, now: int, whole: Whole) -> CallPage | None:
    """None: there is no such call in the current segment."""
    past = state.calls.get(address)
    if past is None:
        return None
    let_go = state.claimant is None and bool(state.due or state.children)
    processes: list[str] = []
    line = _call(past, processes, driven=driven, let_go=let_go, whole=whole)
    drawn = timeline(story, driven=driven, now=now, unfolded=True).bars
    mine = tuple(bar for bar in drawn if bar.address == address and bar.segment == state.segment)
    seqs = tuple(record.seq for record, entry in story if getattr(entry, "address", "") == address)
    asked = _asked(state, whole).get(address)
    return CallPage(state.run, line, processes[0] if processes else "", mine, asked, seqs)


def _call(past: Past, processes: list[str], *, driven: bool, let_go: bool, whole: Whole | None = None) -> CallLine:
    status = _status(past, driven=driven, let_go=let_go)
    effect = past if isinstance(past, PastEffect) else None
    defaults = effect.defaults if effect else None
    landing = _landing(effect, status) if effect else ""
    error = "" if past.error is None or past.state is PastState.DONE else _error(past.error)
    return CallLine(
        address=text.visible(past.address),
        kind=past.kind,
        status=status,
        in_doubt=status in ("in doubt", "value missing"),
        attempts=max(past.attempt, 1) if isinstance(past, PastCall) else 1,
        started=past.at,
        ended=past.ended,
        took=text.took(past.ended - past.at) if past.ended else "",
        process=_numbered(past.claimant, processes),
        args=text.shorten(_json(called_with(past.args, defaults)), CALL_WIDTH),
        result=text.shorten("; ".join(filter(None, [error, landing])) or _outcome(past), CALL_WIDTH),
        learned_by=text.visible(past.learned_by if isinstance(past, PastEffect | PastQuestion) else ""),
        cleared_by=text.visible(effect.cleared_by if effect else ""),
        raw_args=_json(past.args, whole),
        raw_defaults=_defaults(defaults, whole),
        raw_result=_json(past.value, whole) if past.state is PastState.DONE else "",
        error=error,
        key=effect.key if effect else "",
        on_crash=effect.policy if effect else "",
    )


def _landing(past: PastEffect, status: str) -> str:
    """The time until which a negative check is not believed."""
    until = past.lands or past.deadline
    if status != "in doubt" or past.policy != "check" or until is None:
        return ""
    return f"may be on its way until {datetime.fromtimestamp(until.at / 1e6, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _defaults(value: Value | None, whole: Whole | None = None) -> str:
    return "" if value is None or value == NOTHING else _json(value, whole)


def _outcome(past: Past) -> str:
    """An answer with its note: the note alone does not show whether it was a yes."""
    if not isinstance(past, PastQuestion) or past.state is not PastState.DONE:
        return past.why or answers.of_json(_json(past.value))
    value = _json(past.value)
    said = {"true": "approved", "false": "denied"}.get(value, value) if past.form == "approve" else value
    return f"{said}: {past.why}" if past.why else said


def _status(past: Past, *, driven: bool, let_go: bool) -> str:
    match past.state:
        case PastState.IN_DOUBT:
            return "under way" if driven and past.error is None else "in doubt"
        case PastState.STARTED:
            return "under way" if driven else "waiting" if let_go else "cut off"  # A call that waits for a child.
        case PastState.UNSTORABLE:
            return "value missing"
        case PastState.CLEARED:
            return "not happened"
        case _:
            return str(past.state.value)


def _numbered(process: str, processes: list[str]) -> int:
    if not process:
        return 0
    if process not in processes:
        processes.append(process)
    return processes.index(process) + 1


def _error(raw: Raw) -> str:
    kind, message = values.error_summary(raw)
    return f"{kind}: {message}" if message else kind


def _json(value: Value | None, whole: Whole | None = None) -> str:
    if value is None:
        return ""
    if isinstance(value, Kept):
        if whole is None:
            return f'{{"$large": {value.reference.size}}}'
        value = whole(value)
    return bytes(value).decode("utf-8", "replace")
