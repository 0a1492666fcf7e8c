"""A worker: takes up runs that can go on, drives them, and lets go of those that have to wait.

Which runs those are the store says (`reserve`), a hint that costs nothing if it is wrong: the claim is a
compare-and-append, so two workers never drive one run. Blocking workflows get a thread each, async ones share a loop;
neither can hold up the thread that looks for work, nor the store's own thread that keeps the lease alive.

A worker that is stopped lets the calls in flight finish, begins no others, and hands its runs back. One that is killed
leaves its claims behind: others take them up once its lock or its lease is gone.
"""

from __future__ import annotations

import contextlib
import logging
import random
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, Self, assert_never

from surefoot.core.command import Routine
from surefoot.core.entry import RunCreated
from surefoot.core.state import QUEUED, STOPPED, RunState
from surefoot.core.timer import MICROS, Duration, seconds
from surefoot.core.visible import shorten
from surefoot.engine import code, config, deploying, fallback, journal, perform, queues, start
from surefoot.engine.ending import Suspended
from surefoot.engine.outcome import not_found
from surefoot.engine.registry import Definition, another, owning, registry, several
from surefoot.engine.runtime import Runtime
from surefoot.engine.takeover import Ended, LeftToOthers, PassedBy, Takeover, taking_up
from surefoot.errors import (
    Cancelled,
    Damaged,
    Fenced,
    JournalCorrupt,
    StepFailed,
    Stopped,
    StoreUnavailable,
    UsageError,
)
from surefoot.store.contract import Head, Reserved, RunQuery, Serving, Stored, Wanted
from surefoot.store.rules import serves

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Future

log = logging.getLogger("surefoot")
POLL_SECONDS: Final = 1.0
"""The net below notifications: how often a worker looks without being told."""
SHORTEST_POLL_SECONDS: Final = 0.005
FIRST_BACK_OFF_SECONDS, LONGEST_BACK_OFF_SECONDS = 0.25, 10.0
SWEEP_SECONDS: Final = 600.0
"""How often lines of the index that are missing or damaged are looked for: their runs would never be woken."""
OPENERS: Final = 4
"""Threads that read the runs which were taken."""
READ_TOGETHER: Final = 32
"""Journals in one question to the store: they are in memory together."""
LOOKED_AT: Final = 1000
"""So many runs, the newest and those that are queued, may show that a queue is in use."""
TOLD_WIDTH: Final = 1000
"""A line of the log holds at most so much of an error that a workflow made."""
PASSED_BY: Final = "passed by"
QUIET: Final = frozenset({"done", "suspended", "cancelled", PASSED_BY})
"""Ends that need nobody."""
OVER: Final = frozenset({"done", "cancelled", "failed"})
"""Ends after which a run waits for nothing."""
LEFT_SECONDS: Final = 15.0
"""So long a run that is left to workers with other code is not looked at again."""
MOST_FOREIGN: Final = 100_000
"""Of so many runs a worker remembers that they are not its own; of any other it finds out again."""
DEFAULT_CONCURRENCY: Final = 10
DEFAULT_GRACE: Final = "30s"


class Worker:
    """Drives runs of the workflows that this process knows.

    `queue` names the queues it serves (all, unless given), `concurrency` how many runs it drives at once, `workflows`
    the ones it drives (all that were imported, unless given). `with sf.Worker(): …` works in the background;
    `sf.Worker().run()` until `stop` is called.
    """

    def __init__(
        self,
        *,
        store: str | None = None,
        queue: str | Sequence[str] | None = None,
        concurrency: int = DEFAULT_CONCURRENCY,
        workflows: Iterable[Any] | None = None,
        grace: Duration = DEFAULT_GRACE,
    ) -> None:
        if type(concurrency) is not int or concurrency < 1:
            raise UsageError(f"sf.Worker(concurrency={concurrency!r}): must be a whole number, one or more")
        self.concurrency = concurrency
        self.queues = (queue,) if isinstance(queue, str) else tuple(map(str, queue or ()))
        self.grace_seconds = seconds(grace)
        self._only = None if workflows is None else [_definition(workflow) for workflow in workflows]
        self._store_url = store
        self._runs: set[str] = set()
        self._said: tuple[Runtime, Serving] | None = None
        """What others were told about this worker, and where."""
        self._again: list[str] = []
        """Runs that stand still because of their code: what they met there may be mended in the code at hand."""
        self._left: dict[str, float] = {}
        """Runs that are left to workers with other code -> until when they are not looked at here."""
        self._foreign: dict[str, None] = {}
        """Runs that belong to workflows of the same name in other modules: not ours."""
        self._told_of: set[tuple[str, str]] = set()
        self._taken: SimpleQueue[Sequence[str] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._looping: threading.Thread | None = None
        self._over = threading.Event()
        """The loop is no longer needed."""
        self._swept = 0.0
        self._more = True
        """More runs may be ready than there was room for when it last looked."""
        self.ended: dict[str, int] = {}
        """How the runs that this worker took up ended here, counted: done, failed, stopped, suspended, …"""
        self.runtime = config.runtime(store, create=True)

    # -- from outside -----------------------------------------------------------------------------------

    def run(self) -> None:
        """Work in this thread until `stop` is called."""
        self._require_distinct()
        self._survive(self._announce)
        self._survive(self._doubt_queues)
        self._survive(self._find_stopped)
        openers = [threading.Thread(target=self._open_runs, daemon=True) for _ in range(OPENERS)]
        try:
            for opener in openers:
                opener.start()
            while not self._stopping.is_set():
                self._survive(self._round)
        finally:
            self._stopping.set()
            self._hand_back()
            self._end_loop()
            with contextlib.suppress(StoreUnavailable):
                self.runtime.store.serve(None)
            for _ in openers:
                self._taken.put(None)

    def stop(self) -> None:
        """Take up nothing more; `run` returns when what is in flight has ended, or its time is over."""
        self._stopping.set()
        with contextlib.suppress(StoreUnavailable):
            self.runtime.store.nudge()

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._in_background, name="surefoot-worker", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        if self._thread is not None:
            self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _in_background(self) -> None:
        try:
            self.run()
        except BaseException as error:  # noqa: BLE001 - raised where the worker is waited for
            self._failure = error
            log.warning("worker: it has ended: %s: %s", type(error).__name__, error)

    @property
    def busy(self) -> tuple[str, ...]:
        """The runs it drives at this moment."""
        with self._lock:
            return tuple(sorted(self._runs))

    # -- looking for work -------------------------------------------------------------------------------

    def _survive(self, work: Callable[[], None]) -> None:
        """The store may go away and come back. What a worker had claimed meanwhile it still drives, or takes up again."""
        delay = FIRST_BACK_OFF_SECONDS
        while not self._stopping.is_set():
            try:
                if not self.runtime.store.usable:
                    self.runtime = config.runtime(self._store_url, create=False)
                work()
            except StoreUnavailable as error:
                log.warning("worker: the store is not available, trying again in %.1f s: %s", delay, error)
                self._stopping.wait(delay * (0.5 + random.random()))  # noqa: S311 - so that not all come at once
                delay = min(delay * 2, LONGEST_BACK_OFF_SECONDS)
            else:
                return

    def _doubt_queues(self) -> None:
        """A queue whose name was mistyped is served for ever, without a word."""
        if unknown := set(self.queues) - queues.declared() - {""}:
            looks = (RunQuery(status=status, limit=LOOKED_AT) for status in (None, QUEUED))
            listed = (one.row for look in looks for one in self.runtime.store.runs(look))
            for name in sorted(unknown - {row.queue for row in listed if row is not None}):
                log.warning(
                    "worker: no run is in queue %r, nor is it declared: if it is no mistake, declare sf.Queue(%r). "
                    "Declared are: %s.", name, name, ", ".join(sorted(queues.declared())) or "none",
                )  # fmt: skip

    def _announce(self) -> None:
        """Say what this worker serves, and with which code; again whenever that has changed."""
        runtime = self.runtime
        serving = Serving(tuple(sorted(self._known())), self.queues, code.digest())
        if self._said != (runtime, serving):
            runtime.store.serve(serving)
            self._said = runtime, serving

    def _find_stopped(self) -> None:
        """Runs that were stopped for their code are tried once by every worker that starts: a mended deploy goes on."""
        query = RunQuery(status=STOPPED, limit=LOOKED_AT)
        rows = (one.row for one in self.runtime.store.runs(query) if one.row is not None)
        self._again = [
            row.run
            for row in rows
            if row.reason in deploying.CODE_STOPS and serves(self._wanted(1), row.workflow, row.queue)
        ]

    def _round(self) -> None:
        self._sweep()
        self._announce()
        store, room = self.runtime.store, self.concurrency - len(self._runs)
        self._more = True
        reserved = store.reserve(self._wanted(room)) if room > 0 else Reserved([])
        self._more = len(reserved.runs) >= room or bool(queues.limits())
        ours = [run for run in reserved.runs if run not in self._foreign and not self._is_left(run)]
        self._take(ours)
        if spare := min(room - len(ours), len(self._again)):
            self._take(self._again[:spare])
            del self._again[:spare]
        if not reserved.runs or len(ours) == room:
            store.listen(self._pause(reserved.next_wake))

    def _is_left(self, run: str) -> bool:
        with self._lock:
            if self._left.get(run, 0.0) > time.monotonic():
                return True
            self._left.pop(run, None)
            return False

    def _wanted(self, room: int) -> Wanted:
        runtime = self.runtime
        return Wanted(
            runtime.store.worker, self._known(), room, runtime.clock.now(), self.queues, self._driven(), queues.limits()
        )

    def _served(self) -> list[Definition]:
        return self._only if self._only is not None else registry.all()

    def _known(self) -> tuple[str, ...]:
        """Every name under which runs of its workflows may be on record."""
        return tuple(dict.fromkeys(name for each in self._served() for name in each.identity.names))

    def _require_distinct(self) -> None:
        """Two workflows of one name would take each other's runs for their own."""
        served = self._served()
        if not served:
            raise UsageError("this worker knows no workflow: import the modules that define them first")
        by_name: dict[str, dict[str, Definition]] = {}
        for each in served:
            by_name.setdefault(each.name, {})[each.origin] = each
        for name, found in by_name.items():
            if len(found) > 1:
                raise several(name, found.values())

    def _driven(self) -> tuple[str, ...]:
        """Everything this process drives, this worker's or not."""
        with self._lock:
            ours = set(self._runs)
        return tuple(ours.union(session.run for session in self.runtime.driven()))

    def _pause(self, next_wake: int | None) -> float:
        if next_wake is None:
            return POLL_SECONDS
        left = (next_wake - self.runtime.clock.now()) / MICROS
        return max(SHORTEST_POLL_SECONDS, min(POLL_SECONDS, left))

    def _sweep(self) -> None:
        if self._swept and time.monotonic() - self._swept < SWEEP_SECONDS:
            return
        fallback.renew_lost_rows(self.runtime.store)
        self._swept = time.monotonic()

    # -- driving ----------------------------------------------------------------------------------------

    def _take(self, runs: Iterable[str]) -> None:
        with self._lock:
            new = [run for run in dict.fromkeys(runs) if run not in self._runs]
            self._runs.update(new)
        for first in range(0, len(new), READ_TOGETHER):
            self._taken.put(new[first : first + READ_TOGETHER])

    def _open_runs(self) -> None:
        while (runs := self._taken.get()) is not None:
            runtime = self.runtime
            try:
                stored: Sequence[Stored | None] = runtime.store.read_all(runs)
            except StoreUnavailable as error:  # as it would be for each of them, after the same wait
                for run in runs:
                    self._concluded(runtime, run, Ended(error))
                continue
            except Exception:  # noqa: BLE001 - something is wrong with one of them: each is read by itself
                stored = [None] * len(runs)
            for run, one in zip(runs, stored, strict=True):
                self._open(runtime, run, one)

    def _open(self, runtime: Runtime, run: str, stored: Stored | None) -> None:
        """Have the run driven in a thread of its own or in the loop, by its colour."""
        try:
            opened = self._opened(runtime, run, stored)
            if opened is None:
                self._concluded(runtime, run, PassedBy())
                return
            definition, found = opened
            loop = taking_up(runtime, definition.resume_plan(), run, found)
            if definition.is_async:
                self._hand_to_loop(runtime, run, loop)
            else:
                name = f"surefoot-run-{run[:40]}"
                threading.Thread(target=self._drive, args=(runtime, run, loop), name=name, daemon=True).start()
        except BaseException as error:  # noqa: BLE001 - one run must not end the worker
            self._concluded(runtime, run, Ended(error))

    def _drive(self, runtime: Runtime, run: str, loop: Routine[Takeover]) -> None:
        try:
            outcome = perform.run(loop)
        except BaseException as error:  # noqa: BLE001 - as above
            outcome = Ended(error)
        self._concluded(runtime, run, outcome)

    def _opened(
        self, runtime: Runtime, run: str, stored: Stored | None
    ) -> tuple[Definition, tuple[RunState, Head]] | None:
        """The run and its code. None: it is not ours."""
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
        owners = owning(self._served(), created)
        if len(owners) == 1:
            return owners[0]
        if len(owners) > 1:
            raise several(created.workflow, owners)
        while len(self._foreign) >= MOST_FOREIGN:
            del self._foreign[next(iter(self._foreign))]
        self._foreign[run] = None
        if (created.workflow, created.module) not in self._told_of:
            self._told_of.add((created.workflow, created.module))
            named = [each for each in self._served() if created.workflow in each.identity.names]
            log.warning("worker: run %s and others like it are left to others: %s", run, another(created, named))
        return None

    def _steps_back(self, runtime: Runtime, run: str, error: JournalCorrupt) -> bool:
        """To what is valid of it, if its workflow allows that; then it is ready to be taken up again. False: not ours."""
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

    def _hand_to_loop(self, runtime: Runtime, run: str, loop: Routine[Takeover]) -> None:
        import asyncio

        from surefoot.engine import perform_async

        future = asyncio.run_coroutine_threadsafe(perform_async.run(loop), self._async_loop())
        future.add_done_callback(lambda done: self._ended(runtime, run, done))

    def _ended(self, runtime: Runtime, run: str, done: Future[Takeover]) -> None:
        error = KeyboardInterrupt() if done.cancelled() else done.exception()
        self._concluded(runtime, run, done.result() if error is None else Ended(error))

    def _concluded(self, runtime: Runtime, run: str, outcome: Takeover) -> None:
        how = _how(outcome)
        error = outcome.error if isinstance(outcome, Ended) else None
        if error is not None and how not in QUIET:
            _tell(run, how, error)
        with self._lock:
            if isinstance(outcome, LeftToOthers):
                self._left[run] = time.monotonic() + LEFT_SECONDS
            self._runs.discard(run)
            self.ended[how] = self.ended.get(how, 0) + 1
            self._idle.notify_all()
        if self._more or how not in OVER:
            with contextlib.suppress(StoreUnavailable):
                runtime.store.nudge()

    def _async_loop(self) -> asyncio.AbstractEventLoop:
        import asyncio
        from concurrent.futures import ThreadPoolExecutor

        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                # Blocking steps that async code hands to threads share these, and nothing of ours depends on them.
                pool = ThreadPoolExecutor(max(32, self.concurrency), thread_name_prefix="surefoot-steps")
                self._loop.set_default_executor(pool)
                self._looping = threading.Thread(
                    target=_serve, args=(self._loop, self._over.is_set), name="surefoot-loop", daemon=True
                )
                self._looping.start()
            return self._loop

    # -- stopping ---------------------------------------------------------------------------------------

    def _hand_back(self) -> None:
        deadline = time.monotonic() + self.grace_seconds
        with self._idle:
            while self._runs and (left := deadline - time.monotonic()) > 0:
                ours = set(self._runs)
                for session in self.runtime.driven():
                    if session.run in ours:
                        session.hand_back()
                self._idle.wait(min(left, 0.1))
            if self._runs:
                log.warning(
                    "worker: %d run(s) did not come to a call's end within %g s: %s. What was in flight there is in "
                    "doubt for whoever takes them up.",
                    len(self._runs), self.grace_seconds, ", ".join(sorted(self._runs)[:10]),
                )  # fmt: skip

    def _end_loop(self) -> None:
        """Unless something in it does not come to an end: then the process has to."""
        if self._loop is not None and self._looping is not None and not self._runs:
            self._over.set()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._looping.join()
            self._loop = self._looping = None


def _serve(loop: asyncio.AbstractEventLoop, is_over: Callable[[], bool]) -> None:
    while not is_over():
        try:
            loop.run_forever()
        except (SystemExit, KeyboardInterrupt) as error:
            # asyncio lets these through from any task, besides ending it. The other runs have nothing to do with it.
            log.warning("worker: a task of a workflow ended with %s; the worker goes on", type(error).__name__)
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()


def _tell(run: str, how: str, error: BaseException) -> None:
    """One line for each stop or failure: nobody else sees what happens in a worker. Where it was raised, for DEBUG."""
    told = (
        [(type(stop).__name__, stop.summary) for stop in error.stops] if isinstance(error, Stopped) else [_said(error)]
    )
    head = f"run {run}:" if how == "trouble" else f"run {run} {how}:"
    for kind, message in told:
        plain = message.removeprefix(f"run {run}, ").removeprefix(f"run {run}: ")
        log.warning("worker: %s %s", head, shorten(f"{kind}: {plain}" if plain else kind, TOLD_WIDTH))
    if how == "failed":
        log.debug("worker: run %s failed here:", run, exc_info=error)


def _said(error: BaseException) -> tuple[str, str]:
    if isinstance(error, StepFailed):
        return error.type, error.message
    try:
        return type(error).__name__, str(error)
    except Exception as broken:  # noqa: BLE001 - __str__ of user code; the failure must be told all the same
        return type(error).__name__, f"<its __str__ raised {type(broken).__name__}>"


def _how(outcome: Takeover) -> str:
    match outcome:
        case Suspended():
            return "suspended"
        case PassedBy() | LeftToOthers():
            return PASSED_BY
        case Ended(None):
            return "done"
        case Ended(Cancelled()):
            return "cancelled"
        case Ended(Damaged()):
            return "damaged"
        case Ended(Stopped()):
            return "stopped"
        case Ended(Fenced() | StoreUnavailable() | UsageError()):
            return "trouble"
        case Ended(Exception()):
            return "failed"
        case Ended():
            return "trouble"
        case _:
            assert_never(outcome)


def _definition(workflow: Any) -> Definition:
    definition = getattr(workflow, "definition", None)
    if not isinstance(definition, Definition):
        raise UsageError(f"sf.Worker(workflows=[…]): {workflow!r:.100} is not a workflow")
    return definition
