"""Power cuts, on a disk that forgets what was not synced: an ext4 in a file, shut down in the middle. Root is needed.

`python -m pytest tests/suites/redis -m proof`.
"""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from surefoot.errors import JournalRegressed, SurefootError
from surefoot.store.channel import Waits
from surefoot.store.redis.address import read_address
from surefoot.store.redis.store import RedisStore
from surefoot.testing.conformance import Writer, assert_whole
from tests.redis import Server
from tests.working import wait_until

SHUTDOWN, WITHOUT_FLUSHING = 0x8004587D, 2
CUTS = 20
HURRY = Waits(silence=2.0, patience=0.5, connect=2)

pytestmark = [
    pytest.mark.proof,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(os.getuid() != 0, reason="only root can cut the power of a disk"),
]


class Disk:
    def __init__(self, folder: Path) -> None:
        self._image = folder / "disk.img"
        self.path = folder / "disk"
        self.path.mkdir()
        with self._image.open("wb") as file:
            file.truncate(96 * 2**20)
        subprocess.run(["mkfs.ext4", "-q", "-F", str(self._image)], check=True)

    def mount(self) -> None:
        subprocess.run(["mount", "-o", "loop", str(self._image), str(self.path)], check=True)

    def unmount(self) -> None:
        subprocess.run(["umount", str(self.path)], check=True)

    def cut(self) -> None:
        """From here on nothing is written, and what was not synced is gone."""
        handle = os.open(self.path, os.O_RDONLY)
        fcntl.ioctl(handle, SHUTDOWN, struct.pack("I", WITHOUT_FLUSHING))
        os.close(handle)


@contextmanager
def powered(tmp_path: Path, **settings: str) -> Iterator[tuple[Disk, Server]]:
    disk = Disk(tmp_path)
    disk.mount()
    server = Server(disk.path / "server", aof_load_truncated="yes", **settings)
    server.start()
    try:
        yield disk, server
    finally:
        server.stop()
        disk.unmount()


def hold(server: Server) -> None:
    """No sync is under way when the power goes. In the middle of one, this shutdown tells some of them that they succeeded:
    a loop of nothing but `write` and `fdatasync` lost its last one in 3 of 15 cuts."""
    assert server.process is not None
    server.process.send_signal(signal.SIGSTOP)
    tasks = Path(f"/proc/{server.process.pid}/task")
    wait_until(lambda: all("State:\tT" in (one / "status").read_text() for one in tasks.iterdir()))


def cut_under_load(disk: Disk, server: Server, url: str, run: str) -> int:
    """The power goes while somebody appends. How many appends were acknowledged."""
    store = RedisStore.open(read_address(url), create=True, waits=HURRY)
    writer, done = Writer(store, run), 0
    enough = threading.Event()

    def work() -> None:
        nonlocal done
        try:
            while store.append([writer.append(b"%d" % done)]) == [None]:
                done += 1
                if done > 50:
                    enough.set()
        except SurefootError:
            enough.set()

    thread = threading.Thread(target=work)
    thread.start()
    wait_until(enough.is_set, 60)
    hold(server)
    disk.cut()
    server.stop()
    thread.join()
    store.close()
    disk.unmount()
    disk.mount()
    server.start()
    return done


def test_power_cuts_lose_nothing_that_was_acknowledged(tmp_path):
    with powered(tmp_path) as (disk, server):
        for n in range(CUTS):
            done = cut_under_load(disk, server, server.url, f"run-{n}")

            store = RedisStore.open(read_address(server.url), create=False)
            found = store.read(f"run-{n}").records
            assert len(found) in (done, done + 1), "the last one may have been written, and not acknowledged"
            assert_whole(store, f"run-{n}", len(found))
            store.close()


def test_power_cut_of_a_careless_server_is_told(tmp_path):
    """The negative control: forced to accept `everysec`, the store loses, and says so."""
    regressed = 0
    with powered(tmp_path, appendfsync="everysec") as (disk, server):
        for n in range(4):
            url = server.url_of(f"s{n}", durability="none")
            done = cut_under_load(disk, server, url, "r")
            try:
                store = RedisStore.open(read_address(url), create=False)
            except JournalRegressed:
                regressed += 1
                continue
            assert len(store.read("r").records) >= done
            store.close()

    assert regressed
