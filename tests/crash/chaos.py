"""The long version: `make chaos BUDGET=30m`. All levels, all flows, as many scenarios as the time allows, and a report.

Work goes to the level that is most behind its share; flows take turns, and each turn has other seeds. What fails is
printed as a line, and added to tests/crash/regressions.txt (a damaged store is kept as well, see decay.py). Red if
anything was violated, if a broken engine went unnoticed, or if one of the rare things that must be met was not met.
With `--go-on` the time may be spent in parts: a further run of the same commit adds other scenarios to the report.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

import surefoot
from surefoot.core.timer import seconds
from tests.crash import report, worldly
from tests.crash.broken.engines import ENGINES
from tests.crash.decay import STORES
from tests.crash.fleet import ROOT, LabProcess
from tests.crash.plan import CUT, DAMAGED, FAILING, SMALL, SOUND, TINY, level_of
from tests.crash.programs import ANY
from tests.crash.scenario import Outcome
from tests.crash.simulation import FLOWS_HERE

Facts = dict[str, Any]
REGRESSIONS = Path(__file__).parent / "regressions.txt"
GOALS = (
    "InDoubt", "WaitingForAnswer", "settled: happened", "settled: not happened", "mended by hand", "JournalRegressed",
    "a commit nobody heard back from", "fenced, and nothing done after that", "taken over", "passed by", "visited",
    "damage that was said", "fell back loudly", "resumed twice", "another timing was refused", "Drifted",
)  # fmt: skip
"""What has to be met at least once."""


@dataclass(frozen=True)
class Share:
    plan: str
    share: float
    """Of all scenarios."""
    size: int
    """So many are given to a lab at once."""
    flows: tuple[str, ...]


SHARES = (
    Share("L1", 0.600, 250, FLOWS_HERE),
    Share("L1p", 0.050, 250, (ANY,)),
    Share("L3", 0.045, 40, (*DAMAGED, *SOUND)),
    Share("L3p", 0.008, 20, (ANY,)),
    Share("L4", 0.018, 30, FAILING),
    Share("L4p", 0.004, 20, (ANY,)),
    Share("L4r", 0.006, 20, FAILING),
    Share("L5", 0.008, 40, CUT),
    Share("L5p", 0.002, 20, (ANY,)),
    Share("L6", 0.008, 200, STORES),
    Share("L6r", 0.002, 10, STORES),
    Share("L9", 0.030, 40, (TINY,)),
    Share("L9n", 0.006, 20, SMALL),
    Share("L9d", 0.004, 20, (TINY, *SMALL)),
    Share("L10", 0.035, 20, worldly.FLOWS["L10"]),
    Share("L10z", 0.035, 200, worldly.FLOWS["L10z"]),
    Share("L11", 0.035, 20, worldly.FLOWS["L11"]),
    Share("L12", 0.035, 20, worldly.FLOWS["L12"]),
    Share("L13", 0.032, 20, (ANY,)),
    Share("L13s", 0.008, 40, (ANY,)),
    Share("L14s", 0.035, 20, ("zoo",)),
    Share("L14a", 0.035, 20, ("tasks",)),
)


@dataclass
class Tally:
    """What was seen, of one plan."""

    scenarios: int = 0
    kills: int = 0
    errors: int = 0
    violations: int = 0
    packages: int = 0
    turns: Counter[str] = field(default_factory=Counter)
    """How often each flow had its turn: the seed of the next one."""
    of: dict[str, int] = field(default_factory=dict)
    """Of each flow whose scenarios have an end: how many there are."""
    uncounted: Counter[str] = field(default_factory=Counter)
    first: int = 0
    """The seed of the first turn: behind those of the report that this run adds to."""

    def had(self, share: Share) -> int:
        """How many of them were drawn: seed after seed draws others, until none is left."""
        return sum(min(self.turns[flow] * share.size, of) for flow, of in self.of.items())

    def left(self, share: Share) -> list[str]:
        """Flows of which not everything was drawn yet."""
        drawn = {flow: (self.first + self.turns[flow]) * share.size for flow in share.flows}
        return [flow for flow in share.flows if drawn[flow] < self.of.get(flow, math.inf)]


class Chaos:
    def __init__(
        self, budget: float, labs: int, progress: Progress, *, levels: Sequence[str] = (), earlier: Facts | None = None
    ) -> None:
        self.until = time.monotonic() + budget
        self.budget = budget
        self.labs = labs
        self.shares = [share for share in SHARES if not levels or level_of(share.plan) in levels]
        drawn = {} if earlier is None else {level: told["seeds"] for level, told in earlier["levels"].items()}
        self.tallies = {share.plan: Tally(first=drawn.get(level_of(share.plan), 0)) for share in SHARES}
        self.goals: Counter[str] = Counter()
        self.failed: list[str] = []
        self.caught: list[dict[str, Any]] = []
        self.unnoticed: list[str] = []
        self.trouble: list[BaseException] = []
        self._engines = sorted(ENGINES) if earlier is None else []
        self._lock = threading.Lock()
        self._progress = progress
        self._task = progress.add_task("", total=budget)

    def run(self) -> None:
        threads = [threading.Thread(target=self._work, name=f"lab-{number}") for number in range(self.labs)]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        except BaseException:
            self.until = 0.0  # Ctrl-C: the labs end with the package at hand.
            for thread in threads:
                thread.join()
            raise
        if self.trouble:
            raise self.trouble[0]

    def _work(self) -> None:
        try:
            with LabProcess() as lab:
                for request in self._requests():
                    if "hunt" in request:
                        (caught,) = lab.ask(**request)
                        self._hunted(request["hunt"], caught)
                    else:
                        for outcome in lab.outcomes(**request):
                            self._take(request["plan"], outcome)
                        self._know(request, lab.of)
        except BaseException as error:
            self.trouble.append(error)
            self.until = 0.0

    def _requests(self) -> Iterator[dict[str, Any]]:
        """First the broken engines, then whatever is most behind."""
        while time.monotonic() < self.until:
            with self._lock:
                if self._engines:
                    request: dict[str, Any] = {"hunt": self._engines.pop()}
                else:
                    share = min(self._open(), key=lambda one: self.tallies[one.plan].packages * one.size / one.share)
                    tally = self.tallies[share.plan]
                    left = tally.left(share)
                    flow = left[tally.packages % len(left)]
                    tally.packages += 1
                    request = {"plan": share.plan, "flow": flow, "count": share.size}
                    request["seed"] = tally.first + tally.turns[flow]
                    tally.turns[flow] += 1
            yield request

    def _open(self) -> list[Share]:
        """Plans of which there is something left. Of schedules there always is."""
        return [share for share in self.shares if self.tallies[share.plan].left(share)]

    def _take(self, plan: str, outcome: Outcome) -> None:
        with self._lock:
            tally = self.tallies[plan]
            if outcome.counted:
                tally.scenarios += 1
                tally.kills += outcome.kills
                tally.errors += outcome.errors
            else:
                tally.uncounted[outcome.uncounted] += 1
            self.goals.update(outcome.goals)
            if outcome.violations:
                tally.violations += 1
                self.failed.append(outcome.line)
                self._progress.console.print(
                    "\n  ".join([outcome.line, *outcome.violations]), style="red", markup=False, highlight=False
                )
            self._show()

    def _know(self, request: dict[str, Any], of: int) -> None:
        """How many scenarios a flow has; 0: there is no end of them."""
        if of:
            with self._lock:
                self.tallies[request["plan"]].of[request["flow"]] = of

    def _hunted(self, engine: str, caught: dict[str, Any] | None) -> None:
        with self._lock:
            if caught is None:
                self.unnoticed.append(engine)
                self._progress.console.print(f"[red]broken engine {engine} went unnoticed[/red]")
            else:
                self.caught.append(caught)
            self._show()

    def _show(self) -> None:
        done = sum(tally.scenarios for tally in self.tallies.values())
        struck = sum(tally.kills + tally.errors for tally in self.tallies.values())
        told = f"{done:,} scenarios, {struck:,} kills and errors, {len(self.failed)} violated"
        if self._engines:
            told = f"broken engines: {len(self.caught)} of {len(ENGINES)} caught"
        self._progress.update(
            self._task, description=told, completed=self.budget - max(self.until - time.monotonic(), 0)
        )


def facts(chaos: Chaos, took: float) -> Facts:
    levels: dict[str, dict[str, Any]] = {}
    for share in SHARES:
        tally = chaos.tallies[share.plan]
        level = levels.setdefault(
            level_of(share.plan),
            {"scenarios": 0, "kills": 0, "errors": 0, "violations": 0, "seeds": 0, "had": 0, "of": 0, "uncounted": {}},
        )
        level["had"] += tally.had(share)
        level["of"] += sum(tally.of.values())
        for name in ("scenarios", "kills", "errors", "violations"):
            level[name] += getattr(tally, name)
        level["seeds"] += tally.scenarios if level_of(share.plan) == "L1" else max(tally.turns.values(), default=0)
        for why, number in tally.uncounted.items():
            level["uncounted"][why] = level["uncounted"].get(why, 0) + number
    return {
        "made": datetime.now(UTC).strftime("%Y-%m-%d"),
        "versions": {
            "surefoot": surefoot.__version__,
            "commit": _commit(),
            "Python": platform.python_version(),
            "SQLite": apsw.sqlite_lib_version(),
            "apsw": apsw.apsw_version(),
            "system": f"{platform.system()} {platform.machine()}",
        },
        "seconds": round(took),
        "labs": chaos.labs,
        "flows": len({flow for share in SHARES for flow in share.flows} - {ANY}),
        "of programs": sum(chaos.tallies[share.plan].scenarios for share in SHARES if share.flows == (ANY,)),
        "levels": dict(sorted(levels.items(), key=lambda one: (int(re.sub(r"\D", "", one[0])), one[0]))),
        "goals": {goal: chaos.goals[goal] for goal in GOALS},
        "controls": sorted(chaos.caught, key=lambda one: str(one["engine"])),
        "unnoticed": sorted(chaos.unnoticed),
        "failed": chaos.failed,
    }


def added(earlier: Facts, found: Facts) -> Facts:
    """Two runs of one commit as one. Their seeds are different ones, so no scenario is counted twice."""
    whole = {**found, "controls": earlier["controls"], "unnoticed": earlier["unnoticed"]}
    for name in ("seconds", "of programs", "failed"):
        whole[name] = earlier[name] + found[name]
    whole["goals"] = {goal: earlier["goals"][goal] + number for goal, number in found["goals"].items()}
    whole["levels"] = {level: _both(earlier["levels"][level], told) for level, told in found["levels"].items()}
    return whole


def _both(earlier: Facts, found: Facts) -> Facts:
    both = {name: earlier[name] + found[name] for name in ("scenarios", "kills", "errors", "violations", "seeds")}
    of = max(earlier["of"], found["of"])
    uncounted = Counter(earlier["uncounted"]) + Counter(found["uncounted"])
    return {**both, "had": min(earlier["had"] + found["had"], of), "of": of, "uncounted": dict(uncounted)}


def _earlier() -> Facts:
    found: Facts = json.loads((ROOT / "docs" / "chaos.json").read_text())
    if found["versions"]["commit"] != _commit():
        raise SystemExit(f"the report is of {found['versions']['commit']}, and this is {_commit()}: nothing to add to")
    return found


def _commit() -> str:
    """What was broken: the numbers are of this very state of the code."""
    told = subprocess.run(["git", "describe", "--always"], cwd=ROOT, capture_output=True, text=True, check=False)
    changed = subprocess.run(["git", "diff", "--quiet", "HEAD", "--", "src"], cwd=ROOT, check=False).returncode
    return (told.stdout.strip() or "unknown") + ("-dirty" if changed else "")


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m tests.crash.chaos", description=(__doc__ or "").splitlines()[0])
    options.add_argument("--budget", default="30m", help="how long, e.g. 90s, 30m, 8h (default: 30m)")
    options.add_argument("--labs", type=int, default=os.cpu_count() or 1, help="how many side by side")
    options.add_argument("--dry", action="store_true", help="write no report")
    options.add_argument("--go-on", action="store_true", help="add to the report of this commit, with other seeds")
    options.add_argument("--level", action="append", default=[], help="only this one (again for more)")
    given = options.parse_args()
    console = Console(stderr=True)
    columns = (BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    earlier = _earlier() if given.go_on else None
    started = time.monotonic()
    with Progress(*columns, console=console) as progress:
        chaos = Chaos(seconds(given.budget), given.labs, progress, levels=given.level, earlier=earlier)
        chaos.run()
    found = facts(chaos, time.monotonic() - started)
    if earlier is not None:
        found = added(earlier, found)
    console.print(report.told(found), highlight=False, markup=False)
    if chaos.failed:
        with REGRESSIONS.open("a") as file:
            file.write("".join(f"{line}\n" for line in ["# found by `make chaos`:", *dict.fromkeys(chaos.failed)]))
    if not given.dry:
        report.write(ROOT, found)
    missed = [goal for goal, times in found["goals"].items() if not times]
    wrong = [*found["failed"], *found["unnoticed"], *(f"never met: {goal}" for goal in missed)]
    sys.stdout.write(json.dumps({"wrong": wrong}) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
