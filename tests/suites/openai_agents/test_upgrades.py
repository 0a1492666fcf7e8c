"""The SDK is upgraded, or put back, between a crash and the resume: its records have fields more, or fields less."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from agents import Agent, ModelResponse
from agents.items import TResponseStreamEvent
from agents.testing import function_call

import surefoot as sf
from surefoot.adapters.openai_agents import models
from surefoot.adapters.records import Form
from tests.suites.openai_agents.stage import Script, call, counted, killed_at
from tests.suites.openai_agents.test_stories import STREAMED, charge, flow, one_agent


class Otherwise(Form):
    """The plain form of another version."""

    def __init__(self, wanted: Any, change: Callable[[Any], Any]) -> None:
        super().__init__(wanted)
        self._change = change

    def proved(self, value: Any) -> tuple[Any, Any]:
        return self._change(super().proved(value)[0]), value


def newer(plain: dict[str, Any]) -> Any:
    """Of tomorrow: fields that this version does not know, in the answer and in its items."""
    answer = plain.get("response", plain)
    items = [{**item, "of_tomorrow": {"a": 1}} for item in answer["output"]]
    changed = {**answer, "output": items, "of_tomorrow": 1}
    return {**plain, "response": changed} if "response" in plain else changed


def older(plain: dict[str, Any]) -> Any:
    """Of yesterday: without what one could leave out then."""
    answer = plain.get("response", plain)
    needed = {"type", "call_id", "name", "arguments", "id", "role", "content", "status"}
    items = [{key: value for key, value in item.items() if key in needed} for item in answer["output"]]
    if "response" in plain:
        return {**plain, "response": {**answer, "output": items}}
    return {"output": items, "usage": {}, "response_id": None}


def unknown(plain: dict[str, Any]) -> Any:
    """Of tomorrow: another shape."""
    answer = plain.get("response", plain)
    changed = {**answer, "output": "packed"}
    return {**plain, "response": changed} if "response" in plain else changed


def recorded_by(change: Callable[[Any], Any], run: Callable[[], Any], at: str) -> None:
    """Run it in a process with another version, and kill it there."""

    def other() -> None:
        models.RESPONSES = Otherwise(ModelResponse, change)
        models.EVENTS = Otherwise(TResponseStreamEvent, change)
        run()

    killed_at(at, other)


@STREAMED
@pytest.mark.parametrize("change", [newer, older])
@pytest.mark.parametrize("at", ["charge a", "model 1"])
def test_answers_of_another_version_are_read(change, at, streamed):
    """What the model said and what its tool did is not asked for again."""
    run = flow(one_agent(call("charge", 1, card="a", cents=5)), streamed=streamed)
    recorded_by(change, run, at)
    if at == "charge a":
        with pytest.raises(sf.InDoubt, match=r"\[call_1\]/charge#1"):
            run()
        sf.get_run("r").settle("[call_1]/charge#1", happened="charged a 5", by="ann")

    assert run() == "charged a 5"
    assert (counted()["model 0"], counted()["charge a"]) == (1, 1)


@STREAMED
def test_an_answer_that_this_version_cannot_read_stays_and_is_named(streamed):
    """Asked again, the model would say something else, and its tool would act twice."""
    run = flow(one_agent(call("charge", 1, card="a", cents=5)), streamed=streamed)
    recorded_by(unknown, run, "model 1")

    for _ in range(2):
        with pytest.raises(
            sf.ValueRejected, match=r"model of 'billing' is on record and cannot be read with openai-agents"
        ):
            run()
    assert sf.get_run("r").status != "failed"
    assert (counted()["model 0"], counted()["charge a"]) == (1, 1)


@STREAMED
def test_a_conversation_that_differs_makes_no_tool_act_twice(streamed):
    """Another version spells messages otherwise. Asked again, a model would give its calls other ids: nothing on record would
    be theirs, and the card would be charged twice.
    """

    def answer(given: list[str]) -> Any:
        return (
            "; ".join(given)
            if given
            else function_call("charge", {"card": "a", "cents": 5}, call_id=f"call_{uuid4().hex}")
        )

    run = flow(Agent(name="billing", model=Script(answer), tools=[charge]), streamed=streamed)

    def other() -> None:
        plain = Form(Any).plain
        models.ANYTHING.plain = lambda given: [{**each, "phase": None} for each in plain(given)]  # type: ignore[method-assign]
        run()

    killed_at("model 1", other)

    assert run() == "charged a 5"
    assert (counted()["model 0"], counted()["charge a"]) == (1, 1)
    assert "CallKept" in [entry.kind for entry in sf.get_run("r").entries()]
