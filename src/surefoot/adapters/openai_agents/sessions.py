"""Sessions: what is read from one is recorded, and what is added to it is added once.

A session outlives the run, and other runs may add to it meanwhile. So a read is a step, which is answered from the journal
on replay; adding is an effect, whose check looks whether the items are at the end.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from agents.memory import SessionABC

import surefoot.aio as sf
from surefoot.adapters.records import Form
from surefoot.engine.seams import Strand, in_run, refused

ITEMS = Form(list[Any])


@sf.step(name="get", ignore="session")
async def _get(session: Any, limit: int | None) -> list[Any]:
    found: list[Any] = ITEMS.plain(await session.get_items(limit))
    return found


@sf.effect(name="add", ignore="session")
async def _add(session: Any, items: list[Any]) -> None:
    await session.add_items(items)


@_add.check
async def _(session: Any, items: list[Any]) -> Any:
    last = ITEMS.plain(await session.get_items(len(items)))
    return sf.happened(None) if last == items else sf.not_happened()


@sf.effect(name="pop", ignore="session")
async def _pop(session: Any) -> Any:
    found = await session.pop_item()
    return None if found is None else ITEMS.plain([found])[0]


@sf.effect(name="clear", on_crash="retry", ignore="session")
async def _clear(session: Any) -> None:
    await session.clear_session()


class DurableSession(SessionABC):
    """A session of any kind, inside of a run. Outside of one it is the session itself."""

    def __init__(self, inner: Any) -> None:
        if hasattr(inner, "run_compaction"):
            raise sf.UsageError(
                f"durable.session: {type(inner).__name__} rewrites its items by itself, beside what is recorded. Use the session "
                "under it, and sf.continue_as_new with a summary when it has grown."
            )
        self.inner = inner
        self._strands: WeakKeyDictionary[Any, dict[str, Strand]] = WeakKeyDictionary()
        self._is_busy = False

    @property
    def session_id(self) -> str:  # type: ignore[override]
        return str(self.inner.session_id)

    @property
    def session_settings(self) -> Any:  # type: ignore[override]
        return getattr(self.inner, "session_settings", None)

    async def get_items(self, limit: int | None = None) -> list[Any]:
        if not in_run():
            return list(await self.inner.get_items(limit))
        found: list[Any] = await self._recorded(_get, limit)
        return found

    async def add_items(self, items: list[Any]) -> None:
        if not in_run():
            await self.inner.add_items(items)
        elif items:
            await self._recorded(_add, ITEMS.plain(items))

    async def pop_item(self) -> Any:
        return await (self._recorded(_pop) if in_run() else self.inner.pop_item())

    async def clear_session(self) -> None:
        await (self._recorded(_clear) if in_run() else self.inner.clear_session())

    async def _recorded(self, call: Any, *args: Any) -> Any:
        if self._is_busy:
            raise refused(
                sf.UsageError(
                    f"the session {self.session_id!r} is used by two agents side by side, so timing decides what it has. Give each a "
                    "session of its own."
                )
            )
        self._is_busy = True
        try:
            with self._strand().entered(f"session {self.session_id}", felt=True):
                return await call(self.inner, *args)
        finally:
            self._is_busy = False

    def _strand(self) -> Strand:
        """One for each place of a run: whichever task of the SDK is at work there, it is one line."""
        made = Strand()
        known = self._strands.setdefault(made.driver, {})
        if made.path in known and known[made.path].is_here():
            made.join()
            return known[made.path]
        known[made.path] = made
        return made
