"""Units that a framework hosts: runs that are created at their first call, and that only their host takes up."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import surefoot as sf
from surefoot.engine.hosted import Unit
from surefoot.engine.process.config import settings
from surefoot.errors import Cancelled, InDoubt, StoreUnavailable, UsageError, WaitingForAnswer
from surefoot.store.open import close_all

LABELS = {"thread": "chat-1"}


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch):
    url = f"sqlite:///{tmp_path}/runs.db"
    monkeypatch.setattr(settings, "store", url)  # Other tests of this process have stores of their own.
    yield url
    close_all()


@pytest.fixture(params=[False, True], ids=["looked for", "taken for new"])
def unit(request):
    """Each story, also where the host takes the unit for new, as it does at first: nothing is read before its first call."""
    found = Unit("testgraph", "agent.node")
    found.new = request.param
    found.begun = set()
    return found


def is_new(unit, name):
    """A host knows what it has begun itself."""
    known = name in unit.begun
    unit.begun.add(name)
    return unit.new and not known


def runs():
    """A unit without calls does not even make a store."""
    try:
        return sf.runs()
    except sf.NotFound:
        return []


def run(unit, body, name="chat-1:node:1", ready=lambda: None, *, new=None):
    new = is_new(unit, name) if new is None else new
    return unit.run(name, body, store=None, labels=LABELS, ready=ready, is_new=new)


did: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_done():
    did.clear()


@sf.effect
def charge(what: str) -> str:
    did.append(what)
    return f"charged {what}"


@sf.effect
async def acharge(what: str) -> str:
    did.append(what)
    return f"charged {what}"


def test_a_unit_without_calls_leaves_nothing_and_waits_for_nothing(unit):
    """Most nodes of a graph only compute."""
    value = object()

    assert run(unit, lambda: value, ready=pytest.fail) is value
    assert runs() == []


def test_a_unit_with_calls_is_answered_and_not_executed_again(unit):
    """It had ended, and its framework died before it had written down what came of it."""
    assert run(unit, lambda: [charge("card")]) == ["charged card"]

    assert run(unit, pytest.fail) == ["charged card"]
    assert did == ["card"]
    (found,) = sf.runs()
    assert (found.id, found.status, found.labels) == ("chat-1:node:1", "done", LABELS)
    assert found.state().created.hosted == "testgraph"


def test_tasks_are_hosted_as_blocking_code_is(unit):
    async def body():
        return await acharge("card")

    async def twice():
        first = await unit.run_async("r", body, store=None, labels=LABELS, ready=lambda: None, is_new=is_new(unit, "r"))
        return first, await unit.run_async(
            "r", pytest.fail, store=None, labels=LABELS, ready=lambda: None, is_new=is_new(unit, "r")
        )

    assert asyncio.run(twice()) == ("charged card", "charged card")
    assert did == ["card"]


def test_an_exception_leaves_the_run_open_for_another_attempt(unit):
    """The framework decides whether it is executed again: it has not failed."""

    def breaks():
        charge("card")
        raise ValueError("boom")

    with pytest.raises(ValueError, match="boom"):
        run(unit, breaks)

    (open_,) = sf.runs()
    assert (open_.status, open_.is_driven()) == ("queued", False)
    assert run(unit, lambda: charge("card")) == "charged card"
    assert did == ["card"]


def test_an_exception_before_the_first_call_leaves_nothing(unit):
    with pytest.raises(ZeroDivisionError):
        run(unit, lambda: 1 / 0)

    assert runs() == []


@pytest.mark.parametrize("is_async", [False, True])
def test_a_step_whose_failure_ended_the_unit_is_made_again_with_it(unit, is_async):
    """A model that was away: the framework tries the node again, and what failed must not be the answer for ever."""
    answers = [ConnectionError("away"), ConnectionError("away"), "hello"]

    def answer() -> str:
        found = answers.pop(0)
        did.append("asked")
        if isinstance(found, Exception):
            raise found
        return found

    @sf.step
    def ask() -> str:
        return answer()

    @sf.step
    async def aask() -> str:
        return answer()

    def body():
        return charge("card"), ask()

    async def tasks():
        return await acharge("card"), await aask()

    def attempt():
        if is_async:
            return asyncio.run(
                unit.run_async("r", tasks, store=None, labels=LABELS, ready=lambda: None, is_new=is_new(unit, "r"))
            )
        return run(unit, body, name="r")

    for _ in range(2):
        with pytest.raises(ConnectionError):
            attempt()

    assert attempt() == ("charged card", "hello")
    assert did == ["card", "asked", "asked", "asked"]


def test_a_failure_that_the_unit_has_dealt_with_stays_what_it_was(unit):
    """It went another way because of it, and did something there."""
    breaks = [ValueError("boom")]

    @sf.step
    def ask() -> str:
        did.append("asked")
        raise ConnectionError("away")

    def body():
        try:
            ask()
        except ConnectionError:
            charge("instead")
        if breaks:
            raise breaks.pop()

    with pytest.raises(ValueError, match="boom"):
        run(unit, body)

    run(unit, body)
    assert did == ["asked", "instead"]


def test_the_run_is_created_only_when_its_host_is_ready(unit):
    """What names it has to be durable first, else the next process knows it by another name."""
    order: list[str] = []

    def body():
        order.append("body")
        return charge("card")

    run(unit, body, ready=lambda: order.append("ready"))

    assert order == ["body", "ready"]
    run(unit, lambda: charge("again"), name="other", ready=lambda: order.append(did[-1]))
    assert order == ["body", "ready", "card"]


def test_nothing_is_executed_if_its_host_cannot_be_ready(unit):
    def refuses():
        raise StoreUnavailable("the checkpoint could not be saved")

    with pytest.raises(StoreUnavailable, match="could not be saved"):
        run(unit, lambda: charge("card"), ready=refuses)

    assert did == [] == runs()


def test_a_stop_is_a_stop_whatever_the_unit_makes_of_it(unit):
    def asks():
        return sf.approve("Pay?")

    with pytest.raises(WaitingForAnswer):
        run(unit, asks)
    with pytest.raises(WaitingForAnswer):
        run(unit, pytest.fail)
    sf.get_run("chat-1:node:1").answer("approve#1", True)

    assert run(unit, lambda: bool(asks())) is True


def test_an_effect_in_doubt_asks_and_goes_on_when_it_is_settled(unit):
    @sf.effect
    def unsure() -> str:
        did.append("unsure")
        raise RuntimeError("lost the connection")

    with pytest.raises(InDoubt):
        run(unit, unsure)
    with pytest.raises(InDoubt):
        run(unit, unsure)
    sf.get_run("chat-1:node:1").settle("unsure#1", happened="yes")

    assert run(unit, unsure) == "yes"
    assert did == ["unsure"]


def test_two_that_execute_one_unit_at_once_do_its_effects_once(unit):
    """Two processes, or two threads, on one task: one waits, and gets the other's result."""
    inside, gate = threading.Event(), threading.Event()

    @sf.effect
    def slow() -> str:
        did.append("slow")
        inside.set()
        assert gate.wait(20)
        return "done"

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(run, unit, slow)
        assert inside.wait(20)
        second = pool.submit(run, unit, slow)
        gate.set()

        assert (first.result(20), second.result(20)) == ("done", "done")
    assert did == ["slow"]


@pytest.mark.parametrize("ends", [True, False])
def test_one_that_was_executed_before_all_the_same_is_gone_on_with(unit, ends):
    """A host that was sure that it is new was wrong: what the other one did is not done again."""

    def before():
        charge("card")
        if not ends:
            raise ValueError("gone")
        return "before"

    with contextlib.suppress(ValueError):
        run(unit, before)
    bodies = []

    def body():
        bodies.append("begun")
        return charge("card")

    assert run(unit, body, new=True) == ("before" if ends else "charged card")
    assert did == ["card"]
    assert len(bodies) == (1 if ends else 2)


def test_no_worker_and_no_command_takes_it_up(unit):
    """A worker has no code for it, and would stop it for that."""

    def breaks():
        charge("card")
        raise ValueError("boom")

    with pytest.raises(ValueError, match="boom"):
        run(unit, breaks)

    with pytest.raises(UsageError, match=r"a graph of testgraph executes it.*on thread chat-1"):
        sf.get_run("chat-1:node:1").resume()

    @sf.workflow(name="agent.node")
    def namesake() -> None:
        pytest.fail("it is not the code of a unit")

    from surefoot.engine.declare.registry import registry

    assert registry.known_for(sf.get_run("chat-1:node:1").state().created) is None


def test_a_person_may_give_it_up(unit):
    def breaks():
        charge("card")
        raise ValueError("boom")

    with pytest.raises(ValueError, match="boom"):
        run(unit, breaks)
    sf.get_run("chat-1:node:1").cancel()

    assert sf.get_run("chat-1:node:1").status == "cancelled"
    with pytest.raises(Cancelled):
        run(unit, pytest.fail)
