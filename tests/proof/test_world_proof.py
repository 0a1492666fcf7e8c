"""The world's claims with their full counts: files that are watched and written, rows that come with their marker."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
import time

import pytest

from tests.refactoring import kill_and_resume_refactor, kill_before_calls

pytestmark = [pytest.mark.proof, pytest.mark.timeout(1200)]


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_a_refactor_of_twenty_files_killed_two_hundred_times(tmp_path, report):
    """A run's own writes are never drift, and each file is right in the end."""
    tally = kill_and_resume_refactor(tmp_path, kills=200, seed=20261116)

    report(
        "20 files rewritten with effects.write_file, all watched, SIGKILL at 200 random moments",
        f"{tally.kills} kills in {tally.rounds} refactors, {tally.cut_off} of them inside a write; 0 reported as drift, "
        "every file right, 0 temporary files left",
    )


def test_files_killed_before_every_system_call(tmp_path, report):
    calls = kill_before_calls(tmp_path, every=1)

    report(
        "write_file, delete_file and both undos, SIGKILL before every single system call on a file",
        f"{calls} kills; every file right, 0 reported as drift, 0 temporary files left",
    )


ROWS = """
import surefoot as sf

@sf.transaction("sqlite:///app.db")
def put(db, x):
    db.execute("CREATE TABLE IF NOT EXISTS t (x)")
    db.execute("INSERT INTO t VALUES (?)", [x])
    return x

@sf.workflow
def wf(n):
    return sum(put(x) for x in range(n))

print("up", flush=True)
print(wf.run("r", 200))
"""


def test_two_hundred_rows_killed_a_hundred_times_are_each_there_once(tmp_path, report):
    (tmp_path / "app.py").write_text(ROWS)
    luck, kills = random.Random(7), 0
    while True:
        process = subprocess.Popen([sys.executable, "app.py"], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
        process.stdout.readline()
        if kills < 100:
            end = time.perf_counter() + 0.02 + luck.random() * 0.06
            while time.perf_counter() < end:
                pass
            process.kill()
        out, _ = process.communicate(timeout=120)
        if process.returncode != -signal.SIGKILL:
            break
        kills += 1
    db = sqlite3.connect("app.db")
    found = [row[0] for row in db.execute("SELECT x FROM t ORDER BY x")]
    db.close()

    assert (process.returncode, out.strip()) == (0, str(sum(range(200))))
    assert found == list(range(200))
    assert kills > 10
    report(
        "200 rows, each an @sf.transaction in SQLite, SIGKILL at random moments",
        f"{kills} kills; each row there exactly once, nobody was asked",
    )
