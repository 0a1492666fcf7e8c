"""A task of a graph as a run: a node that is executed again finds what it has recorded.

LangGraph names a task by a hash of the checkpoint that it was made from, so a run is named by its thread and its task. What
the node gave is recorded with the run: a node that ended before LangGraph had saved what it wrote is answered, and not
executed. Before the run is created, the checkpoints that name the task are durable: another process would else know the
same task under another name, and do it again.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple

from langgraph.errors import GraphInterrupt
from langgraph.types import Interrupt

from surefoot.adapters.langgraph import serde as codec
from surefoot.adapters.langgraph.private import CHECKPOINT_MAP, CHECKPOINT_NS, DURABILITY, TASK_ID
from surefoot.adapters.langgraph.saver import Saver
from surefoot.engine.seams import Unit
from surefoot.errors import UsageError, WaitingForAnswer

HOST: Final = "langgraph"
_LONGEST_ID: Final = 200
"""Of a run. A longer name is cut, and ends in its digest."""
_MOST_BEGUN: Final = 10_000


class Task(NamedTuple):
    """One execution of a node, by LangGraph's own names."""

    thread: str
    ns: str
    """Where it is: `node:task`, in a subgraph behind those of the nodes around it."""
    checkpoints: Mapping[str, str]
    """Those that it was made from, by namespace."""
    part: str = ""
    """A part of it that is a run by itself; empty: all of it."""

    @property
    def run(self) -> str:
        whole = f"{self.thread}:{self.ns}" + (f"/{self.part}" if self.part else "")
        if len(whole) <= _LONGEST_ID and whole == whole.strip() and unicodedata.is_normalized("NFC", whole):
            return whole
        digest = hashlib.sha256(whole.encode()).hexdigest()[:32]
        cut = unicodedata.normalize("NFC", whole.strip())[: _LONGEST_ID - 40].strip()
        return f"{cut}…{digest}"

    @property
    def labels(self) -> dict[str, str]:
        """How the run is found by the thread, and by the node and task of the outermost graph that it is a part of; and the
        checkpoint of its own graph: if that is lost, the task is.
        """
        outermost = self.ns.partition("|")[0]
        root = self.checkpoints.get("", "")
        made_from = self.checkpoints.get("|".join(self.ns.split("|")[:-1]), root)
        return {"thread": self.thread, "task": f"{root}/{outermost}", "checkpoint": made_from}


def task_of(config: Mapping[str, Any]) -> Task | None:
    """The task that a node is executed for. None: it is called by hand, as in a test of its own."""
    named = config.get("configurable", {})
    thread, ns, made_from = named.get("thread_id"), named.get(CHECKPOINT_NS), named.get(CHECKPOINT_MAP)
    if thread is None or not ns or not made_from or TASK_ID not in named:
        return None
    if named.get(DURABILITY) == "exit":
        raise no_exit()
    return Task(str(thread), ns, made_from)


def no_exit() -> UsageError:
    return UsageError(
        'durability="exit" saves no checkpoint before the graph ends, so after a crash a node could not be told from one that '
        'was never executed. Use "async" (the default) or "sync". Nothing was executed.'
    )


class Host:
    """Has tasks of one node executed as runs."""

    def __init__(self, graph: str, node: str, saver: Saver) -> None:
        self._unit = Unit(HOST, f"{graph}.{node}", self._stored, self._given)
        self._saver = saver
        self._node = node
        self._begun: OrderedDict[str, None] = OrderedDict()
        """Runs that were created here, or tried to be: LangGraph may try again."""

    def run(self, task: Task, body: Callable[[], Any]) -> Any:
        """What the node gave, now or before; `GraphInterrupt`, if it asks a person."""
        try:
            return self._unit.run(task.run, body, **self._options(task))
        except WaitingForAnswer as stop:
            raise asked(stop) from stop

    async def run_async(self, task: Task, body: Callable[[], Awaitable[Any]]) -> Any:
        """The same for tasks of asyncio."""
        try:
            return await self._unit.run_async(task.run, body, **self._options(task))
        except WaitingForAnswer as stop:
            raise asked(stop) from stop

    def _options(self, task: Task) -> dict[str, Any]:
        run, ids = task.run, tuple(task.checkpoints.values())

        def ready() -> None:
            self._begun[run] = None
            while len(self._begun) > _MOST_BEGUN:
                self._begun.popitem(last=False)
            self._saver.wait_for(task.thread, ids)

        is_new = run not in self._begun and self._saver.made(task.thread, ids)
        return {"store": self._saver.store_url, "labels": task.labels, "ready": ready, "is_new": is_new}

    def _stored(self, value: Any) -> Any:
        return codec.as_stored(value, self._saver.serde, self._node)

    def _given(self, stored: Any) -> Any:
        return codec.as_given(stored, self._saver.serde, self._node)


def asked(stop: WaitingForAnswer) -> BaseException:
    """What the graph is interrupted with: each question, under an id of its own. The stop itself, if it is no question."""
    stops = stop.stops
    if not all(isinstance(one, WaitingForAnswer) and "question" in one.facts for one in stops):
        return stop
    interrupt: BaseException = GraphInterrupt(tuple(_interrupt(one) for one in stops))
    return interrupt


def _interrupt(stop: Any) -> Interrupt:
    named = f"{stop.run_id}\0{stop.address}\0{stop.facts['shown']}"
    value = {
        "question": stop.facts["question"], "message": stop.summary, "run": stop.run_id, "name": stop.address,
        "shown": stop.facts["shown"],
    }  # fmt: skip
    return Interrupt(value, id=hashlib.sha256(named.encode()).hexdigest()[:32])


def is_question(interrupt: Any) -> bool:
    """Whether a run asks it, and not the code of a node with LangGraph's `interrupt`."""
    value = interrupt.value
    return isinstance(value, dict) and {"run", "name", "shown"} <= value.keys()
