"""What is wrong from the start: each is a clear error, nothing is half wrapped, nothing is lost.

| bad input | test |
|---|---|
| an undeclared tool that calls an effect, or runs a durable agent | test_a_plain_tool_that_calls_an_effect_is_refused_with_the_cure, test_a_plain_tool_that_runs_a_durable_agent_is_refused_with_the_cure |
| a result that cannot be stored | test_a_result_that_cannot_be_stored_is_recorded_as_its_text |
| a version that was not tested | test_a_missing_or_untested_framework_is_refused_with_the_command |
| two runs under a plain gather | test_two_agents_of_one_name_side_by_side_are_refused_with_the_cure |
| a store of another major format | test_a_store_of_a_later_format_is_named_before_the_model_is_asked |
| ids with control characters | test_a_run_id_with_control_characters_is_refused, test_names_and_call_ids_may_have_any_characters |
| the same call id twice | test_a_call_id_twice_in_one_answer_is_refused_by_the_framework |
| a model that answers nonsense | test_a_model_that_answers_nonsense_fails_the_run_clearly, test_an_answer_that_is_none_is_not_recorded_and_asked_for_again |
"""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

import surefoot as sf
from surefoot.store.open import close_all
from tests.suites.pydantic_ai.stage import Script, addresses, call, counted, killed_at, traces
from tests.suites.pydantic_ai.test_stories import agent_of, charge, flow, one_agent


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


def test_names_and_call_ids_may_have_any_characters():
    """They are part of addresses, and are escaped there."""
    odd = ToolCallPart("charge", {"card": "a", "cents": 5}, "../a]/b#1\x00")
    run = flow(agent_of(Script(lambda given: given[0] if given else odd), charge, name="bill]ing/#1"))
    killed_at("model 1", run)

    assert run() == "charged a 5"
    assert counted()["charge a"] == 1
    assert {"[bill%5Ding/%231]/model#1", "[../a%5D/b%231%00]/charge#1"} <= set(addresses())


@pytest.mark.parametrize("nonsense", [None, "hello", ModelResponse([TextPart(7)])], ids=["none", "text", "a number"])  # type: ignore[arg-type]
def test_an_answer_that_is_none_is_not_recorded_and_asked_for_again(nonsense):
    """A model of one's own with a bug: repaired, the run goes on."""
    answers = [nonsense]

    class Broken(Script):
        async def _whole(self, *args: Any) -> Any:
            found = await super()._whole(*args)
            return answers.pop() if answers else found

    run = flow(agent_of(Broken(lambda _: "hello")))
    with pytest.raises(Exception) as error:
        run()
    assert len(str(error.value)) < 1_000
    assert not any(each.status == "done" for each in sf.get_run("r").steps())
    if sf.get_run("r").status == "failed":
        assert not isinstance(error.value, sf.SurefootError), "the framework's own refusal"
        return
    assert isinstance(error.value, sf.ValueRejected)
    assert run() == "hello"
