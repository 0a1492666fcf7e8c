"""An MCP server over stdio that leaves traces: one tool that reads, one that may be repeated, one of which nothing is known."""

from __future__ import annotations

import json
import os
from pathlib import Path

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp_types import ToolAnnotations

server = MCPServer("shop")
LEDGER = Path(os.environ["LEDGER"])


def trace(line: str) -> None:
    with LEDGER.open("a") as file:
        file.write(f"{line}\n")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def look(order: str) -> str:
    trace(f"look {order}")
    return f"{order}: 5 EUR"


@server.tool(annotations=ToolAnnotations(idempotent_hint=True))
def put(order: str, ctx: Context) -> str:
    meta = getattr(ctx.request_context, "meta", None)
    found = meta if isinstance(meta, dict) else meta.model_dump() if meta is not None else {}
    trace(f"put {order} {json.dumps(found.get('surefoot/key'))}")
    return f"put {order}"


@server.tool()
def order(item: str) -> str:
    trace(f"order {item}")
    return f"ordered {item}"


if __name__ == "__main__":
    server.run("stdio")
