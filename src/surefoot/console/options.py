"""How a console was started: everything that it knows before the first request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct


class Options(Struct, frozen=True):
    store: str | None = None
    apps: tuple[str, ...] = ()
    """The modules with the code of the workflows; imported in a process of their own."""
    identify: Callable[[Any], Any] | None = None
    """Who a request is from. None: whoever has a session or a token of this console."""
    named_tokens: bool = True
    """Whether tokens of this user's file count. Not where another app says who somebody is."""
    read_only: bool = False
    hosts: tuple[str, ...] = ()
    """Names by which it may be asked for, with their port. Loopback's are always allowed when it serves itself."""
    secret: bytes | None = None
    debug: bool = False
