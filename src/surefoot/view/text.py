"""Text from data, made safe for a terminal: no recorded text can move the cursor or show characters in another order.

Control characters, escape sequences, bidirectional overrides and other invisible characters are shown as
escapes. Every word of a journal passes through here before a person sees it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from surefoot.core.visible import pieces, shorten, visible, visible_lines

__all__ = [
    "ago", "clock_time", "moment", "pieces", "safe_json", "shorten", "some", "to_json", "took", "visible", "visible_lines",
]  # fmt: skip

_MICROS: Final = 1_000_000
_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


# --- JSON ------------------------------------------------------------------------------------------


def to_json(value: Any, *, indent: int | None = None) -> str:
    """JSON for programs that a person may also read: nothing in it can act on a terminal."""
    import json

    return safe_json(json.dumps(value, ensure_ascii=False, indent=indent, default=_plain))


def safe_json(text: str) -> str:
    r"""The same JSON with every unprintable character written as `\uXXXX`. Its meaning does not change."""
    if text.isprintable():
        return text
    # Outside strings JSON has only ASCII and newlines, so this changes strings only.
    return "".join(char if char.isprintable() or char == "\n" else _json_escape(char) for char in text)


def _json_escape(char: str) -> str:
    if char == "\x7f":
        return "\\u007f"
    import json

    return json.dumps(char)[1:-1]


def _plain(value: Any) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    raise TypeError(f"not JSON: {type(value).__name__}")


# --- lists -----------------------------------------------------------------------------------------


def some(names: Sequence[str], most: int) -> str:
    """The first of them, and the number of the others."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


# --- time ------------------------------------------------------------------------------------------


def moment(micros: int) -> datetime:
    return datetime.fromtimestamp(micros / _MICROS, UTC)


def clock_time(micros: int) -> str:
    """`2026-11-15 14:02:11 UTC`."""
    return moment(micros).strftime("%Y-%m-%d %H:%M:%S UTC")


def took(micros: int) -> str:
    """A length of time in the two units that matter: `40 µs`, `250 ms`, `3.2 s`, `4 min 10 s`."""
    seconds = micros / _MICROS
    if seconds < 0:
        return "?"  # The wall clock was set back meanwhile.
    if micros < 1000:
        return f"{micros} µs"
    if seconds < 1:
        return f"{micros / 1000:.3g} ms"
    if seconds < 10:
        return f"{seconds:.1f} s"
    return _two_units(int(seconds))


def ago(micros: int, now: int) -> str:
    seconds = (now - micros) // _MICROS
    return "just now" if seconds < 1 else f"{_two_units(seconds)} ago"


def _two_units(seconds: int) -> str:
    for position, (size, name) in enumerate(_UNITS):
        if seconds >= size:
            whole, rest = divmod(seconds, size)
            smaller = _UNITS[position + 1] if position + 1 < len(_UNITS) else None
            more = rest // smaller[0] if smaller else 0
            return f"{whole} {name}" + (f" {more} {smaller[1]}" if smaller and more else "")
    return "0 s"
