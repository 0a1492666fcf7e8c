"""Values to and from PostgreSQL's binary format, by hand.

A record is a dozen values, and an append may carry hundreds of records. A driver that inspects every value to find
its type costs more than the database does. Here the type of each value is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from struct import Struct as Layout
from struct import pack
from typing import Final

from surefoot.errors import UsageError

Param = tuple[int, bytes | None]
"""A value for the server: the number of its type, and its bytes."""

_INT8: Final = Layout(">q")
_BOOL: Final = 16
_BYTEA: Final = 17
_INT: Final = 20
_TEXT: Final = 25
_FLOAT: Final = 701
_BYTEAS: Final = 1001
_TEXTS: Final = 1009
_INTS: Final = 1016
_INTERVAL: Final = 1186
_XID8: Final = 5069
_XID8S: Final = 271

_NULL: Final = b"\xff\xff\xff\xff"
_EIGHT: Final = b"\0\0\0\x08"


# --- to the server -------------------------------------------------------------------------------------------------


def integer(value: int | None) -> Param:
    return _INT, None if value is None else _INT8.pack(value)


@contextmanager
def storable() -> Iterator[None]:
    """Reports a text that is not UTF-8 as the caller's mistake."""
    try:
        yield
    except UnicodeEncodeError as error:
        raise UsageError(f"a run id or an index row cannot be stored: {error}") from error


def text(value: str) -> Param:
    with storable():
        return _TEXT, value.encode()


def raw(value: bytes | None) -> Param:
    return _BYTEA, value


def boolean(value: bool) -> Param:
    return _BOOL, b"\x01" if value else b"\0"


def number(value: float) -> Param:
    return _FLOAT, pack(">d", value)


def interval(seconds: float) -> Param:
    return _INTERVAL, pack(">qii", round(seconds * 1_000_000), 0, 0)


def transaction(value: int) -> Param:
    return _XID8, _INT8.pack(value)


def transactions(values: Sequence[int]) -> Param:
    return _XID8S, _array(_XID8, [_EIGHT + _INT8.pack(value) for value in values])


def integers(values: Sequence[int | None]) -> Param:
    return _INTS, _array(_INT, [_NULL if value is None else _EIGHT + _INT8.pack(value) for value in values])


def raws(values: Sequence[bytes | None]) -> Param:
    return _BYTEAS, _array(
        _BYTEA, [_NULL if value is None else len(value).to_bytes(4, "big") + value for value in values]
    )


def texts(values: Sequence[str]) -> Param:
    with storable():
        return _TEXTS, _array(_TEXT, [len(value).to_bytes(4, "big") + value for value in map(str.encode, values)])


def _array(kind: int, items: list[bytes]) -> bytes:
    if not items:
        return pack(">iii", 0, 0, kind)
    return pack(">iiiii", 1, 1 if _NULL in items else 0, kind, len(items), 1) + b"".join(items)


# --- from the server -----------------------------------------------------------------------------------------------


def to_int(value: bytes | None) -> int:
    """Whole numbers of any width."""
    return int.from_bytes(_there(value), "big", signed=True)


def to_int_or_none(value: bytes | None) -> int | None:
    return None if value is None else int.from_bytes(value, "big", signed=True)


def to_text(value: bytes | None) -> str:
    return _there(value).decode()


def to_bytes(value: bytes | None) -> bytes:
    return _there(value)


def to_bool(value: bytes | None) -> bool:
    return _there(value) == b"\x01"


def to_list(value: bytes | None) -> list[bytes | None]:
    """The items of an array of one dimension, as bytes."""
    data = _there(value)
    if not to_int(data[:4]):
        return []
    count, at = to_int(data[12:16]), 20
    items: list[bytes | None] = []
    for _ in range(count):
        size, at = to_int(data[at : at + 4]), at + 4
        if size < 0:
            items.append(None)
            continue
        items.append(data[at : at + size])
        at += size
    return items


def _there(value: bytes | None) -> bytes:
    if value is None:
        raise ValueError("a value that cannot be missing is NULL")
    return value
