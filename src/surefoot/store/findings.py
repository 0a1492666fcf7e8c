"""Findings about the place of a store: asked of the backend, or tried out, not assumed.

Each check gives findings: `ok`, `warn` (works, but look at it) or `bad` (a promise does not hold here), in words, with
what to do.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct

OK: Final = "ok"
WARN: Final = "warn"
BAD: Final = "bad"

CLOCK_SECONDS: Final = 5.0
"""A larger difference between clocks is a warning."""


class Finding(Struct, frozen=True):
    """One line of the result."""

    level: str
    what: str
    said: str
    do: str = ""


def ok(what: str, said: str) -> Finding:
    return Finding(OK, what, said)


def warn(what: str, said: str, do: str) -> Finding:
    return Finding(WARN, what, said, do)


def bad(what: str, said: str, do: str) -> Finding:
    return Finding(BAD, what, said, do)


def settings(found: dict[str, str], *, leave_out: tuple[str, ...]) -> str:
    """Settings in force, in one line."""
    return ", ".join(f"{name}={value}" for name, value in found.items() if name not in leave_out)


def clocks(difference: float) -> Finding:
    told = f"this machine's clock and the server's differ by {abs(difference):.1f} s"
    if abs(difference) > CLOCK_SECONDS:
        return warn("clock", f"{told}; timers and leases go by the server's", "set the clocks (NTP)")
    return ok("clock", told)


def versions() -> Finding:
    import platform

    import apsw

    told = {"python": platform.python_version(), "apsw": apsw.apsw_version(), "msgspec": msgspec.__version__}
    system = f"{platform.system()} {platform.release()}"
    return ok("versions", ", ".join([*(f"{name} {number}" for name, number in told.items()), system]))
