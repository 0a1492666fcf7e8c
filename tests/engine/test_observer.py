"""Observers hear what happens, when it happens; and no run depends on who listens."""

from __future__ import annotations

import asyncio
import logging

import pytest

import surefoot as sf
from surefoot.core.command import Raised, Returned
from surefoot.core.verdict import Happened
from surefoot.engine.process import observer
from surefoot.engine.process.config import overridden
from surefoot.engine.process.observer import AnswerLost, Observer, Observers, observed

TRIES: list[int] = []


@sf.step
def look(n: int) -> int:
    return n + 1


@sf.effect(retries=1, on_crash="retry", backoff=sf.Backoff(first="1ms", factor=1, max="1ms", jitter=False))
def charge(n: int) -> int:
    TRIES.append(n)
    if len(TRIES) == 1:
        raise ConnectionError("lost")
    return n


@sf.effect(on_crash="check")
def ship(n: int) -> int:
    raise TimeoutError("no answer")


@ship.check
def _(n: int) -> object:
    return sf.happened(n)


@sf.workflow
def selling() -> int:
    return charge(look(1)) + ship(5)


@sf.workflow
def asking() -> bool:
    return bool(sf.approve("really?"))


@sf.step
async def look_async(n: int) -> int:
    return n + 1


@sf.workflow
async def selling_async() -> int:
    return await look_async(1)


class Heard(Observer):
    """Everything, by name."""

    def __init__(self):
        self.facts = []

    def of(self, fact):
        return [facts for name, *facts in self.facts if name == fact]

    def names(self, *prefixes):
        return [name for name, *_ in self.facts if name.startswith(prefixes)]


def _hearing(name):
    def hear(self, *facts, **named):
        self.facts.append((name, *facts, *named.values()))

    return hear


for _name in observer.FACTS:
    setattr(Heard, _name, _hearing(_name))


@pytest.fixture
def heard():
    TRIES.clear()
    found = Heard()
    with observed(found):
        yield found


def test_a_run_is_told_from_its_claim_to_its_end(heard):
    assert selling.run("r") == 7

    assert heard.of("run_began") == [["r", "selling", False]]
    assert heard.of("run_ended") == [["r", "done"]]
    assert heard.names("run_", "call_", "check_") == [
        "run_began", "call_began", "call_ended",  # look
        "call_began", "call_ended", "call_retried", "call_began", "call_ended",  # charge
        "call_began", "call_ended", "check_began", "check_ended",  # ship
        "run_ended",
    ]  # fmt: skip


def test_a_call_is_told_with_its_outcome(heard):
    selling.run("r")

    ended = [(call.address, call.attempt, type(outcome)) for call, outcome in heard.of("call_ended")]
    assert ended == [
        ("look#1", 1, Returned), ("charge#1", 1, Raised), ("charge#1", 2, Returned), ("ship#1", 1, Raised),
    ]  # fmt: skip
    ((call, verdict),) = heard.of("check_ended")
    assert (call.address, call.declared.name, type(verdict)) == ("ship#1", "ship", Happened)


def test_what_is_appended_is_told_once_it_is_durable(heard):
    selling.run("r")

    told = [record.seq for batch, _ in heard.of("appended") for item in batch for record in item.records]
    assert told == list(range(1, len(sf.get_run("r").entries()) + 1))


def test_a_replay_tells_nothing_of_calls(heard):
    """They are answered by the journal: whoever counts executions must not count them again."""
    selling.run("r")
    heard.facts.clear()

    assert selling.run("r") == 7
    assert heard.names("call_", "check_", "run_") == []


def test_calls_of_tasks_are_told_too(heard):
    assert asyncio.run(selling_async.run("r")) == 2
    assert heard.names("call_", "run_") == ["run_began", "call_began", "call_ended", "run_ended"]


def test_a_stop_and_its_resume_are_told(heard):
    with pytest.raises(sf.WaitingForAnswer):
        asking.run("r")
    ((run, stops),) = heard.of("run_stopped")
    assert (run, [stop.reason for stop in stops]) == ("r", ["WaitingForAnswer"])
    assert heard.names("alerted") == ["alerted"]
    assert heard.facts[-1] == ("run_ended", "r", "waiting")

    sf.get_run("r").answer("approve#1", True, by="ann")
    assert asking.run("r") is True
    assert ("run_began", "r", "asking", True) in heard.facts


class Failing(Observer):
    def __init__(self):
        self.told = 0

    def call_began(self, call):
        self.told += 1
        raise ValueError("of its own")


def test_one_that_raises_is_logged_once_and_left_out(heard, caplog):
    """A trace that cannot be exported must not fail a payment."""
    failing = Failing()
    with observed(failing), caplog.at_level(logging.ERROR, logger="surefoot"):
        assert selling.run("r") == 7

    assert failing.told == 1
    assert len([record for record in caplog.records if "is left out from now on" in record.message]) == 1
    assert heard.names("call_began") == ["call_began"] * 4


def test_a_strict_one_passes_its_error_on():
    """A kit that was left out would report that everything holds."""

    class Strict(Failing):
        is_strict = True

    with observed(Strict()), pytest.raises(ValueError, match="of its own"):
        selling.run("r")


def test_an_answer_may_be_lost_after_the_call_has_acted():
    """What the crash kit does: the function has returned, and its caller hears of a time-out."""

    class Losing(Observer):
        def call_ended(self, call, outcome):
            if call.address == "charge#1" and call.attempt == 1:
                raise AnswerLost(TimeoutError("lost"))

    TRIES[:] = [0]
    with observed(Losing()):
        assert selling.run("r") == 7
    assert TRIES == [0, 2, 2]


def test_a_fact_that_nobody_hears_is_not_passed_on():
    found = Observers()
    assert not found.hear_calls
    assert not [fact for fact in observer.FACTS if fact in vars(found)]

    failing = Failing()
    found.add(failing)
    assert found.hear_calls
    assert [fact for fact in observer.FACTS if fact in vars(found)] == ["call_began"]

    found.remove(failing)
    assert not found.hear_calls


def test_a_sink_that_fails_stays_registered():
    """Alerts are observers that must not be left out: the next one may get through."""
    told = []

    def sink(alert):
        told.append(alert.kind)
        raise OSError("away")

    with overridden(alerts=(sink,)):
        for run in ("a", "b"):
            with pytest.raises(sf.WaitingForAnswer):
                asking.run(run)

    assert told == ["WaitingForAnswer"] * 2
