"""What a scenario proves: it held, or which mistake in which call explains that it did not.

Same result, same world, each effect at most once, nothing that was recorded executed again. What is not so has one of
the causes below; which one follows from what the event log says was executed twice, never, or with something else.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from surefoot.core.visible import shorten
from surefoot.testing.exploring import (
    ASKED,
    DAMAGED,
    DIED,
    DONE,
    FAILED,
    LATE,
    MISUSED,
    STOPPED,
    Seen,
    Task,
    differences,
)
from surefoot.testing.watching import (
    BEGUN,
    ENDED,
    INTENDED,
    LOOKED,
    LOUD,
    MEDDLED,
    RECORDED,
    STRAYED,
    TOUCHED,
    Call,
    Event,
    Point,
)
from surefoot.testing.watching import DONE as DONE_KINDS
from surefoot.testing.watching import MISUSED as MISUSED_CALL

WIDTH: Final = 160
_STORE_ERRORS: Final = ("Fenced", "StoreFull", "StoreUnavailable")

STEP = "an effect declared as a step"
CHECK = "a check that lies"
MEDDLING = "a check that changes the world"
RETRY = "a retry of an effect that is not idempotent"
UNDO = "an undo that is not idempotent"
PARTIAL = "an undo that does not take back what its call did in part"
STATE = "state outside the run"
POOL = "an effect called from a thread pool"
BODY = "an effect outside of any call"
DRIFT = "own changes taken for drift"
ENDLESS = "a resume that does not end"
FAILING = "a resume that fails"
STANDING = "a resume that stops"
AGAIN = "a recorded call executed again"
SILENT = "damage that nobody was told of"

CURES: Final = {
    STEP: "Declare it with @sf.effect: a step may be executed again after a crash, an effect is not, unless you say so.",
    CHECK: "Let its check look at what the effect really changes (the row, the file, the key at the other side), and "
    "answer sf.unknown(why) where that cannot tell.",
    MEDDLING: "Let it only look: a check may be called at any time, and more than once.",
    RETRY: 'Give the other side the key (sf.key()) so that it recognises a repetition; or drop on_crash="retry" and write '
    "a check; or let it ask.",
    UNDO: 'Make it harmless to undo twice (look first, or hand over sf.key()); or drop its on_crash="retry", or give it '
    "a check: @NAME.undo.check.",
    PARTIAL: "After sf.partial() the effect is undone and executed again: its undo has to leave the world as it was before "
    "this very call, whatever part of it was done.",
    STATE: "Pass it as an argument, or return it from a step: a resumed run begins in a new process, where globals are as "
    "imported, and repeats the workflow's own lines. Read files, time and environment in steps.",
    POOL: "Use sf.map or sf.gather instead of a pool (in async code also asyncio.to_thread): they record what they call.",
    BODY: "Move what changes the world out of the workflow's own lines into a function with @sf.effect: the lines between "
    "calls run again at every resume.",
    DRIFT: "Say in touches= of the effect what it changes: a run's own changes are no drift then.",
    ENDLESS: "Look for a wait on something that only the killed process would have done.",
    FAILING: "Look at what it says: code that runs only at a resume, or that relies on the process before.",
    STANDING: "Look at what it says: a resume must not need a person where an uninterrupted run does not.",
    AGAIN: "That should be impossible whatever your code does: please report it with the line that reproduces it.",
    SILENT: "That should be impossible whatever your code does: please report it with the line that reproduces it.",
}  # fmt: skip


@dataclass(frozen=True)
class Wrong:
    """Something did not hold."""

    mistake: str
    call: str
    what: str
    suspects: tuple[str, ...] = ()
    """Other calls that may be the ones, where several were under way."""
    world: tuple[str, ...] = ()
    """What of the world is not as it should be."""


@dataclass
class Verdict:
    how: str
    """In few words, how the resume ended."""
    wrong: list[Wrong] = field(default_factory=list)
    repeated: tuple[str, ...] = ()
    note: tuple[str, str] = ("", "")
    """Of which call, and what a person should know of it."""


class Case:
    """One scenario beside the uninterrupted run."""

    def __init__(self, task: Task, right: Seen, found: Seen, at: str, *, varying: Collection[str] = ()) -> None:
        """`varying`: calls whose arguments or results are others each time, and which prove nothing therefore."""
        self._task, self._right, self._found, self._at, self._varying = task, right, found, at, varying
        self._before = found.events[: found.before_kill]
        self._after = found.events[found.before_kill :]
        self._known = {event.call: event for event in (*right.events, *found.events) if event.what == BEGUN}
        begun, usual = _counted(found.events, BEGUN), _counted(right.events, BEGUN)
        self._repeated = [call for call in begun if begun[call] > usual[call]]
        self._differences = differences(task, right, found) if found.leg.ending == DONE else []

    # -- without damage -----------------------------------------------------------------------------

    def judge(self) -> Verdict:
        leg = self._found.leg
        proven = self._lies() or self._again()
        wrong = proven or self._ending() or self.otherwise()
        if wrong and not proven and leg.ending != MISUSED and (failed := self._failed_as_declared()):
            return Verdict('failed, as on_crash="fail" says', [], self._names(self._repeated), self._went_on(failed))
        settled = any(event.what == RECORDED and event.kind == "EffectSettled" for event in self._after)
        how = {ASKED: "asked a person"}.get(leg.ending, "in doubt, settled" if settled else "resumed")
        return Verdict(how, wrong, self._names(self._repeated))

    def _lies(self) -> list[Wrong]:
        meddled = [event.address for event in self._after if event.what == MEDDLED]
        if meddled and self._is_off():
            return [Wrong(MEDDLING, meddled[0], f"its check wrote something{self._seen()}")]
        wrong = []
        for event in self._after:
            if event.what != LOOKED:
                continue
            returned = [one.value for one in self._before if one.what == ENDED and one.call == event.call and one.value]
            recorded = self._recorded_result(event)
            call = self._name(event.call)
            in_part = not returned and any(one.what == BEGUN and one.call == event.call for one in self._before)
            what = "after it had happened in part" if in_part else "after it had happened"
            if event.text == "NotHappened" and (returned or (in_part and self._is_off())):
                wrong.append(Wrong(CHECK, call, f"its check said not_happened {what}{self._seen()}"))
            elif event.text == "Happened" and not returned and self._is_off():
                what = what if in_part else "before it had happened"
                wrong.append(Wrong(CHECK, call, f"its check said happened {what}{self._seen()}"))
            elif event.text == "Happened" and returned and recorded and not _same(returned[-1], recorded):
                what = f"its check gave {_short(recorded)}, and the call had returned {_short(returned[-1])}"
                wrong.append(Wrong(CHECK, call, what))
        return wrong

    def _recorded_result(self, event: Event) -> str:
        """What is on record for that call; empty if it belongs to a segment that is over, or to another run."""
        newest = max(one.segment for one in self._found.events if one.run == self._task.run)
        if (event.run, event.segment) != (self._task.run, newest):
            return ""
        return self._found.leg.calls.get(event.address, ("", ""))[1]

    def _again(self) -> list[Wrong]:
        recorded = {event.call for event in self._before if event.what == RECORDED and event.kind in DONE_KINDS}
        return [
            Wrong(AGAIN, self._name(event.call), "it was on record before the kill, and was executed after it")
            for event in self._after
            if event.what == BEGUN and event.call in recorded
        ] + [
            Wrong(AGAIN, self._name(call), f"it was executed twice, and nobody said that it may be{self._seen()}")
            for call in self._done_twice()
        ]

    def _done_twice(self) -> list[Call]:
        """Effects that came to their end more often than usual, though they are not declared to be harmless."""
        usual, ended = (Counter(_returned(seen.events)) for seen in (self._right, self._found))
        known = self._known
        return [
            call for call, number in ended.items()
            if number > max(1, usual[call]) and known[call].kind == "effect" and known[call].policy != "retry"
        ]  # fmt: skip

    def _ending(self) -> list[Wrong]:
        """How the run ended, where it should have ended well."""
        leg = self._found.leg
        workflow = self._task.workflow.name
        match leg.ending:
            case "done":
                return []
            case "asked":
                return self._raised_again(leg.address)
            case "stopped" if leg.kind == "CodeChanged":
                return [Wrong(STATE, leg.address or workflow, shorten(leg.text, 2 * WIDTH))]
            case "stopped" if leg.kind == "Drifted":
                return [Wrong(DRIFT, leg.address or workflow, shorten(leg.text, 2 * WIDTH))]
            case "stopped" | "damaged":
                return [Wrong(STANDING, leg.address or workflow, shorten(f"{leg.kind}: {leg.text}", 2 * WIDTH))]
            case "late":
                return [Wrong(ENDLESS, workflow, leg.text)]
            case _:
                raised = [
                    event for event in self._after if event.what == ENDED and event.text and event.text == leg.text
                ]
                call = self._name(raised[-1].call) if raised else workflow
                return [Wrong(FAILING, leg.address or call, shorten(" ".join(leg.text.split()), 4 * WIDTH))]

    def _raised_again(self, address: str) -> list[Wrong]:
        """Declared to be harmless when repeated, and yet a person has to be asked: the repetition failed."""
        raised = [
            event for event in self._after if event.what == ENDED and not event.value and event.address == address
        ]
        again = [event for event in raised if event.policy == "retry" and event.call in self._repeated]
        return [
            Wrong(UNDO if event.undo else RETRY, self._name(event.call), f"executed again, it raised {event.text}")
            for event in again[:1]
        ]

    def otherwise(self) -> list[Wrong]:
        """The run ended, but not as it should have."""
        if not self._is_off():
            return []
        address, what = self._first_difference()
        repeated = self._suspects()
        if unexpected := self._unexpected():
            return [Wrong(STATE, unexpected, f"it was called, and an uninterrupted run does not call it{self._seen()}")]
        if address and address not in repeated:
            return [Wrong(STATE, address, what + self._seen())]
        if address and not self._differences:
            mistake = STATE if self._event(address).kind == "step" else RETRY
            return [Wrong(mistake, address, what)]
        if self._differences and repeated:
            call = repeated[0]
            what = "it was executed twice" + self._seen()
            return [Wrong(self._mistake(call), call, what, tuple(repeated[1:]), tuple(self._differences))]
        workflow = self._task.workflow.name
        if self._differences:
            return [self._unexplained(workflow)]
        return [Wrong(STATE, workflow, self._results())]

    def _unexplained(self, workflow: str) -> Wrong:
        """No call was executed twice: it was the workflow's own lines, or a call that relied on the process before."""
        resumed = [event for event in self._after if event.what == BEGUN and event.kind == "effect"]
        touches = any(event.what == TOUCHED for event in (*self._right.events, *self._found.events))
        if touches or not resumed:
            what = "no call was executed twice" + self._seen()
            return Wrong(BODY, workflow, what, world=tuple(self._differences))
        call = self._name(resumed[0].call)
        what = "executed by the process that resumed, it did something else" + self._seen()
        return Wrong(STATE, call, what, world=tuple(self._differences))

    def _unexpected(self) -> str:
        """A call of the workflow that an uninterrupted run does not make."""
        usual = {event.call for event in self._right.events if event.what == BEGUN}
        new = [event for event in self._after if event.what == BEGUN and event.call not in usual and not event.undo]
        return self._name(new[0].call) if new else ""

    def _is_off(self) -> bool:
        if self._found.leg.ending != DONE:
            return False
        lost = self._right.leg.calls.keys() - self._found.leg.calls.keys()
        return bool(self._differences or lost) or not _same(self._right.leg.value, self._found.leg.value)

    def _first_difference(self) -> tuple[str, str]:
        """The first call that got, or gave, something else than in the uninterrupted run."""
        for address, (args, result) in self._right.leg.calls.items():
            now = self._found.leg.calls.get(address)
            if address in self._varying and now is not None:
                continue
            if now is None:
                return address, "it was not called"
            if not _same(args, now[0]):
                return address, f"it was called with {_short(now[0])} instead of {_short(args)}"
            if not _same(result, now[1]):
                return address, f"it returned {_short(now[1])} instead of {_short(result)}"
        return "", ""

    def _mistake(self, name: str) -> str:
        event = self._event(name)
        if event.kind == "step":
            return STEP
        if any(one.what == LOOKED and one.call == event.call and one.text == "Partial" for one in self._after):
            return PARTIAL
        if event.policy != "retry":
            return AGAIN
        return UNDO if event.undo else RETRY

    def _event(self, name: str) -> Event:
        return next(event for call, event in self._known.items() if self._name(call) == name)

    def _suspects(self) -> list[str]:
        """What was executed more often than usual; the call that was killed comes first."""
        names = list(self._names(self._repeated))
        return sorted(names, key=lambda name: name != Point.of(self._at).address)

    def _went_on(self, failed: Event) -> tuple[str, str]:
        """What a person should see: of the call that failed nobody knows whether it happened."""
        call = self._name(failed.call)
        said = (
            f'{call} failed, as on_crash="fail" says, and the workflow went on. Whether it had happened nobody knows; see '
            f"whether that is what you want{self._seen()}"
        )
        return call, said if self._differences else ""

    def _failed_as_declared(self) -> Event | None:
        """The call that was in doubt, and failed for it."""
        done = {event.call for event in self._before if event.what == RECORDED and event.kind in DONE_KINDS}
        intended = {event.call for event in self._before if event.what == RECORDED and event.kind == INTENDED}
        twice = {call for call in self._repeated if self._known[call].policy == "fail"}
        doubtful = [self._known[call] for call in intended - done if call in self._known]
        return next((event for event in doubtful if event.policy == "fail" and not twice), None)

    # -- with damage --------------------------------------------------------------------------------

    def judge_damaged(self) -> Verdict:
        """Right or loud: what was lost is said, and nothing is done twice whatever was lost."""
        leg = self._found.leg
        where = self._found.damage
        told = [event.text for event in self._after if event.what == LOUD]
        twice = [call for call in self._done_twice() if self._known[call].policy != "check"]
        if twice:
            return Verdict("", [Wrong(SILENT, self._name(twice[0]), f"{where}, and it was executed twice")])
        if leg.ending in (STOPPED, DAMAGED, MISUSED, ASKED) or self._failed_as_declared():
            return Verdict(f"loud: {leg.kind or leg.ending}")
        if leg.ending == FAILED and (leg.kind in _STORE_ERRORS or self._may_fail()):
            return Verdict(f"loud: {leg.kind}")
        if leg.ending in (LATE, DIED, FAILED) or self._is_off():
            what = shorten(leg.text, WIDTH) or (self._seen().removeprefix(": ") or self._results())
            return Verdict("", [Wrong(SILENT, self._task.workflow.name, f"{where}: {what}")])
        if self._again() and not told:
            return Verdict("", [Wrong(SILENT, self._again()[0].call, f"{where}, and what was recorded ran again")])
        return Verdict("fell back, loudly" if told else "undisturbed")

    def _may_fail(self) -> bool:
        """An effect that is in doubt because its record was lost fails where it is declared to."""
        return self._found.leg.kind == "StepFailed" and any(event.policy == "fail" for event in self._known.values())

    # -- words --------------------------------------------------------------------------------------

    def _name(self, call: Call) -> str:
        run, _, address = call
        return address if run == self._task.run else f"{run}/{address}"

    def _names(self, calls: Iterable[Call]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self._name(call) for call in calls))

    def _seen(self) -> str:
        return f": {'; '.join(self._differences)}" if self._differences else ""

    def _results(self) -> str:
        return f"the result is {_short(self._found.leg.value)} instead of {_short(self._right.leg.value)}"


def misused(task: Task, right: Seen) -> list[Wrong]:
    """What the uninterrupted run already shows: calls that surefoot refused to make."""
    wrong = []
    for event in right.events:
        if event.what == STRAYED:
            what = "it was called from a thread or task that belongs to no run, so it was refused"
            wrong.append(Wrong(POOL, event.address, what))
        elif event.what == MISUSED_CALL and "that was not started by surefoot" in event.text:
            wrong.append(Wrong(POOL, event.address, shorten(event.text, 4 * WIDTH)))
    return wrong


def varying(right: Seen, second: Seen) -> set[str]:
    """Calls that differ between two uninterrupted runs, and between whose results it makes no difference."""
    return {address for address, call in right.leg.calls.items() if second.leg.calls.get(address) != call}


def _returned(events: Sequence[Event]) -> Iterable[Call]:
    return (event.call for event in events if event.what == ENDED and event.value)


def _counted(events: Sequence[Event], what: str) -> Counter[Call]:
    return Counter(event.call for event in events if event.what == what)


def _same(one: str, other: str) -> bool:
    return one == other or (bool(one) and bool(other) and json.loads(one) == json.loads(other))


def _short(value: str) -> str:
    return shorten(value, WIDTH) if value else "nothing"
