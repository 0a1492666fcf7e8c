"""Whether the code at hand is only being rehearsed: replayed to find out what it would do next.

The session holds back calls and verbs of the run itself (`Stops.would_do`). It does not hold back what leaves the run
on purpose: an effect inside `sf.outside()`, another run that is started, an event sent from there. Those ask here
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
    """Calls in this block must not happen."""
    token = _rehearsed.set(stops)
    try:
        yield
    finally:
        _rehearsed.reset(token)


def would_do(kind: str, what: str) -> None:
    """Called before any act outside every run. In a rehearsal: noted, but not done."""
    stops = _rehearsed.get()
    if stops is not None:
        stops.would_do(kind, what)
