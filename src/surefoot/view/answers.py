"""What a model answered, in one line: its words, the tools that it asks for, and what it cost.

Answers are recorded as the plain JSON of their API. A page that shows the beginning of that JSON shows ids and types; what
a person looks for is further behind.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

_CALLS = ("function_call", "tool_use", "function")


def told(value: Any) -> str:
    """Empty: this is no answer of a model."""
    if not isinstance(value, Mapping):
        return ""
    response = value.get("response")
    if isinstance(response, Mapping) and str(value.get("type", "")).startswith("response."):
        return told(response)  # The last event of a stream.
    parts = list(_parts(value))
    if not parts:
        return ""
    words = " ".join(part for kind, part in parts if kind == "text")
    calls = [part for kind, part in parts if kind == "call"]
    found = [
        f'"{words}"' if words else "",
        f"asks for {', '.join(calls)}" if calls else "",
        _tokens(value.get("usage")),
    ]
    return "; ".join(filter(None, found))


def of_json(recorded: str) -> str:
    """The same of a recorded value; of any other, as it is recorded."""
    if not recorded.startswith("{"):
        return recorded
    try:
        return told(json.loads(recorded)) or recorded
    except ValueError:
        return recorded


def _parts(value: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Texts and calls, of whichever API: responses, chat completions, messages; and of Pydantic AI."""
    if isinstance(value.get("output"), list) and "usage" in value:
        yield from _items(value["output"])
    elif isinstance(value.get("choices"), list):
        for choice in value["choices"]:
            message = choice.get("message") if isinstance(choice, Mapping) else None
            if isinstance(message, Mapping):
                yield from _items([message, *(message.get("tool_calls") or [])])
    elif value.get("role") == "assistant" and isinstance(value.get("content"), list):
        yield from _items(value["content"])
    elif value.get("kind") == "response" and isinstance(value.get("parts"), list):
        yield from _said(value["parts"])


def _said(parts: list[Any]) -> Iterator[tuple[str, str]]:
    """The parts of a message of Pydantic AI, whichever API it came from."""
    for part in parts:
        if not isinstance(part, Mapping):
            continue
        if part.get("part_kind") == "tool-call":
            yield "call", str(part.get("tool_name", "?"))
        elif part.get("part_kind") == "text":
            yield "text", str(part.get("content", ""))


def _items(items: list[Any]) -> Iterator[tuple[str, str]]:
    for item in items:
        if not isinstance(item, Mapping):
            continue
        content, text = item.get("content"), item.get("text")
        if item.get("type") in _CALLS:
            named = item.get("function")
            yield "call", str((named if isinstance(named, Mapping) else item).get("name", "?"))
        elif isinstance(content, list):
            yield from _items(content)
        elif isinstance(content, str) or isinstance(text, str):
            yield "text", str(content if isinstance(content, str) else text)


def _tokens(usage: Any) -> str:
    if not isinstance(usage, Mapping):
        return ""
    read, written = (
        next((usage[name] for name in names if isinstance(usage.get(name), int)), 0)
        for names in (("input_tokens", "prompt_tokens"), ("output_tokens", "completion_tokens"))
    )
    return f"{read} + {written} tokens" if read or written else ""
