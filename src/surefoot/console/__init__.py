"""The console: a web page and an HTTP API for the people who look after runs.

The promise: looking changes nothing, and every word of a person is one entry, about the run as that person saw it. Extra
`console`; nothing of it is imported before `app` is called.

    application.mount("/surefoot", surefoot.console.app(store="sqlite:///runs.db", app="shop", identify=who))
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from surefoot.console.principals import Principal

if TYPE_CHECKING:
    from surefoot.console.application import Console

__all__ = ["Principal", "app"]


def app(
    *,
    store: str | None = None,
    app: str | Sequence[str] = (),
    identify: Callable[[Any], Principal | Awaitable[Principal | None] | None],
    read_only: bool = False,
    hosts: Sequence[str] = (),
    secret: bytes | None = None,
) -> Console:
    """The console as an ASGI app, to mount in another one. All its links are relative to where it is mounted.

    `identify` is called with the request (Starlette's) and says who it is: a `Principal`, or None for nobody. `app` names the
    modules with the code of the workflows; they are imported in a process of their own. `hosts` are the names by which
    browsers reach it (`"ops.example.com"`, with a port if it is not the usual one). Several processes that serve the
    same console need the same `secret`, at least 32 random bytes.
    """
    from surefoot.console.application import Console
    from surefoot.console.options import Options

    apps = (app,) if isinstance(app, str) else tuple(app)
    return Console(
        Options(
            store,
            apps,
            identify,
            named_tokens=False,
            read_only=read_only,
            hosts=tuple(hosts),
            secret=secret,
        )
    )
