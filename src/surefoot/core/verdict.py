"""The verdict of a check about an effect that is in doubt. A closed set: anything else a check returns is `unknown`."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class Happened(Struct, frozen=True):
    """It happened, and this is its result."""

    value: Any


class NotHappened(Struct, frozen=True):
    """It did not happen: it may run, with the same key."""


class Partial(Struct, frozen=True):
    """Some of it happened. The effect is undone and done again if there is an undo; else a person decides."""

    why: str


class Unknown(Struct, frozen=True):
    """The check cannot tell."""

    why: str


Verdict = Happened | NotHappened | Partial | Unknown


def happened(value: Any = None) -> Happened:
    """For a check: it happened, and this is what the effect would have returned."""
    return Happened(value)


def not_happened() -> NotHappened:
    """For a check: it certainly did not happen, not even in part."""
    return NotHappened()


def partial(why: str = "") -> Partial:
    """For a check: some of it happened."""
    return Partial(str(why))


def unknown(why: str = "") -> Unknown:
    """For a check: the check cannot tell."""
    return Unknown(str(why))


def judged(returned: object) -> Verdict:
    """A check's verdict. Any other value is no verdict."""
    if isinstance(returned, Happened | NotHappened | Partial | Unknown):
        return returned
    return Unknown(
        f"its check returned {type(returned).__name__}, not sf.happened(value), sf.not_happened(), sf.partial(why) or "
        "sf.unknown(why)"
    )
