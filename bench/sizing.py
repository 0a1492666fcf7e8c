"""A day of a large installation, simulated: `python -m bench.sizing`. For the sizes in docs/engines.md.

Nothing here is measured: the figures of one database and of one step are, and come from docs/performance.md and
docs/scaling.md. A second is one step of the simulation; what a second cannot do waits for the next.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import dataclass, field

from surefoot.temporal.cells import chosen

RUNS_A_DAY = 1_000_000
APPENDS_A_RUN = 55
"""50 steps, one wait, its start and its end."""
DRIVEN_SECONDS = 60.0
"""How long a run takes a place in a worker."""
PEAK = 2.0
"""The busiest hour, against the mean of the day."""
WORKERS, CONCURRENCY, CONNECTIONS, LEASE_SECONDS = 10_000, 10, 4, 10.0
APPENDS_A_SECOND = 4_781.0
"""Of one PostgreSQL on two cores."""
EVENTS_A_RUN = 25
AWAY = (13 * 3600, 13 * 3600 + 600)
"""Ten minutes at noon without the database of one cell."""
DAY = 86_400


@dataclass
class Cell:
    share: float
    workers: int
    backlog: float = 0.0
    worst: float = 0.0
    """The most appends that waited."""
    busiest: float = 0.0
    late_until: int = 0
    """The last second at which more than a second's worth of appends was waiting."""
    seen: list[float] = field(default_factory=list)

    def second(self, at: int, luck: random.Random, *, is_away: bool) -> None:
        wave = 1 + (PEAK - 1) * math.sin(2 * math.pi * (at / DAY - 0.25))
        mean = RUNS_A_DAY / DAY * wave * self.share
        wanted = max(0.0, luck.gauss(mean, math.sqrt(mean))) * APPENDS_A_RUN
        room = 0.0 if is_away else APPENDS_A_SECOND - self.workers / (LEASE_SECONDS / 3)
        self.backlog += wanted
        done = min(self.backlog, room)
        self.backlog -= done
        self.busiest = max(self.busiest, done)
        self.worst = max(self.worst, self.backlog)
        if self.backlog > APPENDS_A_SECOND:
            self.late_until = at


def simulated(cells: int, *, seed: int = 1) -> dict[str, float]:
    """The figures of that day, with so many cells."""
    names = [f"cell-{n}" for n in range(cells)]
    ids = 20_000
    shares = Counter(chosen(f"order-{n}", names) for n in range(ids))
    luck = random.Random(seed)
    made = [Cell(shares[name] / ids, WORKERS // cells) for name in names]
    for at in range(DAY):
        for number, cell in enumerate(made):
            cell.second(at, luck, is_away=number == 0 and AWAY[0] <= at < AWAY[1])
    return {
        "cells": cells,
        "largest share": round(max(cell.share for cell in made) * cells, 2),
        "connections of a database": WORKERS // cells * CONNECTIONS,
        "renewals a second": round(WORKERS / cells / (LEASE_SECONDS / 3)),
        "appends a second, busiest": round(max(cell.busiest for cell in made[1:] or made)),
        "runs at once, busiest": round(RUNS_A_DAY / DAY * PEAK * DRIVEN_SECONDS),
        "places": WORKERS * CONCURRENCY,
        "seconds until an outage of 600 s is made up for": max(0, made[0].late_until - AWAY[1]),
        "events of Temporal a second, busiest": round(RUNS_A_DAY / DAY * PEAK * EVENTS_A_RUN),
    }


if __name__ == "__main__":
    for count in (1, 4, 16):
        print(simulated(count))
