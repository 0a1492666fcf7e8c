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
