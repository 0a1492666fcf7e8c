"""A graph whose list of messages grows by 1 KB a step: what LangGraph's savers write whole every time."""

from __future__ import annotations

import random
import string
import time
from typing import Any

from langchain_core.messages import AIMessage
from langgraph.graph import END, START, MessagesState, StateGraph


class Meter:
    """The CPU time that a saver takes, in whichever thread it is called."""

    def __init__(self, saver: Any) -> None:
        self.seconds = 0.0
        for name in ("put", "put_writes", "get_tuple"):
            setattr(saver, name, self._measured(getattr(saver, name)))

    def _measured(self, method: Any) -> Any:
        from functools import wraps

        @wraps(method)
        def measured(*args: Any, **options: Any) -> Any:
            begin = time.thread_time()
            try:
                return method(*args, **options)
            finally:
                self.seconds += time.thread_time() - begin

        return measured


def grow(saver: Any, *, steps: int) -> float:
    """The CPU seconds of the saver."""
    luck = random.Random(1)
    meter = Meter(saver)

    def node(state: MessagesState) -> dict[str, Any]:
        text = "".join(luck.choices(string.ascii_letters + string.digits, k=1000))
        return {"messages": [AIMessage(content=text, id=str(len(state["messages"])))]}

    builder = StateGraph(MessagesState)
    builder.add_node("n", node)
    builder.add_edge(START, "n")
    builder.add_conditional_edges("n", lambda state: END if len(state["messages"]) >= steps else "n")
    graph = builder.compile(checkpointer=saver)
    graph.invoke(
        {"messages": []}, {"configurable": {"thread_id": "t"}, "recursion_limit": steps + 10}, durability="sync"
    )
    return meter.seconds
