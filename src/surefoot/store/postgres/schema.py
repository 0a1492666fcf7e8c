"""The tables of a PostgreSQL store: made and upgraded by numbered scripts, or refused.

A script is one transaction under a lock that all processes share, so a store has one format or the next, never something
in between. Opening a store to read it makes nothing.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from msgspec import Struct

from surefoot.core.cure import Advice
from surefoot.errors import JournalCorrupt, StoreNotDurable, UsageError
from surefoot.store.failure import Rejected, newer_format
from surefoot.store.postgres import wire
from surefoot.store.postgres.connection import Connection

FORMAT: Final = 1
OLDEST: Final = 140_000
"""The first server version with all the features that we use."""

_DONE: Final = "SF002"
"""The error code of a script that another process has already run."""
_SILENCE: Final = 600.0
"""A script may rewrite a table."""

_SERVER: Final = b"""
    SELECT current_setting('server_version_num')::int, pg_is_in_recovery(), current_setting('fsync'),
        current_setting('full_page_writes'), current_setting('synchronous_commit'), current_setting('wal_level'),
        current_setting('server_version'), current_setting('server_encoding'),
        current_setting('transaction_isolation'), current_setting('wal_sync_method'),
        current_setting('synchronous_standby_names'), to_regclass('surefoot.meta') IS NOT NULL,
        (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"""
_META: Final = b"SELECT format, store, timeline FROM surefoot.meta"
_UNLOGGED: Final = b"""
    SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'surefoot' AND c.relkind IN ('r', 'S') AND c.relpersistence <> 'p' ORDER BY 1"""
_TIMELINE: Final = b"SELECT substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8)"


class Server(Struct, frozen=True):
    """The server's description of itself."""

    version_number: int
    is_replica: bool
    fsync: str
    full_page_writes: str
    synchronous_commit: str
    wal_level: str
    version: str
    encoding: str
    isolation: str
    wal_sync_method: str
    standbys: str
    has_store: bool
    now: int


class Meta(Struct, frozen=True):
    format: int
    store: bytes
    timeline: str


def greet(connection: Connection, where: str) -> Server:
    """The server. Refused, if it does not keep acknowledged records, or cannot hold a store."""
    boolean, text, number = wire.to_bool, wire.to_text, wire.to_int
    decoders = (number, boolean, *[text] * 9, boolean, number)
    ((*said,),) = connection.ask(_SERVER, (), decoders)
    server = Server(*said)
    _refuse_if_not_durable(server, where)
    if server.version_number < OLDEST:
        raise UsageError(f"{where}: PostgreSQL {server.version} is too old; 14 or newer is needed.")
    if server.encoding != "UTF8":
        raise UsageError(
            f"{where}: the database is encoded in {server.encoding}. Make one with: createdb -E UTF8 -T template0 NAME"
        )
    if server.isolation != "read committed":
        raise UsageError(
            f"{where}: transactions are {server.isolation} here by default, and a store needs read committed. "
            "ALTER ROLE … RESET default_transaction_isolation, or set it for this user."
        )
    return server


def _refuse_if_not_durable(server: Server, where: str) -> None:
    facts = {"fsync": server.fsync, "full_page_writes": server.full_page_writes, "replica": server.is_replica}
    if server.is_replica:
        raise StoreNotDurable(
            f"{where}: this server is a replica: what it shows may be old, and it takes no writes.",
            facts=facts,
            cures=(
                Advice("several hosts?", "add target_session_attrs=read-write to the URL"),
                Advice("use", "the primary's URL"),
            ),
        )
    for name, value in (("fsync", server.fsync), ("full_page_writes", server.full_page_writes)):
        if value == "off":
            raise StoreNotDurable(
                f"{where}: the server runs with {name}=off and loses or damages what it acknowledged when it crashes.",
                facts=facts,
                cures=(Advice(f"set {name} = on", "in postgresql.conf, then pg_ctl reload"),),
            )


def meta(connection: Connection, where: str) -> Meta:
    """The store's description of itself. Refused, if we do not know its format, or its tables do not survive a crash."""
    rows = connection.ask(_META, (), (wire.to_int, wire.to_bytes, wire.to_text))
    if len(rows) != 1:
        raise JournalCorrupt(f"{where}: the store has no description of itself (surefoot.meta is empty).")
    found = Meta(*rows[0])
    if found.format > FORMAT:
        raise newer_format(f"{where}: this store", found.format, FORMAT)
    unlogged = [name for (name,) in connection.ask(_UNLOGGED, (), (wire.to_text,))]
    if unlogged:
        raise StoreNotDurable(
            f"{where}: the tables {', '.join(unlogged)} in schema surefoot are unlogged: the server empties them when it "
            "crashes.",
            facts={"unlogged": unlogged},
            cures=(Advice("mend", f"ALTER TABLE surefoot.{unlogged[0]} SET LOGGED"),),
        )
    return found


def timeline(connection: Connection) -> str:
    """A value that changes when a standby is promoted. Empty: unknown on this server."""
    try:
        ((found,),) = connection.ask(_TIMELINE, (), (wire.to_text,))
    except Rejected:
        return ""
    return str(found)


def bring_up_to_date(connection: Connection, server: Server, where: str) -> bool:
    """Make the store, or upgrade it to this version's format. Returns whether this process made it."""
    known = meta(connection, where).format if server.has_store else 0
    done = [_migrate(connection, number) for number in range(known + 1, FORMAT + 1)]
    return not server.has_store and done[0]


def _migrate(connection: Connection, number: int) -> bool:
    """Run one script, once. False: another process has already run it."""
    script = files(__package__).joinpath("migrations", f"{number:04}.sql").read_text(encoding="utf-8")
    try:
        connection.run_script(script, silence=_SILENCE)
    except Rejected as error:
        if error.code != _DONE:
            raise
        return False
    return True
