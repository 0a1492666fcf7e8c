"""What parallel branches have in common, blocking or async: their scopes, and how their ends are joined.

The other branches go on until each is done or stopped; then the whole unwinds once. Which exception is
raised never depends on scheduling: it is the one of the first branch by position.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypedDict, TypeVar

from surefoot.core.address import Scope
from surefoot.core.choice import OnError, one_of
from surefoot.core.parking import unavailable
from surefoot.engine.declare import current
from surefoot.engine.declare.current import Place
from surefoot.engine.declare.lines import claim
from surefoot.engine.declare.signals import RunSignal
from surefoot.engine.verbs.tally import Tally
from surefoot.errors import UsageError

R = TypeVar("R")
T = TypeVar("T")
Was = Callable[[Any], object] | str | None
"""What a branch was called before: by the old key function, or `""` where its calls were made around it."""
DEFAULT_CONCURRENCY = 8


class MapResult(Generic[R]):
    """What `sf.map(..., on_error="collect")` gives: by key (or position), in the order of the items."""

    __slots__ = ("failed", "ok")

    def __init__(self, ok: dict[Any, R], failed: dict[Any, Exception]) -> None:
        self.ok = ok
        self.failed = failed

    def __repr__(self) -> str:
        return f"MapResult(ok={len(self.ok)}, failed={len(self.failed)})"


class MapOptions(TypedDict, Generic[T], total=False):
    """What `sf.map` takes besides `on_error`."""

    key: Callable[[T], object] | None
    concurrency: int | None
    was: Was


class Ends:
    """Opens branches, and has how each of them ended."""

    def __init__(self, place: Place, scopes: list[Scope], tally: Tally | None = None) -> None:
        self.place = place
        self.values: list[Any] = [None] * len(scopes)
        self.errors: list[BaseException | None] = [None] * len(scopes)
        self._scopes = scopes
        self._forks = [place.line.fork() for _ in scopes]
        self._tally = tally
        place.session.scopes.branch_opens(scopes)

    def branch(self, index: int, owner: object) -> _Branch:
        """The block in which the code of a branch runs. It is left by no exception."""
        return _Branch(self, index, Place(self.place.session, self._scopes[index], owner, line=self._forks[index]))

    def end(self, index: int, opened: Place, error: BaseException | None) -> None:
        """What stopped the branch counts, whatever its code made of it: a value it returned anyway is discarded."""
        if opened.stop is not None:
            error = opened.stop
        elif (away := unavailable(error)) is not None:
            error = opened.session.stops.parked(opened, away)  # No failure that `collect` may collect.
        self.errors[index] = error
        self.place.session.scopes.branch_ends(opened.scope.path, error)
        if self._tally is not None:
            self._tally.ended(error)

    def close(self) -> None:
        if self._tally is not None:
            self._tally.close()

    def join(self) -> None:
        """Pass on what unwinds the run: first anything that is not an ordinary exception."""
        self.place.session.stops.check_trouble()
        for error in self.errors:
            if isinstance(error, RunSignal):
                self.place.stop = self.place.stop or error
                raise error
        for error in self.errors:
            if error is not None and not isinstance(error, Exception):
                raise error

    def raise_first(self) -> None:
        for error in self.errors:
            if error is not None:
                raise error


class _Branch:
    def __init__(self, ends: Ends, index: int, place: Place) -> None:
        self._ends, self._index, self._place = ends, index, place

    def __enter__(self) -> None:
        self._token = current.set_place(self._place)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        try:
            self._ends.end(self._index, self._place, error)
        finally:
            current.reset(self._token)
        return True


def gather_scopes(place: Place, count: int, was: str | None = None) -> list[Scope]:
    place.scope.take("gather")
    old = _checked_was(place, "gather", was)
    return [place.scope.branch("gather", index, old, shared=True) for index in range(count)]


def map_scopes(
    place: Place, items: Sequence[Any], key: Callable[[Any], object] | None, was: Was = None
) -> tuple[list[Scope], list[Any]]:
    """The scopes of the items, and the names under which their results are collected."""
    olds = [str(was(item)) if callable(was) else _checked_was(place, "map", was) for item in items]
    if callable(was):
        _refuse_twice(place, olds, "old key")
    shared = not callable(was)
    if key is None:
        place.scope.take("map")
        numbers = list(range(len(items)))
        return [place.scope.branch("map", index, olds[index], shared=shared) for index in numbers], numbers
    labels = [str(key(item)) for item in items]
    _refuse_twice(place, labels, "key")
    _refuse_mixed(place, labels, olds)
    scopes = [place.scope.labelled(label, old, shared=shared) for label, old in zip(labels, olds, strict=True)]
    for scope in scopes:
        claim(place, scope, place.line)
    return scopes, labels


def _refuse_twice(place: Place, labels: Iterable[str | None], what: str) -> None:
    seen: set[str | None] = set()
    for label in labels:
        if label in seen:
            raise place.misused(
                f"sf.map got the {what} {label!r} twice; "
                "give each item a key of its own, so that its calls can be told apart"
            )
        seen.add(label)


def _refuse_mixed(place: Place, labels: list[str], olds: list[str | None]) -> None:
    """A key of one item that was another one's: calls on record under it could be of either."""
    known = set(labels)
    mixed = next((old for label, old in zip(labels, olds, strict=True) if old and old != label and old in known), None)
    if mixed is not None:
        raise place.misused(
            f"sf.map(was=…): the key {mixed!r} is one item's now, and was another one's, so "
            "nobody can tell whose the calls recorded under it are. Give the new keys a form that no old one has: "
            'key=lambda item: f"v2 {…}". Nothing of it was executed.'
        )


def _checked_was(place: Place, verb: str, was: Any) -> str | None:
    if was is None or isinstance(was, str):
        return was
    raise place.misused(
        f'sf.{verb}(was={was!r:.60}): the label it had before, or "" if its calls were '
        "made in the scope around it" + ("; sf.map also takes the old key function" if verb == "map" else "")
    )


def collected(ends: Ends, names: list[Any], on_error: OnError) -> Any:
    if on_error == "raise":
        ends.raise_first()
        return ends.values
    pairs = list(zip(names, ends.values, ends.errors, strict=True))
    return MapResult(
        {name: value for name, value, error in pairs if error is None},
        {name: error for name, _, error in pairs if isinstance(error, Exception)},
    )


def checked_width(concurrency: int | None, on_error: OnError) -> int:
    one_of(on_error, OnError, "sf.map: on_error")
    if concurrency is not None and concurrency < 1:
        raise UsageError(f"sf.map(concurrency={concurrency!r}): must be a whole number, one or more")
    return concurrency or DEFAULT_CONCURRENCY
