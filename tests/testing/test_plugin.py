"""The fixtures that everybody gets with surefoot."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import surefoot as sf
from surefoot.engine.process import runtime
from surefoot.engine.process.clock import SystemClock
from surefoot.errors import Damaged, JournalRegressed, UsageError
from surefoot.testing import crash_matrix
from surefoot.testing.clock import FastClock, installed
from tests.testing import mistakes


def test_the_plugin_is_registered_by_entry_point_and_has_the_fixtures():
    """Nobody has to name it in a conftest.py."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    plugin = import_module(project["entry-points"]["pytest11"]["surefoot"])

    assert all(hasattr(plugin, name) for name in ("sf_store", "sf_clock", "sf_answers", "sf_world"))


def test_a_session_of_pytest_knows_the_fixtures(tmp_path):
    """As somebody else's project sees it: surefoot is installed, and nothing is configured."""
    (tmp_path / "test_it.py").write_text(
        "def test_it(sf_store, sf_clock, sf_answers, sf_world): assert sf_world.lines == []"
    )
    assert ["surefoot.pytest_plugin"] == [one.value for one in entry_points(group="pytest11", name="surefoot")]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path / "test_it.py")]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=50, check=False)

    assert 0 == ended.returncode, ended.stdout + ended.stderr


def test_runs_of_a_test_live_in_its_own_store(sf_store):
    """Nothing is left in the project, and nothing of another test is found."""
    assert "sent to ada" == mistakes_send("first")

    sf_store.reopen()
    assert "done" == sf.get_run("first").status
    assert sf_store.path.exists()
    assert not Path(".surefoot").exists()


@pytest.mark.parametrize("how", ["truncate", "flip", "zero"])
def test_a_damaged_store_is_right_or_loud(sf_store, how, caplog):
    """The fixture damages for real: either the result is still right, or somebody is told."""
    mistakes_send("first")

    said = sf_store.damage(how, seed="1")

    assert sf_store.path.name in said
    try:
        assert "sent to ada" == mistakes_send("first")
    except Damaged:
        pass
    except sf.InDoubt:
        assert "fell back" in caplog.text


def test_a_store_put_back_is_refused(sf_store):
    """An older copy is a valid store; only its anchor knows."""
    mistakes_send("first")
    sf_store.damage("older")

    with pytest.raises(JournalRegressed):
        mistakes_send("first")


def test_an_unknown_damage_is_refused(sf_store):
    """A typo must not look like a store that survives everything."""
    with pytest.raises(UsageError, match="'truncate', 'flip', 'zero', 'older'"):
        sf_store.damage("smash")


@sf.workflow
def nap() -> list[object]:
    begun = sf.now()
    sf.sleep("3h")
    return [begun, sf.now()]


def test_sleeping_takes_no_time(sf_store, sf_clock):
    """Three hours, and the recorded times say so."""
    begun, ended = nap.run("r")

    assert 3 * 3600 == (ended - begun).total_seconds()


def test_time_passes_when_told_to(sf_store, sf_clock, sf_answers):
    """A question that nobody answers in time."""

    @sf.workflow
    def patient() -> bool:
        return bool(sf.approve("well?", timeout="2d", on_timeout="deny"))

    with pytest.raises(sf.WaitingForAnswer):
        patient.run("r")
    sf_clock.forward("3d")

    assert patient.run("r") is False


def test_the_clock_is_given_back(sf_store):
    """The next test goes by the real one, in stores that are open already and in those that will be."""
    mistakes_send("before")
    (known,) = runtime.known()

    with installed(FastClock()) as clock:
        assert (clock, clock) == (runtime.default_clock(), known.clock)

    assert runtime.default_clock is SystemClock
    assert isinstance(known.clock, SystemClock)


def test_people_approve_unless_told_otherwise(sf_store, sf_clock, sf_answers):
    """And what they are told to say, they say."""
    yes = sf_answers.run(mistakes.sound, "yes", ["ada"])
    sf_answers["pay?"] = False
    no = sf_answers.run(mistakes.sound, "no", ["ada"])
    sf_answers.update({"ask#1": 3, "go": "now"})

    assert (str, type(None)) == (type(yes[1]), type(no[1]))
    assert "3 now" == sf_answers.run(mistakes.asking, "asked")


def test_a_question_without_an_answer_is_named(sf_store, sf_answers):
    """The test says what a person would; the kit does not guess."""
    with pytest.raises(UsageError, match=r"ask#1 \('how many\?'\)"):
        sf_answers.run(mistakes.asking, "asked")


def test_the_world_of_a_test_is_an_empty_folder_and_a_ledger(sf_world, sf_answers):
    """The working folder of the test, whose files and lines a crash_matrix compares."""
    assert [] == list(sf_world.folder.iterdir())
    assert Path.cwd() == sf_world.folder
    sf_answers["approve#1"] = False

    assert crash_matrix(mistakes.sound, (["ada"],), world=sf_world, answers=sf_answers, at="after:call:send#1").held


def mistakes_send(run_id):
    @sf.workflow(name="sending")
    def sending() -> str:
        return mistakes.send("ada", "hello")

    return sending.run(run_id)
