"""`surefoot accept`: a person accepts what changed outside; it is looked at again, listed and recorded."""

from __future__ import annotations

import shlex
import sqlite3

import pytest

import surefoot as sf
from surefoot import witness

APP = """
import surefoot as sf
from surefoot import witness

def look():
    with open("value") as file:
        return file.read()

@sf.workflow(watch=[witness.observe("value", look)])
def wf():
    with open("go") as file:
        if file.read() == "no":
            raise KeyboardInterrupt
    return "went on"
"""


@sf.step
def work() -> int:
    return 1


@sf.workflow(watch=[witness.file("a.txt"), witness.file("b.txt")])
def watching():
    work()
    if not sf.run_id().endswith("!"):
        sf.approve("Go?")
    return "went on"


@pytest.fixture
def drifted(own_folder):
    """A run that stands still because two files are not as it left them."""
    for name in ("a.txt", "b.txt"):
        (own_folder / name).write_text("old")
    with pytest.raises(sf.WaitingForAnswer):
        watching.run("t")
    sf.get_run("t").answer("approve#1", True)
    for name in ("a.txt", "b.txt"):
        (own_folder / name).write_text("somebody's")
    with pytest.raises(sf.Drifted):
        watching.run("t")
    return own_folder


def recorded(run="t"):
    return [entry.data for entry in sf.get_run(run).entries() if entry.kind == "DriftAccepted"]


def test_the_page_tells_what_was_expected_what_was_found_and_what_helps(cli, drifted):
    page = cli("runs", "show", "t").out

    assert "Drifted: run t: the world is not as the run left it" in page
    assert "file:a.txt: changed (expected" in page
    assert "surefoot accept t" in page


def test_all_drift_is_accepted_listed_and_recorded_with_name_and_note(cli, drifted):
    ended = cli("accept", "t", "--by", "ann", "--note", "that was me")

    assert (ended.code, ended.err) == (0, "")
    first, second, said, resume = ended.out.splitlines()
    assert first.startswith("file:a.txt: changed (expected")
    assert second.startswith("file:b.txt: changed (expected")
    assert said == "recorded: run t takes file(a.txt), file(b.txt) as found, said by ann: that was me"
    assert resume == "go on with: surefoot runs resume t --app MODULE"
    [data] = recorded()
    assert (data["by"], data["note"]) == ("ann", "that was me")
    assert watching.run("t") == "went on"


def test_one_witness_can_be_accepted_and_the_other_still_stops_the_run(cli, drifted):
    assert cli("accept", "t", "file(a.txt)").code == 0

    with pytest.raises(sf.Drifted, match=r"b\.txt") as stop:
        watching.run("t")
    assert "a.txt" not in str(stop.value)


def test_what_is_found_now_is_accepted_and_not_what_the_stop_had_listed(cli, drifted):
    """Somebody put it back meanwhile: nothing is accepted that is not so."""
    (drifted / "a.txt").write_text("old")

    ended = cli("accept", "t", "--json").json

    assert [one["part"] for one in ended["recorded"]["accepted"]] == ["file:b.txt"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("t", "file(c.txt)"), "Drifted: file(a.txt), file(b.txt)"),
        (("u",), "there is no run 'u'"),
    ],
)
def test_what_has_not_drifted_is_not_accepted(cli, drifted, words, why):
    ended = cli("accept", *words)

    assert (ended.code, ended.out, recorded()) == (2, "", [])
    assert why in ended.err


def test_a_run_that_has_ended_or_not_drifted_has_nothing_to_accept(cli, drifted):
    cli("accept", "t")
    assert "nothing has drifted" in cli("accept", "t").err
    watching.run("t")

    ended = cli("accept", "t")

    assert ended.code == 2
    assert "has ended already: done" in ended.err


def test_a_witness_that_only_the_code_can_look_at_needs_the_code(shell, app):
    (app / "own.py").write_text(APP)
    (app / "value").write_text("1")
    (app / "go").write_text("no")
    assert shell("run", "own:wf", "--id", "t").code == 130
    (app / "value").write_text("2")
    (app / "go").write_text("yes")
    assert shell("run", "own:wf", "--id", "t").code == 3

    without = shell("accept", "t")
    assert without.code == 2
    assert "--app MODULE" in without.err

    ended = shell("accept", "t", "--app", "own", "--by", "ann")
    assert ended.code == 0
    assert "go on with: surefoot runs resume t --app own" in ended.out
    assert shell("run", "own:wf", "--id", "t").out == '"went on"\n'


@pytest.fixture
def blind(own_folder):
    """A run that watches a database which is gone."""
    database = own_folder / "gone.db"
    sqlite3.connect(database).close()

    @sf.workflow(watch=[witness.db_schema("sqlite:///gone.db"), witness.file("a.txt")])
    def wf() -> str:
        sf.approve("Go?")
        return "went on"

    with pytest.raises(sf.WaitingForAnswer):
        wf.run("t")
    sf.get_run("t").answer("approve#1", True)
    database.unlink()
    with pytest.raises(sf.Drifted) as stop:
        wf.run("t")
    return wf, stop.value


def test_the_cure_for_what_cannot_be_observed_is_said_in_plain_words_and_works(cli, blind):
    """A tired person agrees to exactly one thing: that this run does not look there any more."""
    wf, stop = blind
    [command] = [shlex.split(do) for when, do in stop.cures if when == "no longer watch it?"]

    unasked = cli(*command[1:])
    assert (unasked.code, recorded()) == (2, [])
    assert "whatever happens there from now on, the run does not notice" in unasked.err
    assert "--yes" in unasked.err

    ended = cli(*command[1:], "--yes", "--by", "ann", "--note", "retired")

    assert ended.code == 0
    assert "recorded: run t no longer watches db_schema(sqlite:///gone.db), said by ann: retired" in ended.out
    [data] = recorded()
    assert (data["by"], data["note"], list(data["unwatched"])) == ("ann", "retired", ["db_schema(sqlite:///gone.db)"])
    assert "no longer watched" in cli("runs", "tail", "t", "--no-follow").out
    assert wf.run("t") == "went on"


def test_accepting_everything_does_not_accept_blindness(cli, blind, own_folder):
    (own_folder / "a.txt").write_text("theirs")

    ended = cli("accept", "t", "--yes")

    assert ended.code == 0
    assert "takes file(a.txt) as found" in ended.out
    assert "not accepted: db_schema(sqlite:///gone.db): cannot be observed" in ended.err
    assert recorded()[0].get("unwatched") is None


def test_a_part_with_control_characters_in_its_name_cannot_act_on_the_terminal(cli, own_folder, hostile):
    @sf.workflow(watch=[witness.files("*.dat")])
    def globbing():
        sf.approve("Go?")

    with pytest.raises(sf.WaitingForAnswer):
        globbing.run("t")
    sf.get_run("t").answer("approve#1", True)
    (own_folder / f"{hostile.replace('/', '')}.dat").write_text("x")
    with pytest.raises(sf.Drifted):
        globbing.run("t")

    outputs = [cli("runs", "show", "t").out, cli("accept", "t").out, cli("runs", "tail", "t", "--no-follow").out]

    for out in outputs:
        assert all(line.isprintable() for line in out.split("\n"))
