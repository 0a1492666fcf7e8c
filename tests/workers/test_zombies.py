"""A worker that is silent in the middle of an effect is not dead: the short version of the proof."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.postgres import Server, serving
from tests.zombies import Haunted, haunted

pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="module")
def crew(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Haunted]:
    folder = tmp_path_factory.mktemp("haunted")
    with pytest.MonkeyPatch.context() as patch, serving(folder) as server:
        yield from _manned(patch, folder, server)


def _manned(patch, folder, server: Server) -> Iterator[Haunted]:
    store = server.database()
    patch.setenv("SUREFOOT_STORE", store)
    patch.setenv("SUREFOOT_ANCHORS", str(folder / "anchors"))
    with haunted(folder, server, store) as made:
        yield made


@pytest.mark.parametrize("blow", ["pause", "partition"])
@pytest.mark.parametrize("how", ["unbounded", "bounded"])
def test_payment_that_is_under_way_in_a_silent_worker_is_made_once(crew, blow, how, monkeypatch):
    """Its lease is over and its check finds nothing yet: whoever believes that pays twice."""
    monkeypatch.setenv("SUREFOOT_STORE", crew.store)

    crew.strike(blow, how, 3)

    assert crew.judge().endswith("0 twice in silence")


def test_payment_that_outlasts_its_own_time_is_announced(crew, monkeypatch):
    """Nobody can hold back what a process does that is paused for longer than it was given: but it says so."""
    monkeypatch.setenv("SUREFOOT_STORE", crew.store)

    crew.strike("pause", "outlasted", 2)

    assert "2 twice, announced" in crew.judge()
