"""A refactor of twenty files with `write_file`, killed at random moments and resumed, with every file watched; and
writing, deleting and undoing, killed before one system call after the other.

What the run itself wrote must never be called drift, also when the crash fell between a write and its record.
"""

from __future__ import annotations

import os
import random
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

FILES = 20
SOURCE = """
import sys
import surefoot as sf
from surefoot import effects, witness

@sf.step
def propose(name):
    return open(f"src/{name}").read().upper() * 20

@sf.workflow(watch=[witness.files("src/*"), witness.files("src/.*")])
def refactor(round):
    for number in range(20):
        name = f"f{number:02}.txt"
        effects.write_file(f"src/{name}", f"{round}: {propose(name)[:2000]}")
    effects.delete_file("src/obsolete.txt")
    return round

if __name__ == "__main__":
    round = int(sys.argv[1])
    print("up", flush=True)
    print(refactor.run(f"r{round}", round))
"""


class Tally:
    """What a series of kills came to."""

    def __init__(self) -> None:
        self.kills = 0
        self.rounds = 0
        self.cut_off = 0
        """Kills that left a write in doubt, to be settled by its check."""


def kill_and_resume_refactor(folder: Path, *, kills: int, seed: int) -> Tally:
    luck = random.Random(seed)
    (folder / "app.py").write_text(SOURCE)
    (folder / "src").mkdir()
    for number in range(FILES):
        (folder / "src" / f"f{number:02}.txt").write_text(f"text {number}\n" * 50)
    tally = Tally()
    while tally.kills < kills:
        tally.rounds += 1
        (folder / "src" / "obsolete.txt").write_text("old")
        _one_round(folder, tally, kills, luck)
        _check(folder, tally.rounds)
    return tally


def _one_round(folder: Path, tally: Tally, kills: int, luck: random.Random) -> None:
    """One refactor, killed until it comes through."""
    while True:
        process = subprocess.Popen(
            [sys.executable, "app.py", str(tally.rounds)],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        process.stdout.readline()
        if tally.kills < kills:
            _spin(luck.random() * 0.3)
            process.kill()
        out, err = process.communicate(timeout=60)
        if process.returncode == -signal.SIGKILL:
            tally.kills += 1
            tally.cut_off += bool(_temporaries(folder))
            continue
        assert process.returncode == 0, f"round {tally.rounds}: {err}"
        assert out.strip() == str(tally.rounds)
        return


def _check(folder: Path, rounds: int) -> None:
    names = sorted(path.name for path in (folder / "src").iterdir())
    assert names == [f"f{number:02}.txt" for number in range(FILES)], "every file, no temporary, nothing else"
    for number, name in enumerate(names):
        assert (folder / "src" / name).read_text().startswith(f"{rounds}: "), number


def _temporaries(folder: Path) -> list[Path]:
    return [path for path in (folder / "src").iterdir() if path.name.endswith(".surefoot-tmp")]


def _spin(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


CALLS = """
import os, signal
import surefoot as sf
from surefoot import effects, witness
from surefoot.engine.effects import files

left = [int(os.environ.get("CALLS", "1000"))]

def counted(real):
    def call(*args, **kwargs):
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1
        return real(*args, **kwargs)
    return call

class Os:
    def __getattr__(self, name):
        found = getattr(os, name)
        return counted(found) if name in ("open", "write", "fchmod", "fsync", "close", "rename", "unlink") else found

files.os = Os()

@sf.workflow(watch=[witness.files("*.txt"), witness.files(".*")])
def wf():
    done = [effects.write_file("a.txt", "new"), effects.delete_file("b.txt")]
    try:
        with sf.saga():
            effects.write_file("c.txt", "to be undone")
            effects.delete_file("d.txt")
            raise ValueError
    except ValueError:
        return done[1]

print(wf.run("r"))
print("calls", 1000 - left[0])
"""


def kill_before_calls(folder: Path, *, every: int) -> int:
    """Kill a writer before its first, second, third … system call on a file; resume; look at everything."""
    (folder / "app.py").write_text(CALLS)
    _prepare(folder)
    whole = _writer(folder)
    assert whole.returncode == 0, whole.stderr
    numbers = range(0, int(whole.stdout.split()[-1]), every)
    for number in numbers:
        (folder / ".surefoot").rename(folder / f"store-{number}")
        _prepare(folder)
        assert _writer(folder, CALLS=str(number)).returncode == -signal.SIGKILL
        done = _writer(folder)
        assert done.returncode == 0, (number, done.stderr)
        assert done.stdout.startswith("True\n")
        found = {path.name: path.read_text() for path in folder.glob("*.txt")}
        assert found == {"a.txt": "new", "c.txt": "old c", "d.txt": "old d"}, number
        assert all(stat.S_IMODE(path.stat().st_mode) == 0o640 for path in folder.glob("*.txt")), number
        assert not list(folder.glob("*.surefoot-tmp")), number
    return len(numbers)


def _prepare(folder: Path) -> None:
    for name in ("a", "b", "c", "d"):
        (folder / f"{name}.txt").write_text(f"old {name}")
        (folder / f"{name}.txt").chmod(0o640)


def _writer(folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "app.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
