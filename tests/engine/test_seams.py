"""What adapters may use of the engine besides the public names: each seam by itself, without any framework."""

from __future__ import annotations

import functools

import surefoot as sf
from surefoot.engine.declare.declared import Declared, declared


@sf.step
def look(n: int) -> int:
    return n


@sf.effect(ignore="self", timeout="3s")
async def act(self: object, n: int) -> int:
    return n


@sf.workflow
def flow() -> int:
    return look(1)


@sf.transaction("sqlite:///own.db")
def copy_range(db: object, low: int) -> int:
    return low


class Shop:
    sell = act


# -- E1: what a function is declared as --------------------------------------------------------------


def test_a_decorated_function_says_what_it_is():
    """An adapter meets functions under a framework's decorator, and must not look into closures."""
    assert declared(look) == Declared("step", "look")
    assert declared(act) == Declared("effect", "act", 3.0, ("self",))
    assert declared(flow) == Declared("workflow", "flow")
    assert declared(copy_range).kind == "effect"


def test_a_method_and_a_partial_are_what_is_under_them():
    assert declared(Shop().sell).kind == "effect"
    assert declared(functools.partial(look, 1)).kind == "step"


def test_anything_else_is_declared_as_nothing():
    """A class with an attribute `spec` of its own is no step."""

    class Thing:
        spec = "a specification"

        def __call__(self) -> None: ...

    assert declared(print) is None
    assert declared(Thing()) is None
    assert declared(None) is None
