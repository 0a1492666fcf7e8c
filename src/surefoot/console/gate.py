"""What every request has to pass before anything is looked at: names, origins, sizes, times. And what every answer carries.

The host that was asked for is one of a list, exactly. A page of another origin gets nothing and changes nothing. The body is
read here, whole, up to a size and a time. Decisions are made on the headers and the path as they were sent.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from surefoot.console.options import Options
from surefoot.core.visible import visible

log = logging.getLogger("surefoot")

MOST_BYTES: Final = 1_000_000
BODY_SECONDS: Final = 10.0
FORM: Final = "application/x-www-form-urlencoded"
JSON: Final = "application/json"
_LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")
_USUAL: Final = {"http": 80, "https": 443}
_READS: Final = ("GET", "HEAD")

CSP: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types surefoot"
)
HEADERS: Final = {
    "content-security-policy": CSP,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # With no-referrer a browser sends "Origin: null" along with our own forms.
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""On every answer; one that has a header of that name already keeps it."""
_GO_ON: Final = (
    b'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    b'<title>surefoot</title><p>You come from another site. <a href="">Go on to the console</a></p></html>'
)
"""For somebody who followed a link in a mail or a chat: the click that follows comes from here."""


class Turned(Exception):
    """It does not pass."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class Gate:
    """Stands before the console."""

    def __init__(self, inner: ASGIApp, options: Options) -> None:
        self._inner = inner
        self._hosts = frozenset(one.lower() for one in options.hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return

        async def carry(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": with_headers(message.get("headers", []))}
            await send(message)

        try:
            if self._passes(scope) == "go on":
                await _say(carry, 200, _GO_ON, b"text/html; charset=utf-8")
                return
            body = b"" if scope["method"] in _READS else await _body(scope, receive)
        except Turned as turned:
            await _say(carry, turned.status, f"{turned}\n".encode(), b"text/plain; charset=utf-8")
            return
        await self._answered(scope, receive if scope["method"] in _READS else _replayed(body, receive), carry)

    async def _answered(self, scope: Scope, receive: Receive, carry: Send) -> None:
        """A fault of ours is an answer like any other, and says nothing of what it met."""
        begun = False

        async def begin(message: Message) -> None:
            nonlocal begun
            begun = True
            await carry(message)

        try:
            await self._inner(scope, receive, begin)
        except Exception:
            log.exception("%s %s failed", scope["method"], visible(scope["path"]))
            if begun:
                raise
            await _say(carry, 500, b"That failed. The log of the console says how.\n", b"text/plain; charset=utf-8")

    def _passes(self, scope: Scope) -> str:
        host = _one(scope, b"host")
        if host is None or not self._knows(host.lower(), scope):
            raise Turned(421, "This console is not known by that name. Its operator lists names with --host.")
        if not scope.get("raw_path", scope["path"].encode()).startswith(b"/"):
            raise Turned(400, "That is no path.")
        origin, site = _one(scope, b"origin"), _one(scope, b"sec-fetch-site")
        is_read = scope["method"] in _READS
        if origin is not None and not _same(origin, host):
            raise Turned(403, "That comes from another origin.")
        if site is not None and site.lower() not in ("same-origin", "none"):
            if (
                is_read
                and _one(scope, b"sec-fetch-mode") == "navigate"
                and _one(scope, b"sec-fetch-dest") == "document"
            ):
                return "go on"
            raise Turned(403, "That comes from another site.")
        if origin is None and not is_read and not is_bearer(scope):
            raise Turned(403, "Without an Origin only a bearer token may change anything.")
        return ""

    def _knows(self, host: str, scope: Scope) -> bool:
        if host in self._hosts:
            return True
        server = scope.get("server")
        port = server[1] if server else None
        names = {f"{one}:{port}" for one in _LOOPBACK}
        if port == _USUAL.get(scope.get("scheme", "http")):
            names |= set(_LOOPBACK)
        return host in names


def with_headers(given: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    known = {name.lower() for name, _ in given}
    more = [(name.encode(), value.encode()) for name, value in HEADERS.items() if name.encode() not in known]
    return [*given, *more]


def is_bearer(scope: Scope) -> bool:
    return (_one(scope, b"authorization") or "").lower().startswith("bearer ")


def content_type(scope: Scope) -> str:
    return (_one(scope, b"content-type") or "").partition(";")[0].strip().lower()


def _one(scope: Scope, name: bytes) -> str | None:
    """The header, which must not be there twice; None: it is not there."""
    found = [value for key, value in scope["headers"] if key.lower() == name]
    if len(found) > 1:
        raise Turned(400, f"The header {name.decode()} is there twice.")
    return found[0].decode("latin-1").strip() if found else None


def _same(origin: str, host: str) -> bool:
    """Behind a proxy the console itself may not know that it is asked for by https."""
    return origin.lower() in (f"http://{host.lower()}", f"https://{host.lower()}")


async def _body(scope: Scope, receive: Receive) -> bytes:
    length = _one(scope, b"content-length")
    if length is not None and (not length.isdecimal() or int(length[:20]) > MOST_BYTES):
        raise Turned(413, f"At most {MOST_BYTES:,} bytes.")
    if content_type(scope) not in (FORM, JSON):
        raise Turned(415, f"Send {JSON}, or a form.")
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await _read(receive)
    except TimeoutError:
        raise Turned(408, "The body took too long.") from None


async def _read(receive: Receive) -> bytes:
    found = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Turned(400, "The body is not whole.")
        found += message.get("body", b"")
        if len(found) > MOST_BYTES:
            raise Turned(413, f"At most {MOST_BYTES:,} bytes.")
        if not message.get("more_body"):
            return bytes(found)


def _replayed(body: bytes, receive: Receive) -> Receive:
    given: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return given.pop() if given else await receive()

    return again


async def _say(send: Send, status: int, body: bytes, kind: bytes) -> None:
    headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
