"""Values of every type that can be stored, and what "came back as it went in" means for them."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import math
import pathlib
import uuid
import zoneinfo
from typing import Any, NamedTuple

import numpy as np

from surefoot.core import values

# ruff: noqa: DTZ001, DTZ901 - times without a zone are values too

UTC = dt.UTC
INDIA = dt.timezone(dt.timedelta(hours=5, minutes=30))
BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")


def same(one: Any, other: Any) -> bool:
    """Equal and of equal types at every depth; NaN equals NaN, 0.0 is not -0.0, order of dicts counts."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return (math.isnan(one) and math.isnan(other)) or (
            one == other and math.copysign(1, one) == math.copysign(1, other)
        )
    if isinstance(one, complex):
        return same(one.real, other.real) and same(one.imag, other.imag)
    if isinstance(one, Point):
        return same((one.x, one.y), (other.x, other.y))
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return same(list(one.items()), list(other.items()))
    if isinstance(one, (set, frozenset)):
        return sorted(map(values.encode, one)) == sorted(map(values.encode, other))
    if isinstance(one, decimal.Decimal):
        return one.as_tuple() == other.as_tuple()
    if isinstance(one, (dt.datetime, dt.time)):
        return repr(one) == repr(other) and one.fold == other.fold and one.tzinfo == other.tzinfo
    if isinstance(one, dt.timezone):
        return repr(one) == repr(other)
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    if isinstance(one, np.generic):
        return one.tobytes() == other.tobytes()
    return bool(one == other)


EXACT = [
    None, True, False, 0, 1, -1, 2**53 + 1, 2**63 - 1, -(2**63), 2**63, 2**64, -(2**63) - 1, 10**5000, -(10**5000),
    0.0, -0.0, 1.0, 5e-324, 1.7976931348623157e308, 0.1, 1e16, 1e22, float("nan"), float("inf"), float("-inf"),
    "", "text", "\0", "\ud800", "a\udfffb\ud800", "\ud83d\ude00"[:1] + "x", "\ufeff", "\u202e", "😀", "é", "\x7f\u2028", '"$x', "$5",
    b"", b"\xff\x00", bytearray(b"ab"), 1j, complex(float("nan"), -0.0), fractions.Fraction(-7, 3), fractions.Fraction(2**70, 3),
    [], [[]], (), ((),), (1, [2, (3,)]), {}, {"a": {"b": []}}, {"b": 1, "a": 2}, {1: "a", "1": "b", None: 3, (1, 2): {"x": ()}},
    {True: 1}, {2.5: 1}, {"$tuple": [1]}, {"$": 1, "a": 2}, {"$dict": [[1, 2]]}, {"\ud800": 1}, [{"$type": ["X", {}]}],
    {"lc": 1, "type": "constructor", "id": ["os", "system"]}, {"__reduce__": ["x"]}, {float("nan"): 1},
    set(), {1, 2, 3}, {"b", "a"}, {1, 1.5, "1", None, (1,)}, frozenset(), frozenset({frozenset({1}), (2, "x")}), {float("nan")},
    dt.date(1, 1, 1), dt.date.max, dt.time(), dt.time(1, 2, 3, 4), dt.time(1, tzinfo=UTC), dt.time(1, fold=1, tzinfo=BERLIN),
    dt.datetime(2024, 1, 2), dt.datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=UTC), dt.datetime(2024, 1, 2, tzinfo=INDIA),
    dt.datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN), dt.datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN, fold=1),
    dt.datetime(2024, 1, 2, tzinfo=dt.timezone(dt.timedelta(hours=1), "CET")), dt.timezone(dt.timedelta(hours=1), "UTC+01:00"), dt.datetime(2024, 1, 2, fold=1),
    dt.datetime(2024, 1, 2, tzinfo=dt.timezone(dt.timedelta(0), "GMT")), dt.datetime(2024, 1, 2, fold=1, tzinfo=UTC),
    dt.datetime(2024, 1, 2, tzinfo=dt.timezone(-dt.timedelta(hours=1, seconds=7, microseconds=3))),
    dt.datetime.min, dt.datetime.max, dt.timedelta(), dt.timedelta(-3, 5, 7), dt.timedelta.max, UTC, INDIA, BERLIN,
    *map(decimal.Decimal, ["0", "-0", "0.00", "1.10", "1E+5", "1e-10", "-1E-999", "NaN", "-NaN", "sNaN123", "Infinity", "-Infinity", "9" * 60]),
    uuid.UUID(int=0), uuid.UUID(int=2**128 - 1),
    pathlib.Path("a/b"), pathlib.Path(), pathlib.Path("/"), pathlib.Path("//x"), pathlib.Path("\udce9"), pathlib.Path("..") / "x",
    pathlib.PurePosixPath("a"), pathlib.PureWindowsPath("C:\\x\\y"), pathlib.PureWindowsPath("C:x"), pathlib.PureWindowsPath("//s/h/p"),
    np.arange(6, dtype="<i4").reshape(2, 3), np.array(1.5), np.array([], dtype="f8"), np.zeros((0, 3)), np.array([[1, 2], [3, 4]]).T,
    np.array(["a", "bc"]), np.array([b"a", b"bc"]), np.array([True, False]), np.array([1 + 2j]), np.array([float("nan"), -0.0]),
    np.array(["2024-01-01"], dtype="M8[ns]"), np.array([1, 2], dtype=">u2"), np.array([3], dtype="m8[25s]"),
    np.float64(1.5), np.float32(0.1), np.int64(-3), np.uint8(255), np.bool_(True), np.complex128(1j), np.str_("x"), np.str_(""),
    np.bytes_(b"x"), np.datetime64("2024-01-01"), np.timedelta64(3, "s"), np.float16("nan"),
]  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Point:
    x: Any
    y: Any = None


class Colour(enum.Enum):
    RED = 1
    GREEN = "green"


class Pair(NamedTuple):
    left: Any
    right: Any


for _cls in (Point, Colour, Pair):
    values.register(_cls, name=f"exact.{_cls.__name__}")
