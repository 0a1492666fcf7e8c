"""A world with latency (L10): a request is accepted, and lands only later: after the kill, after the next process has looked.

`flow=check+in_flight+60+10+2+alone+sent level=L10 at=30:kill seed=0`: the policy of the effect, what says how long it may
be on its way, when it lands and how soon the next process begins (in hundredths of that time), how many seconds its check
takes to answer after it has looked, the shape of the workflow, and where the first process dies. Further processes are
killed where `at` says. All of it goes by the lab's own clock; nobody waits.

A request that was accepted lands, whoever is dead by then. It lands within its bound: a declaration that is not true
cannot be made true by an engine. What is promised then: nothing is executed twice, nor undone before it has landed, and
what a cancelled run may have left behind is named.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any, NamedTuple

import surefoot as sf
from surefoot.core.timer import MICROS
from surefoot.engine.process import config, runtime
from surefoot.testing.children import die
from surefoot.testing.clock import FastClock
from tests.crash import play
from tests.crash.flows import PATIENCE, Bare, Endless, got
from tests.crash.invariants import Findings, Line
from tests.crash.lab import Lab
from tests.crash.play import RUN, Rules, Story, acted, many, took_back
from tests.crash.scenario import Outcome, Scenario
from tests.crash.stage import EPOCH_SECONDS, parts_of, place, stage

BOUNDS = {"timeout": 20, "in_flight": 10, "default": 30, "configured": 45}
"""What says how long a call may be on its way, in seconds."""
POLICIES = ("check", "check", "check", "retry", "ask", "fail")
LAGS = (5, 30, 60, 97)
GAPS = (0, 10, 50, 95, 99, 150)
SLOW = (0, 2, 40)
SHAPES = ("alone", "parts", "saga", "cancel")
DEATHS = ("sent", "answered")
AMOUNT = 40


class Spec(NamedTuple):
    policy: str
    bound: str
    lag: str
    gap: str
    slow: str
    shape: str
    dies: str

    @classmethod
    def of(cls, scenario: Scenario) -> Spec:
        return cls(*scenario.flow.split("+"))

    @property
    def lag_micros(self) -> int:
        return BOUNDS[self.bound] * MICROS * int(self.lag) // 100

    @property
    def gap_micros(self) -> int:
        return BOUNDS[self.bound] * MICROS * int(self.gap) // 100

    def options(self) -> dict[str, Any]:
        told = {"on_crash": self.policy}
        return told | ({self.bound: f"{BOUNDS[self.bound]}s"} if self.bound in ("timeout", "in_flight") else {})


# --- the world, by the clock ---------------------------------------------------------------------------------------------


def landed(what: str, now: int) -> set[int]:
    """What of it is there at this moment, after all that has landed and was undone by then."""
    return parts_of([line for line in in_order(stage().look(what)) if line["lands"] <= now])


def in_order(lines: Iterable[Line]) -> list[Line]:
    """As it came to be, not as it was asked for."""
    return sorted((line for line in lines if "lands" in line), key=lambda line: line["lands"])


def _begin(spec: Spec, life: int) -> FastClock:
    """Each process lives soon after the one before."""
    start = max((line["at"] for line in stage().look() if "at" in line), default=EPOCH_SECONDS * MICROS)
    clock = FastClock(start + (spec.gap_micros if life > 1 else 0), _waited)
    runtime.default_clock = lambda: clock
    config.settings.in_flight_seconds = float(BOUNDS["configured" if spec.bound == "configured" else "default"])
    return clock


def _waited(_: str, now: int) -> None:
    """Whoever lives later lives after that."""
    stage().note("waited", "time", at=now)


def _program(spec: Spec, life: int, clock: FastClock) -> Any:
    kind = {"retry": "keyed"}.get(spec.policy, "once")
    default = AMOUNT + life
    wanted = (1, 2) if spec.shape == "parts" else (0,)

    def is_first() -> bool:
        return play.times("sent", "charge 1") == 0

    @sf.effect(**spec.options())
    def charge(n: int, amount: int = default) -> str:
        mortal = is_first()
        stage().note("sent", f"charge {n}", **place())
        for part in wanted:
            now = clock.now()
            times = {"at": now, "lands": now + spec.lag_micros * (part or 2) // 2}
            acted("charge", n, kind, part=part, more=times, amount=amount)
        if mortal and spec.dies == "sent":
            die()
        clock.forward(spec.lag_micros / MICROS)
        stage().note("answered", f"charge {n}", at=clock.now(), **place())
        if mortal:
            die()
        return f"ch_{n}"

    @charge.undo(on_crash="retry")
    def pay_back(n: int, amount: int, result: str | None) -> None:
        took_back("charge", n, more={"at": clock.now(), "lands": clock.now()}, amount=amount)

    if spec.policy == "check":

        @charge.check
        def charged(n: int, amount: int) -> Any:
            parts = landed(f"charge {n}", clock.now())
            stage().note("looked for", f"charge {n}", at=clock.now(), args={"amount": amount}, **place())
            clock.forward(int(spec.slow))
            if parts == set(wanted):
                return sf.happened(f"ch_{n}")
            return sf.partial("one half") if parts else sf.not_happened()

    @sf.workflow(name="latent")
    def latent() -> Any:
        if spec.shape in ("alone", "parts"):
            return got(charge, 1)
        try:
            with sf.saga():
                got(charge, 1)
                raise ValueError("sold out")
        except ValueError:
            return "rolled back"

    return latent


def live(scenario: Scenario, life: int) -> Any:
    spec = Spec.of(scenario)
    clock = _begin(spec, life)
    workflow = _program(spec, life, clock)
    if spec.shape == "cancel" and life > 1:
        run = sf.get_run(RUN)
        if run.status not in ("cancelled", "done", "failed"):
            run.cancel(by="ann")
    for _ in range(PATIENCE):
        try:
            return {"r": workflow.run(RUN)}
        except sf.Cancelled:
            return {"r": "cancelled"}
        except sf.Stopped as stop:
            _told(stop, spec, clock)
        except sf.StepFailed:
            return {"r": "failed"}
    raise Endless(f"run {RUN} still stops after {PATIENCE} answers")


def _told(stop: sf.Stopped, spec: Spec, clock: FastClock) -> None:
    """A person who knows that it takes its time, looks when that is over, and tells the truth."""
    clock.forward(BOUNDS[spec.bound])
    _waited("after", clock.now())
    run = sf.get_run(RUN)
    for one in stop.stops or (stop,):
        if not isinstance(one, sf.InDoubt) or not one.cures:
            raise Bare(f"{type(one).__name__}: {one!s}, cures {one.cures}")
        stage().goals.add("InDoubt")
        if one.address not in {past.address for past in run.state().in_doubt()}:
            continue
        there = bool(landed("charge 1", clock.now()))
        if there is one.address.startswith("charge.undo"):
            run.settle(one.address, not_happened=True, by="ann")
        else:
            run.settle(one.address, happened="ch_1" if there else None, by="ann")


# --- what must never be --------------------------------------------------------------------------------------------------


def judge(found: Findings, story: Story) -> None:
    play.same_request(found, story)
    lines = story.of("did", "undid", what="charge 1")
    for undo in (line for line in lines if line["do"] == "undid"):
        asked = lines[: lines.index(undo)]
        if any(line["do"] == "did" and line["lands"] > undo["lands"] for line in asked):
            found.add("I-32", "charge 1 was undone while it was still on its way")
    there = parts_of(in_order(lines))
    ends = story.kinds("RunDone", "RunFailed", "RunCancelled")
    if not ends:
        return
    known = {entry.address for entry in story.kinds("EffectDone", "EffectSettled") if getattr(entry, "happened", True)}
    if there and "charge#1" not in known and not story.said("charge#1"):
        found.add("I-32", "charge 1 is there in the end, the run knows nothing of it, and nobody was told")
    if there and type(ends[-1]).__name__ == "RunDone" and Spec.of(story.scenario).shape == "saga":
        found.add("I-05", "the saga was rolled back, and charge 1 is there")


def struck(lines: list[Line]) -> str:
    """A request was on its way when the process that had sent it was dead."""
    sent = any(line["do"] == "did" and line["life"] == 1 for line in lines)
    return "" if sent else "nothing was on its way"


RULES = Rules(live, judge, struck, dies=True)


def run(lab: Lab, scenario: Scenario) -> Outcome:
    return play.run(lab, scenario, RULES)


def drawn(luck: random.Random, shape: str, **fixed: str) -> Scenario:
    choice = {
        "policy": "check" if shape == "parts" else luck.choice(POLICIES), "bound": luck.choice(sorted(BOUNDS)),
        "lag": str(luck.choice(LAGS)), "gap": str(luck.choice(GAPS)), "slow": str(luck.choice(SLOW)), "shape": shape,
        "dies": luck.choice(DEATHS),
    } | fixed  # fmt: skip
    at = "/".join(
        f"{luck.randint(5, 70)}:{luck.choice(('kill', 'after'))}" for _ in range(luck.choice((0, 0, 1, 1, 2)))
    )
    return Scenario("+".join(Spec(**choice)), "L10", at)


scenarios = many(drawn)
"""L10: `flow` is the shape of the workflow."""
