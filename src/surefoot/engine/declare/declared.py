"""What a function was declared as: a step, an effect, a workflow, or nothing.

A seam for adapters. A framework hands out functions that users gave to its own decorators; how a call of one is recorded
follows from what lies under them.
"""

from __future__ import annotations

import functools
from typing import Any, Literal

from msgspec import Struct

from surefoot.engine.declare.call_spec import CallSpec
from surefoot.engine.declare.registry import Definition

Kind = Literal["step", "effect", "workflow"]


class Declared(Struct, frozen=True):
    """What a decorator was told, as far as others than the engine need it."""

    kind: Kind
    name: str
    timeout: float | None = None
    ignored: tuple[str, ...] = ()
    """Parameters that are not recorded: `self`, a client, a framework's context."""


def declared(fn: Any) -> Declared | None:
    """What calls of this function are recorded as; None: they are not.

    Also of a bound method, and of a `functools.partial`: to call it is to call what is under it.
    """
    while isinstance(fn, functools.partial):
        fn = fn.func
    spec, definition = getattr(fn, "spec", None), getattr(fn, "definition", None)
    if isinstance(spec, CallSpec):
        kind: Kind = "step" if spec.kind == "step" else "effect"
        return Declared(kind, spec.name, spec.timeout, spec.binder.ignored)
    if isinstance(definition, Definition):
        return Declared("workflow", definition.name)
    return None
