"""What a program of wishes is performed for: a start, a verb, or a call (`attempt.Attempt`)."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from msgspec import Struct

from surefoot.core.command import Append, Program, Wish


class Frame(Struct, eq=False):
    """The session that wishes are about, and the place in its code. A call overrides all of it."""

    session: Any
    place: Any = None
    ending: Any = None
    """What the program returned, for a caller that was cancelled meanwhile."""

    shields: ClassVar = False
    """Whether a call that has begun is recorded to its end before a cancellation is passed on."""

    def held_back(self, wish: Wish) -> Program | None:
        """The program to perform instead of this wish, if the run has stopped elsewhere and the wish must wait."""
        return None

    def needs_claim(self, wish: Wish) -> bool:
        """Whether this wish changes something, so that this process has to drive the run."""
        return isinstance(wish, Append)

    def overtaken(self) -> Program | None:
        """The program to perform instead, if another process has recorded the outcome."""
        return None

    def is_settled(self) -> bool:
        """Whether there is nothing left to wait for."""
        return False


class _Nothing:
    found = ()
    live = True


class _Nobody:
    """Replaces the session where there is none yet: nothing has stopped, and nothing has to be claimed."""

    stops = claim = _Nothing()


NOWHERE: Final = Frame(_Nobody())
