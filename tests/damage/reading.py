"""What a careful reader gets from a damaged store, held against the truth: all of it the same, or a named error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw

from surefoot.core import values
from surefoot.core.entry import Entry, Kept
from surefoot.core.seal import from_record
from surefoot.engine.process import journal
from surefoot.errors import Damaged, NotFound, SchemaMismatch, StoreFull, StoreUnavailable
from surefoot.store.contract import Listed, RunQuery, Store
from surefoot.store.rules import is_run
from surefoot.store.sqlite.store import SqliteStore
from tests.damage.stores import Fault, Original, place

NOTHING = "nothing there"
TELLS_OF_DAMAGE = (Damaged, SchemaMismatch, StoreUnavailable, StoreFull)
"""What a flipped bit may be answered with. Any other error would blame the user, or the code, for what the disk did."""
Seen = dict[str, Any]
"""Journal -> what it says, decoded; a str is the name of the error that was said."""


class Tally:
    """Counts for each kind of fault, and whatever must not be."""

    def __init__(self) -> None:
        self.same: Counter[str] = Counter()
        self.said: Counter[str] = Counter()
        self.silent: list[str] = []
        self.fresh: list[str] = []

    @property
    def cases(self) -> int:
        return self.same.total() + self.said.total() + len(self.silent) + len(self.fresh)

    def line(self, kinds: Iterable[str] | None = None) -> str:
        wanted = set(self.same | self.said) if kinds is None else set(kinds)
        same, said = (sum(count[kind] for kind in wanted) for count in (self.same, self.said))
        return (
            f"{same + said + len(self.silent) + len(self.fresh)} cases: {said} detected, {same} identical; "
            f"{len(self.silent)} silent differences, {len(self.fresh)} silent fresh starts"
        )

    def check(self) -> None:
        assert (self.silent, self.fresh) == ([], []), self.line()


def truth(original: Original, folder: Path) -> Seen:
    """The original, which has to be whole."""
    seen = read_whole(place(original.files, folder), None)
    assert not any(isinstance(found, str) for found in seen.values()), seen
    assert [item.run for item in seen[""]] == ["third", "second", "first"]
    return seen


def sweep(faults: Iterable[Fault], expected: Seen, folder: Path) -> Tally:
    """Do each fault to a copy and read all of it."""
    tally = Tally()
    for fault in faults:
        try:
            found = read_whole(fault.place(folder), expected)
        except Exception as error:
            tally.silent.append(f"{fault}: {error!r}, which does not tell of damage")
            continue
        _judge(fault, found, expected, tally)
    return tally


def _judge(fault: Fault, found: Seen, expected: Seen, tally: Tally) -> None:
    others = {name: said for name, said in found.items() if said != expected[name]}
    wrong = {name: said for name, said in others.items() if not _is_said(said, expected[name])}
    if NOTHING in others.values():
        tally.fresh.append(str(fault))
    elif wrong:
        tally.silent.append(f"{fault}: {sorted(wrong)}")
    else:
        (tally.said if others else tally.same)[fault.kind] += 1


def _is_said(found: Any, expected: Any) -> bool:
    """An error by name; or a list that is right but for rows that it calls damaged."""
    if isinstance(found, str):
        return True
    if not isinstance(found[0], Listed) or [item.run for item in found] != [item.run for item in expected]:
        return False
    return all(item.row is None or item == right for item, right in zip(found, expected, strict=True))


def read_whole(path: Path, expected: Seen | None) -> Seen:
    """Every journal, decoded to the last value; and under "" the list of runs."""
    try:
        store = SqliteStore.open(str(path), create=False, url="x")
    except TELLS_OF_DAMAGE as error:
        return dict.fromkeys(expected or (), type(error).__name__)
    try:
        names = store.names() if expected is None else [name for name in expected if name]
        return {"": _said(lambda: store.runs(RunQuery()) or NOTHING)} | {
            name: _said(lambda name=name: _journal(store, name)) for name in names
        }
    finally:
        store.close()


def _said(look: Any) -> Any:
    try:
        return look()
    except NotFound:
        return NOTHING
    except TELLS_OF_DAMAGE as error:
        return type(error).__name__


def _journal(store: Store, name: str) -> Any:
    status = ""
    if is_run(name):
        found = journal.load(store, name)
        if found is None:
            return NOTHING
        status = found[0].status
    records = journal.records(store, name)
    if not records:
        return NOTHING
    return status, [
        (record.seq, record.epoch, record.at, _entry(store, name, from_record(record))) for record in records
    ]


def _entry(store: Store, name: str, entry: Entry) -> tuple[Any, ...]:
    fields = [getattr(entry, field) for field in msgspec.structs.asdict(entry)]
    return type(entry).__name__, *(_decoded(store, name, value) for value in fields)


def _decoded(store: Store, name: str, value: Any) -> Any:
    """Values of user code as types and content, both exact: once decoded, and encoded again."""
    if not isinstance(value, (Raw, Kept)):
        return value
    raw = journal.whole(store, name, value)
    return bytes(raw), values.encode(values.decode(raw)) if not bytes(raw).startswith(b'{"$error"') else None
