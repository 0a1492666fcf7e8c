"""May this process write: the claim on a run, and the lease under it.

A run is claimed only when something new has to happen (*going live*). Looking, planning and reaching the same stop
again leave no trace in the journal.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from msgspec import Struct

from surefoot.core.claim import Refusal
from surefoot.core.entry import RunAdopted, RunCreated
from surefoot.core.state import RunState
from surefoot.engine.declare import code, drifts
from surefoot.engine.declare.signals import LostSignal
from surefoot.engine.process.commit import Ticket
from surefoot.engine.process.journal import Journal
from surefoot.engine.process.runtime import Runtime
from surefoot.engine.session.stops import Stops
from surefoot.errors import Fenced, StoreUnavailable, SurefootError

REGAIN_SECONDS, REGAIN_LOOK_SECONDS = 30.0, 0.05


class Birth(Struct, frozen=True):
    """A run that is created when something of it is to be recorded."""

    created: RunCreated
    ready: Callable[[], object]
    """Returns once it may be created."""


class Claim:
    """The claim of one process on one run, from the request to the loss of its lease."""

    def __init__(self, runtime: Runtime, state: RunState, journal: Journal, stops: Stops) -> None:
        self._runtime = runtime
        self._state = state
        self._journal = journal
        self._stops = stops
        self.lock = threading.Lock()
        """Held while the claim is written: two branches that go live at once claim the run once."""
        self.live = False
        """Whether this process has claimed the run."""
        self.worker = ""
        """The name under which this process claimed the run."""
        self.rehearses = False
        """Whether the run is claimed before its code is rehearsed."""
        self.birth: Birth | None = None
        """Of a run that is created at its first call."""

    def ticket(self, created: RunCreated | None = None) -> Ticket:
        """The entries that claim the run, ready to be committed."""
        runtime = self._runtime
        if created is None and self.birth is not None:
            created = self.birth.created
        claim, folder = runtime.clock.uuid4().hex, drifts.here()
        self.worker = runtime.store.worker
        host, pid = os.uname().nodename, os.getpid()
        adopted = RunAdopted(self.worker, host, pid, claim, folder, code.digest(), self.rehearses)
        return self._journal.claim(adopted, created)

    def prepare(self) -> None:
        """Before it is written: what a run that is created at its first call waits for."""
        if self.birth is not None and not self.live:
            try:
                self.birth.ready()
            except SurefootError as error:
                raise self._stops.store_failed(error) from None

    @property
    def advanced(self) -> bool:
        """Whether anything new was recorded in this drive."""
        return self.live and self._state.starts == 0

    def regain(self) -> None:
        """The lease ran out, so others may have taken the run up. Go on only if the lease runs again and none did.

        Once the lease runs again no other process can take the run up, so that reading of the journal is final.
        """
        store, run, pause = self._runtime.store, self._state.run, threading.Event()
        waited = 0.0
        while not store.holds():
            if not store.usable:
                # Another call of this process failed on the store: no outcome can be recorded any more.
                gone = StoreUnavailable(f"run {run}: the store was given up after a failure. Run it again.")
                raise self._stops.store_failed(gone)
            if waited > REGAIN_SECONDS:
                lost = Fenced(f"run {run}: the lease of this worker ran out and could not be renewed.")
                raise self._stops.store_failed(lost)
            pause.wait(REGAIN_LOOK_SECONDS)
            waited += REGAIN_LOOK_SECONDS
        try:
            refused = self._journal.look()
        except SurefootError as error:
            raise self._stops.store_failed(error) from None
        if refused is not None:
            raise self.refused(refused)

    def refused(self, refusal: Refusal) -> BaseException:
        """Another process has the run. That is no trouble if the run was only replayed here."""
        if self.live:
            return self._stops.store_failed(Fenced(refusal.why))
        self._stops.lost = refusal
        return LostSignal()
