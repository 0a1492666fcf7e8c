"""What a plan foretells, line by line, in the words of a page. Nothing is promised that the rehearsal did not see."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from surefoot.console.pages.parts import Column, Line, Words, b, code, many, say
from surefoot.console.plans import Planned

_MOST: Final = 4
NOT_KNOWN: Final = "What runs next is not known here: the console was started without the code (--app)."


def lines(found: Planned) -> list[Line]:
    """What a resume would do then."""
    if found.error is not None:
        return [Line("warn", say(str(found.error.get("message", "It would be refused."))), warn=True)]
    if found.plan is None:
        return [Line("eye", say(found.unknown or "What follows could not be found out."))]
    return list(_lines(found.plan, found.supposed))


def _lines(plan: Mapping[str, Any], supposed: Mapping[str, Any] | None) -> Iterator[Line]:
    ahead = supposed or plan
    if replayed := len(plan["replayed"]):
        yield Line(
            "book",
            say(
                f"{many(replayed, 'call')} {'is' if replayed == 1 else 'are'} answered from the record; none runs again."
            ),
        )
    for one in ahead["in_doubt"][:_MOST]:
        yield Line("warn", say(code(one["address"]), f" is in doubt: a resume would {one['resume_would']}."), warn=True)
    yield from _rest(ahead["in_doubt"], "in doubt")
    for one in plan["questions"][:_MOST]:
        yield Line("ask", say(code(one["address"]), " still waits for an answer."))
    for one in plan["drift"][:_MOST]:
        yield Line("drift", say("The world differs: ", code(one.partition(" (expected")[0]), "."))
    upcoming = ahead["next"]
    if upcoming is None:
        yield Line("eye", say(NOT_KNOWN))
    for one in (upcoming or [])[:_MOST]:
        icon = "bolt" if one["kind"] == "effect" else "next"
        yield Line(
            icon,
            say("Next: ", b(one["kind"]) if one["kind"] == "effect" else one["kind"], " ", code(one["address"]), "."),
        )
    yield from _rest(upcoming or [], "to come")
    if upcoming:
        yield Line(
            "next",
            say(
                "What follows is decided by what it gives."
                if len(upcoming) == 1
                else "What follows is decided by what they give."
            ),
        )
    elif not (ahead["in_doubt"] or plan["questions"] or plan["drift"]):
        for stop in ahead["stops"][:_MOST]:
            yield Line("warn", say(f"A resume would stop: {stop.splitlines()[0]}"), warn=True)
    if ending := plan.get("ending"):
        yield Line("done", say(_ENDS.get(ending, ending)))
    if plan["unasked"]:
        yield Line(
            "warn",
            say(
                "The code has not asked for ",
                code(", ".join(plan["unasked"][:_MOST])),
                " up to there: perhaps it is stranded.",
            ),
            warn=True,
        )


_ENDS: Final = {
    "done": "Nothing more is executed: the workflow returns.",
    "failed": "Nothing more is executed: the run fails.",
    "cancelled": "Nothing more is executed: the run is cancelled.",
}


def _rest(found: Sequence[Any], what: str) -> Iterator[Line]:
    if len(found) > _MOST:
        yield Line("next", say(f"and {len(found) - _MOST} more {what}"))


def ledger(found: Planned, *, stays: str, again: str, doubtful: str, runs: str = "") -> list[Column]:
    """From the record, runs again, in doubt: what setting something aside means."""
    if found.plan is None or found.supposed is None:
        return []
    aside, rerun = found.supposed["sets_aside"], found.supposed["runs_again"]
    in_doubt = [one["address"] for one in found.supposed["in_doubt"]]
    kept = max(found.plan["recorded"], len(found.plan["replayed"]))
    columns = [Column(str(kept), say(stays)), Column(str(len(rerun)), say(again), rerun)]
    if runs:
        effects = [one for one in aside if one not in rerun]
        return [
            *columns[:1],
            Column(str(len(effects or rerun)), say(runs), effects or rerun, "doubt" if effects else ""),
        ]
    return [*columns, Column(str(len(in_doubt)), say(doubtful), in_doubt, "doubt" if in_doubt else "")]


def strip(found: Planned, watched: int, *, is_here: bool) -> list[Column]:
    """The four numbers over a run. `is_here`: the world of the run can be looked at from this console."""
    if found.plan is None:
        why = found.unknown or (found.error or {}).get("message", "")
        return [Column("?", say(str(why) or "could not be found out"))]
    plan = found.plan
    doubts = plan["in_doubt"]
    first: Words = say("in doubt")
    if doubts:
        first = say("in doubt: ", code(doubts[0]["address"]), f" → {doubts[0]['resume_would']}")
    drift = f"parts of the world drifted, of {watched} looked at" if watched else "drifted: it watches nothing outside"
    if watched and not is_here:
        drift = f"parts drifted when it stopped; the {watched} it watches were not looked at: they are on another host or in another folder"
    return [
        Column(str(len(plan["replayed"])), say("calls answered from the record, none runs again")),
        Column(str(len(doubts)), first, hot="doubt" if doubts else ""),
        Column(str(len(plan["drift"])), say(drift), hot="drift" if plan["drift"] else ""),
        _next(plan),
    ]


def _next(plan: Mapping[str, Any]) -> Column:
    upcoming = plan["next"]
    if upcoming is None:
        return Column("?", say("next: not known without the code (--app)"))
    if upcoming:
        one = upcoming[0]
        more = f" and {len(upcoming) - 1} more" if len(upcoming) > 1 else ""
        return Column(
            str(len(upcoming)),
            say("next: ", b("effect ") if one["kind"] == "effect" else "step ", code(one["address"]), more),
        )
    if plan["in_doubt"]:
        return Column("—", say("next: nothing, until ", code(plan["in_doubt"][0]["address"]), " is settled"))
    if plan["questions"]:
        return Column("—", say("next: nothing, until ", code(plan["questions"][0]["address"]), " is answered"))
    if plan.get("ending"):
        return Column(
            "—",
            say(
                {"done": "next: nothing, it returns", "failed": "next: nothing, it fails"}.get(
                    plan["ending"], "next: nothing"
                )
            ),
        )
    return Column("—", say("next: nothing" + (", it would stop" if plan["stops"] else "")))
