"""`Durable()`: agents of LangChain whose model calls and tools are recorded."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import BaseTool, ToolException, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import Field

import surefoot as sf
import surefoot.aio as asf
from surefoot.langgraph import Durable, Saver, guard

THREAD: dict[str, Any] = {"configurable": {"thread_id": "ticket-81"}}
ASK = {"messages": [HumanMessage("pay 100 to Ada", id="h")]}
did: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_done(sqlite):
    did.clear()
    sf.configure(store=sqlite)


class Scripted(BaseChatModel):
    """Answers by how many tool results it sees, so a resumed process goes on where the conversation stands."""

    calls: list[list[dict[str, Any]]]
    away: list[Exception] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any) -> ChatResult:
        did.append("model")
        if self.away:
            raise self.away.pop()
        turn = len({one.tool_call_id for one in messages if isinstance(one, ToolMessage)})
        seen = sum(len(calls) for calls in self.calls)
        if turn >= seen:
            return _result(AIMessage("all done", id="end"))
        at = next(number for number in range(len(self.calls)) if sum(map(len, self.calls[: number + 1])) > turn)
        return _result(AIMessage("", tool_calls=self.calls[at], id=f"a{at}"))


def _result(message: AIMessage) -> ChatResult:
    return ChatResult(generations=[ChatGeneration(message=message)])


def call(name: str, id_: str, **args: Any) -> dict[str, Any]:
    return {"name": name, "args": args, "id": id_, "type": "tool_call"}


class Cut(Exception):
    """Stands for the end of the process."""


cuts: list[str] = []


def strike(where: str) -> None:
    if where in cuts:
        cuts.remove(where)
        raise Cut(where)


@pytest.fixture(autouse=True)
def _no_cuts():
    cuts.clear()


@tool
def look_up(order: str) -> str:
    """Reads."""
    did.append(f"look_up {order}")
    return f"order {order}: Ada"


@tool
def wire(to: str, cents: int) -> str:
    """Moves money, and nobody has said how."""
    did.append(f"wire {to} {cents}")
    return f"wired {cents} to {to}"


@tool
@sf.effect(on_crash="retry")
def charge(order: str) -> str:
    """Declared."""
    did.append(f"charge {order}")
    return f"charged {order}"


@tool
@asf.effect(on_crash="retry")
async def acharge(order: str) -> str:
    """Declared, and of async code."""
    did.append(f"charge {order}")
    return f"charged {order}"


@tool
@sf.effect(approve=True)
def mail(to: str) -> str:
    """A person has to agree."""
    did.append(f"mail {to}")
    return f"mailed {to}"


class Cuts(AgentMiddleware):
    """Cuts the agent off behind a tool, outside of what Durable sees."""

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        found = handler(request)
        strike(request.tool_call["id"])
        return found

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        found = await handler(request)
        strike(request.tool_call["id"])
        return found


def agent(*calls: list[dict[str, Any]], tools: Any, durable: Durable | None = None, model: Any = None, **options: Any):
    made = create_agent(
        model or Scripted(calls=list(calls)),
        tools,
        middleware=[Cuts(), durable or Durable(tools={"look_up": "step"} if look_up in tools else None)],
        checkpointer=options.pop("saver", None) or Saver(),
    )
    return guard(made)


def invoke(app: Any, given: Any, *, is_async: bool) -> Any:
    found = asyncio.run(app.ainvoke(given, THREAD)) if is_async else app.invoke(given, THREAD)
    return found["messages"][-1].content if "__interrupt__" not in found else found["__interrupt__"]


colours = pytest.mark.parametrize("is_async", [False, True], ids=["blocking", "async"])


@colours
def test_an_agent_that_is_cut_off_behind_a_tool_does_it_once(is_async):
    app = agent([call("look_up", "c1", order="81")], [call("wire", "c2", to="Ada", cents=100)], tools=[look_up, wire])
    cuts.extend(["c1", "c2"])
    for _ in range(2):
        with pytest.raises(Cut):
            invoke(app, None if did else ASK, is_async=is_async)

    assert invoke(app, None, is_async=is_async) == "all done"
    assert [one for one in did if one != "model"] == ["look_up 81", "wire Ada 100"]
    assert did.count("model") == 3
    assert {(run.status, run.labels["thread"]) for run in sf.runs()} == {("done", "ticket-81")}


@colours
def test_input_that_is_sent_again_is_refused_without_guard_too(is_async):
    """It is not even saved: the thread goes on from where it stood."""

    @tool
    def transfer(cents: int) -> str:
        """Moves money."""
        did.append(f"transfer {cents}")
        raise TimeoutError("the bank did not answer")

    app = create_agent(
        Scripted(calls=[[call("transfer", "c1", cents=100)]]), [transfer], middleware=[Durable()], checkpointer=Saver()
    )
    with pytest.raises(sf.InDoubt):
        invoke(app, ASK, is_async=is_async)
    with pytest.raises((sf.InDoubt, sf.StoreUnavailable), match=r"in doubt|could not be saved"):
        invoke(app, ASK, is_async=is_async)
    (run,) = sf.runs(workflow="agent.transfer")
    run.settle("[c1]/transfer#1", happened="transferred")

    assert invoke(app, None, is_async=is_async) == "all done"
    assert did.count("transfer 100") == 1


@colours
def test_tools_are_called_side_by_side_and_told_apart_by_their_ids(is_async):
    app = agent(
        [
            call("wire", "c1", to="Ada", cents=1),
            call("wire", "c2", to="Bob", cents=2),
            call("charge", "c3", order="81"),
        ],
        tools=[wire, charge],
    )
    cuts.append("c2")
    with pytest.raises(Cut):
        invoke(app, ASK, is_async=is_async)

    assert invoke(app, None, is_async=is_async) == "all done"
    assert sorted(one for one in did if one != "model") == ["charge 81", "wire Ada 1", "wire Bob 2"]


@colours
def test_a_declared_tool_is_recorded_as_it_was_declared(is_async):
    app = agent([call("charge", "c1", order="81")], tools=[charge])

    assert invoke(app, ASK, is_async=is_async) == "all done"
    (run,) = sf.runs(workflow="agent.charge")
    assert [(step.address, step.on_crash) for step in run.steps()] == [("[c1]/charge#1", "retry")]


def test_a_declared_tool_of_async_code_is_recorded_too():
    app = agent([call("acharge", "c1", order="81")], tools=[acharge])

    assert invoke(app, ASK, is_async=True) == "all done"
    (run,) = sf.runs(workflow="agent.acharge")
    assert [step.address for step in run.steps()] == ["[c1]/acharge#1"]


@colours
def test_a_plain_tool_asks_when_nobody_knows_whether_it_did_it(is_async):
    """A time-out is not a text for the model: the money may have moved."""

    @tool
    def transfer(cents: int) -> str:
        """Moves money."""
        did.append(f"transfer {cents}")
        raise TimeoutError("the bank did not answer")

    app = agent([call("transfer", "c1", cents=100)], tools=[transfer])
    for given in (ASK, None, None):
        with pytest.raises(sf.InDoubt):
            invoke(app, given, is_async=is_async)
    with pytest.raises(sf.InDoubt):
        invoke(app, ASK, is_async=is_async)
    (run,) = sf.runs(workflow="agent.transfer")
    run.settle("[c1]/transfer#1", happened="transferred")

    assert invoke(app, None, is_async=is_async) == "all done"
    assert did.count("transfer 100") == 1


@colours
def test_what_provably_did_nothing_is_told_to_the_model_as_before(is_async):
    @tool
    def refuses(cents: int) -> str:
        """Says no."""
        raise ToolException("too much")

    refuses.handle_tool_error = True
    app = agent(
        [call("refuses", "c1", cents=1)], tools=[refuses], durable=Durable({"refuses": sf.tool(not_done=ToolException)})
    )

    assert invoke(app, ASK, is_async=is_async) == "all done"
    told = [one for one in app.get_state(THREAD).values["messages"] if isinstance(one, ToolMessage)]
    assert [(one.content, one.status) for one in told] == [("too much", "error")]


@colours
def test_questions_of_tools_side_by_side_are_put_at_once(is_async):
    app = agent([call("mail", "c1", to="Ada"), call("mail", "c2", to="Bob")], tools=[mail])

    asked = invoke(app, ASK, is_async=is_async)
    assert sorted(one.value["name"] for one in asked) == ["[c1]/mail#1.approval", "[c2]/mail#1.approval"]
    answers = {one.id: "c1" in one.value["name"] for one in asked}
    with pytest.raises(sf.Denied):
        invoke(app, Command(resume=answers), is_async=is_async)

    assert [one for one in did if one != "model"] == ["mail Ada"]


@colours
def test_a_model_that_is_away_is_asked_again_and_the_agent_is_not_lost(is_async):
    model = Scripted(calls=[[call("wire", "c1", to="Ada", cents=1)]])
    model.away.append(ConnectionError("away"))
    app = agent(tools=[wire], model=model)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("surefoot.adapters.waiting.LONGEST_SECONDS", 0.01)
        assert invoke(app, ASK, is_async=is_async) == "all done"
    assert did.count("model") == 3


def test_a_tool_without_a_function_of_its_own_is_recorded_whole():
    class Custom(BaseTool):
        name: str = "custom"
        description: str = "Does something."

        def _run(self, what: str) -> str:
            did.append(f"custom {what}")
            return f"did {what}"

    app = agent([call("custom", "c1", what="it")], tools=[Custom()])
    cuts.append("c1")
    with pytest.raises(Cut):
        app.invoke(ASK, THREAD)

    assert invoke(app, None, is_async=False) == "all done"
    assert did.count("custom it") == 1


def test_middleware_that_asks_the_model_again_gets_another_answer():
    class Twice(AgentMiddleware):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            handler(request)
            return handler(request)

    made = create_agent(Scripted(calls=[]), [], middleware=[Twice(), Durable()], checkpointer=Saver())
    made.invoke(ASK, THREAD)

    assert did == ["model", "model"]
    assert sorted(run.id.rpartition("/")[2] for run in sf.runs()) == ["model", "model~2"]


def test_a_plain_tool_that_calls_an_effect_is_refused_before_it_is_called():
    @tool
    def hides(order: str) -> str:
        """Calls an effect by itself."""
        return pays(order)

    app = agent([call("hides", "c1", order="81")], tools=[hides])

    with pytest.raises(sf.UsageError, match="tool hides calls pays"):
        app.invoke(ASK, THREAD)
    assert did == ["model"]


@sf.effect
def pays(order: str) -> str:
    did.append(f"pays {order}")
    return order


def test_workflow_code_under_a_tool_makes_its_own_calls():
    @tool
    def settles(order: str) -> str:
        """Calls effects by itself."""
        return f"{pays(order)} {pays(order)}"

    app = agent([call("settles", "c1", order="81")], tools=[settles], durable=Durable({"settles": "inline"}))

    assert invoke(app, ASK, is_async=False) == "all done"
    (run,) = sf.runs(workflow="agent.settles")
    assert [step.address for step in run.steps()] == ["[c1]/pays#1", "[c1]/pays#2"]


def test_what_it_does_not_know_is_refused():
    app = agent([call("wire", "c1", to="Ada", cents=1)], tools=[wire], durable=Durable({"wired": "step"}))
    with pytest.raises(sf.UsageError, match="names wired"):
        app.invoke(ASK, THREAD)

    other = create_agent(Scripted(calls=[]), [], middleware=[Durable()], checkpointer=InMemorySaver())
    with pytest.raises(sf.UsageError, match=r"checkpointer=Saver\(\)\), not InMemorySaver"):
        other.invoke(ASK, THREAD)


def test_an_agent_without_checkpoints_works_as_before():
    app = create_agent(Scripted(calls=[[call("wire", "c1", to="Ada", cents=1)]]), [wire], middleware=[Durable()])

    assert app.invoke(ASK)["messages"][-1].content == "all done"
    assert did == ["model", "wire Ada 1", "model"]
    with pytest.raises(sf.NotFound):
        sf.runs()
