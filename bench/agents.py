"""What a turn of an agent costs beyond the framework itself. `python -m bench.agents NAME FOLDER` prints figures as JSON.

NAME is `agent_turn` (OpenAI Agents SDK) or `pydantic_turn` (Pydantic AI).

A turn is one model call, a step, and one tool call, an effect: three durable writes. In one process and in turn: the turn
recorded, the same turn without surefoot, a step and an effect without the framework, and three bare writes as in
`bench.work ref`. What the machine does meanwhile hits all of them. The model and the tool do nothing.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import statistics
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import apsw

import surefoot.aio as sf
from bench.work import Figures, answer, async_effect, async_step, durable_rows, store_in

TURNS, WARM_UP = 150, 20
WRITES = 3
TEXT = "I want my money back."
Turn = Callable[[], Awaitable[Any]]
_numbers = itertools.count()


def charge(card: str, cents: int) -> dict[str, Any]:
    return answer(cents)


def _next_call() -> tuple[dict[str, Any], str]:
    """Each time under another id."""
    return {"card": "c-7", "cents": 4800}, f"call_{next(_numbers)}"


def _openai_agents() -> tuple[Turn, Turn]:
    """A turn that is recorded, and one that is not."""
    from agents import Agent, Model, ModelResponse, Runner, Usage, function_tool, set_tracing_disabled
    from agents.testing import function_call

    from surefoot.openai_agents import durable

    class Scripted(Model):
        async def get_response(self, *_: Any, **__: Any) -> ModelResponse:
            arguments, call_id = _next_call()
            calls: list[Any] = [function_call("charge", arguments, call_id=call_id)]
            return ModelResponse(output=calls, usage=Usage(requests=1), response_id=None)

        def stream_response(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

    set_tracing_disabled(True)
    agent = Agent(name="billing", instructions="Be exact.", model=Scripted(), tools=[function_tool(charge)],
                  tool_use_behavior="stop_on_first_tool")  # fmt: skip
    twin = durable(agent)
    return lambda: Runner.run(twin, TEXT), lambda: Runner.run(agent, TEXT)


def _pydantic_ai() -> tuple[Turn, Turn]:
    """The same. The framework has no way to stop at a tool's answer: so the second answer of the model is in both."""
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    from surefoot.pydantic_ai import Durable

    def scripted(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        if len(messages) > 1:
            return ModelResponse([TextPart("done")])
        arguments, call_id = _next_call()
        return ModelResponse([ToolCallPart("charge", arguments, call_id)])

    plain, durable = (
        Agent(FunctionModel(scripted), name="billing", instructions="Be exact.", tools=[charge], capabilities=each)
        for each in ([], [Durable()])
    )
    return lambda: durable.run(TEXT), lambda: plain.run(TEXT)


@sf.workflow
async def turns(what: str, count: int) -> dict[str, list[float]]:
    """Seconds of each kind, and of these those in which this process was at work."""
    made = {"agent_turn": _openai_agents, "pydantic_turn": _pydantic_ai}[what]
    durable, bare = made()
    steps = 2 if what == "pydantic_turn" else 1
    writes = WRITES + steps - 1
    laps: dict[str, list[float]] = {}

    def lap(name: str, started: tuple[float, float]) -> None:
        laps.setdefault(name, []).append(perf_counter() - started[0])
        laps.setdefault(f"{name}_cpu", []).append(process_time() - started[1])

    for number in range(count):
        for name, turn in (("durable", durable), ("bare", bare)):
            started = perf_counter(), process_time()
            await turn()
            lap(name, started)
        started = perf_counter(), process_time()
        for _ in range(steps):
            await async_step(number)
        await async_effect(number)
        lap("calls", started)
        started = perf_counter(), process_time()
        for _ in range(writes):
            connection.execute("insert into rows values (?)", (body,))
        lap("writes", started)
    measured.update(laps)
    return {}


def turn(what: str, folder: Path) -> Figures:
    """`ratio`: what a recorded turn takes beyond the framework's own, in bare writes of as many rows.

    `of_calls`: the same, in what a step and an effect take that no framework is around.
    """
    global connection, body
    connection, body = durable_rows(folder / "ref.db"), os.urandom(400)
    asyncio.run(turns.using(store=store_in(folder)).run("turns", what, TURNS))
    ms = {name: statistics.median(found[WARM_UP:]) * 1e3 for name, found in measured.items()}
    overhead = ms["durable"] - ms["bare"]
    return {
        "ratio": overhead / ms["writes"],
        "of_calls": overhead / ms["calls"],
        "ms": overhead,
        "bare_ms": ms["bare"],
        "calls_ms": ms["calls"],
        "writes_ms": ms["writes"],
        "cpu_ms": ms["durable_cpu"] - ms["bare_cpu"],
        "calls_cpu_ms": ms["calls_cpu"],
    }


connection: apsw.Connection
body: bytes
measured: dict[str, list[float]] = {}

if __name__ == "__main__":
    print(json.dumps(turn(sys.argv[1], Path(sys.argv[2]))))
