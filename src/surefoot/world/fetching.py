"""One GET with the standard library, apart because loading it costs more than everything else here."""

from __future__ import annotations

import base64
from http.client import HTTPException, HTTPMessage, HTTPResponse
from typing import IO, Any
from urllib.error import HTTPError, URLError
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

from surefoot.core.urls import Url
from surefoot.world.base import NotObservable, Pulse


def get(url: Url, pulse: Pulse, *, accept: str) -> HTTPResponse:
    request = _request(url, accept)
    try:
        response: HTTPResponse = _opener().open(request, timeout=max(0.1, pulse.left()))
    except HTTPError as error:
        error.close()
        raise NotObservable(f"the server answered {error.code} {error.reason}".rstrip()) from None
    except URLError as error:
        if isinstance(error.reason, Exception):
            raise error.reason from None
        raise NotObservable(str(error.reason)) from None
    except HTTPException as error:
        raise NotObservable(f"the server's answer is no HTTP ({type(error).__name__})") from None
    return response


def _request(url: Url, accept: str) -> Request:
    pieces = urlsplit(url.given)
    user, at, host = pieces.netloc.rpartition("@")
    plain_url = urlunsplit(pieces._replace(netloc=host))
    headers = {"Accept": accept, "User-Agent": "surefoot"}
    request = Request(plain_url, headers=headers)  # noqa: S310 - http or https: checked when the witness was made
    if at:
        plain = unquote(user) if ":" in user else f"{unquote(user)}:"
        request.add_header("Authorization", f"Basic {base64.b64encode(plain.encode()).decode()}")
    return request


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


def _opener() -> Any:
    # By hand: the default one also opens files and ftp, should a redirection lead there.
    opener = OpenerDirector()
    for handler in (ProxyHandler, HTTPHandler, HTTPSHandler, HTTPDefaultErrorHandler, HTTPErrorProcessor, _SameHost):
        opener.add_handler(handler())
    return opener
