"""From a request to a recorded word: who says it, whether that person may, and once only. For forms and for the API."""

from __future__ import annotations

import json
from typing import Any

from surefoot.console import actions
from surefoot.console.actions import Recorded
from surefoot.console.context import Request
from surefoot.console.plans import Planned, Wanted
from surefoot.console.principals import ADMIN, DECIDE
from surefoot.console.refusals import Forbidden
from surefoot.engine.operate import decisions
from surefoot.engine.operate.decisions import Who
from surefoot.engine.operate.handle import Seen
from surefoot.errors import UsageError


def who(request: Request, note: str) -> Who:
    """By the principal, whatever was sent."""
    principal = request.principal
    return Who(principal.name, note, request.via, principal.groups)


def record(request: Request, run: str, given: dict[str, Any], *, note: str, seen: Seen | None, key: str) -> Recorded:
    """Blocking. Record that word, or refuse it."""
    verb = str(given.get("do", ""))
    scope = actions.SCOPES.get(verb)
    if scope is None:
        raise UsageError(f"do={verb[:40]!r} is none of {', '.join(actions.SCOPES)}")
    if not request.principal.has(scope):
        raise Forbidden(f"{request.principal.name} may {request.principal.may}; to {verb} takes {scope}.")
    if seen is None and (verb in _BOUND or scope == ADMIN):
        raise UsageError(f"{verb}: say what was seen: the `head` of the run as it was looked at")
    console, by = request.console, who(request, note)
    what = json.dumps([run, given, note, None if seen is None else [seen.seq, seen.seal]], sort_keys=True)

    def act() -> Recorded:
        if verb == actions.REPAIR:
            told = actions.repair(request.runtime, run, by, seen=seen)
            return Recorded(told, run, int(told.get("after", 0) or 0))
        said = decisions.action(given)
        ask = _asker(request) if console.options.apps else None
        return actions.say(
            request.runtime, run, said, by, seen=seen, ask=ask, where=console.where, app=console.app_named
        )  # fmt: skip

    return console.once.do(by.by, key, what, act)


_BOUND = tuple(
    verb for verb, scope in actions.SCOPES.items() if scope == DECIDE and verb not in ("event", "acknowledge")
)
"""Words about what somebody saw. An event, and having seen something, are no answers."""


def _asker(request: Request) -> Any:
    def ask(wanted: Wanted) -> Planned:
        return request.console.planner.ask(request.runtime, wanted)

    return ask
