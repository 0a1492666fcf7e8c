"""What a scenario proves: it held, or which mistake in which call explains that it did not.

Same result, same world, each effect at most once, nothing that was recorded executed again. What is not so has one of
the causes below; which one follows from what the event log says was executed twice, never, or with something else.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, assert_never

from surefoot.core.entry import QuestionAsked
from surefoot.core.visible import shorten
from surefoot.testing import probe
from surefoot.testing.mishaps import EDITED, FAILS, is_edited, sort_of
from surefoot.testing.plan import edits
from surefoot.testing.probe import Call, LogLine, Point, where
from surefoot.testing.scenarios import Ending, Seen, Task, differences
from surefoot.testing.trace import Traces
from surefoot.testing.worlds import Difference, few

WIDTH: Final = 160
_ASKING: Final = f"{probe.AFTER}:{probe.WRITE}:{QuestionAsked.__name__}"
_STORE_ERRORS: Final = ("Fenced", "StoreFull", "StoreUnavailable")

CURES: Final = {
    (STEP := "an effect declared as a step"): "Declare it with @sf.effect: a step may be executed again after a crash, an "
    "effect is not, unless you say so.",
    (CHECK := "a check that lies"): "Let its check look at what the effect really changes (the row, the file, the key at "
    "the other side), and answer sf.unknown(why) where that cannot tell.",
    (ACTING := "an effect that acts and then says that it did not"): "Raise sf.NotDone, and name in not_done=, only what "
    "is raised where nothing was done yet: any other exception is doubt, and on_crash decides. An effect that does "
    "several things says not_done=().",
    (LANDING := "an effect that lands after its check was believed"): "Say with in_flight= for how long what it starts "
    "may still be on its way (counted from the end of timeout=, if it has one): a check's not_happened is believed only "
    'after that. in_flight="0s" is for what dies with the process.',
    (MEDDLING := "a check that changes the world"): "Let it only look: a check may be called at any time, and more than "
    "once.",
    (RETRY := "a retry of an effect that is not idempotent"): "Give the other side the key (sf.key()) so that it "
    'recognises a repetition; or drop on_crash="retry" and write a check; or let it ask.',
    (UNDO := "an undo that is not idempotent"): "Make it harmless to undo twice (look first, or hand over sf.key()); or "
    'drop its on_crash="retry", or give it a check: @NAME.undo.check.',
    (PARTIAL := "an undo that does not take back what its call did in part"): "After sf.partial() the effect is undone "
    "and executed again: its undo has to leave the world as it was before this very call, whatever part of it was done.",
    (LEFT := "something left behind by a call that was cut off"): "Give it a name that is the same each time, for example "
    "from sf.key(): then who executes it again finds it, or writes over it. Or put it where nobody looks: the system's "
    "folder for temporary files.",
    (STATE := "state outside the run"): "Pass it as an argument, or return it from a step: a resumed run begins in a new "
    "process, where globals are as imported, and repeats the workflow's own lines. Read files, time and environment in "
    "steps.",
    (TWICE := "code between calls that does not bear to run twice in one process"): "Before a run with effects goes on, "
    "its function is replayed with nothing executed, and then run: the lines between calls run twice in that process. Let "
    "them depend on arguments and results alone: no global that counts, remembers or is used up, no lock that stays "
    "taken.",
    (POOL := "an effect called from a thread pool"): "Use sf.map or sf.gather instead of a pool (in async code also "
    "asyncio.to_thread): they record what they call.",
    (BODY := "an effect outside of any call"): "Move what changes the world out of the workflow's own lines into a "
    "function with @sf.effect: the lines between calls run again at every resume.",
    (OVERWRITTEN := "somebody else's change that is overwritten"): 'Leave on_drift= at "stop": a person sees what has '
    "changed before it is overwritten. If nobody else has anything to say about that file, leave it out: --exclude, or "
    "exclude= of crash_matrix.",
    (DRIFT := "own changes taken for drift"): "Say in touches= of the effect what it changes: a run's own changes are no "
    "drift then.",
    (ENDLESS := "a resume that does not end"): "Look for a wait on something that only the killed process would have "
    "done.",
    (FAILING := "a resume that fails"): "Look at what it says: code that runs only at a resume, or that relies on the "
    "process before.",
    (STANDING := "a resume that stops"): "Look at what it says: a resume must not need a person where an uninterrupted "
    "run does not.",
    (AGAIN := "a recorded call executed again"): "That should be impossible whatever your code does: please report it "
    "with the line that reproduces it.",
    (SILENT := "damage that nobody was told of"): "That should be impossible whatever your code does: please report it "
    "with the line that reproduces it.",
}  # fmt: skip
"""What to change, by mistake."""
ENDINGS: Final = (
    RESUMED := "resumed",
    FOUND := "found by its check",
    SETTLED := "in doubt, settled",
    ASKED := "asked a person",
    NOTICED := "noticed: somebody else's change",
    ASKED_AGAIN := "asked again",
    AS_RAISED := "failed, as was raised",
    AS_DECLARED := 'failed, as on_crash="fail" says',
    NOT_REACHED := "not reached",
    UNDISTURBED := "undisturbed",
    FELL_BACK := "fell back, loudly",
)
"""How a resume may end where nothing is wrong; and `loud: ` with the name of an error."""


BY_REHEARSAL: Final = (STATE, FAILING, STANDING, ENDLESS)
"""What may show only because a resumed run is rehearsed."""


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
class Judgement:
    how: str
    """In few words, how the resume ended."""
    wrong: list[Wrong] = field(default_factory=list)
    repeated: tuple[str, ...] = ()
    notes: list[tuple[str, str]] = field(default_factory=list)
    """Of which call, or of what, and what a person should know of it."""


class Case:
    """One scenario beside the uninterrupted run."""

    def __init__(self, task: Task, right: Seen, found: Seen, at: str, *, varying: Collection[str] = ()) -> None:
        """`varying`: calls whose arguments or results are others each time, and which prove nothing therefore."""
        self._task, self._right, self._found, self._at, self._varying = task, right, found, at, varying
        self._before = found.events[: found.before_kill]
        self._after = found.events[found.before_kill :]
        self._known = {event.call: event for event in (*right.events, *found.events) if event.what == probe.BEGUN}
        begun, usual = _counted(found.events, probe.BEGUN), _counted(right.events, probe.BEGUN)
        self._repeated = [call for call in begun if begun[call] > usual[call]]
        self._traces = Traces(right.events, self._before, self._after, workflow=task.workflow.name)
        self.notes: list[tuple[str, str]] = []
        off = differences(task, right, found) if found.leg.ending is Ending.DONE else []
        self._differences = [one for one in off if not self._is_luck(one)]

    def _is_luck(self, one: Difference) -> bool:
        if one.log and not any(self._traces.did(call, one.name) for call in self._known):
            said = f"{one.text}: taken for a log, since no step or effect opens it, and not compared."
            self.notes.append((one.name, said))
            return True
        if not (one.reordered and self._traces.is_shared(one.name)):
            return False
        said = f"{one.name}: the same in another order, now and then: branches that run side by side write to it."
        self.notes.append((one.name, said))
        return True

    # -- without damage -----------------------------------------------------------------------------

    def judge(self) -> Judgement:
        leg = self._found.leg
        proven = self._lies() or self._again()
        wrong = proven or self._ending() or self.otherwise()
        if wrong and not proven and (failed := self._failed_as_declared()):
            return Judgement(AS_DECLARED, [], self._names(self._repeated), [*self.notes, self._went_on(failed)])
        how = ASKED if leg.ending is Ending.ASKED else self._settled()
        return Judgement(how, wrong, self._names(self._repeated), self.notes)

    def _settled(self) -> str:
        """Who found out what had become of an effect in doubt; if there was one."""
        looked = {event.call for event in _of(probe.LOOKED, self._after) if event.text in probe.ANSWERS}
        settled = {event.call for event in _of(probe.RECORDED, self._after) if event.kind == probe.SETTLED_ENTRY}
        return SETTLED if settled - looked else FOUND if settled else RESUMED

    def _lies(self) -> list[Wrong]:
        names = {one.name for one in self._differences}
        if guilty := [event for event in _of(probe.MEDDLED, self._after) if event.value in names]:
            return [Wrong(MEDDLING, guilty[0].address, f"its check wrote something{self._seen()}")]
        looked = [(number, event) for number, event in enumerate(self._after) if event.what == probe.LOOKED]
        return [
            Wrong(CHECK, self._name(event.call), f"its check {what}")
            for number, event in looked
            if (what := self._lie(event, [*self._before, *self._after[:number]]))
        ]

    def _lie(self, event: LogLine, before: Sequence[LogLine]) -> str:
        """What a check said that is not so; empty if it is, or if nothing shows that it is not."""
        begun = any(one.call == event.call for one in _of(probe.BEGUN, before))
        returned = [one.value for one in _of(probe.ENDED, self._before) if one.call == event.call and one.value]
        what = "after it had happened" if returned else "after it had happened in part"
        match event.text:
            case "NotHappened" if returned or (begun and self._is_off_by(event.call, repeated=True)):
                return f"said not_happened {what}{self._seen()}"
            case "Happened" if not begun and self._is_unfounded(event):
                return f"said happened before it was begun, in any process{self._seen()}"
            case "Happened" if begun and not returned and self._is_off_by(event.call):
                return f"said happened {what}{self._seen()}"
            case "Happened" if returned and (recorded := self._recorded_result(event)):
                same = _same(returned[-1], recorded)
                return "" if same else f"gave {_short(recorded)}, and the call had returned {_short(returned[-1])}"
            case _:
                return ""

    def _is_unfounded(self, event: LogLine) -> bool:
        """It says of a call that was never begun that it has happened.

        That is right where the world was so already: the same world in the end shows that. What no world shows is not.
        """
        if not self._has_same_arguments(event):
            return False  # Why it was called with others is another mistake.
        if self._is_off_by(event.call):
            return True
        if self._task.world.look is None and not self._traces.reaches(event.call):
            return self._found.leg.ending is Ending.DONE
        call = self._name(event.call)
        said = f"{call}: its check said happened before it was begun. Right, if the world was so already: see whether it was."
        self.notes.append((call, said))
        return False

    def _has_same_arguments(self, event: LogLine) -> bool:
        """As in the uninterrupted run. The calls of children are not compared one by one."""
        right, found = (seen.leg.calls.get(event.address) for seen in (self._right, self._found))
        if event.run != self._task.run or found is None:
            return True
        return right is not None and _same(right[0], found[0])

    def _is_off_by(self, call: Call, *, repeated: bool = False) -> bool:
        """Something is off that can come from that call, or from its repetition: what it reaches for, or what it gave."""
        left = self._left_behind()
        can = self._can_come_from_repeating if repeated else self._traces.can_come_from
        if any(can(call, one.name) for one in self._differences if one not in left):
            return True
        run, _, address = call
        right, found = (seen.leg.calls.get(address) for seen in (self._right, self._found))
        if run != self._task.run or address in self._varying or right is None or found is None:
            return False
        return _same(right[0], found[0]) and not _same(right[1], found[1])

    def _can_come_from_repeating(self, call: Call, name: str) -> bool:
        """A call that was killed before the first thing it does has not done twice what it does after that."""
        point = Point.of(self._at)
        done = [one for one in _of(probe.AT, self._before) if Point.of(one.value).is_inside(point.address)]
        first = point.is_inside(self._name(call)) and len(done) == 1
        return self._traces.can_come_from(call, name) and not (first and self._traces.is_known(name))

    def _left_behind(self) -> dict[Difference, Call]:
        """What a call had made when it was cut off, and nobody reached for again; by which call."""
        ended = _counted(self._before, probe.ENDED)
        cut = {call for call, number in _counted(self._before, probe.BEGUN).items() if number > ended[call]}
        made = {event.value: event.call for event in _of(probe.TOUCHED, self._before) if event.call in cut}
        again = {event.value for event in _of(probe.TOUCHED, self._after)}
        return {one: made[one.name] for one in self._differences if one.extra and one.name in made.keys() - again}

    def _recorded_result(self, event: LogLine) -> str:
        """What is on record for that call; empty if it belongs to a segment that is over, or to another run."""
        newest = max(one.segment for one in self._found.events if one.run == self._task.run)
        if (event.run, event.segment) != (self._task.run, newest):
            return ""
        return self._found.leg.calls.get(event.address, ("", ""))[1]

    def _again(self) -> list[Wrong]:
        recorded = {event.call for event in _of(probe.RECORDED, self._before) if event.kind in probe.DONE}
        return [
            Wrong(AGAIN, self._name(event.call), "it was on record before the kill, and was executed after it")
            for event in _of(probe.BEGUN, self._after)
            if event.call in recorded
        ] + [
            Wrong(AGAIN, self._name(call), f"it was executed twice, and nobody said that it may be{self._seen()}")
            for call in self._done_twice()
        ]

    def _done_twice(self) -> list[Call]:
        """Effects that came to their end more often than usual, though they are not declared to be harmless."""
        usual, ended = (
            Counter(event.call for event in _of(probe.ENDED, seen.events) if event.value)
            for seen in (self._right, self._found)
        )
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
            case Ending.DONE:
                return []
            case Ending.ASKED:
                return self._raised_again(leg.address)
            case Ending.STOPPED if leg.kind == "CodeChanged":
                return [Wrong(STATE, leg.address or workflow, _told(leg.text))]
            case Ending.STOPPED if leg.kind == "Drifted":
                return [Wrong(DRIFT, leg.address or workflow, _told(leg.text))]
            case Ending.STOPPED | Ending.DAMAGED:
                return [Wrong(STANDING, leg.address or workflow, _told(f"{leg.kind}: {leg.text}"))]
            case Ending.LATE:
                return [Wrong(ENDLESS, workflow, leg.text)]
            case Ending.FAILED | Ending.MISUSED | Ending.DIED:
                if again := self._failed_again():
                    return again
                raised = self._raised()
                call = self._name(raised[-1].call) if raised else workflow
                return [Wrong(FAILING, leg.address or call, _told(leg.text))]
            case _:
                assert_never(leg.ending)

    def _raised(self) -> list[LogLine]:
        """The calls that raised what the run failed with."""
        text = self._found.leg.text
        return [event for event in _of(probe.ENDED, self._after) if event.text and event.text == text]

    def _failed_again(self) -> list[Wrong]:
        """What had changed the world before the kill was done again, and failed for it: in a step, or between calls."""
        text = _told(self._found.leg.text)
        before = Traces(self._before)
        for event in self._raised():
            if event.kind == "step" and event.call in self._repeated and before.reaches(event.call):
                return [Wrong(STEP, self._name(event.call), f"executed again, it raised {text}")]
        ours = [_deed(event) for event in _of(probe.TOUCHED, self._after) if not event.address and event.run]
        if not self._raised() and ours and ours[-1] in map(_deed, self._before):
            _, workflow, what, name = ours[-1]
            return [Wrong(BODY, workflow, f"done again by its own lines ({what} {name}), it raised {text}")]
        return []

    def _raised_again(self, address: str) -> list[Wrong]:
        """Declared to be harmless when repeated, and yet a person has to be asked: the repetition failed."""
        raised = [event for event in _of(probe.ENDED, self._after) if not event.value and event.address == address]
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
        repeated, suspects = self._names(self._repeated), self._suspects()
        world = tuple(one.text for one in self._differences)
        if unexpected := self._unexpected():
            return [Wrong(STATE, unexpected, f"it was called, and an uninterrupted run does not call it{self._seen()}")]
        if address and address not in repeated:
            return [Wrong(STATE, address, what + self._seen())]
        if address and address not in suspects:
            return [Wrong(self._why_another(self._event(address)), address, what + self._seen())]
        if (left := self._left_behind()) and len(left) == len(self._differences):
            return [Wrong(LEFT, self._name(next(iter(left.values()))), self._seen().removeprefix(": "), world=world)]
        if suspects:
            call = suspects[0]
            what = "it was executed twice" + self._seen()
            return [Wrong(self._mistake(call), call, what, tuple(suspects[1:]), world)]
        if self._differences:
            return [self._unexplained(world)]
        return [Wrong(STATE, self._task.workflow.name, self._results())]

    def _why_another(self, event: LogLine) -> str:
        """Why a call gave something else when it was executed again, and no world shows that it was."""
        if event.kind != "step":
            return RETRY
        return STEP if Traces(self._before).reaches(event.call) else STATE  # What it has changed itself, or a global.

    def _unexplained(self, world: tuple[str, ...]) -> Wrong:
        """No call was executed twice: it was the workflow's own lines, or a call that relied on the process before."""
        off = [one.name for one in self._differences]
        ours = [self._traces.own_lines(name) for name in off]
        resumed = _of(probe.BEGUN, self._after)
        reaching = [event for event in resumed if any(self._traces.did(event.call, name) for name in off)]
        suspects = reaching or [event for event in resumed if event.kind == "effect"]
        if any(ours) or not suspects:
            workflow = next(filter(None, ours), self._task.workflow.name)
            return Wrong(BODY, workflow, "no call that does it was executed twice" + self._seen(), world=world)
        what = "executed by the process that resumed, it did something else" + self._seen()
        return Wrong(STATE, self._name(suspects[0].call), what, world=world)

    def _unexpected(self) -> str:
        """A call of the workflow that an uninterrupted run does not make."""
        usual = {event.call for event in _of(probe.BEGUN, self._right.events)}
        new = [event for event in _of(probe.BEGUN, self._after) if event.call not in usual and not event.undo]
        return self._name(new[0].call) if new else ""

    def _is_off(self) -> bool:
        if self._found.leg.ending is not Ending.DONE:
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
        if any(one.call == event.call and one.text == "Partial" for one in _of(probe.LOOKED, self._after)):
            return PARTIAL
        if event.policy != "retry":
            return AGAIN
        return UNDO if event.undo else RETRY

    def _event(self, name: str) -> LogLine:
        return next(event for call, event in self._known.items() if self._name(call) == name)

    def _suspects(self) -> list[str]:
        """What was executed more often than usual, and can have done what differs; the call that was killed comes first."""
        off = [one.name for one in self._differences]
        guilty = [call for call in self._repeated if any(self._can_come_from_repeating(call, name) for name in off)]
        names = list(self._names(guilty))
        return sorted(names, key=lambda name: name != Point.of(self._at).address)

    def _went_on(self, failed: LogLine) -> tuple[str, str]:
        """What a person should see: of the call that failed nobody knows whether it happened."""
        call = self._name(failed.call)
        said = (
            f'{call} failed, as on_crash="fail" says, and the workflow went on. Whether it had happened nobody knows; see '
            f"whether that is what you want{self._seen()}"
        )
        return call, said if self._differences else ""

    def _failed_as_declared(self) -> LogLine | None:
        """The call that was in doubt when the process was killed, and failed for it."""
        recorded = _of(probe.RECORDED, self._before)
        done = {event.call for event in recorded if event.kind in probe.DONE}
        intended = {event.call for event in recorded if event.kind == probe.INTENDED}
        return next((event for event in self._gave_up() if event.call in intended - done), None)

    def _gave_up(self) -> list[LogLine]:
        """Calls that are declared to fail when in doubt, and did: on record, and without being executed.

        Only a run that came to an end has done what was declared: one that hangs or dies after that has not.
        """
        if self._found.leg.ending not in (Ending.DONE, Ending.FAILED):
            return []
        if any(self._known[call].policy == "fail" for call in self._repeated):
            return []
        failed = {event.call for event in _of(probe.RECORDED, self._after) if event.kind == probe.RAISED}
        begun = {event.call for event in _of(probe.BEGUN, self._after)}
        known = [self._known[call] for call in failed - begun if call in self._known]
        return sorted((event for event in known if event.policy == "fail"), key=lambda event: event.call)

    def may_come_from_rehearsal(self) -> bool:
        """Whether lines of the workflow's own that run twice in one process may explain what is wrong, by memory alone."""
        return all(event.address for event in _of(probe.TOUCHED, self._after))

    # -- with a mishap ------------------------------------------------------------------------------

    def _judge_edited(self) -> Judgement:
        """Somebody else's change is noticed, asked about, or still there. To overwrite it in silence is not right."""
        leg = self._found.leg
        if leg.ending is Ending.STOPPED and leg.kind == "Drifted":
            return Judgement(NOTICED)
        if leg.ending is not Ending.DONE:
            return self._ended_otherwise()
        files = edits(self._right.events, self._task.run, self._task.world.exclude)[self._at]
        lost = [name for name in files if not is_edited(self._found.folder / name)]
        asked, usual = (self._questions(seen) for seen in (self._found, self._right))
        if not lost or asked > usual:
            return Judgement(ASKED_AGAIN if lost else RESUMED)
        return self._overwritten(lost)

    def _overwritten(self, lost: Sequence[str]) -> Judgement:
        """By which call, and what lets it. Who says that it may run again whatever it finds has said so; a warning is told."""
        point = Point.of(self._at)
        writing = [event for event in _of(probe.TOUCHED, self._after) if event.value in lost and event.address]
        call = self._name(writing[0].call) if writing else point.address
        on_drift = self._task.workflow.definition.on_drift
        doubted = [event.policy for event in self._known.values() if self._where(event) == point.address]
        warned = any("drift" in event.text for event in _of(probe.LOUD, self._after))
        cause = f"on_drift={on_drift!r}" if isinstance(on_drift, str) else "on_drift="
        if "retry" in doubted:
            cause = 'on_crash="retry"'
        when = f"after {point.detail} of {point.address}"
        said = f"{lost[0]}, edited by somebody else {when}, was overwritten: {cause} lets it be"
        if warned or "retry" in doubted:
            note = f"{call}: {said}{', with a warning' * warned}."
            return Judgement(NOTICED if warned else RESUMED, notes=[(call, note)])
        return Judgement("", [Wrong(OVERWRITTEN, call, said)])

    def _questions(self, seen: Seen) -> int:
        return sum(event.value.startswith(_ASKING) for event in _of(probe.AT, seen.events))

    def judge_mishap(self, how: str) -> Judgement:
        """The process lives; a file was edited, or an effect has ended with an exception that it did not deserve."""
        if how == EDITED:
            return self._judge_edited()
        struck = Point.of(self._at).address
        denied = [event for event in _of(probe.DENIED, self._after) if self._where(event) == struck]
        if acted := [event for event in denied if event.value == probe.ACTED]:
            return Judgement("", [_denies(struck, acted[0])])
        if denied:  # Nothing was done, and that is what it says.
            return Judgement(AS_RAISED, notes=self.notes)
        if late := self._landed_late():
            return Judgement("", late)
        if sort_of(how) != FAILS:
            return self.judge()
        if self._found.leg.ending is not Ending.DONE:
            return self._ended_otherwise()
        return Judgement(self._settled(), self._again(), notes=self.notes)

    def _ended_otherwise(self) -> Judgement:
        """After a mishap a run may stop, ask and fail; to hang or to die is not right."""
        if self._found.leg.ending in (Ending.LATE, Ending.DIED):
            return Judgement("", self._ending())
        return Judgement(ASKED if self._is_loud() else AS_RAISED, self._again(), notes=self.notes)

    def _landed_late(self) -> list[Wrong]:
        """What a killed process had started came to its end after a check was believed that had not found it."""
        struck = next((event for event in self._before if event.what == probe.STRUCK), None)
        what = [event.what for event in self._after]
        if struck is None or probe.LANDED not in what or not self._is_off():
            return []
        call = Point.of(self._at).address
        meanwhile = self._after[: what.index(probe.LANDED)]
        again = [event for event in _of(probe.BEGUN, meanwhile) if self._where(event) == call]
        denied = [event for event in _of(probe.LOOKED, meanwhile) if self._where(event) == call]
        if not again or not denied or denied[-1].text != "NotHappened":
            return []
        said = f"it landed after its check had said not_happened, and was executed again: {struck.kind} is not true"
        return [Wrong(LANDING, call, said + self._seen())]

    def _where(self, event: LogLine) -> str:
        return where(self._task.run, event.run, event.address)

    # -- with damage --------------------------------------------------------------------------------

    def judge_damaged(self) -> Judgement:
        """Right or loud: what was lost is said, and nothing is done twice whatever was lost."""
        leg, where = self._found.leg, self._found.damage
        told = _of(probe.LOUD, self._after)
        twice = [call for call in self._done_twice() if self._known[call].policy != "check"]
        if twice:
            return Judgement("", [Wrong(SILENT, self._name(twice[0]), f"{where}, and it was executed twice")])
        if self._is_loud():
            return Judgement(f"loud: {leg.kind or leg.ending}")
        if leg.ending is not Ending.DONE and not self._is_our_failure():
            return Judgement("", [replace(wrong, what=f"{where}: {wrong.what}") for wrong in self._ending()])
        if self._is_told_later():
            return Judgement(f"loud: {leg.unread}")
        if leg.ending is not Ending.DONE or self._is_off():
            what = _told(leg.text) or (self._seen().removeprefix(": ") or self._results())
            return Judgement("", [Wrong(SILENT, self._task.workflow.name, f"{where}: {what}")])
        if self._again() and not told:
            return Judgement("", [Wrong(SILENT, self._again()[0].call, f"{where}, and what was recorded ran again")])
        return Judgement(FELL_BACK if told else UNDISTURBED)

    def _is_loud(self) -> bool:
        """The run refused to go on, or a call failed as it is declared to: it was in doubt, or its record was lost."""
        leg = self._found.leg
        if leg.ending in (Ending.STOPPED, Ending.DAMAGED, Ending.MISUSED, Ending.ASKED):
            return True
        if leg.ending is Ending.FAILED and leg.kind in _STORE_ERRORS:
            return True
        return self._failed_as_declared() is not None or (leg.kind == "StepFailed" and bool(self._gave_up()))

    def _is_told_later(self) -> bool:
        """All was done right with what could be read, and every later look at the run reports the damage."""
        leg = self._found.leg
        right = leg.ending is Ending.DONE and not self._differences and _same(self._right.leg.value, leg.value)
        return right and bool(leg.unread)

    def _is_our_failure(self) -> bool:
        """It was raised by surefoot itself, not by a call of the user: the user can change nothing about it."""
        return self._found.leg.ours and not self._raised()

    # -- words --------------------------------------------------------------------------------------

    def _name(self, call: Call) -> str:
        run, _, address = call
        return address if run == self._task.run else f"{run}/{address}"

    def _names(self, calls: Iterable[Call]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self._name(call) for call in calls))

    def _seen(self) -> str:
        return f": {'; '.join(few([one.text for one in self._differences]))}" if self._differences else ""

    def _results(self) -> str:
        return f"the result is {_short(self._found.leg.value)} instead of {_short(self._right.leg.value)}"


def misused(right: Seen) -> list[Wrong]:
    """What the uninterrupted run already shows: calls that surefoot refused to make."""
    strayed = "it was called from a thread or task that belongs to no run, so it was refused"
    return [
        Wrong(POOL, event.address, strayed if event.what == probe.STRAYED else _told(event.text))
        for event in right.events
        if event.what in (probe.STRAYED, probe.MISUSED)
    ]


def denied(task: Task, seen: Seen) -> list[Wrong]:
    """Effects that acted in a run without any mishap, and then raised what says that they did not."""
    acted = {event.call: event for event in _of(probe.DENIED, seen.events) if event.value == probe.ACTED}
    return [_denies(where(task.run, event.run, event.address), event) for event in acted.values()]


def _denies(call: str, event: LogLine) -> Wrong:
    error, _, why = event.text.rpartition("\n")
    return Wrong(ACTING, call, f"it raised {_told(error)} after it had acted: {why}")


def varying(right: Seen, second: Seen) -> set[str]:
    """Calls that differ between two uninterrupted runs, and between whose results it makes no difference."""
    return {address for address, call in right.leg.calls.items() if second.leg.calls.get(address) != call}


def _of(what: str, events: Sequence[LogLine]) -> list[LogLine]:
    return [event for event in events if event.what == what]


def _deed(event: LogLine) -> tuple[str, str, str, str]:
    """What the workflow's own lines do: in which run, of which workflow, and what with which file."""
    return event.run if event.what == probe.TOUCHED and not event.address else "", event.kind, event.text, event.value


def _counted(events: Sequence[LogLine], what: str) -> Counter[Call]:
    return Counter(event.call for event in _of(what, events))


def _same(one: str, other: str) -> bool:
    """Types and all; only the order of keys does not count. In Python, True, 1 and 1.0 are equal: as text they are not."""
    return one == other or (bool(one) and bool(other) and _sorted(one) == _sorted(other))


def _sorted(value: str) -> str:
    return json.dumps(json.loads(value), sort_keys=True)


def _told(text: str) -> str:
    """What an error says, on one line."""
    return shorten(" ".join(text.split()), 4 * WIDTH)


def _short(value: str) -> str:
    return shorten(value, WIDTH) if value else "nothing"
