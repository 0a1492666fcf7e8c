"""Group commit: what many runs, threads and tasks have to write shares one durable transaction.

A caller that finds no leader becomes the leader, commits everything that is queued and hands the lead on. A blocking
caller leads itself and pays no thread hop; for tasks, one writer thread leads. A ticket is done only when its records are
on disk, or when it is certain that they are not.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from queue import SimpleQueue
from time import perf_counter, sleep
from typing import Final, Protocol

from msgspec import Struct

from surefoot.core.claim import Refusal
from surefoot.core.entry import Entry
from surefoot.core.parts import Cut
from surefoot.engine.process.observer import Observer, observers
from surefoot.errors import Fenced, StoreUnavailable, SurefootError, UsageError
from surefoot.store.contract import Extend, Journals

Packed = tuple[Entry, int, bytes, int, int, tuple[Cut, ...]]
"""An entry ready to be sealed: with its kind, body, time and epoch, and its values that are kept by parts."""


class Writer(Protocol):
    """What a run's journal lets the committer do, one thread at a time."""

    def propose(self, tickets: list[Ticket]) -> Extend:
        """Seal what the tickets hold, behind the head as it is known."""

    def accepted(self) -> None:
        """What was proposed is on disk."""

    def catch_up(self, tickets: list[Ticket]) -> Refusal | None:
        """Read what others wrote. Why nothing more is written, if the run is not ours (any more)."""


class Ticket(Struct, eq=False):
    """Entries of one run that somebody waits for. Without entries: a look at what others wrote."""

    journal: Writer
    entries: list[Packed]
    done: bool = False
    error: SurefootError | None = None
    refused: Refusal | None = None
    """Another process has the run: nothing of this was written."""
    gate: threading.Lock | None = None
    """Opens for a blocking owner that has to look: its ticket is done, or it has to lead."""
    notify: Callable[[], None] | None = None
    """Called when the ticket is done, for owners that do not block. May be called twice."""

    @property
    def is_durable(self) -> bool:
        return self.done and self.error is None and self.refused is None

    def trouble(self) -> SurefootError:
        """Once this process has claimed the run, a claim of another process is an error like any other."""
        return self.error or Fenced(self.refused.why if self.refused is not None else "")


WRITER: Final = object()
"""Leads for tasks: the writer thread."""


class Committer:
    """The one way into a store for this process.

    `_leader` says who commits: a ticket (its owner does), WRITER, or nobody. It changes hands under the mutex, as
    the last thing that is done there, and everything before that may be done twice: a leader that is interrupted
    (Ctrl-C can strike between any two lines) repeats its hand-over on the way out, and nobody is left waiting.
    """

    def __init__(self, store: Journals, observer: Observer = observers) -> None:
        self.store = store
        self._observer = observer
        self._mutex = threading.Lock()
        self._queue: list[Ticket] = []
        self._batch: list[Ticket] = []
        """What the leader is writing now."""
        self._leader: object = None
        self._calls: SimpleQueue[bool] | None = None
        self._sharers = 0
        """How many tickets the last batch had."""

    def commit(self, make: Callable[[], Ticket], order: AbstractContextManager[object]) -> Ticket:
        """Blocking: returns the ticket when it is durable, or when it is certain that it is not.

        `make` is called and its ticket queued under `order`, so that the entries of a run are written in the
        order in which they were handed over.
        """
        ticket: Ticket | None = None
        try:
            with order:
                ticket = make()
                gate = self._enqueue(ticket)
            if gate is None:
                self._lead(ticket)
            else:
                self._wait(ticket, gate)
        except BaseException:
            if ticket is not None:
                self._abandon(ticket)
            raise
        return ticket

    def _wait(self, ticket: Ticket, gate: threading.Lock) -> None:
        while not ticket.done:
            gate.acquire()
            with self._mutex:  # The gate opens a little before the lead has changed hands.
                leads = self._leader is ticket
            if leads:
                self._lead(ticket)

    def add(self, ticket: Ticket) -> None:
        """For tasks: queue it; the next leader takes it along. `kick` makes sure that there is one."""
        with self._mutex:
            self._queue.append(ticket)

    def kick(self) -> None:
        """Have the writer thread commit what is queued, unless somebody is at it already."""
        with self._mutex:
            if self._leader is None and self._queue:
                self._wake_writer()
                self._leader = WRITER

    def unwritten(self) -> int:
        """How many entries are handed over and not on disk yet."""
        with self._mutex:
            return sum(len(ticket.entries) for ticket in (*self._queue, *self._batch) if not ticket.done)

    def _enqueue(self, ticket: Ticket) -> threading.Lock | None:
        """The gate to wait at. None: the caller leads."""
        with self._mutex:
            self._queue.append(ticket)
            if self._leader is None:
                self._leader = ticket
                return None
            ticket.gate = gate = threading.Lock()
            gate.acquire()
            return gate

    def _lead(self, leader: object) -> None:
        try:
            if leader is not WRITER and len(self._queue) < self._sharers:
                # Threads that shared a batch were woken together, and soon write again. Without this pause the first of
                # them commits alone, and all others wait for that commit and then for their own.
                sleep(0)
            with self._mutex:
                if self._leader is not leader:
                    return
                self._batch, self._queue = [*self._batch, *self._queue], []
                self._sharers = len(self._batch)
            self._write(self._batch)
        finally:
            self._hand_over(leader)

    def _abandon(self, ticket: Ticket) -> None:
        """Its owner is being interrupted: it waits for nothing any more, and leads no longer."""
        with self._mutex:
            ticket.gate = None
        self._hand_over(ticket)

    def _hand_over(self, leader: object) -> None:
        """Wake everybody who is done, and let the next one lead.

        What the leader left unsettled goes back to the queue: its next writer finds out by reading whether it
        was committed.
        """
        with self._mutex:
            if self._leader is not leader:
                return
            for ticket in self._batch:
                if ticket.done:
                    _wake(ticket)
            unsettled = [ticket for ticket in self._batch if not ticket.done and (ticket.gate or ticket.notify)]
            self._batch, self._queue = [], [*unsettled, *self._queue]
            heir: object = next((ticket for ticket in self._queue if ticket.gate is not None), None)
            if isinstance(heir, Ticket):
                _wake(heir)
            elif self._queue:
                self._wake_writer()
                heir = WRITER
            self._leader = heir

    def _write(self, batch: list[Ticket]) -> None:
        waiting: dict[Writer, list[Ticket]] = {}
        for ticket in batch:
            waiting.setdefault(ticket.journal, []).append(ticket)
        for journal in [journal for journal, tickets in waiting.items() if not any(t.entries for t in tickets)]:
            self._resolve(journal, waiting)
        while waiting:
            journals, began = list(waiting), perf_counter()
            try:
                proposed = [journal.propose(waiting[journal]) for journal in journals]
                answers = self.store.append(proposed)
            except Exception as error:  # noqa: BLE001 - nobody may be left waiting, whatever went wrong
                if len(journals) > 1 and isinstance(error, UsageError | TypeError | ValueError | OverflowError):
                    # Something in it cannot be stored. Whose it is shows when each is written by itself.
                    for tickets in list(waiting.values()):
                        self._write(tickets)
                    return
                self._observer.append_failed(error)
                for tickets in waiting.values():
                    _settle(tickets, _as_ours(error))
                return
            took, taken = perf_counter() - began, proposed
            if any(answers):
                taken = [item for item, answer in zip(proposed, answers, strict=True) if answer is None]
            self._observer.appended(taken, took)
            for journal, answer in zip(journals, answers, strict=True):
                if answer is None:
                    journal.accepted()
                    _settle(waiting.pop(journal), None)
                else:
                    self._resolve(journal, waiting)

    def _resolve(self, journal: Writer, waiting: dict[Writer, list[Ticket]]) -> None:
        """Somebody else wrote into the run. Visitors are let in; a newer claimant ends our claim."""
        try:
            refused = journal.catch_up(waiting[journal])
        except Exception as error:  # noqa: BLE001 - as above
            _settle(waiting.pop(journal), _as_ours(error))
            return
        if refused is not None or not any(ticket.entries for ticket in waiting[journal]):
            _settle(waiting.pop(journal), None, refused)

    def _wake_writer(self) -> None:
        if self._calls is None:
            self._calls = SimpleQueue()
            threading.Thread(target=self._serve, args=(self._calls,), name="surefoot-writer", daemon=True).start()
        self._calls.put(True)

    def _serve(self, calls: SimpleQueue[bool]) -> None:
        while calls.get():
            self._lead(WRITER)

    def close(self) -> None:
        if self._calls is not None:
            self._calls.put(False)
            self._calls = None


def _as_ours(error: Exception) -> SurefootError:
    if isinstance(error, SurefootError):
        return error
    ours = StoreUnavailable(
        f"writing to the store failed with {type(error).__name__}: {error}. "
        "The next resume finds out by reading what was written."
    )
    ours.__cause__ = error
    return ours


def _settle(tickets: list[Ticket], error: SurefootError | None, refused: Refusal | None = None) -> None:
    for ticket in tickets:
        ticket.error = error
        ticket.refused = refused
        ticket.done = True


def _wake(ticket: Ticket) -> None:
    """Idempotent: a gate that is open stays open, and nobody minds to be told twice."""
    if ticket.gate is not None:
        with suppress(RuntimeError):
            ticket.gate.release()
    elif ticket.notify is not None:
        ticket.notify()
