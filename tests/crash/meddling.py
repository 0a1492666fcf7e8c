"""Somebody else writes beside a run (L12): into the files it watches and touches, at every boundary, inside every wait.

`flow=ready level=L12 at=57:meddle,90:kill/12:meddled seed=0`: right before boundary 57 of the first process (or right after
it: `meddled`) somebody rewrites the file; boundaries are counted as for kills, so that no window has to be named. The
flows: `ready`, whose effects say how they leave a file; `own`, an effect that does not; `saga`, which takes back what it
wrote; `approval` and `waiting`, in which a person says yes to a file as it was shown, in another process or in this one.

What is promised: what was there when the engine looked is not overwritten without a word; what an effect that says how it
leaves a file has not written is not taken for its own; and a yes is good for what was shown, and for nothing else. What is
written between the last look and the effect itself nobody can see.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import surefoot as sf
import surefoot.effects as ready
from surefoot import witness
from surefoot.core import values
from surefoot.engine.process import runtime
from surefoot.engine.session.attempt import Attempt
from surefoot.engine.session.world import World
from surefoot.testing.clock import FastClock
from tests.crash import play
from tests.crash.faults import RENAME, UNLINK
from tests.crash.flows import PATIENCE, Bare, Endless, look
from tests.crash.invariants import Findings, Line
from tests.crash.lab import Lab, _told
from tests.crash.play import RUN, Rules, Story, acted
from tests.crash.scenario import Outcome, Scenario
from tests.crash.stage import stage

FILE = "a.txt"
SHAPES = ("ready", "own", "saga", "approval", "waiting")
MODES = ("meddle", "meddled")
AMOUNT = 40
DECLARING = ("write_file", "delete_file")
"""Effects that say how they leave what they touch."""


# --- the world, and who watches it ---------------------------------------------------------------------------------------


def _content() -> str:
    return Path(FILE).read_text() if Path(FILE).exists() else ""


def _prepared() -> None:
    if not play.times("prepared", FILE):
        stage().note("prepared", FILE)
        Path(FILE).write_text("original")


def _let_others_write() -> None:
    """At the boundaries that the plan names; and whatever the run itself does to the file is written down."""
    shim, real = stage().shim, stage().shim.at

    def at(kind: str, name: str, perform: Any, **more: Any) -> Any:
        mode = shim.plan.get(len(shim.log) + 1, "")
        if mode == "meddle":
            _meddle()
        changes = name == FILE and kind in (RENAME, UNLINK)
        answer = real(kind, name, _noted(perform) if changes else perform, **more)
        if mode == "meddled":
            _meddle()
        return answer

    shim.at = at


def _noted(perform: Any) -> Any:
    """Before anybody can be killed: the file is changed, and the world knows by whom."""

    def performed() -> Any:
        answer = perform()
        stage().note("wrote", FILE)
        return answer

    return performed


def _meddle() -> None:
    """With nothing that is counted as a boundary."""
    number = play.times("foreign", FILE) + 1
    Path(FILE).write_text(f"somebody's work, {number}")
    stage().note("foreign", FILE, number=number)


def _note_looks() -> None:
    """When the engine looks is written down, and what was there: not what it makes of it."""
    sights, everything = Attempt.sights, World.look

    def looked(self: Any) -> Any:
        found = sights(self)
        stage().note("looked", FILE, address=self.call.address, sha=_sha(_content()))
        return found

    def looked_at_all(self: Any) -> Any:
        found = everything(self)
        stage().note("looked at all", FILE)
        return found

    Attempt.sights, World.look = looked, looked_at_all


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


# --- the programs --------------------------------------------------------------------------------------------------------


@sf.effect(touches=[witness.file(FILE)])
def edit(n: int) -> str:
    acted("edit", n, "keyed")  # The file is the effect: it may be told so twice.
    Path(FILE).write_text(f"edit {n}")
    stage().note("wrote", FILE)
    return f"ed_{n}"


@edit.check
def edited(n: int) -> Any:
    return sf.happened(f"ed_{n}") if _content() == f"edit {n}" else sf.not_happened()


@sf.workflow(watch=[witness.file(FILE)])
def readily() -> Any:
    stage().note("began", FILE)
    first = ready.write_file(FILE, "one\n")
    look(1)
    second = ready.write_file(FILE, "two\n")
    return [first, second, look(2)["n"], ready.delete_file(FILE)]


@sf.workflow(watch=[witness.file(FILE)])
def by_hand() -> Any:
    stage().note("began", FILE)
    return [edit(1), look(1)["n"], edit(2)]


@sf.workflow(watch=[witness.file(FILE)])
def taken_back() -> Any:
    stage().note("began", FILE)
    try:
        with sf.saga():
            ready.write_file(FILE, "one\n")
            look(1)
            raise ValueError("sold out")
    except ValueError as error:
        return str(error)


def _approved(life: int) -> Any:
    """Each process has another default for what is deployed, as if it were a deploy of the code itself."""

    @sf.effect(approve=True, touches=[witness.file(FILE)])
    def deploy(n: int, amount: int = AMOUNT + life) -> str:
        acted("deploy", n, "once", amount=amount)
        return f"de_{n}"

    @sf.workflow(name="approved")
    def approved() -> Any:
        stage().note("began", FILE)
        return [deploy(1), look(1)["n"], deploy(2)]

    return approved


FLOWS: dict[str, Callable[[int], Any]] = {
    "ready": lambda _: readily,
    "own": lambda _: by_hand,
    "saga": lambda _: taken_back,
    "approval": _approved,
    "waiting": lambda life: _approved(life).using(wait="10m"),
}


def live(scenario: Scenario, life: int) -> Any:
    _prepared()
    _note_looks()
    _let_others_write()
    if scenario.flow == "waiting":
        clock = FastClock(runtime.default_clock().now(), lambda side, _: _answered() if side == "before" else None)
        runtime.default_clock = lambda: clock
    workflow = FLOWS[scenario.flow](life)
    for _ in range(PATIENCE):
        try:
            return {"r": _ended(workflow.run(RUN))}
        except sf.Stopped as stop:
            _cured(stop)
        except (sf.Fatal, sf.StepFailed) as failure:
            return {"r": _ended(type(failure).__name__)}
    raise Endless(f"run {RUN} still stops after {PATIENCE} answers")


def _ended(result: Any) -> Any:
    stage().note("ended", FILE)
    return result


def _cured(stop: sf.Stopped) -> None:
    for one in stop.stops or (stop,):
        if not str(one) or not one.cures:
            raise Bare(f"{type(one).__name__}: {one!s}, cures {one.cures}")
        stage().goals.add(type(one).__name__)
        if isinstance(one, sf.Drifted):
            stage().note("accepted", FILE)
            sf.get_run(RUN).accept_drift(by="ann")
            stage().note("accepted", FILE)
        elif isinstance(one, sf.WaitingForAnswer):
            _answered()
        elif isinstance(one, sf.InDoubt):
            _settled(one.address)
        else:
            raise one


def _answered() -> None:
    """Yes to whatever is open, as it is shown at this moment."""
    run = sf.get_run(RUN)
    for past in run.state().questions():
        run.answer(past.address, True, by="ann", shown=past.shown)
        stage().note("answered", past.address.removesuffix(".approval"))


def _settled(address: str) -> None:
    run = sf.get_run(RUN)
    call = next(call for call in run.steps() if call.address == address)
    n = values.decode(call.args.encode())["n"]
    if play.is_there(f"deploy {n}"):
        run.settle(address, happened=f"de_{n}", by="ann")
    else:
        run.settle(address, not_happened=True, by="ann")


# --- what must never be --------------------------------------------------------------------------------------------------


def judge(found: Findings, story: Story) -> None:
    _not_overwritten(found, story)
    if story.scenario.flow in ("approval", "waiting"):
        play.same_request(found, story)
        _shown(found, story)


def _not_overwritten(found: Findings, story: Story) -> None:
    """Line by line, as the world has it: whose the file is, and what the engine had seen when it wrote.

    What is found after an effect that does not say what it writes is its own: that look ends its window. If the process died
    before the outcome was recorded, the window goes on until the look of the process whose check found that it happened.
    """
    checked = {entry.address for entry in story.kinds("EffectSettled") if entry.learned_by == "check"}
    foreign = seen = False
    writer, begun = "", False
    for line in story.lines:
        match line["do"]:
            case "foreign":
                foreign, seen = True, False
            case "began":
                begun = True
            case "looked at all":
                foreign, seen = foreign and begun, foreign and begun
            case "looked":
                own = writer == line["address"] and not _is_declaring(line["address"])
                foreign, seen = (False, False) if own else (foreign, foreign)
                looking = line["address"]
                writer = looking if own and looking in checked else ""
            case "wrote":
                if seen:
                    found.add("I-34", f"{looking} has overwritten what somebody else wrote, though it was seen")
                writer, foreign, seen = looking, False, False
            case "accepted":
                foreign = seen = False
            case _:
                pass


def _is_declaring(address: str) -> bool:
    return address.partition("#")[0].partition(".")[0] in DECLARING


def _shown(found: Findings, story: Story) -> None:
    """A yes is good for the very content and defaults that were shown: as the engine found them right before it acted."""
    agreed: list[tuple[str, str, Any]] = []
    shown: dict[str, Any] = {}
    for entry in story.kinds("QuestionAsked", "AnswerGiven"):
        if type(entry).__name__ == "QuestionAsked":
            shown[entry.address] = entry
        elif entry.shown == shown[entry.address].shown:
            details = values.decode(shown[entry.address].details)
            agreed.append((entry.address.removesuffix(".approval"), str(details["touches"]), details["defaults"]))
    last: dict[str, str] = {}
    for line in story.lines:
        if line["do"] == "looked":
            last[line["address"]] = line["sha"]
        if line["do"] == "answered":
            last[line["what"]] = "nothing: nobody has looked since the answer"
        if line["do"] == "did" and line["what"].startswith("deploy"):
            address = line["address"]
            wanted = address, line["args"]
            if not any(wanted == (one, defaults) and last[address] in touches for one, touches, defaults in agreed):
                found.add(
                    "I-04", f"{address} was executed with {line['args']} on {last[address]}: nobody was shown that"
                )


def struck(lines: list[Line]) -> str:
    return "" if any(line["do"] == "foreign" for line in lines) else "nobody wrote"


RULES = Rules(live, judge, struck)
_logs: dict[str, list[tuple[str, str]]] = {}


def run(lab: Lab, scenario: Scenario) -> Outcome:
    return play.run(lab, scenario, RULES)


# --- which there are -----------------------------------------------------------------------------------------------------


def scenarios(lab: Lab, flow: str, count: int, seed: int) -> list[Scenario]:
    """L12: one to three writes of somebody else's, and up to two kills."""
    luck = random.Random(f"{flow} {seed}")
    return [drawn(luck, flow, length(lab, flow)) for _ in range(count)]


def length(lab: Lab, flow: str) -> int:
    """The boundaries of the undisturbed run."""
    return len(_boundaries(lab, flow))


def moments(lab: Lab, flow: str, luck: random.Random) -> list[str]:
    """Before and after each boundary, in any order; those next to a change of the file come first."""
    log = _boundaries(lab, flow)
    changes = {at for at, (_, name) in enumerate(log, 1) if name == FILE}
    near = {at + behind for at in changes for behind in (0, 1)}
    found = [(at, mode) for at in range(1, len(log)) for mode in MODES]
    luck.shuffle(found)
    return [f"{at}:{mode}" for at, mode in sorted(found, key=lambda one: one[0] not in near)]


def _boundaries(lab: Lab, flow: str) -> list[tuple[str, str]]:
    if flow not in _logs:
        scenario = Scenario(flow, "L12")
        told = _told(lab._life(play.as_flow(RULES, scenario, 1), lab._fresh(), {}, 1))
        if told.get("wrong") or told.get("error"):
            raise AssertionError(f"flow {flow} fails though nobody meddles: {told}")
        _logs[flow] = [(kind, name) for kind, name, *_ in told["log"]]
    return _logs[flow]


def drawn(luck: random.Random, flow: str, boundaries: int, engine: str = "") -> Scenario:
    lives = []
    for number in range(luck.choice((1, 1, 2, 2, 3))):
        most = boundaries if number == 0 else boundaries // 2
        struck = sorted(luck.sample(range(1, most), luck.choice((1, 1, 2)) + 1))
        faults = [f"{at}:{luck.choice(MODES)}" for at in struck[:-1]]
        lives.append(",".join([*faults, f"{struck[-1]}:{luck.choice(('kill', 'after', *MODES))}"]))
    return Scenario(flow, "L12", "/".join(lives), 0, engine)
