"""Effects that were done, with what it takes to undo them. A saga has to name those that cannot be undone."""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from surefoot.core import values
from surefoot.core.command import Done, Ending
from surefoot.engine.current import Place
from surefoot.engine.spec import CallSpec


class Deed:
    """An effect that was done, with what it takes to undo it: copies, since the workflow may change its own."""

    __slots__ = ("address", "args", "kwargs", "result", "spec", "undone")

    def __init__(
        self, address: str, spec: CallSpec, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> None:
        self.address = address
        self.spec = spec
        self.args = args
        self.kwargs = kwargs
        self.result = result
        self.undone = False
        """Of one that has no undo: whether a saga has said so."""

    def undo(self) -> tuple[CallSpec, tuple[Any, ...], dict[str, Any]]:
        """The compensation to call, with the arguments and the result."""
        if self.spec.undo is None:
            raise AssertionError(self.spec.name)
        self.undone = True
        return self.spec.undo, *self.spec.undoing(self.args, self.kwargs, self.result)


def note(
    place: Place, spec: CallSpec, args: tuple[Any, ...], kwargs: dict[str, Any], ending: Ending, asked: Raw | None
) -> None:
    """A call was done. If a saga may have to undo or to name it, and it was this run's own doing, it is remembered.

    `asked` are its arguments as they were recorded; None if the journal has answered at once: they are as they were.
    """
    line, scope = place.line, place.scope
    named = line.sagas and spec.kind == "effect" and spec.undoes is None
    if isinstance(ending, Done) and (spec.undo is not None or named) and place.session.did(ending):
        asked = Raw(values.encode_args(spec.binder.bind(args, kwargs))[0]) if asked is None else asked
        args, kwargs = spec.own(args, kwargs, asked)
        address = f"{scope.path}{spec.name}#{scope.count(spec.name)}"  # Its owner makes one call after the other.
        line.deeds.append(Deed(address, spec, args, kwargs, place.session.decoded(ending.raw)))
