"""What adapters may use of the engine, besides the public names of surefoot: these names, and nothing else.

A framework's loop runs in a workflow: model calls are steps, tools are steps or effects, each under a label that is on
record. So an adapter asks whether it is in a run, opens strands, and makes calls out of functions that it does not own. A
framework that keeps its own state is a host: what it executes is a run, unit by unit (`hosted.py`).
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from surefoot.core import registry, values
from surefoot.core.choice import OnCorruption, OnCrash, one_of
from surefoot.core.cure import command
from surefoot.core.forms import dump, load
from surefoot.core.retry import Backoff
from surefoot.core.timer import Duration
from surefoot.core.values import decode, encode, encode_objects, register
from surefoot.core.visible import visible
from surefoot.engine.declare import current
from surefoot.engine.declare.call_spec import CallSpec
from surefoot.engine.declare.current import Place
from surefoot.engine.declare.declared import Declared, declared
from surefoot.engine.declare.signals import ReleaseSignal, RunSignal
from surefoot.engine.hosted import Unit
from surefoot.engine.process.observer import Observer, observers
from surefoot.engine.verbs.strands import Strand
from surefoot.errors import SurefootError, UsageError, ValueRejected

E = TypeVar("E", bound=UsageError)
F = TypeVar("F", bound=Callable[..., Any])

__all__ = [
    "Backoff", "Declared", "Duration", "Observer", "OnCorruption", "OnCrash", "ReleaseSignal", "RunSignal", "Strand",
    "Unit", "as_tool", "command", "declared", "decode", "driver", "dump", "encode", "encode_objects", "hear", "in_call",
    "in_run", "is_registered", "key_or_none", "load", "one_of", "place_name", "refused", "register", "replays",
    "signature", "storable", "visible", "warn_once",
]  # fmt: skip


def in_run() -> bool:
    """Whether the code at hand is part of a run, and in no step or effect of it: here calls are recorded."""
    place = current.get()
    return isinstance(place, Place) and place.inside is None


def in_call() -> bool:
    """Whether the code at hand is the body of a step or an effect."""
    place = current.get()
    return isinstance(place, Place) and place.inside is not None


def driver() -> object | None:
    """Whatever drives the run here: another one for each drive and each rehearsal."""
    place = current.get()
    return place.session if isinstance(place, Place) else None


def place_name() -> str:
    """The part of the run and the scope that the code at hand is in: the same on every replay."""
    place = current.get()
    return f"{place.segment}/{place.scope.path}" if isinstance(place, Place) else ""


def replays() -> bool:
    """Whether the run is only rehearsed here: nothing is executed."""
    place = current.get()
    return isinstance(place, Place) and place.session.dry


def hear(observer: Observer) -> None:
    """Have that one told of every call that is really executed in this process, from here on. A replay tells nothing."""
    observers.add(observer)


def key_or_none() -> str | None:
    """The idempotency key of the effect whose body this is; None: there is none."""
    place = current.get()
    return place.inside.key or None if isinstance(place, Place) and place.inside is not None else None


def refused(error: E) -> E:
    """The run does not go on with this, whatever a framework makes of the exception. Outside of a run: just the error."""
    place = current.get()
    if not isinstance(place, Place):
        return error
    if place.inside is not None:
        return place.session.stops.misused(place.inside.misused(error))  # type: ignore[return-value]
    return place.session.stops.misused(error)


def storable(value: object) -> bool:
    """Whether a value would come back as it is."""
    try:
        values.decode(values.encode(value))
    except (ValueRejected, SurefootError):
        return False
    return True


def is_registered(cls: type) -> bool:
    """Whether the user has said how a class is stored."""
    known = registry.BY_CLASS.get(cls)
    return known is not None and not known.automatic


def signature(names: Mapping[str, object]) -> inspect.Signature | None:
    """That of a function with these keyword parameters and defaults, so that its arguments are recorded by name and can
    be read; None: one of them is no name in Python.
    """
    kinds = inspect.Parameter
    others = next(name for name in ("others", "other_arguments", "surefoot_others") if name not in names)
    try:
        found = [kinds(name, kinds.KEYWORD_ONLY, default=default) for name, default in names.items()]
    except ValueError:
        return None
    return inspect.Signature([*found, kinds(others, kinds.VAR_KEYWORD)])


def as_tool(call: F, body: Callable[..., Any] | None = None) -> F:
    """An effect or step that an adapter has made of somebody's tool. `body`: the user's own function, if it is known.

    It is known by its name alone: no function of that name in the workflow's module is taken for one that has lost its
    decorator, and the guard clauses of the user's function count.
    """
    spec: CallSpec = call.spec  # type: ignore[attr-defined]
    spec.made_by_hand = True
    if inspect.isfunction(body):
        spec.guarded = body
    return call


def warn_once(known: set[str], what: str, message: str) -> None:
    """The same thing is not told twice in one process."""
    if what not in known:
        known.add(what)
        warnings.warn(message, RuntimeWarning, stacklevel=3)
