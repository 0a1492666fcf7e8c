"""Five rounds of every measurement, `ref` before and after each, medians and spread. `make bench`.

python -m bench            measure and write docs/performance.md, docs/performance.json, the tables in README.md and
                           docs/scaling.md
python -m bench W2 crowd   only these rows of the table, by the beginning of their keys (`aims.py`); nothing written
python -m bench --quick    one round, nothing written: does it still work?
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from time import perf_counter

import psycopg
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench import report
from bench.aims import LINES
from tests.postgres import Server, serving

ROOT = Path(__file__).resolve().parent.parent
AGAINST_REF = ("w1", "w1e", "w2", "w2b_waits", "w2b_threads")
REHEARSED = ("rehearsed", "rehearsed_async")
AGENT_TURNS = ("agent_turn", "pydantic_turn")
TRACED = (("w1", 1_020), ("w1e", 1_020), ("w2", 2_010))
"""Work whose fsyncs are counted, and of how many calls, with those of its warm-up."""
VARIANTS, CONTENTS = ("results", "argument", "checkpoint"), ("text", "base64")
GROWING_STEPS = 200
BUSY_LOAD = 0.5
STARTS = 10
"""How often each program of W5 is started per round."""
FLEET = ("w1", "w2", "latency", "again", "drain")
STORES = ("sqlite", "postgres")
FLEET_ROUNDS = 3
"""Each of its measurements compares in many short turns by itself."""

SMALL_RUN = """
import surefoot as sf

@sf.step
def double(n: int) -> int:
    return 2 * n

@sf.workflow
def small(count: int) -> int:
    return sum(double(n) for n in range(count))

small.using(store="sqlite:///small.db").run("small", 10)
print([line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")][0])
"""


Piece = tuple[str, tuple[str, ...], Callable[[], None]]
"""What is measured in one go: its name, the rows it gives, and how."""


class Bench:
    """Collects samples per figure. A figure's samples come from different rounds."""

    def __init__(self, folder: Path, rounds: int, wanted: Collection[str] = ()) -> None:
        self.folder = folder
        self.rounds = rounds
        self.samples: dict[str, list[float]] = defaultdict(list)
        self.rates: dict[str, list[float]] = defaultdict(list)
        self.postgres = "not measured"
        self._wanted = set(wanted) or {line.key for line in LINES}
        self._half: dict[tuple[str, str], float] = {}
        self._before: float | None = None
        """The rate of `ref`, if it was measured right before."""
        self._twice = 0.0
        self.body_bytes = 0
        """The mean body of our step records: `ref` inserts as much."""
        self._kept = ExitStack()

    def run(self, progress: Progress) -> None:
        pieces = self.pieces()
        task = progress.add_task("preparing", total=len(pieces))
        with self._fresh() as folder:
            self._work("record", folder)
            self.body_bytes = round(self._work("read_rows", folder)["body"])
        with self._kept:
            for name, keys, measure in pieces:
                progress.update(task, description=name)
                if keys[0] not in AGAINST_REF:
                    self._before = None
                measure()
                progress.advance(task)

    def pieces(self) -> list[Piece]:
        """In the order in which they are measured: only what gives wanted rows."""
        found: list[Piece] = []
        for number in range(self.rounds):
            found += [
                (name, (name, "w2_cpu") if name == "w2" else (name,), partial(self._against_ref, name))
                for name in AGAINST_REF
            ]
            found += [
                ("crowd", ("crowd_cpu", "crowd_mb"), self._crowd),
                ("resume", ("w3", "w3b"), self._resume),
                ("rehearsed", REHEARSED, self._rehearsed),
                ("lone step", ("async_step",), self._lone_step),
                *((name.replace("_", " "), (name,), partial(self._agent_turn, name)) for name in AGENT_TURNS),
                ("starts", ("w5_import", "w5_help", "w5_rss"), self._starts),
                ("lint", ("lint",), self._lint),
                ("seals", ("seals",), self._seals),
                ("looks", ("verify_large", "verify_small", "open_large", "open_many"), self._looks),
                (
                    "growth",
                    (*(f"w4_{variant}" for variant in VARIANTS), "w4_cpu", "w4_linear"),
                    partial(self._growth, number),
                ),
            ]
        found += [
            ("growth, twice as long", ("w4_linear",), partial(self._second_half, self.rounds - 1)),
            ("fsyncs", ("w2_fsyncs",), self._count_fsyncs),
        ]
        for _ in range(min(self.rounds, FLEET_ROUNDS)):
            for name in FLEET:
                key = "pg_twice" if name == "drain" else f"pg_{name}"
                found.append((f"PostgreSQL {name}", (key,), partial(self._fleet, name)))
        found += [
            ("idle workers", tuple(f"idle_{name}_{what}" for name in STORES for what in ("cpu", "mb")), self._idle),
            ("listing", tuple(f"listing_{name}" for name in STORES), self._listing),
            ("a move to PostgreSQL", ("moved",), self._moved),
        ]
        return [piece for piece in found if not self._wanted.isdisjoint(piece[1])]

    def _against_ref(self, name: str) -> None:
        before = self._ref() if self._before is None else self._before
        with self._fresh() as folder:
            figures = self._work(name, folder)
        self._before = after = self._ref()
        ref = (before + after) / 2
        self.samples[name].append(figures["rate"] / ref)
        self.rates[name].append(figures["rate"])
        self.rates["ref"].append(ref)
        if name == "w2":
            self.samples["w2_cpu"].append(figures["cpu"] * 1e6)

    @cached_property
    def _many(self) -> Path:
        """A store with one run of 20,000 steps that has not ended."""
        folder = self._kept.enter_context(self._fresh())
        self._work("record_many", folder)
        return folder

    @cached_property
    def _large(self) -> Path:
        folder = self._kept.enter_context(self._fresh())
        self._trust("record_large", folder)
        return folder

    @cached_property
    def _few(self) -> Path:
        folder = self._kept.enter_context(self._fresh())
        self._trust("record_few", folder)
        return folder

    @cached_property
    def _server(self) -> Server:
        """Runs from here on, so what needs it is measured last."""
        server = self._kept.enter_context(serving(self._kept.enter_context(self._fresh())))
        self.postgres = _version(server.url)
        return server

    def _ref(self) -> float:
        with self._fresh() as folder:
            return self._work("ref", folder, str(self.body_bytes))["rate"]

    def _crowd(self) -> None:
        with self._fresh() as folder:
            figures = self._work("crowd", folder)
        self.samples["crowd_cpu"].append(figures.pop("cpu_us"))
        self.samples["crowd_mb"].append(figures.pop("mb"))
        self._keep("crowd", figures)

    def _resume(self) -> None:
        with self._fresh() as folder:
            self._work("record", folder)
            base = self._work("read_rows", folder)["seconds"]
            resumed = self._work("record", folder)["seconds"]
        resumed_many = self._work("record_many", self._many)["seconds"]
        self.samples["w3"].append(resumed / base)
        self.samples["w3b"].append(resumed_many / resumed)
        self.rates["w3_ms"].append(resumed * 1e3)
        self.rates["w3b_ms"].append(resumed_many * 1e3)

    def _rehearsed(self) -> None:
        for name in REHEARSED:
            with self._fresh() as folder:
                self._keep(name, self._work(name, folder))

    def _lone_step(self) -> None:
        with self._fresh() as folder:
            figures = self._work("lone_step", folder)
        self.samples["async_step"].append(figures["async"] / figures["blocking"])
        self.rates["blocking_step_us"].append(figures["blocking"] * 1e6)
        self.rates["async_step_us"].append(figures["async"] * 1e6)

    def _agent_turn(self, name: str) -> None:
        with self._fresh() as folder:
            self._keep(name, self._work(name, folder, module="bench.agents"))

    def _starts(self) -> None:
        """Programs are started in turn, so that a slow moment of the machine hits all of them."""
        surefoot = str(Path(sys.executable).with_name("surefoot"))
        commands = {
            "bare": [sys.executable, "-c", "pass"],
            "import": [sys.executable, "-c", "import surefoot"],
            "help": [surefoot, "--help"],
        }
        seconds: dict[str, list[float]] = defaultdict(list)
        for _ in range(STARTS):
            for name, command in commands.items():
                started = perf_counter()
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=_environment())
                seconds[name].append(perf_counter() - started)
        median = {name: statistics.median(values) for name, values in seconds.items()}
        self.samples["w5_import"].append(median["import"] / median["bare"])
        self.samples["w5_help"].append(median["help"] / median["bare"])
        self.rates["import_ms"].append(median["import"] * 1e3)
        with self._fresh() as folder:
            done = subprocess.run(
                [sys.executable, "-c", SMALL_RUN],
                check=True, capture_output=True, text=True, cwd=folder, env=_environment(),
            )  # fmt: skip
        self.samples["w5_rss"].append(int(done.stdout) / 1024)

    def _seals(self) -> None:
        with self._fresh() as folder:
            figures = self._trust("seals", folder)
        self.samples["seals"].append(figures["ratio"])
        self.rates["seals_cpu_us"].append(figures["cpu_us"])

    def _lint(self) -> None:
        with self._fresh() as folder:
            figures = self._work("lint", folder, module="bench.reading")
        self.samples["lint"].append(figures["rate"])
        self.rates["lint_parsing"].append(figures["ratio"])

    def _looks(self) -> None:
        for name, folder in (("large", self._large), ("small", self._many)):
            figures = self._trust("verify", folder)
            self.samples[f"verify_{name}"].append(figures["rate"])
            self.rates[f"verify_{name}_content"].append(figures["content"])
            self.rates[f"verify_{name}_entries"].append(figures["entries"])
        for name, folder in (("large", self._large), ("many", self._many)):
            figures = self._trust("opening", self._few, str(folder))
            self.samples[f"open_{name}"].append(figures["ratio"])
            self.rates[f"open_{name}_ms"].append(figures["ms"])

    def _growth(self, seed: int) -> None:
        """W4 with other content in each round. The line of a variant is the worse of text and base64."""
        for variant in VARIANTS:
            ratios = []
            for content in CONTENTS:
                figures = self._w4(variant, content, GROWING_STEPS, seed)
                ratios.append(figures["bytes"] / figures["unique"])
                self.rates[f"w4_{variant}_{content}"].append(ratios[-1])
                self.rates[f"w4_{variant}_{content}_ms"].append(figures["cpu_ms"])
                self._half[variant, content] = figures["bytes"]
            self.samples[f"w4_{variant}"].append(max(ratios))
        self.samples["w4_cpu"].append(max(self.rates[f"w4_checkpoint_{content}_ms"][-1] for content in CONTENTS))

    def _second_half(self, seed: int) -> None:
        """The same content twice as long; the worst case counts. Also without what an empty store takes."""
        with self._fresh() as folder:
            empty = self._trust("empty", folder)["bytes"]
        halves = []
        for (variant, content), half in self._half.items():
            whole = self._w4(variant, content, 2 * GROWING_STEPS, seed)["bytes"]
            halves.append((whole - half) / half)
            self.rates["w4_halves"].append((whole - half) / (half - empty))
        self.samples["w4_linear"].append(max(halves))

    def _w4(self, variant: str, content: str, steps: int, seed: int) -> dict[str, float]:
        with self._fresh() as folder:
            return self._trust("w4", folder, variant, content, str(steps), str(seed))

    def _count_fsyncs(self) -> None:
        """Under strace everything is slower, so this is a run of its own. Opening the store is counted too."""
        if shutil.which("strace") is None:
            return
        for name, steps in TRACED:
            with self._fresh() as folder:
                trace = folder / "trace"
                self._work(name, folder, under=["strace", "-f", "-qq", "-e", "trace=fsync,fdatasync", "-o", str(trace)])
                calls = sum(1 for line in trace.read_text().splitlines() if "sync(" in line)
            self.samples[f"{name}_fsyncs"].append(calls / steps)

    def _fleet(self, name: str) -> None:
        """PostgreSQL and workers. Each measurement has a database of its own."""
        size = () if name in ("again", "drain") else (str(self.body_bytes),)
        figures = self._on_server(name, *size)
        self._keep(f"pg_{name}", figures)
        if name == "drain":  # One step executed twice is one too many, in whichever round.
            self._twice += figures["twice"]
            self.samples["pg_twice"] = [self._twice]

    def _idle(self) -> None:
        figures = self._on_server("idle")
        self.rates["idle_server_cpu"].append(figures.pop("server_cpu"))
        for key, value in figures.items():
            self.samples[f"idle_{key}"].append(value)

    def _listing(self) -> None:
        figures = self._on_server("listing")
        for name in STORES:
            self.samples[f"listing_{name}"].append(figures[f"{name}_ms"])
            self.rates[f"listing_{name}_cpu_ms"].append(figures[f"{name}_cpu_ms"])
        self.rates["listing_few_ms"].append(figures["few_ms"])

    def _moved(self) -> None:
        figures = self._on_server("copied")
        self.samples["moved"].append(figures["ratio"])
        self.rates["moved"].append(figures["rate"])

    def _on_server(self, name: str, *more: str) -> dict[str, float]:
        with self._fresh() as folder:
            return self._work(name, folder, self._server.database(), *more, module="bench.fleet")

    def _keep(self, name: str, figures: dict[str, float]) -> None:
        for key, value in figures.items():
            if key == "ratio":
                self.samples[name].append(value)
            else:
                self.rates[f"{name}_{key}"].append(value)

    def _trust(self, name: str, folder: Path, *more: str) -> dict[str, float]:
        return self._work(name, folder, *more, module="bench.trust")

    def _work(
        self,
        name: str,
        folder: Path,
        *more: str,
        under: list[str] | None = None,
        module: str = "bench.work",
    ) -> dict[str, float]:
        command = [*(under or []), sys.executable, "-m", module, name, str(folder), *more]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=_environment(), check=False)
        if done.returncode != 0:
            raise SystemExit(f"{name} failed:\n{done.stderr}")
        found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        return found

    @contextmanager
    def _fresh(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            yield Path(folder)


def _version(url: str) -> str:
    with psycopg.connect(url) as db:
        return str(db.execute("SHOW server_version").fetchall()[0][0])


def _environment() -> dict[str, str]:
    """The caller's, without settings that would move the store."""
    # Without compiled files every start would be measured with its compilation; nobody installs like that.
    unwanted = ("SUREFOOT_", "PYTHONDONTWRITEBYTECODE")
    return {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}


def _machine(folder: Path) -> dict[str, str]:
    import apsw

    return {
        "cores": str(os.cpu_count()),
        "system": platform.system(),
        "filesystem": _filesystem(folder),
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
    }


def _filesystem(folder: Path) -> str:
    """The type of the filesystem: on one in memory a sync costs nothing and the ratios mean nothing."""
    where, best = folder.resolve(), ("", "unknown")
    mounts = Path("/proc/mounts")
    for line in mounts.read_text().splitlines() if mounts.exists() else []:
        _, point, kind, *_ = line.split()
        if where.is_relative_to(point) and len(point) > len(best[0]):
            best = (point, kind)
    return best[1]


def rows(names: Collection[str]) -> set[str]:
    """The keys of the rows that are named by their beginning: `w2` is `w2`, `w2_cpu` and `w2_fsyncs`."""
    found: set[str] = set()
    for name in map(str.lower, names):
        keys = {line.key for line in LINES if line.key == name or line.key.startswith(f"{name}_")}
        if not keys:
            raise SystemExit(f"no row is called {name!r}. There are: {', '.join(line.key for line in LINES)}")
        found |= keys
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench", description="Measure surefoot against bare loops.")
    parser.add_argument("rows", nargs="*", help="only these, nothing written")
    parser.add_argument("--quick", action="store_true", help="one round, nothing written")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=ROOT / ".bench", help="where to measure: a real disk")
    options = parser.parse_args()
    options.folder.mkdir(exist_ok=True)
    load = f"{os.getloadavg()[0]:.1f}"
    console = Console()
    if not console.is_terminal:
        console = Console(width=160)  # in a log there is no edge to break lines at

    columns = (TextColumn("{task.description:>12}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        bench = Bench(options.folder, 1 if options.quick else options.rounds, rows(options.rows))
        bench.run(progress)
    if not any(options.folder.iterdir()):
        options.folder.rmdir()

    figures = report.figures(
        samples=bench.samples,
        rates=bench.rates,
        rounds=bench.rounds,
        body_bytes=bench.body_bytes,
        machine=_machine(options.folder) | {"load": load, "postgres": bench.postgres},
        made=datetime.now(UTC).date().isoformat(),
    )
    report.show(figures, console)
    if float(load) > BUSY_LOAD:
        console.print(
            f"The load was {load} before the first round: other work ran beside it. Measure again when it is quiet."
        )
    if options.quick or options.rows:
        console.print("not all rows or rounds: nothing was written")
        return
    report.write(figures, ROOT)
    console.print("written: docs/performance.json, docs/performance.md, docs/scaling.md, README.md")


if __name__ == "__main__":
    main()
