"""The files of a SQLite store: made completely or not at all, and believed only after a look at the anchor.

A new database is built under another name and renamed when it is whole, and its anchor is on disk before it.
So a database that is there but is not whole was damaged or is not ours, and is refused, never completed. An
anchor that has seen nothing, beside no database, is a creation that was cut off, and is continued.

The database file is never opened here but through `apsw`: closing any other descriptor of it would drop
SQLite's locks, and another process could write at the same time. Others who do it are told (`guard.py`).
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shlex
import stat
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, Final

import apsw

from surefoot.core.cure import ADOPT, ANY_RUN, NEWER_VERSION, Advice, Cures, command
from surefoot.core.seal import GENESIS, Record, Sealer
from surefoot.errors import (
    JournalCorrupt,
    JournalRegressed,
    NotFound,
    SchemaMismatch,
    StoreFull,
    StoreUnavailable,
    SurefootError,
    UsageError,
)
from surefoot.store.anchor import NOTHING_SEAL, Anchor, Mark, Unreadable, foreign
from surefoot.store.contract import NOT_IN_A_CHILD
from surefoot.store.sqlite.damaged_reader import nothing_left
from surefoot.store.sqlite.guard import Guarded, guard, release

FORMAT: Final = 1
APPLICATION_ID: Final = 0x53464A31  # "SFJ1", for file(1)

_SCHEMA: Final = {
    "meta": "CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID",
    "entries": (
        "CREATE TABLE entries (pos INTEGER PRIMARY KEY, run TEXT NOT NULL, seq INTEGER NOT NULL, "
        "epoch INTEGER NOT NULL, at INTEGER NOT NULL, kind INTEGER NOT NULL, schema INTEGER NOT NULL, "
        "codec INTEGER NOT NULL, key INTEGER NOT NULL, body BLOB NOT NULL, seal BLOB NOT NULL, UNIQUE (run, seq))"
    ),
    "heads": (
        "CREATE TABLE heads (n INTEGER PRIMARY KEY, run TEXT NOT NULL UNIQUE, seq INTEGER NOT NULL, seal BLOB NOT NULL)"
    ),
    "parts": (
        "CREATE TABLE parts (n INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, kind INTEGER NOT NULL, "
        "codec INTEGER NOT NULL, size INTEGER NOT NULL, body BLOB NOT NULL)"
    ),
    "quarantine": (
        "CREATE TABLE quarantine (n INTEGER PRIMARY KEY, pos, run, seq, epoch, at, kind, schema, codec, key, body, "
        "seal)"
    ),
    "runs": (
        "CREATE TABLE runs (run TEXT PRIMARY KEY, workflow TEXT, status TEXT, queue TEXT, labels TEXT, "
        "created INTEGER, seq INTEGER, checksum INTEGER, wake INTEGER, worker TEXT, reason TEXT, need TEXT, "
        "address TEXT, brief TEXT, until INTEGER, marks TEXT, n INTEGER, held INTEGER) "
        "WITHOUT ROWID"
    ),
    "journal": (
        "CREATE VIEW journal AS SELECT pos, run, seq, epoch, "
        "strftime('%Y-%m-%dT%H:%M:%fZ', at / 1e6, 'unixepoch') AS at, "
        "kind, CAST(body AS TEXT) AS body, lower(hex(seal)) AS seal FROM entries"
    ),
    "starts": "CREATE TABLE starts (queue TEXT, at INTEGER, run TEXT, PRIMARY KEY (queue, at, run)) WITHOUT ROWID",
    # Whoever looks for work meets only runs that could be it, and of each queue only the first few.
    "runs_by_wake": "CREATE INDEX runs_by_wake ON runs (workflow, queue, wake) WHERE wake IS NOT NULL",
    "runs_by_worker": "CREATE INDEX runs_by_worker ON runs (worker, queue) WHERE worker > ''",
    # Lists for people: what waits for somebody, and the rest by what they ask for. `n` is the place in the list.
    "runs_by_need": "CREATE INDEX runs_by_need ON runs (need, n) WHERE need > ''",
    "runs_in_need": "CREATE INDEX runs_in_need ON runs (n) WHERE need > ''",
    "runs_by_status": "CREATE INDEX runs_by_status ON runs (status, n)",
    "runs_by_workflow": "CREATE INDEX runs_by_workflow ON runs (workflow, n)",
    "runs_by_queue": "CREATE INDEX runs_by_queue ON runs (queue, n) WHERE queue > ''",
    "run_labels": (
        "CREATE TABLE run_labels (name TEXT, value TEXT, n INTEGER, run TEXT, PRIMARY KEY (name, value, n, run)) "
        "WITHOUT ROWID"
    ),
    "runs_by_held": "CREATE INDEX runs_by_held ON runs (held, queue) WHERE held IS NOT NULL",
}

RECORD_AT: Final = "SELECT run, seq, epoch, at, kind, schema, codec, key, body, seal FROM entries WHERE pos = ?"
_FULL_ERRNOS: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_DAMAGED_READS: Final = (apsw.SQLITE_IOERR_SHORT_READ, apsw.SQLITE_IOERR_CORRUPTFS, apsw.SQLITE_IOERR_DATA)
_UNAVAILABLE: Final = (apsw.IOError, apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError, apsw.NoMemError)

Announce = Callable[[str], object]


# --- connections -----------------------------------------------------------------------------------

_open_connections: Final[dict[apsw.Connection, Guarded]] = {}
_foreign_paths: Final[set[str]] = set()
"""Databases that the parent had open when this process was forked."""


def connect(path: str, *, readonly: bool, busy_seconds: float) -> apsw.Connection:
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
    # Nothing may be folded into the database on closing before the anchor was found to hold: the `-wal` is evidence.
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    connection.set_busy_timeout(int(busy_seconds * 1000))
    connection.execute("PRAGMA cell_size_check=ON").fetchall()
    return connection


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

    # Closing an inherited handle would damage the parent's store, and the interpreter closes what nobody holds.
    # So the child holds these for ever.
    for connection, guarded in list(_open_connections.items()):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
        _foreign_paths.add(guarded.path)
    _open_connections.clear()


os.register_at_fork(before=_before_fork, after_in_child=_in_child)


# --- opening ---------------------------------------------------------------------------------------


class Opened:
    """A database whose anchor holds, with a read-only connection to it."""

    def __init__(
        self, path: str, reader: apsw.Connection, anchor: Anchor, store_id: bytes, opened: tuple[int, int]
    ) -> None:
        self.path = path
        self.reader = reader
        self.anchor = anchor
        self.store_id = store_id
        self.identity = opened


def open_files(
    path: str, *, create: bool, announce: Announce | None, busy_seconds: float, adopting: bool = False
) -> Opened:
    """With `adopting`, a store that lost records is opened too, and its anchor is left as it is."""
    _refuse_unnameable(path)
    with _explained(path):
        anchor = _make_sure_it_is_there(path, create=create, announce=announce, busy_seconds=busy_seconds)
        reader = None
        try:
            before = identity(path)  # a rebuilt store may take its place while we wait for a lock on this one
            reader = connect(path, readonly=True, busy_seconds=busy_seconds)
            anchor, store_id = _check(path, reader, anchor, adopting=adopting)
            return Opened(path, reader, anchor, store_id, before)
        except BaseException:
            if reader is not None:
                disconnect(reader, checkpoint=False)
            if anchor is not None:
                anchor.close()
            raise


def anchor_path(path: str) -> str:
    return path + "-anchor"


def identity(path: str) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_dev, found.st_ino


def _make_sure_it_is_there(path: str, *, create: bool, announce: Announce | None, busy_seconds: float) -> Anchor | None:
    """The anchor of the database that is there now; None: a database without one."""
    size = _size(path)
    anchored = os.path.lexists(anchor_path(path))
    if size:
        return Anchor(anchor_path(path), create=False) if anchored else None
    if size == 0 and not anchored:
        raise _not_a_store(path, "the file is empty")
    if size is None and not create and not anchored:
        log = _leftover(path)
        if log is not None and not os.path.lexists(anchor_path(path)):  # else somebody is making it this moment
            raise _log_alone(path, log)
        raise _no_store(path)
    if create:
        _make_folder(os.path.dirname(path))
    anchor = Anchor(anchor_path(path), create=create)
    try:
        _continue_or_refuse(path, anchor, create=create, announce=announce, busy_seconds=busy_seconds)
    except BaseException:
        anchor.close()
        raise
    return anchor


def _continue_or_refuse(
    path: str, anchor: Anchor, *, create: bool, announce: Announce | None, busy_seconds: float
) -> None:
    """There was no database a moment ago. Make one, unless there ever was more than that."""
    anchor.lock_for_creation(busy_seconds)
    try:
        if _size(path):
            return  # another process was quicker
        try:
            mark = anchor.read()
        except Unreadable:
            raise _anchor_damaged(path) from None
        if mark is not None and mark.pos:
            raise _regressed(path, mark, "the database is empty" if _size(path) == 0 else "the database is missing")
        _refuse_leftovers(path)
        if not create:
            raise _no_store(path)
        if mark is None:
            mark = Mark(secrets.token_bytes(16), 0, NOTHING_SEAL)
            anchor.begin(mark)
            _sync_folder(path)
        _build(path, mark.store)
        if announce is not None:
            announce(f"created store {path}")
    finally:
        anchor.unlock()


def _refuse_leftovers(path: str) -> None:
    log = _leftover(path)
    if log is not None:
        raise _log_alone(path, log)


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
    """The command that makes room for a new store: with every file that is there, for one left behind is in the way."""
    there = [path + suffix for suffix in ("", "-wal", "-shm", "-journal", "-anchor") if os.path.lexists(path + suffix)]
    aside = next(name for n in count(1) if not os.path.lexists(name := f"{path}-lost-{n}"))
    return f"mkdir {shlex.quote(aside)} && mv {shlex.join([*there, aside])}"


def _build(path: str, store_id: bytes) -> None:
    new = path + "-new"
    for suffix in ("", "-journal", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(new + suffix)
    fd = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    os.fchmod(fd, 0o600)  # SQLite gives its `-wal` and `-shm` the mode of the database
    os.close(fd)
    _fill(new, store_id)
    fd = os.open(new, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    os.fsync(fd)
    os.close(fd)
    os.rename(new, path)
    _sync_folder(path)


def _fill(new: str, store_id: bytes) -> None:
    connection = apsw.Connection(new, flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW)
    try:
        for statement in (
            "PRAGMA page_size=4096", "PRAGMA synchronous=FULL", "PRAGMA fullfsync=1", "BEGIN IMMEDIATE",
            f"PRAGMA application_id={APPLICATION_ID}", *_SCHEMA.values(),
        ):  # fmt: skip
            connection.execute(statement).fetchall()
        connection.execute(
            "INSERT INTO meta VALUES ('store', ?), ('format', ?), ('rewritten', 0), ('swept', 0)", (store_id, FORMAT)
        )
        connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode=WAL").fetchall()
    finally:
        connection.close(force=True)


# --- checking --------------------------------------------------------------------------------------


def _check(path: str, reader: apsw.Connection, anchor: Anchor | None, *, adopting: bool) -> tuple[Anchor, bytes]:
    """Hold the journal against its anchor. Costs the same however long the journal is."""
    mark = _marked(anchor)  # before the journal: others may append, and then the journal is ahead, not behind
    with snapshot(reader):
        store_id = _store_id(path, reader, mark)
        if adopting:
            if mark is not None and mark.store != store_id:
                raise foreign(anchor_path(path))
            return anchor or Anchor(anchor_path(path), create=True), store_id
        newest = _newest(path, reader)
        if mark is None:
            _refuse_unanchored(path, reader, newest)
        else:
            _hold_against(path, reader, store_id, newest, mark)
    anchor = anchor or Anchor(anchor_path(path), create=True)
    if mark is None:
        _begin_again(anchor, store_id)
    if newest is not None and (anchor.newest is None or newest[0] > anchor.newest.pos):
        anchor.advance(Mark(store_id, *newest))
    if not anchor.intact():
        anchor.heal()
    return anchor, store_id


def _marked(anchor: Anchor | None) -> Mark | None:
    """None: there is no anchor, or nothing readable in it."""
    try:
        return anchor.read() if anchor is not None else None
    except Unreadable:
        return None


def _store_id(path: str, reader: apsw.Connection, mark: Mark | None) -> bytes:
    """Whether this is a store of ours, whole, and of a format we know."""
    try:
        number = reader.execute("PRAGMA application_id").fetchone()
        schema = _pairs(reader, "SELECT name, sql FROM sqlite_schema")
    except apsw.NotADBError as error:
        if mark is not None and mark.pos:
            last = anew(path, reader)
            raise JournalCorrupt(
                f"{path}: the database is damaged from its first bytes on, or was replaced: it is no SQLite file"
                f"{', and nothing in it can be read' if last else ''}.",
                cures=(*restore(path)[:-1], *last),  # without its first page it cannot be repaired
            ) from error
        raise _replaced(path, mark, "it is not a SQLite database") from error
    if number != (APPLICATION_ID,):
        raise _replaced(path, mark, "it is a SQLite database of another program")
    if not schema.keys() & _SCHEMA.keys():
        raise _replaced(path, mark, "it has none of a store's tables")
    meta = _pairs(reader, "SELECT key, value FROM meta") if "meta" in schema else {}
    found = meta.get("format")
    if isinstance(found, int) and found > FORMAT:
        raise SchemaMismatch(
            f"{path}: this store has format {found}, this version of surefoot knows up to {FORMAT}.",
            cures=(NEWER_VERSION,),
        )
    store_id = meta.get("store")
    if found != FORMAT or not isinstance(store_id, bytes) or not is_ours(schema):
        raise JournalCorrupt(f"{path}: the description of the store's tables is not what was written.")
    return store_id


def anew(path: str, connection: apsw.Connection) -> Cures:
    """What helps if nothing does: to make room for a new store. Only where not one row of this one can be read."""
    return (Advice("start anew?", _move_away(path)),) if nothing_left(connection, path) else ()


def is_ours(schema: dict[Any, Any]) -> bool:
    """Whether these are the tables of a store."""
    return _SCHEMA.items() <= schema.items()


def _pairs(reader: apsw.Connection, question: str) -> dict[Any, Any]:
    return {key: value for key, value in reader.execute(question).fetchall()}  # noqa: C416 - dict() loses the types


def _newest(path: str, reader: apsw.Connection) -> tuple[int, bytes] | None:
    row = reader.execute("SELECT pos, seal FROM entries ORDER BY pos DESC LIMIT 1").fetchone()
    if row is None:
        return None
    pos, seal = row
    if not isinstance(pos, int) or pos < 1 or not isinstance(seal, bytes) or len(seal) != len(NOTHING_SEAL):
        raise JournalCorrupt(f"{path}: the newest record is not what was written.", cures=restore(path))
    return pos, seal


def _refuse_unanchored(path: str, reader: apsw.Connection, newest: tuple[int, bytes] | None) -> None:
    """Without an anchor nobody can say whether this is all there was, unless there never was anything."""
    if newest is None and reader.execute("SELECT 1 FROM heads UNION ALL SELECT 1 FROM runs").fetchone() is None:
        return
    raise _anchor_damaged(path)


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
    row = reader.execute(RECORD_AT, (mark.pos,)).fetchone()
    if row is not None and row[-1] == mark.seal:
        return True
    rewritten = reader.execute("SELECT value FROM meta WHERE key = 'rewritten'").fetchone()
    if rewritten is not None and isinstance(rewritten[0], int) and rewritten[0] >= mark.pos:
        return True  # it was among those that a rewrite replaced, right before the anchor could be told
    # Another history has records that hold. One that does not is damaged, and whoever reads its run is told so.
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
    anchor.lock_for_creation(1.0)
    try:
        with contextlib.suppress(Unreadable):
            if anchor.read() is not None:
                return  # another process was quicker
        anchor.begin(Mark(store_id, 0, NOTHING_SEAL))
    finally:
        anchor.unlock()


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
        raise _not_a_store(path, f"it is {what}")
    return found.st_size


def _make_folder(folder: str) -> None:
    """Missing folders are made for this user alone, whatever the umask. Those that are there stay as they are."""
    if os.path.isdir(folder):
        return
    _make_folder(os.path.dirname(folder))
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700)
        os.chmod(folder, 0o700)
        _sync_folder(folder)


def _sync_folder(path: str) -> None:
    """A new name is on disk only once its folder is."""
    fd = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


# --- errors ----------------------------------------------------------------------------------------

STRUCTURE: Final = {"structure": True}
"""The facts of damage to the database itself, as against a record in it: it has to be built anew (`salvage.py`)."""


def restore(path: str) -> Cures:
    return (
        command("inspect", path=path, when="look"),
        Advice("have a copy?", f"keep {shlex.quote(path)} as evidence, and put the copy back"),
        command("repair", ANY_RUN, when="go on? ID: any run"),
    )


@contextlib.contextmanager
def _explained(path: str) -> Iterator[None]:
    try:
        yield
    except (apsw.Error, UnicodeDecodeError, OSError) as error:
        raise explain(error, path) from error


def explain(error: Exception, path: str, *, system_errno: int = 0, busy_seconds: float = 10.0) -> SurefootError:
    """What a failure of SQLite or the operating system means to those who use the store."""
    number = error.errno if isinstance(error, OSError) else system_errno
    if isinstance(error, apsw.FullError) or (isinstance(error, (apsw.IOError, OSError)) and number in _FULL_ERRNOS):
        return StoreFull(f"{path}: no space left for the journal ({error}). Free some, then resume.")
    if isinstance(error, (apsw.BusyError, apsw.LockedError)):
        return StoreUnavailable(
            f"{path}: locked by another process for {busy_seconds:g} s. Wait for it, or end it, and try again."
        )
    if isinstance(error, apsw.IOError) and getattr(error, "extendedresult", 0) in _DAMAGED_READS:
        return JournalCorrupt(
            f"{path}: the database cannot be read back whole: {error}", facts=STRUCTURE, cures=restore(path)
        )
    if isinstance(error, (OSError, *_UNAVAILABLE)):
        why = os.strerror(number) if number else str(error)
        return StoreUnavailable(
            f"{path}: cannot be read or written: {why}. "
            "The file and its folder must exist, be writable for this user and lie on a healthy disk."
        )
    if isinstance(error, (apsw.CorruptError, apsw.NotADBError, apsw.SQLError, apsw.SchemaChangeError, ValueError)):
        # Our statements are fixed: one that does not fit means that the tables are not those we made.
        return JournalCorrupt(f"{path}: the database is damaged: {error}", facts=STRUCTURE, cures=restore(path))
    return StoreUnavailable(f"{path}: SQLite refused: {type(error).__name__}: {error}")


def _no_store(path: str) -> NotFound:
    return NotFound(f"no store at {path}: nothing has been recorded there. Name another with --store or sf.configure.")


def _not_a_store(path: str, why: str) -> UsageError:
    return UsageError(f"{path} is not a surefoot store: {why}. Name another path, or move it out of the way.")


def _replaced(path: str, mark: Mark | None, why: str) -> SurefootError:
    return _regressed(path, mark, why) if mark is not None and mark.pos else _not_a_store(path, why)


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
