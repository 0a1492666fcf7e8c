"""Effects that were done, with what it takes to undo them."""

from __future__ import annotations

from typing import Any

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
