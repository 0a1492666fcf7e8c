"""Effects that were done, with what it takes to undo them."""

from __future__ import annotations

from typing import Any

from surefoot.core.command import Ending
from surefoot.engine.current import Place
from surefoot.engine.spec import CallSpec


class Deed:
    """An effect that was done, with what it takes to undo it."""

    __slots__ = ("args", "kwargs", "result", "spec", "undone")

    def __init__(self, spec: CallSpec, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        self.spec = spec
        self.args = args
        self.kwargs = kwargs
        self.result = result
        self.undone = False

    def undo(self) -> tuple[CallSpec, tuple[Any, ...], dict[str, Any]]:
        """The compensation to call, with the arguments and the result."""
        if self.spec.undo is None:
            raise AssertionError(self.spec.name)
        self.undone = True
        return self.spec.undo, *self.spec.undoing(self.args, self.kwargs, self.result)


def note(
    place: Place, spec: CallSpec, args: tuple[Any, ...], kwargs: dict[str, Any], ending: Ending, result: Any
) -> None:
    """A call was done. If it can be undone, and was this run's own doing, its line of control remembers it."""
    if spec.undo is not None and place.session.did(ending):
        place.line.deeds.append(Deed(spec, args, kwargs, result))
