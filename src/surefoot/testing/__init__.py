"""The testing kit: prove that your own workflow survives a crash at every point.

`surefoot.testing.conformance` holds the suite for stores, and is not loaded with this module.
"""

from surefoot.testing.answers import Answers
from surefoot.testing.matrix import Finding, NotHeld, Report, Tried, crash_matrix
from surefoot.testing.worlds import Ledger, World

__all__ = ["Answers", "Finding", "Ledger", "NotHeld", "Report", "Tried", "World", "crash_matrix"]
