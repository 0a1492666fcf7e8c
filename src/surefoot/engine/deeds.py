"""Effects that were done, with what it takes to undo them. A saga has to name those that cannot be undone."""

from __future__ import annotations

from typing import Any

from surefoot.core.command import Ending
from surefoot.engine.current import Place
from surefoot.engine.spec import CallSpec


class Deed:
    """An effect that was done, with what it takes to undo it."""

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
    place: Place, spec: CallSpec, args: tuple[Any, ...], kwargs: dict[str, Any], ending: Ending, result: Any
) -> None:
    """A call was done. If a saga may have to undo or to name it, and it was this run's own doing, it is remembered."""
    line, scope = place.line, place.scope
    named = line.sagas and spec.kind == "effect" and spec.undoes is None
    if (spec.undo is not None or named) and place.session.did(ending):
        address = f"{scope.path}{spec.name}#{scope.count(spec.name)}"  # Its owner makes one call after the other.
        line.deeds.append(Deed(address, spec, args, kwargs, result))
