"""What was promised, one line each. A figure is judged here and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["aim met", "at least met", "aim missed", "missed", "not measured"]


@dataclass(frozen=True, slots=True)
class Line:
    """One figure: what it is, and the bounds it is held to (None: no such bound)."""

    key: str
    what: str
    unit: str
    least: float | None
    aim: float | None
    more_is_better: bool = False

    def verdict(self, median: float | None) -> Verdict:
        if median is None:
            return "not measured"
        if self._reaches(median, self.aim):
            return "aim met"
        if self.least is None:
            return "aim missed"
        return "at least met" if self._reaches(median, self.least) else "missed"

    def bound(self, value: float | None) -> str:
        if value is None:
            return "–"
        return f"{'≥' if self.more_is_better else '≤'} {value:g} {self.unit}"

    def _reaches(self, median: float, bound: float | None) -> bool:
        if bound is None:
            return False
        return median >= bound if self.more_is_better else median <= bound


LINES = (
    Line("w1", "W1: 1,000 sequential steps, one blocking run", "× ref", 0.80, 0.90, more_is_better=True),
    Line("w1e", "W1e: 1,000 sequential effects (intent + outcome)", "× ref", 0.36, 0.45, more_is_better=True),
    Line("w2", "W2: 200 concurrent async runs × 10 steps", "× ref", 3.5, 5, more_is_better=True),
    Line("w2_fsyncs", "W2: fsyncs per step, counted with strace", "per step", 0.1, None),
    Line("w2_cpu", "W2: CPU per step", "µs", 60, 35),
    Line("w2b_waits", "W2b: W2 with random waits of 0–5 ms in the steps", "× ref", 2, 3, more_is_better=True),
    Line("w2b_threads", "W2b: 16 blocking threads × 60 steps", "× ref", 2, 3, more_is_better=True),
    Line("crowd_cpu", "a run of one step, one of 10,000 at once: CPU per run", "µs", 350, 250),
    Line("crowd_mb", "the same: memory of the process", "MB", 150, None),
    Line("w3", "W3: resume after 1,000 recorded steps, to the first new call", "× read, hash, decode", 3, 2.5),
    Line("w3b", "W3b: the same after 20,000 recorded steps", "× W3", 25, 21),
    Line("rehearsed", "resume after 50 steps and 50 effects, rehearsed first", "× without rehearsal", 2.2, None),
    Line("rehearsed_async", "the same in async code", "× without rehearsal", 2.2, None),
    Line("w5_import", "W5: `import surefoot`", "× `python -c pass`", 13, 8),
    Line("w5_help", "W5: `surefoot --help`", "× `python -c pass`", 25, None),
    Line("w5_rss", "W5: memory of a small run", "MB", 45, 35),
    Line("async_step", "one async step alone, median", "× a blocking one", 2, 1.6),
    Line("lint", "`surefoot lint`, all rules, one core", "lines/s", 25_000, 50_000, more_is_better=True),
    Line("agent_turn", "OpenAI Agents: a turn (model step, effect), beyond the SDK's own", "× three writes", 1.5, None),
    Line(
        "pydantic_turn",
        "Pydantic AI: a turn and the answer to it (two model steps, effect)",
        "× four writes",
        1.5,
        None,
    ),
    Line("seals", "W1 with seals, chain and anchor", "× W1 without them", 1.15, None),
    Line("verify_large", "`verify`: 100 MB of large values", "MB/s", 50, None, more_is_better=True),
    Line("verify_small", "`verify`: 20,000 small entries", "MB/s", 50, None, more_is_better=True),
    Line("open_large", "open a store that holds 100 MB", "× one with 100 small runs", 1.5, 1.2),
    Line("open_many", "open a store that holds 20,000 entries", "× one with 100 small runs", 1.5, 1.2),
    Line("w4_results", "W4: 200 steps, the growing state as result: bytes on disk", "× unique content", 3, 2),
    Line("w4_argument", "W4: 200 steps, the whole history as argument: bytes on disk", "× unique content", 3, 2),
    Line("w4_checkpoint", "W4: 200 times `Checkpoint.save(state)`: bytes on disk", "× unique content", 3, 2),
    Line("w4_linear", "W4: the second half of 400 steps: bytes on disk", "× the first half", 1.15, 1.05),
    Line("w4_cpu", "W4: CPU of one `Checkpoint.save` of 400 KB that grew by 2 KB", "ms", 5, 2),
    Line("pg_w1", "W1 on PostgreSQL: one blocking run, sequential steps", "× bare", 0.6, None, more_is_better=True),
    Line(
        "pg_w2",
        "W2 on PostgreSQL: one worker, 200 queued async runs × 10 steps",
        "× bare",
        2.5,
        None,
        more_is_better=True,
    ),
    Line(
        "pg_latency",
        "PostgreSQL: from `start` to the first step in an idle worker, median",
        "× a bare commit",
        10,
        None,
    ),
    Line("pg_twice", "PostgreSQL: 1,000 queued runs drained by 2 workers: steps executed twice", "steps", 0, None),
    Line(
        "pg_again",
        "PostgreSQL: killed, started again on the same host (proof of death): to the first new step",
        "× the same on SQLite",
        5,
        2,
    ),
    Line(
        "moved",
        "`surefoot copy` from SQLite to PostgreSQL",
        "× read the rows, raw COPY",
        None,
        0.5,
        more_is_better=True,
    ),
    Line("listing_sqlite", "`surefoot runs` with 100,000 runs in SQLite, beyond the start of Python", "ms", 50, 10),
    Line("listing_postgres", "the same in PostgreSQL", "ms", 50, 10),
    Line("idle_postgres_cpu", "idle worker, 10,000 runs asleep or waiting in PostgreSQL: CPU", "% of a core", 5, None),
    Line("idle_postgres_mb", "the same: memory", "MB", 100, None),
    Line("idle_sqlite_cpu", "idle worker, 10,000 runs asleep or waiting in SQLite: CPU", "% of a core", 5, None),
    Line("idle_sqlite_mb", "the same: memory", "MB", 100, None),
)
