"""The inbox: everything that waits for a person, in one list that can be emptied, and the chosen item whole beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from surefoot.console import lists
from surefoot.console.context import Page, Request
from surefoot.console.pages import decisions, kinds
from surefoot.console.pages.looked import Broken, Looked, look_at
from surefoot.console.pages.parts import Kind
from surefoot.console.pages.recorded import recorded
from surefoot.console.principals import VIEW
from surefoot.core import need
from surefoot.core.address import split
from surefoot.engine.operate.inbox import Open, waiting
from surefoot.engine.process.runtime import Runtime
from surefoot.errors import NotFound
from surefoot.store.contract import WorkerSeen
from surefoot.view import inbox, text
from surefoot.view.inbox import Item

LIMIT: Final = 60
_WIDTH: Final = 110


class Listed(Struct, frozen=True):
    """One line of the list."""

    item: Item
    kind: Kind
    title: str
    more: str
    id: str
    since: str
    late: bool = False


class Read(Struct, frozen=True):
    decide: Sequence[Listed]
    know: Sequence[Listed]
    next: str
    moving: int
    sleeping: int


async def show(request: Request) -> Page:
    found = await request.look(read, request.query.get("cursor", ""), glance=not request.may(VIEW))
    every = [*found.decide, *found.know]
    wanted, about = request.query.get("run"), request.query.get("about")
    chosen = next((one for one in every if one.item.run == wanted and about in (None, one.id)), None)
    is_open = chosen is not None
    chosen = chosen or (every[0] if every and wanted is None else None)
    values: dict[str, Any] = {
        "here": "inbox",
        "found": found,
        "chosen": chosen,
        "open": is_open,
        "decision": None,
        "looked": None,
        "gone": wanted is not None and chosen is None,
        "sheeted": False,
        "asked": None,
    }
    values["live"] = request.link("api", "v1", "events", inbox=1)
    values["recorded"] = await recorded(request)
    values["waiting_now"] = len(found.decide) + (1 if found.next else 0)
    if chosen is not None and request.may(VIEW):
        try:
            looked = await request.look(look_at, chosen.item.run, request.console.options.apps)
        except NotFound:
            looked = None
        if looked is not None:
            made = await decisions.of_item(request, looked, chosen.item.kind, chosen.item.address)
            then = request.link(
                "", **({"run": wanted} if wanted and len([one for one in every if one.item.run == wanted]) > 1 else {})
            )
            values |= {"looked": looked, "decision": _going_on(made, then)}
            values |= _sheet(request, values["decision"], chosen.kind)
            values["side"] = _side(looked, chosen.item) if isinstance(looked, Looked) else None
            values["chain"] = chain_of(looked) if isinstance(looked, Broken) else None
    return Page("inbox.html", values)


def _sheet(request: Request, decision: Any, kind: Kind) -> dict[str, Any]:
    """An approval is given on a sheet of its own where the screen is narrow: what it leads to, a note, and one button."""
    if decision is None or len(decision.buttons) != 2 or not decision.allowed:
        return {}
    wanted = request.query.get("do", "")
    if wanted not in ("approve", "deny"):
        return {"sheeted": True}
    number = int(wanted == "deny")
    sheet = replace(
        decision, known=(), ways=[decision.ways[number]], asks="", buttons=[decision.buttons[number]], command="", verb=wanted.capitalize(),
        kind=kind, cancel=request.here(do=None), lede=(),
    )  # fmt: skip
    return {"sheeted": True, "asked": sheet, "decision": decision}


def _going_on(made: Any, then: str) -> Any:

    return None if made is None else replace(made, then=then)


def chain_of(broken: Broken) -> Any:
    from surefoot.console import drawing

    if broken.damage is None:
        return None
    entry = broken.damage.entry
    count = entry.after + (entry.lost if entry.lost > 0 else entry.quarantined)
    boxes = [
        (str(one), "whole" if one <= entry.after else "broken" if one == entry.after + 1 else "unread")
        for one in range(1, max(count, entry.after + 1) + 1)
    ]
    return drawing.chain(boxes, f"Entry {entry.after + 1} of {count} is damaged")


def read(runtime: Runtime, cursor: str, *, glance: bool) -> Read:
    """`glance`: without what the runs themselves say."""
    now, workers = runtime.clock.now(), runtime.store.workers()
    decide: list[Listed] = []
    know: list[Listed] = []
    next_ = ""
    for one in waiting(runtime, cursor):
        if len(decide) + len(know) >= LIMIT:
            break
        for item in inbox.items(one, workers, now=now):
            (decide if item.decide else know).append(_listed(item, one, workers, now, glance=glance))
        next_ = one.cursor
    else:
        next_ = ""
    rank = {
        one.item.run: min(inbox.KINDS.index(other.item.kind) for other in decide if other.item.run == one.item.run)
        for one in decide
    }
    decide.sort(key=lambda one: rank[one.item.run] if rank[one.item.run] == 0 else 1)
    tally = lists.tally(runtime)
    moving = sum(count for (status, _), count in tally.items() if status == "running")
    sleeping = sum(count for (status, _), count in tally.items() if status in ("sleeping", "queued"))
    return Read(decide, know, next_, moving, sleeping)


def _listed(item: Item, one: Open, workers: Sequence[WorkerSeen], now: int, *, glance: bool) -> Listed:
    title = _title(item) if not glance else kinds.OF_NEED[item.kind].word
    more = "" if glance else _more(item, one)
    since = _left(item.until - now) if item.until else _age(now - item.since) if item.since else ""
    return Listed(
        item,
        kinds.OF_NEED[item.kind],
        title,
        text.shorten(more, _WIDTH) if more else "",
        f"{item.kind}:{item.address}",
        since,
        bool(item.until) and item.until - now < 3_600_000_000,
    )


def _title(item: Item) -> str:
    """The question first: what is known of it stands below."""
    match item.kind:
        case need.IN_DOUBT if item.title.startswith("Did "):
            return f"Did {split(item.address)[1]} happen?"
        case need.DRIFT:
            return "The world is not as it was left" if item.title.startswith("Changed") else item.title
        case need.CODE_CHANGED:
            return "The code no longer matches the journal"
        case need.FAILED if not item.decide:
            return item.title.removeprefix("It failed: ")
        case need.DAMAGE:
            return damaged(item.title) or item.title
    return item.title


def damaged(why: str) -> str:
    """Which entry it is, if that is said."""
    found = re.search(r"entry (\d+) of (\d+|\?) is damaged", why)
    return f"Entry {found[1]} of {found[2]} cannot be trusted" if found else ""


def _left(micros: int) -> str:
    return f"{text.took(micros)} left" if micros > 0 else "time is over"


def _age(micros: int) -> str:
    """In one unit: a list has no room for two."""
    seconds = micros // 1_000_000
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s" if seconds > 0 else "now"


def _more(item: Item, one: Open) -> str:
    state = one.state
    if state is None:
        return f"{one.damage.partition('is damaged: ')[2].partition('. Nothing')[0]}. The run may not step back by itself".lstrip(
            ". "
        )
    match item.kind:
        case need.IN_DOUBT | inbox.LEFT_IN_DOUBT | inbox.LEFT_DONE | need.LANDED_LATE:
            past = state.effect(item.address) or state.left_effects.get(item.address)
            return summary(past.args if past is not None else None)
        case need.QUESTION:
            asked = state.question(item.address)
            return summary(asked.args if asked is not None else None)
        case need.DRIFT:
            stop = next((one for one in state.stops if one.drift), None)
            return ", ".join(f"{found.part or found.witness} {found.what}" for found in stop.drift) if stop else ""
        case need.CODE_CHANGED | need.SCHEMA_MISMATCH:
            stop = next((one for one in state.stops if one.address == item.address), None)
            return stop.message.partition("\n")[0].removeprefix(f"run {item.run}").lstrip(":, ") if stop else ""
        case need.QUARANTINED:
            return "No worker touches it until somebody says so"
        case need.EVENT:
            return "Nobody has sent it"
        case need.FAILED:
            return "Its calls are on record; it can be tried again once the cause is mended"
        case inbox.CUT_OFF:
            return "Everything it recorded is safe"
        case need.FELL_BACK:
            return "What is set aside is kept. No effect was repeated"
    return ""


def summary(value: Any) -> str:
    """The values of a call, in one line."""
    try:
        found = json.loads(bytes(value)) if value is not None else None
    except (TypeError, ValueError):
        return ""
    if isinstance(found, dict):
        return ", ".join(_in_short(str(name), one) for name, one in found.items())
    return "" if found is None else str(found)


def _in_short(name: str, one: Any) -> str:
    if isinstance(one, str):
        return one
    if isinstance(one, bool) or one is None:
        return f"{name} {json.dumps(one)}"
    return f"{name} {one}" if isinstance(one, int | float) else f"{name} {json.dumps(one, ensure_ascii=False)[:40]}"


class Side(Struct, frozen=True):
    """What stands around a decision."""

    others: int
    """How many other items this run has."""
    serves: str
    left: str


def _side(looked: Looked, item: Item) -> Side:
    left = _left(item.until - looked.now) if item.until else ""
    return Side(len(looked.items) - 1, decisions.goes_on(looked), left)
