"""The bench still measures, and judges as promised."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench import against, report
from bench.__main__ import Bench, rows
from bench.aims import LINES, Line
from tests.postgres import serving

ROOT = Path(__file__).resolve().parent.parent


def work(name, folder, *more, module="bench.work"):
    command = [sys.executable, "-W", "error", "-m", module, name, str(folder), *more]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=50, check=False)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", ["w1", "w1e", "w2", "w2b_waits", "w2b_threads"])
def test_rates_are_measured(name, tmp_path):
    """A bench that is only tried before a release is broken before a release."""
    assert work(name, tmp_path)["rate"] > 0


def test_many_runs_at_once_are_measured_by_run_and_by_process(tmp_path):
    """A mean per run would hide what the process needs for all of them together."""
    figures = work("crowd", tmp_path, "50")

    assert set(figures) == {"cpu_us", "mb", "before_mb", "rate"}
    assert figures["mb"] >= figures["before_mb"] > 0


def test_a_resume_is_measured_over_the_rows_that_were_recorded(tmp_path):
    """W3 compares with reading the same rows; they must be there, with steps of the size we speak of."""
    work("record", tmp_path)

    rows = work("read_rows", tmp_path)
    resumed = work("record", tmp_path)

    assert rows["rows"] >= 1000
    assert 200 < rows["body"] < 1000
    assert resumed["seconds"] > 0


@pytest.mark.parametrize("name", ["rehearsed", "rehearsed_async"])
def test_a_resume_is_measured_with_its_rehearsal_and_without(tmp_path, name):
    """Both in one run, in turn: what the machine does meanwhile hits both."""
    figures = work(name, tmp_path)

    assert set(figures) == {"ratio", "ms", "without_ms"}
    assert figures["ratio"] > 0


def test_the_bare_loop_and_the_lone_steps_are_measured(tmp_path):
    """The two sides of every ratio."""
    assert work("ref", tmp_path, "400")["rate"] > 0
    assert set(work("lone_step", tmp_path)) == {"blocking", "async"}


@pytest.mark.parametrize("name", ["agent_turn", "pydantic_turn"])
def test_a_turn_of_an_agent_is_measured_beside_the_same_without_us(name, tmp_path):
    """In one process and in turn: a ratio over two programs would measure the machine."""
    figures = work(name, tmp_path, module="bench.agents")

    assert set(figures) == {"ratio", "of_calls", "ms", "bare_ms", "calls_ms", "writes_ms", "cpu_ms", "calls_cpu_ms"}
    assert figures["bare_ms"] > 0
    assert figures["writes_ms"] > 0


def test_the_linter_is_measured_over_our_own_package_beside_parsing_alone(tmp_path):
    """Every rule runs: a linter that skips files would be quick."""
    figures = work("lint", tmp_path, module="bench.reading")

    assert figures["lines"] > 40_000
    assert figures["rate"] > 0
    assert figures["ratio"] > 1


def test_seals_are_switched_off_for_one_side_only(tmp_path):
    """The side without them must not be the one that is believed; the other has to be the real thing."""
    figures = work("seals", tmp_path, module="bench.trust")

    assert figures["ratio"] > 0
    assert work("verify", tmp_path / "sealed", module="bench.trust")["entries"] > 0
    with pytest.raises(AssertionError, match="seal"):
        work("verify", tmp_path / "bare", module="bench.trust")


def test_verifying_and_opening_are_measured_on_stores_that_hold_what_we_say(tmp_path):
    """Large values lie in parts, small ones in their records: both are read."""
    large, few = tmp_path / "large", tmp_path / "few"
    recorded = work("record_large", large, "2", module="bench.trust")
    work("record_few", few, module="bench.trust")

    assert 1_000_000 < recorded["bytes"] < 4_000_000
    assert work("verify", large, module="bench.trust")["rate"] > 0
    assert work("opening", few, str(large), module="bench.trust")["ratio"] > 0


@pytest.mark.parametrize("content", ["text", "base64"])
@pytest.mark.parametrize("variant", ["results", "argument", "checkpoint"])
def test_a_growing_state_costs_what_is_new(tmp_path, variant, content):
    """W4, short: 40 messages of 2 KB. Forty whole copies would be twenty times the content."""
    figures = work("w4", tmp_path, variant, content, "40", "7", module="bench.trust")

    assert 40 * 2_000 < figures["unique"] <= 40 * 2_048
    assert figures["bytes"] < 3 * figures["unique"] + work("empty", tmp_path / "empty", module="bench.trust")["bytes"]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.mark.parametrize("name", ["w1", "w2", "latency"])
def test_work_on_postgres_is_held_against_a_bare_loop(server, tmp_path, name):
    """Both sides of the ratio are taken in one process, in turns, on one server."""
    assert work(name, tmp_path, server.database(), "359", module="bench.fleet")["ratio"] > 0


def test_two_workers_are_asked_what_they_executed(server, tmp_path):
    """Zero duplicates is a claim about executions, so it is counted where they happen."""
    figures = work("drain", tmp_path, server.database(), "40", module="bench.fleet")

    assert 0 == figures["twice"]
    assert figures["rate"] > 0


def test_runs_that_were_laid_to_sleep_for_the_bench_are_real_ones(server, tmp_path):
    """They are copies. If a worker could not take them up, an idle worker would have an easy life."""
    figures = work("idle", tmp_path, server.database(), "20", "0.1", module="bench.fleet")

    assert {"postgres_cpu", "sqlite_cpu", "server_cpu", "postgres_mb", "sqlite_mb"} == set(figures)
    command = [sys.executable, "-m", "surefoot", "verify", "--json", "--store", f"sqlite:///{tmp_path / 'runs.db'}"]
    verified = subprocess.run(command, capture_output=True, text=True, timeout=50, check=True)
    assert 23 == json.loads(verified.stdout)["runs"]


def test_killed_runs_are_started_again_in_processes_of_their_own(server, tmp_path):
    """In the process that was killed nothing would have to be proven."""
    figures = work("again", tmp_path, server.database(), "1", module="bench.fleet")

    assert {"ratio", "ms", "sqlite_ms"} == set(figures)


def test_the_list_is_measured_beyond_the_start_of_python(server, tmp_path):
    """What is taken off is measured in turn with it, in the same minutes."""
    figures = work("listing", tmp_path, server.database(), "20", "1", module="bench.fleet")

    assert {"postgres_ms", "sqlite_ms", "postgres_cpu_ms", "sqlite_cpu_ms", "few_ms"} == set(figures)
    assert figures["sqlite_cpu_ms"] >= 0


def test_a_move_is_measured_over_reading_the_rows_and_a_raw_copy(server, tmp_path):
    figures = work("copied", tmp_path, server.database(), "5", "3", module="bench.fleet")

    assert set(figures) == {"ratio", "rate", "entries"}
    assert figures["entries"] > 15


def test_each_row_is_measured_by_one_piece_of_the_bench(tmp_path):
    """A row that no piece gives would stay empty for ever, and be noticed by nobody."""
    given = [keys for _, keys, _ in Bench(tmp_path, 1).pieces()]

    assert {line.key for line in LINES} == {key for keys in given for key in keys}


def test_a_row_can_be_measured_by_itself(tmp_path):
    """One change is looked at in a minute, not with everything else."""
    assert {"w2", "w2_cpu", "w2_fsyncs"} == rows(["W2"])
    assert ["w2", "w2", "fsyncs"] == [name for name, _, _ in Bench(tmp_path, 2, rows(["W2"])).pieces()]
    assert ["crowd"] == [name for name, _, _ in Bench(tmp_path, 1, rows(["crowd_mb"])).pieces()]
    with pytest.raises(SystemExit, match="no row is called 'w9'"):
        rows(["w9"])


def test_a_step_executed_twice_in_one_round_is_not_lost_in_a_median(tmp_path, monkeypatch):
    """Zero is a promise about all rounds."""
    bench, twice = Bench(tmp_path, 3), iter([0.0, 1.0, 0.0])
    monkeypatch.setattr(bench, "_on_server", lambda _: {"twice": next(twice)})
    for _ in range(3):
        bench._fleet("drain")

    assert [1.0] == bench.samples["pg_twice"]


def test_the_scaling_page_says_what_was_measured():
    """Its calculation starts from these figures; nobody edits them by hand."""
    page = (ROOT / "docs" / "scaling.md").read_text()
    figures = json.loads((ROOT / "docs" / "performance.json").read_text())

    assert page == report.fill(page, report.scaling_block(figures))


@pytest.mark.parametrize(
    ("median", "verdict"),
    [(0.9, "aim met"), (0.85, "aim met"), (0.8, "at least met"), (0.7, "at least met"), (0.69, "missed")],
)
def test_more_is_better_where_rates_are_compared(median, verdict):
    """The bounds themselves count as reached."""
    assert verdict == Line("w1", "", "× ref", 0.70, 0.85, more_is_better=True).verdict(median)


@pytest.mark.parametrize(
    ("median", "verdict"), [(2.5, "aim met"), (4.0, "at least met"), (4.1, "missed"), (None, "not measured")]
)
def test_less_is_better_where_times_are_compared(median, verdict):
    """What was not measured is never called met."""
    assert verdict == Line("w3", "", "×", 4, 2.5).verdict(median)


def test_a_line_with_one_bound_is_not_credited_with_the_other():
    """CPU per step has an aim and no lower bound; fsyncs per step have a bound and no aim."""
    assert "aim missed" == Line("w2_cpu", "", "µs", None, 35).verdict(36)
    assert "at least met" == Line("w2_fsyncs", "", "per step", 0.1, None).verdict(0.02)


def measured(**rates):
    """Figures of a bench that found nothing remarkable, but for these rates."""
    keys = (
        "pg_w1_rate", "pg_w1_bare", "pg_w1_autocommit_ratio", "pg_w2_rate", "pg_w2_autocommit_ratio", "pg_w2_cpu_us",
        "pg_w2_server_us", "pg_w2_log_bytes", "pg_w2_disk_bytes", "pg_w2_entries_together", "pg_latency_ms",
        "pg_latency_commit_ms", "pg_drain_rate", "pg_drain_share", "idle_server_cpu", "ref", "w1", "w1e", "w2", "w3_ms",
        "w3b_ms", "blocking_step_us", "async_step_us",
    )  # fmt: skip
    return report.figures(
        samples={line.key: [1.0] for line in LINES},
        rates={key: [rates.get(key, 1.0)] for key in keys},
        rounds=1,
        body_bytes=400,
        machine=dict.fromkeys(("cores", "system", "filesystem", "python", "sqlite", "postgres", "load"), "some"),
        made="2026-01-01",
    )


def test_calculated_fleets_follow_from_what_was_measured():
    """100 µs of a server's core for each step, at 70 %: 7,000 steps a second of each core, and all else from that."""
    page = report.scaling_block(
        measured(pg_w2_server_us=100.0, pg_w2_cpu_us=200.0, pg_w2_log_bytes=1000.0, pg_w2_disk_bytes=500.0)
    )

    assert "| 2 | 14,000 | 4 | 14 MB/s | 600 GB |" in page
    assert "| 16 | 110,000 | 32 | 110 MB/s | 4,800 GB |" in page


def test_postgres_is_spoken_of_only_where_it_was_measured():
    """A page made from older figures must not fail, nor invent."""
    found = measured()
    older = {**found, "rates": {key: value for key, value in found["rates"].items() if not key.startswith("pg_")}}

    assert "over TCP" in report.performance_page(found)
    assert "over TCP" not in report.performance_page(older)
    assert "Not measured yet" in report.scaling_block(older)


def test_new_figures_are_explained_where_they_were_measured():
    """What was not measured is not spoken of; what was says how."""
    keys = ("crowd_rate", "crowd_before_mb", "pg_again_ms", "pg_again_sqlite_ms", "listing_sqlite_cpu_ms")
    rates = {key: report._spread([7.0]) for key in (*keys, "listing_postgres_cpu_ms", "listing_few_ms")}
    found = measured()

    page = report.performance_page({**found, "rates": found["rates"] | rates})

    assert "10,000 runs of one step" in page
    assert "With two runs in the store it takes 7 ms" in page
    assert "10,000 runs of one step" not in report.performance_page(found)


def test_this_engine_is_measured_against_an_earlier_one_turn_by_turn(tmp_path):
    """The median of the turns counts: one slow moment of the machine does not decide."""
    assert against.rate("w1", ROOT, tmp_path) > 0
    assert list(tmp_path.iterdir()) == []

    slower, reached = against.told("w1", [(1000.0, 940.0), (1000.0, 100.0), (500.0, 470.0)])
    assert (slower.startswith("w1: 0.940 x before (from 0.100 to 0.940, 3 turns"), reached) == (True, False)
    _, reached = against.told("w1", [(1000.0, 960.0), (1000.0, 100.0), (500.0, 480.0)])
    assert reached
