"""A graph of LangGraph that refunds, mails and asks a person, and repeats none of it.

    python examples/refund_graph.py                 one ticket: it stops at a question
    python examples/refund_graph.py yes             the answer
    python examples/refund_graph.py --slow 2        slowly: press Ctrl-C, or kill -9 it anywhere, and start it again

The graph is as LangGraph's own documents have it. Two lines make it durable: the checkpointer, and `guard` around the compiled
graph; and a word per function that acts: `@sf.effect`. A node that is executed again finds what it has done.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command

import surefoot as sf
from surefoot.langgraph import Saver, guard

SLOW_SECONDS = 0.05
BANK, OUTBOX = Path("bank.json"), Path("outbox.txt")


class Ticket(TypedDict, total=False):
    order: str
    charge: str
    refund: str
    mailed: str


def slowly(what: str) -> None:
    print(what, flush=True)
    time.sleep(SLOW_SECONDS)


@sf.step
def look_up(order: str) -> str:
    slowly(f"look up {order}")
    return "ch_7"


@sf.effect(on_crash="retry", approve=True)
def refund(charge: str, euros: int) -> str:
    """Give money back. The bank knows the key: asked twice with the same one, it pays once."""
    slowly(f"refund {euros} EUR of {charge}")
    paid = json.loads(BANK.read_text()) if BANK.exists() else {}
    paid[sf.key()] = [charge, euros]
    BANK.write_text(json.dumps(paid))
    return f"re_{len(paid)}"


@sf.effect
def mail(to: str, text: str) -> str:
    slowly(f"mail {to}")
    with OUTBOX.open("a") as box:
        box.write(f"{to}: {text}\n")
    return to


@mail.check
def mailed(to: str, text: str) -> Any:
    there = OUTBOX.exists() and f"{to}: {text}\n" in OUTBOX.read_text()
    return sf.happened(to) if there else sf.not_happened()


def find(state: Ticket) -> Ticket:
    return {"charge": look_up(state["order"])}


def pay(state: Ticket) -> Ticket:
    return {"refund": refund(state["charge"], 48)}


def tell(state: Ticket) -> Ticket:
    return {"mailed": mail("ada@example.org", f"You have your money back: {state['refund']}")}


builder = StateGraph(Ticket)
for node in (find, pay, tell):
    builder.add_node(node.__name__, node)
builder.add_edge(START, "find")
builder.add_edge("find", "pay")
builder.add_edge("pay", "tell")
builder.add_edge("tell", END)
app = guard(builder.compile(checkpointer=Saver()))

THREAD: Any = {"configurable": {"thread_id": "ticket-81"}}


def main() -> None:
    global SLOW_SECONDS  # noqa: PLW0603 - the example is read, and slowed down, by people
    parser = argparse.ArgumentParser()
    parser.add_argument("answer", nargs="?", choices=["yes", "no"])
    parser.add_argument("--slow", type=float, default=SLOW_SECONDS)
    given = parser.parse_args()
    SLOW_SECONDS = given.slow

    has_begun = app.get_state(THREAD).created_at is not None
    if given.answer:
        found = app.invoke(Command(resume=given.answer == "yes"), THREAD)
    else:
        found = app.invoke(None if has_begun else {"order": "1001"}, THREAD)
    for asked in found.get("__interrupt__", []):
        print(asked.value["message"])
    if "mailed" in found:
        print(f"ticket 81: {found['refund']}, {found['mailed']} has mail")


if __name__ == "__main__":
    main()
