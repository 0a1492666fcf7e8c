"""One run: its timeline and what a resume would do; its journal, world and values; and who did what. Also as it was before.

A damaged run has no timeline: its chain is drawn instead, with what going on before the damage would mean.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from surefoot.console import drawing
from surefoot.console.context import Page, Request
from surefoot.console.pages import decisions, follows, kinds
from surefoot.console.pages.inbox import chain_of
from surefoot.console.pages.looked import Broken, Looked, look_at
from surefoot.console.pages.parts import Kind, Row, Words, b, code, many, say
from surefoot.console.pages.recorded import recorded
from surefoot.core import need
from surefoot.core.entry import RunAdopted
from surefoot.core.state import ENDED, RunState
from surefoot.core.visible import visible
from surefoot.engine.operate import places
from surefoot.engine.operate.handle import JournalEntry, journal_entry
from surefoot.view import page as pages
from surefoot.view import text, timeline
from surefoot.view.lanes import Bar, Timeline
from surefoot.view.page import CallLine

LAST: Final = 8
JOURNAL: Final = 200
CALLS: Final = 300


class Action(Struct, frozen=True):
    """A way on. One that is not possible is shown with its reason."""

    text: str
    href: str
    css: str = ""
    key: str = ""
    why_not: str = ""
    about: str = ""


class Chosen(Struct, frozen=True):
    """The call in the inspector."""

    address: str
    name: str
    kind: str
    mark: Kind
    status: str
    rows: Sequence[Row]
    args: Any
    result: Any
    has_result: bool
    error: str
    entries: Sequence[timeline.Line]
    attempts: Sequence[Bar]
    action: Action | None = None


class Head(Struct, frozen=True):
    """What stands over every tab of a run."""

    id: str
    kind: Kind
    sentence: Words
    chips: Sequence[tuple[str, str]]
    primary: Sequence[Action]
    more: Sequence[Action]
    tabs: Sequence[tuple[str, str, str, str]]
    """Name, word, count, link."""
    fork: str = ""
    child: str = ""


# --- the pages ---------------------------------------------------------------------------------------


async def show(request: Request) -> Page:
    """The timeline."""
    looked = await _looked(request)
    if isinstance(looked, Broken):
        return await _broken(request, looked)
    at = _at(request, looked)
    values = await _common(request, looked, "timeline")
    picture = await request.look(lambda _: looked.timeline(*_window(request)))
    address = _chosen_address(request, looked)
    then = _then(looked, at) if at else None
    shown = then or looked
    values |= {
        "drawn": drawing.draw(
            picture,
            href=lambda bar: request.here(call=bar.address, do=None, recorded=None, of=None) + "#call",
            name=looked.page.workflow or looked.id,
            chosen=address,
            at=at,
            moment=_when(looked, at),
        ),
        "hidden": picture.hidden,
        "chosen": _chosen(request, shown, picture, address, at),
        "as_calls": request.query.get("view") == "calls",
        "calls": list(shown.page.calls)[-CALLS:],
        "more_calls": max(len(shown.page.calls) - CALLS, 0),
        "at": at,
        "last": looked.seen.seq,
        "lines": _last_lines(looked, at),
        "then": _then_words(looked, at) if at else None,
        "strip": []
        if at or looked.state.status in ENDED
        else follows.strip(
            await request.plan(looked.id), len(looked.state.world.parts), is_here=places.is_here(looked.state)
        ),
        "when_at": _when(looked, at or looked.seen.seq),
    }
    return Page("run.html", values)


async def journal(request: Request) -> Page:
    looked = await _looked(request)
    if isinstance(looked, Broken):
        return await _broken(request, looked)
    values = await _common(request, looked, "journal")
    kind, call = request.query.get("kind", ""), request.query.get("call", "")
    entries = looked.run.entries()
    found = [
        one
        for one in entries
        if (not kind or one.kind == kind) and (not call or str(one.data.get("address", "")) == call)
    ]
    before = int(request.query.get("before", "0")) if request.query.get("before", "0").isdecimal() else 0
    older = [one for one in found if not before or one.seq < before]
    shown = older[-JOURNAL:]
    values |= {
        "lines": [timeline.line(one) for one in reversed(shown)],
        "count": len(found),
        "older": shown[0].seq if len(older) > len(shown) else 0,
        "kinds": sorted({one.kind for one in entries}),
        "wanted_kind": kind,
        "wanted_call": call,
    }
    return Page("run_journal.html", values)


async def world(request: Request) -> Page:
    looked = await _looked(request)
    if isinstance(looked, Broken):
        return await _broken(request, looked)
    values = await _common(request, looked, "world")
    found = await decisions.drift_now(request, looked)
    drifted = {one.part: one for one in found}
    expected = looked.state.world
    values |= {
        "witnesses": [
            (
                name,
                [(part, expected.parts.get(part), drifted.get(part)) for part in sorted(sight.parts)],
                name in expected.unwatched,
            )
            for name, sight in sorted(expected.sights.items())
        ],
        "added": [
            one for one in found if one.part and not any(one.part in sight.parts for sight in expected.sights.values())
        ],
        "folder": expected.folder,
    }
    return Page("run_world.html", values)


async def values(request: Request) -> Page:
    looked = await _looked(request)
    if isinstance(looked, Broken):
        return await _broken(request, looked)
    found = await _common(request, looked, "values")
    seen = looked.page
    found |= {
        "args": _parsed(seen.args),
        "defaults": _parsed(seen.defaults),
        "result": _parsed(seen.result),
        "has_result": bool(seen.result),
        "error": seen.error,
        "published": {name: _parsed(one) for name, one in seen.published.items()},
        "calls": [
            (one, _parsed(one.raw_args), _parsed(one.raw_result))
            for one in seen.calls[-CALLS:]
            if one.kind in ("step", "effect", "child", "question", "value", "wait")
        ],
    }
    return Page("run_values.html", found)


async def people(request: Request) -> Page:
    looked = await _looked(request)
    if isinstance(looked, Broken):
        return await _broken(request, looked)
    found = await _common(request, looked, "people")
    found["said"] = [(timeline.line(one), one) for one in reversed(_words_of_people(looked.run.entries()))]
    return Page("run_people.html", found)


# --- what they share ---------------------------------------------------------------------------------


async def _looked(request: Request) -> Looked | Broken:
    return await request.look(look_at, request.ids["run"], request.console.options.apps)


async def _common(request: Request, looked: Looked, tab: str) -> dict[str, Any]:
    do = request.query.get("do", "")
    dialog = await decisions.of_verb(request, looked, do, request.query.get("call", "")) if do else None
    if dialog is not None:
        cancel = request.here(do=None, way=None, json=None)
        dialog = replace(dialog, cancel=cancel, then=dialog.then or cancel)
    return {
        "here": "runs",
        "tab": tab,
        "looked": looked,
        "head": _head(request, looked),
        "decision": dialog,
        "not_possible": bool(do) and dialog is None,
        "recorded": await recorded(request),
        "live": request.link("api", "v1", "events", run=looked.id),
    }


async def _broken(request: Request, broken: Broken) -> Page:
    do = request.query.get("do", "")
    dialog = await decisions.of_verb(request, broken, do, "") if do else None
    if dialog is not None:
        cancel = request.here(do=None)
        dialog = replace(dialog, cancel=cancel, then=cancel)
    found = await decisions.repair(request, broken)
    values = {
        "here": "runs",
        "broken": broken,
        "damage": found,
        "chain": chain_of(broken),
        "decision": dialog,
        "recorded": None,
    }
    return Page("run_damaged.html", values)


def _head(request: Request, looked: Looked) -> Head:
    seen, state = looked.page, looked.state
    first = next((one for one in looked.items if one.decide), None)
    kind = kinds.OF_NEED[first.kind] if first is not None else kinds.of_status(seen.stands)
    processes = {entry.worker for _, entry in looked.story if isinstance(entry, RunAdopted)}
    count = len(processes)
    chips = [(visible(seen.workflow) + (f" v{seen.version}" if seen.version > 1 else ""), "")]
    chips.append((f"started {text.ago(seen.created, looked.now)}", "clock"))
    chips.append(
        (
            f"{many(count, 'process', 'processes')}{', one drives it' if looked.driven else ', none drives it now' if seen.stands not in ENDED else ''}",
            "workers",
        )
    )
    chips += [(f"watches {text.some(sorted(state.world.sights), 2)}", "eye")] if state.world.sights else []
    chips.append((f"{many(looked.seen.seq, 'entry', 'entries')}, seals hold", "check"))
    chips += [(f"{name}: {one}", "") for name, one in list(seen.labels.items())[:6]]
    chips += [(f"segment {seen.segment}", "")] if seen.segment > 1 else []
    said = len(_words_of_people(looked.run.entries()))
    tabs = [
        ("timeline", "Timeline", "", request.link("runs", looked.id)),
        ("journal", "Journal", str(looked.seen.seq), request.link("runs", looked.id, "journal")),
        ("world", "World", str(len(state.world.parts) or ""), request.link("runs", looked.id, "world")),
        ("values", "Values", "", request.link("runs", looked.id, "values")),
        ("people", "Who did what", str(said), request.link("runs", looked.id, "people")),
    ]
    parent = state.created.parent if state.created else ""
    primary, more = _actions(request, looked)
    return Head(looked.id, kind, _sentence(looked), chips, primary, more, tabs, parent, seen.child_of)


def _words_of_people(entries: Sequence[JournalEntry]) -> list[JournalEntry]:
    return [
        one for one in entries if (one.data.get("by") and isinstance(one.data["by"], str)) or one.kind == "FellBack"
    ]


def _sentence(looked: Looked) -> Words:
    seen, _state = looked.page, looked.state
    deciding = [one for one in looked.items if one.decide]
    since = f"{text.ago(seen.newest, looked.now)}"
    if not deciding:
        return say(seen.headline[:1].upper() + seen.headline[1:], f". Last entry {since}.")
    first = deciding[0]
    others = f" {many(len(deciding) - 1, 'other thing')} to decide." if len(deciding) > 1 else ""
    match first.kind:
        case need.IN_DOUBT:
            doubts = [one for one in deciding if one.kind == need.IN_DOUBT]
            count = "One effect" if len(doubts) == 1 else f"{len(doubts)} effects"
            return say(
                f"Last entry {since}. ",
                b(f"{count} may or may not have happened"),
                ": ",
                code(first.address),
                ". Everything else is on record.",
            )
        case need.DRIFT:
            return say(
                f"Stopped {since}, before anything was executed. ", b("The world is not as the run left it."), others
            )
        case need.CODE_CHANGED | need.SCHEMA_MISMATCH:
            return say(
                f"Stopped {since}. ",
                b("The code no longer matches the journal"),
                " at ",
                code(first.address or "its end"),
                ". Nothing was executed.",
                others,
            )
        case need.QUESTION:
            return say(b(first.title), f" Asked {text.ago(first.since, looked.now)}.", others)
        case need.EVENT:
            return say(
                "It waits for an event since ",
                b(text.ago(first.since, looked.now)),
                ": ",
                code(first.address),
                ".",
                others,
            )
        case _:
            return say(b(first.title), ".", others)


_FIRST: Final = {
    need.IN_DOUBT: ("settle", "Settle {name}…", "S"),
    need.QUESTION: ("answer", "Answer…", "A"),
    need.EVENT: ("event", "Send the event…", ""),
    need.CODE_CHANGED: ("match", "Say what it is…", ""),
    need.SCHEMA_MISMATCH: ("match", "Say what it is…", ""),
    need.QUARANTINED: ("release", "Release…", ""),
    need.FAILED: ("retry", "Try again…", ""),
}


def _actions(request: Request, looked: Looked) -> tuple[list[Action], list[Action]]:
    """What helps first is first; what is not possible says why."""
    at = "recorded", "of"

    def to(do: str, **query: Any) -> str:
        return request.here(do=do, **dict.fromkeys(at), **query)

    found: list[Action] = []
    deciding = [one for one in looked.items if one.decide]
    for one in deciding[:1]:
        if one.kind == need.DRIFT:
            found.append(Action("See the drift…", request.link("runs", looked.id, "drift"), "primary", "P"))
        elif one.kind in _FIRST:
            do, words, key = _FIRST[one.kind]
            name = one.address.rpartition("/")[2].partition("#")[0]
            found.append(Action(words.format(name=visible(name[:24])), to(do, call=one.address), "primary", key))
    failed = looked.state.status == "failed"
    if failed:
        found.append(Action("Try again…", to("retry", call=None), "primary"))
    if any(not one.decide for one in looked.items):
        found.append(Action("Seen…", to("acknowledge", call=None), "" if found else "primary", "E"))
    if looked.page.calls:
        found.append(Action("Rewind…", to("rewind"), "", ""))
    more = (
        [Action("Fork…", to("fork"), about="A new run from before a call; this one stays as it is")]
        if looked.page.calls
        else []
    )
    ended = looked.state.status in ENDED
    if ended:
        more.append(Action("Cancel…", "", why_not=f"It has ended: {looked.state.status}"))
    elif looked.state.cancel is not None:
        more.append(Action("Cancel…", "", why_not="It was asked to end already"))
    else:
        more.append(Action("Cancel…", to("cancel", call=None), about="Ask it to end; what its code undoes is undone"))
    resume = next((one.do for one in looked.page.cures if "resume" in one.do), "")
    why = decisions.goes_on(looked) if not ended else f"It has ended: {looked.state.status}"
    more.append(
        Action(
            "Resume",
            "",
            why_not=f"{why} The console never drives a run{': ' + resume if resume and resume.isprintable() else ''}.",
        )
    )
    return found[:3], more


def _parsed(raw: str) -> Any:
    try:
        return json.loads(raw) if raw else None
    except ValueError:
        return raw


# --- as it was ---------------------------------------------------------------------------------------


def _at(request: Request, looked: Looked) -> int:
    """The entry after which it is looked at; 0: now."""
    given = request.query.get("at", "")
    number = int(given) if given.isdecimal() and len(given) < 12 else 0
    return number if 0 < number < looked.seen.seq else 0


def _then(looked: Looked, at: int) -> Looked:
    """What the journal knew after that entry."""
    state = RunState(looked.id)
    for record, _ in looked.story[:at]:
        state.fold(record)
    driven = state.claimant is not None
    now = looked.story[at - 1][0].at
    shown = pages.page(state, driven=driven, now=now, whole=looked.run.whole)
    return replace(looked, state=state, driven=driven, page=shown, story=looked.story[:at], now=now)


def _then_words(looked: Looked, at: int) -> Words:
    return say(
        b("You are looking at the past"),
        f": what the journal knew after entry {at}. What came later is drawn in outline.",
    )


def _when(looked: Looked, seq: int) -> int:
    return looked.story[seq - 1][0].at if 0 < seq <= len(looked.story) else looked.page.newest


def _last_lines(looked: Looked, at: int) -> list[timeline.Line]:
    records = [record for record, _ in looked.story][: at or None][-LAST:]
    return [timeline.line(journal_entry(record)) for record in reversed(records)]


def _window(request: Request) -> tuple[int, int]:
    def number(name: str) -> int:
        given = request.query.get(name, "")
        return int(given) if given.isdecimal() and len(given) < 12 else 0

    return number("from"), number("to")


# --- the inspector -----------------------------------------------------------------------------------


def _chosen_address(request: Request, looked: Looked) -> str:
    wanted = request.query.get("call", "")
    if wanted and any(one in looked.state.calls for one in (wanted,)):
        return wanted
    deciding = [one.address for one in looked.items if one.address in looked.state.calls]
    made = [one.address for one in looked.state.calls.values() if one.kind != "note"]
    return (deciding or made[-1:] or [""])[0]


_MARKS: Final = {
    "in doubt": kinds.OF_NEED[need.IN_DOUBT], "value missing": kinds.OF_NEED[need.IN_DOUBT], "done": Kind("done", "calm", "done"),
    "failed": kinds.OF_NEED[need.FAILED], "cut off": kinds.OF_NEED["cut_off"], "under way": Kind("running", "calm", "under way"),
}  # fmt: skip


def _chosen(request: Request, looked: Looked, picture: Timeline, address: str, at: int) -> Chosen | None:
    call: CallLine | None = next((one for one in looked.page.calls if one.address == visible(address)), None)
    if call is None:
        return None
    past = looked.state.calls[address]
    process = looked.page.processes[call.process - 1] if call.process else ""
    rows = [
        Row("address", address, mono=True),
        Row("started", f"{text.moment(call.started):%H:%M:%S.%f}"[:-3], aside=f"entry {past.first}"),
        Row("outcome", call.error or call.status, aside=call.took),
    ]
    rows += [Row("tried", f"{call.attempts} times")] if call.attempts > 1 else []
    rows += [Row("by", process)] if process else []
    rows += (
        [
            Row(
                "on crash",
                {"ask": "ask a person", "check": "ask its check", "retry": "try again", "fail": "fail"}.get(
                    call.on_crash, call.on_crash
                ),
            )
        ]
        if call.on_crash
        else []
    )
    rows += [Row("learned from", call.learned_by)] if call.learned_by else []
    rows += [Row("key", call.key, mono=True)] if call.key else []
    entries = [
        timeline.line(journal_entry(record))
        for record, entry in looked.story
        if getattr(entry, "address", "") == address
    ]
    bars = [one for one in picture.bars if one.address == address and (not at or one.seq <= at)]
    mark = _MARKS.get(call.status, Kind("queued", "calm", call.status))
    action = None
    if call.in_doubt and not at:
        action = Action("Settle…", request.here(do="settle", call=address), "primary")
    args = _parsed(call.raw_args)
    default = _parsed(call.raw_defaults)
    if isinstance(args, dict) and isinstance(default, dict):
        args = {**args, **default}
    return Chosen(
        address, address.rpartition("/")[2], call.kind, mark, call.status, rows, args, _parsed(call.raw_result), bool(call.raw_result), call.error,
        entries[-12:], bars if len(bars) > 1 else [], action,
    )  # fmt: skip
