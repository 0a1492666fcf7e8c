"""The idempotency key of an effect travels in the request of its MCP call.

Under `surefoot/key` in `_meta`, by the hook that the framework has for it. A toolset of the user gets the hook once, and
calls its own inside of it; outside of an effect it changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pydantic_ai.toolsets import AbstractToolset

from surefoot.engine.seams import key_or_none

KEY: Final = "surefoot/key"


class Keyed:
    """`process_tool_call` of an MCP toolset. `inner`: the user's own."""

    def __init__(self, inner: Callable[..., Any] | None) -> None:
        self.inner = inner

    async def __call__(self, ctx: Any, call: Any, name: str, args: dict[str, Any]) -> Any:
        async def keyed(name: str, args: dict[str, Any], *, metadata: dict[str, Any] | None = None) -> Any:
            key = key_or_none()
            return await call(name, args, metadata=metadata if key is None else {**(metadata or {}), KEY: key})

        return await (keyed(name, args) if self.inner is None else self.inner(ctx, keyed, name, args))


def passed_on(toolset: AbstractToolset[Any]) -> None:
    """Calls of this toolset carry the key, if it is one of an MCP server."""
    if hasattr(toolset, "process_tool_call") and not isinstance(toolset.process_tool_call, Keyed):
        toolset.process_tool_call = Keyed(toolset.process_tool_call)
