"""A store in PostgreSQL, before it is open. As in SQLAlchemy, the driver may be named: `postgresql+psycopg:`."""

from __future__ import annotations

import os
from collections.abc import Iterator

from surefoot.core.urls import Url, parse
from surefoot.store.backend import Announce, Backend
from surefoot.store.contract import Store
from surefoot.store.findings import Finding, clocks, ok, settings, versions


class PostgresBackend(Backend):
    schemes = ("postgresql", "postgres")
    instead = (
        " In PostgreSQL, copies are made with pg_dump or a base backup, damage is found with pg_amcheck, and a restored "
        "copy is accepted with the verb adopt."
    )

    def place(self, url: str) -> str:
        return self._parsed(url).given

    def open(self, url: str, *, create: bool, announce: Announce | None) -> Store:
        from surefoot.store.postgres.store import PostgresStore

        return PostgresStore.open(self._parsed(url), create=create, announce=announce)

    def open_regressed(self, url: str) -> Store:
        from surefoot.store.postgres.store import PostgresStore

        return PostgresStore.open(self._parsed(url), create=False, adopting=True)

    def shown(self, url: str) -> str:
        return self._parsed(url).shown

    def examine(self, url: str, store: Store | None, *, now: int) -> Iterator[Finding]:
        """The findings about the server. Opening the store has refused settings that lose acknowledged records."""
        if store is not None:
            found = store.durability()
            yield ok("settings", f"{settings(found, leave_out=('backend', 'url', 'anchor'))} (read back)")
            is_there = os.path.exists(found["anchor"])
            said = (
                "the server has what this place saw acknowledged"
                if is_there
                else "not there: nothing was written from here yet"
            )
            yield ok("anchor", f"{found['anchor']}: {said}")
            yield clocks(store.vitals()["clock_difference_seconds"])
        yield versions()

    def _parsed(self, url: str) -> Url:
        return parse(url, self.schemes)
