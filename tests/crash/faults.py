"""Every write, sync, truncation, creation, renaming and removal under a folder is counted, and one of them goes wrong.

SQLite's files go through a VFS of ours, which a process registers as the default; the other files (anchor, workers,
checkpoints in files) through the functions of `os`, and the file objects made by `os.fdopen`. Nothing in surefoot knows about it. Calls of the world are counted
as well. So the boundaries of a flow are found by counting: nobody has to name them, and none can be forgotten. Reads of
the store's files, and opening them, are counted by themselves, and can fail: nothing is lost by a kill there that is not
lost elsewhere.

Modes: `kill` (SIGKILL right before it), `after` (right after it), `torn` (after half of a write), `short` (a write that
writes half and says so), `eio` and `enospc` (once), `eio+` and `enospc+` (from there on; of reads, or of everything else).
"""

# ruff: noqa: N802 - the names are those of SQLite

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from typing import Any, Final, Self

import apsw

from surefoot.testing.children import die

KILLS: Final = ("kill", "torn", "after")
ERRORS: Final = ("eio", "enospc", "eio+", "enospc+")
WRITE, SYNC, TRUNCATE, CREATE, RENAME, UNLINK, MKDIR, FOLDER, WORLD, READ = (
    "write", "sync", "truncate", "create", "rename", "unlink", "mkdir", "folder", "world", "read",
)  # fmt: skip
_NUMBERS: Final = {"eio": errno.EIO, "enospc": errno.ENOSPC}
_IOERR: Final = {
    WRITE: apsw.SQLITE_IOERR_WRITE,
    SYNC: apsw.SQLITE_IOERR_FSYNC,
    TRUNCATE: apsw.SQLITE_IOERR_TRUNCATE,
    UNLINK: apsw.SQLITE_IOERR_DELETE,
    READ: apsw.SQLITE_IOERR_READ,
}


def is_of_store(name: str) -> bool:
    """As against what a workflow writes for itself: if that fails, the workflow has failed, and rightly so."""
    return name == "." or name.startswith(("runs.db", "saved"))


def modes(kind: str, level: str, name: str = "runs.db") -> tuple[str, ...]:
    """How a boundary of this kind, at this file, can go wrong, by level."""
    if level == "L3":
        return {WRITE: ("kill", "torn"), WORLD: ("kill", "after")}.get(kind, ("kill",))
    if not is_of_store(name):
        return ()
    return {WRITE: (*ERRORS, "short"), SYNC: ERRORS}.get(kind, ("eio", "eio+"))


class Shim:
    """Counts, remembers, and strikes. One per process, installed once and for good."""

    def __init__(self, folder: str, plan: dict[int, str], *, trace: bool = False) -> None:
        self.folder = os.path.realpath(folder)
        self.plan = plan
        self.log: list[tuple[str, str]] = []
        """(kind, file) of each boundary, in order."""
        self.fired: list[int] = []
        self.events: list[tuple[Any, ...]] | None = [] if trace else None
        """What power loss needs to know: contents, and what was synced."""
        self.reads = 0
        self._sticky = {"write": "", "read": ""}
        self._lock = threading.RLock()

    def install(self) -> None:
        self._vfs = _Vfs(self)
        for name in (
            "pwrite", "pread", "write", "fsync", "ftruncate", "rename", "link", "unlink", "mkdir", "open", "fdopen",
        ):  # fmt: skip
            setattr(os, name, getattr(self, f"_{name}")(getattr(os, name)))

    # --- one boundary ------------------------------------------------------------------------------

    def at(
        self,
        kind: str,
        name: str,
        perform: Callable[[], Any],
        *,
        tear: Callable[[], Any] | None = None,
        fail: Callable[[str, int], Exception] | None = None,
        event: tuple[Any, ...] = (),
    ) -> Any:
        with self._lock:
            self.log.append((kind, name))
            mode = self._strikes(WRITE, len(self.log), name)
            if mode in ("kill", "torn"):
                if mode == "torn" and tear is not None:
                    tear()
                die()
            if mode == "short" and tear is not None:
                return tear()
            if mode in _NUMBERS and fail is not None:
                raise fail(kind, _NUMBERS[mode])
            answer = perform()
            if self.events is not None and event:
                self.events.append(event)
            if mode == "after":
                die()
            return answer

    def at_read(self, name: str, perform: Callable[[], Any], fail: Callable[[str, int], Exception]) -> Any:
        with self._lock:
            self.reads += 1
            mode = self._strikes(READ, -self.reads, name)
            if mode in _NUMBERS:
                raise fail(READ, _NUMBERS[mode])
            return perform()

    def _strikes(self, sort: str, number: int, name: str) -> str:
        mode = self.plan.get(number, "")
        if mode:
            self.fired.append(number)
        if mode.endswith("+"):
            self._sticky[sort] = mode[:-1]
        return self._sticky[sort] if self._sticky[sort] and is_of_store(name) else mode

    def name_of(self, path: str) -> str | None:
        """Relative to the folder; None: none of our business."""
        path = os.path.abspath(path)
        return os.path.relpath(path, self.folder) if path.startswith(self.folder + os.sep) else None

    # --- the functions of `os` -----------------------------------------------------------------------

    def _name_of_fd(self, fd: int) -> str | None:
        path = os.readlink(f"/proc/self/fd/{fd}")
        return self.name_of(path) if path.startswith(os.sep) else None  # else a pipe, or a socket

    def _pwrite(self, real: Callable[..., int]) -> Callable[..., int]:
        def pwrite(fd: int, data: bytes, offset: int) -> int:
            return self._written(real, fd, data, (offset,), offset)

        return pwrite

    def _pread(self, real: Callable[..., bytes]) -> Callable[..., bytes]:
        def pread(fd: int, size: int, offset: int) -> bytes:
            name = self._name_of_fd(fd)
            if name is None:
                return real(fd, size, offset)
            return self.at_read(name, lambda: real(fd, size, offset), _os_error)

        return pread

    def _write(self, real: Callable[..., int]) -> Callable[..., int]:
        def write(fd: int, data: bytes) -> int:
            name = self._name_of_fd(fd)
            return real(fd, data) if name is None else self._written(real, fd, data, (), os.lseek(fd, 0, os.SEEK_CUR))

        return write

    def _written(self, real: Callable[..., int], fd: int, data: bytes, more: tuple[int, ...], offset: int) -> int:
        name = self._name_of_fd(fd)
        if name is None:
            return real(fd, data, *more)
        half = bytes(data[: max(len(data) // 2, 1)])
        return int(
            self.at(
                WRITE,
                name,
                lambda: real(fd, data, *more),
                tear=lambda: real(fd, half, *more),
                fail=_os_error,
                event=("write", name, offset, bytes(data)),
            )
        )

    def _fsync(self, real: Callable[[int], None]) -> Callable[[int], None]:
        def fsync(fd: int) -> None:
            path = os.readlink(f"/proc/self/fd/{fd}")
            name = "." if path == self.folder else self.name_of(path)
            if name is None:
                return real(fd)
            kind = FOLDER if os.path.isdir(path) else SYNC
            return self.at(kind, name, lambda: real(fd), fail=_os_error, event=(kind, name))

        return fsync

    def _ftruncate(self, real: Callable[[int, int], None]) -> Callable[[int, int], None]:
        def ftruncate(fd: int, size: int) -> None:
            name = self._name_of_fd(fd)
            if name is None:
                return real(fd, size)
            return self.at(TRUNCATE, name, lambda: real(fd, size), fail=_os_error, event=(TRUNCATE, name, size))

        return ftruncate

    def _rename(self, real: Callable[..., None]) -> Callable[..., None]:
        def rename(source: str, target: str, **more: Any) -> None:
            one, two = self._placed(source, more.get("src_dir_fd")), self._placed(target, more.get("dst_dir_fd"))
            if one is None or two is None:
                return real(source, target, **more)
            return self.at(RENAME, two, lambda: real(source, target, **more), fail=_os_error, event=(RENAME, one, two))

        return rename

    def _link(self, real: Callable[..., None]) -> Callable[..., None]:
        def link(source: str, target: str, **more: Any) -> None:
            name = self._placed(target, more.get("dst_dir_fd"))
            if name is None:
                return real(source, target, **more)
            return self.at(CREATE, name, lambda: real(source, target, **more), fail=_os_error, event=(CREATE, name))

        return link

    def _unlink(self, real: Callable[..., None]) -> Callable[..., None]:
        def unlink(path: str, **more: Any) -> None:
            name = self._placed(path, more.get("dir_fd"))
            if name is None or not os.path.lexists(os.path.join(self.folder, name)):
                return real(path, **more)
            return self.at(UNLINK, name, lambda: real(path, **more), fail=_os_error, event=(UNLINK, name))

        return unlink

    def _mkdir(self, real: Callable[..., None]) -> Callable[..., None]:
        def mkdir(path: str, mode: int = 0o777, **more: Any) -> None:
            name = self._placed(path, more.get("dir_fd"))
            if name is None or os.path.lexists(os.path.join(self.folder, name)):
                return real(path, mode, **more)
            return self.at(MKDIR, name, lambda: real(path, mode, **more), fail=_os_error, event=(MKDIR, name))

        return mkdir

    def _open(self, real: Callable[..., int]) -> Callable[..., int]:
        def open_(path: str, flags: int, mode: int = 0o777, **more: Any) -> int:
            name = self._placed(path, more.get("dir_fd"))
            if name is not None and os.path.lexists(os.path.join(self.folder, name)):
                return int(self.at_read(name, lambda: real(path, flags, mode, **more), _os_error))
            if name is None or not flags & os.O_CREAT:
                return real(path, flags, mode, **more)
            return int(
                self.at(CREATE, name, lambda: real(path, flags, mode, **more), fail=_os_error, event=(CREATE, name))
            )

        return open_

    def _fdopen(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def fdopen(fd: int, mode: str = "r", *more: Any, **options: Any) -> Any:
            name = self._name_of_fd(fd)
            file = real(fd, mode, *more, **options)
            return file if name is None or mode != "wb" else _Written(self, file, name)

        return fdopen

    def _placed(self, path: Any, folder: int | None) -> str | None:
        path = os.fspath(path)
        if not isinstance(path, str):
            return None
        return self.name_of(path if folder is None else os.path.join(os.readlink(f"/proc/self/fd/{folder}"), path))


class _Written:
    """A file object that writes at once: each write is a boundary, and what a short one leaves is written next."""

    def __init__(self, shim: Shim, file: Any, name: str) -> None:
        self._shim = shim
        self._file = file
        self._name = name

    def write(self, data: bytes) -> int:
        rest = bytes(data)
        while rest:
            rest = rest[self._write(rest) :]
        return len(data)

    def _write(self, data: bytes) -> int:
        half = data[: max(len(data) // 2, 1)]
        return int(
            self._shim.at(
                WRITE,
                self._name,
                lambda: self._put(data),
                tear=lambda: self._put(half),
                fail=_os_error,
                event=("write", self._name, self._file.tell(), data),
            )
        )

    def _put(self, data: bytes) -> int:
        written = self._file.write(data)
        self._file.flush()
        return int(written)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def _os_error(kind: str, number: int) -> Exception:
    return OSError(number, os.strerror(number))


# --- SQLite's files ------------------------------------------------------------------------------------------------


class _Vfs(apsw.VFS):
    def __init__(self, shim: Shim) -> None:
        self.shim = shim
        self.number = 0
        super().__init__("surefoot-lab", "unix", makedefault=True)

    def xOpen(self, name: Any, flags: Any) -> Any:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        found = None if path is None else self.shim.name_of(path)
        if found is None:
            return apsw.VFSFile("unix", name, flags)
        made = not os.path.lexists(path) and flags[0] & apsw.SQLITE_OPEN_CREATE
        if not made:
            return _File(self, found, name, flags)
        return self.shim.at(
            CREATE, found, lambda: _File(self, found, name, flags), fail=self.failure, event=(CREATE, found)
        )

    def xDelete(self, path: str, sync: bool) -> None:
        name = self.shim.name_of(path)
        if name is None or not os.path.lexists(path):
            return super().xDelete(path, sync)
        self.shim.at(
            UNLINK, name, lambda: super(_Vfs, self).xDelete(path, sync), fail=self.failure, event=(UNLINK, name)
        )
        if sync and self.shim.events is not None:
            self.shim.events.append((FOLDER, os.path.dirname(name) or "."))
        return None

    def xGetLastError(self) -> tuple[int, str]:
        return self.number, ""

    def failure(self, kind: str, number: int) -> Exception:
        self.number = number
        if number == errno.ENOSPC and kind == WRITE:
            return apsw.FullError("disk full, says the lab")
        error = apsw.CantOpenError("says the lab") if kind == CREATE else apsw.IOError(f"{kind} failed, says the lab")
        if kind in _IOERR:
            error.extendedresult = _IOERR[kind]
        return error


class _File(apsw.VFSFile):
    def __init__(self, vfs: _Vfs, found: str, name: Any, flags: Any) -> None:
        self.vfs = vfs
        self.found = found
        super().__init__("unix", name, flags)

    def xRead(self, amount: int, offset: int) -> bytes:
        return self.vfs.shim.at_read(self.found, lambda: super(_File, self).xRead(amount, offset), self.vfs.failure)

    def xWrite(self, data: bytes, offset: int) -> None:
        half = bytes(data[: max(len(data) // 2, 1)])
        self.vfs.shim.at(
            WRITE,
            self.found,
            lambda: super(_File, self).xWrite(data, offset),
            tear=lambda: self._torn(half, offset),
            fail=self.vfs.failure,
            event=("write", self.found, offset, bytes(data)) if self.vfs.shim.events is not None else (),
        )

    def _torn(self, half: bytes, offset: int) -> None:
        super().xWrite(half, offset)
        if "short" in self.vfs.shim.plan.values():
            raise self.vfs.failure(WRITE, errno.ENOSPC)  # SQLite's own layer takes a short write for a full disk.

    def xSync(self, flags: int) -> None:
        self.vfs.shim.at(
            SYNC, self.found, lambda: super(_File, self).xSync(flags), fail=self.vfs.failure, event=(SYNC, self.found)
        )

    def xTruncate(self, size: int) -> None:
        self.vfs.shim.at(
            TRUNCATE,
            self.found,
            lambda: super(_File, self).xTruncate(size),
            fail=self.vfs.failure,
            event=(TRUNCATE, self.found, size),
        )
