"""Killed at every place that matters, then resumed: no finished call again, each effect at most once or asked about.

| story | test |
|---|---|
| (a) in a model call, (g) in a streamed one | test_killed_in_a_model_call_it_is_asked_again_and_nothing_else |
| (b) in a plain tool | test_killed_in_a_plain_tool_a_person_is_asked, test_killed_in_a_plain_tool_that_did_nothing_it_runs_again_once_told |
| (c) in an effect that asks | test_killed_in_a_declared_effect_that_asks_a_person_is_asked |
| (c) that may be retried, has a check, fails | test_killed_in_an_effect_that_may_be_retried_it_has_the_same_key, test_killed_in_an_effect_with_a_check_it_is_looked_up, test_killed_in_an_effect_that_fails_then_the_model_is_told |
| (c) in a step | test_killed_in_a_tool_that_only_reads_it_reads_again |
| (d) in one of three parallel tools | test_killed_in_one_of_three_parallel_tools_the_others_are_not_done_again |
| (e) between outcome and model call | test_killed_between_an_outcome_and_the_next_model_call_the_tool_is_not_asked_again |
| (f) while a question is open | test_killed_while_a_question_is_open_it_is_still_open |
| (g) between two streamed turns | test_killed_between_two_streamed_turns_the_same_result_is_made |
| (h) in a sub-agent, after a handoff | test_killed_in_a_sub_agent_what_it_did_is_not_done_again, test_killed_in_a_tool_of_a_sub_agent_a_person_is_asked, test_killed_after_a_handoff_the_other_agent_goes_on |
| a time-out in a tool | test_a_time_out_of_a_tool_is_doubt, test_a_time_out_of_a_tool_that_reads_is_told_in_the_sdks_words |
| a result that cannot be stored | test_a_result_that_cannot_be_stored_is_recorded_as_its_text |
| a tool that raises | test_a_guard_clause_is_told_to_the_model_and_asks_nobody, test_any_other_exception_leaves_the_tool_in_doubt |
| a denied approval | test_two_questions_of_parallel_tools_are_put_at_once |
| started by two processes | test_a_process_that_starts_a_run_which_another_one_drives_waits_for_its_result, test_processes_that_start_a_run_at_the_same_moment_act_once |
| a model that is down for an hour | test_a_model_that_is_down_for_an_hour_parks_the_run |
| a reworded prompt, a renamed tool | test_a_reworded_prompt_does_not_strand_a_run_in_flight, test_a_renamed_tool_that_was_executed_is_a_stop_and_the_old_name_goes_on |
| another version, another conversation | test_answers_of_another_version_are_read, test_a_conversation_that_differs_makes_no_tool_act_twice |
| a context that a tool changes | test_what_a_tool_changes_in_the_context_is_there_on_replay |
| preflight and plan of a run in flight | test_preflight_holds_a_run_in_flight_against_the_code, test_a_plan_of_a_run_in_flight_executes_nothing, test_processes.py |
| PostgreSQL | test_postgres.py |
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agents import Agent, Runner, function_tool, handoff

import surefoot as sf
import surefoot.aio as asf
from surefoot.openai_agents import durable
from tests.suites.openai_agents.stage import (
    Script,
    addresses,
    call,
    counted,
    in_process,
    killed_at,
    trace,
    traces,
)


@function_tool
def look_up(order: str) -> str:
    trace(f"look_up {order}")
    return f"{order}: 5 EUR"


@function_tool
def charge(card: str, cents: int) -> str:
    trace(f"charge {card}")
    return f"charged {card} {cents}"


@function_tool
@sf.effect(on_crash="retry")
def refund(card: str) -> str:
    trace(f"refund {card} {sf.key()}")
    trace(f"refund {card}")
    return f"refunded {card}"


@sf.effect
def write(path: str) -> str:
    trace(f"write {path}")
    return f"wrote {path}"


@write.check
def _(path: str) -> Any:
    trace(f"check {path}")
    return sf.happened(f"wrote {path}") if f"write {path}" in traces() else sf.not_happened()


@function_tool
@sf.effect(on_crash="fail")
def mail(to: str) -> str:
    trace(f"mail {to}")
    return f"mailed {to}"


@function_tool
@sf.step
def read(path: str) -> str:
    trace(f"read {path}")
    return f"text of {path}"


def answered(*calls: Any) -> Script:
    """A model that asks for these calls at once, and says what came of them."""
    return Script(lambda given: "; ".join(given) if given else list(calls))


def one_agent(*calls: Any, **options: Any) -> Agent[Any]:
    tools = [look_up, charge, refund, function_tool(write), mail, read]
    return Agent(name="billing", instructions="be exact", model=answered(*calls), tools=tools, **options)


def flow(agent: Agent[Any], *, streamed: bool = False, **options: Any) -> Any:
    """The workflow that a user writes around an agent."""

    @sf.workflow(name="ticket")
    async def ticket(text: str) -> str:
        if not streamed:
            return str((await Runner.run(durable(agent, **options), text)).final_output)
        result = Runner.run_streamed(durable(agent, **options), text)
        async for _ in result.stream_events():
            pass
        return str(result.final_output)

    def run(run_id: str = "r") -> str:
        return str(asyncio.run(ticket.run(run_id, "ticket 81")))

    run.workflow = ticket  # type: ignore[attr-defined]
    return run


STREAMED = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])


@STREAMED
def test_an_agent_runs_once_and_is_answered_afterwards(streamed):
    run = flow(one_agent(call("charge", 1, card="a", cents=5)), streamed=streamed)

    assert run() == run() == "charged a 5"
    assert counted()["charge a"] == 1
    assert addresses() == ["[billing]/model#1", "[call_1]/charge#1", "[billing]/model#2"]


@STREAMED
def test_killed_in_a_model_call_it_is_asked_again_and_nothing_else(streamed):
    """(a), (g)"""
    run = flow(one_agent(call("charge", 1, card="a", cents=5)), streamed=streamed)
    killed_at("model 0 streaming" if streamed else "model 0", run)

    assert run() == "charged a 5"
    assert (counted()["model 0"], counted()["charge a"], counted()["model 1"]) == (2, 1, 1)


@STREAMED
def test_killed_in_a_plain_tool_a_person_is_asked(streamed):
    """(b) Nobody has said anything about the tool, so it may have charged a card."""
    run = flow(one_agent(call("charge", 1, card="a", cents=5)), streamed=streamed)
    killed_at("charge a", run)

    with pytest.raises(sf.InDoubt, match=r"\[call_1\]/charge#1"):
        run()
    assert counted()["charge a"] == 1
    sf.get_run("r").settle("[call_1]/charge#1", happened="charged a 5", by="ann")

    assert run() == "charged a 5"
    assert (counted()["charge a"], counted()["model 0"]) == (1, 1)


def test_killed_in_a_plain_tool_that_did_nothing_it_runs_again_once_told():
    run = flow(one_agent(call("charge", 1, card="a", cents=5)))
    killed_at("charge a", run)
    with pytest.raises(sf.InDoubt):
        run()
    sf.get_run("r").settle("[call_1]/charge#1", not_happened=True, by="ann")

    assert run() == "charged a 5"
    assert counted()["charge a"] == 2


def test_killed_in_a_declared_effect_that_asks_a_person_is_asked():
    """(c) The word under the decorator is the same as none at all: what it did is on record only when it has ended."""

    @function_tool
    @sf.effect
    def pay(card: str) -> str:
        trace(f"pay {card}")
        return f"paid {card}"

    run = flow(Agent(name="billing", model=answered(call("pay", 1, card="a")), tools=[pay]))
    killed_at("pay a", run)

    for _ in range(2):
        with pytest.raises(sf.InDoubt, match=r"\[call_1\]/pay#1"):
            run()
    sf.get_run("r").settle("[call_1]/pay#1", happened="paid a", by="ann")
    assert run() == "paid a"
    assert counted()["pay a"] == 1


def test_killed_in_an_effect_that_may_be_retried_it_has_the_same_key():
    """(c)"""
    run = flow(one_agent(call("refund", 1, card="a")))
    killed_at("refund a", run)

    assert run() == "refunded a"
    keys = {line for line in traces() if line.startswith("refund a ")}
    assert len(keys) == 1
    assert counted()["refund a"] == 2


def test_killed_in_an_effect_with_a_check_it_is_looked_up():
    """(c) It was done: the check finds it, and nothing is written twice."""
    run = flow(one_agent(call("write", 1, path="a.txt")))
    killed_at("write a.txt", run)

    assert run() == "wrote a.txt"
    assert (counted()["write a.txt"], counted()["check a.txt"]) == (1, 1)


def test_killed_in_an_effect_that_fails_then_the_model_is_told():
    """(c) on_crash="fail": the model gets the SDK's words for a tool that failed."""
    run = flow(one_agent(call("mail", 1, to="ann")))
    killed_at("mail ann", run)

    assert run() == "An error occurred while running the tool. Please try again."
    assert run() == "An error occurred while running the tool. Please try again."
    assert counted()["mail ann"] == 1


def test_killed_in_a_tool_that_only_reads_it_reads_again():
    run = flow(one_agent(call("read", 1, path="a.txt")))
    killed_at("read a.txt", run)

    assert run() == "text of a.txt"
    assert counted()["read a.txt"] == 2


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_killed_in_one_of_three_parallel_tools_the_others_are_not_done_again(streamed):
    """(d)"""
    calls = [call("charge", number, card=f"c{number}", cents=number) for number in (1, 2, 3)]
    run = flow(one_agent(*calls), streamed=streamed)
    killed_at("charge c2", run)
    for _ in range(2):
        with pytest.raises(sf.InDoubt) as doubt:
            run()
    for stop in doubt.value.stops:
        number = stop.address[len("[call_")]
        sf.get_run("r").settle(stop.address, happened=f"charged c{number} {number}", by="ann")

    assert run() == "charged c1 1; charged c2 2; charged c3 3"
    assert max(counted()[f"charge c{number}"] for number in (1, 2, 3)) == 1
    assert counted()["model 0"] == 1


@STREAMED
def test_killed_between_an_outcome_and_the_next_model_call_the_tool_is_not_asked_again(streamed):
    """(e)"""
    run = flow(one_agent(call("charge", 1, card="a", cents=5)), streamed=streamed)
    killed_at("model 1", run)

    assert run() == "charged a 5"
    assert (counted()["charge a"], counted()["model 0"], counted()["model 1"]) == (1, 1, 2)


@function_tool(needs_approval=True)
def wire(iban: str) -> str:
    trace(f"wire {iban}")
    return f"wired {iban}"


def test_killed_while_a_question_is_open_it_is_still_open():
    """(f) The SDK would have kept it in a snapshot that somebody has to save."""
    agent = Agent(name="billing", model=answered(call("wire", 1, iban="DE1")), tools=[wire])
    run = flow(agent)

    @sf.workflow(name="ticket")
    async def waiting(text: str) -> str:
        return str((await Runner.run(durable(agent), text)).final_output)

    def is_asked() -> bool:
        try:
            return "QuestionAsked" in [entry.kind for entry in sf.get_run("r").entries()]
        except sf.NotFound:
            return False

    def waits() -> None:
        async def main() -> None:
            driven = asyncio.create_task(waiting.using(wait="40s").run("r", "ticket 81"))
            while not is_asked():  # noqa: ASYNC110 - another task writes it to a file
                await asyncio.sleep(0.05)
            trace("asked")
            await driven

        asyncio.run(main())

    killed_at("asked", waits)
    with pytest.raises(sf.WaitingForAnswer, match=r"\[call_1\]/wire#1\.approval"):
        run()
    assert counted()["wire DE1"] == 0
    sf.get_run("r").answer("[call_1]/wire#1.approval", True, by="ann")

    assert run() == "wired DE1"
    assert counted()["wire DE1"] == 1


def test_killed_between_two_streamed_turns_the_same_result_is_made():
    """(g) On replay only the last event of a turn is there, and the SDK builds the same from it."""
    run = flow(one_agent(call("look_up", 1, order="o-7")), streamed=True)
    killed_at("model 1 streaming", run)

    assert run() == "o-7: 5 EUR"
    assert counted()["look_up o-7"] == 1


def helped() -> Agent[Any]:
    """An agent that asks another one, which charges."""
    helper = Agent(name="helper", model=Script(lambda given: given[0] if given else call("charge", 9, card="h", cents=1), "sub"),
                   tools=[charge])  # fmt: skip
    tool = helper.as_tool("ask_helper", "asks the helper")
    return Agent(name="boss", model=answered(call("ask_helper", 1, input="please")), tools=[tool])


@pytest.mark.parametrize("at", ["sub 0", "sub 1", "model 1"])
def test_killed_in_a_sub_agent_what_it_did_is_not_done_again(at):
    """(h)"""
    run = flow(helped())
    killed_at(at, run)

    assert run() == "charged h 1"
    assert counted()["charge h"] == 1
    assert "[call_1]/[call_9]/charge#1" in addresses()
    assert "[call_1]/[helper]/model#1" in addresses()


def test_killed_in_a_tool_of_a_sub_agent_a_person_is_asked():
    """(h)"""
    run = flow(helped())
    killed_at("charge h", run)

    with pytest.raises(sf.InDoubt, match=r"\[call_1\]/\[call_9\]/charge#1"):
        run()
    sf.get_run("r").settle("[call_1]/[call_9]/charge#1", happened="charged h 1", by="ann")
    assert run() == "charged h 1"
    assert counted()["charge h"] == 1


def handing_over() -> Agent[Any]:
    """Two agents that may hand over to each other: a circle."""
    billing = Agent(name="billing", model=Script(lambda given: given[-1] if len(given) > 1 else call("charge", 2, card="b", cents=1),
                                                 "second"), tools=[charge])  # fmt: skip
    triage = Agent(
        name="triage", model=Script(lambda _: call("transfer_to_billing", 1), "first"), handoffs=[handoff(billing)]
    )
    billing.handoffs = [triage]
    return triage


@STREAMED
@pytest.mark.parametrize("at", ["second 1", "second 2"])
def test_killed_after_a_handoff_the_other_agent_goes_on(at, streamed):
    """(h)"""
    run = flow(handing_over(), streamed=streamed)
    killed_at(at, run)

    assert run() == "charged b 1"
    assert (counted()["first 0"], counted()["charge b"]) == (1, 1)
    assert {"[triage]/model#1", "[billing]/model#1", "[call_2]/charge#1"} <= set(addresses())


def test_a_run_that_another_process_has_ended_gives_its_result():
    """Two at once: test_processes.py."""
    run = flow(one_agent(call("charge", 1, card="a", cents=5)))
    in_process(run)

    assert run() == "charged a 5"
    assert counted()["charge a"] == 1


def test_a_plan_of_a_run_in_flight_executes_nothing():
    """`surefoot runs plan`: what a resume would do next."""
    agent = one_agent(call("charge", 1, card="a", cents=5))
    run = flow(agent)
    killed_at("model 1", run)

    plan = sf.get_run("r").plan()

    assert "[billing]/model#2" in str(plan)
    assert counted()["model 1"] == 1
    assert run() == "charged a 5"


def test_two_agents_of_one_name_side_by_side_are_refused_with_the_cure():
    """Trap 6: timing would decide whose answer is whose."""
    agent = one_agent(call("look_up", 1, order="o"))

    @sf.workflow
    async def both() -> None:
        await asyncio.gather(*(Runner.run(durable(agent), text) for text in ("a", "b")))

    with pytest.raises(sf.UsageError, match=r"sf\.gather"):
        asyncio.run(both.run("r"))


def test_two_agents_of_one_name_in_sf_gather_are_told_apart():
    agent = one_agent(call("look_up", 1, order="o"))

    @sf.workflow
    async def both() -> list[str]:
        results = await asf.gather(*(Runner.run(durable(agent), text) for text in ("a", "b")))
        return [result.final_output for result in results]

    assert asyncio.run(both.run("r")) == ["o: 5 EUR", "o: 5 EUR"]
    assert "gather#1.1/[call_1]/look_up#1" in addresses()


@STREAMED
def test_one_agent_after_the_other_goes_on_counting(streamed):
    """A chat: the same agent for every message."""
    agent = Agent(name="chat", model=Script(lambda _: "hello"))

    @sf.workflow
    async def chat() -> int:
        for text in ("a", "b", "c"):
            if streamed:
                async for _ in Runner.run_streamed(durable(agent), text).stream_events():
                    pass
            else:
                await Runner.run(durable(agent), text)
        return 3

    assert asyncio.run(chat.run("r")) == 3
    assert addresses() == ["[chat]/model#1", "[chat]/model#2", "[chat]/model#3"]


def test_outside_of_a_run_a_durable_agent_is_the_agent():
    """No store is opened, nothing is recorded: unit tests need nothing."""
    agent = durable(one_agent(call("charge", 1, card="a", cents=5)))

    result = asyncio.run(Runner.run(agent, "ticket 81"))

    assert result.final_output == "charged a 5"
    assert not sf.__dict__.get("opened")
    with pytest.raises(sf.NotFound):
        sf.get_run("r")


def test_outside_of_a_run_approvals_are_the_sdks():
    """The twin must not switch off what keeps a tool from running."""
    agent = durable(Agent(name="billing", model=answered(call("wire", 1, iban="DE1")), tools=[wire]))

    result = asyncio.run(Runner.run(agent, "go"))

    assert len(result.interruptions) == 1
    assert counted()["wire DE1"] == 0
