"""`surefoot verify`: whole or damaged, in one line each, and an exit code for scripts."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from surefoot.store.open import close_all


def damage(statement):
    close_all()
    with closing(sqlite3.connect(".surefoot/runs.db")) as connection, connection:
        assert connection.execute(statement).rowcount


def test_a_whole_store_ends_with_0_and_totals(cli, runs):
    """Totals are the answer; speed is not, and goes elsewhere."""
    ended = cli("verify")

    assert ended.code == 0
    assert ended.out.startswith("whole: 5 runs, ")
    assert ended.out.count("\n") == 1
    assert "MB/s" in ended.err


def test_one_run_can_be_verified(cli, runs):
    damage("UPDATE entries SET at = at + 1 WHERE run = 'failed-1' AND seq = 2")

    assert cli("verify", "done-1").code == 0
    assert cli("verify", "failed-1").code == 4


def test_damage_is_one_line_with_what_is_safe_and_what_to_do(cli, runs):
    """A person reads this at night."""
    damage("UPDATE entries SET at = at + 1 WHERE run = 'failed-1' AND seq = 2")

    ended = cli("verify")

    assert ended.code == 4
    line, totals = ended.out.splitlines()
    assert line.startswith("damaged: run failed-1: entry 2 of 3: its seal does not hold (")
    assert "; entry 1 is whole [" in line
    assert "surefoot repair failed-1" in line
    assert "surefoot inspect " in line
    assert totals.startswith("1 damaged: 5 runs, ")


def test_json_says_the_same(cli, runs):
    assert cli("verify", "--json").json["whole"] is True
    damage("UPDATE entries SET at = at + 1 WHERE run = 'failed-1' AND seq = 2")

    ended = cli("verify", "--json")

    assert ended.code == 4
    assert ended.json["whole"] is False
    (flaw,) = ended.json["damaged"]
    assert (flaw["journal"], flaw["entry"], flaw["entries"], flaw["valid"]) == ("failed-1", 2, 3, 1)
    assert flaw["cures"][0]["do"].startswith("surefoot repair")


def test_cures_name_the_store_they_are_for(cli, runs, monkeypatch):
    """A command that is pasted must mean the same store."""
    damage("UPDATE entries SET at = at + 1 WHERE run = 'failed-1' AND seq = 2")
    url = "sqlite:///./.surefoot/runs.db"

    assert f"surefoot repair failed-1 --store {url}" in cli("verify", "--store", url).out


def test_nothing_recorded_can_act_on_the_terminal(cli, runs, hostile):
    """Names of steps, values and damaged bytes come from outside."""
    damage("UPDATE entries SET seal = CAST(char(27) || '[31m' AS TEXT) WHERE run = 'done-1' AND seq = 2")

    ended = cli("verify")

    assert ended.code == 4
    assert "\x1b" not in ended.out + ended.err


def test_missing_is_not_damaged(cli, runs):
    ended = cli("verify", "nobody")

    assert (ended.code, ended.out) == (2, "")
    assert "nobody" in ended.err


def test_no_store_is_made_by_looking(cli, own_folder):
    assert cli("verify").code == 2
    assert not (own_folder / ".surefoot").exists()


def test_lost_history_is_damage(cli, runs, own_folder):
    """An emptied database beside its anchor is never a new one."""
    close_all()
    (own_folder / ".surefoot/runs.db").write_bytes(b"")

    ended = cli("verify")

    assert ended.code == 4
    assert "JournalRegressed" in ended.err


def test_a_database_that_lost_pages_is_damage(cli, runs, own_folder):
    """Cut off in the middle: found, whatever SQLite thinks of it."""
    close_all()
    path = own_folder / ".surefoot/runs.db"
    path.write_bytes(path.read_bytes()[:-8192])

    assert cli("verify").code == 4
