"""One POST with the standard library, apart because loading it costs more than everything else of an alert.

A redirection is not followed: it would turn the POST into a GET that says nothing, or carry it to a host nobody named.
"""

from __future__ import annotations

import base64
from http.client import HTTPException
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import (
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
)


class Refused(Exception):
    """The server answered, and it was no yes."""

    def __init__(self, status: int) -> None:
        super().__init__(f"the server answered {status}")
        self.status = status


class Unreachable(Exception):
    """No answer came. The reason, without anything of the URL in it."""


def post(url: str, body: bytes, *, timeout: float) -> None:
    opener = OpenerDirector()
    for handler in (ProxyHandler, HTTPHandler, HTTPSHandler, HTTPDefaultErrorHandler, HTTPErrorProcessor):
        opener.add_handler(handler())
    try:
        opener.open(_request(url, body), timeout=timeout).close()
    except HTTPError as error:
        error.close()
        raise Refused(error.code) from None
    except URLError as error:
        raise Unreachable(str(error.reason)) from None
    except (OSError, HTTPException) as error:
        raise Unreachable(f"{type(error).__name__}: {error}") from None


def _request(url: str, body: bytes) -> Request:
    pieces = urlsplit(url)
    user, at, host = pieces.netloc.rpartition("@")
    headers = {"Content-Type": "application/json", "User-Agent": "surefoot"}
    if at:
        plain = unquote(user) if ":" in user else f"{unquote(user)}:"
        headers["Authorization"] = f"Basic {base64.b64encode(plain.encode()).decode()}"
    # http or https: checked when the sink was made.
    return Request(urlunsplit(pieces._replace(netloc=host)), data=body, headers=headers, method="POST")  # noqa: S310
