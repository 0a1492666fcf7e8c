"""Model calls: what is recorded, what comes back, which of them have acted by themselves, and models that are away."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from pydantic_ai import Agent, ToolOutput
from pydantic_ai.capabilities import ModelFallback, NativeTool
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse, TextPart, ThinkingPart
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.native_tools import CodeExecutionTool, WebSearchTool
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.usage import RequestUsage

import surefoot as sf
import surefoot.aio as asf
from surefoot.pydantic_ai import Durable
from surefoot.testing.clock import FastClock, installed
from tests.suites.pydantic_ai.stage import Script, addresses, call, counted, killed_at, trace, traces


def running(agent: Agent[Any, Any], **options: Any) -> Any:
    @sf.workflow(name="ticket")
    async def ticket() -> str:
        return str((await agent.run("go", **options)).output)

    return lambda: asyncio.run(ticket.run("r"))


def plain(model: Any, **options: Any) -> Agent[Any, Any]:
    return Agent(model, name="a", capabilities=[Durable(), *options.pop("capabilities", [])], **options)


def look() -> str:
    return "seen"


HOSTS = ModelProfile(supported_native_tools=frozenset({WebSearchTool, CodeExecutionTool}))


def hosting(tool: Any) -> Agent[Any, Any]:
    async def answer(messages: Any, info: Any) -> ModelResponse:
        trace("model")
        return ModelResponse([TextPart("done")])

    return plain(FunctionModel(answer, profile=HOSTS), capabilities=[NativeTool(tool)])


def test_a_hosted_tool_that_reads_is_part_of_the_step():
    assert running(hosting(WebSearchTool()))() == "done"
    assert sf.get_run("r").steps()[0].kind == "step"
    assert json.loads(sf.get_run("r").steps()[0].args)["tools"] == ["web_search"]


def test_a_hosted_tool_that_acts_makes_the_model_call_an_effect_that_asks():
    """The model's own machine has run code: asked again, it would run again."""
    run = running(hosting(CodeExecutionTool()))
    killed_at("model", run)

    with pytest.raises(sf.InDoubt, match=r"\[a\]/model#1"):
        run()
    assert counted()["model"] == 1


def test_what_is_recorded_of_a_model_call_can_be_read():
    """Without times and ids, which are new on every replay; and without what is empty."""
    agent = Agent(Script(lambda given: given[0] if given else call("look")).model, name="a", tools=[look],
                  instructions="be exact", system_prompt="You are a clerk.", capabilities=[Durable()])  # fmt: skip
    running(agent)()
    shown = json.loads(sf.get_run("r").steps()[2].args)
    assert shown["instructions"] == "You are a clerk.\n\nbe exact"
    assert shown["messages"] == [
        {"request": [{"part": "user-prompt", "content": "go"}]},
        {"response": [{"part": "tool-call", "tool_name": "look", "tool_call_id": "call_1"}]},
        {"request": [{"part": "tool-return", "tool_name": "look", "content": "seen", "tool_call_id": "call_1", "outcome": "success"}]},
    ]  # fmt: skip
    answer = json.loads(sf.get_run("r").steps()[2].result)
    assert answer.keys() == {"parts", "usage", "model_name", "timestamp", "kind", "state"}
    assert answer["parts"] == [{"content": "seen", "part_kind": "text"}]


def test_everything_that_a_model_says_comes_back():
    async def answer(messages: Any, info: Any) -> ModelResponse:
        parts = [
            ThinkingPart("hm", signature="s", provider_name="p"),
            TextPart("done", provider_details={"a": [None, 1]}),
        ]
        return ModelResponse(parts, usage=RequestUsage(input_tokens=7, details={"x": 1}), provider_response_id="resp_1",
                             provider_details={"b": None}, finish_reason="stop")  # fmt: skip

    agent = plain(FunctionModel(answer))

    @sf.workflow(name="whole")
    async def whole() -> str:
        said = (await agent.run("go")).response
        await asf.approve("go on?")
        return ModelMessagesTypeAdapter.dump_json([said]).decode()

    with pytest.raises(sf.WaitingForAnswer):
        asyncio.run(whole.run("r"))
    sf.get_run("r").answer("approve#1", True)
    [found] = ModelMessagesTypeAdapter.validate_json(asyncio.run(whole.run("r")))
    assert isinstance(found, ModelResponse)
    assert found.parts[0] == ThinkingPart("hm", signature="s", provider_name="p")
    assert found.parts[1].provider_details == {"a": [None, 1]}
    assert (found.provider_response_id, found.finish_reason, found.usage.details) == ("resp_1", "stop", {"x": 1})


def test_the_same_ids_on_every_replay():
    """`run_id` and `conversation_id` of messages: they go into tools, and into other people's logs."""
    agent = plain(Script(lambda _: "hello").model)
    seen: list[tuple[str, str]] = []

    @sf.workflow(name="ids")
    async def ids() -> int:
        for _ in range(2):
            result = await agent.run("go")
            message = result.all_messages()[0]
            seen.append((str(message.run_id), str(message.conversation_id)))
        await asf.approve("go on?")
        return 1

    with pytest.raises(sf.WaitingForAnswer):
        asyncio.run(ids.run("r"))
    sf.get_run("r").answer("approve#1", True)
    asyncio.run(ids.run("r"))
    assert seen == seen[:2] * (len(seen) // 2)
    assert len(set(seen)) == 2


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("ends", ["done", "with a tool"])
def test_messages_are_the_same_on_every_replay(streamed, ends):
    """They are what people keep: an effect that saves them has the same arguments again. Also their times."""
    final = "done" if ends == "done" else call("final_result", 9, response=3)
    script = Script(lambda given: final if given else [call("look", 1), call("look", 2)])
    agent = Agent(script.model, name="a", tools=[look], capabilities=[Durable()], system_prompt="Be exact.",
                  output_type=str if ends == "done" else ToolOutput(int))  # fmt: skip

    @sf.effect
    async def save(messages: list[Any]) -> int:
        trace("saved")
        return len(messages)

    async def watch(_: Any, events: Any) -> None:
        async for _event in events:
            pass

    @sf.workflow(name="saving")
    async def saving() -> int:
        history: list[Any] = []
        for _ in range(2):
            result = await agent.run("go", message_history=history, event_stream_handler=watch if streamed else None)
            history = result.all_messages()
            await save(json.loads(result.all_messages_json()))
        await asf.approve("go on?")
        return len(history)

    with pytest.raises(sf.WaitingForAnswer):
        asyncio.run(saving.run("r"))
    sf.get_run("r").answer("approve#1", True)
    assert asyncio.run(saving.run("r")) >= 6
    assert counted()["saved"] == 2


def test_a_conversation_that_grows_is_continued_as_new():
    """Long runs: the journal begins anew, with the messages as plain data."""
    agent = plain(Script(lambda _: "ok").model)

    @sf.workflow
    async def chat(history: list[Any], left: int) -> int:
        known = ModelMessagesTypeAdapter.validate_python(history)
        result = await agent.run(f"message {left}", message_history=known)
        if left:
            sf.continue_as_new(json.loads(result.all_messages_json())[-2:], left - 1)
        return len(result.all_messages())

    assert asyncio.run(chat.run("r", [], 3)) == 4
    assert counted()["model 0"] == 4


def test_a_time_limit_of_the_agents_run_counts_from_the_first_time():
    run = running(plain(Script(lambda _: "ok").model), timeout=60)
    assert run() == "ok"
    assert "[a]/now#1" in [entry.data.get("address") for entry in sf.get_run("r").entries()]


# -- other models ------------------------------------------------------------------------------------


def test_a_model_that_is_given_to_one_run_is_asked_and_recorded():
    """`agent.run(model=…)`, and `agent.override(model=…)` as tests have it."""
    agent = plain(Script(lambda _: "the agent's").model)
    once, tested = Script(lambda _: "of this run", "once"), Script(lambda _: "of a test", "tested")

    @sf.workflow(name="others")
    async def others() -> list[str]:
        first = await agent.run("go", model=once.model)
        with agent.override(model=tested.model):
            second = await agent.run("go")
        return [first.output, second.output, (await agent.run("go")).output]

    assert asyncio.run(others.run("r")) == ["of this run", "of a test", "the agent's"]
    assert [json.loads(each.args)["model"] for each in sf.get_run("r").steps()] == ["once", "tested", "model"]


def failing(status: int, **options: Any) -> FunctionModel:
    async def answer(messages: Any, info: Any) -> ModelResponse:
        trace(f"failed {status}")
        raise ModelHTTPError(status, "m", **options)

    return FunctionModel(answer, model_name="failing")


def test_a_model_that_falls_back_by_itself_is_one_call():
    run = running(plain(FallbackModel(failing(503), Script(lambda _: "second").model)))
    assert run() == run() == "second"
    assert addresses() == ["[a]/model#1"]
    assert counted()["failed 503"] == 1


def test_a_fallback_of_the_agent_is_two_calls_and_waits_for_nobody():
    """Else the run would be parked where another model is there to be asked."""
    agent = plain(failing(503), capabilities=[ModelFallback(Script(lambda _: "second").model)])
    run = running(agent)
    killed_at("model 0", run)

    assert run() == run() == "second"
    assert counted()["failed 503"] == 1
    assert addresses() == ["[a]/model#1", "[a]/model#2"]


# -- models that are away ----------------------------------------------------------------------------


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_model_that_is_down_for_an_hour_parks_the_run(streamed):
    """The run is let go of, and has not failed."""
    down = {"until": 0.0}
    script = Script(lambda _: "back")
    said = script._answer

    def answer(given: list[str]) -> Any:
        if clock.now() / 1e6 < down["until"]:
            trace("away")
            raise ModelHTTPError(503, "m")
        return said(given)

    script._answer = answer

    async def watch(_: Any, events: Any) -> None:
        async for _event in events:
            pass

    with installed(FastClock()) as clock:
        down["until"] = clock.now() / 1e6 + 3600
        assert running(plain(script.model), event_stream_handler=watch if streamed else None)() == "back"
    assert counted()["away"] >= 5
    assert any(entry.data.get("parked") for entry in sf.get_run("r").entries())


def test_a_model_says_how_long_it_wants_to_be_left_alone():
    waited: list[float] = []
    times = {"left": 1}

    async def answer(messages: Any, info: Any) -> ModelResponse:
        waited.append(clock.now() / 1e6)
        if times["left"]:
            times["left"] -= 1
            raise ModelHTTPError(429, "m", headers={"Retry-After": "17"})
        return ModelResponse([TextPart("ok")])

    with installed(FastClock()) as clock:
        assert running(plain(FunctionModel(answer)))() == "ok"
    assert 16 <= waited[1] - waited[0] <= 30


def test_a_refusal_of_the_model_fails_as_the_frameworks_own():
    """`except ModelHTTPError` in the workflow means the same on replay."""
    agent = plain(failing(400))

    @sf.workflow(name="careful")
    async def careful() -> str:
        try:
            return str((await agent.run("go")).output)
        except ModelHTTPError as error:
            await asf.approve("go on?")
            return f"refused with {error.status_code}"

    with pytest.raises(sf.WaitingForAnswer):
        asyncio.run(careful.run("r"))
    sf.get_run("r").answer("approve#1", True)
    assert asyncio.run(careful.run("r")) == "refused with 400"
    assert counted()["failed 400"] == 1


def test_structured_output_is_validated_again_from_the_record():
    agent = Agent(Script(lambda _: call("final_result", 1, response=3)).model, name="a", output_type=ToolOutput(int),
                  capabilities=[Durable()])  # fmt: skip
    run = running(agent)
    assert run() == run() == "3"
    assert addresses() == ["[a]/model#1"]


def test_preflight_and_a_plan_ask_no_model():
    run = running(
        Agent(
            Script(lambda given: given[0] if given else call("look")).model,
            name="a",
            tools=[look],
            capabilities=[Durable()],
        )
    )
    killed_at("model 1", run)
    plan = sf.get_run("r").plan()
    assert "[a]/model#2" in str(plan)
    assert traces().count("model 1") == 1
    assert run() == "seen"
