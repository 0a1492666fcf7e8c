"""A worker's numbers as text for Prometheus, and the small server that returns them.

Written by hand: the format is a few lines, the counting has to be ours because of its cost
(`engine/process/meters.py`), and every worker can be watched without installing anything. A scrape costs the worker
nothing: the store's counts are read in a thread of their own, and a store that is slow or away makes a scrape shorter,
not longer.
"""

from __future__ import annotations

import logging
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, NamedTuple, Self

from surefoot.engine.process.meters import MICROS, meters
from surefoot.engine.worker.worker import Worker
from surefoot.errors import UsageError

log = logging.getLogger("surefoot")
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
PATIENCE_SECONDS: Final = 2.0
"""How long a scrape waits for the store. Prometheus itself gives up after ten seconds."""
SHARE: Final = 20
"""Counting takes at most one part in this many of the store's time, however often it is requested."""
CLIENT_SECONDS: Final = 5.0
TIME_BOUNDS: Final = {bits: 2**bits / MICROS for bits in range(6, 25)}
"""From 64 µs to 17 s: shorter transactions are no trouble, and longer ones are all alike."""
ENTRY_BOUNDS: Final = {bits: 2**bits - 1 for bits in range(1, 11)}

Sample = tuple[str, Mapping[str, str], float]
"""The suffix of the family's name, labels, value."""


class Family(NamedTuple):
    name: str
    kind: str
    help: str
    samples: Sequence[Sample]


# --- the numbers -----------------------------------------------------------------------------------------


def families(worker: Worker, tally: Mapping[tuple[str, str], int] | None) -> Iterator[Family]:
    """`tally`: the store's counts; None: the store does not answer."""
    yield _one("store_up", "gauge", "Whether the store answers.", int(tally is not None))
    runs = [("", {"status": status, "reason": reason}, n) for (status, reason), n in sorted((tally or {}).items())]
    yield Family("runs", "gauge", "Runs in the store, by status and by the first reason why they stand still.", runs)
    yield _one("worker_runs", "gauge", "Runs that this worker drives now.", len(worker.busy))
    yield _one("worker_concurrency", "gauge", "Runs that this worker may drive at once.", worker.concurrency)
    ended = [("", {"how": how}, n) for how, n in sorted(worker.ended.copy().items())]
    yield Family("runs_ended_total", "counter", "Runs this worker took up and drives no more, by how it ended.", ended)
    yield Family(
        "append_seconds", "histogram", "How long the store took for a transaction of entries.",
        _buckets(meters.append_bits, TIME_BOUNDS, meters.append_seconds),
    )  # fmt: skip
    yield Family(
        "append_entries", "histogram", "How many entries shared a transaction.",
        _buckets(meters.entry_bits, ENTRY_BOUNDS, meters.entries),
    )  # fmt: skip
    yield _one("append_failures_total", "counter", "Transactions that failed.", meters.failed_appends)
    unwritten = worker.runtime.committer.unwritten()
    yield _one("unwritten_entries", "gauge", "Entries that were handed over and are not on disk yet.", unwritten)
    yield _one("retries_total", "counter", "Attempts at a call after the first.", meters.retries)
    alerts = [("", {"kind": kind}, n) for kind, n in sorted(meters.alerts.copy().items())]
    yield Family("alerts_total", "counter", "What people were told of: stops, fallbacks, drift.", alerts)
    for name, value in sorted(worker.runtime.store.vitals().items()):
        yield _one(*_VITALS[name], value)


_VITALS: Final = {
    "lease_losses": ("lease_losses_total", "counter", "How often the lease of this process ran out."),
    "lease_renewals": ("lease_renewals_total", "counter", "How often it was renewed."),
    "clock_difference_seconds": ("clock_difference_seconds", "gauge", "This machine's clock less the store's."),
}


def _one(name: str, kind: str, about: str, value: float) -> Family:
    return Family(name, kind, about, [("", {}, value)])


def _buckets(by_bits: list[int], bounds: Mapping[int, float], total: float) -> list[Sample]:
    """Cumulative, as the format requires."""
    counts = by_bits.copy()
    return [
        *(("_bucket", {"le": repr(bound)}, sum(counts[: bits + 1])) for bits, bound in bounds.items()),
        ("_bucket", {"le": "+Inf"}, sum(counts)),
        ("_sum", {}, total),
        ("_count", {}, sum(counts)),
    ]


# --- the text --------------------------------------------------------------------------------------------


def text(found: Iterable[Family]) -> str:
    lines: list[str] = []
    for family in found:
        name = f"surefoot_{family.name}"
        lines += [f"# HELP {name} {family.help}", f"# TYPE {name} {family.kind}"]
        lines += [f"{name}{more}{_labels(labels)} {value!r}" for more, labels, value in family.samples]
    return "\n".join(lines) + "\n"


def _labels(labels: Mapping[str, str]) -> str:
    pairs = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return f"{{{pairs}}}" if pairs else ""


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


# --- the server ------------------------------------------------------------------------------------------


class Exposition:
    """Serves the numbers of a worker over HTTP until it is closed."""

    def __init__(self, worker: Worker, host: str, port: int) -> None:
        self._worker = worker
        self._tally = _Tally(worker)
        try:
            self._server = _Server(self, host, port)
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or error
            raise UsageError(f"metrics cannot be served on {host}:{port}: {why}. Choose another place.") from None
        self.port: int = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, name="surefoot-metrics", daemon=True).start()

    def text(self) -> str:
        return text(families(self._worker, self._tally.get()))

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Tally:
    """The store's counts, read in a thread of their own: one request at a time, and not too often."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._lock = threading.Lock()
        self._asking: threading.Thread | None = None
        self._found: dict[tuple[str, str], int] | None = None
        self._again = 0.0

    def get(self) -> dict[tuple[str, str], int] | None:
        with self._lock:
            asking = self._asking
            if asking is None or (not asking.is_alive() and time.monotonic() >= self._again):
                asking = self._asking = threading.Thread(target=self._ask, name="surefoot-tally", daemon=True)
                asking.start()
        asking.join(PATIENCE_SECONDS)
        return None if asking.is_alive() else self._found

    def _ask(self) -> None:
        began = time.monotonic()
        try:
            self._found = self._worker.runtime.store.tally()
        except Exception:  # noqa: BLE001 - whatever is wrong with the store, the worker itself says so
            self._found = None
        self._again = time.monotonic() + SHARE * (time.monotonic() - began)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, exposition: Exposition, host: str, port: int) -> None:
        self.exposition = exposition
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        """Bind without asking the network for the name of this machine, which can take seconds."""
        socketserver.TCPServer.server_bind(self)

    def handle_error(self, request: Any, client_address: Any) -> None:
        error = sys.exception()
        if not isinstance(error, OSError):  # The client may hang up.
            log.warning("metrics: a scrape failed", exc_info=error)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = CLIENT_SECONDS

    def do_GET(self) -> None:
        if self.path.partition("?")[0] not in ("/metrics", "/"):
            self.send_error(404)
            return
        body = self.server.exposition.text().encode()
        self.send_response(200)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def version_string(self) -> str:
        return "surefoot"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the base class's
        """No log line for each scrape."""
