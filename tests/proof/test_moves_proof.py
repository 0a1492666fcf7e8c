"""Moves between stores, killed with SIGKILL before and after every request to source and target, both ways."""

from __future__ import annotations

import itertools

import pytest

from surefoot.store.open import close_all
from tests import moves
from tests.postgres import serving

pytestmark = pytest.mark.proof


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("pg")) as running:
        yield running
        close_all()


@pytest.fixture
def places(server, tmp_path):
    """A new place of each kind, as often as it is asked for."""
    numbers = itertools.count()
    return {
        "sqlite": lambda: f"sqlite:///{tmp_path}/{next(numbers)}.db",
        "postgresql": server.database,
    }


@pytest.mark.parametrize(
    ("source", "target"), [("sqlite", "postgresql"), ("postgresql", "sqlite"), ("sqlite", "sqlite")]
)
def test_killed_at_every_point_nothing_is_lost_and_nothing_is_twice(places, source, target):
    many = moves.points(places[source](), places[target]())

    for point in range(many):
        moves.killed_at(point, places[source](), places[target](), moves.kill_process)
        close_all()
