"""One HTTP request, sent with the effect's key, and an honest answer whether it was carried out.

What an answer proves (RFC 9110):
- a status in `ok`: it happened.
- no connection: nothing was sent, so nothing happened.
- 429, 425, and 503 with Retry-After: the server did not accept it; tried again at the time it names.
- any other 4xx, and 501: refused, nothing happened. Except 408, which a gateway may answer after it has passed the
  request on; and 409 when a request is repeated under its key: then the first one may be under way.
- 3xx (an answer to a POST that was carried out may well be one), other 5xx, a time-out, a lost connection: in doubt.
Redirections are not followed: a request that changes something goes where it was sent, or nowhere.
"""

from __future__ import annotations

import functools
import json as json_
import re
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct

from surefoot.core import values
from surefoot.core.choice import OnCrash
from surefoot.core.forms import Secret
from surefoot.core.timer import Duration, seconds
from surefoot.core.verdict import Verdict, happened, not_happened, unknown
from surefoot.core.visible import shorten
from surefoot.engine.declare import current
from surefoot.engine.workflow import effect
from surefoot.errors import HttpError, HttpUnsure, NotDone, RetryAfter, UsageError, ValueRejected
from surefoot.world.urls import parsed

MOST_BYTES: Final = 1024 * 1024
"""How much of an answer is read and recorded."""
SHOWN_CHARACTERS: Final = 200
GRACE_SECONDS: Final = 5.0
"""The time-out is kept on the connection; the call is given up only if that does not end it."""
_OK: Final = range(200, 300)
_SAFE: Final = ("GET", "HEAD", "OPTIONS")
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_TELLING: Final = re.compile(
    r"authorization|proxy-authorization|cookie|.*(token|secret|password|signature|credential).*|(.*-)?(api-?)?key",
    re.IGNORECASE,
)
"""Headers that give access: recorded as ***."""
KEPT_HEADERS: Final = (
    "content-type", "content-length", "etag", "last-modified", "location", "retry-after", "request-id", "x-request-id",
)  # fmt: skip


class HttpResponse(Struct, frozen=True):
    """The server's answer, as recorded."""

    status: int
    headers: dict[str, str]
    """Names in lower case; only those about the outcome."""
    body: str | bytes
    """A text if its type and encoding make it one. At most 1 MiB of it."""
    truncated: bool = False
    """The body was longer, or it broke off. The status is still valid."""

    def json(self) -> Any:
        if self.truncated:
            kept = len(self.body.encode() if isinstance(self.body, str) else self.body)
            raise ValueError(f"only the first {kept} bytes of this answer were kept")
        return json_.loads(self.body)


values.register(HttpResponse, name="surefoot.HttpResponse")


def http_request(
    method: str,
    url: str | Secret[str],
    *,
    headers: Mapping[str, str | Secret[str]] | None = None,
    json: object = None,
    data: str | bytes | None = None,
    idempotency_header: str | None = "Idempotency-Key",
    honours_key: bool = False,
    check_url: str | Secret[str] | None = None,
    timeout: Duration = "30s",
    ok: Collection[int] = _OK,
) -> HttpResponse:
    """Send one request, with the effect's key in a header. Returns what the server answered, if its status is in `ok`.

    In doubt, a person decides; with `check_url` a GET does: 200 means it happened (and that answer is the result), 404
    or 410 that it did not; `{key}` in it stands for the key. With `honours_key=True` you say that this server carries
    out a request once for each key, and it is simply sent again. Headers that give access (`Authorization`, …) and
    what is an `sf.Secret` are recorded as ***.
    """
    if not _is_token(method):
        raise UsageError(f"http_request: {method!r:.100} is not a method like POST")
    url = _checked_url("url", url)
    given = _given(headers, json, data, idempotency_header, check_url, ok)
    if honours_key and not idempotency_header:
        raise UsageError("http_request: honours_key=True needs an idempotency_header to send the key in")
    method = method.upper()
    policy: OnCrash = "retry" if honours_key or method in _SAFE else "ask" if check_url is None else "check"
    return _sender(policy, honours_key, seconds(timeout))(method, url, **given)  # type: ignore[no-any-return]


def _given(
    headers: object, json: object, data: object, key_header: object, check_url: object, ok: Collection[int]
) -> dict[str, Any]:
    """The arguments as recorded: checked before anything else, without those that were not given."""
    given: dict[str, Any] = {"headers": _checked_headers(headers), "json": json, "data": data}
    if json is not None and data is not None:
        raise UsageError("http_request: give json= or data=, not both")
    if data is not None and not isinstance(data, str | bytes):
        raise UsageError(f"http_request: data= is a str or bytes, not {type(data).__name__}")
    if key_header is not None and not _is_token(key_header):
        raise UsageError(f"http_request: {key_header!r:.100} is not the name of a header")
    if json is not None:
        _json(json)
    given["check_url"] = None if check_url is None else _checked_url("check_url", check_url)
    given = {name: value for name, value in given.items() if value is not None}
    if key_header != "Idempotency-Key":
        given["idempotency_header"] = key_header
    if not isinstance(ok, range) or ok != _OK:
        given["ok"] = sorted(ok)
    return given


def _is_token(name: object) -> bool:
    return isinstance(name, str) and _TOKEN.fullmatch(name) is not None


def _checked_url(name: str, url: object) -> Any:
    plain = url.reveal() if isinstance(url, Secret) else url
    found = parsed(plain, ("http", "https"))
    if found.is_secret and not isinstance(url, Secret):
        raise UsageError(
            f"http_request: {name}= has something in it that gives access ({found.shown}) and would be recorded. "
            "Put it into headers=, or pass the URL as sf.Secret(url)."
        )
    return url


def _checked_headers(headers: object) -> dict[str, str | Secret[str]] | None:
    if headers is None:
        return None
    if not isinstance(headers, Mapping):
        raise UsageError(f"http_request: headers= is a dict, not {type(headers).__name__}")
    checked: dict[str, str | Secret[str]] = {}
    for name, value in headers.items():
        plain = value.reveal() if isinstance(value, Secret) else value
        if not _is_token(name):
            raise UsageError(f"http_request: {name!r:.100} is not the name of a header")
        if not isinstance(plain, str) or "\n" in plain or "\r" in plain or not plain.isprintable():
            raise UsageError(f"http_request: the value of header {name} must be one line of text")
        checked[name] = Secret(plain) if _TELLING.fullmatch(name) else value
    return checked


def _json(value: object) -> bytes:
    try:
        return json_.dumps(value, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise ValueRejected(f"http_request: json= cannot be written as JSON: {error}") from error


# -- the effect -------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=64)
def _sender(policy: OnCrash, honours_key: bool, timeout_seconds: float) -> Callable[..., Any]:
    """The effect for one policy and one time-out. All of them have the same name, so all are counted together."""

    def http_request(
        method: str,
        url: str | Secret[str],
        *,
        headers: dict[str, str | Secret[str]] | None = None,
        json: Any = None,
        data: str | bytes | None = None,
        idempotency_header: str | None = "Idempotency-Key",
        check_url: str | Secret[str] | None = None,
        ok: list[int] | None = None,
    ) -> HttpResponse:
        sent = _plain_headers(headers)
        if idempotency_header and (key := current.inside().key):
            sent[idempotency_header] = key
        body = data.encode() if isinstance(data, str) else data
        if json is not None:
            body = _json(json)
            if "content-type" not in {name.lower() for name in sent}:
                sent["Content-Type"] = "application/json"
        answer = _exchange(method, _plain(url), sent, body, timeout_seconds)
        return _judged(f"{method} {_shown(url)}", answer, _OK if ok is None else ok, honours_key=honours_key)

    made = effect(on_crash=policy, not_done=(HttpError,), timeout=timeout_seconds + GRACE_SECONDS)(http_request)
    if policy == "check":

        @made.check
        def _(method: str, url: str, *, headers: Any = None, check_url: Any = None, **_: Any) -> Verdict:
            asked = _plain(check_url).replace("{key}", current.inside().key)
            return _seen(_exchange("GET", asked, _plain_headers(headers), None, timeout_seconds))

    return made


def _plain_headers(headers: Mapping[str, str | Secret[str]] | None) -> dict[str, str]:
    return {name: _plain(value) for name, value in (headers or {}).items()}


def _plain(value: str | Secret[str]) -> str:
    return value.reveal() if isinstance(value, Secret) else value


def _exchange(
    method: str, url: str, headers: dict[str, str], body: bytes | None, timeout_seconds: float
) -> HttpResponse:
    """The server's answer. `NotDone`: nothing was sent; any other exception: the request may have been carried out."""
    from http.client import HTTPException
    from urllib.error import URLError

    from surefoot.world import http

    deadline = time.monotonic() + timeout_seconds
    try:
        with http.send(method, url, headers, body, timeout=timeout_seconds) as answer:
            raw = http.body_of(answer, MOST_BYTES, lambda: deadline - time.monotonic())
    except (OSError, HTTPException) as error:
        why = error.reason if isinstance(error, URLError) else error
        if isinstance(why, http.NotConnected):
            raise NotDone(f"no connection to {why.host}, so nothing was sent: {why}") from why.why
        if isinstance(why, TimeoutError):
            raise TimeoutError(f"no answer within {timeout_seconds:g} s") from None
        told = why if why is not error else f"{type(error).__name__}: {error}"
        raise ConnectionError(f"the connection was lost: {told}") from None
    kept = {name.lower(): value for name, value in answer.getheaders() if name.lower() in KEPT_HEADERS}
    readable = _readable(raw[:MOST_BYTES], kept.get("content-type", ""))
    return HttpResponse(answer.status, kept, readable, len(raw) > MOST_BYTES or bool(answer.length))


_TEXTUAL: Final = re.compile(r"text/|application/([\w.-]+\+)?(json|xml|x-www-form-urlencoded)", re.IGNORECASE)
_CHARSET: Final = re.compile(r"charset=\"?([\w-]+)", re.IGNORECASE)


def _readable(raw: bytes, kind: str) -> str | bytes:
    """A text if it is one: people read journals."""
    if not _TEXTUAL.match(kind):
        return raw
    charset = _CHARSET.search(kind)
    if charset is not None and charset[1].lower() not in ("utf-8", "utf8", "us-ascii", "iso-8859-1", "latin1"):
        return raw
    try:
        return raw.decode(charset[1] if charset else "utf-8")
    except UnicodeDecodeError:
        return raw


def _shown(url: str | Secret[str]) -> str:
    """The URL for people, also in alerts: of a URL given as a secret, only the host."""
    if isinstance(url, Secret):
        return f"{urlsplit(url.reveal()).hostname} (the URL is secret)"
    return parsed(url, ("http", "https")).shown


def _judged(request: str, answer: HttpResponse, ok: Collection[int], *, honours_key: bool) -> HttpResponse:
    status = answer.status
    if status in ok:
        return answer
    body = answer.body if isinstance(answer.body, str) else answer.body.decode("utf-8", "replace")
    said = f"{request}: the server answered {status}" + (f": {shorten(body, SHOWN_CHARACTERS)}" if body else "")
    wait = answer.headers.get("retry-after", "")
    if status == 429 or (status == 503 and wait):
        raise RetryAfter(_wait_seconds(wait), said)
    if status == 425:
        raise NotDone(said)
    if status == 501 or (
        400 <= status < 500 and status != 408 and not (status == 409 and honours_key and current.inside().attempt > 1)
    ):
        raise HttpError(status, said)
    raise HttpUnsure(status, said)


def _wait_seconds(text: str) -> float:
    """Seconds or a date; a minute if the server gives neither. At most a day."""
    from datetime import UTC, datetime
    from email.utils import parsedate_to_datetime

    if text.isdecimal():
        return float(min(int(text[:9]), 86_400))
    try:
        until = parsedate_to_datetime(text)
    except ValueError:
        return 60.0
    left = (until - datetime.now(UTC)).total_seconds() if until.tzinfo else 60.0
    return min(max(left, 0.0), 86_400.0)


def _seen(answer: HttpResponse) -> Verdict:
    if answer.status == 200:
        return happened(answer)
    if answer.status in (404, 410):
        return not_happened()
    return unknown(f"check_url answered {answer.status}")
