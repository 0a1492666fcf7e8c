"""The console with many runs in its store: how long the server takes for each page, and what it sends.

python -m bench.console            100,000 runs, the budgets beside what was measured
python -m bench.console 2000       with so many

Asked through ASGI in this process, so it is the server's own time: no network, no browser. p95 of the requests after the first.
"""

from __future__ import annotations

import gzip
import os
import resource
import statistics
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from starlette.testclient import TestClient

import surefoot as sf
from bench.fleet import LISTED, lay_to_sleep
from surefoot.console.application import Console
from surefoot.console.options import Options
from surefoot.console.principals import Principal

BASE = "http://127.0.0.1:4747"
TIMES = 20
WAITING = 20
"""How many of the runs ask a person."""
BUDGETS = {
    "inbox": ("/", 30),
    "list": ("/runs", 30),
    "list, a filter": ("/runs?q=status%3Asleeping", 30),
    "list, a filter without hits": ("/runs?q=workflow%3Anix", 30),
    "list, as JSON": ("/api/v1/runs?status=sleeping", 30),
    "inbox, as JSON": ("/api/v1/inbox", 30),
    "run of 1,000 entries": ("/runs/thousand", 80),
    "run of 40,000 entries": ("/runs/forty", 600),
    "audit": ("/audit", 30),
    "store": ("/store", 30),
}
"""Path, and the budget of CONSOLE's p95 in milliseconds."""


@sf.step
def count(n: int) -> int:
    return n


@sf.workflow
def counting(many: int) -> int:
    return sum(count(n) for n in range(many))


@sf.workflow
def asking() -> bool:
    return bool(sf.approve("Go on?"))


def main(many: int) -> None:
    os.environ.setdefault("SUREFOOT_TOKENS", "/nonexistent/tokens.json")
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'runs.db'}"
        lay_to_sleep(url, many, models=1)
        print(f"{many:,} runs", flush=True)
        for run, entries in (("thousand", 1_000), ("forty", 40_000)):
            counting.using(store=url).run(run, entries - 3)
        for number in range(WAITING):
            ask(url, f"ask-{number}")
        print("run by run", flush=True)
        console = Console(Options(store=url))
        with TestClient(console, base_url=BASE) as http:
            http.cookies.set("surefoot-4747", console.sessions.begin(Principal("bench", "admin")))
            report(http)
        print(f"memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


def ask(url: str, run: str) -> None:
    try:
        asking.using(store=url).run(run)
    except sf.WaitingForAnswer:
        return


def report(http: TestClient) -> None:
    print(f"{'page':<30} {'p50 ms':>8} {'p95 ms':>8} {'budget':>8} {'KB':>8} {'KB gz':>8}")
    for name, (path, budget) in BUDGETS.items():
        taken, size, packed = measured(http, path)
        print(
            f"{name:<30} {statistics.median(taken):>8.1f} {p95(taken):>8.1f} {budget:>8} {size / 1e3:>8.1f} {packed / 1e3:>8.1f}",
            flush=True,
        )


def measured(http: TestClient, path: str) -> tuple[list[float], int, int]:
    content = http.get(path).raise_for_status().content
    taken = []
    for _ in range(TIMES):
        started = perf_counter()
        content = http.get(path).content
        taken.append((perf_counter() - started) * 1e3)
    return taken, len(content), len(gzip.compress(content))


def p95(taken: list[float]) -> float:
    return sorted(taken)[int(len(taken) * 0.95) - 1]


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else LISTED)
