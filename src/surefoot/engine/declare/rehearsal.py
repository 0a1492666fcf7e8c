"""Whether the code at hand is only being rehearsed: replayed to see what it would do next.

Calls and verbs of the run itself are held back by their session (`Stops.would_do`). What leaves the run on
purpose is not: an effect inside `sf.outside()`, another run that is started, an event sent from there. They ask here
before they act. Branches inherit the answer with their context.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from surefoot.engine.session.stops import Stops

_rehearsed: ContextVar[Stops | None] = ContextVar("surefoot_rehearsed", default=None)


@contextmanager
def rehearsing(stops: Stops) -> Iterator[None]:
    """What is called in this block is not to happen."""
    token = _rehearsed.set(stops)
    try:
        yield
    finally:
        _rehearsed.reset(token)


def would_do(kind: str, what: str) -> None:
    """Called before something is done outside of every run. In a rehearsal: noted, and not done."""
    stops = _rehearsed.get()
    if stops is not None:
        stops.would_do(kind, what)
