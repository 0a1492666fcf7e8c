"""What else an agent may have: capabilities that act, workspaces, hooks; and what happens outside of a run."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, DeferredToolRequests, RunContext, Tool
from pydantic_ai.capabilities import AbstractCapability, Hooks, LocalWorkspace, durable_operation

import surefoot as sf
import surefoot.aio as asf
from surefoot.pydantic_ai import Durable
from tests.suites.pydantic_ai.stage import Script, addresses, call, counted, killed_at, trace, traces


def answered(*calls: Any) -> Script:
    return Script(lambda given: "; ".join(given) if given else list(calls))


def running(agent: Agent[Any, Any], **options: Any) -> Any:
    @sf.workflow(name="ticket")
    async def ticket() -> str:
        return str((await agent.run("go", **options)).output)

    return lambda: asyncio.run(ticket.run("r"))


def wire(iban: str) -> str:
    trace(f"wire {iban}")
    return f"wired {iban}"


class Counter(AbstractCapability[Any]):
    """A capability that does something before each run, and says so."""

    id = "counter"

    @durable_operation(name="count")
    async def count(self, ctx: RunContext[Any], by: int) -> int:
        trace(f"counted {by}")
        return by + 1

    async def before_run(self, ctx: RunContext[Any]) -> None:
        trace(f"before {await self.count(ctx, 6)}")


@pytest.mark.parametrize("said", [None, "step"])
def test_what_a_capability_does_is_an_effect_that_asks_or_what_one_says(said):
    agent = Agent(Script(lambda _: "done").model, name="a",
                  capabilities=[Counter(), Durable(tools={"counter.count": said} if said else None)])  # fmt: skip
    run = running(agent)
    killed_at("model 0", run)

    assert run() == "done"
    assert counted()["counted 6"] == 1
    assert addresses() == ["[a]/counter.count#1", "[a]/model#1"]
    assert sf.get_run("r").steps()[0].kind == (said or "effect")


def test_a_workspace_in_workflow_code_is_recorded_and_in_a_tool_it_is_part_of_the_tool(tmp_path):
    async def keep(ctx: RunContext[Any], text: str) -> str:
        await ctx.workspace.write_text("note.txt", text)
        trace(f"kept {text}")
        return "kept"

    agent = Agent(answered(call("keep", 1, text="a"), call("inline", 2, text="b")).model, name="a",
                  tools=[keep, Tool(keep, name="inline", metadata={"surefoot": "inline"}, sequential=True)],
                  capabilities=[LocalWorkspace(tmp_path, id="here"), Durable()])  # fmt: skip
    run = running(agent)
    killed_at("model 2", run)

    assert run() == "kept; kept"
    assert (tmp_path / "note.txt").read_text() == "b"
    assert counted()["kept a"] == 1
    assert [each for each in addresses() if "model" not in each] == [
        "[a]/workspace.ensure#1",
        "[call_1]/keep#1",
        "[call_2]/workspace.write_bytes#1",
    ]


def test_hooks_are_workflow_code_and_may_keep_what_they_do():
    """They run again on every replay; what they call under @sf.step does not."""
    hooks: Hooks[Any] = Hooks()

    @sf.step
    async def audit(tool: str) -> str:
        trace(f"audit {tool}")
        return tool

    @hooks.on.before_tool_execute
    async def before(ctx: RunContext[Any], *, call: Any, tool_def: Any, args: Any) -> Any:
        await audit(call.tool_name)
        return args

    agent = Agent(answered(call("wire", 1, iban="A")).model, name="a", tools=[wire], capabilities=[hooks, Durable()])
    run = running(agent)
    killed_at("model 1", run)

    assert run() == "wired A"
    assert counted()["audit wire"] == counted()["wire A"] == 1
    assert addresses()[1:3] == ["[call_1]/audit#1", "[call_1]/wire#1"]


def test_an_event_handler_is_not_told_by_a_plan():
    """`surefoot runs plan` executes nothing."""

    async def watch(ctx: RunContext[Any], events: Any) -> None:
        async for event in events:
            if event.event_kind == "function_tool_result":
                trace("told")

    agent = Agent(answered(call("wire", 1, iban="A")).model, name="a", tools=[wire],
                  capabilities=[Durable(event_stream_handler=watch)])  # fmt: skip
    run = running(agent)
    killed_at("model 1", run)
    told = counted()["told"]

    assert "model#2" in str(sf.get_run("r").plan())
    assert counted()["told"] == told
    assert run() == "wired A"


def test_outside_of_a_run_approvals_and_streams_are_the_frameworks():
    """The capability must not switch off what keeps a tool from running."""
    agent = Agent(answered(call("wire", 1, iban="DE1")).model, name="a", tools=[Tool(wire, requires_approval=True)],
                  output_type=[str, DeferredToolRequests], capabilities=[Durable()])  # fmt: skip

    result = asyncio.run(agent.run("go"))

    assert isinstance(result.output, DeferredToolRequests)
    assert counted()["wire DE1"] == 0
    assert not Path(".surefoot").exists()


def test_a_stop_in_one_of_two_agents_side_by_side_does_not_lose_the_other():
    one = Agent(answered(call("wire", 1, iban="A")).model, name="one", tools=[Tool(wire, requires_approval=True)],
                capabilities=[Durable()])  # fmt: skip
    other = Agent(answered(call("wire", 2, iban="B")).model, name="other", tools=[wire], capabilities=[Durable()])

    @sf.workflow(name="both")
    async def both() -> list[str]:
        return [each.output for each in await asf.gather(one.run("go"), other.run("go"))]

    with pytest.raises(sf.WaitingForAnswer):
        asyncio.run(both.run("r"))
    assert counted()["wire B"] == 1
    sf.get_run("r").answer("gather#1.0/[call_1]/wire#1.approval", True, by="ann")
    assert asyncio.run(both.run("r")) == ["wired A", "wired B"]
    assert counted()["wire B"] == 1


def test_cancelled_from_outside_a_tool_in_flight_is_still_recorded():
    """`surefoot runs cancel` while the agent is in a tool: what it did is on record."""

    async def slow() -> str:
        trace("begun")
        sf.get_run("r").cancel()
        await asyncio.sleep(0.1)
        trace("ended")
        return "slow"

    agent = Agent(answered(call("slow", 1)).model, name="a", tools=[slow], capabilities=[Durable()])
    with pytest.raises(sf.Cancelled):
        running(agent)()
    assert sf.get_run("r").status == "cancelled"
    assert traces().count("begun") == 1
    assert traces().count("ended") == 1
    assert {each.address: each.status for each in sf.get_run("r").steps()}["[call_1]/slow#1"] == "done"
