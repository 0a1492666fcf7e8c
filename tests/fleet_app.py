"""What the workers of `tests/fleet.py` serve: orders of many effects, each of which is written down by the ledger.

A line of the ledger says who did it: run, address, key, attempt, and the claim (epoch, process) it was done under. So
every execution can be held against the journal. `FLEET` in the environment says how slow effects are, and makes leases
and waits short; the ledger's port is `LEDGER`.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from typing import Any

import surefoot as sf
from surefoot import aio
from surefoot.core import readiness
from surefoot.engine.declare import current
from surefoot.engine.drive import takeover
from tests.ledger import ask

EFFECTS = 10
GATE = "gate"
TOLD: dict[str, Any] = json.loads(os.environ.get("FLEET", "{}"))


ON_ITS_WAY_SECONDS = 1.0
"""So long after its death a process's last word may still reach the ledger. People take longer than that."""


def hurry() -> None:
    """For workers only: a lease and an unwinding that fit into a short test."""
    from surefoot.store.channel import Waits
    from surefoot.store.postgres.store import PostgresStore

    sf.configure(in_flight=ON_ITS_WAY_SECONDS)

    if "unwind" in TOLD:
        takeover.UNWIND_SECONDS = TOLD["unwind"]
    if "lease" in TOLD:
        # A child that is killed right behind its end has not told its parent, who then looks by itself.
        readiness.LOOK_AGAIN_SECONDS = TOLD["lease"] * 3  # type: ignore[misc]
        PostgresStore.open.__func__.__kwdefaults__["waits"] = Waits(lease=TOLD["lease"])


def ledger(**request: Any) -> Any:
    return ask(int(os.environ["LEDGER"]), **request)


def note(do: str, value: int) -> None:
    """One line in the room of the run, saying everything about the call that is being executed."""
    place = current.get()
    ledger(
        do=do, room=sf.run_id(), what=place.inside.address, value=value, attempt=sf.attempt(), key=place.inside.key,
        epoch=place.session.journal.epoch, pid=os.getpid(),
    )  # fmt: skip


def a_while() -> float:
    """Most of a run's time is spent in effects: that is where a kill should find it."""
    return random.uniform(0.0, TOLD.get("pace", 0.0))


def charged(value: int) -> int:
    """The body of every effect: something before, the deed, something after, so that a kill may strike anywhere."""
    time.sleep(a_while())
    note("charge", value)
    time.sleep(a_while())
    return value


async def charged_async(value: int) -> int:
    await asyncio.sleep(a_while())
    note("charge", value)
    await asyncio.sleep(a_while())
    return value


def found(value: int) -> Any:
    """What a check sees: whether the ledger has a line under this key."""
    lines = ledger(do="look", room=sf.run_id(), what=current.get().inside.address)
    return sf.happened(value) if any(line["key"] == sf.key() for line in lines) else sf.not_happened()


@sf.step
def look(value: int) -> int:
    note("step", value)
    time.sleep(a_while() / 4)
    return value


@sf.effect
def asking(value: int) -> int:
    return charged(value)


@sf.effect(on_crash="retry")
def retried(value: int) -> int:
    return charged(value)


@sf.effect(on_crash="check")
def checked(value: int) -> int:
    return charged(value)


@checked.check
def _(value: int) -> Any:
    return found(value)


@sf.step
async def look_async(value: int) -> int:
    note("step", value)
    await asyncio.sleep(a_while() / 4)
    return value


@sf.effect
async def asking_async(value: int) -> int:
    return await charged_async(value)


@sf.effect(on_crash="retry")
async def retried_async(value: int) -> int:
    return await charged_async(value)


@sf.effect(on_crash="check")
async def checked_async(value: int) -> int:
    return await charged_async(value)


@checked_async.check
async def _(value: int) -> Any:
    return found(value)


BLOCKING = (asking, retried, checked)
ASYNC = (asking_async, retried_async, checked_async)


@sf.workflow
def order(effects: int, nap: float) -> int:
    total = 0
    for n in range(effects):
        total += BLOCKING[n % 3](look(n))
        if nap and n == effects // 2:
            sf.sleep(nap)
    return total


@sf.workflow
async def order_async(effects: int, nap: float) -> int:
    """Half of them one after the other, half of them side by side."""
    total = 0
    for n in range(effects // 2):
        total += await ASYNC[n % 3](await look_async(n))
    if nap:
        await aio.sleep(nap)
    rest = range(effects // 2, effects)
    return total + sum(await aio.map(lambda n: ASYNC[n % 3](n), rest, key=str))


@sf.workflow
def family(effects: int, nap: float) -> int:
    """Some of them in two child runs, which other workers may drive."""
    each = effects // 3
    total = sum(asking(look(n)) for n in range(each))
    total += sum(
        sf.gather(
            lambda: sf.child(order, f"{sf.run_id()}/b", each, nap),
            lambda: sf.child(order_async, f"{sf.run_id()}/a", each, 0.0),
        )
    )
    return total + sum(retried(n) for n in range(effects - 3 * each))


@sf.effect
def held(value: int) -> int:
    """Stands still while the gate is shut."""
    note("charge", value)
    while not ledger(do="look", room=GATE, what="open"):
        time.sleep(0.02)
    return value


@sf.workflow
def holding(value: int) -> int:
    return held(value)


@sf.workflow
def short(value: int) -> int:
    return retried(value)


def expected(workflow: str, effects: int) -> int:
    """What such a run gives, whatever happened on the way."""
    if workflow != "family":
        return sum(range(effects))
    each = effects // 3
    return 3 * sum(range(each)) + sum(range(effects - 3 * each))


hurry()
