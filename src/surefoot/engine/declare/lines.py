"""Whose label a scope is: it belongs to one line of control, as long as the segment lasts.

Calls are numbered within a scope. If two tasks or threads counted in the same scope, even one after the other, timing
would decide which of them gets which number, and after a crash each would get the other's records. So the first line of
control that opens a label owns it, and any other one is refused. The same line may open it again and continues the
count. Scopes opened by branches of `sf.map` and `sf.gather` belong to the line that opened the branches, once they are
joined: one `sf.map` after the other over the same keys is one line.

A line cannot be identified by the number of a thread, which is used again after the thread's end, nor by the thread
itself: a pool runs one job after the other in it. A task is known as such; a job in a thread is known by its context.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from weakref import WeakKeyDictionary

from surefoot.core.address import Scope
from surefoot.engine.declare import current
from surefoot.engine.declare.current import Line, Place

_tasks: WeakKeyDictionary[Any, object] = WeakKeyDictionary()
_job: ContextVar[tuple[object, object] | None] = ContextVar("surefoot_job", default=None)


def opened(place: Place, label: str, was: str | None = None) -> Place:
    """The place of `with sf.scope(label)` for the task or thread that runs here."""
    place.refuse_trio()
    me = threading.get_ident() if isinstance(place.owner, int) else current.whoami()
    inner = place.scope.labelled(label, was)
    # A task that does not own the place gets a line of its own, which is never joined.
    mine = place.is_owned_by(me) or place.is_lent(me)
    line = place.line if mine else place.line.stray(inner.path, _identity(me))
    claim(place, inner, line)
    if not mine:
        place.session.scopes.stray_opens(inner)
    found = Place(place.session, inner, me, parent=place, line=line)
    found.stop = place.stop
    return found


def has_opened(task: object) -> bool:
    """Whether that task has opened a scope of its own."""
    return task in _tasks


def claim(place: Place, scope: Scope, line: Line) -> None:
    """This line alone counts in that scope from here on. Refused if another line does.

    For adapters: calls that a framework makes in tasks of its own, in a recorded order, may share a
    line (`Line(identity=...)`), and so open a label again.
    """
    owner = scope.owner
    if owner is None:
        scope.owner = line
    elif not line.is_part_of(owner):  # type: ignore[arg-type]
        raise place.misused(
            f"the scope {scope.path.rstrip('/')} was opened by another task or thread of "
            "this run, so timing would decide how calls in it are numbered, and a replay could give each of them "
            "the other one's results. Use sf.gather(...) or sf.map(..., key=...), or give each task a label of its "
            'own: with sf.scope(f"fetch {n}"): ...'
        )


@contextmanager
def entered(place: Place) -> Iterator[Place]:
    """Calls in this block are made from that place."""
    token = current.set_place(place)
    error: BaseException | None = None
    try:
        yield place
    except BaseException as raised:
        error = raised
        raise
    finally:
        current.reset(token)
        if place.line.is_stray:
            place.session.scopes.stray_ends(place.scope.path, error)


def _identity(me: object) -> object:
    """A value that identifies this task, or this job of a thread, and never another one."""
    if not isinstance(me, int):
        return _tasks.setdefault(me, object())
    known, thread = _job.get(), current.this_thread()
    if known is None or known[0] is not thread:
        known = (thread, object())
        _job.set(known)
    return known[1]
