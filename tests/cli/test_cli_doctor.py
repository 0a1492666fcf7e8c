"""`surefoot doctor`: a verdict per line, what to do, and nothing left behind."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from surefoot.store.open import close_all
from surefoot.store.sqlite import probe

LEVELS = {"ok", "warn", "bad"}
ABOUT = {
    "store", "settings", "anchor", "clock", "sqlite", "file system", "sync", "locks", "space", "permissions", "log",
    "workers", "versions",
}  # fmt: skip


def verdicts(ended):
    return {one["what"]: one["verdict"] for one in ended.json["findings"]}


def test_a_healthy_place_is_said_to_be_one(cli, runs):
    """Everything was asked or tried out; whatever this machine's disk is, nothing may be bad."""
    ended = cli("doctor", "--json")

    assert ended.code == 0
    found = verdicts(ended)
    assert set(found) == ABOUT
    assert set(found.values()) <= {"ok", "warn"}
    for what in ("store", "settings", "anchor", "clock", "sqlite", "locks", "permissions", "log", "workers"):
        assert found[what] == "ok", what


def test_each_line_says_verdict_subject_and_finding(cli, runs):
    lines = cli("doctor").out.splitlines()

    assert lines[0].startswith("surefoot ")
    assert {line.split()[0] for line in lines[2:]} <= LEVELS
    assert any("journal_mode=wal, synchronous=full" in line for line in lines)


def test_the_probe_file_is_gone_afterwards(cli, runs, own_folder):
    close_all()
    before = sorted(path.name for path in (own_folder / ".surefoot").rglob("*"))

    cli("doctor")
    close_all()

    assert sorted(path.name for path in (own_folder / ".surefoot").rglob("*")) == before


def test_a_place_without_a_store_is_examined_and_none_is_made(cli, own_folder):
    """Before the first run is when people ask."""
    ended = cli("doctor", "--json")

    assert ended.code == 0
    assert verdicts(ended)["store"] == "warn"
    assert list(own_folder.iterdir()) == []


def test_a_store_that_does_not_open_is_bad_and_the_rest_is_still_examined(cli, runs, own_folder):
    close_all()
    (own_folder / ".surefoot/runs.db").write_bytes(b"")

    ended = cli("doctor", "--json")

    assert ended.code == 4
    found = verdicts(ended)
    assert found["store"] == "bad"
    assert {"locks", "sync", "space", "versions"} <= set(found)


def test_files_that_others_can_read_are_told(cli, runs, own_folder):
    path = own_folder / ".surefoot/runs.db"
    path.chmod(0o644)

    ended = cli("doctor", "--json")

    (told,) = [one for one in ended.json["findings"] if one["what"] == "permissions"]
    assert (told["verdict"], "644" in told["said"], told["do"]) == ("warn", True, f"chmod 600 {path}")


def test_a_damaged_slot_of_the_anchor_is_told_before_opening_heals_it(cli, runs, own_folder):
    close_all()
    anchor = own_folder / ".surefoot/runs.db-anchor"
    data = bytearray(anchor.read_bytes())
    data[20] ^= 1
    anchor.write_bytes(bytes(data))

    found = [one for one in cli("doctor", "--json").json["findings"] if one["what"] == "anchor"]

    assert [one["verdict"] for one in found] == ["warn", "ok"]


def test_files_of_dead_workers_are_counted(cli, runs, own_folder):
    workers = own_folder / ".surefoot/runs.db-workers"
    close_all()
    (workers / "0123456789abcdef").write_text("")

    told = next(one for one in cli("doctor", "--json").json["findings"] if one["what"] == "workers")

    assert told["said"] == "0 alive, 1 files of processes that are gone"


def test_a_store_in_memory_is_told_not_to_last(cli):
    ended = cli("doctor", "--store", "memory:", "--json")

    assert (ended.code, verdicts(ended)["durability"]) == (0, "warn")


def test_a_wrong_url_is_a_mistake(cli):
    assert cli("doctor", "--store", "nonsense").code == 2


# --- the probes themselves ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "level"),
    [
        ("3.6.23", "ok"), ("3.7.0", "bad"), ("3.40.1", "bad"), ("3.44.5", "bad"), ("3.44.6", "ok"), ("3.45.0", "bad"),
        ("3.50.6", "bad"), ("3.50.7", "ok"), ("3.51.0", "bad"), ("3.51.2", "bad"), ("3.51.3", "ok"), ("3.54.1", "ok"),
    ],
)  # fmt: skip
def test_versions_with_the_wal_reset_bug_are_bad(version, level):
    """Two processes could lose commits there, and nothing would say so."""
    assert probe.sqlite_version(version).level == level


@pytest.mark.parametrize(
    ("kind", "level"),
    [
        ("ext4", "ok"),
        ("xfs", "ok"),
        ("nfs4", "warn"),
        ("cifs", "warn"),
        ("fuse.sshfs", "warn"),
        ("tmpfs", "warn"),
        ("", "ok"),
    ],
)
def test_file_systems_that_promise_too_much_are_warned_of(kind, level):
    assert probe.file_system(kind).level == level


@pytest.mark.parametrize(
    ("seconds", "level"), [(0.0, "warn"), (0.001, "ok"), (0.2, "warn")], ids=["too quick", "right", "slow"]
)
def test_the_time_a_sync_takes_is_judged(monkeypatch, tmp_path, seconds, level):
    """A sync that costs nothing did nothing."""
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])

    def sync(_fd):
        now[0] += seconds

    with Path(tmp_path / "probe").open("w+b") as file:
        assert probe.synced(file.fileno(), sync).level == level


def test_a_disk_that_gives_back_something_else_is_bad(tmp_path):
    with Path(tmp_path / "probe").open("w+b") as file:
        found = probe.synced(file.fileno(), lambda fd: os.pwrite(fd, b"\0" * 64, 8))

    assert found.level == "bad"


def test_a_sync_that_fails_is_bad(tmp_path):
    def sync(_fd):
        raise OSError(5, "Input/output error")

    with Path(tmp_path / "probe").open("w+b") as file:
        assert probe.synced(file.fileno(), sync).level == "bad"


@pytest.mark.parametrize("kind", ["lockf", "flock"])
def test_a_lock_that_others_do_not_see_is_bad(tmp_path, monkeypatch, kind):
    """Two processes would drive one run."""
    path = tmp_path / "probe"
    with path.open("w+b") as file:
        assert probe._locked(str(path), file.fileno()).level == "ok"
        monkeypatch.setattr(probe.fcntl, kind, lambda *_: None)
        assert probe._locked(str(path), file.fileno()).level == "bad"


def test_a_clock_behind_the_newest_entry_is_told():
    assert probe.clock(0, 5).level == "ok"
    assert probe.clock(1_000_000_000, 1_000_000_000).level == "ok"
    assert probe.clock(1_000_000_000 + 60_000_000, 1_000_000_000).level == "warn"


def test_space_is_judged():
    plenty = 10**12
    assert probe.space(plenty, 10**6, 10**6).level == "ok"
    assert probe.space(10**9, 10**6, 2 * 10**9).level == "warn"
    assert probe.space(10**6, 10**6, 10**6).level == "bad"
    assert probe.space(plenty, 3, 10**6).level == "bad"
