"""Who did what: every entry that a person made, in the order written, newest first."""

from __future__ import annotations

from itertools import islice
from typing import Any, Final

from surefoot.console.context import Page, Request
from surefoot.engine.operate.audit import Said, said
from surefoot.engine.process.runtime import Runtime
from surefoot.store.pages import NEWEST
from surefoot.view import timeline

SIZE: Final = 50
KINDS: Final = (
    "EffectSettled", "AnswerGiven", "DriftAccepted", "CodeMatched", "RunRewound", "CallsReopened", "CancelRequested", "QuarantineLifted",
    "EventSent", "Acknowledged", "FellBack",
)  # fmt: skip


async def show(request: Request) -> Page:
    who, verb = request.query.get("who", ""), request.query.get("verb", "")
    before = request.query.get("before", "")
    found = await request.look(read, who, verb if verb in KINDS else "", int(before) if before.isdecimal() else NEWEST)
    more = len(found) > SIZE
    lines: list[Any] = [(one, timeline.line(one.entry) if one.entry is not None else None) for one in found[:SIZE]]
    opened = request.query.get("open", "")
    kinds = [(kind, _words(kind)) for kind in KINDS]
    next_ = found[SIZE - 1].pos if more else 0
    values = {
        "here": "audit",
        "lines": lines,
        "who": who,
        "verb": verb,
        "kinds": kinds,
        "next": next_,
        "opened": opened,
        "recorded": None,
    }
    values["live"] = request.link("api", "v1", "events")
    return Page("audit.html", values)


def _words(kind: str) -> str:
    return timeline._WORDS[kind].what.lower()


def read(runtime: Runtime, who: str, verb: str, before: int) -> list[Said]:
    return list(islice(said(runtime, before=before, who=who, kinds=(verb,) if verb else ()), SIZE + 1))
