"""Code is edited between a kill and the resume (L13): no effect twice, nothing executed before a stop, nothing stranded.

One case: the old program is killed behind a boundary, the edited one goes on. Where that stops because the code has
changed, one of the cures is done: the old code is put back, or the edit gets its declaration; and that has to bring the
run home. `L13` kills real processes at real boundaries of the store's files; `L13s` does the same in memory, behind every
write and every act, many times as fast.

The judge below knows nothing of the engine: the world says what was executed, the texts say what should be.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import sys
import threading
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import surefoot as sf
from surefoot.core import registry, values
from surefoot.engine.declare import call_spec, removal
from surefoot.engine.declare.rehearsal import _rehearsed
from surefoot.engine.process.config import settings
from surefoot.engine.session import turns
from surefoot.store.memory import MemoryStore
from surefoot.testing.children import Ended, Tell, in_child
from tests.crash import broken, edits, simulation, stage
from tests.crash.edits import WORKFLOWS, Edited, Program, Unfit, edited, on_one_line, parsed, source, ways
from tests.crash.flows import FLOWS
from tests.crash.lab import Lab, _told
from tests.crash.scenario import Outcome, Scenario

Line = dict[str, Any]
RUN = "r"
EVERYWHERE = "*"
BACK, DECLARE = "back", "declare"
CURES = (BACK, DECLARE)
KIND = "kind"
"""If new code has executed as a step what was an effect, the old code asks for an effect that is on record as a step:
that decorator stays, and only the rest is put back.
"""
OF_EACH = 5
"""So many boundaries of one program are real kills."""
PATIENCE = 12
"""So many effects in doubt are answered for."""
BATCH_SECONDS = 300
TURN_SECONDS = 0.25
"""So long an async program waits for a call of another task. In memory nothing takes longer; changed code never asks."""
CHANGED = ("CodeChanged", "SchemaMismatch")
WENT_ON, STOPPED = "the edited code went on", "the edited code stopped before anything"
STRUCK = "behind"
"""The fault: the process dies right behind a write or an act."""
TABLE = {
    "C-01": "no effect is executed twice without a declaration; a retry has the same key",
    "C-02": "a drive that ends with CodeChanged has executed no effect",
    "C-03": "user code is given the value that it was given first; and never another call's",
    "C-04": "no executed effect is passed over in silence",
    "C-05": "a retry, and an undo, has the arguments of the first attempt, defaults and enum values included",
    "C-06": "an ordinary or declared edit does not strand the run",
    "C-07": "what the stop offers brings the run home; its message says what helps",
    "C-08": "a step that was acted on is not asked again, one that was not is asked with today's arguments",
    "C-09": "in the end the world holds each effect of the program once, and what failed was taken back",
    "C-10": "a further resume gives the same result and executes nothing",
}


@dataclass(frozen=True)
class Case:
    """`PROGRAM;EDITS;CURE`"""

    old: Program
    edits: str
    cure: str

    def program(self, which: str) -> Edited:
        if which == "new":
            return edited(self.old, self.edits)
        if which == KIND:
            return edited(self.old, "+".join(edit for edit in self.edits.split("+") if _is_of_kind(edit)))
        if which == DECLARE:
            try:
                made = edited(self.old, edits.declared(self.edits))
            except Unfit:
                made = Edited(self.old, harmless=False)
            if made.harmless:
                return made
        return Edited(self.old)


def _is_of_kind(edit: str) -> bool:
    return edit.startswith("demote:")


@lru_cache(maxsize=256)
def case_of(flow: str) -> Case:
    program, edits_, cure = flow.split(";")
    return Case(parsed(program), edits_, cure)


def written(seed: int) -> str:
    """The case of that number: a program, edits of it, and what is done if they stop the run."""
    luck = random.Random(f"deployed {seed}")
    program = edits.written(luck.randrange(1 << 30))
    return f"{program};{edits.drawn(parsed(program), luck)};{luck.choice(CURES)}"


# --- what the calls of the programs do -------------------------------------------------------------------------------

_lock = threading.Lock()
_count = [0]


def _value(n: int) -> str:
    """Another one each time: whoever executes a call again gives something else."""
    with _lock:
        _count[0] += 1
        return f"{n}/{stage.stage().life}.{_count[0]}"


def acted(name: str, n: int, **args: Any) -> str:
    value = _value(n)
    stage.stage().act("did", str(n), kind=edits.EFFECTS[name], key=sf.key(), args=args, value=value, **stage.place())
    return value


def stepped(name: str, n: int, **args: Any) -> str:
    value = _value(n)
    stage.stage().note("step", str(n), args=args, value=value)
    return value


def touched(name: str, n: int, **args: Any) -> str:
    """A plain function acts as well; only nobody records it."""
    stage.stage().note("plain", str(n), args=args)
    return f"{n}/plain"


def undone(name: str, n: int, **args: Any) -> None:
    stage.stage().act("undid", str(n), kind="keyed", key=sf.key(), args=args)


def looked(n: int) -> Any:
    """What a check sees."""
    found = [line for line in stage.stage().look(str(n)) if line["do"] == "did"]
    return sf.happened(found[0]["value"]) if found else sf.not_happened()


def asks(n: int, words: str, about: Any) -> None:
    stage.stage().note("asks", str(n), words=words, dry=_is_dry())


def saw(n: int, words: str, about: Any, value: Any) -> Any:
    stage.stage().note("seen", str(n), words=words, about=about, value=value, dry=_is_dry())
    return value


def _is_dry() -> bool:
    """What a rehearsal hands out decides only how far it hears; nothing is done with it."""
    return _rehearsed.get() is not None


WORLD = {fn.__name__: fn for fn in (acted, stepped, touched, undone, looked, asks, saw)}


# --- a deploy --------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def _compiled(text: str) -> Any:
    return compile(text, "<edited>", "exec")


def deploy(program: Program) -> Any:
    """The workflow, as a process has it that has loaded this code and no other."""
    call_spec._effects.clear()
    removal._removed.clear()
    for cls in [cls for cls in registry.BY_CLASS if cls.__module__ in ("app", "elsewhere")]:
        registry._by_name.pop(registry.BY_CLASS.pop(cls).name, None)
    calls, _, workflows = source(program).partition(WORKFLOWS)
    elsewhere = types.ModuleType(program.module)
    here = elsewhere if program.module == "app" else types.ModuleType("app")
    for module, text in ((elsewhere, calls), (here, workflows)):
        sys.modules[module.__name__] = module
        module.__dict__.update({**WORLD, **_names(elsewhere)})
        exec(_compiled(text), module.__dict__)
    return here.main


def _names(module: types.ModuleType) -> dict[str, Any]:
    return {name: found for name, found in vars(module).items() if not name.startswith("__")}


def live(case: Case, which: str) -> dict[str, Any]:
    """Drive the run with this code, and answer for effects in doubt, until it ends or stops for another reason."""
    program = case.program(which).program
    main, told = deploy(program), {"end": "endless", "result": None, "said": "", "cures": 0}
    for _ in range(PATIENCE):
        stage.stage().note("begins", which)
        told = _driven(main, is_async=program.is_async)
        stage.stage().note("ends", told["end"])
        if told["end"] != "InDoubt":
            break
    return told


def _driven(main: Any, *, is_async: bool) -> dict[str, Any]:
    try:
        result = asyncio.run(main.run(RUN)) if is_async else main.run(RUN)
        return {"end": "done", "result": stage.comparable(result), "said": "", "cures": 1}
    except sf.Stopped as stop:
        stops = stop.stops or (stop,)
        names = {type(one).__name__ for one in stops}
        end = next(iter(names - {"InDoubt"}), "InDoubt")
        if end == "InDoubt":
            for one in stops:
                _settle(one.run_id or RUN, one.address)
        return {"end": end, "result": None, "said": str(stop), "cures": len(stop.cures)}
    except sf.SurefootError as error:
        return {"end": type(error).__name__, "result": None, "said": str(error), "cures": 1}


def _settle(run: str, address: str) -> None:
    """Somebody who looks at the world, and tells the truth."""
    handle = sf.get_run(run)
    call = next((call for call in handle.steps() if call.address == address), None)
    if call is None or address not in {past.address for past in handle.state().in_doubt()}:
        return
    n = json.loads(call.args)["n"]  # Whatever else it was passed: the code at hand may not know its classes.
    found = [line for line in stage.stage().look(str(n)) if line["do"] == "did" and line["run"] == run]
    if found:
        handle.settle(address, happened=found[-1]["value"], by="ann")
    else:
        handle.settle(address, not_happened=True, by="ann")


# --- in memory -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Moment:
    """All that is left if the process dies now: what is in the store, and in the world."""

    core: MemoryStore
    lines: list[Line]


class _Process(simulation.Process):
    def note(self, do: str, what: str, **more: Any) -> None:
        with self.schedule.lock:
            super().note(do, what, **more)

    def act(self, do: str, what: str, **more: Any) -> None:
        with self.schedule.lock:
            self.note(do, what, **more)
            self.schedule.passes()


class _Store(simulation.SimStore):
    def _do(self, name: str, perform: Callable[[], Any]) -> Any:
        with self._process.schedule.lock:
            answer = perform()
            if name in ("append", "rewrite_together"):
                self._process.schedule.passes()
            return answer


class _Memory:
    """One case, on one store in memory, from some moment on."""

    def __init__(self, since: Moment | None = None, *, keep: bool = False) -> None:
        self.core = _copied(since.core) if since is not None else MemoryStore("memory:edited")
        self.lines = list(since.lines) if since is not None else []
        self.goals: set[str] = set()
        self.lock = threading.RLock()
        self.moments: list[Moment] = []
        self._keep = keep
        self._lives = 0 if since is None else 1

    def live(self, case: Case, which: str) -> dict[str, Any]:
        process = _Process(self, self._lives)  # type: ignore[arg-type]
        process.store = _Store(process)
        process.runtime = simulation._Runtime(process.store, process.clock)
        self._lives += 1
        return dict(simulation.Schedule._as(self, process, lambda: live(case, which)))  # type: ignore[arg-type]

    def passes(self) -> None:
        """Behind a write or an act: here it may die."""
        if self._keep:
            self.moments.append(Moment(_copied(self.core), list(self.lines)))

    def lives(self, worker: str) -> bool:
        """Only the newest process does."""
        return int(worker, 16) == self._lives - 1


def _copied(core: MemoryStore) -> MemoryStore:
    made = MemoryStore(core.url)
    made.id = core.id
    made._journals = {run: list(records) for run, records in core._journals.items()}
    made._rows, made._parts, made._order = dict(core._rows), dict(core._parts), dict(core._order)
    made._appended, made._written = core._appended, core._written
    return made


def moments(flow: str) -> list[Moment]:
    """What a kill may leave of the old program, behind each of its boundaries."""
    memory, case = _Memory(keep=True), case_of(flow)
    told = memory.live(case, "old")
    if told["end"] != "done":
        raise AssertionError(f"{flow} fails without any fault: {told}")
    return memory.moments[:-1]


def simulated(scenario: Scenario, left: list[Moment]) -> Outcome:
    outcome, case = Outcome(str(scenario), scenario.level), case_of(scenario.flow)
    at = next(iter(scenario.plans()[0]))
    if at > len(left):
        outcome.uncounted = "the boundary was not reached"
        return outcome
    memory = _Memory(left[at - 1])
    outcome.goals, outcome.violations = lived(case, lambda which: memory.live(case, which), lambda: memory.lines)
    return outcome


def run_simulated(batch: Sequence[Scenario]) -> Iterator[Outcome]:
    """In one child for all, as the schedules of L1. `at=*`: behind every boundary."""

    def work(tell: Tell) -> None:
        stage.hush([])
        settings.in_flight_seconds = 0.0
        turns.PATIENCE_SECONDS = turns.SLACK_SECONDS = TURN_SECONDS  # type: ignore[misc]
        with simulation._simulated():
            known = {flow: moments(flow) for flow in {scenario.flow for scenario in batch}}
            broken.install(batch[0].broken)
            for scenario in batch:
                for one in _each(scenario, len(known[scenario.flow])):
                    tell(json.dumps(asdict(simulated(one, known[one.flow]))).encode() + b"\n")

    ended = in_child(work, seconds=BATCH_SECONDS)
    told = [Outcome(**json.loads(line)) for line in ended.report.splitlines()]
    yield from told
    if ended.code != 0:
        why = "did not end" if ended.late else f"ended with {ended.signal or ended.code}: {ended.trouble[-1600:]}"
        yield Outcome(str(batch[0]), batch[0].level, [f"I-20: a case of these {why}"])


def _each(scenario: Scenario, count: int) -> list[Scenario]:
    if scenario.at != EVERYWHERE:
        return [scenario]
    return [replace(scenario, at=f"{at}:{STRUCK}") for at in range(1, count + 1)]


# --- with real processes ---------------------------------------------------------------------------------------------


class Room(NamedTuple):
    """Where one case is lived."""

    lab: Lab
    folder: Path
    broken: str

    def live(self, case: Case, which: str, life: int, plan: dict[int, str]) -> Ended:
        def act() -> dict[str, Any]:
            settings.in_flight_seconds = 0.0
            return live(case, which)

        return self.lab._life(FLOWS["tiny"], self.folder, plan, life, act=act, broken_engine=self.broken)


def run_real(lab: Lab, scenario: Scenario) -> Outcome:
    outcome, case = Outcome(str(scenario), scenario.level), case_of(scenario.flow)
    room = Room(lab, lab._fresh(), scenario.broken)
    if not room.live(case, "old", 0, scenario.plans()[0]).killed:
        outcome.uncounted = "the boundary was not reached"
        return outcome
    if any(line["do"] == "ends" for line in lab._lines()):
        outcome.uncounted = "the run had ended"
        return outcome
    outcome.kills, lives = 1, itertools.count(1)

    def live_(which: str) -> dict[str, Any]:
        told = _told(room.live(case, which, next(lives), {}))
        if told["wrong"]:
            return {"end": "wrong", "result": None, "said": told["wrong"], "cures": 1}
        return dict(values.decode(told["result"].encode()))

    outcome.goals, outcome.violations = lived(case, live_, lab._lines)
    return outcome


def killed_somewhere(lab: Lab, flow: str, count: int, seed: int) -> list[Scenario]:
    """L13: a real SIGKILL at boundaries of the old program; some of them, of one case after the other."""
    found: list[Scenario] = []
    for number in itertools.count(seed * count):
        case = written(number)
        told = _told(Room(lab, lab._fresh(), "").live(case_of(case), "old", 0, {}))
        places = range(1, told["ended"])
        luck = random.Random(case)
        chosen = luck.sample(places, min(OF_EACH, len(places)))
        found += [Scenario(case, "L13", f"{at}:kill", number) for at in sorted(chosen)]
        if len(found) >= count:
            return found[:count]
    raise AssertionError


def everywhere(lab: Lab, flow: str, count: int, seed: int) -> list[Scenario]:
    """L13s: so many cases, each with a kill behind every boundary of the old program."""
    return [Scenario(written(number), "L13s", EVERYWHERE, number) for number in range(seed * count, (seed + 1) * count)]


# --- what follows the kill -------------------------------------------------------------------------------------------


def lived(
    case: Case, live_: Callable[[str], dict[str, Any]], lines: Callable[[], list[Line]]
) -> tuple[list[str], list[str]]:
    """Behind the kill: the edited program, its cure, and a further resume. What was met, and what was violated."""
    goals, wrong, last, told = list[str](), list[str](), "new", live_("new")
    if told["end"] == "done":
        goals.append(WENT_ON)
    elif case.program("new").harmless:
        wrong.append(f"C-06: {case.edits} ended with {told['end']}: {told['said']}")
    elif told["end"] not in CHANGED:
        wrong.append(f"I-20: {case.edits} ended with {told['end']}: {told['said']}")
    else:
        goals.append(STOPPED)
        wrong += [] if told["said"] and told["cures"] else [f"C-07: a bare stop: {told}"]
        last, told, more = _cured(case, live_, lines())
        goals.append(f"cured: {last or 'by hand'}")
        wrong += more
    if not wrong and last:
        wrong += _once_more(live_, last, told, lines)
    return goals, [*wrong, *Judge(case, lines(), last or case.cure, done=bool(last) and not wrong).violations()]


def _cured(
    case: Case, live_: Callable[[str], dict[str, Any]], lines: list[Line]
) -> tuple[str, dict[str, Any], list[str]]:
    """What was offered is done. If new code was executed before the stop was found, only one of the ways leads home: with
    the declaration the new effects belong to it, with the old code the old answers do.
    """
    clean = not any(line["life"] for line in acts(lines))
    tried = [case.cure] if clean else [case.cure, *(cure for cure in CURES if cure != case.cure)]
    tried += [KIND] if not clean and any(map(_is_of_kind, case.edits.split("+"))) else []
    told: dict[str, Any] = {}
    for cure in tried:
        told = live_(cure)
        if told["end"] == "done":
            return cure, told, []
    effects = {("step", str(node.n)) for node in case.old.effects()}
    out = [line for line in lines if line["do"] == "did" or (line["do"], line["what"]) in effects]
    if any(line["life"] for line in out):
        # Effects are out there as those of the new code, or as its steps. Whose they are is said for this run, by hand.
        return "", told, []
    return case.cure, told, [f"C-07: {' and '.join(tried)} ended with {told['end']}: {told['said']}"]


def _once_more(
    live_: Callable[[str], dict[str, Any]], last: str, told: dict[str, Any], lines: Callable[[], list[Line]]
) -> list[str]:
    before = len(acts(lines()))
    again = live_(last)
    wrong = []
    if again["end"] != "done" or again["result"] != told["result"]:
        wrong.append(f"C-10: {told} became {again}")
    if len(acts(lines())) != before:
        wrong.append(f"C-10: it executed {acts(lines())[before:]}")
    return wrong


# --- the judge -------------------------------------------------------------------------------------------------------


def acts(lines: list[Line]) -> list[Line]:
    return [line for line in lines if line["do"] in ("did", "undid", "plain", "step")]


class Judge:
    """Holds what is in the ledger against the texts."""

    def __init__(self, case: Case, lines: list[Line], last: str, *, done: bool) -> None:
        self._case = case
        self._lines = lines
        self._new = case.program("new")
        self._last = case.program(last)
        self._done = done
        self._did: dict[int, list[Line]] = {}
        for line in lines:
            if line["do"] == "did":
                self._did.setdefault(int(line["what"]), []).append(line)

    def violations(self) -> list[str]:
        found = [*self._twice(), *self._before_a_stop(), *self._values(), *self._steps(), *self._undos()]
        if self._done:
            found += self._in_the_end()
        return found

    def _twice(self) -> Iterator[str]:
        for n, lines in self._did.items():
            first = lines[0]
            for other in lines[1:]:
                if first["kind"] != "keyed":
                    yield f"C-01: effect {n} was executed twice"
                elif other["key"] != first["key"]:
                    yield f"C-01: effect {n} was repeated under another key"
                if other["args"] != first["args"]:
                    yield f"C-05: effect {n} was repeated with {other['args']}, not {first['args']}"
        for index, line in enumerate(self._lines):
            n = int(line["what"]) if line["do"] in ("plain", "step") else 0
            if n and any(one["do"] == "did" and one["what"] == line["what"] for one in self._lines[:index]):
                yield f"C-01: effect {n} was executed again as a {line['do']}"

    def _before_a_stop(self) -> Iterator[str]:
        since: list[Line] = []
        for line in self._lines:
            if line["do"] == "begins":
                since = []
            elif line["do"] in ("did", "undid", "step"):
                since.append(line)
            elif line["do"] == "ends" and line["what"] in CHANGED:
                yield from self._executed(since, line)

    def _executed(self, since: list[Line], line: Line) -> Iterator[str]:
        """A new step in one branch hides what follows it there, and meanwhile other branches may go on. An attempt that
        the kill cut off is no new effect: what is on record is asked for, and made under its key; so is a child that was
        begun. What is declared as new begins at once.
        """
        begun = {one["what"] for one in self._lines if one["do"] == "asks" and one["life"] == 0}
        begun |= {str(n) for n, way in ways(self._case.old).items() if _in_child(way)}
        programs = (self._new.program, self._last.program)
        said_new = {str(node.n) for one in programs for node in one.calls() if _is_said_new(one, node)}
        done = [one for one in since if one["do"] != "step" and one["what"] not in begun | said_new]
        may = len(done) < len(since) and any(
            node.name in edits.BRANCHING for node, _ in edits.walked(self._new.program.block)
        )
        if done and not may:
            yield f"C-02: it executed {[(one['do'], one['what']) for one in done]} and ended with {line['what']}"

    def _values(self) -> Iterator[str]:
        first: dict[tuple[str, str, Any], str] = {}
        made = {line["value"]: line for line in self._lines if line["do"] in ("did", "step")}
        for line in self._lines:
            if (
                line["do"] == "begins"
                and line["what"] in CURES
                and self._case.program(line["what"]).program == self._case.old
            ):
                first = {key: value for key, value in first.items() if made[value]["life"] == 0}  # As of the old code.
            if line["do"] != "seen" or line["dry"] or str(line["value"]).endswith("/plain"):
                continue
            key, value = (line["what"], line["words"], line["about"]), line["value"]
            n = int(key[0])
            # A step of that name was moved away, and another one put in its place: as a reworded one would be.
            replaced = (n >= edits.FIRST_NEW and self._new.anew) or self._replaces(n, made.get(value))
            if not replaced and (value not in made or made[value]["what"] != line["what"]):
                yield f"C-03: call {key[0]} was given {value}, which is not its own"
            if n in self._new.anew or n in self._new.reworded or self._replaces(n, made.get(value)):
                continue
            if first.setdefault(key, value) != value:
                yield f"C-03: call {key[0]} was given {first[key]} at first, and {value} later"

    def _replaces(self, n: int, line: Line | None) -> bool:
        """Whether that step of its name was taken out, and this one was moved over an effect, to where it stood."""
        if line is None or n not in self._new.shifted:
            return False
        names = {str(node.n): node.name for node in self._case.old.calls()}
        left = {str(node.n) for node in self._new.program.calls()}
        return line["what"] not in left and names.get(line["what"]) == names.get(str(n))

    def _steps(self) -> Iterator[str]:
        """Reworded steps: what they gave is kept if it was acted on; else they are asked anew."""
        killed = next(index for index, line in enumerate(self._lines[1:], 1) if line["do"] == "begins")
        old, later = self._lines[:killed], self._lines[killed:]
        lines = ways(self._case.old)
        effects = {node.n for node in self._case.old.effects()}
        made = {line["value"]: line for line in self._lines if line["do"] == "step"}
        if self._last.program != self._new.program:
            return
        again = {line["what"] for line in later if line["do"] == "step" and int(line["what"]) in self._new.reworded}
        known = {line["what"] for line in old if line["do"] == "seen"}
        if len(again & known) > edits.RERUN_LIMIT:
            yield f"C-08: {len(again & known)} steps were paid for again, and nobody was asked"
        for n in self._new.reworded - effects:
            at = next((index for index, line in enumerate(old) if (line["do"], line["what"]) == ("seen", str(n))), None)
            if at is None or n in self._new.anew | self._new.unclear or "noted" in str(self._options(n)):
                continue
            after = [line for line in old[at:] if self._follows(n, line, lines)]
            if any(line["do"] == "did" for line in after):
                if any((line["do"], line["what"]) == ("step", str(n)) for line in later):
                    yield f"C-08: step {n} was acted on, and is asked again"
            elif not after and not any(node.name == "child" for node, _ in edits.walked(self._case.old.block)):
                for line in later:
                    if (line["do"], line["what"], line.get("words"), line.get("dry")) != ("seen", str(n), "b", False):
                        continue
                    if made[line["value"]]["args"]["words"] != "b":
                        yield f"C-08: step {n} was not acted on, and its answer to another question is given"

    def _follows(self, n: int, line: Line, known: dict[int, edits.Way]) -> bool:
        """Whether that is an effect on the line of that step. What a child does is the child's."""
        if line["do"] not in ("did", "asks"):
            return False
        m = int(line["what"])
        is_effect = m in {node.n for node in self._case.old.effects()}
        return is_effect and not (_in_child(known[m]) and not _in_child(known[n])) and on_one_line(known[n], known[m])

    def _options(self, n: int) -> tuple[str, ...]:
        found = next((node for node in self._new.program.calls() if node.n == n), None)
        return self._new.program.definition(found.name).options if found is not None else ()

    def _undos(self) -> Iterator[str]:
        undos: dict[str, list[Line]] = {}
        for line in self._lines:
            if line["do"] == "undid":
                undos.setdefault(line["what"], []).append(line)
        for what, lines in undos.items():
            did = self._did.get(int(what))
            if did is None:
                yield f"C-09: effect {what} was undone, and never done"
            elif {json.dumps(line["args"]) for line in lines} != {json.dumps(did[0]["args"])}:
                yield f"C-05: effect {what} was done with {did[0]['args']} and undone with {lines[0]['args']}"
            if len({line["key"] for line in lines}) > 1:
                yield f"C-01: the undo of {what} was repeated under another key"

    def _in_the_end(self) -> Iterator[str]:
        if not any(line["life"] and line["do"] in ("seen", "asks", "did", "undid", "step") for line in self._lines):
            return  # It had ended before the kill: the edited code was never called.
        program = self._last.program
        wanted = {node.n for node in program.effects() if program.definition(node.name).kind == "effect"}
        inside = {n for one in (self._case.old, program) for n, way in ways(one).items() if _in_child(way)}
        for n in wanted - self._did.keys() - {n for n in inside if n >= edits.FIRST_NEW}:
            yield f"C-09: effect {n} was never executed"
        asked = {node.n for node in program.calls()} | inside  # A child may have ended before the code was changed.
        for n in self._did.keys() - asked - self._last.dropped:
            yield f"C-04: effect {n} was executed, and passed over in silence"
        for node in program.effects():
            done = self._did.get(node.n, [{"args": {"words": node.words}}])[-1]["args"]["words"]
            if (
                done != node.words
                and "noted" not in str(program.definition(node.name).options)
                and node.n not in inside
            ):
                yield f"C-05: effect {node.n} was executed with {done!r}, is asked for with {node.words!r}, and nobody says so"
        undone = {int(line["what"]) for line in self._lines if line["do"] == "undid"}
        ended = inside if program != self._case.old else set()
        for n in (_undoing(program) ^ undone) - ended - self._last.dropped:
            yield f"C-09: effect {n} is {'left' if n not in undone else 'undone'}, and should not be"


def _is_said_new(program: Program, node: edits.Node) -> bool:
    return "was=None" in program.definition(node.name).options


def _in_child(way: edits.Way) -> bool:
    return any(part.startswith("child") for part in way)


def _undoing(program: Program) -> set[int]:
    """What a failing saga takes back."""
    found: set[int] = set()
    for node, _ in edits.walked(program.block):
        if node.name == "failing":
            inside = [one for one, way in edits.walked(node.blocks[0]) if one.n and not _in_child(way)]
            made = {one.n: program.definition(one.name) for one in inside}
            found |= {n for n, definition in made.items() if (definition.body, definition.kind) == ("hold", "effect")}
    return found
