"""What was measured of others: once, by hand, on one 2-core machine with real fsync, medians of three.

They are not measured again by `make bench` (each needs its own server or packages). Their ratio is to a
`ref` of the same kind, taken in their own run. `None`: not tried.
"""

from __future__ import annotations

from dataclasses import dataclass

WHEN = "November 2026"


@dataclass(frozen=True, slots=True)
class Peer:
    name: str
    steps_per_ref: float
    """W1: one run, sequential steps, as a ratio to ref."""
    resume: str
    """W3: resume after 1,000 steps."""
    fsyncs_per_step: float
    crash: str | None
    """Crash after an effect, before its record."""


REPEATED = "repeated silently"

PEERS = (
    Peer("LangGraph 1.2.20, SQLite, `sync`", 0.17, "4 ms (state load)", 2, REPEATED),
    Peer("DBOS 3.3.0, SQLite", 0.08, "1.4 s", 4, REPEATED),
    Peer("durabl 0.1.0, FULL", 0.18, "62 ms", 3.6, None),
    Peer("Restate 1.7 server, SDK 1.2", 0.09, "0.43 s", 2, None),
    Peer("Temporal dev server 1.32", 0.014, "12.4 s", 6, REPEATED),
)
