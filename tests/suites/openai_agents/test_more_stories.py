"""Questions in streams and in sub-agents, agents side by side that are killed, workers, and callbacks of handoffs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agents import Agent, Runner, handoff

import surefoot as sf
import surefoot.aio as asf
from surefoot.openai_agents import durable
from tests.suites.openai_agents.stage import Script, addresses, call, counted, killed_at, trace
from tests.suites.openai_agents.test_stories import answered, charge, flow, one_agent, wire


def test_questions_of_a_streamed_agent_are_put_at_once_and_answered_one_by_one(caplog):
    """The tool beside them has run once, however often the run is looked at meanwhile."""
    calls = call("wire", 1, iban="A"), call("wire", 2, iban="B"), call("charge", 3, card="x", cents=1)
    run = flow(Agent(name="billing", model=answered(*calls), tools=[wire, charge]), streamed=True)
    with pytest.raises(sf.WaitingForAnswer) as stop:
        run()
    assert {each.address for each in stop.value.stops} == {"[call_1]/wire#1.approval", "[call_2]/wire#1.approval"}
    sf.get_run("r").answer("[call_1]/wire#1.approval", True, by="ann")
    with pytest.raises(sf.WaitingForAnswer):
        run()
    sf.get_run("r").answer("[call_2]/wire#1.approval", False, by="ann")

    assert run() == "wired A; Tool execution was not approved.; charged x 1"
    assert (counted()["wire A"], counted()["wire B"], counted()["charge x"]) == (1, 0, 1)
    assert "no task has asked" not in caplog.text, "a replay waits for nobody in vain"


def test_a_question_of_a_sub_agent_waits_for_the_tools_beside_it():
    helper = Agent(
        name="helper", model=Script(lambda given: given[0] if given else call("wire", 9, iban="S"), "sub"), tools=[wire]
    )
    calls = call("ask_helper", 1, input="x"), call("charge", 2, card="y", cents=1)
    run = flow(Agent(name="boss", model=answered(*calls), tools=[helper.as_tool("ask_helper", "asks"), charge]))
    with pytest.raises(sf.WaitingForAnswer) as stop:
        run()
    assert [each.address for each in stop.value.stops] == ["[call_1]/[call_9]/wire#1.approval"]
    assert counted()["charge y"] == 1
    sf.get_run("r").answer("[call_1]/[call_9]/wire#1.approval", True, by="ann")

    assert run() == "wired S; charged y 1"
    assert counted()["charge y"] == 1


@pytest.mark.parametrize("at", ["charge c1", "charge c2", "model 1"])
def test_agents_side_by_side_that_are_killed_act_once_each(at):
    def agent(number: int) -> Agent[Any]:
        return Agent(name="billing", model=answered(call("charge", number, card=f"c{number}", cents=1)), tools=[charge])

    @sf.workflow(name="both")
    async def both() -> list[str]:
        results = await asf.gather(*(Runner.run(durable(agent(number)), "go") for number in (1, 2)))
        return [result.final_output for result in results]

    def run() -> list[str]:
        return asyncio.run(both.run("r"))

    killed_at(at, run)
    try:
        found = run()
    except sf.InDoubt as doubt:
        for stop in doubt.stops:
            sf.get_run("r").settle(stop.address, happened="settled", by="ann")
        found = run()

    assert len(found) == 2
    assert max(counted()["charge c1"], counted()["charge c2"]) == 1


def test_agents_of_different_names_may_be_gathered_in_any_way():
    """Their labels tell them apart, so a plain asyncio.gather is enough."""
    one, other = (
        Agent(name=name, model=answered(call("charge", number, card=name, cents=1)), tools=[charge])
        for number, name in ((1, "one"), (2, "other"))
    )

    @sf.workflow
    async def mixed() -> list[str]:
        results = await asyncio.gather(Runner.run(durable(one), "go"), Runner.run(durable(other), "go"))
        return [result.final_output for result in results]

    assert asyncio.run(mixed.run("r")) == ["charged one 1", "charged other 1"]


def test_a_worker_runs_an_agent_that_was_queued():
    agent = one_agent(call("charge", 1, card="w", cents=1))

    @sf.workflow(name="queued")
    async def queued() -> str:
        return str((await Runner.run(durable(agent), "go")).final_output)

    asyncio.run(queued.start("r"))
    with sf.Worker(workflows=[queued]):
        assert sf.get_run("r").result(timeout=30) == "charged w 1"


def test_what_a_handoff_calls_is_recorded():
    """`on_handoff` is workflow code: it runs again on replay, and its effects do not."""

    @sf.effect
    async def log(what: str) -> None:
        trace(f"log {what}")

    async def handed(_: Any) -> None:
        await log("handed over")

    billing = Agent(name="billing", model=Script(lambda _: "ok", "second"))
    to_billing = handoff(billing, on_handoff=handed)
    triage = Agent(
        name="triage", model=Script(lambda _: call("transfer_to_billing", 1), "first"), handoffs=[to_billing]
    )
    run = flow(triage)
    killed_at("second 1", run)

    assert run() == "ok"
    assert counted()["log handed over"] == 1
    assert "[handoff transfer_to_billing]/log#1" in addresses()
