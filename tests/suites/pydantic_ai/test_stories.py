"""Killed at every place that matters, then resumed: no finished call again, each effect at most once or asked about.

| story | test |
|---|---|
| (a) in a model call, (g) in a streamed one | test_killed_in_a_model_call_it_is_asked_again_and_nothing_else |
| (b) in a plain tool | test_killed_in_a_plain_tool_a_person_is_asked, test_killed_in_a_plain_tool_that_did_nothing_it_runs_again_once_told |
| (c) in an effect that asks | test_killed_in_a_declared_effect_that_asks_a_person_is_asked |
| (c) that may be retried, has a check, fails | test_killed_in_an_effect_that_may_be_retried_it_has_the_same_key, test_killed_in_an_effect_with_a_check_it_is_looked_up, test_killed_in_an_effect_that_fails_then_the_agent_fails_as_it_always_did |
| (c) in a step | test_killed_in_a_tool_that_only_reads_it_reads_again |
| (d) in one of three parallel tools | test_killed_in_one_of_three_parallel_tools_the_others_are_not_done_again |
| (e) between outcome and model call | test_killed_between_an_outcome_and_the_next_model_call_the_tool_is_not_asked_again |
| (f) while a question is open | test_killed_while_a_question_is_open_it_is_still_open |
| (g) between two streamed turns | test_killed_between_two_streamed_turns_the_same_result_is_made |
| (h) in a sub-agent, after a handover | test_killed_in_a_sub_agent_what_it_did_is_not_done_again, test_killed_in_a_tool_of_a_sub_agent_a_person_is_asked, test_killed_after_one_agent_has_handed_over_to_another_the_other_goes_on |
| a time-out in a tool | test_a_time_out_of_a_tool_is_doubt, test_a_time_out_of_a_tool_that_reads_is_told_in_the_frameworks_words |
| a result that cannot be stored | test_a_result_that_cannot_be_stored_is_recorded_as_its_text |
| a tool that raises | test_a_guard_clause_ends_the_run_as_ever_and_asks_nobody, test_any_other_exception_leaves_the_tool_in_doubt |
| a denied approval | test_two_questions_of_parallel_tools_are_put_at_once |
| started by two processes | test_the_same_run_started_by_two_processes_at_once_acts_once |
| a model that is down for an hour | test_a_model_that_is_down_for_an_hour_parks_the_run |
| a reworded prompt, a renamed tool | test_a_reworded_prompt_strands_nothing, test_a_renamed_tool_is_a_change_of_the_code |
| another version, another conversation | test_answers_of_another_version_are_read, test_a_conversation_that_differs_makes_no_tool_act_twice |
| deps that a tool changes | test_what_a_tool_changes_in_the_deps_is_there_on_replay |
| preflight and plan of a run in flight | test_preflight_and_a_plan_ask_no_model, test_a_plan_of_a_run_in_flight_executes_nothing |
| PostgreSQL | test_postgres.py |
"""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, RunContext, Tool

import surefoot as sf
import surefoot.aio as asf
from surefoot.pydantic_ai import Durable
from surefoot.store.open import close_all
from surefoot.testing.children import in_child
from tests.suites.pydantic_ai.stage import (
    Script,
    addresses,
    call,
    counted,
    in_process,
    killed_at,
    trace,
    traces,
)


def look_up(order: str) -> str:
    trace(f"look_up {order}")
    return f"{order}: 5 EUR"


def charge(card: str, cents: int) -> str:
    trace(f"charge {card}")
    return f"charged {card} {cents}"


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


@sf.effect(on_crash="fail")
def mail(to: str) -> str:
    trace(f"mail {to}")
    return f"mailed {to}"


@sf.step
def read(path: str) -> str:
    trace(f"read {path}")
    return f"text of {path}"


def wire(iban: str) -> str:
    trace(f"wire {iban}")
    return f"wired {iban}"


def answered(*calls: Any) -> Script:
    """A model that asks for these calls at once, and says what came of them."""
    return Script(lambda given: "; ".join(given) if given else list(calls))


def agent_of(
    script: Script, *tools: Any, name: str = "billing", durable: Durable | None = None, **options: Any
) -> Agent[Any, str]:
    return Agent(script.model, name=name, tools=tools, capabilities=[durable or Durable()], **options)


def one_agent(*calls: Any, **options: Any) -> Agent[Any, str]:
    return agent_of(answered(*calls), look_up, charge, refund, write, mail, read, instructions="be exact", **options)


async def _watched(_: Any, events: Any) -> None:
    async for _event in events:
        pass


def flow(agent: Agent[Any, str], *, streamed: bool = False) -> Any:
    """The workflow that a user writes around an agent."""

    @sf.workflow(name="ticket")
    async def ticket(text: str) -> str:
        return (await agent.run(text, event_stream_handler=_watched if streamed else None)).output

    def run(run_id: str = "r") -> str:
        return str(asyncio.run(ticket.run(run_id, "ticket 81")))

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

    @sf.effect
    def pay(card: str) -> str:
        trace(f"pay {card}")
        return f"paid {card}"

    run = flow(agent_of(answered(call("pay", 1, card="a")), pay))
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


def test_killed_in_an_effect_that_fails_then_the_agent_fails_as_it_always_did():
    """(c) on_crash="fail": the framework lets an exception of a tool end the run, and so it does."""
    run = flow(one_agent(call("mail", 1, to="ann")))
    killed_at("mail ann", run)

    for _ in range(2):
        with pytest.raises(sf.SurefootError, match="mail"):
            run()
    assert sf.get_run("r").status == "failed"
    assert counted()["mail ann"] == 1


def test_killed_in_a_tool_that_only_reads_it_reads_again():
    run = flow(one_agent(call("read", 1, path="a.txt")))
    killed_at("read a.txt", run)

    assert run() == "text of a.txt"
    assert counted()["read a.txt"] == 2


@STREAMED
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


def test_killed_while_a_question_is_open_it_is_still_open():
    """(f) The framework would have ended the run with requests that somebody has to save."""
    agent = agent_of(answered(call("wire", 1, iban="DE1")), Tool(wire, requires_approval=True))
    run = flow(agent)

    @sf.workflow(name="ticket")
    async def waiting(text: str) -> str:
        return (await agent.run(text)).output

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
    """(g) On replay each part of an answer is one event, and the framework builds the same from it."""
    run = flow(one_agent(call("look_up", 1, order="o-7")), streamed=True)
    killed_at("model 1 streaming", run)

    assert run() == "o-7: 5 EUR"
    assert counted()["look_up o-7"] == 1


def helped() -> Agent[Any, str]:
    """An agent whose tool asks another one, which charges."""
    script = Script(lambda given: given[0] if given else call("charge", 9, card="h", cents=1), "sub")
    helper = agent_of(script, charge, name="helper")

    @sf.workflow
    async def ask_helper(text: str) -> str:
        return (await helper.run(text)).output

    return agent_of(answered(call("ask_helper", 1, text="please")), ask_helper, name="boss")


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


def test_killed_after_one_agent_has_handed_over_to_another_the_other_goes_on():
    """(h) Hand-over by code: the first agent's answer is the second one's prompt."""
    triage = agent_of(Script(lambda _: "billing", "first"), name="triage")
    billing = agent_of(
        Script(lambda given: given[-1] if given else call("charge", 2, card="b", cents=1), "second"), charge
    )

    @sf.workflow(name="ticket")
    async def ticket(text: str) -> str:
        assert (await triage.run(text)).output == "billing"
        return (await billing.run(text)).output

    def run() -> str:
        return asyncio.run(ticket.run("r", "pay"))

    killed_at("second 1", run)

    assert run() == "charged b 1"
    assert (counted()["first 0"], counted()["charge b"]) == (1, 1)
    assert addresses()[:2] == ["[triage]/model#1", "[billing]/model#1"]


def test_a_run_that_another_process_has_ended_gives_its_result():
    run = flow(one_agent(call("charge", 1, card="a", cents=5)))
    in_process(run)

    assert run() == "charged a 5"
    assert counted()["charge a"] == 1


def test_the_same_run_started_by_two_processes_at_once_acts_once():
    """The card is charged while the second one comes: it waits for the first, and both have the same answer."""
    os.mkfifo("gate")
    os.mkfifo("here")

    def slow_charge(card: str) -> str:
        trace(f"charge {card}")
        Path("here").write_text("here")
        Path("gate").read_text()
        return f"charged {card}"

    run = flow(agent_of(answered(call("slow_charge", 1, card="a")), slow_charge))
    close_all()
    ends: list[Any] = []
    both = [threading.Thread(target=lambda: ends.append(in_child(lambda _: run(), seconds=50))) for _ in range(2)]
    both[0].start()
    assert Path("here").read_text() == "here"
    both[1].start()
    Path("gate").write_text("go")
    for one in both:
        one.join()

    assert [each.code for each in ends] == [0, 0], ends
    assert run() == "charged a"
    assert counted() == {"model 0": 1, "charge a": 1, "model 1": 1}


def test_a_plan_of_a_run_in_flight_executes_nothing():
    """`surefoot runs plan`: what a resume would do next."""
    run = flow(one_agent(call("charge", 1, card="a", cents=5)))
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
        await asyncio.gather(*(agent.run(text) for text in ("a", "b")))

    with pytest.raises(sf.UsageError, match=r"sf\.gather"):
        asyncio.run(both.run("r"))


def test_two_agents_of_one_name_in_sf_gather_are_told_apart():
    agent = one_agent(call("look_up", 1, order="o"))

    @sf.workflow
    async def both() -> list[str]:
        results = await asf.gather(*(agent.run(text) for text in ("a", "b")))
        return [result.output for result in results]

    assert asyncio.run(both.run("r")) == ["o: 5 EUR", "o: 5 EUR"]
    assert "gather#1.1/[call_1]/look_up#1" in addresses()


def test_agents_of_different_names_may_be_gathered_in_any_way():
    """Their labels tell them apart, so a plain asyncio.gather is enough."""
    one, other = (
        agent_of(answered(call("charge", number, card=name, cents=1)), charge, name=name)
        for number, name in ((1, "one"), (2, "other"))
    )

    @sf.workflow
    async def mixed() -> list[str]:
        results = await asyncio.gather(one.run("go"), other.run("go"))
        return [result.output for result in results]

    assert asyncio.run(mixed.run("r")) == ["charged one 1", "charged other 1"]


@pytest.mark.parametrize("at", ["charge c1", "charge c2", "model 1"])
def test_agents_side_by_side_that_are_killed_act_once_each(at):
    agents = [one_agent(call("charge", number, card=f"c{number}", cents=1)) for number in (1, 2)]

    @sf.workflow(name="both")
    async def both() -> list[str]:
        results = await asf.gather(*(agent.run("go") for agent in agents))
        return [result.output for result in results]

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


@STREAMED
def test_one_run_after_the_other_goes_on_counting(streamed):
    """A chat: the same agent for every message, with the messages so far."""
    agent = agent_of(Script(lambda _: "hello"), name="chat")

    @sf.workflow
    async def chat() -> int:
        history: list[Any] = []
        for text in ("a", "b", "c"):
            result = await agent.run(text, message_history=history, event_stream_handler=_watched if streamed else None)
            history = result.all_messages()
        return len(history)

    assert asyncio.run(chat.run("r")) == 6
    assert addresses() == ["[chat]/model#1", "[chat]/model#2", "[chat]/model#3"]


def test_a_worker_runs_an_agent_that_was_queued():
    agent = one_agent(call("charge", 1, card="w", cents=1))

    @sf.workflow(name="queued")
    async def queued() -> str:
        return (await agent.run("go")).output

    asyncio.run(queued.start("r"))
    with sf.Worker(workflows=[queued]):
        assert sf.get_run("r").result(timeout=30) == "charged w 1"


def test_outside_of_a_run_a_durable_agent_is_the_agent():
    """No store is opened, nothing is recorded: unit tests need nothing."""
    agent = one_agent(call("charge", 1, card="a", cents=5))

    result = asyncio.run(agent.run("ticket 81"))

    assert result.output == "charged a 5"
    with pytest.raises(sf.NotFound):
        sf.get_run("r")


def test_inside_of_an_effect_a_durable_agent_is_the_agent():
    """The effect is what is on record."""
    agent = one_agent(call("charge", 1, card="a", cents=5))

    @sf.effect
    async def handle(text: str) -> str:
        return (await agent.run(text)).output

    @sf.workflow
    async def ticket() -> str:
        return await handle("go")

    assert asyncio.run(ticket.run("r")) == "charged a 5"
    assert addresses() == ["handle#1"]


def test_iterating_over_an_agent_and_streaming_its_text_are_recorded_too():
    agent = one_agent(call("charge", 1, card="a", cents=5))

    @sf.workflow(name="stepped")
    async def stepped() -> list[str]:
        async with agent.iter("go") as run:
            nodes = [type(node).__name__ async for node in run]
        async with agent.run_stream("go") as stream:
            text = [part async for part in stream.stream_text()]
        assert run.result is not None
        return [*nodes, run.result.output, *text]

    def run() -> list[str]:
        return asyncio.run(stepped.run("r"))

    killed_at("model 1 streaming", run)
    found = run()

    assert found == run()
    assert found[-2:] == ["charged a 5", "charged a 5"]
    assert addresses()[:3] == ["[billing]/model#1", "[call_1]/charge#1", "[billing]/model#2"]
    assert addresses()[-2:] == ["[call_1]/charge#2", "[billing]/model#4"]
    assert counted()["charge a"] == 2


def test_a_reworded_prompt_strands_nothing():
    calls = (call("charge", 1, card="a", cents=5),)
    killed_at("model 1", flow(one_agent(*calls)))

    other = agent_of(answered(*calls), charge, instructions="be kind", system_prompt="You are new.")
    assert flow(other)() == "charged a 5"
    assert (counted()["charge a"], counted()["model 0"]) == (1, 1)


def test_a_renamed_tool_is_a_change_of_the_code():
    """The model's answer on record asks for `charge`, which nobody has any more."""
    killed_at("model 1", flow(one_agent(call("charge", 1, card="a", cents=5))))

    def debit(card: str, cents: int) -> str:
        return "debited"

    with pytest.raises(sf.CodeChanged, match="charge#1"):
        flow(agent_of(answered(call("debit", 1, card="a", cents=5)), debit))()


def test_deps_are_given_to_tools_as_ever():
    def greet(ctx: RunContext[str]) -> str:
        return f"hello {ctx.deps}"

    agent = agent_of(answered(call("greet", 1)), greet, deps_type=str)

    @sf.workflow
    async def hello() -> str:
        return (await agent.run("go", deps="ada")).output

    assert asyncio.run(hello.run("r")) == "hello ada"
