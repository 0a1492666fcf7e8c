"""A pipeline with payments, for tests and for child processes: the world is a ledger file in the working folder."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import surefoot as sf

PAYMENTS = 8
LEDGER = Path("ledger")
before: dict[int, object] = {}
"""Called before the payment of that number."""


def paid() -> list[int]:
    return [int(line) for line in LEDGER.read_text().split()] if LEDGER.exists() else []


@sf.effect
def pay(n: int) -> str:
    with LEDGER.open("a") as file:
        file.write(f"{n}\n")
    return f"paid {n}"


@sf.step
def price(n: int) -> int:
    strike = before.pop(n, None)
    if callable(strike):
        strike()
    if os.environ.get("DIES_BEFORE") == str(n):
        os.kill(os.getpid(), signal.SIGKILL)
    return 100 + n


@sf.workflow
def pipeline(count: int = PAYMENTS) -> list[str]:
    found = []
    for n in range(count):
        price(n)
        found.append(pay(n))
    return found


if __name__ == "__main__":
    pipeline.run(*sys.argv[1:])
