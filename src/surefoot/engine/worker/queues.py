"""Named queues and their limits, over all workers. Declared in code, beside the workflows that use them."""

from __future__ import annotations

import re
from typing import Final

from surefoot.core.timer import Duration, seconds
from surefoot.errors import UsageError
from surefoot.store.contract import Limit

_RATE: Final = re.compile(r"(\d+)/(\d+(?:\.\d+)?)?(ms|s|m|h|d|w)")
_declared: Final[dict[str, Limit]] = {}


class Queue:
    """A queue with limits: `sf.Queue("mail", concurrency=5, rate="100/m")`.

    `concurrency` says how many of its runs may be driven at once, `rate` how many may be taken up in any such time
    ("10/s", "100/m", "1000/1h"), over all workers of the store. A run that sleeps or waits for an answer takes no place.
    """

    def __init__(self, name: str, *, concurrency: int | None = None, rate: str | None = None) -> None:
        if not name or not isinstance(name, str):
            raise UsageError(f"sf.Queue({name!r}): a queue needs a name")
        if concurrency is not None and (type(concurrency) is not int or concurrency < 1):
            raise UsageError(f"sf.Queue(concurrency={concurrency!r}): must be a whole number, one or more")
        starts, period = (None, 1.0) if rate is None else _rate(rate)
        limit = Limit(name, concurrency, starts, period)
        if _declared.setdefault(name, limit) != limit:
            raise UsageError(f"queue {name!r} is declared twice, with different limits")
        self.name = name

    def __repr__(self) -> str:
        return f"<Queue {self.name}>"

    def __str__(self) -> str:
        return self.name


def declared() -> frozenset[str]:
    """The names of all queues that this process knows."""
    return frozenset(_declared)


def limits() -> tuple[Limit, ...]:
    """The limits of all limited queues that this process knows."""
    return tuple(limit for limit in _declared.values() if limit.concurrency is not None or limit.starts is not None)


def _rate(rate: str) -> tuple[int, float]:
    found = _RATE.fullmatch(str(rate))
    if found is None or found[1] == "0":
        raise UsageError(f"sf.Queue(rate={rate!r}): write how many in which time: '10/s', '100/m' or '1000/1h'")
    period: Duration = f"{found[2] or 1}{found[3]}"
    return int(found[1]), seconds(period)
