"""The world of a scenario: what it is given to begin with, and what is compared when it has ended.

Every scenario works in a fresh copy of a folder, so none sees what another did. What must be equal to an
uninterrupted run is said by whoever tests: the files (the default), the lines of a ledger, or whatever a function of
theirs returns.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Protocol, runtime_checkable

import apsw

from surefoot.core import values
from surefoot.core.visible import shorten
from surefoot.engine.databases.contract import TABLE
from surefoot.errors import UsageError

IGNORED: Final = frozenset({".surefoot", "__pycache__"})
MARKS: Final = ("pyvenv.cfg", "CACHEDIR.TAG")
"""A folder with one of these was made by a tool, and can be made again: an environment, a cache."""
MOST_FILES: Final = 5_000
MOST_BYTES: Final = 64 << 20
LEDGER: Final = "the ledger"
_MAGIC: Final = b"SQLite format 3\0"
_LOGS: Final = ("-wal", "-shm", "-journal")
_TOLD: Final = 5


class Ledger:
    """What really happened, one line each. The fakes of a test write it: `ledger.note("mail ada")`.

    In a scenario the lines go to a file that survives the SIGKILL; elsewhere they are kept in memory.
    """

    def __init__(self) -> None:
        self._path: Path | None = None
        self._lines: list[str] = []

    def note(self, line: str) -> None:
        if "\n" in line:
            raise UsageError(f"a line of the ledger is one line: {line!r}")
        if self._path is None:
            self._lines.append(line)
            return
        fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(fd, line.encode() + b"\n")
        finally:
            os.close(fd)

    @property
    def lines(self) -> list[str]:
        if self._path is None:
            return list(self._lines)
        return self._path.read_text().splitlines() if self._path.exists() else []

    @property
    def counts(self) -> Counter[str]:
        return Counter(self.lines)

    def keep_in(self, path: Path) -> None:
        """For the kit: from here on, in this process, the lines are in that file."""
        self._path = path


class World:
    """A folder with files and a ledger beside it; both must be as after an uninterrupted run."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).resolve()
        self.ledger = Ledger()

    def note(self, line: str) -> None:
        self.ledger.note(line)

    @property
    def lines(self) -> list[str]:
        return self.ledger.lines


@runtime_checkable
class OwnWorld(Protocol):
    """A world of the user's own, such as a database: put back before each scenario, looked at after it."""

    def reset(self) -> object: ...
    def snapshot(self) -> Any:
        """What must be equal afterwards: anything that could be the result of a step."""


@dataclass(frozen=True)
class Observed:
    """What `world=` comes to."""

    folder: Path
    files: bool = True
    ledger: Ledger | None = None
    look: Callable[[], Any] | None = None
    reset: Callable[[], object] | None = None

    def begin(self, ledger: Path, *, first: bool) -> None:
        """In a child, before anything runs there."""
        if self.ledger is not None:
            self.ledger.keep_in(ledger)
        if first and self.reset is not None:
            self.reset()

    def end(self) -> str:
        """In the last child of a scenario: what a function of the user's saw."""
        return "" if self.look is None else values.encode(self.look()).decode()


def observed(world: object) -> Observed:
    here = Path.cwd()
    match world:
        case None:
            return Observed(here)
        case str() | Path():
            return Observed(Path(world).resolve())
        case World():
            return Observed(world.folder, ledger=world.ledger)
        case Ledger():
            return Observed(here, files=False, ledger=world)
        case OwnWorld():
            return Observed(here, files=False, look=world.snapshot, reset=world.reset)
        case _ if callable(world):
            return Observed(here, files=False, look=world)
        case _:
            raise UsageError(
                f"world={world!r}: a folder, a Ledger or World of surefoot.testing, a function that looks at your world "
                "and returns what must be equal, or an object with reset() and snapshot()"
            )


# --- folders ---------------------------------------------------------------------------------------


def copy_folder(source: Path, target: Path) -> None:
    """Files, folders and links; not what tools have made, nor what is no file (a socket)."""
    count = size = 0
    for path in _walk(source):
        count, size = count + 1, size + path.lstat().st_size
        if count > MOST_FILES or size > MOST_BYTES:
            raise UsageError(
                f"{source} is too large to be copied for every kill (more than {MOST_FILES:,} files or "
                f"{MOST_BYTES >> 20} MB). Run it in a folder that holds what the workflow needs, or name one: world=FOLDER."
            )
    shutil.copytree(source, target, symlinks=True, ignore=_ignored)


def _ignored(folder: str, names: list[str]) -> set[str]:
    return {name for name in names if _is_ignored(Path(folder, name))}


def _is_ignored(path: Path) -> bool:
    mode = path.lstat().st_mode
    if stat.S_ISDIR(mode):
        return path.name in IGNORED or any((path / mark).exists() for mark in MARKS)
    return not (stat.S_ISREG(mode) or stat.S_ISLNK(mode))


def _walk(folder: Path) -> Iterator[Path]:
    for entry in os.scandir(folder):
        path = Path(entry.path)
        if _is_ignored(path):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(path)
        else:
            yield path


def files(folder: Path) -> dict[str, str]:
    """A fingerprint of every file below the folder, by its name there; of its bytes, whatever it is."""
    return {str(path.relative_to(folder)): _fingerprint(path) for path in _walk(folder)}


def _meanings(folder: Path) -> dict[str, str]:
    """As `files`; of a SQLite database it is what its tables hold. Where in the file rows lie is nobody's concern."""
    databases = {path for path in _walk(folder) if _is_database(path)}
    logs = {path.with_name(path.name + suffix) for path in databases for suffix in _LOGS}
    return {
        str(path.relative_to(folder)): _rows(path) if path in databases else _fingerprint(path)
        for path in _walk(folder)
        if path not in logs
    }


_right_meanings: Final = lru_cache(maxsize=1)(_meanings)
"""The uninterrupted run is looked at once; nobody changes it."""


def _fingerprint(path: Path) -> str:
    if path.is_symlink():
        return f"-> {os.readlink(path)}"
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _is_database(path: Path) -> bool:
    if path.is_symlink():
        return False
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def _rows(path: Path) -> str:
    """A fingerprint of all tables."""
    try:
        return repr(_tables(path))
    except apsw.Error:
        return _fingerprint(path)


def _tables(path: Path) -> dict[str, tuple[int, str]]:
    """How many rows each table has, and a fingerprint of them in an order of our own."""
    found = {}
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        tables = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table' ORDER BY name").fetchall()
        for name, sql in tables:
            if name != TABLE:  # Markers of our own, with the time at which they were made.
                quoted = str(name).replace('"', '""')
                query = f'SELECT * FROM "{quoted}"'  # noqa: S608 - a name cannot be bound; quoted
                rows = sorted(map(repr, connection.execute(query)))
                found[str(name)] = len(rows), hashlib.sha256(repr((sql, rows)).encode()).hexdigest()
    finally:
        connection.close()
    return found


# --- differences -----------------------------------------------------------------------------------


def file_differences(right: Path, found: Path) -> list[str]:
    """What is not as it should be, in words."""
    wanted, seen = _right_meanings(right), _meanings(found)
    names = [name for name in sorted(wanted | seen) if wanted.get(name) != seen.get(name)]
    return _few([_about(name, right / name, found / name) for name in names])


def _about(name: str, right: Path, found: Path) -> str:
    if not os.path.lexists(found):
        return f"{name} is missing"
    if not os.path.lexists(right):
        return f"{name} should not be there"
    if _is_database(right) and _is_database(found) and (told := _about_tables(name, right, found)):
        return told
    wanted, seen = (_lines(path) for path in (right, found))
    if wanted is not None and seen is not None and wanted != seen:
        return f"{name} has {_plural(seen, 'line')} instead of {wanted}"
    return f"{name} has another content"


def _about_tables(name: str, right: Path, found: Path) -> str:
    try:
        wanted, seen = _tables(right), _tables(found)
    except apsw.Error:
        return ""
    differing = [table for table in sorted(wanted | seen) if wanted.get(table) != seen.get(table)]
    counts = (f"{table} {seen.get(table, (0,))[0]} instead of {wanted.get(table, (0,))[0]}" for table in differing)
    return f"{name} has other rows: {', '.join(counts)}"


def _lines(path: Path) -> int | None:
    data = b"" if path.is_symlink() else path.read_bytes()
    return None if b"\0" in data else data.count(b"\n")


def line_differences(right: list[str], found: list[str]) -> list[str]:
    wanted, seen = Counter(right), Counter(found)
    differing = [line for line in wanted | seen if wanted[line] != seen[line]]
    told = [f"{LEDGER} has {line!r} {_plural(seen[line], 'time')} instead of {wanted[line]}" for line in differing]
    return _few(told)


def look_differences(right: str, found: str) -> list[str]:
    if right == found:
        return []
    return [f"the world is {shorten(found, 200)} instead of {shorten(right, 200)}"]


def _few(told: list[str]) -> list[str]:
    return told if len(told) <= _TOLD else [*told[:_TOLD], f"and {len(told) - _TOLD} more"]


def _plural(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
