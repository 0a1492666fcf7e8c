"""The whole engine from a seed: several processes on one simulated store, one thread, no real time (L1).

Every operation on the store is a place where the seed may let something happen: the process dies (before or after the
operation), the store fails (before, or after it has written: nobody hears back), another process takes the run over
because it holds this one for dead, another one merely comes by, or a person writes an entry. What another process does
there it does to its end, inside the operation; then the first one goes on, and must notice.

One seed is one schedule: `flow=linear level=L1 seed=17` is the same each time. One that fails is shrunk to the faults that
it takes, by the number of the operation: `flow=linear level=L1 at=9:taken-over seed=17`.
"""

from __future__ import annotations

import contextlib
import contextvars
import json
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any
from weakref import WeakValueDictionary

import surefoot as sf
from surefoot.core.entry import RunAdopted, RunCancelled, RunDone, RunFailed, RunReleased, RunStopped
from surefoot.core.seal import from_record
from surefoot.core.timer import MICROS
from surefoot.engine.drive import acts, claimant
from surefoot.engine.process import config, runtime
from surefoot.errors import Fenced, NotFound, StoreUnavailable, SurefootError, UsageError
from surefoot.store.memory import MemoryStore
from surefoot.testing.children import Tell, in_child
from surefoot.testing.clock import FastClock
from tests.crash import broken, invariants, stage
from tests.crash.invariants import Findings, Golden, Journal, world_of
from tests.crash.programs import ANY, flow_of, written
from tests.crash.scenario import Outcome, Scenario

FLOWS_HERE = (
    "linear",
    "loop",
    "probe",
    "repair",
    "saga",
    "timer",
    "approval",
    "retry",
    "doubt",
    "large",
    "event",
    "deaf",
    "refuse",
    "pair",
    "conflict",
)
"""Those that need nothing but a store, and whose order does not depend on threads."""
LIKELY = 0.12
MOST_FAULTS = 5
MOST_LIVES = 20
MOST_NAPS = 5
"""So often a process looks again whether somebody else has let go of the run; a lost race takes one look."""
BATCH_SECONDS = 300
LETS_GO = (RunReleased, RunStopped, RunDone, RunFailed, RunCancelled)
FAULTS = ("dies-before", "dies-after", "fails-before", "fails-after", "taken-over", "passed-by", "visited")
"""`taken-over`: by a process that holds this one for dead; `passed-by`: by one that sees it alive, and leaves it alone."""


def scenarios(flow: str, seeds: Iterable[int], engine: str = "") -> list[Scenario]:
    """Of any program: for each seed another one."""
    return [Scenario(written(seed) if flow == ANY else flow, "L1", "", seed, engine) for seed in seeds]


def run_all(batch: Sequence[Scenario]) -> Iterator[Outcome]:
    """In one child for all: they leave nothing behind but what a process takes with it."""

    def work(tell: Tell) -> None:
        stage.hush([])
        for scenario in batch:
            _golden(scenario.flow)
        broken.install(batch[0].broken)
        for scenario in batch:
            tell(json.dumps(asdict(lived(scenario))).encode() + b"\n")

    ended = in_child(work, seconds=BATCH_SECONDS)
    told = [Outcome(**json.loads(line)) for line in ended.report.splitlines()]
    yield from told
    for scenario in batch[len(told) :][:1]:
        why = "did not end" if ended.late else f"ended with {ended.signal or ended.code}: {ended.trouble[-600:]}"
        yield Outcome(str(scenario), "L1", [f"I-20: the schedule {why}"])


def lived(scenario: Scenario) -> Outcome:
    schedule = Schedule(scenario)
    outcome = schedule.run()
    return _shrunk(scenario, schedule.fired, outcome) if outcome.violations and not scenario.at else outcome


def _shrunk(scenario: Scenario, fired: list[tuple[int, str]], outcome: Outcome) -> Outcome:
    """The same failure, with as few faults as it takes."""
    for drop in [None, *fired]:
        fewer = [fault for fault in fired if fault != drop]
        at = ",".join(f"{number}:{fault}" for number, fault in fewer)
        tried = Schedule(replace(scenario, at=at)).run() if at else outcome
        if at and tried.violations:
            outcome, fired = tried, fewer
    return outcome


class Dead(BaseException):
    """The simulated process is no more; whatever it still tries fails."""


class Impatient(BaseException):
    """It would wait for another process. In one thread that is for ever."""


class Process(stage.Stage):
    """A simulated process: its handle on the store, its clock, its part of the world."""

    def __init__(self, schedule: Schedule, number: int) -> None:
        self.schedule = schedule
        self.life = number
        self.goals = schedule.goals
        self.dead = self.presumed_dead = False
        self.naps = 0
        self.driving: Any = WeakValueDictionary()
        self.clock = FastClock((stage.EPOCH_SECONDS + number * stage.LIFE_SECONDS) * MICROS)
        self.open()

    def open(self) -> None:
        """A handle that failed is given up, and another one opened."""
        self.store = SimStore(self)
        self.runtime = _Runtime(self.store, self.clock)

    def note(self, do: str, what: str, **more: Any) -> None:
        if self.dead:
            raise Dead
        self.schedule.lines.append({"do": do, "what": what, "life": self.life, **more})

    act = note

    def look(self, what: str = "*") -> list[dict[str, Any]]:
        return [line for line in self.schedule.lines if what in (line["what"], "*")]


class _Runtime(runtime.Runtime):
    def watch(self, session: Any) -> None:
        """No ticker: nothing here takes a second."""


class SimStore:
    """A process's handle on the one store."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._core = process.schedule.core
        self._failed = False
        self.worker = f"{process.life:016x}"

    @property
    def usable(self) -> bool:
        return not self._failed

    def alive(self, worker: str) -> bool:
        return self._process.schedule.lives(worker)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._core, name)
        return found if not callable(found) else lambda *args, **more: self._do(name, lambda: found(*args, **more))

    def _do(self, name: str, perform: Callable[[], Any]) -> Any:
        process = self._process
        if process.dead:
            raise Dead
        if self._failed:
            raise StoreUnavailable("this handle was given up. Open the store again.")
        fault = process.schedule.fault(process, writes=name in ("append", "rewrite_together"))
        if fault in ("taken-over", "passed-by", "visited"):
            process.schedule.meanwhile(process, fault)
        if fault == "dies-before":
            process.dead = True
            raise Dead
        if fault == "fails-before":
            self._fail()
        answer = perform()
        if name == "holds" and fault == "taken-over":
            answer = False  # Whoever is held for dead has lost its lease by then, and finds that out by looking.
        if fault == "dies-after":
            process.dead = True
            raise Dead
        if fault == "fails-after":
            process.schedule.goals.add("a commit nobody heard back from")
            self._fail()
        return answer

    def _fail(self) -> None:
        self._failed = True
        raise StoreUnavailable("the store failed, says the schedule. Try again.")


class Schedule:
    """One seed."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.luck = random.Random(f"{scenario.flow} {scenario.seed}")
        self.core = MemoryStore("memory:simulated")
        self.lines: list[dict[str, Any]] = []
        self.goals: set[str] = set()
        self.processes: list[Process] = []
        self.fired: list[tuple[int, str]] = []
        self._given = scenario.plans()[0] if scenario.at else None
        self.odd: list[tuple[str, str]] = []
        """What the other processes met that must not be."""
        self._operations = 0
        self.quiet = False

    def run(self) -> Outcome:
        outcome = Outcome(str(self.scenario), "L1")
        golden = _golden(self.scenario.flow)
        found = Findings()
        with _simulated():
            result = self._lived(found)
        stored = self._journal()
        invariants.journal_holds(found, stored, self.lines, "recovered")
        invariants.waits_hold(found, stored)
        for invariant, what in self.odd:
            found.add(invariant, what)
        if not found and result != golden.result:
            found.add("I-05", f"the result is {result}, and should be {golden.result}")
        if not found and world_of(self.lines) != golden.world:
            found.add("I-05", f"the world is left as {world_of(self.lines)}, and should be {golden.world}")
        outcome.violations = list(found)
        outcome.goals = sorted(self.goals)
        outcome.fired = [f"{number}:{fault}" for number, fault in self.fired]
        if not self.fired:
            outcome.uncounted = "the seed let nothing happen"
        return outcome

    def _lived(self, found: Findings) -> Any:
        """Process after process, until one comes to the end."""
        for _ in range(MOST_LIVES):
            process = self._process()
            before, lines = self._journal(), list(self.lines)
            try:
                return stage.comparable(self._as(process, lambda process=process: self._live(process)))
            except Dead:
                invariants.journal_holds(found, self._journal(), self.lines, "crashed")
            except Impatient:
                found.add("I-20", "the only living process waits for another one")
                return None
            except SurefootError as error:
                found.add("I-20", f"it ended with {type(error).__name__}: {error}")
                return None
            except Exception as error:
                found.add("I-20", f"{error!r} from the depths")
                return None
            finally:
                invariants.monotone(found, before, self._journal())
                invariants.not_again(found, before, self._journal(), lines, self.lines)
            process.dead = True
        found.add("I-20", f"still not done after {MOST_LIVES} processes")
        return None

    def _live(self, process: Process) -> Any:
        """What a user would do: a store that failed is tried again, a run that was taken over is asked for."""
        for _ in range(MOST_FAULTS + 3):
            try:
                return flow_of(self.scenario.flow).live()
            except StoreUnavailable:
                process.open()
            except Fenced:
                self.goals.add("fenced, and nothing done after that")
        raise AssertionError("the faults of a schedule are fewer than that")

    # --- what may happen -------------------------------------------------------------------------------

    def fault(self, process: Process, *, writes: bool) -> str:
        if self.quiet:
            return ""
        self._operations += 1
        if self._given is not None:
            fault = self._given.get(self._operations, "")
        elif len(self.fired) >= MOST_FAULTS or self.luck.random() > LIKELY:
            return ""
        else:
            fault = self.luck.choice(FAULTS)
        if fault.endswith("after") and not writes:
            fault = fault.replace("after", "before")
        if fault:
            self.fired.append((self._operations, fault))
        return fault

    def meanwhile(self, process: Process, what: str) -> None:
        """Others act inside an operation of this process."""
        other = self._process()
        quiet, self.quiet = self.quiet, True
        try:
            if what != "visited":
                process.presumed_dead = what == "taken-over"
                acts, claimed = len(self.lines), self._is_claimed_by(process)
                with contextlib.suppress(Impatient):
                    self._others_end(other)
                if not process.presumed_dead and claimed and self._acts_since(acts):
                    self.lines.append({"do": "broken in", "what": "r", "life": other.life})
                process.presumed_dead = False
                self.goals.add(what.replace("-", " "))
            else:
                with contextlib.suppress(NotFound, UsageError):  # it has not begun, or has ended meanwhile
                    self._as(other, self._visit)
        finally:
            self.quiet = quiet
            other.dead = True

    def _others_end(self, other: Process) -> None:
        """Whoever comes to the end has the right result, too."""
        try:
            result = stage.comparable(self._as(other, lambda: self._live(other)))
        except SurefootError as error:
            self.odd.append(("I-20", f"another process ended with {type(error).__name__}: {error}"))
            return
        if result != _golden(self.scenario.flow).result:
            self.odd.append(("I-05", f"another process had the result {result}"))

    def _acts_since(self, count: int) -> bool:
        return any(line["do"] in ("did", "undid", "step") for line in self.lines[count:])

    def _is_claimed_by(self, process: Process) -> bool:
        """Whether it drives the run at this moment."""
        claimant = ""
        for record in self.core._journals.get("r", []):
            entry = from_record(record)
            if isinstance(entry, RunAdopted):
                claimant = entry.worker
            elif isinstance(entry, LETS_GO):
                claimant = ""
        return claimant == process.store.worker

    def _visit(self) -> None:
        handle = sf.get_run("r")
        if handle.status not in ("done", "failed", "cancelled"):
            handle.send_event("gossip", {"n": len(self.lines)}, id=f"g{len(self.lines)}")
            self.goals.add("visited")

    def lives(self, worker: str) -> bool:
        process = self.processes[int(worker, 16)]
        return not (process.dead or process.presumed_dead)

    def _process(self) -> Process:
        process = Process(self, len(self.processes))
        self.processes.append(process)
        return process

    def _as(self, process: Process, act: Callable[[], Any]) -> Any:
        """Be another process: its stage, its store, its memory of which runs it drives."""
        kept = stage._stage, _current[0], runtime._driving
        stage._stage, _current[0], runtime._driving = process, process, process.driving
        try:
            return contextvars.Context().run(act)
        finally:
            stage._stage, _current[0], runtime._driving = kept

    def _journal(self) -> Journal:
        core = self.core
        records = {run: list(found) for run, found in core._journals.items() if found}
        heads = {run: (found[-1].seq, found[-1].seal) for run, found in records.items()}
        return Journal(records, heads, dict(core._quarantine), core.id)


_current: list[Process | None] = [None]
_goldens: dict[str, Golden] = {}


def _golden(flow: str) -> Golden:
    """The undisturbed run, by an engine that is not broken: with nothing to excuse it, it violates nothing."""
    found = _goldens.get(flow)
    told = flow_of(flow).told
    if told is not None:
        return Golden(*told, [])
    if found is None:
        schedule = Schedule(Scenario(flow, "L1"))
        schedule.quiet = True
        wrong = Findings()
        with _simulated():
            result = schedule._lived(wrong)
        if wrong:
            raise AssertionError(f"flow {flow} fails without any fault: {wrong}")
        found = _goldens[flow] = Golden(result, world_of(schedule.lines), [])
    return found


@contextlib.contextmanager
def _simulated() -> Iterator[None]:
    """Everything that reaches for a store or waits reaches for the process at hand."""
    kept = config.runtime, acts.nap, claimant.is_ours

    def at_hand(url: str | None = None, *, create: bool) -> Any:
        process = _current[0]
        if process is None:
            raise AssertionError("no process is simulated")
        return process.runtime

    def nap(seconds: float) -> None:
        process = _current[0]
        if process is None:
            kept[1](seconds)
            return
        process.naps += 1
        if process.naps > MOST_NAPS:
            raise Impatient

    def is_ours(worker: str) -> bool:
        return _current[0] is not None and worker == _current[0].store.worker

    config.runtime, acts.nap, claimant.is_ours = at_hand, nap, is_ours
    try:
        yield
    finally:
        config.runtime, acts.nap, claimant.is_ours = kept
