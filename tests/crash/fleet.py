"""Labs as processes of their own: whoever has threads (pytest, the chaos command) asks, and they live the scenarios.

A request is one line of JSON: a plan (`{"plan": "L3", "flow": "saga", "count": 30, "seed": 1}`), lines to repeat
(`{"lines": [...]}`), or a broken engine to hunt (`{"hunt": "no-intent"}`). Outcomes follow, one a line, and an end.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

from tests.crash.scenario import Outcome, parse

ROOT = Path(__file__).resolve().parents[2]


class LabProcess:
    """Ends with the `with` block it was opened in, and leaves nothing behind."""

    def __init__(self) -> None:
        self.of = 0
        """How many scenarios there are of the plan that was last asked for."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.fleet"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), *sys.path]))},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def ask(self, **request: Any) -> Iterator[Any]:
        """The answers, as they come; all of them have to be taken before the next question."""
        if self._process.stdin is None or self._process.stdout is None:
            raise AssertionError
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            told = json.loads(line)
            if told == "end":
                return
            yield told
        raise RuntimeError(f"the lab ended with {self._process.wait()} while it lived {request}")

    def outcomes(self, **request: Any) -> Iterator[Outcome]:
        for told in self.ask(**request):
            if "of" in told:
                self.of = int(told["of"])
            else:
                yield Outcome(**told)

    def close(self) -> None:
        """Its end of input is its end; one that does not listen is ended with all of its children."""
        with contextlib.suppress(BrokenPipeError):
            self._process.communicate(timeout=10)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.close()
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


def main() -> None:
    from tests.crash import controls, levels
    from tests.crash.lab import open_lab

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    gc.freeze()  # A child that collects garbage would copy every page it looks at.
    with open_lab() as lab:
        for line in sys.stdin:
            request = json.loads(line)
            if "hunt" in request:
                caught = controls.hunted(lab, request["hunt"])
                _say(None if caught is None else asdict(caught))
            elif "lines" in request:
                for outcome in levels.run_all(lab, [parse(one) for one in request["lines"]]):
                    _say(asdict(outcome))
            else:
                found, of = levels.drawn(lab, **request)
                _say({"of": of})
                for outcome in levels.run_all(lab, found):
                    _say(asdict(outcome))
            _say("end")


def _say(what: Any) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
