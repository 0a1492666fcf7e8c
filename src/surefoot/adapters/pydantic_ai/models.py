"""Model calls: steps that are answered from the journal on replay, streamed or not.

Compared on replay is what was said; an answer on record stays, whatever differs, and that is noted. Instructions, model, settings and tools are noted: a reworded prompt must not strand
runs in flight. So are times and ids of messages, which are new on every replay. An answer that may have acted by itself
(hosted tools that run code or call servers) is an effect that asks.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import nullcontext
from contextvars import ContextVar
from typing import Any

from pydantic_ai.capabilities import ModelFallback
from pydantic_ai.durable_exec import DurableOperation, ModelRequestId, ModelRequestParams, durable_unit_scope
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse

import surefoot.aio as sf
from surefoot.adapters.pydantic_ai import PACKAGES, loops, tracing
from surefoot.adapters.records import jsonable, read_back
from surefoot.adapters.waiting import waiting_for
from surefoot.engine.seams import refused

READING = frozenset({"advisor", "file_search", "tool_search", "web_fetch", "web_search", "x_search"})
"""Hosted tools that only read. Any other changes something, or reaches somebody who may, or nobody has said what it does."""
_OPTIONS: dict[str, Any] = {"name": "model", "noted": ("instructions", "model", "settings", "tools")}
_FOR_EVER = 1_000_000
"""How often is decided where it is asked (`waiting.py`): the run is parked, and does not fail."""
_UNSAID = frozenset({"timestamp", "part_kind"})

Ask = Callable[[], Awaitable[Any]]
_asking: ContextVar[Ask] = ContextVar("surefoot_pydantic_ai_asking")
"""How the model is asked that the step at hand is of."""
Operation = DurableOperation[Any, Any, Any]


async def _model(messages: Any, instructions: str, model: str, settings: Any, tools: list[str]) -> Any:
    return await _asking.get()()


asks_again = sf.step(retries=_FOR_EVER, retry_on=(), on_change="keep", **_OPTIONS)(_model)
"""`keep`: the tools that an answer has asked for are recorded under their own ids, so the engine does not see that it was acted on.
Asked again, a model gives other ids, and everything would be done twice."""
acts = sf.effect(on_crash="ask", **_OPTIONS)(_model)


@sf.step(name="compact", ignore="ask", on_change="keep")
async def compacts(messages: Any, ask: Ask) -> Any:
    return await ask()


@sf.step(name="cancel_response", ignore="ask")
async def cancels(response: str, ask: Ask) -> Any:
    return await ask()


async def request(agent: str, operation: Operation, params: ModelRequestParams) -> Any:
    """One model call, whole or streamed."""
    loop = loops.of(agent, params.run_context)
    is_acting = any(tool.kind not in READING for tool in params.model_request_parameters.native_tools)
    has_another = _has_another(params)
    proof: list[Any] = []

    async def ask() -> Any:
        patience = nullcontext() if is_acting or has_another else waiting_for(f"the model of {loop.agent}")
        with patience, durable_unit_scope():
            proof[:] = _proved(operation, await operation.handler(params), _tidy)
            return proof[0]

    token = _asking.set(ask)
    try:
        with loop.entered(loop.agent):
            shown = _shown(operation.operation_id, params)
            recorded = await (acts if is_acting else asks_again)(said_in(params.messages), **shown)
    finally:
        _asking.reset(token)
    tracing.answered()
    # The proof has made already what a replay makes of this record.
    is_proved = bool(proof) and proof[0] == recorded
    response = (
        proof[1]
        if is_proved
        else read_back(lambda: operation.result_codec.load(recorded), f"an answer of the model of {agent!r}", PACKAGES)
    )
    if isinstance(response, ModelResponse):
        loop.answered(_expected(params, response))
        settle_times([*params.messages, response], params.run_context.run_id)
    return response


async def compact(agent: str, operation: Operation, params: Any) -> Any:
    loop = loops.of(agent, params.run_context)

    async def ask() -> Any:
        with waiting_for(f"the model of {loop.agent}"), durable_unit_scope():
            return plain(operation, await operation.handler(params))

    with loop.entered(loop.agent):
        recorded = await compacts(said_in(params.request_context.messages), ask=ask)
    tracing.answered()
    return operation.result_codec.load(recorded)


async def cancel(agent: str, operation: Operation, params: Any) -> Any:
    """A response that is still being made elsewhere is not waited for any longer."""
    loop = loops.of(agent, params.run_context)

    async def ask() -> Any:
        with durable_unit_scope():
            return plain(operation, await operation.handler(params))

    with loop.entered(loop.agent):
        recorded = await cancels(str(params.response.provider_response_id or ""), ask=ask)
    tracing.answered()
    return operation.result_codec.load(recorded)


def plain(operation: Operation, value: Any, tidy: Callable[[Any], Any] = lambda found: found) -> Any:
    """As it is recorded, with the proof that it comes back as it is."""
    return _proved(operation, value, tidy)[0]


def _proved(operation: Operation, value: Any, tidy: Callable[[Any], Any]) -> tuple[Any, Any]:
    """As it is recorded, and as it comes back from that."""
    whole = operation.result_codec.dump(value)
    found = tidy(whole)
    revived = operation.result_codec.load(found)
    if operation.result_codec.dump(revived) != whole:
        raise refused(sf.ValueRejected(f"{type(value).__name__} comes back from its plain form as something else"))
    return found, revived


def _tidy(response: dict[str, Any]) -> dict[str, Any]:
    """Without the fields in which nothing is: most of them belong to other providers."""
    used = {name: value for name, value in response.get("usage", {}).items() if value}
    return {**_set(response), "parts": [_set(part) for part in response.get("parts", ())], "usage": used}


def _set(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _has_another(params: ModelRequestParams) -> bool:
    """Whether the agent asks another model when this one is away: then it is told at once."""
    found: list[Any] = []
    if params.run_context.root_capability is not None:
        params.run_context.root_capability.apply(found.append)
    return any(isinstance(each, ModelFallback) for each in found)


def said_in(messages: Iterable[ModelMessage]) -> list[Any]:
    """The conversation, without what is ours to reword, and without times and ids."""
    found = ModelMessagesTypeAdapter.dump_python(list(messages), mode="json", fallback=str)
    return [
        {message["kind"]: parts}
        for message in found
        if (parts := [_said(part) for part in message["parts"] if part["part_kind"] != "system-prompt"])
    ]


def settle_times(messages: Iterable[ModelMessage], run_id: str | None) -> None:
    """What was said gets the time of the answer to it, which is on record; the last words, of the answer before.

    The framework takes the time of the clock. So what a user makes of the messages of a run would be new on every replay.
    """
    asked: list[Any] = []
    at = None
    for message in messages:
        if message.kind == "response":
            at = message.timestamp
            _timed(asked, at)
            asked = []
        elif message.run_id == run_id:
            asked.append(message)
    if at is not None:
        _timed(asked, at)


def _timed(requests: Iterable[Any], at: Any) -> None:
    for request in requests:
        for each in (request, *request.parts):
            if getattr(each, "timestamp", None) is not None:
                each.timestamp = at


def _said(part: Mapping[str, Any]) -> dict[str, Any]:
    rest = {name: value for name, value in part.items() if name not in _UNSAID and value not in (None, [], {})}
    return {"part": part["part_kind"], **rest}


def _shown(operation_id: Any, params: ModelRequestParams) -> dict[str, Any]:
    asked = params.model_request_parameters
    tools = [tool.name for tool in (*asked.function_tools, *asked.output_tools)]
    hosted = [tool.kind for tool in asked.native_tools]
    return {
        "instructions": "\n\n".join(_instructions(params.messages)),
        "model": operation_id.model_name if isinstance(operation_id, ModelRequestId) else "",
        "settings": jsonable(params.model_settings or {}),
        "tools": tools + hosted,
    }


def _instructions(messages: Iterable[ModelMessage]) -> list[str]:
    """Each once, in the order in which they came up."""
    found: dict[str, None] = {}
    for message in messages:
        if message.kind == "request":
            prompts = (part.content for part in message.parts if part.part_kind == "system-prompt")
            found |= dict.fromkeys([*prompts, *([message.instructions] if message.instructions else [])])
    return list(found)


def _expected(params: ModelRequestParams, response: ModelResponse) -> list[str]:
    """The tool calls that are begun at once: a stop in one of them waits for the others."""
    at_once = {
        tool.name
        for tool in params.model_request_parameters.function_tools
        if tool.kind == "function" and not tool.sequential
    }
    return [call.tool_call_id for call in response.tool_calls if call.tool_name in at_once]
