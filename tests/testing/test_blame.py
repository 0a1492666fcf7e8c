"""Who is blamed is who did it: a person mends what the report names, and a right one that is named sends them astray."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from surefoot.errors import UsageError
from surefoot.testing import NotHeld, crash_matrix, scenarios, verdicts, worlds
from tests.testing import blamed, mistakes
from tests.testing.test_crash_matrix import found


@pytest.mark.parametrize(
    ("workflow", "mistake", "call"),
    [
        (blamed.logs_by_itself, verdicts.BODY, "logs_by_itself"),
        (blamed.logs_by_a_program, verdicts.BODY, "logs_by_a_program"),
        (blamed.logs_by_a_thread, verdicts.BODY, "logs_by_a_thread"),
        (blamed.same_file_as_its_effect, verdicts.BODY, "same_file_as_its_effect"),
        (blamed.numbers, verdicts.STATE, "next_number#2"),
        (blamed.scripted, verdicts.STATE, "act#3"),
        (blamed.parent_of_logging_child, verdicts.BODY, "logging_child"),
        (blamed.believes_what_no_world_shows, verdicts.CHECK, "charge_in_memory#1"),
        (blamed.believes_that_it_is_undone, verdicts.CHECK, "hold.undo#1"),
        (blamed.step_raises_when_repeated, verdicts.STEP, "make_folder#1"),
        (blamed.step_finds_it_done, verdicts.STEP, "remove#1"),
        (blamed.leaves_a_draft, verdicts.LEFT, "replace_again#1"),
        (blamed.leaves_a_draft_beside_its_check, verdicts.LEFT, "replace_and_look#1"),
        (blamed.leaves_a_folder, verdicts.LEFT, "use_a_folder#1"),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_only_what_is_wrong_is_blamed(workflow, mistake, call):
    """A truthful check, a step that only counts, a child: each was under way when something else went wrong."""
    assert [(mistake, call)] == found(workflow)


def test_own_lines_that_cannot_be_repeated_are_blamed_for_what_they_do_and_for_failing():
    """A rehearsal repeats them too, so that the drive after it meets what they have done already."""
    name = "own_lines_raise_when_repeated"
    assert {(verdicts.BODY, name), (verdicts.FAILING, name)} == set(found(blamed.own_lines_raise_when_repeated))


def test_a_check_whose_call_has_done_nothing_yet_may_say_so():
    """Killed before its first line of effect, with the workflow's own line done twice."""
    at = "inside:call:put#1 open"
    assert [(verdicts.BODY, "logs_by_itself")] == found(blamed.logs_by_itself, at=at)


@pytest.mark.parametrize("what", ["lines", "rows"])
def test_branches_may_come_in_any_order(what, tmp_path_factory):
    """Which of two effects side by side is the first to write, nobody has promised: of the runs without a crash neither."""
    turns = tmp_path_factory.mktemp("turns") / "turns"

    report = crash_matrix(blamed.in_turns, (str(turns), what))

    assert report.kills > 10
    (note,) = [note for note in report.notes if note.startswith("notes.")]
    assert "the same in another order" in note


def test_where_nothing_runs_side_by_side_the_order_counts(tmp_path_factory):
    """The same words in another order are another file."""
    turns = tmp_path_factory.mktemp("turns") / "turns"

    with pytest.raises(UsageError, match=r"something else each time.*both\.txt has another content"):
        crash_matrix(blamed.in_another_order, (str(turns),))


@pytest.mark.parametrize(
    ("workflow", "options"),
    [(blamed.noting, {"world": mistakes.ledger}), (blamed.noting, {}), (blamed.parent_of_sound_child, {})],
    ids=["ledger", "a ledger that is not compared", "child"],
)
def test_what_the_kit_itself_keeps_is_not_abroad(workflow, options):
    """The ledger is what we tell people to use, and the store of a child is ours."""
    assert [] == crash_matrix(workflow, **options).notes


def test_a_check_that_finds_the_world_as_it_should_be_is_no_liar():
    """The second call had nothing left to do. Whether that is meant, only a person can say."""
    (note,) = crash_matrix(blamed.is_so_already).notes

    assert note.startswith("put#2: its check said happened before it was begun.")


@pytest.mark.parametrize(
    ("late", "early", "at"),
    [(5, 99, None), (3, 4, None), (3, 99, "after:call:stamp#1")],
    ids=["a clock", "luck", "a clock, and one boundary only"],
)
def test_luck_and_coarse_clocks_are_not_blamed_on_a_call(late, early, at, tmp_path_factory):
    """Two runs in the same second agree; what a later one does differently, no kill has done."""
    times = tmp_path_factory.mktemp("times") / "times"

    with pytest.raises(UsageError, match="stamped does something else each time"):
        crash_matrix(blamed.stamped, (str(times), late, early), at=at)


def test_every_mistake_in_the_table_is_explained_below_it():
    """What was seen in one scenario is part of what another one proves: then it goes by that name."""
    with pytest.raises(NotHeld) as raised:
        crash_matrix(blamed.token_in_memory)

    report = raised.value.report
    (finding,) = report.findings
    assert {verdicts.STATE} == {one.how for one in report.tried if not one.held}
    assert {one.at for one in report.tried if not one.held} == set(finding.at)
    assert [(verdicts.STATE, "use_token#2")] == found(blamed.token_in_memory, at=finding.at[0])


def test_two_resumes_that_do_not_end_are_enough(monkeypatch):
    """Each takes all the time there is: a person would not wait for the ninth."""
    monkeypatch.setattr(scenarios, "LEAST_SECONDS", 1.0)
    with pytest.raises(NotHeld) as raised:
        crash_matrix(blamed.waits_for_the_process_before)

    report = raised.value.report
    assert [(verdicts.ENDLESS, 2)] == [(finding.mistake, len(finding.at)) for finding in report.findings]
    left = report.boundaries - len(report.tried)
    assert any(note.startswith(f"not tried: {left} boundaries, ") for note in report.notes)


def test_a_resume_gets_no_more_time_than_was_asked_for(tmp_path):
    """--seconds 2 does not mean ten; unless the workflow itself takes as long."""
    task = scenarios.Task(mistakes.paying, (100,), {}, scenarios.Observed(Path.cwd()), {}, seconds=2.0)
    stage = scenarios.Stage(task, tmp_path)
    stage.uninterrupted("right")

    assert 2.0 <= stage._seconds < scenarios.LEAST_SECONDS


def test_why_a_boundary_is_not_reached_is_not_invented():
    """Without branches it is the names that differ."""
    with pytest.raises(NotHeld) as raised:
        crash_matrix(blamed.child_with_another_name_each_time)

    said = str(raised.value)
    assert re.search(r"\d+ not reached: calls or children with other names each time\?", said)
    assert "side by side" not in said
    assert "\\n" not in said


# --- files that do not count -------------------------------------------------------------------------------


def test_a_log_is_noted_and_not_blamed():
    """Every process writes its own lines to it, and that is what a log is for."""
    report = crash_matrix(blamed.keeps_a_log)

    assert report.held
    assert any("app.log" in note and "taken for a log" in note for note in report.notes)


def test_what_a_call_writes_counts_whatever_it_is_called():
    """A mail that went out twice is not forgiven because the fake writes it to mail.log."""
    assert found(blamed.mailing_by_a_step) == [(verdicts.STEP, "mails_by_a_step#1")]


def test_what_is_excluded_is_not_compared():
    """Only by whoever says so: without it the same is a mistake."""
    assert crash_matrix(blamed.keeps_figures, exclude="*.csv").held
    assert found(blamed.keeps_figures) == [(verdicts.BODY, "keeps_figures")]


@pytest.mark.parametrize(
    ("name", "pattern", "fits"),
    [
        ("a.csv", "*.csv", True), ("out/a.csv", "*.csv", True), ("out/deep/a.csv", "out", True),
        ("out/deep/a.csv", "out/", True), ("out/deep/a.csv", "out/deep/*", True), ("about/a.csv", "out", False),
        ("a.csv.txt", "*.csv", False), ("A.CSV", "*.csv", False),
    ],
)  # fmt: skip
def test_a_pattern_fits_a_name_a_path_or_a_folder_around_it(tmp_path, name, pattern, fits):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")

    assert (worlds.files(tmp_path, [pattern]) == {}) == fits
