"""The scripts of a store in Redis. Each is one step for the server: it arrives whole or not at all, as one transaction.

A script is put together from files. No value ever becomes part of its text.
"""

from __future__ import annotations

from hashlib import sha1
from importlib.resources import files
from typing import Final

from msgspec import Struct

from surefoot.store.rules import SAID_KINDS


class Script(Struct, frozen=True):
    text: bytes
    digest: bytes
    """The name by which the server knows the script, once it was sent there."""


def _script(*names: str) -> Script:
    folder = files(__package__).joinpath("scripts")
    text = "\n".join(folder.joinpath(f"{name}.lua").read_text(encoding="utf-8") for name in ("common", *names))
    raw = text.replace("$SAID", " ".join(map(str, sorted(SAID_KINDS)))).encode()
    return Script(raw, sha1(raw).hexdigest().encode())  # noqa: S324 - the server names scripts so


CREATE: Final = _script("create")
APPEND_ONE: Final = _script("write", "append_one")
APPEND: Final = _script("write", "append")
REWRITE: Final = _script("write", "rewrite")
READ: Final = _script("read")
LOOK: Final = _script("look")
LIFE: Final = _script("workers", "life")
RESERVE: Final = _script("write", "workers", "reserve")
