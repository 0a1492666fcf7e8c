"""Every route of the console, in one table. What is not in it does not exist.

In a read-only console the routes that write are not made at all.
"""

from __future__ import annotations

from surefoot.console import actions, jobposts, posts, signing, statics
from surefoot.console.api.table import ROUTES as API
from surefoot.console.options import Options
from surefoot.console.pages import PAGES
from surefoot.console.principals import ADMIN, OPEN
from surefoot.console.route import Route

SIGNING: tuple[Route, ...] = (
    Route("GET", "/sign-in", signing.show, scope=OPEN),
    Route("POST", "/sign-in", signing.sign_in, scope=OPEN, signs_in=True),
    Route("POST", "/sign-out", signing.sign_out, scope=OPEN, signs_in=True),
)
WORDS: tuple[Route, ...] = tuple(
    Route("POST", f"/runs/{{run}}/{verb}", posts.word(verb), scope=scope) for verb, scope in actions.SCOPES.items()
)
STORE: tuple[Route, ...] = (
    Route("POST", "/store/verify", jobposts.verify, scope=ADMIN),
    Route("POST", "/store/doctor", jobposts.doctor, scope=ADMIN),
)
STATIC: tuple[Route, ...] = (Route("GET", "/static/{file}", statics.show, scope=OPEN),)

ALL: tuple[Route, ...] = (*PAGES, *SIGNING, *WORDS, *STORE, *API, *STATIC)


def table(options: Options) -> tuple[Route, ...]:
    return tuple(
        route
        for route in ALL
        if (route.method == "GET" or route.signs_in or not options.read_only)
        and (options.identify is None or route not in SIGNING)
    )
