"""Which ring a file of tests is in: `tests/README.md` has the table.

A file is in the quick ring if its folder is in QUICK, unless SLOW names it. The ring is for every save, so it has no
processes, no servers and no thousands of rounds; `tests/conftest.py` fails a test that starts a process there all the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).parent
QUICK: Final = ("core", "engine", "store", "view", "world")
PROOF: Final = "proof"
SUITES: Final = "suites"

PROCESSES, SERVERS, ROUNDS = "starts processes", "starts servers", "many rounds"
SLOW: Final = {
    "core/test_values_rounds.py": ROUNDS,
    "engine/test_alerts.py": SERVERS,
    "engine/test_kills.py": PROCESSES,
    "engine/test_meters.py": SERVERS,
    "engine/test_plan.py": PROCESSES,
    "engine/test_ready_effects.py": SERVERS,
    "engine/test_right_before.py": PROCESSES,
    "engine/test_supposing.py": PROCESSES,
    "engine/test_syncs.py": PROCESSES,
    "store/test_anchor.py": PROCESSES,
    "store/test_guard.py": PROCESSES,
    "store/test_lanes.py": PROCESSES,
    "store/test_liveness.py": PROCESSES,
    "store/test_postgres.py": SERVERS,
    "store/test_postgres_faults.py": SERVERS,
    "store/test_postgres_verbs.py": SERVERS,
    "store/test_salvage.py": PROCESSES,
    "world/test_foreign_changes.py": SERVERS,
}
"""Files of the folders above that are in the ring `test`, and why."""
FIXTURES: Final = frozenset({"killed", "program", "proxy", "web"})
"""Whoever asks for one of these fixtures starts a process or a server, and counts as marked `processes`."""


def ring_of(path: Path) -> str:
    """The innermost ring that a file of tests is in."""
    inside = path.relative_to(TESTS)
    folder = inside.parts[0]
    if folder == SUITES:
        return f"test-{inside.parts[1]}"
    if folder == PROOF:
        return "proof"
    return "quick" if folder in QUICK and inside.as_posix() not in SLOW else "test"
