"""One thread, one line: two processes do not both go on from the same checkpoint; whoever names one may fork."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

import surefoot as sf
from surefoot.langgraph import Saver
from tests.langgraph_threads import THREAD, Chat, begun, chat

ROOT = Path(__file__).parents[3]
FIRST = {"messages": [HumanMessage("hello", id="h")], "asked": []}


def put(saver, thread, parent=None, **values):
    """A checkpoint behind another one. Its config."""
    config = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
    if parent is not None:
        config["configurable"]["checkpoint_id"] = parent["configurable"]["checkpoint_id"]
    checkpoint = empty_checkpoint() | {"channel_values": values, "channel_versions": dict.fromkeys(values, 1)}
    return saver.put(config, checkpoint, {"source": "loop", "step": 1, "parents": {}}, {})


def newest(saver, thread):
    return saver.get_tuple({"configurable": {"thread_id": thread}})


def test_second_saver_that_went_on_from_the_same_checkpoint_is_fenced(url):
    """Both would else have their own continuation, and the later one would win without a word."""
    one, other = Saver(store=url), Saver(store=url)
    put(one, "t", x=1)
    first, second = newest(one, "t"), newest(other, "t")
    put(one, "t", first.config, x=2)

    with pytest.raises(sf.Fenced, match="somebody else went on"):
        put(other, "t", second.config, x=3)

    assert newest(other, "t").checkpoint["channel_values"] == {"x": 2}
    put(other, "t", newest(other, "t").config, x=3)
    assert newest(one, "t").checkpoint["channel_values"] == {"x": 3}


def test_two_that_begin_the_same_thread_are_one_too_many(url):
    one, other = Saver(store=url), Saver(store=url)
    assert newest(one, "t") is None
    assert newest(other, "t") is None
    put(one, "t", x=1)

    with pytest.raises(sf.Fenced):
        put(other, "t", x=2)


def test_checkpoint_that_is_named_may_be_forked_from(url):
    """Time travel is meant: the old line stays, and the fork is the newest."""
    saver = Saver(store=url)
    first = put(saver, "t", x=1)
    put(saver, "t", newest(saver, "t").config, x=2)

    chosen = saver.get_tuple(first)
    put(saver, "t", chosen.config, x=3)

    assert [one.checkpoint["channel_values"]["x"] for one in saver.list({"configurable": {"thread_id": "t"}})] == [
        3,
        2,
        1,
    ]
    assert newest(saver, "t").parent_config == first


def test_writes_go_behind_whatever_others_wrote(url):
    """Tasks of one step write side by side, from several threads and processes."""
    one, other = Saver(store=url), Saver(store=url)
    config = put(one, "t", x=1)
    newest(other, "t")

    def write(saver, name):
        for number in range(10):
            saver.put_writes(config, [("ch", f"{name}{number}")], f"{name}{number}")

    workers = [threading.Thread(target=write, args=pair) for pair in ((one, "a"), (other, "b"), (one, "c"))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    wrote = newest(Saver(store=url), "t").pending_writes
    assert sorted(value for _, _, value in wrote) == sorted(f"{name}{n}" for name in "abc" for n in range(10))


PROCESS = """
    import sys, json
    import surefoot as sf
    from surefoot.langgraph import Saver
    from tests.langgraph_threads import THREAD
    saver = Saver(store=sys.argv[1])
    found = saver.get_tuple(THREAD)
    print(json.dumps(found.checkpoint["id"]), flush=True)
    sys.stdin.readline()
    from langgraph.checkpoint.base import empty_checkpoint
    try:
        saver.put(found.config, empty_checkpoint(), {"source": "loop", "step": 9, "parents": {}}, {})
    except sf.Fenced as error:
        print(json.dumps(str(error)))
"""


def test_process_that_slept_meanwhile_is_fenced(sqlite):
    """The real thing: another process went on, and then the first one wakes up and saves."""
    begun(sqlite)
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PROCESS), sqlite],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as process:
        assert json.loads(process.stdout.readline())
        assert chat(Saver(store=sqlite)).invoke(Command(resume="yes"), THREAD)["asked"] == ["yes"]
        out, _ = process.communicate("go\n", timeout=60)

    assert "somebody else went on" in json.loads(out.splitlines()[-1])


def test_time_travel_in_a_graph_with_a_subgraph(url):
    """A replay takes the subgraph back too; the new line is not taken for a stranger's."""

    def inner(state):
        return {"asked": [interrupt("inside?")]}

    sub = StateGraph(Chat).add_node("inner", inner).add_edge(START, "inner").add_edge("inner", END).compile()
    builder = StateGraph(Chat)
    builder.add_node("before", lambda _: {"asked": ["before"]})
    builder.add_node("sub", sub)
    builder.add_edge(START, "before")
    builder.add_edge("before", "sub")
    builder.add_edge("sub", END)
    graph = builder.compile(checkpointer=Saver(store=url))

    graph.invoke(FIRST, THREAD)
    assert graph.invoke(Command(resume="one"), THREAD)["asked"][-1] == "one"
    early = next(state for state in graph.get_state_history(THREAD) if state.next == ("sub",))
    again = graph.invoke(None, early.config)

    assert again["__interrupt__"][0].value == "inside?"
    assert graph.invoke(Command(resume="two"), THREAD)["asked"][-1] == "two"


def test_async_graph_goes_on_in_a_blocking_one(url):
    """A server is async, a script that repairs is not; both see the same thread."""

    async def begin():
        return await chat(Saver(store=url)).ainvoke(FIRST, THREAD)

    assert asyncio.run(begin())["__interrupt__"]
    assert chat(Saver(store=url)).invoke(Command(resume="yes"), THREAD)["asked"] == ["yes"]


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_every_durability_of_langgraph_works(url, durability):
    saver = Saver(store=url)
    graph = chat(saver)

    graph.invoke(FIRST, THREAD, durability=durability)

    assert len(newest(saver, "chat").checkpoint["channel_values"]["messages"]) == 5
    assert graph.invoke(Command(resume="yes"), THREAD, durability=durability)["asked"] == ["yes"]
