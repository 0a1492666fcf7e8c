"""Findings about the place of a SQLite store: asked of SQLite and the file system, or tried out.

Nothing is changed; the one file that is written, beside the store, is removed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, cast

import apsw

from surefoot.errors import StoreUnavailable
from surefoot.store import disk
from surefoot.store.anchor import Anchor, Unreadable
from surefoot.store.contract import Store
from surefoot.store.findings import CLOCK_SECONDS, OK, Finding, bad, ok, versions, warn
from surefoot.store.findings import settings as in_one_line
from surefoot.store.liveness import listed
from surefoot.store.sqlite.files import DURABLE, anchor_path, reading

if TYPE_CHECKING:
    from surefoot.store.sqlite.store import SqliteStore

_SYNCS: Final = 7
_TOO_QUICK_SECONDS: Final = 20e-6
"""Even the fastest devices that keep what they acknowledge need longer than this."""
_SLOW_SECONDS: Final = 0.05
_PROBE_BYTES: Final = 4096
_LITTLE_BYTES: Final = 256 * 1024 * 1024
_TOO_LITTLE_BYTES: Final = 16 * 1024 * 1024
_LONG_LOG_BYTES: Final = 64 * 1024 * 1024
_RECENT: Final = 200
_MANY_WORKERS: Final = 100
_FLAWS: Final = 20

_NETWORK: Final = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "beegfs", "ocfs2", "gfs2"}
)
_PASSING: Final = {"tmpfs": "memory", "ramfs": "memory", "overlay": "the layer of a container"}

_FIXED: Final = ((3, 44, 6), (3, 50, 7))
"""The first releases of older lines with the fix."""


# --- what `verify` asks of the store itself ----------------------------------------------------------------------


def structure(path: str) -> list[str]:
    """Faults of the database itself: pages, tables and indexes that disagree. Reads all of it."""
    try:
        with reading(path) as connection:
            try:
                rows = connection.execute(f"PRAGMA integrity_check({_FLAWS})").fetchall()
            except apsw.Error as error:
                return [f"the database is damaged: {error}"]
    except apsw.Error as error:
        return [f"the database cannot be opened once more: {error}"]
    said = [str(row[0]) for row in rows]
    return [] if said == ["ok"] else [f"the database is damaged: {one}" for one in said]


def anchor_fault(store: SqliteStore) -> str:
    """The disagreement between an open store and its anchor, as both are on disk now; empty: none."""
    finding = _anchor(store.path, store)
    return "" if finding.level == OK else f"{finding.said}. {finding.do}"


# --- what `doctor` asks ------------------------------------------------------------------------------------------


def before_opening(path: str) -> list[Finding]:
    """Findings that have to be made before opening the store repairs their cause."""
    if not os.path.lexists(anchor_path(path)):
        return []
    finding = _anchor(path, None)
    return [] if finding.level == OK else [finding]


def examine(path: str, opened: Store | None, *, now: int) -> Iterator[Finding]:
    """All findings about a SQLite store at this path; `opened`, if it could be opened."""
    store = cast("SqliteStore | None", opened)
    folder = _existing(os.path.dirname(os.path.realpath(path)))
    if store is not None:
        yield _settings(store)
        yield _anchor(store.path, store)
        yield _clock(store, now)
    yield sqlite_version(apsw.sqlite_lib_version())
    yield file_system(_mounted_as(folder))
    yield from _tried(folder)
    yield space(*_free(folder), disk.size(path))
    yield from permissions(path)
    if store is not None:
        yield _log(store.path)
        yield _workers(store)
    yield versions()


def _settings(store: SqliteStore) -> Finding:
    try:
        found = store.durability()
    except StoreUnavailable as error:
        return bad("settings", f"cannot be read back: {error}", "make the store writable for this user")
    told = in_one_line(found, leave_out=("backend", "path", "sqlite", "anchor"))
    if (found["journal_mode"], found["synchronous"]) != DURABLE:
        return bad("settings", told, "put the store on a local file system: wal and full are needed")
    return ok("settings", f"{told} (read back)")


def sqlite_version(version: str) -> Finding:
    """Whether this SQLite has a bug that loses commits."""
    numbers = tuple(int(number) for number in version.split(".")[:3])
    fixed = any(first <= numbers < (*first[:1], first[1] + 1) for first in _FIXED)
    if (3, 7, 0) <= numbers <= (3, 51, 2) and not fixed:
        return bad(
            "sqlite",
            f"{version}: has the WAL-reset bug of 3.7.0 to 3.51.2, which can lose commits of two processes",
            "pip install --upgrade apsw",
        )
    return ok("sqlite", version)


def file_system(kind: str) -> Finding:
    what = "file system"
    if not kind:
        return ok(what, "kind unknown on this platform; make sure that it is a local one")
    if kind in _NETWORK or kind.startswith("fuse.") or kind == "fuse":
        return warn(
            what,
            f"{kind}: a network or user-space file system, whose locks and syncs are often not what they say",
            "keep the store on a local disk",
        )
    if kind in _PASSING:
        return warn(
            what, f"{kind}: it lives in {_PASSING[kind]}, and ends with it", "keep the store on a disk or volume"
        )
    return ok(what, kind)


def _mounted_as(folder: str) -> str:
    """The kind of the file system, from the table of mounts; empty where there is none."""
    device = os.stat(folder).st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
            lines = [line.split() for line in file]
    except OSError:
        return ""
    found = [(len(words[4]), words[words.index("-") + 1]) for words in lines if words[2] == wanted and "-" in words]
    return max(found)[1] if found else ""


# --- tried out ---------------------------------------------------------------------------------------------------


def _tried(folder: str) -> Iterator[Finding]:
    path = os.path.join(folder, f".surefoot-probe-{secrets.token_hex(6)}")
    try:
        fd = disk.create(path)
    except OSError as error:
        yield bad("writing", f"{folder}: {error.strerror}", "this user must be able to write in that folder")
        return
    try:
        yield synced(fd)
        yield _locked(path, fd)
    finally:
        os.close(fd)
        disk.remove(path, "")


def synced(fd: int, sync: Callable[[int], object] = os.fsync) -> Finding:
    """Write, sync and read back, several times. Whether a disk keeps it without power cannot be tested here."""
    what, took = "sync", []
    try:
        for _ in range(_SYNCS):
            content = secrets.token_bytes(_PROBE_BYTES)
            os.pwrite(fd, content, 0)
            started = time.perf_counter()
            sync(fd)
            took.append(time.perf_counter() - started)
            if os.pread(fd, _PROBE_BYTES, 0) != content:
                return bad(what, "what was written and synced reads back as something else", "change the disk")
    except OSError as error:
        return bad(what, f"a synced write failed: {error.strerror}", "look at the disk and its space")
    middle = statistics.median(took)
    told = f"written, synced and read back in {middle * 1e6:.0f} µs"
    if middle < _TOO_QUICK_SECONDS:
        return warn(
            what,
            f"{told}: too quick to be true for a disk that keeps what it acknowledges",
            "check that this is no memory disk, and that syncs are not switched off (eatmydata, nobarrier, the VM's cache)",
        )
    if middle > _SLOW_SECONDS:
        return warn(what, f"{told}: every recorded call waits this long", "use a quicker disk, or one less busy")
    return ok(what, told)


_LOCKS: Final = ("lockf", "flock")
"""The locks of SQLite, and those that show that a process is alive."""
_LOCKER: Final = """
import fcntl, sys
with open(sys.argv[1], "r+b") as file:
    try:
        getattr(fcntl, sys.argv[2])(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        print("free")
    except OSError:
        print("held")
"""


def _locked(path: str, fd: int) -> Finding:
    """Whether another process sees the locks of this one, of either kind, and sees their release."""
    what = "locks"
    try:
        seen = [_seen(path, fd, name) for name in _LOCKS]
    except OSError as error:
        return bad(what, f"cannot be had: {error.strerror}", "use a file system with working POSIX locks")
    wrong = next((pair for pair in seen if pair != ("held", "free")), None)
    if wrong is None:
        return ok(what, "a second process sees them come and go")
    while_held, afterwards = wrong
    return bad(
        what,
        f"a second process saw a held lock as {while_held or 'nothing'}, a released one as {afterwards or 'nothing'}",
        "use a local file system: two processes could drive one run here",
    )


def _seen(path: str, fd: int, name: str) -> tuple[str, str]:
    """A second process's view of a lock while this one holds it, and afterwards."""
    lock = getattr(fcntl, name)
    lock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    while_held = _asked(path, name)
    lock(fd, fcntl.LOCK_UN)
    return while_held, _asked(path, name)


def _asked(path: str, name: str) -> str:
    program = [sys.executable, "-I", "-S", "-c", _LOCKER, path, name]
    return subprocess.run(program, stdout=subprocess.PIPE, text=True, check=False).stdout.strip()  # noqa: S603 - see above


# --- inspected ---------------------------------------------------------------------------------------------------


def _clock(store: SqliteStore, now: int) -> Finding:
    end = store.changes()
    recent = [record.at for _, record in store.scan(max(end - _RECENT, 0), _RECENT)]
    return clock(max(recent, default=0), now)


def clock(newest: int, now: int) -> Finding:
    """The wall clock compared with what was recorded, both in microseconds since 1970."""
    if not newest:
        return ok("clock", "nothing is recorded yet to hold it against")
    behind = (newest - now) / 1e6
    if behind > CLOCK_SECONDS:
        return warn(
            "clock",
            f"{behind:.0f} s behind the newest entry: it was set back, or this is another machine",
            "set it right (NTP); order never depends on it, but timers after a restart do",
        )
    return ok("clock", f"the newest entry is {max(-behind, 0):.0f} s old")


def _free(folder: str) -> tuple[int, int]:
    found = os.statvfs(folder)
    # Some file systems do not count files at all.
    return found.f_bavail * found.f_frsize, found.f_favail if found.f_files else sys.maxsize


def space(free: int, files: int, store_bytes: int) -> Finding:
    told = f"{free / 1e6:,.0f} MB free, the store has {store_bytes / 1e6:,.1f} MB"
    if free < _TOO_LITTLE_BYTES or files < 16:
        return bad("space", told if files >= 16 else f"{told}, but room for {files} files", "free some now")
    if free < max(_LITTLE_BYTES, store_bytes):
        return warn("space", told, "free some: a backup, or a busy day, may not fit")
    return ok("space", told)


def permissions(path: str) -> list[Finding]:
    """Whether only this user can use the files."""
    return list(_wrong_modes(path)) or [ok("permissions", "the store's files are for this user alone")]


def _wrong_modes(path: str) -> Iterator[Finding]:
    what = "permissions"
    for name in (path, path + "-wal", path + "-shm", path + "-anchor"):
        with contextlib.suppress(FileNotFoundError):
            found = os.stat(name)
            if found.st_mode & 0o077:
                mode = found.st_mode & 0o777
                yield warn(what, f"{name} has mode {mode:o}: others can read or write it", f"chmod 600 {name}")
            if found.st_uid != os.geteuid():
                yield warn(what, f"{name} belongs to another user ({found.st_uid})", f"chown it: {name}")
            if not os.access(name, os.R_OK | os.W_OK):
                yield bad(what, f"{name} cannot be read and written by this user", f"chmod 600 {name}")
    folder = _existing(os.path.dirname(os.path.realpath(path)))
    mode = os.stat(folder).st_mode
    if mode & 0o022 and not mode & 0o1000:
        yield warn(what, f"{folder}: others can replace files in it (mode {mode & 0o777:o})", "chmod go-w")
    if not os.access(folder, os.W_OK | os.X_OK):
        yield bad(what, f"{folder}: this user cannot write in it", "chmod u+wx")


def _anchor(path: str, store: SqliteStore | None) -> Finding:
    try:
        anchor = Anchor(anchor_path(path), create=False)
    except (OSError, StoreUnavailable) as error:
        return bad("anchor", f"cannot be read: {error}", "put it back: it shows whether history was lost")
    try:
        mark = anchor.read()
        if mark is None:
            return _empty_anchor(path)
        if not anchor.intact():
            return warn(
                "anchor", "one of its two slots is damaged, the other speaks", "none: opening the store heals it"
            )
    except Unreadable:
        return bad("anchor", "neither of its slots can be read", "put back a copy of it")
    except StoreUnavailable as error:
        return bad("anchor", str(error), "put back a copy of it, if the disk has lost it")
    finally:
        anchor.close()
    newest = store.changes() if store is not None else mark.pos
    if store is not None and mark.store != store.id:
        return bad("anchor", "belongs to another store", "put the two that belong together side by side")
    if mark.pos > newest:
        return bad(
            "anchor", f"knows {mark.pos} records, the store has {newest}", "put the newer file and its -wal back"
        )
    return ok("anchor", f"both slots hold, at record {mark.pos} of {newest}")


def _empty_anchor(path: str) -> Finding:
    if any(os.path.lexists(path + suffix) for suffix in ("", "-wal", "-journal")):
        return warn("anchor", "is empty: it knows of no record", "what is said of the store comes first")
    return warn("anchor", "is empty: the store was never finished", "start a run: it is made whole then")


def _log(path: str) -> Finding:
    size = disk.size(path + "-wal")
    if size > _LONG_LOG_BYTES:
        return warn(
            "log", f"the -wal file has {size / 1e6:,.0f} MB: a reader keeps it from being folded in",
            "end processes that have had the store open for very long",
        )  # fmt: skip
    return ok("log", f"the -wal file has {size / 1e6:,.1f} MB")


def _workers(store: SqliteStore) -> Finding:
    names = listed(store.path + "-workers")
    alive = sum(store.alive(name) for name in names)
    dead = len(names) - alive
    told = f"{alive} alive, {dead} files of processes that are gone"
    if dead > _MANY_WORKERS:
        return warn("workers", told, "find out why so many were killed; the next run to start tidies up")
    return ok("workers", told)


def _existing(folder: str) -> str:
    """The folder, or the nearest existing one above it."""
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    return folder
