"""Which database a URL or an engine stands for."""

from __future__ import annotations

from typing import Any, Final

from surefoot.engine.effects.databases.contract import Database
from surefoot.errors import UsageError
from surefoot.world.urls import parsed

_SCHEMES: Final = ("sqlite", "postgresql", "postgres")


def database_of(url_or_engine: Any) -> Database:
    """Nothing is opened yet: errors in the address are raised now."""
    if isinstance(url_or_engine, str):
        url = parsed(url_or_engine, _SCHEMES)
        if url.scheme == "sqlite":
            from surefoot.engine.effects.databases.sqlite import SqliteDatabase

            return SqliteDatabase(url)
        from surefoot.engine.effects.databases.postgres import PostgresDatabase

        return PostgresDatabase(url)
    if hasattr(url_or_engine, "dialect") and hasattr(url_or_engine, "connect"):
        from surefoot.engine.effects.databases.alchemy import AlchemyDatabase

        return AlchemyDatabase(url_or_engine)
    raise UsageError(
        f"a database is given as sqlite:///relative.db, sqlite:////absolute.db, postgresql://… or a SQLAlchemy engine, "
        f"not {url_or_engine!r:.100}"
    )
