"""Lives scenarios: a process dies or fails at a boundary, another one recovers, a third one looks at what is left.

The lab is a warm parent without threads and without a store; every life is a forked child. The process that examines
knows nothing of the faults, nor of the broken engine that a negative control puts into the others.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from surefoot.engine.process import config
from surefoot.errors import Stopped, SurefootError
from surefoot.store.open import close_all
from surefoot.testing.children import Ended, Tell, in_child
from tests.crash import broken
from tests.crash.faults import ERRORS, KILLS, SYNC, WRITE, Shim, modes
from tests.crash.flows import Bare, Flow
from tests.crash.invariants import Case, Golden, bytes_in, examine, went_wrong, world_of
from tests.crash.programs import flow_of
from tests.crash.scenario import Outcome, Scenario
from tests.crash.stage import Stage, comparable, stage
from tests.ledger import Line, ledger_process

LIFE_SECONDS = 30
LOUD = ("fell back", "quarantined", "damaged")
"""Words of a warning that what was there is given up. Then a result may be another one; but only if something was
damaged on purpose: an error of a system call damages nothing."""
MAY_BE_SILENT = {
    "sync of runs.db-wal on closing": "before it is folded in: each commit in it was synced by itself",
    "write of runs.db on closing": "the log is folded into the database; what it holds is durable, and stays there",
    "sync of runs.db on closing": "the same: the log goes only after this has succeeded",
}
"""Errors of writing or syncing the store that nobody is told of, and why that is right. None of them is met while a call
waits for what it writes."""
MOST_DESCRIPTORS = 2
"""How many more descriptors a process may have after it closed its stores: those of the interpreter itself."""


class Recovery(NamedTuple):
    boundaries: int
    reads: int


class Lab:
    """One at a time: it has a room in the ledger and a folder in memory."""

    def __init__(self, port: int, folder: Path) -> None:
        self.folder = folder
        self._port = port
        self._line = Line(port)
        self._golden: dict[tuple[str, str], Golden] = {}
        self._recoveries: dict[tuple[str, int], Recovery] = {}
        self._rooms = 0
        self._room = ""

    # --- scenarios -----------------------------------------------------------------------------------

    def run(self, scenario: Scenario) -> Outcome:
        outcome = Outcome(str(scenario), scenario.level)
        try:
            self._lived(scenario, outcome)
        except _Uncounted as why:
            outcome.uncounted = str(why)
        return outcome

    def golden(self, name: str, broken_engine: str = "") -> Golden:
        """The undisturbed run of a flow: its boundaries, its result, and what it does to the world."""
        found = self._golden.get((name, broken_engine))
        if found is None:
            found = self._golden[name, broken_engine] = self._undisturbed(flow_of(name), broken_engine)
        return found

    def _undisturbed(self, flow: Flow, broken_engine: str) -> Golden:
        template = self.folder / f"template-{flow.name}"
        folder = self._fresh()
        if not template.exists():
            for prepare in flow.prepare:
                self._life(flow, folder, {}, 0, act=prepare)
            shutil.copytree(folder, template)
            (self.folder / f"template-{flow.name}.json").write_text(json.dumps(self._lines()))
        prepared = json.loads((self.folder / f"template-{flow.name}.json").read_text())
        self._fill(folder, template, prepared)
        ended = self._life(flow, folder, {}, 1, broken_engine=broken_engine)
        told = _told(ended)
        if told.get("wrong") or told.get("error"):
            if broken_engine:
                return self.golden(flow.name)
            raise AssertionError(f"flow {flow.name} fails without any fault: {told}")
        log = [(kind, name) for kind, name in told["log"]]
        if broken_engine:
            return replace(self.golden(flow.name), log=log)
        if flow.refused and told["result"] != comparable({"r": flow.refused}):
            raise AssertionError(
                f"flow {flow.name} has to be refused with {flow.refused}, and came to {told['result']}"
            )
        result, world = flow.told or (told["result"], world_of(self._lines()))
        return Golden(result, world, log, flow.damaged, flow.refused, prepared, bytes_in(folder), flow.free)

    def recovery(self, name: str, first: int) -> Recovery:
        """How long the life is of a process that takes up a run which was killed at this boundary."""
        found = self._recoveries.get((name, first))
        if found is None:
            flow, golden, folder = flow_of(name), self.golden(name), self._fresh()
            self._fill(folder, self.folder / f"template-{name}", golden.lines)
            self._life(flow, folder, {first: "kill"}, 1)
            told = _told(self._life(flow, folder, {}, 2))
            found = self._recoveries[name, first] = Recovery(len(told.get("log", ())), told.get("reads", 0))
        return found

    def _lived(self, scenario: Scenario, outcome: Outcome) -> None:
        flow, golden = flow_of(scenario.flow), self.golden(scenario.flow, scenario.broken)
        folder, crashed = self._fresh(), self.folder / "crashed"
        self._fill(folder, self.folder / f"template-{flow.name}", golden.lines)
        plans = scenario.plans() if scenario.at else []
        if not plans and not flow.damaged:
            raise _Uncounted("no fault was asked for")
        for life, plan in enumerate(plans, 1):
            ended = self._life(flow, folder, plan, life, broken_engine=scenario.broken)
            self._struck(ended, plan, golden, outcome)
        shutil.rmtree(crashed, ignore_errors=True)
        shutil.copytree(folder, crashed)
        self.recovered(scenario, outcome, golden, crashed, self._lines(), folder, len(plans) + 1)

    def recovered(
        self,
        scenario: Scenario,
        outcome: Outcome,
        golden: Golden,
        crashed: Path,
        crashed_lines: list[dict[str, Any]],
        folder: Path,
        life: int,
    ) -> None:
        """The last process, which nothing disturbs; and then the look at everything."""
        flow = flow_of(scenario.flow)
        ended = self._life(flow, folder, {}, life, broken_engine=scenario.broken, twice=True)
        told = _told(ended)
        outcome.goals += told.get("goals", [])
        case = Case(golden, crashed, crashed_lines, folder, self._lines(), told)
        outcome.violations += self._examined(case)

    def _struck(self, ended: Ended, plan: dict[int, str], golden: Golden, outcome: Outcome) -> None:
        """Whether the faults of one process fired: only then the scenario counts. What it answered must be right, too."""
        if ended.killed and set(plan.values()) & set(KILLS):
            outcome.kills += 1
            return
        told = _told(ended)
        outcome.goals += told.get("goals", [])
        if told.get("wrong"):
            outcome.violations.append(went_wrong(told))
        elif not told.get("fired"):
            raise _Uncounted("the boundary was not reached")
        elif told["loud"] and not golden.damaged:
            outcome.violations.append(f"I-11: nothing is damaged, and it said {told['loud']}")
        elif not (told["error"] or told["loud"] or told["declined"] or golden.free) and told["result"] != golden.result:
            outcome.violations.append(f"I-05: it answered {told['result']}, and should have {golden.result}")
        outcome.violations += [f"I-25: {leak}" for leak in told["leaks"]]
        outcome.errors += 1
        if "said" in told:
            outcome.said = told["said"]
            outcome.silent += [] if told["said"] else _unsaid(told, plan)
            outcome.violations += [
                f"I-21: {one} failed, and nobody said so" for one in outcome.silent if one not in MAY_BE_SILENT
            ]

    def _examined(self, case: Case) -> list[str]:
        def look(tell: Tell) -> None:
            _quiet()
            tell(json.dumps(examine(case)).encode())

        ended = in_child(look, seconds=LIFE_SECONDS)
        if ended.code != 0:
            raise AssertionError(f"the examination itself failed: {ended.trouble or ended}")
        return list(json.loads(ended.report))

    # --- lives ---------------------------------------------------------------------------------------

    def _life(
        self,
        flow: Flow,
        folder: Path,
        plan: dict[int, str],
        life: int,
        *,
        broken_engine: str = "",
        twice: bool = False,
        trace: bool = False,
        act: Callable[[], Any] | None = None,
    ) -> Ended:
        port, room = self._port, self._room

        def live(tell: Tell) -> None:
            _quiet()
            broken.install(broken_engine)
            before = _descriptors()
            shim = Shim(str(folder), plan, trace=trace)
            here = Stage(port, room, shim, life)
            here.enter()
            told = _lived_through(
                act or flow.live, twice=twice, tries=2 if set(plan.values()) & {*ERRORS, "short"} else 1
            )
            with contextlib.suppress(SurefootError):
                here.leave()
            told["leaks"] = _leaks(before)
            told |= {"log": shim.log, "reads": shim.reads, "fired": shim.fired, "goals": sorted(here.goals)}
            told["loud"] = [text for text in here.loud if any(word in text for word in LOUD)]
            told["declined"] = here.declined
            if trace:
                told["events"] = [_plain(event) for event in shim.events or []]
            tell(json.dumps(told, default=str).encode())

        return in_child(live, seconds=LIFE_SECONDS)

    def traced(self, flow: Flow, broken_engine: str = "") -> list[list[Any]]:
        """All that an undisturbed run writes and syncs, in order."""
        self.golden(flow.name, broken_engine)
        folder = self._fresh()
        return list(_told(self._life(flow, folder, {}, 1, trace=True, broken_engine=broken_engine))["events"])

    # --- folders and rooms -----------------------------------------------------------------------------

    def empty(self, lines: list[dict[str, Any]]) -> tuple[Path, Path]:
        """A folder to build a crashed state in, with a world that holds these lines; and a place for its copy."""
        folder = self._fresh()
        self._preload(lines)
        return folder, self.folder / "crashed"

    def _fresh(self) -> Path:
        """A new folder, and a new room in the ledger."""
        self._line.ask(do="clear", room=self._room)
        self._rooms += 1
        self._room = f"{os.getpid()}.{self._rooms}"
        folder = self.folder / "work"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        return folder

    def _fill(self, folder: Path, template: Path, lines: list[dict[str, Any]]) -> None:
        if any(template.iterdir()):
            shutil.rmtree(folder)
            shutil.copytree(template, folder)
        self._preload(lines)

    def _preload(self, lines: list[dict[str, Any]]) -> None:
        self._line.ask(do="clear", room=self._room)
        for line in lines:
            self._line.ask(**{**line, "room": self._room})

    def _lines(self) -> list[dict[str, Any]]:
        return list(self._line.ask(do="look", what="*", room=self._room))

    def close(self) -> None:
        self._line.close()


def _unsaid(told: dict[str, Any], plan: dict[int, str]) -> list[str]:
    """Which writes and syncs of the store failed, though no error was said."""
    struck = [(number, plan[number], *told["log"][number - 1]) for number in told["fired"] if number > 0]
    return [
        f"{kind} of {name}{' on closing' if number > told['ended'] else ''}"
        for number, mode, kind, name in struck
        if mode in modes(kind, "L4") and kind in (WRITE, SYNC) and name in ("runs.db", "runs.db-wal")
    ]


class _Uncounted(Exception):
    """The scenario did not become what it was meant to be."""


@contextlib.contextmanager
def open_lab() -> Iterator[Lab]:
    memory = "/dev/shm"
    folder = Path(tempfile.mkdtemp(prefix="surefoot-lab-", dir=memory if os.access(memory, os.W_OK) else None))
    try:
        with ledger_process() as port, contextlib.closing(Lab(port, folder)) as lab:
            yield lab
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# --- in a child ------------------------------------------------------------------------------------------------------


def _quiet() -> None:
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    os.close(nothing)


def _lived_through(live: Callable[[], Any], *, twice: bool, tries: int) -> dict[str, Any]:
    """What came of it. `error`: a named error of ours; `wrong`: anything else, which must not be.

    `said` is the error of the first try, and `ended` how many boundaries there were by then.
    """
    first: dict[str, Any] = {}
    told: dict[str, Any] = {}
    for _ in range(tries):
        told = {"result": None, "error": "", "wrong": "", "bare": False, **first}
        try:
            told["result"] = comparable(live())
            break
        except SurefootError as error:
            told["error"] = f"{type(error).__name__}: {error}"
            if not str(error) or (isinstance(error, Stopped) and not error.cures):
                told |= {"wrong": f"a bare {type(error).__name__}", "bare": True}
        except Bare as error:
            told |= {"wrong": repr(error), "bare": True}
        except BaseException as error:
            told["wrong"] = f"{error!r} from the depths: {traceback.format_exc()[-900:]}"
        finally:
            first = first or {"said": told["error"].partition(":")[0], "ended": len(stage().shim.log)}
            told |= first
        if told["wrong"]:
            return told  # that a second try goes better is no excuse
    if twice and not told["error"] and not told["wrong"]:
        told["again"] = _once_more(live)
    return told


def _once_more(live: Callable[[], Any]) -> dict[str, Any]:
    before, world = _journal(), world_acts()
    close_all()
    try:
        result = comparable(live())
    except Exception as error:
        return {"result": repr(error), "changed": f"it raised {error!r}"}
    changed = [
        name for name, same in (("the journal", _journal() == before), ("the world", world_acts() == world)) if not same
    ]
    stage().goals.add("resumed twice")
    return {"result": result, "changed": ", ".join(changed)}


def world_acts() -> int:
    return sum(line["do"] in ("did", "undid", "tried", "step") for line in stage().look())


def _journal() -> list[tuple[int, str, str]]:
    """Every record, by where it stands and by its seal."""
    if not os.path.exists("runs.db"):
        return []
    try:
        store = config.runtime(create=False).store
        return [(pos, record.run, record.seal.hex()) for pos, record in store.scan(0, 1 << 30)]
    except SurefootError as error:
        return [(0, type(error).__name__, "")]


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def _leaks(before: int) -> list[str]:
    found = []
    if _descriptors() > before + MOST_DESCRIPTORS:
        found.append(f"{_descriptors() - before} descriptors are left open")
    threads = [thread.name for thread in threading.enumerate() if not thread.daemon]
    threads = [name for name in threads if name != "MainThread" and not name.startswith("surefoot-io")]
    if threads:
        found.append(f"threads are left: {threads}")
    with contextlib.suppress(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
        found.append("children are left")
    return found


def _plain(event: tuple[Any, ...]) -> list[Any]:
    return [part.hex() if isinstance(part, bytes) else part for part in event]


def _told(ended: Ended) -> dict[str, Any]:
    if ended.late:
        return {"wrong": f"it did not end within {LIFE_SECONDS} s", "leaks": []}
    if ended.code != 0:
        return {"wrong": ended.trouble or f"the process ended with {ended}", "leaks": []}
    return dict(json.loads(ended.report))
