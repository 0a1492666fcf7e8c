"""Deliberately broken engines, switched on in the processes of the lab only. Each has to be caught, every time."""

from __future__ import annotations

from typing import Any

from surefoot.engine.session.claim import Claim
from tests.crash.broken import code, seeing, world
from tests.crash.broken.engines import ENGINES

__all__ = ["CRASHES", "ENGINES", "code", "install", "seeing", "world"]

CRASHES = "merely-crashes"
"""Does nothing twice and loses nothing: an engine that must not count as caught."""


def install(name: str) -> None:
    """Break the engine of this process."""
    if name:
        _merely_crash() if name == CRASHES else ENGINES[name]()


def _merely_crash() -> None:
    def claim(self: Any, *_: Any) -> Any:
        raise RuntimeError("no")

    Claim.ticket = claim
