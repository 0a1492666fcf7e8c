"""`surefoot demo` is the first thing anybody runs."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from surefoot.cli.demo import stage


def test_the_demo_ends_well_and_everything_it_claims_held(shell, app):
    """Killed twice, in doubt once, settled, done; every number observed."""
    ended = shell("demo", "--json", "--keep", "kept")

    seen = ended.json
    assert (ended.code, seen["held"], seen["exit_codes"]) == (0, True, [-9, -9, 3, 0])
    assert all(claim["held"] for claim in seen["claims"])
    assert (seen["mails"], seen["files"], seen["calls_needed"]) == (1, stage.FILES, 2 * stage.FILES + 1)
    assert "InDoubt: run refactor-42, mail#1" in ended.err
    assert (app / "kept" / "agent.py").read_text() == stage.AGENT.read_text()


def test_the_demo_does_not_overwrite_a_folder(shell, app):
    (app / "mine").mkdir()
    (app / "mine" / "work.txt").write_text("precious")

    assert shell("demo", "--keep", "mine").code == 2
    assert shell("demo", "--store", "sqlite:///x.db").code == 2


def test_a_claim_that_does_not_hold_is_not_hidden(own_folder):
    """An honest demo can fail."""
    from surefoot.cli import paint

    told = stage.Stage(own_folder, paint.console(stderr=True))
    (own_folder / "src").mkdir()

    told.check(False, "pigs fly")

    assert told.curtain(1.0)["held"] is False


def test_the_agent_uses_only_the_public_api():
    """It is the best example of how to use the library."""
    tree = ast.parse(Path(stage.AGENT).read_text())

    imported = [name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names]
    assert sorted(imported) == ["os", "surefoot", "time"]


@pytest.fixture(autouse=True)
def _no_colours(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
