"""Run a workflow once to find its boundaries, then once for each with a kill there, and bring it home each time.

This is the warm parent: it has no threads and no store open, and everything that touches user code happens in
children of it. A *leg* is one process that drives the run; a scenario has as many legs as it takes: until it is
killed, then until it has ended. Questions are answered between legs; an effect in doubt is settled truthfully, by the
event log, as a person would who looks at the world.
"""

from __future__ import annotations

import asyncio
import enum
import gc
import os
import shutil
import sys
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import msgspec
from msgspec import Struct

from surefoot.core import values
from surefoot.engine.operate.handle import Run, get_run
from surefoot.engine.process.config import overridden
from surefoot.engine.process.observer import observed
from surefoot.engine.process.runtime import clocked
from surefoot.errors import Damaged, InDoubt, Stopped, SurefootError, UsageError, WaitingForAnswer
from surefoot.store.open import close_all, open_store, wrapped
from surefoot.testing import answers as people
from surefoot.testing import probe
from surefoot.testing.children import Ended, Tell, in_child
from surefoot.testing.clock import FastClock
from surefoot.testing.damaging import DAMAGES, damage
from surefoot.testing.mishaps import LATE
from surefoot.testing.plan import edits, lags
from surefoot.testing.probe import LogLine, Probe, Strike
from surefoot.testing.survivor import Survivor
from surefoot.testing.worlds import (
    Difference,
    Observed,
    copy_folder,
    file_differences,
    line_differences,
    lines_of,
    look_differences,
)

MOST_LEGS: Final = 200
LEAST_SECONDS: Final = 10.0
PATIENCE: Final = 5
"""A resumed run may take so many times as long as an uninterrupted one."""
DATABASE: Final = "runs.db"
_LOG_BYTES: Final = 2_000
_OURS: Final = "surefoot."
_FORKED: Final = (
    "a process that it forked came back into the workflow, which then went on twice. Let that process end itself with "
    "os._exit(), or use subprocess or multiprocessing."
)


class Ending(enum.StrEnum):
    """How a process that drives the run may end."""

    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"
    MISUSED = "misused"
    ASKED = "asked"
    DAMAGED = "damaged"
    LATE = "late"
    DIED = "died"


@dataclass(frozen=True)
class Task:
    """What is explored."""

    workflow: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    world: Observed
    answers: Mapping[str, Any]
    run: str = "crashtest"
    seconds: float = 60.0
    """How long an uninterrupted run may take."""


class Leg(Struct, frozen=True, omit_defaults=True):
    """How one process ended."""

    ending: Ending
    value: str = ""
    """The result, as JSON."""
    text: str = ""
    kind: str = ""
    """The class of what ended it."""
    ours: bool = False
    """It was raised by surefoot's own lines."""
    address: str = ""
    goes_on: bool = False
    """Its questions are answered: the next leg goes on."""
    look: str = ""
    """What the user's own function saw of the world."""
    calls: dict[str, tuple[str, str]] = {}
    """The recorded calls: arguments and result, by address."""
    unread: str = ""
    """Why they cannot be read: the name of the error that every look at the run raises."""


@dataclass(frozen=True)
class Seen:
    """A whole scenario."""

    leg: Leg
    events: list[LogLine]
    folder: Path
    ledger: list[str]
    fired: bool = False
    before_kill: int = 0
    """How many events were there when it was killed, or when the mishap struck."""
    log: str = ""
    damage: str = ""

    @property
    def boundaries(self) -> list[str]:
        return [event.text for event in self.events if event.what == probe.AT]


class Stage:
    """A folder for scenarios, and one task to play in them."""

    def __init__(self, task: Task, scratch: Path) -> None:
        self.task = task
        self._scratch = scratch
        self._start = time.time_ns() // 1000
        self._lags: dict[str, int] = {}
        self._edits: dict[str, list[str]] = {}
        self._seconds = task.seconds
        self._pristine = scratch / "pristine"
        self._store = scratch / "store"
        copy_folder(task.world.folder, self._pristine)
        self._store.mkdir()
        made = in_child(lambda _: _make_store(self._store), seconds=LEAST_SECONDS)
        if made.code != 0:
            raise RuntimeError(f"no store could be made to test with: {made.trouble or made}")
        if task.workflow.definition.is_async:
            import surefoot.engine.drive.perform_async  # noqa: F401 - here, and not once in every child
        gc.freeze()  # Else the first collection in a child copies every page that we share with it.

    def uninterrupted(self, name: str, *, eyes: bool = False) -> Seen:
        """The workflow as it is, to compare with. It stays on disk. With `eyes`, what each effect changes is noted."""
        begun = time.monotonic()
        seen = self._play(self._scratch / name, Strike(eyes=eyes))
        taken = time.monotonic() - begun
        if not self._lags:
            self._lags = lags(seen.events, self.task.run)
            self._edits = edits(seen.events, self.task.run, self.task.world.exclude)
        asked_for = max(self.task.seconds, 2 * taken)  # Who says --seconds 2 does not mean ten for each resume.
        self._seconds = min(asked_for, max(LEAST_SECONDS, PATIENCE * taken))
        return seen

    @contextmanager
    def scenario(self, target: str, how: str = "", *, rehearsed: bool = True) -> Iterator[Seen]:
        """Killed there, or struck by that mishap, and brought home. The folder stays until the caller has looked at it.

        Without a rehearsal, what lies between calls runs once in the process that resumes.
        """
        place = self._scratch / "scenario"
        damage, mishap = (how, "") if how in DAMAGES else ("", how)
        with ExitStack() as over:
            over.callback(shutil.rmtree, place, ignore_errors=True)
            survivor = None
            if how == LATE:
                # A resumed run must not come to its own limit by waiting for it.
                survivor = over.enter_context(closing(Survivor(self._lags.get(target, 0), patience=self._seconds / 2)))
            yield self._play(place, Strike(target, damage, mishap, mishap not in ("", LATE), survivor, rehearsed))

    def _play(self, place: Path, strike: Strike) -> Seen:
        place.mkdir()
        folder = place / "world"
        shutil.copytree(self._pristine, folder, symlinks=True)
        shutil.copytree(self._store, place / probe.STORE_FOLDER)
        killed, before_kill, done = False, 0, ""
        for number in range(MOST_LEGS):
            ended = in_child(lambda tell: self._leg(place, strike, tell, first=not number), seconds=self._seconds)  # noqa: B023 - called at once
            if ended.killed and strike.target is not None:
                killed, before_kill = True, len(probe.read_events(place / probe.EVENTS_FILE))
                if strike.damage:
                    done = damage(place / probe.STORE_FOLDER / DATABASE, strike.damage, seed=str(before_kill))
                if strike.survivor is not None:
                    strike.survivor.begin(self._time(place))
                strike = replace(strike, target=None)
                continue
            leg = _leg_of(ended)
            if not leg.goes_on:
                break
        else:
            leg = Leg(Ending.LATE, text=f"has not ended after {MOST_LEGS} starts")
        if killed and strike.survivor is not None and strike.survivor.land():
            probe.note(place / probe.EVENTS_FILE, LogLine(probe.LANDED))
        events = probe.read_events(place / probe.EVENTS_FILE)
        struck = next((number for number, event in enumerate(events, 1) if event.what == probe.STRUCK), 0)
        return Seen(
            leg, events, folder, lines_of(place / probe.LEDGER_FILE), killed or bool(struck), struck or before_kill,
            _tail(place / probe.LOG_FILE), done,
        )  # fmt: skip

    def _time(self, place: Path) -> int:
        """What the kit's clock says: time that has passed stays passed."""
        past = probe.read_events(place / probe.EVENTS_FILE)
        return max([self._start, *(int(event.value) for event in past if event.what == probe.TIME)])

    # -- in a child ---------------------------------------------------------------------------------

    def _leg(self, place: Path, strike: Strike, tell: Tell, *, first: bool) -> None:
        task = self.task
        os.chdir(place / "world")
        sys.dont_write_bytecode = True  # The first import of a module must not differ from the others.
        _silence(place / probe.LOG_FILE)
        edits = self._edits.get(strike.target or "", ())
        observer = Probe(place / probe.EVENTS_FILE, task.run, strike, edits)
        if strike.eyes:
            observer.open_eyes(task.world.now)
        sys.addaudithook(observer.touching)
        clock = FastClock(self._time(place), observer.waits)
        os.environ.pop("SUREFOOT_STORE", None)
        changed = overridden(store=_url(place / probe.STORE_FOLDER), alerts=(), rehearses=strike.rehearsed)
        with observed(observer), wrapped(observer.over), clocked(clock), changed:
            task.world.begin(place / probe.LEDGER_FILE, first=first)
            tell(msgspec.json.encode(self._drive(observer)))

    def _drive(self, observer: Probe) -> Leg:
        task = self.task
        try:
            result = task.workflow.run(task.run, *task.args, **task.kwargs)
            if task.workflow.definition.is_async:
                result = asyncio.run(result)
            ended = Leg(Ending.DONE, value=values.encode(result).decode())
        except Stopped as stop:
            observer.is_on = False
            return self._answered(stop, observer)
        except UsageError as error:
            ended = Leg(Ending.MISUSED, text=str(error), kind=type(error).__name__)
        except Exception as error:  # noqa: BLE001 - whatever user code raises is how it ended
            kind = type(error).__name__
            ended = Leg(Ending.FAILED, text=f"{kind}: {error}", kind=kind, ours=_is_ours(error))
        except SystemExit as leaving:
            ended = Leg(Ending.DIED, text=f"it ends the program, with sys.exit({leaving.code!r})", kind="SystemExit")
        except KeyboardInterrupt:
            ended = Leg(Ending.DIED, text="it raises KeyboardInterrupt by itself", kind="KeyboardInterrupt")
        observer.is_on = False
        observer.land()
        calls, unread = _calls(task.run)
        return msgspec.structs.replace(ended, look=task.world.end(), calls=calls, unread=unread)

    def _answered(self, stop: Stopped, observer: Probe) -> Leg:
        """A person, too, may find that the store is damaged."""
        try:
            return self._stopped(stop, observer)
        except Stopped as worse:
            return _standing(worse)
        except UsageError as error:
            return Leg(Ending.MISUSED, text=str(error), kind="UsageError")
        except SurefootError as error:
            return Leg(Ending.FAILED, text=str(error), kind=type(error).__name__)

    def _stopped(self, stop: Stopped, observer: Probe) -> Leg:
        """Do what a person would do. What only a look at the real world could tell is left to them."""
        left = ""
        for one in stop.stops:
            run = get_run(one.run_id or self.task.run)
            if isinstance(one, WaitingForAnswer):
                people.give(run, one, self.task.answers)
            elif isinstance(one, InDoubt):
                left = left or _settled(run, one, probe.read_events(observer.log))
            else:
                return _standing(one)
        if left:
            return Leg(Ending.ASKED, text=left, kind=type(stop).__name__, address=stop.address)
        return Leg(Ending.STOPPED, goes_on=True)


def _standing(stop: Stopped) -> Leg:
    ending = Ending.DAMAGED if isinstance(stop, Damaged) else Ending.STOPPED
    return Leg(ending, text=stop.summary, kind=type(stop).__name__, address=stop.address)


def _is_ours(error: Exception) -> bool:
    """Whether it began in a line of surefoot's own. A run's failure is raised anew, with the lines of the first one."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return str(frame.f_globals.get("__name__", "")).startswith(_OURS)


def _settled(run: Run, stop: Stopped, events: Sequence[LogLine]) -> str:
    """Settle an effect in doubt by the log. Why not, if the log cannot tell either."""
    segment = run.state().segment
    mine = [event for event in events if event.call == (run.id, segment, stop.address)]
    begun = [event for event in mine if event.what == probe.BEGUN]
    ended = [event for event in mine if event.what == probe.ENDED]
    if not begun:
        run.settle(stop.address, not_happened=True, by=people.BY)
    elif len(ended) < len(begun):
        return f"{stop.address} was cut off in the middle: what it did by then, only its world can tell"
    elif ended[-1].value:
        run.settle(stop.address, happened=values.decode(ended[-1].value.encode()), by=people.BY)
    else:
        return f"{stop.address} raised {ended[-1].text}: what it did by then, only its world can tell"
    return ""


def _calls(run_id: str) -> tuple[dict[str, tuple[str, str]], str]:
    try:
        return {call.address: (call.args, call.result) for call in get_run(run_id).steps()}, ""
    except Damaged as error:
        return {}, type(error).__name__
    except SurefootError:
        return {}, ""  # How the run ended says why.


def _make_store(folder: Path) -> None:
    """An empty one, made once and copied: to make one takes longer than a short run."""
    open_store(_url(folder), create=True)
    close_all()


def _url(folder: Path) -> str:
    return f"sqlite:///{quote(str(folder))}/{DATABASE}"


def _silence(log: Path) -> None:
    """What the workflow prints is kept, for the case that something has to be explained."""
    fd = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(fd, 1)
    os.dup2(fd, 2)
    os.close(fd)
    sys.stdout, sys.stderr = (open(number, "w", buffering=1, closefd=False) for number in (1, 2))  # noqa: SIM115 - for the rest of this process


# --- from the child to the parent ------------------------------------------------------------------


def _leg_of(ended: Ended) -> Leg:
    if ended.forked:
        return Leg(Ending.MISUSED, text=_FORKED, kind="UsageError")
    if ended.late:
        return Leg(Ending.LATE, text="did not end in time")
    if ended.report:
        return msgspec.json.decode(ended.report, type=Leg)
    if ended.trouble:
        return Leg(Ending.DIED, text=ended.trouble)
    how = f"signal {ended.signal}" if ended.signal else f"exit code {ended.code}"
    return Leg(Ending.DIED, text=f"its process ended by itself ({how})")


def differences(task: Task, right: Seen, found: Seen) -> list[Difference]:
    """What of the world is not as after an uninterrupted run."""
    told = file_differences(right.folder, found.folder, task.world.exclude) if task.world.files else []
    return told + line_differences(right.ledger, found.ledger) + look_differences(right.leg.look, found.leg.look)


def _tail(path: Path) -> str:
    return path.read_bytes()[-_LOG_BYTES:].decode(errors="replace") if path.exists() else ""
