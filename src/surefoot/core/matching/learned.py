"""What a rehearsal has found out, for the next one and for the drive that follows."""

from __future__ import annotations

from msgspec import Struct


class Learned(Struct, frozen=True):
    inserted: frozenset[tuple[str, str, int]] = frozenset()
    """(scope, name, number) of steps that were put in front of recorded ones."""
    asked: frozenset[str] = frozenset()
    """Recorded calls that the code asks for, somewhere."""
    ended: frozenset[str] = frozenset()
    """Branches that were heard to their end: whatever they have not asked for, they will not."""
    hidden: frozenset[str] = frozenset()
    """Scopes in which a call without an outcome hides what follows it."""
    unproven: frozenset[str] = frozenset()
    """Steps that a call takes over with other arguments, while nothing was heard to ask for what was done after them."""
    outdone: frozenset[str] = frozenset()
    """Steps that were asked anew: what is on record of the first time is no call's (`Matcher.outdone`)."""
    ahead: frozenset[str] = frozenset()
    """New effects behind which it was looked whether the code goes on as recorded."""
