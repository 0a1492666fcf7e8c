"""What a turn of an agent costs beyond the framework itself. `python -m bench.agents agent_turn FOLDER` prints figures as JSON.

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
from collections.abc import AsyncIterator
from pathlib import Path
from time import perf_counter
from typing import Any

import apsw
from agents import Agent, Model, ModelResponse, Runner, Usage, function_tool, set_tracing_disabled
from agents.testing import function_call

import surefoot.aio as sf
from bench.work import Figures, answer, async_effect, async_step, durable_rows, store_in
from surefoot.openai_agents import durable

TURNS, WARM_UP = 150, 20
WRITES = 3
_numbers = itertools.count()


class Scripted(Model):
    """Asks for one tool, each time under another id."""

    async def get_response(self, *_: Any, **__: Any) -> ModelResponse:
        calls: list[Any] = [function_call("charge", {"card": "c-7", "cents": 4800}, call_id=f"call_{next(_numbers)}")]
        return ModelResponse(output=calls, usage=Usage(requests=1), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


@function_tool
def charge(card: str, cents: int) -> dict[str, Any]:
    return answer(cents)


agent = Agent(
    name="billing",
    instructions="Be exact.",
    model=Scripted(),
    tools=[charge],
    tool_use_behavior="stop_on_first_tool",
)
laps: dict[str, list[float]] = {"durable": [], "bare": [], "calls": [], "writes": []}


@sf.workflow
async def turns(count: int) -> int:
    twin = durable(agent)
    for number in range(count):
        await _timed("durable", twin)
        await _timed("bare", agent)
        started = perf_counter()
        await async_step(number)
        await async_effect(number)
        laps["calls"].append(perf_counter() - started)
        started = perf_counter()
        for _ in range(WRITES):
            connection.execute("insert into rows values (?)", (body,))
        laps["writes"].append(perf_counter() - started)
    return count


async def _timed(name: str, one: Agent[Any]) -> None:
    started = perf_counter()
    await Runner.run(one, "I want my money back.")
    laps[name].append(perf_counter() - started)


def agent_turn(folder: Path) -> Figures:
    """`ratio`: what a recorded turn takes beyond the framework's own, in bare writes of as many rows.

    `of_calls`: the same, in what a step and an effect take that no framework is around.
    """
    global connection, body
    set_tracing_disabled(True)
    connection, body = durable_rows(folder / "ref.db"), os.urandom(400)
    asyncio.run(turns.using(store=store_in(folder)).run("turns", TURNS))
    ms = {name: statistics.median(found[WARM_UP:]) * 1e3 for name, found in laps.items()}
    overhead = ms["durable"] - ms["bare"]
    return {
        "ratio": overhead / ms["writes"],
        "of_calls": overhead / ms["calls"],
        "ms": overhead,
        "bare_ms": ms["bare"],
        "calls_ms": ms["calls"],
        "writes_ms": ms["writes"],
    }


connection: apsw.Connection
body: bytes

if __name__ == "__main__":
    print(json.dumps({"agent_turn": agent_turn}[sys.argv[1]](Path(sys.argv[2]))))
