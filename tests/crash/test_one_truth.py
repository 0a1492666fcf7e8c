"""What a process knows of the run it drives is what the journal says, after every entry.

Random programs under random schedules: deaths, lost answers, take-overs, visitors. After each append and each look, the
state that the driving process folded is held against the fold of what the store gives back.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from surefoot.core import state as folding
from surefoot.core.entry import (
    EffectDone,
    EffectDoubted,
    EffectIntended,
    EffectRaised,
    EffectSettled,
    Entry,
    EventSent,
    EventTaken,
    QuestionAsked,
    RunAdopted,
    RunContinued,
    RunCreated,
    RunDone,
    RunStopped,
    StepDone,
    StepRaised,
    TimerFired,
    TimerSet,
    ValueNoted,
    WaitStarted,
)
from surefoot.core.seal import Record
from surefoot.core.state import RunState
from surefoot.engine.process.journal import Journal
from surefoot.testing.children import Tell, in_child
from tests.crash import simulation, stage
from tests.crash.programs import ANY
from tests.crash.simulation import FLOWS_HERE

PROGRAMS = 150
SCHEDULES = 6
"""Of each flow."""
MET = [
    EffectDone, EffectDoubted, EffectIntended, EffectRaised, EffectSettled, EventSent, EventTaken,
    QuestionAsked, RunAdopted, RunContinued, RunCreated, RunDone, RunStopped, StepDone, StepRaised,
    TimerFired, TimerSet, ValueNoted, WaitStarted,
]  # fmt: skip
"""What random programs record, or meet, while they are driven."""


def facts(value: Any) -> Any:
    """A folded run as plain data, all of it."""
    if isinstance(value, dict):
        return {key: facts(one) for key, one in value.items()}
    if isinstance(value, list):
        return [facts(one) for one in value]
    if isinstance(value, folding.Event):
        return {name: getattr(value, name) for name in value.__slots__}
    if isinstance(value, folding.Expectation):
        return facts(vars(value))
    return value


class Noticed(BaseException):
    """One is enough."""


class Mirror:
    """Holds each driving process against its journal."""

    def __init__(self) -> None:
        self.looks = 0
        self.seen: Counter[str] = Counter()
        self.wrong: list[str] = []

    def look(self, journal: Journal) -> None:
        head = journal.head
        if head is None:
            return
        again = RunState(journal.run)
        for record in journal._committer.store._core._journals[journal.run][: head.seq]:
            again.fold(record)
        self.looks += 1
        here, there = facts(vars(journal._state)), facts(vars(again))
        other = [f"{name}: {here[name]} != {there[name]}" for name in here if here[name] != there[name]]
        if other:
            self.wrong.append(f"{journal.run} at entry {head.seq}: {'; '.join(other)}"[:2000])
            raise Noticed


@contextlib.contextmanager
def mirrored(mirror: Mirror, without: type[Entry] | None = None) -> Iterator[None]:
    """`without`: what a driving process itself wrote of that kind means nothing to it."""
    accepted, catch_up, apply = Journal.accepted, Journal.catch_up, RunState.apply
    own = [False]

    def compared_accepted(self: Journal) -> None:
        own[0] = True
        try:
            accepted(self)
        finally:
            own[0] = False
        mirror.look(self)

    def compared_catch_up(self: Journal, tickets: Any) -> Any:
        own[0] = True
        try:
            refused = catch_up(self, tickets)
        finally:
            own[0] = False
        if refused is None:
            mirror.look(self)
        return refused

    def forgetful(self: RunState, entry: Entry, record: Record) -> None:
        if not own[0]:
            return apply(self, entry, record)
        mirror.seen[type(entry).__name__] += 1
        if type(entry) is not without:
            return apply(self, entry, record)
        handlers = folding._HANDLERS
        kept = handlers.pop(type(entry))
        try:
            return apply(self, entry, record)
        finally:
            handlers[type(entry)] = kept

    Journal.accepted, Journal.catch_up, RunState.apply = compared_accepted, compared_catch_up, forgetful
    try:
        yield
    finally:
        Journal.accepted, Journal.catch_up, RunState.apply = accepted, catch_up, apply


def lived(without: type[Entry] | None = None, *, programs: int = PROGRAMS, schedules: int = SCHEDULES) -> Mirror:
    """In a child of its own: schedules change what a process takes for its own."""

    def work(tell: Tell) -> None:
        stage.hush([])
        mirror = Mirror()
        scenarios = simulation.scenarios(ANY, range(programs))
        for flow in FLOWS_HERE:
            scenarios += simulation.scenarios(flow, range(schedules))
        with mirrored(mirror, without), contextlib.suppress(Noticed):
            for scenario in scenarios:
                simulation.Schedule(scenario).run()
        tell(json.dumps([mirror.looks, mirror.seen, mirror.wrong]).encode())

    ended = in_child(work, seconds=110)
    assert ended.report, ended.trouble
    mirror = Mirror()
    mirror.looks, seen, mirror.wrong = json.loads(ended.report)
    mirror.seen = Counter(seen)
    return mirror


def test_what_a_driving_process_knows_is_what_its_journal_says():
    """A mirror that is kept by hand lags behind some day: what was recorded is judged by what was not folded."""
    mirror = lived()

    assert mirror.wrong == []
    assert mirror.looks > 2_000, "the schedules came to too little"


@pytest.mark.parametrize("kind", MET, ids=lambda kind: kind.__name__)
def test_a_process_that_forgets_what_it_wrote_is_noticed(kind):
    """The test above can fail: whichever kind of entry is not taken in, something differs."""
    assert lived(without=kind, programs=60, schedules=2).wrong
