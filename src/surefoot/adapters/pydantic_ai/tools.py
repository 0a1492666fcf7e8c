"""Tools: what each is recorded as, and how one call of it goes.

The framework hands over a call with its arguments, a body that makes it, and a codec in which control flow (`ModelRetry`,
approvals, failures for the model) is a value. So what is recorded of a tool that answers is its answer, and of one that
wants the model to try again, that it does.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Final

from pydantic import TypeAdapter
from pydantic_ai import ModelRetry
from pydantic_ai import Tool as FrameworkTool
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.durable_exec import (
    CallToolResult,
    DurableOperation,
    DynamicToolsetCallToolParams,
    ToolsetCallToolParams,
    durable_unit_scope,
)
from pydantic_ai.tools import ToolDefinition, ToolDenied
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset
from pydantic_ai.toolsets.function import FunctionToolsetTool
from pydantic_core import to_jsonable_python

import surefoot.aio as sf
from surefoot.adapters import calls, policy
from surefoot.adapters.contexts import Shared
from surefoot.adapters.policy import Tool
from surefoot.adapters.pydantic_ai import loops, tracing
from surefoot.adapters.records import result_of
from surefoot.engine.seams import Declared, Strand, declared, refused, storable

WORD: Final = "surefoot"
"""Under this name the metadata of a tool says what it is."""
KINDS: Final = frozenset(TypeAdapter(CallToolResult).json_schema()["discriminator"]["mapping"])
"""Of what the framework's codec makes of an answer. Only an ordinary answer is recorded without one."""
ANSWER: Final = "tool_return"
MOST_MET: Final = 1_000

Params = ToolsetCallToolParams | DynamicToolsetCallToolParams
Operation = DurableOperation[Any, Any, Any]


@dataclass(frozen=True)
class Calling:
    """One call of a tool, for the body of its effect: what is not recorded of it."""

    operation: Operation
    params: Params
    shared: Shared


_calling: ContextVar[Calling] = ContextVar("surefoot_pydantic_ai_calling")


@dataclass(frozen=True)
class Known:
    """A tool as it is called. `own`: what the user gave to the framework; None: it is not known."""

    name: str
    definition: ToolDefinition | None
    own: FrameworkTool[Any] | None
    said: Tool | Declared
    timeout: float | None
    sees_deps: bool
    made: dict[bool, Callable[..., Awaitable[Any]]] = field(default_factory=dict, compare=False)
    """The call that is recorded, by whether a person is asked first."""

    def call(self, said: Tool, *, is_asked: bool) -> Callable[..., Awaitable[Any]]:
        if is_asked not in self.made:
            self.made[is_asked] = _recorded(self, said, is_asked=is_asked)
        return self.made[is_asked]

    @property
    def schema(self) -> dict[str, Any]:
        if self.own is not None and (single := self.own.function_schema.single_arg_name) is not None:
            return {"properties": {single: {}}}
        return self.definition.parameters_json_schema if self.definition is not None else {}


class Tools:
    """What tools are, by everything that was said about them."""

    def __init__(self, agent: str, tools: Mapping[str, Tool | str], *, hints: bool) -> None:
        self._agent = agent
        self._tools = tools
        self._hints = hints
        self._met: dict[tuple[str, int], Known] = {}

    def named(self, name: str) -> Tool | None:
        return policy.named(name, self._tools)

    def check(self, toolset: FunctionToolset[Any]) -> None:
        """Refuse what could not be recorded as it is, before anything runs."""
        for name, own in toolset.tools.items():
            self._said(name, name, own.metadata, own, timeout=own.timeout or toolset.timeout)

    def unknown(self, known: list[str]) -> sf.UsageError | None:
        """`tools=` names a tool that nobody has. A toolset may put a prefix before its names; others are operations."""
        names = {given for given in self._tools if "." in given or any(given.endswith(name) for name in known)}
        return policy.unknown_names(self._tools, [*known, *names])

    async def call(self, operation: Operation, params: Params) -> Any:
        """One call, in the scope of its id (`Durable.wrap_tool_execute`)."""
        loop = loops.of(self._agent, params.ctx)
        name = loop.names.pop(params.ctx.tool_call_id, None) or params.name
        known = self._known(operation, params, name)
        is_asked = params.ctx.tool_call_id in loop.to_ask
        loop.to_ask.discard(params.ctx.tool_call_id or "")
        arguments = _plain_arguments(params.tool_args)
        said = known.said
        if is_asked and not (isinstance(said, Tool) and said.kind == "effect"):
            answer = await sf.approve(f"Run {known.name}?", details={"tool": known.name, "arguments": arguments})
            if not answer:
                return _denied(answer.note)
        if isinstance(said, Declared) or said.kind == "inline":
            return await self._as_declared(operation, params, known, loop.turn.shared)
        timed = _without_timeout(params) if known.timeout is not None else params
        token = _calling.set(Calling(operation, timed, loop.turn.shared))
        try:
            recorded = await known.call(said, is_asked=is_asked)(**arguments)
        except sf.Denied as no:
            return _denied(no.note)
        except TimeoutError:
            if known.timeout is None:
                raise
            raise ModelRetry(f"Timed out after {known.timeout} seconds.") from None  # The framework's own words.
        finally:
            _calling.reset(token)
            tracing.answered()
        return _revived(operation, loop.turn.shared.delivered(params.ctx.deps, recorded, known.name))

    async def _as_declared(self, operation: Operation, params: Params, known: Known, shared: Shared) -> Any:
        """What is under the framework's decorator records itself: a step, an effect, a workflow."""
        if not isinstance(known.said, Declared) or known.said.kind == "workflow":
            return await operation.handler(params)
        with shared.unchanged(
            params.ctx.deps, is_given=known.sees_deps, tool=known.name, kind=known.said.kind, under="@agent.tool"
        ):
            try:
                return await operation.handler(params)
            finally:
                tracing.answered()

    async def validate(self, operation: Operation, params: Params) -> Any:
        """What a tool's own validator makes of the arguments, in the scope of the call's id."""
        loop, name = loops.of(self._agent, params.ctx), params.ctx.tool_name or params.name
        shared = loop.turn.shared

        async def body(**_: Any) -> Any:
            with shared.watched(params.ctx.deps, is_given=True) as watch, durable_unit_scope():
                return watch.packed(_plain(name, operation, await operation.handler(params)))

        call = recording(f"validate_{name}", Tool("step"), body)
        strand = Strand()
        try:
            with strand.entered(str(params.ctx.tool_call_id), felt=True):
                recorded = await call(**_plain_arguments(params.tool_args))
        finally:
            strand.join()
            tracing.answered()
        return _revived(operation, shared.delivered(params.ctx.deps, recorded, name))

    def _known(self, operation: Operation, params: Params, name: str) -> Known:
        tool = getattr(params, "tool", None)
        definition: ToolDefinition | None = tool.tool_def if tool is not None else getattr(params, "tool_def", None)
        own, timeout = None, definition.timeout if definition is not None else None
        if isinstance(tool, FunctionToolsetTool) and isinstance(tool.toolset, FunctionToolset):
            own = tool.toolset.tools.get(tool.original_name or params.name)
            timeout = tool.toolset.timeout if timeout is None else timeout
        metadata = definition.metadata if definition is not None else None
        kind = getattr(operation.operation_id, "toolset_kind", "function")
        met = self._met.get((name, id(own)))
        if met is not None and met.own is own and met.definition == definition and met.timeout == timeout:
            return met
        if len(self._met) > MOST_MET:
            self._met.clear()  # Toolsets that are made for each run have new ones each time.
        said = self._said(name, params.name, metadata, own, timeout=timeout, has_hints=kind != "function")
        found = Known(name, definition, own, said, timeout, own.takes_ctx if own is not None else kind != "mcp")
        self._met[name, id(own)] = found
        return found

    def _said(
        self,
        name: str,
        inner: str,
        metadata: Mapping[str, Any] | None,
        own: FrameworkTool[Any] | None,
        *,
        timeout: float | None,
        has_hints: bool = False,
    ) -> Tool | Declared:
        """`inner`: its name in its own toolset."""
        fn = own.function if own is not None else None
        under, said = declared(fn), self.named(name) or self.named(inner) or _in_metadata(name, metadata)
        if under is not None:
            _check_declared(name, under, said, timeout, own)
            return under
        if said is None and has_hints and self._hints:
            said = _hinted(metadata)
        said = said or policy.ASKS
        if said.kind != "inline" and (found := policy.effect_in(fn, _is_recorded)):
            raise refused(
                sf.UsageError(
                    f"tool {name} calls {found}, which is recorded by itself, and would be inside of an effect: the outer intent "
                    f"is on disk by then, and in doubt. Put @sf.workflow under @agent.tool of {name}: its body is workflow code "
                    "then."
                )
            )
        return said


def recording(name: str, said: Tool, body: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """A call that nobody knows more of than its name."""
    return calls.recorded(name, {}, said, body)


def _recorded(known: Known, said: Tool, *, is_asked: bool) -> Callable[..., Awaitable[Any]]:
    """The tool as an effect or a step of its own name, with its arguments by name."""

    async def body(**_: Any) -> Any:
        call = _calling.get()
        deps = call.params.ctx.deps
        with call.shared.watched(deps, is_given=known.sees_deps) as watch, durable_unit_scope():
            return watch.packed(_plain(known.name, call.operation, await call.operation.handler(call.params)))

    return calls.recorded(
        known.name,
        known.schema,
        said,
        body,
        approve=is_asked,
        timeout=known.timeout,
        fn=known.own.function if known.own is not None else None,
    )


def _plain_arguments(given: Mapping[str, Any]) -> dict[str, Any]:
    found = {
        name: to_jsonable_python(value, fallback=lambda other: type(other).__name__) for name, value in given.items()
    }
    return {name: value if storable(value) else repr(value) for name, value in found.items()}


def _plain(tool: str, operation: Operation, value: Any) -> Any:
    """As it is recorded. Never refused: the tool has done what it does, and its outcome has to be recorded."""
    try:
        found: Any = operation.result_codec.dump(value)
    except (ValueError, TypeError):  # pydantic_core's errors of serialisation are ValueErrors
        found = None
    if not storable(found) or found is None:
        found = {"kind": ANSWER, "result": result_of(tool, getattr(value, "result", value))}
    return found["result"] if found["kind"] == ANSWER and not _has_kind(found["result"]) else found


def _revived(operation: Operation, recorded: Any) -> Any:
    return operation.result_codec.load(recorded if _has_kind(recorded) else {"kind": ANSWER, "result": recorded})


def _has_kind(value: Any) -> bool:
    return isinstance(value, dict) and value.get("kind") in KINDS


def _denied(note: str) -> ToolDenied:
    """The framework's words for a call that was not approved, with what the person said."""
    return ToolDenied(f"{ToolDenied().message} {note}".strip())


def _without_timeout(params: Params) -> Params:
    """The effect has it. The framework's own would be recorded as an answer, while the tool may go on."""
    if isinstance(params, DynamicToolsetCallToolParams):
        if params.tool_def is None:
            return params
        return dataclasses.replace(params, tool_def=dataclasses.replace(params.tool_def, timeout=math.inf))
    if params.tool is None:
        return params
    definition = dataclasses.replace(params.tool.tool_def, timeout=math.inf)
    return dataclasses.replace(params, tool=dataclasses.replace(params.tool, tool_def=definition))


def _in_metadata(name: str, metadata: Mapping[str, Any] | None) -> Tool | None:
    said = (metadata or {}).get(WORD)
    if said is None or isinstance(said, Tool):
        return said
    if isinstance(said, str):
        return policy.named(name, {name: said})
    if not isinstance(said, dict):
        raise refused(
            sf.UsageError(f'tool {name}: metadata={{"{WORD}": …}} takes a word ("step"), or the arguments of sf.tool')
        )
    try:
        return policy.tool(**said)
    except TypeError as error:
        raise refused(sf.UsageError(f'tool {name}: metadata={{"{WORD}": {said!r}}}: {error}')) from None


def _hinted(metadata: Mapping[str, Any] | None) -> Tool | None:
    """What an MCP server says about a tool."""
    found = (metadata or {}).get("annotations")
    return policy.hinted(SimpleNamespace(**found)) if isinstance(found, dict) else None


def _check_declared(
    name: str, under: Declared, said: Tool | None, timeout: float | None, own: FrameworkTool[Any] | None
) -> None:
    if said is not None:
        raise refused(
            sf.UsageError(
                f"tool {name} is declared twice: @sf.{under.kind} under @agent.tool, and in tools= or in its metadata"
            )
        )
    context = _context_of(own)
    if under.kind != "workflow" and context is not None and context not in under.ignored:
        raise refused(
            sf.UsageError(
                f"tool {name}: its {context} cannot be recorded with its arguments. Say so: "
                f'@sf.{under.kind}(ignore="{context}")'
            )
        )
    if timeout is not None:
        how = "async with sf.timeout(…) in it" if under.kind == "workflow" else f"@sf.{under.kind}(timeout={timeout:g})"
        raise refused(
            sf.UsageError(
                f"tool {name}: its timeout= would cut off a call that is recorded below it. Say it there: {how}"
            )
        )


def _context_of(own: FrameworkTool[Any] | None) -> str | None:
    """The name of the parameter that gets the run context; None: there is none."""
    if own is None or not own.takes_ctx:
        return None
    return next(iter(inspect.signature(own.function).parameters), None)


def _is_recorded(value: Any) -> bool:
    found = declared(value)
    return (found is not None and found.kind in ("effect", "workflow")) or _is_durable(value)


def _is_durable(value: Any) -> bool:
    """Whether it is an agent whose calls are recorded by themselves."""
    from surefoot.adapters.pydantic_ai.capability import Durable

    return isinstance(value, AbstractAgent) and Durable.from_agent(value) is not None


def leaves(toolset: AbstractToolset[Any]) -> Iterator[AbstractToolset[Any]]:
    found: list[AbstractToolset[Any]] = []
    toolset.apply(found.append)
    return iter(found)
