"""A support agent of the OpenAI Agents SDK that refunds, mails and files, and outlives its process.

    python examples/support_agent.py                one ticket
    python examples/support_agent.py --slow 2       the same, slowly: press Ctrl-C, or kill -9 it anywhere
    python examples/support_agent.py --slow 2       run it again: it goes on where it was

The agent is as the SDK's own documents have it. What makes it durable are two lines, `durable(agent)` and the workflow, and
a word per tool: `@sf.step` for one that reads, `@sf.effect` for those that act. Three tools run side by side. The model is
scripted, so that no network and no keys are needed; give the agent a model's name instead, and it is a real one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from agents import Agent, Model, ModelResponse, Runner, Usage, function_tool, set_tracing_disabled
from agents.testing import assistant_message, function_call

import surefoot.aio as sf
from surefoot.openai_agents import durable

SLOW_SECONDS = 0.05
BANK, OUTBOX, FILES = Path("bank.json"), Path("outbox.txt"), Path("tickets")


def slowly(what: str) -> None:
    print(what, flush=True)
    time.sleep(SLOW_SECONDS)


@function_tool
@sf.step
def look_up(order: str) -> str:
    """What the customer paid."""
    slowly(f"look up {order}")
    return "48 EUR, card c-7"


@function_tool
@sf.effect(on_crash="retry")
def refund(card: str, euros: int) -> str:
    """Give money back. The bank knows the key: asked twice with the same one, it pays once."""
    slowly(f"refund {euros} EUR to {card}")
    paid = json.loads(BANK.read_text()) if BANK.exists() else {}
    paid[sf.key()] = [card, euros]
    BANK.write_text(json.dumps(paid))
    return f"refunded {euros} EUR"


@sf.effect
def mail(to: str, text: str) -> str:
    """Write to the customer."""
    slowly(f"mail {to}")
    with OUTBOX.open("a") as box:
        box.write(f"{to}: {text}\n")
    return "mailed"


@mail.check
def _(to: str, text: str) -> Any:
    """A mail server has no keys, so we look into the outbox whether it was sent."""
    is_there = OUTBOX.exists() and f"{to}: {text}\n" in OUTBOX.read_text()
    return sf.happened("mailed") if is_there else sf.not_happened()


@function_tool
def close(ticket: str, note: str) -> str:
    """File the ticket. Nobody has said what this is: cut off inside of it, a person is asked."""
    slowly(f"close {ticket}")
    FILES.mkdir(exist_ok=True)
    (FILES / f"{ticket}.txt").write_text(note)
    return "closed"


class Scripted(Model):
    """Stands in for a model: it answers by what the tools have given so far."""

    async def get_response(self, system_instructions: str | None, input: Any, *_: Any, **__: Any) -> ModelResponse:  # noqa: A002 - the SDK's own name
        given = [item for item in input if item.get("type") == "function_call_output"]
        slowly(f"think, with {len(given)} results")
        return ModelResponse(output=answer(len(given)), usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


def answer(results: int) -> list[Any]:
    if results == 0:
        return [function_call("look_up", {"order": "1001"}, call_id="call_a")]
    if results == 1:
        return [
            function_call("refund", {"card": "c-7", "euros": 48}, call_id="call_b"),
            function_call("mail", {"to": "ada@example.org", "text": "48 EUR are on their way"}, call_id="call_c"),
            function_call("close", {"ticket": "81", "note": "refunded"}, call_id="call_d"),
        ]
    return [assistant_message("Ticket 81: 48 EUR refunded, the customer has mail.")]


agent = Agent(
    name="support",
    instructions="Refund what was paid, write to the customer, close the ticket.",
    model=Scripted(),
    tools=[look_up, refund, function_tool(mail), close],
)


@sf.workflow
async def ticket(text: str) -> str:
    result = await Runner.run(durable(agent), text)
    return str(result.final_output)


def main() -> None:
    global SLOW_SECONDS  # noqa: PLW0603 - how slow the stand-ins are, is no argument of the workflow
    parser = argparse.ArgumentParser(description="A support agent; kill it and run it again.")
    parser.add_argument("--id", default="ticket-81", help="the run's id: the same id is the same run")
    parser.add_argument("--slow", type=float, default=SLOW_SECONDS, help="seconds per call")
    options = parser.parse_args()
    SLOW_SECONDS = options.slow

    set_tracing_disabled(True)
    print(asyncio.run(ticket.run(options.id, "I want my money back, order 1001")))


if __name__ == "__main__":
    main()
