"""The names and settings on which workers, clients and the loop in Temporal agree. Imports nothing."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

QUEUE: Final = "surefoot"
"""The task queue of runs without a queue; the first part of all others."""
BELL: Final = "surefoot"
"""The signal: this run can go on."""
ANSWER: Final = "answer"
"""The update: somebody says something of the run."""
DRIVE: Final = "surefoot.drive"
CANCEL: Final = "surefoot.cancel"
SAY: Final = "surefoot.say"
STATUS: Final = "SurefootStatus"
REASON: Final = "SurefootReason"
ATTRIBUTES: Final = (STATUS, REASON)
"""Search attributes. They exist only if somebody has made them in the namespace."""
MEMO: Final = "surefoot"
"""The field of the memo."""
RUNG: Final = "rung"
"""In the input: the run is in the journal already. Without it, the first drive creates the run."""

HEARTBEAT_SECONDS: Final = 5.0
"""Half of the lease of a store: an attempt that a frozen worker has swallowed is over before the lease is."""
LONGEST_DRIVE: Final = timedelta(days=30)
FIRST_RETRY: Final = timedelta(seconds=0.2)
LONGEST_RETRY: Final = timedelta(seconds=10)
LONGEST_SAY: Final = timedelta(minutes=1)
MOST_EVENTS: Final = 5_000
MOST_RINGS: Final = 2_000
"""After either of them the workflow in Temporal begins anew: a history takes 51,200 events, and 10,000 signals."""


def task_queue(queue: str, cell: str = "") -> str:
    """The task queue of the runs of a queue."""
    name = f"{QUEUE}-{queue}" if queue else QUEUE
    return f"{name}@{cell}" if cell else name


def brief_queue(task_queue: str) -> str:
    """The task queue of what people say of these runs: it is heard while all workers are busy driving."""
    return f"{task_queue}/said"
