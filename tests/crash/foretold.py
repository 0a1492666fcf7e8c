"""What a person is told would follow from a word, held against what follows when it is said (`run.plan(supposing=…)`).

A program of the grammar is lived by simulated processes on a simulated store, and each of them may die. Between two lives
somebody thinks of something to say: it is supposed first, which must leave no trace; then it is said, and the next process
takes the run up. Up to the first call that is made, all has to be as foretold; and what was refused has to be refused.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import surefoot as sf
from surefoot.core.address import split
from surefoot.core.entry import (
    VISITORS,
    EffectRaised,
    EffectSettled,
    Progressed,
    Published,
    RunAdopted,
    RunCancelled,
    RunContinued,
    RunDone,
    RunFailed,
    RunStopped,
    ValueNoted,
)
from surefoot.core.history import PastWait
from surefoot.core.seal import Record, from_record
from surefoot.core.state import ENDED, RunState
from surefoot.errors import UsageError
from surefoot.testing.children import Tell, in_child
from tests.crash import flows, stage
from tests.crash.programs import AMOUNT, programmed, written
from tests.crash.scenario import Scenario
from tests.crash.simulation import Dead, Impatient, Process, Schedule, _simulated

SECONDS = 600
MOST_WORDS = 6
MOST_OPERATIONS = 40
UNSAID = "nothing"
"""No word at all: what a resume would do as the run is."""
_ENDS = {RunDone: "done", RunFailed: "failed", RunCancelled: "cancelled"}
_NOTES = (ValueNoted, Progressed, Published)
"""Recorded along with what follows them: the plan passes them."""


@dataclass
class Told:
    """One story: what was supposed and held against what happened."""

    line: str
    words: list[str] = field(default_factory=list)
    """What was said, or refused, by `do`; those that could be held against a resume."""
    wrong: list[str] = field(default_factory=list)


def told(first: int, count: int) -> Iterator[Told]:
    """Stories by number, in one child for all."""

    def work(tell: Tell) -> None:
        stage.hush([])
        for number in range(first, first + count):
            tell(json.dumps(asdict(Story(number).told())).encode() + b"\n")

    ended = in_child(work, seconds=SECONDS)
    found = [Told(**json.loads(line)) for line in ended.report.splitlines()]
    yield from found
    if len(found) < count:
        why = "did not end" if ended.late else f"ended with {ended.signal or ended.code}: {ended.trouble[-900:]}"
        yield Told(f"story {first + len(found)}", wrong=[why])


class Story(Schedule):
    """One program, lived until it is over or enough was said."""

    def __init__(self, number: int) -> None:
        self.program = written(number)
        super().__init__(Scenario(self.program, "L1", "", number))
        self.luck = random.Random(f"story {number}")
        self.story = Told(f"story {number}: {self.program}")
        self.left = 0
        self.run_id = "r"
        self._forks = 0
        self.last = ""

    def fault(self, process: Process, *, writes: bool) -> str:
        if self.quiet or self.left == 0:
            return ""
        self.left -= 1
        return ("dies-after" if writes and self.luck.random() < 0.5 else "dies-before") if self.left == 0 else ""

    def told(self) -> Told:
        with _simulated():
            self._lives(lambda: programmed.run("r", self.program, 1))
            for _ in range(MOST_WORDS):
                if not self._stored():
                    break
                self._word()
                if self.story.wrong:
                    break
        return self.story

    # --- lives -----------------------------------------------------------------------------------------

    def _lives(self, act: Callable[[], Any]) -> bool:
        """In a process that may die. Whether it came to an end of its own."""
        self.left = self.luck.choice((0, self.luck.randint(1, MOST_OPERATIONS)))
        process = self._process()
        try:
            self._as(process, act)
        except (Dead, Impatient):
            return False
        except Exception as error:  # How a run ends, or stops, is in its journal.
            self.last = repr(error)
        finally:
            self.left = 0
            process.dead = True
        return True

    def _quietly(self, act: Callable[[], Any]) -> Any:
        """In a process that does only this, and dies afterwards."""
        process = self._process()
        try:
            return self._as(process, act)
        finally:
            process.dead = True

    def _stored(self) -> list[Record]:
        return list(self.core._journals.get(self.run_id, []))

    def _acts(self) -> int:
        """How much was executed. What code does between its calls it does in a rehearsal, too."""
        return sum(line["do"] in ("did", "undid", "step") for line in self.lines)

    # --- words -----------------------------------------------------------------------------------------

    def _word(self) -> None:
        state = RunState(self.run_id)
        for record in self._stored():
            state.fold(record)
        said = self._something(state)
        before = {run: list(found) for run, found in self.core._journals.items()}
        acts = self._acts()
        try:
            foretold = self._quietly(lambda: self._supposed(said))
        except UsageError as error:
            foretold = error
        if before != self.core._journals or acts != self._acts():
            self._wrong(said, "to suppose it has left a trace")
            return
        if isinstance(foretold, UsageError):
            self._refused(said, foretold)
        else:
            self._said(said, foretold)

    def _supposed(self, said: dict[str, Any]) -> Any:
        run = sf.get_run(self.run_id)
        return run.plan() if said["do"] == UNSAID else run.plan(supposing=said)

    def _refused(self, said: dict[str, Any], why: UsageError) -> None:
        try:
            self._quietly(lambda: say(sf.get_run(self.run_id), said))
        except UsageError as error:
            if str(error) != str(why):
                self._wrong(said, f"refused as {error}, and it was foretold to be as {why}")
            self.story.words.append("refused")
        else:
            self._wrong(said, f"was foretold to be refused, and is not: {why}")

    def _said(self, said: dict[str, Any], foretold: Any) -> None:
        upto = len(self._stored())
        acts = self._acts()
        if said["do"] == "cancel":  # To say it is to have it carried out.
            ended = self._lives(lambda: say(sf.get_run(self.run_id), said))
        else:
            if said["do"] != UNSAID:
                self._quietly(lambda: say(sf.get_run(self.run_id), said))
            if said["do"] == "fork":
                self.run_id = said["id"]
            upto = len(self._stored())
            if self._acts() != acts:
                self._wrong(said, "to say it has executed something")
            ended = self._lives(lambda: sf.get_run(self.run_id).resume())
        new = [from_record(record) for record in self._stored()[upto:]]
        if wrong := _compared(foretold, new, ended=ended):
            self._wrong(said, wrong)
        elif wrong is not None:
            self.story.words.append(said["do"])

    def _wrong(self, said: dict[str, Any], why: str) -> None:
        self.story.wrong.append(f"{said}: {why}")

    def _something(self, state: RunState) -> dict[str, Any]:
        """Mostly what helps, and sometimes what can only be refused."""
        luck, calls = self.luck, list(state.calls)
        said: list[dict[str, Any]] = [{"do": UNSAID}]
        for past in state.in_doubt():
            name, number = split(past.address)[1], luck.randint(1, 9)
            happened = None if "." in name else "ri" if name == "risky" else flows.value_of(name, number, AMOUNT)
            how = luck.choice(({"happened": happened}, {"not_happened": True}, {"failed": True}))
            said += [{"do": "settle", "address": past.address, **how}] * 3
        for asked in state.questions():
            value = luck.choice((True, False)) if asked.form == "approve" else luck.choice((AMOUNT, "no number"))
            said += [{"do": "answer", "question": asked.address, "value": value}] * 3
        for past in state.calls.values():
            if isinstance(past, PastWait) and past.value is None:
                value = {"name": past.name, "at": luck.randint(1, 99)}
                said += [{"do": "event", "name": past.name, "value": value, "id": str(luck.random())}] * 3
        if calls:
            said.append({"do": "rewind", "at": luck.choice(calls)})
            self._forks += 1
            said.append({"do": "fork", "at": luck.choice(calls), "id": f"fork-{self._forks}"})
            said.append({"do": "settle", "address": luck.choice(calls), "not_happened": True})
        said += [{"do": "retry", "failed": True}] * (3 if state.status == "failed" else 1)
        said.append({"do": "cancel"})
        said.append({"do": "release"})
        return luck.choice(said)


def say(run: sf.Run, said: dict[str, Any]) -> None:
    """By the verb that people use."""
    words = {name: value for name, value in said.items() if name != "do"}
    match said["do"]:
        case "settle":
            run.settle(words.pop("address"), **words)
        case "answer":
            run.answer(words["question"], words["value"])
        case "event":
            run.send_event(words["name"], words["value"], id=words["id"])
        case "rewind":
            run.rewind(words["at"])
        case "fork":
            run.fork(words["id"], at=words["at"])
        case "retry":
            run.retry(failed=True)
        case "cancel":
            run.cancel()
        case "release":
            run.release()
        case unknown:
            raise AssertionError(unknown)


def _compared(foretold: Any, new: list[Any], *, ended: bool) -> str | None:
    """What is not as foretold; empty: all is. None: the process died before it came so far that one could tell."""
    plan = getattr(foretold, "plan", foretold)
    upcoming = {address for _, address in foretold.next or []}
    doubtful = dict(foretold.in_doubt)
    made = next((one for one in new if _is_of_a_call(one)), None)
    if plan.status in ENDED and made is None:
        return ""
    if made is not None:
        address = getattr(made, "address", "")
        if isinstance(made, RunContinued):
            return (
                ""
                if "continue_as_new" in {kind for kind, _ in foretold.next or []}
                else f"continued; {_summary(foretold)}"
            )
        if address in upcoming or any(address.startswith(f"{one}.") for one in upcoming):
            return ""
        return f"{type(made).__name__} {address} came first; {_summary(foretold)}"
    if not ended:
        return None
    looked_for = {address for address, what in doubtful.items() if what.startswith("ask its check")}
    if upcoming and upcoming <= looked_for:
        return ""  # It could not tell, and that leaves no trace.
    stops = [stop for one in new if isinstance(one, RunStopped) for stop in one.stops]
    standing = {stop.address for stop in stops if stop.reason == "InDoubt"}
    if standing and standing <= doubtful.keys():
        return ""
    if stops and {str(stop) for stop in stops} <= set(foretold.stops):
        return ""
    adopted = any(isinstance(one, RunAdopted) for one in new)
    if stops or (upcoming and adopted):
        return f"{[str(stop) for stop in stops]} came first; {_summary(foretold)}"
    if upcoming:
        return f"nothing was made; {_summary(foretold)}"
    over = next((_ENDS[type(one)] for one in new if type(one) in _ENDS), "")
    return "" if over == plan.ending else f"it is {over or 'not over'}; {_summary(foretold)}, ending {plan.ending!r}"


def _is_of_a_call(entry: Any) -> bool:
    if isinstance(entry, RunContinued):
        return True
    if isinstance(entry, EffectRaised) and entry.denied:
        return False  # What a no has come to: nothing was begun.
    if isinstance(entry, EffectSettled):
        return entry.learned_by == "check"
    return bool(getattr(entry, "address", "")) and type(entry) not in (*VISITORS, *_NOTES)


def _summary(foretold: Any) -> str:
    return f"foretold: next {foretold.next}, in doubt {foretold.in_doubt}, stops {foretold.stops}"
