"""Signing in and out. A GET shows a button; only its POST takes the token, so a link checker can neither use nor burn it."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.responses import RedirectResponse, Response

from surefoot.console.context import Page, Request
from surefoot.console.principals import Principal
from surefoot.console.sessions import SESSION_SECONDS

DELAY_SECONDS: Final = 0.2
"""Whoever tries tokens gets five answers a second."""


async def show(request: Request) -> Page:
    return _page(request.query.get("token", ""), request.query.get("then", ""))


def _page(token: str, then: str, *, wrong: bool = False) -> Page:
    return Page("sign_in.html", {"given": token, "then": then, "wrong": wrong}, 403 if wrong else 200)


async def sign_in(request: Request) -> Page | Response:
    """With the token of a link, or a named one."""
    token = request.form.get("token", "")
    principal = request.console.sessions.take(token) or _named(request, token)
    if principal is None:
        await asyncio.sleep(DELAY_SECONDS)
        return _page("", request.form.get("then", ""), wrong=True)
    then = request.inside(request.form.get("then", ""))
    response = RedirectResponse(request.link("") if then is None else request.mount + then, 303)
    response.set_cookie(
        request.console.cookie(request.http.scope),
        request.console.sessions.begin(principal),
        max_age=int(SESSION_SECONDS),
        path=f"{request.mount}/",
        httponly=True,
        samesite="strict",
        secure=request.http.url.scheme == "https",
    )
    return response


def _named(request: Request, token: str) -> Principal | None:
    found = request.console.tokens.of(token)
    return None if found is None else found.principal


async def sign_out(request: Request) -> Response:
    name = request.console.cookie(request.http.scope)
    request.console.sessions.end(request.http.cookies.get(name, ""))
    response = RedirectResponse(request.link("sign-in"), 303)
    response.delete_cookie(name, path=f"{request.mount}/")
    return response
