"""Classes that changed while values of them were on record: what may be filled in, and what is a `SchemaMismatch`.

The class of an installed package changes with an upgrade, and the person who upgrades cannot describe the change. So
fields that a recorded value lacks take the class's default, fields that the class no longer has are dropped, and both
are reported once. The user describes a class of their own:
`sf.upcast`, or `sf.register(…, version=2, added={…})`.
"""

from __future__ import annotations

import copy
import re
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

import msgspec

from surefoot.core.cure import Advice, Cures, Edit
from surefoot.errors import SchemaMismatch

REQUIRED: Final[Any] = object()
"""There is no default; or none that is the same each time the value is read."""
_INSTALLED: Final = frozenset({"site-packages", "dist-packages"})
_STEADY: Final = (type(None), bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset)
_TEXT, _NUMBER, _BYTES = "text", "a number", "bytes"
_FAMILIES: Final[dict[type, str]] = {str: _TEXT, int: _NUMBER, float: _NUMBER, bool: _NUMBER, bytes: _BYTES}
"""Kinds of values that cannot be mistaken for each other. An `int` where a `float` is declared is usual."""
_told: Final[set[str]] = set()
_listeners: Final[list[Callable[[str], object]]] = []
_noted: Final[ContextVar[dict[str, None] | None]] = ContextVar("surefoot_filled_in", default=None)


def announce_to(listener: Callable[[str], object]) -> None:
    """The listener gets what was filled in and what was dropped; once for each change."""
    _listeners[:] = [listener]


@contextmanager
def noting() -> Iterator[dict[str, None]]:
    """Collects what is filled in and dropped in this block, each once; no listener gets it."""
    noted: dict[str, None] = {}
    token = _noted.set(noted)
    try:
        yield noted
    finally:
        _noted.reset(token)


def _tell(text: str) -> None:
    if (noted := _noted.get()) is not None:
        noted[text] = None
    elif text not in _told:
        _told.add(text)
        for listener in _listeners:
            listener(text)


# --- fields that came and went ---------------------------------------------------------------------


def fitted(
    cls: type, known: frozenset[str], parts: Any, *, called: str, version: int, extra: dict[str, Any] | None = None
) -> dict[str, Any]:
    """A recorded value's fields, as the class has them now. `extra`: collects fields that the class no longer has."""
    if type(parts) is not dict:
        raise TypeError
    missing, unknown = sorted(known - parts.keys()), sorted(set(parts) - known, key=str)
    if not is_installed(cls):
        raise _mismatch(cls, missing, unknown, called, version)
    defaults = {name: default_of(cls, name) for name in missing}
    required = [name for name, default in defaults.items() if default is REQUIRED]
    if required:
        raise _mismatch(cls, required, [], called, version)
    if extra is not None:
        extra.update((name, parts[name]) for name in unknown)
    _tell(_filled_in(cls, defaults, unknown, kept=extra is not None))
    return {name: parts[name] for name in parts if name in known} | defaults


def told_of_dropped(cls: type, names: list[str]) -> None:
    _tell(_filled_in(cls, {}, names, kept=False))


def _filled_in(cls: type, defaults: dict[str, Any], dropped: list[str], *, kept: bool) -> str:
    said = [f"{name}={_short(default)} was filled in" for name, default in defaults.items()]
    said += [f"{name} is no field of it any more and was {'kept as extra' if kept else 'dropped'}" for name in dropped]
    return f"recorded values of {_full_name(cls)} are from another version of its package: {'; '.join(said)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:60] + "…"


def _mismatch(cls: type, missing: list[str], unknown: list[str], name: str, version: int) -> SchemaMismatch:
    first = str((missing or unknown)[0])
    what = (
        f"has no field {first!r}, which {_full_name(cls)} has now"
        if missing
        else f"has a field {_short(first)}, which {_full_name(cls)} no longer has"
    )
    cures: Cures = (_upcast(name, version),)
    if missing and not unknown:
        values = ", ".join(f'"{field}": {_example(cls, field)}' for field in missing)
        line = f"sf.register({cls.__name__}, version={version + 1}, added={{{values}}})"
        cures = (Edit("only new fields?", line), *cures)
    facts = {"type": name, "field": first}
    return SchemaMismatch(f"a recorded {name} {what}.", facts=facts, cures=cures)


def _upcast(name: str, version: int) -> Advice:
    return Advice(
        "describe the change", f"give the class version={version + 1} and write @sf.upcast({name!r}, {version})"
    )


def _example(cls: type, field: str) -> str:
    default = default_of(cls, field)
    return "…" if default is REQUIRED else _short(default)


def _full_name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def is_installed(cls: type) -> bool:
    """Whether its module is where packages are installed: not a file of the user's own."""
    module = sys.modules.get(cls.__module__)
    file = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), "")
    return isinstance(file, str) and not _INSTALLED.isdisjoint(re.split(r"[/\\]", file))


def default_of(cls: Any, name: str) -> Any:
    """The default of a field, provided that it is always the same."""
    try:
        default, factory = _declared_default(cls, name)
        if factory is not None:
            default, again = factory(), factory()
            if type(default) is not type(again) or default != again or not isinstance(default, _STEADY):
                return REQUIRED
        return default if default is REQUIRED else copy.deepcopy(default)
    except Exception:  # noqa: BLE001 - a factory that wants arguments, or whatever user code raises
        return REQUIRED


def _declared_default(cls: Any, name: str) -> tuple[Any, Callable[[], Any] | None]:
    if hasattr(cls, "model_fields"):
        field = cls.model_fields[name]
        if field.is_required():
            return REQUIRED, None
        return field.default, field.default_factory
    if hasattr(cls, "__struct_fields__"):
        given = next(field for field in msgspec.structs.fields(cls) if field.name == name)
        if given.default_factory is not msgspec.NODEFAULT:
            return None, typing.cast("Callable[[], Any]", given.default_factory)
        return (REQUIRED if given.default is msgspec.NODEFAULT else given.default), None
    if hasattr(cls, "__dataclass_fields__"):
        import dataclasses  # loaded already if the class is one

        one = cls.__dataclass_fields__[name]
        if one.default_factory is not dataclasses.MISSING:
            return None, one.default_factory
        return (REQUIRED if one.default is dataclasses.MISSING else one.default), None
    if hasattr(cls, "__attrs_attrs__"):
        return _default_of_attrs(next(each.default for each in cls.__attrs_attrs__ if each.name == name))
    return getattr(cls, "_field_defaults", {}).get(name, REQUIRED), None


def _default_of_attrs(default: Any) -> tuple[Any, Callable[[], Any] | None]:
    attr = sys.modules["attr"]
    if default is attr.NOTHING or (isinstance(default, attr.Factory) and default.takes_self):
        return REQUIRED, None
    return (None, default.factory) if isinstance(default, attr.Factory) else (default, None)


def added(fields: Mapping[str, Any], parts: Any) -> Any:
    """An older version's fields, completed from `added=`."""
    if type(parts) is not dict:
        raise TypeError
    return {**parts, **{name: copy.deepcopy(value) for name, value in fields.items() if name not in parts}}


# --- fields whose type changed ---------------------------------------------------------------------


def simple_fields(hints: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, str]:
    """The fields that are declared as text, a number or bytes, or None: then another kind means another type."""
    return {name: family for name in names if (family := _family_of(hints.get(name))) is not None}


def _family_of(hint: Any) -> str | None:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        families = {_family_of(each) for each in typing.get_args(hint) if each is not type(None)}
        return families.pop() if len(families) == 1 else None
    if typing.get_origin(hint) is typing.Annotated:
        return _family_of(typing.get_args(hint)[0])
    return _FAMILIES.get(hint) if isinstance(hint, type) else None


def loose(simple: Mapping[str, str], fields: Mapping[str, Any]) -> list[str]:
    """Fields that hold another kind of value than declared: Python allows that."""
    return [name for name, family in simple.items() if _FAMILIES.get(type(fields[name]), family) != family]


def retyped(cls: type, field: str, value: Any, declared: str, *, called: str, version: int) -> SchemaMismatch:
    """A field that was as declared when it was recorded, and now is not: the declared type has changed."""
    return SchemaMismatch(
        f"a recorded {called} has {_FAMILIES[type(value)]} in its field {field!r}, where {_full_name(cls)} declares "
        f"{declared} now.",
        facts={"type": called, "field": field},
        cures=(_upcast(called, version),),
    )
