"""One fault scenario as one line, and the line as a scenario: `flow=saga level=L3 at=57:torn seed=0`.

`at` names the faults: boundary and mode; several in one process are joined by `,`, those of the next process, which
recovers, follow behind a `/`. Reads are counted by themselves: `57:kill/r12:eio`.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, order=True)
class Scenario:
    flow: str
    level: str
    at: str = ""
    seed: int = 0
    broken: str = ""
    """A deliberately broken engine of `tests/crash/broken`."""

    def __str__(self) -> str:
        told = [f"flow={self.flow}", f"level={self.level}"]
        told += [f"at={self.at}"] if self.at else []
        told += [f"seed={self.seed}"]
        told += [f"broken={self.broken}"] if self.broken else []
        return " ".join(told)

    def plans(self) -> list[dict[int, str]]:
        """For each process, one after the other: which boundary goes wrong, and how. Reads have negative numbers."""
        return [_plan(part) for part in self.at.split("/")]


def parse(line: str) -> Scenario:
    found: dict[str, Any] = dict(word.split("=", 1) for word in shlex.split(line))
    return Scenario(**{**found, "seed": int(found.get("seed", "0"), 0)})


def _plan(part: str) -> dict[int, str]:
    pairs = [fault.split(":", 1) for fault in part.split(",") if fault]
    return {int(number.replace("r", "-")): mode for number, mode in pairs}


@dataclass
class Outcome:
    """What became of a scenario."""

    line: str
    level: str
    violations: list[str] = field(default_factory=list)
    uncounted: str = ""
    """Why it does not count: its fault did not fire, or the crashed state could not be looked at."""
    kills: int = 0
    """Real SIGKILLs that struck."""
    errors: int = 0
    """Errors of system calls that struck."""
    said: str = ""
    """The error by which the first try of a process told that a system call had failed."""
    silent: list[str] = field(default_factory=list)
    """Writes and syncs of the store that failed, and no error said so."""
    fired: list[str] = field(default_factory=list)
    """What a schedule let happen, in order (L1)."""
    goals: list[str] = field(default_factory=list)

    @property
    def counted(self) -> bool:
        return not self.uncounted
