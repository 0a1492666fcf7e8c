"""Code that reads every file of the working folder does not take away the locks of the store that lies there."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from surefoot.errors import SurefootError
from surefoot.store.sqlite import guard

AGENT = """
import sys
from pathlib import Path
import surefoot as sf

@sf.step
def read_project():
    for file in Path().rglob("*"):
        if file.is_file():
            file.read_bytes()

@sf.effect(in_flight="0s")
def transfer(amount):
    print("transferring", flush=True)
    sys.stdin.readline()
    with open("ledger", "a") as ledger:
        ledger.write("transfer\\n")
    return amount

@transfer.check
def _(amount):
    return sf.happened(amount) if Path("ledger").exists() else sf.not_happened()

@sf.workflow
def job():
    read_project()
    return transfer(100)

print(job.run("job-1"), flush=True)
"""

OPENINGS = {
    "read": lambda path: path.read_bytes(),
    "write": lambda path: path.open("r+b"),
    "by number": lambda path: os.open(path, os.O_RDONLY),
    "bytes": lambda path: open(os.fsencode(path), "rb"),  # noqa: SIM115 - it raises
    "copy": lambda path: shutil.copyfile(path, path.parent / "copy"),
    "sqlite3": lambda path: sqlite3.connect(path),  # noqa: PLW0108 - by its name
    "sqlite3 by URI": lambda path: sqlite3.connect(f"file:{path}?mode=ro", uri=True),
}


@pytest.fixture(autouse=True)
def nobody_told(monkeypatch):
    monkeypatch.setattr(guard, "_told", set())


@pytest.mark.parametrize("how", OPENINGS)
@pytest.mark.parametrize("suffix", ["", "-shm"])
def test_whoever_opens_what_an_open_store_has_locked_is_told_once(place, how, suffix, caplog):
    """Closing it again drops SQLite's locks. The warning names the file, the store and the way to a copy."""
    store = place.open()
    path = Path(f"{place.path}{suffix}")
    caplog.clear()

    for _ in range(2):
        opened = OPENINGS[how](path)
        os.close(opened) if isinstance(opened, int) else getattr(opened, "close", bool)()

    (told,) = (record.getMessage() for record in caplog.records)
    assert told.startswith(f"{path} was opened by this program while it has the store {place.path} open.")
    assert "surefoot backup" in told
    store.close()
    OPENINGS["read"](place.path)
    assert len(caplog.records) == 1


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_file_counts_and_not_the_name_it_is_opened_by(place, link, caplog):
    """Locks belong to the file. A copy made of hard links is read like any other folder."""
    place.open()
    link(place.path, place.path.parent / "other")

    (place.path.parent / "other").read_bytes()

    assert "other was opened by this program" in caplog.text


def test_other_files_are_opened_as_before(place, tmp_path, caplog):
    """Another file of the same name, the files of the store that carry no such locks, and what does not exist."""
    place.open()
    caplog.clear()
    other = tmp_path / "runs.db"
    other.write_bytes(b"mine")

    assert other.read_bytes() == b"mine"
    assert place.anchor.read_bytes()
    with pytest.raises(FileNotFoundError):
        (tmp_path / "runs.db-shm").read_bytes()
    sqlite3.connect(":memory:").close()
    assert caplog.records == []


def test_nothing_is_guarded_once_its_store_is_closed(place):
    """A process that opens one store after another must not collect them."""
    before = list(guard._guarded)
    place.open().close()
    place.open().abandon()
    place.path.write_bytes(b"no database")
    with pytest.raises(SurefootError):
        place.open()

    assert guard._guarded == before


@pytest.fixture
def agent(tmp_path):
    """Starts the agent in one and the same folder; what it writes, to either stream, comes out of one."""
    started = []

    def start() -> subprocess.Popen[str]:
        started.append(
            subprocess.Popen(
                [sys.executable, "-c", AGENT],
                cwd=tmp_path,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        )
        return started[-1]

    yield start
    for process in started:
        with process:
            process.kill()


def test_agent_that_reads_its_folder_does_its_effect_once(agent, tmp_path):
    """The second process must see that the first one lives, whatever files that one has opened and closed."""
    first = agent()
    assert "transferring\n" in iter(first.stdout.readline, "")
    second = agent()
    told = second.stdout.readline()

    said, _ = first.communicate("\n")
    also_said, _ = second.communicate("\n")

    assert "waiting for worker" in told
    assert f"(pid {first.pid})" in told
    assert (said, also_said) == ("100\n", "100\n")
    assert (tmp_path / "ledger").read_text() == "transfer\n"
