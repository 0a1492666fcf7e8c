"""What stands around every page: who you are and what you may do, how many items wait, and how the store is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from surefoot.console.principals import Principal

if TYPE_CHECKING:
    from surefoot.console.context import Request


class Frame(Struct, frozen=True):
    principal: Principal
    csrf: str
    read_only: bool
    waiting: int
    """How many runs wait for a decision."""
    store: str
    """Its address for people."""
    store_verdict: str
    """One line; empty: nothing is known against it."""
    now: int
    """Microseconds since 1970, by the store's clock."""
    position: int
    """Where the store was when this page was made."""
    apps: tuple[str, ...]
    """The code that plans are made with; empty: none."""


def frame(request: Request) -> Frame:
    options = request.console.options
    runtime = request.runtime
    store = runtime.store
    return Frame(
        request.principal, request.csrf, options.read_only, 0, store.url, "", runtime.clock.now(), store.changes(),
        options.apps,
    )  # fmt: skip
