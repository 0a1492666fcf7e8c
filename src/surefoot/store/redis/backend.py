"""A store in Redis or Valkey, before it is open: `redis:`, `rediss:` (TLS), `unix:`, and sentinels by `redis+sentinel:`."""

from __future__ import annotations

import os
from collections.abc import Iterator

from surefoot.store.backend import Announce, Backend
from surefoot.store.contract import Store
from surefoot.store.findings import Finding, clocks, ok, settings, versions
from surefoot.store.redis.address import SCHEMES, read_address


class RedisBackend(Backend):
    schemes = SCHEMES
    instead = (
        " In Redis, copies are made by copying the server's log (BGREWRITEAOF, then its folder), damage is found with "
        "redis-check-aof, and a restored copy is accepted with the verb adopt."
    )

    def place(self, url: str) -> str:
        address = read_address(url)
        return f"redis {address.url.given} {address.sentinels}"

    def open(self, url: str, *, create: bool, announce: Announce | None) -> Store:
        from surefoot.store.redis.store import RedisStore

        return RedisStore.open(read_address(url), create=create, announce=announce)

    def open_regressed(self, url: str) -> Store:
        from surefoot.store.redis.store import RedisStore

        return RedisStore.open(read_address(url), create=False, adopting=True)

    def shown(self, url: str) -> str:
        return read_address(url).shown

    def examine(self, url: str, store: Store | None, *, now: int) -> Iterator[Finding]:
        """The findings about the server. Opening the store has refused settings that lose acknowledged records."""
        if store is not None:
            from surefoot.store.redis import checks

            address, found = read_address(url), store.durability()
            yield ok("settings", f"{settings(found, leave_out=('backend', 'url', 'anchor'))} (read back)")
            yield from checks.findings(checks.asked(address), address)
            yield _anchor(found["anchor"])
            yield clocks(store.vitals()["clock_difference_seconds"])
        yield versions()


def _anchor(path: str) -> Finding:
    if not os.path.exists(path):
        return ok("anchor", f"{path}: not there: nothing was written from here yet")
    return ok("anchor", f"{path}: the server has what this place saw acknowledged")
