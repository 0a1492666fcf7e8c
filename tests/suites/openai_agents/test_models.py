"""Model calls: what is recorded, what comes back, and which of them have acted by themselves."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from agents import Agent, CodeInterpreterTool, Model, ModelProvider, RunConfig, Runner, WebSearchTool

import surefoot as sf
from surefoot.adapters.openai_agents.models import RESPONSES
from surefoot.openai_agents import durable
from tests.suites.openai_agents.stage import Script, addresses, call, counted, killed_at, says, traces


def running(agent: Agent[Any], **options: Any) -> Any:
    @sf.workflow(name="ticket")
    async def ticket() -> str:
        return str((await Runner.run(durable(agent), "go", **options)).final_output)

    return lambda: asyncio.run(ticket.run("r"))


def test_a_hosted_tool_that_reads_is_part_of_the_step():
    run = running(Agent(name="a", model=Script(lambda _: "found"), tools=[WebSearchTool()]))
    assert run() == "found"
    assert sf.get_run("r").steps()[0].kind == "step"


def test_a_hosted_tool_that_acts_makes_the_model_call_an_effect_that_asks():
    """The model's own machine has run code: asked again, it would run again."""
    interpreter = CodeInterpreterTool(tool_config={"type": "code_interpreter", "container": {"type": "auto"}})
    run = running(Agent(name="a", model=Script(lambda _: "computed"), tools=[interpreter]))
    killed_at("model 0", run)

    with pytest.raises(sf.InDoubt, match=r"\[a\]/model#1"):
        run()
    assert counted()["model 0"] == 1


def test_only_fields_that_are_set_are_recorded():
    """Else the next call's arguments would differ between the first run and the replay."""
    response = RESPONSES.revived(
        {
            "output": [{"type": "function_call", "call_id": "c", "name": "t", "arguments": "{}"}],
            "usage": {},
            "response_id": None,
        }
    )
    item = RESPONSES.plain(response)["output"][0]
    assert item == {"type": "function_call", "call_id": "c", "name": "t", "arguments": "{}"}
    assert response.to_input_items() == [item]


def test_unknown_fields_of_a_newer_api_survive():
    item = {"type": "function_call", "call_id": "c", "name": "t", "arguments": "{}", "of_tomorrow": {"a": 1}}
    plain = {"output": [item], "usage": {}, "response_id": None}
    assert RESPONSES.plain(RESPONSES.revived(plain))["output"][0] == item


def test_what_is_recorded_of_a_model_call_can_be_read():
    agent = Agent(name="billing", instructions="be exact", model=Script(lambda _: "hello"))
    running(agent)()
    shown = json.loads(sf.get_run("r").steps()[0].args)
    assert shown["instructions"] == "be exact"
    assert shown["input"] == [{"content": "go", "role": "user"}]


class Provider(ModelProvider):
    def get_model(self, model_name: str | None) -> Model:
        return Script(lambda _: f"I am {model_name}")


def test_a_provider_in_the_run_config_is_asked_for_models_by_name():
    run = running(Agent(name="a", model="tiny"), run_config=RunConfig(model_provider=Provider()))
    assert run() == run() == "I am tiny"
    assert addresses() == ["[a]/model#1"]
    assert counted()["model 0"] == 1


def test_a_conversation_that_grows_is_continued_as_new():
    """Long runs: the journal begins anew with a summary."""
    agent = Agent(name="chat", model=Script(lambda _: says("ok")))

    @sf.workflow
    async def chat(history: list[Any], left: int) -> int:
        result = await Runner.run(durable(agent), [*history, {"role": "user", "content": f"message {left}"}])
        if left:
            sf.continue_as_new(result.to_input_list()[-2:], left - 1)
        return len(result.to_input_list())

    assert asyncio.run(chat.run("r", [], 3)) == 4
    assert counted()["model 0"] == 4


def test_preflight_holds_a_run_in_flight_against_the_code():
    from agents import function_tool

    @function_tool
    def look() -> str:
        return "seen"

    run = running(Agent(name="a", model=Script(lambda given: given[0] if given else call("look")), tools=[look]))
    killed_at("model 1", run)
    plan = sf.get_run("r").plan()
    assert "[a]/model#2" in str(plan)
    assert traces().count("model 1") == 1
    assert run() == "seen"
