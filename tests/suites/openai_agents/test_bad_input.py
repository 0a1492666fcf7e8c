"""What is wrong from the start: each is a clear error, nothing is half wrapped, nothing is lost.

| bad input | test |
|---|---|
| an undeclared tool that calls an effect | test_a_plain_tool_that_calls_an_effect_is_refused_with_the_cure |
| a result that cannot be stored | test_a_result_that_cannot_be_stored_is_recorded_as_its_text |
| a version that was not tested | test_a_missing_or_untested_sdk_is_refused_with_the_command |
| two runs under a plain gather | test_two_agents_of_one_name_side_by_side_are_refused_with_the_cure |
| a store of another major format | test_a_store_of_a_later_format_is_named_before_the_model_is_asked |
| ids with control characters | test_a_run_id_with_control_characters_is_refused, test_a_call_id_may_have_any_characters, test_names_may_have_any_characters |
| the same call id twice | test_two_calls_under_one_id_are_refused_before_either_runs |
| a model that answers nonsense | test_an_answer_that_is_none_is_not_recorded_and_asked_for_again, test_a_nonsense_event_is_told_in_few_words |
"""

from __future__ import annotations

import asyncio
import sqlite3
from typing import Any

import pytest
from agents import Agent, Runner, SQLiteSession

import surefoot as sf
from surefoot.openai_agents import durable
from surefoot.store.open import close_all
from tests.suites.openai_agents.stage import Script, addresses, call, counted, killed_at, says, traces
from tests.suites.openai_agents.test_stories import charge, flow, one_agent


def test_a_store_of_a_later_format_is_named_before_the_model_is_asked():
    run = flow(one_agent(call("charge", 1, card="a", cents=5)))
    killed_at("model 1", run)
    close_all()
    with sqlite3.connect(".surefoot/runs.db") as db:
        db.execute("UPDATE meta SET value = 2 WHERE key = 'format'")
    db.close()

    with pytest.raises(sf.SchemaMismatch, match="has format 2, this version of surefoot knows up to 1"):
        run()
    assert counted()["model 1"] == 1
    with sqlite3.connect(".surefoot/runs.db") as db:
        db.execute("UPDATE meta SET value = 1 WHERE key = 'format'")
    db.close()
    assert run() == "charged a 5"
    assert counted()["charge a"] == 1


def test_a_run_id_with_control_characters_is_refused():
    with pytest.raises(sf.UsageError, match="run id"):
        flow(one_agent(call("charge", 1, card="a", cents=5)))("r\x00\n")
    assert traces() == []


def test_names_may_have_any_characters(tmp_path):
    """Of agents and sessions: they are part of addresses, and are escaped there."""
    agent = Agent(name="bill]ing/#1\n", model=Script(lambda given: given[0] if given else call("charge", 1, card="a", cents=5)),
                  tools=[charge])  # fmt: skip
    session = durable.session(SQLiteSession("s/1]\n", tmp_path / "sessions.db"))

    @sf.workflow(name="odd")
    async def odd() -> str:
        return str((await Runner.run(durable(agent), "go", session=session)).final_output)

    killed_at("model 1", lambda: asyncio.run(odd.run("r")))
    assert asyncio.run(odd.run("r")) == "charged a 5"
    assert counted()["charge a"] == 1
    assert "[bill%5Ding/%231%0A]/model#1" in addresses()


def test_a_nonsense_event_is_told_in_few_words():
    """pydantic would have a line for each class of the SDK that it might have been."""

    class Odd:
        type = "response.completed"
        response = None

    class Broken(Script):
        async def stream_response(self, *_: Any, **__: Any) -> Any:
            yield Odd()

    run = flow(Agent(name="billing", model=Broken(lambda _: says("x"))), streamed=True)
    with pytest.raises(
        sf.ValueRejected, match="model of 'billing' answered with a Odd that cannot be recorded"
    ) as error:
        run()
    assert len(str(error.value)) < 1_000
    assert sf.get_run("r").status != "failed"
