"""Live one scenario again: `python -m tests.crash.repro "flow=saga level=L3 at=57:torn seed=0"`."""

from __future__ import annotations

import sys

from tests.crash import levels
from tests.crash.lab import open_lab
from tests.crash.scenario import parse


def main(lines: list[str]) -> int:
    wrong = 0
    with open_lab() as lab:
        for outcome in levels.run_all(lab, [parse(line) for line in lines]):
            told = "; ".join(outcome.violations) or (
                f"not counted: {outcome.uncounted}" if outcome.uncounted else "held"
            )
            sys.stdout.write(f"{outcome.line}\n  {told}\n")
            wrong += bool(outcome.violations)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
