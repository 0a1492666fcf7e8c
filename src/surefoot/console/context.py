"""What whoever answers a request has: the store to look at, who asks, the time, and the links of this mount.

Looking is blocking work and is done in a thread (`Request.look`). Nothing here writes.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import quote, urlencode

from msgspec import Struct
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import QueryParams
from starlette.requests import Request as HttpRequest

from surefoot.console.principals import Principal
from surefoot.view.facts import Facts

if TYPE_CHECKING:
    from surefoot.console.application import Console
    from surefoot.engine.operate.handle import Seen
    from surefoot.engine.process.runtime import Runtime

P = ParamSpec("P")
T = TypeVar("T")


class Page(Struct, frozen=True):
    """A page to be rendered: a template and its values. `frame` (who, counts, links) is added by the application."""

    template: str
    values: Mapping[str, Any] = {}
    status: int = 200


class Refused(Struct, frozen=True):
    """What was sent from a dialog and was not recorded: its page is shown again, with this."""

    error: Facts
    """As the command line's `--json` has it: type, message, path, cures."""
    status: int
    """409: it has moved since it was looked at. 422: it does not fit. 400: it is not possible."""
    form: Mapping[str, str]
    """As it was sent: the note is kept."""


class Request:
    """A request that was let in."""

    def __init__(
        self, console: Console, http: HttpRequest, principal: Principal, ids: dict[str, str], refused: Refused | None = None
    ) -> None:
        self.console = console
        self.http = http
        self.principal = principal
        self.ids = ids
        """The named segments of the path, decoded: `ids["run"]`."""
        self.refused = refused

    @property
    def query(self) -> QueryParams:
        return self.http.query_params

    @property
    def runtime(self) -> Runtime:
        """The open store and its clock. Opened by the first look."""
        return self.console.runtime()

    def may(self, scope: str) -> bool:
        """Whether a button for that is shown: never in a read-only console."""
        writes = scope in ("decide", "admin")
        return self.principal.has(scope) and not (writes and self.console.options.read_only)

    async def look(
        self, function: Callable[Concatenate[Runtime, P], T], /, *given: P.args, **named: P.kwargs
    ) -> T:
        """`function(runtime, *given, **named)` in a thread. It looks at the store and changes nothing."""
        return await run_in_threadpool(lambda: partial(function, self.console.runtime())(*given, **named))

    def link(self, *segments: str, **query: Any) -> str:
        """A link inside this console: `link("runs", run_id, do="settle", call="pay#1")`. What is None is left out."""
        path = "/".join(quote(one, safe="") for one in segments)
        said = urlencode([(name, str(value)) for name, value in query.items() if value is not None])
        return f"{self.mount}/{path}{'?' if said else ''}{said}"

    def here(self, **query: Any) -> str:
        """This very page with other words in its query; None takes one away."""
        words = {name: value for name, value in self.query.multi_items() if name not in query}
        said = urlencode([*words.items(), *((name, str(one)) for name, one in query.items() if one is not None)])
        return f"{self.console.raw_path(self.http.scope)}{'?' if said else ''}{said}"

    @property
    def mount(self) -> str:
        """Where the console is mounted: `` or `/surefoot`."""
        return quote(str(self.http.scope.get("root_path", "")).rstrip("/"), safe="/")

    def hidden(self, *, seen: Seen | None = None, then: str = "") -> list[tuple[str, str]]:
        """The hidden fields of a form: its token, the state that it is about, where it stands, and where to go on."""
        found = [("token", self.csrf), ("key", secrets.token_urlsafe(16)), ("back", self.here()), ("then", then)]
        if seen is not None:
            found.append(("seen", f"{seen.seq}.{seen.seal}"))
        return found

    @property
    def csrf(self) -> str:
        """The token that every form sends along as `token`."""
        return self.console.csrf(self.principal)
