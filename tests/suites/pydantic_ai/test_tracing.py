"""What of a run is exported by the framework's tracing: each thing when it is done, and not again when it is only replayed."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace as otel
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic_ai import Agent, Tool
from pydantic_ai.capabilities import Instrumentation
from pydantic_ai.models.instrumented import InstrumentationSettings

import surefoot as sf
from surefoot.pydantic_ai import Durable
from tests.suites.pydantic_ai.stage import call, counted, killed_at, trace
from tests.suites.pydantic_ai.test_stories import STREAMED, answered, charge, flow, read, wire


class Watched(SpanProcessor):
    """Nothing may end that has not begun, and nothing may begin under what was not told."""

    def __init__(self) -> None:
        self.open: set[int] = set()
        self.told: set[int] = set()

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        assert span.parent is None or span.parent.span_id in self.told, span.name
        self.open.add(span.context.span_id)
        self.told.add(span.context.span_id)

    def on_end(self, span: ReadableSpan) -> None:
        assert span.context is not None
        self.open.remove(span.context.span_id)


class Exporter:
    """An application that exports what its agents do."""

    def __init__(self) -> None:
        self.spans, self.watched, self.reader = InMemorySpanExporter(), Watched(), InMemoryMetricReader()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self.spans))
        self.provider.add_span_processor(self.watched)
        self.meters = MeterProvider([self.reader], shutdown_on_exit=False)
        self.settings = InstrumentationSettings(tracer_provider=self.provider, meter_provider=self.meters)

    def taken(self) -> Counter[str]:
        """What was exported since the last look."""
        assert not self.watched.open
        found = self.spans.get_finished_spans()
        self.spans.clear()
        return Counter(span.name for span in found)

    def tokens(self) -> int:
        """How many were counted in all."""
        data = self.reader.get_metrics_data()
        metrics = (
            [each for one in data.resource_metrics for scope in one.scope_metrics for each in scope.metrics]
            if data
            else []
        )
        points = [
            point for each in metrics if each.name == "gen_ai.client.token.usage" for point in each.data.data_points
        ]
        return sum(int(point.sum) for point in points)  # type: ignore[union-attr]


@pytest.fixture
def exporter() -> Iterator[Exporter]:
    found = Exporter()
    yield found
    found.provider.shutdown()
    found.meters.shutdown()


def asking(exporter: Exporter, *calls: Any, **options: Any) -> Agent[Any, str]:
    agent = Agent(answered(*calls).model, name="billing", tools=[charge, read, Tool(wire, requires_approval=True)],
                  capabilities=[Durable()], **options)  # fmt: skip
    agent.instrument = exporter.settings
    return agent


CHAT, RUN, CHARGE, READ, WIRE = (
    "chat model", "invoke_agent billing", "execute_tool charge", "execute_tool read", "execute_tool wire",
)  # fmt: skip


@STREAMED
def test_the_first_time_everything_is_exported(exporter, streamed):
    assert flow(asking(exporter, call("charge", 1, card="a", cents=5)), streamed=streamed)() == "charged a 5"

    assert exporter.taken() == {CHAT: 2, RUN: 1, CHARGE: 1}


@STREAMED
def test_turns_that_are_answered_from_the_journal_are_not_exported_again(exporter, streamed):
    """Each resume would show every model call and every payment once more, and count their tokens."""
    run = flow(asking(exporter, call("charge", 1, card="a", cents=5)), streamed=streamed)
    killed_at("model 1", run)
    assert exporter.taken() == {}, "what a child exported went away with it"

    assert run() == "charged a 5"
    assert exporter.taken() == {CHAT: 1, RUN: 1}
    tokens = exporter.tokens()

    assert run() == "charged a 5"
    assert exporter.taken() == {}
    assert exporter.tokens() == tokens > 0


def test_a_resume_that_executes_nothing_exports_nothing(exporter):
    """It only looks whether somebody has answered."""
    run = flow(asking(exporter, call("wire", 1, iban="A")))
    with pytest.raises(sf.WaitingForAnswer):
        run()
    assert exporter.taken()[CHAT] == 1
    tokens = exporter.tokens()

    for _ in range(2):
        with pytest.raises(sf.WaitingForAnswer):
            run()
    assert exporter.taken() == {}
    assert exporter.tokens() == tokens


def test_of_tools_side_by_side_only_those_that_run_are_exported(exporter):
    calls = call("wire", 1, iban="A"), call("charge", 2, card="b", cents=1), call("read", 3, path="f")
    run = flow(asking(exporter, *calls))
    with pytest.raises(sf.WaitingForAnswer):
        run()
    first = exporter.taken()
    assert (first[CHARGE], first[READ], first[CHAT]) == (1, 1, 1)
    sf.get_run("r").answer("[call_1]/wire#1.approval", True, by="ann")

    assert run() == "wired A; charged b 1; text of f"

    then = exporter.taken()
    assert (then[WIRE], then[CHARGE], then[READ]) == (1, 0, 0)
    assert then[CHAT] == 1


def test_a_plan_exports_nothing(exporter):
    run = flow(asking(exporter, call("charge", 1, card="a", cents=5)))
    killed_at("model 1", run)

    sf.get_run("r").plan()

    assert exporter.taken() == {}
    assert exporter.tokens() == 0
    assert counted()["model 1"] == 1


def test_arguments_that_the_framework_refuses_are_exported_when_it_happens(exporter):
    """Nothing is recorded in it: it goes with its turn."""
    run = flow(asking(exporter, call("charge", 1, card="a", cents="many")))
    run()
    assert exporter.taken()[CHARGE] == 1

    sf.get_run("r").fork("r2", at="[billing]/model#2")
    run("r2")
    assert exporter.taken() == {CHAT: 1, RUN: 1}


@pytest.mark.parametrize("how", ["a capability", "of all agents", "made anew for each run"])
def test_wherever_the_framework_is_told_to_trace_it_is_held_back(exporter, how, monkeypatch):
    monkeypatch.setattr(Agent, "_instrument_default", False)
    capabilities: list[Any] = [Durable()]
    if how == "a capability":
        capabilities.append(Instrumentation(exporter.settings))
    elif how == "of all agents":
        Agent.instrument_all(exporter.settings)
    else:
        monkeypatch.setattr("pydantic_ai.models.instrumented.get_tracer_provider", lambda: exporter.provider)
        monkeypatch.setattr("pydantic_ai.models.instrumented.get_meter_provider", lambda: exporter.meters)
        Agent.instrument_all()
    agent = Agent(answered(call("charge", 1, card="a", cents=5)).model, name="billing", tools=[charge],
                  capabilities=capabilities)  # fmt: skip
    run = flow(agent)
    killed_at("model 1", run)

    assert run() == "charged a 5"
    assert exporter.taken() == {CHAT: 1, RUN: 1}


def test_a_span_has_the_time_at_which_it_began_and_what_it_was_told(exporter):
    """It is made later, when something in it is executed."""
    run = flow(asking(exporter, call("charge", 1, card="a", cents=5)))
    killed_at("model 1", run)
    run()

    spans = {span.name: span for span in exporter.spans.get_finished_spans()}
    chat, whole = spans[CHAT], spans[RUN]
    assert whole.start_time < chat.start_time < chat.end_time < whole.end_time
    assert chat.parent.span_id == whole.context.span_id
    assert whole.attributes["final_result"] == "charged a 5"
    assert chat.attributes["gen_ai.request.model"] == "model"
    assert "charged a 5" in chat.attributes["gen_ai.output.messages"]


def test_a_failure_is_exported_with_its_exception_and_once(exporter):
    def fails() -> str:
        raise ValueError("no such card")

    agent = Agent(answered(call("fails", 1)).model, name="billing", tools=[Tool(fails, metadata={"surefoot": "step"})],
                  capabilities=[Durable()])  # fmt: skip
    agent.instrument = exporter.settings

    @sf.workflow(name="ticket")
    async def ticket() -> str:
        try:
            await agent.run("go")
        except ValueError as error:
            await asyncio.to_thread(sf.approve, "give up?")
            return str(error)
        return "done"

    with pytest.raises(sf.WaitingForAnswer):
        asyncio.run(ticket.run("r"))
    (span,) = (span for span in exporter.spans.get_finished_spans() if span.name == "execute_tool fails")
    assert span.status.status_code is otel.StatusCode.ERROR
    assert [event.name for event in span.events] == ["exception"]
    exporter.taken()
    sf.get_run("r").answer("approve#1", True)

    assert asyncio.run(ticket.run("r")) == "no such card"
    assert exporter.taken() == {}


def test_spans_of_ones_own_are_found_under_those_of_the_framework(exporter):
    """In a tool that runs, and in workflow code that is replayed: what is exported has all that it is in."""
    mine = exporter.provider.get_tracer("mine")

    def own() -> str:
        with mine.start_as_current_span("my own"):
            trace("own")
        return "own"

    def inline() -> str:
        with mine.start_as_current_span("my inline"):
            return "inline"

    agent = Agent(answered(call("own", 1), call("inline", 2)).model, name="billing", tools=[own, inline],
                  capabilities=[Durable(tools={"inline": "inline"})])  # fmt: skip
    agent.instrument = exporter.settings
    run = flow(agent)
    killed_at("model 2", run)

    assert run() == "own; inline"

    spans = exporter.spans.get_finished_spans()
    names = {span.context.span_id: span.name for span in spans if span.context is not None}
    parents = {span.name: names[span.parent.span_id] for span in spans if span.parent is not None}
    assert parents["my inline"] == "execute_tool inline"
    assert "my own" not in names.values()
    assert exporter.taken()["execute_tool own"] == 0


def test_a_question_in_a_log_line_of_a_replay_makes_no_span_twice(exporter, caplog):
    """A handler of logs asks for the current span's id: only what is around such a line is made."""

    class Correlated(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            otel.get_current_span().get_span_context()

    handler = Correlated()
    logging.getLogger().addHandler(handler)
    try:
        run = flow(asking(exporter, call("charge", 1, card="a", cents=5)))
        killed_at("model 1", run)
        run()
    finally:
        logging.getLogger().removeHandler(handler)
    assert exporter.taken()[CHARGE] == 0


def test_outside_of_a_run_and_inside_of_an_effect_spans_are_the_frameworks(exporter):
    agent = asking(exporter, call("charge", 1, card="a", cents=5))
    asyncio.run(agent.run("go"))
    assert exporter.taken() == {CHAT: 2, RUN: 1, CHARGE: 1}

    @sf.step
    async def whole() -> str:
        return (await agent.run("go")).output

    @sf.workflow
    async def around() -> str:
        return await whole()

    asyncio.run(around.run("r"))
    assert exporter.taken() == {CHAT: 2, RUN: 1, CHARGE: 1}
    asyncio.run(around.run("r"))
    assert exporter.taken() == {}
