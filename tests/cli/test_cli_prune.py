"""`surefoot prune`: says what would go, and does it only when told."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

import surefoot as sf
from surefoot.store.open import close_all


def test_a_dry_run_lists_and_changes_nothing(cli, runs):
    """Nobody should learn by accident what retention means."""
    ended = cli("prune", "--older-than", "0s")

    assert ended.code == 0
    assert [line.split()[:2] for line in ended.out.splitlines()[1:-1]] == [["failed", "failed-1"], ["done", "done-1"]]
    assert ended.out.splitlines()[-1].endswith("would go. Nothing was changed; --yes does it.")
    assert len(sf.get_run("done-1").entries()) > 1


def test_yes_prunes_and_leaves_tombstones(cli, runs):
    ended = cli("prune", "--older-than", "0s", "--yes", "--by", "ada", "--note", "30 days")

    assert ended.code == 0
    assert "2 runs with " in ended.out
    (left,) = sf.get_run("done-1").entries()
    assert (left.kind, left.data["by"], left.data["note"]) == ("RunPruned", "ada", "30 days")
    assert sf.get_run("stopped-1").status == "stopped"
    assert cli("verify").code == 0
    assert cli("runs", "show", "done-1").code == 0
    assert cli("runs").code == 0


def test_only_what_is_old_enough_and_asked_for(cli, runs):
    assert cli("prune", "--older-than", "30d", "--json").json["would_prune"] == []
    assert [
        one["run"] for one in cli("prune", "--older-than", "0s", "--status", "failed", "--json").json["would_prune"]
    ] == ["failed-1"]


@pytest.mark.parametrize(
    ("words", "cure"),
    [
        (("--older-than", "soon"), "not a duration"),
        (("--older-than", "0s", "--status", "running"), "only runs that have ended"),
        ((), "--older-than"),
    ],
)
def test_a_mistake_prunes_nothing(cli, runs, words, cure):
    ended = cli("prune", *words, "--yes")

    assert (ended.code, ended.out) == (2, "")
    assert cure in ended.err
    assert len(sf.get_run("done-1").entries()) > 1


def test_damage_keeps_the_parts_and_is_said(cli, runs):
    close_all()
    with closing(sqlite3.connect(".surefoot/runs.db")) as connection, connection:
        connection.execute("UPDATE entries SET at = at + 1 WHERE run = 'done-1' AND seq = 2")

    ended = cli("prune", "--older-than", "0s", "--yes", "--json")

    assert ended.code == 4
    assert [one["run"] for one in ended.json["pruned"]] == ["failed-1"]
    assert [one["run"] for one in ended.json["left"]] == ["done-1"]
    assert "damaged" in ended.json["parts_kept_because"]
    told = cli("prune", "--older-than", "0s", "--yes")
    assert "left as it is: run done-1" in told.err
    assert "no parts were deleted" in told.err


def test_a_pruned_run_is_not_listed_as_simply_done(cli, runs):
    """Whoever looks for its result must see at once why there is none."""
    cli("prune", "--older-than", "0s", "--yes")

    listed = {line.split("  ")[0]: line for line in cli("runs").out.splitlines()}
    facts = {one["run"]: (one["status"], one["stands"]) for one in cli("runs", "--json").json["runs"]}

    assert "done-1" in listed["done, pruned"]
    assert "failed-1" in listed["failed, pruned"]
    assert (facts["done-1"], facts["queued-1"]) == (("done", "done, pruned"), ("queued", "queued"))
    assert cli("runs", "show", "done-1", "--json").json["stands"] == "done, pruned"
