"""What a tool is, what becomes of what it raises, returns and changes, and what is refused before anything runs."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import AsyncIterator
from datetime import date
from typing import Any

import pydantic
import pytest
from pydantic_ai import (
    Agent,
    ApprovalRequired,
    CallDeferred,
    DeferredToolRequests,
    DeferredToolResults,
    FunctionToolset,
    ModelRetry,
    RunContext,
    Tool,
    ToolFailed,
    ToolReturn,
    UnexpectedModelBehavior,
)
from pydantic_ai.capabilities import HandleDeferredToolCalls
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ExternalToolset, ToolsetTool
from pydantic_ai.toolsets.external import TOOL_SCHEMA_VALIDATOR

import surefoot as sf
import surefoot.aio as asf
from surefoot.adapters import versions
from surefoot.adapters.pydantic_ai import EXTRA, PACKAGES
from surefoot.pydantic_ai import Durable
from tests.suites.pydantic_ai.stage import Script, addresses, call, counted, killed_at, trace, traces

DENIED = "The tool call was denied."


def answered(*calls: Any) -> Script:
    return Script(lambda given: json.dumps(given) if given else list(calls))


def running(agent: Agent[Any, Any], *, deps: Any = None, **options: Any) -> Any:
    """A run of that agent, as often as one likes: the last one gives the recorded result."""

    @sf.workflow(name="ticket")
    async def ticket(text: str) -> str:
        made = deps() if callable(deps) else deps
        result = await agent.run(text, deps=made, **options)
        return f"{result.output} {made}" if made is not None else str(result.output)

    def run(run_id: str = "r") -> str:
        return str(asyncio.run(ticket.run(run_id, "ticket 81")))

    return run


def agent_with(tool: Any, *calls: Any, durable: Durable[Any] | None = None, **options: Any) -> Agent[Any, Any]:
    tools = tool if isinstance(tool, list) else [tool]
    return Agent(answered(*calls).model, name="billing", tools=tools, capabilities=[durable or Durable()], **options)


def kinds() -> dict[str, tuple[str, str]]:
    return {each.address: (each.kind, each.on_crash) for each in sf.get_run("r").steps() if "call_" in each.address}


# -- what a tool raises ------------------------------------------------------------------------------


def test_a_tool_that_wants_another_try_is_recorded_with_what_it_said():
    """`ModelRetry` is an answer, and no failure: nothing is in doubt, and the model sees the same on replay."""

    def pay(cents: int) -> str:
        trace(f"pay {cents}")
        if cents > 100:
            raise ModelRetry("too much")
        return "paid"

    script = Script(
        lambda given: "; ".join(given) if len(given) == 2 else call("pay", len(given) + 1, cents=500 - 490 * len(given))
    )
    agent = Agent(script.model, name="billing", tools=[pay], capabilities=[Durable()])
    run = running(agent)
    killed_at("model 2", run)

    found = run()
    assert found == run()
    assert "too much" in found
    assert (counted()["pay 500"], counted()["pay 10"]) == (1, 1)
    assert json.loads(sf.get_run("r").steps()[1].result) == {"kind": "model_retry", "message": "too much"}


def test_a_failure_for_the_model_is_an_answer_too():
    def pay() -> str:
        raise ToolFailed("the bank is closed")

    run = running(agent_with(pay, call("pay")))
    assert run() == run() == json.dumps(['{"error":"the bank is closed"}'])


def test_a_guard_clause_ends_the_run_as_ever_and_asks_nobody():
    """The framework lets an exception of a tool end the agent's run."""

    def pay(cents: int) -> str:
        if cents < 0:
            raise ValueError("no such amount")
        return "paid"

    run = running(agent_with(pay, call("pay", 1, cents=-1)))
    for _ in range(2):
        with pytest.raises(ValueError, match="no such amount"):
            run()
    assert [each.status for each in sf.get_run("r").steps()] == ["done", "failed"]


def test_any_other_exception_leaves_the_tool_in_doubt():
    def pay(cents: int) -> str:
        trace("paid")
        raise KeyError("id")

    run = running(agent_with(pay, call("pay", 1, cents=1)))
    with pytest.raises(sf.InDoubt, match=r"\[call_1\]/pay#1: raised KeyError"):
        run()
    sf.get_run("r").settle("[call_1]/pay#1", happened="paid after all", by="ann")

    assert run() == json.dumps(["paid after all"])
    assert counted()["paid"] == 1


def test_an_exception_may_be_met_by_the_workflow():
    """The same the first time and on replay."""

    def pay(cents: int) -> str:
        trace("tried")
        raise RuntimeError("declined")

    agent = agent_with(pay, call("pay", 1, cents=1), durable=Durable(tools={"pay": sf.tool(not_done=RuntimeError)}))

    @sf.workflow(name="careful")
    async def careful() -> str:
        try:
            return str((await agent.run("go")).output)
        except RuntimeError as error:
            await asf.approve("go on?")
            return f"met: {error}"

    with pytest.raises(sf.WaitingForAnswer):
        asyncio.run(careful.run("r"))
    sf.get_run("r").answer("approve#1", True)
    assert asyncio.run(careful.run("r")) == "met: declined"
    assert counted()["tried"] == 1


def test_arguments_that_do_not_fit_are_for_the_model():
    """The framework found it before it called the function: nothing is recorded, nothing in doubt."""

    def pay(cents: int) -> str:
        trace("paid")
        return "paid"

    run = running(agent_with(pay, call("pay", 1, cents="many"), call("pay", 2, cents=3)))

    assert "valid integer" in run()
    assert run() == run()
    assert addresses()[1:-1] == ["[call_2]/pay#1"]
    assert counted()["paid"] == 1


def test_a_time_out_of_a_tool_is_doubt():
    """The framework would tell the model that it may try again, while the tool goes on."""

    async def pay(cents: int) -> str:
        trace("sent")
        await asyncio.sleep(5)
        return "paid"

    run = running(agent_with(Tool(pay, timeout=0.05), call("pay", 1, cents=1)))
    with pytest.raises(sf.InDoubt, match="TimeoutError"):
        run()
    assert counted()["sent"] == 1


def test_the_frameworks_own_time_out_is_switched_off():
    """Else it would be recorded as an answer, before the effect's own had anything to say."""

    async def pay(cents: int) -> str:
        await asyncio.sleep(0.3)
        return "paid"

    durable = Durable(tools={"pay": sf.tool(timeout="10s")})
    assert running(agent_with(Tool(pay, timeout=0.05), call("pay", 1, cents=1), durable=durable))() == '["paid"]'


def test_a_time_out_of_a_tool_that_reads_is_told_in_the_frameworks_words():
    async def look(order: str) -> str:
        await asyncio.sleep(5)
        return order

    toolset = FunctionToolset([Tool(look, metadata={"surefoot": "step"})], timeout=0.05)
    agent = Agent(answered(call("look", 1, order="o")).model, name="a", toolsets=[toolset], capabilities=[Durable()])
    run = running(agent)
    assert "Timed out after 0.05 seconds." in run()
    assert run() == run()


# -- what a tool returns -----------------------------------------------------------------------------


class Receipt:
    def __str__(self) -> str:
        return "receipt 7"


def test_a_result_that_cannot_be_stored_is_recorded_as_its_text():
    """Else the effect would be unstorable, and need a person although all is well."""

    def pay() -> Any:
        trace("paid")
        return Receipt()

    run = running(agent_with(pay, call("pay")))
    with pytest.warns(RuntimeWarning, match="tool pay returned Receipt"):
        assert run() == '["receipt 7"]'
    assert run() == '["receipt 7"]'
    assert counted()["paid"] == 1


class Total(pydantic.BaseModel):
    cents: int
    day: date


def test_structured_results_are_recorded_as_plain_data():
    def total(of: Total) -> Total:
        assert isinstance(of, Total)
        return of

    run = running(agent_with(total, call("total", 1, cents=5, day="2026-01-02")))
    first = run()
    assert run() == first
    step = sf.get_run("r").steps()[1]
    assert json.loads(step.args) == {"of": {"cents": 5, "day": "2026-01-02"}}
    assert json.loads(step.result) == {"cents": 5, "day": "2026-01-02"}


def test_what_a_tool_says_beside_its_result_is_kept():
    def look() -> ToolReturn:
        return ToolReturn("seen", content=["look at this"], metadata={"page": 7})

    agent = agent_with(look, call("look"))

    @sf.workflow
    async def looking() -> list[Any]:
        messages = (await agent.run("go")).all_messages()
        parts = [part for message in messages for part in message.parts]
        return [[part.part_kind, getattr(part, "metadata", None)] for part in parts]

    found = asyncio.run(looking.run("r"))
    assert ["tool-return", {"page": 7}] in found
    assert [kind for kind, _ in found].count("user-prompt") == 2
    assert asyncio.run(looking.run("r")) == found


@pytest.mark.parametrize(
    "odd",
    [
        {"result": 1, "context": [[["total"], 99]]},
        {"kind": "model_retry", "message": "x"},
        {"kind": "tool_return", "result": 1},
        {"kind": "tool-return"},
        {"kind": "of tomorrow"},
        None,
        [],
    ],
    ids=repr,
)
def test_a_result_that_looks_like_something_of_ours_stays_what_it_is(odd):
    def look() -> Any:
        return odd

    agent = agent_with(look, call("look"))

    @sf.workflow
    async def looking() -> Any:
        messages = (await agent.run("go")).all_messages()
        return next(part.content for message in messages for part in message.parts if part.part_kind == "tool-return")

    assert asyncio.run(looking.run("r")) == odd
    assert asyncio.run(looking.run("r")) == odd
    assert addresses()[1] == "[call_1]/look#1"


# -- what a tool changes in the deps (trap 1) --------------------------------------------------------


@dataclasses.dataclass
class Cart:
    total: int = 0
    names: list[str] = dataclasses.field(default_factory=list)
    more: dict[str, Any] = dataclasses.field(default_factory=dict)
    client: Any = dataclasses.field(default=print, repr=False)


def add(ctx: RunContext[Cart], name: str, cents: int) -> str:
    trace(f"add {name}")
    ctx.deps.total += cents
    ctx.deps.names.append(name)
    ctx.deps.more["last"] = name
    return "added"


def rename(ctx: RunContext[Cart], name: str) -> str:
    ctx.deps.more["name"] = name
    return "renamed"


def look_at() -> str:
    return "seen"


def test_what_a_tool_changes_in_the_deps_is_there_on_replay():
    """5 the first time and 0 on replay, without an error: silently wrong."""
    script = Script(
        lambda given: call("add", len(given) + 1, name=f"n{len(given)}", cents=5) if len(given) < 2 else "done"
    )
    run = running(Agent(script.model, name="shop", tools=[add], deps_type=Cart, capabilities=[Durable()]), deps=Cart)
    killed_at("model 2", run)

    found = run()

    assert found == "done Cart(total=10, names=['n0', 'n1'], more={'last': 'n1'})"
    assert run() == found
    assert counted()["add n0"] == counted()["add n1"] == 1


def test_tools_side_by_side_may_change_different_things():
    run = running(
        agent_with([rename, look_at], call("rename", 1, name="x"), call("look_at", 2), deps_type=Cart), deps=Cart
    )
    assert "more={'name': 'x'}" in run()
    assert run() == run()


def test_tools_side_by_side_that_change_the_same_are_refused():
    """Timing would decide what it is, and that is not on record."""
    calls = [call("add", number, name=f"n{number}", cents=number) for number in (1, 2)]
    run = running(agent_with(add, *calls, deps_type=Cart), deps=Cart)

    for _ in range(3):
        with pytest.raises(sf.UsageError, match="of the context was changed while another tool was at it"):
            run()
    assert counted()["add n1"] == counted()["add n2"] == 1


def test_a_declared_effect_that_changes_the_deps_is_refused_and_nothing_is_silently_lost():
    """Its record has only what it returns."""

    @sf.effect(ignore="ctx")
    async def spend(ctx: RunContext[Cart], cents: int) -> str:
        ctx.deps.total += cents
        return "spent"

    run = running(agent_with(spend, call("spend", 1, cents=5), deps_type=Cart), deps=Cart)
    with pytest.raises(sf.UsageError, match="changed total of the context"):
        run()


def test_a_workflow_under_the_decorator_may_change_the_deps():
    """Its body is workflow code, which runs again on replay."""

    @sf.step
    async def price(name: str) -> int:
        trace(f"price {name}")
        return 7

    @sf.workflow
    async def take(ctx: RunContext[Cart], name: str) -> str:
        ctx.deps.total += await price(name)
        return "taken"

    run = running(agent_with(take, call("take", 1, name="a"), deps_type=Cart), deps=Cart)
    assert "total=7" in run()
    assert run() == run()
    assert counted()["price a"] == 1


# -- approvals ---------------------------------------------------------------------------------------


def wire(iban: str) -> str:
    trace(f"wire {iban}")
    return f"wired {iban}"


WIRE = Tool(wire, requires_approval=True)


def test_two_questions_of_parallel_tools_are_put_at_once():
    """One is denied, and the model is told in the framework's words, with the note; the other is carried out."""
    run = running(agent_with(WIRE, call("wire", 1, iban="A"), call("wire", 2, iban="B")))
    with pytest.raises(sf.WaitingForAnswer) as stop:
        run()
    assert {each.address for each in stop.value.stops} == {"[call_1]/wire#1.approval", "[call_2]/wire#1.approval"}
    sf.get_run("r").answer("[call_1]/wire#1.approval", False, by="ann", note="not today")
    sf.get_run("r").answer("[call_2]/wire#1.approval", True, by="ann")

    assert run() == run() == json.dumps([f"{DENIED} not today", "wired B"])
    assert traces().count("wire B") == 1
    assert "wire A" not in traces()


def test_a_tool_that_needs_nobody_does_not_wait_for_one_that_does():
    run = running(agent_with([WIRE, look_at], call("wire", 1, iban="A"), call("look_at", 2)))
    with pytest.raises(sf.WaitingForAnswer):
        run()
    assert "[call_2]/look_at#1" in addresses()
    sf.get_run("r").answer("[call_1]/wire#1.approval", True, by="ann")
    assert run() == json.dumps(["wired A", "seen"])


def test_a_tool_may_find_out_by_itself_that_a_person_is_needed():
    """`ApprovalRequired` is an answer of the first call; the second one is asked about."""

    def pay(ctx: RunContext[None], cents: int) -> str:
        if cents > 100 and not ctx.tool_call_approved:
            raise ApprovalRequired(metadata={"why": "a lot"})
        trace(f"paid {cents} {ctx.tool_call_metadata}")
        return f"paid {cents}"

    run = running(agent_with(pay, call("pay", 1, cents=5), call("pay", 2, cents=500)))
    with pytest.raises(sf.WaitingForAnswer) as stop:
        run()
    assert [each.address for each in stop.value.stops] == ["[call_2]/pay#2.approval"]
    sf.get_run("r").answer("[call_2]/pay#2.approval", True, by="ann")

    assert run() == run() == json.dumps(["paid 5", "paid 500"])
    assert traces().count("paid 500 {'why': 'a lot'}") == 1


def test_every_tool_of_a_supervised_workflow_is_asked_about():
    agent = agent_with(look_at, call("look_at", 1))

    @sf.workflow(approve="every")
    async def supervised() -> str:
        return str((await agent.run("go")).output)

    with pytest.raises(sf.WaitingForAnswer, match=r"\[call_1\]/look_at#1\.approval"):
        asyncio.run(supervised.run("r"))


@pytest.mark.parametrize(
    "declare", [sf.effect(on_crash="retry"), sf.step, sf.workflow], ids=["effect", "step", "workflow"]
)
def test_a_declared_tool_that_the_framework_wants_approved_is_asked_about(declare):
    @declare
    async def pay(cents: int) -> str:
        trace("paid")
        return "paid"

    run = running(agent_with(Tool(pay, requires_approval=True), call("pay", 1, cents=5)))
    with pytest.raises(sf.WaitingForAnswer, match=r"\[call_1\]/approve#1"):
        run()
    sf.get_run("r").answer("[call_1]/approve#1", False, by="ann", note="no")
    assert run() == json.dumps([f"{DENIED} no"])
    assert "paid" not in traces()


def test_a_tool_that_only_reads_and_needs_a_yes_is_asked_about():
    run = running(
        agent_with(Tool(wire, requires_approval=True, metadata={"surefoot": "step"}), call("wire", 1, iban="A"))
    )
    with pytest.raises(sf.WaitingForAnswer, match=r"\[call_1\]/approve#1"):
        run()
    sf.get_run("r").answer("[call_1]/approve#1", True, by="ann")
    assert run() == json.dumps(["wired A"])
    assert kinds()["[call_1]/wire#1"] == ("step", "")


def test_a_handler_of_the_user_goes_first():
    """Code that decides is workflow code: what it agreed to, no person is asked about."""

    async def decide(ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        return DeferredToolResults(
            approvals={each.tool_call_id: each.args_as_dict()["iban"] == "A" for each in requests.approvals}
        )

    agent = Agent(answered(call("wire", 1, iban="A"), call("wire", 2, iban="B")).model, name="a", tools=[WIRE],
                  capabilities=[HandleDeferredToolCalls(handler=decide), Durable()])  # fmt: skip
    run = running(agent)
    assert run() == run() == json.dumps(["wired A", DENIED])


def test_a_call_that_is_deferred_is_the_callers():
    """The run of the agent ends with it, as ever; the workflow waits for the outside in its own words."""

    def order(item: str) -> str:
        raise CallDeferred

    agent = agent_with(
        [order, look_at], call("order", 1, item="tea"), call("look_at", 2), output_type=[str, DeferredToolRequests]
    )

    @sf.workflow(name="ordering")
    async def ordering() -> str:
        result = await agent.run("go")
        requests = result.output
        assert isinstance(requests, DeferredToolRequests)
        results = {each.tool_call_id: await asf.ask(f"{each.tool_name}?", type=str) for each in requests.calls}
        given = DeferredToolResults(calls=results)
        return str((await agent.run(message_history=result.all_messages(), deferred_tool_results=given)).output)

    with pytest.raises(sf.WaitingForAnswer, match=r"ask#1"):
        asyncio.run(ordering.run("r"))
    sf.get_run("r").answer("ask#1", "delivered", by="ann")
    assert asyncio.run(ordering.run("r")) == json.dumps(["delivered", "seen"])


def test_an_external_tool_is_the_callers_too():
    tool = ToolDefinition(name="order", parameters_json_schema={"type": "object", "properties": {}})
    agent = Agent(answered(call("order", 1)).model, name="a", toolsets=[ExternalToolset([tool])],
                  output_type=[str, DeferredToolRequests], capabilities=[Durable()])  # fmt: skip
    run = running(agent)
    assert "order" in run()
    assert addresses() == ["[a]/model#1"]


def test_a_blocking_workflow_as_a_tool_asks_a_person():
    """E10: most people's tools are blocking."""

    @sf.workflow
    def settle(order: str) -> str:
        return "settled" if sf.approve(f"Settle {order}?") else "left open"

    run = running(agent_with(settle, call("settle", 1, order="o-7")))
    with pytest.raises(sf.WaitingForAnswer, match=r"\[call_1\]/approve#1"):
        run()
    sf.get_run("r").answer("[call_1]/approve#1", True, by="ann")
    assert run() == '["settled"]'


def test_questions_of_a_sub_agent_wait_for_the_tools_beside_it():
    helper = Agent(Script(lambda given: given[0] if given else call("wire", 9, iban="S"), "sub").model, name="helper",
                   tools=[WIRE], capabilities=[Durable()])  # fmt: skip

    @sf.workflow
    async def ask_helper() -> str:
        return (await helper.run("please")).output

    run = running(agent_with([ask_helper, look_at], call("ask_helper", 1), call("look_at", 2)))
    with pytest.raises(sf.WaitingForAnswer) as stop:
        run()
    assert [each.address for each in stop.value.stops] == ["[call_1]/[call_9]/wire#1.approval"]
    assert "[call_2]/look_at#1" in addresses()
    sf.get_run("r").answer("[call_1]/[call_9]/wire#1.approval", True, by="ann")
    assert run() == json.dumps(["wired S", "seen"])


# -- policies ----------------------------------------------------------------------------------------


def find(title: str) -> Any:
    trace(f"find {title}")
    return sf.happened("found 7") if f"create {title}" in traces() else sf.not_happened()


def create_issue(title: str, text: str = "") -> str:
    trace(f"create {title}")
    return "created 7"


@pytest.mark.parametrize("where", ["tools", "metadata", "metadata as a tool"])
def test_tools_that_one_does_not_own_are_declared_by_name(where):
    said = sf.tool(on_crash="check", check=find)
    metadata = {"tools": None, "metadata": {"surefoot": {"check": find}}, "metadata as a tool": {"surefoot": said}}[
        where
    ]
    durable = Durable(tools={"create_issue": said} if where == "tools" else None)
    run = running(
        agent_with(Tool(create_issue, metadata=metadata), call("create_issue", 1, title="a", text="b"), durable=durable)
    )
    killed_at("create a", run)

    assert run() == '["found 7"]'
    assert counted() == {"model 0": 1, "create a": 1, "find a": 1, "model 1": 1}


def test_a_toolset_with_a_prefix_is_declared_by_either_name():
    def look(at: str) -> str:
        return f"seen {at}"

    def touch(at: str) -> str:
        return f"touched {at}"

    toolset = FunctionToolset([look, touch]).prefixed("shop")
    agent = Agent(answered(call("shop_look", 1, at="a"), call("shop_touch", 2, at="b")).model, name="a", toolsets=[toolset],
                  capabilities=[Durable(tools={"shop_look": "step", "touch": sf.tool(on_crash="retry")})])  # fmt: skip
    running(agent)()
    assert kinds() == {"[call_1]/shop_look#1": ("step", ""), "[call_2]/shop_touch#1": ("effect", "retry")}


def test_a_tool_may_be_undone_with_the_saga_around_the_agent():
    def book(seat: str) -> dict[str, str]:
        return {"seat": seat}

    def unbook(seat: str, result: dict[str, str]) -> None:
        trace(f"unbook {seat} {result['seat']}")

    agent = agent_with(book, call("book", 1, seat="3A"), durable=Durable(tools={"book": sf.tool(undo=unbook)}))

    @sf.workflow
    async def trip() -> None:
        async with asf.saga():
            await agent.run("go")
            raise RuntimeError("no hotel")

    with pytest.raises(RuntimeError, match="no hotel"):
        asyncio.run(trip.run("r"))
    assert counted()["unbook 3A 3A"] == 1


def test_an_inline_tool_is_workflow_code():
    async def chat(text: str) -> str:
        trace(f"chat {text}")
        await asf.sleep(0.01)
        return text

    run = running(agent_with(chat, call("chat", 1, text="a"), durable=Durable(tools={"chat": "inline"})))
    killed_at("model 1", run)
    run()
    assert counted()["chat a"] >= 2
    assert "[call_1]/sleep#1" in [entry.data.get("address") for entry in sf.get_run("r").entries()]


@sf.effect
async def burn(n: int) -> None: ...


async def naive(n: int) -> str:
    await burn(n)
    return "burnt"


def test_a_plain_tool_that_calls_an_effect_is_refused_with_the_cure():
    """Before anything runs: later, the outer intent would be on disk."""
    with pytest.raises(sf.UsageError, match=r"tool naive calls burn.*@sf\.workflow under @agent\.tool"):
        running(agent_with(naive, call("naive", 1, n=1)))()
    assert traces() == []


def test_a_plain_tool_that_runs_a_durable_agent_is_refused_with_the_cure():
    """All that the other agent does would be one effect."""
    helper = agent_with(look_at)

    async def delegate() -> str:
        return str((await helper.run("go")).output)

    with pytest.raises(sf.UsageError, match=r"tool delegate calls helper.*@sf\.workflow under @agent\.tool"):
        running(agent_with(delegate, call("delegate", 1)))()
    assert traces() == []


@pytest.mark.parametrize(
    ("tools", "why"), [({"pay": "stp"}, "effect"), ({"py": "step"}, "no such tool: there are pay")]
)
def test_a_wrong_word_about_a_tool_is_found_before_anything_runs(tools, why):
    def pay() -> str:
        return "paid"

    with pytest.raises(sf.UsageError, match=why):
        running(agent_with(pay, call("pay"), durable=Durable(tools=tools)))()
    assert traces() == []


@pytest.mark.parametrize("said", [{"on_crsh": "ask"}, {"on_crash": "chck"}, 7, "stp"], ids=repr)
def test_a_wrong_word_in_metadata_is_found_before_anything_runs(said):
    def pay() -> str:
        return "paid"

    with pytest.raises(sf.UsageError):
        running(agent_with(Tool(pay, metadata={"surefoot": said}), call("pay")))()
    assert traces() == []


def test_a_tool_that_is_declared_twice_is_refused():
    @sf.step
    def look() -> str:
        return "seen"

    with pytest.raises(sf.UsageError, match="declared twice"):
        running(agent_with(look, call("look"), durable=Durable(tools={"look": "step"})))()


def test_a_time_out_of_the_framework_over_a_declared_call_is_refused():
    @sf.effect
    async def pay() -> str:
        return "paid"

    with pytest.raises(sf.UsageError, match=r"@sf\.effect\(timeout=3\)"):
        running(agent_with(Tool(pay, timeout=3), call("pay")))()


@pytest.mark.parametrize("declare", [sf.effect, sf.step], ids=["effect", "step"])
def test_a_declared_call_that_takes_the_context_is_refused_with_the_cure(declare):
    """It has clients and models in it, and is no argument of the model's."""

    @declare
    async def pay(ctx: RunContext[None], cents: int) -> str:
        return "paid"

    with pytest.raises(sf.UsageError, match=r'@sf\.(effect|step)\(ignore="ctx"\)'):
        running(agent_with(pay, call("pay", 1, cents=1)))()
    assert traces() == []


def test_a_declared_effect_may_find_out_by_itself_that_a_person_is_needed():
    """It says that before it does anything, so nothing is in doubt."""

    @sf.effect(ignore="ctx")
    async def pay(ctx: RunContext[None], cents: int) -> str:
        trace("looked")
        if not ctx.tool_call_approved:
            raise ApprovalRequired
        trace("paid")
        return "paid"

    run = running(agent_with(pay, call("pay", 1, cents=500)))
    with pytest.raises(sf.WaitingForAnswer, match=r"\[call_1\]/approve#1"):
        run()
    sf.get_run("r").answer("[call_1]/approve#1", True, by="ann")
    assert run() == '["paid"]'
    assert counted()["paid"] == 1


def test_a_declared_effect_that_wants_another_try_says_that_nothing_was_done():
    """Without `not_done=ModelRetry` it is in doubt, as after any exception."""

    @sf.effect(not_done=ModelRetry)
    async def order(cents: int) -> str:
        trace("tried")
        raise ModelRetry("sold out")

    @sf.effect
    async def pay(cents: int) -> str:
        raise ModelRetry("too much")

    run = running(agent_with(order, call("order", 1, cents=5)))
    assert "sold out" in run()
    assert "sold out" in run()
    assert counted()["tried"] == 1
    with pytest.raises(sf.InDoubt, match="not_done=ModelRetry"):
        running(agent_with(pay, call("pay", 1, cents=5)))("other")


def test_a_validator_of_arguments_is_asked_once():
    def check(ctx: RunContext[None], cents: int) -> None:
        trace(f"validated {cents}")
        if cents > 100:
            raise ModelRetry("too much")

    def pay(cents: int) -> str:
        return f"paid {cents}"

    run = running(agent_with(Tool(pay, args_validator=check), call("pay", 1, cents=5), call("pay", 2, cents=500)))
    killed_at("model 2", run)

    found = run()
    assert "too much" in found
    assert "paid 5" in found
    assert (counted()["validated 5"], counted()["validated 500"]) == (1, 1)
    assert {"[call_1]/validate_pay#1", "[call_1]/pay#1", "[call_2]/validate_pay#1"} <= set(addresses())


# -- toolsets ----------------------------------------------------------------------------------------


def test_tools_that_are_added_later_and_for_one_run_are_recorded_too():
    agent = agent_with(look_at, call("later", 1), call("once", 2))

    @agent.tool_plain
    def later() -> str:
        trace("later")
        return "later"

    def once() -> str:
        trace("once")
        return "once"

    run = running(agent, toolsets=[FunctionToolset([once])])
    killed_at("model 2", run)
    assert run() == '["later", "once"]'
    assert counted()["later"] == counted()["once"] == 1


class Shelf(AbstractToolset[Any]):
    """A toolset of a class of the user's own."""

    @property
    def id(self) -> str | None:
        return None

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        definition = ToolDefinition(name="fetch", parameters_json_schema={"type": "object", "properties": {"n": {}}})
        return {
            "fetch": ToolsetTool(toolset=self, tool_def=definition, max_retries=1, args_validator=TOOL_SCHEMA_VALIDATOR)
        }

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        trace(f"fetch {tool_args['n']}")
        return f"fetched {tool_args['n']}"


@pytest.mark.parametrize("has_mcp", [True, False])
def test_a_toolset_of_an_unknown_class_has_effects_that_ask(monkeypatch, has_mcp):
    """It may do anything. Without its package for MCP the framework does not ask who it is."""
    if not has_mcp:
        monkeypatch.setattr(Durable.__base__, "_wrap_leaf_toolset", lambda _self, _toolset: None)
    agent = Agent(answered(call("fetch", 1, n=3)).model, name="a", toolsets=[Shelf()], capabilities=[Durable()])
    run = running(agent)
    killed_at("fetch 3", run)
    with pytest.raises(sf.InDoubt, match=r"\[call_1\]/fetch#1"):
        run()
    sf.get_run("r").settle("[call_1]/fetch#1", happened="fetched 3", by="ann")
    assert run() == '["fetched 3"]'
    assert counted()["fetch 3"] == 1


@pytest.mark.parametrize("per_run_step", [True, False])
def test_a_dynamic_toolset_is_recorded_with_the_tools_that_it_had(per_run_step):
    """Which tools there are is asked for once per turn, and their calls are recorded like any."""
    agent: Agent[Any, Any] = Agent(
        answered(call("charge", 1, cents=5), call("read", 2)).model, name="a", capabilities=[Durable()]
    )

    @agent.toolset(per_run_step=per_run_step)
    def shop(ctx: RunContext[Any]) -> FunctionToolset[Any]:
        def charge(cents: int) -> str:
            trace(f"charge {cents}")
            return f"charged {cents}"

        def read() -> str:
            trace("read")
            return "read"

        return FunctionToolset([charge, Tool(read, metadata={"surefoot": {"kind": "step"}})])

    run = running(agent)
    killed_at("model 2", run)
    assert run() == '["charged 5", "read"]'
    assert counted()["charge 5"] == counted()["read"] == 1
    assert kinds() == {"[call_1]/charge#1": ("effect", "ask"), "[call_2]/read#1": ("step", "")}
    assert len([each for each in addresses() if each.endswith("get_tools#1")]) == 1


# -- output functions --------------------------------------------------------------------------------


@sf.effect
async def send(text: str) -> str:
    trace(f"send {text}")
    return f"sent {text}"


@pytest.mark.parametrize("how", ["the function itself", "what it calls"])
def test_an_output_function_is_workflow_code_whose_calls_are_recorded(how):
    async def deliver(text: str) -> str:
        return await send(text)

    made = send if how == "the function itself" else deliver
    name = "send" if made is send else "deliver"
    agent: Agent[Any, Any] = Agent(Script(lambda _: call("final_result", 7, text="hi")).model, name="a", output_type=made,
                                   capabilities=[Durable()])  # fmt: skip

    @sf.workflow(name="sending")
    async def sending() -> str:
        result = (await agent.run("go")).output
        await asf.approve("done?")
        return str(result)

    with pytest.raises(sf.WaitingForAnswer):
        asyncio.run(sending.run("r"))
    sf.get_run("r").answer("approve#1", True)
    assert asyncio.run(sending.run("r")) == "sent hi"
    assert counted()["send hi"] == 1
    assert "[call_7]/send#1" in addresses(), name


# -- events ------------------------------------------------------------------------------------------


def test_a_handler_of_the_capability_sees_a_models_events_as_they_come_and_once():
    async def watch(ctx: RunContext[Any], events: AsyncIterator[Any]) -> None:
        async for event in events:
            trace(f"saw {event.event_kind}")

    agent = agent_with(look_at, call("look_at"), durable=Durable(event_stream_handler=watch))
    run = running(agent)
    killed_at("model 1 streaming", run)
    before = counted()["saw part_start"]

    assert run() == '["seen"]'
    assert before == 1, "the answer on record was seen while it came"
    assert counted()["saw part_start"] == 2
    assert counted()["saw function_tool_result"] >= 1


# -- ids and nonsense --------------------------------------------------------------------------------


def test_a_call_id_twice_in_one_answer_is_refused_by_the_framework():
    """Nothing is executed twice under one id, and no value goes to another call."""
    with pytest.raises(UnexpectedModelBehavior, match="unique"):
        running(agent_with(look_at, call("look_at", 1), call("look_at", 1)))()
    assert addresses() == ["[billing]/model#1"]


def test_a_call_id_that_comes_again_in_a_later_turn_goes_on_counting():
    script = Script(lambda given: call("look_at", 1) if len(given) < 2 else "done")
    run = running(Agent(script.model, name="billing", tools=[look_at], capabilities=[Durable()]))
    assert run() == run() == "done"
    assert addresses()[1::2] == ["[call_1]/look_at#1", "[call_1]/look_at#2"]


def test_a_model_that_answers_nonsense_fails_the_run_clearly():
    script = Script(lambda _: call("no_such_tool"))
    with pytest.raises(UnexpectedModelBehavior, match="no_such_tool"):
        running(Agent(script.model, name="billing", tools=[look_at], capabilities=[Durable()]))()
    assert sf.get_run("r").status == "failed"


def test_an_agent_without_a_name_is_refused_by_the_framework():
    """Its name is part of the addresses."""
    with pytest.raises(Exception, match="unique `name`"):
        Agent(answered().model, capabilities=[Durable()])


def test_run_sync_in_a_blocking_workflow_names_the_async_one():
    agent = agent_with(look_at, call("look_at"))

    @sf.workflow
    def blocking() -> str:
        return str(agent.run_sync("go").output)

    loop = asyncio.new_event_loop()  # The framework would make one of its own, and never close it.
    asyncio.set_event_loop(loop)
    try:
        with pytest.raises(sf.UsageError, match="async def"):
            blocking.run("r")
    finally:
        asyncio.set_event_loop(None)
        loop.close()
    assert traces() == []


# -- versions ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "why"),
    [(None, "is not installed"), ("2.60.1", "from 2.66 on"), ("3.0.0", "below 3"), ("3.0rc1", "below 3")],
)
def test_a_missing_or_untested_framework_is_refused_with_the_command(monkeypatch, version, why):
    monkeypatch.setattr(versions, "installed", lambda _: version)
    with pytest.raises(sf.UsageError, match=rf"(?s){why}.*pip install 'surefoot\[pydantic-ai\]'"):
        versions.require(EXTRA, PACKAGES)
