"""A value or a header from a web server: one GET, with limits on time, size and redirections.

Redirections are followed on the same host only, or from http to https there; all others are reported, not
followed: an answer from another host is not the requested answer.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from surefoot.core import values
from surefoot.core.entry import ABSENT
from surefoot.core.urls import Url
from surefoot.errors import UsageError
from surefoot.world.base import Look, NotObservable, Pulse, Ready, Witness, text_argument
from surefoot.world.urls import parsed

if TYPE_CHECKING:
    from http.client import HTTPResponse

MOST_BYTES: Final = 10 * 1024 * 1024
_SCHEMES: Final = ("http", "https")
_POINTER: Final = re.compile(r"(/([^~/]|~[01])*)*")
_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,9}")
_FIELD: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_NOWHERE: Final = object()


def http_json(url: str, pointer: str = "", *, name: str | None = None) -> Witness:
    """A value in a JSON document, by its pointer as in RFC 6901 (`/info/version`); without one, the whole document.

    Its value is that value; None where the document has no such place, which is not the same as null.
    """
    if not _POINTER.fullmatch(pointer if pointer == "" else text_argument("pointer", pointer)):
        raise UsageError(f"{pointer!r:.200} is no JSON pointer: /info/version, with ~1 for / and ~0 for ~ in a name.")
    at = parsed(url, _SCHEMES)

    def look(pulse: Pulse) -> Look:
        with _get(at, pulse, accept="application/json") as response:
            found = at_pointer(_loaded(_body(response, pulse)), pointer)
        part = f"http:{at.shown}#{pointer}"
        return Look({part: ABSENT}) if found is _NOWHERE else Look({part: values.digest(found)}, found)

    called = f"http_json({at.shown}{', ' if pointer else ''}{pointer})"
    return Ready(name, called, look, at, look="http_json", url=at.given, pointer=pointer)


def http_header(url: str, header: str, *, name: str | None = None) -> Witness:
    """A header of the answer to a GET: `ETag`, `Last-Modified`, an API's version. The body is not read."""
    if not _FIELD.fullmatch(text_argument("header", header)):
        raise UsageError(f"{header!r:.200} cannot be the name of a header.")
    at = parsed(url, _SCHEMES)

    def look(pulse: Pulse) -> Look:
        with _get(at, pulse, accept="*/*") as response:
            found = response.headers.get_all(header)
        text = None if found is None else ", ".join(found)
        return Look({f"http:{at.shown}:{header.lower()}": ABSENT if text is None else values.digest(text)}, text)

    called = f"http_header({at.shown}, {header})"
    return Ready(name, called, look, at, look="http_header", url=at.given, header=header)


def at_pointer(document: Any, pointer: str) -> Any:
    for piece in pointer.split("/")[1:]:
        key = piece.replace("~1", "/").replace("~0", "~")
        if isinstance(document, dict) and key in document:
            document = document[key]
        elif isinstance(document, list) and _INDEX.fullmatch(key) and int(key) < len(document):
            document = document[int(key)]
        else:
            return _NOWHERE
    return document


def _get(url: Url, pulse: Pulse, *, accept: str) -> HTTPResponse:
    from http.client import HTTPException
    from urllib.error import URLError

    from surefoot.world import http

    try:
        response = http.send("GET", url.given, {"Accept": accept}, timeout=max(0.1, pulse.left()), follow=True)
    except URLError as error:
        if isinstance(error.reason, Exception):
            raise getattr(error.reason, "why", error.reason) from None
        raise NotObservable(str(error.reason)) from None
    except HTTPException as error:
        raise NotObservable(f"the server's answer is no HTTP ({type(error).__name__})") from None
    if response.status >= 300:
        response.close()
        raise NotObservable(f"the server answered {response.status} {response.reason}".rstrip())
    return response


def _body(response: HTTPResponse, pulse: Pulse) -> bytes:
    from surefoot.world import http

    encoding = response.headers.get("Content-Encoding", "identity")
    if encoding.lower() != "identity":
        raise NotObservable(f"the answer is compressed ({encoding:.40}), which was not asked for")
    raw = http.body_of(response, MOST_BYTES, pulse.left)  # no beat: else a slow answer would never end
    if len(raw) > MOST_BYTES:
        raise NotObservable(f"the answer is larger than {MOST_BYTES} bytes")
    if response.length:
        raise NotObservable("the answer breaks off")
    return raw


def _loaded(raw: bytes) -> Any:
    try:
        return json.loads(raw, parse_constant=_refused, object_pairs_hook=_unambiguous)
    except (ValueError, RecursionError) as error:
        raise NotObservable(f"the answer is no JSON that can be relied on: {error!s:.200}") from None


def _refused(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")


def _unambiguous(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice in one object")
    return found
