"""Drives a named run: loads, rehearses and claims it, and runs its function until it ends, stops or waits.

Others decide which runs are driven, and when: the search of embedded workers, or another engine. Blocking workflows get
a thread each, async ones share a loop; neither can block the search that gives out runs, nor the store's own thread
that keeps the lease alive. Two drivers never drive one run: the claim is a compare-and-append.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Final

from surefoot.core.command import Routine
from surefoot.core.entry import RunCreated
from surefoot.core.state import RunState
from surefoot.core.visible import shorten
from surefoot.engine.declare.registry import Definition, another, owning, registry, several
from surefoot.engine.drive import fallback, perform, start
from surefoot.engine.drive.outcome import not_found
from surefoot.engine.drive.takeover import Ended, LeftToOthers, PassedBy, Takeover, taking_up
from surefoot.engine.process import config, journal
from surefoot.engine.process.runtime import Runtime
from surefoot.engine.worker import stand
from surefoot.engine.worker.loop import SharedLoop
from surefoot.engine.worker.stand import DriveResult, Stand
from surefoot.errors import JournalCorrupt, StepFailed, Stopped, StoreUnavailable, SurefootError
from surefoot.store.contract import Head, Stored

if TYPE_CHECKING:
    from concurrent.futures import Future

log = logging.getLogger("surefoot")
OPENERS: Final = 4
"""Threads that read the runs to drive."""
READ_TOGETHER: Final = 32
"""Journals in one request to the store: they are in memory together."""
TOLD_WIDTH: Final = 1000
"""The most characters of a workflow's error in one line of the log."""
MOST_LEFT: Final = 100_000
"""The most runs that a driver remembers to leave alone; it checks the others again."""
STEP_THREADS: Final = 32
LOOK_SECONDS: Final = 0.1
"""How often a driver that is being closed checks for runs that were claimed meanwhile."""


class Driver:
    """Drives runs of the workflows in `served`: as many at once as it gets."""

    def __init__(
        self,
        served: Callable[[], Sequence[Definition]] = registry.all,
        *,
        store: str | None = None,
        threads: int = STEP_THREADS,
    ) -> None:
        self.served = served
        self.runtime = config.runtime(store, create=True)
        self.ended: dict[str, int] = {}
        """How the drives have ended, counted: done, failed, stopped, suspended, …"""
        self.store_url = store
        """As given; None: what the process is configured for."""
        self._under_way: dict[str, Future[DriveResult]] = {}
        self._left: dict[str, float] = {}
        """Runs that are left to other code -> until when they are not checked here."""
        self._told_of: set[tuple[str, str]] = set()
        self._taken: SimpleQueue[Sequence[str] | None] = SimpleQueue()
        self._openers: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self._loop = SharedLoop(max(STEP_THREADS, threads))

    # -- from outside -----------------------------------------------------------------------------------

    def drive(self, run: str) -> Future[DriveResult]:
        """Drive the run in the background. The future never fails: the outcome is a value.

        A run that is already being driven here is not begun twice: the result is that drive.
        """
        return self.drive_all([run])[0]

    def drive_all(self, runs: Sequence[str]) -> list[Future[DriveResult]]:
        """Drive each of them, read with as few requests to the store as possible."""
        from concurrent.futures import Future

        with self._lock:
            new = [run for run in dict.fromkeys(runs) if run not in self._under_way]
            for run in new:
                self._under_way[run] = Future()
                self._under_way[run].set_running_or_notify_cancel()  # From here on it cannot be cancelled.
            futures = [self._under_way[run] for run in runs]
            if new and not self._openers:
                self._openers = [threading.Thread(target=self._open_runs, daemon=True) for _ in range(OPENERS)]
                for opener in self._openers:
                    opener.start()
        for first in range(0, len(new), READ_TOGETHER):
            self._taken.put(new[first : first + READ_TOGETHER])
        return futures

    def names(self) -> tuple[str, ...]:
        """Every name under which runs of its workflows may be recorded."""
        return tuple(dict.fromkeys(name for each in self.served() for name in each.identity.names))

    @property
    def busy(self) -> tuple[str, ...]:
        """The runs it drives at this moment."""
        with self._lock:
            return tuple(sorted(self._under_way))

    def leaves(self, run: str) -> bool:
        """Whether the run is left alone here for now: it needs the code of other workers."""
        with self._lock:
            if self._left.get(run, 0.0) > time.monotonic():
                return True
            self._left.pop(run, None)
            return False

    def look(self, run: str) -> Stand | None:
        """The state of the run, by its journal. None: it cannot be read, or does not exist."""
        try:
            found = journal.load(self.runtime.store, run)
            return None if found is None else stand.of(self.runtime, found[0])
        except SurefootError:
            return None

    def hand_back(self, runs: Iterable[str]) -> None:
        """Let calls in flight of these runs finish, begin no others, and release the runs. Others may go on at once."""
        ours = set(runs)
        for session in self.runtime.driven():
            if session.run in ours:
                session.stops.hand_back()

    def close(self, grace_seconds: float) -> None:
        """Hand everything back. Calls that take longer are left running: then the process has to end."""
        deadline = time.monotonic() + grace_seconds
        with self._idle:
            while self._under_way and (left := deadline - time.monotonic()) > 0:
                self.hand_back(self._under_way)
                self._idle.wait(min(left, LOOK_SECONDS))
            unfinished = sorted(self._under_way)
        if unfinished:
            log.warning(
                "worker: %d run(s) did not come to a call's end within %g s: %s. What was in flight there is in "
                "doubt for whoever takes them up.", len(unfinished), grace_seconds, ", ".join(unfinished[:10]),
            )  # fmt: skip
        else:
            self._loop.close()
        for _ in self._openers:
            self._taken.put(None)

    def reopen(self) -> None:
        """Open a store anew that was given up after a failure."""
        if not self.runtime.store.usable:
            self.runtime = config.runtime(self.store_url, create=False)

    # -- opening ----------------------------------------------------------------------------------------

    def _open_runs(self) -> None:
        while (runs := self._taken.get()) is not None:
            runtime = self.runtime
            try:
                stored: Sequence[Stored | None] = runtime.store.read_all(runs)
            except StoreUnavailable as error:  # The same error for each of them, without the same wait each time.
                for run in runs:
                    self._conclude(runtime, run, None, Ended(error))
                continue
            except Exception:  # noqa: BLE001 - something is wrong with one of them: each is read by itself
                stored = [None] * len(runs)
            for run, one in zip(runs, stored, strict=True):
                self._open(runtime, run, one)

    def _open(self, runtime: Runtime, run: str, stored: Stored | None) -> None:
        """Drive the run in a thread of its own (blocking) or in the loop (async)."""
        state = None
        try:
            opened = self._loaded(runtime, run, stored)
            if opened is None:
                self._conclude(runtime, run, None, PassedBy())
                return
            definition, found = opened
            state = found[0]
            loop = taking_up(runtime, definition.resume_plan(), run, found)
            then = partial(self._conclude, runtime, run, state)
            if definition.is_async:
                from surefoot.engine.drive import perform_async

                self._loop.submit(perform_async.run(loop)).add_done_callback(lambda done: then(_ended(done)))
            else:
                name = f"surefoot-run-{run[:40]}"
                threading.Thread(target=_drive, args=(loop, then), name=name, daemon=True).start()
        except BaseException as error:  # noqa: BLE001 - one run must not end the others
            self._conclude(runtime, run, state, Ended(error))

    def _loaded(
        self, runtime: Runtime, run: str, stored: Stored | None
    ) -> tuple[Definition, tuple[RunState, Head]] | None:
        """The run and its code. None: the run is not ours."""
        try:
            found = journal.load(runtime.store, run, stored)
        except JournalCorrupt as error:
            if not self._steps_back(runtime, run, error):
                return None
            raise
        if found is None or found[0].created is None:
            raise not_found(run, runtime.store.url)
        owner = self._owner(run, found[0].created)
        return None if owner is None else (owner, found)

    def _owner(self, run: str, created: RunCreated) -> Definition | None:
        owners = owning(self.served(), created)
        if len(owners) == 1:
            return owners[0]
        if len(owners) > 1:
            raise several(created.workflow, owners)
        self._leave(run, math.inf)
        if (created.workflow, created.module) not in self._told_of:
            self._told_of.add((created.workflow, created.module))
            named = [each for each in self.served() if created.workflow in each.identity.names]
            log.warning("worker: run %s and others like it are left to others: %s", run, another(created, named))
        return None

    def _steps_back(self, runtime: Runtime, run: str, error: JournalCorrupt) -> bool:
        """Step back to its valid part, if its workflow allows that; then the run is ready again. False: not ours."""
        workflow = ""
        try:
            created = fallback.survey(runtime.store, run).state.created
            workflow = created.workflow if created is not None else ""
            owner = registry.find(workflow) if created is None else self._owner(run, created)
            if owner is None:
                return False
            self.runtime = start.step_back(runtime, owner.resume_plan(), run, error)
        except JournalCorrupt:
            fallback.shelve(runtime.store, run, workflow, type(error).__name__)
        return True

    # -- concluding -------------------------------------------------------------------------------------

    def _conclude(self, runtime: Runtime, run: str, state: RunState | None, end: Takeover) -> None:
        how, error = stand.how(end), end.error if isinstance(end, Ended) else None
        if error is not None and how not in stand.QUIET:
            _tell(run, how, error)
        if isinstance(end, LeftToOthers):
            self._leave(run, stand.LEFT_SECONDS)
        result = DriveResult(run, how, self._stand(runtime, run, state, end), error)
        with self._lock:
            future = self._under_way.pop(run)
            self.ended[how] = self.ended.get(how, 0) + 1
            self._idle.notify_all()
        future.set_result(result)

    def _stand(self, runtime: Runtime, run: str, state: RunState | None, end: Takeover) -> Stand | None:
        """This process has folded its own entries, so most runs need not be read again."""
        how = stand.how(end)
        try:
            if state is not None and how not in stand.UNCERTAIN:
                return stand.of(runtime, state)
            if isinstance(end, Ended) and isinstance(end.error, StoreUnavailable):
                return None  # Each request to a store that is away takes its time.
            found = self.look(run)
            return stand.rested(found, end, runtime.clock.now()) if found and how == stand.PASSED_BY else found
        except Exception:  # noqa: BLE001 - the drive has ended, whatever comes of this look
            return None

    def _leave(self, run: str, seconds: float) -> None:
        with self._lock:
            while len(self._left) >= MOST_LEFT:
                del self._left[next(iter(self._left))]
            self._left[run] = time.monotonic() + seconds


def _drive(loop: Routine[Takeover], then: Callable[[Takeover], None]) -> None:
    try:
        end = perform.run(loop)
    except BaseException as error:  # noqa: BLE001 - one run must not end the others
        end = Ended(error)
    then(end)


def _ended(done: Future[Takeover]) -> Takeover:
    error = KeyboardInterrupt() if done.cancelled() else done.exception()
    return done.result() if error is None else Ended(error)


def _tell(run: str, how: str, error: BaseException) -> None:
    """Log one line for each stop or failure: nothing else reports it here. The traceback is logged at DEBUG."""
    told = (
        [(type(stop).__name__, stop.summary) for stop in error.stops] if isinstance(error, Stopped) else [_said(error)]
    )
    head = f"run {run}:" if how == stand.TROUBLE else f"run {run} {how}:"
    for kind, message in told:
        plain = message.removeprefix(f"run {run}, ").removeprefix(f"run {run}: ")
        log.warning("worker: %s %s", head, shorten(f"{kind}: {plain}" if plain else kind, TOLD_WIDTH))
    if how == stand.FAILED:
        log.debug("worker: run %s failed here:", run, exc_info=error)


def _said(error: BaseException) -> tuple[str, str]:
    if isinstance(error, StepFailed):
        return error.type, error.message
    try:
        return type(error).__name__, str(error)
    except Exception as broken:  # noqa: BLE001 - __str__ of user code; the failure must be told all the same
        return type(error).__name__, f"<its __str__ raised {type(broken).__name__}>"
