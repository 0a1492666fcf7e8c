"""Writing and deleting files so that a crash leaves the old file or the new one, never a half, and nothing beside it.

The earlier content is noted in the journal before the first attempt, for the undo. Both effects carry the witness of
the file, so their changes are no drift; their check compares content, and answers "happened" only for content on disk.
Links are followed when writing; deleting removes the link. A file with several names is replaced under this name only.
"""

from __future__ import annotations

import errno
import os
import stat
import uuid
from contextlib import suppress
from hashlib import sha256
from os import PathLike
from typing import Any, Final
from weakref import WeakKeyDictionary

from msgspec import Struct

from surefoot.core import values
from surefoot.core.entry import ABSENT, ValueNoted
from surefoot.core.history import PastEffect
from surefoot.core.verdict import Verdict, happened, not_happened
from surefoot.engine.declare import current
from surefoot.engine.declare.context import Context
from surefoot.engine.workflow import effect
from surefoot.errors import Fatal, UsageError
from surefoot.store import disk
from surefoot.world.base import NotObservable, Witness
from surefoot.world.files import file
from surefoot.world.hashes import of_content, written
from surefoot.world.paths import as_written, file_part, shown, temporary_name
from surefoot.world.stores import refuse_store

KEPT_BYTES: Final = 1024 * 1024
"""The earlier content is kept for the undo up to this size."""

Path = str | PathLike[str]
Parts = dict[str, str]


class Before(Struct, frozen=True):
    """The content of a path before an effect changed it."""

    kind: str
    """`absent`, `file`, `link`; or `large`, `unreadable`: a file that could not be kept."""
    content: bytes = b""
    mode: int = 0


values.register(Before, name="surefoot.Before")


# -- the effects ------------------------------------------------------------------------------------


def write_file(path: Path, content: str | bytes) -> str:
    """Write a file, whole or not at all, and durable; texts as UTF-8. Returns the SHA-256 of its content.

    Where a file is, its permissions are kept. The folder must be there. Undo: what was there before comes back, up to
    1 MiB, unless somebody else has changed the file since.
    """
    _require(path)
    if not isinstance(content, str | bytes):
        raise UsageError(f"write_file: content is a str or bytes, not {type(content).__name__}")
    return _write_file(path, content, _noted("write_file", path, _target(path)))


def delete_file(path: Path) -> bool:
    """Delete a file (or a link, not what it leads to). Returns whether there was one.

    Undo: it comes back, with its permissions, up to 1 MiB, unless something else is there by now.
    """
    _require(path)
    return _delete_file(path, _noted("delete_file", path, os.fspath(path)))


def _witness(path: Path, *_: Any) -> Witness:
    return file(path)


@effect(name="write_file", touches=[_witness], not_done=ValueError, ignore="before", in_flight="0s")
def _write_file(path: Path, content: str | bytes, before: Before) -> str:
    target, raw = _target(path), _bytes(content)
    if _content(target) == raw:
        _sync(target)
    else:
        _put(target, raw)
    return sha256(raw).hexdigest()


@_write_file.check
def _(path: Path, content: str | bytes, before: Before) -> Verdict:
    """The file is renamed into place: it has the new content or not. "Happened" comes only after a sync to disk."""
    target, raw = _target(path), _bytes(content)
    if _content(target) != raw:
        return not_happened()
    _sync(target)
    _clear(target)
    return happened(sha256(raw).hexdigest())


@_write_file.undo(on_crash="check")
def _(path: Path, content: str | bytes, before: Before, result: str) -> None:
    target = _target(path)
    now = _content(target)
    if not _is_back(target, before):
        if now is None or sha256(now).hexdigest() != sha256(_bytes(content)).hexdigest():
            raise Fatal(f"{shown(target)} is not as write_file left it: somebody has changed it since, so it stays")
        _put_back(target, before)


@_write_file.undo.check
def _(path: Path, content: str | bytes, before: Before, result: str) -> Verdict:
    return _back(_target(path), before)


@effect(name="delete_file", touches=[_witness], not_done=ValueError, ignore="before", in_flight="0s")
def _delete_file(path: Path, before: Before) -> bool:
    place = os.fspath(path)
    with suppress(FileNotFoundError):
        os.unlink(place)
    _sync_folder(place)
    return before.kind != "absent"


@_delete_file.check
def _(path: Path, before: Before) -> Verdict:
    if os.path.lexists(path):
        return not_happened()
    _sync_folder(os.fspath(path))
    return happened(before.kind != "absent")


@_delete_file.undo(on_crash="check")
def _(path: Path, before: Before, result: bool) -> None:
    place = os.fspath(path)
    if not _is_back(place, before):
        if os.path.lexists(place):
            raise Fatal(f"{shown(place)} is there again: somebody has made it since it was deleted, so it stays")
        _put_back(place, before)


@_delete_file.undo.check
def _(path: Path, before: Before, result: bool) -> Verdict:
    return _back(os.fspath(path), before)


# -- how they leave the file: any other content there was written by others --------------------


def _left_by_write(before: Parts, found: Parts, path: Path, content: str | bytes, *_: Any) -> Parts:
    part = file_part(os.fspath(path))
    return {part: written(before.get(part, ABSENT), _bytes(content), found.get(part, ABSENT))}


def _left_by_delete(before: Parts, found: Parts, path: Path, *_: Any) -> Parts:
    return {file_part(os.fspath(path)): ABSENT}


def _left_by_undo(before: Parts, found: Parts, path: Path, *rest: Any) -> Parts:
    """The content that it restores, if that is known exactly: for a link, the content behind it is not."""
    part, there = file_part(os.fspath(path)), rest[-2]
    if there.kind == "file" and not os.path.islink(path):
        return {part: of_content(there.content, mode=there.mode)}
    return {part: ABSENT} if there.kind == "absent" and not os.path.islink(path) else {}


_inner: Any
for _public, _inner, _left in ((write_file, _write_file, _left_by_write), (delete_file, _delete_file, _left_by_delete)):
    vars(_public).update(spec=_inner.spec)  # Undone by its public name: sf.undo(write_file).
    _inner.spec.leaves, _inner.spec.undo.leaves = _left, _left_by_undo


# -- the earlier content ----------------------------------------------------------------------------


def _require(path: Path) -> None:
    """Refuse a wrong path before anything is recorded, so that fixed code can go on."""
    if isinstance(path, bytes):
        raise UsageError("a path is a text or a pathlib.Path here, not bytes")
    as_written(path)
    try:
        refuse_store(os.fspath(path))
    except NotObservable:
        raise UsageError(f"{os.fspath(path)!a:.200} belongs to a surefoot store; it is not yours to change") from None


def _noted(name: str, path: Path, target: str) -> Before:
    """In a run: read once, before the first attempt, and recorded with the intent. Outside: as it is now."""
    place = current.get()
    if place is None or place is current.OUTSIDE or place.inside is not None:
        return _before(target)
    session = place.session
    return session.note(place, f"{name}.before", lambda: _before_this_run(session, path, target), ValueNoted)  # type: ignore[no-any-return]


def _before_this_run(session: Context, path: Path, target: str) -> Before:
    """The present content; or, if the run itself wrote it and was rewound since, the content before that."""
    found = _before(target)
    changes = _own_changes(session).get(os.fspath(path), ())
    content = _content(target) if found.kind == "large" and changes else found.content
    for past, left in changes:
        if past.address not in session.replay.matcher.asked and left == _fingerprint(found.kind, content or b""):
            # The replaced content is on record; if it is not, no wrong content may be restored.
            found = Before("unreadable") if past.before is None else session.decoded(past.before)
            content = found.content
            if found.kind in ("large", "unreadable"):
                break
    return found


_changes: WeakKeyDictionary[Any, dict[str, list[tuple[PastEffect, str]]]] = WeakKeyDictionary()


def _own_changes(session: Any) -> dict[str, list[tuple[PastEffect, str]]]:
    """Path -> effects of ours that were executed before the run was rewound, newest first, and their content."""
    found = _changes.get(session)
    if found is None:
        found = _changes[session] = {}
        rewound = [past for past in session.state.effects() if past.rewound]
        for past in sorted(rewound, key=lambda past: past.first, reverse=True):
            name = past.address.rpartition("#")[0].rpartition("/")[2]
            args = session.decoded(past.args) if name in ("write_file", "delete_file") else None
            path, content = (args.get("path"), args.get("content", b"")) if isinstance(args, dict) else (None, None)
            if isinstance(path, str | PathLike) and isinstance(content, str | bytes):
                left = _fingerprint("absent" if name == "delete_file" else "file", _bytes(content))
                found.setdefault(os.fspath(path), []).append((past, left))
    return found


def _fingerprint(kind: str, content: bytes) -> str:
    return sha256(content).hexdigest() if kind in ("file", "large") else kind


def _before(target: str) -> Before:
    try:
        status = os.lstat(target)
    except (FileNotFoundError, NotADirectoryError):
        return Before("absent")
    if stat.S_ISLNK(status.st_mode):
        return Before("link", os.fsencode(os.readlink(target)))
    if not stat.S_ISREG(status.st_mode):
        raise UsageError(f"{shown(target)} is no file, and is left alone")
    if status.st_size > KEPT_BYTES:
        return Before("large", mode=stat.S_IMODE(status.st_mode))
    try:
        content = _content(target) or b""
    except PermissionError:
        return Before("unreadable")
    return Before("file", content, stat.S_IMODE(status.st_mode))


def _is_back(target: str, before: Before) -> bool:
    match before.kind:
        case "absent":
            return not os.path.lexists(target)
        case "link":
            return os.path.islink(target) and os.fsencode(os.readlink(target)) == before.content
        case "file":
            return not os.path.islink(target) and _content(target) == before.content
        case _:
            why = f"was larger than {KEPT_BYTES} bytes" if before.kind == "large" else "could not be read"
            raise Fatal(f"{shown(target)}: what was there before {why} and was not kept, so it cannot be brought back")


def _back(target: str, before: Before) -> Verdict:
    if not _is_back(target, before):
        return not_happened()
    _sync_folder(target)
    _clear(target)
    return happened()


def _put_back(target: str, before: Before) -> None:
    if before.kind == "file":
        _put(target, before.content, mode=before.mode)
        return
    if before.kind == "absent":
        os.unlink(target)
    else:
        os.symlink(before.content, os.fsencode(target))
    _sync_folder(target)


# -- on the disk ------------------------------------------------------------------------------------


def _target(path: Path) -> str:
    """The path that gets the content: links are followed, and stay."""
    return os.path.realpath(path) if os.path.islink(path) else os.fspath(path)


def _bytes(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content


def _content(target: str) -> bytes | None:
    try:
        with open(target, "rb") as opened:
            return opened.read()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _temporary(target: str) -> str:
    """A name of its own for each effect, in the same folder; no witness observes it."""
    key = current.inside().key or uuid.uuid4().hex
    return os.path.join(os.path.dirname(target), temporary_name(key))


def _clear(target: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(_temporary(target))


def _put(target: str, raw: bytes, *, mode: int | None = None) -> None:
    """Write beside, sync, rename, sync the folder: readers see the old file or the new one."""
    try:
        status = os.stat(target)
    except FileNotFoundError:
        status = None
    if status is not None and not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a file, so it is left alone", target)
    try:
        _put_beside(target, _temporary(target), raw, status, mode)
    except OSError as error:  # Users know the file by its own name.
        raise OSError(error.errno, error.strerror, target) from error
    _sync_folder(target)


def _put_beside(target: str, temporary: str, raw: bytes, status: os.stat_result | None, mode: int | None) -> None:
    with suppress(FileNotFoundError):
        os.unlink(temporary)  # left behind by an earlier attempt of this very effect
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        try:
            _write_all(descriptor, raw)
            _take_over(descriptor, status, mode)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.rename(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _write_all(descriptor: int, raw: bytes) -> None:
    rest = memoryview(raw)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _take_over(descriptor: int, status: os.stat_result | None, mode: int | None) -> None:
    """Copy owner and permissions of the replaced file. First the owner: changing it clears some permissions."""
    if status is not None:
        own = os.fstat(descriptor)
        if (own.st_uid, own.st_gid) != (status.st_uid, status.st_gid):
            with suppress(PermissionError):  # Only root may change the owner; the group may still be one of ours.
                os.fchown(descriptor, status.st_uid, status.st_gid)
    wanted = mode if mode is not None else None if status is None else stat.S_IMODE(status.st_mode)
    if wanted is not None:
        os.fchmod(descriptor, wanted)


def _sync(target: str) -> None:
    disk.sync(target, 0)
    _sync_folder(target)


def _sync_folder(target: str) -> None:
    """If the folder itself is gone, there is nothing to make durable."""
    with suppress(FileNotFoundError):
        disk.sync(os.path.dirname(target) or ".", os.O_DIRECTORY)
