"""Damage done to the store of a run that nobody has open: what disks, copies and people do to files.

`truncate` cuts the end off, `flip` turns one bit over, `zero` loses a block, `older` puts the store back to an
earlier moment while its anchor remembers the later one.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

import apsw

from surefoot.errors import UsageError

BLOCK_BYTES: Final = 512
_UPTO: Final = "SELECT max(pos) FROM entries"
_CUT: Final = "DELETE FROM entries WHERE pos > ?"
_HEADS_BACK: Final = (
    "UPDATE heads SET (seq, seal) = (SELECT e.seq, e.seal FROM entries e WHERE e.run = heads.run ORDER BY e.seq DESC "
    "LIMIT 1) WHERE EXISTS (SELECT 1 FROM entries e WHERE e.run = heads.run)"
)
_BACK: Final = (
    _HEADS_BACK,
    "DELETE FROM heads WHERE NOT EXISTS (SELECT 1 FROM entries e WHERE e.run = heads.run)",
    "DELETE FROM runs WHERE NOT EXISTS (SELECT 1 FROM heads h WHERE h.run = runs.run)",
)


def damage(database: Path, how: str, seed: str = "") -> str:
    """Damage the store of which this is the database file. What was done, in words."""
    if how not in DAMAGES:
        raise UsageError(f"damage({how!r}): one of {', '.join(map(repr, DAMAGES))}")
    _checkpointed(database)
    return DAMAGES[how](database, random.Random(f"{how} {seed}"))  # noqa: S311 - which bit, not a secret


def _checkpointed(database: Path) -> None:
    """Into one file: a bit that is flipped in a part of the log which is not used any more damages nothing."""
    with _opened(database) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _opened(database: Path) -> closing[apsw.Connection]:
    return closing(apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READWRITE))


def _truncate(database: Path, luck: random.Random) -> str:
    content = database.read_bytes()
    length = luck.randrange(len(content) // 4, len(content))
    database.write_bytes(content[:length])
    return f"{database.name} ends at byte {length} of {len(content)}"


def _flip(database: Path, luck: random.Random) -> str:
    content = bytearray(database.read_bytes())
    used = [at for at, byte in enumerate(content) if byte]  # Most of the rest is empty, and nobody reads it.
    bit = luck.choice(used) * 8 + luck.randrange(8)
    content[bit // 8] ^= 1 << bit % 8
    database.write_bytes(content)
    return f"bit {bit} of {database.name} is flipped"


def _zero(database: Path, luck: random.Random) -> str:
    content = bytearray(database.read_bytes())
    used = [at for at in range(0, len(content), BLOCK_BYTES) if any(content[at : at + BLOCK_BYTES])]
    at = luck.choice(used)
    content[at : at + BLOCK_BYTES] = bytes(len(content[at : at + BLOCK_BYTES]))
    database.write_bytes(content)
    return f"{BLOCK_BYTES} bytes of {database.name} at {at} are zero"


def _older(database: Path, luck: random.Random) -> str:
    """As if a copy from before the last entries had been put back."""
    with _opened(database) as connection:
        last = int(connection.execute(_UPTO).fetchall()[0][0] or 0)
        kept = luck.randrange(last) if last else 0
        with connection:
            connection.execute(_CUT, (kept,)).fetchall()
            for statement in _BACK:
                connection.execute(statement).fetchall()
    return f"{database.name} is put back to entry {kept} of {last}"


DAMAGES: Final[dict[str, Callable[[Path, random.Random], str]]] = {
    "truncate": _truncate,
    "flip": _flip,
    "zero": _zero,
    "older": _older,
}
