"""Who somebody is, and what that person may do here.

Four scopes, each with all of those before it. `by` of an entry is the name of a principal, never a field of a form.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from surefoot.errors import UsageError

GLANCE: Final = "glance"
"""How runs stand, and no value of theirs."""
VIEW: Final = "view"
DECIDE: Final = "decide"
"""Answer, settle, match, retry, accept, send events, acknowledge."""
ADMIN: Final = "admin"
"""Also what sets aside or ends: rewind, fork, cancel, release, repair, verify."""
SCOPES: Final = (GLANCE, VIEW, DECIDE, ADMIN)
OPEN: Final = "open"
"""The scope of routes that everybody may ask for: signing in, and static files."""


class Principal(Struct, frozen=True):
    """Somebody who is signed in."""

    name: str
    may: str = VIEW
    """A scope."""
    groups: tuple[str, ...] = ()
    """A question may be for a group (`by=["release"]`)."""
    via: str = ""
    """By which way, for the entry: `console, token ann-laptop`."""

    def __post_init__(self) -> None:
        if self.may not in SCOPES:
            raise UsageError(f"Principal({self.name!r}, may={self.may!r}): must be one of {', '.join(SCOPES)}")
        if not self.name:
            raise UsageError("Principal: without a name nobody can be recorded")

    def has(self, scope: str) -> bool:
        return scope == OPEN or SCOPES.index(self.may) >= SCOPES.index(scope)
