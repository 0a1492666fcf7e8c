"""Engines that show user code something else on replay, or let it go another way, each by replacing a piece.

They are what a tired author might write. Nothing in surefoot itself knows of them.
"""

# ruff: noqa: ARG005 - what is replaced keeps its signature

from __future__ import annotations

import asyncio
from typing import Any

from msgspec import Raw

from surefoot.core import likeness
from surefoot.core.command import Done
from surefoot.core.entry import CallCancelled, TimerFired
from surefoot.engine.declare import lines
from surefoot.engine.drive import acts_async, cancellations
from surefoot.engine.process import journal
from surefoot.engine.session import attempt, session, turns
from tests.crash.broken.engines import engine
from tests.crash.stage import stage

# --- what is seen ------------------------------------------------------------------------------------------------------


def _replayed(change: Any) -> None:
    """What a failure has lost when it comes from the record."""
    real = session.Session.revive

    def revive(self: Any, ending: Any) -> Any:
        error = real(self, ending)
        if ending.cause is None:
            change(error)
        return error

    session.Session.revive = revive


@engine
def cause_known_only_once() -> None:
    def forget(error: Any) -> None:
        error.__cause__ = error.__context__ = None

    _replayed(forget)


@engine
def notes_known_only_once() -> None:
    def forget(error: Any) -> None:
        if getattr(error, "__notes__", None):
            error.__notes__ = []

    _replayed(forget)


@engine
def first_delivery_is_the_original() -> None:
    """The first time user code gets the very object that the call gave back."""
    real, given = attempt.Attempt.returned, dict[bytes, Any]()
    finish = session.Session.finish

    def returned(self: Any, value: Any, started: int) -> Any:
        outcome = real(self, value, started)
        given[bytes(getattr(outcome, "raw", b""))] = value
        return outcome

    def finished(self: Any, place: Any, ending: Any) -> Any:
        copy = finish(self, place, ending)
        return given.pop(bytes(ending.raw), copy) if type(ending) is Done and isinstance(ending.raw, Raw) else copy

    attempt.Attempt.returned, session.Session.finish = returned, finished


@engine
def class_known_only_once() -> None:
    """After a crash a failure is of its class by name only."""
    real = likeness.find
    likeness.find = lambda module, name: () if stage().life > 1 else real(module, name)


@engine
def attributes_known_only_once() -> None:
    def forget(error: Any) -> None:
        for name in set(vars(error)) - {"type", "message", "module", "__notes__"}:
            del error.__dict__[name]

    _replayed(forget)


# --- the way that the code goes -------------------------------------------------------------------------------------------


def _never_written(kind: type) -> None:
    real = journal.Journal.lazily

    def lazily(self: Any, entry: Any) -> Any:
        return None if isinstance(entry, kind) else real(self, entry)

    journal.Journal.lazily = lazily


@engine
def cancellation_not_recorded() -> None:
    _never_written(CallCancelled)


@engine
def time_out_not_recorded() -> None:
    _never_written(TimerFired)


@engine
def tasks_in_the_order_of_luck() -> None:
    async def at_once(*_: Any, **__: Any) -> None:
        return None

    turns.in_turn = at_once


@engine
def outcomes_overtake_each_other() -> None:
    """Who has asked for an outcome counts as having got it, and whoever is cancelled there goes on with less in its hands."""
    turns.Backlog.has_owed = False
    cancellations.cut_off_in_turn = lambda place, address: None
    session.Session.require_same = lambda *_: None


@engine
def cancellation_that_was_dealt_with_forgotten() -> None:
    acts_async.WorkflowTask = lambda body: asyncio.get_running_loop().create_task(body)


@engine
def something_new_before_a_cancellation() -> None:
    """What the code is quick enough to ask for begins, though it was cancelled before that."""
    cancellations.to_strike = lambda place, address: None


@engine
def label_shared() -> None:
    lines.claim = lambda place, scope, line: None
