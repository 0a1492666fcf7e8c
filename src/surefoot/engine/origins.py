"""Where an effect is defined, as it is on record, and what the code at hand has in that place.

An effect is known by its name. To find out, before anything is replayed, that its decorator is gone takes more: a method,
a function with `name=` and one of another module are not found by that name. So the intent says where the function is,
unless that is no more than its name in the workflow's module. It decides nothing about a call.
"""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

from surefoot.core.entry import RunCreated
from surefoot.engine.identity import loaded
from surefoot.engine.spec import CallSpec

_LOCAL = "<locals>"


def to_record(spec: CallSpec, created: RunCreated | None) -> str:
    """`module:qualname`, or empty: the name says it, nobody could look there, or it is none that could lose its decorator."""
    if spec.kind != "effect" or spec.undoes is not None or spec.is_ours:
        return ""
    where = spec.known_as
    workflows = "" if created is None else created.module.partition(":")[0]
    return "" if where == f"{workflows}:{spec.name}" or _LOCAL in where else where


def found(origin: str) -> Any:
    """What a loaded module has there; None: nothing."""
    module, _, qualname = origin.partition(":")
    return next((one for each in loaded(module) if (one := _member(each, qualname)) is not None), None)


def _member(module: ModuleType, qualname: str) -> Any:
    """Looked up without running code of the user's: no property, no `__getattr__`."""
    at: Any = module
    for part in qualname.split("."):
        at = inspect.getattr_static(at, part, None)
    return getattr(at, "__func__", at)  # a staticmethod or a classmethod
