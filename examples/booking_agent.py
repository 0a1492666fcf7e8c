"""A booking agent of Pydantic AI that reserves, pays and mails, and outlives its process.

    python examples/booking_agent.py                one trip
    python examples/booking_agent.py --slow 2       the same, slowly: press Ctrl-C, or kill -9 it anywhere
    python examples/booking_agent.py --slow 2       run it again: it goes on where it was

The agent is as the framework's own documents have it. What makes it durable are `capabilities=[Durable()]` and the
workflow, and a word per tool: `@sf.step` for one that reads, `@sf.effect` for those that act. A train may be full: then the
tool raises `ModelRetry`, and that is on record like any answer. What `reserve` writes into the deps is kept, too. The model
is scripted, so that no network and no keys are needed; give the agent a model's name instead, and it is a real one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic_ai import Agent, ModelRetry, RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import surefoot.aio as sf
from surefoot.pydantic_ai import Durable

SLOW_SECONDS = 0.05
BANK, OUTBOX, SEATS = Path("bank.json"), Path("outbox.txt"), Path("seats.txt")


@dataclass
class Trip:
    """The deps: what the tools share."""

    traveller: str
    cents: int = 0
    trains: list[str] = field(default_factory=list)


def slowly(what: str) -> None:
    print(what, flush=True)
    time.sleep(SLOW_SECONDS)


@sf.step
def find_trains(to: str) -> list[str]:
    """Trains that go there."""
    slowly(f"find trains to {to}")
    return ["ICE 5", "ICE 7"]


def reserve(ctx: RunContext[Trip], train: str) -> str:
    """Reserve a seat. Nobody has said what this is: cut off inside of it, a person is asked."""
    if train == "ICE 5":
        raise ModelRetry("ICE 5 is full, take another one")
    slowly(f"reserve {train}")
    with SEATS.open("a") as seats:
        seats.write(f"{train}: {ctx.deps.traveller}\n")
    ctx.deps.trains.append(train)
    ctx.deps.cents += 4800
    return "coach 4, seat 12"


@sf.effect(on_crash="retry")
def pay(card: str, cents: int) -> str:
    """Charge a card. The bank knows the key: asked twice with the same one, it is paid once."""
    slowly(f"pay {cents} cents with {card}")
    paid = json.loads(BANK.read_text()) if BANK.exists() else {}
    paid[sf.key()] = [card, cents]
    BANK.write_text(json.dumps(paid))
    return "paid"


@sf.effect
def mail(to: str, text: str) -> str:
    """Write to the traveller."""
    slowly(f"mail {to}")
    with OUTBOX.open("a") as box:
        box.write(f"{to}: {text}\n")
    return "mailed"


@mail.check
def _(to: str, text: str) -> Any:
    """A mail server has no keys, so we look into the outbox whether it was sent."""
    is_there = OUTBOX.exists() and f"{to}: {text}\n" in OUTBOX.read_text()
    return sf.happened("mailed") if is_there else sf.not_happened()


def scripted(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Stands in for a model: it answers by what the tools have given so far."""
    given = sum(part.part_kind == "tool-return" for message in messages for part in message.parts)
    slowly(f"think, with {given} results")
    return ModelResponse(list(answer(given)))


def answer(results: int) -> Iterable[ToolCallPart | TextPart]:
    if results == 0:
        yield ToolCallPart("find_trains", {"to": "Ulm"}, "call_a")
    elif results == 1:
        yield ToolCallPart("reserve", {"train": "ICE 5"}, "call_b")
    elif results == 2:
        yield ToolCallPart("reserve", {"train": "ICE 7"}, "call_c")
    elif results == 3:
        yield ToolCallPart("pay", {"card": "c-7", "cents": 4800}, "call_d")
        yield ToolCallPart("mail", {"to": "ada@example.org", "text": "ICE 7, coach 4, seat 12"}, "call_e")
    else:
        yield TextPart("Seat 12 in coach 4 of ICE 7 is paid, and you have mail.")


agent = Agent(
    FunctionModel(scripted),
    name="booking",
    instructions="Reserve a seat, pay for it, write to the traveller.",
    tools=[find_trains, reserve, pay, mail],
    deps_type=Trip,
    capabilities=[Durable()],
)


@sf.workflow
async def trip(text: str) -> str:
    deps = Trip("ada")
    result = await agent.run(text, deps=deps)
    return f"{result.output} {' '.join(deps.trains)} for {deps.cents / 100:.2f} EUR."


def main() -> None:
    global SLOW_SECONDS  # noqa: PLW0603 - how slow the stand-ins are, is no argument of the workflow
    parser = argparse.ArgumentParser(description="A booking agent; kill it and run it again.")
    parser.add_argument("--id", default="trip-12", help="the run's id: the same id is the same run")
    parser.add_argument("--slow", type=float, default=SLOW_SECONDS, help="seconds per call")
    options = parser.parse_args()
    SLOW_SECONDS = options.slow

    print(asyncio.run(trip.run(options.id, "To Ulm, please")))


if __name__ == "__main__":
    main()
