"""What a tool is, what becomes of what it raises, returns and changes, and what is refused before anything runs."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from typing import Any

import pydantic
import pytest
from agents import (
    Agent,
    ApplyPatchTool,
    ComputerTool,
    FunctionTool,
    GuardrailFunctionOutput,
    InputGuardrail,
    InputGuardrailTripwireTriggered,
    LocalShellTool,
    ModelBehaviorError,
    ModelSettings,
    OutputGuardrail,
    RunConfig,
    RunContextWrapper,
    Runner,
    RunResult,
    ShellTool,
    SQLiteSession,
    ToolGuardrailFunctionOutput,
    ToolInputGuardrail,
    ToolOutputText,
    function_tool,
)
from agents.testing import function_call

import surefoot as sf
import surefoot.aio as asf
from surefoot.adapters import versions
from surefoot.adapters.openai_agents import PACKAGES
from surefoot.openai_agents import durable
from surefoot.testing.clock import FastClock, installed
from tests.suites.openai_agents.stage import Script, addresses, call, counted, killed_at, trace, traces

FAILED = "An error occurred while running the tool. Please try again."


def answered(*calls: Any) -> Script:
    return Script(lambda given: json.dumps(given) if given else list(calls))


def running(
    agent: Agent[Any], *, context: Any = None, config: RunConfig | None = None, session: Any = None, **options: Any
) -> Any:
    """A run of that agent, as often as one likes: the last one gives the recorded result."""

    @sf.workflow(name="ticket")
    async def ticket(text: str) -> str:
        made = context() if callable(context) else context
        result: RunResult = await Runner.run(
            durable(agent, **options), text, context=made, run_config=config, session=session
        )
        return f"{result.final_output} {made}" if made is not None else str(result.final_output)

    def run(run_id: str = "r") -> str:
        return str(asyncio.run(ticket.run(run_id, "ticket 81")))

    run.workflow = ticket  # type: ignore[attr-defined]
    return run


def agent_with(tool: Any, *calls: Any, **options: Any) -> Agent[Any]:
    return Agent(name="billing", model=answered(*calls), tools=[tool], **options)


# -- what a tool raises ------------------------------------------------------------------------------


def test_a_guard_clause_is_told_to_the_model_and_asks_nobody():
    @function_tool(failure_error_function=lambda _, error: f"{type(error).__name__}: {error}")
    def pay(cents: int) -> str:
        if cents < 0:
            raise ValueError("no such amount")
        return "paid"

    run = running(agent_with(pay, call("pay", 1, cents=-1)))

    assert run() == run() == '["ValueError: no such amount"]'
    assert [each.status for each in sf.get_run("r").steps()] == ["done", "failed", "done"]


def test_any_other_exception_leaves_the_tool_in_doubt():
    """Trap 2: the SDK would turn it into text, and a time-out would be recorded as done."""

    @function_tool
    def pay(cents: int) -> str:
        trace("paid")
        raise KeyError("id")

    run = running(agent_with(pay, call("pay", 1, cents=1)))
    with pytest.raises(sf.InDoubt, match=r"\[call_1\]/pay#1: raised KeyError"):
        run()
    sf.get_run("r").settle("[call_1]/pay#1", failed=True, by="ann")

    assert run() == json.dumps([FAILED])
    assert counted()["paid"] == 1


def test_a_tool_may_declare_that_its_errors_prove_it():
    @function_tool
    def pay(cents: int) -> str:
        trace("tried")
        raise RuntimeError("declined")

    run = running(agent_with(pay, call("pay", 1, cents=1)), tools={"pay": sf.tool(not_done=RuntimeError)})

    assert run() == run() == json.dumps([FAILED])


def test_a_tool_without_failure_function_fails_the_run_as_before():
    @function_tool(failure_error_function=None)
    def pay(cents: int) -> str:
        raise ValueError("no")

    with pytest.raises(Exception, match="Error running tool pay: no"):
        running(agent_with(pay, call("pay", 1, cents=1)))()
    assert sf.get_run("r").status == "failed"


def test_arguments_that_do_not_fit_are_for_the_model():
    """The SDK found it before it called the function: nothing is in doubt."""

    @function_tool
    def pay(cents: int) -> str:
        trace("paid")
        return "paid"

    run = running(agent_with(pay, call("pay", 1, cents="many"), call("pay", 2, cents=3)))

    assert run() == run() == json.dumps([FAILED, "paid"])
    assert counted()["paid"] == 1


def test_arguments_that_are_no_json_are_for_the_model():
    @function_tool
    def pay(cents: int) -> str:
        return "paid"

    broken = call("pay", 1)
    broken.arguments = '{"cents": '
    assert running(agent_with(pay, broken))() == json.dumps([FAILED])


def test_a_time_out_of_a_tool_is_doubt():
    """The SDK's own time-out is switched off, and is the effect's."""

    @function_tool(timeout=0.05)
    async def pay(cents: int) -> str:
        trace("sent")
        await asyncio.sleep(5)
        return "paid"

    run = running(agent_with(pay, call("pay", 1, cents=1)))
    with pytest.raises(sf.InDoubt, match="TimeoutError"):
        run()
    assert counted()["sent"] == 1


def test_a_time_out_of_a_tool_that_reads_is_told_in_the_sdks_words():
    @function_tool(timeout=0.05)
    async def look(order: str) -> str:
        await asyncio.sleep(5)
        return order

    run = running(agent_with(look, call("look", 1, order="o")), tools={"look": "step"})
    assert run() == run() == json.dumps(["Tool 'look' timed out after 0.05 seconds."])


# -- what a tool returns -----------------------------------------------------------------------------


class Receipt:
    def __str__(self) -> str:
        return "receipt 7"


def test_a_result_that_cannot_be_stored_is_recorded_as_its_text():
    """Else the effect would be unstorable, and need a person although all is well."""

    @function_tool
    def pay() -> Any:
        trace("paid")
        return Receipt()

    run = running(agent_with(pay, call("pay")))
    with pytest.warns(RuntimeWarning, match="tool pay returned Receipt"):
        assert run() == '["receipt 7"]'
    assert run() == '["receipt 7"]'
    assert counted()["paid"] == 1


def test_structured_outputs_are_recorded_as_plain_data():
    @function_tool
    def pay() -> Any:
        return [ToolOutputText(text="a"), ToolOutputText(text="b")]

    run = running(agent_with(pay, call("pay")))
    first = run()

    assert run() == first
    assert json.loads(sf.get_run("r").steps()[1].result) == [
        {"type": "text", "text": "a"},
        {"type": "text", "text": "b"},
    ]


class Total(pydantic.BaseModel):
    cents: int


def test_a_declared_output_type_comes_back_as_itself():
    @function_tool(output_type=Total)
    def total() -> Total:
        return Total(cents=5)

    run = running(agent_with(total, call("total")))
    first = run()
    assert run() == first
    assert json.loads(sf.get_run("r").steps()[1].result) == {"cents": 5}


def test_a_result_that_looks_like_a_recorded_change_is_no_change():
    @function_tool
    def odd() -> dict[str, Any]:
        return {"result": 1, "context": [[["total"], 99]]}

    run = running(agent_with(odd, call("odd")), context=Cart)
    assert "total=0" in run()


# -- what a tool changes in the context (trap 1) -----------------------------------------------------


@dataclasses.dataclass
class Cart:
    total: int = 0
    names: list[str] = dataclasses.field(default_factory=list)
    more: dict[str, Any] = dataclasses.field(default_factory=dict)
    client: Any = dataclasses.field(default=print, repr=False)


@function_tool
def add(ctx: RunContextWrapper[Cart], name: str, cents: int) -> str:
    trace(f"add {name}")
    ctx.context.total += cents
    ctx.context.names.append(name)
    ctx.context.more["last"] = name
    return "added"


@function_tool
def rename(ctx: RunContextWrapper[Cart], name: str) -> str:
    ctx.context.more["name"] = name
    return "renamed"


def test_what_a_tool_changes_in_the_context_is_there_on_replay():
    """5 the first time and 0 on replay, without an error: silently wrong."""
    script = Script(
        lambda given: [call("add", len(given) + 1, name=f"n{len(given)}", cents=5)] if len(given) < 2 else "done"
    )
    run = running(Agent(name="shop", model=script, tools=[add]), context=Cart)
    killed_at("model 2", run)

    found = run()

    assert found == "done Cart(total=10, names=['n0', 'n1'], more={'last': 'n1'})"
    assert run() == found
    assert counted()["add n0"] == counted()["add n1"] == 1


def test_tools_side_by_side_may_change_different_things():
    agent = Agent(name="shop", model=answered(call("rename", 1, name="x"), call("look_at", 2)), tools=[rename, look_at])
    run = running(agent, context=Cart)
    assert "more={'name': 'x'}" in run()
    assert run() == run()


@function_tool
def look_at() -> str:
    return "seen"


def test_tools_side_by_side_that_change_the_same_are_refused():
    """Timing would decide what it is, and that is not on record."""
    calls = [call("add", number, name=f"n{number}", cents=number) for number in (1, 2)]
    run = running(Agent(name="shop", model=answered(*calls), tools=[add]), context=Cart)

    for _ in range(3):
        with pytest.raises(sf.UsageError, match="of the context was changed while another tool was at it"):
            run()
    assert counted()["add n1"] == counted()["add n2"] == 1


def test_a_change_on_record_is_not_taken_for_that_of_a_tool_that_runs_beside_it():
    """Resumed, the one is answered while the other runs: what is put back is none of the other's."""

    @function_tool
    def first(ctx: RunContextWrapper[Cart]) -> str:
        ctx.context.total = 5
        return "first"

    @function_tool
    async def second() -> str:
        await asyncio.sleep(0.2)
        trace("second")
        return "second"

    agent = Agent(name="shop", model=answered(call("first", 1), call("second", 2)), tools=[first, second])
    run = running(agent, context=Cart, tools={"second": sf.tool(on_crash="retry")})
    killed_at("second", run)

    assert "total=5" in run()
    recorded = {each.address: each.result for each in sf.get_run("r").steps()}
    assert recorded["[call_2]/second#1"] == '"second"'


def test_a_declared_effect_that_changes_the_context_is_refused_and_nothing_is_silently_lost():
    """Its record has only what it returns."""

    @function_tool
    @sf.effect(ignore="ctx")
    async def spend(ctx: RunContextWrapper[Cart], cents: int) -> str:
        ctx.context.total += cents
        return "spent"

    run = running(Agent(name="shop", model=answered(call("spend", 1, cents=5)), tools=[spend]), context=Cart)
    with pytest.raises(sf.UsageError, match="changed total of the context"):
        run()


def test_a_workflow_under_the_decorator_may_change_the_context():
    """Its body is workflow code, which runs again on replay."""

    @sf.step
    async def price(name: str) -> int:
        trace(f"price {name}")
        return 7

    @function_tool
    @sf.workflow
    async def take(ctx: RunContextWrapper[Cart], name: str) -> str:
        ctx.context.total += await price(name)
        return "taken"

    run = running(Agent(name="shop", model=answered(call("take", 1, name="a")), tools=[take]), context=Cart)
    assert "total=7" in run()
    assert run() == run()
    assert counted()["price a"] == 1


# -- approvals ---------------------------------------------------------------------------------------


@function_tool(needs_approval=True)
def wire(iban: str) -> str:
    trace(f"wire {iban}")
    return f"wired {iban}"


def test_two_questions_of_parallel_tools_are_put_at_once():
    """One is denied, and the model is told in the SDK's words, with the note; the other is carried out."""
    run = running(agent_with(wire, call("wire", 1, iban="A"), call("wire", 2, iban="B")))
    with pytest.raises(sf.WaitingForAnswer) as stop:
        run()
    assert {each.address for each in stop.value.stops} == {"[call_1]/wire#1.approval", "[call_2]/wire#1.approval"}
    sf.get_run("r").answer("[call_1]/wire#1.approval", False, by="ann", note="not today")
    sf.get_run("r").answer("[call_2]/wire#1.approval", True, by="ann")

    assert run() == run() == json.dumps(["Tool execution was not approved. not today", "wired B"])
    assert traces().count("wire B") == 1
    assert "wire A" not in traces()


def test_whether_a_tool_needs_approval_is_decided_once():
    decided = []

    async def large(_: Any, given: dict[str, Any], call_id: str) -> bool:
        decided.append(call_id)
        return bool(given["cents"] > 100)

    @function_tool(needs_approval=large)
    def pay(cents: int) -> str:
        return f"paid {cents}"

    run = running(agent_with(pay, call("pay", 1, cents=5), call("pay", 2, cents=500)))
    with pytest.raises(sf.WaitingForAnswer) as stop:
        run()
    assert [each.address for each in stop.value.stops] == ["[call_2]/pay#1.approval"]
    sf.get_run("r").answer("[call_2]/pay#1.approval", True, by="ann")

    assert run() == json.dumps(["paid 5", "paid 500"])
    assert sorted(decided) == ["call_1", "call_2"]


def test_every_tool_of_a_supervised_workflow_is_asked_about():
    @function_tool
    def pay(cents: int) -> str:
        return "paid"

    agent = agent_with(pay, call("pay", 1, cents=5))

    @sf.workflow(approve="every")
    async def supervised() -> str:
        return str((await Runner.run(durable(agent), "go")).final_output)

    with pytest.raises(sf.WaitingForAnswer, match=r"\[call_1\]/pay#1\.approval"):
        asyncio.run(supervised.run("r"))


def test_a_declared_effect_that_the_sdk_wants_approved_is_asked_about():
    @function_tool(needs_approval=True)
    @sf.effect(on_crash="retry")
    async def pay(cents: int) -> str:
        trace("paid")
        return "paid"

    run = running(agent_with(pay, call("pay", 1, cents=5)))
    with pytest.raises(sf.WaitingForAnswer, match=r"\[call_1\]/approve#1"):
        run()
    sf.get_run("r").answer("[call_1]/approve#1", False, by="ann", note="no")
    assert run() == json.dumps(["Tool execution was not approved. no"])
    assert "paid" not in traces()


def test_a_blocking_workflow_as_a_tool_asks_a_person():
    """E10: most people's tools are blocking."""

    @function_tool
    @sf.workflow
    def settle(order: str) -> str:
        return "settled" if sf.approve(f"Settle {order}?") else "left open"

    run = running(agent_with(settle, call("settle", 1, order="o-7")))
    with pytest.raises(sf.WaitingForAnswer, match=r"\[call_1\]/approve#1"):
        run()
    sf.get_run("r").answer("[call_1]/approve#1", True, by="ann")
    assert run() == '["settled"]'


# -- policies ----------------------------------------------------------------------------------------


def test_tools_that_one_does_not_own_are_declared_by_name():
    def find(title: str) -> Any:
        trace(f"find {title}")
        return sf.happened("found 7") if f"create {title}" in traces() else sf.not_happened()

    @function_tool
    def create_issue(title: str, text: str = "") -> str:
        trace(f"create {title}")
        return "created 7"

    run = running(agent_with(create_issue, call("create_issue", 1, title="a", text="b")),
                  tools={"create_issue": sf.tool(on_crash="check", check=find)})  # fmt: skip
    killed_at("create a", run)

    assert run() == '["found 7"]'
    assert counted() == {"model 0": 1, "create a": 1, "find a": 1, "model 1": 1}


def test_a_tool_may_be_undone_with_the_saga_around_the_agent():
    @function_tool
    def book(seat: str) -> dict[str, str]:
        return {"seat": seat}

    def unbook(seat: str, result: dict[str, str]) -> None:
        trace(f"unbook {seat} {result['seat']}")

    agent = agent_with(book, call("book", 1, seat="3A"))

    @sf.workflow
    async def trip() -> None:
        async with asf.saga():
            await Runner.run(durable(agent, tools={"book": sf.tool(undo=unbook)}), "go")
            raise RuntimeError("no hotel")

    with pytest.raises(RuntimeError, match="no hotel"):
        asyncio.run(trip.run("r"))
    assert counted()["unbook 3A 3A"] == 1


def test_an_inline_tool_is_workflow_code():
    @function_tool
    def chat(text: str) -> str:
        trace(f"chat {text}")
        return text

    run = running(agent_with(chat, call("chat", 1, text="a")), tools={"chat": "inline"})
    killed_at("model 1", run)
    run()
    assert counted()["chat a"] >= 2


@sf.effect
async def burn(n: int) -> None: ...


@function_tool
async def naive(n: int) -> str:
    await burn(n)
    return "burnt"


def test_a_plain_tool_that_calls_an_effect_is_refused_with_the_cure():
    """At run time it would be too late: the outer intent is on disk."""
    with pytest.raises(sf.UsageError, match=r"tool naive calls burn.*@sf\.workflow under @function_tool"):
        durable(agent_with(naive))


@pytest.mark.parametrize(
    ("tools", "why"),
    [
        ({"pay": "stp"}, "effect"),
        ({"py": "step"}, "no such tool: there are pay"),
    ],
)
def test_a_wrong_word_about_a_tool_is_found_at_once(tools, why):
    @function_tool
    def pay() -> str:
        return "paid"

    with pytest.raises(sf.UsageError, match=why):
        durable(agent_with(pay), tools=tools)


def test_a_tool_that_is_declared_twice_is_refused():
    @function_tool
    @sf.step
    def look() -> str:
        return "seen"

    with pytest.raises(sf.UsageError, match="declared twice"):
        durable(agent_with(look), tools={"look": "step"})


def test_a_time_out_of_the_sdk_over_a_declared_call_is_refused():
    @function_tool(timeout=3)
    @sf.effect
    async def pay() -> str:
        return "paid"

    with pytest.raises(sf.UsageError, match=r"@sf\.effect\(timeout=3\)"):
        durable(agent_with(pay))


@pytest.mark.parametrize(
    "tool",
    [
        LocalShellTool(executor=lambda _: "x"),
        ShellTool(executor=lambda _: "x"),
        ApplyPatchTool(editor=object()),
        ComputerTool(computer=object()),
    ],
    ids=lambda tool: type(tool).__name__,
)
def test_tools_that_run_here_unrecorded_are_refused_by_name(tool):
    with pytest.raises(sf.UsageError, match=f"durable: {type(tool).__name__}"):
        durable(Agent(name="a", tools=[tool]))


def test_a_tool_made_by_hand_is_an_effect_too():
    async def invoke(_: Any, given: str) -> str:
        trace(f"invoked {given}")
        return "ok"

    schema = {"type": "object", "properties": {"user-id": {"type": "string"}}, "additionalProperties": False}
    tool = FunctionTool("raw", "raw", schema, invoke, strict_json_schema=False)
    run = running(agent_with(tool, call("raw", 1, **{"user-id": "u"})))

    assert run() == '["ok"]'
    assert json.loads(sf.get_run("r").steps()[1].args) == {"arguments": {"user-id": "u"}}


# -- what would go around the record -----------------------------------------------------------------


def test_a_model_in_the_run_config_is_refused_before_anything_is_executed():
    """It goes around any wrapped model, silently."""

    @function_tool
    def pay() -> str:
        trace("paid")
        return "paid"

    run = running(agent_with(pay, call("pay")), config=RunConfig(model=Script(lambda _: call("pay"))))
    with pytest.raises(sf.UsageError, match=r"RunConfig\(model=…\)"):
        run()
    assert traces() == []


@pytest.mark.parametrize("where", ["input_guardrails", "output_guardrails"])
def test_a_guardrail_in_the_run_config_is_refused_before_anything_is_executed(where):
    """It may ask a model. After a crash that may say something else, when a tool has acted already."""

    def judged(*_: Any) -> GuardrailFunctionOutput:
        trace("judged")
        return GuardrailFunctionOutput(output_info=None, tripwire_triggered=False)

    guardrail = (
        InputGuardrail(judged, run_in_parallel=False) if where == "input_guardrails" else OutputGuardrail(judged)
    )
    run = running(agent_with(look_at, call("look_at")), config=RunConfig(**{where: [guardrail]}))
    with pytest.raises(sf.UsageError, match=rf"RunConfig\({where}=…\): judged is not recorded"):
        run()
    assert "model 0" not in traces()


def test_a_bare_session_is_named_before_the_model_is_asked():
    run = running(agent_with(look_at, call("look_at")), session=SQLiteSession("s-1"))
    with pytest.raises(sf.UsageError, match=r"durable\.session"):
        run()
    assert traces() == []


def test_run_sync_in_a_blocking_workflow_names_the_async_one():
    agent = agent_with(look_at, call("look_at"))

    @sf.workflow
    def blocking() -> str:
        return str(Runner.run_sync(durable(agent), "go").final_output)

    try:
        with pytest.raises(sf.UsageError, match="async def"):
            blocking.run("r")
    finally:
        asyncio.get_event_loop_policy().get_event_loop().close()  # The SDK leaves one behind.


@pytest.mark.parametrize(
    ("version", "why"),
    [(None, "is not installed"), ("0.20.1", "from 0.24 on"), ("0.26.0", "below 0.26"), ("0.26rc1", "below 0.26")],
)
def test_a_missing_or_untested_sdk_is_refused_with_the_command(monkeypatch, version, why):
    monkeypatch.setattr(versions, "installed", lambda _: version)
    with pytest.raises(sf.UsageError, match=rf"(?s){why}.*pip install 'surefoot\[openai-agents\]'"):
        versions.require("openai-agents", PACKAGES)


@function_tool
def count_up(n: int) -> str:
    trace(f"count {n}")
    return f"counted {n}"


def test_the_same_call_twice_under_one_id_is_one_call():
    """The SDK takes the second for the first said again. Nothing is executed twice under one id."""
    run = running(agent_with(count_up, call("count_up", 1, n=1), call("count_up", 1, n=1)))

    assert run() == run() == '["counted 1"]'
    assert counted()["count 1"] == 1
    assert addresses() == ["[billing]/model#1", "[call_1]/count_up#1", "[billing]/model#2"]


def test_two_calls_under_one_id_are_refused_before_either_runs():
    """No value may go to another call."""
    run = running(agent_with(count_up, call("count_up", 1, n=1), call("count_up", 1, n=2)))

    for _ in range(2):
        with pytest.raises(
            ModelBehaviorError, match="reused a tool call ID for a different invocation in one response"
        ):
            run()
    assert traces() == ["model 0"]
    assert (sf.get_run("r").status, addresses()) == ("failed", ["[billing]/model#1"])


def test_a_call_id_that_comes_again_for_another_call_is_refused_and_the_first_one_stands():
    script = Script(lambda given: [call("count_up", 1, n=len(given))])
    run = running(Agent(name="billing", model=script, tools=[count_up]))

    for _ in range(2):
        with pytest.raises(ModelBehaviorError, match="reused a completed tool call ID"):
            run()
    assert counted() == {"model 0": 1, "count 0": 1, "model 1": 1}
    assert sf.get_run("r").steps()[1].status == "done"


def test_a_call_that_comes_again_under_its_id_in_a_later_turn_is_not_made_again():
    asked = iter(range(2))

    def again(given: list[str]) -> Any:
        return call("count_up", 1, n=1) if next(asked, None) is not None else "; ".join(given)

    run = running(Agent(name="billing", model=Script(again), tools=[count_up]))

    assert run() == run() == "counted 1"
    assert counted()["count 1"] == 1


def test_a_call_id_may_have_any_characters():
    odd = function_call("count_up", {"n": 1}, call_id="../a]/b#1\x00")
    run = running(agent_with(count_up, odd))

    assert run() == run() == '["counted 1"]'
    assert "[../a%5D/b%231%00]/count_up#1" in addresses()


def test_a_model_that_asks_for_a_tool_that_is_not_there_fails_the_run_clearly():
    run = running(agent_with(look_at, call("no_such_tool")))
    for _ in range(2):
        with pytest.raises(ModelBehaviorError, match="Tool no_such_tool not found in agent billing"):
            run()
    assert sf.get_run("r").status == "failed"
    assert counted() == {"model 0": 1}


@pytest.mark.parametrize("nonsense", [None, "hello", {"output": []}], ids=["none", "text", "dict"])
def test_an_answer_that_is_none_is_not_recorded_and_asked_for_again(nonsense):
    """A model of one's own with a bug: repaired, the run goes on."""
    answers = [nonsense]

    class Broken(Script):
        async def get_response(self, *args: Any, **options: Any) -> Any:
            found = await super().get_response(*args, **options)
            return answers.pop() if answers else found

    run = running(Agent(name="billing", model=Broken(lambda _: "hello"), tools=[look_at]))
    with pytest.raises(sf.ValueRejected, match=rf"model of 'billing' answered with a {type(nonsense).__name__} that"):
        run()
    assert sf.get_run("r").status != "failed"

    assert run() == "hello"
    assert counted()["model 0"] == 2


def test_a_stream_that_ends_without_an_end_is_asked_again():
    """The connection was cut: half an answer is none."""
    cuts = [True]

    class Cut(Script):
        async def stream_response(self, *args: Any, **options: Any) -> Any:
            async for event in super().stream_response(*args, **options):
                if event.type == "response.completed" and cuts:
                    cuts.pop()
                    return
                yield event

    agent = Agent(name="billing", model=Cut(lambda _: "hello"))

    @sf.workflow
    async def streamed() -> str:
        result = Runner.run_streamed(durable(agent), "go")
        async for _ in result.stream_events():
            pass
        return str(result.final_output)

    with installed(FastClock()):
        assert asyncio.run(streamed.run("r")) == "hello"
    assert counted()["model 0"] == 2


# -- models that are away, and prompts that change ---------------------------------------------------


def test_a_model_that_is_down_for_an_hour_parks_the_run():
    """The run is let go of, and has not failed."""
    down = {"until": 0.0}

    class Flaky(Script):
        def _items(self, conversation: Any) -> list[Any]:
            if clock.now() / 1e6 < down["until"]:
                trace("away")
                raise ConnectionError("refused")
            return super()._items(conversation)

    with installed(FastClock()) as clock:
        down["until"] = clock.now() / 1e6 + 3600
        run = running(Agent(name="billing", model=Flaky(lambda _: "back")))
        assert run() == "back"
    assert counted()["away"] >= 5
    assert any(entry.data.get("parked") for entry in sf.get_run("r").entries())


def test_a_refusal_of_the_model_fails_as_any_step():
    class Refusing(Script):
        def _items(self, conversation: Any) -> list[Any]:
            trace("asked")
            raise ValueError("bad request")

    with pytest.raises(ValueError, match="bad request"):
        running(Agent(name="billing", model=Refusing(lambda _: "")))()
    assert counted()["asked"] == 1


def test_a_reworded_prompt_does_not_strand_a_run_in_flight():
    def agent(words: str) -> Agent[Any]:
        return Agent(name="billing", instructions=words, model=answered(call("look_at")), tools=[look_at],
                     model_settings=ModelSettings(temperature=0.1 if words == "new" else None))  # fmt: skip

    killed_at("model 1", running(agent("old")))

    assert running(agent("new"))() == '["seen"]'
    assert counted()["model 0"] == 1


def test_a_renamed_tool_that_was_executed_is_a_stop_and_the_old_name_goes_on():
    """What the model asked for is history: the answer on record names the old tool, and its charge was made."""

    @function_tool
    def charge() -> str:
        trace("charge")
        return "charged"

    killed_at("model 1", running(agent_with(charge, call("charge"))))

    def bill() -> str:
        trace("bill")
        return "billed"

    for _ in range(2):
        with pytest.raises(sf.CodeChanged, match=r"\[call_1\]/charge#1, but this effect was executed before"):
            running(agent_with(function_tool(bill), call("charge")))()
    assert sf.get_run("r").status == "stopped"

    both = Agent(name="billing", model=answered(call("charge")), tools=[function_tool(bill), charge])
    assert running(both)() == '["charged"]'
    assert (counted()["charge"], counted()["bill"], counted()["model 0"]) == (1, 0, 1)


# -- sessions ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", ["model 0", "model 1", "look"])
def test_items_of_a_session_are_added_once(at, tmp_path):
    @function_tool
    @sf.step
    def look() -> str:
        trace("look")
        return "seen"

    def run() -> str:
        session = durable.session(SQLiteSession("s-1", tmp_path / "sessions.db"))
        return str(running(agent_with(look, call("look")), session=session)())

    killed_at(at, run)

    assert run() == '["seen"]'
    items = asyncio.run(SQLiteSession("s-1", tmp_path / "sessions.db").get_items())
    assert [item.get("role") or item.get("type") for item in items] == [
        "user", "function_call", "function_call_output", "assistant",
    ]  # fmt: skip
    assert "[session s-1]/get#1" in addresses()


# -- guardrails --------------------------------------------------------------------------------------


def test_guardrails_are_asked_once_and_before_the_agent():
    async def checked(_: Any, __: Any, given: Any) -> GuardrailFunctionOutput:
        trace("guard")
        return GuardrailFunctionOutput(output_info={"seen": str(given)}, tripwire_triggered=False)

    async def fine(_: Any, __: Any, output: Any) -> GuardrailFunctionOutput:
        trace("output guard")
        return GuardrailFunctionOutput(output_info=None, tripwire_triggered=False)

    agent = agent_with(look_at, call("look_at"), input_guardrails=[InputGuardrail(checked, name="polite")],
                       output_guardrails=[OutputGuardrail(fine, name="fine")])  # fmt: skip
    run = running(agent)
    killed_at("model 1", run)

    assert run() == '["seen"]'
    assert traces().index("guard") < traces().index("model 0")
    assert (counted()["guard"], counted()["output guard"]) == (1, 1)
    assert {"[billing]/guardrail_polite#1", "[billing]/guardrail_fine#1"} <= set(addresses())


def test_a_tripwire_stays_what_it_was():
    verdicts = iter([True, False, False])

    def tripped(_: Any, __: Any, ___: Any) -> GuardrailFunctionOutput:
        return GuardrailFunctionOutput(output_info="bad", tripwire_triggered=next(verdicts))

    agent = agent_with(look_at, call("look_at"), input_guardrails=[InputGuardrail(tripped)])

    @sf.workflow
    async def caught() -> str:
        try:
            await Runner.run(durable(agent), "go")
        except InputGuardrailTripwireTriggered as error:
            await asf.approve("ask somebody?")
            return str(error.guardrail_result.output.output_info)
        return "passed"

    with pytest.raises(sf.WaitingForAnswer):
        asyncio.run(caught.run("r"))
    sf.get_run("r").answer("approve#1", True)
    assert asyncio.run(caught.run("r")) == "bad"
    assert "model 0" not in traces()


def test_a_guardrail_of_a_tool_is_recorded_under_its_call():
    def judged(data: Any) -> ToolGuardrailFunctionOutput:
        trace("judged")
        return ToolGuardrailFunctionOutput.reject_content("not that one")

    @function_tool
    def pay() -> str:
        trace("paid")
        return "paid"

    pay.tool_input_guardrails = [ToolInputGuardrail(judged, name="limit")]
    run = running(agent_with(pay, call("pay")))
    killed_at("model 1", run)

    assert run() == '["not that one"]'
    assert counted()["judged"] == 1
    assert "[call_1]/guardrail_limit#1" in addresses()
    assert "paid" not in traces()
