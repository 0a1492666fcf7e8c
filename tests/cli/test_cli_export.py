"""`surefoot export`: to a file or to the pipe, and the check that needs no store."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from surefoot.store.open import close_all


def test_an_export_is_written_and_checks(cli, runs, own_folder):
    ended = cli("export", "done-1", "--output", "out.jsonl")

    assert ended.code == 0
    assert ended.out.startswith("out.jsonl has run done-1: ")
    close_all()
    assert cli("export", "--check", "out.jsonl").out.endswith("; whole\n")
    assert cli("export", "--check", "out.jsonl", "--json").json["whole"] is True


def test_without_a_file_it_goes_to_the_pipe(shell, app, own_folder):
    shell("run", "app:echo", "--id", "e", "1")

    ended = shell("export", "e")

    assert ended.code == 0
    (app / "piped").write_text(ended.out)
    assert shell("export", "--check", "piped").code == 0


@pytest.mark.parametrize("verb", [("runs", "show"), ("export",), ("runs", "plan"), ("runs", "resume", "--app", "app")])
def test_what_helps_a_damaged_run_names_the_store_that_was_looked_in(cli, shell, own_folder, verb):
    """Pasted without it, the command would go to the default store."""
    shell("run", "app:echo", "--id", "e", "1", "--store", "sqlite:///st.db")
    with closing(sqlite3.connect("st.db")) as connection, connection:
        connection.execute("UPDATE entries SET at = at + 1 WHERE run = 'e' AND seq = 2")

    ended = cli(*verb, "e", "--store", "sqlite:///st.db")

    assert ended.code == 4
    assert "surefoot repair e --store sqlite:///st.db\n" in ended.err
    assert "surefoot repair e\n" not in ended.err


def test_a_damaged_run_ends_with_4_unless_wanted_and_its_file_says_so(cli, runs):
    close_all()
    with closing(sqlite3.connect(".surefoot/runs.db")) as connection, connection:
        connection.execute("UPDATE entries SET at = at + 1 WHERE run = 'done-1' AND seq = 2")

    assert cli("export", "done-1", "--output", "out.jsonl").code == 4
    assert cli("export", "done-1", "--output", "out.jsonl", "--damaged").code == 0
    checked = cli("export", "--check", "out.jsonl")
    assert checked.code == 4
    assert "of a damaged run: 1 record from the first on can be used" in checked.out


def test_a_changed_file_ends_with_4(cli, runs, own_folder):
    cli("export", "done-1", "--output", "out.jsonl")
    path = own_folder / "out.jsonl"
    path.write_bytes(path.read_bytes().replace(b"read#1", b"read#2", 1))

    ended = cli("export", "--check", "out.jsonl")

    assert (ended.code, ended.out) == (4, "")
    assert "line " in ended.err


def test_mistakes_end_with_2(cli, runs):
    for words in ((), ("done-1", "--check", "x"), ("--check", "nowhere"), ("nobody",), ("--check", "x", "--damaged")):
        assert cli("export", *words).code == 2
