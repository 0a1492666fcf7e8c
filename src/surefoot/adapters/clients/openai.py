"""The client of OpenAI."""

from __future__ import annotations

from surefoot.adapters.clients.table import Method, Table

_CHAT = "openai.types.chat:ChatCompletion"
TABLE = Table(
    package="openai",
    extra="openai",
    tested=("3.40", "4"),
    methods={
        "chat.completions.create": Method(_CHAT, f"{_CHAT}Chunk", "messages"),
        "responses.create": Method(
            "openai.types.responses:Response", "openai.types.responses:ResponseStreamEvent", "input", "instructions"
        ),
        "embeddings.create": Method("openai.types:CreateEmbeddingResponse"),
        "moderations.create": Method("openai.types:ModerationCreateResponse"),
    },
    harmless=frozenset(
        {
            "function",
            "custom",
            "namespace",
            "web_search",
            "web_search_preview",
            "file_search",
            "tool_search",
            "local_shell",
            "apply_patch",
            "computer",
            "computer_use_preview",
        }
    ),
)
