"""Group commit: what many runs, threads and tasks have to write shares one durable transaction.

Whoever finds nobody committing becomes the leader, commits everything that is queued and hands the
lead on. A blocking caller leads itself and pays no thread hop; for tasks, one writer thread leads.
A ticket is done only when its records are on disk, or when it is certain that they are not.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Protocol

from surefoot.core.entry import Entry
from surefoot.errors import SurefootError
from surefoot.store.contract import Append, Store

Packed = tuple[Entry, int, bytes, int, int]
"""An entry ready to be sealed: with its kind, body, time and epoch."""


class Writer(Protocol):
    """What a run's journal lets the committer do, one thread at a time."""

    def propose(self, tickets: list[Ticket]) -> Append:
        """Seal what the tickets hold, behind the head as it is known."""

    def accepted(self) -> None:
        """What was proposed is on disk."""

    def catch_up(self, tickets: list[Ticket]) -> None:
        """Read what others wrote; raises if the run is not ours any more."""


class Ticket:
    """Entries of one run that somebody waits for. Without entries: a look at what others wrote."""

    __slots__ = ("done", "entries", "error", "gate", "journal", "notify")

    def __init__(self, journal: Writer, entries: list[Packed]) -> None:
        self.journal = journal
        self.entries = entries
        self.done = False
        self.error: SurefootError | None = None
        self.gate: threading.Lock | None = None
        self.notify: Callable[[], None] | None = None

    def check(self) -> None:
        if self.error is not None:
            raise self.error


class Committer:
    """The one way into a store for this process."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._mutex = threading.Lock()
        self._queue: list[Ticket] = []
        self._leading = False
        self._calls: SimpleQueue[bool] | None = None

    def commit(self, ticket: Ticket) -> None:
        """Blocking: returns when the ticket is durable, raises when it is certain that it is not."""
        self.wait(ticket, self.enqueue(ticket))

    def wait(self, ticket: Ticket, gate: threading.Lock | None) -> None:
        """The second half of `commit`, for callers that must enqueue under a lock of their own."""
        if gate is not None:
            gate.acquire()
            if ticket.done:
                ticket.check()
                return
        self._lead()
        ticket.check()

    def submit(self, tickets: Sequence[Ticket]) -> None:
        """For tasks: the writer thread commits; each ticket's `notify` is called from it."""
        with self._mutex:
            self._queue.extend(tickets)
            lead = not self._leading
            self._leading = True
        if lead:
            self._wake_writer()

    def enqueue(self, ticket: Ticket) -> threading.Lock | None:
        """A gate that opens when the ticket is done, or has to lead. None: the caller has to lead now."""
        with self._mutex:
            self._queue.append(ticket)
            if not self._leading:
                self._leading = True
                return None
            gate = ticket.gate = threading.Lock()
            gate.acquire()
            return gate

    def _lead(self) -> None:
        with self._mutex:
            batch, self._queue = self._queue, []
        try:
            self._write(batch)
        finally:
            # Whatever cut the leader off (Ctrl-C), nobody is left waiting: what is not settled goes
            # back to the queue, and its next writer finds out by reading whether it was committed.
            self._hand_over(batch)

    def _hand_over(self, batch: list[Ticket]) -> None:
        with self._mutex:
            unsettled = [ticket for ticket in batch if not ticket.done and (ticket.gate or ticket.notify)]
            self._queue[:0] = unsettled
            self._leading = bool(self._queue)
            heir = next((ticket for ticket in self._queue if ticket.gate is not None), None) if self._queue else None
            if heir is not None:
                gate, heir.gate = heir.gate, None
        if self._leading and heir is None:
            self._wake_writer()
        elif heir is not None and gate is not None:
            gate.release()
        for ticket in batch:
            if ticket.done:
                _wake(ticket)

    def _write(self, batch: list[Ticket]) -> None:
        waiting: dict[Writer, list[Ticket]] = {}
        for ticket in batch:
            waiting.setdefault(ticket.journal, []).append(ticket)
        for journal in [journal for journal, tickets in waiting.items() if not any(t.entries for t in tickets)]:
            self._resolve(journal, waiting)
        while waiting:
            journals = list(waiting)
            try:
                answers = self.store.append([journal.propose(waiting[journal]) for journal in journals])
            except SurefootError as error:
                for tickets in waiting.values():
                    _settle(tickets, error)
                return
            for journal, answer in zip(journals, answers, strict=True):
                if answer is None:
                    journal.accepted()
                    _settle(waiting.pop(journal), None)
                else:
                    self._resolve(journal, waiting)

    def _resolve(self, journal: Writer, waiting: dict[Writer, list[Ticket]]) -> None:
        """Somebody else wrote into the run. Visitors are let in; a newer claimant ends our claim."""
        try:
            journal.catch_up(waiting[journal])
        except SurefootError as error:
            _settle(waiting.pop(journal), error)
            return
        if not any(ticket.entries for ticket in waiting[journal]):
            _settle(waiting.pop(journal), None)

    def _wake_writer(self) -> None:
        if self._calls is None:
            self._calls = SimpleQueue()
            threading.Thread(target=self._serve, args=(self._calls,), name="surefoot-writer", daemon=True).start()
        self._calls.put(True)

    def _serve(self, calls: SimpleQueue[bool]) -> None:
        while calls.get():
            self._lead()

    def close(self) -> None:
        if self._calls is not None:
            self._calls.put(False)
            self._calls = None


def _settle(tickets: list[Ticket], error: SurefootError | None) -> None:
    for ticket in tickets:
        ticket.error = error
        ticket.done = True


def _wake(ticket: Ticket) -> None:
    if ticket.gate is not None:
        ticket.gate.release()
    elif ticket.notify is not None:
        ticket.notify()
