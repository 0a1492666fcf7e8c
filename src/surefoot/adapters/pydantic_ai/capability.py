"""`Durable()`: a capability of an agent, whose runs inside of a workflow are recorded. Outside of one it does nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from weakref import WeakValueDictionary

from pydantic_ai import DeferredToolRequests, DeferredToolResults, UserError
from pydantic_ai.agent import AbstractAgent, EventStreamHandler
from pydantic_ai.durable_exec import (
    JSON_CODEC,
    BaseDurabilityCapability,
    DurabilityEngineSpec,
    conversation_id_from_run_id,
)
from pydantic_ai.models import Model
from pydantic_ai.output import OutputContext
from pydantic_ai.run import AgentRunResult
from pydantic_ai.tools import AgentDepsT, RunContext, ToolApproved, ToolDenied
from pydantic_ai.toolsets import AbstractToolset, ExternalToolset, FunctionToolset, WrapperToolset

import surefoot.aio as sf
from surefoot.adapters import versions
from surefoot.adapters.policy import Tool
from surefoot.adapters.pydantic_ai import EXTRA, PACKAGES, keys, loops, models, tracing
from surefoot.adapters.pydantic_ai.backend import Backend
from surefoot.adapters.pydantic_ai.tools import WORD, Tools, leaves
from surefoot.engine.seams import Strand, in_run, refused, replays

_LEANED_ON = (
    "_bind_model_operations", "_bind_to_agent", "_build_function_toolset", "_durable_run_context", "_find_model_id",
    "_register_toolsets", "_registered_model_id", "_resolve_model_for_request", "_unwrap_tool_result", "_wrap_leaf_toolset",
    "_wrap_leaf_toolset", "_wrap_other_leaf_toolset",
)  # fmt: skip
versions.require_names(EXTRA, PACKAGES, [name for name in _LEANED_ON if not hasattr(BaseDurabilityCapability, name)])


class Durable(BaseDurabilityCapability[AgentDepsT]):
    """`Agent(..., name="billing", capabilities=[Durable()])`, and `await agent.run(...)` inside of an `@sf.workflow`.

    `tools` says what tools are that one does not own: `"step"`, `"inline"`, `"effect"`, or `sf.tool(...)`, by name. With
    `hints=False`, what an MCP server says about its tools is not believed. `models` and `name` are the framework's, and so is
    `event_stream_handler`: it gets a model's events as they come, and on a replay those of tools again.
    """

    engine_spec = DurabilityEngineSpec(
        engine_name="surefoot",
        durable_unit_noun="step or effect",
        durable_unit_plural="steps and effects",
        durable_container_noun="workflow",
        codec=JSON_CODEC,
        toolset_lifecycles={"function": "enter-always", "mcp": "enter-in-durable-unit", "dynamic": "enter-never"},
        tool_config_key=WORD,
    )

    def __init__(
        self,
        *,
        tools: Mapping[str, Tool | str] | None = None,
        hints: bool = True,
        models: Mapping[str, Model] | None = None,
        event_stream_handler: EventStreamHandler[AgentDepsT] | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(models=models, event_stream_handler=event_stream_handler, name=name)
        tracing.hold_back()
        self._given, self._hints = dict(tools or {}), hints
        self._tools = Tools("", self._given, hints=hints)
        for each in self._given:
            self._tools.named(each)  # A word that is none is refused here.
        self._toolset = ""
        self._bound: dict[tuple[str | None, str], Any] = {}
        self._passed_in: WeakValueDictionary[str, Model] = WeakValueDictionary()

    # -- one run of the agent ----------------------------------------------------------------------

    @property
    def in_durable_context(self) -> bool:
        return in_run()

    def get_default_run_id(self) -> str | None:
        return loops.next_id(self.name) if in_run() else None

    def get_default_conversation_id(self, run_id: str) -> str | None:
        return conversation_id_from_run_id(run_id) if in_run() else None

    async def get_run_start_time(self, run_id: str) -> datetime | None:
        """Recorded, so that `agent.run(timeout=…)` counts from the first time."""
        if not in_run():
            return None
        strand = Strand()
        try:
            with strand.entered(self.name, felt=True):
                return sf.now()
        finally:
            strand.join()

    async def wrap_run(self, ctx: RunContext[AgentDepsT], *, handler: Any) -> AgentRunResult[Any]:
        if not in_run():
            return await super().wrap_run(ctx, handler=handler)
        loops.of(self.name, ctx)
        result = await super().wrap_run(ctx, handler=handler)
        models.settle_times(result.all_messages(), ctx.run_id)
        return result

    async def wrap_run_event_stream(self, ctx: RunContext[AgentDepsT], *, stream: Any) -> Any:
        if in_run() and replays():
            async for event in stream:  # A plan is made of the run: nobody is told.
                yield event
            return
        async for event in super().wrap_run_event_stream(ctx, stream=stream):
            yield event

    # -- tools -------------------------------------------------------------------------------------

    def get_wrapper_toolset(self, toolset: AbstractToolset[AgentDepsT]) -> AbstractToolset[AgentDepsT] | None:
        """Every toolset of this run, wherever it comes from, as one whose calls are recorded."""
        if not in_run():
            return None
        found = list(leaves(toolset))
        functions = [each for each in found if isinstance(each, FunctionToolset)]
        for each in functions:
            self._tools.check(each)
        is_all = all(isinstance(each, FunctionToolset | WrapperToolset) for each in found)
        error = self._tools.unknown([name for each in functions for name in each.tools]) if is_all else None
        if error is not None:
            raise refused(error)
        known = Counter[str]()

        def recorded(leaf: AbstractToolset[AgentDepsT]) -> AbstractToolset[AgentDepsT]:
            name = leaf.id or type(leaf).__name__
            known[name] += 1
            self._toolset = name if known[name] == 1 else f"{name}{known[name]}"
            keys.passed_on(leaf)
            return self._wrap_leaf_toolset(leaf) or leaf

        return toolset.visit_and_replace(recorded)

    async def wrap_tool_execute(
        self, ctx: RunContext[AgentDepsT], *, call: Any, tool_def: Any, args: dict[str, Any], handler: Any
    ) -> Any:
        """In the scope of the call's id, which is part of the recorded answer."""
        if not in_run():
            return await handler(args)
        loop = loops.of(self.name, ctx)
        loop.names[call.tool_call_id] = call.tool_name
        return await loop.turn.call(call.tool_call_id, lambda: handler(args))

    async def wrap_output_process(
        self, ctx: RunContext[AgentDepsT], *, output_context: OutputContext, output: Any, handler: Any
    ) -> Any:
        """An output function is workflow code: what it calls is recorded, under the call's id or the agent's name."""
        if not in_run() or not output_context.has_function:
            return await handler(output)
        loop = loops.of(self.name, ctx)
        if output_context.tool_call is not None:
            return await loop.turn.call(output_context.tool_call.tool_call_id, lambda: handler(output))
        with loop.entered(loop.agent):
            return await handler(output)

    async def handle_deferred_tool_calls(
        self, ctx: RunContext[AgentDepsT], *, requests: DeferredToolRequests
    ) -> DeferredToolResults | None:
        """Approvals are asked for by the recorded call itself, each in its own task. The rest is left to the caller."""
        if not in_run() or not requests.approvals:
            return None
        loop = loops.of(self.name, ctx)
        ids = [call.tool_call_id for call in requests.approvals]
        loop.to_ask.update(ids)
        loop.turn.expect(ids)
        return DeferredToolResults(approvals={each: ToolApproved() for each in ids}, metadata=requests.metadata)

    # -- what the framework's base asks of an engine -------------------------------------------------

    def _register_toolsets(self, agent: AbstractAgent[AgentDepsT, Any]) -> None:
        """They are wrapped when a run begins: then those are there that were added later, and none needs an id."""

    def get_durable_operation_backend(self) -> Backend:
        return Backend(self.name, self._tools, self._toolset)

    def _bind_to_agent(self, agent: AbstractAgent[AgentDepsT, Any]) -> None:
        """This is the copy that the agent has: what is remembered of tools and models is its own."""
        super()._bind_to_agent(agent)
        self._tools = Tools(self.name, self._given, hints=self._hints)
        self._bound = {}
        self._passed_in = WeakValueDictionary()

    def _bind_model_operations(self, backend: Any, *, model_id: str | None, model_name: str) -> Any:
        key = model_id, model_name
        if model_id in self._passed_in:
            return super()._bind_model_operations(backend, model_id=model_id, model_name=model_name)
        if key not in self._bound:
            self._bound[key] = super()._bind_model_operations(backend, model_id=model_id, model_name=model_name)
        return self._bound[key]

    def _wrap_leaf_toolset(self, ts: AbstractToolset[AgentDepsT]) -> WrapperToolset[AgentDepsT] | None:
        """Without its package for MCP the framework does not ask about a toolset of an unknown class."""
        found = super()._wrap_leaf_toolset(ts)
        return self._wrap_other_leaf_toolset(ts) if found is None else found

    def _wrap_other_leaf_toolset(self, ts: AbstractToolset[AgentDepsT]) -> WrapperToolset[AgentDepsT] | None:
        """A toolset of a class that nobody knows: its tools are recorded like any."""
        return None if isinstance(ts, ExternalToolset) else self._build_function_toolset(ts)  # type: ignore[arg-type]

    def _durable_run_context(self, ctx: RunContext[AgentDepsT]) -> RunContext[AgentDepsT]:
        """What a recorded call may not do, an inline one may: it runs again on every replay."""
        return ctx if in_run() else super()._durable_run_context(ctx)

    def _unwrap_tool_result(self, payload: Any) -> Any:
        return payload if isinstance(payload, ToolDenied) else super()._unwrap_tool_result(payload)

    def _find_model_id(self, model: Model) -> str | None:
        """A model that was given to one run only: `agent.run(model=…)`, or `agent.override(model=…)` in tests."""
        try:
            return super()._find_model_id(model)
        except UserError:
            self._passed_in[f"{model.model_id} {id(model):x}"] = model
            return f"{model.model_id} {id(model):x}"

    def _registered_model_id(self, model: Model) -> tuple[bool, str | None]:
        found = super()._registered_model_id(model)
        known = next((key for key, each in self._passed_in.items() if each is model), None)
        return (True, known) if known is not None and not found[0] else found

    async def _resolve_model_for_request(self, model_id: str | None, run_context: RunContext[AgentDepsT]) -> Model:
        passed_in = self._passed_in.get(model_id or "")
        return passed_in if passed_in is not None else await super()._resolve_model_for_request(model_id, run_context)
