r"""Paths as written: normalised without reading the file system, and shown so that each is different.

`./a`, `a//` and `a` are one; `a/../b` is left alone, because `a` may be a link. A name that is not UTF-8 shows its odd
bytes as `\xff`, and a backslash is shown as two, so that no two files share a part.
"""

from __future__ import annotations

import errno
import os
import re
from typing import Final

from surefoot.errors import UsageError

GONE: Final = (errno.ENOENT, errno.ENOTDIR)
"""There is nothing; with other errors it is unknown."""
_TEMPORARY: Final = re.compile(r"\.[0-9a-f]{32,64}\.surefoot-tmp")
_ESCAPED: Final = re.compile(r"\\(\\|x([89a-f][0-9a-f]))")


def as_written(path: object) -> str:
    if not isinstance(path, str | bytes | os.PathLike):
        raise UsageError(f"a path is a text or a pathlib.Path, not {path!r:.100}.")
    text = os.fsdecode(path)
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        raise UsageError(f"{text!a:.200} cannot be the name of a file.") from None
    if not text or "\0" in text:
        raise UsageError(f"{text!a:.200} cannot be the name of a file.")
    if text.startswith("~"):
        raise UsageError(f"{text!a:.200}: ~ is not expanded. Pass os.path.expanduser({text!a:.200}).")
    kept = [piece for piece in text.split("/") if piece not in ("", ".")]
    return ("/" if text.startswith("/") else "") + "/".join(kept) or "."


def shown(path: str) -> str:
    raw = os.fsencode(path.replace("\\", "\\\\"))
    return raw.decode("utf-8", "backslashreplace")


def unshown(text: str) -> str:
    """The path that `shown` showed."""
    pieces: list[bytes] = []
    at = 0
    for found in _ESCAPED.finditer(text):
        pieces += [text[at : found.start()].encode(), bytes([int(found[2], 16)]) if found[2] else b"\\"]
        at = found.end()
    return os.fsdecode(b"".join([*pieces, text[at:].encode()]))


def file_part(path: str) -> str:
    """The part of a fingerprint for a file, the same for every witness."""
    return f"file:{shown(as_written(path))}"


def temporary_name(key: str) -> str:
    """The name of a file while `effects.write_file` writes it, beside the one that it will replace."""
    return f".{key}.surefoot-tmp"


def is_temporary(path: str) -> bool:
    """A write that was cut off leaves such a file, and a later one uses it: such files are not drift."""
    return path.endswith(".surefoot-tmp") and _TEMPORARY.fullmatch(os.path.basename(path)) is not None


def is_there(path: str) -> bool:
    """Unlike `os.path.lexists`: a path that may not be read is not "not there"."""
    try:
        os.lstat(path)
    except OSError as error:
        if error.errno in GONE:
            return False
        raise
    return True
