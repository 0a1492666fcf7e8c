"""A verb needs no Session: whoever has a Context's members can drive it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import Raw

import surefoot as sf
from surefoot.core import values
from surefoot.core.address import Scope
from surefoot.core.command import Append, Done, Pause
from surefoot.core.entry import (
    EventSent,
    RunAdopted,
    RunCreated,
    TimerFired,
    TimerSet,
    ValueNoted,
    WaitStarted,
)
from surefoot.core.masking import Mask
from surefoot.core.timer import Due, after
from surefoot.engine.declare import current
from surefoot.engine.declare.context import Context
from surefoot.engine.declare.current import Place
from surefoot.engine.declare.signals import StopSignal
from surefoot.engine.process import config
from surefoot.engine.session import moved
from surefoot.engine.session.notices import Notices
from surefoot.engine.session.replay import Replay
from surefoot.engine.session.scopes import Scopes
from surefoot.engine.session.session import Session
from surefoot.engine.session.stops import Stops
from surefoot.engine.verbs import blocking
from surefoot.testing.clock import FastClock
from tests.folded import folded

BEGUN = RunCreated("wf", Raw(b"{}"), "d"), RunAdopted("w", "h", 1, "c")
MEMBERS = {name for name in {**vars(Context), **Context.__annotations__} if not name.startswith("_")}


class StandIn:
    """Another engine, without a store: its journal is a list."""

    def __init__(self, *recorded: Any) -> None:
        self.run, self.state, self.clock, self.mask = "r", folded(*BEGUN, *recorded), FastClock(0), Mask()
        self.runtime, self.dry, self.wait_seconds, self.approve = SimpleNamespace(), False, 0.0, ""
        self.stops = Stops(self.state, self.mask, self.clock)
        self.replay = Replay(self.state, bytes)
        self.scopes = Scopes()
        self.notices = Notices(self.run, "memory:", self.mask, self.clock, lambda: True)
        self.entries: list[Any] = []

    def now(self) -> Any:
        return self.clock.read()

    def enter_verb(self, place: Place) -> None:
        self.stops.meet(place)

    def begin(self, place: Place, spec: Any, args: Any, kwargs: Any, *, entered: bool = False) -> Done:
        place.called = place.scope.take(spec.name)
        return Done(Raw(values.encode(spec.fn(*args, **kwargs))))

    def finish(self, place: Place, ending: Any) -> Any:
        return self.decoded(ending.raw)

    def recall(self, place: Place, name: str, fits: Any = None) -> Any:
        return moved.recorded(place, name, fits)

    def note(self, place: Place, name: str, make: Any, entry: Any) -> Any:
        address, past = self.recall(place, name)
        if past is not None:
            return self.decoded(past.value)
        raw = Raw(values.encode(make()))
        self.record(entry(address, raw))
        return values.decode(raw)

    def record(self, entry: Any) -> None:
        self.entries.append(entry)

    def decoded(self, value: Any) -> Any:
        return values.decode(self.whole(value))

    def whole(self, value: Any) -> Raw:
        return value

    def perform(self, program: Any) -> Any:
        """Carry out a verb that waits."""
        try:
            while True:
                match next(program):
                    case Append(entry):
                        self.record(entry)
                    case Pause(due):
                        self.clock.forward((due.at - self.clock.now()) / 1e6)
        except StopIteration as end:
            return end.value


@contextmanager
def inside(engine: StandIn) -> Iterator[Place]:
    place = Place(engine, Scope(), threading.get_ident())
    token = current.set_place(place)
    try:
        yield place
    finally:
        current.reset(token)


def in_an_hour(engine: Any) -> Due:
    return after(engine.now(), 3600.0)


def test_session_and_stand_in_have_what_a_context_has():
    """The type checker holds src to it; what tests stand in with is held to it here."""
    session = Session(config.runtime(create=True), folded(*BEGUN), None)

    assert not {name for name in MEMBERS if not hasattr(session, name)}
    assert not {name for name in MEMBERS if not hasattr(StandIn(), name)}
    assert len(MEMBERS) == 21


def test_a_stand_in_makes_the_call_of_a_step():
    """What drives a call asks its Context for begin and finish, and for nothing else."""

    @sf.step
    def add(a: int, b: int) -> int:
        return a + b

    with inside(StandIn()) as place:
        assert add(1, 2) == 3
        assert place.called == "add#1"


def test_a_stand_in_sleeps():
    with inside(engine := StandIn()) as place:
        engine.perform(blocking.sleeping(place, "sleep", in_an_hour))

    assert [type(entry) for entry in engine.entries] == [TimerSet, TimerFired]
    assert engine.clock.now() == 3600 * 10**6


def test_a_stand_in_replays_a_sleep():
    """The record answers, through the same Replay that a session has."""
    engine = StandIn(TimerSet("sleep#1", Due(5, "fast-forward", 5)), TimerFired("sleep#1"))

    with inside(engine) as place:
        engine.perform(blocking.sleeping(place, "sleep", in_an_hour))

    assert engine.entries == []
    assert engine.clock.now() == 0


def test_a_stand_in_records_values_once():
    with inside(engine := StandIn()):
        drawn = sf.random()
    again = StandIn(*engine.entries)
    with inside(again):
        assert sf.random() == drawn

    assert [type(entry) for entry in engine.entries] == [ValueNoted]
    assert again.entries == []


def test_a_stand_in_takes_an_event():
    sent = EventSent("paid", Raw(b"7"), "id")

    with inside(engine := StandIn(sent)) as place:
        assert engine.perform(blocking.waiting_for_event(place, "paid", None)) == Raw(b"7")


def test_what_stops_in_a_stand_in_stays_stopped():
    """Also if the code catches what unwinds it."""
    with inside(engine := StandIn()) as place:
        with pytest.raises(StopSignal) as met:
            engine.perform(blocking.waiting_for_event(place, "paid", None))
        with pytest.raises(StopSignal) as again:
            engine.perform(blocking.sleeping(place, "sleep", in_an_hour))

    assert again.value is met.value
    assert [stop.reason for stop in engine.stops.found] == ["WaitingForAnswer"]
    assert [type(entry) for entry in engine.entries] == [WaitStarted]
