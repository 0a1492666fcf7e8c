"""Whether the code at hand is only being rehearsed: replayed to see what it would do next.

Calls and verbs of the run itself are held back by their session (`Session.would_do`). What leaves the run on
purpose is not: an effect inside `sf.outside()`, another run that is started, an event sent from there. They ask here
before they act. Branches inherit the answer with their context.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol


class Rehearsed(Protocol):
    """A session that replays without executing."""

    def would_do(self, kind: str, address: str) -> None: ...


_rehearsed: ContextVar[Rehearsed | None] = ContextVar("surefoot_rehearsed", default=None)


@contextmanager
def rehearsing(session: Rehearsed) -> Iterator[None]:
    """What is called in this block is not to happen."""
    token = _rehearsed.set(session)
    try:
        yield
    finally:
        _rehearsed.reset(token)


def would_do(kind: str, what: str) -> None:
    """Called before something is done outside of every run. In a rehearsal: noted, and not done."""
    session = _rehearsed.get()
    if session is not None:
        session.would_do(kind, what)
