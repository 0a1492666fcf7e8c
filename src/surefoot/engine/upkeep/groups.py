"""Which journals move together: parents with their children, a thread with the runs of its tasks.

A parent finds its children in its own store only, and a graph finds the runs of its tasks beside its thread. If one of them
moved alone, the other would begin it again. Ties are read from the entries that make them: what they name is verified when
the journals are read to be moved.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Final

import msgspec

from surefoot.core import values
from surefoot.core.address import split
from surefoot.core.entry import KIND_OF, CallMade, RunCreated, StepDone, StepRaised, StepStarted
from surefoot.core.history import CHILD
from surefoot.core.seal import Record, from_record
from surefoot.engine.process import journal
from surefoot.errors import SurefootError
from surefoot.store.contract import RESERVED, Readable, Store
from surefoot.store.rules import is_run
from surefoot.store.threads import PREFIX as THREAD

AUDIT: Final = f"{RESERVED}store"
"""The journal of a store as a whole belongs to that store."""
_PAGE: Final = 2000
_CREATED: Final = KIND_OF[RunCreated]
_STEPS: Final = frozenset(KIND_OF[kind] for kind in (StepStarted, StepDone, StepRaised))


class Ties:
    """Which journals name which as their own, as far as a store was read. What was written since is read when asked."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen = 0
        """The position in the store up to which it was read."""

    def new(self) -> list[tuple[str, str]]:
        """Runs, each with another journal that it names, in what was written since the last call."""
        found: list[tuple[str, str]] = []
        while page := self._store.scan(self._seen, _PAGE):
            self._seen = page[-1][0]
            for _, record in page:
                # What is damaged is found, and refused, when it is read.
                with suppress(SurefootError, ValueError, TypeError):
                    found += [(record.run, other) for other in named(self._store, record)]
        return found


def groups(store: Store, ties: Iterable[tuple[str, str]], wanted: Collection[str] = ()) -> list[list[str]]:
    """All journals of a store, those together that belong together; or only the groups with a wanted one in them."""
    names = [name for name in store.names() if name != AUDIT]
    found = _joined(names, ties)
    return [group for group in found if not wanted or not set(group).isdisjoint(wanted)]


def named(store: Readable, record: Record) -> list[str]:
    """The journals that an entry names as its run's own."""
    if record.kind != _CREATED and (record.kind not in _STEPS or b"child#" not in record.body):
        return []
    entry = from_record(record)
    if isinstance(entry, RunCreated):
        thread = entry.labels.get("thread") if entry.hosted else None
        return [*([entry.child_of] if entry.child_of else []), *([THREAD + thread] if thread is not None else [])]
    if isinstance(entry, CallMade) and split(entry.address)[1] == CHILD:
        forms = msgspec.json.decode(journal.whole(store, record.run, entry.args), type=dict[str, msgspec.Raw])
        child = values.decode(forms["run_id"]) if "run_id" in forms else None
        return [child] if isinstance(child, str) else []
    return []


def _joined(names: Collection[str], ties: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Names that are tied to each other, directly or by others, as lists; in the order of the names."""
    root = {name: name for name in names}

    def top(name: str) -> str:
        while root[name] != name:
            root[name] = root[root[name]]
            name = root[name]
        return name

    for name, other in ties:
        if is_run(name) and name in root and other in root:
            root[top(name)] = top(other)
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(top(name), []).append(name)
    return list(found.values())
