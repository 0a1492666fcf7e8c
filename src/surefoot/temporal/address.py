"""The URL of a cluster: `temporal://HOST:PORT/NAMESPACE`, with TLS `temporals://`.

It holds nothing secret: keys and certificates come from Temporal's own environment variables and profiles.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qsl, urlsplit

from msgspec import Struct

from surefoot.core.timer import seconds
from surefoot.errors import UsageError
from surefoot.temporal import names

FORM: Final = "temporal://HOST:PORT/NAMESPACE"
DEFAULT_PORT: Final = 7233
SWEEP_SECONDS: Final = 30.0
OFF: Final = "off"


class Address(Struct, frozen=True):
    target: str
    """HOST:PORT."""
    namespace: str
    tls: bool = False
    cell: str = ""
    """Which of several stores behind one namespace the runs of this process are in."""
    mirror: bool = False
    """Whether results, messages and questions are sent to Temporal, too."""
    heartbeat_seconds: float = names.HEARTBEAT_SECONDS
    sweep_seconds: float | None = SWEEP_SECONDS
    """How long a run has been ready before the sweep rings for it. None: nothing is swept."""
    polls: int = 1
    """How many activity polls a worker has open on a queue: so many attempts can be lost with a frozen worker."""


def parsed(url: str) -> Address:
    found = urlsplit(url)
    if found.username or found.password:
        raise UsageError(
            "an engine URL holds no password: keys and certificates come from TEMPORAL_API_KEY and the like."
        )
    namespace = found.path.strip("/") or "default"
    if not found.hostname or "/" in namespace:
        raise UsageError(f"the URL of a Temporal cluster is {FORM}.")
    options = dict(parse_qsl(found.query, keep_blank_values=True))
    try:
        port = found.port or DEFAULT_PORT
        address = Address(
            f"{found.hostname}:{port}",
            namespace,
            found.scheme == "temporals",
            cell=options.pop("cell", ""),
            mirror=_mirror(options.pop("mirror", "")),
            heartbeat_seconds=seconds(options.pop("heartbeat", names.HEARTBEAT_SECONDS)),
            sweep_seconds=_sweep(options.pop("sweep", None)),
            polls=int(options.pop("polls", "1")),
        )
    except ValueError as error:
        raise UsageError(f"the URL of a Temporal cluster is {FORM}: {error}") from None
    if options:
        raise UsageError(f"{FORM} takes cell=, mirror=values, heartbeat=, sweep= and polls=, not {', '.join(options)}.")
    if address.polls < 1 or address.heartbeat_seconds <= 0 or "@" in address.cell:
        raise UsageError(f"{FORM}: polls= is at least 1, heartbeat= more than 0 s, and a cell's name has no @.")
    return address


def _mirror(word: str) -> bool:
    if word not in ("", "values"):
        raise UsageError("mirror= is values, or not given.")
    return word == "values"


def _sweep(word: str | None) -> float | None:
    if word is None:
        return SWEEP_SECONDS
    return None if word == OFF else seconds(word)
