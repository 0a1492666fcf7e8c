"""The console looks at the world only where the run saw it last. Elsewhere it shows and accepts what the worker found."""

from __future__ import annotations

import pytest

import surefoot as sf
from surefoot import witness
from tests.console.conftest import look


@sf.workflow(name="console_watching", watch=[witness.file("a.txt"), witness.file("b.txt")])
def watching() -> str:
    look()
    sf.approve("Go?")
    return "went on"


@pytest.fixture
def home(own_folder):
    """Where the run was seen last."""
    (own_folder / "a.txt").write_text("old")
    (own_folder / "b.txt").write_text("b")
    with pytest.raises(sf.WaitingForAnswer):
        watching.run("w")
    return own_folder


@pytest.fixture
def elsewhere(home, monkeypatch, consoles, browse):
    """Somebody at a console that was started in another folder, which has files of the same names."""
    url = f"sqlite:///{home}/.surefoot/runs.db"

    def go():
        other = home / "other"
        other.mkdir()
        (other / "a.txt").write_text("of another project")
        monkeypatch.chdir(other)
        return browse(at=consoles(store=url))

    return go


def stop(home):
    sf.get_run("w").answer("approve#1", True)
    (home / "a.txt").write_text("by hand")
    with pytest.raises(sf.Drifted):
        watching.run("w")


def told(ann):
    return ann.post("/api/v1/runs/w/plan").json()["plan"]["drift"]


def test_in_its_folder_it_looks_itself(home, consoles, browse):
    ann = browse(at=consoles())
    (home / "a.txt").write_text("by hand")

    assert len(told(ann)) == 1
    assert "a.txt" in told(ann)[0]


def test_in_another_folder_it_reports_nothing_of_its_own(elsewhere):
    ann = elsewhere()

    assert told(ann) == []
    page = ann.get("/runs/w/drift").text
    assert "Nothing has drifted" not in page
    assert "Nothing was looked at" in page
    assert "were not looked at" in ann.get("/runs/w").text


def test_in_another_folder_it_accepts_what_the_worker_found_and_only_that(home, elsewhere, monkeypatch):
    stop(home)
    drift = sf.get_run("w").state().stops[0].drift
    ann = elsewhere()

    assert len(told(ann)) == 1
    assert "a.txt" in ann.get("/runs/w/drift").text
    wrong = ann.say("w", do="accept", found={drift[0].part: "0" * 64})
    assert wrong.status_code == 409, wrong.text
    done = ann.say("w", do="accept", found={one.part: one.actual for one in drift})
    assert done.status_code == 200, done.text

    monkeypatch.chdir(home)
    state = sf.get_run("w").state()
    assert {part: state.world.parts[part].hash for part in state.world.parts} == {
        drift[0].part: drift[0].actual,
        "file:b.txt": state.world.parts["file:b.txt"].hash,
    }
    assert watching.run("w") == "went on"


def test_what_changed_again_after_an_acceptance_from_elsewhere_stops_the_run(home, elsewhere, monkeypatch):
    stop(home)
    drift = sf.get_run("w").state().stops[0].drift
    ann = elsewhere()
    (home / "a.txt").write_text("by hand, again")
    assert ann.say("w", do="accept", found={one.part: one.actual for one in drift}).status_code == 200

    monkeypatch.chdir(home)
    with pytest.raises(sf.Drifted):
        watching.run("w")


def test_on_another_host_it_does_not_look(home, consoles, browse, monkeypatch):
    from surefoot.engine.operate import places

    (home / "a.txt").write_text("by hand")
    monkeypatch.setattr(places, "host", lambda: "another")

    assert told(browse(at=consoles())) == []
