"""Shared by both directions of the value codec: its limits, and the one text each value is written as.

The way in (`encoder.py`) writes these forms; the way out (`decoder.py`) reads them and writes them again
to see that it read what was written: one value has one form.
"""

from __future__ import annotations

import re
from datetime import time, timezone
from decimal import Decimal
from typing import Any, Final, Generic, NoReturn, TypeVar

import msgspec

from surefoot.errors import UsageError

T = TypeVar("T")

MAX_DEPTH: Final = 200
"""Levels of nesting in the stored form: a list is one level, a tuple two, an object of a class three."""
MAX_BYTES: Final = 256 * 1024 * 1024
MAX_CONTAINERS: Final = 5_000_000
"""Lists, dicts and objects in one value. Otherwise a few lists that hold each other twice would unfold without end."""
MAX_INT_DIGITS: Final = 100_000

MAX_INT_BITS: Final = 332_193
"""What 100,000 digits need. Large integers are stored in hexadecimal: Python reads decimals only up to
4,300 digits, and slowly."""
INT_LOW: Final = -(2**63)
INT_HIGH: Final = 2**63 - 1

TOO_DEEP: Final = (
    f"nested more than {MAX_DEPTH} levels deep in its stored form "
    "(a list or dict counts one, a tuple or set two, an object of a class three)."
)

DTYPE: Final = re.compile(
    r"\|b1|\|[iu]1|[<>][iu][248]|[<>]f[248]|[<>]c(8|16)|[<>][mM]8(\[\d*[A-Za-z]+\])?|\|S\d+|[<>]U\d+"
)
"""Numbers, times and text of fixed size. No objects, no records, no platform-dependent long double."""
ZONE_KEY: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_+\-]{0,99}(/[A-Za-z0-9_+\-]{1,99}){0,5}")

dump: Final = msgspec.json.Encoder().encode
dump_sorted: Final = msgspec.json.Encoder(order="deterministic").encode
load: Final = msgspec.json.Decoder().decode

_NEVER_DEEP: Final = 2 * MAX_DEPTH
_SURROGATES: Final = re.compile("([\ud800-\udfff])")


class Secret(Generic[T]):
    """A value that only code can read: it is recorded, shown and compared as `***`."""

    __slots__ = ("__value",)

    def __init__(self, value: T) -> None:
        self.__value = value

    def reveal(self) -> T:
        """The value itself, while this process has it."""
        if self.__value is RECORDED:
            raise UsageError(
                "this secret was recorded as *** and cannot be revealed. "
                "Read it where it is used, or pass it as an argument named in ignore=."
            )
        return self.__value

    def __repr__(self) -> str:
        return "***"

    def __format__(self, spec: str) -> str:
        return format("***", spec)

    def __copy__(self) -> Secret[T]:
        return self

    def __deepcopy__(self, memo: object) -> Secret[T]:
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a Secret cannot be pickled: the copy would be readable")


RECORDED: Final[Any] = object()


def is_too_deep(raw: bytes, tree: Any) -> bool:
    """Whether stored bytes, and the tree they stand for, nest deeper than MAX_DEPTH."""
    if len(raw) <= _NEVER_DEEP or raw.count(b"[") + raw.count(b"{") <= MAX_DEPTH:
        return False  # too few brackets to nest that deep
    level = [tree]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for node in level
            for child in (node.values() if type(node) is dict else node)
            if type(child) is dict or type(child) is list
        ]
        if not level:
            return False
    return True


def has_utf8(text: str) -> bool:
    return text.isascii() or _SURROGATES.search(text) is None


def split_text(text: str) -> list[str | int]:
    """Lone surrogates have no UTF-8: they are stored as numbers between the pieces that have."""
    return [ord(piece) if _SURROGATES.match(piece) else piece for piece in _SURROGATES.split(text) if piece]


def offset_text(zone: timezone) -> str:
    return time(tzinfo=zone).isoformat().removeprefix("00:00:00")


def decimal_text(value: Decimal) -> str:
    # The context may ask for a small "e"; the stored form does not depend on it.
    return str(value).replace("e", "E") if value.is_finite() else str(value)
