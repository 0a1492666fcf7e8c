"""Where long bytes are cut, so that two values which are mostly the same have mostly the same pieces.

The pieces put together are the bytes, always; where the cuts fall can only cost sharing. So this rule is no
part of the format and may change with any version. It looks at content, never at positions: what comes
before a piece may grow, shrink or go, and the piece stays the same.

It is written for JSON, whose strings are where the bytes are: a long string stands alone, so a text is the
same piece as a result, inside a message and inside a state. All searching is left to `bytes.find` and its kin.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

STRETCH: Final = 512
"""This many bytes without a quote stand alone: in practice, a long string. What lies between is glue."""
WHOLE: Final = 3072
"""A stretch up to here is one piece: a text of 2 KB with its escapes. Longer ones are cut into 1 to 2 KB."""

_QUOTE: Final = ord('"')
_BACKSLASH: Final = ord("\\")
_WINDOW: Final = 1024
_NEAR: Final = 16 * 1024
"""The first look ahead reads this many bytes, where only a little is new."""
_CLASSES: Final = bytes(byte & 7 for byte in range(256))
_NEEDLES: Final = (b"\1\2\3", b"\2\3", b"\3")
"""Rare first: the rarer the mark, the sooner two rows of cuts that got out of step meet again."""


Round = tuple[bytes, ...]
"""The pieces of some glue and the stretch behind it, up to a quote. Where these bytes and that quote occur again after
a round, they are the same round: nothing else decides where the cuts fall."""


def pieces(raw: bytes) -> list[bytes]:
    """The bytes, cut. No piece is empty."""
    rounds, rest = cut(raw)
    return [*(piece for one in rounds for piece in one), *rest]


def cut(raw: bytes, before: Sequence[Round] = ()) -> tuple[list[Round], list[bytes]]:
    """The rounds of these bytes, and the pieces behind the last one. `before`: the rounds of a similar value."""
    found: list[Round] = []
    masked, places = b"", {one: number for number, one in enumerate(before)}
    start = known = base = 0
    end = len(raw)
    reach = _NEAR if before else end
    while start < end:
        for number in range(known, min(known + 2, len(before))):  # The next, or the one after a changed one.
            if stop := _repeated(before[number], raw, start):
                found.append(before[number])
                start, known = stop, number + 1
                break
        else:
            at, stop = _stretch(masked, base, start)
            while stop == base + len(masked) < end:  # Not decided by what is masked so far.
                base, masked = start, _masked(raw[start : start + reach])
                at, stop = _stretch(masked, base, start)
                reach *= 4
            cuts = _cut(raw[start:at], STRETCH, least=512) if at > start else []
            if stop > at:
                cuts += _cut(raw[at:stop], WHOLE, least=1024)
            if stop == end:
                return found, cuts
            found.append(tuple(cuts))
            start, known = stop, places.get(found[-1], known - 1) + 1
    return found, []


def _repeated(one: Round, raw: bytes, start: int) -> int:
    """Where this round ends, if it starts there; else 0."""
    for piece in one:
        if not raw.startswith(piece, start):
            return 0
        start += len(piece)
    return start if raw.startswith(b'"', start) else 0


def _masked(raw: bytes) -> bytes:
    """A quote inside a string is not its end. Where a string ends in a backslash, its closing quote is masked too. That
    costs a little sharing; telling the two apart would cost half a millisecond per 400 KB.
    """
    return raw.replace(b'\\"', b"__") if _BACKSLASH in raw else raw


def _stretch(masked: bytes, base: int, start: int) -> tuple[int, int]:
    """Start and end of the next stretch; the end of the bytes, if there is none. The bytes begin at `base`."""
    at, end = start - base, len(masked)
    while end - at >= STRETCH:
        last = masked.rfind(_QUOTE, at, at + STRETCH)
        if last >= 0:  # nothing that begins before this quote is long enough
            at = last + 1
            continue
        stop = masked.find(_QUOTE, at + STRETCH)
        return base + at, base + (stop if stop >= 0 else end)
    return base + end, base + end


def _cut(span: bytes, whole: int, *, least: int) -> list[bytes]:
    """A span longer than `whole`, cut where its content decides, into pieces of `least` bytes and more."""
    end = len(span)
    if end <= whole:
        return [span]
    found = []
    classes = span.translate(_CLASSES)
    at = 0
    while end - at > least:
        cut = _mark(classes, at + least, min(at + least + _WINDOW, end))
        found.append(span[at:cut])
        at = cut
    if at < end:
        found.append(span[at:])
    return found


def _mark(classes: bytes, start: int, stop: int) -> int:
    for needle in _NEEDLES:
        at = classes.find(needle, start, stop)
        if at >= 0:
            return at
    return stop
