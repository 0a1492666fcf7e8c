"""Values and exceptions of many kinds: whatever a call may give back or raise, and user code may look at.

All of them can be stored, or come back as something that is promised. Each is made anew when it is asked for.
"""

from __future__ import annotations

import dataclasses
import decimal
import enum
import fractions
import pathlib
import uuid
import zoneinfo
from collections import namedtuple
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone
from typing import Any

import msgspec
import pydantic

import surefoot as sf

Point = namedtuple("Point", "x y")  # noqa: PYI024 - the untyped one is another kind
sf.register(Point, name="zoo.Point")


class Colour(enum.Enum):
    RED = "red"
    BLUE = ("b", 2)


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


class Word(enum.StrEnum):
    YES = "yes"


@dataclasses.dataclass
class Order:
    id: int
    lines: list[str] = dataclasses.field(default_factory=list)
    paid: float = -0.0


@dataclasses.dataclass(frozen=True, slots=True)
class Price:
    amount: decimal.Decimal
    per: tuple[str, ...] = ()


class Customer(pydantic.BaseModel):
    name: str
    since: datetime
    orders: list[int] = []
    nickname: str | None = None


class Loose(pydantic.BaseModel, extra="allow"):
    id: int


class Row(msgspec.Struct):
    n: int
    tags: set[str] = set()


for _cls in (Colour, Level, Rights, Word, Order, Price, Customer, Loose, Row):
    sf.register(_cls, name=f"zoo.{_cls.__name__}")

_PLAIN = {"n": 1, "words": ["a", "b"]}


def _shared() -> Any:
    one = [1]
    return {"a": one, "b": one, "c": [one, one]}


VALUES: dict[str, Callable[[], Any]] = {
    "nothing": lambda: None,
    "true": lambda: True,
    "one": lambda: 1,
    "huge": lambda: 1 << 200,
    "minus": lambda: -0.0,
    "nan": lambda: [float("nan"), float("inf"), float("-inf")],
    "float": lambda: 1e22 + 0.1,
    "complex": lambda: complex(-0.0, 2),
    "text": lambda: "žluť \N{SNOWMAN} \x00 \u202e",
    "lone": lambda: "half a \udc80 pair",
    "bytes": lambda: b"\x00\xff",
    "bytearray": lambda: bytearray(b"ab"),
    "tuple": lambda: (1, [2, (3,)], ()),
    "set": lambda: {1, "1", (1, 2), frozenset({3})},
    "dict": lambda: {"b": 1, "a": [True, 1, 1.0], "$type": "x", "": None},
    "keys": lambda: {1: "int", "1": "str", True and 2: "x", (1, "a"): "tuple", None: 0, 2.5: b""},
    "shared": _shared,
    "kept": lambda: _PLAIN,
    "deep": lambda: [[[[[[{"x": [[[1]]]}]]]]]],
    "large": lambda: {"text": "lorem ipsum " * 400, "rows": [[n, str(n)] for n in range(200)]},
    "moment": lambda: datetime(2026, 3, 1, 12, 0, 0, 1, tzinfo=UTC),
    "naive": lambda: datetime(2026, 3, 1, 12),  # noqa: DTZ001 - also such
    "fold": lambda: datetime(2026, 10, 25, 2, 30, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"), fold=1),
    "offset": lambda: [
        datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=-3, minutes=-30), "NST")),
        time(1, 2, tzinfo=timezone(timedelta(0))),
    ],
    "day": lambda: [date(2026, 2, 28), timedelta(days=-1, microseconds=1), time(23, 59, 59, 999999)],
    "decimal": lambda: [decimal.Decimal("-0.00"), decimal.Decimal("1E+5"), decimal.Decimal("NaN")],
    "fraction": lambda: fractions.Fraction(-1, 3),
    "uuid": lambda: uuid.UUID(int=7),
    "path": lambda: [pathlib.Path("a/b"), pathlib.PureWindowsPath("c:/x")],
    "enum": lambda: [Colour.RED, Colour.BLUE, Level.HIGH, Word.YES, Rights.READ | Rights.WRITE],
    "dataclass": lambda: [Order(1, ["a"]), Price(decimal.Decimal("1.10"), ("kg",))],
    "pydantic": lambda: Customer(name="ann", since=datetime(2026, 1, 1, tzinfo=UTC), orders=[1]),
    "unset": lambda: [
        Customer(name="a", since=datetime(2026, 1, 1, tzinfo=UTC)).model_fields_set,
        Loose(id=1, more=[2]),
    ],
    "struct": lambda: Row(1, {"b", "a"}),
    "point": lambda: Point(1, [2]),
    "error": lambda: [ValueError("as a value", 2), KeyError("k")],
    "range": lambda: {"of": list(range(3))},
}


# --- exceptions ----------------------------------------------------------------------------------------------------------


_UNSTORABLE = object()


class Own(Exception):
    """The plainest."""


class Outer:
    class Nested(Own):
        """Found by its qualified name."""


class Slotted(Exception):
    __slots__ = ("code", "detail")

    def __init__(self, code: int) -> None:
        super().__init__(f"code {code}")
        self.code = code
        self.detail = {"retry": [1, 2]}


class Picky(Exception):
    """Its constructor wants what its arguments do not tell."""

    def __init__(self, *, status: int, body: dict[str, Any]) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status
        self.body = body


class Forgetful(Exception):
    """Its constructor hands on nothing."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __str__(self) -> str:
        return f"because of {self.reason}"


class Talkative(Exception):
    def __init__(self, n: int) -> None:
        super().__init__(n, n + 1)

    @property
    def sum(self) -> int:
        return sum(self.args)

    def __repr__(self) -> str:
        return "Talkative!"


@dataclasses.dataclass
class Typed(Exception):
    code: int
    hints: list[str] = dataclasses.field(default_factory=list)


class Holder(Exception):
    """Has something that cannot be stored."""

    def __init__(self) -> None:
        super().__init__("holds a lock")
        self.lock = _UNSTORABLE
        self.status = 503


class Timeless(TimeoutError, Own):
    """Of two families."""


class Lookup(KeyError):
    """Its text is the repr of its argument."""


class Files(OSError):
    """Of a family whose constructor fills attributes."""


class Several(ExceptionGroup):
    """A group of its own kind."""

    def derive(self, excs: Any) -> Several:
        return Several(self.message, excs)


@sf.register(name="zoo.Known")
class Known(Exception):
    """Comes back as itself."""

    def __init__(self, code: int, why: str = "") -> None:
        super().__init__(code, why)
        self.code = code
        self.extra: list[int] = [1]


class Equal(Exception):
    """Says that it is equal to everything."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


def _caused() -> Exception:
    try:
        try:
            raise KeyError("id")
        except KeyError as error:
            raise Own("no answer") from error
    except Own as error:
        return error


def _handled() -> Exception:
    try:
        try:
            raise Slotted(7)
        except Slotted:
            raise ValueError("while that") from None
    except ValueError as error:
        return error


def _chain() -> Exception:
    found: Exception | None = None
    for n in range(5):
        try:
            raise Picky(status=n, body={"n": [n]}) if n % 2 else OSError(n, f"number {n}")
        except Exception as error:
            error.__cause__, error.__context__ = (found, None) if n % 2 else (None, found)
            error.add_note(f"note {n}")
            found = error
    assert found is not None
    return found


def _looped() -> Exception:
    one, two = Own("one"), ValueError("two")
    one.__cause__, two.__context__ = two, one
    return one


def _noted() -> Exception:
    error = Own("noted")
    error.add_note("first")
    error.add_note("second\nline")
    return error


def _noted_known() -> Exception:
    error = ValueError("noted")
    error.add_note("one")
    return error


def _mutable() -> Exception:
    error = Own("with more")
    error.history = [[1], {"a": (2,)}]  # type: ignore[attr-defined]
    error.when = datetime(2026, 1, 1, tzinfo=UTC)  # type: ignore[attr-defined]
    return error


def _attributed() -> Exception:
    error = ValueError("with more")
    error.code = 3  # type: ignore[attr-defined]
    return error


def _group() -> Exception:
    return ExceptionGroup("three", [Slotted(1), ExceptionGroup("two", [_noted(), KeyError("k")]), _caused()])


def _secret_cause() -> Exception:
    error = Own("refused")
    error.__cause__ = ValueError(sf.Secret("hidden"))
    return error


def _local() -> Exception:
    class Inner(Own):
        code = 1

    return Inner("of no module")


EXCEPTIONS: dict[str, Callable[[], BaseException]] = {
    "value": lambda: ValueError("plain", 2, ("t",)),
    "key": lambda: KeyError("k"),
    "empty": RuntimeError,
    "os": lambda: FileNotFoundError(2, "no such", "a.txt"),
    "unicode": lambda: UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
    "stop": lambda: StopAsyncIteration("early"),
    "own": lambda: Own("own", {"a": [1]}),
    "nested": lambda: Outer.Nested("nested"),
    "slotted": lambda: Slotted(4),
    "picky": lambda: Picky(status=402, body={"error": {"code": "card", "n": [1, 2]}}),
    "forgetful": lambda: Forgetful("rain"),
    "talkative": lambda: Talkative(3),
    "typed": lambda: Typed(5, ["a"]),
    "holder": Holder,
    "timeless": lambda: Timeless("two families"),
    "lookup": lambda: Lookup("k"),
    "files": lambda: Files(28, "full", "x"),
    "known": lambda: Known(4, "why"),
    "equal": lambda: Equal("equal"),
    "caused": _caused,
    "handled": _handled,
    "chain": _chain,
    "looped": _looped,
    "noted": _noted,
    "notes": _noted_known,
    "mutable": _mutable,
    "attributed": _attributed,
    "group": _group,
    "several": lambda: Several("own kind", [Own("a"), Picky(status=1, body={})]),
    "secret-cause": _secret_cause,
    "local": _local,
    "fatal": lambda: sf.Fatal("for good"),
    "not-done": lambda: sf.NotDone("nothing"),
    "import": lambda: ImportError("no module", name="x", path="y"),
    "syntax": lambda: SyntaxError("bad", ("f.py", 1, 2, "x =", 1, 3)),
    "long": lambda: Own("x" * 20_000),
}
"""What a step or an effect raises; the effects say that nothing was done."""
