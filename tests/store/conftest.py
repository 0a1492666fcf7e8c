"""Places for stores: the files of a SQLite one and child processes that use it, and a real PostgreSQL server."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from surefoot.core.urls import parse
from surefoot.store.channel import Waits
from surefoot.store.postgres.store import PostgresStore
from surefoot.store.sqlite.store import SqliteStore
from surefoot.testing.conformance import Writer
from tests.postgres import Server, serving

CHILD = """
import os, signal, sys
from surefoot.errors import *
from surefoot.store.contract import *
from surefoot.store.open import open_store
from surefoot.store.sqlite.store import SqliteStore
from surefoot.testing.conformance import Writer, assert_whole
path = sys.argv[1]
def open_here(**more):
    return SqliteStore.open(path, **({"create": True, "url": "sqlite:///" + path} | more))
"""


class Place:
    def __init__(self, folder: Path) -> None:
        self.path = folder / "runs.db"
        self.anchor = folder / "runs.db-anchor"
        self.wal = folder / "runs.db-wal"
        self.workers = folder / "runs.db-workers"
        self.said: list[str] = []
        self._stores: list[SqliteStore] = []
        self._children: list[subprocess.Popen[str]] = []

    def open(self, **more: Any) -> SqliteStore:
        options = {"create": True, "url": f"sqlite:///{self.path}", "announce": self.said.append} | more
        store = SqliteStore.open(str(self.path), **options)
        self._stores.append(store)
        return store

    def fill(self, *runs: str, count: int = 5) -> None:
        """Make a store with these runs, and close it."""
        store = self.open()
        for run in runs or ("r",):
            writer = Writer(store, run)
            for n in range(count):
                store.append([writer.append(b'{"n":%d}' % n)])
        store.close()

    def copy_to(self, folder: Path) -> Place:
        """The files as they are now, open or not. (The process that has them open is never this one's copy.)"""
        folder.mkdir()
        for file in self.path.parent.glob("runs.db*"):
            if file.is_file() and not file.name.endswith("-shm"):
                # In a child: this process must not open, and so close, a file that SQLite has open here.
                subprocess.run(["cp", str(file), str(folder)], check=True)
        return Place(folder)

    def child(self, code: str, *arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", CHILD + code, str(self.path), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        self._children.append(process)
        return process

    def run_child(self, code: str, *arguments: str) -> str:
        process = self.child(code, *arguments)
        said, _ = process.communicate()
        assert process.returncode == 0, said
        return said.strip()

    def clear_up(self) -> None:
        for store in self._stores:
            store.close()
        for process in self._children:
            process.kill()
            process.communicate()


@pytest.fixture
def place(tmp_path: Path):
    folder = tmp_path / "place"
    folder.mkdir()
    made = Place(folder)
    yield made
    made.clear_up()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("server")) as started:
        yield started


@pytest.fixture
def url(server: Server) -> str:
    return server.emptied("story")


@pytest.fixture
def opened(url: str) -> Iterator[Callable[..., PostgresStore]]:
    """Opens stores, and closes them."""
    stores: list[PostgresStore] = []

    def open_(where: str = url, *, create: bool = True, **waits: float) -> PostgresStore:
        stores.append(PostgresStore.open(parse(where, ["postgresql"]), create=create, waits=Waits(**waits)))
        return stores[-1]

    yield open_
    for store in stores:
        store.close()
