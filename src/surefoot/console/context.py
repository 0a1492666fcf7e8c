"""What whoever answers a request has: the store to look at, who asks, the time, and the links of this mount.

Looking is blocking work and is done in a thread (`Request.look`). Nothing here writes.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar
from urllib.parse import parse_qsl, quote, urlencode

from msgspec import Struct
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import ImmutableMultiDict, QueryParams
from starlette.requests import Request as HttpRequest

from surefoot.console import paths
from surefoot.console.plans import DRIFT, PLAN, Planned, Wanted
from surefoot.console.principals import Principal
from surefoot.engine.operate.decisions import Who
from surefoot.errors import UsageError

if TYPE_CHECKING:
    from surefoot.console.application import Console
    from surefoot.engine.operate.handle import Seen
    from surefoot.engine.process.runtime import Runtime

P = ParamSpec("P")
T = TypeVar("T")


MOST_FIELDS: Final = 2_000
_HERE: Final = ("", "127.0.0.1", "::1", "testclient")


class Seat(Struct, frozen=True):
    """Who a request is from, and what its forms are bound to."""

    principal: Principal
    binding: bytes
    """The session; else the name."""
    is_bearer: bool = False


class Page(Struct, frozen=True):
    """A page to be rendered: a template and its values. `frame` (who, counts, links) is added by the application."""

    template: str
    values: Mapping[str, Any] = {}
    status: int = 200


class Refused(Struct, frozen=True):
    """What was sent from a dialog and was not recorded: its page is shown again, with this."""

    error: Mapping[str, Any]
    """As the command line's `--json` has it: type, message, path, cures."""
    status: int
    """409: it has moved since it was looked at. 422: it does not fit. 400: it is not possible."""
    form: Mapping[str, str]
    """As it was sent: the note is kept."""


class Request:
    """A request that was let in."""

    def __init__(
        self,
        console: Console,
        http: HttpRequest,
        seat: Seat,
        ids: dict[str, str],
        *,
        body: bytes = b"",
        refused: Refused | None = None,
    ) -> None:
        self.console = console
        self.http = http
        self.seat = seat
        self.principal = seat.principal
        self.ids = ids
        """The named segments of the path, decoded: `ids["run"]`."""
        self.body = body
        self.refused = refused

    @cached_property
    def form(self) -> ImmutableMultiDict[str, str]:
        """What a form sent; of a name that is there twice the last one, or all (`getlist`)."""
        try:
            pairs = parse_qsl(self.body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS)
        except ValueError:
            raise UsageError(f"that is no form of at most {MOST_FIELDS} fields in UTF-8") from None
        return ImmutableMultiDict(pairs)

    @property
    def via(self) -> str:
        """By which way a word came, for its entry."""
        peer = self.http.client.host if self.http.client is not None else ""
        return f"{self.principal.via or 'console'}{'' if peer in _HERE else f', {peer}'}"

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

    async def look(self, function: Callable[Concatenate[Runtime, P], T], /, *given: P.args, **named: P.kwargs) -> T:
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
        return f"{paths.raw(self.http.scope)}{'?' if said else ''}{said}"

    @property
    def mount(self) -> str:
        """Where the console is mounted: `` or `/surefoot`."""
        return paths.mount(self.http.scope)

    @property
    def path(self) -> str:
        """Below the mount, as it was sent."""
        return paths.inside(self.http.scope)

    def hidden(self, *, seen: Seen | None = None, then: str = "") -> list[tuple[str, str]]:
        """The hidden fields of a form: its token, the state that it is about, where it stands, and where to go on."""
        found = [("token", self.csrf), ("key", secrets.token_urlsafe(16)), ("back", self.here()), ("then", then)]
        if seen is not None:
            found.append(("seen", f"{seen.seq}.{seen.seal}"))
        return found

    @property
    def csrf(self) -> str:
        """The token that every form sends along as `token`."""
        return self.console.csrf(self.seat.binding)

    def inside(self, link: str) -> str | None:
        """The path and query of a link below this mount; None: it leads elsewhere."""
        if not link.startswith(f"{self.mount}/") or link.startswith("//") or not link.isascii() or "\\" in link:
            return None
        local = link.removeprefix(self.mount)
        return None if local.startswith("//") or not local.isprintable() else local

    async def plan(self, run: str) -> Planned:
        """What a resume of the run would do now."""
        return await self._planned(PLAN, run, None)

    async def suppose(self, run: str, said: Mapping[str, Any]) -> Planned:
        """What would follow if this principal said that."""
        return await self._planned(PLAN, run, dict(said))

    async def drift(self, run: str) -> Planned:
        """What the run's witnesses see now (`Planned.drift`)."""
        return await self._planned(DRIFT, run, None)

    async def _planned(self, want: str, run: str, said: dict[str, Any] | None) -> Planned:
        who = Who(self.principal.name, "", self.via, self.principal.groups)
        wanted = Wanted(want, run, who, said, self.console.app_named)
        return await run_in_threadpool(lambda: self.console.planner.ask(self.console.runtime(), wanted))
