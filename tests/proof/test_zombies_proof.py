"""Workers that are silent in the middle of an effect, again and again; the long version."""

from __future__ import annotations

import os

import pytest

from tests.postgres import serving
from tests.zombies import haunted

pytestmark = [pytest.mark.proof, pytest.mark.timeout(3600)]
ROUNDS = int(os.environ.get("ZOMBIE_ROUNDS", "200"))


@pytest.mark.parametrize(("blow", "words"), [("pause", "SIGSTOP"), ("partition", "cut off from the database")])
def test_silent_workers_pay_nothing_twice_in_silence(tmp_path, monkeypatch, blow, words, report):
    bounded = ROUNDS // 4
    with serving(tmp_path) as server:
        store = server.database()
        monkeypatch.setenv("SUREFOOT_STORE", store)
        monkeypatch.setenv("SUREFOOT_ANCHORS", str(tmp_path / "anchors"))
        with haunted(tmp_path, server, store) as crew:
            crew.strike(blow, "unbounded", ROUNDS - bounded)
            crew.strike(blow, "bounded", bounded)
            if blow == "pause":
                crew.strike(blow, "outlasted", max(2, ROUNDS // 10))
            seen = crew.judge()
            assert crew.seen["looked for in vain while it was under way"] == crew.seen[f"{blow}s"] >= ROUNDS
    report(f"6 workers on PostgreSQL, {words} inside effects with a check, past the lease", seen)
