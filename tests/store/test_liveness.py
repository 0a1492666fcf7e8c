"""Who is alive: certain, by locks that the operating system drops when a process ends, however it ends."""

from __future__ import annotations

import fcntl
import os
import signal
import stat

import pytest

from surefoot.errors import StoreUnavailable
from surefoot.store.liveness import Liveness

JOINED = """
store = open_here()
print(store.worker, flush=True)
sys.stdin.readline()
store.close()
print("left", flush=True)
sys.stdin.readline()
"""


def test_other_process_is_alive_until_it_is_killed(place):
    """A run is taken over at once when its claimant is dead, and never before."""
    child = place.child(JOINED)
    worker = child.stdout.readline().strip()
    store = place.open()

    assert store.alive(worker)
    assert store.alive(worker), "looking must not take the lock away"
    child.send_signal(signal.SIGKILL)
    child.wait()

    assert not store.alive(worker)


def test_stopped_process_is_alive(place):
    """A process that is only slow may go on at any moment."""
    child = place.child(JOINED)
    worker = child.stdout.readline().strip()
    store = place.open()
    child.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)

    assert store.alive(worker)


def test_closing_gives_the_identity_up(place):
    """A process may go on without its store."""
    child = place.child(JOINED)
    worker = child.stdout.readline().strip()
    store = place.open()
    assert store.alive(worker)

    child.stdin.write("\n")
    child.stdin.flush()
    child.stdout.readline()

    assert not store.alive(worker)
    assert list(place.workers.iterdir()) == []


READ_ALL = """
from pathlib import Path
store = open_here()
print(store.worker, flush=True)
for file in Path(path + "-workers").iterdir():
    file.read_bytes()
print("read", flush=True)
sys.stdin.readline()
"""

FORKED = """
store = open_here()
print(store.worker, flush=True)
if not os.fork():
    os.write(1, b"forked\\n")
    os.read(0, 1)  # until the test is over
    os._exit(0)
sys.stdin.readline()
"""


def test_process_that_reads_its_own_worker_file_is_alive(place):
    """Agents read every file of the folder they work in, which is where the store lies."""
    child = place.child(READ_ALL)
    worker = child.stdout.readline().strip()
    assert child.stdout.readline() == "read\n"

    assert place.open().alive(worker)


def test_forked_child_does_not_keep_its_dead_parent_alive(place):
    """A child inherits what its parent has open, and may outlive it by days."""
    child = place.child(FORKED)
    worker = child.stdout.readline().strip()
    assert child.stdout.readline() == "forked\n"
    store = place.open()
    assert store.alive(worker), "that the child let go must not unlock the parent's"

    child.send_signal(signal.SIGKILL)
    child.wait()

    assert not store.alive(worker)


def test_own_lock_survives_looking_at_oneself(place):
    """Nor is the own file swept when this process joins a second time."""
    store = place.open()
    worker = store.worker
    again = place.open()

    assert store.alive(worker)
    assert again.alive(worker)
    assert again.worker != worker

    assert place.run_child("print(open_here(create=False).alive(sys.argv[2]))", worker) == "True"


def test_worker_is_joined_only_when_asked_for(place):
    """Reading verbs leave no trace."""
    store = place.open()
    assert not place.workers.exists()

    assert store.worker

    assert [stat.S_IMODE(file.stat().st_mode) for file in place.workers.iterdir()] == [0o600]


def test_files_of_the_dead_are_swept_by_the_next_to_join(place):
    """A worker that crashes every minute must not fill the folder; the living are left alone."""
    alive, dead = place.child(JOINED), place.child(JOINED)
    names = [child.stdout.readline().strip() for child in (alive, dead)]
    dead.kill()
    dead.wait()

    store = place.open()
    mine = store.worker

    assert sorted(file.name for file in place.workers.iterdir()) == sorted([names[0], mine])
    assert store.alive(names[0])


def test_file_taken_by_a_sweeper_before_it_was_locked_is_made_again(tmp_path, monkeypatch):
    """Between making and locking a file, another process may take it for a dead one's."""
    folder = tmp_path / "workers"
    swept = []
    real = fcntl.flock

    def sweeping(fd, how):
        if how & fcntl.LOCK_EX and not swept:
            swept.extend(folder.iterdir())
            for file in swept:
                file.unlink()
        return real(fd, how)

    monkeypatch.setattr(fcntl, "flock", sweeping)
    liveness = Liveness(str(folder))

    name = liveness.join()

    assert len(swept) == 1
    assert [file.name for file in folder.iterdir()] == [name] != [swept[0].name]
    liveness.leave()


@pytest.mark.parametrize("name", ["../runs.db", "/etc/passwd", "ABCDEF0123456789", "0123456789abcdef\n", ""])
def test_name_that_no_worker_has_is_not_looked_for(place, name):
    """Worker ids come out of journals; they must not become paths."""
    store = place.open()
    assert store.worker

    assert not store.alive(name)


def test_what_cannot_be_told_is_not_guessed(tmp_path):
    """A link, or a file of somebody else: neither alive nor dead, but an error."""
    folder = tmp_path / "workers"
    folder.mkdir()
    (folder / "0123456789abcdef").symlink_to(tmp_path / "target")
    (tmp_path / "target").touch()

    with pytest.raises(StoreUnavailable, match="cannot tell"):
        Liveness(str(folder)).alive("0123456789abcdef")
