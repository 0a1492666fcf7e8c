"""The URL of a store in Redis, taken apart: where the server is, which store in it, and what the store must promise."""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from msgspec import Struct
from msgspec.structs import replace

from surefoot.core.urls import Url, parse
from surefoot.errors import UsageError

SCHEMES: Final = ("redis", "rediss", "unix")
FSYNC: Final = "fsync"
"""The server is asked, and asked again: every record is on its disk before it is acknowledged."""
DECLARED: Final = "declared"
"""The service promises that in writing, and lets nobody look."""
NONE: Final = "none"
"""For tests: acknowledged records may be lost."""

_SENTINEL: Final = re.compile(r"(redis|rediss)\+sentinel:", re.IGNORECASE)
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}\Z")
_PORT: Final = 6379
_SENTINEL_PORT: Final = 26379
_OURS: Final = ("name", "replicas", "durability", "lease", "db")


class Address(Struct, frozen=True):
    url: Url
    shown: str
    host: str = ""
    port: int = _PORT
    path: str = ""
    """Of a Unix socket; empty: host and port."""
    sentinels: tuple[tuple[str, int], ...] = ()
    service: str = ""
    """What the sentinels know the servers as."""
    username: str | None = None
    password: str | None = None
    db: int = 0
    tls: bool = False
    options: dict[str, str] = {}
    """Of TLS: the driver's own."""
    name: str = "surefoot"
    durability: str = FSYNC
    replicas: int = 0
    """So many have every record before it is acknowledged."""
    lease: float | None = None

    @property
    def prefix(self) -> str:
        """How every key begins. What is in braces is one slot of a cluster."""
        return f"{{{self.name}}}:"

    @property
    def place(self) -> str:
        """The store, the same for every spelling of its URL."""
        servers = ",".join(f"{host}:{port}" for host, port in sorted(self.sentinels))
        where = self.path or (f"{servers}/{self.service}" if self.sentinels else f"{self.host}:{self.port}")
        return f"{where}/{self.db}/{self.name}"


def read_address(text: str) -> Address:
    url = parse(text, SCHEMES)
    by_sentinel = _SENTINEL.match(text) is not None
    pieces = urlsplit(url.given)
    if "@" in pieces.path + pieces.query or pieces.fragment:
        raise UsageError(f"this {url.scheme} URL cannot be read: in a password, @ / ? # are written %40 %2F %3F %23.")
    shown = url.shown.replace(f"{url.scheme}://", f"{url.scheme}+sentinel://", 1) if by_sentinel else url.shown
    fields = dict(parse_qsl(pieces.query, keep_blank_values=True))
    user, _, servers = pieces.netloc.rpartition("@")
    name, _, password = user.partition(":")
    found = Address(
        url, shown, username=unquote(name) or None, password=unquote(password) or None, tls=url.scheme == "rediss",
        options={name: value for name, value in fields.items() if name.startswith("ssl_")},
    )  # fmt: skip
    return _with_options(_with_servers(found, servers, pieces.path, by_sentinel=by_sentinel), fields)


def _with_servers(found: Address, servers: str, path: str, *, by_sentinel: bool) -> Address:
    where = found.shown
    if found.url.scheme == "unix":
        if not path or servers:
            raise UsageError(f"{where}: after unix: come three slashes and the path of a socket.")
        return replace(found, path=unquote(path))
    first, _, second = path.strip("/").partition("/")
    if by_sentinel:
        if not first or not servers:
            raise UsageError(f"{where}: sentinels are named as redis+sentinel://HOST,HOST/SERVICE.")
        known = tuple(_server(each, _SENTINEL_PORT, where) for each in servers.split(","))
        return replace(found, sentinels=known, service=unquote(first), db=_number(second or "0", "db", where))
    host, port = _server(servers, _PORT, where)
    if second:
        raise UsageError(f"{where}: after the host comes the number of a database, and nothing else.")
    return replace(found, host=host, port=port, db=_number(first or "0", "db", where))


def _with_options(found: Address, fields: dict[str, str]) -> Address:
    where = found.shown
    unknown = sorted(set(fields) - set(_OURS) - set(found.options))
    if unknown:
        raise UsageError(f"{where}: there is no option {unknown[0]!r}. The options are {', '.join(_OURS)}, ssl_….")
    given: dict[str, Any] = {}
    if "name" in fields:
        if not _NAME.match(fields["name"]):
            raise UsageError(f"{where}: the name of a store has letters, digits and _ . - only, at most 64.")
        given["name"] = fields["name"]
    if "durability" in fields:
        if fields["durability"] not in (FSYNC, DECLARED, NONE):
            raise UsageError(f"{where}: durability is {FSYNC}, {DECLARED} or {NONE}.")
        given["durability"] = fields["durability"]
    for field in ("replicas", "db"):
        if field in fields:
            given[field] = _number(fields[field], field, where)
    if "lease" in fields:
        given["lease"] = float(_number(fields["lease"], "lease", where)) or None
    return replace(found, **given)


def _server(text: str, port: int, where: str) -> tuple[str, int]:
    host, colon, number = text.rpartition(":") if not text.endswith("]") else (text, "", "")
    if not colon:
        host, number = text, str(port)
    host = unquote(host.strip("[]")).lower()
    return host or "localhost", _number(number, "the port", where)


def _number(text: str, what: str, where: str) -> int:
    if not text.isdecimal():
        raise UsageError(f"{where}: {what} is a whole number.")
    return int(text)
