"""Whether a Redis server keeps what it acknowledged: asked of the server, as findings, before it is believed.

A store is opened only where no finding is `bad`; `doctor` shows all of them. Opening looks once. What is changed while a
store is open is caught behind every append (`guard` in `store.py`).
"""

from __future__ import annotations

from contextlib import closing
from typing import Final

from msgspec import Struct

from surefoot.core.cure import Advice
from surefoot.errors import StoreNotDurable
from surefoot.store.failure import Rejected
from surefoot.store.findings import BAD, Finding, bad, ok, warn
from surefoot.store.redis.address import DECLARED, NONE, Address
from surefoot.store.redis.connection import Connection, Route

OLDEST: Final = (6, 2)
_WAITAOF: Final = (7, 2)
_SECONDS: Final = 10
_SETTINGS: Final = ("appendonly", "appendfsync", "no-appendfsync-on-rewrite")


class Server(Struct, frozen=True):
    """The server's description of itself."""

    info: dict[str, str]
    settings: dict[str, str] | None
    """None: it tells nobody."""

    @property
    def version(self) -> tuple[int, ...]:
        """That of Redis, whose commands it has; other servers say which one they match."""
        return tuple(int(part) for part in self.info.get("redis_version", "").split(".") if part.isdecimal())

    @property
    def shown(self) -> str:
        valkey = self.info.get("valkey_version")
        return f"Valkey {valkey}" if valkey else f"Redis {self.info.get('redis_version', 'of an unknown version')}"

    @property
    def is_replica(self) -> bool:
        return self.info.get("role") == "slave"

    @property
    def can_wait_for_disk(self) -> bool:
        return self.version >= _WAITAOF

    def number(self, name: str) -> int:
        text = self.info.get(name, "0")
        return int(text) if text.isdecimal() else 0


def ask(connection: Connection) -> Server:
    replies = connection.ask((b"INFO",), *((b"CONFIG", b"GET", name.encode()) for name in _SETTINGS))
    info = _pairs(connection.accepted(replies[0]))
    told = [reply for reply in replies[1:] if not isinstance(reply, Rejected)]
    settings = {name.decode(): value.decode() for reply in told if reply for name, value in [reply]}
    return Server(info, settings or None)


def asked(address: Address) -> Server:
    """The same, over a connection of its own."""
    with closing(Connection(address, Route(address), seconds=_SECONDS, silence=_SECONDS)) as connection:
        return ask(connection)


def _pairs(text: bytes) -> dict[str, str]:
    lines = (line.partition(":") for line in text.decode("utf-8", "replace").splitlines())
    return {name: value for name, colon, value in lines if colon}


def findings(server: Server, address: Address) -> list[Finding]:
    """What the server says, judged."""
    if address.durability == NONE:
        return [
            warn(
                "durability",
                "durability=none: the server may lose what it acknowledged",
                "for tests only; take it out of the URL",
            ),
            *_about_memory(server),
        ]
    return [*_about_disk(server, address), *_about_memory(server), *_about_replicas(server, address)]


def _about_disk(server: Server, address: Address) -> list[Finding]:
    if address.durability == DECLARED:
        return [ok("durability", "declared by the service; nobody can look (durability=declared)")]
    found = server.settings
    if found is None:
        return [
            bad(
                "durability",
                "the server does not tell its settings (CONFIG GET is refused)",
                "if the service promises in writing that every acknowledged write is on disk: add durability=declared "
                "to the URL",
            )
        ]
    if found.get("appendonly") != "yes":
        return [
            bad(
                "appendonly",
                "appendonly is off: everything since the last snapshot is lost in a crash",
                "CONFIG SET appendonly yes, then CONFIG REWRITE",
            )
        ]
    given = [ok("appendonly", "yes")]
    if found.get("appendfsync") == "always":
        given.append(ok("appendfsync", "always"))
    else:
        given.append(
            bad(
                "appendfsync",
                f"appendfsync is {found.get('appendfsync')}: what was acknowledged a moment ago is lost in a power cut",
                "CONFIG SET appendfsync always, then CONFIG REWRITE",
            )
        )
    if found.get("no-appendfsync-on-rewrite") == "yes":
        judged = warn if server.can_wait_for_disk else bad
        given.append(
            judged(
                "no-appendfsync-on-rewrite",
                "no-appendfsync-on-rewrite is on: nothing is synced while the log is rewritten",
                "CONFIG SET no-appendfsync-on-rewrite no, then CONFIG REWRITE",
            )
        )
    if server.info.get("aof_last_write_status", "ok") != "ok":
        given.append(bad("log", "the server could not write its log", "look at its disk"))
    return given


def _about_memory(server: Server) -> list[Finding]:
    policy, told = server.info.get("maxmemory_policy", "noeviction"), []
    if policy.startswith("allkeys"):
        told.append(
            bad(
                "eviction",
                f"maxmemory-policy is {policy}: the server throws away records when its memory is full",
                "CONFIG SET maxmemory-policy noeviction, or use a server of its own",
            )
        )
    elif policy.startswith("volatile"):
        told.append(
            warn(
                "eviction",
                f"maxmemory-policy is {policy}: our keys have no time to live and stay",
                "CONFIG SET maxmemory-policy noeviction, to be sure",
            )
        )
    else:
        told.append(ok("eviction", policy))
    if server.number("evicted_keys"):
        told.append(warn("evicted", f"the server has evicted {server.number('evicted_keys')} keys", "verify the store"))
    if not server.number("maxmemory"):
        told.append(
            warn(
                "maxmemory", "no limit is set: the system may kill the server", "CONFIG SET maxmemory, with noeviction"
            )
        )
    return told


def _about_replicas(server: Server, address: Address) -> list[Finding]:
    if not address.replicas:
        return []
    connected = server.number("connected_slaves")
    if connected < address.replicas:
        return [
            warn(
                "replicas",
                f"{connected} of {address.replicas} replicas are connected: no append is acknowledged",
                "start the missing replica",
            )
        ]
    return [ok("replicas", f"{connected} connected, {address.replicas} have every record before it is acknowledged")]


def refuse_if_not_durable(server: Server, address: Address) -> None:
    where = address.shown
    if server.is_replica:
        raise StoreNotDurable(
            f"{where}: this server is a replica: what it shows may be old, and it takes no writes.",
            facts={"replica": True},
            cures=(Advice("use", "the primary's URL, or redis+sentinel://"),),
        )
    wrong = [] if address.durability == NONE else [one for one in findings(server, address) if one.level == BAD]
    if wrong:
        raise StoreNotDurable(
            f"{where}: {'; '.join(one.said for one in wrong)}.",
            facts={one.what: one.said for one in wrong},
            cures=tuple(Advice("mend", one.do) for one in wrong),
        )


def setting_changed(address: Address, name: str, value: str) -> StoreNotDurable:
    """The server was made careless while the store is open."""
    return StoreNotDurable(
        f"{address.shown}: {name} is {value} now, and was set while the store was in use: records that were just written "
        "may be lost in a power cut.",
        facts={name: value},
        cures=(
            Advice("mend", f"CONFIG SET {name} {'yes' if name == 'appendonly' else 'always'}, then CONFIG REWRITE"),
        ),
    )
