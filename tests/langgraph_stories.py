"""A guarded graph that broke in the middle, and what happens to its store then: for the suite of the adapter and for the proof.

The node `charge` has done its three effects and raised. Whatever is damaged: no effect is done again, and the graph comes to
its end with the right result, or it is stopped with a word.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import apsw

import surefoot as sf
from surefoot.langgraph import Saver
from surefoot.store.open import close_all
from tests.langgraph_guard import NODES, THREAD, WANTED, Broken, graph, lines
from tests.langgraph_threads import into_one_file, places_of

DONE = [f"act {name}" for name in WANTED if not name.startswith(NODES[-1])]
GIVEN: dict[str, Any] = {"log": ["in"]}


def saver(database: Path, **options: Any) -> Saver:
    return Saver(store=f"sqlite:///{database}", **options)


def broken(database: Path) -> None:
    """The graph, up to where it broke. The world is a ledger in the present folder."""
    try:
        graph(saver(database), breaks_in="charge").invoke(GIVEN, THREAD, durability="sync")
    except Broken:
        into_one_file(database)
    assert lines() == DONE


def outcome(database: Path) -> str:
    """What the next process comes to; it knows nothing but the store."""
    close_all()
    try:
        found = graph(saver(database)).invoke(None, THREAD)
    except sf.SurefootError as stop:
        ended = f"stopped: {type(stop).__name__}"
    else:
        ended = "right" if found["log"] == ["in", *WANTED] else "WRONG: another result"
    finally:
        close_all()
    times = Counter(lines())
    if max(times.values()) > 1:
        return f"WRONG: twice, {ended}"
    return ended if ended != "right" or times.keys() == {f"act {name}" for name in WANTED} else "WRONG: not done"


class Damaged:
    """Copies of that store, each damaged in another way."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.database = folder / "store.db"
        broken(self.database)
        self.outcomes: Counter[str] = Counter()

    def copy(self, content: bytes | None = None) -> Path:
        copy = self.folder / "damaged" / "store.db"
        shutil.rmtree(copy.parent, ignore_errors=True)
        copy.parent.mkdir()
        copy.write_bytes(self.database.read_bytes() if content is None else content)
        copy.chmod(0o600)
        shutil.copy(f"{self.database}-anchor", f"{copy}-anchor")
        Path("ledger").write_text("".join(f"{line}\n" for line in DONE))
        return copy

    def judged(self, copy: Path) -> str:
        ended = outcome(copy)
        self.outcomes[ended] += 1
        return ended

    def flip(self, seed: int, places: list[range]) -> str:
        luck = random.Random(seed)
        bit = luck.choice(luck.choice(places)) * 8 + luck.randrange(8)
        content = bytearray(self.database.read_bytes())
        content[bit // 8] ^= 1 << bit % 8
        return self.judged(self.copy(bytes(content)))

    def changed(self, *statements: str) -> str:
        copy = self.copy()
        connection = apsw.Connection(str(copy), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            for statement in statements:
                connection.execute(statement).fetchall()
        finally:
            connection.close()
        return self.judged(copy)

    @property
    def places(self) -> list[range]:
        """The newest checkpoint, the heads and all that the runs of the nodes have recorded."""
        return places_of(
            self.database,
            "SELECT body, seal FROM (SELECT body, seal FROM entries WHERE kind = 70 ORDER BY pos DESC LIMIT 1)",
            "SELECT run, seal FROM heads",
            "SELECT body, seal FROM entries WHERE kind < 70",
        )

    def rows(self) -> Iterable[tuple[str, int]]:
        connection = apsw.Connection(str(self.database), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            return connection.execute("SELECT run, seq FROM entries ORDER BY pos").fetchall()
        finally:
            connection.close()
