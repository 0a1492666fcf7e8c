"""A generation as a page that a person can read, sealed; and the note of which generations there are.

The last field of a page is a seal over every byte before it. The note lists the generations with their seals, so that a
generation that was deleted, or replaced by an older or foreign one, is detected. Pages are kept on a medium: folders
(`generation_files.py`), later buckets. A medium reads and writes bytes by number; they are judged here.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from surefoot.core.cure import NEWER_VERSION, Cure, command
from surefoot.core.forms import MAX_BYTES
from surefoot.core.generation import Saved, Seen, Shelved, Watch
from surefoot.errors import CodecMissing, CorruptCheckpoint, JournalCorrupt, Stopped, StoreUnavailable, UsageError
from surefoot.store.failure import newer_format

FORMAT: Final = 1
INLINE: Final = 1024 * 1024
"""States with more bytes than this are kept in a file of their own."""
MAX_FILE: Final = 64 * 1024 * 1024
FORMAT_NAME: Final = re.compile(rb'\{"surefoot":"checkpoint/(\d{1,9})",')
HASH: Final = re.compile(rb"[0-9a-f]{64}")
NO_NOTE: Final = "the note of the newest generation is missing"
NO_SEAL: Final = "0" * 64
"""The seal before the first generation."""
TAIL_BYTES: Final = len(b',"seal":""}\n') + 64

_HIGHEST: Final = 10**17
_SEAL_DOMAIN: Final = b"surefoot/checkpoint/1\0"
_NOTE_DOMAIN: Final = b"surefoot/checkpoint-note/1\0"
_TAIL: Final = re.compile(rb',"seal":"([0-9a-f]{64})"\}\n\Z')
_NOTE_LINE: Final = re.compile(rb"([1-9][0-9]{0,17}) ([0-9a-f]{64})\n")
_NOTE_BODY: Final = re.compile(rb"(?:[1-9][0-9]{0,17} [0-9a-f]{64}\n)+")

Read = Callable[[int], bytes]
"""Reads the page of a generation, as found. `FileNotFoundError`: it is not there; `Bad`: it is no page."""


class Bad(Exception):
    """Bytes that are not what was written."""


class Blob(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The name of a large state's file, and its required content."""

    sha256: str
    """The hash of the state itself. It is also the file's name."""
    size: int
    codec: str


class Page(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of a generation's file, without its seal."""

    surefoot: str
    name: str
    generation: int
    schema: int
    saved: str
    """For people; `at` is the same in microseconds since 1970."""
    at: int
    host: str
    pid: int
    previous: str
    """The seal of the generation before."""
    watch: Watch = {}
    specs: Watch = {}
    by: str = ""
    note: str = ""
    blob: Blob | None = None
    state: msgspec.Raw = msgspec.Raw(b"")


class Prepared(msgspec.Struct, frozen=True):
    number: int
    mark: bytes
    state: bytes
    page: bytes
    blob: Blob | None
    kept: Sequence[Seen]
    found: Sequence[Seen]


_encode: Final = msgspec.json.Encoder().encode
_page_of: Final = msgspec.json.Decoder(Page).decode


class Pages:
    """The pages of one checkpoint. `where`, for messages, is their place."""

    def __init__(self, name: str, where: str) -> None:
        self._name = name
        self._where = where

    # --- the note ------------------------------------------------------------------------------------------

    def noted(self, raw: bytes) -> dict[int, str]:
        """The generations that a note lists, with their seals. `Bad`, if it is not what was written."""
        body, _, check = raw.rpartition(b"check ")
        if check != self._note_check(body) or not _NOTE_BODY.fullmatch(body):
            raise Bad("it is not what was written")
        return {int(number): seal.decode("ascii") for number, seal in _NOTE_LINE.findall(body)}

    def note(self, kept: dict[int, str]) -> bytes:
        lines = "".join(f"{number} {seal}\n" for number, seal in sorted(kept.items())).encode()
        return lines + b"check " + self._note_check(lines)

    def _note_check(self, body: bytes) -> bytes:
        return hashlib.sha256(_NOTE_DOMAIN + self._prefix() + body).hexdigest().encode() + b"\n"

    def _prefix(self) -> bytes:
        raw = self._name.encode()
        return len(raw).to_bytes(4, "big") + raw

    # --- judging -------------------------------------------------------------------------------------------

    def shelved(self, numbers: list[int], aside: list[int], note: dict[int, str], doubt: str, read: Read) -> Shelved:
        """All generations: pages with these numbers, others that were moved away (`aside`), and those in the note."""
        seen: list[Seen] = []
        before = set(note.values())
        for number in sorted({*numbers, *note}):
            one = self.judge(number, note, before, read)
            if one.sound:
                before.add(one.source[1])
            seen.append(one)
        newest = max([one.number for one in seen] + aside, default=0)
        last = max((one for one in seen if one.sound), key=lambda one: one.number, default=None)
        return Shelved(seen, newest, _mark(seen, note), doubt, NO_SEAL if last is None else last.source[1])

    def judge(self, number: int, listed: dict[int, str], before: set[str], read: Read) -> Seen:
        try:
            page, seal = self._page(read(number), number)
            _check_place(page, seal, listed, before)
        except FileNotFoundError:
            return Seen(number, why="is missing: its file is not there")
        except Stopped as error:
            return Seen(number, unknown=error)
        except Bad as error:
            return Seen(number, why=f"is damaged: {error}")
        size = page.blob.size if page.blob is not None else len(bytes(page.state))
        return Seen(
            number, at=page.at, schema=page.schema, host=page.host, pid=page.pid, size=size, watch=page.watch,
            specs=page.specs, by=page.by, note=page.note,
            source=(page, seal),
        )  # fmt: skip

    def _page(self, raw: bytes, number: int) -> tuple[Page, str]:
        """The page of a generation, if its seal holds."""
        tail = _TAIL.search(raw)
        if tail is None:
            raise Bad("it does not end with a seal")
        seal = tail[1].decode("ascii")
        if self._seal(raw[:-TAIL_BYTES]) != seal:
            raise Bad("its seal does not hold")
        self._check_format(raw, number)
        try:
            page = _page_of(raw[:-TAIL_BYTES] + b"}")
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise Bad(f"its seal holds, but it cannot be read: {error}") from error
        if page.name != self._name or page.generation != number:
            raise Bad(f"it is generation {page.generation} of checkpoint {page.name!r}")
        if (page.blob is None) is not bool(bytes(page.state)):
            raise Bad("it has no state")
        return page, seal

    def _seal(self, body: bytes) -> str:
        return hashlib.sha256(_SEAL_DOMAIN + self._prefix() + body).hexdigest()

    def _check_format(self, raw: bytes, number: int) -> None:
        found = FORMAT_NAME.match(raw)
        if found is None:
            raise Bad("it is no generation of a checkpoint")
        if int(found[1]) > FORMAT:
            raise newer_format(f"checkpoint {self._name}: generation {number}", int(found[1]), FORMAT)

    # --- what came back ------------------------------------------------------------------------------------

    def lost_state(self, seen: Seen, place: str, why: str) -> JournalCorrupt:
        """The error for a sound page whose large state cannot be read."""
        return JournalCorrupt(
            f"checkpoint {self._name}: the state of generation {seen.number} in {place} is damaged: {why}.",
            facts={"why": why},
        )

    def require_same(self, prepared: Prepared, read: Read, state: Callable[[Seen], bytes]) -> None:
        """`CorruptCheckpoint`, unless what was just written is read back whole."""
        one = self.judge(prepared.number, {}, set(), read)
        why = one.why
        if not why:
            try:
                why = "" if state(one) == prepared.state else "other bytes came back"
            except JournalCorrupt as error:
                why = error.summary
        if why:
            raise not_read_back(self._name, prepared.number, self._where, why, subject="it ")

    # --- making -------------------------------------------------------------------------------------------

    def prepare(self, found: Shelved | None, new: Saved, kept: Sequence[Seen] | None) -> Prepared:
        seen = [] if found is None else found.seen
        number = 1 if found is None else found.newest + 1
        stay = [one for one in seen if one.sound] if kept is None else list(kept)
        blob = None
        if len(new.state) > INLINE:
            blob = Blob(hashlib.sha256(new.state).hexdigest(), len(new.state), "zlib")
        if number > _HIGHEST:
            raise StoreUnavailable(
                f"{self._where}: {found.newest if found else 0} is too high a number for a generation."
            )
        fields = {
            "surefoot": f"checkpoint/{FORMAT}",
            "name": self._name,
            "generation": number,
            "schema": new.schema,
            "saved": datetime.fromtimestamp(new.at / 1e6, UTC).isoformat(),
            "at": new.at,
            "host": new.host,
            "pid": new.pid,
            "previous": NO_SEAL if found is None else found.source,
            **{name: value for name in ("watch", "specs", "by", "note") if (value := getattr(new, name))},
            **({"state": msgspec.Raw(new.state)} if blob is None else {"blob": blob}),
        }
        body = _body(fields)
        seal = self._seal(body)
        whole = body + f',"seal":"{seal}"}}\n'.encode()
        return Prepared(number, seal.encode(), new.state, whole, blob, stay, seen)


def _mark(seen: list[Seen], listed: dict[int, str]) -> bytes:
    """The seal of the newest generation, as noted; or as found, if it is not noted."""
    if not seen:
        return b"?"
    last = seen[-1]
    if last.number in listed:
        return listed[last.number].encode()
    return bytes(last.source[1].encode()) if last.sound else f"damaged {last.number}".encode()


def _check_place(page: Page, seal: str, listed: dict[int, str], before: set[str]) -> None:
    """Whether a page is the one that was saved here under its number."""
    if not listed or page.generation < min(listed):
        return  # an older remainder, or there is no note: only its own seal can be checked
    if page.generation <= max(listed):
        if listed.get(page.generation) != seal:
            raise Bad("it is not the one that was saved here under this number")
    elif page.previous not in before:  # newer than the note: saved by a process that died before it wrote the note
        raise Bad("it does not follow any generation that was saved here")


def _body(fields: dict[str, Any]) -> bytes:
    """The page as text, without its last brace: the seal follows there."""
    try:
        body = _encode(fields)
        _page_of(body)
    except (msgspec.MsgspecError, TypeError, ValueError) as error:
        raise UsageError(f"the checkpoint cannot be saved as given: {error}") from None
    if len(body) + TAIL_BYTES > MAX_FILE:
        raise UsageError(f"the witnesses of a checkpoint saw more than {MAX_FILE} bytes can hold; watch less.")
    return body[:-1]


def check_blob(blob: Blob) -> int:
    """Refuse a reference that cannot be right. Returns how many bytes the compressed state can have at most."""
    if not HASH.fullmatch(blob.sha256.encode()) or not 0 < blob.size <= MAX_BYTES:
        raise Bad("it has a reference that cannot be right")
    if blob.codec != "zlib":
        raise CodecMissing(
            f"a state is stored with codec {blob.codec!r}, which this version of surefoot does not have.",
            facts={"codec": blob.codec},
            cures=(NEWER_VERSION,),
        )
    return blob.size + blob.size // 1000 + 1024  # the most that zlib can make of it


def inflated(body: bytes, blob: Blob) -> bytes:
    inflater = zlib.decompressobj()
    try:
        # One byte more than allowed: it shows a bomb, and lets zlib read its own checksum.
        state = inflater.decompress(body, blob.size + 1)
    except zlib.error as error:
        raise Bad(f"it cannot be decompressed: {error}") from None
    if len(state) != blob.size or not inflater.eof or inflater.unused_data:
        raise Bad("it is shorter or longer than it was")
    if hashlib.sha256(state).hexdigest() != blob.sha256:
        raise Bad("it is not what was written: its content has another hash")
    return state


def not_read_back(name: str, number: int, where: str, why: str, *cures: Cure, subject: str = "") -> CorruptCheckpoint:
    """A generation was written, and reading it back gives something else."""
    return CorruptCheckpoint(
        f"checkpoint {name}: generation {number} was written to {where}, but does not read back: {subject}{why}. "
        "The older generations are as they were.",
        facts={"checkpoint": name, "generation": number, "why": why},
        cures=(command("doctor", when="the disk?"), *cures),
    )
