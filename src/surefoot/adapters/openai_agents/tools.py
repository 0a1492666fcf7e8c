"""Function tools: what each is recorded as, and how one call of it goes.

The SDK turns whatever a tool raises into text for the model. Recorded like that, a time-out would be a success. So a copy
of the tool without that habit is called, the exception is judged, and only then the SDK's own words are found for it: the
model sees what it always saw, also on replay.
"""

from __future__ import annotations

import copy
import functools
import inspect
import json
import types
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from agents import FunctionTool, ModelBehaviorError
from agents import tool as sdk
from agents.exceptions import ToolTimeoutError
from agents.run_config import ToolErrorFormatterArgs
from agents.run_internal.items import REJECTION_MESSAGE

import surefoot.aio as sf
from surefoot.adapters import calls, policy, versions
from surefoot.adapters.contexts import Shared
from surefoot.adapters.openai_agents import EXTRA, PACKAGES, guardrails, loops, tracing
from surefoot.adapters.policy import Tool
from surefoot.adapters.records import result_of
from surefoot.adapters.turns import Turn
from surefoot.engine.seams import Declared, declared, in_run, key_or_none, refused

KEY = "surefoot/key"
"""Under this name the idempotency key of a call travels in the `_meta` of an MCP request."""
_NEEDED = (
    "invoke_function_tool", "maybe_invoke_function_tool_failure_error_function", "set_function_tool_failure_error_function",
    "default_tool_timeout_error_message", "_FailureHandlingFunctionToolInvoker", "_get_function_tool_invoke_context",
)  # fmt: skip
versions.require_names(EXTRA, PACKAGES, [f"agents.tool.{name}" for name in _NEEDED if not hasattr(sdk, name)])


class InvalidArguments(ModelBehaviorError, sf.Fatal):
    """A model's arguments do not fit the tool. The SDK found that before it called the function."""


@dataclass(frozen=True)
class Calling:
    """One call of a tool, for the body of its effect: what is not recorded of it."""

    context: Any
    shared: Shared
    is_text: bool
    """Whether the arguments are no JSON object, and the tool takes them as they are."""


_calling: ContextVar[Calling] = ContextVar("surefoot_calling")
_INVOKED = inspect.Signature(
    [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ("context", "given")]
)


class DurableTool:
    """What a tool of an agent is inside of a run. `sub`: of an agent that is used as a tool, its durable twin."""

    def __init__(self, tool: FunctionTool, said: Tool | Declared, sub: Any = None) -> None:
        self.original = tool
        self.said = said
        self._quiet = _without_failure_function(tool if sub is None else _with_agent(tool, sub))
        self._is_agent = sub is not None
        self._is_narrow: bool | None = None
        if isinstance(said, Tool) and not self._is_agent and said.kind != "inline":
            self._call, self._approved = (_recorded(self, said, approve=approve) for approve in (said.approve, True))
        self.tool = self._wrapped()

    def _wrapped(self) -> FunctionTool:
        """As the SDK gets it: it asks nobody and has no time-out, since the recorded call has both."""

        async def invoked(context, given):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - the SDK reads them at each call
            return await self._invoke(context, given)

        invoked.__signature__ = _INVOKED  # type: ignore[attr-defined]
        made = copy.copy(self.original)
        made.on_invoke_tool = invoked
        made.needs_approval = False
        made.timeout_seconds = None
        for field in ("tool_input_guardrails", "tool_output_guardrails"):
            found = getattr(made, field)
            if found:
                setattr(made, field, [guardrails.recorded_of_tool(each, _under_id) for each in found])
        return made

    async def _invoke(self, context: Any, given: str) -> Any:
        if not in_run():
            return await self.original.on_invoke_tool(context, given)
        return await _under_id(context, functools.partial(self._called, context, given, _turn().shared))

    async def _called(self, context: Any, given: str, shared: Shared) -> Any:
        """In the scope of the call's id."""
        try:
            if self._is_agent or isinstance(self.said, Declared) or self.said.kind == "inline":
                return await self._as_declared(context, given, shared)
            recorded = await self._as_tool(context, given, shared)
        except sf.Denied as no:
            return await _rejected(context, self.original.name, no.note)
        except Exception as error:  # noqa: BLE001 - whatever a tool raises, the SDK has words for it
            return await self._told(context, error)
        result = shared.delivered(context.context, recorded, self.original.name)
        adapter = self.original._output_type_adapter
        return result if adapter is None else adapter.validate_python(result)

    async def _as_declared(self, context: Any, given: str, shared: Shared) -> Any:
        """What is under the SDK's decorator records itself: a step, an effect, a workflow, an agent."""
        if not await self._is_agreed(context, given):
            raise sf.Denied(f"{self.original.name} was denied", note=self._note)
        if not isinstance(self.said, Declared) or self.said.kind == "workflow":
            return await self.execute(context, given)
        given_context = _is_given_context(self.original)
        with shared.unchanged(
            context.context,
            is_given=given_context,
            tool=self.original.name,
            kind=self.said.kind,
            under="@function_tool",
        ):
            try:
                value = await self.execute(context, given)
            except InvalidArguments:
                raise  # The SDK refused it, and nothing was asked for.
            except BaseException:
                tracing.answered()
                raise
            tracing.answered()
            return value

    async def _as_tool(self, context: Any, given: str, shared: Shared) -> Any:
        arguments, is_text = self._arguments(given)
        if arguments is None:
            return await self.execute(context, given)  # The SDK refuses it before it calls anything.
        needs = await self._needs_approval(context, arguments)
        is_effect = isinstance(self.said, Tool) and self.said.kind == "effect"
        if needs and not is_effect and not (answer := await _asked(self.original.name, arguments)):
            raise sf.Denied(f"{self.original.name} was denied", answer.by, answer.note)
        token = _calling.set(Calling(context, shared, is_text))
        try:
            return await (self._approved if needs and is_effect else self._call)(**arguments)
        finally:
            _calling.reset(token)
            tracing.answered()

    def _arguments(self, given: str) -> tuple[dict[str, Any] | None, bool]:
        """By name; None: they are none, and the SDK itself will say so."""
        try:
            found = json.loads(given) if given else {}
        except ValueError:
            found = None
        if isinstance(found, dict):
            return found, False
        is_sdks = isinstance(self.original.on_invoke_tool, sdk._FailureHandlingFunctionToolInvoker)
        return (None, False) if is_sdks else ({"input": given}, True)

    async def _needs_approval(self, context: Any, arguments: dict[str, Any]) -> bool:
        asks: Any = self.original.needs_approval
        if not callable(asks):
            return bool(asks)
        return bool(
            await _needs(self.original.name, arguments, asks=lambda: asks(context, arguments, context.tool_call_id))
        )

    _note = ""

    async def _is_agreed(self, context: Any, given: str) -> bool:
        arguments = self._arguments(given)[0] or {}
        if not await self._needs_approval(context, arguments):
            return True
        answer = await _asked(self.original.name, arguments)
        self._note = answer.note
        return bool(answer)

    async def execute(self, context: Any, given: str) -> Any:
        """Call the tool. What it raises is raised."""
        try:
            impl = getattr(self._quiet.on_invoke_tool, "_invoke_tool_impl", None)
            if self.original._mcp_tool_binding is not None and isinstance(impl, functools.partial):
                return await _with_key(impl)(context, given)
            return await self._quiet.on_invoke_tool(self._seen(context), given)
        except ModelBehaviorError as error:
            if _is_before_the_call(error):
                raise InvalidArguments(str(error)) from error
            raise

    def _seen(self, context: Any) -> Any:
        """As the tool gets it: one that declares the narrower context gets that. The SDK finds it out at each call."""
        if self._is_narrow is None or self._is_narrow:
            found = sdk._get_function_tool_invoke_context(self._quiet, context)
            self._is_narrow = found is not context
            return found
        return context

    async def _told(self, context: Any, error: Exception) -> Any:
        """What the model is told of a failure, in the SDK's own words; or the failure, if it wants that."""
        tool = self.original
        if isinstance(error, TimeoutError) and tool.timeout_seconds is not None:
            late = ToolTimeoutError(tool_name=tool.name, timeout_seconds=tool.timeout_seconds)
            if tool.timeout_behavior == "raise_exception":
                raise late from error
            if tool.timeout_error_function is None:
                return sdk.default_tool_timeout_error_message(tool_name=tool.name, timeout_seconds=tool.timeout_seconds)
            told = tool.timeout_error_function(context, late)
            return await told if inspect.isawaitable(told) else told
        if isinstance(error, sf.UsageError):
            raise error
        text = await sdk.maybe_invoke_function_tool_failure_error_function(
            function_tool=tool, context=context, error=error
        )
        if text is None:
            raise error
        return text


def _turn() -> Turn:
    loop = loops.here()
    if loop is None:
        raise refused(sf.UsageError("a tool of a durable agent was called by something else than the agent's loop"))
    return loop.turn


def _under_id(context: Any, body: Callable[[], Awaitable[Any]]) -> Awaitable[Any]:
    return _turn().call(context.tool_call_id, body)


@sf.step(name="needs_approval", ignore="asks")
async def _needs(tool: str, arguments: dict[str, Any], asks: Callable[[], Any]) -> bool:
    found = asks()
    return bool(await found if inspect.isawaitable(found) else found)


async def _asked(tool: str, arguments: Mapping[str, Any]) -> sf.Decision:
    return await sf.approve(f"Run {tool}?", details={"tool": tool, "arguments": dict(arguments)})


async def _rejected(context: Any, tool: str, note: str) -> Any:
    """The SDK's words for a tool that was not approved, with what the person said."""
    text = f"{REJECTION_MESSAGE} {note}".strip()
    format_error = getattr(context.run_config, "tool_error_formatter", None)
    if format_error is None:
        return text
    told = format_error(
        ToolErrorFormatterArgs(
            kind="approval_rejected",
            tool_type="function",
            tool_name=tool,
            call_id=context.tool_call_id,
            default_message=text,
            run_context=context,
        )
    )
    told = await told if inspect.isawaitable(told) else told
    return told if isinstance(told, str) else text


def _recorded(durable: DurableTool, said: Tool, *, approve: bool) -> Callable[..., Awaitable[Any]]:
    """The tool as an effect or a step of its own name, with its arguments by name."""
    tool = durable.original
    is_given = _is_given_context(tool)

    async def body(**arguments: Any) -> Any:
        call = _calling.get()
        given = arguments["input"] if call.is_text else json.dumps(arguments)
        with call.shared.watched(call.context.context, is_given=is_given) as watch:
            return watch.packed(_plain(tool, await durable.execute(call.context, given)))

    return calls.recorded(
        tool.name,
        tool.params_json_schema,
        said,
        body,
        approve=approve,
        timeout=tool.timeout_seconds,
        fn=function_of(tool),
    )


def _plain(tool: FunctionTool, value: Any) -> Any:
    adapter = tool._output_type_adapter
    return result_of(tool.name, value) if adapter is None else adapter.dump_python(value, mode="json")


def function_of(tool: FunctionTool) -> Any:
    """The user's own function under `@function_tool`; None: it is not known."""
    return getattr(tool, "__wrapped__", None)


def _is_given_context(tool: FunctionTool) -> bool:
    """Whether the tool can see the context: a function that asks for it, or one that nobody knows."""
    fn = function_of(tool)
    if tool._mcp_tool_binding is not None or fn is None:
        return tool._mcp_tool_binding is None
    first = next(iter(inspect.signature(fn).parameters.values()), None)
    return first is not None and any(name in str(first.annotation) for name in ("RunContextWrapper", "ToolContext"))


def _without_failure_function(tool: FunctionTool) -> FunctionTool:
    """A copy that raises what it raises, at any time."""
    quiet = copy.copy(tool)
    quiet.timeout_seconds = None
    return sdk.set_function_tool_failure_error_function(quiet, None)


def _with_key(impl: functools.partial[Any]) -> Callable[..., Awaitable[Any]]:
    key = key_or_none()
    if key is None or "meta" not in impl.keywords:
        return impl
    meta = {**(impl.keywords["meta"] or {}), KEY: key}
    return functools.partial(impl.func, *impl.args, **{**impl.keywords, "meta": meta})


def _with_agent(tool: FunctionTool, agent: Any) -> FunctionTool:
    """The same tool for another agent. The SDK keeps the agent in a closure, so that is made anew."""
    invoker: Any = tool.on_invoke_tool
    impl = getattr(invoker, "_invoke_tool_impl", None)
    names = impl.__code__.co_freevars if isinstance(impl, types.FunctionType) else ()
    cells = dict(zip(names, impl.__closure__ or (), strict=True)) if isinstance(impl, types.FunctionType) else {}
    if "self" not in cells or cells["self"].cell_contents is not tool._agent_instance:
        raise sf.UsageError(
            f"tool {tool.name}: an agent as a tool in a form that surefoot does not know, so that its agent would not be recorded. "
            "Make it with agent.as_tool(...), or offer a function tool that runs the agent."
        )
    closure = tuple(types.CellType(agent) if name == "self" else cell for name, cell in cells.items())
    twin = types.FunctionType(impl.__code__, impl.__globals__, impl.__name__, impl.__defaults__, closure)  # type: ignore[union-attr]
    twin.__kwdefaults__ = impl.__kwdefaults__  # type: ignore[union-attr]
    made = copy.copy(tool)
    made._agent_instance = agent
    made.on_invoke_tool = sdk._FailureHandlingFunctionToolInvoker(twin, invoker._on_handled_error, function_tool=made)
    return made


def _is_before_the_call(error: BaseException) -> bool:
    """Whether the SDK raised it while it read the arguments."""
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if (
            code.co_name in ("_prepare_arguments", "_parse_function_tool_json_input")
            and code.co_filename == sdk.__file__
        ):
            return True
        trace = trace.tb_next
    return False


def said_of(tool: FunctionTool, tools: Mapping[str, Tool | str], *, hints: bool) -> Tool | Declared:
    """What a tool is recorded as. Refused: what could not be recorded as it is."""
    fn = function_of(tool)
    under, said = declared(fn), policy.named(tool.name, tools)
    if under is not None:
        if said is not None:
            raise sf.UsageError(
                f"tool {tool.name} is declared twice: @sf.{under.kind} under @function_tool, and in tools="
            )
        _check_declared(tool, under)
        return under
    if said is None and hints and tool._mcp_tool_binding is not None:
        said = policy.hinted(tool.mcp_annotations)
    said = said or policy.ASKS
    if said.kind != "inline" and (name := policy.effect_in(fn, _is_an_effect)):
        raise sf.UsageError(
            f"tool {tool.name} calls {name}, which is recorded by itself, and would be inside of an effect: the outer intent "
            f"is on disk by then, and in doubt. Put @sf.workflow under @function_tool of {tool.name}: its body is workflow code "
            "then."
        )
    return said


def _is_an_effect(value: Any) -> bool:
    found = declared(value)
    return found is not None and found.kind in ("effect", "workflow")


def _check_declared(tool: FunctionTool, under: Declared) -> None:
    if tool.timeout_seconds is not None:
        how = (
            "async with sf.timeout(…) in it"
            if under.kind == "workflow"
            else f"@sf.{under.kind}(timeout={tool.timeout_seconds:g})"
        )
        raise sf.UsageError(
            f"tool {tool.name}: function_tool(timeout=…) would cut off a call that is recorded below it. Say it there: {how}"
        )
