"""Text from data, made safe for people: no recorded text can move a cursor or show characters in another order.

Control characters, escape sequences, bidirectional overrides and other invisible characters are shown as escapes.
"""

from __future__ import annotations

from itertools import groupby


def visible(text: str) -> str:
    r"""One line, every character of it printable. Newlines become `\n`."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escape(char) for char in text)


def pieces(text: str) -> list[tuple[str, bool]]:
    """The same in pieces, each with whether it is an escape: a page can show those apart, so that no text poses as one."""
    if text.isprintable():
        return [(text, False)] if text else []
    found: list[tuple[str, bool]] = []
    for is_plain, chars in groupby(text, str.isprintable):
        piece = "".join(chars)
        found += [(piece, False)] if is_plain else [(_escape(char), True) for char in piece]
    return found


def visible_lines(text: str) -> list[str]:
    """The lines of a text, each of them printable. Only a newline ends a line."""
    return [visible(line.replace("\t", "    ")) for line in text.split("\n")]


def shorten(text: str, width: int) -> str:
    """At most `width` characters, made visible; says how much is missing."""
    if len(text) <= width:
        return visible(text)
    return f"{visible(text[: max(width - 1, 1)])}…"


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")
