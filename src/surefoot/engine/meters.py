"""What this process counts about itself, so that somebody who watches many workers sees the one that is ill.

Counting happens on the way of every append, so it is a few additions and nothing else: no labels to look up, no text.
`engine/exposition.py` makes the text, when somebody asks. A number is of the whole process, whatever stores it has open.
"""

from __future__ import annotations

import threading
from collections import Counter
from typing import Final

MICROS: Final = 1_000_000
BITS: Final = 64


class Meters:
    """Sizes are counted by their number of bits: that takes a third of the time of looking for a bound."""

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

    def appended(self, seconds: float, entries: int) -> None:
        """Called by whoever leads a commit, so by one thread at a time."""
        self.append_bits[int(seconds * MICROS).bit_length()] += 1
        self.append_seconds += seconds
        self.entry_bits[entries.bit_length()] += 1
        self.entries += entries

    def append_failed(self) -> None:
        with self._rare:
            self.failed_appends += 1

    def retried(self) -> None:
        with self._rare:
            self.retries += 1

    def alerted(self, kind: str) -> None:
        with self._rare:
            self.alerts[kind] += 1


meters: Final = Meters()
