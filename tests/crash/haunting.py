"""Late landings (L10z): a process is silent in the middle of an effect, others take its run up, and then its call lands.

`flow=check+timeout+wait+patient+returns level=L10z at=9:dies-after seed=0`: the policy of the effect, what bounds it, when
the silent process comes back (while the other one waits, inside its own attempt, at its stop, after a person's word, at
its end), whether the person waits for it or says at once that nothing happened, and how the late call ends. `at` names
operations on the store at which those that take the run up die, or meet a store that fails.

Two engines on one simulated store, in two threads of which one runs at a time: whoever is silent holds still inside its
effect. What workers on PostgreSQL do in earnest is in tests/workers/test_zombies.py.

What is promised: nobody executes it a second time while the first may live, but by the bound that was declared, or by a
person's word; and then both ends say so: the run, which keeps the entry of the one that was late, and the logs of both.
"""

from __future__ import annotations

import contextlib
import json
import logging
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any, NamedTuple

import surefoot as sf
from surefoot.core.seal import from_record
from surefoot.core.state import was_in_doubt
from surefoot.engine.process import runtime
from surefoot.engine.session import late
from surefoot.errors import Fenced, StoreUnavailable, SurefootError
from surefoot.testing.children import Tell, in_child
from surefoot.testing.clock import FastClock
from tests.crash import broken, invariants, simulation, stage
from tests.crash.flows import PATIENCE, Endless
from tests.crash.invariants import Findings
from tests.crash.lab import LOUD
from tests.crash.play import RUN, acted, many
from tests.crash.scenario import Outcome, Scenario
from tests.crash.simulation import BATCH_SECONDS, Dead, Process, Schedule, SimStore
from tests.crash.stage import place

POLICIES = ("check", "check", "retry", "ask", "fail")
BOUNDS = ("timeout", "none")
RETURNS = ("wait", "inside", "stop", "settled", "end")
WORDS = ("patient", "hasty")
OUTCOMES = ("returns", "raises")
FAULTS = ("dies-before", "dies-after", "fails-before", "fails-after")
MOST_OPERATIONS = 45
"""So many operations on the store those that take the run up may make."""
SECONDS = 20
"""How long a hand-over may take before the lab itself is stuck."""
HERE, THERE = "executed here, too late", "executed too late by"


class Spec(NamedTuple):
    policy: str
    bound: str
    comes_back: str
    word: str
    outcome: str

    @classmethod
    def of(cls, scenario: Scenario) -> Spec:
        return cls(*scenario.flow.split("+"))


class Silent(SimStore):
    """A silent process is not proven dead; one that the lab has ended is."""

    def proven_dead(self, worker: str) -> bool:
        return self._process.schedule.processes[int(worker, 16)].dead

    def last_heard(self, worker: str) -> None:
        return None


class Haunted(Process):
    def open(self) -> None:
        self.store = Silent(self)
        self.runtime = simulation._Runtime(self.store, self.clock)


class Haunt(Schedule):
    """One scenario: the silent process, the one that takes the run up, and one that comes by when all is over."""

    def __init__(self, scenario: Scenario) -> None:
        super().__init__(scenario)
        self.spec = Spec.of(scenario)
        self._given = scenario.plans()[0] if scenario.at else {}
        self.found = Findings()
        self._arrived, self._go, self._over = threading.Event(), threading.Event(), threading.Event()
        self.fenced = self.is_back = False
        self.owed: list[Any] = []
        """What a process has executed and could not record; forgotten when it dies."""

    def _process(self) -> Process:
        process = Haunted(self, len(self.processes))
        self.processes.append(process)
        return process

    def fault(self, process: Process, *, writes: bool) -> str:
        """Not of the silent one: nothing happens to it but its silence."""
        return super().fault(process, writes=writes) if process.life else ""

    def run(self) -> Outcome:
        outcome = Outcome(str(self.scenario), self.scenario.level)
        log = logging.getLogger("surefoot")
        kept, log.handlers = log.handlers, [_Noting(self)]
        try:
            with simulation._simulated(), _in_one_thread(self):
                self._play()
        finally:
            log.handlers = kept
        self._judge()
        outcome.violations = list(self.found)
        outcome.goals = sorted(self.goals)
        outcome.uncounted = "" if self._is_late() else "nothing landed late"
        return outcome

    # --- the play ----------------------------------------------------------------------------------------

    def _play(self) -> None:
        first = self._process()
        silent = threading.Thread(target=self._first, args=(first,), daemon=True)
        self._hand_over(silent.start, self._arrived)
        first.presumed_dead = True
        while not self._live_as(self._next()):
            pass
        self._come_back()
        for process in self.processes:
            process.dead = True
        self.quiet = True
        self._live_as(self._next())

    def _next(self) -> Process:
        """A second after the one before."""
        process = self._process()
        process.clock = FastClock(self.processes[-2].clock.now() + 1_000_000, self._waits)
        process.runtime.clock = process.clock
        return process

    def _first(self, process: Process) -> None:
        try:
            self._as(process, self._program(process).run_it)
        except Fenced:
            self.fenced = True
        except (SurefootError, KeyError):
            pass  # Its call ended, and somebody else has the run: whatever it is told is not the run's story.
        finally:
            self._over.set()

    def _hand_over(self, begin: Callable[[], None], until: threading.Event) -> None:
        """The other thread is the process at hand, until it says so."""
        kept = stage._stage, simulation._current[0], runtime._driving
        begin()
        if not until.wait(SECONDS):
            raise AssertionError("the silent process does not come back")
        stage._stage, simulation._current[0], runtime._driving = kept

    def _come_back(self) -> None:
        if not self.is_back:
            self.is_back = True
            self._hand_over(self._go.set, self._over)

    def _silence(self, process: Process) -> None:
        """In the middle of the first effect."""
        self._arrived.set()
        if not self._go.wait(SECONDS):
            raise AssertionError("nobody wakes the silent process")
        stage._stage, simulation._current[0], runtime._driving = process, process, process.driving

    def _waits(self, side: str, now: int) -> None:
        if side == "before" and self.spec.comes_back == "wait":
            self._come_back()

    def _live_as(self, process: Process) -> bool:
        """Whether it came to the end of it."""
        try:
            self._as(process, lambda: self._answering(self._program(process)))
        except Dead:
            process.dead = True
            self.owed.clear()
            return False
        except SurefootError as error:
            self.found.add("I-20", f"process {process.life} ended with {type(error).__name__}: {error}")
        except Exception as error:
            self.found.add("I-20", f"{error!r} from the depths")
        return True

    def _answering(self, program: _Program) -> Any:
        for _ in range(PATIENCE):
            try:
                try:
                    return program.run_it()
                except sf.InDoubt as stop:
                    self.goals.add("InDoubt")
                    self._word(stop)
            except StoreUnavailable:
                self._reopen(program.process)
            except (sf.StepFailed, KeyError):
                return None
        raise Endless("it stops again and again")

    def _reopen(self, process: Process) -> None:
        """The store is there again: what could not be recorded is said now."""
        process.open()
        while self.owed:
            try:
                late._visit(self.owed[0])
                self.owed.pop(0)
            except StoreUnavailable:
                process.open()

    def _word(self, stop: sf.Stopped) -> None:
        if self.spec.comes_back == "stop" or self.spec.word == "patient":
            self._come_back()
        run = sf.get_run(RUN)
        if stop.address not in {past.address for past in run.state().in_doubt()}:
            return
        there = any(line["do"] == "did" for line in self.lines)
        with contextlib.suppress(sf.UsageError):  # The silent one holds the run, and lives.
            run.settle(stop.address, happened="ch_1", by="ann") if there else run.settle(
                stop.address, not_happened=True, by="ann"
            )
        if self.spec.comes_back == "settled":
            self._come_back()

    def _program(self, process: Process) -> _Program:
        return _Program(self, process)

    # --- what must never be ------------------------------------------------------------------------------

    def _landings(self) -> list[Any]:
        return [entry for entry in self._entries() if type(entry).__name__ == "EffectLandedLate"]

    def _is_late(self) -> bool:
        """Somebody else had looked, or had taken the run up, when the call of the silent process landed."""
        acts = [at for at, line in enumerate(self.lines) if line["do"] == "did" and line["life"] == 0]
        looked = any(line["do"] == "looked for" for line in self.lines[: acts[0]]) if acts else False
        return looked or bool(self._landings())

    def _entries(self) -> list[Any]:
        return [from_record(record) for record in self.core._journals.get(RUN, [])]

    def _judge(self) -> None:
        stored, entries = self._journal(), self._entries()
        invariants._chains(self.found, stored, "recovered")
        invariants._calls(self.found, stored, self.lines, "recovered")
        acts = [line for line in self.lines if line["do"] == "did"]
        words = [one for one in entries if type(one).__name__ == "EffectSettled"]
        word = any(not one.happened and one.learned_by == "person" for one in words)
        may_repeat = self.spec.policy == "retry" or (self.spec.policy == "check" and self.spec.bound == "timeout")
        if len(acts) > 1 and not (may_repeat or word):
            self.found.add("I-03", "executed twice, though the first process was not proven dead")
        if len({line["key"] for line in acts}) > 1:
            self.found.add("I-03", "executed under two keys")
        kinds = {type(entry).__name__ for entry in entries}
        known = any(one.happened for one in words) or "EffectDone" in kinds
        if len(acts) > 1 and not self._landings():
            self.found.add("I-33", "executed twice, and the one that was late has left no entry")
        if acts and self.fenced and not known and not self._landings():
            self.found.add("I-33", "executed by a process that had lost its claim, and the run knows nothing of it")
        said = [line["what"] for line in self.lines if line["do"] == "said"]
        if self._landings() and not any(HERE in text for text in said):
            self.found.add("I-33", "it landed late, and the process that did it has not said so")
        undisturbed = bool(self._landings()) and not self.fired and self._is_driven_when_it_lands()
        if undisturbed and not any(THERE in text for text in said):
            self.found.add("I-33", "it landed late, and the process that drives the run has not said so")
        for text in (text for text in said if any(word in text for word in LOUD)):
            self.found.add("I-11", f"nothing is damaged, and it said {text}")
        gave_up = [one for one in entries if type(one).__name__ == "EffectRaised" and was_in_doubt(one.error)]
        for end in (one for one in entries if type(one).__name__ == "RunFailed"):
            if gave_up and "charge#1" not in end.left:
                self.found.add("I-31", "the run has failed in doubt, and charge#1 is not on record as left")

    def _is_driven_when_it_lands(self) -> bool:
        """Whether somebody else held the run then, and wrote something after that."""
        names = [type(entry).__name__ for entry in self._entries()]
        at = names.index("EffectLandedLate")
        held = [name for name in names[:at] if name in ("RunAdopted", "RunStopped", "RunReleased")][-1:]
        return held == ["RunAdopted"] and names[at + 1 : at + 2] not in ([], ["RunAdopted"])


class _Program:
    """The code, as one process has it."""

    def __init__(self, haunt: Haunt, process: Process) -> None:
        spec, self.process = haunt.spec, process
        options = {"on_crash": spec.policy} | ({"timeout": "20s"} if spec.bound == "timeout" else {})

        def body(n: int) -> str:
            if process.life == 0:
                haunt._silence(process)
            elif spec.comes_back == "inside":
                haunt._come_back()
            acted("charge", n, "keyed" if spec.policy == "retry" else "once")
            if process.life == 0 and spec.outcome == "raises":
                raise KeyError("id")
            return f"ch_{n}"

        @sf.effect(**options)
        def charge(n: int) -> str:
            return body(n)

        if spec.policy == "check":

            @charge.check
            def charged(n: int) -> Any:
                haunt.lines.append({"do": "looked for", "what": f"charge {n}", **place()})
                return sf.happened(f"ch_{n}") if any(one["do"] == "did" for one in haunt.lines) else sf.not_happened()

        @sf.workflow(name="haunted")
        def haunted() -> Any:
            return charge(1)

        self.run_it: Callable[[], Any] = lambda: haunted.run(RUN)


class _Noting(logging.Handler):
    def __init__(self, haunt: Haunt) -> None:
        super().__init__()
        self._haunt = haunt

    def emit(self, record: logging.LogRecord) -> None:
        self._haunt.lines.append({"do": "said", "what": record.getMessage()})


@contextlib.contextmanager
def _in_one_thread(haunt: Haunt) -> Iterator[None]:
    """There is one open store, that of the process at hand; and what the engine would do beside it is done at once."""

    class Thread:
        def __init__(self, *, target: Callable[..., None], args: tuple[Any, ...] = (), **more: Any) -> None:
            self._owed = args if target is late._pay else ()
            self._act = lambda: target(*args, **more.get("kwargs", {}))

        def start(self) -> None:
            haunt.owed.extend(self._owed) if self._owed else self._act()

    kept = runtime.known, late.threading
    runtime.known = lambda: [simulation._current[0].runtime] if simulation._current[0] is not None else []
    late.threading = SimpleNamespace(Thread=Thread)
    try:
        yield
    finally:
        runtime.known, late.threading = kept


def run_all(batch: Sequence[Scenario]) -> Iterator[Outcome]:
    """In one child for all."""

    def work(tell: Tell) -> None:
        stage.hush([])
        broken.install(batch[0].broken)
        for scenario in batch:
            tell(json.dumps(asdict(Haunt(scenario).run())).encode() + b"\n")

    ended = in_child(work, seconds=BATCH_SECONDS)
    told = [Outcome(**json.loads(line)) for line in ended.report.splitlines()]
    yield from told
    for scenario in batch[len(told) :][:1]:
        why = "did not end" if ended.late else f"ended with {ended.signal or ended.code}: {ended.trouble[-600:]}"
        yield Outcome(str(scenario), scenario.level, [f"I-20: it {why}"])


def drawn(luck: random.Random, policy: str, **fixed: str) -> Scenario:
    choice = {
        "policy": policy, "bound": luck.choice(BOUNDS), "comes_back": luck.choice(RETURNS), "word": luck.choice(WORDS),
        "outcome": luck.choice(OUTCOMES),
    } | fixed  # fmt: skip
    struck = sorted(luck.sample(range(1, MOST_OPERATIONS), luck.choice((0, 1, 1, 2))))
    return Scenario("+".join(Spec(**choice)), "L10z", ",".join(f"{at}:{luck.choice(FAULTS)}" for at in struck))


scenarios = many(drawn)
"""L10z: `flow` is the policy."""
