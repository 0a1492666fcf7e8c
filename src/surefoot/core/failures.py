"""Exceptions as data: recorded with type, message, arguments and notes, and revived from closed tables.

An exception comes back as itself only if that was proved when it was recorded: built-in ones, surefoot's
own and registered ones whose revived twin has the same recorded form. Everything else comes back as a `StepFailed`
that is also of its class where that can be found (`likeness.py`), the first time as well as on replay. So an
`except` clause does the same after a crash as before it. The causes of a failure come back as failures of their own.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from typing import Any, Final

from surefoot import errors
from surefoot.core import likeness, registry
from surefoot.errors import StepFailed

MAX_MESSAGE: Final = 10_000
MAX_NOTES: Final = 100
MAX_LINKS: Final = 10
"""Causes that are recorded with a failure (`raise … from …`, and what was being handled)."""
MAX_ATTRIBUTES: Final = 20
MAX_ATTRIBUTE: Final = 2_000
"""Bytes of an attribute that is recorded with a failure which cannot come back as itself."""

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
        errors.Denied,
        errors.NotDone,
        errors.RetryAfter,
        errors.Unavailable,
        errors.HttpError,
        errors.HttpUnsure,
        errors.StepFailed,
        errors.Cancelled,
        errors.Fenced,
        errors.StoreUnavailable,
        errors.StoreFull,
    )
}
BUILTINS["BaseExceptionGroup"] = ExceptionGroup  # members that are no `Exception` come back as StepFailed

_FIELDS: Final = frozenset(
    {
        "type",
        "message",
        "as",
        "version",
        "parts",
        "errors",
        "notes",
        "module",
        "bases",
        "state",
        "cause",
        "context",
        "suppress",
    }
)
_TABLES: Final[dict[str, Mapping[str, type[Exception]]]] = {"builtins": BUILTINS, "surefoot": OWN}
_MODULES: Final = {"builtins": builtins, "surefoot": errors}
_OURS: Final = frozenset({"type", "message", "module"})


def origin(error: BaseException) -> tuple[str, str] | None:
    """The table that the exception's class comes back from, and its name there; None if there is no table."""
    cls = type(error)
    for table, classes in _TABLES.items():
        if classes.get(cls.__name__) is cls:
            return table, cls.__name__
    known = registry.BY_CLASS.get(cls)
    return ("registered", known.name) if known is not None else None


def described(error: BaseException) -> tuple[str, str, str, str]:
    """Type, message, module and bases, of a failure that comes back as `StepFailed`. Of a copy, the original's."""
    if likeness.is_likeness(error):
        recorded: Any = error
        return recorded.type, recorded.message, recorded.module, recorded.__dict__.get("__bases__", "")
    known = origin(error)
    name = known[1] if known is not None else registry.default_name(type(error))
    module = likeness.home(type(error))
    return name, message(error), module, likeness.bases(type(error)) if module else ""


def attributes(error: BaseException) -> dict[str, Any]:
    """Its attributes; of a copy, without those of every `StepFailed`."""
    try:
        parts: dict[str, Any] = registry.take_error(error)[0]  # type: ignore[assignment]
        found: dict[str, Any] = parts.get("state", {})
        if isinstance(error, OSError):
            found |= {"errno": error.errno, "strerror": error.strerror}
    except Exception:  # noqa: BLE001 - properties of user code; the `except` clause matters more
        return {}
    return {name: item for name, item in found.items() if name not in _OURS and not name.startswith("__")}


def story(error: BaseException) -> tuple[BaseException | None, BaseException | None]:
    """Its cause, and the exception being handled, if that is another one. Signals of ours are left out."""
    cause, context = error.__cause__, error.__context__
    return _told(cause), None if context is cause else _told(context)


def _told(error: BaseException | None) -> BaseException | None:
    return None if error is None or type(error).__module__.startswith("surefoot.engine") else error


def message(error: BaseException) -> str:
    """The text of the exception, whatever its __str__ does."""
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
    if table is None:
        made: Exception = _revive_likeness(name, text, payload, value)
    elif _is_of_another_time(table, name):
        made = likeness.make(name, text, _MODULES[table].__name__, state={}, errors=None)
    else:
        made = _revive_as(table, name, payload, value)
    for note in noted:
        made.add_note(note)
    _revive_story(made, payload, value)
    return made


def _revive_likeness(name: str, text: str, payload: dict[str, Any], value: Callable[[Any], Any]) -> StepFailed:
    module, bases, state = payload.get("module", ""), payload.get("bases", ""), value(payload.get("state", {}))
    errors = value(payload["errors"]) if "errors" in payload else None
    if type(module) is not str or type(bases) is not str or type(state) is not dict:
        raise TypeError
    if not all(isinstance(e, Exception) for e in errors or ()):
        raise TypeError
    return likeness.make(name, text, module, state=state, errors=errors, bases=bases)


def _is_of_another_time(table: Any, name: str) -> bool:
    """A class of a newer Python, or of a newer surefoot: unknown here, but no damage."""
    if type(table) is not str or table not in _TABLES:
        return False
    return name not in _TABLES[table] and name.isidentifier() and not hasattr(_MODULES[table], name)


def _revive_story(made: Exception, payload: dict[str, Any], value: Callable[[Any], Any]) -> None:
    cause, context, suppress = (payload.get(key) for key in ("cause", "context", "suppress"))
    if cause is None and context is None and suppress is None:
        return
    led = [None if link is None else value(link) for link in (cause, context)]
    if not all(link is None or isinstance(link, Exception) for link in led) or suppress not in (None, True, False):
        raise TypeError
    made.__cause__, made.__context__ = led[0], led[1] or led[0]
    made.__suppress_context__ = led[0] is not None if suppress is None else suppress


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
