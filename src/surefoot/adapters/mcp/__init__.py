"""Clients of MCP servers, without a framework around them."""

from surefoot.adapters import extras

LEAST, BELOW = "2.3", "3"
extras.require("mcp", "mcp", least=LEAST, below=BELOW)
