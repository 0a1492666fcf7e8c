"""The bench still measures, and judges as promised."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.aims import Line

ROOT = Path(__file__).resolve().parent.parent


def work(name, folder, *more):
    command = [sys.executable, "-W", "error", "-m", "bench.work", name, str(folder), *more]
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
