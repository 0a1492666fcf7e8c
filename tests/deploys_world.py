"""The outside world of the agent in `deploys_versions.py`: a ledger of what was really done, a model, and a hard fate.

The ledger is a file that outlives every process; each deed is one line with its key. A server that knows keys carries out
each of them once (`by_key`). `KILL` in the environment says at which point of this process the power goes out: at the
n-th call, before or after the deed.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
from pathlib import Path
from typing import Any

import surefoot as sf

LEDGER = Path("ledger.jsonl")
PLANS = (
    ("mail", "wait", "refund", "nap", "ticket", "mail", "wait"),
    ("ticket", "refund", "mail", "nap", "wait", "mail"),
    ("refund", "wait", "mail", "ticket", "nap", "refund", "wait"),
    ("mail", "mail", "nap", "refund", "wait", "ticket", "nap"),
)
_points = itertools.count(1)


def lines() -> list[dict[str, Any]]:
    return [json.loads(line) for line in LEDGER.read_text().splitlines()] if LEDGER.exists() else []


def done(key: str) -> str | None:
    """What came of the deed with this key; None: it was not done."""
    return next((line["result"] for line in lines() if line["key"] == key), None)


def act(deed: str, *about: object, by_key: bool = False) -> str:
    """Do it, once more each time that it is called; by key: once for each key."""
    number = next(_points)
    key = sf.key()
    _fate(number, "before")
    result = f"{deed} {key[:8]}"
    if not by_key or done(key) is None:
        line = {"run": sf.run_id(), "deed": deed, "about": list(about), "key": key, "result": result}
        with LEDGER.open("ab", buffering=0) as file:
            file.write(json.dumps(line).encode() + b"\n")
    _fate(number, "after")
    return result


def found(_deed: str) -> Any:
    """What a check sees."""
    result = done(sf.key())
    return sf.not_happened() if result is None else sf.happened(result)


def plan_of(order: str) -> tuple[str, ...]:
    return PLANS[int(order.rpartition("-")[2]) % len(PLANS)]


def answer(messages: list[dict[str, str]], model: str, tools: list[str]) -> tuple[str, str]:
    """What a model says at this point of the conversation: a tool, and a text that another prompt makes another one."""
    number = next(_points)
    _fate(number, "before")
    order = messages[1]["content"].split()[1]
    turn = sum(message["role"] == "tool" for message in messages)
    plan = (*plan_of(order), *(["chat"] if "chat" in tools else []), "done")
    text = f"{order}, turn {turn}: as {model} I was told {messages[0]['content']!r}"
    _fate(number, "after")
    return plan[turn] if turn < len(plan) else "done", text


def _fate(number: int, side: str) -> None:
    if os.environ.get("KILL") == f"{number}:{side}":
        os.kill(os.getpid(), signal.SIGKILL)
