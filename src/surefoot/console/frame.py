"""What stands around every page: who you are and what you may do, how many runs wait, and how the store is.

It is there without a store, too: then it says why.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from msgspec import Struct

from surefoot.console import lists
from surefoot.console.principals import Principal
from surefoot.engine.process.runtime import Runtime
from surefoot.errors import Stopped, StoreUnavailable, SurefootError

if TYPE_CHECKING:
    from surefoot.console.context import Request

KEPT_SECONDS = 2.0


class StoreSeen(Struct, frozen=True):
    """The store at a glance; kept for a moment, for all pages."""

    waiting: int = 0
    """How many runs wait for a decision, by the index."""
    verdict: str = ""
    """What is known against it, in one line; empty: nothing."""
    is_refused: bool = False
    """It cannot be opened until a person has done something: only its own page is there."""
    is_away: bool = False
    now: int = 0
    """Microseconds since 1970, by the store's clock."""
    position: int = 0
    """Where it was when this was seen."""


class Frame(Struct, frozen=True):
    principal: Principal
    csrf: str
    read_only: bool
    waiting: int
    store: str
    """Its address for people."""
    store_verdict: str
    is_refused: bool
    is_away: bool
    now: int
    position: int
    apps: tuple[str, ...]
    """The code that plans are made with; empty: none."""


class Glances:
    """The store at a glance, looked at once for all who ask within a moment."""

    def __init__(self) -> None:
        self._kept: tuple[float, StoreSeen] | None = None

    def seen(self, request: Request) -> StoreSeen:
        kept = self._kept
        if kept is None or time.monotonic() - kept[0] > KEPT_SECONDS or _has_moved(request, kept[1]):
            kept = self._kept = time.monotonic(), _look(request)
        return kept[1]


def _has_moved(request: Request, seen: StoreSeen) -> bool:
    """Whether anything was written since: a page that is fetched because of a change must not show what was before it."""
    try:
        return not seen.is_refused and not seen.is_away and bool(request.runtime.store.changes() != seen.position)
    except SurefootError:
        return True


def _look(request: Request) -> StoreSeen:
    try:
        runtime: Runtime = request.runtime
        position = runtime.store.changes()  # First: what is written meanwhile is a change.
        return StoreSeen(
            lists.to_decide(runtime), runtime.store.anchor_flaw(), now=runtime.clock.now(), position=position
        )
    except SurefootError as error:
        why = error.summary if isinstance(error, Stopped) else str(error)
        is_refused = not isinstance(error, StoreUnavailable)
        return StoreSeen(verdict=why, is_refused=is_refused, is_away=not is_refused, now=time.time_ns() // 1000)


def frame(request: Request) -> Frame:
    """Blocking."""
    console = request.console
    seen = console.glances.seen(request)
    return Frame(
        request.principal, request.csrf, console.options.read_only, seen.waiting, console.where, seen.verdict,
        seen.is_refused, seen.is_away, time.time_ns() // 1000 if seen.is_refused or seen.is_away else seen.now,
        seen.position, console.options.apps,
    )  # fmt: skip
