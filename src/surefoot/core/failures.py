"""Exceptions as data: recorded with type, message, arguments and notes, and revived from closed tables.

An exception comes back as itself only if that was proved when it was recorded: built-in ones, surefoot's
own and registered ones whose revived twin tells the same. Everything else comes back as `StepFailed`, the
first time as well as on replay, so that an `except` clause does the same after a crash as before it.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from typing import Any, Final

from surefoot import errors
from surefoot.core import registry
from surefoot.errors import StepFailed

MAX_MESSAGE: Final = 10_000
MAX_NOTES: Final = 100

BUILTINS: Final[dict[str, type[Exception]]] = {
    name: cls
    for name, cls in vars(builtins).items()
    if isinstance(cls, type) and issubclass(cls, Exception) and cls.__name__ == name
}
OWN: Final[dict[str, type[Exception]]] = {
    cls.__name__: cls
    for cls in (
        errors.SurefootError,
        errors.UsageError,
        errors.RunConflict,
        errors.NotFound,
        errors.ValueRejected,
        errors.Fatal,
        errors.NotDone,
        errors.RetryAfter,
        errors.HttpError,
        errors.HttpUnsure,
        errors.StepFailed,
        errors.Cancelled,
        errors.Fenced,
        errors.StoreUnavailable,
        errors.StoreFull,
    )
}
BUILTINS["BaseExceptionGroup"] = ExceptionGroup  # what it held besides exceptions comes back as StepFailed

_FIELDS: Final = frozenset({"type", "message", "as", "version", "parts", "errors", "notes"})
_TABLES: Final[dict[str, Mapping[str, type[Exception]]]] = {"builtins": BUILTINS, "surefoot": OWN}


def origin(error: BaseException) -> tuple[str, str] | None:
    """Which table the exception's class comes back from, and its name there; None if from none."""
    cls = type(error)
    for table, classes in _TABLES.items():
        if classes.get(cls.__name__) is cls:
            return table, cls.__name__
    known = registry.BY_CLASS.get(cls)
    return ("registered", known.name) if known is not None else None


def type_name(error: BaseException) -> str:
    known = origin(error)
    return known[1] if known is not None else registry.default_name(type(error))


def message(error: BaseException) -> str:
    """What the exception says, whatever its __str__ does."""
    try:
        text = str(error)
    except Exception as broken:  # noqa: BLE001 - user code; the failure must be recorded all the same
        return f"<its __str__ raised {type(broken).__name__}>"
    return capped(text)


def notes(error: BaseException, *, cap: bool) -> list[str]:
    try:
        found = getattr(error, "__notes__", None)
    except Exception:  # noqa: BLE001 - user code, as above
        return []
    if not isinstance(found, (list, tuple)):
        return []
    texts = [note for note in found if type(note) is str]
    return [capped(note) for note in texts[:MAX_NOTES]] if cap else texts


def capped(text: str) -> str:
    if len(text) <= MAX_MESSAGE:
        return text
    return f"{text[:MAX_MESSAGE]}... [cut: {len(text)} characters]"


def is_custom(error: BaseException) -> bool:
    """Whether the class was registered with functions of its own."""
    known = registry.BY_CLASS.get(type(error))
    return known is not None and known.take is not registry.take_error


def parts_of(error: BaseException) -> dict[str, Any]:
    """Arguments and attributes; without the children of a group, which are recorded as failures of their own."""
    parts: dict[str, Any] = registry.take_error(error)[0]  # type: ignore[assignment]
    if isinstance(error, BaseExceptionGroup):
        parts["args"] = [error.message]
    return parts


def revive(payload: dict[str, Any], value: Callable[[Any], Any]) -> Exception:
    """The exception of a recorded failure. `value` revives what is nested in it."""
    name, text = summary(payload, value)
    noted = value(payload.get("notes", []))
    if not payload.keys() <= _FIELDS or type(noted) is not list:
        raise TypeError
    table = payload.get("as")
    made = StepFailed(name, text) if table is None else _revive_as(table, name, payload, value)
    for note in noted:
        made.add_note(note)
    return made


def summary(payload: dict[str, Any], value: Callable[[Any], Any]) -> tuple[str, str]:
    """Type and message of a recorded failure, without reviving it."""
    name, text = value(payload["type"]), value(payload["message"])
    if type(name) is not str or type(text) is not str:
        raise TypeError
    return name, text


def _revive_as(table: str, name: str, payload: dict[str, Any], value: Callable[[Any], Any]) -> Exception:
    parts = value(payload["parts"])
    if "errors" in payload:
        parts["args"] = [*parts["args"], value(payload["errors"])]
    if table == "registered":
        made = registry.rebuild(name, parts, version=payload.get("version", 1))
    else:
        made = registry.make_error(_TABLES[table][name], parts)
    if not isinstance(made, Exception):
        raise TypeError
    return made
