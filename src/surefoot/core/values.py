"""Values <-> canonical tagged JSON that a person can read. What comes back is exactly what went in, or it is refused.

Plain data is plain JSON. Everything else is an object with one key that starts with `$`, a *tag*; a dict
of the user's whose keys start with `$` is itself tagged, so data can never pass for a tag. Types are
compared exactly: a subclass of `str` is not a `str`, and what is not known is refused with its path.

Most values are plain, so the way in first only *looks* (`_is_plain`) and hands the value to msgspec
as it is; the walk that rebuilds it with tags runs only for those that need it. Decoding a value runs no
code that the value names: classes answer by registration (`registry.py`), exceptions from closed tables
(`failures.py`), and the few imports below are written here in full.
"""

from __future__ import annotations

import binascii
import json
import math
import re
import sys
from collections.abc import Callable, Iterable
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from hashlib import sha256
from typing import Any, Final, Generic, NoReturn, TypeVar
from uuid import UUID

import msgspec

from surefoot.core import failures, registry
from surefoot.core.registry import register, register_annotations, upcast
from surefoot.errors import JournalCorrupt, SchemaMismatch, UsageError, ValueRejected

__all__ = [
    "Secret",
    "decode",
    "decode_error",
    "digest",
    "encode",
    "encode_args",
    "encode_error",
    "error_summary",
    "register",
    "register_annotations",
    "upcast",
]

T = TypeVar("T")

MAX_DEPTH: Final = 200
"""Levels of nesting in the stored form: a list is one level, a tuple two, an object of a class three."""
MAX_BYTES: Final = 256 * 1024 * 1024
MAX_INT_DIGITS: Final = 100_000

_MAX_INT_BITS: Final = 332_193
"""What 100,000 digits need. Large integers are stored in hexadecimal: Python reads decimals only up to
4,300 digits, and slowly."""
_INT_LOW: Final = -(2**63)
_INT_HIGH: Final = 2**63 - 1

_dump: Final = msgspec.json.Encoder().encode
_dump_sorted: Final = msgspec.json.Encoder(order="deterministic").encode
_load: Final = msgspec.json.Decoder().decode
_DOLLAR: Final = ord("$")
"""Looking for one byte by its number is six times as fast as looking for b"$"."""
_NEVER_DEEP: Final = 2 * MAX_DEPTH
"""So few bytes have too few brackets to nest deeper than MAX_DEPTH."""
_SURROGATES: Final = re.compile("([\ud800-\udfff])")


class Secret(Generic[T]):
    """A value for the code alone: it is recorded, shown and compared as `***`."""

    __slots__ = ("__value",)

    def __init__(self, value: T) -> None:
        self.__value = value

    def reveal(self) -> T:
        """The value itself, while this process has it."""
        if self.__value is _RECORDED:
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


_RECORDED: Final[Any] = object()


# --- the way in ----------------------------------------------------------------------------------


def encode(value: object) -> bytes:
    """The stored form of a value. Dicts keep their order."""
    try:
        kind = type(value)
        if _is_plain(value if kind is dict or kind is list else [value], MAX_DEPTH):
            raw = _dump(value)
            if (_DOLLAR not in raw or b'"$' not in raw) and len(raw) <= MAX_BYTES:
                return raw
    except (UnicodeEncodeError, RuntimeError):
        pass  # lone surrogates are tagged; changed under way, or hardly any stack left: the walk says so
    return _finished(_tagged(value))


def encode_args(bound: dict[str, object]) -> tuple[bytes, str]:
    """The stored form of a call's arguments, in order, and their digest, in which order does not count."""
    try:
        if _is_plain(bound, MAX_DEPTH):
            raw = _dump(bound)
            if (_DOLLAR not in raw or b'"$' not in raw) and len(raw) <= MAX_BYTES:
                return raw, sha256(_dump_sorted(bound)).hexdigest()
    except (UnicodeEncodeError, RuntimeError):
        pass  # as above
    return _tagged_twice(bound)


def digest(value: object) -> str:
    """SHA-256 of the value's canonical form, in which the order of dicts does not count."""
    try:
        kind = type(value)
        if _is_plain(value if kind is dict or kind is list else [value], MAX_DEPTH):
            raw = _dump_sorted(value)
            if (_DOLLAR not in raw or b'"$' not in raw) and len(raw) <= MAX_BYTES:
                return sha256(raw).hexdigest()
    except (UnicodeEncodeError, RuntimeError):
        pass  # as above
    return _tagged_twice(value)[1]


def _is_plain(value: Any, room: int) -> bool:
    """Whether a dict or list is JSON as it is: exact types, finite floats, integers of 64 bits.

    This is the hot path; it only looks. Keys that start with `$` and lone surrogates are left to the
    caller, who sees them in the bytes.
    """
    if not room:
        return False
    if type(value) is dict:
        for key in value:
            if type(key) is not str:
                return False
        value = value.values()
    for item in value:
        kind = type(item)
        if kind is str or kind is bool or item is None:
            continue
        if kind is int:
            if _INT_LOW <= item <= _INT_HIGH:
                continue
        elif kind is float:
            if item - item == 0.0:  # false for NaN and the infinities, which JSON lacks
                continue
        elif (kind is dict or kind is list) and _is_plain(item, room - 1):
            continue
        return False
    return True


def _finished(tree: Any) -> bytes:
    """The bytes of a tagged tree, within the limits."""
    raw = _dump(tree)
    if len(raw) > MAX_BYTES:
        raise ValueRejected(
            f"$: the value takes {len(raw)} bytes when stored; the limit is {MAX_BYTES}. "
            "Store the data in a file or a table and pass its name.",
            path="$",
        )
    if _is_too_deep(raw, tree):
        raise ValueRejected(f"$: {_TOO_DEEP}", path="$")
    return raw


def _tagged_twice(value: object) -> tuple[bytes, str]:
    walk = _Walk()
    tree = _tagged(value, walk)
    raw = _finished(tree)
    if walk.ordered:
        tree = _tagged(value, _Walk(for_digest=True))
    return raw, sha256(_dump_sorted(tree)).hexdigest()


def _tagged(value: object, walk: _Walk | None = None) -> Any:
    try:
        return (walk or _Walk()).tag(value, MAX_DEPTH)
    except _Refused as refused:
        raise refused.as_rejection() from refused.__cause__
    except RecursionError:
        raise ValueRejected("$: nested too deep for what is left of the call stack.", path="$") from None
    except RuntimeError as error:
        raise ValueRejected(f"$: the value changed while it was being stored ({error}).", path="$") from error


_TOO_DEEP: Final = (
    f"nested more than {MAX_DEPTH} levels deep in its stored form "
    "(a list or dict counts one, a tuple or set two, an object of a class three)."
)


class _Refused(Exception):
    """A value that cannot be stored. The path grows while the walk unwinds."""

    def __init__(self, why: str, *, loop: int = 0) -> None:
        super().__init__(why)
        self.steps: list[str] = []
        self.loop = loop
        self.loop_starts: int | None = None

    def as_rejection(self) -> ValueRejected:
        path = _path(self.steps)
        why = str(self)
        if self.loop_starts is not None:
            why = f"a cycle: {path} leads back to {_path(self.steps[self.loop_starts :])}, which contains it."
        return ValueRejected(f"{path}: {why}", path=path)


def _path(steps: list[str]) -> str:
    return "$" + "".join(reversed(steps))


def _step(key: object) -> str:
    """How a path shows the way through a dict."""
    if type(key) is str:
        return f".{key}" if key.isidentifier() else f"[{json.dumps(key)}]"
    return f"[{key}]" if type(key) is int and key.bit_length() < 64 else f"[<{type(key).__name__}>]"


class _Walk:
    """Rebuilds one value with tags. For digests, pairs and sets are sorted by their sorted form.

    It takes two frames per level, so that what is within MAX_DEPTH fits on the stack of a program that is
    itself some hundred calls deep; reading takes one.
    """

    __slots__ = ("_open", "dump", "for_digest", "lenient", "ordered")

    def __init__(self, *, for_digest: bool = False, lenient: bool = False) -> None:
        self.for_digest = for_digest
        self.lenient = lenient
        """Exceptions that cannot come back as themselves are described instead of refused."""
        self.dump = _dump_sorted if for_digest else _dump
        self.ordered = False
        """Whether something was met whose order is not undone by sorting the keys of objects."""
        self._open: set[int] = set()

    def tag(self, value: Any, room: int) -> Any:
        kind = type(value)
        if kind is bool or value is None:
            return value
        if kind is str:
            return value if _has_utf8(value) else {"$str": _split_text(value)}
        if kind is int and _INT_LOW <= value <= _INT_HIGH:
            return value
        if kind is float and value - value == 0.0:
            return value
        tagger = _TAGGERS.get(kind) or _find_tagger(value, kind)
        here = id(value)
        if here in self._open:
            raise _Refused("a cycle", loop=here)
        if room <= 0:
            raise _Refused(_TOO_DEEP)
        self._open.add(here)
        try:
            return tagger(self, value, room)
        except _Refused as refused:
            if refused.loop == here:
                refused.loop_starts = len(refused.steps)
            raise
        finally:
            self._open.discard(here)


Tagger = Callable[[_Walk, Any, int], Any]


# --- what each type is stored as -------------------------------------------------------------------


def _has_utf8(text: str) -> bool:
    return text.isascii() or _SURROGATES.search(text) is None


def _split_text(text: str) -> list[str | int]:
    """Lone surrogates have no UTF-8: they are stored as numbers between the pieces that have."""
    return [ord(piece) if _SURROGATES.match(piece) else piece for piece in _SURROGATES.split(text) if piece]


def _tag_int(walk: _Walk, value: int, room: int) -> Any:
    if value.bit_length() > _MAX_INT_BITS:
        raise _Refused(f"an integer of more than {MAX_INT_DIGITS} digits.")
    return {"$int": hex(value)}


def _tag_float(walk: _Walk, value: float, room: int) -> Any:
    return {"$float": "nan" if value != value else "inf" if value > 0 else "-inf"}  # noqa: PLR0124 - NaN alone differs from itself


def _tag_bytes(walk: _Walk, value: bytes, room: int) -> Any:
    return {"$bytes": _base64(value)}


def _tag_bytearray(walk: _Walk, value: bytearray, room: int) -> Any:
    return {"$bytearray": _base64(value)}


def _base64(data: Any) -> str:
    if len(data) > MAX_BYTES:
        raise _Refused(f"{len(data)} bytes; the limit is {MAX_BYTES}.")
    return binascii.b2a_base64(data, newline=False).decode("ascii")


def _tag_list(walk: _Walk, value: list[Any], room: int) -> Any:
    return _tag_items(walk, value, room - 1)


def _tag_tuple(walk: _Walk, value: tuple[Any, ...], room: int) -> Any:
    return {"$tuple": _tag_items(walk, value, room - 2)}


def _tag_set(walk: _Walk, value: set[Any], room: int) -> Any:
    return {"$set": _tag_elements(walk, value, room - 2)}


def _tag_frozenset(walk: _Walk, value: frozenset[Any], room: int) -> Any:
    return {"$frozenset": _tag_elements(walk, value, room - 2)}


def _tag_dict(walk: _Walk, value: dict[Any, Any], room: int) -> Any:
    for key in value:
        if type(key) is not str or key[:1] == "$" or not _has_utf8(key):
            return {"$dict": _tag_pairs(walk, value, room - 3)}
    tagged = {}
    for key, item in value.items():
        try:
            tagged[key] = walk.tag(item, room - 1)
        except _Refused as refused:
            refused.steps.append(_step(key))
            raise
    return tagged


def _tag_items(walk: _Walk, values: Iterable[Any], room: int) -> list[Any]:
    tagged = []
    for index, item in enumerate(values):
        try:
            tagged.append(walk.tag(item, room))
        except _Refused as refused:
            refused.steps.append(f"[{index}]")
            raise
    return tagged


def _tag_elements(walk: _Walk, values: Iterable[Any], room: int) -> list[Any]:
    """The elements of a set, sorted by what they are stored as."""
    tagged = []
    for item in values:
        try:
            tagged.append(walk.tag(item, room))
        except _Refused as refused:
            refused.steps.append("<element>")
            raise
        walk.ordered = walk.ordered or type(tagged[-1]) is dict
    return sorted(tagged, key=walk.dump)


def _tag_pairs(walk: _Walk, value: dict[Any, Any], room: int) -> list[list[Any]]:
    tagged = []
    for key, item in value.items():
        try:
            name = walk.tag(key, room)
        except _Refused as refused:
            refused.steps.append("<key>")
            raise
        try:
            tagged.append([name, walk.tag(item, room)])
        except _Refused as refused:
            refused.steps.append(_step(key))
            raise
    walk.ordered = True
    return sorted(tagged, key=lambda pair: walk.dump(pair[0])) if walk.for_digest else tagged


def _tag_complex(walk: _Walk, value: complex, room: int) -> Any:
    return {"$complex": _tag_items(walk, (value.real, value.imag), room - 2)}


def _tag_moment(walk: _Walk, value: datetime | time, room: int) -> Any:
    tag = "$datetime" if type(value) is datetime else "$time"
    zone = None if value.tzinfo is None else _zone(value.tzinfo)
    if value.fold == 0 and (zone is None or (type(zone) is str and zone[0] in "+-")):
        return {tag: value.isoformat()}
    return {tag: [value.replace(tzinfo=None).isoformat(), zone, value.fold]}


def _tag_zone(walk: _Walk, value: tzinfo, room: int) -> Any:
    return {"$timezone": _zone(value)}


def _zone(zone: tzinfo) -> str | list[str]:
    """A fixed offset, a fixed offset with a name, or the key of a zone."""
    if type(zone) is timezone:
        offset = _offset_text(zone)
        name = zone.tzname(None)
        return offset if zone == timezone(zone.utcoffset(None)) and name == _plain_name(zone) else [offset, name]
    zoneinfo = sys.modules.get("zoneinfo")
    key = getattr(zone, "key", None)
    if zoneinfo is not None and type(zone) is zoneinfo.ZoneInfo and type(key) is str and _ZONE_KEY.fullmatch(key):
        return key
    raise _Refused(
        f"a time zone of type {registry.full_name(type(zone))}; only fixed offsets (datetime.timezone) "
        "and zoneinfo.ZoneInfo(key) come back as they are."
    )


def _offset_text(zone: timezone) -> str:
    return time(tzinfo=zone).isoformat().removeprefix("00:00:00")


def _plain_name(zone: timezone) -> str:
    return timezone(zone.utcoffset(None)).tzname(None)


def _tag_date(walk: _Walk, value: date, room: int) -> Any:
    return {"$date": value.isoformat()}


def _tag_timedelta(walk: _Walk, value: timedelta, room: int) -> Any:
    return {"$timedelta": [value.days, value.seconds, value.microseconds]}


def _tag_decimal(walk: _Walk, value: Decimal, room: int) -> Any:
    return {"$decimal": _decimal_text(value)}


def _decimal_text(value: Decimal) -> str:
    # The context may ask for a small "e"; the stored form does not depend on it.
    return str(value).replace("e", "E") if value.is_finite() else str(value)


def _tag_uuid(walk: _Walk, value: UUID, room: int) -> Any:
    return {"$uuid": str(value)}


def _tag_secret(walk: _Walk, value: Secret[Any], room: int) -> Any:
    return {"$secret": "***"}


def _tag_fraction(walk: _Walk, value: Any, room: int) -> Any:
    return {"$fraction": _tag_items(walk, (value.numerator, value.denominator), room - 2)}


def _path_tagger(tag: str) -> Tagger:
    def tagger(walk: _Walk, value: Any, room: int) -> Any:
        text = str(value)
        if type(value)(text).parts != value.parts:
            raise _Refused("a path that would not come back from its own text.")
        return {tag: walk.tag(text, room - 1)}

    return tagger


def _tag_registered(walk: _Walk, value: Any, room: int) -> Any:
    known = registry.BY_CLASS[type(value)]
    parts, about = _taken(known, value)
    content: list[Any] = [known.name, walk.tag(parts, room - 2)]
    more: dict[str, Any] = {} if known.version == 1 else {"version": known.version}
    for key, item in about.items():
        more[key] = walk.tag(item, room - 3)
    if more:
        content.append(more)
    return {"$type": content}


def _taken(known: registry.Registered, value: Any) -> registry.Parts:
    try:
        return known.take(value)
    except registry.Unstorable as error:
        refused = _Refused(f"{registry.full_name(known.cls)} cannot be stored: {error}.")
        if error.field:
            refused.steps.append(_step(error.field))
        raise refused from error.__cause__


def _tag_array(walk: _Walk, value: Any, room: int) -> Any:
    kind = _dtype(value.dtype)
    return {"$ndarray": [kind, list(value.shape), _base64(value.tobytes())]}


def _tag_scalar(walk: _Walk, value: Any, room: int) -> Any:
    kind, data = _dtype(value.dtype), value.tobytes()
    twin = _numpy_scalar(kind, data)
    if type(twin) is not type(value) or twin.tobytes() != data:
        raise _Refused(f"{registry.full_name(type(value))} would not come back as it is; convert it first.")
    return {"$scalar": [kind, _base64(data)]}


def _dtype(dtype: Any) -> str:
    text = str(dtype.str)
    if dtype.names is not None or dtype.subdtype is not None or not _DTYPE.fullmatch(text):
        raise _Refused(f"a numpy dtype that cannot be stored ({dtype.kind!r}); only numbers, times and text can.")
    return text


_DTYPE: Final = re.compile(
    r"\|b1|\|[iu]1|[<>][iu][248]|[<>]f[248]|[<>]c(8|16)|[<>][mM]8(\[\d*[A-Za-z]+\])?|\|S\d+|[<>]U\d+"
)
"""Numbers, times and text of fixed size. No objects, no records, no platform-dependent long double."""
_ZONE_KEY: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_+\-]*(/[A-Za-z0-9_+\-]+)*")

_TAGGERS: Final[dict[type, Tagger]] = {
    int: _tag_int,
    float: _tag_float,
    complex: _tag_complex,
    bytes: _tag_bytes,
    bytearray: _tag_bytearray,
    list: _tag_list,
    tuple: _tag_tuple,
    dict: _tag_dict,
    set: _tag_set,
    frozenset: _tag_frozenset,
    datetime: _tag_moment,
    time: _tag_moment,
    date: _tag_date,
    timedelta: _tag_timedelta,
    timezone: _tag_zone,
    Decimal: _tag_decimal,
    UUID: _tag_uuid,
    Secret: _tag_secret,
}

_LATE: Final[dict[tuple[str, str], Tagger]] = {
    ("pathlib", "Path"): _path_tagger("$path"),
    ("pathlib", "PurePosixPath"): _path_tagger("$posixpath"),
    ("pathlib", "PureWindowsPath"): _path_tagger("$windowspath"),
    ("fractions", "Fraction"): _tag_fraction,
    ("zoneinfo", "ZoneInfo"): _tag_zone,
    ("numpy", "ndarray"): _tag_array,
}
"""Types of modules that surefoot does not load by itself: whoever has such a value has loaded them."""


def _find_tagger(value: Any, kind: type) -> Tagger:
    if kind in registry.BY_CLASS and not isinstance(value, BaseException):
        return _tag_registered
    if isinstance(value, BaseException):
        return _tag_error
    for (module, name), tagger in _LATE.items():
        if _is_late(kind, module, name):
            _TAGGERS[kind] = tagger
            return tagger
    numpy = sys.modules.get("numpy")
    if numpy is not None and kind.__module__ == "numpy" and isinstance(value, numpy.generic):
        return _tag_scalar
    raise _Refused(_refusal(value, kind))


def _is_late(kind: type, module: str, name: str) -> bool:
    found = getattr(sys.modules.get(module), name, None)
    if found is None:
        return False
    # Path() makes the flavour of this platform, which is the one that comes back here.
    return kind is (type(found()) if name == "Path" else found)


def _refusal(value: Any, kind: type) -> str:
    """What was met and what helps. Never the value itself: it may be a secret."""
    name = registry.full_name(kind)
    for base in (str, int, float, bytes, dict, list, tuple, set, frozenset):
        if isinstance(value, base) and registry.advice(kind).endswith("decode=...)"):
            return (
                f"{name} is not exactly {base.__name__} and would come back as something else. "
                f"Convert it with {base.__name__}(...), or {registry.advice(kind)}."
            )
    if isinstance(value, type) or kind.__module__ in ("builtins", "_thread", "_io"):
        return (
            f"cannot store a value of type {name}: it is no data. "
            "Make it inside the step, or name the parameter in ignore=."
        )
    return f"cannot store a value of type {name}: {registry.advice(kind)}."


# --- exceptions ----------------------------------------------------------------------------------


def encode_error(exc: BaseException) -> bytes:
    """The stored form of a failure. Whatever the exception is like, there is one."""
    walk = _Walk(lenient=True)
    try:
        return _finished(walk.tag(exc, MAX_DEPTH))
    except Exception:  # noqa: BLE001 - attributes and notes are user code; the failure is recorded all the same
        return _dump(_described(_Walk(), exc))


def decode_error(raw: bytes | msgspec.Raw) -> Exception:
    """The exception of a recorded failure: itself where that was proved, else `StepFailed`."""
    error = decode(raw)
    if not isinstance(error, Exception):
        raise _corrupt("it is no failure")
    return error


def error_summary(raw: bytes | msgspec.Raw) -> tuple[str, str]:
    """Type and message of a recorded failure, without reviving it."""
    try:
        tree = _load(raw)
        return failures.summary(tree["$error"], _revive)
    except Exception as error:
        raise _corrupt("it is no failure") from error


def _tag_error(walk: _Walk, error: BaseException, room: int) -> Any:
    try:
        return {"$error": _tag_proved(walk, error, room)}
    except _Refused:
        if not walk.lenient:
            raise
        return _described(walk, error)


def _described(walk: _Walk, error: BaseException) -> Any:
    """A failure that will come back as `StepFailed`."""
    payload = {
        "type": walk.tag(failures.type_name(error), MAX_DEPTH),
        "message": walk.tag(failures.message(error), MAX_DEPTH),
    }
    notes = failures.notes(error, cap=True)
    return {"$error": {**payload, "notes": _tag_items(walk, notes, MAX_DEPTH)} if notes else payload}


def _tag_proved(walk: _Walk, error: BaseException, room: int) -> dict[str, Any]:
    """A failure that will come back as itself; refused unless a twin, revived now, tells the same."""
    payload = _tag_itself(walk, error, room)
    whole = dict(payload)
    if isinstance(error, BaseExceptionGroup) and "parts" in payload and not failures.is_custom(error):
        whole["errors"] = _tag_items(walk, error.exceptions, room - 3)
    if type(error) is BaseExceptionGroup:
        return whole  # comes back as an ExceptionGroup; its children have been proved one by one
    try:
        twin = _revive(_load(_dump({"$error": whole})))
        same = type(twin) is type(error) and _dump(_tag_itself(walk, twin, room)) == _dump(payload)
    except Exception:  # noqa: BLE001 - whatever keeps it from coming back, the answer is the same
        same = False
    if not same:
        raise _Refused(
            f"{registry.full_name(type(error))} would not come back as it is: "
            "its text or its arguments differ when it is made again. Register it with encode= and decode=."
        )
    return whole


def _tag_itself(walk: _Walk, error: BaseException, room: int) -> dict[str, Any]:
    origin = failures.origin(error)
    if origin is None and not (walk.lenient and type(error) is BaseExceptionGroup):
        raise _Refused(
            f"cannot store a value of type {registry.full_name(type(error))}: {registry.advice(type(error))}."
        )
    table, name = origin or ("builtins", "BaseExceptionGroup")
    payload = {"type": walk.tag(name, room), "message": walk.tag(failures.message(error), room), "as": table}
    known = registry.BY_CLASS.get(type(error))
    if known is not None and known.version != 1:
        payload["version"] = known.version
    payload["parts"] = walk.tag(_error_parts(walk, error, room), room - 2)
    notes = failures.notes(error, cap=walk.lenient)
    if notes:
        payload["notes"] = _tag_items(walk, notes, room - 3)
    return payload


def _error_parts(walk: _Walk, error: BaseException, room: int) -> object:
    known = registry.BY_CLASS.get(type(error))
    if known is not None and failures.is_custom(error):
        return _taken(known, error)[0]
    parts = failures.parts_of(error)
    if walk.lenient and "state" in parts:
        # Attributes that cannot be stored (a response, a connection) are left out: the `except` clause matters more.
        parts["state"] = {name: item for name, item in parts["state"].items() if _can_tag(walk, item, room - 4)}
    return parts


def _can_tag(walk: _Walk, item: Any, room: int) -> bool:
    try:
        walk.tag(item, room)
    except _Refused:
        return False
    return True


# --- the way out ---------------------------------------------------------------------------------


def decode(raw: bytes | msgspec.Raw) -> object:
    """The value of a stored form: a fresh object, of exactly the types that went in."""
    data = raw if type(raw) is bytes else bytes(raw)
    try:
        tree = _load(data)
        canonical = _dump(tree) == data
        if not canonical:
            _refuse_duplicates(data)
        if len(data) > _NEVER_DEEP:
            _refuse_size(data, tree)
        if canonical and (_DOLLAR not in data or b'"$' not in data):
            return tree
        return _revive(tree)
    except (JournalCorrupt, SchemaMismatch, MemoryError):
        raise
    except RecursionError:
        if _nesting(data) <= MAX_DEPTH:
            raise  # it is the caller's stack that is exhausted, not the value that is bad
        raise _corrupt(f"it is nested more than {MAX_DEPTH} levels deep") from None
    except Exception as error:
        raise _corrupt(f"{type(error).__name__}: {str(error)[:200]}") from error


def _refuse_size(data: bytes, tree: Any) -> None:
    if len(data) > MAX_BYTES:
        raise _corrupt(f"it takes {len(data)} bytes; the limit is {MAX_BYTES}")
    if _is_too_deep(data, tree):
        raise _corrupt(f"it is nested more than {MAX_DEPTH} levels deep")


def _corrupt(why: str) -> JournalCorrupt:
    return JournalCorrupt(f"a recorded value cannot be read: {why}.")


def _is_too_deep(raw: bytes, tree: Any) -> bool:
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


def _nesting(raw: bytes) -> int:
    """How deep the brackets of a JSON text go, counted without recursion."""
    deepest = depth = 0
    for bracket in re.finditer(rb'"(?:[^"\\]|\\.)*"|[\[{\]}]', raw, re.DOTALL):
        if bracket[0] in (b"[", b"{"):
            depth += 1
            deepest = max(deepest, depth)
        elif bracket[0] in (b"]", b"}"):
            depth -= 1
    return deepest


def _refuse_duplicates(data: bytes) -> None:
    """Bytes that are not canonical may still mean one thing only. A key given twice does not."""

    def pairs(found: list[tuple[str, Any]]) -> None:
        if len({key for key, _ in found}) != len(found):
            raise _corrupt("a key is given twice")

    json.loads(data, object_pairs_hook=pairs)


def _revive(node: Any) -> Any:
    """Turn tags back into values, in place: the tree is fresh and nobody else has it."""
    if type(node) is list:
        for index, item in enumerate(node):
            if type(item) is dict or type(item) is list:
                node[index] = _revive(item)
        return node
    if type(node) is not dict:
        return node
    for key, item in node.items():
        if key[:1] == "$":
            return _revive_tag(node)
        if type(item) is dict or type(item) is list:
            node[key] = _revive(item)
    return node


def _revive_tag(node: dict[str, Any]) -> Any:
    ((tag, payload),) = node.items() if len(node) == 1 else ((None, None),)
    reviver = _REVIVERS.get(tag) if tag is not None else None
    if reviver is None:
        raise _corrupt("it has a key that starts with $ and is no tag of this format")
    return reviver(payload)


def _text(payload: Any) -> str:
    if type(payload) is not str:
        raise TypeError("text expected")
    return payload


def _items(payload: Any) -> list[Any]:
    if type(payload) is not list:
        raise TypeError("list expected")
    return payload


def _exactly(value: T, written: object, found: object) -> T:
    """The value, if it is written as it was found: one value has one form."""
    if type(written) is not type(found) or written != found:
        raise ValueError("not in canonical form")
    return value


def _revive_str(payload: Any) -> str:
    pieces = [chr(piece) if type(piece) is int else _text(piece) for piece in _items(payload)]
    text = "".join(pieces)
    return _exactly(text, _split_text(text), payload) if not _has_utf8(text) else _exactly(text, None, payload)


def _revive_int(payload: Any) -> int:
    if len(_text(payload)) > _MAX_INT_BITS // 4 + 8:
        raise ValueError("an integer of too many digits")
    value = int(payload, 16)
    if _INT_LOW <= value <= _INT_HIGH:
        raise ValueError("not in canonical form")
    return _exactly(value, hex(value), payload)


def _revive_float(payload: Any) -> float:
    return {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}[_text(payload)]


def _revive_bytes(payload: Any) -> bytes:
    data = binascii.a2b_base64(_text(payload), strict_mode=True)
    return _exactly(data, binascii.b2a_base64(data, newline=False).decode("ascii"), payload)


def _revive_bytearray(payload: Any) -> bytearray:
    return bytearray(_revive_bytes(payload))


def _revive_tuple(payload: Any) -> tuple[Any, ...]:
    return tuple(_revive(_items(payload)))


def _revive_set(payload: Any) -> set[Any]:
    written = [_dump(item) for item in _items(payload)]
    if written != sorted(written):
        raise ValueError("not in canonical form")
    elements = _revive(payload)
    made: set[Any] = _hashed(set, elements, elements)
    return made


def _revive_frozenset(payload: Any) -> frozenset[Any]:
    return frozenset(_revive_set(payload))


def _revive_dict(payload: Any) -> dict[Any, Any]:
    pairs = []
    for pair in _items(payload):
        key, value = _items(pair)
        pairs.append((_revive(key), _revive(value)))
    if all(type(key) is str and key[:1] != "$" and _has_utf8(key) for key, _ in pairs):
        raise ValueError("not in canonical form")
    made: dict[Any, Any] = _hashed(dict, pairs, [key for key, _ in pairs])
    return made


def _hashed(kind: Callable[[Any], Any], items: list[Any], keys: list[Any]) -> Any:
    """A set or dict of what was recorded, all of it: nothing unhashable, nothing that is there twice."""
    try:
        made = kind(items)
        whole = len(made) == len(keys)
    except Exception:  # noqa: BLE001 - __hash__ and __eq__ of registered classes are user code
        whole = False
    if whole:
        return made
    changed = next((type(key) for key in keys if type(key) in registry.BY_CLASS), None)
    if changed is not None:
        raise SchemaMismatch(
            f"a recorded set or dict does not come back whole: {registry.full_name(changed)} "
            "hashes or compares in another way than when it was recorded."
        )
    raise ValueError("keys are unhashable or there twice")


def _revive_complex(payload: Any) -> complex:
    real, imaginary = _revive(_items(payload))
    if type(real) is not float or type(imaginary) is not float:
        raise TypeError("floats expected")
    return complex(real, imaginary)


def _revive_datetime(payload: Any) -> Any:
    return _moment(datetime, payload)


def _revive_time(payload: Any) -> Any:
    return _moment(time, payload)


def _moment(cls: Any, payload: Any) -> Any:
    if type(payload) is str:
        value = cls.fromisoformat(payload)
        return _exactly(value, value.isoformat(), payload)
    text, zone, fold = _items(payload)
    naive = cls.fromisoformat(_text(text))
    if naive.tzinfo is not None or type(fold) is not int or fold not in (0, 1):
        raise ValueError("not in canonical form")
    _exactly(naive, naive.isoformat(), text)
    return naive.replace(tzinfo=None if zone is None else _revive_zone(zone), fold=fold)


def _revive_zone(payload: Any) -> tzinfo:
    if type(payload) is list:
        offset, name = payload
        plain = _fixed_offset(_text(offset))
        return timezone(plain.utcoffset(None), _text(name))
    if _text(payload)[:1] in ("+", "-"):
        return _fixed_offset(payload)
    return _zone_by_key(payload)


def _fixed_offset(text: str) -> timezone:
    zone = time.fromisoformat("00:00:00" + text).tzinfo
    if type(zone) is not timezone:
        raise ValueError("not an offset")
    return _exactly(zone, _offset_text(zone), text)


def _zone_by_key(key: str) -> tzinfo:
    import zoneinfo  # rarely needed, and not cheap

    if len(key) > 100 or not _ZONE_KEY.fullmatch(key):
        raise ValueError("not the key of a time zone")
    try:
        return zoneinfo.ZoneInfo(key)
    except (KeyError, OSError, ValueError) as error:
        raise SchemaMismatch(
            f"a recorded time is in the time zone {key!r}, which this machine does not know.",
            cures=(("install", "pip install tzdata"),),
        ) from error


def _revive_date(payload: Any) -> date:
    value = date.fromisoformat(_text(payload))
    return _exactly(value, value.isoformat(), payload)


def _revive_timedelta(payload: Any) -> timedelta:
    days, seconds, micros = _items(payload)
    value = timedelta(days, seconds, micros)
    return _exactly(value, [value.days, value.seconds, value.microseconds], [days, seconds, micros])


def _revive_decimal(payload: Any) -> Decimal:
    value = Decimal(_text(payload))
    return _exactly(value, _decimal_text(value), payload)


def _revive_uuid(payload: Any) -> UUID:
    value = UUID(_text(payload))
    return _exactly(value, str(value), payload)


def _revive_secret(payload: Any) -> Secret[Any]:
    return _exactly(Secret(_RECORDED), "***", payload)


def _revive_fraction(payload: Any) -> Any:
    from fractions import Fraction  # rarely needed

    numerator, denominator = _revive(_items(payload))
    value = Fraction(numerator, denominator)
    if (type(numerator), type(denominator)) != (int, int):
        raise TypeError("integers expected")
    return _exactly(value, (value.numerator, value.denominator), (numerator, denominator))


def _revive_path(payload: Any) -> Any:
    import pathlib  # not cheap, and plain data does without

    return pathlib.Path(_text(_revive(payload)))


def _revive_posixpath(payload: Any) -> Any:
    import pathlib  # as above

    return pathlib.PurePosixPath(_text(_revive(payload)))


def _revive_windowspath(payload: Any) -> Any:
    import pathlib  # as above

    return pathlib.PureWindowsPath(_text(_revive(payload)))


def _revive_type(payload: Any) -> Any:
    name, parts, *rest = _items(payload)
    about = _revive(rest[0]) if rest else {}
    if len(rest) > 1 or type(about) is not dict:
        raise TypeError("a name, parts and facts expected")
    version = about.pop("version", 1)
    if type(version) is not int or version < 1 or not about.keys() <= {"set", "extra", "private"}:
        raise ValueError("unknown facts about a value")
    known = registry.find(_text(name))
    if known.error:
        raise TypeError("an exception is stored as a failure")
    return registry.rebuild(name, _revive(parts), version=version, about=about)


def _revive_error(payload: Any) -> Exception:
    if type(payload) is not dict:
        raise TypeError("object expected")
    return failures.revive(payload, _revive)


def _revive_array(payload: Any) -> Any:
    kind, shape, data = _items(payload)
    raw = _revive_bytes(data)
    if not all(type(size) is int and size >= 0 for size in _items(shape)):
        raise ValueError("not a shape")
    numpy, dtype = _numpy_dtype(kind)
    if len(raw) != math.prod(shape) * dtype.itemsize:
        raise ValueError("not as many bytes as the shape asks for")
    return numpy.frombuffer(raw, dtype).reshape(shape).copy() if raw else numpy.empty(shape, dtype)


def _revive_scalar(payload: Any) -> Any:
    kind, data = _items(payload)
    return _numpy_scalar(_text(kind), _revive_bytes(data))


def _numpy_scalar(kind: str, data: bytes) -> Any:
    numpy, dtype = _numpy_dtype(kind)
    if len(data) != dtype.itemsize:
        raise ValueError("not as many bytes as the type asks for")
    return numpy.frombuffer(data, dtype)[0] if data else dtype.type()


def _numpy_dtype(kind: Any) -> tuple[Any, Any]:
    if not _DTYPE.fullmatch(_text(kind)):
        raise ValueError("not a type of number, time or text")
    try:
        import numpy  # noqa: ICN001 - only those who stored an array need it
    except ImportError as error:
        raise SchemaMismatch(
            "a recorded value is a numpy array, and numpy is not installed here.",
            cures=(("install", "pip install numpy"),),
        ) from error
    dtype = numpy.dtype(kind)
    return _exactly((numpy, dtype), dtype.str, kind)


_REVIVERS: Final[dict[str, Callable[[Any], Any]]] = {
    "$str": _revive_str,
    "$int": _revive_int,
    "$float": _revive_float,
    "$complex": _revive_complex,
    "$bytes": _revive_bytes,
    "$bytearray": _revive_bytearray,
    "$tuple": _revive_tuple,
    "$dict": _revive_dict,
    "$set": _revive_set,
    "$frozenset": _revive_frozenset,
    "$datetime": _revive_datetime,
    "$time": _revive_time,
    "$date": _revive_date,
    "$timedelta": _revive_timedelta,
    "$timezone": _revive_zone,
    "$decimal": _revive_decimal,
    "$fraction": _revive_fraction,
    "$uuid": _revive_uuid,
    "$path": _revive_path,
    "$posixpath": _revive_posixpath,
    "$windowspath": _revive_windowspath,
    "$secret": _revive_secret,
    "$type": _revive_type,
    "$error": _revive_error,
    "$ndarray": _revive_array,
    "$scalar": _revive_scalar,
}
"""Every tag there is. A tag is never given another meaning; a new meaning is a new tag."""
