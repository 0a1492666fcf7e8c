"""`crash_matrix`: kill a workflow at every boundary, resume it, and tell what did not hold and what to change."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from surefoot.core.visible import shorten, visible
from surefoot.errors import UsageError
from surefoot.testing import verdicts
from surefoot.testing.answers import Given
from surefoot.testing.children import Tell, in_child
from surefoot.testing.damaging import DAMAGES
from surefoot.testing.mishaps import MISHAPS, sort_of
from surefoot.testing.plan import Plan, Struck, planned
from surefoot.testing.probe import DENIED, Point
from surefoot.testing.remarks import Noted, function_of
from surefoot.testing.scenarios import Ending, Seen, Stage, Task
from surefoot.testing.trace import Traces
from surefoot.testing.verdicts import Case, Judgement, Wrong
from surefoot.testing.worlds import few, files, observed, plural

MOST_SECONDS: Final = 24 * 3600.0
TRIES: Final = 3
"""Branches that run side by side may pass a boundary in another order, or share a write: it is tried again."""
MOST_ENDLESS: Final = 2
"""So many resumes that do not end are enough: each of them takes all the time that a resume may take."""
POINTLESS: Final = ("before:write:RunAdopted", "after:write:RunDone")
"""Killed there, the workflow has done nothing yet, or everything: what differs then differs without a kill."""
SIDE_BY_SIDE: Final = "branches side by side"
OTHER_NAMES: Final = "calls or children with other names each time? Take ids from the arguments, or from sf.uuid4()"
SCRATCH: Final = "surefoot-crashtest-"
TIDY_SECONDS: Final = 60.0
ROOM_BYTES: Final = 256 << 20
_UNTRIED: Final = {
    "mishaps": "nothing but kills was tried: mend the above first, else lost answers, late landings and edits of others would be "
    "blamed for it.",
    "damage": "the store was not damaged: mend the above first, else damage would be blamed for it.",
}
MEMORY: Final = "/dev/shm"  # noqa: S108 - a folder with a random name is made in it


class Tried(Struct, frozen=True):
    """One scenario: killed there, and how the resume ended. What was never killed has not held."""

    at: str
    how: str
    held: bool
    fired: bool = True
    damage: str = ""


class Finding(Struct, frozen=True):
    """A mistake, the call that makes it, and what to change."""

    mistake: str
    call: str
    what: str
    cure: str
    at: list[str]
    """Where it shows."""
    reproduce: str


class Report(Struct, frozen=True):
    """What all scenarios came to."""

    workflow: str
    boundaries: int
    tried: list[Tried]
    findings: list[Finding]
    seconds: float
    """For the scenarios, without the uninterrupted runs before them."""
    core_seconds: float
    """What they took of the processor: all processes together."""
    notes: list[str] = []
    """What nobody has to mend, and everybody should know."""
    unreached: str = ""
    """Why a boundary may not have been reached."""
    mishaps: list[Tried] = []
    """What was tried besides kills: answers that are lost, operations that fail half-way, what lands late, edits of others."""

    @property
    def held(self) -> bool:
        return not self.findings

    @property
    def kills(self) -> int:
        return sum(one.fired for one in self.tried)

    @property
    def rate(self) -> float:
        """Kills and mishaps per second of one core, each to the end: other work on the machine does not count."""
        count = self.kills + sum(one.fired for one in self.mishaps)
        return count / self.core_seconds if self.core_seconds else 0.0

    def __str__(self) -> str:
        told = [line for finding in self.findings for line in (*finding_lines(finding), "")]
        told += [line for note in self.notes for line in (f"note: {visible(note)}", "")]
        return "\n".join([*told, summary(self)])


class NotHeld(AssertionError):
    """The workflow does not survive every kill. `report` has all of it."""

    def __init__(self, report: Report) -> None:
        super().__init__(f"{report.workflow} does not survive every crash\n\n{report}")
        self.report = report


def crash_matrix(
    workflow: Any,
    args: Sequence[Any] | Mapping[str, Any] = (),
    *,
    world: Any = None,
    answers: Mapping[str, Any] | None = None,
    damage: bool = False,
    at: str | None = None,
    seconds: float = 60.0,
    exclude: str | Sequence[str] = (),
) -> Report:
    """Run the workflow once to find every boundary, then kill it at each, resume, and compare.

    `args` are the workflow's arguments: a sequence, or a mapping by name. `world` says what must be as after an
    uninterrupted run: by default all files of the working folder (each scenario works in a copy of it); or another
    folder, a `Ledger`, a `World`, a function that looks at your world, or an object with `reset()` and `snapshot()`.
    `answers` are those of people, by a question's address or text; approvals are given unless you say otherwise.
    Where every kill held, answers of effects are lost as well, operations fail half-way, what was started lands after its
    process is dead, and somebody else edits files that the run relies on. With `damage`, the store of each killed run is damaged as well. `at` tries one boundary only. Files whose names fit one
    of `exclude` (`"*.csv"`, `"cache"`) are not compared; a `*.log` that no step or effect opens is noted, and not blamed.

    Raises `NotHeld` with everything that is wrong; `UsageError` if there is nothing to explore: the workflow fails, does
    not end within `seconds`, does something else each time, or never comes to the boundary it is to be killed at.
    """
    named = dict(args) if isinstance(args, Mapping) else {}
    given = () if isinstance(args, Mapping) else tuple(args)
    if isinstance(args, str | bytes):
        raise UsageError(f"crash_matrix(workflow, {args!r}): arguments are a sequence or a mapping: ({args!r},)")
    if not hasattr(workflow, "definition"):
        raise UsageError(f"crash_matrix({workflow!r:.100}): that is no workflow. Decorate it with @sf.workflow.")
    task = Task(workflow, given, named, observed(world, exclude), dict(answers or {}), seconds=seconds)
    report = explore(task, damage=damage, at=at, again=lambda at: f"crash_matrix({workflow.name}, ..., at={at!r})")
    if not report.held:
        raise NotHeld(report)
    return report


Progress = Callable[[int, int], None]
"""Told before each scenario how many have been tried, and of how many; after the last one too."""

Again = Callable[[str], str]
"""How to say it once more, for one boundary only."""


def unseen(_done: int, _of: int) -> None:
    """Nobody looks."""


def explore(task: Task, *, damage: bool, at: str | None, again: Again, progress: Progress = unseen) -> Report:
    """All scenarios, in a process of its own."""
    if not 0 < task.seconds <= MOST_SECONDS:
        raise UsageError(f"seconds are {task.seconds!r}: more than 0, please, and at most {MOST_SECONDS:.0f} (a day)")
    with scratch() as folder:
        given = Given(task.answers, folder / "asked")
        asking = replace(task, answers=given)

        def explored(tell: Tell) -> None:
            tell(_explored(lambda: _Matrix(asking, folder, again, progress).report(damage=damage, at=at)))

        ended = in_child(explored, seconds=MOST_SECONDS)
        unasked = given.unasked()
    if not ended.report:
        raise RuntimeError(f"the testing kit itself failed:\n{ended.trouble or ended}")
    kind, body = ended.report[:1], ended.report[1:]
    if kind == _REFUSED:
        raise UsageError(body.decode())
    report = msgspec.json.decode(body, type=Report)
    if unasked and report.tried and at is None:  # Some questions come up only where something has failed.
        raise UsageError(unasked)
    return report


_REFUSED, _REPORTED = b"u", b"r"


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder in memory where there is one: thousands of stores are written, and none has to survive.

    We and our children hold a lock on it as long as one of us is alive. A later run of the kit removes folders without a
    lock: a killed kit has left them.
    """
    for place in {MEMORY, tempfile.gettempdir()}:
        _tidy(Path(place))
    room = shutil.disk_usage(MEMORY).free if os.access(MEMORY, os.W_OK) else 0
    name = f"{SCRATCH}{os.getpid()}-"
    folder = Path(tempfile.mkdtemp(prefix=name, dir=MEMORY if room > ROOM_BYTES else None))
    held = _locked(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if held is not None:
            os.close(held)


def _tidy(place: Path) -> None:
    for folder in place.glob(f"{SCRATCH}*"):
        with suppress(OSError):  # Somebody else's, or somebody else was quicker.
            found = folder.lstat()
            # One that was made a moment ago may not be locked yet.
            if found.st_uid != os.getuid() or time.time() - found.st_mtime < TIDY_SECONDS:
                continue
            if (held := _locked(folder)) is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(held)


def _locked(folder: Path) -> int | None:
    """The descriptor that holds the lock of a folder; None: it cannot be had."""
    fd = -1
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        if fd >= 0:
            os.close(fd)
        return None
    return fd


# --- in the warm parent ----------------------------------------------------------------------------


def _explored(explore_all: Callable[[], Report]) -> bytes:
    try:
        report = explore_all()
    except UsageError as error:
        return _REFUSED + str(error).encode()
    return _REPORTED + msgspec.json.encode(report)


class _Matrix:
    def __init__(self, task: Task, folder: Path, again: Again, progress: Progress) -> None:
        self._task = task
        self._progress = progress
        self._again = again
        self._stage = Stage(task, folder)
        self._tried: list[Tried] = []
        self._mishaps: list[Tried] = []
        self._wrong: list[tuple[str, Wrong]] = []
        self._harmless: set[str] = set()
        """Calls that were executed twice in a scenario that held."""
        self._varying: set[str] = set()
        self._endless = 0
        """How many resumes did not end, whatever that comes from."""
        self._by_rehearsal: dict[tuple[str, str], bool] = {}
        """Mistakes of calls, and whether they show only because a resumed run is rehearsed."""
        self._noted = Noted()
        self._unreached = ""

    def report(self, *, damage: bool, at: str | None) -> Report:
        right = self._right()
        boundaries = right.boundaries
        found = verdicts.misused(right) or self._denied(right)
        self._unreached = SIDE_BY_SIDE if Traces(right.events).branches else OTHER_NAMES
        self._wrong += [("", wrong) for wrong in found]
        begun, used = time.monotonic(), _core_seconds()
        if not found:
            exclude = self._task.world.exclude
            self._try_all(right, planned(right.events, self._task.run, damage=damage, at=at, exclude=exclude))
        findings = self._findings()
        return Report(
            self._task.workflow.name, len(boundaries), [_as_explained(one, findings) for one in self._tried], findings,
            round(time.monotonic() - begun, 3), round(_core_seconds() - used, 3), self._noted.told(self._task),
            "" if all(one.fired for one in self._tried) else self._unreached, self._mishaps,
        )  # fmt: skip

    def _denied(self, right: Seen) -> list[Wrong]:
        """An effect has raised what says that nothing was done: run it once more, and see whether that is so."""
        if not any(event.what == DENIED for event in right.events):
            return []
        return verdicts.denied(self._task, self._stage.uninterrupted("seen", eyes=True))

    def _try_all(self, right: Seen, plan: Plan) -> None:
        count = len(plan.kills) + len(plan.mishaps) + len(plan.damages)
        for number, target in enumerate(plan.kills):
            if self._is_endless():
                left = plural(len(plan.kills) - number, "boundary", "boundaries")
                said = f"not tried: {left}, since {MOST_ENDLESS} resumes that do not end show enough. Mend that first."
                self._noted.add("endless", said)
                break
            self._progress(number, count)
            self._try(right, target)
        if self._wrong:
            self._require_no_luck(right)
        done = len(plan.kills)
        for what, struck in (("mishaps", plan.mishaps), ("damage", plan.damages)):
            for number, (target, how) in enumerate(self._unless_wrong(struck, what), done):
                self._progress(number, count)
                self._try(right, target, how)
            done += len(struck)
        self._progress(count, count)
        self._require_one(self._tried or self._mishaps)

    def _unless_wrong(self, struck: list[Struck], what: str) -> list[Struck]:
        """What goes wrong with less goes wrong with more: it would be blamed on that."""
        if struck and self._wrong:
            self._noted.add(what, _UNTRIED[what])
            return []
        return struck

    def _require_one(self, tried: Sequence[Tried]) -> None:
        if not any(one.fired for one in tried):
            raise UsageError(
                f"{self._task.workflow.name} was not killed even once, so nothing is proven: not reached in {TRIES} tries "
                f"each: {shorten(', '.join(one.at for one in tried), 200)} ({self._unreached}). Try it again, or try all "
                "boundaries."
            )

    def _is_endless(self) -> bool:
        return self._endless >= MOST_ENDLESS

    def _require_no_luck(self, right: Seen) -> None:
        """Before anybody is blamed: a coarse clock or luck may have been the same twice, and another one later."""
        unrepeated = [(at, wrong) for at, wrong in self._wrong if wrong.mistake in (verdicts.BODY, verdicts.STATE)]
        told = [f"{wrong.call}: {wrong.what}" for at, wrong in unrepeated if at in POINTLESS]
        if told:
            raise self._is_another_each_time(
                f"One that was killed before it began, or after its end, differs: {told[0]}"
            )
        if not self._is_endless():
            self._require_same(right, self._stage.uninterrupted("third"))

    def _right(self) -> Seen:
        """Two uninterrupted runs that agree."""
        outside = self._task.world.folder
        exclude = self._task.world.exclude
        before = files(outside, exclude) if self._task.world.files else {}
        right = self._stage.uninterrupted("right")
        if self._task.world.files and (after := files(outside, exclude)) != before:
            changed = few([name for name in sorted(before | after) if before.get(name) != after.get(name)])
            raise UsageError(
                f"{self._task.workflow.name} changes {outside} itself ({', '.join(changed)}), not the copy it was started in, "
                "so the world of one scenario would be that of the next. Use paths relative to the working folder. Opened "
                "when the module was imported? Open it inside the call."
            )
        if not verdicts.misused(right):
            _require_end(self._task, right)
            second = self._stage.uninterrupted("second")
            self._require_same(right, second)
            self._varying = verdicts.varying(right, second)
        return right

    def _require_same(self, right: Seen, second: Seen) -> None:
        case = Case(self._task, right, second, "")
        told = [f"{one.call}: {one.what}" for one in case.otherwise()]
        if second.leg.ending is not Ending.DONE:
            told = [f"one ended with {second.leg.kind or second.leg.ending}: {second.leg.text}"]
        if told:
            raise self._is_another_each_time(f"Two uninterrupted runs differ: {told[0]}")
        for note in case.notes:
            self._noted.add(*note)

    def _is_another_each_time(self, why: str) -> UsageError:
        return UsageError(
            f"{self._task.workflow.name} does something else each time, so there is nothing to compare a resumed run with. "
            f"{why}. Give the test a fake for what is different each time (a model, a clock, luck), use sf.now(), "
            "sf.random() and sf.uuid4(), or say with world= what has to be equal."
        )

    def _try(self, right: Seen, target: str, how: str = "") -> None:
        at = f"{target}+{how}" if how else target
        for _ in range(TRIES):
            with self._stage.scenario(target, how) as found:
                if not found.fired:
                    continue
                self._noted.look(found.events)
                case = Case(self._task, right, found, target, varying=self._varying)
                verdict = case.judge_damaged() if how in DAMAGES else case.judge_mishap(how) if how else case.judge()
            self._endless += any(wrong.mistake == verdicts.ENDLESS for wrong in verdict.wrong)
            if not how and case.may_come_from_rehearsal():
                verdict.wrong = [self._unless_rehearsed(right, target, wrong) for wrong in verdict.wrong]
            self._count(at, verdict, found)
            return
        self._list_of(at).append(Tried(at, verdicts.NOT_REACHED, held=False, fired=False))

    def _unless_rehearsed(self, right: Seen, target: str, wrong: Wrong) -> Wrong:
        """What does not show where the lines between calls run once in the process comes from running them twice."""
        which = wrong.mistake, function_of(wrong.call)
        if wrong.mistake not in verdicts.BY_REHEARSAL or target in POINTLESS:
            return wrong
        if which not in self._by_rehearsal:
            once = self._holds(right, target, rehearsed=False)
            # And again with a rehearsal: what comes and goes by luck is not explained by it.
            self._by_rehearsal[which] = once and not self._holds(right, target, rehearsed=True)
        if not self._by_rehearsal[which]:
            return wrong
        seen = f"{wrong.call}: {wrong.what}"
        what = f"with its own lines run once, the resumed process does it right; run twice, it does not: {seen}"
        return Wrong(verdicts.TWICE, self._task.workflow.name, what)

    def _holds(self, right: Seen, target: str, *, rehearsed: bool) -> bool:
        with self._stage.scenario(target, rehearsed=rehearsed) as found:
            case = Case(self._task, right, found, target, varying=self._varying)
            return found.fired and not case.judge().wrong

    def _list_of(self, at: str) -> list[Tried]:
        return self._mishaps if _is_mishap(at) else self._tried

    def _count(self, at: str, verdict: Judgement, found: Seen) -> None:
        self._wrong += [(at, wrong) for wrong in verdict.wrong]
        if not verdict.wrong and len(verdict.repeated) == 1:
            self._harmless.add(function_of(verdict.repeated[0]))
        for note in verdict.notes:
            self._noted.add(*note)
        how = verdict.how if not verdict.wrong else verdict.wrong[0].mistake
        self._list_of(at).append(Tried(at, how, held=not verdict.wrong, damage=found.damage))

    def _findings(self) -> list[Finding]:
        """One for each mistake and call, wherever it showed."""
        found: dict[tuple[str, str], list[tuple[str, Wrong, str]]] = {}
        causes = [(at, self._cause(wrong), wrong) for at, wrong in self._wrong]
        # Where it shows by itself comes first.
        for at, cause, _ in sorted(causes, key=lambda case: case[1] is not case[2]):
            call = self._culprit(cause)
            found.setdefault((cause.mistake, function_of(call)), []).append((at, cause, call))
        return [
            Finding(
                mistake, cases[0][2], cases[0][1].what, verdicts.CURES[mistake], [at for at, _, _ in cases if at],
                self._again(cases[0][0]) if cases[0][0] else "",
            )
            for (mistake, _), cases in found.items()
        ]  # fmt: skip

    def _cause(self, wrong: Wrong) -> Wrong:
        """What was also seen where no call was repeated is explained by that."""
        own = [one for _, one in self._wrong if one.mistake in (verdicts.BODY, verdicts.STATE)]
        seen = {what: one for one in reversed(own) for what in one.world}
        if wrong in own or not wrong.world or not seen.keys() >= set(wrong.world):
            return wrong
        return seen[wrong.world[0]]

    def _culprit(self, wrong: Wrong) -> str:
        """Where several calls were under way, one that was seen to be harmless is not the one."""
        suspects = [call for call in (wrong.call, *wrong.suspects) if function_of(call) not in self._harmless]
        return suspects[0] if suspects else wrong.call


def _as_explained(one: Tried, findings: Sequence[Finding]) -> Tried:
    """By the name of a mistake that is explained, where what was seen there has turned out to be part of it."""
    mistakes = [finding.mistake for finding in findings if one.at in finding.at]
    if one.held or not one.fired or not mistakes or one.how in mistakes:
        return one
    return msgspec.structs.replace(one, how=mistakes[0])


def _is_mishap(at: str) -> bool:
    return sort_of(at.rpartition("+")[2]) in MISHAPS


def _core_seconds() -> float:
    """Of this process and of its children that have ended."""
    return sum(os.times()[:4])


def _require_end(task: Task, right: Seen) -> None:
    """There is an uninterrupted run that ends well; else the plain reason why not."""
    leg, name = right.leg, task.workflow.name
    said = f"\n  it printed last: {visible(right.log.strip().splitlines()[-1])}" if right.log.strip() else ""
    if leg.ending is Ending.LATE:
        raise UsageError(f"{name} did not end within {task.seconds:g} s without any crash.{said}")
    if leg.ending is Ending.FAILED:
        raise UsageError(f"{name} fails without any crash: {leg.text.rstrip('.')}. Mend that first.{said}")
    if leg.ending in (Ending.MISUSED, Ending.DIED):  # What is missing may be ours to get: an answer.
        raise UsageError(f"{name} does not come to its end without any crash: {leg.text}{said}")
    if leg.ending is not Ending.DONE:
        raise UsageError(f"{name} does not end without any crash: {leg.kind or leg.ending}: {leg.text}{said}")


# --- for people ------------------------------------------------------------------------------------


def finding_lines(finding: Finding) -> list[str]:
    more = len(finding.at) - 1
    shown = f" (and at {more} more {'boundary' if more == 1 else 'boundaries'})" if more > 0 else ""
    lines = [f"{finding.call}: {finding.mistake}", f"  seen       {finding.what}"]
    if finding.at:
        verb = "struck" if _is_mishap(finding.at[0]) else "killed"
        lines.append(f"  {verb} at  {finding.at[0]}{shown}")
    lines.append(f"  change     {finding.cure}")
    if finding.reproduce:
        lines.append(f"  again      {finding.reproduce}")
    return [visible(line) for line in lines]


def rows(report: Report) -> list[tuple[str, str, str, str]]:
    """A line for each sort of boundary: what, how many kills, how many held, how the resumes ended."""
    groups: dict[str, list[Tried]] = {}
    for one in [*report.tried, *report.mishaps]:
        groups.setdefault(_sort(one.at), []).append(one)
    return [
        (
            visible(sort), str(sum(one.fired for one in tried)), str(sum(one.held for one in tried)),
            visible(", ".join(f"{number} {how}" for how, number in Counter(one.how for one in tried).most_common())),
        )
        for sort, tried in groups.items()
    ]  # fmt: skip


def _sort(at: str) -> str:
    """`after:call:[a]/write#1` is a call of write."""
    name, _, how = at.rpartition("+") if sort_of(at.rpartition("+")[2]) in (*DAMAGES, *MISHAPS) else (at, "", "")
    point = Point.of(name)
    words = [point.what, point.detail, function_of(point.address), f"+ {how}" if how else ""]
    return " ".join(filter(None, words))


def summary(report: Report) -> str:
    if not report.tried and not report.mishaps:
        return f"{report.workflow}: not killed, since it goes wrong without: {len(report.findings)} to mend."
    missed = len(report.tried) - report.kills
    words = "everything held" if report.held else f"{len(report.findings)} to mend"
    unreached = f" ({missed} not reached: {report.unreached})" if missed else ""
    struck = sum(one.fired for one in report.mishaps)
    also = f", {plural(struck, 'mishap')} besides," if struck else ""
    return (
        f"{report.workflow}: killed {plural(report.kills, 'time')} at {report.boundaries} boundaries{unreached}{also} in "
        f"{report.seconds:.1f} s, {report.rate:.0f} kills per second and core: {words}."
    )
