"""`surefoot inspect PATH`: the content of a file, without trusting or changing it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from surefoot.cli import output, progress
from surefoot.cli.flaws import DAMAGED
from surefoot.cli.options import Settings, verb
from surefoot.core.cure import ADOPT, ANY_RUN, Ask, command
from surefoot.errors import UsageError
from surefoot.view import facts, text
from surefoot.view.words import command_text

if TYPE_CHECKING:
    from surefoot.store.inspection import AnchorSeen, JournalSeen, Seen, ShelvesSeen, StoreSeen

EXPORT = b'{"header":{'
MOST_LINES = 200
URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")


@click.command()
@click.argument("place", metavar="[PATH|URL]", required=False)
@verb
def inspect(settings: Settings, place: str | None) -> int:
    """Look into a store, a checkpoint, an anchor or an export that may be damaged. Works on a copy, changes nothing.

    For each run: how many entries hold, the first bad one and where its bytes are, and what is whole beyond it.
    Exit code: 0 sound, 4 damaged, 2 nothing of surefoot's.
    """
    from surefoot.store import inspection
    from surefoot.store.open import close_all

    path = _path(settings, place)
    close_all()  # Bytes may be copied only if this process has no store open: its locks would be lost.
    if os.path.isfile(path) and inspection.first_bytes(path, len(EXPORT)) == EXPORT:
        return _export(settings, path)
    with progress.line(settings) as watch:
        seen = inspection.look(path, watch)
    output.answer(settings, facts.inspection(seen), *lines(seen))
    return 0 if seen.sound else DAMAGED


def _path(settings: Settings, place: str | None) -> str:
    """The file that is meant: a path, the file of a URL, or that of the store in force."""
    from surefoot.engine.process.config import store_url
    from surefoot.store.generation_files import folder_of
    from surefoot.store.open import backend_of

    said = place or store_url(settings.store)
    found = URL.match(said)
    if "\0" in said:
        raise UsageError("no file has such a name.")
    if found is None or (os.path.lexists(said) and place is not None):
        return said
    return folder_of(said) if found[1].lower() == "file" else backend_of(said).file(said)


def _export(settings: Settings, path: str) -> int:
    from surefoot.engine.upkeep.exports import check_file

    found = check_file(path)
    state = "whole" if found.whole else f"damaged when it was exported: {found.valid} records hold"
    told = f"{path}: run {found.run}, exported, {found.records} records, {state}"
    output.answer(settings, facts.inspected_export(path, found), told)
    return 0 if found.whole else DAMAGED


# --- for people ----------------------------------------------------------------------------------------


def lines(seen: Seen) -> Iterator[str]:
    from surefoot.store.inspection import AnchorSeen, StoreSeen

    if isinstance(seen, StoreSeen):
        yield from _store(seen)
    elif isinstance(seen, AnchorSeen):
        yield f"{seen.path}: the anchor of a surefoot store"
        yield from _anchor(seen)
    else:
        yield from _shelves(seen)


def _store(seen: StoreSeen) -> Iterator[str]:
    number = "of unknown format" if seen.format is None else f"format {seen.format}"
    log = f" and {seen.log_bytes:,} in its log" if seen.log_bytes else ""
    yield f"{seen.path}: a surefoot store, {number}, {seen.bytes:,} bytes{log}"
    yield f"  store id     {seen.store}"
    yield from (f"  note         {note}" for note in seen.notes)
    yield from (f"  damaged      {fault}" for fault in seen.faults)
    yield from _anchor(seen.anchor)
    if not seen.anchor.why:
        yield "  anchor       the journal reaches it"
    pages = [f"page {bad.page} (byte {bad.offset:,}): {bad.why}" if bad.page else bad.why for bad in seen.pages]
    yield from _some("damaged", pages)
    yield from _some("unreadable", [f"{gap.table} {_range(gap.first, gap.last)}: {gap.why}" for gap in seen.unread])
    if seen.misfits:
        yield f"  damaged      {seen.misfits} rows of the journal are no records"
    yield from (line for journal in seen.journals for line in _journal(journal))
    yield from _verdict(seen)


def _anchor(seen: AnchorSeen) -> Iterator[str]:
    for name, slot in zip(("first", "second"), seen.slots, strict=True):
        told = f"knows record {slot.pos} (seal {slot.seal[:16]}…)" if slot.holds else slot.why
        yield f"  anchor       its {name} slot {told}"
    if seen.why:
        yield f"  damaged      the anchor: {seen.why}"


def _journal(seen: JournalSeen) -> Iterator[str]:
    from surefoot.engine.upkeep.verification import called

    of = f" of {seen.head}" if seen.head is not None and seen.head != seen.entries else ""
    hold = "all hold" if seen.valid == seen.entries else f"{seen.valid} hold"
    yield f"  {called(seen.name)}: {seen.entries}{of} entries found, {hold}"
    if seen.bad is not None:
        place = seen.bad.place
        where = f"; its bytes: {place.file}, byte {place.offset:,}" if place is not None else ""
        page = f" (page {place.page})" if place is not None and place.page else ""
        yield f"    entry {seen.bad.seq} is bad: {seen.bad.why}{where}{page}"
    if seen.beyond:
        yield f"    {seen.beyond} entries beyond it are whole by themselves: evidence for effects"
    if seen.quarantined:
        yield f"    {seen.quarantined} entries were set aside by earlier fallbacks"
    yield from (f"    entry {part.entry}: part {part.part[:16]}… {part.why}" for part in seen.parts)
    if seen.parts_bad > len(seen.parts):
        yield f"    … and {seen.parts_bad - len(seen.parts)} more parts"


def _verdict(seen: StoreSeen) -> Iterator[str]:
    from surefoot.store.generation_journal import checkpoints
    from surefoot.store.threads import threads

    if seen.sound:
        yield f"sound: {len(seen.journals)} journals, {sum(one.entries for one in seen.journals):,} entries"
        return
    bad = [one.name for one in seen.journals if not one.sound]
    yield f"damaged: {len(bad)} of {len(seen.journals)} journals"
    yield "  a backup?   put it back, together with its -wal file"
    if seen.anchor.why:
        yield f"  gone?       {command_text(ADOPT, _url(seen.path))}"
    if checkpoints(bad):
        yield "  checkpoint? load() falls back to the newest generation that is whole, and says so"
    if threads(bad):
        yield "  thread?     its graph goes on from the newest checkpoint that is whole, and says so"
    if (run := _to_repair(seen, bad)) is not None:
        yield f"  go on?      {command_text(command('repair', run), _url(seen.path))}"


def _to_repair(seen: StoreSeen, bad: list[str]) -> str | Ask | None:
    """The argument for `surefoot repair`, which takes runs only: the first bad run, or any if the file is bad."""
    from surefoot.store.rules import is_run

    if any(fault.startswith("page 1,") for fault in seen.faults):
        return None  # Without it nothing can be rebuilt.
    if (run := next(filter(is_run, bad), None)) is not None:
        return run
    only_other_journals = bad and not (seen.faults or seen.pages or seen.unread or seen.misfits)
    return None if only_other_journals else ANY_RUN


def _url(path: str) -> str:
    from urllib.parse import quote

    return f"sqlite:///{quote(path)}"


def _shelves(seen: ShelvesSeen) -> Iterator[str]:
    for shelf in seen.checkpoints:
        yield f"{shelf.path}: checkpoint {shelf.name}, {len(shelf.generations)} generations as files"
        if shelf.why:
            yield f"  damaged      {shelf.why}"
        for one in shelf.generations:
            told = one.why or (
                f"is sound: {one.size:,} bytes, schema {one.schema}, saved {text.clock_time(one.at)} "
                f"by pid {one.pid} on {one.host}"
            )
            yield f"  generation {one.number} {told}"
    yield "sound" if seen.sound else "damaged: load() falls back to the newest generation that is sound"


def _range(first: int, last: int) -> str:
    return f"{first}" if first == last else f"{first} to {last}"


def _some(title: str, told: list[str]) -> Iterator[str]:
    yield from (f"  {title:<12} {line}" for line in told[:MOST_LINES])
    if len(told) > MOST_LINES:
        yield f"  {title:<12} … and {len(told) - MOST_LINES} more"
