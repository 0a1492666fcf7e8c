"""The findings of a rehearsal, for the next one and for the drive that follows."""

from __future__ import annotations

from msgspec import Struct


class Learned(Struct, frozen=True):
    inserted: frozenset[tuple[str, str, int]] = frozenset()
    """(scope, name, number) of steps that were inserted in front of recorded ones."""
    asked: frozenset[str] = frozenset()
    """Recorded calls that the code asks for, somewhere."""
    ended: frozenset[str] = frozenset()
    """Branches that the rehearsal followed to their end: they ask for no further record."""
    hidden: frozenset[str] = frozenset()
    """Scopes in which a call without an outcome hides what follows it."""
    unproven: frozenset[str] = frozenset()
    """Steps that a call takes over with other arguments, without any request seen for the effects after them."""
    outdone: frozenset[str] = frozenset()
    """Steps that were asked for anew: the record of the first time belongs to no call (`Matcher.outdone`)."""
    ahead: frozenset[str] = frozenset()
    """New effects after which the rehearsal checked whether the code goes on as recorded."""
