"""The bench still measures, and judges as promised."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.aims import Line

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


def test_a_resume_is_measured_over_the_rows_that_were_recorded(tmp_path):
    """W3 compares with reading the same rows; they must be there, with steps of the size we speak of."""
    work("record", tmp_path)

    rows = work("read_rows", tmp_path)
    resumed = work("record", tmp_path)

    assert rows["rows"] >= 1000
    assert 200 < rows["body"] < 1000
    assert resumed["seconds"] > 0


def test_the_bare_loop_and_the_lone_steps_are_measured(tmp_path):
    """The two sides of every ratio."""
    assert work("ref", tmp_path, "400")["rate"] > 0
    assert set(work("lone_step", tmp_path)) == {"blocking", "async"}


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
