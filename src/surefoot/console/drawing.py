"""A timeline as numbers for SVG: percentages in attributes, so that a page needs no `style=` and no script to fit a screen.

What is drawn is decided in `view/lanes.py`. Here a fold gets the room for its words, a bar its shape, and nothing else.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from surefoot.core.visible import visible
from surefoot.view import lanes, text
from surefoot.view.lanes import Bar, Lane, Stretch, Timeline

ROW: Final = 36
HEAD: Final = 44
_EDGE: Final = 0.012
_FOLD: Final = 0.062
"""Of a screen: room for "20 min" and "nobody"."""
_NARROWEST: Final = 0.004
_PIXELS: Final = 620
"""A screen is seldom narrower. Text that would not fit then is not drawn."""
_LETTER: Final = 6.7
_SIGNS: Final = {
    "RunRewound": ("calm", "sent back"),
    "CallsReopened": ("calm", "to be tried again"),
    "RunContinued": ("calm", "continued as new"),
    "FellBack": ("damage", "fell back"),
    "CancelRequested": ("failed", "cancel asked"),
}


class Gap(Struct, frozen=True):
    x: str
    width: str
    first: str
    second: str
    calm: bool
    """The process had let go in good order."""


class Process(Struct, frozen=True):
    x: str
    end: str
    width: str
    first: str
    second: str
    title: str


class Name(Struct, frozen=True):
    name: str
    title: str
    depth: int
    last: bool
    on: bool
    y: int


class Open(Struct, frozen=True):
    """A bar goes on, and nobody knows until when."""

    css: str
    x: str
    width: str
    text: str = ""


class Drawn(Struct, frozen=True):
    href: str
    told: str
    css: str
    x: str
    width: str
    y: int
    height: int
    text: str = ""
    text_css: str = ""
    mark: str = ""
    chosen: bool = False
    open: Open | None = None


class Dots(Struct, frozen=True):
    x: str
    end: str
    y: int


class Mark(Struct, frozen=True):
    x: str
    css: str
    told: str


class Drawing(Struct, frozen=True):
    width: str
    height: int
    lanes: Sequence[Name]
    gaps: Sequence[Gap]
    processes: Sequence[Process]
    bars: Sequence[Drawn]
    dots: Sequence[Dots]
    signs: Sequence[Mark]
    then: str = ""
    """Where the moment is that is looked back at."""


def draw(
    found: Timeline, *, href: Callable[[Bar], str], name: str, chosen: str = "", at: int = 0, moment: int = 0
) -> Drawing:
    """`chosen`: the call that is looked at. `at`: only what the journal knew after this entry counts; the rest is outlined.
    `moment`: when that entry was written.
    """
    place = _Place(found)
    height = HEAD + ROW * len(found.lanes)
    on = next((bar.lane for bar in found.bars if bar.address == chosen), -1)
    bars = [_bar(bar, place, href, chosen=chosen, at=at, moment=moment) for bar in found.bars if not _is_wait(bar)]
    waits = [_bar(bar, place, href, chosen=chosen, at=at, moment=moment) for bar in found.bars if _is_wait(bar)]
    return Drawing(
        width=f"{max(found.width * 100, 100):.0f}%",
        height=height,
        lanes=[_name(number, lane, found.lanes, name, on=number == on) for number, lane in enumerate(found.lanes)],
        gaps=_gaps(found.stretches, place),
        processes=_processes(found.stretches, place),
        bars=[*waits, *bars],
        dots=list(_back_offs(found.bars, place)),
        signs=[
            Mark(
                place(one.x), _SIGNS[one.kind][0], f"{_SIGNS[one.kind][1]}{', by ' + visible(one.by) if one.by else ''}"
            )
            for one in found.signs
            if one.kind in _SIGNS
        ],
        then=_moment(found, place, at),
    )


class _Place:
    """Fractions of `view/lanes.py` to percentages of the drawing: stretches give some of their room to the folds."""

    def __init__(self, found: Timeline) -> None:
        self._stretches = found.stretches
        self._screens = max(found.width, 1.0)
        folds = _FOLD * max(len(found.stretches) - 1, 0)
        whole = sum(one.width for one in found.stretches) or 1.0
        room = self._screens - folds - 2 * _EDGE
        self._wide = [one.width / whole * room for one in found.stretches]
        self._begins: list[float] = []
        x = _EDGE
        for width in self._wide:
            self._begins.append(x)
            x += width + _FOLD

    def at(self, x: float) -> float:
        """In screens."""
        for number, one in enumerate(self._stretches):
            last = number == len(self._stretches) - 1
            if x <= one.x + one.width + 1e-9 or last:
                part = (x - one.x) / one.width if one.width else 0.0
                return self._begins[number] + self._wide[number] * min(max(part, 0.0), 1.0)
            if x < self._stretches[number + 1].x:
                return self._begins[number] + self._wide[number] + _FOLD / 2
        return _EDGE

    def begin(self, number: int) -> float:
        return self._begins[number]

    def end(self, number: int) -> float:
        return self._begins[number] + self._wide[number]

    def percent(self, screens: float) -> str:
        return f"{screens / self._screens * 100:.2f}%"

    def __call__(self, x: float) -> str:
        return self.percent(self.at(x))

    @property
    def edge(self) -> float:
        return self._screens - _EDGE / 2


def _gaps(stretches: Sequence[Stretch], place: _Place) -> list[Gap]:
    found = []
    for number, one in enumerate(stretches[1:], 1):
        before = stretches[number - 1]
        first, second = (
            ("clock", "set back") if one.set_back else (_length(one.gap), "asleep" if before.ended else "nobody")
        )
        found.append(Gap(place.percent(place.end(number - 1)), place.percent(_FOLD), first, second, before.ended))
    return found


def _processes(stretches: Sequence[Stretch], place: _Place) -> list[Process]:
    found = []
    for number, one in enumerate(stretches):
        begin, end = place.begin(number), place.end(number)
        length = text.took(one.end - one.start)
        clock = f"{text.moment(one.start):%H:%M:%S}"
        roomy = (end - begin) * _PIXELS > 130
        title = f"{visible(one.process)}, from {text.clock_time(one.start)}, {length}"
        found.append(
            Process(
                place.percent(begin), place.percent(end), place.percent(end - begin),
                f"process {number + 1}" if (end - begin) * _PIXELS > 64 else str(number + 1),
                f"{clock} · {length}" if roomy else length, title,
            )
        )  # fmt: skip
    return found


def _length(micros: int) -> str:
    """In one unit: a fold is narrow."""
    seconds = micros / 1e6
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"


def _name(number: int, lane: Lane, every: Sequence[Lane], root: str, *, on: bool) -> Name:
    label = f"{lane.branches} branches, all done" if lane.is_folded else lane.label.strip("[]") or root
    below = every[number + 1 :]
    last = bool(lane.depth) and not any(
        one.depth == lane.depth for one in _until(below, lambda other: other.depth < lane.depth)
    )
    return Name(visible(label), visible(lane.path or root), lane.depth, last, on, HEAD + ROW * number)


def _until(lanes_: Sequence[Lane], over: Callable[[Lane], bool]) -> list[Lane]:
    found = []
    for one in lanes_:
        if over(one):
            break
        found.append(one)
    return found


# --- bars --------------------------------------------------------------------------------------------


def _is_wait(bar: Bar) -> bool:
    return bar.kind in ("timer", "wait", "question")


def _bar(bar: Bar, place: _Place, href: Callable[[Bar], str], *, chosen: str, at: int, moment: int) -> Drawn:
    x = place.at(bar.x)
    end = max(place.at(bar.x + bar.width), x + _NARROWEST)
    later = bool(at) and bar.seq > at
    then = bool(at) and not later and (at < bar.last or (bar.open_end and moment <= bar.end))
    css, height, text_css = _shape(bar, later=later, then=then)
    y = HEAD + ROW * bar.lane + (ROW - height) // 2
    doubtful = bar.outcome == lanes.IN_DOUBT and not later and not then
    word, mark = "", "doubt" if doubtful else "person" if bar.by and not later and height > 14 else ""
    if css not in ("b-ghost", "b-wait"):
        word = _word(bar, (end - x) * _PIXELS - (34 if mark == "doubt" else 12))
    if mark == "doubt" and not word:
        mark = "doubt" if (end - x) * _PIXELS > 26 else ""
    open_ = None
    if doubtful or (bar.outcome == lanes.CUT_OFF and not later):
        css_open = "b-doubt-open" if doubtful else "b-ghost"
        wide = max(place.edge - end, 0.01) if doubtful else 0.02
        outside = _word(bar, wide * _PIXELS - 20) if doubtful and not word else ""
        open_ = Open(css_open, place.percent(end), place.percent(wide), outside)
    return Drawn(
        href(bar), _told(bar, later=later, then=then), css, place.percent(x), place.percent(end - x), y, height, word,
        text_css, mark, bool(chosen) and bar.address == chosen, open_,
    )  # fmt: skip


def _shape(bar: Bar, *, later: bool, then: bool) -> tuple[str, int, str]:
    """Class, height, class of its text."""
    height = 22 if bar.kind == "effect" else 16
    if later or bar.set_aside or bar.outcome == lanes.CLEARED:
        return "b-ghost", height, ""
    if then:
        return "b-under", height, "t-step"
    if _is_wait(bar):
        return "b-wait", 8, ""
    match bar.outcome:
        case lanes.FAILED | lanes.RETRYING:
            return "b-fail", 14, "t-fail"
        case lanes.IN_DOUBT:
            return "b-doubt", 22, "t-doubt"
        case lanes.UNDER_WAY:
            return "b-under", height, "t-step"
        case lanes.CUT_OFF:
            return "b-ghost", height, ""
    return ("b-effect", 22, "t-effect") if bar.kind == "effect" else ("b-step", 16, "t-step")


def _word(bar: Bar, pixels: float) -> str:
    name = visible(bar.name)
    if bar.outcome in (lanes.FAILED, lanes.RETRYING):
        name = f"✕ {bar.attempt}"
    elif bar.outcome == lanes.IN_DOUBT:
        name += " in doubt"
    elif bar.calls > 1:
        name += f" ×{bar.calls}"
    elif bar.attempt > 1:
        name += f" ({bar.attempt}.)"
    room = int(pixels / _LETTER)
    if len(name) <= room:
        return name
    return f"{name[: room - 1]}…" if room >= 6 else ""


def _told(bar: Bar, *, later: bool, then: bool) -> str:
    """Everything, for the tooltip and for whoever does not see the picture."""
    parts = [bar.address, bar.kind]
    if bar.calls > 1:
        parts.append(f"{bar.calls} equal calls")
    if not _is_wait(bar):
        parts.append(f"attempt {bar.attempt}")
    if bar.open_end:
        parts.append(f"began {text.moment(bar.start):%H:%M:%S} UTC")
    elif not later:
        parts.append(text.took(bar.end - bar.start))
    parts.append("later than this" if later else "under way then" if then else bar.outcome)
    if bar.by:
        parts.append(f"said by {bar.by}")
    if bar.set_aside:
        parts.append("set aside")
    if bar.error and not later:
        parts.append(bar.error)
    return visible(" · ".join(parts))


def _back_offs(bars: Sequence[Bar], place: _Place) -> list[Dots]:
    """From a failed attempt to the next one."""
    found, waiting = [], dict[tuple[int, str], Bar]()
    for bar in bars:
        before = waiting.pop((bar.segment, bar.address), None)
        if before is not None and before.lane == bar.lane:
            y = HEAD + ROW * bar.lane + ROW // 2
            begin, end = place.at(before.x + before.width), place.at(bar.x)
            if end > begin:
                found.append(Dots(place.percent(begin), place.percent(end), y))
        if bar.outcome == lanes.RETRYING:
            waiting[bar.segment, bar.address] = bar
    return found


def _moment(found: Timeline, place: _Place, at: int) -> str:
    """The end of the newest bar that was known then."""
    if not at:
        return ""
    known = [bar.x + bar.width if bar.last <= at else bar.x for bar in found.bars if bar.seq <= at]
    return place(max(known, default=0.0))


# --- a journal as a chain ----------------------------------------------------------------------------


class Box(Struct, frozen=True):
    css: str
    x: str
    width: str
    middle: str
    text: str


class Chain(Struct, frozen=True):
    told: str
    boxes: Sequence[Box]
    links: Sequence[tuple[str, str]]


_MOST_BOXES: Final = 24


def chain(entries: Sequence[tuple[str, str]], told: str) -> Chain:
    """Boxes of (label, `whole`, `broken` or `unread`). Of a long journal the middle of what is whole is left out."""
    shown = list(entries)
    if len(shown) > _MOST_BOXES:
        bad = next((number for number, (_, how) in enumerate(shown) if how != "whole"), len(shown) - 1)
        begin = max(min(bad - 8, len(shown) - _MOST_BOXES + 3), 3)
        shown = [*shown[:2], ("…", "whole"), *shown[begin : begin + _MOST_BOXES - 3]]
    each = 100 / max(len(shown), 1)
    css = {"whole": "c-ok", "broken": "c-bad", "unread": "c-un"}
    boxes = [
        Box(css[how], f"{each * n + each * 0.14:.3f}%", f"{each * 0.72:.3f}%", f"{each * (n + 0.5):.3f}%", label)
        for n, (label, how) in enumerate(shown)
    ]
    middles = [box.middle for box in boxes]
    return Chain(told, boxes, list(itertools.pairwise(middles)))
