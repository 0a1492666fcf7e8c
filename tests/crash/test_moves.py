"""The way of every store that grows: from SQLite to PostgreSQL, and home again, with real kills on the way."""

from __future__ import annotations

import pytest

from surefoot.engine.upkeep.moving import Moved
from surefoot.engine.upkeep.verification import verify_store
from surefoot.store.open import close_all, open_store
from tests import moves
from tests.postgres import serving


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("pg")) as running:
        yield running
        close_all()


def sqlite(folder):
    return f"sqlite:///{folder}/runs.db"


def test_sqlite_to_postgresql_and_home_again(server, tmp_path):
    a, b, c = sqlite(tmp_path), server.database(), f"sqlite:///{tmp_path}/home.db"
    moves.fill(a)

    for source, target in ((a, b), (b, c)):
        assert all(isinstance(one, Moved) for one in moves.move(source, target))
        moves.refused(source)
        assert verify_store(open_store(source, create=False)).flaws == []
        assert verify_store(open_store(target, create=False)).flaws == []

    moves.finish(c)


@pytest.mark.timeout(180)
def test_killed_process_loses_nothing_and_has_nothing_twice(server, tmp_path):
    """A few of the points; `make proof` kills at every one, both ways."""
    (tmp_path / "counting").mkdir()
    many = moves.points(sqlite(tmp_path / "counting"), server.database())

    for number, point in enumerate((many // 3, many // 2, many - 2)):
        folder = tmp_path / str(number)
        folder.mkdir()
        moves.killed_at(point, sqlite(folder), server.database(), moves.kill_process)
