"""LangGraph, made durable: `from surefoot.langgraph import Saver`. A face of `surefoot.adapters.langgraph`."""

from __future__ import annotations

from surefoot.adapters import versions

versions.require("langgraph", {"langgraph": ("1.2.20", "1.4"), "langgraph-checkpoint": ("4.3", "5")})

from surefoot.adapters.langgraph.saver import Saver  # noqa: E402 - nothing of a framework before it is known to fit

__all__ = ["Saver"]
