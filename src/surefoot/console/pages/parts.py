"""What templates draw, as plain values: words with marks, rows, columns, ways to answer, and a whole decision.

Nothing here knows a store or a run. A template has one macro for each of these and decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from surefoot.engine.operate.handle import Seen


class Piece(Struct, frozen=True):
    text: str
    kind: str = ""
    """`b`, `code`, `faint`, `link`; empty: plain."""
    href: str = ""


Words = tuple[Piece, ...]


def say(*parts: str | Piece) -> Words:
    """A sentence. What comes from a run is named with `code` or `b`, and is text wherever it stands."""
    found = (one if isinstance(one, Piece) else Piece(one) for one in parts)
    return tuple(one for one in found if one.text)


def b(text: object) -> Piece:
    return Piece(str(text), "b")


def code(text: object) -> Piece:
    return Piece(str(text), "code")


def faint(text: object) -> Piece:
    return Piece(str(text), "faint")


def to(href: str, text: str) -> Piece:
    return Piece(text, "link", href)


def many(count: int, one: str, more: str = "") -> str:
    """`1 call`, `3 calls`."""
    return f"{count} {one if count == 1 else more or one + 's'}"


class Row(Struct, frozen=True):
    name: str
    value: Any
    mono: bool = False
    aside: str = ""


class Known(Struct, frozen=True):
    """A table of what is known before somebody decides."""

    title: str
    rows: Sequence[Row]
    chip: str = ""
    hint: str = ""
    under: str = ""


class Line(Struct, frozen=True):
    """One consequence."""

    icon: str
    words: Words
    warn: bool = False


class Column(Struct, frozen=True):
    """Of a ledger, or a cell of the strip over a run."""

    count: str
    words: Words
    names: Sequence[str] = ()
    hot: str = ""


class Input(Struct, frozen=True):
    name: str
    label: str
    placeholder: str = ""
    hint: Any = ""
    given: str = ""
    required: bool = False


class Way(Struct, frozen=True):
    """An answer, with what follows from it."""

    title: str
    then: Sequence[Line]
    value: str = ""
    icon: str = ""
    field: Input | None = None


class Button(Struct, frozen=True):
    text: str
    css: str = ""
    name: str = ""
    value: str = ""
    key: str = ""
    novalidate: bool = False


class Note(Struct, frozen=True):
    words: Words
    icon: str = "warn"
    kind: str = ""


class Option(Struct, frozen=True):
    value: str
    text: str


class Select(Struct, frozen=True):
    """A choice that shows the same page for another value."""

    name: str
    label: str
    options: Sequence[Option]
    chosen: str
    action: str
    keep: Sequence[tuple[str, str]] = ()


class Bad(Struct, frozen=True):
    """The field that was refused."""

    name: str
    why: str


class Kind(Struct, frozen=True):
    """How something is shown: its shape, its colour, its word."""

    icon: str
    css: str
    word: str


class Decision(Struct, frozen=True, kw_only=True):
    """What can be said of a run, with all that somebody should know before."""

    kind: Kind
    verb: str
    title: Words
    lede: Words = ()
    action: str
    """Where it is sent."""
    seen: Seen | None
    then: str = ""
    """Where to go on after it is recorded."""
    cancel: str = ""
    fixed: Sequence[tuple[str, str]] = ()
    known: Sequence[Known] = ()
    selects: Select | None = None
    fields: Sequence[Any] = ()
    """Of a typed form."""
    bad: Bad | None = None
    asks: str = ""
    ways: Sequence[Way] = ()
    picks: str = ""
    """The name of the field that says which way; empty: each way has its button."""
    first: str = ""
    """The way that is chosen at first; empty: none."""
    ledger: Sequence[Column] = ()
    ledger_title: str = ""
    notes: Sequence[Note] = ()
    texts: Sequence[Input] = ()
    note_label: str = "Why?"
    note_like: str = ""
    note_required: bool = False
    buttons: Sequence[Button] = ()
    allowed: bool = True
    why_not: str = ""
    after: str = ""
    command: str = ""
    """The command line with the same effect; empty: none that could be pasted."""
