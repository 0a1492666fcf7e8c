"""`durable(agent)`: a twin of an agent, and of all agents that it may hand over to, whose model and tools are recorded.

The agent itself is left as it is. Outside of a run the twin does what the agent does.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Mapping
from typing import Any, TypeVar

from agents import (
    Agent,
    ApplyPatchTool,
    CodeInterpreterTool,
    FileSearchTool,
    FunctionTool,
    Handoff,
    HostedMCPTool,
    ImageGenerationTool,
    RunContextWrapper,
    ShellTool,
    WebSearchTool,
)
from agents import tool as sdk

import surefoot.aio as sf
from surefoot.adapters import policy
from surefoot.adapters.openai_agents import guardrails, loops, tracing
from surefoot.adapters.openai_agents.models import DurableModel
from surefoot.adapters.openai_agents.sessions import DurableSession
from surefoot.adapters.openai_agents.tools import DurableTool, said_of
from surefoot.adapters.policy import Tool
from surefoot.engine.seams import in_run

A = TypeVar("A", bound=Agent[Any])
HOSTED = (
    CodeInterpreterTool, FileSearchTool, HostedMCPTool, ImageGenerationTool, WebSearchTool,
    *(cls for name in ("ToolSearchTool",) if (cls := getattr(sdk, name, None)) is not None),
)  # fmt: skip
"""They run where the model does, and are part of its call."""


class Twins:
    """The durable twins of one graph of agents, each made once: agents may hand over in circles."""

    def __init__(self, tools: Mapping[str, Tool | str], *, hints: bool) -> None:
        self._tools = tools
        self._hints = hints
        self._made: dict[int, tuple[Any, Any]] = {}
        self._wrapped: dict[tuple[int, str], tuple[FunctionTool, DurableTool]] = {}
        self.names: list[str] = []
        self.has_servers = False

    def of(self, agent: A) -> A:
        if _is_durable(agent):
            return agent
        if id(agent) in self._made:
            return self._made[id(agent)][1]  # type: ignore[no-any-return]
        twin: Any = object.__new__(_durable_class(type(agent)))
        twin.__dict__.update(agent.__dict__)
        self._made[id(agent)] = agent, twin
        twin.__dict__["_surefoot"] = self
        twin.model = agent.model if isinstance(agent.model, DurableModel) else DurableModel(agent.model, agent.name)
        twin.input_guardrails = [guardrails.recorded_input(each) for each in agent.input_guardrails]
        twin.output_guardrails = [guardrails.recorded_output(each) for each in agent.output_guardrails]
        twin.handoffs = [self._handoff(each) for each in agent.handoffs]
        self.has_servers = self.has_servers or bool(agent.mcp_servers)
        for tool in agent.tools:
            self.tool(tool)
        return twin  # type: ignore[no-any-return]

    def _handoff(self, to: Any) -> Any:
        if isinstance(to, Agent):
            return self.of(to)
        if not isinstance(to, Handoff):
            return to
        made = copy.copy(to)
        invoke = to.on_invoke_handoff

        async def invoked(context: RunContextWrapper[Any], given: str) -> Any:
            if not in_run():
                return self.of(await invoke(context, given))
            with loops.of(context, to.agent_name).entered(f"handoff {to.tool_name}"):
                return self.of(await invoke(context, given))

        made.on_invoke_handoff = invoked
        target = to._agent_ref() if to._agent_ref is not None else None
        if isinstance(target, Agent):
            made._agent_ref = weakref.ref(self.of(target))
        return made

    def tool(self, tool: Any) -> Any:
        """What the SDK gets for a tool inside of a run. A tool that it would run by itself, unrecorded, is refused."""
        if not isinstance(tool, FunctionTool):
            _refuse_local(tool)
            return tool
        known = self._wrapped.get((id(tool), tool.name))
        if known is None:
            self.names.append(tool.name)
            sub = tool._agent_instance if tool._is_agent_tool else None
            said = policy.Tool("inline") if sub is not None else said_of(tool, self._tools, hints=self._hints)
            known = tool, DurableTool(tool, said, None if sub is None else self.of(sub))
            self._wrapped[id(tool), tool.name] = known
        return known[1].tool


class Durable:
    """What the twin of an agent does besides. Mixed into a class of its own for each class of agents."""

    async def get_all_tools(self, run_context: RunContextWrapper[Any]) -> list[Any]:
        loops.turn_begins(run_context, self)  # type: ignore[arg-type]
        found = await super().get_all_tools(run_context)  # type: ignore[misc]
        if not in_run():
            return list(found)
        twins: Twins = self.__dict__["_surefoot"]
        return [twins.tool(tool) for tool in found]

    def clone(self, **_: Any) -> Any:
        raise sf.UsageError("clone the agent itself, and then: durable(agent.clone(…))")


def _is_durable(agent: Any) -> bool:
    return isinstance(agent, Durable)


_classes: dict[type, type] = {}


def _durable_class(cls: type) -> type:
    if cls not in _classes:
        _classes[cls] = type(
            f"Durable{cls.__name__}", (Durable, cls), {"__module__": __name__, "__doc__": Durable.__doc__}
        )
    return _classes[cls]


def _refuse_local(tool: Any) -> None:
    is_hosted = isinstance(tool, HOSTED) or (isinstance(tool, ShellTool) and tool.executor is None)
    if is_hosted:
        return
    name = type(tool).__name__
    what = "writes files" if isinstance(tool, ApplyPatchTool) else "runs on this machine"
    raise sf.UsageError(
        f"durable: {name} {what} by itself, and what it does would not be recorded. Offer it as a function tool with an "
        "@sf.effect under it, which can be checked and undone."
    )


class _Face:
    """`durable(agent)`, and `durable.session(session)`."""

    def __call__(self, agent: A, *, tools: Mapping[str, Tool | str] | None = None, hints: bool = True) -> A:
        """A twin of the agent whose model calls and tools are recorded, for `Runner.run` inside of a workflow.

        `tools` says what tools are that one does not own: `"step"`, `"inline"`, `"effect"`, or `sf.tool(...)`, by name. With
        `hints=False`, what an MCP server says about its tools is not believed.
        """
        if not isinstance(agent, Agent):
            raise sf.UsageError(f"durable() takes an agent of the OpenAI Agents SDK, not {type(agent).__name__}")
        if _is_durable(agent) and (tools or not hints):
            raise sf.UsageError("this agent is durable already: say tools= and hints= where it is made so")
        tracing.hold_back()
        twins = Twins(tools or {}, hints=hints)
        twin = twins.of(agent)
        if not twins.has_servers and (error := policy.unknown_names(tools or {}, twins.names)) is not None:
            raise error
        return twin

    def session(self, session: Any) -> DurableSession:
        """A session whose items are read and added under record."""
        return session if isinstance(session, DurableSession) else DurableSession(session)


durable = _Face()
