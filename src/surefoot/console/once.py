"""The same word sent twice under one key is said once, and both get the same answer.

A double click, or a program that tries again because it got no answer. Kept in the memory of this process; what keeps two
processes apart is `seen`: a word about a state that is gone is refused.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final, TypeVar

from surefoot.errors import UsageError

T = TypeVar("T")
_MOST: Final = 10_000
LONGEST_KEY: Final = 200


class Once:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[tuple[str, str], tuple[Any, Future[Any]]] = {}

    def do(self, who: str, key: str, what: Any, act: Callable[[], T]) -> T:
        """The result of `act`, from this call or from an earlier one with the same key. Without a key: always anew."""
        if not key:
            return act()
        if len(key) > LONGEST_KEY:
            raise UsageError(f"an idempotency key has at most {LONGEST_KEY} characters")
        with self._lock:
            known = self._known.get((who, key))
            if known is None:
                while len(self._known) >= _MOST:
                    del self._known[next(iter(self._known))]
                future: Future[Any] = Future()
                self._known[who, key] = what, future
        if known is not None:
            if known[0] != what:
                raise UsageError("that idempotency key was used for something else")
            return known[1].result()  # type: ignore[no-any-return]
        try:
            done = act()
        except BaseException as error:
            with self._lock:
                self._known.pop((who, key), None)  # Nothing was recorded, or nobody knows: `seen` decides next time.
            future.set_exception(error)
            raise
        future.set_result(done)
        return done
