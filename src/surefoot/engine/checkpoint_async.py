"""Checkpoints for tasks: the same object, its reading and writing done in a thread so that the loop goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from surefoot.core.generation import FEWEST
from surefoot.engine.checkpoint import Checkpoint, Generation, Migration, Witness, checked_witnesses
from surefoot.engine.declare.drifts import OnDrift


class AsyncCheckpoint:
    """As `surefoot.Checkpoint`, awaitable where it waits. A save that was begun is carried out, cancelled or not."""

    def __init__(
        self, name: str, *, schema: int = 1, keep: int = FEWEST, store: str | None = None, on_drift: OnDrift = "stop"
    ) -> None:
        self._blocking = Checkpoint(name, schema=schema, keep=keep, store=store, on_drift=on_drift)

    def __repr__(self) -> str:
        return f"Async{self._blocking!r}"

    @property
    def name(self) -> str:
        return self._blocking.name

    def migration(self, schema: int) -> Callable[[Migration], Migration]:
        return self._blocking.migration(schema)

    async def load(self, *, watch: Iterable[Witness] = ()) -> Any:
        """The newest state that can be trusted. None only if nothing was ever saved. `Drifted` as in blocking code."""
        return await asyncio.to_thread(self._blocking.load, watch=watch)

    async def accept_drift(self, witness: str | None = None, *, by: str | None = None, note: str = "") -> list[str]:
        """Accept the world as it is found now. What was accepted."""
        return await asyncio.to_thread(self._blocking.accept_drift, witness, by=by, note=note)

    async def save(self, state: Any, *, watch: Iterable[Witness] = ()) -> int:
        """Save a state, as it is now, as the next generation and return its number."""
        raw = self._blocking.encoded(state)  # here, not in the thread: other tasks may change it meanwhile
        return await asyncio.to_thread(self._blocking.keep_encoded, raw, checked_witnesses(self.name, watch))

    async def generations(self) -> list[Generation]:
        """What there is, the oldest first, each read whole."""
        return await asyncio.to_thread(self._blocking.generations)
