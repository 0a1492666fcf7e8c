"""The store in Redis beside what its server can do at best, in one run. `python -m bench.redis URL` prints figures as JSON.

The server syncs every write (`appendfsync always`). XADD of a body of like size is the bare reference: by one client, and
by 200 that have all sent before the first answer is read, so that their writes share a sync as those of a batch do. Both
sides take short turns.
"""

from __future__ import annotations

import json
import os
import socket
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from time import perf_counter

from bench.work import Figures
from surefoot.core.seal import GENESIS, Record, Sealer
from surefoot.store.contract import Extend, Head, Store
from surefoot.store.open import open_store
from surefoot.store.redis.address import Address, read_address

BODY = b"x" * 300
RUNS = 200
TURNS = 5
ALONE, TOGETHER, READS, ENTRIES = 200, 5, 100, 50


class Writer:
    def __init__(self, store: Store, run: str) -> None:
        self._sealer = Sealer(store.id, run)
        self.run = run
        self._record: Record | None = None

    def next(self) -> Extend:
        before = self._record
        seq, seal = (before.seq, before.seal) if before is not None else (0, GENESIS)
        self._record = self._sealer.seal(seq=seq + 1, epoch=1, at=1, kind=21, body=BODY, previous=seal)
        return Extend(self.run, Head(seq, seal) if before is not None else None, [self._record])


class Bare:
    """So many clients without a library."""

    def __init__(self, address: Address, clients: int) -> None:
        self._sockets = [socket.create_connection((address.host, address.port)) for _ in range(clients)]
        for each in self._sockets:
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def write(self, times: int) -> None:
        words = (b"XADD", b"bench:bare", b"*", b"body", BODY)
        command = b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)
        for _ in range(times):
            for each in self._sockets:
                each.sendall(command)
            for each in self._sockets:
                if not each.recv(4096).startswith(b"$"):
                    raise AssertionError("the reference loop was refused")

    def close(self) -> None:
        for each in self._sockets:
            each.close()


def measured(url: str) -> Figures:
    address, store = read_address(url), open_store(url, create=True)
    alone, many = Writer(store, f"alone-{os.getpid()}"), [Writer(store, f"r{os.getpid()}-{n}") for n in range(RUNS)]
    one, crowd = Bare(address, 1), Bare(address, RUNS)

    def append_alone() -> None:
        for _ in range(ALONE):
            _granted(store.append([alone.next()]))

    def append_together() -> None:
        for _ in range(TOGETHER):
            _granted(store.append([writer.next() for writer in many]))

    read = Writer(store, f"read-{os.getpid()}")
    _granted([answer for _ in range(ENTRIES) for answer in store.append([read.next()])])
    rates = _rates(
        {
            "append": (append_alone, ALONE),
            "xadd": (lambda: one.write(ALONE), ALONE),
            "append_200": (append_together, TOGETHER * RUNS),
            "xadd_200": (lambda: crowd.write(TOGETHER), TOGETHER * RUNS),
            "read_50": (lambda: [store.read(read.run) for _ in range(READS)], READS),
            "fdatasync": (lambda: _sync(ALONE), ALONE),
        }
    )
    for bare in (one, crowd):
        bare.close()
    return {
        **rates,
        "append_to_xadd": rates["append"] / rates["xadd"],
        "append_200_to_xadd_200": rates["append_200"] / rates["xadd_200"],
    }


def _granted(answers: Sequence[object]) -> None:
    if any(answer is not None for answer in answers):
        raise AssertionError("an append was refused")


def _rates(works: dict[str, tuple[Callable[[], object], int]]) -> dict[str, float]:
    """The median rate of each, a turn of each after the other."""
    found: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(TURNS + 1):
        for name, (work, count) in works.items():
            started = perf_counter()
            work()
            if turn:  # the first one warms up
                found[name].append(count / (perf_counter() - started))
    return {name: statistics.median(rates) for name, rates in found.items()}


def _sync(times: int) -> None:
    with tempfile.TemporaryFile(dir=".") as file:
        for _ in range(times):
            file.write(BODY)
            file.flush()
            os.fdatasync(file.fileno())


if __name__ == "__main__":
    print(json.dumps(measured(sys.argv[1]), indent=2))
