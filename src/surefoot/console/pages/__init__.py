"""The pages: each is a function that looks and returns a `Page`. The table below says where they are, and who may see them."""

from __future__ import annotations

from surefoot.console.pages import inbox
from surefoot.console.principals import GLANCE
from surefoot.console.route import Route

PAGES: tuple[Route, ...] = (Route("GET", "/", inbox.show, scope=GLANCE),)
