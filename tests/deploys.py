"""A week of a team that deploys twice a day, with runs in flight: what stops, what cures it, and what was done.

Each deploy starts a few runs and resumes all of them with workers of the new code, some of which are killed at a random
point; in a rolling deploy old and new workers work side by side. People answer some of the questions, and look at the
world before they settle an effect in doubt. Where a run stops because of the code, exactly one cure of its own message
is applied, one line of code or one command; a run that stops there again is stranded.
"""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import surefoot as sf
from surefoot.engine.drive.deploys import CODE_STOPS
from surefoot.store.open import close_all
from tests import deploys_world as world
from tests.deploys_versions import BASE, DEPLOYS, SDK, Deploy

HOURS = 12.0
MOST_ROUNDS = 25
ENDED = frozenset({"done", "failed", "cancelled"})
LINE = re.compile(r"@sf\.effect\((was=[^)]*)\) on (\w+)")
REMOVED = re.compile(r"sf\.removed\([^)]+\)")
REGISTER = re.compile(r"sf\.register\((\w+), version=\d+, added=\{.*\}\)")


class Week:
    def __init__(self, folder: Path, *, runs: int, seed: int, kills: int) -> None:
        self.folder, self.luck, self.kills = folder, random.Random(seed), kills
        self.source, self.sdk, self.old_source = BASE, SDK, BASE
        self.hours = 0.0
        self.runs = [f"o-{n}" for n in range(runs)]
        self.waiting = list(self.runs)
        self.started: list[str] = []
        self.seen: Counter[str] = Counter()
        self.cured: Counter[str] = Counter()
        self.told = ""
        self._stood: set[tuple[str, str]] = set()
        """Which run has stood at which edit: there it may not stand again."""
        self._lines: set[str] = set()
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONDONTWRITEBYTECODE": "1"}
        self._workers = subprocess.Popen(
            [sys.executable, "-m", "tests.deploys_worker"], cwd=folder, env=env, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def live(self) -> None:
        share = -(-len(self.runs) // len(DEPLOYS))
        self._begin(share)
        self._work(None)
        for deploy in DEPLOYS:
            self._deploy(deploy)
            self._begin(share)
            self._settle_down(deploy, answers=0.5)
        for _ in range(MOST_ROUNDS):  # The week is over: everybody answers, and time passes.
            self.hours += HOURS
            self._settle_down(None, answers=1.0)
            if all(sf.get_run(run).status in ENDED for run in self.runs):
                return
        raise AssertionError(f"not at an end: {[(run, sf.get_run(run).stops) for run in self.runs]}")

    # -- deploying and working ------------------------------------------------------------------------

    def _begin(self, share: int) -> None:
        self.new, self.waiting = self.waiting[:share], self.waiting[share:]
        self.started += self.new

    def _deploy(self, deploy: Deploy) -> None:
        self.hours += HOURS
        self.old_source = self.source
        for old, new in deploy.edits:
            assert self.source.count(old) == 1, (deploy.what, old)
            self.source = self.source.replace(old, new)
        for old, new in deploy.sdk:
            self.sdk = self.sdk.replace(old, new)
        self.seen["deploys"] += 1

    def _settle_down(self, deploy: Deploy | None, *, answers: float) -> None:
        """Work, answer, cure, until nothing is left to be done that anybody wants to do today."""
        for round_ in range(MOST_ROUNDS):
            if round_ < 2 or answers == 1.0:
                self._answer(answers)
            disturbed = self._work(deploy, kill=round_ < self.kills)
            if not self._look_after(alone=not disturbed) and not disturbed:
                return
        raise AssertionError(f"{deploy}: it does not come to rest")

    def _work(self, deploy: Deploy | None, *, kill: bool = False) -> bool:
        """One worker, or an old and a new one; whether it was anything but one of today's that came to rest."""
        close_all()
        jobs = [self._job("new", self.source, kill=kill)]
        if deploy is not None and deploy.rolling and kill:
            jobs.append(self._job("old", self.old_source, kill=self.luck.random() < 0.5))
            self.seen["rolling rounds"] += 1
        codes = self._ask(jobs)
        said = [Path(job["home"], "said").read_text() for job in jobs]
        assert set(codes) <= {0, -signal.SIGKILL}, said
        self.seen["kills"] += codes.count(-signal.SIGKILL)
        if codes[0] == 0:
            self.new = []
        return codes != [0]

    def _ask(self, jobs: list[dict[str, Any]]) -> list[int]:
        assert self._workers.stdin is not None
        assert self._workers.stdout is not None
        self._workers.stdin.write(json.dumps(jobs) + "\n")
        self._workers.stdin.flush()
        codes: list[int] = json.loads(self._workers.stdout.readline())
        return codes

    def _job(self, which: str, source: str, *, kill: bool) -> dict[str, Any]:
        home = self.folder / which
        (home / "site-packages" / "agentsdk").mkdir(parents=True, exist_ok=True)
        (home / "agent.py").write_text(source)
        (home / "site-packages" / "agentsdk" / "__init__.py").write_text(self.sdk)
        workflow = "handle_case" if "def handle_case(" in source else "handle"
        fate = f"{self.luck.randint(1, 12)}:{self.luck.choice(['before', 'after'])}" if kill else ""
        new = self.new if which == "new" else []
        return {"home": str(home), "workflow": workflow, "hours": self.hours, "runs": new, "kill": fate}

    def close(self) -> None:
        close_all()
        self._workers.kill()
        self._workers.communicate()

    # -- people ---------------------------------------------------------------------------------------

    def _answer(self, share: float) -> None:
        for run in self._known():
            for stop in run.stops:
                if isinstance(stop, sf.WaitingForAnswer) and self.luck.random() < share:
                    self._answer_one(run, stop)

    def _answer_one(self, run: sf.Run, stop: sf.Stopped) -> None:
        if stop.address.endswith(".approval"):
            run.answer(stop.address, True, by="ann")
            self.seen["approvals"] += 1
        else:
            sf.send_event(run.id, "archived" if "'archived'" in stop.summary else "customer", "yes")
            self.seen["events"] += 1

    def _look_after(self, *, alone: bool) -> bool:
        """Whether anything was settled or cured, so that work may go on. What old code stopped is for today's to try."""
        moved = False
        for run in self._known():
            for stop in run.stops:
                if isinstance(stop, sf.InDoubt):
                    self._settle(run, stop.address)
                    moved = True
                elif type(stop).__name__ in CODE_STOPS and alone:
                    self._cure(run, stop)
                    moved = True
                elif type(stop).__name__ in CODE_STOPS:
                    self.seen["stops while old code or a kill was about"] += 1
        return moved

    def _settle(self, run: sf.Run, address: str) -> None:
        """Whoever is asked looks at the world first."""
        (call,) = (call for call in run.steps() if call.address == address)
        result = world.done(call.key)
        if result is None:
            run.settle(address, not_happened=True, by="ann")
        else:
            run.settle(address, happened=result, by="ann")
        self.seen["settled"] += 1

    def _cure(self, run: sf.Run, stop: sf.Stopped) -> None:
        about = [one for one in DEPLOYS if one.stops and re.search(one.stops, stop.summary, re.DOTALL)]
        assert about, f"an ordinary edit stopped a run: {stop}"
        deploy = about[0]
        cure = dict(stop.cures).get(deploy.cure)
        assert cure is not None, f"{deploy.what}: no such cure: {stop}"
        assert (run.id, deploy.what) not in self._stood, f"stranded: {stop}"
        self._stood.add((run.id, deploy.what))
        is_command = cure.startswith("surefoot ")
        kind = "one command each" if is_command else "one line for all"
        self.cured[f"{type(stop).__name__}, {deploy.what} ({deploy.cure} {kind})"] += 1
        if is_command:
            subprocess.run([sys.executable, "-m", *shlex.split(cure)], check=True, capture_output=True, text=True)
        elif deploy.what not in self._lines:
            self._lines.add(deploy.what)
            self.source = with_line(self.source, cure)

    def _known(self) -> list[sf.Run]:
        return [run for run in sf.runs(limit=1000) if run.status not in ENDED] if self.started else []

    # -- afterwards -----------------------------------------------------------------------------------

    def judge(self) -> str:
        """Every run came home, and nothing was done twice, nor left out."""
        deeds: dict[str, Counter[str]] = {run: Counter() for run in self.runs}
        keys = Counter(line["key"] for line in world.lines())
        assert set(keys.values()) == {1}, "under one key: once"
        for line in world.lines():
            deeds[line["run"]][f"{line['deed']} {line['about']}"] += 1
        for run in self.runs:
            assert sf.get_run(run).status == "done", (run, sf.get_run(run).status)
            twice = {deed: count for deed, count in deeds[run].items() if count > 1 and not deed.startswith("refund")}
            assert not twice, (run, twice)
            done = Counter(deed.split()[0] for deed in deeds[run].elements())
            plan = Counter(world.plan_of(run))
            assert done["mail"] == plan["mail"] + 1, (run, done)
            assert (done["refund"], done["ticket"]) == (plan["refund"], plan["ticket"]), (run, done)
            assert done["start"] <= 1 >= done["audit"]
            assert done["start"] + done["audit"] >= 1
        self.seen["deeds"] = sum(keys.values())
        counted = ", ".join(f"{count} {what}" for what, count in sorted(self.seen.items()))
        cures = "; ".join(f"{count} stops: {what}" for what, count in sorted(self.cured.items()))
        return f"{len(self.runs)} runs, {counted}, 0 twice, 0 stranded. {cures or 'nothing stopped'}"


def with_line(source: str, cure: str) -> str:
    """The code with the one line that the message names."""
    if found := LINE.search(cure):
        option, name = found.groups()
        before = source
        source = re.sub(rf"@sf\.effect(?:\((.*)\))?(\ndef {name}\()", rf"@sf.effect({option}, \1)\2", source)
        source = source.replace(f"@sf.effect({option}, )", f"@sf.effect({option})")
    elif found := REMOVED.search(cure):
        before, source = source, f"{source}\n\n{found.group()}\n"
    elif found := REGISTER.search(cure.replace("…", '"DE"')):  # what only the team can know
        before = source
        head, _, tail = source.partition(f"class {found.group(1)}:")
        body, gap, rest = tail.partition("\n\n\n")
        source = f"{head}class {found.group(1)}:{body}\n\n\n{found.group()}{gap}{rest}"
    else:
        raise AssertionError(f"no line of code: {cure}")
    assert source != before, cure
    return source


def a_week(folder: Path, *, runs: int, seed: int, kills: int) -> Week:
    """Lived through, and judged. `kills`: in how many rounds of each deploy workers are killed."""
    week = Week(folder, runs=runs, seed=seed, kills=kills)
    try:
        week.live()
        week.told = week.judge()
    finally:
        week.close()
    return week
