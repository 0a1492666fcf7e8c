"""A run as a picture of its time: a lane for each branch, a bar for each attempt, a stretch for each process that drove it.

Order is the journal's. Between two stretches nobody drove the run: that gap is folded, and says how long it was. Wall clocks
of two processes need not agree; where the next one began earlier than the last one ended, the fold says so. Within a stretch
no bar has a negative length. Positions are fractions of one screen, so a page draws them without arithmetic.

What is drawn of a call is all that the journal has: each attempt, not only the last. A call that somebody began and nobody
ended is drawn up to the last sign of its process.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from surefoot.core.address import split
from surefoot.core.entry import (
    VISITORS,
    AnswerGiven,
    CallCancelled,
    CallsReopened,
    CancelRequested,
    EffectDone,
    EffectDoubted,
    EffectIntended,
    EffectRaised,
    EffectRecovered,
    EffectSettled,
    EffectSuspected,
    EffectUnstorable,
    Entry,
    EventTaken,
    FellBack,
    QuestionAsked,
    QuestionExpired,
    RunAdopted,
    RunContinued,
    RunRewound,
    RunStopped,
    StepDone,
    StepRaised,
    StepStarted,
    TimerFired,
    TimerSet,
    ValueNoted,
    WaitExpired,
    WaitStarted,
)
from surefoot.core.history import CHILD
from surefoot.core.seal import Record

Story = Sequence[tuple[Record, Entry]]

DONE: Final = "done"
FAILED: Final = "failed"
RETRYING: Final = "retrying"
"""An attempt that failed, and another one follows."""
IN_DOUBT: Final = "in doubt"
UNDER_WAY: Final = "under way"
CUT_OFF: Final = "cut off"
OPEN: Final = "open"
"""It waits: for a moment, an event, an answer."""
CLEARED: Final = "not happened"
EXPIRED: Final = "expired"

NARROWEST: Final = 1 / 6
"""Of a screen. No stretch is narrower, however short it was."""
FOLD: Final = 0.03
"""The width of a folded gap."""
MOST_LANES: Final = 60
MOST_BARS: Final = 400
_STEPS: Final = re.compile(r"\[[^\]]*\]/|[^/#]+#\d+(?:\.\d+)?/")
_WAITS: Final = ("timer", "wait", "question")
_PLAIN: Final = (DONE, CLEARED)


class Stretch(Struct, frozen=True):
    """The time in which one process drove the run."""

    epoch: int
    process: str
    """Who drove it: worker, host, pid."""
    start: int
    """Microseconds since 1970."""
    end: int
    ended: bool
    """Whether it let go in good order, or drives it still. Else its process is gone."""
    gap: int
    """How long nobody had driven the run before; negative: the clock was set back meanwhile."""
    x: float
    width: float

    @property
    def set_back(self) -> bool:
        return self.gap < 0


class Lane(Struct, frozen=True):
    """A branch: what is called one after the other in one scope."""

    path: str
    """Of the scope, as in addresses; empty: the run itself."""
    label: str
    depth: int
    is_folded: bool = False
    """Whether it stands for branches in which all is done: then it has no bars."""
    branches: int = 1
    """For how many."""


class Bar(Struct, frozen=True):
    """One attempt of a call, or a wait."""

    lane: int
    address: str
    kind: str
    """`step`, `effect`, `child`, `timer`, `wait` or `question`."""
    attempt: int
    outcome: str
    start: int
    """Microseconds since 1970, by the clock of the process that began it."""
    end: int
    """When it ended, or was last heard of."""
    seq: int
    """Its first entry."""
    last: int
    """Its last entry."""
    segment: int
    x: float = 0.0
    width: float = 0.0
    open_end: bool = False
    """Nobody knows when it ended, or it has not."""
    by: str = ""
    """The person who said what became of it, or answered."""
    error: str = ""
    set_aside: bool = False
    """Somebody sent the run back to before it."""
    until: int = 0
    """When the next attempt is due, or until when it waits."""
    calls: int = 1
    """For how many equal calls it stands."""

    @property
    def name(self) -> str:
        return split(self.address)[1]


class Sign(Struct, frozen=True):
    """Something that happened to the run as a whole."""

    kind: str
    """The kind of the entry: `RunStopped`, `RunRewound`, `FellBack` …"""
    at: int
    seq: int
    x: float
    by: str = ""


class Timeline(Struct, frozen=True):
    width: float
    """In screens: 1 or more."""
    stretches: tuple[Stretch, ...]
    lanes: tuple[Lane, ...]
    bars: tuple[Bar, ...]
    signs: tuple[Sign, ...]
    hidden: int = 0
    """How many bars are outside of the window that was asked for."""


def timeline(
    story: Story, *, driven: bool, now: int, first: int = 0, last: int = 0, unfolded: bool = False
) -> Timeline:
    """Of a journal with its entries, in order. `driven`: a living process drives it. `first`, `last`: a window, by entry."""
    stretches = _placed(_stretches(story, driven=driven, now=now))
    drawn = _Drawing(stretches)
    for record, entry in story:
        drawn.take(record, entry)
    drawn.end(driven=driven, now=now)
    bars = [bar for bar in drawn.bars if (not first or bar.last >= first) and (not last or bar.seq <= last)]
    width = stretches[-1].x + stretches[-1].width if stretches else 1.0
    lanes = _lanes(bars)
    numbers = {lane.path: number for number, lane in enumerate(lanes)}
    placed = [replace(bar, lane=numbers[_path(bar.address)]) for bar in bars]
    whole = Timeline(
        max(width, 1.0), tuple(stretches), tuple(lanes), tuple(placed), tuple(drawn.signs), len(drawn.bars) - len(bars)
    )
    return whole if unfolded else folded(whole)


# --- stretches ---------------------------------------------------------------------------------------


def _stretches(story: Story, *, driven: bool, now: int) -> list[Stretch]:
    found: list[Stretch] = []
    for record, entry in story:
        if isinstance(entry, RunAdopted):
            gap = record.at - found[-1].end if found else 0
            who = f"worker {entry.worker[:8]} on host {entry.host} (pid {entry.pid})"
            found.append(Stretch(record.epoch, who, record.at, record.at, False, gap, 0.0, 0.0))
        elif found and type(entry) not in VISITORS:
            end = max(found[-1].end, record.at)
            found[-1] = replace(found[-1], end=end, ended=type(entry).__name__ in _LETS_GO)
    if found and driven:
        found[-1] = replace(found[-1], end=max(found[-1].end, now), ended=True)
    return found


_LETS_GO: Final = ("RunReleased", "RunStopped", "RunSuspended", "RunDone", "RunFailed", "RunCancelled")


def _placed(stretches: list[Stretch]) -> list[Stretch]:
    """Side by side, each as wide as it was long, but none too narrow to be seen."""
    if not stretches:
        return []
    folds = FOLD * (len(stretches) - 1)
    lengths = [max(one.end - one.start, 1) for one in stretches]
    room = max(1.0 - folds, NARROWEST)
    least = min(NARROWEST, room / len(stretches)) if len(stretches) <= 1 / NARROWEST else NARROWEST
    free, total = max(room - least * len(stretches), 0.0), sum(lengths)
    x, found = 0.0, []
    for one, length in zip(stretches, lengths, strict=True):
        width = least + free * length / total
        found.append(replace(one, x=x, width=width))
        x += width + FOLD
    return found


# --- bars --------------------------------------------------------------------------------------------


class _Drawing:
    """Entry by entry, what of a call began where and came to what."""

    def __init__(self, stretches: list[Stretch]) -> None:
        self.bars: list[Bar] = []
        self.signs: list[Sign] = []
        self._stretches = stretches
        self._number = -1
        """Of the stretch that the entry at hand is in, or behind which it stands."""
        self._at_large: dict[str, int] = {}
        """Address -> the bar that has not ended."""
        self._doubtful: dict[str, int] = {}
        """Address -> the bar of an attempt that nobody knows the outcome of."""
        self._segment = 1

    def take(self, record: Record, entry: Entry) -> None:
        if isinstance(entry, RunAdopted):
            self._cut_off()
            self._number += 1
        if (take := _TAKES.get(type(entry))) is not None:
            take(self, record, entry)
        if type(entry) in _SIGNS:
            x = self._x(record.at, between=type(entry) in VISITORS)
            self.signs.append(Sign(type(entry).__name__, record.at, record.seq, x, getattr(entry, "by", "")))

    def end(self, *, driven: bool, now: int) -> None:
        """What is open still."""
        if not driven:
            self._cut_off()
            return
        for number in self._at_large.values():
            bar = self.bars[number]
            outcome = OPEN if bar.kind in _WAITS else UNDER_WAY
            self._close(number, replace(bar, outcome=outcome, end=max(bar.start, now), open_end=True), now)

    # -- what an entry does ---------------------------------------------------------------------------

    def begin(self, record: Record, address: str, kind: str, attempt: int = 1, until: int = 0) -> None:
        start = max(record.at, self._here().start) if self._stretches else record.at
        bar = Bar(0, address, kind, attempt, OPEN, start, start, record.seq, record.seq, self._segment, until=until)
        self._at_large[address] = len(self.bars)
        self.bars.append(replace(bar, x=self._x(start)))

    def finish(self, record: Record, address: str, outcome: str, **facts: Any) -> None:
        """The bar that is open ends with this entry."""
        number = self._at_large.pop(address, None)
        if number is None:
            number = self._doubtful.pop(address, None)
        if number is None:
            return
        bar = self.bars[number]
        end = max(record.at, bar.start)
        self._close(number, replace(bar, outcome=outcome, end=end, last=record.seq, **facts), record.at)

    def at_once(self, record: Record, address: str, kind: str, attempt: int, started: int, **facts: Any) -> None:
        """An attempt that one entry tells of, or that a lazy one has begun."""
        number = self._at_large.pop(address, None)
        begun = self.bars[number] if number is not None else None
        start = started or (begun.start if begun is not None else record.at)
        start = min(max(start, self._here().start), max(record.at, self._here().start))
        bar = Bar(
            0, address, kind, attempt, DONE, start, max(record.at, start),
            begun.seq if begun is not None else record.seq, record.seq, self._segment, x=self._x(start),
        )  # fmt: skip
        if number is None:
            number = len(self.bars)
            self.bars.append(bar)
        self._close(number, replace(bar, **facts), record.at)

    def doubt(self, record: Record, address: str, error: str = "") -> None:
        """The attempt has ended, and nobody knows how."""
        number = self._at_large.pop(address, None)
        if number is not None:
            bar = self.bars[number]
            end = max(record.at, bar.start)
            doubtful = replace(bar, outcome=IN_DOUBT, end=end, last=record.seq, error=error, open_end=True)
            self._close(number, doubtful, record.at)
            self._doubtful[address] = number

    def settle(self, record: Record, entry: EffectSettled) -> None:
        """Its bar stays as long as it was: when it ended is not known."""
        if entry.by and entry.address in self._at_large:  # Its process was killed, and no other one has said so.
            self._cut_off()
        number = self._doubtful.pop(entry.address, None)
        if number is not None:
            outcome = DONE if entry.happened else FAILED if entry.failed else CLEARED
            bar = self.bars[number]
            self.bars[number] = replace(bar, outcome=outcome, open_end=False, by=entry.by, last=record.seq)

    def set_aside(self, seq: int) -> None:
        for number, bar in enumerate(self.bars):
            if bar.seq >= seq and bar.segment == self._segment:
                self.bars[number] = replace(bar, set_aside=True)
        self._doubtful.clear()
        self._at_large.clear()

    def next_segment(self) -> None:
        self._segment += 1
        self._at_large.clear()
        self._doubtful.clear()

    # -- where it is drawn ----------------------------------------------------------------------------

    def _cut_off(self) -> None:
        """The process at hand is not heard of any more: what it had begun was begun, and no more is known."""
        for address, number in list(self._at_large.items()):
            bar = self.bars[number]
            if bar.kind in _WAITS:
                self.bars[number] = replace(
                    bar, width=max(self._edge() - bar.x, 0.0), end=max(bar.start, self._here().end)
                )
                continue  # It goes on: nobody has to be there to wait.
            del self._at_large[address]
            outcome = IN_DOUBT if bar.kind == "effect" else CUT_OFF
            end = max(bar.start, self._here().end)
            self._close(number, replace(bar, outcome=outcome, end=end, open_end=True), end)
            if bar.kind == "effect":
                self._doubtful[address] = number

    def _close(self, number: int, bar: Bar, at: int) -> None:
        self.bars[number] = replace(bar, width=max(self._x(at) - bar.x, 0.0))

    def _here(self) -> Stretch:
        return self._stretches[max(self._number, 0)]

    def _edge(self) -> float:
        return self._here().x + self._here().width

    def _x(self, at: int, *, between: bool = False) -> float:
        """Where a moment of the stretch at hand is. `between`: somebody else wrote it, perhaps after the stretch was over."""
        if not self._stretches or self._number < 0:
            return 0.0
        here = self._here()
        if between and at > here.end:
            return self._edge() + FOLD / 2
        part = (at - here.start) / max(here.end - here.start, 1)
        return here.x + here.width * min(max(part, 0.0), 1.0)


def _step_started(drawn: _Drawing, record: Record, entry: StepStarted) -> None:
    drawn.begin(record, entry.address, _kind_of_step(entry.address), entry.attempt)


def _step_done(drawn: _Drawing, record: Record, entry: StepDone) -> None:
    drawn.at_once(record, entry.address, _kind_of_step(entry.address), entry.attempt, entry.started)


def _step_raised(drawn: _Drawing, record: Record, entry: StepRaised) -> None:
    drawn.at_once(
        record, entry.address, _kind_of_step(entry.address), entry.attempt, entry.started, error=_error(entry),
        outcome=FAILED if entry.due is None else RETRYING, until=0 if entry.due is None else entry.due.at,
    )  # fmt: skip


def _effect_raised(drawn: _Drawing, record: Record, entry: EffectRaised) -> None:
    outcome, until = (FAILED, 0) if entry.due is None else (RETRYING, entry.due.at)
    if entry.denied:
        drawn.at_once(record, entry.address, "effect", entry.attempt, record.at, outcome=outcome, error=_error(entry))
    else:
        drawn.finish(record, entry.address, outcome, error=_error(entry), until=until)


def _effect_found(drawn: _Drawing, record: Record, entry: EffectSuspected | EffectRecovered) -> None:
    drawn.begin(record, entry.address, "effect", entry.attempt)
    if isinstance(entry, EffectRecovered):
        drawn.finish(record, entry.address, DONE)
    else:
        drawn.doubt(record, entry.address)


def _error(entry: Any) -> str:
    from surefoot.core import values
    from surefoot.core.need import in_short

    return in_short(": ".join(values.error_summary(entry.error)))


def _kind_of_step(address: str) -> str:
    return CHILD if split(address)[1] == CHILD else "step"


def _until(entry: Any) -> int:
    return entry.due.at if entry.due is not None else 0


_TAKES: Final[dict[type[Entry], Any]] = {
    StepStarted: _step_started,
    StepDone: _step_done,
    StepRaised: _step_raised,
    EffectIntended: lambda drawn, record, entry: drawn.begin(record, entry.address, "effect", entry.attempt),
    EffectDone: lambda drawn, record, entry: drawn.finish(record, entry.address, DONE),
    EffectRaised: _effect_raised,
    EffectDoubted: lambda drawn, record, entry: drawn.doubt(record, entry.address, _error(entry)),
    EffectUnstorable: lambda drawn, record, entry: drawn.doubt(record, entry.address, entry.why),
    EffectSettled: lambda drawn, record, entry: drawn.settle(record, entry),
    EffectSuspected: _effect_found,
    EffectRecovered: _effect_found,
    CallCancelled: lambda drawn, record, entry: None if entry.before else drawn.finish(record, entry.address, CUT_OFF),
    QuestionAsked: lambda drawn, record, entry: drawn.begin(record, entry.address, "question", until=_until(entry)),
    AnswerGiven: lambda drawn, record, entry: drawn.finish(record, entry.address, DONE, by=entry.by),
    QuestionExpired: lambda drawn, record, entry: drawn.finish(record, entry.address, EXPIRED),
    TimerSet: lambda drawn, record, entry: drawn.begin(record, entry.address, "timer", until=_until(entry)),
    TimerFired: lambda drawn, record, entry: drawn.finish(record, entry.address, DONE),
    ValueNoted: lambda drawn, record, entry: drawn.finish(record, entry.address, DONE),
    WaitStarted: lambda drawn, record, entry: drawn.begin(record, entry.address, "wait", until=_until(entry)),
    EventTaken: lambda drawn, record, entry: drawn.finish(record, entry.address, DONE),
    WaitExpired: lambda drawn, record, entry: drawn.finish(record, entry.address, EXPIRED),
    RunRewound: lambda drawn, _, entry: drawn.set_aside(entry.seq),
    RunContinued: lambda drawn, *_: drawn.next_segment(),
}
_SIGNS: Final = (RunStopped, RunRewound, CallsReopened, RunContinued, FellBack, CancelRequested)


# --- lanes, and what is folded -----------------------------------------------------------------------


def _path(address: str) -> str:
    return split(address)[0]


def _lanes(bars: Iterable[Bar]) -> list[Lane]:
    """The run itself first, then branches by their first call, each with those inside of it below."""
    first: dict[str, int] = {"": 0}
    for bar in bars:
        path = ""
        for step in _STEPS.findall(_path(bar.address)):
            path += step
            first.setdefault(path, bar.seq)
    below: dict[str, list[str]] = {}
    for path in first:
        if path:
            below.setdefault(path[: len(path) - len(_STEPS.findall(path)[-1])], []).append(path)
    return list(_in_order("", 0, first, below))


def _in_order(path: str, depth: int, first: dict[str, int], below: dict[str, list[str]]) -> Iterator[Lane]:
    steps = _STEPS.findall(path)
    yield Lane(path, steps[-1].rstrip("/") if steps else "", depth)
    for one in sorted(below.get(path, ()), key=first.__getitem__):
        yield from _in_order(one, depth + 1, first, below)


def folded(whole: Timeline, *, lanes: int = MOST_LANES, bars: int = MOST_BARS) -> Timeline:
    """The same with fewer bars and lanes, if it has too many: nothing that went wrong, is open or in doubt is hidden."""
    if len(whole.lanes) > lanes:
        whole = _fewer_lanes(whole)
    return replace(whole, bars=tuple(_fewer_bars(whole.bars))) if len(whole.bars) > bars else whole


def _is_plain(bar: Bar) -> bool:
    return bar.outcome in _PLAIN and not (bar.by or bar.set_aside or bar.open_end)


def _fewer_bars(bars: Sequence[Bar]) -> Iterator[Bar]:
    """Equal neighbours of a lane become one: `propose ×412`."""
    held: dict[int, Bar] = {}
    for bar in bars:
        before = held.get(bar.lane)
        if before is not None and _joins(before, bar):
            end = max(before.x + before.width, bar.x + bar.width)
            held[bar.lane] = replace(
                before,
                end=max(before.end, bar.end),
                last=bar.last,
                width=end - before.x,
                calls=before.calls + bar.calls,
            )
            continue
        if before is not None:
            yield before
        held[bar.lane] = bar
    yield from held.values()


def _joins(before: Bar, bar: Bar) -> bool:
    """Only steps: an effect changed the world, and each is seen."""
    alike = (before.kind, before.name, before.segment) == (bar.kind, bar.name, bar.segment)
    return bar.kind == "step" and alike and _is_plain(before) and _is_plain(bar)


def _fewer_lanes(whole: Timeline) -> Timeline:
    """Branches side by side in which all is done become one lane, without bars of its own."""
    troubled = {bar.lane for bar in whole.bars if not _is_plain(bar)}
    keep = {0} | {number for at in troubled for number in _around(whole.lanes, at)}
    numbers: dict[int, int] = {}
    found: list[Lane] = []
    for number, lane in enumerate(whole.lanes):
        if number in keep:
            found.append(lane)
        elif found and found[-1].is_folded:
            found[-1] = replace(found[-1], branches=found[-1].branches + 1)
        else:
            found.append(replace(lane, label="", is_folded=True))
        numbers[number] = len(found) - 1
    bars = tuple(replace(bar, lane=numbers[bar.lane]) for bar in whole.bars if bar.lane in keep)
    return replace(whole, lanes=tuple(found), bars=bars)


def _around(lanes: Sequence[Lane], number: int) -> Iterator[int]:
    """This lane and those it is in."""
    yield number
    for at in range(number - 1, -1, -1):
        if lanes[number].path.startswith(lanes[at].path):
            yield at
