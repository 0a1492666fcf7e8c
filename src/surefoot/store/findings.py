"""What can be found out about the place a store lives in: asked of the backend, or tried out, not assumed.

Each check answers with findings: `ok`, `warn` (works, but look at it) or `bad` (what was promised does not hold here), in
words, with what to do.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct

OK: Final = "ok"
WARN: Final = "warn"
BAD: Final = "bad"

CLOCK_SECONDS: Final = 5.0
"""Clocks that differ by more are worth a warning."""


class Finding(Struct, frozen=True):
    """One line of a verdict."""

    level: str
    what: str
    said: str
    do: str = ""


def settings(found: dict[str, str], *, leave_out: tuple[str, ...]) -> str:
    """Settings in force, in one line."""
    return ", ".join(f"{name}={value}" for name, value in found.items() if name not in leave_out)


def clocks(difference: float) -> Finding:
    told = f"this machine's clock and the server's differ by {abs(difference):.1f} s"
    if abs(difference) > CLOCK_SECONDS:
        return Finding(WARN, "clock", f"{told}; timers and leases go by the server's", "set the clocks (NTP)")
    return Finding(OK, "clock", told)


def versions() -> Finding:
    import platform

    import apsw

    told = {"python": platform.python_version(), "apsw": apsw.apsw_version(), "msgspec": msgspec.__version__}
    system = f"{platform.system()} {platform.release()}"
    return Finding(OK, "versions", ", ".join([*(f"{name} {number}" for name, number in told.items()), system]))
