"""How fast `surefoot lint` reads: all of our own package, every rule, one process.

CPU time, so that a busy machine does not count. `ast.parse` alone over the same texts is measured in turn: the share is
what the rules cost.
"""

from __future__ import annotations

import ast
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from surefoot.lint import runner
from surefoot.lint.selection import Selection

SOURCE = Path(__file__).resolve().parent.parent / "src"


def lint(_: Path) -> dict[str, float]:
    """Lines per second of a core, and the time of parsing alone beside it."""
    paths = sorted(SOURCE.rglob("*.py"))
    chosen = Selection(SOURCE, preview=True)

    def parse() -> None:
        for path in paths:  # One after the other, as the linter does: trees that are kept keep the collector busy.
            ast.parse(path.read_text())

    seen: list[runner.Seen] = []
    before = _seconds(parse)  # Cold: the files are read, and memory is asked for.
    took = _seconds(lambda: seen.append(runner.look_at(paths, chosen, processes=1)))
    parsed = min(before, _seconds(parse))
    return {"rate": seen[0].lines / took, "ratio": took / parsed, "lines": seen[0].lines}


def _seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


if __name__ == "__main__":
    print(json.dumps({"lint": lint}[sys.argv[1]](Path(sys.argv[2]))), flush=True)
