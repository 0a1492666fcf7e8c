"""What of a run is exported by the SDK's tracing: each thing when it is done, and not again when it is only replayed."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from agents import (
    Agent,
    GuardrailFunctionOutput,
    InputGuardrail,
    Runner,
    add_trace_processor,
    function_tool,
    handoff,
    set_trace_processors,
    set_tracing_disabled,
)
from agents.tracing import TracingProcessor, generation_span, get_trace_provider, set_trace_provider
from agents.tracing.provider import DefaultTraceProvider

import surefoot as sf
from surefoot.openai_agents import durable
from tests.suites.openai_agents.stage import Script, call, counted, killed_at, trace
from tests.suites.openai_agents.test_stories import STREAMED, flow, one_agent, wire


class Exporter(TracingProcessor):
    """As one that sends what has ended, and keeps what has begun meanwhile."""

    def __init__(self) -> None:
        self.ended: list[str] = []
        self.open: set[str] = set()
        self.unknown: list[str] = []

    def on_trace_start(self, trace: Any) -> None:
        self.open.add(trace.trace_id)

    def on_trace_end(self, trace: Any) -> None:
        self.open.remove(trace.trace_id)
        self.ended.append("trace")

    def on_span_start(self, span: Any) -> None:
        if (span.parent_id or span.trace_id) not in self.open:
            self.unknown.append(name_of(span))
        self.open.add(span.span_id)

    def on_span_end(self, span: Any) -> None:
        self.open.remove(span.span_id)
        self.ended.append(name_of(span))

    def shutdown(self) -> None: ...

    def force_flush(self) -> None: ...

    def taken(self) -> Counter[str]:
        """What was exported since the last look. Nothing may be open, or have begun inside of what was not told."""
        assert not self.open
        assert not self.unknown
        found, self.ended = Counter(self.ended), []
        return found


def name_of(span: Any) -> str:
    data = span.export()["span_data"]
    return " ".join(str(data[key]) for key in ("type", "name") if data.get(key) is not None)


@pytest.fixture
def exporter() -> Iterator[Exporter]:
    found = Exporter()
    set_trace_processors([])
    add_trace_processor(found)
    set_tracing_disabled(False)
    yield found
    set_tracing_disabled(True)
    set_trace_processors([])


class Traced(Script):
    """A model that makes a span of its own, as those of the SDK do."""

    def _items(self, conversation: Any) -> list[Any]:
        with generation_span(model=self._name):
            return super()._items(conversation)


def traced(*calls: Any) -> Traced:
    return Traced(lambda given: "; ".join(given) if given else list(calls))


def asking(*calls: Any) -> Agent[Any]:
    agent = one_agent()
    agent.model = traced(*calls)
    agent.tools.append(wire)
    return agent


@STREAMED
def test_the_first_time_everything_is_exported(exporter, streamed):
    assert flow(asking(call("charge", 1, card="a", cents=5)), streamed=streamed)() == "charged a 5"

    found = exporter.taken()
    assert (found["trace"], found["agent billing"], found["function charge"], found["generation"]) == (1, 1, 1, 2)


@STREAMED
def test_turns_that_are_answered_from_the_journal_are_not_exported_again(exporter, streamed):
    """Each resume would show every model call and every payment once more."""
    run = flow(asking(call("charge", 1, card="a", cents=5)), streamed=streamed)
    killed_at("model 1", run)
    assert exporter.taken() == {}, "what a child exported went away with it"

    assert run() == "charged a 5"

    found = exporter.taken()
    assert (found["function charge"], found["generation"], found["agent billing"], found["trace"]) == (0, 1, 1, 1)
    assert sum(count for name, count in found.items() if name.startswith("custom turn")) <= 1
    assert run() == "charged a 5"
    assert exporter.taken() == {}


def test_a_resume_that_executes_nothing_exports_nothing(exporter):
    """It only looks whether somebody has answered."""
    run = flow(asking(call("wire", 1, iban="A")))
    with pytest.raises(sf.WaitingForAnswer):
        run()
    assert exporter.taken()["generation"] == 1

    for _ in range(2):
        with pytest.raises(sf.WaitingForAnswer):
            run()
    assert exporter.taken() == {}


def test_of_tools_side_by_side_only_those_that_run_are_exported(exporter):
    run = flow(asking(call("wire", 1, iban="A"), call("charge", 2, card="b", cents=1), call("read", 3, path="f")))
    with pytest.raises(sf.WaitingForAnswer):
        run()
    first = exporter.taken()
    assert (first["function charge"], first["function read"], first["generation"]) == (1, 1, 1)
    sf.get_run("r").answer("[call_1]/wire#1.approval", True, by="ann")

    assert run() == "wired A; charged b 1; text of f"

    then = exporter.taken()
    assert (then["function wire"], then["function charge"], then["function read"]) == (1, 0, 0)
    assert then["generation"] == 1


def test_handoffs_and_guardrails_are_exported_with_what_is_around_them(exporter):
    async def fine(*_: Any) -> GuardrailFunctionOutput:
        return GuardrailFunctionOutput(output_info=None, tripwire_triggered=False)

    billing = Agent(name="billing", model=Traced(lambda _: "ok", "second"))
    triage = Agent(name="triage", model=Traced(lambda _: call("transfer_to_billing", 1), "first"),
                   handoffs=[handoff(billing)], input_guardrails=[InputGuardrail(fine, name="fine")])  # fmt: skip
    run = flow(triage)
    assert run() == "ok"
    first = exporter.taken()
    handoffs = [name for name in first if name.startswith("handoff")]
    assert (first["guardrail fine"], first["agent triage"], first["agent billing"], len(handoffs)) == (1, 1, 1, 1)

    sf.get_run("r").fork("r2", at="[billing]/model#1")
    assert run("r2") == "ok"
    then = exporter.taken()
    assert (then["guardrail fine"], then["agent triage"], then["agent billing"]) == (0, 0, 1)


@STREAMED
def test_a_chat_exports_only_the_message_that_is_answered_now(exporter, streamed):
    """Turns without tools: only the model's answer tells that they are over."""

    class Counting(Traced):
        def _items(self, conversation: Any) -> list[Any]:
            trace(str(conversation if isinstance(conversation, str) else conversation[-1]["content"]))
            return super()._items(conversation)

    agent = Agent(name="chat", model=Counting(lambda _: "hello"))

    @sf.workflow
    async def chat() -> None:
        for text in ("one", "two"):
            if streamed:
                async for _ in Runner.run_streamed(durable(agent), text).stream_events():
                    pass
            else:
                await Runner.run(durable(agent), text)

    killed_at("two", lambda: asyncio.run(chat.run("r")))
    asyncio.run(chat.run("r"))

    found = exporter.taken()
    assert (found["agent chat"], found["trace"], found["generation"]) == (1, 1, 1)


def test_a_plan_exports_nothing(exporter):
    run = flow(asking(call("charge", 1, card="a", cents=5)))
    killed_at("model 1", run)

    sf.get_run("r").plan()

    assert exporter.taken() == {}
    assert counted()["model 1"] == 1


def test_a_tool_that_the_sdk_refuses_is_exported_when_it_happens(exporter):
    """Nothing is recorded in it: it goes with its turn."""

    @function_tool
    @sf.step
    def look(n: int) -> str:
        trace("look")
        return "seen"

    agent = Agent(name="billing", model=traced(call("look", 1, n="many")), tools=[look])
    run = flow(agent)
    run()
    assert exporter.taken()["function look"] == 1


def test_a_provider_of_traces_that_is_set_later_is_held_back_too(exporter):
    """Applications set up tracing where they like, also after the agent was made durable."""
    agent = asking(call("charge", 1, card="a", cents=5))
    twin = durable(agent)
    before, other = get_trace_provider(), DefaultTraceProvider()

    @sf.workflow(name="ticket")
    async def ticket() -> str:
        return str((await Runner.run(twin, "go")).final_output)

    killed_at("model 1", lambda: asyncio.run(ticket.run("r")))
    other.register_processor(exporter)
    set_trace_provider(other)
    try:
        assert asyncio.run(ticket.run("r")) == "charged a 5"
    finally:
        set_trace_provider(before)

    assert exporter.ended.count("function charge") == 0
    assert exporter.ended.count("generation") == 1


def test_outside_of_a_run_spans_are_the_sdks(exporter):
    asyncio.run(Runner.run(durable(asking(call("charge", 1, card="a", cents=5))), "go"))

    found = exporter.taken()
    assert (found["function charge"], found["generation"]) == (1, 2)
