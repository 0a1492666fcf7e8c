"""What this process counts about itself, so that a person who watches many workers sees the one that is ill.

An observer that always listens (`engine/process/runtime.py` registers it). Every append is counted, so counting is a few
additions and nothing else: no labels to look up, no text. `engine/worker/prometheus.py` makes the text on request. A number
is about the whole process, whatever stores it has open.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from surefoot.engine.process.observer import Call, Observer

if TYPE_CHECKING:
    from surefoot.engine.process.alerts import Alert
    from surefoot.store.contract import Extend

MICROS: Final = 1_000_000
BITS: Final = 64


class Meters(Observer):
    """Sizes are counted by their number of bits: that takes a third of the time of looking for a bound."""

    is_strict = True

    def __init__(self) -> None:
        self.append_bits = [0] * BITS
        """Transactions by how many microseconds the store took, which is what everybody who waits for one waits."""
        self.append_seconds = 0.0
        self.entry_bits = [0] * BITS
        """Transactions by how many entries shared them."""
        self.entries = 0
        self.failed_appends = 0
        self.retries = 0
        """Attempts at a call after the first."""
        self.alerts: Counter[str] = Counter()
        """What people were told of, by kind: stops by their name, `fallback`, `drift`, …"""
        self._rare = threading.Lock()

    def appended(self, batch: Sequence[Extend], seconds: float) -> None:
        entries = 0
        for item in batch:
            entries += len(item.records)
        self.append_bits[int(seconds * MICROS).bit_length()] += 1
        self.append_seconds += seconds
        self.entry_bits[entries.bit_length()] += 1
        self.entries += entries

    def append_failed(self, error: Exception) -> None:
        with self._rare:
            self.failed_appends += 1

    def call_retried(self, call: Call) -> None:
        with self._rare:
            self.retries += 1

    def alerted(self, alert: Alert) -> None:
        with self._rare:
            self.alerts[alert.kind] += 1


meters: Final = Meters()
