"""Values -> the tagged tree that is stored as JSON: exact types, or a refusal with the path of the bad field.

Every type that is stored natively has one tagger in the table below; classes come from the registry. A type
that is not there is refused, a subclass too: it would come back as something else. Refusals never
show the value, which may be a secret.
"""

from __future__ import annotations

import binascii
import sys
from collections.abc import Callable, Iterable
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from surefoot.core import failures, forms, likeness, registry
from surefoot.core.decoder import numpy_scalar, revive
from surefoot.core.forms import (
    DTYPE,
    INT_HIGH,
    INT_LOW,
    MAX_CONTAINERS,
    MAX_DEPTH,
    MAX_INT_BITS,
    MAX_INT_DIGITS,
    TOO_DEEP,
    ZONE_KEY,
    Secret,
    decimal_text,
    dump,
    dump_sorted,
    has_utf8,
    load,
    offset_text,
    split_text,
)
from surefoot.errors import ValueRejected

_ATTRIBUTE_DEPTH: Final = 20


class Refused(Exception):
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
        return f".{key}" if key.isidentifier() else f"[{_quoted(key)}]"
    return f"[{key}]" if type(key) is int and key.bit_length() < 64 else f"[<{type(key).__name__}>]"


def _quoted(key: str) -> str:
    import json  # only refusals need it; msgspec has no quotes for lone surrogates

    return json.dumps(key)


class Walk:
    """Rebuilds one value with tags. For digests, pairs and sets are sorted by their sorted form.

    It takes two frames per level, so that what is within MAX_DEPTH fits on the stack of a program that is
    itself some hundred calls deep; reading takes one.
    """

    __slots__ = ("_met", "_open", "dump", "for_digest", "lenient", "links", "ordered", "secrets")

    def __init__(
        self, *, for_digest: bool = False, lenient: bool = False, secrets: list[Secret[Any]] | None = None
    ) -> None:
        self.for_digest = for_digest
        self.lenient = lenient
        """Exceptions that cannot come back as themselves are described instead of refused."""
        self.dump = dump_sorted if for_digest else dump
        self.ordered = False
        """Whether something was met whose order is not undone by sorting the keys of objects."""
        self.secrets = secrets
        """If they are collected: then each is tagged with its number there. Such a tree is not stored."""
        self.links = 0
        """How many failures that led to others were met."""
        self._met = 0
        self._open: set[int] = set()

    def tag(self, value: Any, room: int) -> Any:
        kind = type(value)
        if kind is bool or value is None:
            return value
        if kind is str:
            return value if has_utf8(value) else {"$str": split_text(value)}
        if kind is int and INT_LOW <= value <= INT_HIGH:
            return value
        if kind is float and value - value == 0.0:
            return value
        tagger = _TAGGERS.get(kind) or _find_tagger(value, kind)
        here = id(value)
        if here in self._open:
            raise Refused("a cycle", loop=here)
        if room <= 0:
            raise Refused(TOO_DEEP)
        self._met += 1
        if self._met > MAX_CONTAINERS:
            raise Refused(f"the value holds more than {MAX_CONTAINERS} lists, dicts and objects.")
        self._open.add(here)
        try:
            return tagger(self, value, room)
        except Refused as refused:
            if refused.loop == here:
                refused.loop_starts = len(refused.steps)
            raise
        finally:
            self._open.discard(here)

    def is_open(self, value: object) -> bool:
        return id(value) in self._open


Tagger = Callable[[Walk, Any, int], Any]


# --- what each type is stored as -------------------------------------------------------------------


def _tag_int(walk: Walk, value: int, room: int) -> Any:
    if value.bit_length() > MAX_INT_BITS:
        raise Refused(f"an integer of more than {MAX_INT_DIGITS} digits.")
    return {"$int": hex(value)}


def _leaf(tag: str, written: Callable[[Any], object]) -> Tagger:
    """Of a type whose values hold no others."""
    return lambda _walk, value, _room: {tag: written(value)}


def _inside(tag: str, inner: Tagger, items: Callable[[Any], Any] = lambda value: value) -> Tagger:
    """Of a type whose values are stored as the list of their items."""
    return lambda walk, value, room: {tag: inner(walk, items(value), room - 1)}


def _base64(data: Any) -> str:
    if len(data) > forms.MAX_BYTES:
        raise Refused(f"{len(data)} bytes; the limit is {forms.MAX_BYTES}.")
    return binascii.b2a_base64(data, newline=False).decode("ascii")


def _tag_list(walk: Walk, values: Iterable[Any], room: int) -> Any:
    tagged = []
    for index, item in enumerate(values):
        try:
            tagged.append(walk.tag(item, room - 1))
        except Refused as refused:
            refused.steps.append(f"[{index}]")
            raise
    return tagged


def _tag_dict(walk: Walk, value: dict[Any, Any], room: int) -> Any:
    for key in value:
        if type(key) is not str or key[:1] == "$" or not has_utf8(key):
            return {"$dict": _tag_pairs(walk, value, room - 3)}
    tagged = {}
    for key, item in value.items():
        try:
            tagged[key] = walk.tag(item, room - 1)
        except Refused as refused:
            refused.steps.append(_step(key))
            raise
    return tagged


def _tag_elements(walk: Walk, values: Iterable[Any], room: int) -> list[Any]:
    """The elements of a set, sorted by what they are stored as."""
    tagged = []
    for item in values:
        try:
            tagged.append(walk.tag(item, room - 1))
        except Refused as refused:
            refused.steps.append("<element>")
            raise
        walk.ordered = walk.ordered or type(tagged[-1]) is dict
    return sorted(tagged, key=walk.dump)


def _tag_pairs(walk: Walk, value: dict[Any, Any], room: int) -> list[list[Any]]:
    tagged = []
    for key, item in value.items():
        try:
            name = walk.tag(key, room)
        except Refused as refused:
            refused.steps.append("<key>")
            raise
        try:
            tagged.append([name, walk.tag(item, room)])
        except Refused as refused:
            refused.steps.append(_step(key))
            raise
    walk.ordered = True
    return sorted(tagged, key=lambda pair: walk.dump(pair[0])) if walk.for_digest else tagged


def _tag_moment(walk: Walk, value: datetime | time, room: int) -> Any:
    tag = "$datetime" if type(value) is datetime else "$time"
    zone = None if value.tzinfo is None else _zone(value.tzinfo)
    if value.fold == 0 and (zone is None or (type(zone) is str and zone[0] in "+-")):
        return {tag: value.isoformat()}
    return {tag: [value.replace(tzinfo=None).isoformat(), zone, value.fold]}


def _zone(zone: tzinfo) -> str | list[str]:
    """A fixed offset, a fixed offset with a name, or the key of a zone."""
    if type(zone) is timezone:
        args: tuple[Any, ...] = zone.__getinitargs__()  # type: ignore[attr-defined] # tells whether it was given a name
        return offset_text(zone) if len(args) == 1 else [offset_text(zone), *args[1:]]
    zoneinfo = sys.modules.get("zoneinfo")
    key = getattr(zone, "key", None)
    if zoneinfo is not None and type(zone) is zoneinfo.ZoneInfo and type(key) is str and ZONE_KEY.fullmatch(key):
        return key
    raise Refused(
        f"a time zone of type {registry.full_name(type(zone))}; only fixed offsets (datetime.timezone) "
        "and zoneinfo.ZoneInfo(key) come back as they are."
    )


def _tag_secret(walk: Walk, value: Secret[Any], room: int) -> Any:
    if walk.secrets is None:
        return {"$secret": "***"}
    walk.secrets.append(value)
    return {"$secret": len(walk.secrets) - 1}


def _path_tagger(tag: str) -> Tagger:
    def tagger(walk: Walk, value: Any, room: int) -> Any:
        text = str(value)
        if type(value)(text).parts != value.parts:
            raise Refused("a path that would not come back from its own text.")
        return {tag: walk.tag(text, room - 1)}

    return tagger


def _tag_registered(walk: Walk, value: Any, room: int) -> Any:
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
        refused = Refused(f"{registry.full_name(known.cls)} cannot be stored: {error}.")
        if error.field:
            refused.steps.append(_step(error.field))
        raise refused from error.__cause__


def _array(value: Any) -> list[Any]:
    return [_dtype(value.dtype), list(value.shape), _base64(value.tobytes())]


def _tag_scalar(walk: Walk, value: Any, room: int) -> Any:
    kind = _dtype(value.dtype)
    data = value.tobytes()[: value.dtype.itemsize]  # empty text gives a byte or four, and needs none
    twin = numpy_scalar(kind, data)
    if type(twin) is not type(value) or twin.tobytes() != value.tobytes():
        raise Refused(f"{registry.full_name(type(value))} would not come back as it is; convert it first.")
    return {"$scalar": [kind, _base64(data)]}


def _dtype(dtype: Any) -> str:
    text = str(dtype.str)
    if dtype.names is not None or dtype.subdtype is not None or not DTYPE.fullmatch(text):
        raise Refused(f"a numpy dtype that cannot be stored ({dtype.kind!r}); only numbers, times and text can.")
    return text


_TAGGERS: Final[dict[type, Tagger]] = {
    int: _tag_int,
    float: _leaf("$float", repr),  # the others are stored as they are
    complex: _inside("$complex", _tag_list, lambda value: (value.real, value.imag)),
    bytes: _leaf("$bytes", _base64),
    bytearray: _leaf("$bytearray", _base64),
    list: _tag_list,
    tuple: _inside("$tuple", _tag_list),
    dict: _tag_dict,
    set: _inside("$set", _tag_elements),
    frozenset: _inside("$frozenset", _tag_elements),
    datetime: _tag_moment,
    time: _tag_moment,
    date: _leaf("$date", date.isoformat),
    timedelta: _leaf("$timedelta", lambda value: [value.days, value.seconds, value.microseconds]),
    timezone: _leaf("$timezone", _zone),
    Decimal: _leaf("$decimal", decimal_text),
    UUID: _leaf("$uuid", str),
    Secret: _tag_secret,
}

_LATE: Final[dict[tuple[str, str], Tagger]] = {
    ("pathlib", "Path"): _path_tagger("$path"),
    ("pathlib", "PurePosixPath"): _path_tagger("$posixpath"),
    ("pathlib", "PureWindowsPath"): _path_tagger("$windowspath"),
    ("fractions", "Fraction"): _inside("$fraction", _tag_list, lambda value: (value.numerator, value.denominator)),
    ("zoneinfo", "ZoneInfo"): _leaf("$timezone", _zone),
    ("numpy", "ndarray"): _leaf("$ndarray", _array),
}
"""Types of modules that surefoot does not load by itself: code that has such a value has loaded them."""


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
    raise Refused(_refusal(value, kind))


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
            "Give back, or pass on, what it is made from; a parameter can be named in ignore= of its step."
        )
    return f"cannot store a value of type {name}: {registry.advice(kind)}."


# --- exceptions ----------------------------------------------------------------------------------


def _tag_error(walk: Walk, error: BaseException, room: int) -> Any:
    if likeness.is_likeness(error):
        return describe_error(walk, error)
    try:
        return {"$error": _tag_proved(walk, error, room)}
    except Refused:
        if not walk.lenient:
            raise
        return describe_error(walk, error)


def describe_error(walk: Walk, error: BaseException, *, briefly: bool = False) -> Any:
    """A failure that will come back as `StepFailed`. `briefly`: whatever its class is like."""
    kind, message, module, bases = failures.described(error)
    payload = {"type": walk.tag(kind, MAX_DEPTH), "message": walk.tag(message, MAX_DEPTH)}
    if module and not briefly:
        payload["module"] = walk.tag(module, MAX_DEPTH)
        if bases:
            payload["bases"] = walk.tag(bases, MAX_DEPTH)
    if not briefly and (state := _small_attributes(walk, error)):
        payload["state"] = state
    if not briefly and isinstance(error, ExceptionGroup):
        payload["errors"] = _tag_list(walk, error.exceptions, MAX_DEPTH + 1)
    if notes := failures.notes(error, cap=True):
        payload["notes"] = _tag_list(walk, notes, MAX_DEPTH + 1)
    if not briefly:
        _add_story(walk, error, MAX_DEPTH, payload)
    return {"$error": payload}


def _small_attributes(walk: Walk, error: BaseException) -> dict[str, Any]:
    """What code behind an `except` looks at: a status, a code, a reason. No responses, no bodies of any length."""
    found: dict[str, Any] = {}
    for name, item in failures.attributes(error).items():
        try:
            tagged = walk.tag(item, _ATTRIBUTE_DEPTH)
        except Refused:
            continue
        if len(dump(tagged)) <= failures.MAX_ATTRIBUTE and len(found) < failures.MAX_ATTRIBUTES:
            found[name] = tagged
    return found


def _add_story(walk: Walk, error: BaseException, room: int, payload: dict[str, Any]) -> None:
    """What led to it, as failures of their own; with values no story is recorded."""
    if not walk.lenient:
        return
    linked = dict(zip(("cause", "context"), failures.story(error), strict=True))
    for how, earlier in linked.items():
        if earlier is not None and walk.links < failures.MAX_LINKS and not walk.is_open(earlier):
            walk.links += 1
            payload[how] = walk.tag(earlier, room - 2)
    if "context" in payload and error.__suppress_context__ != ("cause" in payload):
        payload["suppress"] = bool(error.__suppress_context__)


def _tag_proved(walk: Walk, error: BaseException, room: int) -> dict[str, Any]:
    """A failure that will come back as itself; refused unless a twin, revived now, tells the same."""
    payload = _tag_itself(walk, error, room)
    whole = dict(payload)
    if isinstance(error, BaseExceptionGroup) and "parts" in payload and not failures.is_custom(error):
        whole["errors"] = _tag_list(walk, error.exceptions, room - 2)
    if type(error) is BaseExceptionGroup:
        _add_story(walk, error, room, whole)
        return whole  # comes back as an ExceptionGroup; its children have been proved one by one
    try:
        twin = revive(load(dump({"$error": whole})))
        same = type(twin) is type(error) and dump(_tag_itself(walk, twin, room)) == dump(payload)
    except Exception:  # noqa: BLE001 - whatever keeps it from coming back, the answer is the same
        same = False
    if not same:
        raise Refused(
            f"{registry.full_name(type(error))} would not come back as it is: "
            "its text or its arguments differ when it is made again. Register it with encode= and decode=."
        )
    _add_story(walk, error, room, whole)
    return whole


def _tag_itself(walk: Walk, error: BaseException, room: int) -> dict[str, Any]:
    origin = failures.origin(error)
    if origin is None and not (walk.lenient and type(error) is BaseExceptionGroup):
        raise Refused(
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
        payload["notes"] = _tag_list(walk, notes, room - 2)
    return payload


def _error_parts(walk: Walk, error: BaseException, room: int) -> object:
    known = registry.BY_CLASS.get(type(error))
    if known is not None and failures.is_custom(error):
        return _taken(known, error)[0]
    parts = failures.parts_of(error)
    if walk.lenient and "state" in parts:
        # Attributes that cannot be stored (a response, a connection) are left out: the `except` clause matters more.
        parts["state"] = {name: item for name, item in parts["state"].items() if _can_tag(walk, item, room - 4)}
    return parts


def _can_tag(walk: Walk, item: Any, room: int) -> bool:
    try:
        walk.tag(item, room)
    except Refused:
        return False
    return True
