"""The run that damage is done to: steps, effects, an event, recorded values, and a state that grows by parts.

The world is a ledger: one line for each execution, written by whatever really ran. Messages of even numbers are the
same in every run, so runs share parts; results depend on the arguments alone, so every run has one right result.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from pathlib import Path
from typing import Any

import surefoot as sf

ROUNDS = 4
RUNS = ("first", "second", "third")
_WORDS = [
    "refund",
    "invoice",
    "ledger",
    "parcel",
    "customer",
    "draft",
    "reply",
    "reason",
    "policy",
    "branch",
    "merge",
    "review",
    "deploy",
    "rollback",
]
_dying = ""


def note(line: str) -> None:
    fd = os.open(os.environ["LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, (line + "\n").encode())
    os.close(fd)
    if line.startswith(_dying or "never"):
        os.kill(os.getpid(), signal.SIGKILL)


def message(run: str, number: int) -> dict[str, Any]:
    chance = random.Random(f"{run if number % 2 else ''}{number}")
    return {"role": "agent", "number": number, "text": " ".join(chance.choices(_WORDS, k=200))}


@sf.step
def think(run: str, history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    number = len(history)
    note(f"step {run} {number}")
    return [*history, message(run, number)]


@sf.effect
def pay(run: str, number: int, why: list[dict[str, Any]]) -> str:
    note(f"pay {run} {number} {sf.key()}")
    return f"receipt {run} {number}"


@sf.effect(on_crash="retry")
def put(run: str, number: int) -> tuple[str, int]:
    note(f"put {run} {number} {sf.key()}")
    return run, number


@sf.workflow(name="agent")
def agent(run: str) -> dict[str, Any]:
    sf.now(), sf.random(), sf.uuid4()
    history: list[dict[str, Any]] = []
    done: list[Any] = [sf.wait_event("go")]
    for number in range(ROUNDS):
        history = think(run, history)
        done.append(pay(run, number, history))
        done.append(put(run, number))
        sf.progress(number, ROUNDS)
        sf.publish("draft", history)
    return {"done": done, "history": history}


def value(line: str) -> Any:
    """What the effect that wrote a line of the ledger returned."""
    name, run, number, _ = line.split()
    return f"receipt {run} {number}" if name == "pay" else (run, int(number))


def result(run: str) -> dict[str, Any]:
    """The right result."""
    done = [pair for number in range(ROUNDS) for pair in (f"receipt {run} {number}", (run, number))]
    return {
        "done": [{"go": [run] * 300}, *done],
        "history": [message(run, number) for number in range(ROUNDS)],
    }


def tell(run: str) -> None:
    sf.send_event(run, "go", {"go": [run] * 300})


def drive(run: str) -> None:
    agent.start(run, run)
    tell(run)
    agent.run(run, run)


def save(generations: int) -> None:
    """A journal that is no run: an explicit checkpoint beside the runs."""
    checkpoint: Any = getattr(sf, "Checkpoint", None)
    if checkpoint is not None:
        saved = checkpoint("nightly", schema=1)
        for number in range(generations):
            saved.load()
            saved.save({"history": [message("nightly", n) for n in range(number + 2)]})


if __name__ == "__main__":
    folder, how, *names = sys.argv[1:]
    os.environ["LEDGER"] = str(Path(folder) / "ledger")
    sf.configure(store=f"sqlite:///{folder}/runs.db")
    if how.startswith(("pay", "put", "step")):
        _dying = how
    for name in names:
        drive(name)
    save(2)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
