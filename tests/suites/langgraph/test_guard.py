"""`guard`: effects in nodes of a graph, never repeated, whatever happens to the process and whatever is sent to the thread."""

from __future__ import annotations

import asyncio
import operator
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, RetryPolicy, Send, interrupt

import surefoot as sf
from surefoot.cli.main import main
from surefoot.langgraph import Saver, guard
from tests import langgraph_guard


class State(TypedDict):
    log: Annotated[list[Any], operator.add]


THREAD: dict[str, Any] = {"configurable": {"thread_id": "chat"}}
did: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_done(sqlite):
    did.clear()
    sf.configure(store=sqlite)


@sf.effect
def charge(what: str) -> str:
    did.append(what)
    return f"charged {what}"


@sf.effect
async def acharge(what: str) -> str:
    did.append(what)
    return f"charged {what}"


@sf.effect(approve=True)
def mail(to: str) -> str:
    did.append(f"mail {to}")
    return f"mailed {to}"


def line(*nodes, saver=None, guarded=True, **options):
    """A graph of these nodes, one after the other."""
    builder = StateGraph(State)
    names = [node.__name__ for node in nodes]
    for node, follows in zip(nodes, (START, *names), strict=False):
        builder.add_node(node.__name__, node, **options)
        builder.add_edge(follows, node.__name__)
    builder.add_edge(names[-1], END)
    app = builder.compile(checkpointer=saver or Saver())
    return guard(app) if guarded else app


def once(error: BaseException) -> Any:
    """Raises the first time it is called."""
    left = [error]

    def strike() -> None:
        if left:
            raise left.pop()

    return strike


def invoke(app: Any, given: Any, *, is_async: bool, **options: Any) -> Any:
    if is_async:
        return asyncio.run(app.ainvoke(given, THREAD, **options))
    return app.invoke(given, THREAD, **options)


colours = pytest.mark.parametrize("is_async", [False, True], ids=["blocking", "async"])


# --- not again -------------------------------------------------------------------------------------------------------


@colours
def test_a_node_that_broke_after_an_effect_does_not_do_it_again(url, is_async):
    sf.configure(store=url)
    strike = once(ValueError("boom"))

    def node(_: State) -> Any:
        found = charge("card")
        strike()
        return {"log": [found]}

    app = line(node)
    with pytest.raises(ValueError, match="boom"):
        invoke(app, {"log": []}, is_async=is_async)

    assert invoke(app, None, is_async=is_async) == {"log": ["charged card"]}
    assert did == ["card"]


def test_a_node_of_async_code_awaits_its_effects():
    async def node(_: State) -> Any:
        return {"log": [await acharge("card")]}

    app = line(node)

    assert asyncio.run(app.ainvoke({"log": []}, THREAD)) == {"log": ["charged card"]}
    assert did == ["card"]


@colours
def test_a_retry_of_langgraph_does_not_repeat_what_was_done(is_async):
    strike = once(ConnectionError("away"))

    def node(_: State) -> Any:
        found = charge("card")
        strike()
        return {"log": [found]}

    policy = RetryPolicy(initial_interval=0.001, jitter=False, retry_on=ConnectionError)
    app = line(node, retry_policy=policy)

    assert invoke(app, {"log": []}, is_async=is_async) == {"log": ["charged card"]}
    assert did == ["card"]


@colours
def test_a_node_whose_writes_were_not_saved_is_answered_and_not_executed(is_async):
    """The process died between the end of the node and LangGraph's own record of it."""
    executed = []

    def node(_: State) -> Any:
        executed.append(charge("card"))
        return {"log": [AIMessage("charged", id="a1")]}

    class Dies(Saver):
        def _save(self, *args):
            if executed:
                raise OSError("gone")
            return super()._save(*args)

        def _write(self, *args):
            raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        invoke(line(node, saver=Dies()), {"log": []}, is_async=is_async, durability="sync")
    app = line(node)
    with pytest.raises(sf.RunConflict, match="was not saved in the thread"):
        invoke(app, {"log": []}, is_async=is_async)

    assert invoke(app, None, is_async=is_async) == {"log": [AIMessage("charged", id="a1")]}
    assert (did, len(executed)) == (["card"], 1)


def test_nodes_side_by_side_are_runs_of_their_own():
    """Those of one step have the same name, and LangGraph tells them apart by their tasks."""

    def fan(_: State) -> Any:
        return Command(goto=[Send("work", {"log": [number]}) for number in range(4)])

    strike = once(ValueError("boom"))

    def work(state: State) -> Any:
        number = state["log"][0]
        found = charge(f"part {number}")
        if number == 2:
            strike()
        return {"log": [found]}

    builder = StateGraph(State)
    builder.add_node("fan", fan)
    builder.add_node("work", work)
    builder.add_edge(START, "fan")
    app = guard(builder.compile(checkpointer=Saver()))
    with pytest.raises(ValueError, match="boom"):
        app.invoke({"log": []}, THREAD)

    assert len(app.invoke(None, THREAD)["log"]) == 4
    assert sorted(did) == [f"part {number}" for number in range(4)]


@colours
def test_nodes_of_a_subgraph_are_guarded_with_it(is_async):
    strike = once(ValueError("boom"))

    def inner(_: State) -> Any:
        return {"log": [charge("inner")]}

    def breaks(_: State) -> Any:
        found = charge("second")
        strike()
        return {"log": [found]}

    builder = StateGraph(State)
    for node in (inner, breaks):
        builder.add_node(node.__name__, node)
    builder.add_edge(START, "inner")
    builder.add_edge("inner", "breaks")
    outer = StateGraph(State)
    outer.add_node("sub", builder.compile())
    outer.add_edge(START, "sub")
    app = guard(outer.compile(checkpointer=Saver()))
    with pytest.raises(ValueError, match="boom"):
        invoke(app, {"log": ["in"]}, is_async=is_async)
    with pytest.raises(sf.RunConflict):
        invoke(app, {"log": ["in"]}, is_async=is_async)

    assert "charged second" in invoke(app, None, is_async=is_async)["log"]
    assert did == ["inner", "second"]


def test_two_that_drive_one_thread_do_an_effect_once(url):
    """Two processes on one thread: one waits for the other's run, and its checkpoint is then fenced."""
    sf.configure(store=url)
    inside, gate = threading.Event(), threading.Event()

    @sf.effect
    def slow() -> str:
        did.append("slow")
        inside.set()
        assert gate.wait(20)
        return "done"

    def before(_: State) -> Any:
        return {}

    def node(_: State) -> Any:
        return {"log": [slow()]}

    def app() -> Any:
        return line(before, node, saver=Saver())

    line(before, node, guarded=False).invoke({"log": []}, THREAD, interrupt_before=["node"], durability="sync")
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(app().invoke, None, THREAD)
        assert inside.wait(20)
        second = pool.submit(app().invoke, None, THREAD)
        gate.set()
        ended = [one.exception(20) for one in (first, second)]

    assert did == ["slow"]
    assert all(error is None or isinstance(error, sf.Fenced) for error in ended)
    assert None in ended


# --- before anything is executed -------------------------------------------------------------------------------------


@colours
def test_nothing_is_executed_before_its_checkpoint_is_durable(is_async):
    """Else the next process would know the task by another name, and do it again."""
    order: list[str] = []
    begun = threading.Event()

    class Slow(Saver):
        def _save(self, *args):
            save = super()._save(*args)

            def late():
                begun.wait(20)
                found = save()
                order.append("saved")
                return found

            return late

    @sf.effect
    def act() -> None:
        order.append("acted")

    def node(_: State) -> Any:
        begun.set()
        act()
        return {}

    invoke(line(node, saver=Slow()), {"log": []}, is_async=is_async, durability="async")

    assert order.index("saved") < order.index("acted")


@colours
def test_nothing_is_executed_if_its_checkpoint_cannot_be_saved(is_async):
    class Full(Saver):
        has_room = False

        def _save(self, config, checkpoint, metadata):
            save = super()._save(config, checkpoint, metadata)
            thread = config["configurable"]["thread_id"]

            def refuse():
                with self._settling(thread):
                    raise sf.StoreFull("the disk is full")

            return save if metadata["step"] < 0 or self.has_room else refuse

    def node(_: State) -> Any:
        return {"log": [charge("card")]}

    full = Full()
    with pytest.raises(sf.StoreUnavailable, match="disk is full"):
        invoke(line(node, saver=full), {"log": []}, is_async=is_async, durability="async")
    assert did == []
    full.has_room = True

    assert invoke(line(node, saver=full), {"log": []}, is_async=is_async, durability="async") == {
        "log": ["charged card"]
    }


@colours
@pytest.mark.parametrize(
    "options", [{"durability": "exit"}, {"checkpoint_during": False}], ids=["durability", "checkpoint_during"]
)
@pytest.mark.filterwarnings("ignore:.*checkpoint_during")
def test_exit_is_refused_before_anything_is_executed(is_async, options):
    def node(_: State) -> Any:
        return {"log": [charge("card")]}

    with pytest.raises(sf.UsageError, match='durability="exit"'):
        invoke(line(node), {"log": []}, is_async=is_async, **options)
    assert did == []


# --- new input -------------------------------------------------------------------------------------------------------


@colours
def test_input_that_is_sent_again_while_an_effect_is_in_doubt_is_stopped(url, is_async):
    """A chat server sends the message again. LangGraph would begin anew under other names, and charge twice."""
    sf.configure(store=url)

    @sf.effect
    def unsure() -> str:
        did.append("charge")
        raise RuntimeError("lost the connection")

    def node(_: State) -> Any:
        return {"log": [unsure()]}

    app = line(node)
    for _ in range(3):
        with pytest.raises(sf.InDoubt):
            invoke(app, {"log": ["pay"]}, is_async=is_async)
    (run,) = sf.runs(labels={"thread": "chat"})
    run.settle("unsure#1", happened="paid")

    assert invoke(app, None, is_async=is_async) == {"log": ["pay", "paid"]}
    assert did == ["charge"]


def test_input_is_taken_again_when_the_run_was_given_up():
    strike = once(ValueError("boom"))

    def node(_: State) -> Any:
        found = charge("card")
        strike()
        return {"log": [found]}

    app = line(node)
    with pytest.raises(ValueError, match="boom"):
        app.invoke({"log": ["pay"]}, THREAD)
    with pytest.raises(sf.RunConflict, match="has not come to its end"):
        app.invoke({"log": ["pay"]}, THREAD)
    (run,) = sf.runs(labels={"thread": "chat"})
    run.cancel()

    assert app.invoke({"log": ["pay"]}, THREAD)["log"][-1] == "charged card"
    assert did == ["card", "card"]


def test_new_input_is_taken_if_it_is_meant_or_if_nothing_was_done():
    strike = [ValueError("boom"), ValueError("boom")]

    @sf.step
    def look() -> str:
        return "looked"

    def reads(_: State) -> Any:
        look()
        if strike:
            raise strike.pop()
        return {}

    def node(_: State) -> Any:
        return {"log": [charge("card")]}

    app = line(reads, node)
    for _ in range(2):
        with pytest.raises(ValueError, match="boom"):
            app.invoke({"log": []}, THREAD)
    assert app.invoke({"log": []}, THREAD) == {"log": ["charged card"]}

    def breaks(_: State) -> Any:
        charge("again")
        raise ValueError("boom")

    allows = guard(line(breaks, guarded=False), on_new_input="allow")
    for _ in range(2):
        with pytest.raises(ValueError, match="boom"):
            allows.invoke({"log": []}, THREAD)
    assert did == ["card", "again", "again"]


def test_a_thread_that_has_come_to_its_end_takes_new_input():
    def node(_: State) -> Any:
        return {"log": [charge("card")]}

    app = line(node)

    for count in range(1, 4):
        assert len(app.invoke({"log": []}, THREAD)["log"]) == count
    assert did == ["card"] * 3


# --- questions -------------------------------------------------------------------------------------------------------


def mails(_: State) -> Any:
    return {"log": [mail("Ada"), mail("Bob")]}


@colours
def test_a_question_of_a_run_is_an_interrupt_and_its_answer_counts_once(url, is_async):
    sf.configure(store=url)
    app = line(mails)

    found = invoke(app, {"log": []}, is_async=is_async)
    (asked,) = found["__interrupt__"]
    assert (asked.value["question"], asked.value["name"]) == ("Run mail#1?", "mail#1.approval")
    with pytest.raises(sf.WaitingForAnswer):
        invoke(app, {"log": []}, is_async=is_async)
    found = invoke(app, Command(resume=True), is_async=is_async)

    # The yes was for Ada's mail, and says nothing of Bob's.
    (asked,) = found["__interrupt__"]
    assert (asked.value["name"], did) == ("mail#2.approval", ["mail Ada"])
    assert invoke(app, None, is_async=is_async)["__interrupt__"] == [asked]
    assert did == ["mail Ada"]
    assert invoke(app, Command(resume={asked.id: True}), is_async=is_async) == {"log": ["mailed Ada", "mailed Bob"]}


def test_a_question_may_be_answered_from_anywhere():
    app = line(mails)
    for given, name in (({"log": []}, "mail#1.approval"), (None, "mail#2.approval")):
        assert app.invoke(given, THREAD)["__interrupt__"][0].value["name"] == name
        (run,) = sf.runs(labels={"thread": "chat"})
        run.answer(name, True, by="ada")

    assert app.invoke(None, THREAD) == {"log": ["mailed Ada", "mailed Bob"]}


def test_a_no_is_recorded_and_met_by_the_node():
    def node(_: State) -> Any:
        try:
            return {"log": [mail("Ada")]}
        except sf.Denied:
            return {"log": ["denied"]}

    app = line(node)
    app.invoke({"log": []}, THREAD)

    assert app.invoke(Command(resume=False), THREAD) == {"log": ["denied"]}
    assert did == []


def test_interrupts_of_langgraph_stay_its_own():
    """The values that they were resumed with are counted by LangGraph; ours do not take part."""

    def node(_: State) -> Any:
        name = interrupt("whom?")
        sent = mail(name)
        return {"log": [sent, interrupt("and?")]}

    app = line(node)
    assert app.invoke({"log": []}, THREAD)["__interrupt__"][0].value == "whom?"
    assert app.invoke(Command(resume="Ada"), THREAD)["__interrupt__"][0].value["name"] == "mail#1.approval"
    assert app.invoke(Command(resume=True), THREAD)["__interrupt__"][0].value == "and?"

    assert app.invoke(Command(resume="that is all"), THREAD) == {"log": ["mailed Ada", "that is all"]}
    assert did == ["mail Ada"]


# --- what is wrapped -------------------------------------------------------------------------------------------------


def test_what_it_does_not_know_is_refused():
    def node(_: State) -> Any:
        return {}

    def graph(**options: Any) -> Any:
        builder = StateGraph(State)
        builder.add_node("node", node)
        builder.add_edge(START, "node")
        return builder.compile(**options) if options else builder

    with pytest.raises(sf.UsageError, match="takes a compiled graph"):
        guard(graph())
    with pytest.raises(sf.UsageError, match=r"checkpointer=Saver\(\), not InMemorySaver"):
        guard(graph(checkpointer=InMemorySaver()))
    with pytest.raises(sf.UsageError, match="guarded already"):
        guard(guard(graph(checkpointer=Saver())))
    outer = StateGraph(State)
    outer.add_node("sub", graph(checkpointer=False))
    outer.add_edge(START, "sub")
    with pytest.raises(sf.UsageError, match="without checkpoints"):
        guard(outer.compile(checkpointer=Saver()))


def test_the_graph_that_was_given_stays_as_it_is():
    def node(_: State) -> Any:
        return {"log": ["in"]}

    plain = line(node, guarded=False)
    app = guard(plain)

    assert plain.nodes["node"].bound is app.nodes["node"].bound.bound
    assert app.with_config({"tags": ["x"]}).invoke({"log": []}, THREAD) == {"log": ["in"]}
    assert type(app.with_config({})).__name__ == type(plain).__name__
    assert app.get_graph().draw_mermaid() == plain.get_graph().draw_mermaid()


def test_names_of_any_length_and_kind_name_a_run():
    long = {"configurable": {"thread_id": "Zoë" + "e\u0301" * 150}}

    def node(_: State) -> Any:
        return {"log": [charge("card")]}

    app = line(node)
    app.invoke({"log": []}, long)

    (run,) = sf.runs()
    assert len(run.id) <= 200
    with pytest.raises(sf.UsageError, match="control characters"):
        app.invoke({"log": []}, {"configurable": {"thread_id": "a\x1fb"}})


def test_a_node_without_calls_costs_a_tenth_of_a_millisecond():
    """As a ratio: a node of LangGraph with a Saver costs a millisecond, and guarding it a part of that."""

    def node(state: State) -> Any:
        return {"log": ["x"] if len(state["log"]) < 50 else []}

    builder = StateGraph(State)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    builder.add_conditional_edges("node", lambda state: "node" if len(state["log"]) < 50 else END)
    plain = builder.compile(checkpointer=Saver())
    app = guard(plain)

    def seconds(graph: Any, thread: str) -> float:
        begun = time.process_time()
        graph.invoke({"log": []}, {"configurable": {"thread_id": thread}, "recursion_limit": 200}, durability="sync")
        return time.process_time() - begun

    bare, guarded = [], []
    for number in range(60):  # On a busy machine the shortest of a few is still a long one.
        bare.append(seconds(plain, f"p{number}"))
        guarded.append(seconds(app, f"g{number}"))
        if number >= 8 and min(guarded) <= 1.1 * min(bare):
            break

    assert min(guarded) <= 1.1 * min(bare)
    assert sf.runs() == []


# --- kills -----------------------------------------------------------------------------------------------------------


@pytest.mark.timeout(240)
@pytest.mark.parametrize("is_async", [False, True], ids=["blocking", "async"])
@pytest.mark.parametrize("durability", ["sync", "async"])
def test_a_graph_that_is_killed_at_random_moments_does_nothing_twice(tmp_path, durability, is_async):
    """The proof does it twenty times each."""
    langgraph_guard.killed(tmp_path / "run", 7, durability, is_async=is_async)


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("durability", "again"), [("sync", {"charge"}), ("async", {"charge", "reserve"}), ("exit", {"charge", "reserve"})]
)
def test_without_guard_a_killed_graph_goes_on_where_its_durability_says(tmp_path, durability, again):
    """The Saver alone: what the thread has is whole, the node that was cut off is executed again, and with `sync` no other."""
    executed = langgraph_guard.killed_plain(tmp_path / "run", durability)

    assert {name for name in executed if executed.count(name) > 1} <= again
    assert executed.count("charge") == 2


# --- other ways to invoke a graph ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["updates", "values", "events"])
def test_a_stream_that_was_left_in_the_middle_goes_on_where_it_was(mode):
    """A client of a chat server closes its tab: the stream is closed between two nodes, or inside of one."""

    async def first(_: State) -> Any:
        return {"log": [await acharge("first")]}

    async def second(_: State) -> Any:
        return {"log": [await acharge("second")]}

    app = line(first, second)

    async def leave() -> None:
        found = app.astream_events({"log": []}, THREAD) if mode == "events" else streamed({"log": []})
        async for _ in found:
            if did:
                break
        await found.aclose()

    def streamed(given: Any) -> Any:
        return app.astream(given, THREAD, stream_mode="updates" if mode == "events" else mode)

    async def rest() -> list[Any]:
        return [part async for part in streamed(None)]

    asyncio.run(leave())
    asyncio.run(rest())

    assert app.get_state(THREAD).values == {"log": ["charged first", "charged second"]}
    assert did == ["first", "second"]


def test_a_stream_brings_a_question_and_takes_its_answer():
    app = line(mails)

    async def parts(given: Any) -> list[Any]:
        return [part async for part in app.astream(given, THREAD, stream_mode="updates")]

    (asked,) = asyncio.run(parts({"log": []}))[-1]["__interrupt__"]
    asyncio.run(parts(Command(resume={asked.id: True})))

    assert did == ["mail Ada"]


@colours
def test_an_entrypoint_is_one_node(is_async):
    """LangGraph's functional API: the function is executed again from its first line, and finds what it did."""
    strike = once(ValueError("boom"))

    if is_async:

        @entrypoint(checkpointer=Saver())
        async def flow(what: str) -> str:
            found = await acharge(what)
            strike()
            return found + await acharge("tip")
    else:

        @entrypoint(checkpointer=Saver())
        def flow(what: str) -> str:
            found = charge(what)
            strike()
            return found + charge("tip")

    app = guard(flow)
    with pytest.raises(ValueError, match="boom"):
        invoke(app, "card", is_async=is_async)
    with pytest.raises(sf.RunConflict):
        invoke(app, "card", is_async=is_async)

    assert invoke(app, None, is_async=is_async) == "charged cardcharged tip"
    assert did == ["card", "tip"]


def test_an_effect_in_a_task_of_an_entrypoint_is_refused_before_it_is_executed():
    """LangGraph executes it in a thread of its own, and answers it itself afterwards."""

    @task
    def pay() -> str:
        return charge("card")

    @entrypoint(checkpointer=Saver())
    def flow(_: str) -> str:
        return pay().result()

    with pytest.raises(sf.UsageError):
        guard(flow).invoke("x", THREAD)
    assert did == []


def test_the_runs_of_a_thread_are_one_line_of_the_list(capsys):
    """Those that need a person are named; `--label` lists each."""

    @sf.effect
    def unsure() -> None:
        did.append("unsure")
        raise RuntimeError("lost the connection")

    def first(_: State) -> Any:
        return {"log": [charge("card")]}

    def second(_: State) -> Any:
        unsure()

    with pytest.raises(sf.InDoubt):
        line(first, second).invoke({"log": []}, THREAD)

    assert main(["runs"]) == 0
    _, thread, run = capsys.readouterr().out.splitlines()
    assert thread.split()[:3] == ["stopped", "thread", "chat"]
    assert thread.rstrip().endswith("2 runs, 1 to look at")
    assert run.split()[1].startswith("chat:second:")
    assert run.rstrip().endswith("InDoubt unsure#1")
    assert main(["runs", "--label", "thread=chat"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3

    (stopped,) = [run for run in sf.runs() if run.status == "stopped"]
    assert main(["settle", stopped.id, "unsure#1", "--not-happened"]) == 0
    assert "invoke the graph of langgraph again on thread chat, with None as its input" in capsys.readouterr().out


def test_tools_that_nothing_records_are_told_of(tmp_path, caplog):
    """`guard` records what a node gave. A tool in it that moved money would move it again, and nobody would know."""
    from langchain_core.tools import tool
    from langgraph.graph import MessagesState
    from langgraph.prebuilt import ToolNode

    @tool
    def charge(card: str) -> str:
        """Charge a card."""
        return card

    def compiled(**options):
        builder = StateGraph(MessagesState)
        builder.add_node("tools", ToolNode([charge], **options))
        builder.add_edge(START, "tools")
        return builder.compile(checkpointer=Saver(store=f"sqlite:///{tmp_path}/runs.db"))

    guard(compiled())
    assert "node tools runs tools, and nothing records what they do" in caplog.text
    caplog.clear()
    guard(compiled(wrap_tool_call=lambda request, execute: execute(request)))
    assert not caplog.text
