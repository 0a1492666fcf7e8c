"""The client of Anthropic."""

from __future__ import annotations

from surefoot.adapters.clients.table import Method, Table

TABLE = Table(
    package="anthropic",
    extra="anthropic",
    tested=("2.8", "3"),
    methods={
        "messages.create": Method(
            "anthropic.types:Message", "anthropic.types:RawMessageStreamEvent", "messages", "system"
        ),
        "messages.count_tokens": Method("anthropic.types:MessageTokensCount"),
    },
    harmless=frozenset(
        {
            "function",
            "custom",
            "web_search",
            "web_fetch",
            "tool_search_tool_regex",
            "tool_search_tool_bm25",
            "bash",
            "text_editor",
            "memory",
            "computer",
        }
    ),
    acting_arguments=frozenset({"mcp_servers", "container"}),
)
