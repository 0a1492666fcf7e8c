"""Taking back what was done: compensations, in reverse order, each an effect with an intent and a key of its own.

Every line of control notes the effects that were done in it, whether they ran now or are replayed; what branches did
comes in the order of the branches. So after a crash in the middle of undoing the same undos are asked for in the same
order, and those on record are not repeated. A saga undoes when it is left by a failure or by cancellation, never by a
stop or an interruption: such a run is intact and goes on. What was done in it and has no undo is named, loudly.

A task that is cancelled inside the run (a time-out, a failing sibling) has failed too. But that need not strike again,
or not there, when the code is replayed. So it is recorded before the first undo (`SagaCancelled`); from then on the block
goes no further than what is on record, is undone to the end, and waits for what cancelled it before.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

from surefoot.core.code_changes import changed
from surefoot.core.command import Append, Make, Routine
from surefoot.core.cure import Advice, command
from surefoot.core.entry import SagaCancelled, Stop
from surefoot.core.history import PastSaga
from surefoot.core.parking import unavailable
from surefoot.core.reopening import undo_again
from surefoot.core.timer import after
from surefoot.engine.declare import current
from surefoot.engine.declare.call_spec import CallSpec
from surefoot.engine.declare.current import Place, session_of
from surefoot.engine.declare.signals import CancelSignal, PlanSignal, RunSignal
from surefoot.engine.drive import perform
from surefoot.engine.session import moved
from surefoot.engine.session.effects_done import Deed
from surefoot.engine.session.frame import Frame
from surefoot.errors import Fenced, Stopped, StoreUnavailable, UsageError

SLACK_SECONDS = 1.0
log = logging.getLogger("surefoot")


class Saga:
    """`with sf.saga():` (in async code: `async with`). What is done in the block is undone if it fails."""

    def __init__(self) -> None:
        self._place: Place | None = None
        self._begin: dict[str, int] = {}
        self._address = ""
        self._cancelled: PastSaga | None = None
        """On record: an earlier process began to undo it because it was cancelled."""
        self._outer: Any = None

    def _enter(self) -> Place:
        place = self._place = current.require_branch("saga")
        session = session_of(place)
        session.enter_verb(place)
        self._address, past = moved.recorded(place, "saga")
        if past is not None:
            session.replay.matcher.asked.add(self._address)
            if not isinstance(past, PastSaga):
                raise session.stops.stopped(place, changed(session.run, self._address, f"a {past.kind}", "sf.saga()"))
        self._cancelled = past
        self._begin = {path: len(deeds) for path, deeds in _lists(place)}
        place.line.sagas += 1
        return place

    def _to_undo(self) -> list[Deed]:
        place = self._place
        return [] if place is None else _require_undoable(place, _undoable(place, self._begin)[::-1])

    def _tell_what_is_left(self, place: Place) -> None:
        left = [deed for deed in _deeds(place, self._begin) if not deed.undone and not _can_be_undone(deed)]
        # Undone by an earlier process, with an undo that the code no longer has: it is not left as it is.
        left = [deed for deed in left if not place.session.replay.was_undone(deed.address)]
        _tell_what_is_left(place, left, "a saga did not succeed")

    def __enter__(self) -> Self:
        place = self._enter()
        if not isinstance(place.owner, int):
            raise place.session.stops.misused(UsageError("in an async workflow a saga is entered with `async with`"))
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        place = self._place
        if place is None:
            return
        place.line.sagas -= 1
        _park(place, error)
        if _compensates(place, error):
            perform.run(self._undone(place, self._to_undo()), Frame(place.session, place))

    async def __aenter__(self) -> Self:
        from surefoot.engine.drive import acts_async

        place = self._enter()
        self._outer = place.line.leaving
        if self._cancelled is not None:
            place.line.leaving = acts_async.CancelledAgain
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        from asyncio import CancelledError

        from surefoot.engine.drive.acts_async import CancelledAgain, to_the_end

        place = self._place
        if place is None:
            return
        place.line.leaving = self._outer
        place.line.sagas -= 1
        _park(place, error)
        cancelled = isinstance(error, CancelledError)
        again = self._cancelled is not None and (error is None or isinstance(error, CancelledAgain))
        if isinstance(error, CancelledError) and not again and self._breaks_off(place, error):
            return
        compensates = cancelled or again or _compensates(place, error)
        if compensates and (deeds := self._to_undo()):
            marked = cancelled and self._cancelled is None
            _, late = await to_the_end(
                self._undone_async(place, deeds, marked=marked), place.session.stops.while_undoing
            )
            if late is not None:
                raise late
        elif compensates:
            self._tell_what_is_left(place)
        if again and self._cancelled is not None:
            await _cancelled_as_before(place, self._address, self._cancelled)

    def _breaks_off(self, place: Place, error: BaseException) -> bool:
        """Also in a dry replay, where a task is cancelled because another has come to what would be executed."""
        unknown = place.session.dry and self._cancelled is None
        return unknown or bool(place.session.stops.breaks_off(place, error))

    async def _undone_async(self, place: Place, deeds: list[Deed], *, marked: bool) -> None:
        """In a task of its own, so that no further cancellation reaches it: what has begun to be undone is undone."""
        from asyncio import current_task, get_running_loop

        from surefoot.engine.drive import perform_async

        session = session_of(place)
        seconds = round(get_running_loop().time() - session.flight.invoked, 3)
        mark = SagaCancelled(self._address, seconds) if marked else None
        owner, place.owner = place.owner, current_task()
        try:
            await perform_async.run(self._undone(place, deeds, mark), Frame(session, place))
        finally:
            place.owner = owner

    def _undone(self, place: Place, deeds: list[Deed], mark: SagaCancelled | None = None) -> Routine[None]:
        if mark is not None:
            yield Append(mark)
        failed: Exception | None = None
        with _still_allowed(place):
            for deed in deeds:
                try:
                    yield from _undoing(deed)
                except Exception as error:
                    if place.session.stops.is_cut_off:
                        raise
                    # One undo that fails for good does not keep the others from being undone.
                    failed = failed or error
        self._tell_what_is_left(place)
        if failed is not None:
            raise failed


def _tell_what_is_left(place: Place, left: list[Deed], why: str) -> None:
    """Readers take "undone" for everything, so what is left is named."""
    session = session_of(place)
    if not left or session.dry:
        return
    for deed in left:
        deed.undone = True  # The saga around this one has nothing more to say about it.
        session.notices.left_behind[deed.address] = True
    tried = [deed for deed in left if deed.undo_failed]
    told = {
        "Left as they are, they have no undo": [d.address for d in left if not (d.in_doubt or d.undo_failed)],
        "Left as they are, their undos failed": [f"{deed.address} ({deed.undo_failed})" for deed in tried],
        "In doubt, and not undone, since nobody knows whether they happened": [d.address for d in left if d.in_doubt],
    }
    parts = [f"{what}: {', '.join(names)}" for what, names in told.items() if names]
    message = f"run {session.run}: {why}. {'. '.join(parts)}"
    log.warning("%s", message)
    undos = [deed.undo_failed for deed in tried]
    again = undo_again(session.run, undos, when="ended? undo once more:")
    session.notices.tell(message, (again,) if undos and not session.state.cancel else (), kind="saga")


def saga() -> Saga:
    """Effects done in this block are undone, newest first, if it is left by a failure or by cancellation."""
    return Saga()


def undo(*effects: Any) -> None:
    """Undo what these effects did so far in this branch, newest first; without arguments: all that can be undone."""
    place = current.require_blocking("undo")
    perform.run(_by_hand(effects), Frame(place.session, place))


async def undo_async(*effects: Any) -> None:
    from surefoot.engine.drive import perform_async

    place = current.require_branch("undo")
    await perform_async.run(_by_hand(effects), Frame(place.session, place))


def _by_hand(effects: tuple[Any, ...]) -> Routine[None]:
    """`sf.undo` raises what failed, and the code may go on. What stays done is reported all the same."""
    for deed in _wanted(effects):
        try:
            yield from _undoing(deed)
        finally:
            if deed.undo_failed:
                _tell_what_is_left(current.require_place("undo"), [deed], "sf.undo() did not succeed")


def _wanted(effects: tuple[Any, ...]) -> list[Deed]:
    place = current.require_branch("undo")
    place.session.enter_verb(place)
    specs = []
    for effect in effects:
        spec = getattr(effect, "spec", None)
        if not isinstance(spec, CallSpec) or spec.undo is None:
            raise place.session.stops.misused(
                UsageError(f"sf.undo() takes effects that have an undo (@write.undo); {effect!r:.100} has none")
            )
        specs.append(spec)
    wanted = [deed for deed in _undoable(place, {}) if not specs or deed.spec in specs]
    return _require_undoable(place, wanted[::-1])


def _require_undoable(place: Place, deeds: list[Deed]) -> list[Deed]:
    """All of them, before the first is undone: the code may have changed so that it cannot undo one."""
    stop = next((deed.stop for deed in deeds if deed.stop is not None), None)
    if stop is not None:
        raise place.session.stops.stopped(place, stop)
    return deeds


def _lists(place: Place) -> list[tuple[str, list[Deed]]]:
    """What was done here; and by tasks that opened a scope of their own below, by the names of these scopes."""
    line, here = place.line, place.scope.path
    strays = [(path, deeds) for path, deeds in sorted(line.strays.items()) if path.startswith(here)]
    return [("", line.deeds), *((path, deeds) for path, deeds in strays if deeds is not line.deeds)]


def _deeds(place: Place, begin: dict[str, int]) -> list[Deed]:
    return [deed for path, deeds in _lists(place) for deed in deeds[begin.get(path, 0) :]]


def _undoable(place: Place, begin: dict[str, int]) -> list[Deed]:
    return [deed for deed in _deeds(place, begin) if _can_be_undone(deed) and not deed.undone]


def _can_be_undone(deed: Deed) -> bool:
    return deed.spec.undo is not None and not deed.in_doubt and not deed.undo_failed


def _undoing(deed: Deed) -> Routine[None]:
    """An undo that failed for good leaves its effect done. One that failed in doubt is named itself (`effects_done.note`)."""
    try:
        yield Make(*deed.undo())
    except Exception:
        place = current.require_place("undo")
        if not place.session.stops.is_cut_off and place.called not in place.session.notices.left_behind:
            deed.stays(place.called)
        raise


def _park(place: Place, error: BaseException | None) -> None:
    """What the code needs is away: the run is intact, so nothing is undone, and nothing goes on behind the block."""
    if (away := unavailable(error)) is not None:
        raise place.session.stops.parked(place, away)


def _compensates(place: Place, error: BaseException | None) -> bool:
    """A failure or a cancellation does. What leaves the run resumable (`Session.conclude`) does not."""
    if place.session.stops.interruption is not None:
        return False
    if error is None or isinstance(error, RunSignal):
        return isinstance(error, CancelSignal)
    return isinstance(error, Exception) and not isinstance(error, UsageError | Stopped | StoreUnavailable | Fenced)


async def _cancelled_as_before(place: Place, address: str, past: PastSaga) -> None:
    """All is undone. What cancelled the block before, a time-out or a sibling, decides how the code goes on."""
    from surefoot.engine.drive import acts_async
    from surefoot.engine.drive.cancellations import dealt_with

    session = session_of(place)
    if place.line.leaving is not None:
        raise place.line.leaving()  # So was the saga around it, which is undone first.
    if session.dry:
        raise PlanSignal
    wait = past.seconds + SLACK_SECONDS
    known = f"run {session.run}, {address}: the block was cancelled before, and what it did is undone"
    log.warning("%s; waiting at most %.0f s for the same to happen again", known, wait)
    try:
        await acts_async.stay(session, after(session.now(), wait))
    finally:
        dealt_with(place)
    message = f"{known}. This time nothing cancelled it, so that nobody knows how the run goes on."
    cures = (
        Advice("once more:", "run it again, with what cancels the block (a time-out, a failing sibling)"),
        command("runs cancel", session.run, when="give up:"),
    )
    raise session.stops.stopped(place, Stop("CodeChanged", message, address, {"recorded": "cancelled"}, cures))


@contextmanager
def _still_allowed(place: Place) -> Iterator[None]:
    """A cancelled run makes no new calls but these."""
    before, place.stop = place.stop, None
    nested, place.undoing = place.undoing, True
    place.session.stops.undoing += 1
    token = current.set_place(place)
    try:
        yield
    finally:
        current.reset(token)
        place.session.stops.undoing -= 1
        place.undoing = nested
        if place.stop is None:
            place.stop = before
