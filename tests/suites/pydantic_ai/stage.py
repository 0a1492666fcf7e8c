"""An agent on a stage: scripted models that know where a conversation stands, tools that leave traces, and kills.

A list of answers would not know where a resumed process stands. So a script answers by what the messages have: how many
returns of tools there are.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

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


def outputs(messages: Iterable[ModelMessage]) -> list[str]:
    """What tools gave so far."""
    parts = (part for message in messages for part in message.parts)
    return [part.model_response_str() for part in parts if isinstance(part, ToolReturnPart)]


def call(tool: str, number: int = 1, /, **arguments: Any) -> ToolCallPart:
    return ToolCallPart(tool, arguments, tool_call_id=f"call_{number}")


Answer = Callable[[list[str]], Any]


class Script:
    """Answers by how many returns of tools the messages have: a text, a call, or a list of calls."""

    def __init__(self, answer: Answer, name: str = "model", *, silent: bool = False) -> None:
        self._answer = answer
        self._name = name
        self._silent = silent
        self.seen: list[list[ModelMessage]] = []
        self.model = FunctionModel(self._whole, stream_function=self._streamed, model_name=name)

    def _parts(self, messages: list[ModelMessage]) -> list[Any]:
        given = outputs(messages)
        self.seen.append(messages)
        if not self._silent:
            trace(f"{self._name} {len(given)}")
        found = self._answer(given)
        found = found if isinstance(found, list) else [found]
        return [TextPart(part) if isinstance(part, str) else part for part in found]

    async def _whole(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=self._parts(messages))

    async def _streamed(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        parts = self._parts(messages)
        if not self._silent:
            trace(f"{self._name} {len(outputs(messages))} streaming")
        await asyncio.sleep(0)
        for index, part in enumerate(parts):
            if isinstance(part, TextPart):
                yield part.content
            else:
                yield {index: DeltaToolCall(part.tool_name, json.dumps(part.args), tool_call_id=part.tool_call_id)}


def addresses(run: str = "r", kind: str = "") -> list[str]:
    return [each.address for each in sf.get_run(run).steps() if kind in ("", each.kind)]
