"""What tests of workers share: waiting for something to hold, and what a run has been through."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import surefoot as sf


def wait_until(holds: Callable[[], object], seconds: float = 30.0) -> None:
    """Look again and again; a bound for what hangs, not a measure."""
    end = time.monotonic() + seconds
    pause = threading.Event()
    while not holds():
        assert time.monotonic() < end, "it never came to that"
        pause.wait(0.01)


def ended(*runs: str) -> Callable[[], bool]:
    return lambda: all(sf.get_run(run).status in ("done", "failed", "cancelled") for run in runs)


def kinds(run: str) -> list[str]:
    return [entry.kind for entry in sf.get_run(run).entries()]
