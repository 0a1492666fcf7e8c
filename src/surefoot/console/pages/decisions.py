"""What can be said of a run, as one value for each verb: what is known, the ways, and what a resume would do then.

Each line of consequence is foretold by a plan that supposes the word (`request.suppose`). Whether a word is allowed, and what
it writes, is decided by the verb when it is said; here nothing is decided.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, Final

import msgspec

from surefoot.console import fields
from surefoot.console.actions import SCOPES, damage_seen
from surefoot.console.context import Request
from surefoot.console.pages import follows, kinds
from surefoot.console.pages.looked import Broken, Looked
from surefoot.console.pages.parts import (
    Bad,
    Button,
    Column,
    Decision,
    Input,
    Kind,
    Known,
    Line,
    Note,
    Option,
    Row,
    Select,
    Way,
    Words,
    b,
    code,
    many,
    say,
    to,
)
from surefoot.core import need
from surefoot.core.address import split
from surefoot.core.cure import APP, Command, command
from surefoot.core.entry import Drift, EffectIntended, RunAdopted, Stop
from surefoot.core.expectation import UNSEEN
from surefoot.core.history import PastEffect, PastState, PastWait
from surefoot.core.visible import visible
from surefoot.view import inbox, text, words
from surefoot.view.page import CallLine
from surefoot.view.standing import Asked

KEPT: Final = Line("book", say("The first word counts. It is kept in the journal, with your name and the time."))
ONCE: Final = "Good for one execution of this very question."
_LONGEST_ID: Final = 4096
_PLACE: Final = re.compile(r"(\$[.\w\[\]]*): ([^$]+)$")
"""Where an answer does not fit, and why, as the verb says it."""


# --- common to all -----------------------------------------------------------------------------------


def _may(request: Request, do: str) -> dict[str, Any]:
    if request.may(SCOPES[do]):
        return {"allowed": True}
    if request.console.options.read_only:
        return {"allowed": False, "why_not": "This console is read-only: nothing can be recorded here."}
    return {"allowed": False, "why_not": f"{request.principal.name} may look at this, and may not record it."}


def goes_on(seen: Looked) -> str:
    """Who takes the run up when that is recorded."""
    serving = seen.serving
    if seen.driven:
        return "Its process is alive and goes on by itself."
    if serving:
        return f"{many(serving, 'worker')} {'serves' if serving == 1 else 'serve'} {seen.page.workflow}: it goes on by itself."
    return f"No living worker serves {seen.page.workflow}: somebody has to resume it."


def _command(request: Request, cure: Command) -> str:
    """As the command line has it. An id that cannot be printed gets none."""
    printable = all(str(one).isprintable() for one in (cure.run, cure.address, *cure.options.values()))
    if not printable:
        return ""
    return words.command_text(
        cure, request.runtime.store.url, " ".join(request.console.options.apps) or words.UNKNOWN_APP
    )


def _action(request: Request, run: str, do: str) -> str:
    return request.link("runs", run, do)


def _bad(request: Request, prefix: str = "") -> Bad | None:
    """The field that was refused: its name, and why."""
    refused = request.refused
    if refused is None or refused.status == 409:
        return None
    message, path = str(refused.error.get("message", "")), str(refused.error.get("path", "") or "")
    if found := _PLACE.findall(message):
        path, message = found[-1]
    if not path:
        return None
    inner = path.lstrip("$").replace("[", ".").replace("]", "").replace('"', "").strip(".")
    name = f"{prefix}.{inner}" if inner and prefix else prefix or inner
    return Bad(name, message)


def _call(seen: Looked, address: str) -> CallLine | None:
    return next((one for one in seen.page.calls if one.address == visible(address)), None)


def _parsed(raw: str) -> Any:
    try:
        return json.loads(raw) if raw else None
    except ValueError:
        return raw


def arguments(call: CallLine | None) -> list[Row]:
    """Those given, and the defaults in force."""
    if call is None:
        return []
    given, default = _parsed(call.raw_args), _parsed(call.raw_defaults)
    rows = [Row(str(name), one) for name, one in given.items()] if isinstance(given, dict) else []
    if not isinstance(given, dict) and given is not None:
        rows = [Row("arguments", given)]
    if isinstance(default, dict):
        rows += [Row(str(name), one, aside="by default") for name, one in default.items()]
    return rows


# --- in doubt ----------------------------------------------------------------------------------------


async def settle(request: Request, seen: Looked, address: str) -> Decision | None:
    past = seen.state.effect(address)
    if past is None or past not in seen.state.in_doubt():
        return None
    name, call = split(address)[1], _call(seen, address)
    stop = next((one for one in seen.state.stops if one.address == address), None)
    has_happened = past.state is PastState.UNSTORABLE
    examples = _examples(seen, address)
    others, plans = await _settled_plans(request, seen.id, address, examples, denied=not has_happened)
    return Decision(
        kind=kinds.OF_NEED[need.IN_DOUBT],
        verb="In doubt",
        title=say(code(name), " happened. What did it give?") if has_happened else say("Did ", code(name), " happen?"),
        lede=_doubt_lede(seen, past, stop),
        action=_action(request, seen.id, "settle"),
        seen=seen.seen,
        fixed=[("address", address)],
        known=[Known("What to look for", [*arguments(call), *_whereabouts(seen, past)])],
        asks="What did you find?",
        picks="how",
        first="",
        ways=list(_settle_ways(past, name, others, plans, has_happened=has_happened)),
        bad=_bad(request, "value"),
        note_label="How do you know?",
        note_like="Found it in the list of the other side, same key",
        note_required=True,
        buttons=[Button("Record what you found", "primary", key="Ctrl ↵")],
        after=goes_on(seen),
        command=_command(request, command("settle", seen.id, address, happened=_example(examples))).replace(
            "--happened " + words._written(_example(examples), ""), "--happened 'JSON' | --not-happened"
        ),
        **_may(request, "settle"),
    )


def _example(examples: Sequence[str]) -> str:
    return examples[0] if examples else "null"


def _examples(seen: Looked, address: str) -> list[str]:
    """What other calls of that name gave."""
    name = split(address)[1].partition("#")[0]
    return [
        one.raw_result
        for one in seen.page.calls
        if one.raw_result and one.kind == "effect" and split(one.address)[1].partition("#")[0] == name
    ]


async def _settled_plans(
    request: Request, run: str, address: str, examples: Sequence[str], *, denied: bool
) -> tuple[Sequence[str], list[Any]]:
    said: list[dict[str, Any]] = [{"happened": _parsed(_example(examples))}]
    if denied:
        said += [{"not_happened": True}, {"failed": True}]
    found = await asyncio.gather(*(request.suppose(run, {"do": "settle", "address": address, **one}) for one in said))
    return examples, list(found)


def _settle_ways(
    past: PastEffect, name: str, others: Sequence[str], plans: Sequence[Any], *, has_happened: bool
) -> Iterator[Way]:
    if others:
        more = ", …" if len(others) > 2 else ""
        hint = say("As JSON. Others here gave ", code(", ".join(one[:40] for one in others[:2]) + more))
    else:
        hint = say("As JSON: a text in quotes, or ", code("null"), ".")
    field = Input("value", f"What {name} returned", placeholder=others[0][:40] if others else '"…"', hint=hint)
    known = "" if others else " With another value it may go on otherwise."
    yield Way(
        "It happened",
        [
            Line("book", say("Your value is recorded as its result. ", b("Nothing is executed."))),
            *_after_value(plans[0], known),
        ],
        "happened", field=field,
    )  # fmt: skip
    if has_happened:
        return
    key = f"{past.key[:12]}…"
    yield Way(
        "It did not happen: try again",
        [
            Line("bolt", say("A resume runs ", code(name), " ", b("again"), ", under the same key ", code(key))),
            Line("warn", say("If it did happen, and the other side does not know keys, it happens twice."), warn=True),
            *(one for one in follows.lines(plans[1]) if one.icon != "bolt"),
        ],
        "not_happened",
    )  # fmt: skip
    yield Way(
        "It did not happen: let it fail",
        [
            Line("failed", say(code(name), " fails; what the code does about a failure goes on.")),
            *follows.lines(plans[2]),
        ],
        "failed",
    )


def _after_value(found: Any, known: str) -> list[Line]:
    if found.error is not None:
        return [Line("next", say("What follows depends on the value you give."))]
    lines = follows.lines(found)
    return (
        [*lines, Line("eye", say(known.strip()))] if known and found.plan and found.plan["next"] is not None else lines
    )


def _doubt_lede(seen: Looked, past: PastEffect, stop: Stop | None) -> Words:
    began = b(f"{text.moment(past.at):%H:%M:%S} UTC")
    if past.state is PastState.UNSTORABLE:
        return say("It was started at ", began, " and came back, but what it gave could not be recorded.")
    known = str(stop.facts.get("known", "")) if stop is not None else ""
    if known and not known.startswith("started"):
        return say(
            "It was started at ",
            began,
            f" and {known if known.startswith(('raised', 'may')) else 'was ' + known}. Nothing goes on until somebody says.",
        )
    check = "It has no check, so only a look outside can tell." if past.policy == "ask" else "Its check could not tell."
    died = (
        "its process died before an outcome was recorded"
        if not past.rewound
        else "somebody sent the run back to before it"
    )
    return say("It was started at ", began, f", and {died}. {check} Nothing goes on until somebody says.")


def _whereabouts(seen: Looked, past: PastEffect) -> Iterator[Row]:
    yield Row("key", past.key, mono=True)
    began = next(
        (
            record.at
            for record, entry in reversed(seen.story)
            if isinstance(entry, EffectIntended) and entry.address == past.address
        ),
        past.at,
    )
    after = next((record.at for record, entry in seen.story if isinstance(entry, RunAdopted) and record.at > began), 0)
    clock = f"{text.moment(began):%Y-%m-%d %H:%M:%S.%f}"[:-3]
    if after:
        yield Row(
            "when", f"between {clock} and {text.moment(after):%H:%M:%S} UTC", aside="then another process took over"
        )
    else:
        yield Row("when", f"from {clock} UTC on", aside="nobody has taken it over since")
    if past.claimant:
        yield Row("where", past.claimant)


# --- questions ---------------------------------------------------------------------------------------


async def answer(request: Request, seen: Looked, address: str) -> Decision | None:
    asked = next((one.asked for one in seen.page.reasons if one.address == address and one.asked is not None), None)
    past = seen.state.question(address)
    if asked is None or past is None:
        return None
    common: dict[str, Any] = {
        "title": say(asked.question),
        "lede": _asked_lede(seen, asked, past.at),
        "kind": kinds.OF_NEED[need.QUESTION],
        "action": _action(request, seen.id, "answer"),
        "seen": seen.seen,
        "known": _shown(asked),
        "after": goes_on(seen),
        "note_label": "Note",
        "note_like": "Why",
        **_may(request, "answer"),
    }
    fixed = [("question", address), ("shown", asked.shown)]
    if asked.form == "approve":
        return await _approval(request, seen, address, asked, fixed, common)
    return _typed(request, seen, address, asked, fixed, common)


async def _approval(
    request: Request, seen: Looked, address: str, asked: Asked, fixed: list[tuple[str, str]], common: dict[str, Any]
) -> Decision:
    yes, no = await asyncio.gather(
        *(
            request.suppose(seen.id, {"do": "answer", "question": address, "value": value, "shown": asked.shown})
            for value in (True, False)
        )
    )
    return Decision(
        verb="Approval",
        fixed=fixed,
        asks="What follows",
        ways=[
            Way("If you approve", [*follows.lines(yes), Line("book", say(ONCE))], icon="check"),
            Way("If you deny", [*follows.lines(no), Line("book", say("The first answer counts; it cannot be changed, only rewound."))], icon="deny"),
        ],
        buttons=[Button("Approve", "primary", "as", "yes", "A"), Button("Deny", "", "as", "no", "D")],
        command=_command(request, command("approve", seen.id, address if address != "approve#1" else "", shown=asked.shown[:12])),
        **common,
    )  # fmt: skip


def _typed(
    request: Request, seen: Looked, address: str, asked: Asked, fixed: list[tuple[str, str]], common: dict[str, Any]
) -> Decision:
    sent = dict(request.refused.form) if request.refused else {}
    schema = _parsed(asked.wanted)
    as_json = "json" in request.query or sent.get("as") == "json" or not isinstance(schema, dict)
    form = fields.of(schema, sent) if isinstance(schema, dict) else None
    as_json = as_json or form is None or form.kind == "json"
    shown: list[Any] = [fields.Field("value", "json", "value", value=sent.get("value", ""))] if as_json else [form]
    what = str(schema.get("title") or _title(schema)) if isinstance(schema, dict) else ""
    is_other = Line(
        "ask",
        say(
            "It is held against ",
            code(what or "what was asked for"),
            " before it is recorded. What does not fit is refused here, with its place.",
        ),
    )
    json_link = Line(
        "book",
        say(
            to(
                request.here(json=None if as_json else 1),
                "Answer with the form" if as_json else "Answer with JSON instead",
            )
        ),
    )
    return Decision(
        verb="Question",
        fixed=[*fixed, ("as", "json" if as_json else "fields")],
        fields=shown,
        bad=_bad(request, "value"),
        asks="What follows",
        ways=[Way("When you answer", [is_other, Line("next", say("What follows is decided by your answer.")), *([json_link] if form is not None and form.kind != "json" else [])], icon="check")],
        buttons=[Button("Answer", "primary", key="Ctrl ↵")],
        command=_command(request, command("answer", seen.id, address, value="JSON")).replace(" JSON", " 'JSON'"),
        **common,
    )  # fmt: skip


def _title(schema: dict[str, Any]) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]


def _shown(asked: Asked) -> list[Known]:
    details = _parsed(asked.details)
    if details in (None, {}, []):
        rows = [Row("question", asked.question)]
    elif isinstance(details, dict):
        rows = [Row(str(name), one) for name, one in details.items()]
    else:
        rows = [Row("details", details)]
    return [
        Known(
            "What you are shown", rows, f"shown as {asked.shown[:12]}", "Your answer is bound to exactly this",
            "All of it is here. It is text from the run, whatever it says.",
        )
    ]  # fmt: skip


def _asked_lede(seen: Looked, asked: Asked, at: int) -> Words:
    who: list[Any] = ["May be answered by "]
    for number, one in enumerate(asked.by):
        who += [", " if number else "", b(one)]
    silence = (
        (
            say(" If nobody does, it counts as ", b("no"), ".")
            if asked.form == "approve"
            else say(" If nobody does, the run is told so.")
        )
        if asked.due
        else say(" It waits for ever.")
    )
    by = say(*who, ".") if asked.by else say("Anybody may answer.")
    return (*say(f"Asked {text.ago(at, seen.now)}. "), *by, *silence)


# --- drift -------------------------------------------------------------------------------------------


async def accept(request: Request, seen: Looked, found: Sequence[Drift]) -> Decision | None:
    if not found:
        return None
    parts = {one.part: one.actual for one in found if one.what != UNSEEN}
    unseen = sorted({one.witness for one in found if one.what == UNSEEN})
    said: dict[str, Any] = {"do": "accept", "found": parts} if parts else {"do": "accept", "witness": unseen[0]}
    plan = await request.suppose(seen.id, said)
    fixed = [("found", json.dumps(parts, ensure_ascii=False))] if parts else [("witness", unseen[0])]
    notes = [
        Note(say(b("It cannot be observed: "), code(", ".join(unseen)), ". To accept that means that the run no longer watches it."), kind="drift")
    ] if unseen and not parts else []  # fmt: skip
    return Decision(
        kind=kinds.OF_NEED[need.DRIFT],
        verb="Drifted",
        title=say("Take the world as it is now?"),
        lede=say(f"{many(len(found), 'part')} {'is' if len(found) == 1 else 'are'} not as ", code(seen.id), " left it. Nothing was executed."),
        action=_action(request, seen.id, "accept"),
        seen=seen.seen,
        fixed=fixed,
        known=[Known("What has changed", [_drift_row(one) for one in found])],
        asks="What follows",
        ways=[
            Way(
                "If you accept",
                [
                    Line("eye", say("It is looked at ", b("once more"), " as you confirm. Only what you see here is accepted; if it has changed again, you are shown it again.")),
                    Line("book", say("Steps that have read what is changed now are ", b("not"), " asked again.")),
                    *follows.lines(plan),
                ],
                icon="check",
            )
        ],
        notes=notes,
        note_like="Ann edited it on purpose",
        buttons=[Button(f"Accept {many(len(found), 'part')} as found", "primary", key="A")],
        after=goes_on(seen),
        command=_command(request, command("accept", seen.id, witness=found[0].witness if len({one.witness for one in found}) == 1 else "")),
        **_may(request, "accept"),
    )  # fmt: skip


def _drift_row(one: Drift) -> Row:
    return Row(
        one.part or one.witness,
        one.what if one.what != UNSEEN else f"cannot be observed: {one.actual}",
        aside=f"expected as {one.by} left it" if one.by else "",
    )


# --- changed code ------------------------------------------------------------------------------------


async def match(request: Request, seen: Looked, address: str) -> Decision | None:
    stop = next(
        (
            one
            for one in seen.state.stops
            if need.kind_of(one) in (need.CODE_CHANGED, need.SCHEMA_MISMATCH) and address in ("", one.address)
        ),
        None,
    )
    if stop is None:
        return None
    ways = [one for one in stop.cures if isinstance(one, Command) and one.verb == "match"]
    given = request.query.get("way", "0")
    chosen = min(int(given), len(ways) - 1) if given.isdecimal() and ways else 0
    others = [words.helps(one, request.runtime.store.url) for one in stop.cures if one not in ways]
    way = ways[chosen] if ways else None
    plan = await request.suppose(seen.id, {"do": "match", "address": _of_call(way, stop), **_how(way)}) if way else None
    return Decision(
        kind=kinds.OF_NEED[need.kind_of(stop)],
        verb="Code changed",
        title=say("The code no longer matches the journal", " at " if stop.address else "", code(stop.address)),
        lede=say(_told(stop, seen.id)),
        action=_action(request, seen.id, "match"),
        seen=seen.seen,
        fixed=_match_fields(way, stop) if way else [],
        known=_both_sides(seen, stop),
        selects=_match_choice(request, ways, chosen) if way else None,
        asks="What follows" if way else "",
        ways=[Way(f"If {_said_of(way)}", [*_match_means(way), *follows.lines(plan)], icon="check")]
        if way and plan
        else [],
        notes=[Note(say(b(one.when), " ", code(one.do)), "code") for one in others[:6]],
        note_like="Renamed in release 2.4",
        buttons=[Button(f"Record: {_said_of(way)}", "primary")] if way else [],
        after=goes_on(seen),
        command=_command(request, way) if way else "",
        **_may(request, "match"),
    )


def _of_call(way: Command, stop: Stop) -> str:
    return way.address or stop.address


def _match_fields(way: Command, stop: Stop) -> list[tuple[str, str]]:
    how = _how(way)
    found = [("address", _of_call(way, stop)), ("how", next(iter(how)))]
    return [*found, ("is", str(how["is"]))] if "is" in how else found


def _match_choice(request: Request, ways: Sequence[Command], chosen: int) -> Select:
    options = [Option(str(number), f"{one.address or 'the call'}: {_said_of(one)}") for number, one in enumerate(ways)]
    keep = [(name, value) for name, value in request.query.multi_items() if name not in ("way", "recorded", "of")]
    return Select("way", "What is it?", options, str(chosen), request.here().partition("?")[0], keep)


def _told(stop: Stop, run: str) -> str:
    """Which run it is about stands above."""
    told = _first_line(stop.message).removeprefix(f"run {run}").lstrip(":, ").removeprefix("quarantined: ")
    return told[:1].upper() + told[1:]


def _first_line(message: str) -> str:
    return message.partition("\n")[0]


def _how(one: Command) -> dict[str, Any]:
    return {name: value for name, value in one.options.items() if name in ("is", "new", "keep", "rerun")}


def _said_of(one: Command) -> str:
    how = _how(one)
    if "is" in how:
        return f"it is {how['is']}"
    return {"new": "it is new", "keep": "what it gave stands", "rerun": "run it again"}[next(iter(how))]


def _match_means(one: Command) -> list[Line]:
    how = next(iter(_how(one)))
    said = {
        "is": "It is the recorded call: what that gave is its result.",
        "new": "It is a call of its own, and is made.",
        "keep": "What is on record stands, though it is asked for otherwise.",
        "rerun": "The step runs again, with what it is asked for now.",
    }[how]
    return [Line("book", say(said))]


def _both_sides(seen: Looked, stop: Stop) -> list[Known]:
    facts = {str(name): str(one) for name, one in stop.facts.items()}
    rows = [Row(name, facts[name], mono=True) for name in ("recorded", "asked") if facts.get(name)]
    rest = [
        Row(name, one)
        for name, one in facts.items()
        if name not in ("recorded", "asked", "unasked", "digest") and len(one) < 2000
    ]
    lines = [Row("also", one) for one in stop.message.split("\n")[1:] if one.strip()]
    return [Known("What does not match", [*rows, *rest, *lines])] if rows or rest or lines else []


# --- the rest ----------------------------------------------------------------------------------------


async def release(request: Request, seen: Looked) -> Decision | None:
    stop = next((one for one in seen.state.stops if one.reason == "Quarantined"), None)
    if stop is None:
        return None
    plan = await request.suppose(seen.id, {"do": "release"})
    return Decision(
        kind=kinds.OF_NEED[need.QUARANTINED],
        verb="Quarantined",
        title=say("Try it again?"),
        lede=say(_told(stop, seen.id)),
        action=_action(request, seen.id, "release"),
        seen=seen.seen,
        known=[Known("The processes that died with it", list(_deaths(seen)))],
        asks="What follows",
        ways=[Way("If you release it", [*follows.lines(plan), Line("warn", say("If it takes its process down again, it is quarantined again."))], icon="check")],
        note_like="More memory now",
        buttons=[Button("Release it to the workers", "primary")],
        after=goes_on(seen),
        command=_command(request, command("runs release", seen.id)),
        **_may(request, "release"),
    )  # fmt: skip


def _deaths(seen: Looked) -> Iterator[Row]:
    picture = seen.timeline()
    for number, one in enumerate(picture.stretches, 1):
        if one.ended:
            continue
        end = one.x + one.width
        open_ = [
            bar.address for bar in picture.bars if bar.outcome in ("cut off", "in doubt") and one.x <= bar.x <= end
        ]
        yield Row(
            f"process {number}",
            f"{one.process}, {text.clock_time(one.end)}",
            aside=f"at {', '.join(open_[:3])}" if open_ else "",
        )


async def event(request: Request, seen: Looked, address: str) -> Decision | None:
    past = seen.state.calls.get(address)
    if not isinstance(past, PastWait) or past.state is not PastState.OPEN:
        return None
    return Decision(
        kind=kinds.OF_NEED[need.EVENT],
        verb="Waits for an event",
        title=say("It waits for the event ", code(past.name)),
        lede=say("Since ", b(text.clock_time(past.at)), f", until {text.clock_time(past.due.at)}." if past.due else ". Nobody has sent it."),
        action=_action(request, seen.id, "event"),
        seen=seen.seen,
        fixed=[("name", past.name)],
        asks="What follows",
        ways=[Way("When it is sent", [Line("book", say("The run takes the event, and what follows is decided by its value.")), Line("eye", say("A second event with the same id is the same event."))], icon="check")],
        texts=[
            Input("value", "Its value", 'null, "text", {"ok": true}', "As JSON: a text in quotes.", "null", required=True),
            Input("id", "Its id", "", "Whoever sends it twice with this id has sent it once.", f"console-{secrets.token_hex(4)}", required=True),
        ],
        bad=_bad(request, "value"),
        note_label="",
        buttons=[Button("Send the event", "primary")],
        after=goes_on(seen),
        **_may(request, "event"),
    )  # fmt: skip


async def retry(request: Request, seen: Looked) -> Decision | None:
    if not any(one.kind == need.FAILED for one in seen.items) and seen.state.status != "failed":
        return None
    plan = await request.suppose(seen.id, {"do": "retry", "failed": True})
    error = seen.page.error
    return Decision(
        kind=kinds.OF_NEED[need.FAILED],
        verb="Failed",
        title=say("Try again what failed?"),
        lede=say(b(error[0]), f": {error[1]}") if error else (),
        action=_action(request, seen.id, "retry"),
        seen=seen.seen,
        fixed=[("how", "failed")],
        ledger=follows.ledger(plan, stays="calls stay as recorded", again="calls run again", doubtful="effects are in doubt: you are asked for each"),
        asks="What follows",
        ways=[Way("If it is tried again", [Line("book", say("What succeeded stays; only what failed is tried again.")), *follows.lines(plan)], icon="check")],
        note_like="The address is mended",
        buttons=[Button("Have it tried again", "primary")],
        after=goes_on(seen),
        command=_command(request, command("runs retry", seen.id, failed=True)),
        **_may(request, "retry"),
    )  # fmt: skip


_NEWS: Final = {inbox.LEFT_IN_DOUBT: need.LEFT, inbox.LEFT_DONE: need.LEFT}


async def acknowledge(request: Request, seen: Looked, kind: str = "") -> Decision | None:
    news = [one for one in seen.items if not one.decide and kind in ("", one.kind)]
    if not news:
        return None
    about = sorted({_NEWS.get(one.kind, one.kind) for one in news})
    first = news[0]
    rows = [Row(kinds.OF_NEED[one.kind].word, one.title, aside=text.ago(one.since, seen.now)) for one in news]
    return Decision(
        kind=kinds.OF_NEED[first.kind],
        verb=kinds.OF_NEED[first.kind].word.capitalize(),
        title=say(first.title),
        lede=say("There is nothing to decide. It stays on the list until somebody says to have seen it."),
        action=_action(request, seen.id, "acknowledge"),
        seen=seen.seen,
        fixed=[("about", one) for one in about],
        known=[Known("What somebody should know", [*rows, *_news_rows(seen, first.kind)])],
        note_label="Note",
        note_like="Looked into it",
        buttons=[Button("Seen", "primary", key="E")],
        after="It is off the list for everybody.",
        **_may(request, "acknowledge"),
    )


def _news_rows(seen: Looked, kind: str) -> Iterator[Row]:
    if kind == need.FELL_BACK and seen.state.fallbacks:
        entry = seen.state.fallbacks[-1][1]
        yield Row("goes on after entry", entry.after)
        yield Row("set aside", many(entry.quarantined, "entry", "entries"), aside="kept byte for byte")
        yield Row("in doubt by that", ", ".join(entry.in_doubt) or "no effect")
    if kind == need.FAILED:
        failed = [one for one in seen.page.calls if one.status == "failed"]
        yield from (Row("call", one.address, mono=True, aside=one.error[:200]) for one in failed[-3:])
        yield Row(
            "on record",
            f"{sum(one.status == 'done' for one in seen.page.calls)} calls that succeeded",
            aside="they stay, if it is tried again",
        )


# --- verbs that set something aside ------------------------------------------------------------------


def _points(seen: Looked, chosen: str, do: str, request: Request) -> Select | None:
    calls = [one for one in seen.page.calls if one.kind in ("step", "effect", "child", "question", "wait", "timer")]
    if not calls:
        return None
    options = [
        Option(one.address, f"{one.address}  ·  {one.kind}  ·  {text.moment(one.started):%H:%M:%S}")
        for one in reversed(calls)
    ]
    keep = [("do", do)] + [
        (name, value) for name, value in request.query.multi_items() if name not in ("do", "call", "recorded", "of")
    ]
    return Select("call", "Before", options[:400], visible(chosen), request.here().partition("?")[0], keep)


def _point(seen: Looked, wanted: str) -> str:
    """The call that is meant; else the one that is in doubt, or the last."""
    calls = list(seen.state.calls)
    if wanted in calls:
        return wanted
    hits = [one for one in calls if visible(one) == wanted]
    doubtful = [past.address for past in seen.state.in_doubt()]
    made = [one.address for one in seen.state.calls.values() if one.kind in ("step", "effect")]
    return (hits or doubtful or made[-1:] or calls[-1:] or [""])[0]


async def rewind(request: Request, seen: Looked, wanted: str) -> Decision | None:
    at = _point(seen, wanted)
    select = _points(seen, at, "rewind", request)
    if select is None:
        return None
    plan = await request.suppose(seen.id, {"do": "rewind", "at": at})
    doubtful = [] if plan.supposed is None else [one["address"] for one in plan.supposed["in_doubt"]]
    gave = [_gave(seen, one) for one in doubtful if _gave(seen, one)]
    notes = [Note(say(str(plan.error["message"])), kind="doubt")] if plan.error else []
    if doubtful:
        told: list[Any] = ["Going back undoes nothing outside. "]
        if gave:
            told += [
                f"{many(len(gave), 'effect')} of these {'is' if len(gave) == 1 else 'are'} done and gave ",
                code(", ".join(gave[:3])),
                ". ",
            ]
        told += [
            "To try another way beside this run, ",
            to(request.here(do="fork", call=at), "fork it"),
            ": there they would be executed again, with keys of their own.",
        ]
        notes.append(Note(say(*told)))
    elif not plan.error:
        notes.append(
            Note(
                say("No effect was executed from there on. Steps run again; what they gave is set aside and kept."),
                "book",
            )
        )
    count = len(doubtful)
    return Decision(
        kind=Kind("back", "calm", "rewind"),
        verb="Rewind",
        title=say("Send the run back to before a call"),
        action=_action(request, seen.id, "rewind"),
        seen=seen.seen,
        fixed=[("at", at)],
        selects=select,
        ledger=follows.ledger(plan, stays="calls stay as recorded", again="steps run again; their results are set aside and kept", doubtful="effects are in doubt: they stay done, and you are asked for each"),
        notes=notes,
        note_like="Kept in the journal",
        buttons=[Button(f"Send back, {many(count, 'effect')} in doubt" if count else "Send back", "risky primary" if count else "primary")] if not plan.error else [],
        after="Executes nothing by itself.",
        command=_command(request, command("runs rewind", seen.id, at=at)),
        **_may(request, "rewind"),
    )  # fmt: skip


def _gave(seen: Looked, address: str) -> str:
    call = _call(seen, address)
    return call.raw_result[:60] if call is not None and call.raw_result else ""


async def fork(request: Request, seen: Looked, wanted: str) -> Decision | None:
    at = _point(seen, wanted)
    select = _points(seen, at, "fork", request)
    if select is None:
        return None
    name = (request.refused.form.get("id", "") if request.refused else "") or f"{seen.id[:_LONGEST_ID]}-2"
    plan = await request.suppose(seen.id, {"do": "fork", "at": at, "id": name})
    return Decision(
        kind=Kind("fork", "calm", "fork"),
        verb="Fork",
        title=say("A new run that goes on from before a call"),
        lede=say(code(seen.id), " is only read, and stays as it is."),
        action=_action(request, seen.id, "fork"),
        seen=seen.seen,
        fixed=[("at", at)],
        selects=select,
        ledger=follows.ledger(plan, stays="calls are copied from the record, none runs again", again="calls run again", doubtful="", runs="calls from there on are made anew; effects among them change the world again, with keys of their own"),
        notes=[Note(say(str(plan.error["message"])), kind="doubt")] if plan.error else [],
        texts=[Input("id", "Id of the new run", given=name, required=True)],
        bad=_bad(request),
        note_like="To try another supplier",
        buttons=[Button("Make the fork", "primary")],
        after="Executes nothing by itself.",
        **_may(request, "fork"),
    )  # fmt: skip


async def cancel(request: Request, seen: Looked) -> Decision | None:
    if seen.state.status in ("done", "failed", "cancelled") or seen.state.cancel is not None:
        return None
    plan = await request.suppose(seen.id, {"do": "cancel"})
    done = [one.address for one in seen.page.calls if one.kind == "effect" and one.status == "done"]
    return Decision(
        kind=Kind("cancelled", "calm", "cancel"),
        verb="Cancel",
        title=say("Give up this run?"),
        lede=say("It is asked to end, and whoever drives it next ends it: what its code undoes is undone then."),
        action=_action(request, seen.id, "cancel"),
        seen=seen.seen,
        ledger=[
            Column(str(len(done)), say("effects are done"), done, "doubt" if done else ""),
            Column(str(len(seen.state.in_doubt())), say("effects are in doubt, and stay so"), [one.address for one in seen.state.in_doubt()], "doubt" if seen.state.in_doubt() else ""),
        ],
        asks="What follows",
        ways=[Way("If you cancel it", follows.lines(plan), icon="deny")],
        note_like="The customer withdrew",
        buttons=[Button("Ask it to end", "risky primary")],
        after=goes_on(seen),
        command=_command(request, command("runs cancel", seen.id, app=APP)),
        **_may(request, "cancel"),
    )  # fmt: skip


async def repair(request: Request, seen: Broken) -> Decision | None:
    damage = seen.damage
    common: dict[str, Any] = {
        "kind": kinds.OF_NEED[need.DAMAGE],
        "verb": "Damaged",
        "action": _action(request, seen.id, "repair"),
        **_may(request, "repair"),
    }
    if damage is None:
        return Decision(
            title=say("Its journal cannot be read"), lede=say(seen.why), seen=None, note_label="",
            command=_command(request, command("repair", seen.id)), **common | {"allowed": False, "why_not": "Only the command line can mend this: it asks step by step."},
        )  # fmt: skip
    entry = damage.entry
    kept = (
        f"Entries 1 to {entry.after} are whole and are kept"
        if entry.after > 1
        else f"{many(entry.after, 'entry', 'entries')} is whole and is kept"
        if entry.after
        else "No entry before it is whole"
    )
    return Decision(
        title=say(f"Entry {entry.after + 1} cannot be trusted"),
        lede=say(b(entry.why), f". {kept}. The run may not step back by itself."),
        seen=damage_seen(damage),
        ledger=[
            Column(str(entry.after), say("entries are whole, and are kept")),
            Column(str(entry.quarantined), say("entries would be set aside, and kept for inspection")),
            Column(str(len(entry.in_doubt)), say("effects would be in doubt: you are asked for each"), entry.in_doubt, "doubt" if entry.in_doubt else ""),
        ],
        notes=[Note(say(b(f"{many(damage.proven, 'effect')} {'is' if damage.proven == 1 else 'are'} proven by intact entries"), ": not made again."), "check")] if damage.proven else [],
        note_like="The disk was replaced",
        buttons=[Button("Go on before the damage", "risky primary")] if entry.after else [],
        after="Nothing damaged is ever used. What is set aside is kept byte for byte.",
        command=_command(request, command("repair", seen.id)),
        **common,
    )  # fmt: skip


# --- which one ---------------------------------------------------------------------------------------


async def of_verb(request: Request, seen: Looked | Broken, do: str, call: str) -> Decision | None:
    """The dialog of a verb; None: there is nothing that it could be said of."""
    if isinstance(seen, Broken):
        return await repair(request, seen) if do == "repair" else None
    simple: dict[str, Callable[[Request, Looked], Awaitable[Decision | None]]] = {
        "release": release, "retry": retry, "cancel": cancel, "acknowledge": acknowledge,
    }  # fmt: skip
    about: dict[str, Callable[[Request, Looked, str], Awaitable[Decision | None]]] = {
        "settle": settle, "answer": answer, "match": match, "event": event, "rewind": rewind, "fork": fork,
    }  # fmt: skip
    if do in simple:
        return await simple[do](request, seen)
    if do in about:
        return await about[do](request, seen, call or _only(seen, do))
    if do == "accept":
        return await accept(request, seen, await drift_now(request, seen))
    return None


_NEEDS: Final = {"settle": need.IN_DOUBT, "answer": need.QUESTION, "event": need.EVENT}


def _only(seen: Looked, do: str) -> str:
    return next((one.address for one in seen.items if one.kind == _NEEDS.get(do)), "")


async def drift_now(request: Request, seen: Looked) -> tuple[Drift, ...]:
    """What its witnesses see now; where they cannot be asked here, what stopped it."""
    found = await request.drift(seen.id)
    if found.drift is not None:
        return tuple(msgspec.convert(one, Drift) for one in found.drift)
    return tuple(one for stop in seen.state.stops for one in stop.drift)


async def of_item(request: Request, seen: Looked | Broken, kind: str, address: str) -> Decision | None:
    """What to say about an item of the inbox."""
    if isinstance(seen, Broken):
        return await repair(request, seen)
    if kind in (need.CODE_CHANGED, need.SCHEMA_MISMATCH):
        return await match(request, seen, address)
    if kind == need.DRIFT:
        return await accept(request, seen, await drift_now(request, seen))
    if kind == need.QUARANTINED:
        return await release(request, seen)
    verbs = {need.IN_DOUBT: settle, need.QUESTION: answer, need.EVENT: event}
    if kind in verbs:
        return await verbs[kind](request, seen, address)
    if kind == need.FAILED and any(one.kind == kind and one.decide for one in seen.items):
        return await retry(request, seen)
    if any(one.kind == kind and not one.decide for one in seen.items):
        return await acknowledge(request, seen, kind)
    return None
