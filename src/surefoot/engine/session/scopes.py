"""The open scopes of the code, side by side: branches of `sf.map` and `sf.gather`, and tasks and threads of its own.

A branch that has not ended may still ask for a recorded call.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from surefoot.core.address import Scope
from surefoot.engine.declare.signals import RunSignal


class Scopes:
    """The open scopes, by path, and where the calls of each are on record."""

    def __init__(self, *, dry: bool = False) -> None:
        self._dry = dry
        self._lock = threading.Lock()
        self.branches: dict[str, tuple[str, ...]] = {}
        """Branches that have not ended."""
        self.ended: set[str] = set()
        self.strays: dict[str, tuple[str, ...]] = {}
        """Scopes of tasks or threads of the workflow's own: their next calls cannot be known."""
        self.has_strays = False
        """Whether tasks or threads of the workflow's own have opened scopes, even if the scopes are closed again."""

    def stray_opens(self, scope: Scope) -> None:
        """A task or thread of the workflow's own counts its calls in that scope."""
        with self._lock:
            self.has_strays = True
            self.strays[scope.path] = _known_as(scope)

    def stray_ends(self, path: str, error: BaseException | None) -> None:
        """As with a branch. In a rehearsal, a task may have been cut off only because another reached a new call."""
        goes_on = not isinstance(error, Exception) if self._dry and error is not None else isinstance(error, RunSignal)
        if not goes_on:
            with self._lock:
                self.strays.pop(path, None)

    def branch_opens(self, scopes: Sequence[Scope]) -> None:
        with self._lock:
            for scope in scopes:
                self.branches[scope.path] = _known_as(scope)

    def branch_ends(self, path: str, error: BaseException | None) -> None:
        """A branch that a stop or a wait unwinds has not ended: it goes on from there when the run is taken up again. So
        does, in the drive, one that reached a new call in the rehearsal.
        """
        if not isinstance(error, RunSignal):
            with self._lock:
                self.ended.update(self.branches.pop(path, ()))

    def may_come(self, address: str, path: str) -> bool:
        """Whether an open scope, other than the one of that path, may still ask for that call."""
        opened = [*list(self.branches.items()), *list(self.strays.items())]
        return any(address.startswith(known) and not path.startswith(branch) for branch, known in opened)


def _known_as(scope: Scope) -> tuple[str, ...]:
    """Where its calls are on record: under its path, or where a declaration (`was=`) puts them."""
    return (scope.path, *(path for path, counted in scope.also if counted))
