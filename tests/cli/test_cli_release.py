"""`surefoot runs release`: a person lets a run be tried again that took its workers down."""

from __future__ import annotations

import pytest

import surefoot as sf
from tests.working import wait_until

READY = []


@sf.workflow
def fragile():
    if not READY:
        raise sf.UsageError("the code is wrong")
    return "well"


@pytest.fixture
def quarantined(own_folder, monkeypatch):
    monkeypatch.setattr("surefoot.core.readiness.LONGEST_BACK_OFF", 0)
    READY.clear()
    run = fragile.start("q")
    with sf.Worker(workflows=[fragile]):
        wait_until(lambda: run.status == "stopped")
    return run


def test_a_quarantined_run_stands_among_what_needs_a_person_and_says_what_helps(cli, quarantined):
    fragile.using(delay="1h").start("later")

    listed = cli("runs").out.splitlines()
    page = cli("runs", "show", "q").out

    assert listed[1].split()[:2] == ["stopped", "q"]
    assert listed[1].endswith("Quarantined")
    assert listed[2].split()[:2] == ["queued", "later"]
    assert "Quarantined: run q: quarantined: it was taken up 5 times" in page
    assert "surefoot runs release q" in page


def test_a_release_is_recorded_with_name_and_note_and_the_run_goes_on(cli, quarantined):
    ended = cli("runs", "release", "q", "--by", "ann", "--note", "mended")
    told = cli("runs", "tail", "q", "--no-follow").out.splitlines()[-1]

    assert (ended.code, ended.err) == (0, "")
    assert ended.out == (
        "recorded: run q may be taken up again, said by ann: mended\n"
        "go on with: surefoot runs resume q --app MODULE\n"
    )  # fmt: skip
    assert told.split("  ", 1)[1].split() == ["quarantine", "lifted", "by", "ann:", "mended"]

    READY.append(True)
    with sf.Worker(workflows=[fragile]):
        assert quarantined.result(timeout=30) == "well"


def test_a_release_for_programs(cli, quarantined):
    released = cli("runs", "release", "q", "--by", "ann", "--json").json

    assert released["recorded"] == {"run": "q", "released": True, "by": "ann", "note": ""}
    assert (released["status"], released["open"]) == ("queued", [])


def test_only_what_is_quarantined_can_be_released(cli, quarantined):
    cli("runs", "release", "q")
    twice, nobody = cli("runs", "release", "q"), cli("runs", "release", "nobody")

    assert (twice.code, nobody.code) == (2, 2)
    assert "run q is not quarantined: queued" in twice.err
    assert "there is no run 'nobody'" in nobody.err
