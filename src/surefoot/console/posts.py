"""What the dialogs of the pages send: a form, one word of a person, and where to go on.

What was recorded leads on with 303. What was not is shown where it came from, with the reason and all that was typed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import ImmutableMultiDict
from starlette.responses import RedirectResponse, Response

from surefoot.console import actions, fields, refusals, saying
from surefoot.console.context import Page, Refused, Request
from surefoot.core.address import as_recorded
from surefoot.engine.operate.handle import Seen
from surefoot.errors import SurefootError, UsageError

Form = ImmutableMultiDict[str, str]
_KEPT: Final = ("token", "key", "back", "then", "seen")


def word(verb: str) -> Callable[[Request], Any]:
    """Who answers to `POST /runs/{run}/VERB`."""

    async def said(request: Request) -> Response | Page:
        form = request.form
        try:
            if "add" in form or "remove" in form:
                return await _again(request, verb, Refused({}, 200, _changed(form)))
            recorded = await run_in_threadpool(_record, request, verb, form)
        except SurefootError as error:
            told = refusals.told(error)
            return await _again(request, verb, Refused(told["error"], refusals.status(error), dict(form)), error)
        return RedirectResponse(_onward(request, form, recorded), 303)

    return said


def _record(request: Request, verb: str, form: Form) -> actions.Recorded:
    run = request.ids["run"]
    given = {"do": verb} if verb == actions.REPAIR else _object(request, run, verb, form)
    return saying.record(request, run, given, note=form.get("note", ""), seen=seen_of(form), key=form.get("key", ""))


def seen_of(form: Form) -> Seen | None:
    """`SEQ.SEAL`. A form without it is none of ours."""
    seq, _, seal = form.get("seen", "").partition(".")
    if not seq.isdecimal() or len(seq) > 18:
        raise UsageError("the form does not say what was seen")
    return Seen(int(seq), seal)


async def _again(request: Request, verb: str, refused: Refused, error: SurefootError | None = None) -> Response | Page:
    """The page that it came from, and on it what was sent."""
    back = request.inside(request.form.get("back", ""))
    if back is not None:
        parts = urlsplit(back)
        response = await request.console.shown_again(
            request, parts.path, parts.query.encode("ascii", "replace"), refused
        )
        if response is not None:
            return response
    if error is not None:
        raise error
    raise UsageError(f"there is no page to show {verb} again")


def _onward(request: Request, form: Form, recorded: actions.Recorded) -> str:
    then = request.inside(form.get("then", ""))
    if then is None:
        return request.link("runs", recorded.run, recorded=recorded.seq, of=recorded.run)
    parts = urlsplit(then)
    words = [*parse_qsl(parts.query), ("recorded", str(recorded.seq)), ("of", recorded.run)]
    return f"{request.mount}{parts.path}?{urlencode(words)}"


def _changed(form: Form) -> dict[str, str]:
    """An item more, or one less."""
    sent = {name: value for name, value in form.items() if name not in ("remove", "token", "key")}
    return fields.without(sent, form["remove"]) if "remove" in form else sent


# --- from a form to a word -----------------------------------------------------------------------------


def _object(request: Request, run: str, verb: str, form: Form) -> dict[str, Any]:
    said: dict[str, Any] = {"do": verb}
    match verb:
        case "settle":
            said["address"] = form.get("address", "")
            if form.get("how") == "happened":
                said["happened"] = fields.parsed(form.get("value", ""), "the value")
            else:
                said[_one_of(form, "not_happened", "failed")] = True
        case "answer":
            said |= {"question": form.get("question", ""), "shown": form.get("shown", "")}
            said["value"] = _answer(request, run, form)
        case "match":
            how = _one_of(form, "is", "new", "keep", "rerun")
            said |= {"address": form.get("address", ""), how: form.get("is", "") if how == "is" else True}
        case "retry":
            said |= {"failed": True} if _one_of(form, "failed", "at") == "failed" else {"at": form.getlist("at")}
        case "accept":
            found = form.get("found", "")
            said |= {"found": fields.parsed(found, "found")} if found else {"witness": form.get("witness", "")}
        case "rewind":
            said["at"] = form.get("at", "")
        case "fork":
            said |= {"at": form.get("at", ""), "id": form.get("id", "")}
        case "event":
            value = fields.parsed(form.get("value", "") or "null", "the value")
            said |= {"name": form.get("name", ""), "value": value, "id": form.get("id", "") or form.get("key", "")}
        case "acknowledge":
            said["about"] = form.getlist("about")
    return said


def _one_of(form: Form, *words: str) -> str:
    how = form.get("how", "")
    if how not in words:
        raise UsageError(f"how={how[:40]!r} is none of {', '.join(words)}")
    return how


def _answer(request: Request, run: str, form: Form) -> Any:
    match form.get("as", ""):
        case "yes":
            return True
        case "no":
            return False
        case "json":
            return fields.parsed(form.get(fields.VALUE, ""), "the answer")
        case "fields":
            sent = dict(form)
            return fields.read(fields.of(_schema(request, run, form.get("question", "")), sent), sent)
    raise UsageError("the form does not say in which way it answers")


def _schema(request: Request, run: str, question: str) -> dict[str, Any]:
    from surefoot.console import reads

    past = reads.open_run(request.runtime, run).state().question(as_recorded(question))
    found = json.loads(past.schema) if past is not None and past.schema else {}
    return found if isinstance(found, dict) else {}
