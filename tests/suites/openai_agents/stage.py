"""An agent on a stage: scripted models that know where a conversation stands, tools that leave traces, and kills.

A list of answers would not know where a resumed process stands. So a script answers by what the conversation has: how many
outputs of tools there are.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from agents import Model, ModelResponse, Usage
from agents.testing import assistant_message, function_call
from openai.types.responses import Response, ResponseCompletedEvent, ResponseTextDeltaEvent

import surefoot as sf
from surefoot.store.open import close_all
from surefoot.testing.children import die, in_child

LEDGER = "ledger"
deadly: set[str] = set()
"""Traces after which this process dies."""


def trace(line: str) -> None:
    """Something really ran. In a child that is to die there, it is the last thing that did."""
    fd = os.open(LEDGER, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(fd, f"{line}\n".encode())
    os.close(fd)
    if line in deadly:
        die()


def traces() -> list[str]:
    return Path(LEDGER).read_text().splitlines() if Path(LEDGER).exists() else []


def counted() -> Counter[str]:
    return Counter(traces())


def killed_at(line: str, run: Callable[[], Any]) -> None:
    """Run this in a process of its own, and kill it with SIGKILL when it has left that trace."""
    close_all()

    def body(_: Any) -> None:
        deadly.add(line)
        run()

    ended = in_child(body, seconds=50)
    assert ended.killed, f"it was not killed at {line!r}: {ended}"


def in_process(run: Callable[[], Any]) -> None:
    close_all()
    ended = in_child(lambda _: run(), seconds=50)
    assert ended.code == 0, ended.trouble


def outputs(conversation: Any) -> list[str]:
    """What tools gave so far."""
    if isinstance(conversation, str):
        return []
    return [item["output"] for item in conversation if item.get("type") == "function_call_output"]


def call(tool: str, number: int = 1, /, **arguments: Any) -> Any:
    return function_call(tool, arguments, call_id=f"call_{number}")


def says(text: str) -> Any:
    return assistant_message(text)


Answer = Callable[[list[str]], list[Any] | Any]


class Script(Model):
    """Answers by how many outputs of tools the conversation has."""

    def __init__(self, answer: Answer, name: str = "model") -> None:
        self._answer = answer
        self._name = name
        self.seen: list[Any] = []

    def _items(self, conversation: Any) -> list[Any]:
        given = outputs(conversation)
        self.seen.append(conversation)
        trace(f"{self._name} {len(given)}")
        found = self._answer(given)
        return found if isinstance(found, list) else [says(found) if isinstance(found, str) else found]

    async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> ModelResponse:  # noqa: A002
        return ModelResponse(output=self._items(input), usage=Usage(requests=1), response_id=None)

    async def stream_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> AsyncIterator[Any]:  # noqa: A002
        items = self._items(input)
        yield ResponseTextDeltaEvent(
            content_index=0, delta="…", item_id="i", logprobs=[], output_index=0, sequence_number=0,
            type="response.output_text.delta",
        )  # fmt: skip
        trace(f"{self._name} {len(outputs(input))} streaming")
        await asyncio.sleep(0)
        response = Response(
            id="resp_1", created_at=0, model="scripted", object="response", output=items, tool_choice="auto", tools=[],
            parallel_tool_calls=True,
        )  # fmt: skip
        yield ResponseCompletedEvent(response=response, sequence_number=1, type="response.completed")


def addresses(run: str = "r", kind: str = "") -> list[str]:
    return [each.address for each in sf.get_run(run).steps() if kind in ("", each.kind)]
