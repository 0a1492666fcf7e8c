"""LangGraph, made durable: `from surefoot.langgraph import Saver, guard`. A face of `surefoot.adapters.langgraph`."""

from __future__ import annotations

from surefoot.adapters import versions

versions.require("langgraph", {"langgraph": ("1.2.20", "1.4"), "langgraph-checkpoint": ("4.3", "5")})

from surefoot.adapters.langgraph.guard import guard  # noqa: E402 - nothing of a framework before it is known to fit
from surefoot.adapters.langgraph.saver import Saver  # noqa: E402

__all__ = ["Saver", "guard"]
