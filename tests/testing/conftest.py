"""The fixtures of the plugin, also where it is not installed; and no setting of one test left for the next."""

from __future__ import annotations

import pytest

from surefoot.pytest_plugin import sf_answers, sf_clock, sf_store, sf_world
from surefoot.store.open import close_all

__all__ = ["sf_answers", "sf_clock", "sf_store", "sf_world"]


@pytest.fixture(autouse=True)
def _closed():
    yield
    close_all()


def pytest_collection_modifyitems(items):
    """Each of these kills a workflow a hundred times: on a busy machine that takes its time."""
    for item in items:
        if "tests/testing/" in str(item.path):
            item.add_marker(pytest.mark.timeout(300))
