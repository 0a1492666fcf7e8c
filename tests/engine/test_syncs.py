"""Counted where the system is asked to sync: what is acknowledged is on disk."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from surefoot.store.open import open_store

COUNT = 30
APP = f"""
import sys
import surefoot as sf

@sf.step
def step(i):
    return i

@sf.effect
def effect(i):
    return i

@sf.workflow
def wf(kind):
    for i in range({COUNT}):
        (step if kind == "step" else effect)(i)

wf.run(sys.argv[1], sys.argv[1])
"""


def by_strace(folder: Path, kind: str) -> int:
    """Successful fsync and fdatasync calls of the whole process."""
    (folder / "app.py").write_text(APP)
    command = ["strace", "-f", "-e", "trace=fsync,fdatasync", "-o", "trace", sys.executable, "app.py", kind]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return len(re.findall(r"(?:fsync|fdatasync)\(\d+.*= 0", (folder / "trace").read_text()))


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed; `make proof` insists on it")
@pytest.mark.parametrize(("kind", "per_call"), [("step", 1), ("effect", 2)])
def test_every_acknowledged_call_was_synced(tmp_path, kind, per_call):
    """One sync per step, two per effect (intent and outcome), when they run alone."""
    assert by_strace(tmp_path, kind) >= COUNT * per_call


def test_the_settings_that_make_a_commit_durable_are_read_back(tmp_path, monkeypatch):
    """What strace counts is caused by these; they are asked of the backend, not assumed."""
    monkeypatch.chdir(tmp_path)
    store = open_store("sqlite:///runs.db", create=True)
    settings = store.durability()
    store.close()

    assert (settings["journal_mode"], settings["synchronous"]) == ("wal", "full")
