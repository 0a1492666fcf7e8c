"""Changed code on PostgreSQL, through a worker: the store is another one, what is promised is not."""

from __future__ import annotations

import psycopg
import pytest

from tests.change.forms import CORPUS, holds, load
from tests.postgres import serving

JUDGE = load(CORPUS / "_case.py")
NUMBERS = ("003", "008", "021", "023", "040", "043", "045", "048", "063", "066", "077", "087", "090", "096", "106")
"""One of each sort: renamed, moved, removed, new, in doubt, matched, kept, rerun, retried, reshaped, failed, branches."""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.mark.parametrize("form", ["worker", "async worker"])
@pytest.mark.parametrize("number", NUMBERS)
def test_change_on_postgresql(number, form, warm, server, monkeypatch, capsys):
    (path,) = CORPUS.glob(f"{number}_*.py")
    store = server.emptied("changed")

    assert holds(JUDGE, warm, load(path).CASE, form, monkeypatch, store=store), capsys.readouterr().out
    with psycopg.connect(store) as db:
        assert db.execute("SELECT count(*) FROM pg_namespace WHERE nspname = 'surefoot'").fetchone() == (1,)
