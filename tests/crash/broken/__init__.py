"""Deliberately broken engines, switched on in the processes of the lab only. Each has to be caught, every time."""

from __future__ import annotations

from tests.crash.broken.engines import ENGINES


def install(name: str) -> None:
    """Break the engine of this process."""
    if name:
        ENGINES[name]()
