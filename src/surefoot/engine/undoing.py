"""Taking back what was done: compensations, in reverse order, each an effect with an intent and a key of its own.

Every line of control notes the effects that were done in it, whether they ran now or are replayed; what branches did
comes in the order of the branches. So after a crash in the middle of undoing the same undos are asked for in the same
order, and those on record are not repeated. A saga undoes when it is left by a failure or by cancellation, never by a
stop or an interruption: such a run is intact and goes on.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from surefoot.engine import current, drive
from surefoot.engine.current import Place
from surefoot.engine.deeds import Deed
from surefoot.engine.signals import CancelSignal, RunSignal
from surefoot.engine.spec import CallSpec
from surefoot.errors import Fenced, Stopped, StoreUnavailable, UsageError


class Saga:
    """`with sf.saga():` (in async code: `async with`). What is done in the block is undone if it fails."""

    def __init__(self) -> None:
        self._place: Place | None = None
        self._begin: dict[str, int] = {}

    def _enter(self) -> None:
        place = self._place = current.require_branch("saga")
        place.session.enter_verb(place)
        self._begin = {path: len(deeds) for path, deeds in _lists(place)}

    def _to_undo(self, error: BaseException | None) -> list[Deed]:
        place = self._place
        if place is None or not _compensates(error):
            return []
        return [deed for deed in _deeds(place, self._begin) if not deed.undone][::-1]

    def __enter__(self) -> Self:
        self._enter()
        if self._place is not None and not isinstance(self._place.owner, int):
            raise self._place.session.misused(UsageError("in an async workflow a saga is entered with `async with`"))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._place is not None and (deeds := self._to_undo(error)):
            with _still_allowed(self._place) as failures:
                for deed in deeds:
                    with failures:
                        _undo(deed)
            failures.tell()

    async def __aenter__(self) -> Self:
        self._enter()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._place is not None and (deeds := self._to_undo(error)):
            with _still_allowed(self._place) as failures:
                for deed in deeds:
                    with failures:
                        await _undo_async(deed)
            failures.tell()


class _Failures:
    """One undo that fails for good does not keep the others from being undone; the first failure is told after them."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._first: Exception | None = None

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, Exception) or self._place.session.trouble is not None:
            return False
        self._first = self._first or error
        return True

    def tell(self) -> None:
        if self._first is not None:
            raise self._first


def saga() -> Saga:
    """Effects done in this block are undone, newest first, if it is left by a failure or by cancellation."""
    return Saga()


def undo(*effects: Any) -> None:
    """Undo what these effects did so far in this branch, newest first; without arguments: all that can be undone."""
    for deed in _wanted(effects):
        _undo(deed)


async def undo_async(*effects: Any) -> None:
    for deed in _wanted(effects):
        await _undo_async(deed)


def _wanted(effects: tuple[Any, ...]) -> list[Deed]:
    place = current.require_branch("undo")
    place.session.enter_verb(place)
    specs = []
    for effect in effects:
        spec = getattr(effect, "spec", None)
        if not isinstance(spec, CallSpec) or spec.undo is None:
            raise place.session.misused(
                UsageError(f"sf.undo() takes effects that have an undo (@write.undo); {effect!r:.100} has none")
            )
        specs.append(spec)
    return [deed for deed in _deeds(place, {}) if not deed.undone and (not specs or deed.spec in specs)][::-1]


def _lists(place: Place) -> list[tuple[str, list[Deed]]]:
    """What was done here; and by tasks that opened a scope of their own below, by the names of these scopes."""
    line, here = place.line, place.scope.path
    strays = [(path, deeds) for path, deeds in sorted(line.strays.items()) if path.startswith(here)]
    return [("", line.deeds), *((path, deeds) for path, deeds in strays if deeds is not line.deeds)]


def _deeds(place: Place, begin: dict[str, int]) -> list[Deed]:
    return [deed for path, deeds in _lists(place) for deed in deeds[begin.get(path, 0) :]]


def _undo(deed: Deed) -> None:
    spec, args, kwargs = deed.undo()
    if inspect.iscoroutinefunction(spec.fn):
        session = current.require_place("undo").session
        raise session.misused(UsageError(f"{spec.name} is async: `await sf.undo(...)` with surefoot.aio"))
    drive.call(spec, args, kwargs)


async def _undo_async(deed: Deed) -> None:
    from surefoot.engine import drive_async

    spec, args, kwargs = deed.undo()
    if inspect.iscoroutinefunction(spec.fn):
        await drive_async.call(spec, args, kwargs)
    else:
        drive.call(spec, args, kwargs)


def _compensates(error: BaseException | None) -> bool:
    """A failure or a cancellation does. What leaves the run resumable (`Session.conclude`) does not."""
    if error is None or isinstance(error, RunSignal):
        return isinstance(error, CancelSignal)
    return isinstance(error, Exception) and not isinstance(error, UsageError | Stopped | StoreUnavailable | Fenced)


@contextmanager
def _still_allowed(place: Place) -> Iterator[_Failures]:
    """A cancelled run makes no new calls but these."""
    before, place.stop = place.stop, None
    nested, place.undoing = place.undoing, True
    place.session.undoing += 1
    token = current.set_place(place)
    try:
        yield _Failures(place)
    finally:
        current.reset(token)
        place.session.undoing -= 1
        place.undoing = nested
        if place.stop is None:
            place.stop = before
