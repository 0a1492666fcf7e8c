"""`durable(session)`: an MCP client whose reads are steps, and whose tool calls are what their hints or `tools=` say.

Which tools there are, and what the server says about them, is asked for once per run and recorded: a tool stays what it was
while the run lasts. What is not recorded is refused inside of a run, unless it is in a step or an effect.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import mcp_types as types
from mcp import Client, ClientSession

import surefoot.aio as sf
from surefoot.adapters import calls, policy
from surefoot.adapters.policy import Tool
from surefoot.adapters.records import Form
from surefoot.engine.seams import driver, in_run, key_or_none, refused

S = TypeVar("S", Client, ClientSession)
KEY = "surefoot/key"
"""Under this name the idempotency key of a call travels in its `_meta`."""
RESULT, TOOLS, ANYTHING = Form(types.CallToolResult), Form(types.ListToolsResult), Form(Any)
READS: Mapping[str, Form] = {
    "list_tools": TOOLS,
    "list_resources": Form(types.ListResourcesResult),
    "list_resource_templates": Form(types.ListResourceTemplatesResult),
    "read_resource": Form(types.ReadResourceResult),
    "list_prompts": Form(types.ListPromptsResult),
    "get_prompt": Form(types.GetPromptResult),
    "complete": Form(types.CompleteResult),
}
HARMLESS = frozenset({"send_ping", "initialize", "discover"})
_ask: ContextVar[Callable[..., Any]] = ContextVar("surefoot_mcp_ask")


def durable(session: S, *, tools: Mapping[str, Tool | str] | None = None, hints: bool = True) -> S:
    """A client or session whose calls are recorded inside of a run. Outside of one it is the session itself.

    `tools` says what tools are, by name: `"step"`, `"effect"`, or `sf.tool(...)`. With `hints=False`, what the server says
    about them is not believed: then each is an effect that asks.
    """
    if not isinstance(session, Client | ClientSession):
        raise sf.UsageError(f"durable() takes an mcp.Client or an mcp.ClientSession, not {type(session).__name__}")
    inline = [name for name in tools or {} if (said := policy.named(name, tools or {})) and said.kind == "inline"]
    if inline:
        raise sf.UsageError(f"tools=: {', '.join(inline)} runs in another process, and cannot be inline")
    return Session(session, tools or {}, hints=hints)  # type: ignore[return-value]


class Session:
    """A client of one server."""

    def __init__(self, inner: Any, tools: Mapping[str, Tool | str], *, hints: bool) -> None:
        self._inner, self._tools, self._hints = inner, tools, hints
        self._known: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if isinstance(found, ClientSession):
            return Session(found, self._tools, hints=self._hints)
        if not inspect.ismethod(found) or name in HARMLESS:
            return found
        return _read(found, name) if name in READS else _refusing(found, name)

    async def __aenter__(self) -> Any:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> Any:
        return await self._inner.__aexit__(*error)

    async def call_tool(
        self, name: str, arguments: dict[str, Any] | None = None, *args: Any, meta: Any = None, **options: Any
    ) -> types.CallToolResult:
        """Call a tool, as it is declared: a step, or an effect whose key travels with the request."""
        if not in_run():
            if meta is not None:
                options["meta"] = meta
            return await self._inner.call_tool(name, arguments, *args, **options)  # type: ignore[no-any-return]

        async def ask(given: dict[str, Any]) -> Any:
            key = key_or_none()
            told = {**(meta or {}), KEY: key} if key is not None else meta
            sent = options if told is None else {**options, "meta": told}
            return RESULT.plain(await self._inner.call_tool(name, given, *args, **sent))

        call = await self._call(name)
        token = _ask.set(ask)
        try:
            found: types.CallToolResult = RESULT.revived(await call(**(arguments or {})))
        finally:
            _ask.reset(token)
        return found

    async def _call(self, name: str) -> Any:
        known = self._known.setdefault(driver(), {})
        if not known:
            listed: types.ListToolsResult = await self.list_tools()
            known.update({tool.name: tool for tool in listed.tools})
            if (error := policy.unknown_names(self._tools, list(known))) is not None:
                raise refused(error)
        tool = known.get(name)
        said = policy.named(name, self._tools)
        if said is None and tool is not None and self._hints:
            said = policy.hinted(tool.annotations)

        async def body(**arguments: Any) -> Any:
            return await _ask.get()(arguments)

        return calls.recorded(name, tool.input_schema if tool is not None else {}, said or policy.ASKS, body)


def _read(found: Callable[..., Any], name: str) -> Callable[..., Any]:
    async def called(*args: Any, **options: Any) -> Any:
        if not in_run():
            return await found(*args, **options)

        async def ask() -> Any:
            return READS[name].plain(await found(*args, **options))

        asked = inspect.signature(found).bind(*args, **options).arguments
        return READS[name].revived(await _reading(name)(ANYTHING.plain(dict(asked)), ask=ask))

    return called


_steps: dict[str, Any] = {}


def _reading(name: str) -> Any:
    async def read(asked: Any, ask: Callable[[], Any]) -> Any:
        return await ask()

    if name not in _steps:
        _steps[name] = sf.step(name=name, ignore="ask")(read)
    return _steps[name]


def _refusing(found: Callable[..., Any], name: str) -> Callable[..., Any]:
    def called(*args: Any, **options: Any) -> Any:
        if in_run():
            raise refused(
                sf.UsageError(
                    f"mcp: {name}(…) inside of a run is not recorded, so it would be done again on every resume. Put it into a function "
                    f"with @sf.step or @sf.effect. Recorded are: call_tool, {', '.join(READS)}."
                )
            )
        return found(*args, **options)

    return called
