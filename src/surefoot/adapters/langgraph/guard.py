"""`guard(graph)`: effects in the nodes of a graph, never repeated.

Each node is executed as a run (`nodes.py`). What a graph is invoked with is looked at before LangGraph sees it: an answer to
a question of a run is recorded there, once; new input is refused while a part of the thread is under way, since LangGraph
would begin anew with it, under other names, and do again what was done.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Final, Literal, TypeVar, cast

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ensure_config, merge_configs
from langgraph.pregel import Pregel
from langgraph.types import Command

import surefoot as sf
from surefoot.adapters.langgraph.nodes import Host, is_question, no_exit, task_of
from surefoot.adapters.langgraph.private import (
    CHECKPOINT_MAP,
    CHECKPOINT_NS,
    DEFAULT_BOUND,
    DURABILITY,
    INTERRUPT,
    SCRATCHPAD,
    TASK_ID,
)
from surefoot.adapters.langgraph.saver import GUARDED, Saver, off_the_loop
from surefoot.adapters.langgraph.unfinished import Graph, has_lost, refuse_input, refuse_lost
from surefoot.engine.seams import one_of
from surefoot.errors import UsageError

log = logging.getLogger("surefoot")

G = TypeVar("G", bound=Pregel[Any, Any, Any, Any])
OnNewInput = Literal["stop", "allow"]
_MARK: Final = "_surefoot_guard"
_BRINGS_NO_ANSWER: Final = "__surefoot_brings_no_answer"
"""In a config: what the graph was invoked with resumes nothing."""


def guard(graph: G, *, on_new_input: OnNewInput = "stop") -> G:
    """The same graph, whose nodes are executed as runs: what they did is not done again.

    `graph` was compiled with a `Saver`. Nodes call steps and effects; a subgraph is guarded with it. `on_new_input="allow"`
    lets the graph be invoked with new input although a node of the thread has not come to its end: then it is never
    finished, and what it did stays done.
    """
    one_of(on_new_input, OnNewInput, "guard: on_new_input")
    if not isinstance(graph, Pregel):
        raise UsageError(
            f"guard takes a compiled graph, builder.compile(checkpointer=Saver()), not {type(graph).__name__}"
        )
    if isinstance(graph, Guarded):
        raise UsageError("this graph is guarded already")
    if not isinstance(graph.checkpointer, Saver):
        raise UsageError(
            "guard needs the checkpoints in the store of the runs: compile the graph with checkpointer=Saver(), "
            f"not {type(graph.checkpointer).__name__}"
        )
    return _guarded(graph, Entrance(graph.checkpointer, on_new_input), graph.get_name())


def _guarded(graph: G, entrance: Entrance, name: str) -> G:
    made: Any = type(type(graph).__name__, (Guarded, type(graph)), {_MARK: entrance})
    twin = made.__new__(made)
    twin.__dict__.update(graph.__dict__)
    twin.nodes = {node: _hosted(found, entrance, name, node) for node, found in graph.nodes.items()}
    return twin  # type: ignore[no-any-return]


def _hosted(node: Any, entrance: Entrance, graph: str, name: str) -> Any:
    bound = node.bound
    if bound is DEFAULT_BOUND:
        return node
    if isinstance(bound, Pregel):
        if isinstance(bound, Guarded):
            return node
        if bound.checkpointer is False:
            raise UsageError(
                f"node {name} is a graph without checkpoints (checkpointer=False): what it has done could not be found again. "
                "Leave checkpointer= away there, and it uses those of the graph around it."
            )
        inner = _guarded(bound, entrance, f"{graph}.{name}")
        return node.copy({"bound": inner, "subgraphs": [inner]})
    warn_of_tools(bound, name)
    return node.copy({"bound": Node(bound, Host(graph, name, entrance.saver))})


def warn_of_tools(bound: Any, node: str) -> None:
    """Tools that nothing around them records run again after a kill: `guard` records what a node gave, not what it did."""
    from langgraph.prebuilt import ToolNode

    wrapped = getattr(bound, "_wrap_tool_call", None) or getattr(bound, "_awrap_tool_call", None)
    if isinstance(bound, ToolNode) and not wrapped:
        log.warning(
            "guard: node %s runs tools, and nothing records what they do: killed in one of them, it runs them again. "
            "create_agent(…, middleware=[Durable()]) records each of them",
            node,
        )


class Node(Runnable[Any, Any]):
    """Has a node executed as a run."""

    def __init__(self, bound: Runnable[Any, Any], host: Host) -> None:
        self.bound = bound
        self._host = host
        self.name = bound.get_name()

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002 - LangChain's name
        task = task_of(config or {})
        drop_used_answer(config or {})
        if task is None:
            return self.bound.invoke(input, config, **kwargs)
        return self._host.run(task, lambda: self.bound.invoke(input, config, **kwargs))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002 - as above
        task = task_of(config or {})
        drop_used_answer(config or {})
        if task is None:
            return await self.bound.ainvoke(input, config, **kwargs)
        return await self._host.run_async(task, lambda: self.bound.ainvoke(input, config, **kwargs))


def drop_used_answer(config: Mapping[str, Any]) -> None:
    """LangGraph keeps the last value that it was resumed with, and would give it to the next `interrupt` of a node as well,
    where nothing was resumed with now.
    """
    named = config.get("configurable", {})
    pad = named.get(SCRATCHPAD)
    if pad is not None and _BRINGS_NO_ANSWER in named and pad.resume and pad.resume[-1] == pad.get_null_resume(False):
        pad.get_null_resume(True)


class Entrance:
    """What a guarded graph is invoked with."""

    def __init__(self, saver: Saver, on_new_input: OnNewInput) -> None:
        self.saver = saver
        self._allows = on_new_input == "allow"

    def enter(self, given: Any, config: RunnableConfig, durability: str | None, graph: Graph) -> tuple[Any, bool]:
        """What the graph is to be invoked with, and whether the checkpoint that is named is only where it stands: then it is
        not named to LangGraph. An answer to one of our questions is recorded, and taken out of what is given.
        """
        named = config.get("configurable", {})
        if TASK_ID in named:
            return given, False  # It is a part of another graph, and that one was looked at.
        if (durability or named.get(DURABILITY)) == "exit":
            raise no_exit()
        thread = named.get("thread_id")
        if thread is None:
            return given, False
        goes_on = given is None or (isinstance(given, Command) and given.resume is not None)
        stands = goes_on and self._stands(str(thread), named)
        self._look(str(thread), graph, goes_on=goes_on, is_named=bool(named.get("checkpoint_id")) and not stands)
        return self._answered(given, config) if goes_on and given is not None else given, stands

    def _stands(self, thread: str, named: Mapping[str, Any]) -> bool:
        """Whether the newest checkpoint is named: LangGraph would make a fork of it, under which nothing is found again."""
        id_ = named.get("checkpoint_id")
        if not id_ or named.get(CHECKPOINT_NS) or named.get(CHECKPOINT_MAP):
            return False
        newest = self.saver.newest_of(thread)
        return newest is not None and newest.id == id_ and not has_lost(self.saver, thread, newest)

    def _look(self, thread: str, graph: Graph, *, goes_on: bool, is_named: bool) -> None:
        if is_named:
            if not self._allows:
                refuse_input(self.saver, thread, "a checkpoint that was named")
        elif goes_on or self._allows:
            refuse_lost(self.saver, thread, graph if goes_on and not self._allows else None)
        else:
            refuse_input(self.saver, thread)

    def _answered(self, given: Command[Any], config: RunnableConfig) -> Any:
        found = self.saver.get_tuple(config)
        wrote = () if found is None else found.pending_writes or ()
        asked = {one.id: one for _, channel, value in wrote if channel == INTERRUPT for one in _many(value)}
        ours = {id_: one.value for id_, one in asked.items() if is_question(one)}
        resume = given.resume
        if isinstance(resume, Mapping) and resume.keys() & ours.keys():
            answers = {id_: value for id_, value in resume.items() if id_ in ours}
            left: Any = {id_: value for id_, value in resume.items() if id_ not in ours} or None
        elif ours and len(asked) == 1:
            answers, left = dict.fromkeys(ours, resume), None
        else:
            return given  # LangGraph's own, or it says that an id is needed.
        for id_, answer in answers.items():
            asks = ours[id_]
            run = sf.get_run(asks["run"], store=self.saver.store_url)
            run.answer(asks["name"], answer, shown=asks["shown"], note="Command(resume=…)")
        if left is None and given.update is None and not given.goto:
            return None
        return Command(graph=given.graph, update=given.update, resume=left, goto=given.goto)


def _many(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)


class Guarded:
    """Put before the class of a graph: `invoke`, `batch` and streams of events all come through these two."""

    def stream(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> Iterator[Any]:  # noqa: A002 - LangGraph's
        given, config = _entered(self, input, config, options)
        return super().stream(given, config, **options)  # type: ignore[misc,no-any-return]

    def astream(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> AsyncIterator[Any]:  # noqa: A002 - as above
        return _streamed(self, super().astream, input, config, options)  # type: ignore[misc]


async def _streamed(
    graph: Any, astream: Any, given: Any, config: RunnableConfig | None, options: dict[str, Any]
) -> AsyncIterator[Any]:
    given, config = await off_the_loop(_entered, graph, given, config, options)
    async for part in astream(given, config, **options):
        yield part


def _entered(
    graph: Any, given: Any, config: RunnableConfig | None, options: dict[str, Any]
) -> tuple[Any, RunnableConfig | None]:
    durability = options.get("durability")
    if options.get("checkpoint_during") is False:
        durability = "exit"
    whole = ensure_config(merge_configs(graph.config, config))
    asked = Graph(graph.nodes, lambda: graph.get_state(_unnamed(whole)).next)
    given, stands = getattr(graph, _MARK).enter(given, whole, durability, asked)
    if TASK_ID in whole["configurable"]:
        return given, config
    if stands and config is not None:
        config = _unnamed(config)
    notes = {GUARDED: True}
    if getattr(given, "resume", None) is None:
        notes[_BRINGS_NO_ANSWER] = True
    return given, merge_configs(config, {"configurable": notes})


def _unnamed(config: RunnableConfig) -> RunnableConfig:
    """The same without a checkpoint: the newest is meant."""
    named = {name: value for name, value in config.get("configurable", {}).items() if name != "checkpoint_id"}
    return cast("RunnableConfig", {**config, "configurable": named})
