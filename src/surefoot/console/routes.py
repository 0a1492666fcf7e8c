"""Every route of the console, in one table. What is not in it does not exist.

In a read-only console the routes that write are not made at all.
"""

from __future__ import annotations

from surefoot.console import statics
from surefoot.console.options import Options
from surefoot.console.pages import PAGES
from surefoot.console.principals import OPEN
from surefoot.console.route import Route

STATIC = (Route("GET", "/static/{file}", statics.show, scope=OPEN),)

ALL: tuple[Route, ...] = (*PAGES, *STATIC)


def table(options: Options) -> tuple[Route, ...]:
    return tuple(route for route in ALL if route.method == "GET" or route.signs_in or not options.read_only)
