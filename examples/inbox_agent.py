"""An agent of the OpenAI Agents SDK that works through a long inbox, and outlives its process and its context window.

    python examples/inbox_agent.py                  24 complaints
    python examples/inbox_agent.py --slow 0.5       the same, slowly: press Ctrl-C, or kill -9 it anywhere
    python examples/inbox_agent.py --slow 0.5       run it again: it goes on where it was

All complaints are one conversation, because the next one may be about the one before. When it fills the window, another
agent writes a summary, and the run continues as new: it keeps its id, and the journal starts a new segment with the summary
as its only past. So neither the context nor the replay grows without end. What was paid stays paid: a refund is an effect.
The models are scripted, so that no network and no keys are needed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from agents import Agent, Model, ModelResponse, Runner, Usage, function_tool, set_tracing_disabled
from agents.testing import assistant_message, function_call

import surefoot.aio as sf
from surefoot.openai_agents import durable

MOST_ITEMS = 30
SLOW_SECONDS = 0.02
BANK = Path("inbox-bank.json")


def slowly(what: str) -> None:
    print(what, flush=True)
    time.sleep(SLOW_SECONDS)


@function_tool
@sf.step
def look_up(order: str) -> str:
    """What the customer paid."""
    slowly(f"look up {order}")
    return "40 EUR, card c-7"


@function_tool
@sf.effect(on_crash="retry")
def refund(order: str, euros: int) -> str:
    """Give money back. The bank knows the key: asked twice with the same one, it pays once."""
    slowly(f"refund {order}")
    paid = json.loads(BANK.read_text()) if BANK.exists() else {}
    paid[sf.key()] = [order, euros]
    BANK.write_text(json.dumps(paid))
    return f"{euros} EUR refunded for {order}"


class Scripted(Model):
    """Stands in for a model: it answers by what the conversation has."""

    def __init__(self, answer: Callable[[list[Any]], Any]) -> None:
        self._answer = answer

    async def get_response(self, system_instructions: str | None, input: Any, *_: Any, **__: Any) -> ModelResponse:  # noqa: A002 - the SDK's own name
        return ModelResponse(output=[self._answer(input)], usage=Usage(requests=1), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


def clerk_says(conversation: list[Any]) -> Any:
    """Looks up what was paid, gives it back, and says so."""
    complaints = [place for place, item in enumerate(conversation) if item.get("role") == "user"]
    (order,) = re.findall(r"order (\d+)", conversation[complaints[-1]]["content"])
    given = [item["output"] for item in conversation[complaints[-1] :] if item.get("type") == "function_call_output"]
    if not given:
        return function_call("look_up", {"order": order}, call_id=f"look_{order}")
    if len(given) == 1:
        return function_call("refund", {"order": order, "euros": 40}, call_id=f"refund_{order}")
    return assistant_message(f"Done: {given[-1]}.")


def scribe_says(conversation: list[Any]) -> Any:
    slowly(f"summarise {len(conversation)} items")
    told = " ".join(str(item) for item in conversation)
    known = re.findall(r"(\d+) complaints settled", told)
    return assistant_message(f"{int(known[-1] if known else 0) + told.count('Done: ')} complaints settled.")


clerk = Agent(
    name="clerk",
    instructions="Settle each complaint: look up what was paid, and give it back.",
    model=Scripted(clerk_says),
    tools=[look_up, refund],
)
scribe = Agent(
    name="scribe",
    instructions="Summarise what was settled, so that a colleague can go on.",
    model=Scripted(scribe_says),
)


@sf.workflow
async def inbox(complaints: int, first: int = 1, summary: str = "") -> str:
    """One complaint after the other, in one conversation. When it fills the window, a summary takes its place."""
    conversation: list[Any] = [{"role": "developer", "content": summary}] if summary else []
    for number in range(first, complaints + 1):
        message: Any = {"role": "user", "content": f"I want my money back, order {1000 + number}."}
        conversation = (await Runner.run(durable(clerk), [*conversation, message])).to_input_list()
        if len(conversation) > MOST_ITEMS and number < complaints:
            result = await Runner.run(durable(scribe), conversation)
            sf.continue_as_new(complaints, number + 1, str(result.final_output))
    result = await Runner.run(durable(scribe), conversation)
    return str(result.final_output)


def main() -> None:
    global SLOW_SECONDS  # noqa: PLW0603 - how slow the stand-ins are, is no argument of the workflow
    parser = argparse.ArgumentParser(description="An agent with a long inbox; kill it and run it again.")
    parser.add_argument("--id", default="inbox-1", help="the run's id: the same id is the same run")
    parser.add_argument("--complaints", type=int, default=24)
    parser.add_argument("--slow", type=float, default=SLOW_SECONDS, help="seconds per call")
    options = parser.parse_args()
    SLOW_SECONDS = options.slow

    set_tracing_disabled(True)
    print(asyncio.run(inbox.run(options.id, options.complaints)))


if __name__ == "__main__":
    main()
