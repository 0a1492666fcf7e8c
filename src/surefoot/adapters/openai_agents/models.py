"""Model calls: steps that are answered from the journal on replay, streamed or not.

Compared on replay is the conversation; an answer on record stays, whatever differs, and that is noted. Instructions, model, settings and tools are noted: a reworded prompt must not strand
runs in flight; what the model said is history. An answer that may have acted by itself (hosted tools that run code or call
servers) is an effect that asks.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import nullcontext, suppress
from contextvars import ContextVar
from typing import Any

from agents import (
    CodeInterpreterTool,
    Handoff,
    HostedMCPTool,
    ImageGenerationTool,
    ModelResponse,
    MultiProvider,
    ShellTool,
    Tool,
)
from agents.items import TResponseStreamEvent
from agents.models.interface import Model, ModelTracing
from openai.types.responses import ResponseOutputItemDoneEvent

import surefoot.aio as sf
from surefoot.adapters.openai_agents import PACKAGES, loops, tracing
from surefoot.adapters.records import Form, jsonable
from surefoot.adapters.waiting import waiting_for
from surefoot.engine.seams import in_run, refused

RESPONSES, EVENTS, ANYTHING = Form(ModelResponse), Form(TResponseStreamEvent), Form(Any)
TERMINAL = frozenset({"response.completed", "response.incomplete", "response.failed", "error", "response.error"})
ACTING: tuple[type, ...] = (HostedMCPTool, CodeInterpreterTool, ImageGenerationTool, ShellTool)
_NOTED = ("instructions", "model", "settings", "tools", "handoffs", "previous_response_id", "conversation_id", "prompt")
_OPTIONS: dict[str, Any] = {"name": "model", "noted": _NOTED}
_FOR_EVER = 1_000_000
"""How often is decided where it is asked (`waiting.py`): the run is parked, and does not fail."""

Ask = Callable[[Any, str | None], Awaitable[Any]]
_asking: ContextVar[Ask] = ContextVar("surefoot_asking")
"""How the model is asked that the step at hand is of."""


async def _model(
    input: Any,  # noqa: A002 - as the SDK calls it, and as it is shown
    instructions: str | None,
    model: str,
    settings: Any = None,
    tools: Any = None,
    handoffs: Any = None,
    previous_response_id: str | None = None,
    conversation_id: str | None = None,
    prompt: Any = None,
) -> Any:
    return await _asking.get()(input, instructions)


asks_again = sf.step(retries=_FOR_EVER, retry_on=(), on_change="keep", **_OPTIONS)(_model)
"""`keep`: the tools that an answer has asked for are recorded under their own ids, so the engine does not see that it was acted on.
Asked again, a model gives other ids, and everything would be done twice."""
acts = sf.effect(on_crash="ask", **_OPTIONS)(_model)


def _acting(tools: list[Tool]) -> bool:
    return any(isinstance(tool, ACTING) for tool in tools)


class DurableModel(Model):
    """A model whose answers are recorded. `inner`: the model itself, or its name for the run's provider."""

    def __init__(self, inner: Model | str | None, agent: str) -> None:
        self.inner = inner
        self._agent = agent

    def _resolved(self) -> Model:
        if isinstance(self.inner, Model):
            return self.inner
        loop = loops.here()
        provider = None if loop is None else loop.provider
        return (provider or MultiProvider()).get_model(self.inner)

    async def get_response(
        self,
        system_instructions: str | None,
        input: Any,  # noqa: A002 - the SDK's own name
        model_settings: Any,
        tools: list[Tool],
        output_schema: Any,
        handoffs: list[Handoff[Any, Any]],
        tracing: ModelTracing,
        *,
        previous_response_id: str | None = None,
        conversation_id: str | None = None,
        prompt: Any = None,
    ) -> ModelResponse:
        model = self._resolved()

        async def asked(conversation: Any, instructions: str | None) -> ModelResponse:
            return await model.get_response(
                instructions, conversation, model_settings, tools, output_schema, handoffs, tracing,
                previous_response_id=previous_response_id, conversation_id=conversation_id, prompt=prompt,
            )  # fmt: skip

        if not in_run():
            return await asked(input, system_instructions)

        proof: list[Any] = []

        async def ask(conversation: Any, instructions: str | None) -> Any:
            proof[:] = self._proved(RESPONSES, await asked(conversation, instructions))
            return proof[0]

        shown = _shown(system_instructions, self.inner, model_settings, tools, handoffs, previous_response_id,
                       conversation_id, prompt)  # fmt: skip
        plain = await self._recorded(input, shown, ask, is_acting=_acting(tools))
        response: ModelResponse = self._from_record(RESPONSES, plain, proof)
        _answered(response.output, handoffs)
        return response

    async def stream_response(
        self,
        system_instructions: str | None,
        input: Any,  # noqa: A002 - the SDK's own name
        model_settings: Any,
        tools: list[Tool],
        output_schema: Any,
        handoffs: list[Handoff[Any, Any]],
        tracing: ModelTracing,
        *,
        previous_response_id: str | None = None,
        conversation_id: str | None = None,
        prompt: Any = None,
    ) -> AsyncIterator[TResponseStreamEvent]:
        """Events as they come, and the last one from the journal: on replay only that. The SDK makes the same of it."""
        model = self._resolved()

        def asked(conversation: Any, instructions: str | None) -> AsyncIterator[TResponseStreamEvent]:
            return model.stream_response(
                instructions, conversation, model_settings, tools, output_schema, handoffs, tracing,
                previous_response_id=previous_response_id, conversation_id=conversation_id, prompt=prompt,
            )  # fmt: skip

        if not in_run():
            async for event in asked(input, system_instructions):
                yield event
            return
        shown = _shown(system_instructions, self.inner, model_settings, tools, handoffs, previous_response_id,
                       conversation_id, prompt)  # fmt: skip
        passing: asyncio.Queue[Any] = asyncio.Queue()
        proof: list[Any] = []

        async def ask(conversation: Any, instructions: str | None) -> Any:
            proof[:] = await self._to_its_end(asked(conversation, instructions), passing.put_nowait)
            return proof[0]

        # In a task of its own: an async generator has no context of its own in which a scope could be open.
        call = asyncio.create_task(self._recorded(input, shown, ask, is_acting=_acting(tools)))
        try:
            async for event in _passed(passing, call):
                yield event
            last = self._from_record(EVENTS, call.result(), proof)
            _answered(getattr(getattr(last, "response", None), "output", ()), handoffs)
            yield last
        finally:
            if not call.done():
                call.cancel()
                with suppress(asyncio.CancelledError):
                    await call

    async def _recorded(self, given: Any, shown: dict[str, Any], ask: Ask, *, is_acting: bool) -> Any:
        try:
            conversation = ANYTHING.plain(given)
        except sf.ValueRejected as error:
            why = f"the conversation of {self._agent!r} cannot be recorded, so its model was not asked: {error}"
            raise refused(sf.ValueRejected(why)) from error
        loop = loops.here()

        async def patient(conversation: Any, instructions: str | None) -> Any:
            with waiting_for(f"the model of {self._agent}"):
                return await ask(conversation, instructions)

        token = _asking.set(ask if is_acting else patient)
        try:
            with nullcontext() if loop is None else loop.entered(self._agent):
                found = await (acts if is_acting else asks_again)(conversation, **shown)
        finally:
            _asking.reset(token)
        tracing.answered()
        return found

    def _from_record(self, form: Form, plain: Any, proof: list[Any]) -> Any:
        """`proof`: of an answer that was just given. It has made already what a replay makes of the record."""
        if proof and proof[0] == plain:
            return proof[1]
        return form.from_record(plain, f"an answer of the model of {self._agent!r}", PACKAGES)

    def _proved(self, form: Form, answer: Any) -> tuple[Any, Any]:
        try:
            return form.proved(answer)
        except sf.ValueRejected as error:
            why = (
                f"the model of {self._agent!r} answered with a {type(answer).__name__} that cannot be recorded, and the run does not go "
                f"on with it; resumed, it asks again: {error}"
            )
            raise refused(sf.ValueRejected(why)) from error

    async def _to_its_end(
        self, events: AsyncIterator[TResponseStreamEvent], pass_on: Callable[[Any], None]
    ) -> tuple[Any, Any]:
        """Pass on what comes, and return the last event in its plain form, and as it comes back from that."""
        items: list[Any] = []
        async for event in events:
            if isinstance(event, ResponseOutputItemDoneEvent):
                items.append(event.item)
            if event.type in TERMINAL:
                response: Any = getattr(event, "response", None)
                if event.type == "response.completed" and response is not None and not response.output and items:
                    response.output = items  # Some servers leave it empty. On replay nobody would know the items.
                return self._proved(EVENTS, event)
            pass_on(event)
        raise ConnectionError("the stream of the model ended without its last event")

    async def _cleanup_on_run_end(self, owner: object) -> None:
        if isinstance(self.inner, Model):
            await self.inner._cleanup_on_run_end(owner)

    async def close(self) -> None:
        if isinstance(self.inner, Model):
            await self.inner.close()

    def get_retry_advice(self, request: Any) -> Any:
        return self.inner.get_retry_advice(request) if isinstance(self.inner, Model) else None


def _shown(
    instructions: str | None, model: Model | str | None, settings: Any, tools: list[Tool], handoffs: list[Any],
    previous_response_id: str | None, conversation_id: str | None, prompt: Any,
) -> dict[str, Any]:  # fmt: skip
    name = (
        model if isinstance(model, str) else str(getattr(model, "model", type(model).__name__)) if model else "default"
    )
    rest = {
        "settings": jsonable(settings),
        "tools": [tool.name for tool in tools],
        "handoffs": [handoff.tool_name for handoff in handoffs],
        "previous_response_id": previous_response_id,
        "conversation_id": conversation_id,
        "prompt": jsonable(prompt),
    }
    return {"instructions": instructions, "model": name} | {key: value for key, value in rest.items() if value}


def _answered(output: Any, handoffs: list[Any]) -> None:
    """Which tool calls are to be expected: a stop in one of them waits for the others."""
    loop = loops.here()
    if loop is not None:
        others = {handoff.tool_name for handoff in handoffs}
        calls = (item for item in output if getattr(item, "type", "") == "function_call" and item.name not in others)
        loop.answered(item.call_id for item in calls)


async def _passed(queue: asyncio.Queue[Any], call: asyncio.Task[Any]) -> AsyncIterator[Any]:
    """What the call passes on, until it has ended."""
    while not call.done() or not queue.empty():
        getter = asyncio.ensure_future(queue.get())
        try:
            await asyncio.wait({getter, call}, return_when=asyncio.FIRST_COMPLETED)
            if getter.done():
                yield getter.result()
        finally:
            getter.cancel()
