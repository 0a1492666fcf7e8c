"""Scenarios in which the world itself misbehaves (L10, L11, L12): lived in acts, and held against what must never be.

There is no undisturbed run to compare with: what may come out depends on what the world did, and when. So each level
says by itself what follows from the ledger and from the journal (`Rules`). Everything that holds of any run is looked at
as well, by the one checker.

A kill that was planned behind the end of a process does no harm: such a scenario counts if the world has struck.
"""

from __future__ import annotations

import json
import logging
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import surefoot as sf
from surefoot.core import values
from surefoot.testing.children import Tell, in_child
from tests.crash import invariants
from tests.crash.flows import Flow
from tests.crash.invariants import Findings, Journal, Line, went_wrong
from tests.crash.lab import LIFE_SECONDS, Lab, _quiet, _told
from tests.crash.scenario import Outcome, Scenario
from tests.crash.stage import parts_of, place, stage

RUN = "r"


@dataclass(frozen=True)
class Story:
    """What is left after the last process, which nothing disturbed."""

    scenario: Scenario
    entries: list[Any]
    """The journal of the run, from its first entry on."""
    lines: list[Line]
    """What the world has written down, in order."""
    told: dict[str, Any]

    def of(self, *dos: str, what: str = "") -> list[Line]:
        return [line for line in self.lines if line["do"] in dos and line["what"].startswith(what)]

    def kinds(self, *names: str) -> list[Any]:
        return [entry for entry in self.entries if type(entry).__name__ in names]

    def said(self, word: str) -> bool:
        return any(word in line["what"] for line in self.of("said"))


@dataclass(frozen=True)
class Rules:
    live: Callable[[Scenario, int], Any]
    """What the process of this number does; it is called again, unchanged, when all is over."""
    judge: Callable[[Findings, Story], None]
    struck: Callable[[list[Line]], str]
    """Why the scenario does not count; empty: the world has struck."""
    dies: bool = False
    """Whether the first process kills itself, where its own story says so."""


def run(lab: Lab, scenario: Scenario, rules: Rules) -> Outcome:
    outcome = Outcome(str(scenario), scenario.level)
    folder, crashed = lab._fresh(), lab.folder / "crashed"
    plans = [*([{}] if rules.dies else []), *(scenario.plans() if scenario.at else [])]

    def lived(life: int, plan: dict[int, str], *, last: bool = False) -> Any:
        flow = as_flow(rules, scenario, life)
        return lab._life(flow, folder, plan, life, broken_engine=scenario.broken, twice=last)

    for life, plan in enumerate(plans, 1):
        ended = lived(life, plan)
        outcome.kills += ended.killed
        if not ended.killed:
            told = _told(ended)
            outcome.goals += told.get("goals", [])
            if told.get("wrong"):
                outcome.violations.append(went_wrong(told))
    shutil.rmtree(crashed, ignore_errors=True)
    shutil.copytree(folder, crashed)
    crashed_lines = lab._lines()
    told = _told(lived(len(plans) + 1, {}, last=True))
    outcome.goals += told.get("goals", [])
    lines = lab._lines()
    outcome.uncounted = rules.struck(lines)
    outcome.violations += _examined(scenario, rules, crashed, crashed_lines, folder, lines, told)
    return outcome


def many(drawn: Callable[[random.Random, str], Scenario]) -> Callable[[Lab, str, int, int], list[Scenario]]:
    """Of a level of which there is no end: each seed has its own."""

    def scenarios(lab: Lab, flow: str, count: int, seed: int) -> list[Scenario]:
        luck = random.Random(f"{flow} {seed}")
        return [drawn(luck, flow) for _ in range(count)]

    return scenarios


def as_flow(rules: Rules, scenario: Scenario, life: int) -> Flow:
    """What the process of this number does."""
    return Flow(scenario.flow, _telling(lambda: rules.live(scenario, life)))


def _examined(
    scenario: Scenario, rules: Rules, crashed: Path, first: list[Line], after: Path, lines: list[Line], told: Any
) -> list[str]:
    def look(tell: Tell) -> None:
        _quiet()
        found = Findings()
        before = invariants.state_holds(found, crashed, first, "crashed")
        now = invariants.state_holds(found, after, lines, "recovered")
        if before is not None and now is not None:
            invariants.monotone(found, before, now)
            invariants.not_again(found, before, now, first, lines)
        if now is not None:
            invariants.waits_hold(found, now)
            rules.judge(found, Story(scenario, entries_of(now), lines, told))
        _ended_well(found, told)
        tell(json.dumps(found).encode())

    ended = in_child(look, seconds=LIFE_SECONDS)
    if ended.code != 0:
        raise AssertionError(f"the examination of {scenario} itself failed: {ended.trouble or ended}")
    return list(json.loads(ended.report))


def entries_of(stored: Journal) -> list[Any]:
    return [entry for _, entry in invariants._entries(stored, RUN)]


def _ended_well(found: Findings, told: dict[str, Any]) -> None:
    if told.get("wrong"):
        found.append(went_wrong(told))
        return
    for leak in told["leaks"]:
        found.add("I-25", leak)
    if told["loud"]:
        found.add("I-11", f"nothing is damaged, and it said {told['loud']}")
    if told.get("error"):
        found.add("I-20", f"recovery ended with {told['error']}")
    elif told["again"]["changed"] or told["again"]["result"] != told["result"]:
        found.add("I-23", f"a second resume changed {told['again']['changed'] or told['again']['result']}")


# --- in a child ------------------------------------------------------------------------------------------------------


def _telling(act: Callable[[], Any]) -> Callable[[], Any]:
    """What the logger says is written down in the world at once: a kill does not take it away."""

    def live() -> Any:
        logging.getLogger("surefoot").addHandler(_Noting())
        return act()

    return live


class _Noting(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if "created store" not in text:
            stage().note("said", text)


def times(do: str, what: str) -> int:
    """How often the world was told so."""
    return sum(line["do"] == do for line in stage().look(what))


def is_there(what: str) -> bool:
    """Whether the world holds it, after all that was done and undone."""
    return bool(parts_of(stage().look(what)))


def acted(name: str, n: int, kind: str, *, part: int = 0, more: dict[str, Any] | None = None, **args: Any) -> None:
    """An effect changes the world. What it was called with is written down, defaults too; its digest is of `n` alone."""
    digest = values.encode_args({"n": n})[1]
    told = {"kind": kind, "part": part, "key": sf.key(), "digest": digest, "args": args}
    stage().act("did", f"{name} {n}", **told, **place(), **(more or {}))


def took_back(name: str, n: int, *, more: dict[str, Any] | None = None, **args: Any) -> None:
    stage().act("undid", f"{name} {n}", kind="keyed", key=sf.key(), args=args, **place(), **(more or {}))


def mended(name: str, n: int, address: str) -> None:
    """A person takes it back by hand."""
    if is_there(f"{name} {n}"):
        stage().note("undid", f"{name} {n}", run=RUN, by="hand", address=address)
        stage().goals.add("mended by hand")


# --- what holds of all three -------------------------------------------------------------------------------------------


def same_request(found: Findings, story: Story) -> None:
    """Executed = recorded = looked for = undone, defaults included. Only a person's word makes it another request."""
    asked: dict[tuple[str, int], list[dict[str, Any]]] = {}
    """After a rewind attempts are counted anew."""
    last: dict[str, dict[str, Any]] = {}
    done: dict[str, dict[str, Any]] = {}
    for entry in story.entries:
        match type(entry).__name__:
            case "EffectIntended":
                args = {**values.decode(bytes(entry.args)), **(values.decode(bytes(entry.defaults)) or {})}
                asked.setdefault((entry.address, entry.attempt), []).append(args)
                if last.setdefault(entry.address, args) != args:
                    found.add("I-04", f"{entry.address} is asked for with {args}, and was with {last[entry.address]}")
            case "EffectDone":
                done[call_of(entry.address, asked[entry.address, entry.attempt][-1])] = asked[
                    entry.address, entry.attempt
                ][-1]
            case "EffectSettled" if entry.happened:
                done[call_of(entry.address, asked[entry.address, entry.attempt][-1])] = asked[
                    entry.address, entry.attempt
                ][-1]
            case "EffectSettled":
                last.pop(entry.address, None)
            case "RunRewound" | "CallsReopened":
                last.clear()
            case _:
                pass
    for line in story.of("did", "undid", "looked for"):
        if "by" in line or "args" not in line:
            continue
        recorded = asked.get((line["address"], line["attempt"]), [])
        if line["do"] == "undid":
            recorded = [done[line["what"]]] if line["what"] in done else []
            if not recorded:
                found.add("I-31", f"{line['what']} was undone, and nobody knew that it had happened")
                continue
        if not any(line["args"].items() <= one.items() for one in recorded):
            found.add("I-04", f"{line['do']} {line['what']} with {line['args']}, and on record is {recorded}")


def call_of(address: str, args: dict[str, Any]) -> str:
    """As the ledger names it."""
    return f"{address.rsplit('/', 1)[-1].partition('#')[0]} {args['n']}"
