"""The console as an ASGI app: finds the route of a request, asks who it is from, and lets the route answer.

Every request passes the gate first (`gate.py`). Nobody gets past a route's scope. Nothing is kept outside of the object, so
one process can have several consoles; what runs beside the requests begins with the first one that needs it.
"""

from __future__ import annotations

import hashlib
import hmac
import inspect
import secrets
from typing import Any
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request as HttpRequest
from starlette.responses import HTMLResponse, Response
from starlette.types import Receive, Scope, Send

from surefoot.console import markup, refusals
from surefoot.console.context import Page, Refused, Request
from surefoot.console.frame import frame
from surefoot.console.options import Options
from surefoot.console.principals import OPEN, Principal
from surefoot.console.route import Route, found, segments_of
from surefoot.engine.process import config
from surefoot.engine.process.runtime import Runtime
from surefoot.errors import SurefootError

NOBODY = Principal("nobody", may="glance")
"""Asks for a page that is open to everybody."""


class Console:
    def __init__(self, options: Options) -> None:
        from surefoot.console.routes import table

        self.options = options
        self.table = table(options)
        self._secret = options.secret or secrets.token_bytes(32)

    def runtime(self) -> Runtime:
        """The store and its clock. Blocking."""
        return config.runtime(self.options.store, create=False)

    def csrf(self, principal: Principal) -> str:
        return hmac.new(self._secret, b"form\0" + principal.name.encode(), hashlib.sha256).hexdigest()

    @staticmethod
    def raw_path(scope: Scope) -> str:
        """The path as it was sent, without a query."""
        raw = scope.get("raw_path")
        return raw.decode("ascii", "replace") if raw is not None else quote(scope["path"])

    def path_inside(self, scope: Scope) -> bytes:
        """The same below the place where the console is mounted."""
        raw, root = self.raw_path(scope), quote(scope.get("root_path", "").rstrip("/"), safe="/")
        inside = raw.removeprefix(root) if raw == root or raw.startswith(f"{root}/") else raw
        return (inside or "/").encode("ascii", "replace")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        if scope["type"] != "http":
            return
        response = await self._answer(HttpRequest(scope, receive))
        await response(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return

    # --- one request ---------------------------------------------------------------------------------

    async def _answer(self, http: HttpRequest) -> Response:
        segments = segments_of(self.path_inside(http.scope))
        method = "GET" if http.method == "HEAD" else http.method
        route, ids, methods = found(self.table, method, segments) if segments is not None else (None, {}, set[str]())
        principal = await self._identified(http)
        if route is None:
            return await self._refuse(http, principal or NOBODY, 405 if methods else 404)
        if principal is None and route.scope != OPEN:
            return await self._refuse(http, NOBODY, 401)
        principal = principal or NOBODY
        if not principal.has(route.scope):
            return await self._refuse(http, principal, 403)
        return await self.answer(Request(self, http, principal, ids), route)

    async def answer(self, request: Request, route: Route) -> Response:
        try:
            given = await route.answer(request)
            return await self.rendered(request, given) if isinstance(given, Page) else given
        except SurefootError as error:
            told = refusals.told(error)
            return await self.rendered(
                request, Page("error.html", {"error": told["error"], "status": refusals.status(error)}, refusals.status(error))
            )

    async def shown_again(self, request: Request, path: str, query: bytes, refused: Refused) -> Response | None:
        """The page at this path of the console, with what was refused. None: there is no such page."""
        segments = segments_of(path.encode("ascii", "replace"))
        route, ids, _ = found(self.table, "GET", segments) if segments is not None else (None, {}, set[str]())
        if route is None or not request.principal.has(route.scope):
            return None
        raw = quote(request.http.scope.get("root_path", "").rstrip("/"), safe="/") + path
        scope = {**request.http.scope, "method": "GET", "query_string": query, "raw_path": raw.encode()}
        again = Request(self, HttpRequest(scope), request.principal, ids, refused)
        response = await self.answer(again, route)
        response.status_code = refused.status
        return response

    async def rendered(self, request: Request, page: Page) -> Response:
        around = await run_in_threadpool(frame, request)
        html = await run_in_threadpool(
            markup.render, page.template, request=request, frame=around, link=request.link, **page.values
        )
        return HTMLResponse(html, page.status)

    async def _identified(self, http: HttpRequest) -> Principal | None:
        if self.options.identify is None:
            return None
        who: Any = self.options.identify(http)
        return await who if inspect.isawaitable(who) else who

    async def _refuse(self, http: HttpRequest, principal: Principal, status: int) -> Response:
        return HTMLResponse(refusals.WORDS[status], status)
