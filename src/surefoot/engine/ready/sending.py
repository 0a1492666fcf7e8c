"""One request over the standard library, apart because loading it costs more than everything else here.

What matters is when it failed: before the request was sent (`NotDone`: nothing happened) or afterwards (in doubt).
"""

from __future__ import annotations

import time
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.request import HTTPHandler, HTTPSHandler, OpenerDirector, ProxyHandler, Request

from surefoot.errors import NotDone

_CHUNK: Final = 64 * 1024


def exchange(
    method: str, url: str, headers: dict[str, str], body: bytes | None, *, timeout_seconds: float, most: int
) -> tuple[int, list[tuple[str, str]], bytes, bool]:
    """Status, headers, the body up to `most` bytes, and whether there was more of it."""
    deadline = time.monotonic() + timeout_seconds
    request = Request(url, data=body, method=method, headers={"User-Agent": "surefoot", **headers})  # noqa: S310 - http or https: checked
    if body is None and method not in ("GET", "HEAD", "OPTIONS", "DELETE"):
        request.add_header("Content-Length", "0")
    try:
        response: HTTPResponse = _opener().open(request, timeout=timeout_seconds)
        with response:
            raw = _read(response, most + 1, deadline)
            return response.status, response.getheaders(), raw[:most], len(raw) > most
    except NotDone:
        raise
    except HTTPError as error:  # pragma: no cover - no handler of ours raises it
        raise ConnectionError(str(error)) from error
    except TimeoutError:
        raise TimeoutError(f"no answer within {timeout_seconds:g} s") from None
    except URLError as error:
        if isinstance(error.reason, TimeoutError):
            raise TimeoutError(f"no answer within {timeout_seconds:g} s") from None
        raise ConnectionError(f"the connection was lost: {error.reason}") from None
    except (HTTPException, OSError) as error:
        raise ConnectionError(f"the connection was lost: {type(error).__name__}: {error}") from None


def _read(response: HTTPResponse, most: int, deadline: float) -> bytes:
    raw = b""
    while len(raw) < most:
        if time.monotonic() > deadline:
            raise TimeoutError
        piece = response.read(min(_CHUNK, most - len(raw)))
        if not piece:
            break
        raw += piece
    return raw


class _Plain(HTTPConnection):
    def connect(self) -> None:
        try:
            super().connect()
        except OSError as error:
            raise NotDone(f"no connection to {self.host}, so nothing was sent: {error}") from error


class _Secure(HTTPSConnection):
    def connect(self) -> None:
        try:
            super().connect()
        except OSError as error:
            raise NotDone(f"no connection to {self.host}, so nothing was sent: {error}") from error


class _PlainHandler(HTTPHandler):
    def http_open(self, req: Request) -> HTTPResponse:
        return self.do_open(_Plain, req)


class _SecureHandler(HTTPSHandler):
    def https_open(self, req: Request) -> HTTPResponse:
        return self.do_open(_Secure, req, context=self._context)  # type: ignore[attr-defined]


def _opener() -> Any:
    # By hand: the default one also opens files and ftp, follows redirections and turns statuses into exceptions.
    opener = OpenerDirector()
    for handler in (ProxyHandler, _PlainHandler, _SecureHandler):
        opener.add_handler(handler())
    return opener
