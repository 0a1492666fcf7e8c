"""Generations in a bucket: each an object that is created once, and a note that names those that count.

The pages are those of plain files (`generation_pages.py`). A generation is written and read back before the note names it.
The save is the replacement of the note under its ETag: of two writers with the same past, one gets it. What the note does not
name does not count. What it names and is gone is a loud fallback, and a note that is gone is never "nothing was saved".
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Final

from surefoot.core.generation import Saved, Seen, Shelved
from surefoot.errors import StoreUnavailable
from surefoot.store.bucket import Bucket, place
from surefoot.store.generation_files import file_name
from surefoot.store.generation_pages import (
    NO_NOTE,
    Bad,
    Blob,
    Page,
    Pages,
    Prepared,
    check_blob,
    inflated,
)

_FOUNDED: Final = b"founded\n"
"""The note before the first save. It is there before any generation is, so that a lost note is noticed."""


class BucketShelf:
    """The generations of one checkpoint in a bucket. It remembers what it wrote last, so that a save need not read it."""

    def __init__(self, url: str, name: str) -> None:
        self._bucket = Bucket(place(url))
        self._name = name
        self._folder = file_name(name)
        self.where = self._bucket.place.url(self._folder)
        self._pages = Pages(name, self.where)
        self._note: dict[int, str] = {}
        self._tag = ""
        """The version of the note that we know; empty: none is known, or there is none."""
        self._raw: dict[int, bytes] = {}
        """The pages of the generations that the note names."""
        self._whole: set[str] = set()
        """Blobs that were read whole."""
        self._saving = False

    @contextmanager
    def held(self) -> Iterator[None]:
        """Nothing is held: the bucket compares. What we wrote last is believed until the bucket says otherwise."""
        self._bucket.require_conditions()
        self._saving = True
        try:
            yield
        finally:
            self._saving = False

    # --- reading ---------------------------------------------------------------------------------------

    def look(self) -> Shelved | None:
        """All that the note names, each judged. None only if nothing was ever saved."""
        if not (self._saving and self._tag and self._note):
            found = self._read_note()
            if found is not None or not self._note:
                return found
        return self._pages.shelved([], [], self._note, "", self._page)

    def _read_note(self) -> Shelved | None:
        """Read the note. What can be said without a generation, if the note names none."""
        self._note, self._tag, self._raw = {}, "", {}
        held = self._bucket.get(self._key("newest"))
        if held is None:
            return Shelved([], 0, b"?", NO_NOTE) if self._bucket.names(f"{self._folder}/g/") else None
        self._tag = held.tag
        if held.data == _FOUNDED:
            return None
        try:
            self._note = self._pages.noted(held.data)
        except Bad:
            return Shelved([], 0, b"?", "the note of the newest generation is damaged")
        return None

    def _page(self, number: int) -> bytes:
        """As the note names it. `FileNotFoundError`: it is gone."""
        if number not in self._raw:
            self._raw[number] = self._written(self._note[number], number)
        return self._raw[number]

    def _written(self, seal: str, number: int) -> bytes:
        """What was just written, as it is there now."""
        held = self._bucket.get(self._generation(number, seal))
        if held is None:
            raise FileNotFoundError(number)
        return held.data

    def check(self, seen: Seen) -> None:
        """Read all of a sound generation. `Damaged` if it is not whole."""
        page: Page = seen.source[0]
        if page.blob is not None and page.blob.sha256 not in self._whole:
            self.state(seen)

    def state(self, seen: Seen) -> bytes:
        """The state of a sound generation, whole. `Damaged` if it cannot be read whole."""
        page: Page = seen.source[0]
        if page.blob is None:
            return bytes(page.state)
        why = "it is missing"
        held = self._bucket.get(self._blob(page.blob))
        try:
            if held is not None:
                state = _inflated(held.data, page.blob)
                self._whole.add(page.blob.sha256)
                return state
        except Bad as error:
            why = str(error)
        raise self._pages.lost_state(seen, self.where, why)

    def adopted_since(self, found: Shelved | None) -> bool:
        """Always false: a bucket is no store that could be adopted."""
        return False

    # --- saving ----------------------------------------------------------------------------------------

    def prepare(self, found: Shelved | None, new: Saved, kept: Sequence[Seen] | None) -> Prepared:
        return self._pages.prepare(found, new, kept)

    def write(self, prepared: Prepared) -> bool:
        """Write it and read it back whole; then let the note name it. False: another process saved meanwhile."""
        if not self._tag and not self._found():
            return False
        tag, self._tag = self._tag, ""  # Whatever breaks off from here on: the next save reads the note first.
        number, seal = prepared.number, prepared.mark.decode()
        if prepared.blob is not None:
            self._put(self._blob(prepared.blob), zlib.compress(prepared.state))
        self._put(self._generation(number, seal), prepared.page)
        self._pages.require_same(prepared, partial(self._written, seal), self.state)
        named = {one.number: one.source[1] for one in prepared.kept} | {number: seal}
        told = self._bucket.replace(self._key("newest"), self._pages.note(named), tag)
        if not told:
            return False
        before, self._note, self._tag = self._note, named, told
        self._raw = {one: raw for one, raw in self._raw.items() if one in named} | {number: prepared.page}
        self._clear(before)
        return True

    def _found(self) -> bool:
        """Write the note before the first generation. False: somebody has saved here meanwhile."""
        key = self._key("newest")
        self._tag = self._bucket.create(key, _FOUNDED)
        if not self._tag:
            held = self._bucket.get(key)
            self._tag = held.tag if held is not None and held.data == _FOUNDED else ""
        return bool(self._tag)

    def _put(self, key: str, data: bytes) -> None:
        """Its name is its content's: one that is there already is the same, or is damaged."""
        if self._bucket.create(key, data):
            return
        held = self._bucket.get(key)
        if held is not None and held.data != data and not self._bucket.replace(key, data, held.tag):
            raise StoreUnavailable(f"{self._bucket.place.url(key)}: somebody writes to it. Save again.")

    def _clear(self, before: dict[int, str]) -> None:
        """Delete what the note names no more. Left over after a failure, it does not count and harms nobody."""
        with suppress(StoreUnavailable):
            for number, seal in before.items():
                if self._note.get(number) != seal and number < min(self._note):
                    self._bucket.delete(self._generation(number, seal))

    def _key(self, name: str) -> str:
        return f"{self._folder}/{name}"

    def _generation(self, number: int, seal: str) -> str:
        return self._key(f"g/{number:018d}-{seal}.json")

    def _blob(self, blob: Blob) -> str:
        return self._key(f"blobs/{blob.sha256}")


def _inflated(data: bytes, blob: Blob) -> bytes:
    if len(data) > check_blob(blob):
        raise Bad(f"it has {len(data)} bytes, more than it can have")
    return inflated(data, blob)
