"""The files of a SQLite store: made completely or not at all, and checked against the anchor before use.

A new database is built under another name and renamed when it is whole, and its anchor is on disk before it.
So a database that is not whole was damaged or is not ours: it is refused, never completed. An anchor that has
seen nothing, without a database beside it, is a creation that was cut off, and is continued.

The database file is only opened through `apsw`: closing any other descriptor of it would drop SQLite's locks, and
another process could write at the same time. Other code that opens it gets a warning (`guard.py`).
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shlex
import stat
from collections.abc import Iterator
from itertools import count
from typing import Any, Final, NamedTuple

import apsw

from surefoot.core.cure import ADOPT, ANY_RUN, Advice, Cures, command
from surefoot.core.seal import GENESIS, Record, Sealer
from surefoot.errors import (
    JournalCorrupt,
    JournalRegressed,
    NotFound,
    StoreFull,
    StoreUnavailable,
    SurefootError,
    UsageError,
)
from surefoot.store import disk
from surefoot.store.anchor import NOTHING_SEAL, Anchor, Mark, Unreadable, foreign
from surefoot.store.backend import Announce
from surefoot.store.contract import NOT_IN_A_CHILD
from surefoot.store.failure import newer_format
from surefoot.store.sqlite.guard import Guarded, guard, release
from surefoot.store.sqlite.schema import APPLICATION_ID, ENTRY, FORMAT, SCHEMA

BUSY_SECONDS: Final = 10.0
"""How long to wait for a locked database."""
DURABLE: Final = ("wal", "full")
"""The journal mode and the kind of syncs that keep what is acknowledged."""
SIDES: Final = ("", "-journal", "-wal", "-shm")
"""The endings of the files that SQLite makes for one database."""

_RECORD_AT: Final = f"SELECT {', '.join(ENTRY[1:])} FROM entries WHERE pos = ?"  # noqa: S608 - our own names
_DAMAGED_READS: Final = (apsw.SQLITE_IOERR_SHORT_READ, apsw.SQLITE_IOERR_CORRUPTFS, apsw.SQLITE_IOERR_DATA)
_UNAVAILABLE: Final = (apsw.IOError, apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError, apsw.NoMemError)


# --- connections -----------------------------------------------------------------------------------

_open_connections: Final[dict[apsw.Connection, Guarded]] = {}
_foreign_paths: Final[set[str]] = set()
"""Databases that the parent had open when this process was forked."""


def connect(path: str, *, readonly: bool) -> apsw.Connection:
    if path in _foreign_paths:
        raise StoreUnavailable(
            f"{path}: opened in another process, of which this one ({os.getpid()}) is a forked copy: SQLite's locks do "
            f"not come along. {NOT_IN_A_CHILD}"
        )
    flags = apsw.SQLITE_OPEN_READONLY if readonly else apsw.SQLITE_OPEN_READWRITE
    guarded = guard(path)
    try:
        connection = apsw.Connection(path, flags=flags | apsw.SQLITE_OPEN_NOFOLLOW)
    except BaseException:
        release(guarded)
        raise
    _open_connections[connection] = guarded
    connection.set_busy_timeout(int(BUSY_SECONDS * 1000))
    be_careful(connection)
    return connection


def be_careful(connection: apsw.Connection) -> None:
    """Settings for a database that may be damaged, or made by somebody else."""
    # Nothing may be folded into the database on closing before the anchor was found to hold: the `-wal` is evidence.
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    connection.execute("PRAGMA cell_size_check=ON").fetchall()


@contextlib.contextmanager
def reading(path: str) -> Iterator[apsw.Connection]:
    """A read-only connection of its own: the store's own ones are needed meanwhile."""
    connection = connect(path, readonly=True)
    try:
        yield connection
    finally:
        disconnect(connection, checkpoint=False)


@contextlib.contextmanager
def alone(path: str) -> Iterator[apsw.Connection]:
    """A connection to a database that only this process knows."""
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW)
    try:
        yield connection
    finally:
        connection.close(force=True)


def disconnect(connection: apsw.Connection, *, checkpoint: bool) -> None:
    with contextlib.suppress(apsw.Error):  # nothing is lost: what was acknowledged is in the database or its log
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0 if checkpoint else 1)
        connection.close(force=True)
    guarded = _open_connections.pop(connection, None)
    if guarded is not None:
        release(guarded)


def _before_fork() -> None:
    if _open_connections:
        import ctypes  # noqa: F401 - slow, and needed only here; importing in the child might hang


def _in_child() -> None:
    if not _open_connections:
        return
    import ctypes

    # Closing an inherited connection would damage the parent's store, and the interpreter closes what is not referred to
    # any more. So the child keeps these for ever.
    for connection, guarded in list(_open_connections.items()):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
        _foreign_paths.add(guarded.path)
    _open_connections.clear()


os.register_at_fork(before=_before_fork, after_in_child=_in_child)


# --- opening ---------------------------------------------------------------------------------------


class Opened(NamedTuple):
    """A database whose anchor holds, with a read-only connection to it."""

    path: str
    reader: apsw.Connection
    anchor: Anchor
    store_id: bytes
    identity: tuple[int, int]


def open_files(path: str, *, create: bool, announce: Announce | None, adopting: bool = False) -> Opened:
    """With `adopting`, a store that lost records is opened too, and its anchor is left as it is."""
    _refuse_unnameable(path)
    with explained(path), contextlib.ExitStack() as undo:
        anchor = _make_sure_it_is_there(path, create=create, announce=announce)
        if anchor is not None:
            undo.callback(anchor.close)
        before = identity(path)  # a rebuilt store may take its place while we wait for a lock on this one
        reader = connect(path, readonly=True)
        undo.callback(disconnect, reader, checkpoint=False)
        anchor, store_id = _check(path, reader, anchor, adopting=adopting)
        undo.pop_all()
        return Opened(path, reader, anchor, store_id, before)


def anchor_path(path: str) -> str:
    return path + "-anchor"


def identity(path: str) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_dev, found.st_ino


def _make_sure_it_is_there(path: str, *, create: bool, announce: Announce | None) -> Anchor | None:
    """The anchor of the database that is there now; None: a database without one."""
    size = _size(path)
    anchored = os.path.lexists(anchor_path(path))
    if size:
        return Anchor(anchor_path(path), create=False) if anchored else None
    if size == 0 and not anchored:
        raise not_a_store(path, "the file is empty")
    if size is None and not create and not anchored:
        log = _leftover(path)
        if log is not None and not os.path.lexists(anchor_path(path)):  # else another process is making it right now
            raise _log_alone(path, log)
        raise no_store(path)
    if create:
        disk.make_folder(os.path.dirname(path))
    anchor = Anchor(anchor_path(path), create=create)
    try:
        with anchor.creating(BUSY_SECONDS):
            _continue_or_refuse(path, anchor, create=create, announce=announce)
    except BaseException:
        anchor.close()
        raise
    return anchor


def _continue_or_refuse(path: str, anchor: Anchor, *, create: bool, announce: Announce | None) -> None:
    """There was no database a moment ago. Make one, unless anything shows that there was one before."""
    if _size(path):
        return  # another process was quicker
    try:
        mark = anchor.read()
    except Unreadable:
        raise _anchor_damaged(path) from None
    if mark is not None and mark.pos:
        raise _regressed(path, mark, "the database is empty" if _size(path) == 0 else "the database is missing")
    log = _leftover(path)
    if log is not None:
        raise _log_alone(path, log)
    if not create:
        raise no_store(path)
    if mark is None:
        mark = Mark(secrets.token_bytes(16), 0, NOTHING_SEAL)
        anchor.begin(mark)
        disk.sync_name(path)
    _build(path, mark.store)
    if announce is not None:
        announce(f"created store {path}")


def _leftover(path: str) -> str | None:
    return next((log for log in (path + "-wal", path + "-journal") if _size(log) is not None), None)


def _log_alone(path: str, log: str) -> JournalRegressed:
    return JournalRegressed(
        f"{path}: the database is missing, but its log is still there ({log}).",
        facts={"log": log},
        cures=(
            Advice("have the database?", f"put it back as {path}"),
            Advice("gone for good?", _move_away(path)),
        ),
    )


def _move_away(path: str) -> str:
    """The command that makes room for a new store. It moves every file of the old one: none may stay behind."""
    there = [path + suffix for suffix in ("", "-wal", "-shm", "-journal", "-anchor") if os.path.lexists(path + suffix)]
    aside = next(name for n in count(1) if not os.path.lexists(name := f"{path}-lost-{n}"))
    return f"mkdir {shlex.quote(aside)} && mv {shlex.join([*there, aside])}"


def _build(path: str, store_id: bytes) -> None:
    new = path + "-new"
    disk.remove(new, *SIDES)
    os.close(disk.create(new))  # SQLite gives its `-wal` and `-shm` the mode of the database
    fill(new, store_id)
    disk.sync(new)
    os.rename(new, path)
    disk.sync_name(path)


def fill(new: str, store_id: bytes) -> None:
    """The tables of an empty store, in an empty file."""
    with alone(new) as connection:
        for statement in (
            "PRAGMA page_size=4096", "PRAGMA synchronous=FULL", "PRAGMA fullfsync=1", "BEGIN IMMEDIATE",
            f"PRAGMA application_id={APPLICATION_ID}", *SCHEMA.values(),
        ):  # fmt: skip
            connection.execute(statement).fetchall()
        connection.execute(
            "INSERT INTO meta VALUES ('store', ?), ('format', ?), ('rewritten', 0), ('swept', 0)", (store_id, FORMAT)
        )
        connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode=WAL").fetchall()


# --- checking --------------------------------------------------------------------------------------


def _check(path: str, reader: apsw.Connection, anchor: Anchor | None, *, adopting: bool) -> tuple[Anchor, bytes]:
    """Check the journal against its anchor. Costs the same however long the journal is."""
    mark = None
    with contextlib.suppress(Unreadable):
        # Before the journal: others may append, and then the journal is ahead, not behind.
        mark = anchor.read() if anchor is not None else None
    with snapshot(reader):
        store_id = _store_id(path, reader, mark)
        if adopting:
            if mark is not None and mark.store != store_id:
                raise foreign(anchor_path(path))
            return anchor or Anchor(anchor_path(path), create=True), store_id
        newest = _newest(path, reader)
        if mark is not None:
            _hold_against(path, reader, store_id, newest, mark)
        elif newest or reader.execute("SELECT 1 FROM heads UNION ALL SELECT 1 FROM runs").fetchone():
            # Without an anchor it is not known whether this is all there was, unless there never was anything.
            raise _anchor_damaged(path)
    anchor = anchor or Anchor(anchor_path(path), create=True)
    if mark is None:
        _begin_again(anchor, store_id)
    if newest is not None and (anchor.newest is None or newest[0] > anchor.newest.pos):
        anchor.advance(Mark(store_id, *newest))
    if not anchor.intact():
        anchor.heal()
    return anchor, store_id


def _store_id(path: str, reader: apsw.Connection, mark: Mark | None) -> bytes:
    """Whether this is a store of ours, whole, and of a format we know."""
    try:
        number, schema = description(reader)
    except apsw.NotADBError as error:
        if mark is not None and mark.pos:
            last = anew(path, reader)
            raise JournalCorrupt(
                f"{path}: the database is damaged from its first bytes on, or was replaced: it is no SQLite file"
                f"{', and nothing in it can be read' if last else ''}.",
                cures=(*restore(path)[:-1], *last),  # without its first page it cannot be repaired
            ) from error
        raise _replaced(path, mark, "it is not a SQLite database") from error
    if number != APPLICATION_ID:
        raise _replaced(path, mark, "it is a SQLite database of another program")
    if not schema.keys() & SCHEMA.keys():
        raise _replaced(path, mark, "it has none of a store's tables")
    meta = pairs(reader, "SELECT key, value FROM meta") if "meta" in schema else {}
    found = meta.get("format")
    refuse_newer(path, found)
    store_id = meta.get("store")
    if found != FORMAT or not isinstance(store_id, bytes) or not is_ours(schema):
        raise JournalCorrupt(f"{path}: the description of the store's tables is not what was written.")
    return store_id


def refuse_newer(path: str, found: object) -> None:
    if isinstance(found, int) and found > FORMAT:
        raise newer_format(f"{path}: this store", found, FORMAT)


def anew(path: str, connection: apsw.Connection) -> Cures:
    """The last resort: make room for a new store. Only if not one row of this one can be read."""
    from surefoot.store.sqlite.damaged_reader import nothing_left  # a sound store does without it

    return (Advice("start anew?", _move_away(path)),) if nothing_left(connection, path) else ()


def is_ours(schema: dict[Any, Any]) -> bool:
    """Whether these are the tables of a store."""
    return SCHEMA.items() <= schema.items()


def description(reader: apsw.Connection) -> tuple[object, dict[Any, Any]]:
    """The number of the program that made the database, and the tables by name."""
    return reader.execute("PRAGMA application_id").get, pairs(reader, "SELECT name, sql FROM sqlite_schema")


def pairs(reader: apsw.Connection, question: str) -> dict[Any, Any]:
    return {key: value for key, value in reader.execute(question).fetchall()}  # noqa: C416 - dict() loses the types


def _newest(path: str, reader: apsw.Connection) -> tuple[int, bytes] | None:
    row = reader.execute("SELECT pos, seal FROM entries ORDER BY pos DESC LIMIT 1").fetchone()
    if row is None:
        return None
    pos, seal = row
    if not isinstance(pos, int) or pos < 1 or not isinstance(seal, bytes) or len(seal) != len(NOTHING_SEAL):
        raise damaged(path, "the newest record is not what was written.", structure=False)
    return pos, seal


def _hold_against(
    path: str, reader: apsw.Connection, store_id: bytes, newest: tuple[int, bytes] | None, mark: Mark
) -> None:
    if mark.store != store_id:
        raise foreign(anchor_path(path))
    pos = newest[0] if newest else 0
    if pos < mark.pos:
        raise _regressed(path, mark, f"the database ends at record {pos}")
    if mark.pos and not _still_there(reader, store_id, mark):
        raise _regressed(path, mark, f"record {mark.pos} is another one: this is another history")


def _still_there(reader: apsw.Connection, store_id: bytes, mark: Mark) -> bool:
    """Whether the record that the anchor names is in this journal, or is known to have been here."""
    row = reader.execute(_RECORD_AT, (mark.pos,)).fetchone()
    if row is not None and row[-1] == mark.seal:
        return True
    rewritten = reader.execute("SELECT value FROM meta WHERE key = 'rewritten'").fetchone()
    if rewritten is not None and isinstance(rewritten[0], int) and rewritten[0] >= mark.pos:
        return True  # a rewrite replaced it, and was cut off before it could update the anchor
    # A record of another history holds. One that does not hold is damaged, and reading its run will say so.
    return row is not None and not _holds(reader, store_id, row)


def _holds(reader: apsw.Connection, store_id: bytes, row: tuple[Any, ...]) -> bool:
    try:
        record = Record(*row)
        previous = reader.execute("SELECT seal FROM entries WHERE run = ? AND seq = ?", (record.run, record.seq - 1))
        before = previous.fetchone()
        return Sealer(store_id, record.run).holds(record, before[0] if before else GENESIS)
    except (TypeError, ValueError, AttributeError):
        return False


def _begin_again(anchor: Anchor, store_id: bytes) -> None:
    """A journal without records needs no evidence; its anchor may be made anew."""
    with anchor.creating(1.0):
        with contextlib.suppress(Unreadable):
            if anchor.read() is not None:
                return  # another process was quicker
        anchor.begin(Mark(store_id, 0, NOTHING_SEAL))


@contextlib.contextmanager
def snapshot(reader: apsw.Connection) -> Iterator[None]:
    """Several looks at one and the same state."""
    reader.execute("BEGIN")
    try:
        yield
    finally:
        if reader.in_transaction:  # an I/O error ends it by itself
            reader.execute("ROLLBACK")


# --- folders and files -----------------------------------------------------------------------------


def _refuse_unnameable(path: str) -> None:
    try:
        path.encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            f"{os.fsencode(path)!r}: no store can be there: the path is not UTF-8, and SQLite takes no other. "
            "Rename the folder, or name a store elsewhere with --store or sf.configure."
        ) from error


def _size(path: str) -> int | None:
    """None: there is nothing there. Anything but a plain file is refused."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        what = "a directory" if stat.S_ISDIR(found.st_mode) else "no plain file"
        raise not_a_store(path, f"it is {what}")
    return found.st_size


# --- errors ----------------------------------------------------------------------------------------

STRUCTURE: Final = {"structure": True}
"""The facts of damage to the database itself, not only to a record: it has to be built anew (`salvage.py`)."""


def restore(path: str) -> Cures:
    return (
        command("inspect", path=path, when="look"),
        Advice("have a copy?", f"keep {shlex.quote(path)} as evidence, and put the copy back"),
        command("repair", ANY_RUN, when="go on? ID: any run"),
    )


def damaged(path: str, what: str, *, structure: bool = True) -> JournalCorrupt:
    return JournalCorrupt(f"{path}: {what}", facts=STRUCTURE if structure else {}, cures=restore(path))


@contextlib.contextmanager
def explained(path: str) -> Iterator[None]:
    try:
        yield
    except (apsw.Error, UnicodeDecodeError, OSError) as error:
        raise explain(error, path) from error


def explain(error: Exception, path: str, *, system_errno: int = 0) -> SurefootError:
    """What a failure of SQLite or the operating system means for users of the store."""
    number = error.errno if isinstance(error, OSError) else system_errno
    if isinstance(error, apsw.FullError) or (isinstance(error, (apsw.IOError, OSError)) and number in disk.FULL):
        return StoreFull(f"{path}: no space left for the journal ({error}). Free some, then resume.")
    if isinstance(error, (apsw.BusyError, apsw.LockedError)):
        return StoreUnavailable(
            f"{path}: locked by another process for {BUSY_SECONDS:g} s. Wait for it, or end it, and try again."
        )
    if isinstance(error, apsw.IOError) and getattr(error, "extendedresult", 0) in _DAMAGED_READS:
        return damaged(path, f"the database cannot be read back whole: {error}")
    if isinstance(error, (OSError, *_UNAVAILABLE)):
        why = os.strerror(number) if number else str(error)
        return StoreUnavailable(
            f"{path}: cannot be read or written: {why}. "
            "The file and its folder must exist, be writable for this user and lie on a healthy disk."
        )
    if isinstance(error, (apsw.CorruptError, apsw.NotADBError, apsw.SQLError, apsw.SchemaChangeError, ValueError)):
        # Our statements are fixed: one that does not fit means that the tables are not those we made.
        return damaged(path, f"the database is damaged: {error}")
    return StoreUnavailable(f"{path}: SQLite refused: {type(error).__name__}: {error}")


def no_store(path: str) -> NotFound:
    return NotFound(f"no store at {path}: nothing has been recorded there. Name another with --store or sf.configure.")


def not_a_store(path: str, why: str) -> UsageError:
    return UsageError(f"{path} is not a surefoot store: {why}. Name another path, or move it out of the way.")


def _replaced(path: str, mark: Mark | None, why: str) -> SurefootError:
    return _regressed(path, mark, why) if mark is not None and mark.pos else not_a_store(path, why)


def _regressed(path: str, mark: Mark, found: str) -> JournalRegressed:
    name = os.path.basename(path)
    back: Cures = (Advice("have the database?", f"put {name} back, together with its -wal file"),)
    if "record" in found:
        back = (
            Advice("an older copy?", f"put the newer {name} back, together with its -wal file"),
            ADOPT,
        )
    return JournalRegressed(
        f"{path}: the store is older than it once was: {mark.pos} records were acknowledged, but {found}.",
        facts={"expected": mark.pos, "found": found, "anchor": anchor_path(path)},
        cures=(*back, Advice("start anew?", _move_away(path))),
    )


def _anchor_damaged(path: str) -> JournalRegressed:
    return JournalRegressed(
        f"{anchor_path(path)}: the anchor is missing or unreadable, so nobody can say whether the journal is complete.",
        facts={"anchor": anchor_path(path)},
        cures=(
            Advice("have a copy?", f"put {anchor_path(path)} back as it was"),
            ADOPT,
        ),
    )
