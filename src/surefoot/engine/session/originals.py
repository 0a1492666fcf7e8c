"""The exceptions that user code raised, kept for developers: code inside a run gets copies.

A copy is the same the first time and on replay, so it has no part of the original that a replay could not have. Even
the traceback is missing: user code may pass on its text. The caller that waits for the run outside gets the whole
traceback, as far as it happened in this process: the workflow's lines, then those of the call that raised.
"""

from __future__ import annotations

import logging
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Final

_log = logging.getLogger("surefoot")
_KEPT: Final = 16
"""A long run may have many failures, and each keeps its frames in memory: the newest are kept."""


class Originals:
    """Which copies were given out for which exceptions."""

    __slots__ = ("_pairs",)

    def __init__(self) -> None:
        self._pairs: deque[tuple[BaseException, BaseException]] = deque(maxlen=_KEPT)

    def keep(self, copy: BaseException, original: BaseException) -> None:
        self._pairs.append((copy, original))

    def traced(self, error: BaseException, live: BaseException | None) -> BaseException:
        """The same failure, with the lines of code of the failure and of its causes."""
        for shown, met in _side_by_side(error, live):
            behind = next((original for copy, original in self._pairs if copy is met), None)
            shown.__traceback__ = _joined(met.__traceback__, None if behind is None else behind.__traceback__)
        return error


def log(run: str, error: BaseException, masked: Callable[[str], str]) -> None:
    """Log a call's exception with its traceback. User code may handle the copy: then only this log has the line."""
    if not _log.isEnabledFor(logging.INFO):
        return
    try:
        text = "".join(traceback.format_exception(error)).rstrip()
    except Exception:  # noqa: BLE001 - __str__ and the like of user code
        return
    _log.info("run %s: a call failed\n%s", run, masked(text))


def _side_by_side(
    error: BaseException | None, live: BaseException | None
) -> Iterator[tuple[BaseException, BaseException]]:
    """A failure and the exception it was recorded from, then their causes."""
    pending, met = [(error, live)], 0
    while pending and met < _KEPT:
        shown, behind = pending.pop()
        if shown is not None and behind is not None:
            met += 1
            yield shown, behind
            pending.append((shown.__cause__, behind.__cause__))
            if shown.__context__ is not shown.__cause__:
                pending.append((shown.__context__, behind.__context__))


def _joined(first: TracebackType | None, then: TracebackType | None) -> TracebackType | None:
    if then is None:
        return first
    lines = []
    while first is not None:
        lines.append(first)
        first = first.tb_next
    for line in reversed(lines):
        then = TracebackType(then, line.tb_frame, line.tb_lasti, line.tb_lineno)
    return then
