"""`Durable()`: what an agent of LangChain asks its model and has its tools do, recorded.

A model call is a step. A tool is what it was declared as under LangChain's decorator, what `tools=` says, or an effect that
asks. Each is a run of its own, named by the task of the graph (`nodes.py`) and, of a tool call, by the call's id: several in
one task are told apart by it, and each finds what it did.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from functools import wraps
from typing import Any, Final

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ModelResponse
from langgraph.config import get_config

import surefoot.aio as sf
from surefoot.adapters import calls, policy
from surefoot.adapters.langgraph import serde as codec
from surefoot.adapters.langgraph.nodes import Host, Task, task_of
from surefoot.adapters.langgraph.private import CHECKPOINTER, SCRATCHPAD
from surefoot.adapters.langgraph.saver import Saver
from surefoot.adapters.langgraph.unfinished import refuse_input, refuse_lost
from surefoot.adapters.policy import Tool
from surefoot.adapters.records import jsonable, result_of
from surefoot.adapters.waiting import waiting_for
from surefoot.engine.seams import Strand, declared
from surefoot.errors import UsageError

MODEL: Final = "model"
METADATA: Final = "surefoot"
"""Where a tool says in its own metadata how it is recorded, with the words of `sf.tool`."""
_do: ContextVar[Callable[[], Any]] = ContextVar("surefoot_langgraph_do")
_MOST_EXECUTIONS: Final = 1000


# Without `guard`, nobody looks at what an agent is invoked with: new input is refused where it would be saved.
Saver.on_input = staticmethod(refuse_input)  # type: ignore[method-assign]
Saver.on_fallback = staticmethod(refuse_lost)  # type: ignore[method-assign]


class Durable(AgentMiddleware[Any, Any]):
    """Middleware for `create_agent`, put last: `create_agent(model, tools, middleware=[Durable()], checkpointer=Saver())`.

    `tools` says how tools are recorded that one does not own: `{"look_up": "step", "create_issue": sf.tool(...)}`.
    """

    def __init__(self, tools: Mapping[str, Tool | str] | None = None) -> None:
        super().__init__()
        self._said = {name: policy.named(name, tools or {}) for name in tools or {}}
        self._calls: dict[tuple[str, bool], tuple[Any, Callable[..., Any]]] = {}
        self._checked = False
        self._asked: OrderedDict[int, tuple[Any, int]] = OrderedDict()
        """How often an execution of the model's node has asked."""

    # --- models ------------------------------------------------------------------------------------------

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        config = get_config()
        task = task_of(config)
        if task is None:
            return handler(request)
        saver = _saver(config)
        asked = _asked(request, saver)

        def ask() -> Any:
            return _answer(handler(request), saver)

        return _revived(_host(saver, MODEL).run(self._numbered(task, config), lambda: _model(**asked, ask=ask)), saver)

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        config = get_config()
        task = task_of(config)
        if task is None:
            return await handler(request)
        saver = _saver(config)
        asked = _asked(request, saver)

        async def ask() -> Any:
            return _answer(await handler(request), saver)

        found = await _host(saver, MODEL).run_async(
            self._numbered(task, config), lambda: _async_model(**asked, ask=ask)
        )
        return _revived(found, saver)

    def _numbered(self, task: Task, config: Mapping[str, Any]) -> Task:
        """The run of a model call. Other middleware may ask again in the same task: these are told apart by their number."""
        pad = config["configurable"].get(SCRATCHPAD)  # Each execution of a node has one of its own.
        _, number = self._asked.get(id(pad), (pad, 0))
        self._asked[id(pad)] = pad, number + 1
        while len(self._asked) > _MOST_EXECUTIONS:
            self._asked.popitem(last=False)
        return task._replace(part=f"{MODEL}~{number + 1}" if number else MODEL)

    # --- tools -------------------------------------------------------------------------------------------

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        task = self._task(request)
        if task is None:
            return handler(request)
        tool = self._wrapped(request, handler, is_async=False)
        if callable(tool):
            body: Callable[[], Any] = tool
        else:
            given = request.override(tool=tool)

            def body() -> Any:
                return handler(given)

        return _host(_saver(request.runtime.config), request.tool_call["name"]).run(task, body)

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        task = self._task(request)
        if task is None:
            return await handler(request)
        tool = self._wrapped(request, handler, is_async=True)
        if callable(tool):
            body: Callable[[], Awaitable[Any]] = tool
        else:
            given = request.override(tool=tool)

            async def body() -> Any:
                return await handler(given)

        return await _host(_saver(request.runtime.config), request.tool_call["name"]).run_async(task, body)

    def _task(self, request: Any) -> Task | None:
        """The run of a tool call. None: there is no such tool, which LangChain tells the model; or it is called by hand."""
        task = None if request.tool is None else task_of(request.runtime.config)
        if task is None:
            return None
        if not self._checked:
            known = [tool.name for tool in request.runtime.tools]
            if (error := policy.unknown_names(self._said, known)) is not None:  # type: ignore[arg-type]
                raise error
            self._checked = True
        return task._replace(part=request.tool_call["id"] or request.tool_call["name"])

    def _wrapped(self, request: Any, handler: Callable[[Any], Any], *, is_async: bool) -> Any:
        """The tool, whose function is recorded; or what is to be called, where it has none of its own."""
        tool, call = request.tool, request.tool_call
        fn, coroutine = getattr(tool, "func", None), getattr(tool, "coroutine", None)
        said = self._what(tool, fn or coroutine)
        if fn is None and coroutine is None:
            made = self._recorded(tool, said or policy.ASKS, is_async=is_async)
            if said is not None and said.kind == "inline":
                return lambda: handler(request)
            return _calling(made, call["args"], lambda: handler(request), is_async=is_async)
        update: dict[str, Any] = {}
        if fn is not None:
            one = None if _is_inline(said) else self._recorded(tool, said, is_async=False)
            update["func"] = _blocking(fn, call, one)
        if coroutine is not None:
            one = None if _is_inline(said) else self._recorded(tool, said, is_async=True)
            update["coroutine"] = _tasks(coroutine, call, one)
        return tool.model_copy(update=update)

    def _what(self, tool: Any, fn: Any) -> Tool | None:
        """How calls of a tool are recorded. None: they record themselves, as its function was declared."""
        said = self._said.get(tool.name) or _in_metadata(tool)
        if fn is not None and declared(fn) is not None:
            if said is not None:
                raise UsageError(
                    f"tool {tool.name} is declared under its decorator, and tools= or its metadata says something else"
                )
            return None
        said = said or policy.ASKS
        if fn is not None and said.kind != "inline" and (name := policy.effect_in(fn, _is_recorded)):
            raise UsageError(
                f"tool {tool.name} calls {name}, which is recorded by itself, and would be inside of an effect. Put @sf.workflow under "
                f'its decorator, or say tools={{"{tool.name}": "inline"}}.'
            )
        return said

    def _recorded(self, tool: Any, said: Tool | None, *, is_async: bool) -> Callable[..., Any]:
        known = self._calls.get((tool.name, is_async))
        if known is not None and known[0] is said:
            return known[1]

        def body(**_: Any) -> Any:
            return result_of(tool.name, _do.get()())

        async def async_body(**_: Any) -> Any:
            return result_of(tool.name, await _do.get()())

        fn = getattr(tool, "func", None) or getattr(tool, "coroutine", None)
        schema: Any = tool.tool_call_schema
        schema = schema.model_json_schema() if hasattr(schema, "model_json_schema") else schema
        made = calls.recorded(tool.name, schema, said or policy.ASKS, async_body if is_async else body, fn=fn)
        self._calls[tool.name, is_async] = said, made
        return made


def _is_inline(said: Tool | None) -> bool:
    """Whether its function makes its own calls: it was declared, or it is workflow code."""
    return said is None or said.kind == "inline"


def _in_metadata(tool: Any) -> Tool | None:
    said = (tool.metadata or {}).get(METADATA)
    if said is None or isinstance(said, Tool):
        return said
    return policy.tool(**said) if isinstance(said, Mapping) else policy.named(tool.name, {tool.name: said})


def _is_recorded(value: Any) -> bool:
    found = declared(value)
    return found is not None and found.kind != "step"


def _blocking(fn: Callable[..., Any], call: Mapping[str, Any], made: Callable[..., Any] | None) -> Callable[..., Any]:
    @wraps(fn)
    def called(*args: Any, **kwargs: Any) -> Any:
        with Strand().entered(call["id"] or call["name"], felt=True):
            if made is None:
                return fn(*args, **kwargs)
            token = _do.set(lambda: fn(*args, **kwargs))
            try:
                return made(**call["args"])
            finally:
                _do.reset(token)

    return called


def _tasks(fn: Callable[..., Any], call: Mapping[str, Any], made: Callable[..., Any] | None) -> Callable[..., Any]:
    @wraps(fn)
    async def called(*args: Any, **kwargs: Any) -> Any:
        with Strand().entered(call["id"] or call["name"], felt=True):
            if made is None:
                return await fn(*args, **kwargs)
            token = _do.set(lambda: fn(*args, **kwargs))
            try:
                return await made(**call["args"])
            finally:
                _do.reset(token)

    return called


def _calling(made: Callable[..., Any], arguments: Mapping[str, Any], do: Callable[[], Any], *, is_async: bool) -> Any:
    def called() -> Any:
        token = _do.set(do)
        try:
            return made(**arguments)
        finally:
            _do.reset(token)

    async def awaited() -> Any:
        token = _do.set(do)
        try:
            return await made(**arguments)
        finally:
            _do.reset(token)

    return awaited if is_async else called


# --- model calls, as they are recorded -------------------------------------------------------------------------------


@sf.step(name=MODEL, ignore="ask", noted="about")
def _model(messages: Any, about: Any, ask: Callable[[], Any]) -> Any:
    with waiting_for("the model"):
        return ask()


@sf.step(name=MODEL, ignore="ask", noted="about")
async def _async_model(messages: Any, about: Any, ask: Callable[[], Awaitable[Any]]) -> Any:
    with waiting_for("the model"):
        return await ask()


def _asked(request: Any, saver: Saver) -> dict[str, Any]:
    """The conversation, which is compared; and what else the model is told, which may be reworded."""
    system = request.system_message
    about = {
        "model": getattr(request.model, "model_name", None) or type(request.model).__name__,
        "system": None if system is None else jsonable(system.content),
        "tools": [tool.get("name", "") if isinstance(tool, dict) else tool.name for tool in request.tools],
        "settings": jsonable(request.model_settings),
    }
    return {"messages": codec.as_stored(list(request.messages), saver.serde, "messages"), "about": about}


def _answer(found: Any, saver: Saver) -> Any:
    response = found if isinstance(found, ModelResponse) else ModelResponse(result=[found])
    return [
        codec.as_stored(list(response.result), saver.serde, "result"),
        codec.as_stored(response.structured_response, saver.serde, "structured_response"),
    ]


def _revived(stored: Any, saver: Saver) -> Any:
    result, structured = stored
    return ModelResponse(
        result=codec.as_given(result, saver.serde, "result"),
        structured_response=codec.as_given(structured, saver.serde, "structured_response"),
    )


# --- where it is recorded --------------------------------------------------------------------------------------------


def _host(saver: Saver, name: str) -> Host:
    known: Host = saver.hosts.setdefault(name, Host("agent", name, saver))
    return known


def _saver(config: Mapping[str, Any]) -> Saver:
    saver = config.get("configurable", {}).get(CHECKPOINTER)
    if not isinstance(saver, Saver):
        raise UsageError(
            f"Durable() needs the checkpoints in the store of the runs: create_agent(…, checkpointer=Saver()), not {type(saver).__name__}"
        )
    return saver
