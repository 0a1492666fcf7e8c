"""Servers for the whole suite."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cluster import Cluster
from stage import Place, at, place_of

from tests.ledger import ledger_process
from tests.postgres import Server, serving


@pytest.fixture(scope="session")
def cluster(tmp_path_factory) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("temporal"))
    made.start()
    yield made
    made.kill()


@pytest.fixture(scope="session")
def database(tmp_path_factory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("pg")) as server:
        yield server


@pytest.fixture
def ledger(monkeypatch) -> Iterator[int]:
    with ledger_process() as port:
        monkeypatch.setenv("LEDGER", str(port))
        yield port


@pytest.fixture
def temporal(request, tmp_path, ledger) -> Iterator[Place]:
    """This process works with Temporal, on PostgreSQL."""
    options = getattr(request, "param", {})
    with at(place_of("Temporal", tmp_path, request.getfixturevalue, **options)) as where:
        yield where
