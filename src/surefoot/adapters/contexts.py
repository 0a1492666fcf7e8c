"""What tools change in the context that a framework shares between them: recorded with the outcome, put back on replay.

A recorded tool does not run again, so that what it changed in memory would be missing after a crash, silently. The
context is looked at before and after each recorded call; what differs, field by field, goes on record with what the call
gave. Seen are attributes and items that can be stored, also of objects in it; what cannot be stored (a client, a lock) is
no state of the run.

Of calls that run side by side nobody can tell which of them changed what: refused, unless only one of them is given the
context. What such a call did stays on record, and so does the refusal: it is met again on every replay.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from surefoot.engine.seams import refused, storable
from surefoot.errors import UsageError

DEPTH: Final = 5
MOST_FIELDS: Final = 2000
_MARKS: Final = (frozenset({"result", "context"}), frozenset({"result", "context", "beside"}))
_GONE: Final = object()

Path = tuple[str, ...]
Change = list[Any]
"""[path, value], or [path] of what is gone."""


class Watch:
    """A context before a call."""

    def __init__(self, context: Any) -> None:
        self.context = context
        self._before = dict(_fields(context))
        self.is_beside = False
        """Whether another call that is given the context ran meanwhile."""

    def changes(self) -> list[Change]:
        """What is different now."""
        now = dict(_fields(self.context))
        came = [[list(path), value] for path, value in now.items() if not _same(self._before.get(path, _GONE), value)]
        return came + [[list(path)] for path in self._before if path not in now]

    def learn(self, change: Change) -> None:
        """Somebody else's change is put back meanwhile: it is none of this call."""
        if len(change) > 1:
            self._before[tuple(change[0])] = copy.deepcopy(change[1])
        else:
            self._before.pop(tuple(change[0]), None)

    def take_back(self) -> None:
        """As it was before."""
        for change in self.changes():
            before = self._before.get(tuple(change[0]), _GONE)
            _put(self.context, [change[0], before] if before is not _GONE else [change[0]])

    def packed(self, result: Any) -> Any:
        """What the call gave, as it is recorded with what it changed."""
        changes = self.changes()
        if changes and self.is_beside:
            return {"result": result, "context": changes, "beside": True}
        is_alike = isinstance(result, dict) and result.keys() in _MARKS
        return {"result": result, "context": changes} if changes or is_alike else result


class Shared:
    """One context that calls side by side are given, and what they did to it."""

    def __init__(self) -> None:
        self._watches: list[Watch] = []
        self._known: dict[str, Any] = {}

    @contextmanager
    def watched(self, context: Any, *, is_given: bool) -> Iterator[Watch]:
        """While a call runs. One that fails has changed nothing. `is_given`: whether the call can see the context at all."""
        watch = Watch(context if is_given else None)
        if is_given:
            for other in self._watches:
                other.is_beside = watch.is_beside = True
            self._watches.append(watch)
        try:
            yield watch
        except BaseException:
            if not watch.is_beside:
                watch.take_back()
            raise
        finally:
            if is_given:
                self._watches.remove(watch)

    @contextmanager
    def unchanged(self, context: Any, *, is_given: bool, tool: str, kind: str, under: str) -> Iterator[None]:
        """While a declared step or effect runs, whose record has only what it returns. `under`: the framework's decorator."""
        with self.watched(context, is_given=is_given) as watch:
            yield
            changed = [] if watch.is_beside else watch.changes()  # Else it may be another's, which is refused there.
        if changed:
            watch.take_back()
            names = ", ".join(".".join(change[0]) for change in changed)
            raise refused(
                UsageError(
                    f"tool {tool} is @sf.{kind} and has changed {names} of the context. Its record has only what it returns, so the "
                    f"change would be missing on replay; it was taken back. Return the value instead, let an @sf.workflow under "
                    f'{under} change the context, or drop @sf.{kind} and say tools={{"{tool}": sf.tool(…)}}: then changes are '
                    "recorded."
                )
            )

    def delivered(self, context: Any, recorded: Any, what: str) -> Any:
        """What the call gave, and the context as the call left it: the first time it is so already."""
        if not (isinstance(recorded, dict) and recorded.keys() in _MARKS):
            return recorded
        changes = recorded["context"]
        if "beside" in recorded or any(self._is_other(change) for change in changes):
            names = ", ".join(".".join(change[0]) for change in changes)
            raise refused(
                UsageError(
                    f"tool {what}: {names} of the context was changed while another tool was at it, so that timing decides what it is, "
                    "and nobody can tell who did it. What the tools did is on record. In new runs, run them one after the other: "
                    "ModelSettings(parallel_tool_calls=False); or return the value instead of changing the context."
                )
            )
        for change in changes:
            self._known[".".join(change[0])] = change[1] if len(change) > 1 else _GONE
            _put(context, change)
            for watch in self._watches:
                watch.learn(change)
        return recorded["result"]

    def _is_other(self, change: Change) -> bool:
        name, value = ".".join(change[0]), change[1] if len(change) > 1 else _GONE
        return name in self._known and not _same(self._known[name], value)


def result_in(recorded: Any) -> Any:
    """What a call gave, without what it changed."""
    return recorded["result"] if isinstance(recorded, dict) and recorded.keys() in _MARKS else recorded


def _same(one: Any, other: Any) -> bool:
    return one is other or (type(one) is type(other) and bool(one == other))


def _fields(context: Any) -> Iterator[tuple[Path, Any]]:
    """Everything in it that can be stored, each under its path, as a copy."""
    if isinstance(context, list) and storable(context):
        yield (), copy.deepcopy(context)
    rest: list[tuple[Path, Any]] = [((), context)]
    seen = {id(context)}
    for path, holder in rest:
        for name, value in _members(holder):
            if storable(value):
                yield (*path, name), copy.deepcopy(value)
            elif len(path) < DEPTH and id(value) not in seen and len(rest) < MOST_FIELDS:
                seen.add(id(value))
                rest.append(((*path, name), value))


def _members(holder: Any) -> list[tuple[str, Any]]:
    """Of objects that hold data: a dict with names as keys, a dataclass, a pydantic model, an object with attributes."""
    if isinstance(holder, dict):
        return [(name, value) for name, value in holder.items() if isinstance(name, str)]
    if dataclasses.is_dataclass(holder) and not isinstance(holder, type):
        names = {field.name for field in dataclasses.fields(holder)} | getattr(holder, "__dict__", {}).keys()
        return [(name, getattr(holder, name)) for name in sorted(names) if hasattr(holder, name)]
    if isinstance(holder, type) or not hasattr(holder, "__dict__"):
        return []
    return sorted(vars(holder).items())


def _put(context: Any, change: Change) -> None:
    if not change[0]:
        context[:] = copy.deepcopy(change[1])
        return
    *way, last = change[0]
    holder = context
    for name in way:
        holder = holder[name] if isinstance(holder, dict) else getattr(holder, name)
    if len(change) == 1:
        if isinstance(holder, dict):
            holder.pop(last, None)
        elif hasattr(holder, last):
            object.__delattr__(holder, last)
        return
    value = copy.deepcopy(change[1])
    if isinstance(holder, dict):
        holder[last] = value
    else:
        object.__setattr__(holder, last, value)
