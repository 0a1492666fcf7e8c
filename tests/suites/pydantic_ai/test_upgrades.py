"""The framework is upgraded, or put back, between a crash and the resume: its records have fields more, or fields less."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from pydantic_ai.messages import ToolCallPart

import surefoot as sf
from surefoot.adapters.pydantic_ai import models
from tests.suites.pydantic_ai.stage import Script, call, counted, killed_at
from tests.suites.pydantic_ai.test_stories import STREAMED, agent_of, charge, flow, one_agent


def newer(plain: dict[str, Any]) -> Any:
    """Of tomorrow: fields that this version does not know, in the answer, its parts and its usage."""
    parts = [{**part, "of_tomorrow": {"a": 1}} for part in plain["parts"]]
    return {**plain, "parts": parts, "usage": {**plain["usage"], "dreamt_tokens": 7}, "of_tomorrow": 1}


def older(plain: dict[str, Any]) -> Any:
    """Of yesterday: without what one could leave out then."""
    return {"parts": plain["parts"], "kind": plain["kind"], "timestamp": plain["timestamp"]}


def unknown(plain: dict[str, Any]) -> Any:
    """Of tomorrow: a part of a kind that this version has no class for."""
    return {**plain, "parts": [*plain["parts"], {"part_kind": "dream", "content": "x"}]}


def recorded_by(change: Callable[[Any], Any], run: Callable[[], Any], at: str) -> None:
    """Run it in a process with another version, and kill it there."""

    def other() -> None:
        proved = models._proved
        models._proved = lambda *args: (change(proved(*args)[0]), proved(*args)[1])
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
            sf.ValueRejected, match=r"model of 'billing' is on record and cannot be read with pydantic-ai"
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
        return "; ".join(given) if given else ToolCallPart("charge", {"card": "a", "cents": 5}, f"call_{uuid4().hex}")

    run = flow(agent_of(Script(answer), charge), streamed=streamed)

    def other() -> None:
        said = models._said
        models._said = lambda part: {**said(part), "phase": "x"}
        run()

    killed_at("model 1", other)

    assert run() == "charged a 5"
    assert (counted()["model 0"], counted()["charge a"]) == (1, 1)
    assert "CallKept" in [entry.kind for entry in sf.get_run("r").entries()]
