"""Stores for the savers: memory, a file, and a real PostgreSQL."""

from __future__ import annotations

import itertools

import pytest

from surefoot.store.open import close_all
from tests import postgres

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    with postgres.serving(tmp_path_factory.mktemp("postgres")) as running:
        yield running


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def url(request, tmp_path):
    """An empty store of each kind."""
    match request.param:
        case "memory":
            found = "memory:"
        case "sqlite":
            found = f"sqlite:///{tmp_path}/threads.db"
        case _:
            found = request.getfixturevalue("server").emptied(f"threads_{next(_numbers)}")
    close_all()
    yield found
    close_all()


@pytest.fixture
def sqlite(tmp_path):
    yield f"sqlite:///{tmp_path}/threads.db"
    close_all()
