"""Inside a child of the kit: every boundary is passed here, and at one of them the process kills itself.

Boundaries are found by running, not named by hand: each durable write (before and after the store's append), each
execution of a user's function or check (before and after, and inside before it opens a file for writing, renames,
connects, starts a program), each wait. The probe is an observer of the engine;
it also sees the store's appends, the kit's clock, and Python's audit events. Nothing of the engine is replaced.

What was passed and what was really executed is in the event log, written before anything else happens, so that it
survives the SIGKILL. It is the kit's truth about the world: journal and log are held against each other.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar, cast

import msgspec
from msgspec import Struct

from surefoot.core.command import Outcome, Raised, Returned
from surefoot.core.entry import (
    KINDS,
    CallCancelled,
    EffectDone,
    EffectIntended,
    EffectRaised,
    EffectRecovered,
    EffectSettled,
    EventTaken,
    Progressed,
    Published,
    RunContinued,
    RunCreated,
    StepDone,
    StepStarted,
    TimerFired,
    ValueNoted,
)
from surefoot.core.proof import proves_not_done
from surefoot.core.verdict import Happened, NotHappened, Partial, Verdict
from surefoot.engine.declare import current
from surefoot.engine.process.alerts import Alert
from surefoot.engine.process.observer import AnswerLost, Observer
from surefoot.engine.process.observer import Call as Made
from surefoot.errors import STOPS
from surefoot.store.contract import Conflict, Extend, Store
from surefoot.testing import mishaps
from surefoot.testing.acting import Eyes, World
from surefoot.testing.children import die
from surefoot.testing.survivor import Survivor
from surefoot.testing.worlds import LEDGER
from surefoot.world.paths import file_part

T = TypeVar("T")
Answers = list[Conflict | None]
"""Of a store, for each run of a batch."""

AT, BEGUN, ENDED, LOOKED, RECORDED, STRAYED, MISUSED, LOUD, TIME, TOUCHED, ABROAD, MEDDLED = (
    "at", "begun", "ended", "looked", "recorded", "strayed", "misused", "loud", "time", "touched", "abroad",
    "meddled",
)  # fmt: skip
"""`touched`: a call, or the workflow's own lines, reach for the world; `abroad`: for what is not in its folder; `meddled`:
a check writes."""
STRUCK, DENIED, LANDED, EXPECTED = "struck", "denied", "landed", "expected"
"""`struck`: a mishap; `denied`: an effect ends with an exception which says that nothing was done; `landed`: what outlived a
killed process has come to its end; `expected`: a file that the run relies on from here on."""
ANYTHING: Final = "*"
"""What is reached for by a program that is started: only it knows."""
STORE_FOLDER, LEDGER_FILE, LOG_FILE, EVENTS_FILE = "store", "ledger", "log", "events"
"""What the kit keeps beside the folder that a scenario works in."""
BEFORE, INSIDE, AFTER = "before", "inside", "after"
CALL, CHECK, WRITE, WAIT = "call", "check", "write", "wait"
EFFECT: Final = "effect"
ACTED: Final = "acted"
"""It is seen that an effect has changed the world."""
_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_FILES: Final = frozenset(
    {"open", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink", "os.truncate"}
)
_NETWORK: Final = frozenset(
    {"ftplib.sendcmd", "http.client.send", "imaplib.send", "smtplib.send", "socket.connect", "socket.sendmsg", "socket.sendto"}
)  # fmt: skip
_PROGRAMS: Final = frozenset({"os.exec", "os.posix_spawn", "os.system", "subprocess.Popen"})
_TOUCHING: Final = _FILES | _NETWORK | _PROGRAMS | {"sqlite3.connect"}
"""Python's audit events with which user code reaches for the world."""
OUTLIVING: Final = _NETWORK | _PROGRAMS
"""What is begun with these goes on when the process is dead: at the other side, or in a process of its own."""
CONTINUING: Final = OUTLIVING - {"socket.connect", "subprocess.Popen", "os.system"}
"""These may belong to what was begun before: they send more of it, or start it."""
_FILE: Final = file_part("x").removesuffix("x")
_ARGUMENTS: Final[dict[str, list[tuple[int, int | None]]]] = {
    "open": [(0, None)], "sqlite3.connect": [(0, None)], "os.truncate": [(0, None)], "os.remove": [(0, 1)],
    "os.rmdir": [(0, 1)], "os.mkdir": [(0, 2)], "os.symlink": [(1, 2)], "os.link": [(1, 3)], "os.rename": [(0, 2), (1, 3)],
}  # fmt: skip
"""Which arguments of an event are paths, and which ones say to what folder they are relative."""
_FOLLOWING: Final = frozenset({"open", "sqlite3.connect", "os.truncate"})
"""These mean what a link leads to, the others the link."""
_LAZY: Final = frozenset(
    {StepStarted, ValueNoted, Progressed, Published, TimerFired, EventTaken, RunCreated, CallCancelled}
)
"""Entries that ride with the next one: no write of their own, no boundary of their own."""
DONE: Final = frozenset(kind.__name__ for kind in (StepDone, EffectDone, EffectRecovered, EffectSettled))
INTENDED: Final = EffectIntended.__name__
RAISED: Final = EffectRaised.__name__
SETTLED_ENTRY: Final = EffectSettled.__name__
ANSWERS: Final = frozenset(verdict.__name__ for verdict in (Happened, NotHappened, Partial))
"""What a check says that can tell."""


class LogLine(Struct, frozen=True, omit_defaults=True):
    """One line of the log."""

    what: str
    run: str = ""
    segment: int = 0
    address: str = ""
    kind: str = ""
    """`step` or `effect`; of a record, the name of its entry."""
    policy: str = ""
    undo: bool = False
    value: str = ""
    """What the function returned, as JSON; empty if it raised. Of a boundary, its name without a number."""
    text: str = ""
    """Of an effect that begins, what may be raised if its answer is lost."""
    us: int = 0
    """When a call ended, or what it does inside began; in microseconds of a clock that only runs on."""

    @property
    def call(self) -> Call:
        return self.run, self.segment, self.address


Call = tuple[str, int, str]
"""Which call: run, segment, address."""


class Point(Struct, frozen=True):
    """A boundary by its name: `after:call:send#1`, `before:write:StepDone send#1`, `inside:call:send#1 open`."""

    side: str
    what: str
    detail: str = ""
    """The entry that is written, or what is done inside a call."""
    address: str = ""

    @classmethod
    def of(cls, name: str) -> Point:
        side, _, rest = name.partition("~")[0].partition(":")
        what, _, label = rest.partition(":")
        if what == WRITE:
            detail, _, address = label.partition(" ")
        elif side == INSIDE:
            address, _, detail = label.rpartition(" ")
        else:
            detail, address = "", label
        return cls(side, what, detail, address)

    def is_inside(self, address: str) -> bool:
        """Whether it is in the midst of that call."""
        return (self.side, self.address) == (INSIDE, address)


def where(main: str, run: str, address: str) -> str:
    """How a boundary names a call: those of children with their run."""
    if run == main:
        return address
    return f"{run.lstrip(chr(0x1F))}/{address}".rstrip("/")


def note(path: Path, event: LogLine) -> None:
    """What only the warm parent can know."""
    with path.open("ab") as file:
        file.write(msgspec.json.encode(event) + b"\n")


def read_events(path: Path) -> list[LogLine]:
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return []
    return [msgspec.json.decode(line, type=LogLine) for line in lines]


@dataclass(frozen=True)
class Strike:
    """What happens to a run, and where; nothing, without a target."""

    target: str | None = None
    damage: str = ""
    """What is done to the store of the killed run."""
    mishap: str = ""
    """What happens there instead of a kill."""
    eyes: bool = False
    """Whether it is seen which effect changes the world."""
    survivor: Survivor | None = None
    """What goes on after the kill."""
    rehearsed: bool = True
    """Whether a resumed run is replayed before it goes on, as it always is outside of the kit."""


class Probe(Observer):
    """Of one process. With a target, the process dies there, or the mishap strikes."""

    is_strict = True

    def __init__(self, log: Path, run: str, strike: Strike, edits: Sequence[str]) -> None:
        self.log = log
        past = read_events(log)
        self._fd = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._run = run
        self._target, self._mishap, self._survivor = strike.target, strike.mishap, strike.survivor
        self._eyes: Eyes | None = None
        self._edits = edits
        self._survives = False
        """Whether this process is what is left of a killed one."""
        self._bounds: dict[str, str] = {}
        self._passed = Counter(event.value for event in past if event.what == AT)
        self._segments = Counter(event.run for event in past if event.kind == RunContinued.__name__)
        self._lock = threading.Lock()
        self._kit = os.path.realpath(log.parent) + os.sep
        self._world = os.path.realpath(os.getcwd())
        self._gone: set[tuple[str, str]] = set()
        self._looks: int | None = None
        self.is_on = True
        """Not while a person is played: what they write is no boundary of the run."""

    def note(self, event: LogLine) -> None:
        os.write(self._fd, msgspec.json.encode(event) + b"\n")

    def passes(self, side: str, what: str, label: str = "") -> bool:
        """A boundary. The same one met again has a number: `before:wait~2`. True: here the mishap strikes."""
        if not self.is_on:
            return False
        with self._lock:
            point = ":".join(filter(None, (side, what, label)))
            self._passed[point] += 1
            name = point if self._passed[point] == 1 else f"{point}~{self._passed[point]}"
            self.note(LogLine(AT, value=point, text=name, us=_now() if side == INSIDE else 0))
            struck = name == self._target and bool(self._mishap)
            if struck:
                bound = self._bounds.get(Point.of(name).address, "")
                self.note(LogLine(STRUCK, value=name, text=self._mishap, kind=bound))
            elif name == self._target:
                die()
            return struck

    def unnoticed(self, look: Callable[[], T]) -> T:
        """The kit looks at the world: what that reaches for is nobody's."""
        self._looks = threading.get_ident()
        try:
            return look()
        finally:
            self._looks = None

    def waits(self, side: str, now: int) -> None:
        """Time that has passed stays passed: the next process goes on from there."""
        self.note(LogLine(TIME, value=str(now)))
        self.passes(side, WAIT)
        if side == AFTER and self._survivor is not None and 0 < self._survivor.due <= now:
            self.land()

    def land(self) -> None:
        """What outlived the killed process comes to its end now, if there is anything."""
        if self._survivor is not None and self._survivor.land():
            self.note(LogLine(LANDED))

    def open_eyes(self, world: Callable[[], World]) -> None:
        """See which effects change the world: the one that the mishap is for, or all."""
        self._eyes = Eyes(
            lambda: self.unnoticed(world), None if self._target is None else Point.of(self._target).address
        )

    def over(self, store: Store) -> Store:
        """The store; its appends are seen here."""
        return cast("Store", _Probed(store, self))

    # -- durable writes -----------------------------------------------------------------------------

    def appends(self, batch: Sequence[Extend], append: Callable[[Sequence[Extend]], Answers]) -> Answers:
        labels = [label for item in batch for label in self._labels(item)]
        for label in labels:
            self.passes(BEFORE, WRITE, label)
        answers = append(batch)
        for item, answer in zip(batch, answers, strict=True):
            if answer is None:
                self._recorded(item)
        for label in labels if not any(answers) else []:
            if self.passes(AFTER, WRITE, label):
                self._edit(label)
        return answers

    def _edit(self, label: str) -> None:
        """Somebody else writes. An effect that was about to run has not: its process dies."""
        for name in self._edits:
            self.unnoticed(lambda: mishaps.edit(os.path.join(self._world, name)))  # noqa: B023 - called at once
        if label.startswith(INTENDED):
            die()

    def _labels(self, item: Extend) -> list[str]:
        eager = [(kind.__name__, record) for record in item.records if (kind := KINDS[record.kind]) not in _LAZY]
        return [f"{name} {self._where(item.run, _fact(record.body).address)}".rstrip() for name, record in eager]

    def _recorded(self, item: Extend) -> None:
        for record in item.records:
            kind, fact = KINDS[record.kind], _fact(record.body)
            for name in fact.files():
                self.note(LogLine(EXPECTED, item.run, address=fact.address, value=name))
            if kind is RunContinued or (fact.address and fact.happened):
                self.note(LogLine(RECORDED, item.run, 1 + self._segments[item.run], fact.address, kind=kind.__name__))
            if kind is RunContinued:
                self._segments[item.run] += 1

    def _where(self, run: str, address: str) -> str:
        return where(self._run, run, address)

    # -- user code ----------------------------------------------------------------------------------

    def call_began(self, call: Made) -> None:
        label, spec, ways = self._label(call), call.declared, ""
        self.passes(BEFORE, CALL, label)
        if spec.kind == EFFECT:
            ways = ",".join(mishaps.lost_answers(spec))
            self._bounds[label] = mishaps.bound_of(spec)
            if self._eyes is not None:
                self._eyes.begins(label)
        self.note(self._event(BEGUN, call, text=ways))

    def call_ended(self, call: Made, outcome: Outcome) -> None:
        if self._survives:
            os._exit(0)
        label = self._label(call)
        acted = self._eyes.ends(label) if self._eyes is not None else None
        match outcome:
            case Returned(raw, _):
                self.note(self._event(ENDED, call, value=bytes(raw).decode()))
            case Raised(error, _):
                self.note(self._event(ENDED, call, text=f"{type(error).__name__}: {error}"))
                self._judges(call, error, guarded=outcome.proven, acted=acted is True)
            case _:
                self.note(self._event(ENDED, call, text="returned something that cannot be stored"))
        if self.passes(AFTER, CALL, label) and isinstance(outcome, Returned):
            self._lose(call, acted=acted is not False)

    def _judges(self, call: Made, error: BaseException, *, guarded: bool, acted: bool) -> None:
        """What an effect ends with may say that nothing was done."""
        not_done = call.declared.not_done
        if call.declared.kind == EFFECT and proves_not_done(error, not_done, guarded=guarded):
            why = f"{type(error).__name__}: {error}", mishaps.why_believed(error, not_done)
            self.note(self._event(DENIED, call, value=ACTED if acted else "", text="\n".join(why)))

    def _lose(self, call: Made, *, acted: bool) -> NoReturn:
        """It has returned, and its answer does not arrive."""
        error = mishaps.lost_answers(call.declared)[self._mishap.partition("-")[2] or mishaps.USUAL]
        self._judges(call, error, guarded=False, acted=acted)
        raise AnswerLost(error)

    def check_began(self, call: Made) -> None:
        self.passes(BEFORE, CHECK, self._label(call))

    def check_ended(self, call: Made, verdict: Verdict) -> None:
        why = "" if isinstance(verdict, Happened | NotHappened) else verdict.why
        self.note(self._event(LOOKED, call, text=type(verdict).__name__, value=why))
        self.passes(AFTER, CHECK, self._label(call))

    def call_refused(self, run: str, name: str, kind: str, error: Exception) -> None:
        self.note(LogLine(MISUSED if run else STRAYED, run, address=name, kind=kind, text=str(error)))

    def alerted(self, alert: Alert) -> None:
        """Of stops the run itself tells."""
        if alert.kind not in STOPS:
            self.note(LogLine(LOUD, alert.run, kind=alert.kind, text=str(alert)))

    def _label(self, call: Made) -> str:
        return self._where(call.run, call.address)

    def _event(self, what: str, call: Made, *, value: str = "", text: str = "") -> LogLine:
        spec, us = call.declared, _now() if what == ENDED else 0
        return LogLine(
            what, call.run, call.segment, call.address, spec.kind, spec.on_crash, spec.undoes is not None, value, text, us,
        )  # fmt: skip

    # -- what user code reaches for -----------------------------------------------------------------

    def touching(self, event: str, args: tuple[Any, ...]) -> None:
        """An audit hook: called for everything that Python does, so it leaves at once."""
        if event not in _TOUCHING or (event == "open" and not (isinstance(args[2], int) and args[2] & _WRITING)):
            return
        if self._looks is not None and self._looks == threading.get_ident():
            return
        if self._survives:
            self._goes_on(event, args)
            return
        place = current.get()
        if place is None:
            for name in self._names(event, args) if current.driven.count else []:
                self.note(LogLine(TOUCHED, text=event, value=name))
        elif place is current.OUTSIDE or place.inside is None:
            self._own_lines_touch(event, args, None if place is current.OUTSIDE else place.session)
        elif place.inside.kind == CHECK:
            self._check_touches(event, args, self._where(place.session.run, place.inside.address))
        else:
            self._call_touches(event, args, place)

    def _own_lines_touch(self, event: str, args: tuple[Any, ...], session: Any) -> None:
        if self._is_ours(self._path(args)):
            return
        created = None if session is None else session.state.created
        run, segment = (self._run, 1) if session is None else (session.run, session.state.segment)
        for name in self._names(event, args) or [""]:
            workflow = "" if created is None else created.workflow
            self.note(LogLine(TOUCHED, run, segment, kind=workflow, text=event, value=name))

    def _check_touches(self, event: str, args: tuple[Any, ...], address: str) -> None:
        for name in (self._names(event, args) or [""]) if event in _FILES else []:
            self.note(LogLine(MEDDLED, address=address, text=event, value=name))

    def _call_touches(self, event: str, args: tuple[Any, ...], place: Any) -> None:
        run, inside = place.session.run, place.inside.address
        address = self._where(run, inside)
        if (what := self._abroad(event, args)) and (address, what) not in self._gone:
            self._gone.add((address, what))
            self.note(LogLine(ABROAD, address=address, text=what))
        for name in self._names(event, args):
            self.note(LogLine(TOUCHED, run, place.session.state.segment, inside, text=event, value=name))
            if self._eyes is not None:
                self._eyes.reaches(address, name)
        if self.passes(INSIDE, CALL, f"{address} {event}"):
            self._strike(event)

    def _strike(self, event: str) -> None:
        if self._survivor is None:
            raise mishaps.failure(event)
        self._survivor.stay()
        self._survives = True

    def _goes_on(self, event: str, args: tuple[Any, ...]) -> None:
        """What was under way is carried out; whatever would come after it died with the process."""
        if event not in CONTINUING and self._path(args) not in ("", os.devnull):
            os._exit(0)

    def _is_ours(self, path: str | None) -> bool:
        """A file of the store, or of the kit; or a descriptor that was opened before."""
        if path is None:
            return False
        first = path.removeprefix(self._kit).partition(os.sep)[0] if path.startswith(self._kit) else None
        return path in ("", os.devnull) or first in (STORE_FOLDER, LEDGER_FILE, LOG_FILE, EVENTS_FILE)

    def _abroad(self, event: str, args: tuple[Any, ...]) -> str:
        """What is not compared by default: another folder, or the network. Empty: it is."""
        if event in _NETWORK:
            return event
        path = self._path(args) if event in _FILES else ""
        is_compared = not path or self._is_ours(path) or path.startswith(self._world + os.sep)
        return "" if is_compared else f"{event} {path}"

    def _path(self, args: tuple[Any, ...]) -> str | None:
        """None: what it is about is no file."""
        if not args or isinstance(args[0], int):
            return ""
        try:
            return os.path.realpath(os.fsdecode(args[0]))
        except TypeError:
            return None

    def _names(self, event: str, args: tuple[Any, ...]) -> list[str]:
        """What of the compared world it is about: files by their names there, or the ledger.

        A folder that is renamed ends with a slash: it is about all that is in it.
        """
        if event in _PROGRAMS:
            return [ANYTHING]
        found = (self._name(event, args[path], args[base] if base else -1) for path, base in _ARGUMENTS.get(event, ()))
        whole = "/" if event == "os.rename" and os.path.isdir(args[0]) else ""
        return [name + whole for name in found if name]

    def _name(self, event: str, path: Any, base: Any) -> str:
        """Empty: it is not compared."""
        if isinstance(path, int):
            return ""
        try:
            folder, last = os.path.split(os.path.join(_folder(base), os.fsdecode(path).rstrip(os.sep)))
        except TypeError:
            return ""
        whole = os.path.join(os.path.realpath(folder), last)
        whole = os.path.realpath(whole) if event in _FOLLOWING else whole
        if whole == self._kit + LEDGER_FILE:
            return LEDGER
        return whole.removeprefix(self._world + os.sep) if whole.startswith(self._world + os.sep) else ""


class _Probed:
    """A store whose appends are boundaries; all else is the store's own."""

    def __init__(self, store: Store, probe: Probe) -> None:
        self._inner = store
        self._probe = probe

    def append(self, batch: Sequence[Extend]) -> Answers:
        return self._probe.appends(batch, self._inner.append)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class _Seen(Struct):
    parts: dict[str, str] = {}


class _Fact(Struct):
    """What the kit wants to know of an entry."""

    address: str = ""
    happened: bool = True
    """Only a settlement says that something did not."""
    before: tuple[_Seen, ...] = ()
    after: tuple[_Seen, ...] = ()
    sights: tuple[_Seen, ...] = ()

    def files(self) -> list[str]:
        """What the run has seen of files, by their names."""
        seen = (*self.before, *self.after, *self.sights)
        return [part.removeprefix(_FILE) for one in seen for part in one.parts if part.startswith(_FILE)]


def _now() -> int:
    return time.monotonic_ns() // 1000


def _folder(descriptor: Any) -> str:
    """The folder that a path is relative to: the working folder, unless a descriptor of another one is given."""
    if not isinstance(descriptor, int) or descriptor < 0:
        return ""
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return ""


_fact: Final = msgspec.json.Decoder(_Fact).decode
