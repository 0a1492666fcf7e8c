"""Power loss: disk images that a power cut may leave, built from what an undisturbed run wrote and synced (L5).

A write is certain only once its file was synced; a new, renamed or removed name only once its folder was (or, for a new
file, the file itself). At each moment, everything that was not certain is dropped at once, dropped alone, kept alone
(that is: reordered), torn at a sector, or lost in part at random. What the world had been told by then stays told.

`at=57:drop3` reads: after 57 events, the third uncertain one was lost.
"""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.crash.faults import CREATE, FOLDER, MKDIR, RENAME, SYNC, TRUNCATE, UNLINK, WRITE
from tests.crash.lab import Lab
from tests.crash.programs import flow_of
from tests.crash.scenario import Outcome, Scenario

SECTOR = 512
_NAMES = (CREATE, RENAME, UNLINK, MKDIR)
Event = list[Any]


def scenarios(lab: Lab, flow: str, broken: str = "") -> list[Scenario]:
    """Every moment at which something was uncertain, in each way that can be told apart."""
    events = traced(lab, flow, broken)
    found: list[Scenario] = []
    for cut in range(1, len(events) + 1):
        uncertain = pending(events[:cut])
        more_follows = cut < len(events) and pending(events[: cut + 1])[: len(uncertain)] == uncertain
        if not uncertain or (more_follows and events[cut - 1][0] != "line"):
            continue  # The next moment has all of this and more, unless the world is told something in between.
        ways = ["none", "rand", "rand"]
        for number, index in enumerate(uncertain, 1):
            ways += [f"drop{number}", f"only{number}"]
            ways += [f"tear{number}"] if _tears(events[index]) else []
        ways = ways[:1] if len(uncertain) == 1 else ways
        if len(uncertain) == 1 and _tears(events[uncertain[0]]):
            ways.append("tear1")
        found += [Scenario(flow, "L5", f"{cut}:{way}", seed, broken) for seed, way in enumerate(ways)]
    return found


def run(lab: Lab, scenario: Scenario) -> Outcome:
    outcome = Outcome(str(scenario), "L5")
    ((cut, way),) = scenario.plans()[0].items()
    events = traced(lab, scenario.flow, scenario.broken)[:cut]
    uncertain = pending(events)
    keep, torn = _choice(way, uncertain, events, scenario.seed)
    if len(keep) == len(uncertain) and torn is None:
        outcome.uncounted = "nothing was lost"
        return outcome
    lines = [event[1] for event in events if event[0] == "line"]
    golden = lab.golden(scenario.flow, scenario.broken)
    folder, crashed = lab.empty([*golden.lines, *lines])
    build(events, folder, lambda index: index not in uncertain or index in keep, torn)
    shutil.rmtree(crashed, ignore_errors=True)
    shutil.copytree(folder, crashed)
    lab.recovered(scenario, outcome, golden, crashed, [*golden.lines, *lines], folder, 2)
    return outcome


_traces: dict[tuple[int, str, str], list[Event]] = {}


def traced(lab: Lab, flow: str, broken: str = "") -> list[Event]:
    key = (id(lab), flow, broken)
    if key not in _traces:
        if flow_of(flow).prepare:
            raise AssertionError("power loss is tried on flows that begin with nothing")
        _traces[key] = lab.traced(flow_of(flow), broken)
    return _traces[key]


def pending(events: list[Event]) -> list[int]:
    """Which events a power cut may undo."""
    files: dict[str, int] = {}
    inode = 0
    open_: dict[int, tuple[int | None, str]] = {}
    """Event -> its file, and the folder whose names it changed."""
    for index, (kind, *what) in enumerate(events):
        if kind == "line":
            continue
        name = what[0]
        if kind == SYNC:
            synced = files.get(name)
            open_ = {i: (f, d) for i, (f, d) in open_.items() if f != synced or events[i][0] in (RENAME, UNLINK)}
        elif kind == FOLDER:
            open_ = {i: (f, d) for i, (f, d) in open_.items() if d != name}
        else:
            if kind == CREATE or name not in files:
                inode += 1
                files[name] = inode
            if kind == RENAME:
                files[what[1]] = files.pop(name)
                open_[index] = files[what[1]], _folder(what[1])
            elif kind == UNLINK:
                open_[index] = files.pop(name), _folder(name)
            else:
                open_[index] = files[name], _folder(name) if kind in _NAMES else ""
    return sorted(open_)


def build(events: list[Event], folder: Path, certain: Callable[[int], bool], torn: int | None) -> None:
    """The image: each event that reached the disk, in order."""
    real: dict[str, int] = {}
    image: dict[str, int] = {}
    contents: dict[int, bytearray] = {}
    folders: list[str] = []
    for index, (kind, *what) in enumerate(events):
        if kind in ("line", SYNC, FOLDER):
            continue
        name, kept = what[0], certain(index)
        if kind == MKDIR:
            folders += [name] if kept else []
        elif kind == CREATE or (kind in (WRITE, TRUNCATE) and name not in real):
            inode = real[name] = len(contents) + 1
            contents[inode] = bytearray()
            if kept or kind != CREATE:
                image[name] = inode
        if kind == RENAME:
            real[what[1]] = real.pop(name)
            if kept and name in image:
                image[what[1]] = image.pop(name)
        elif kind == UNLINK:
            real.pop(name)
            if kept:
                image.pop(name, None)
        elif kind in (WRITE, TRUNCATE) and kept:
            _put(contents[real[name]], kind, what, torn == index)
    for name in folders:
        (folder / name).mkdir(parents=True, exist_ok=True)
    for name, inode in image.items():
        path = folder / name
        if path.parent.exists():
            path.write_bytes(bytes(contents[inode]))
            path.chmod(0o600)


def _put(content: bytearray, kind: str, what: list[Any], torn: bool) -> None:
    if kind == TRUNCATE:
        size = what[1]
        del content[size:]
        content.extend(bytes(size - len(content)))
        return
    offset, data = what[1], bytes.fromhex(what[2])
    if torn:
        data = data[: _half(data)]
    if len(content) < offset:
        content.extend(bytes(offset - len(content)))
    content[offset : offset + len(data)] = data


def _half(data: bytes) -> int:
    """Where a write that takes several sectors breaks off."""
    return max(len(data) // 2 // SECTOR * SECTOR, SECTOR)


def _tears(event: Event) -> bool:
    return event[0] == WRITE and len(event[3]) // 2 > SECTOR


def _choice(way: str, uncertain: list[int], events: list[Event], seed: int) -> tuple[set[int], int | None]:
    """Which uncertain events reached the disk, and which of them in part."""
    if way == "none":
        return set(), None
    if way == "rand":
        luck = random.Random(f"{len(events)} {seed}")
        keep = {index for index in uncertain if luck.random() < 0.5}
        tears = [index for index in keep if _tears(events[index])]
        return keep, luck.choice(tears) if tears and luck.random() < 0.5 else None
    found = re.fullmatch(r"(drop|only|tear)(\d+)", way)
    if found is None:
        raise ValueError(way)
    if int(found[2]) > len(uncertain):
        return set(uncertain), None  # another run, another trace: nothing is lost, and nothing is counted
    chosen = uncertain[int(found[2]) - 1]
    match found[1]:
        case "drop":
            return set(uncertain) - {chosen}, None
        case "only":
            return {chosen}, None
        case _:
            return set(uncertain), chosen


def _folder(name: str) -> str:
    return name.rpartition("/")[0] or "."
