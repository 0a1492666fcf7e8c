"""Pydantic AI. Its loop is plain code and is replayed; model calls are steps, tools are steps or effects.

It has a seam for engines that keep runs (`pydantic_ai.durable_exec`): operations with parameters, a body and a codec. This
room is such an engine.
"""

from surefoot.adapters import versions

EXTRA = "pydantic-ai"
PACKAGES = {"pydantic-ai-slim": ("2.66", "3")}
versions.require(EXTRA, PACKAGES)
