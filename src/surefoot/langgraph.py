"""LangGraph, made durable: `from surefoot.langgraph import Saver, guard, Durable`. A face of `surefoot.adapters.langgraph`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from surefoot.adapters import versions

versions.require("langgraph", {"langgraph": ("1.2.20", "1.4"), "langgraph-checkpoint": ("4.3", "5")})

from surefoot.adapters.langgraph.guard import guard  # noqa: E402 - nothing of a framework before it is known to fit
from surefoot.adapters.langgraph.saver import Saver  # noqa: E402

if TYPE_CHECKING:
    from surefoot.adapters.langgraph.middleware import Durable

__all__ = ["Durable", "Saver", "guard"]


def __getattr__(name: str) -> Any:
    """`Durable` is for agents of LangChain, which most graphs do without."""
    if name != "Durable":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    versions.require("langchain", {"langchain": ("1.4", "2")})
    from surefoot.adapters.langgraph.middleware import Durable

    return Durable
