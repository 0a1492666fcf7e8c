"""MCP clients: `from surefoot.mcp import durable`, and `session = durable(session)` in a workflow."""

from surefoot.adapters.mcp.sessions import durable

__all__ = ["durable"]
