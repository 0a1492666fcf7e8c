"""Workers of the agent, at a given time of the week: each queues what is new, works until nothing is ready, and ends.

They are forked from a process that has surefoot loaded, and load the version of the agent that is deployed then.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import traceback
from typing import Any

import surefoot as sf
from surefoot.core.timer import Moment
from surefoot.engine.drive import deploys
from surefoot.engine.process import runtime
from surefoot.engine.process.clock import SystemClock
from surefoot.engine.worker import stand

READY = frozenset({"queued", "running"})
LIMIT_SECONDS = 60.0


class WeekClock(SystemClock):
    """So much later than it is."""

    def __init__(self, hours: float) -> None:
        super().__init__()
        self._later = round(hours * 3600e6)

    def read(self) -> Moment:
        return Moment(self.now(), "", 0)

    def now(self) -> int:
        return time.time_ns() // 1000 + self._later


def is_idle(worker: sf.Worker, clock: WeekClock) -> bool:
    """Nobody drives anything, nothing is ready, and no time has come."""
    if not worker._server._presence._rows_seen or worker._server._again or worker.busy:
        return False
    rows = [run.row for run in sf.runs(limit=1000)]
    now = clock.now()
    return not any(row is None or row.status in READY or (row.wake is not None and row.wake <= now) for row in rows)


def work(home: str, workflow: str, hours: float, runs: list[str]) -> None:
    clock = WeekClock(hours)
    runtime.default_clock = lambda: clock
    stand.LEFT_SECONDS = 0.2  # What is left to workers with other code is looked at again soon,
    deploys.PATIENCE_SECONDS = 1.0  # and not for ten minutes.
    sys.path[:0] = [home, os.path.join(home, "site-packages")]
    import agent  # the version that is deployed

    for run in runs:
        getattr(agent, workflow).start(run, run)
    pause, end = threading.Event(), time.monotonic() + LIMIT_SECONDS
    with sf.Worker(concurrency=4) as worker:
        while not is_idle(worker, clock):
            assert time.monotonic() < end, "it never came to rest"
            pause.wait(0.02)


def forked(job: dict[str, Any]) -> int:
    """A worker process. Its words go to a file beside its code."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.dup2(os.open(os.path.join(job["home"], "said"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        os.environ["KILL"] = job["kill"]
        work(job["home"], job["workflow"], job["hours"], job["runs"])
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def main() -> None:
    """Each line of the input is a list of workers that work side by side; the answer is how each of them ended."""
    for line in sys.stdin:
        children = [forked(job) for job in json.loads(line)]
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        sys.stdout.write(json.dumps(codes) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
