"""The open scopes of the code, side by side: branches of `sf.map` and `sf.gather`, and tasks and threads of its own.

A branch that has not ended may still ask for a recorded call.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence

from surefoot.core.address import Scope, split
from surefoot.engine.declare.signals import RunSignal


class Scopes:
    """The open scopes, by path."""

    def __init__(self, *, dry: bool = False) -> None:
        self._dry = dry
        self._lock = threading.Lock()
        self.branches: dict[str, Scope] = {}
        """Branches that have not ended."""
        self.ended: set[str] = set()
        self.strays: dict[str, Scope] = {}
        """Scopes of tasks or threads of the workflow's own: their next calls cannot be known."""
        self.has_strays = False
        """Whether tasks or threads of the workflow's own have opened scopes, even if the scopes are closed again."""

    def stray_opens(self, scope: Scope) -> None:
        """A task or thread of the workflow's own counts its calls in that scope."""
        with self._lock:
            self.has_strays = True
            self.strays[scope.path] = scope

    def stray_ends(self, path: str, error: BaseException | None) -> None:
        """As with a branch. In a rehearsal, a task may have been cut off only because another reached a new call."""
        goes_on = not isinstance(error, Exception) if self._dry and error is not None else isinstance(error, RunSignal)
        if not goes_on:
            with self._lock:
                self.strays.pop(path, None)

    def branch_opens(self, scopes: Sequence[Scope]) -> None:
        with self._lock:
            for scope in scopes:
                self.branches[scope.path] = scope

    def branch_ends(self, path: str, error: BaseException | None) -> None:
        """A branch that a stop or a wait unwinds has not ended: it goes on from there when the run is taken up again. So
        does, in the drive, one that reached a new call in the rehearsal.
        """
        if not isinstance(error, RunSignal):
            with self._lock:
                ended = self.branches.pop(path, None)
                self.ended.update(() if ended is None else _known_as(ended))

    def may_come(self, address: str, path: str) -> bool:
        """Whether an open scope, other than the one of that path, may still ask for that call."""
        opened = [*list(self.branches.items()), *list(self.strays.items())]
        return any(may_ask(scope, address) and not path.startswith(branch) for branch, scope in opened)

    def cut_short(self, hidden: Collection[str]) -> list[Scope]:
        """Open branches in which something hides what follows: the scopes where that is."""
        opened = list(self.branches.items())
        return [scope for path, scope in opened if any(one.startswith(path) for one in hidden)]


def may_ask(scope: Scope, address: str) -> bool:
    """Whether the code in that scope may ask for that recorded call."""
    return any(address.startswith(known) for known in _known_as(scope)) or was_around(scope, address)


def was_around(scope: Scope, address: str) -> bool:
    """Whether it declares (`was=`) that its calls were counted together with others, in the scope of that call."""
    return (split(address)[0], False) in scope.also


def _known_as(scope: Scope) -> tuple[str, ...]:
    """Where its calls are on record: under its path, or where a declaration (`was=`) puts them."""
    return (scope.path, *(path for path, counted in scope.also if counted))
