"""What the workers of `zombies.py` run: a payment that lands when the test lets it, with a check that looks for it."""

from __future__ import annotations

import os
import threading
from typing import Any

import surefoot as sf
from surefoot.store.channel import Waits
from surefoot.store.postgres.store import PostgresStore
from tests.ledger import ask

LEASE_SECONDS = 3.0
BOUND_SECONDS = 12.0
LOOK_AGAIN_SECONDS = 0.05

sf.configure(in_flight="0s")  # What is shown here must not rest on a wait that would be long enough by chance.
PostgresStore.open.__func__.__kwdefaults__["waits"] = Waits(lease=LEASE_SECONDS)


def charged(value: int) -> int:
    """A slow gateway: the request is out, and the money moves once the test says so, however long that takes."""
    say("begun", value)
    gate = threading.Event()
    while not seen("land"):
        gate.wait(LOOK_AGAIN_SECONDS)
    say("charge", value)
    return value


def seen(what: str) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = ask(int(os.environ["LEDGER"]), do="look", room=sf.run_id(), what=what)
    return lines


def say(do: str, value: int) -> None:
    ask(int(os.environ["LEDGER"]), do=do, room=sf.run_id(), what=do, value=value, key=sf.key(), pid=os.getpid())


def found(value: int) -> Any:
    if any(line["key"] == sf.key() for line in seen("charge")):
        return sf.happened(value)
    say("looked in vain", value)
    return sf.not_happened()


@sf.effect
def unbounded(value: int) -> int:
    return charged(value)


@sf.effect(timeout=BOUND_SECONDS)
def bounded(value: int) -> int:
    return charged(value)


@sf.effect(timeout=LEASE_SECONDS + 1)
def outlasted(value: int) -> int:
    """Paused for longer than its time: what it does then is too late."""
    return charged(value)


for _effect in (unbounded, bounded, outlasted):
    _effect.check(found)

EFFECTS = {"unbounded": unbounded, "bounded": bounded, "outlasted": outlasted}


@sf.workflow
def payment(how: str, value: int) -> int:
    return EFFECTS[how](value)
