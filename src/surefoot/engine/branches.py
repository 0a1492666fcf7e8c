"""What parallel branches have in common, blocking or async: their scopes, and how their ends are joined.

The other branches go on until each is done or stopped; then the whole unwinds once. Which exception is
raised never depends on scheduling: it is the one of the first branch by position.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

from surefoot.core.address import Scope
from surefoot.engine.current import Place
from surefoot.engine.signals import RunSignal
from surefoot.errors import UsageError

R = TypeVar("R")
DEFAULT_CONCURRENCY = 8


class MapResult(Generic[R]):
    """What `sf.map(..., on_error="collect")` gives: by key (or position), in the order of the items."""

    __slots__ = ("failed", "ok")

    def __init__(self, ok: dict[Any, R], failed: dict[Any, Exception]) -> None:
        self.ok = ok
        self.failed = failed

    def __repr__(self) -> str:
        return f"MapResult(ok={len(self.ok)}, failed={len(self.failed)})"


class Ends:
    """How each branch ended."""

    def __init__(self, count: int) -> None:
        self.values: list[Any] = [None] * count
        self.errors: list[BaseException | None] = [None] * count

    def overrule(self, index: int, opened: Place) -> None:
        """What stopped the branch counts, whatever its code made of it: a value it returned anyway is discarded."""
        if opened.stop is not None:
            self.errors[index] = opened.stop

    def join(self, place: Place) -> None:
        """Pass on what unwinds the run: first anything that is not an ordinary exception."""
        session = place.session
        session.check_trouble()
        for error in self.errors:
            if isinstance(error, RunSignal):
                place.stop = place.stop or error
                raise error
        for error in self.errors:
            if error is not None and not isinstance(error, Exception):
                raise error

    def raise_first(self) -> None:
        for error in self.errors:
            if error is not None:
                raise error


def gather_scopes(place: Place, count: int) -> list[Scope]:
    address = place.scope.take("gather")
    return [place.scope.branch(address, index) for index in range(count)]


def map_scopes(
    place: Place, items: Sequence[Any], key: Callable[[Any], object] | None
) -> tuple[list[Scope], list[Any]]:
    """The scopes of the items, and the names under which their results are collected."""
    if key is None:
        address = place.scope.take("map")
        return [place.scope.branch(address, index) for index in range(len(items))], list(range(len(items)))
    labels = [str(key(item)) for item in items]
    twice = _first_duplicate(labels)
    if twice is not None:
        raise place.session.misused(
            UsageError(
                f"run {place.session.run}: sf.map got the key {twice!r} twice; "
                "give each item a key of its own, so that its calls can be told apart"
            )
        )
    return [place.scope.labelled(label) for label in labels], labels


def collected(ends: Ends, names: list[Any], on_error: str) -> Any:
    if on_error == "raise":
        ends.raise_first()
        return ends.values
    pairs = list(zip(names, ends.values, ends.errors, strict=True))
    return MapResult(
        {name: value for name, value, error in pairs if error is None},
        {name: error for name, _, error in pairs if isinstance(error, Exception)},
    )


def checked_width(concurrency: int | None, on_error: str) -> int:
    if on_error not in ("raise", "collect"):
        raise UsageError(f'sf.map(on_error={on_error!r}): must be "raise" or "collect"')
    if concurrency is not None and concurrency < 1:
        raise UsageError(f"sf.map(concurrency={concurrency!r}): must be a whole number, one or more")
    return concurrency or DEFAULT_CONCURRENCY


def _first_duplicate(labels: Iterable[str]) -> str | None:
    seen: set[str] = set()
    for label in labels:
        if label in seen:
            return label
        seen.add(label)
    return None
