"""`surefoot demo` is the first thing anybody runs."""

from __future__ import annotations

import ast
from contextlib import ExitStack
from pathlib import Path

import pytest

from surefoot.cli.demo import stage, verb
from surefoot.errors import UsageError


def test_the_demo_ends_well_and_everything_it_claims_held(shell, app):
    """Killed twice, drifted once, in doubt once, settled, done; every number observed."""
    ended = shell("demo", "--json", "--keep", "kept")

    seen = ended.json
    assert (ended.code, seen["held"], seen["exit_codes"]) == (0, True, [-9, 3, -9, 3, 0])
    assert all(claim["held"] for claim in seen["claims"])
    assert (seen["mails"], seen["files"], seen["calls_needed"]) == (1, stage.FILES, stage.CALLS_NEEDED)
    assert "Drifted: run refactor-42" in ended.err
    assert f"file:{stage.EDITED}: changed" in ended.err
    assert "InDoubt: run refactor-42, mail#1" in ended.err
    assert (app / "kept" / stage.EDITED).read_text().endswith(stage.EDIT)
    assert (app / "kept" / "agent.py").read_text() == stage.AGENT.read_text()


def test_the_demo_does_not_overwrite_a_folder(shell, app):
    (app / "mine").mkdir()
    (app / "mine" / "work.txt").write_text("precious")

    assert shell("demo", "--keep", "mine").code == 2
    assert shell("demo", "--store", "sqlite:///x.db").code == 2


@pytest.mark.parametrize("place", ["afile/sub", "/proc/nowhere", "/proc/tty/ldisc", "x" * 300])
def test_a_folder_that_cannot_be_had_is_said_in_one_line(shell, app, place):
    """The first command anybody runs: a traceback here would be the last one."""
    (app / "afile").write_text("a file is no folder")

    refused = shell("demo", "--json", "--keep", place)

    said = refused.json["error"]
    assert (refused.code, said["type"], refused.err) == (2, "UsageError", "")
    assert said["message"].startswith(f"--keep {place}: ")


def test_without_a_temporary_folder_the_cure_is_named(own_folder, monkeypatch):
    """Without --keep there is one way left to be in the way."""
    monkeypatch.setattr("tempfile.tempdir", str(own_folder / "nowhere"))

    with ExitStack() as cleared, pytest.raises(UsageError, match="--keep DIR"):
        verb._passing(cleared)


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
    taken = [
        f"{node.module}.{name.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    ]
    assert sorted(imported) == ["os", "surefoot", "time"]
    assert sorted(taken) == ["pathlib.Path", "surefoot.witness"]


@pytest.fixture(autouse=True)
def _no_colours(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
