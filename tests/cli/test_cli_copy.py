"""`surefoot copy` and `surefoot import`: shown first, done when told, and told at the source."""

from __future__ import annotations

import pytest

import surefoot as sf
from surefoot.store.open import close_all

HERE = "sqlite:///.surefoot/runs.db"
THERE = "sqlite:///there.db"


def copy(cli, *more):
    return cli("copy", "--from", HERE, "--to", THERE, *more)


def test_without_yes_it_only_says_what_would_move(cli, runs, tmp_path):
    ended = copy(cli)

    assert ended.code == 0
    assert "run done-1" in ended.out
    assert ended.out.splitlines()[-1].endswith("would move. Nothing was changed; --yes does it.")
    assert not (tmp_path / "there.db").exists()
    assert sf.get_run("done-1").status == "done"


def test_yes_moves_and_the_source_says_where(cli, runs):
    ended = copy(cli, "--yes", "--by", "ada")

    assert (ended.code, "moved to sqlite:///there.db" in ended.out) == (0, True)
    asked = cli("runs", "show", "stopped-1")
    assert asked.code == 2
    assert "/there.db" in asked.err
    assert cli("verify").code == cli("--store", THERE, "verify").code == 0
    assert cli("--store", THERE, "runs", "show", "stopped-1").code in (0, 3)
    assert "stopped-1" in cli("runs", "--status", "moved").out
    assert cli("runs").code == cli("inbox").code == 0
    assert "had moved before" in copy(cli, "--yes").out


def test_one_run_by_its_name(cli, runs):
    found = copy(cli, "done-1", "--yes", "--json").json

    assert [one["name"] for one in found["moved"]] == ["done-1"]
    assert (found["from"], found["to"], found["done"], found["stays"]) == (HERE, THERE, True, [])
    assert sf.get_run("stopped-1").status == "stopped"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("nobody",), "there is no run 'nobody'"),
        (("--checkpoint", "nobody"), "there is no checkpoint nobody"),
        (("--thread", "nobody"), "there is no thread nobody"),
    ],
)
def test_names_that_are_not_there_are_refused(cli, runs, words, says):
    ended = copy(cli, *words, "--yes")

    assert ended.code == 2
    assert says in ended.err


def test_memory_is_no_target(cli, runs):
    ended = cli("copy", "--from", HERE, "--to", "memory:", "--yes")

    assert ended.code == 2
    assert "not durable" in ended.err


def test_exported_run_comes_into_another_store(cli, runs):
    assert cli("export", "done-1", "--output", "done.jsonl").code == 0
    close_all()

    assert cli("--store", THERE, "import", "done.jsonl", "--yes").code == 0

    assert cli("--store", THERE, "verify").code == 0
    shown = cli("--store", THERE, "runs", "show", "done-1", "--json").json
    assert shown["status"] == "done"
    assert cli("--store", THERE, "import", "done.jsonl", "--yes").code == 2  # it is there


def test_pruned_run_comes_back_under_its_own_seals(cli, runs):
    before = [entry.seal for entry in records("done-1")]
    assert cli("export", "done-1", "--output", "done.jsonl").code == 0
    assert cli("prune", "--older-than", "0s", "--yes").code == 0

    assert cli("import", "done.jsonl", "--yes").code == 0

    assert [entry.seal for entry in records("done-1")] == before
    assert cli("verify").code == 0


def records(run):
    return sf.get_run(run).runtime.store.read(run).records


def test_unfinished_run_of_a_file_needs_a_word_and_is_careful_then(cli, runs):
    """Its source may have gone on since: what has no record may have happened."""
    assert cli("export", "stopped-1", "--output", "open.jsonl").code == 0
    refused = cli("--store", THERE, "import", "open.jsonl", "--yes")
    assert (refused.code, "--go-on" in refused.err) == (2, True)

    assert cli("--store", THERE, "import", "open.jsonl", "--yes", "--go-on", "--by", "ada").code == 0

    last = sf.get_run("stopped-1", store=THERE).entries()[-1]
    assert (last.kind, last.data["lost"], last.data["by"]) == ("FellBack", -1, "ada")


def test_changed_file_is_refused(cli, runs, tmp_path):
    assert cli("export", "done-1", "--output", "done.jsonl").code == 0
    lines = (tmp_path / "done.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "done.jsonl").write_text("".join([lines[0], lines[1].replace("1", "2", 1), *lines[2:]]))

    ended = cli("--store", THERE, "import", "done.jsonl", "--yes")

    assert ended.code in (2, 4)
    assert cli("--store", THERE, "runs").out.count("done-1") == 0
