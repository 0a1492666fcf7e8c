"""The files that match a pattern: as in a shell, with the same list on every machine.

`*`, `?` and `[…]` match within one name, `**` any number of folders. A name that starts with a dot is matched only by
a piece that does. `**` does not go through links to folders, so it always ends.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterator
from typing import Final

from surefoot.world.base import NotObservable, Pulse
from surefoot.world.paths import GONE, is_there

MOST: Final = 100_000
_MAGIC: Final = re.compile(r"[*?[]")


def has_magic(pattern: str) -> bool:
    return _MAGIC.search(pattern) is not None


def expand(pattern: str, pulse: Pulse) -> list[str]:
    """Everything that matches, folders too, in order."""
    pieces = pattern.split("/")
    base = ""
    if pieces[0] == "":
        base, pieces = "/", pieces[1:]
    found: set[str] = set()
    for path in _expand(base, tuple(pieces), pulse):
        found.add(path)
        if len(found) > MOST:
            raise NotObservable(f"more than {MOST} files match; watch less")
    return sorted(found)


def _expand(base: str, pieces: tuple[str, ...], pulse: Pulse) -> Iterator[str]:
    piece, rest = pieces[0], pieces[1:]
    if piece == "**":
        for folder in _folders(base, pulse):
            yield from _expand(folder, rest or ("*",), pulse)
    elif not has_magic(piece):
        path = base + piece
        if rest:
            yield from _expand(f"{path}/", rest, pulse)
        elif is_there(path):
            yield path
    else:
        matches = re.compile(fnmatch.translate(piece)).match
        for entry in _entries(base, pulse):
            if matches(entry.name) and (piece[0] == "." or not entry.name.startswith(".")):
                if not rest:
                    yield base + entry.name
                elif entry.is_dir():
                    yield from _expand(f"{base}{entry.name}/", rest, pulse)


def _folders(base: str, pulse: Pulse) -> Iterator[str]:
    """The folder itself and all below it."""
    todo = [base]
    while todo:
        folder = todo.pop()
        yield folder
        todo += [
            f"{folder}{entry.name}/"
            for entry in _entries(folder, pulse)
            if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False)
        ]


def _entries(folder: str, pulse: Pulse) -> list[os.DirEntry[str]]:
    pulse.beat()
    try:
        with os.scandir(folder or ".") as entries:
            return list(entries)
    except OSError as error:
        if error.errno in GONE:
            return []  # no such folder: nothing in it matches
        raise
