"""Paths as they were sent, and where the console is mounted. Decisions are made on these, not on a URL put together again."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from starlette.types import Scope

API: Final = "/api/"


def mount(scope: Scope) -> str:
    """Empty, or `/surefoot`."""
    return quote(str(scope.get("root_path", "")).rstrip("/"), safe="/")


def raw(scope: Scope) -> str:
    """Without a query."""
    sent = scope.get("raw_path")
    return sent.decode("latin-1") if sent is not None else quote(scope["path"])


def inside(scope: Scope) -> str:
    """The same below the mount; a proxy may have taken that away."""
    sent, root = raw(scope), mount(scope)
    return (sent.removeprefix(root) if sent == root or sent.startswith(f"{root}/") else sent) or "/"


def is_api(path: str) -> bool:
    return path.startswith(API)
