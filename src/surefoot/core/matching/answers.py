"""A call as the code asks for it now, and the results of the search for its record: one of the answers below."""

from __future__ import annotations

from typing import Final

from msgspec import Raw, Struct

from surefoot.core import values
from surefoot.core.entry import NOTHING
from surefoot.core.history import CHILD, Past, PastCall

AUTO: Final = "auto"
KEEP: Final = "keep"
RERUN: Final = "rerun"
STOP: Final = "stop"
NOTED: Final = "only what noted= names differs"
ACTED_ON: Final = "effects were executed after it"


class Asked(Struct, frozen=True):
    """A call as the code asks for it now."""

    address: str
    path: str
    name: str
    number: int
    """The number among the calls of that name in that scope, counted from 1."""
    kind: str
    digest: str
    """Digest of what is compared: all arguments but those that are only noted."""
    args: bytes
    """All arguments, as they would be recorded."""
    names: tuple[str, ...] = ()
    """Its former names (`was=`)."""
    also: tuple[tuple[str, bool], ...] = ()
    """Where else its calls may be on record: (path, whether calls are counted there as they are here)."""
    noted: frozenset[str] = frozenset()
    """Parameters that are not compared, or not recorded."""
    parameters: frozenset[str] = frozenset()
    on_change: str = AUTO
    is_new: bool = False
    defaults: Raw = NOTHING
    """Of an effect: today's default of each parameter."""

    @property
    def whole(self) -> str:
        """The digest of all arguments."""
        return values.digest(values.again(self.args))

    @property
    def fenced(self) -> bool:
        return self.kind == "effect" or self.name == CHILD

    @property
    def me(self) -> tuple[str, str, int]:
        """Scope, name and number."""
        return self.path, self.name, self.number


class Same(Struct, frozen=True):
    """It is this recorded call."""

    past: PastCall


class Kept(Struct, frozen=True):
    """It is this recorded call, asked for with other arguments: the record stands, and that is noted."""

    past: PastCall
    why: str


class Rerun(Struct, frozen=True):
    """It is this recorded step, with other arguments now; nothing was done because of its result: it runs again."""

    past: PastCall
    counts: bool
    """Whether a person is asked if there are many of these."""


class New(Struct, frozen=True):
    """No recorded call is this one."""

    address: str
    declared: bool = False
    """Declared new, in code or by a person: it passes the fence."""
    again: PastCall | None = None
    """Of a step: the record that it would run again, if no other call asks for that record."""


class Changed(Struct, frozen=True):
    """It is this recorded call, asked for in another way: a person has to decide."""

    past: Past


class Held(Struct, frozen=True):
    """It was recorded with these arguments, but the record was given to another call, with other arguments."""

    past: PastCall
    by: Asked
    """The call that has the record."""
    is_said: bool
    """A person declared that the record stands for that call."""


class InUse(Struct, frozen=True):
    """`was=` names a call that the code still asks for by itself."""

    old: str
    by: str
    """The effect that declares `was=`."""


Answer = Same | Kept | Rerun | New | Changed | Held | InUse
