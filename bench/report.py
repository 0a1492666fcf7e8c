"""What came out, for a person and for a program. README.md and docs say only what performance.json says.

`tests/test_docs.py` and `tests/test_bench.py` render all of it again from the JSON and compare: nobody edits a figure by
hand.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.aims import LINES, Line
from bench.peers import PEERS, WHEN, Peer

BEGIN, END = "<!-- bench -->", "<!-- /bench -->"

Figures = dict[str, Any]


def figures(
    *,
    samples: Mapping[str, Sequence[float]],
    rates: Mapping[str, Sequence[float]],
    rounds: int,
    body_bytes: int,
    machine: dict[str, str],
    made: str,
) -> Figures:
    """Everything that is written down, judged, in one plain value."""
    return {
        "made": made,
        "rounds": rounds,
        "step_record_bytes": body_bytes,
        "machine": machine,
        "lines": [_judge(line, samples.get(line.key, ())) for line in LINES],
        "fsyncs": {key.removesuffix("_fsyncs"): _spread(v) for key, v in samples.items() if key.endswith("_fsyncs")},
        "rates": {key: _spread(values) for key, values in rates.items()},
    }


def _judge(line: Line, samples: Sequence[float]) -> dict[str, Any]:
    found = _spread(samples) if samples else {"median": None, "low": None, "high": None}
    return {
        "key": line.key,
        "what": line.what,
        "unit": line.unit,
        **found,
        "at_least": line.bound(line.least),
        "aim": line.bound(line.aim),
        "verdict": line.verdict(found["median"]),
    }


def _spread(values: Sequence[float]) -> dict[str, float]:
    digits = 3 if max(values) < 1000 else 0
    median, low, high = statistics.median(values), min(values), max(values)
    return {"median": round(median, digits), "low": round(low, digits), "high": round(high, digits)}


# --- for people ----------------------------------------------------------------------------------


def show(found: Figures, console: Console) -> None:
    """What was measured, and nothing else: perhaps a few rows only."""
    lines = [line for line in found["lines"] if line["median"] is not None]
    table = Table(title=f"surefoot against bare loops, rounds: {found['rounds']}")
    for heading in ("work", "median", "spread", "at least", "aim", "verdict"):
        table.add_column(heading)
    colours = {"aim met": "green", "at least met": "green", "aim missed": "yellow", "missed": "red"}
    for line in lines:
        colour = colours.get(line["verdict"], "dim")
        table.add_row(*_cells(line)[:-1], f"[{colour}]{line['verdict']}[/]")
    console.print(table)
    is_whole = len(lines) == len(found["lines"])
    console.print(_fleet(found) if is_whole else _all_rates(found), markup=False, highlight=False)


def _all_rates(found: Figures) -> str:
    return "\n".join(
        f"{key}: {_rate(one)} ({number(one['low'])}–{number(one['high'])})" for key, one in found["rates"].items()
    )


def _cells(line: dict[str, Any]) -> list[str]:
    if line["median"] is None:
        return [line["what"], "–", "–", line["at_least"], line["aim"], line["verdict"]]
    spread = f"{number(line['low'])}–{number(line['high'])}"
    return [
        line["what"],
        f"{number(line['median'])} {line['unit']}",
        spread,
        line["at_least"],
        line["aim"],
        line["verdict"],
    ]


def number(value: float) -> str:
    """Three digits that count, no more: the rest is noise."""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def _table(rows: Sequence[Sequence[str]]) -> str:
    head, *body = rows
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


# --- files ---------------------------------------------------------------------------------------


def write(found: Figures, root: Path) -> None:
    (root / "docs" / "performance.json").write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n")
    (root / "docs" / "performance.md").write_text(performance_page(found))
    readme = root / "README.md"
    readme.write_text(fill(readme.read_text(), readme_block(found)))
    scaling = root / "docs" / "scaling.md"
    scaling.write_text(fill(scaling.read_text(), scaling_block(found)))


def fill(text: str, block: str) -> str:
    """The text with its marked block replaced."""
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{block}\n{END}{after}"


def performance_page(found: Figures) -> str:
    machine, rates = found["machine"], found["rates"]
    table = _table([["work", "median", "spread", "at least", "aim", "verdict"], *map(_cells, found["lines"])])
    fsyncs = ", ".join(f"{key.upper()} {number(value['median'])}" for key, value in found["fsyncs"].items())
    return f"""# Performance

Generated by `make bench` on {found["made"]}; do not edit. The same figures for programs: `performance.json`.

{table}

- **Machine**: {machine["cores"]} cores, {machine["system"]}, {machine["filesystem"]}, Python {machine["python"]}, SQLite {machine["sqlite"]}.
  Load average before the first round: {machine["load"]}. Anything above a few tenths means that other work ran beside it.
- **Rounds**: {found["rounds"]}. The median is given, and the smallest and largest as the spread.
- **ref**: a bare loop through apsw in the same minutes: one `INSERT` of {found["step_record_bytes"]} bytes (the mean body of
  our step records) and a commit, 1,000 times, fresh file, WAL, `synchronous=FULL`, default autocheckpoint. Measured right
  before and right after each piece of work; the ratio is to their mean. Here: {_rate(rates["ref"])} rows/s.
- **Rates**: W1 {_rate(rates["w1"])} steps/s, W1e {_rate(rates["w1e"])} effects/s, W2 {_rate(rates["w2"])} steps/s. They say more
  about this disk than about surefoot: compare ratios.
- **Fsyncs per step or effect**, counted with strace over the whole process, opening the store included: {fsyncs or "strace is not installed here"}.
- **W3** takes {_rate(rates["w3_ms"])} ms and **W3b** {_rate(rates["w3b_ms"])} ms, in a fresh process, opening the store and claiming
  the run included, importing not. It is compared with opening the same file, reading the same rows, SHA-256 and msgspec's
  JSON decoder.
{_crowd(rates)}{_rehearsed(rates)}- **One step alone**: blocking {_rate(rates["blocking_step_us"])} µs, async {_rate(rates["async_step_us"])} µs.
{_agents(rates)}{_trust(rates)}{_fleet(found)}- Steps return a dict of about 200 bytes. Each measurement has a process and a folder of its own.
- Durability is the default everywhere: what was acknowledged is on disk.
"""


def _crowd(rates: Mapping[str, dict[str, float]]) -> str:
    if "crowd_rate" not in rates:
        return ""
    return f"""- **CPU** is that of the whole process: all threads, in the system and outside it. In W2 the starts and ends of the 200
  runs are included, and divided among their steps.
- **10,000 runs of one step** are started by one `asyncio.gather`: {_rate(rates["crowd_rate"])} runs/s, each with three records (created and
  claimed, step, end). CPU is counted from the first start to the last end. Memory is the highest resident size since the
  process began; it was {_rate(rates["crowd_before_mb"])} MB before the first of them.
"""


def _agents(rates: Mapping[str, dict[str, float]]) -> str:
    if "agent_turn_ms" not in rates or "pydantic_turn_ms" not in rates:
        return ""
    told = "; ".join(
        f"{sdk}: {_rate(rates[f'{key}_ms'])} ms ({_rate(rates[f'{key}_cpu_ms'])} ms of CPU) beyond the "
        f"{_rate(rates[f'{key}_bare_ms'])} ms of the framework itself, {_rate(rates[f'{key}_of_calls'])} × the "
        f"{_rate(rates[f'{key}_calls_ms'])} ms of such calls without an agent, bare writes {_rate(rates[f'{key}_writes_ms'])} ms"
        for key, sdk in (("agent_turn", "OpenAI Agents SDK"), ("pydantic_turn", "Pydantic AI"))
    )
    return f"""- **A turn of an agent** is one model call and one tool that acts: three durable writes; of Pydantic AI the model's
  answer to it besides. {told}. All are measured in turn in one process; model and tool do nothing.
"""


def _rehearsed(rates: Mapping[str, dict[str, float]]) -> str:
    if "rehearsed_ms" not in rates:
        return ""
    return f"""- **Rehearsed resumes**: to the first new call, in one process, with the rehearsal and without it in turn, 15 times each;
  {_rate(rates["rehearsed_ms"])} and {_rate(rates["rehearsed_without_ms"])} ms. It is left out in the bench only.
"""


def _trust(rates: Mapping[str, dict[str, float]]) -> str:
    """What is said of trust and growth; nothing where it was not measured."""
    if "seals_cpu_us" not in rates:
        return ""
    growth = "; ".join(
        f"{what}: text {_rate(rates[f'w4_{key}_text'])} ×, base64 {_rate(rates[f'w4_{key}_base64'])} ×, CPU "
        f"{_rate(rates[f'w4_{key}_text_ms'])} and {_rate(rates[f'w4_{key}_base64_ms'])} ms"
        for key, what in (("results", "result"), ("argument", "argument"), ("checkpoint", "`Checkpoint.save`"))
    )
    return f"""- **Seals, chain and anchor** are switched off in the bench only, by replacing two methods; both ways in turn, 50 steps
  at a time, in one process. They take {_rate(rates["seals_cpu_us"])} µs of CPU per step.
- **`verify`** is given in MB of the store's files per second, read from the system's cache. In terms of what it checks,
  decompressed: {_rate(rates["verify_large_content"])} MB/s of large values (half text, half base64), {_rate(rates["verify_small_entries"])} small entries/s.
- **Opening** for writing: {_rate(rates["open_large_ms"])} ms with 100 MB in the store, {_rate(rates["open_many_ms"])} ms with 20,000 entries.
- **W4**: each step adds a message of 2 KB, other ones in each round: text (words of Python's manual in random order) or
  base64 of random bytes, the worst case. Disk is database, log and anchor after a clean end, by unique content; the table has
  the worse of the two. CPU is that of one whole step or save at 400 KB. {growth}.
  Of the halves the worst of the six cases is given. Without what an empty store takes, which is all in the first half,
  they differ by {number(rates["w4_halves"]["low"])}–{number(rates["w4_halves"]["high"])} ×.
"""


def _fleet(found: Figures) -> str:
    """What is said of PostgreSQL and workers; nothing where they were not measured."""
    rates = found["rates"]
    if "pg_w1_rate" not in rates:
        return ""
    return f"""- **PostgreSQL** {found["machine"]["postgres"]} with its default settings ran on the same machine and disk, over TCP. **bare** is a loop through
  psycopg: one `INSERT` of {found["step_record_bytes"]} bytes and `commit()`, {_rate(rates["pg_w1_bare"])} rows/s here. It takes turns with the steps of W1, 50 and 50;
  with W2 before and after. Against a single `INSERT` in autocommit, one round trip and the hardest comparison there is: W1
  {_rate(rates["pg_w1_autocommit_ratio"])} ×, W2 {_rate(rates["pg_w2_autocommit_ratio"])} ×.
- **W1 on PostgreSQL**: {_rate(rates["pg_w1_rate"])} steps/s. **W2 on PostgreSQL**: {_rate(rates["pg_w2_rate"])} steps/s, from the moment the worker looks to the end
  of the last run, claims included. {_rate(rates["pg_w2_entries_together"])} entries shared a transaction; a step took {_rate(rates["pg_w2_cpu_us"])} µs of CPU in the worker and {_rate(rates["pg_w2_server_us"])} µs in
  the server, {_rate(rates["pg_w2_log_bytes"])} bytes of its log and {_rate(rates["pg_w2_disk_bytes"])} bytes of its disk.
- **From `start` to the first step**, in another process that was idle: {_rate(rates["pg_latency_ms"])} ms; a bare commit in turn with it: {_rate(rates["pg_latency_commit_ms"])} ms.
{_newer(rates)}- **1,000 queued runs** of one step: {_rate(rates["pg_drain_rate"])} runs/s by 2 processes on this machine, 20 at once each. The less busy one did {100 * rates["pg_drain_share"]["median"]:.0f} %.
- **Idle workers** are processes of `surefoot worker`, watched for 20 s; memory is the highest since their start. The server's
  processes for the one on PostgreSQL took {_rate(rates["idle_server_cpu"])} % of a core.
"""


def _newer(rates: Mapping[str, dict[str, float]]) -> str:
    """What older figures do not have."""
    if "pg_again_ms" not in rates:
        return ""
    return f"""- **Killed and started again**: the new process has the store not yet open, and Python loaded. To its first new step:
  {_rate(rates["pg_again_ms"])} ms on PostgreSQL, {_rate(rates["pg_again_sqlite_ms"])} ms on SQLite. It needs no lease to run out: the lock of the dead process can be had.
- **`surefoot runs`** is a process, its start included; that of a Python that does nothing is taken off. CPU, counted alike:
  {_rate(rates["listing_sqlite_cpu_ms"])} ms on SQLite, {_rate(rates["listing_postgres_cpu_ms"])} ms on PostgreSQL.{_few(rates)}
"""


def _few(rates: Mapping[str, dict[str, float]]) -> str:
    if "listing_few_ms" not in rates:
        return ""
    return f"""
  With two runs in the store it takes {_rate(rates["listing_few_ms"])} ms on SQLite, counted alike: that is mostly imports."""


def scaling_block(found: Figures) -> str:
    """What a calculation starts from, and what it gives. See docs/scaling.md for how."""
    rates = found["rates"]
    if "pg_w1_rate" not in rates:
        return "Not measured yet: `make bench`."
    lines = {line["key"]: line for line in found["lines"]}
    machine = found["machine"]
    here = _table([
        ["measured", ""],
        ["commits of one connection, bare", f"{_rate(rates['pg_w1_bare'])} /s"],
        ["steps of one run", f"{_rate(rates['pg_w1_rate'])} /s"],
        ["steps of 200 runs in one worker", f"{_rate(rates['pg_w2_rate'])} /s"],
        ["entries that shared a transaction there", _rate(rates["pg_w2_entries_together"])],
        ["CPU of a step: worker, server", f"{_rate(rates['pg_w2_cpu_us'])} µs, {_rate(rates['pg_w2_server_us'])} µs"],
        ["log (WAL) and disk of a step", f"{_rate(rates['pg_w2_log_bytes'])} and {_rate(rates['pg_w2_disk_bytes'])} bytes"],
        ["`start` to first step, idle worker", f"{_rate(rates['pg_latency_ms'])} ms"],
        ["runs of one step, 2 workers", f"{_rate(rates['pg_drain_rate'])} /s"],
        ["idle worker, 10,000 runs asleep", f"{number(lines['idle_postgres_cpu']['median'])} % of a core, {number(lines['idle_postgres_mb']['median'])} MB"],
    ])  # fmt: skip
    return f"""Measured on {found["made"]}: {machine["cores"]} cores for workers and server together, {machine["system"]}, {machine["filesystem"]}, Python {machine["python"]},
PostgreSQL {machine["postgres"]} with its default settings. How: [performance](performance.md).

{here}

Calculated from it, not measured:

{_table([["cores of the server", "steps/s at most", "cores of workers for that", "log", "disk of a day"], *(_calculated(rates, cores) for cores in (2, 4, 8, 16))])}"""


LOAD = 0.7
"""How busy a server may be in a calculation: above that, waiting grows faster than work."""


def _calculated(rates: Mapping[str, dict[str, float]], cores: int) -> list[str]:
    of = {key: rates[f"pg_w2_{key}"]["median"] for key in ("server_us", "cpu_us", "log_bytes", "disk_bytes")}
    steps = LOAD * cores * 1e6 / of["server_us"]
    return [
        f"{cores}",
        _roughly(steps),
        f"{steps * of['cpu_us'] / 1e6 / LOAD:.0f}",
        f"{_roughly(steps * of['log_bytes'] / 1e6)} MB/s",
        f"{_roughly(steps * of['disk_bytes'] * 86_400 / 1e9)} GB",
    ]


def _roughly(value: float) -> str:
    """Two digits: it is a calculation."""
    return f"{float(f'{value:.2g}'):,.0f}"


def readme_block(found: Figures) -> str:
    """The comparison alone: what was promised and what came out is on the page of its own."""
    lines = {line["key"]: line for line in found["lines"]}
    return f"""{_table([_PEER_HEADINGS, _our_row(found, lines), *map(_peer_row, PEERS)])}

`ref` is a bare SQLite loop in the same minutes: one `INSERT` of the same size and a durable commit, {_rate(found["rates"]["ref"])} a second
here. The others were measured in {WHEN}, in runs of their own, each against a `ref` of the same kind: the ratios can be
compared, though not finely. All figures of surefoot, with what was promised: [performance](docs/performance.md)."""


_PEER_HEADINGS = [
    "one machine",
    "sequential steps/s ÷ ref",
    "resume after 1,000 steps",
    "fsyncs per step",
    "crash after an effect, before its record",
]


def _our_row(found: Figures, lines: Mapping[str, dict[str, Any]]) -> list[str]:
    fsyncs = found["fsyncs"].get("w1")
    return [
        "**surefoot, SQLite**",
        number(lines["w1"]["median"]),
        f"{_rate(found['rates']['w3_ms'])} ms",
        "not counted" if fsyncs is None else number(fsyncs["median"]),
        "in doubt: asks, or as declared",
    ]


def _peer_row(peer: Peer) -> list[str]:
    return [peer.name, f"{peer.steps_per_ref:g}", peer.resume, f"{peer.fsyncs_per_step:g}", peer.crash or "not tried"]


def _rate(spread: dict[str, float]) -> str:
    return number(spread["median"])
