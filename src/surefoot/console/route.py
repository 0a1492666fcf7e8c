"""One row of the route table: what is asked for, who may ask, and who answers.

A route names its scope, or there is none: the field has no default.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from msgspec import Struct

if TYPE_CHECKING:
    from starlette.responses import Response

    from surefoot.console.context import Page, Request

    Answer = Callable[[Request], Awaitable[Page | Response]]


class Route(Struct, frozen=True):
    method: str
    path: str
    """`/runs/{run}/journal`: a name in braces stands for one segment, percent-encoded, `/` too."""
    answer: Answer
    scope: str
    """What a principal must be allowed to do: `glance`, `view`, `decide`, `admin`; or `open`."""
    signs_in: bool = False
    """A POST that changes no store: it is there in a read-only console too."""

    def ids(self, segments: list[str]) -> dict[str, str] | None:
        """The named segments of that path, decoded; None: it is another route's."""
        pattern = self.path.strip("/").split("/")
        if len(pattern) != len(segments):
            return None
        found = {}
        for wanted, given in zip(pattern, segments, strict=True):
            if wanted.startswith("{"):
                if not given:
                    return None
                found[wanted[1:-1]] = given
            elif wanted != given:
                return None
        return found


_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


def segments_of(raw_path: bytes) -> list[str] | None:
    """The segments of a path as it was sent, each decoded by itself. None: it is no path in UTF-8."""
    try:
        path = raw_path.decode("ascii")
        if not path.startswith("/") or _ESCAPE.search(path):
            return None
        return [unquote(one, errors="strict") for one in path[1:].split("/")]
    except UnicodeDecodeError:
        return None


def path_of(*segments: str) -> str:
    """The path of these segments: `path_of("runs", "a/b")` is `/runs/a%2Fb`."""
    return "/" + "/".join(quote(one, safe="") for one in segments)


def found(table: Iterable[Route], method: str, segments: list[str]) -> tuple[Route | None, dict[str, str], set[str]]:
    """The route of a request, with its ids; and which methods this path has."""
    methods = set[str]()
    hit: tuple[Route, dict[str, str]] | None = None
    for route in table:
        ids = route.ids(segments)
        if ids is None:
            continue
        methods.add(route.method)
        if hit is None and route.method == method:
            hit = route, ids
    return (hit[0], hit[1], methods) if hit else (None, {}, methods)
