"""Journals that several threads want at one moment are read in one statement.

A worker takes up hundreds of runs at once. One connection reads for all of them, one question at a time; so whoever gets
hold of it asks for everybody who waits for it. An answer is only given to those who asked before it was sent for, and
damage only to the one whose journal it is: if a common question fails, each asks for itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Final

from surefoot.errors import StoreUnavailable, SurefootError
from surefoot.store.contract import Stored

MOST: Final = 32
"""Journals in one statement: they are in memory together."""


class _Asked:
    __slots__ = ("answer", "run")

    def __init__(self, run: str) -> None:
        self.run = run
        self.answer: Stored | StoreUnavailable | None = None


class Reading:
    def __init__(self, look: Callable[[Sequence[str]], list[Stored]]) -> None:
        """`look` answers for each of these runs, in their order."""
        self._look = look
        self._waiting: list[_Asked] = []
        self._mutex = threading.Lock()
        self._turn = threading.Lock()

    def read(self, run: str) -> Stored:
        asked = _Asked(run)
        with self._mutex:
            self._waiting.append(asked)
        with self._turn:
            # Who asked for us may have failed, or have been interrupted: then we find out ourselves.
            answer = asked.answer if asked.answer is not None else self._answered(asked)
        if isinstance(answer, StoreUnavailable):
            raise answer
        return answer

    def _answered(self, asked: _Asked) -> Stored:
        together = self._together(asked)
        try:
            answers = self._look([one.run for one in together])
        except StoreUnavailable as error:  # as it would be for each of them, after the same wait
            for one in together:
                one.answer = error
            raise
        except SurefootError:
            if len(together) == 1:
                raise
            return self._look([asked.run])[0]
        for one, answer in zip(together, answers, strict=True):
            one.answer = answer
        return answers[0]

    def _together(self, asked: _Asked) -> list[_Asked]:
        with self._mutex:
            others = [one for one in self._waiting if one is not asked]
            self._waiting = others[MOST - 1 :]
            return [asked, *others[: MOST - 1]]
