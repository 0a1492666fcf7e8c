"""The tagged tree -> values. Nothing is imported or called because data says so.

Tags are a closed table; the few imports of types below are written out. A shape that no tagger writes raises some
error; the caller (`values.decode`) reports any of them as damage. Only what depends on the code at hand (a class that
is gone, fields that changed) is a `SchemaMismatch`.
"""

from __future__ import annotations

import binascii
import math
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from functools import partial
from typing import Any, Final, TypeVar
from uuid import UUID

from surefoot.core import failures, registry
from surefoot.core.cure import Advice
from surefoot.core.forms import (
    DTYPE,
    INT_HIGH,
    INT_LOW,
    MAX_INT_BITS,
    RECORDED,
    ZONE_KEY,
    Secret,
    decimal_text,
    dump,
    has_utf8,
    offset_text,
    split_text,
)
from surefoot.errors import SchemaMismatch

T = TypeVar("T")
_FACTS: Final = frozenset({"set", "extra", "private", "value", "loose"})
"""Facts that may be recorded about a value of a class, beside its parts."""


def revive(node: Any) -> Any:
    """Turn tags back into values, in place: the tree is fresh, and no other code has it."""
    if type(node) is list:
        for index, item in enumerate(node):
            if type(item) is dict or type(item) is list:
                node[index] = revive(item)
        return node
    if type(node) is not dict:
        return node
    for key, item in node.items():
        if key[:1] == "$":
            return _revive_tag(node)
        if type(item) is dict or type(item) is list:
            node[key] = revive(item)
    return node


def _revive_tag(node: dict[str, Any]) -> Any:
    ((tag, payload),) = node.items() if len(node) == 1 else ((None, None),)
    reviver = _REVIVERS.get(tag) if tag is not None else None
    if reviver is None:
        raise ValueError("a key that starts with $ and is no tag of this format")
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
    return _exactly(text, split_text(text), payload) if not has_utf8(text) else _exactly(text, None, payload)


def _revive_int(payload: Any) -> int:
    if len(_text(payload)) > MAX_INT_BITS // 4 + 8:
        raise ValueError("an integer of too many digits")
    value = int(payload, 16)
    if INT_LOW <= value <= INT_HIGH:
        raise ValueError("not in canonical form")
    return _exactly(value, hex(value), payload)


def _revive_bytes(payload: Any) -> bytes:
    data = binascii.a2b_base64(_text(payload), strict_mode=True)
    return _exactly(data, binascii.b2a_base64(data, newline=False).decode("ascii"), payload)


def _revive_set(payload: Any) -> set[Any]:
    written = [dump(item) for item in _items(payload)]
    if written != sorted(written):
        raise ValueError("not in canonical form")
    elements = revive(payload)
    made: set[Any] = _hashed(set, elements, elements)
    return made


def _revive_dict(payload: Any) -> dict[Any, Any]:
    pairs = []
    for pair in _items(payload):
        key, value = _items(pair)
        pairs.append((revive(key), revive(value)))
    if all(type(key) is str and key[:1] != "$" and has_utf8(key) for key, _ in pairs):
        raise ValueError("not in canonical form")
    made: dict[Any, Any] = _hashed(dict, pairs, [key for key, _ in pairs])
    return made


def _hashed(kind: Callable[[Any], Any], items: list[Any], keys: list[Any]) -> Any:
    """A set or dict of what was recorded, all of it: nothing unhashable, no duplicates."""
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
    real, imaginary = revive(_items(payload))
    if type(real) is not float or type(imaginary) is not float:
        raise TypeError("floats expected")
    return complex(real, imaginary)


def _moment(cls: Any, payload: Any) -> Any:
    if type(payload) is str:
        value = cls.fromisoformat(payload)
        return _exactly(value, value.isoformat(), payload)
    text, zone, fold = _items(payload)
    naive = cls.fromisoformat(_text(text))
    needless = fold == 0 and (zone is None or (type(zone) is str and zone[:1] in ("+", "-")))
    if naive.tzinfo is not None or type(fold) is not int or fold not in (0, 1) or needless:
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
    return _exactly(zone, offset_text(zone), text)


def _zone_by_key(key: str) -> tzinfo:
    import zoneinfo  # rarely needed, and not cheap

    if len(key) > 100 or not ZONE_KEY.fullmatch(key):
        raise ValueError("not the key of a time zone")
    try:
        return zoneinfo.ZoneInfo(key)
    except (KeyError, OSError, ValueError) as error:
        raise SchemaMismatch(
            f"a recorded time is in the time zone {key!r}, which this machine does not know.",
            cures=(Advice("install", "pip install tzdata"),),
        ) from error


def _revive_text(read: Callable[[str], T], write: Callable[[T], str], payload: Any) -> T:
    value = read(_text(payload))
    return _exactly(value, write(value), payload)


def _revive_timedelta(payload: Any) -> timedelta:
    value = timedelta(*_items(payload))
    return _exactly(value, [value.days, value.seconds, value.microseconds], payload)


def _revive_secret(payload: Any) -> Secret[Any]:
    if type(payload) is Secret:
        return payload  # Put there by `values.with_secrets`: no stored bytes have one.
    return _exactly(Secret(RECORDED), "***", payload)


def _revive_fraction(payload: Any) -> Any:
    from fractions import Fraction  # rarely needed

    numerator, denominator = revive(_items(payload))
    value = Fraction(numerator, denominator)
    if (type(numerator), type(denominator)) != (int, int):
        raise TypeError("integers expected")
    return _exactly(value, (value.numerator, value.denominator), (numerator, denominator))


def _revive_path(name: str, payload: Any) -> Any:
    import pathlib  # not cheap, and plain data does not need it

    return getattr(pathlib, name)(_text(revive(payload)))


def _revive_type(payload: Any) -> Any:
    name, parts, *rest = _items(payload)
    about = revive(rest[0]) if rest else {}
    if len(rest) > 1 or type(about) is not dict:
        raise TypeError("a name, parts and facts expected")
    version = about.pop("version", 1)
    if type(version) is not int or version < 1 or not about.keys() <= _FACTS:
        raise ValueError("unknown facts about a value")
    known = registry.find(_text(name))
    if issubclass(known.cls, Exception):
        raise TypeError("an exception is stored as a failure")
    return registry.rebuild(name, revive(parts), version=version, about=about)


def _revive_error(payload: Any) -> Exception:
    if type(payload) is not dict:
        raise TypeError("object expected")
    return failures.revive(payload, revive)


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
    return numpy_scalar(_text(kind), _revive_bytes(data))


def numpy_scalar(kind: str, data: bytes) -> Any:
    numpy, dtype = _numpy_dtype(kind)
    if len(data) != dtype.itemsize:
        raise ValueError("not as many bytes as the type asks for")
    return numpy.frombuffer(data, dtype)[0] if data else dtype.type()


def _numpy_dtype(kind: Any) -> tuple[Any, Any]:
    if not DTYPE.fullmatch(_text(kind)):
        raise ValueError("not a type of number, time or text")
    try:
        import numpy  # noqa: ICN001 - only those who stored an array need it
    except ImportError as error:
        raise SchemaMismatch(
            "a recorded value is a numpy array, and numpy is not installed here.",
            cures=(Advice("install", "pip install numpy"),),
        ) from error
    dtype = numpy.dtype(kind)
    return _exactly((numpy, dtype), dtype.str, kind)


_REVIVERS: Final[dict[str, Callable[[Any], Any]]] = {
    "$str": _revive_str,
    "$int": _revive_int,
    "$float": lambda payload: {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[_text(payload)],
    "$complex": _revive_complex,
    "$bytes": _revive_bytes,
    "$bytearray": lambda payload: bytearray(_revive_bytes(payload)),
    "$tuple": lambda payload: tuple(revive(_items(payload))),
    "$dict": _revive_dict,
    "$set": _revive_set,
    "$frozenset": lambda payload: frozenset(_revive_set(payload)),
    "$datetime": partial(_moment, datetime),
    "$time": partial(_moment, time),
    "$date": partial(_revive_text, date.fromisoformat, date.isoformat),
    "$timedelta": _revive_timedelta,
    "$timezone": _revive_zone,
    "$decimal": partial(_revive_text, Decimal, decimal_text),
    "$fraction": _revive_fraction,
    "$uuid": partial(_revive_text, UUID, str),
    "$path": partial(_revive_path, "Path"),
    "$posixpath": partial(_revive_path, "PurePosixPath"),
    "$windowspath": partial(_revive_path, "PureWindowsPath"),
    "$secret": _revive_secret,
    "$type": _revive_type,
    "$error": _revive_error,
    "$ndarray": _revive_array,
    "$scalar": _revive_scalar,
}
"""Every tag there is. A tag is never given another meaning; a new meaning is a new tag."""
