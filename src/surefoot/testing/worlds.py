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
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Protocol, runtime_checkable

import apsw

from surefoot.core import values
from surefoot.core.visible import shorten
from surefoot.engine.effects.databases.contract import TABLE
from surefoot.errors import UsageError
from surefoot.testing.acting import SEEN_BY_USER

IGNORED: Final = frozenset({".surefoot", "__pycache__"})
MARKS: Final = ("pyvenv.cfg", "CACHEDIR.TAG")
"""A folder with one of these was made by a tool, and can be made again: an environment, a cache."""
MOST_FILES: Final = 5_000
MOST_BYTES: Final = 64 << 20
LEDGER: Final = "the ledger"
LOG: Final = ".log"
_MAGIC: Final = b"SQLite format 3\0"
_LOGS: Final = ("-wal", "-shm", "-journal")
_NOBODYS_CONCERN: Final = frozenset({TABLE, "sqlite_sequence"})
"""Tables with markers of our own and the time at which they were made, and with the number that the next row gets."""
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
        return lines_of(self._path)

    @property
    def counts(self) -> Counter[str]:
        return Counter(self.lines)

    def keep_in(self, path: Path) -> None:
        """For the kit: from here on, in this process, the lines are in that file."""
        self._path = path


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


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
    exclude: tuple[str, ...] = ()
    """Patterns of files that nobody compares."""

    def begin(self, ledger: Path, *, first: bool) -> None:
        """In a child, before anything runs there."""
        if self.ledger is not None:
            self.ledger.keep_in(ledger)
        if first and self.reset is not None:
            self.reset()

    def end(self) -> str:
        """In the last child of a scenario: what a function of the user's saw."""
        return "" if self.look is None else values.encode(self.look()).decode()

    def now(self) -> dict[str, str]:
        """In a child, in its folder: all that is compared, by name."""
        seen = meanings(Path.cwd(), self.exclude) if self.files else {}
        if self.ledger is not None:
            seen[LEDGER] = "\n".join(self.ledger.lines)
        if self.look is not None:
            try:
                seen[SEEN_BY_USER] = self.end()
            except Exception as error:  # noqa: BLE001 - in the midst of a run there may be nothing to look at yet
                seen[SEEN_BY_USER] = f"{type(error).__name__}: {error}"
        return seen


def observed(world: object, exclude: str | Iterable[str] = ()) -> Observed:
    """`exclude`: patterns (`*.log`, `cache/*`) of files that are not compared."""
    patterns = (exclude,) if isinstance(exclude, str) else tuple(exclude)
    return replace(_observed(world), exclude=patterns) if patterns else _observed(world)


def _observed(world: object) -> Observed:
    here = Path.cwd()
    match world:
        case None:
            return Observed(here)
        case str() | Path():
            return Observed(_existing(Path(world).resolve()))
        case World():
            return Observed(_existing(world.folder), ledger=world.ledger)
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


def _existing(folder: Path) -> Path:
    if not folder.is_dir():
        raise UsageError(f"world={str(folder)!r}: there is no such folder. Make it first; it may be empty.")
    return folder


# --- folders ---------------------------------------------------------------------------------------


def copy_folder(source: Path, target: Path) -> None:
    """Files, folders and links; not what tools have made, nor what is no file (a socket)."""
    count = size = 0
    for path in _walk(source):
        count, size = count + 1, size + path.lstat().st_size
        if count > MOST_FILES or size > MOST_BYTES:
            raise UsageError(
                f"{source} is too large to be copied for every kill (more than {MOST_FILES:,} files or "
                f"{MOST_BYTES >> 20} MB). Start it in a folder that holds only what the workflow needs; in a test you "
                "may also name one: crash_matrix(..., world=FOLDER)."
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


def files(folder: Path, exclude: Iterable[str] = ()) -> dict[str, str]:
    """A fingerprint of every file below the folder, by its name there; of its bytes, whatever it is."""
    named = ((str(path.relative_to(folder)), path) for path in _walk(folder))
    return {name: _fingerprint(path) for name, path in named if not is_excluded(name, exclude)}


def meanings(folder: Path, exclude: Iterable[str] = ()) -> dict[str, str]:
    """As `files`; of a SQLite database it is what its tables hold."""
    return {name: meaning for name, meaning in _meanings(folder).items() if not is_excluded(name, exclude)}


def is_excluded(name: str, patterns: Iterable[str]) -> bool:
    """By its name there, by its last name alone, or with a folder around it."""
    path = Path(name)
    names = [name, path.name, *map(str, path.parents)]
    return any(fnmatchcase(one, pattern.rstrip("/")) for pattern in patterns for one in names)


def _meanings(folder: Path) -> dict[str, str]:
    """As `files`; of a SQLite database it is what its tables hold. Where in the file rows lie is nobody's concern."""
    paths = list(_walk(folder))
    databases = {path for path in paths if _is_database(path)}
    logs = {path.with_name(path.name + suffix) for path in databases for suffix in _LOGS}
    return {
        str(path.relative_to(folder)): _rows(path) if path in databases else _fingerprint(path)
        for path in paths
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


@dataclass(frozen=True)
class _Table:
    rows: int
    print: str
    """A fingerprint of the rows, in an order of our own."""
    unnumbered: str
    """The same without the numbers that SQLite gives to rows in the order in which they come."""


def _tables(path: Path) -> dict[str, _Table]:
    found = {}
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)) as connection:
        # A log that a killed writer has left is read, and left as it is: who only looks changes nothing.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        tables = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table' ORDER BY name").fetchall()
        for name, sql in tables:
            if name not in _NOBODYS_CONCERN:
                quoted = str(name).replace('"', '""')
                query = f'SELECT * FROM "{quoted}"'  # noqa: S608 - a name cannot be bound; quoted
                rows = connection.execute(query).fetchall()
                number = _numbered(connection, name)
                others = [[value for at, value in enumerate(row) if at != number] for row in rows]
                found[str(name)] = _Table(len(rows), _print(sql, rows), _print(sql, others))
    return found


def _numbered(connection: apsw.Connection, table: Any) -> Any:
    """Which column is the number that SQLite gives to a row, if one is."""
    columns = connection.execute("SELECT cid, type FROM pragma_table_info(?) WHERE pk > 0", [table]).fetchall()
    return columns[0][0] if len(columns) == 1 and str(columns[0][1]).upper() == "INTEGER" else None


def _print(sql: object, rows: Iterable[Any]) -> str:
    return hashlib.sha256(repr((sql, sorted(map(repr, rows)))).encode()).hexdigest()


# --- differences -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Difference:
    """Something that is not as it should be."""

    name: str
    """The file by its name in the folder, or the ledger; empty if only a function of the user's can see it."""
    text: str
    extra: bool = False
    """It should not be there at all."""
    reordered: bool = False
    """The same lines, or rows, in another order."""
    log: bool = False
    """A text by the name of `*.log` that has grown, or says it in other words: as a log does that is written twice."""


def file_differences(right: Path, found: Path, exclude: Iterable[str] = ()) -> list[Difference]:
    wanted, seen = _right_meanings(right), _meanings(found)
    names = [name for name in sorted(wanted | seen) if wanted.get(name) != seen.get(name)]
    return [_about_file(name, right / name, found / name) for name in names if not is_excluded(name, exclude)]


def _about_file(name: str, right: Path, found: Path) -> Difference:
    told = _about(name, right, found)
    return replace(told, log=True) if name.endswith(LOG) and _has_grown(right, found) else told


def _has_grown(right: Path, found: Path) -> bool:
    before = _lines(right) if os.path.lexists(right) else []
    now = _lines(found) if os.path.lexists(found) else None
    return before is not None and now is not None and len(now) >= len(before)


def _about(name: str, right: Path, found: Path) -> Difference:
    if not os.path.lexists(found):
        return Difference(name, f"{name} is missing")
    if not os.path.lexists(right):
        return Difference(name, f"{name} should not be there", extra=True)
    if _is_database(right) and _is_database(found) and (told := _about_tables(name, right, found)):
        return told
    wanted, seen = (_lines(path) for path in (right, found))
    if wanted is None or seen is None or sorted(wanted) == sorted(seen):
        return Difference(name, f"{name} has another content", reordered=wanted is not None and seen is not None)
    before, now = (len(lines) - (not lines[-1]) for lines in (wanted, seen))
    if before != now:
        return Difference(name, f"{name} has {plural(now, 'line')} instead of {before}")
    return Difference(name, f"{name} has another content")


def _about_tables(name: str, right: Path, found: Path) -> Difference | None:
    try:
        wanted, seen = _tables(right), _tables(found)
    except apsw.Error:
        return None
    differing = [table for table in sorted(wanted | seen) if wanted.get(table) != seen.get(table)]
    none = _Table(0, "", "")
    pairs = [(table, wanted.get(table, none), seen.get(table, none)) for table in differing]
    counts = (f"{table} {now.rows} instead of {before.rows}" for table, before, now in pairs)
    told = f"{name} has other rows: {', '.join(counts)}"
    return Difference(name, told, reordered=all(before.unnumbered == now.unnumbered for _, before, now in pairs))


def _lines(path: Path) -> list[bytes] | None:
    """None: it is no text."""
    data = b"" if path.is_symlink() else path.read_bytes()
    return None if b"\0" in data else data.split(b"\n")


def line_differences(right: list[str], found: list[str]) -> list[Difference]:
    wanted, seen = Counter(right), Counter(found)
    differing = [line for line in wanted | seen if wanted[line] != seen[line]]
    return [
        Difference(LEDGER, f"{LEDGER} has {line!r} {plural(seen[line], 'time')} instead of {wanted[line]}")
        for line in differing
    ]


def look_differences(right: str, found: str) -> list[Difference]:
    if right == found:
        return []
    return [Difference("", f"the world is {shorten(found, 200)} instead of {shorten(right, 200)}")]


def few(told: list[str]) -> list[str]:
    return told if len(told) <= _TOLD else [*told[:_TOLD], f"and {len(told) - _TOLD} more"]


def plural(number: int, word: str, words: str = "") -> str:
    return f"{number} {word if number == 1 else words or f'{word}s'}"
