"""What the workers of `zombies.py` run: a payment that takes a while to land, with a check that looks for it."""

from __future__ import annotations

import os
import time
from typing import Any

import surefoot as sf
from surefoot.store.channel import Waits
from surefoot.store.postgres.store import PostgresStore
from tests.ledger import ask

LEASE_SECONDS = 3.0
SLOW_SECONDS = 1.0
"""From the moment it begins until the money moves."""
BOUND_SECONDS = 20.0

sf.configure(in_flight="0s")  # What is shown here must not rest on a wait that would be long enough by chance.
PostgresStore.open.__func__.__kwdefaults__["waits"] = Waits(lease=LEASE_SECONDS)


def charged(value: int) -> int:
    say("begun", value)
    time.sleep(SLOW_SECONDS)  # a slow gateway: the request is out, the money has not moved yet
    say("charge", value)
    return value


def say(do: str, value: int) -> None:
    ask(int(os.environ["LEDGER"]), do=do, room=sf.run_id(), what=do, value=value, key=sf.key(), pid=os.getpid())


def found(value: int) -> Any:
    lines = ask(int(os.environ["LEDGER"]), do="look", room=sf.run_id(), what="charge")
    return sf.happened(value) if any(line["key"] == sf.key() for line in lines) else sf.not_happened()


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
