"""A stand-in for the result of a step that has not run. Code may pass it on, but not look into it.

Code that keeps it, returns it, puts it into a list or passes it to another call goes on with it. Any operation that
needs the value (a comparison, a loop, an attribute, its text, its type) ends the rehearsal there: from there on the
path of the code is unknown. Only `is` cannot be noticed: a caller that relies on later findings has to try None as
well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, NoReturn

_UNARY: Final = (
    "bool len length_hint int float complex index bytes str repr format hash iter next reversed contains getitem setitem "
    "delitem call enter exit aenter aexit await aiter anext neg pos abs invert round trunc floor ceil fspath buffer dir "
    "sizeof lt le eq ne gt ge setattr delattr getattribute"
)
_BINARY: Final = "add sub mul matmul truediv floordiv mod divmod pow lshift rshift and xor or"
_held: Final[ContextVar[bool]] = ContextVar("surefoot_placeholders_held", default=False)


class Opaque(BaseException):
    """Our own code found a placeholder in its input. This exception never leaves the rehearsal."""


class Placeholder:
    """The result of a step that has not run."""

    __slots__ = ("on_look",)

    def __init__(self, on_look: Callable[[], NoReturn]) -> None:
        object.__setattr__(self, "on_look", on_look)


def _looked_into(self: Placeholder, *_: Any, **__: Any) -> NoReturn:
    if _held.get():
        raise Opaque
    on_look: Callable[[], NoReturn] = object.__getattribute__(self, "on_look")
    on_look()


for _name in (*_UNARY.split(), *(f"{side}{name}" for name in _BINARY.split() for side in ("", "r", "i"))):
    setattr(Placeholder, f"__{_name}__", _looked_into)


@contextmanager
def opaque() -> Iterator[None]:
    """In this block our own code reads values: it gets `Opaque`, and the user's code does not end."""
    token = _held.set(True)
    try:
        yield
    finally:
        _held.reset(token)
