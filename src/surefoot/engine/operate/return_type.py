"""Whether a value that a person gives for an effect is what the effect returns.

Where the code is at hand, its return annotation gives the type: a wrong value is refused now, not found by the workflow
after the answer is on record. Plain JSON stands for a class as it does in `sf.ask`. A value that fits already is taken
as it is (a tuple is a `Sequence`, and 5 a `float`); an annotation that cannot be checked refuses nothing.
"""

from __future__ import annotations

import typing
from pathlib import PurePath
from typing import Any

import msgspec

from surefoot.core import registry, values
from surefoot.core.visible import shorten, visible
from surefoot.engine.declare.call_spec import known_effect
from surefoot.errors import SchemaMismatch, UsageError


def is_held(address: str) -> bool:
    """Whether the code at hand annotates the return type of the effect at this address."""
    spec = known_effect(address)
    return spec is not None and registry.returned_by(spec.fn) is not None


def fitted(run: str, address: str, value: Any) -> Any:
    """The value as the effect at this address returns it; refused with the reason if it cannot be."""
    spec = known_effect(address)
    wanted = None if spec is None else registry.returned_by(spec.fn)
    if wanted is None:
        return value
    try:
        found = msgspec.convert(value, wanted, dec_hook=_made)
    except msgspec.ValidationError as error:
        given = shorten(visible(values.encode(value).decode()), 100)
        raise UsageError(
            f"run {run}: {address} returns {_shown(wanted)}, and {given} is none: {visible(str(error))}."
        ) from None
    except (TypeError, RecursionError):
        return value  # A type that msgspec knows nothing about.
    is_taken_for_a_list = isinstance(value, tuple) and (typing.get_origin(wanted) or wanted) is not list
    return value if found == value or (is_taken_for_a_list and type(found) is list) else found


def _made(wanted: Any, given: Any) -> Any:
    """Classes that msgspec does not know by itself, from plain data."""
    cls = typing.get_origin(wanted) or wanted
    if isinstance(given, cls):
        return given
    if issubclass(cls, PurePath) and isinstance(given, str):
        return cls(given)
    if hasattr(cls, "model_validate"):
        return cls.model_validate(given)
    known = registry.BY_CLASS.get(cls)
    if known is None:
        raise ValueError(f"Expected `{cls.__name__}`, got `{type(given).__name__}`")
    try:
        return known.make(given, {})
    except (SchemaMismatch, TypeError, KeyError) as error:
        raise ValueError(str(error) or f"Expected `{cls.__name__}`, got `{type(given).__name__}`") from None


def _shown(wanted: Any) -> str:
    """A type as people write it; for a class with fields, with its fields."""
    if wanted is type(None):
        return "null"
    if not isinstance(wanted, type):
        return str(wanted).replace("typing.", "")
    fields = registry.fields_of(wanted)
    return wanted.__name__ + (f" with {', '.join(fields)}" if fields else "")
