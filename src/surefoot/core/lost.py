"""Whether an effect may be among the lost entries of a run, which cannot be read any more.

Calls of one name in one scope are numbered in the order in which they begin, and an effect's intent is recorded before
it runs. So if `charge#5` was begun, then so were `charge#1` to `charge#4`, and each of them has an entry. With h entries
hidden, an effect of that name can therefore be hidden only up to h numbers above the highest that is known. This holds
whatever the code does when it runs again: other steps, more polls, another order of branches.
"""

from __future__ import annotations

from surefoot.core.evidence import Evidence
from surefoot.core.state import RunState


class Blindness:
    """What is hidden of a run that fell back."""

    def __init__(self, state: RunState, evidence: Evidence) -> None:
        missing = _missing_evidence(state, evidence)
        self._stretches = [
            (_highest(state, evidence, at), entry.hidden if entry.hidden < 0 else entry.hidden + missing)
            for at, entry in state.fallbacks
        ]

    def covers(self, address: str, *, recorded: bool) -> bool:
        """`recorded`: the call itself is on record, so only a further attempt may be hidden."""
        name, _, digits = address.rpartition("#")
        number = int(digits) if digits.isdecimal() else 0
        for highest, hidden in self._stretches:
            if hidden < 0 or (hidden and (recorded or number <= highest.get(name, 0) + hidden)):
                return True
        return False


def _highest(state: RunState, evidence: Evidence, at: int) -> dict[str, int]:
    """Scope and name -> the highest number that is known to have begun before the run fell back at that entry."""
    known = [past.address for past in state.effects() if past.first < at]
    highest: dict[str, int] = {}
    for address in (*known, *evidence.named):
        name, _, digits = address.rpartition("#")
        if digits.isdecimal():
            highest[name] = max(highest.get(name, 0), int(digits))
    return highest


def _missing_evidence(state: RunState, evidence: Evidence) -> int:
    """Entries that were readable when they were set aside, and are no longer: they are hidden as well."""
    told = sum(entry.lost - entry.hidden for _, entry in state.fallbacks if entry.lost >= 0 and entry.hidden >= 0)
    return max(0, told - evidence.whole)
