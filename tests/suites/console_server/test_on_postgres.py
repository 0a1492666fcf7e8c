"""The same console on PostgreSQL: the tests of `tests/console` about words, answers and live, over another store."""

from __future__ import annotations

import pytest

from tests.console.test_console_api import *  # noqa: F403 - the same tests
from tests.console.test_console_live import *  # noqa: F403
from tests.console.test_console_words import *  # noqa: F403
from tests.postgres import serving

pytestmark = pytest.mark.timeout(200)


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("pg")) as made:
        yield made


@pytest.fixture(autouse=True)
def on_postgres(own_folder, server, monkeypatch):
    from surefoot.store.open import close_all

    monkeypatch.setenv("SUREFOOT_STORE", server.emptied("console"))
    yield
    close_all()
