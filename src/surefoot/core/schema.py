"""Whether an answer has the form that its question asks for, decided from the recorded question.

The process that takes the answer may not have the code that asks. So the question carries a JSON Schema of the type
that it wants, made by `msgspec`, and this file checks an answer against the part of JSON Schema that such schemas use.
Unknown keywords are refused: otherwise a wrong answer would be found only when the run takes it.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re
import uuid
from collections.abc import Callable
from typing import Any, Final

import msgspec

Schema = dict[str, Any]


class Misfit(Exception):
    """The answer does not fit. `str()` says where and why; `path` is the place alone."""

    def __init__(self, message: str, path: str = "$") -> None:
        super().__init__(message)
        self.path = path


def require(answer: Any, schema: Schema) -> None:
    """Raise Misfit unless the answer, as plain JSON data, fits."""
    _fit(answer, schema, schema, "$")


def _fit(value: Any, schema: Schema, root: Schema, path: str) -> None:
    if "$ref" in schema:
        _fit(value, _referred(schema["$ref"], root), root, path)
        return
    if "anyOf" in schema:
        _fit_any(value, schema["anyOf"], root, path)
        return
    if "enum" in schema and not any(_same(value, choice) for choice in schema["enum"]):
        raise Misfit(f"{path}: must be one of {', '.join(map(repr, schema['enum']))}", path)
    if "const" in schema and not _same(value, schema["const"]):
        raise Misfit(f"{path}: must be {schema['const']!r}", path)
    kind = schema.get("type")
    if kind is None:
        return
    if kind not in _KINDS:
        raise Misfit(f"{path}: the question asks for a {kind}, which cannot be checked here", path)
    word, is_kind = _KINDS[kind]
    if not is_kind(value):
        raise Misfit(f"{path}: must be {word}, not {_word(value)}", path)
    if isinstance(value, str):
        _fit_text(value, schema, path)
    elif isinstance(value, list):
        _fit_list(value, schema, root, path)
    elif isinstance(value, dict):
        _fit_object(value, schema, root, path)
    elif not isinstance(value, bool) and isinstance(value, int | float):
        _fit_number(value, schema, path)


def _referred(reference: str, root: Schema) -> Schema:
    found = root.get("$defs", {}).get(reference.rpartition("/")[2])
    if not isinstance(found, dict):
        raise Misfit(f"the question refers to {reference!r}, which it does not define")
    return found


def _fit_any(value: Any, choices: list[Schema], root: Schema, path: str) -> None:
    misfits = []
    for choice in choices:
        try:
            _fit(value, choice, root, path)
        except Misfit as misfit:
            misfits.append(misfit)
        else:
            return
    paths = {misfit.path for misfit in misfits}
    raise Misfit(" or ".join(dict.fromkeys(map(str, misfits))), paths.pop() if len(paths) == 1 else path)


def _fit_text(value: str, schema: Schema, path: str) -> None:
    shortest, longest = schema.get("minLength", 0), schema.get("maxLength", math.inf)
    if not shortest <= len(value) <= longest:
        raise Misfit(f"{path}: must have {shortest} to {longest} characters, not {len(value)}", path)
    wanted = schema.get("format", schema.get("contentEncoding"))
    if wanted in _FORMATS:
        word, kind = _FORMATS[wanted]
        try:
            msgspec.convert(value, kind)
        except msgspec.ValidationError:
            raise Misfit(f"{path}: must be {word}", path) from None
    if "pattern" in schema and len(value) <= 10_000 and not re.search(schema["pattern"], value):
        raise Misfit(f"{path}: must match {schema['pattern']}", path)


def _fit_number(value: float, schema: Schema, path: str) -> None:
    for word, holds in _BOUNDS.items():
        if word in schema and not holds(value, schema[word]):
            raise Misfit(f"{path}: {word} is {schema[word]}, this is {value}", path)


def _fit_list(value: list[Any], schema: Schema, root: Schema, path: str) -> None:
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", math.inf):
        raise Misfit(
            f"{path}: must have {schema.get('minItems', 0)} to {schema.get('maxItems', 'any number of')} items", path
        )
    first = schema.get("prefixItems", [])
    rest = schema.get("items")
    for index, item in enumerate(value):
        inner = first[index] if index < len(first) else rest
        if isinstance(inner, dict):
            _fit(item, inner, root, f"{path}[{index}]")


def _fit_object(value: dict[str, Any], schema: Schema, root: Schema, path: str) -> None:
    known = schema.get("properties", {})
    missing = [name for name in schema.get("required", ()) if name not in value]
    if missing:
        raise Misfit(f"{path}: lacks {', '.join(missing)}", path)
    others = schema.get("additionalProperties", True)
    for name, item in value.items():
        if name in known:
            _fit(item, known[name], root, f"{path}.{name}")
        elif isinstance(others, dict):
            _fit(item, others, root, f"{path}.{name}")
        elif others is False or known:
            raise Misfit(f"{path}: has {name!r}, which is not asked for", path)


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and one == other


def _word(value: Any) -> str:
    return next((word for word, is_kind in _KINDS.values() if is_kind(value)), type(value).__name__)


_KINDS: Final[dict[str, tuple[str, Callable[[Any], bool]]]] = {
    "null": ("null", lambda value: value is None),
    "boolean": ("true or false", lambda value: isinstance(value, bool)),
    "integer": ("a whole number", lambda value: isinstance(value, int) and not isinstance(value, bool)),
    "number": ("a number", lambda value: isinstance(value, int | float) and not isinstance(value, bool)),
    "string": ("a text", lambda value: isinstance(value, str)),
    "array": ("a list", lambda value: isinstance(value, list)),
    "object": ("an object", lambda value: isinstance(value, dict)),
}
"""Type -> its name for people, and whether a value is of this type."""
_FORMATS: Final[dict[str, tuple[str, Any]]] = {
    "date-time": ("a date and time, 2026-01-31T09:30:00Z", dt.datetime),
    "date": ("a date, 2026-01-31", dt.date),
    "time": ("a time of day, 09:30:00", dt.time),
    "duration": ("a duration, PT1H30M", dt.timedelta),
    "uuid": ("a UUID", uuid.UUID),
    "decimal": ("a decimal number, as a text", decimal.Decimal),
    "base64": ("bytes in base64", bytes),
}
"""Format of a text -> its name for people, and the type that reads it."""
_BOUNDS: Final[dict[str, Callable[[float, float], bool]]] = {
    "minimum": lambda value, bound: value >= bound,
    "maximum": lambda value, bound: value <= bound,
    "exclusiveMinimum": lambda value, bound: value > bound,
    "exclusiveMaximum": lambda value, bound: value < bound,
    "multipleOf": lambda value, bound: bound != 0 and math.isclose(math.remainder(value, bound), 0.0, abs_tol=1e-12),
}
