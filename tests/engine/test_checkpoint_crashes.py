"""Checkpoints under real kills, real rivals and real growth."""

from __future__ import annotations

import logging
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import surefoot as sf
from surefoot.store.open import close_all

SAVER = """
    import sys
    import surefoot as sf

    ckpt = sf.Checkpoint("loop", store=sys.argv[1])
    state = ckpt.load() or {"n": 0, "log": []}
    while True:
        state["n"] += 1
        state["log"].append("entry %d " % state["n"] * 40)
        ckpt.save(state)
        print(state["n"], flush=True)
"""
KILLS = 6
RIVAL = """
    import sys
    import surefoot as sf

    ckpt = sf.Checkpoint("shared", store=sys.argv[1])
    ckpt.load()
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        print("saved", ckpt.save({"by": sys.argv[2]}), flush=True)
    except sf.Fenced:
        print("fenced", flush=True)
"""


@pytest.fixture(params=["sqlite", "file"])
def url(request, tmp_path):
    return {"sqlite": "sqlite:///runs.db", "file": (tmp_path / "files").as_uri()}[request.param]


def test_kills_at_random_moments_lose_nothing_that_was_acknowledged(program, url, caplog):
    """SIGKILL between any two instructions: what save() returned for is there, whole, without a fallback."""
    program.write(SAVER)
    dice = random.Random(11)
    acknowledged = 0
    for _ in range(KILLS):
        process = program.start(url)
        last = ""
        for _ in range(dice.randint(1, 25)):
            last = process.stdout.readline() or last
        for _ in range(dice.randint(0, 3000)):
            pass  # not always right after an acknowledgement
        os.kill(process.pid, signal.SIGKILL)
        with process:  # Not `communicate`: it forgets what `readline` has buffered.
            out, err = process.stdout.read(), process.stderr.read()
        lines = [line for line in (last + out).split("\n")[:-1] if line]
        assert lines, err
        acknowledged = int(lines[-1])

        caplog.clear()
        with caplog.at_level(logging.WARNING, "surefoot"):
            found = sf.Checkpoint("loop", store=url).load()
            close_all()
        assert acknowledged <= found["n"] <= acknowledged + 1
        assert found["log"] == [f"entry {n} " * 40 for n in range(1, found["n"] + 1)]
        assert [record.getMessage() for record in caplog.records] == []
    assert acknowledged >= KILLS
    if url.startswith("file:"):
        sf.Checkpoint("loop", store=url).load()
        left = [path.name for path in Path("files/loop").iterdir() if path.name.startswith(".tmp-")]
        assert len(left) <= 1, "each start removes what the one before it left"


def test_of_two_processes_that_save_one_is_fenced(program, url):
    """Both loaded the same generation: only one may say what comes after it."""
    first = sf.Checkpoint("shared", store=url)
    first.load()
    first.save({"by": "nobody"})
    close_all()
    program.write(RIVAL)
    rivals = [start(program, url, name) for name in ("a", "b")]
    assert ["ready\n"] * 2 == [rival.stdout.readline() for rival in rivals]

    for rival in rivals:
        rival.stdin.write("go\n")
        rival.stdin.flush()
    answers = [rival.communicate(timeout=50)[0].strip() for rival in rivals]

    assert sorted(answers) == ["fenced", "saved 2"]
    winner = "ab"[answers.index("saved 2")]
    assert sf.Checkpoint("shared", store=url).load() == {"by": winner}


def start(program, *args):
    return subprocess.Popen(
        [sys.executable, "app.py", *args],
        cwd=program.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip


def test_a_growing_state_costs_what_is_new():
    """R17, W4: 200 saves, 2 KB more each; whole copies would be 40 MB."""
    dice = random.Random(5)
    ckpt = sf.Checkpoint("agent", store="sqlite:///runs.db")
    ckpt.load()
    state = {"messages": []}
    unique = 0
    for n in range(200):
        text = "".join(dice.choices("abcdefghijklmnopqrstuvwxyz0123456789 ", k=2048))
        state["messages"].append({"role": "user", "n": n, "text": text})
        unique += len(text)
        ckpt.save(state)
    assert ckpt.load() == state
    close_all()

    on_disk = sum(path.stat().st_size for path in Path().glob("runs.db*") if not path.name.endswith("-shm"))

    assert on_disk <= 3 * unique, f"{on_disk / unique:.2f} times the unique bytes"
