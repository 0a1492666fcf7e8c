"""A verified copy of a store: taken while others write, read back whole, and only then given its name.

The pages are copied by SQLite's own backup from one and the same state. The copy gets an anchor with the original's
newest record, so a copy that lost something does not open. An incomplete copy has a name that ends in
`.partial`, and older copies are deleted only after the new one was found whole.

A copy has the identity of its store. Restored in its place it is older than the anchor there, and is refused
(`JournalRegressed`) until a person accepts that (`surefoot adopt`): the records made since are gone then.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final, cast

import apsw

from surefoot.core.cure import command
from surefoot.errors import JournalCorrupt, StoreFull, StoreUnavailable, SurefootError, UsageError
from surefoot.store import disk
from surefoot.store.anchor import NOTHING_SEAL, Anchor, Mark, mark_at
from surefoot.store.backend import Backup, Verify, Watch
from surefoot.store.contract import Store
from surefoot.store.sqlite.files import BUSY_SECONDS, alone, anchor_path, explain, reading, snapshot
from surefoot.store.sqlite.store import SqliteStore

KEEP: Final = 3

_PAGES_PER_STEP: Final = 2048
_PARTIAL: Final = ".partial"
_TIME: Final = re.compile(r"\d{8}T\d{6}Z")
_FILES: Final = ("", "-anchor", "-wal", "-shm", "-journal")
_WORKERS: Final = "-workers"


def back_up(opened: Store, path: str, *, verify: Verify, now: datetime, watch: Watch | None = None) -> Backup:
    """Copy an open store into a folder (named by time, the newest three are kept) or to a new file."""
    store = cast("SqliteStore", opened)
    into_folder = os.path.isdir(path) or path.endswith(os.sep)
    folder = os.path.realpath(path if into_folder else os.path.dirname(path) or ".")
    target = os.path.join(
        folder, _name(store, f"{now.astimezone(UTC):%Y%m%dT%H%M%S}Z") if into_folder else os.path.basename(path)
    )
    with _explained(target), _locked(folder, create=into_folder):
        _refuse_if_taken(store, target)
        _clear_partial(folder, target)
        pos, size = _write(store, target, verify, watch)
        removed = _thin_out(store, folder, target) if into_folder else []
    return Backup(target, size, pos, removed)


def _write(store: SqliteStore, target: str, verify: Verify, watch: Watch | None) -> tuple[int, int]:
    partial = f"{target}.{secrets.token_hex(4)}{_PARTIAL}"
    try:
        mark = _copy(store, partial, watch)
        _check(partial, verify)
        size = os.stat(partial).st_size
        # The anchor first: a copy with its final name can be opened.
        os.rename(anchor_path(partial), anchor_path(target))
        os.rename(partial, target)
        disk.sync(os.path.dirname(target))
    except BaseException:
        _remove(partial)
        raise
    return mark.pos, size


def _copy(store: SqliteStore, partial: str, watch: Watch | None) -> Mark:
    """All pages of one moment, synced, and the anchor of that moment."""
    os.close(disk.create(partial))
    with reading(store.path) as source, snapshot(source):
        newest = source.execute("SELECT pos, seal FROM entries ORDER BY pos DESC LIMIT 1").fetchone()
        mark = Mark(store.id, *(newest or (0, NOTHING_SEAL)))
        _copy_pages(source, partial, watch)
    disk.sync(partial)
    with contextlib.closing(Anchor(anchor_path(partial), create=True)) as anchor:
        anchor.begin(mark)
    return mark


def _copy_pages(source: apsw.Connection, partial: str, watch: Watch | None) -> None:
    with alone(partial) as copy:
        copy.set_busy_timeout(int(BUSY_SECONDS * 1000))
        try:
            with copy.backup("main", source, "main") as backup:
                while not backup.done:
                    backup.step(_PAGES_PER_STEP)
                    if watch is not None:
                        watch(backup.page_count - backup.remaining, backup.page_count)
        except apsw.IOError as error:
            raise OSError(copy.system_errno or errno.EIO, str(error)) from error  # only the connection knows the reason


def _check(partial: str, verify: Verify) -> None:
    """Open the copy as a store, and check all of it."""
    copy = SqliteStore.open(partial, create=False, url=f"sqlite:///{partial}")
    try:
        wrong = verify(copy)
    finally:
        copy.close()
    if wrong:
        raise JournalCorrupt(
            f"the copy is not whole, and was removed: {wrong}. Older copies are still there.",
            cures=(command("verify", when="is it the original?"),),
        )
    disk.remove(partial, "-wal", "-shm")  # nothing was written: they are empty, and only this process knew the name


# --- names -----------------------------------------------------------------------------------------------


def _name(store: SqliteStore, time: str) -> str:
    stem, suffix = os.path.splitext(os.path.basename(store.path))
    return f"{stem}-{time}{suffix or '.db'}"


def _refuse_if_taken(store: SqliteStore, target: str) -> None:
    if target == store.path or target.startswith(store.path + "-"):
        raise UsageError(f"{target} is the store itself, or one of its files. Name another place for the copy.")
    for side in (*_FILES, _WORKERS):
        if os.path.lexists(target + side):
            raise UsageError(
                f"{target + side} is there already, and is not written over. "
                "Name another file; or a folder, which keeps the newest three copies."
            )


def _thin_out(store: SqliteStore, folder: str, newest: str) -> list[str]:
    """Delete all but the newest three copies of this very store. The newest is the one with the most records."""
    found = []
    for name in os.listdir(folder):
        path, times = os.path.join(folder, name), _TIME.findall(name)
        if times and name == _name(store, times[-1]) and path != newest:
            with contextlib.suppress(OSError, SurefootError):  # not readable as our copy, so not deleted
                mark = mark_at(anchor_path(path))
                found += [(mark.pos, path)] if mark is not None and mark.store == store.id else []
    old = [path for _, path in sorted(found, reverse=True)[KEEP - 1 :]]
    for path in old:
        _remove(path)
    if old:
        disk.sync(folder)
    return old


def _clear_partial(folder: str, target: str) -> None:
    """Remove the remains of a backup to this place that was cut off."""
    stem = re.sub(r"-\d{8}T\d{6}Z", "", os.path.basename(target))
    for name in os.listdir(folder):
        base, found, _ = name.partition(_PARTIAL)
        made = re.sub(r"-\d{8}T\d{6}Z", "", base)
        if found and re.fullmatch(re.escape(stem) + r"\.[0-9a-f]{8}", made):
            _remove(os.path.join(folder, base + _PARTIAL))


def _remove(path: str) -> None:
    """Remove a copy with all its files, the database first: the rest cannot be mistaken for a whole copy."""
    disk.remove(path, *_FILES)
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(path + _WORKERS)


# --- the operating system ----------------------------------------------------------------------------------


@contextlib.contextmanager
def _locked(folder: str, *, create: bool) -> Iterator[None]:
    """One backup into a folder at a time: then no other process is writing a partial copy there."""
    if create:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise StoreUnavailable(
            f"{folder}: another backup is being written there. Wait for it, and try again."
        ) from error
    finally:
        os.close(fd)


@contextlib.contextmanager
def _explained(path: str) -> Iterator[None]:
    try:
        yield
    except (apsw.Error, OSError) as error:
        found = explain(error, path)
        if isinstance(found, StoreFull):
            found = StoreFull(
                f"{path}: there is no room for the copy. Nothing is left of it; older copies are untouched."
            )
        raise found from error
