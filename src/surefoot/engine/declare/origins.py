"""Where an effect is defined, as it is on record, and what the code at hand has in that place.

An effect is known by its name. To find out, before anything is replayed, that its decorator is gone takes more: a method,
a function with `name=` and one of another module are not found by that name. So the intent says where the function is,
unless that is no more than its name in the workflow's module. It decides nothing about a call.

A function inside another one is there only while that one runs. But the byte code of the one around it tells whether it
is stored as it is made, or is given to a decorator first.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Iterator
from types import CodeType, ModuleType
from typing import Any, Final

from surefoot.core.entry import RunCreated
from surefoot.engine.declare.call_spec import CallSpec, is_decorated, is_workflow, makes_effect
from surefoot.engine.declare.identity import loaded

BY_HAND: Final = "-"
"""The place has a plain function, and is meant to: the effect was made of it without `@`, and lies elsewhere."""
_INSIDE: Final = ".<locals>."
_DECORATORS: Final = ("effect", "transaction")


def to_record(spec: CallSpec, created: RunCreated | None) -> str:
    """`module:qualname`; empty: the name says it, nobody can say, or it is none that could lose its decorator. `-`: it never
    had one there.
    """
    if spec.kind != "effect" or spec.undoes is not None or spec.is_ours:
        return ""
    where = spec.known_as
    if spec.made_by_hand is None:
        spec.made_by_hand = _holds_plain(where)
    if spec.made_by_hand:
        return BY_HAND
    workflows = "" if created is None else created.module.partition(":")[0]
    return "" if where == f"{workflows}:{spec.name}" else where


def is_plain(found: Any) -> bool:
    """Whether a call runs its code unrecorded. That of a workflow does, too: called inside a run, it is just the function."""
    return callable(found) and not isinstance(found, type) and (is_workflow(found) or not is_decorated(found))


def is_plain_at(origin: str) -> bool:
    """Whether a function is defined there, and no effect is made of it."""
    return _holds_plain(origin) and not (_INSIDE not in origin and makes_effect(_found(origin)))


def _holds_plain(origin: str) -> bool:
    """Whether what is defined there is a plain function, whatever else is made of it."""
    outer, inside, _ = origin.partition(_INSIDE)
    found = _found(outer) if outer else None
    if found is None:
        return False
    if inside:
        return _is_plain_inside(getattr(inspect.unwrap(found), "__code__", None), origin.partition(":")[2])
    return is_plain(found)


def _found(origin: str) -> Any:
    """What a loaded module has there; None: nothing."""
    module, _, qualname = origin.partition(":")
    return next((one for each in loaded(module) if (one := _member(each, qualname)) is not None), None)


def _member(module: ModuleType, qualname: str) -> Any:
    """Looked up without running code of the user's: no property, no `__getattr__`."""
    at: Any = module
    for part in qualname.split("."):
        at = inspect.getattr_static(at, part, None)
    return getattr(at, "__func__", at)  # a staticmethod or a classmethod


def _is_plain_inside(outer: CodeType | None, qualname: str) -> bool:
    """Not if it is defined there in several ways, and decorated in one of them."""
    around = [(code, inner) for code in _codes(outer) for inner in _inner(code) if inner.co_qualname == qualname]
    plain = [_is_stored_as_made(code, inner) and not _is_made_by_hand(code) for code, inner in around]
    return bool(plain) and all(plain)


def _codes(outer: CodeType | None) -> Iterator[CodeType]:
    """The code of a function, and of all that is defined in it."""
    if outer is not None:
        yield outer
        for inner in _inner(outer):
            yield from _codes(inner)


def _inner(code: CodeType) -> list[CodeType]:
    return [const for const in code.co_consts if isinstance(const, CodeType)]


def _is_stored_as_made(code: CodeType, inner: CodeType) -> bool:
    """Whether the function goes into a name at once. A decorator would be called first."""
    steps = [each for each in dis.get_instructions(code) if each.opname != "SET_FUNCTION_ATTRIBUTE"]
    made = [at for at, each in enumerate(steps) if each.opname == "MAKE_FUNCTION" and steps[at - 1].argval is inner]
    return any(steps[at + 1].opname.startswith("STORE_") for at in made)


def _is_made_by_hand(code: CodeType) -> bool:
    """Whether our decorator is called there without `@`, on functions that were stored before: nobody can say on which."""
    is_called = False
    for each in dis.get_instructions(code):
        if each.opname == "MAKE_FUNCTION":
            is_called = False
        elif each.opname.startswith("LOAD_") and each.opname != "LOAD_CONST" and each.argval in _DECORATORS:
            is_called = True
        elif is_called and each.opname.startswith(("STORE_", "POP_TOP", "RETURN_")):
            return True
    return False
