"""The console as an ASGI app: finds the route of a request, asks who it is from, and lets the route answer.

Every request passes the gate first (`gate.py`). Nobody gets past a route's scope. Nothing is kept outside of the object, so
one process can have several consoles; what runs beside the requests begins with the first one that needs it.
"""

from __future__ import annotations

import hashlib
import hmac
import inspect
import os
import secrets
from typing import Any, Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request as HttpRequest
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from surefoot.console import markup, paths, refusals
from surefoot.console.context import Page, Refused, Request, Seat
from surefoot.console.frame import Glances, frame
from surefoot.console.gate import JSON, Gate, content_type
from surefoot.console.jobs import Jobs
from surefoot.console.live import Live
from surefoot.console.once import Once
from surefoot.console.options import Options
from surefoot.console.planner import Planner
from surefoot.console.principals import GLANCE, OPEN, Principal
from surefoot.console.route import Route, found, segments_of
from surefoot.console.sessions import Sessions, digest
from surefoot.console.tokens import Tokens
from surefoot.engine.process import config
from surefoot.engine.process.runtime import Runtime
from surefoot.errors import StoreUnavailable, SurefootError, UsageError
from surefoot.store.open import backend_of, shown
from surefoot.view import facts
from surefoot.view.words import UNKNOWN_APP

NOBODY = Seat(Principal("nobody", may=GLANCE), b"")
"""Asks for a page that is open to everybody."""
STORE: Final = "/store"
_SHORTEST: Final = 32


class Console:
    def __init__(self, options: Options) -> None:
        from surefoot.console.routes import table

        self.options = options
        self.table = table(options)
        self.sessions = Sessions()
        self.tokens = Tokens()
        self.once = Once()
        self.url = config.store_url(options.store)
        self.where = shown(self.url)
        """The address of the store, for commands."""
        self.app_named = next(iter(options.apps), "") or os.environ.get("SUREFOOT_APP") or UNKNOWN_APP
        """The code, for commands."""
        if not backend_of(self.url).durable:
            raise UsageError(f"{self.where}: a store in memory ends with its process; nobody else can look at it")
        self.planner = Planner(options, self.url)
        self.live = Live(self.runtime)
        self.jobs = Jobs(self.url)
        self.glances = Glances()
        self._secret = options.secret or secrets.token_bytes(32)
        if len(self._secret) < _SHORTEST:
            raise UsageError(f"secret: at least {_SHORTEST} random bytes")
        self._gate = Gate(self._inner, options)

    def runtime(self) -> Runtime:
        """The store and its clock. Blocking."""
        return config.runtime(self.url, create=False)

    def csrf(self, binding: bytes) -> str:
        """The token of forms, for one session."""
        return hmac.new(self._secret, b"form\0" + binding, hashlib.sha256).hexdigest()

    @staticmethod
    def cookie(scope: Scope) -> str:
        """Cookies know no ports: two consoles on one host would sign each other out."""
        server = scope.get("server")
        return f"surefoot-{server[1] if server else 0}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._gate(scope, receive, send)

    async def _inner(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            response = await self._answer(HttpRequest(scope, receive))
            await response(scope, receive, send)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        """Optional: where nobody says that it ends, what runs beside the requests ends with the process."""
        while True:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                await run_in_threadpool(self.close)
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return

    def close(self) -> None:
        """End what runs beside the requests. Blocking."""
        self.live.close()
        self.jobs.close()
        self.planner.close()

    # --- one request ---------------------------------------------------------------------------------

    async def _answer(self, http: HttpRequest) -> Response:
        segments = segments_of(paths.inside(http.scope).encode("ascii", "replace"))
        method = "GET" if http.method == "HEAD" else http.method
        route, ids, methods = found(self.table, method, segments) if segments is not None else (None, {}, set[str]())
        seat = await self._seat(http)
        request = Request(self, http, seat or NOBODY, ids, body=await http.body())
        if seat is None and (route is None or route.scope != OPEN):
            return await self._refuse(request, 401)
        if route is None:
            return await self._refuse(request, 405 if methods else 404)
        if route.scope != OPEN and not request.principal.has(route.scope):
            return await self._refuse(request, 403)
        if route.method == "POST" and route.scope != OPEN and not self._is_from_here(request):
            return await self._refuse(request, 403)
        return await self.answer(request, route)

    def _is_from_here(self, request: Request) -> bool:
        """A form has the token of its session. JSON cannot be sent by a page of another origin, which the gate has seen to."""
        if request.seat.is_bearer or content_type(request.http.scope) == JSON:
            return True
        try:
            token = request.form.get("token", "")
        except UsageError:
            return False
        return hmac.compare_digest(token.encode(), request.csrf.encode())

    async def _seat(self, http: HttpRequest) -> Seat | None:
        """Who it is from."""
        if self.options.identify is not None:
            who: Any = self.options.identify(http)
            principal: Principal | None = await who if inspect.isawaitable(who) else who
            if principal is not None or not self.options.named_tokens:
                return None if principal is None else Seat(principal, b"name\0" + principal.name.encode())
        scheme, _, given = http.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            token = await run_in_threadpool(self.tokens.of, given.strip())
            return None if token is None else Seat(token.principal, b"", is_bearer=True)
        session = http.cookies.get(self.cookie(http.scope), "")
        found_there = self.sessions.of(session) if session else None
        return None if found_there is None else Seat(found_there, digest(session))

    async def _refuse(self, request: Request, status: int) -> Response:
        error = facts.turned_away("Refused", refusals.WORDS[status])
        if paths.is_api(request.path):
            return refusals.as_json(facts.failure(error), status)
        if status == 401 and request.http.method in ("GET", "HEAD"):
            return RedirectResponse(request.link("sign-in", then=request.here()), 303)
        if request.seat is NOBODY:
            return PlainTextResponse(refusals.WORDS[status], status)
        return await self.rendered(request, Page("error.html", {"error": error, "status": status}, status))

    async def answer(self, request: Request, route: Route) -> Response:
        try:
            given = await route.answer(request)
            return await self.rendered(request, given) if isinstance(given, Page) else given
        except SurefootError as error:
            status = refusals.status(error)
            told = refusals.told(error)
        if paths.is_api(route.path):
            return refusals.as_json(told, status)
        if route.scope != OPEN and request.path != STORE and await run_in_threadpool(self.refused) is not None:
            return RedirectResponse(request.link("store"), 303)  # The one page that is there without a store.
        return await self.rendered(request, Page("error.html", {"error": told["error"], "status": status}, status))

    def refused(self) -> SurefootError | None:
        """Why the store cannot be opened, if it is refused: damaged, not there, older than it once was, newer than this version.
        Blocking.
        """
        try:
            self.runtime()
        except StoreUnavailable:
            return None
        except SurefootError as error:
            return error
        return None

    async def shown_again(self, request: Request, path: str, query: bytes, refused: Refused) -> Response | None:
        """The page at this path of the console, with what was refused. None: there is no such page."""
        segments = segments_of(path.encode("ascii", "replace"))
        route, ids, _ = found(self.table, "GET", segments) if segments is not None else (None, {}, set[str]())
        if route is None or not request.principal.has(route.scope):
            return None
        raw = (request.mount + path).encode("ascii", "replace")
        scope = {**request.http.scope, "method": "GET", "query_string": query, "raw_path": raw}
        again = Request(self, HttpRequest(scope), request.seat, ids, refused=refused)
        response = await self.answer(again, route)
        response.status_code = refused.status
        return response

    async def rendered(self, request: Request, page: Page) -> Response:
        around = await run_in_threadpool(frame, request)
        html = await run_in_threadpool(
            markup.render, page.template, request=request, frame=around, link=request.link, **page.values
        )
        return HTMLResponse(html, page.status)
