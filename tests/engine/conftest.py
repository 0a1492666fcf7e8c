"""What the engine's tests share: a store in a fresh folder, and a ledger that knows what really ran."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path

import pytest

import surefoot as sf
from surefoot.store.open import close_all


@pytest.fixture(autouse=True)
def _fresh_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Each test has a folder and a store of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SUREFOOT_STORE", raising=False)
    yield
    close_all()


class Ledger:
    """The world: one line per execution, appended by whatever really ran."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, line: object) -> None:
        with self.path.open("a") as file:
            file.write(f"{line}\n")

    @property
    def lines(self) -> list[str]:
        return self.path.read_text().splitlines() if self.path.exists() else []

    @property
    def counts(self) -> Counter[str]:
        return Counter(self.lines)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger")


class Program:
    """A Python program in a file of its own, run as a real process that may be killed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, source: str, name: str = "app.py") -> None:
        (self.folder / name).write_text(textwrap.dedent(source))

    def start(self, *args: str, name: str = "app.py", **env: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, name, *args],
            cwd=self.folder,
            env={**os.environ, **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *args: str, name: str = "app.py", **env: str) -> subprocess.CompletedProcess[str]:
        process = self.start(*args, name=name, **env)
        out, err = process.communicate(timeout=50)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


@pytest.fixture
def kinds():
    """The kinds of the entries of a run, in order."""

    def of(run_id: str) -> list[str]:
        return [entry.kind for entry in sf.get_run(run_id).entries()]

    return of
