"""Recorded calls that the replayed code has not asked for yet: are they still to come?

A replay answers recorded calls at once, while other awaits (an HTTP request, a timer of asyncio) take their time again. So
one task may get far ahead of another and affect it earlier than before: a failing sibling in a TaskGroup cancels the
others, the first of two tasks cancels the second. Therefore tasks with scopes of their own go in the recorded order. An
outcome is delivered only when the other tasks have asked for all calls recorded before it, and have got their outcomes.

The wait for a call has a limit: the time that the recording process took to reach it, and some seconds. Changed code
may never ask for the call. Then a warning is logged, and the fence around new effects decides: in tasks, a scope that
is still not open by then counts as gone.

Branches of `sf.gather` and `sf.map` are joined, and none of them affects another: they do not wait.
"""

from __future__ import annotations

import logging
import re
from bisect import bisect_right
from collections.abc import Container, Iterator
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from surefoot.core.history import Past, is_rewound
from surefoot.engine.declare.current import Line, Place, session_of

if TYPE_CHECKING:
    import asyncio

    from surefoot.engine.session.session import Session

SLACK_SECONDS: Final = 1.0
PATIENCE_SECONDS: Final = 10.0
"""The extra time to wait for another task: its other awaits may be slower than before."""
_log = logging.getLogger("surefoot")
LOOK_SECONDS: Final = 0.01
REST_SECONDS: Final = 2.0
"""How long a rehearsal lets other tasks go on at most, and …"""
REST_TURNS: Final = 10
"""… how many turns of the loop without a further call end that."""
_CALLS: Final = frozenset({"step", "effect", "timer", "wait"})
_WHOLE: Final = re.compile(r"#\d+$")
_STEP: Final = re.compile(r"\[[^\]]*\]/|[^/\[\]]+/")
_DIRECT: Final = re.compile(r"[^/]+#\d+$")


UNKNOWN: Final = object()


class Backlog:
    """The recorded calls in the order in which they came, without those that were asked for."""

    def __init__(self, session: Session) -> None:
        self._session = session
        recorded = (past for past in session.replay.matcher.recorded() if past.kind in _CALLS and not is_rewound(past))
        calls = (past for past in recorded if _WHOLE.search(past.address) and not session.replay.lets_go(past))
        self._calls = sorted(calls, key=lambda past: past.first)
        self._next = 0
        groups: dict[str, list[Past]] = {}
        for past in self._calls:
            path = past.address[: past.address.rindex("/") + 1] if "]/" in past.address else ""
            if path:
                groups.setdefault(path, []).append(past)
        asked = session.replay.matcher.asked
        self._labels = [_Labelled(calls, asked) for calls in groups.values()][::-1]
        """Scopes with recorded calls that may belong to a task of its own. The earliest is the last."""
        self._owed: list[_Owed] = []
        """Outcomes that were asked for and wait for their turn."""
        self._told: set[str] = set()
        self.met: set[str] = set()
        """Calls before which the code was cancelled, and which it has reached again."""
        self.is_cut_short = False
        """In a rehearsal: a part of the code has ended, which may be the only reason for cancelling others."""

    def before(self, seq: int | None) -> Iterator[Past]:
        """The calls that came before that entry; None: all."""
        calls = self._calls
        asked = self._session.replay.matcher.asked
        while self._next < len(calls) and calls[self._next].address in asked:
            self._next += 1
        for index in range(self._next, len(calls)):
            past = calls[index]
            if seq is not None and past.first >= seq:
                break
            if past.address not in asked:
                yield past

    def to_come(self, seq: int | None, path: str = "") -> Iterator[Past]:
        """The same below that scope, while they may still be expected."""
        elapsed = elapsed_seconds(self._session)
        for past in self.before(seq):
            if past.address.startswith(path) and self._is_expected(past, elapsed, SLACK_SECONDS):
                yield past

    def is_behind(self, place: Place, seq: int | None, address: str = "") -> bool:
        """Whether this line of control has yet to ask for effects that were recorded before that entry: then its
        present call, at that address, comes in front of them.
        """
        return not place.undoing and any(
            past.kind == "effect" and past.address != address and past.address.startswith(place.scope.path)
            and not is_elsewhere(place, past.address)
            for past in self.before(seq)
        )  # fmt: skip

    def _is_expected(self, past: Past, elapsed: float, slack_seconds: float) -> bool:
        """Not for much longer than the recording process took to reach it."""
        starts = self._session.state.adoptions
        index = bisect_right(starts, past.at)
        took = (past.at - starts[index - 1]) / 1e6 if index else 0.0
        return elapsed < took + slack_seconds

    def _holds_up(self, place: Place, past: Past, elapsed: float) -> bool:
        """Whether to wait for another task, which has yet to ask for this call. The end of the wait is logged."""
        if not is_elsewhere(place, past.address):
            return False
        session = self._session
        ends = session.dry and (session.stops.planned or self.is_cut_short)
        if self._is_expected(past, elapsed, SLACK_SECONDS if ends else PATIENCE_SECONDS):
            return True
        if not session.dry and past.address not in self._told:
            self._told.add(past.address)
            _log.warning(
                "run %s: %s is on record, and no task has asked for it as long as it took before and %g s more. The other "
                "tasks go on without it, perhaps in another order than before.",
                session.run, past.address, PATIENCE_SECONDS,
            )  # fmt: skip
        return False

    def is_ahead(self, place: Place, seq: int | None) -> bool:
        """Whether another task has yet to ask for calls recorded before that entry."""
        if place.line.is_stray:
            elapsed = elapsed_seconds(self._session)
            return any(self._holds_up(place, past, elapsed) for past in self.before(seq))
        labels = self._labels
        while labels and labels[-1].first() is None:
            labels.pop()
        elapsed = elapsed_seconds(self._session) if labels else 0.0
        for labelled in reversed(labels):
            first = labelled.first()
            if seq is not None and labelled.calls[0].first >= seq:
                break
            if first is None or (seq is not None and first.first >= seq):
                continue
            owner = owner_of(place, first.address)
            labelled.is_joined = isinstance(owner, Line) and not owner.is_stray
            if self._holds_up(place, first, elapsed):
                return True
        return False

    @property
    def has_owed(self) -> bool:
        """Whether another task waits for its turn: it goes before this one, or right after it."""
        return bool(self._owed)

    def owe(self, place: Place, seq: int | None, turn: asyncio.Future[None]) -> _Owed:
        owed = _Owed(seq, place, turn)
        self._owed.append(owed)
        self._owed.sort(key=lambda one: inf if one.seq is None else one.seq)
        self.hand_over()
        return owed

    def hand_over(self) -> None:
        """Deliver all outcomes that follow each other on record in one turn of the loop. So a task that waits for one
        of them, and cancels the others, cannot run in between.
        """
        for owed in self._owed:
            if not owed.is_next:
                if self.is_ahead(owed.place, owed.seq):
                    break
                owed.is_next = True
                owed.turn.get_loop().call_soon(_hand, owed.turn)  # Not at once: the last task does not wait for it yet.

    def forget(self, owed: _Owed) -> None:
        if owed in self._owed:
            self._owed.remove(owed)


class _Owed(Struct, eq=False):
    """A task that waits for the delivery of the outcome of its call."""

    seq: int | None
    """The entry that has the outcome; None: it was not on record."""
    place: Place
    turn: asyncio.Future[None]
    is_next: bool = False


def _hand(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)


class _Labelled(Struct, eq=False):
    """The recorded calls in one scope with a label."""

    calls: list[Past]
    asked: Container[str]
    is_joined: bool = False
    """Whether it was opened by a joined line, or by the run itself."""
    _next: int = 0

    def first(self) -> Past | None:
        """The first call that was not asked for; None: no task has to wait for this scope any more."""
        while self._next < len(self.calls) and self.calls[self._next].address in self.asked:
            self._next += 1
        return None if self.is_joined or self._next == len(self.calls) else self.calls[self._next]


def elapsed_seconds(session: Session) -> float:
    from asyncio import get_running_loop

    return get_running_loop().time() - session.flight.invoked


async def in_turn(place: Place, address: str, *, on_record: bool) -> None:
    """Deliver this outcome only when the other lines of control are where they were when it came."""
    import asyncio

    session = session_of(place)
    past = session.state.calls.get(address) if on_record else None
    seq = None if past is None else past.seq
    backlog = session.backlog
    if not backlog.has_owed and not backlog.is_ahead(place, seq):
        return
    owed = backlog.owe(place, seq, asyncio.get_running_loop().create_future())
    try:
        while not (await asyncio.wait({owed.turn}, timeout=LOOK_SECONDS))[0]:
            session.stops.check_trouble()
            backlog.hand_over()
    finally:
        backlog.forget(owed)


async def heard_out(place: Place, address: str) -> None:
    """A new effect waits for the other tasks: one of them may still ask for the same effect, or open a scope with
    recorded effects. The call that leads there may be in progress, or have just ended.
    """
    import asyncio

    session = session_of(place)
    await in_turn(place, address, on_record=False)
    loop = asyncio.get_running_loop()
    while (session.flight.calls or loop.time() < session.flight.made_at + PATIENCE_SECONDS) and any(
        past.kind == "effect" and owner_of(place, past.address) is UNKNOWN for past in session.backlog.before(None)
    ):
        session.stops.check_trouble()
        await asyncio.sleep(LOOK_SECONDS)
    if not _is_awaited(place):
        session.fence.patient.add(address)


def _is_awaited(place: Place) -> bool:
    """Whether the workflow's own tasks have opened no scope so far: they may wait for something that this one holds."""
    import asyncio

    from surefoot.engine.declare import lines

    *_, top = place.around()
    known = {asyncio.current_task(), top.owner, *session_of(place).flight.tasks_before}
    return any(one not in known and not lines.has_opened(one) for one in asyncio.all_tasks())


async def others_heard(session: Session) -> None:
    """A task of a rehearsal has ended. A TaskGroup cancels the others for that, so they go on first, until they too
    reach a new call or an await that is not ours.
    """
    import asyncio

    if not session.scopes.has_strays:
        return
    end = asyncio.get_running_loop().time() + REST_SECONDS
    quiet, heard = 0, -1
    with suppress(asyncio.CancelledError):  # Cancelled by another task that has ended. Both end now.
        while quiet < REST_TURNS and asyncio.get_running_loop().time() < end:
            quiet = quiet + 1 if session.flight.entered == heard and not session.backlog.has_owed else 0
            heard = session.flight.entered
            await asyncio.sleep(LOOK_SECONDS if session.backlog.has_owed else 0)


def is_elsewhere(place: Place, address: str) -> bool:
    """Whether a recorded call belongs to another line of control, which runs beside this one and is not joined."""
    owner = owner_of(place, address)
    if isinstance(owner, Line):
        return not place.line.is_part_of(owner)
    return owner is UNKNOWN


def owner_of(place: Place, address: str) -> Line | object | None:
    """The owner of that call, seen from here. UNKNOWN: its scope was not opened yet. None: a branch of the engine."""
    *_, top = place.around()
    if not address.startswith(top.scope.path):
        return None
    scope, at = top.scope, len(top.scope.path)
    owner: Any = top.line
    while not _DIRECT.fullmatch(address, at):
        step = _STEP.match(address, at)
        if step is None or not step[0].startswith("["):
            return None
        found = scope.child(step[0])
        if found is None:
            return UNKNOWN
        scope, owner, at = found, found.owner or owner, step.end()
    return owner  # type: ignore[no-any-return]
