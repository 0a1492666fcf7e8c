"""One HTTP request with the standard library: for witnesses, ready-made effects and alerts.

In a file of its own, because loading it costs more than everything else they do. A request goes where it was sent: a
redirection is followed only if the caller asks for that, and only on the same host. The most important fact for a
caller is when a request failed: before anything was sent (`NotConnected`) or afterwards.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from http.client import HTTPConnection, HTTPMessage, HTTPResponse, HTTPSConnection
from typing import IO, Final
from urllib.error import HTTPError
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import (
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
)

from surefoot.world.base import NotObservable

_CHUNK: Final = 64 * 1024
_WITHOUT_BODY: Final = ("GET", "HEAD", "OPTIONS", "DELETE")


class NotConnected(OSError):
    """There was no connection, so nothing was sent."""

    def __init__(self, host: str, why: OSError) -> None:
        super().__init__(str(why))
        self.host, self.why = host, why


def send(
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes | None = None,
    *,
    timeout: float,
    follow: bool = False,
) -> HTTPResponse:
    """The answer, with any status. `URLError`: why there is none; `HTTPException`: the answer is no HTTP."""
    # By hand: the default opener also opens files and ftp, and turns statuses into exceptions.
    opener = OpenerDirector()
    following = (HTTPDefaultErrorHandler, HTTPErrorProcessor, _SameHost) if follow else ()
    for handler in (ProxyHandler, _Plain, _Secure, *following):
        opener.add_handler(handler())
    try:
        return opener.open(_request(method, url, headers, body), timeout=timeout)  # type: ignore[no-any-return]
    except HTTPError as answer:
        return answer  # type: ignore[return-value]  # it is an answer, with the same face


def body_of(response: HTTPResponse, most: int, left: Callable[[], float]) -> bytes:
    """The body, or more than `most` bytes of it. `left` returns the seconds that are left: answers may come in slowly.

    An answer that breaks off has a `length` left at the end: the number of promised bytes that did not come.
    """
    raw = bytearray()
    while len(raw) <= most and (piece := response.read1(_CHUNK)):
        raw += piece
        if left() <= 0:
            raise TimeoutError
    return bytes(raw)


def _request(method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> Request:
    """A user and password in the URL go into a header: `urllib` would treat them as a part of the host."""
    pieces = urlsplit(url)
    user, at, host = pieces.netloc.rpartition("@")
    sent = {"User-Agent": "surefoot"}
    if at:
        plain = unquote(user) if ":" in user else f"{unquote(user)}:"
        sent["Authorization"] = f"Basic {base64.b64encode(plain.encode()).decode()}"
    if body is None and method not in _WITHOUT_BODY:
        sent["Content-Length"] = "0"
    plain_url = urlunsplit(pieces._replace(netloc=host))
    return Request(plain_url, data=body, headers={**sent, **headers}, method=method)  # noqa: S310 - http or https: checked by callers


class _Connection(HTTPConnection):
    def connect(self) -> None:
        try:
            super().connect()
        except OSError as error:
            raise NotConnected(self.host, error) from error


class _SecureConnection(_Connection, HTTPSConnection):
    """The same, around the connection with TLS."""


class _Plain(HTTPHandler):
    def http_open(self, req: Request) -> HTTPResponse:
        return self.do_open(_Connection, req)


class _Secure(HTTPSHandler):
    def https_open(self, req: Request) -> HTTPResponse:
        return self.do_open(_SecureConnection, req, context=self._context)  # type: ignore[attr-defined]


class _SameHost(HTTPRedirectHandler):
    max_redirections = 5

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        old, new = urlsplit(req.full_url), urlsplit(newurl)
        upgraded = (old.scheme, new.scheme) == ("http", "https") and (old.port, new.port) in ((None, None), (80, 443))
        same = old.scheme == new.scheme and old.netloc.lower() == new.netloc.lower()
        if not same and not (upgraded and old.hostname == new.hostname):
            raise NotObservable(f"the server sends us to another host ({new.scheme}://{new.hostname}); name that one")
        return super().redirect_request(req, fp, code, msg, headers, newurl)
