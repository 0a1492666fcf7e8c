"""What waits for a person, item by item: a question in plain words, since when, until when, and what can be said.

Made of what a run's journal tells (`RunState`), and where that is damaged of its line in the index. Nothing here reads a
store. An item with `decide` waits for a word; any other is only to be known, and is off the list once somebody has seen it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from surefoot.core import need
from surefoot.core.doubt import recorded
from surefoot.core.entry import Stop
from surefoot.core.expectation import UNSEEN
from surefoot.core.history import PastEffect, PastState, PastWait
from surefoot.core.state import ENDED, RunState
from surefoot.view import standing, text

if TYPE_CHECKING:
    from surefoot.engine.operate.inbox import Open
    from surefoot.store.contract import WorkerSeen

CUT_OFF: Final = "cut_off"
LEFT_IN_DOUBT: Final = "left_in_doubt"
LEFT_DONE: Final = "left_done"
KINDS: Final = (
    need.DAMAGE, need.IN_DOUBT, need.DRIFT, need.CODE_CHANGED, need.SCHEMA_MISMATCH, need.QUARANTINED, need.QUESTION,
    need.EVENT, CUT_OFF, need.FAILED, need.FELL_BACK, need.LANDED_LATE, LEFT_IN_DOUBT, LEFT_DONE,
)  # fmt: skip
"""What has to be decided, the most urgent first; then what is to be known."""
TITLE_WIDTH: Final = 300
_NAMED: Final = 3

_ACTIONS: Final = {
    need.DAMAGE: ("repair",),
    need.IN_DOUBT: ("settle", "rewind", "cancel"),
    need.DRIFT: ("accept", "rewind", "cancel"),
    need.CODE_CHANGED: ("match", "rewind", "fork", "cancel"),
    need.SCHEMA_MISMATCH: ("rewind", "fork", "cancel"),
    need.QUARANTINED: ("release", "cancel"),
    need.QUESTION: ("answer", "cancel"),
    need.EVENT: ("event", "cancel"),
    CUT_OFF: ("cancel",),
    need.FAILED: ("retry", "fork", "acknowledge"),
    need.FELL_BACK: ("acknowledge",),
    need.LANDED_LATE: ("acknowledge",),
    LEFT_IN_DOUBT: ("settle", "acknowledge"),
    LEFT_DONE: ("acknowledge",),
}
"""What can be said of it, what helps first at the front: `do` of the objects in `engine/operate/decisions.py`."""


class Item(Struct, frozen=True):
    """One thing that waits for a person."""

    kind: str
    """One of `KINDS`."""
    decide: bool
    """Whether the run stands still until somebody decides. Else it is only to be known."""
    run: str
    workflow: str
    address: str
    title: str
    """One line that can be read and cannot act on a terminal."""
    since: int
    """Microseconds since 1970; 0: not known."""
    until: int = 0
    """Until when somebody should answer; 0: for ever."""
    by: tuple[str, ...] = ()
    """Who may answer; empty: anybody."""
    actions: tuple[str, ...] = ()


class Page(Struct, frozen=True):
    items: tuple[Item, ...]
    next: str = ""
    """The cursor of the next page; empty: this was the last."""


def page(
    waiting: Iterable[Open], workers: Sequence[WorkerSeen], *, now: int, kinds: Sequence[str] = (), limit: int
) -> Page:
    """The first items of runs as they come, of these kinds. The items of a run stay together, so it may be some more."""
    found: list[Item] = []
    cursor = ""
    for one in waiting:
        if len(found) >= limit:
            return Page(tuple(found), cursor)
        found += [item for item in items(one, workers, now=now) if not kinds or item.kind in kinds]
        cursor = one.cursor
    return Page(tuple(found))


def items(one: Open, workers: Sequence[WorkerSeen], *, now: int) -> list[Item]:
    """All of one run, the most urgent first."""
    if one.state is None:
        row = one.row
        workflow, since = (row.workflow, row.since or row.created) if row is not None else ("", 0)
        title = f"Its journal is damaged: {one.damage}"
        return [Item(need.DAMAGE, True, one.run, workflow, "", _line(title), since, actions=_ACTIONS[need.DAMAGE])]
    return of_run(one.state, workers, driven=one.driven, now=now)


def of_run(state: RunState, workers: Sequence[WorkerSeen], *, driven: bool, now: int) -> list[Item]:
    if state.pruned is not None:
        return []
    return sorted(
        [*_decided(state, workers, driven=driven, now=now), *_known(state)],
        key=lambda item: (not item.decide, KINDS.index(item.kind), item.until or 2**62, item.since),
    )


# --- what has to be decided --------------------------------------------------------------------------


def _decided(state: RunState, workers: Sequence[WorkerSeen], *, driven: bool, now: int) -> Iterator[Item]:
    if state.status in ENDED:
        return
    how = standing.stands(state, driven=driven, now=now)
    for stop in how.stops:
        yield _of_stop(state, stop)
    if how.status == standing.ABANDONED and (how.elsewhere or not serves(workers, state)):
        nobody = f"Its process is gone, and no living worker serves {_workflow(state)}"
        title = f"Its process is gone. To go on: {how.elsewhere}" if how.elsewhere else nobody
        yield _item(state, CUT_OFF, "", title, state.newest_at)


def serves(workers: Iterable[WorkerSeen], state: RunState) -> bool:
    """Whether a living worker takes such a run up by itself."""
    return any(one.serving is not None and _fits(one, state) for one in workers)


def _fits(worker: WorkerSeen, state: RunState) -> bool:
    serving, queue = worker.serving, state.created.queue if state.created is not None else ""
    return (
        serving is not None
        and _workflow(state) in serving.workflows
        and (not serving.queues or queue in serving.queues)
    )


def _of_stop(state: RunState, stop: Stop) -> Item:
    kind = need.kind_of(stop)
    kind = need.FAILED if kind == need.STOPPED else kind  # `on_failure="stop"`: it waits to be tried again.
    past = state.calls.get(stop.address)
    since = state.standing.need.since or (past.at if past is not None else 0) or state.newest_at
    question = state.question(stop.address) if kind == need.QUESTION else None
    if question is not None:
        since, by = question.at, question.answerers
        until = question.due.at if question.due is not None else 0
        return _item(state, kind, stop.address, question.question, since, until=until, by=by)
    due = past.due if isinstance(past, PastWait) else None
    return _item(state, kind, stop.address, _asks(state, stop, kind), since, until=due.at if due is not None else 0)


def _asks(state: RunState, stop: Stop, kind: str) -> str:
    match kind:
        case need.IN_DOUBT:
            if "happened" in stop.facts:
                return f"{stop.address} happened, but what it gave is not known. What was it?"
            return f"Did {stop.address} happen? {_known_of(state, stop)}"
        case need.DRIFT:
            return f"{_drifted(stop)}. Is that all right?"
        case need.CODE_CHANGED:
            return f"The code has changed{f' at {stop.address}' if stop.address else ''}. How does the run go on?"
        case need.SCHEMA_MISMATCH:
            return f"The code cannot read what is recorded{f' at {stop.address}' if stop.address else ''}"
        case need.QUARANTINED:
            return "It was taken up again and again, and each time its process died. Try it again?"
        case need.EVENT:
            return f"It waits for the event {stop.facts['event']}"
        case need.FAILED:
            return f"It failed and can be tried again: {_about(state, stop.message)}"
        case _:
            return _about(state, stop.message)


def _known_of(state: RunState, stop: Stop) -> str:
    known = stop.facts.get("known", "")
    past = state.effect(stop.address)
    if not known and past is not None:
        known = recorded(state.run, past).known
    return f"It {known}." if known.startswith(("raised", "may")) else f"It was {known}." if known else ""


def _drifted(stop: Stop) -> str:
    if not stop.drift:
        return "The world has changed outside"
    unseen = [one for one in stop.drift if one.what == UNSEEN]
    if len(unseen) == len(stop.drift):
        return f"{text.some([one.witness for one in unseen], _NAMED)} cannot be observed"
    return f"Changed outside: {text.some([one.part for one in stop.drift if one.part], _NAMED)}"


def _about(state: RunState, message: str) -> str:
    """Which run it is about stands beside it."""
    return message.removeprefix(f"run {state.run}").lstrip(":, ")


# --- what is only to be known ------------------------------------------------------------------------


def _known(state: RunState) -> Iterator[Item]:
    for news in state.to_know:
        match news.kind:
            case need.FAILED:
                yield _item(state, need.FAILED, "", f"It failed: {news.brief}", news.at, decide=False)
            case need.FELL_BACK:
                title = f"Entries of it were damaged, and it went on before them: {news.brief}"
                yield _item(state, need.FELL_BACK, "", title, news.at, decide=False)
            case need.LANDED_LATE:
                title = f"{news.address} was executed by a process that had lost the run by then: {news.brief}"
                yield _item(state, need.LANDED_LATE, news.address, title, news.at, decide=False)
            case _:
                yield _left(state, news)


def _left(state: RunState, news: need.News) -> Item:
    """Of this segment, or of an earlier one: there its call is closed, and can only be acknowledged."""
    is_earlier = news.seq <= state.segment_began
    past = state.left_effects.get(news.address) if is_earlier else state.effect(news.address)
    if past is not None and past.state is PastState.DONE:
        return _item(
            state, LEFT_DONE, news.address, f"{news.address} was done, and is not undone", news.at, decide=False
        )
    is_closed = is_earlier or past is None or _is_closed(past)
    actions = ("acknowledge",) if is_closed else _ACTIONS[LEFT_IN_DOUBT]
    title = f"Nobody knows whether {news.address} happened, and the run {'has gone on' if is_earlier else 'is over'}"
    return _item(state, LEFT_IN_DOUBT, news.address, title, news.at, decide=False, actions=actions)


def _is_closed(past: PastEffect) -> bool:
    """It failed because it was in doubt (`on_crash="fail"`): there is no open attempt to settle."""
    return past.state is PastState.FAILED


# --- one item ----------------------------------------------------------------------------------------


def _item(
    state: RunState,
    kind: str,
    address: str,
    title: str,
    since: int,
    *,
    decide: bool = True,
    until: int = 0,
    by: tuple[str, ...] = (),
    actions: tuple[str, ...] = (),
) -> Item:
    known = actions or tuple(one for one in _ACTIONS[kind] if not (decide and one == "acknowledge"))
    return Item(kind, decide, state.run, _workflow(state), address, _line(title), since, until, by, known)


def _workflow(state: RunState) -> str:
    return state.created.workflow if state.created is not None else ""


def _line(title: str) -> str:
    return text.shorten(title.strip(), TITLE_WIDTH)
