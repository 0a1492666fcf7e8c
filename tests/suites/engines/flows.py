"""The workflows of the suite: every verb, blocking and async. What they execute is written down in the ledger."""

from __future__ import annotations

import os
import threading
import time
from functools import cache
from typing import Any

import surefoot as sf
from surefoot import aio
from tests.ledger import Line

sf.configure(in_flight="0s")
if "LEASE" in os.environ:  # Of worker processes: a lease that fits into a test.
    from surefoot.store.channel import Waits
    from surefoot.store.postgres.store import PostgresStore

    PostgresStore.open.__func__.__kwdefaults__["waits"] = Waits(lease=float(os.environ["LEASE"]))
if "CACHED" in os.environ:  # A control: the workflows of this worker stay with it.
    from temporalio import worker

    from surefoot.temporal import polls

    def caching(*given: Any, **options: Any) -> Any:
        return worker.Worker(
            *given, **{**options, "max_cached_workflows": 100, "max_concurrent_workflow_task_polls": 5}
        )

    polls.Worker = caching


@cache
def _line(pid: int, port: str) -> Line:
    return Line(int(port))


_lock = threading.Lock()


def note(what: str, value: Any, **more: Any) -> Any:
    with _lock:
        return _line(os.getpid(), os.environ["LEDGER"]).ask(
            do="note", room=sf.run_id(), what=what, value=value, pid=os.getpid(), **more
        )


def noted(what: str) -> Any:
    with _lock:
        return _line(os.getpid(), os.environ["LEDGER"]).ask(do="look", room=sf.run_id(), what=what)


def gate(name: str) -> None:
    """Stands still until the gate is open."""
    while True:
        with _lock:
            if _line(os.getpid(), os.environ["LEDGER"]).ask(do="look", room="gates", what=name):
                return
        time.sleep(0.02)


@sf.step
def look(value: int) -> int:
    note("look", value)
    return value


@sf.step
async def look_async(value: int) -> int:
    note("look", value)
    return value


@sf.effect(timeout="30s")
def charge(value: int) -> str:
    note("charge", value, key=sf.key())
    return f"ch_{value}"


@sf.effect
async def charge_async(value: int) -> str:
    note("charge", value, key=sf.key())
    return f"ch_{value}"


@charge.undo
def _(value: int, result: str) -> None:
    note("undo", value)


@sf.workflow
def plain(value: int) -> str:
    sf.progress(1, 2, "looked")
    sf.publish("amount", look(value))
    return charge(value)


@sf.workflow
async def plain_async(value: int) -> str:
    found = await look_async(value)
    return await charge_async(found)


@sf.workflow
def side_by_side(value: int) -> list[int]:
    first = sf.gather(lambda: look(value), lambda: look(value + 1))
    second = sf.map(look, [value, value * 2], key=str)
    with sf.scope("more"):
        return [*first, *second, look(9)]


@sf.workflow
async def side_by_side_async(value: int) -> list[int]:
    first = await aio.gather(look_async(value), look_async(value + 1))
    second = await aio.map(look_async, [value, value * 2], key=str)
    return [*first, *second]


@sf.workflow
def approved(value: int) -> str:
    said = sf.approve("charge it?")
    return charge(value) if said else "left alone"


@sf.workflow
async def approved_async(value: int) -> str:
    said = await aio.approve("charge it?")
    return await charge_async(value) if said else "left alone"


@sf.workflow
def asked(value: int) -> int:
    return look(value + sf.ask("how many more?", type=int))


@sf.workflow
def hears(value: int) -> int:
    return look(value + sf.wait_event("more"))


@sf.workflow
def naps(value: int, seconds: float) -> int:
    look(value)
    sf.sleep(seconds)
    return look(value + 1)


@sf.workflow
def parent(value: int) -> list[str]:
    one = sf.child(plain, f"{sf.run_id()}/one", value)
    two = sf.child(plain_async, f"{sf.run_id()}/two", value + 1)
    return [one, two]


class OutOfStock(ValueError):
    pass


@sf.workflow
def taken_back(value: int) -> str:
    with sf.saga():
        charge(value)
        raise OutOfStock(f"no {value} left")


@sf.workflow
def segments(value: int) -> int:
    look(value)
    if value < 3:
        sf.continue_as_new(value + 1)
    return value


@sf.workflow
def watched(path: str) -> str:
    from surefoot.witness import file

    sf.watch(file(path))
    said = sf.approve("go on?")
    sf.verify()
    return "same" if said else "no"


@sf.workflow
def recorded(value: int) -> int:
    assert sf.now() is not None
    assert 0 <= sf.random() < 1
    assert sf.uuid4() is not None
    return look(value) if sf.patched("looks") else value


attempts: list[int] = []


@sf.step(retries=2, backoff=sf.Backoff(first="10ms", jitter=False))
def unsteady(value: int) -> int:
    if note("try", value) < 2:
        raise ConnectionError("not yet")
    return value


@sf.workflow
def again(value: int) -> int:
    return unsteady(value)


# -- effects that are cut off -----------------------------------------------------------------------------


def cut_off(value: int) -> str:
    """The first attempt is done, and stands still before its outcome is on record."""
    note("charge", value, key=sf.key())
    if len(noted("charge")) == 1:
        gate("never")
    return f"ch_{value}"


@sf.effect(name="asks")
def asks(value: int) -> str:
    return cut_off(value)


@sf.effect(name="retries", on_crash="retry")
def retries(value: int) -> str:
    return cut_off(value)


@sf.effect(name="fails", on_crash="fail")
def fails(value: int) -> str:
    return cut_off(value)


@sf.effect(name="checks", in_flight="0s")
def checks(value: int) -> str:
    return cut_off(value)


@checks.check
def _(value: int) -> Any:
    return sf.happened(f"ch_{value}") if noted("charge") else sf.not_happened()


POLICIES = {"asks": asks, "retries": retries, "fails": fails, "checks": checks}


@sf.workflow
def cut(policy: str, value: int) -> str:
    look(value)
    return f"{POLICIES[policy](value)} {look(value + 1)}"


@sf.step
def slowly(value: int) -> int:
    note("look", value)
    gate(f"step {value}")
    return value


@sf.workflow
def gated(count: int) -> int:
    """One gate for each step."""
    return sum(slowly(n) for n in range(count))


@sf.step
def stand(value: int) -> int:
    note("stand", value)
    gate(sf.run_id())
    return value


@sf.workflow
def held(value: int) -> int:
    """A gate for each run."""
    return stand(value)


@sf.workflow
def gated_saga(value: int) -> int:
    with sf.saga():
        charge(value)
        slowly(value)
        return look(value)


@sf.workflow
def secretive(value: str) -> str:
    """Nothing that it is given or gives is to be in Temporal."""
    said = sf.approve(f"publish {value}?", details={"text": value})
    return f"{value} {tell(value)}" if said else "no"


@sf.effect
def tell(value: str) -> str:
    note("tell", value)
    return value.upper()


@sf.workflow
def breaks(value: str) -> str:
    raise RuntimeError(f"{value} went wrong")


@sf.workflow
def counts(steps: int) -> int:
    return sum(counted(n) for n in range(steps))


@sf.step
def counted(value: int) -> int:
    return value


@sf.effect
def effected(value: int) -> int:
    return value


@sf.workflow
def chatty(questions: int) -> int:
    """One question after the other."""
    return sum(bool(sf.approve(f"number {n}?")) for n in range(questions))


@sf.step
def one_of_many(value: int) -> int:
    note("look", value)
    time.sleep(0.25)
    return value


@sf.workflow
def paced(steps: int) -> int:
    return sum(one_of_many(n) for n in range(steps))


@sf.workflow
def effects_only(count: int) -> int:
    return sum(effected(n) for n in range(count))


limited = sf.Queue("limited", concurrency=1)


@sf.workflow
def approving_parent(value: int) -> str:
    """A person is asked here, and the work is done in a child run."""
    return sf.child(plain, f"{sf.run_id()}/child", value) if sf.approve("go on?") else "no"
