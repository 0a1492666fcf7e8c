"""What the framework asks an engine to keep, and what it is kept as.

The framework has a list of operations, which grows: those that are not known here are effects that ask. Outside of a run,
and inside of a step or an effect, each is just done.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import pydantic_ai.durable_exec as seam
from pydantic_ai.durable_exec import BoundDurableOperation, DurableOperation, DurableOperationBackend
from pydantic_core import to_jsonable_python

import surefoot.aio as sf
from surefoot.adapters.policy import ASKS, READS, REPEATS
from surefoot.adapters.pydantic_ai import loops, models, tracing
from surefoot.adapters.pydantic_ai.tools import Tools, recording
from surefoot.engine.seams import in_run

Operation = DurableOperation[Any, Any, Any]
Kept = Callable[[Operation, Any], Awaitable[Any]]
WORKSPACE = {
    **dict.fromkeys(("read_bytes", "stat", "list_dir", "exists", "realpath"), READS),
    **dict.fromkeys(("ensure", "make_dir"), REPEATS),
}
"""What is known of calls of a workspace. What a command does, nobody knows; a file may be somebody else's meanwhile."""


@sf.step(name="get_tools", ignore="ask")
async def _tools_of(ask: Callable[[], Awaitable[Any]]) -> Any:
    return await ask()


@sf.step(name="get_instructions", ignore="ask")
async def _instructions_of(ask: Callable[[], Awaitable[Any]]) -> Any:
    return await ask()


async def _handled(operation: Operation, params: Any) -> None:
    """Events of tools: whoever looks on now is told, on a replay too. What a handler does is no record of the run."""
    await operation.handler(params)


class Bound(BoundDurableOperation[Any, Any, Any]):
    """One operation of the framework, ready to be called."""

    def __init__(self, operation: Operation, kept: Kept) -> None:
        self._operation = operation
        self._kept = kept

    @property
    def operation(self) -> Operation:
        return self._operation

    async def __call__(self, params: Any, *, config: object | None = None) -> Any:
        if not in_run():
            return await self._operation.handler(params)
        return await self._kept(self._operation, params)


class Backend(DurableOperationBackend[Any]):
    """The engine, as the framework sees it."""

    def __init__(self, agent: str, tools: Tools, toolset: str) -> None:
        self._agent = agent
        self._tools = tools
        self._toolset = toolset
        """The name of the toolset whose operations are bound."""

    def bind(self, operation: Operation) -> Bound:
        return Bound(operation, self._kept_as(operation.operation_id))

    def config_for_tool(self, operation: Operation, *, tool: object | None, tool_name: str) -> Any:
        """What a tool is is decided where it is called: there its function and its declaration are known."""
        return {}

    def registrations(self) -> Sequence[Callable[..., object]]:
        return ()

    def _kept_as(self, operation_id: Any) -> Kept:
        match operation_id:
            case seam.ModelRequestId():
                return partial(models.request, self._agent)
            case seam.ModelCompactMessagesId():
                return partial(models.compact, self._agent)
            case seam.ModelCancelSuspendedResponseId():
                return partial(models.cancel, self._agent)
            case seam.ToolsetCallToolId():
                return self._tools.call
            case seam.ToolsetValidateToolArgumentsId():
                return self._tools.validate
            case seam.ToolsetGetToolsId() | seam.ToolsetGetInstructionsId():
                return self._discovered
            case seam.EventStreamHandlerId():
                return _handled
            case _:
                return self._acted

    async def _acted(self, operation: Operation, params: Any) -> Any:
        """Of a capability that says that it does something which is to be kept. What that is, nobody has said."""
        loop = loops.of(self._agent, params.run_context)
        named, call = operation.operation_id, getattr(params, "call", None)
        name = ".".join(filter(None, (getattr(named, "capability_id", ""), getattr(named, "operation", ""))))
        said = ASKS
        if isinstance(call, seam.WorkspaceCall):
            name, said = f"workspace.{call.method}", WORKSPACE.get(call.method, ASKS)
        shown = getattr(params, "arguments", None) if call is None else _set(dataclasses.asdict(call))

        async def body(**_: Any) -> Any:
            with seam.durable_unit_scope():
                return models.plain(operation, await operation.handler(params))

        recorded = recording(name or type(named).__name__, self._tools.named(name) or said, body)
        arguments = {"arguments": to_jsonable_python(shown, fallback=lambda other: type(other).__name__)}
        # Of a hook of a tool call, it is in that one's scope.
        with loop.entered(loop.agent) if loop.is_here() else nullcontext():
            found = await recorded(**arguments)
        tracing.answered()
        return operation.result_codec.load(found)

    async def _discovered(self, operation: Operation, params: Any) -> Any:
        """Which tools there are, and what they say of themselves: what it was while the run lasts."""
        loop = loops.of(self._agent, params.ctx)
        is_list = isinstance(operation.operation_id, seam.ToolsetGetToolsId)

        async def ask() -> Any:
            with seam.durable_unit_scope():
                return models.plain(operation, await operation.handler(params))

        with loop.entered(f"{loop.agent}.{self._toolset}"):
            found = await (_tools_of if is_list else _instructions_of)(ask=ask)
        tracing.answered()
        return operation.result_codec.load(found)


def _set(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in (None, "", b"", False)}
