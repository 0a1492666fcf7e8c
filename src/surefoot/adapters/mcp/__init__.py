"""Clients of MCP servers, without a framework around them."""

from surefoot.adapters import versions

EXTRA = "mcp"
PACKAGES = {"mcp": ("2.3", "3")}
versions.require(EXTRA, PACKAGES)
