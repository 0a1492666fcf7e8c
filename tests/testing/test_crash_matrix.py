"""The kit finds the boundaries, kills at each, and tells a sound workflow from one that is not."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from surefoot.core.matching.matcher import Matcher
from surefoot.engine.session.session import Session
from surefoot.errors import UsageError
from surefoot.testing import NotHeld, World, crash_matrix, matrix, probe, scenarios, verdicts, worlds
from tests.testing import blamed, mistakes
from tests.testing.test_children import wait_for, wait_until_gone


def found(workflow, *args, **options):
    """(mistake, call) of all that is found."""
    with pytest.raises(NotHeld) as raised:
        crash_matrix(workflow, args, **options)
    assert all(one.cure and one.what for one in raised.value.report.findings)
    return [(one.mistake, one.call) for one in raised.value.report.findings]


# --- sound workflows -------------------------------------------------------------------------------


def test_a_sound_workflow_holds_at_every_boundary():
    """Steps, effects that ask and that check, a sleep, an approval, recorded luck: killed everywhere, always brought home."""
    report = crash_matrix(mistakes.sound, (["ada"],))

    assert report.held
    assert report.kills == report.boundaries == len(report.tried)
    names = {one.at for one in report.tried}
    assert {
        "after:call:send#1", "before:call:pay#1", "inside:call:send#1 open", "before:write:EffectIntended pay#1",
        "after:write:RunDone", "before:wait", "after:wait", "after:write:QuestionAsked approve#1",
    } <= names  # fmt: skip
    ways = {one.at: one.how for one in report.tried}
    assert "in doubt, settled" == ways["after:call:send#1"]
    assert "found by its check" == ways["after:call:pay#1"]
    assert "resumed" == ways["after:write:EffectDone send#1"]


def test_a_sound_async_workflow_holds_at_every_boundary():
    """The same for tasks, with branches side by side."""
    report = crash_matrix(mistakes.sound_async, {"pages": 3})

    assert report.held
    assert {"before:call:[1]/fetch#1", "after:write:EffectDone gather#1.0/store#1"} <= {one.at for one in report.tried}


def test_time_that_has_passed_stays_passed():
    """The next process does not go back to before the sleep."""
    assert crash_matrix(mistakes.later, at="after:write:StepDone read#1").held


def test_a_call_that_is_declared_to_fail_may_fail():
    """on_crash="fail" is an answer: the run that fails there does what it says."""
    report = crash_matrix(mistakes.declared_to_fail)

    assert 'failed, as on_crash="fail" says' in {one.how for one in report.tried}


@pytest.mark.parametrize(
    ("workflow", "mistake", "call"),
    [
        (mistakes.failure_ends_the_process, verdicts.FAILING, "failure_ends_the_process"),
        (blamed.failure_leaves, verdicts.FAILING, "failure_leaves"),
        (mistakes.failure_waits_for_ever, verdicts.ENDLESS, "failure_waits_for_ever"),
        (mistakes.failure_is_not_met, verdicts.STATE, "once#1"),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_a_call_that_is_declared_to_fail_excuses_only_that_it_fails(workflow, mistake, call, monkeypatch):
    """What becomes of the run after that, or instead of that, was declared by nobody."""
    monkeypatch.setattr(scenarios, "LEAST_SECONDS", 2.0)

    assert [(mistake, call)] == found(workflow, at="after:write:EffectIntended once#1")


@pytest.mark.parametrize(
    ("workflow", "mistake", "at"),
    [
        (mistakes.failure_ends_the_process, verdicts.FAILING, "after:write:EffectIntended once#1"),
        (mistakes.failure_waits_for_ever, verdicts.ENDLESS, "after:write:EffectIntended once#1"),
        (mistakes.fails_without_global, verdicts.FAILING, "after:write:StepDone visit#1"),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_a_resume_that_goes_wrong_by_itself_is_not_blamed_on_damage(workflow, mistake, at, monkeypatch):
    """ "Please report it" would send the person away from the line that is to be mended."""
    monkeypatch.setattr(scenarios, "LEAST_SECONDS", 2.0)
    monkeypatch.setattr(scenarios, "damage", lambda *_, **__: "nothing that is needed is lost")

    assert [(mistake, workflow.name)] == found(workflow, at=f"{at}+flip")


def test_questions_and_events_get_the_answers_that_are_given():
    """People are part of a workflow: the kit plays them, with the words of the test."""
    assert crash_matrix(mistakes.asking, answers={"how many?": 3, "go": "now"}).held
    assert crash_matrix(mistakes.asking, answers={"ask#1": 3, "go": "now"}, at="after:write:RunDone").held


def test_a_child_is_answered_and_settled_as_its_parent_would_be():
    """Its questions, events and doubts are its own: whoever answers the parent leaves it waiting for ever."""
    report = crash_matrix(mistakes.parent, answers={"how many?": 3, "go": "now"})

    assert "in doubt, settled" in {one.how for one in report.tried}


def test_each_segment_gets_the_event_it_waits_for():
    """Addresses begin anew in a segment; an event is not the same for that."""
    assert crash_matrix(mistakes.waiting_twice, answers={"go": "now"}).held


def test_a_damaged_store_is_read_right_or_refused_loudly():
    """Truncated, a bit flipped, a block lost, put back to an older state: after every write."""
    report = crash_matrix(mistakes.paying, (100,), damage=True)

    damaged = [one for one in report.tried if one.damage]
    assert {"truncate", "flip", "zero", "older"} == {one.at.rpartition("+")[2] for one in damaged}
    assert all(one.how.startswith(("loud: ", "fell back, loudly", "undisturbed", "asked")) for one in damaged)
    assert {"loud: JournalRegressed"} == {one.how for one in damaged if one.at.endswith("+older")}


def test_the_working_folder_is_copied_and_stays_as_it_is():
    """A test that changes what it is started in cannot be run twice."""
    Path("sent.txt").write_text("from before\n")
    Path(".surefoot").mkdir()
    Path(".surefoot/runs.db").write_bytes(b"not yours")
    Path("environment").mkdir()
    Path("environment/pyvenv.cfg").touch()
    os.mkfifo("environment/pipe")
    os.mkfifo("pipe")
    before = sorted(os.listdir())

    assert crash_matrix(mistakes.sound, (["ada"],), at="after:call:send#1").held
    assert before == sorted(os.listdir())
    assert "from before\n" == Path("sent.txt").read_text()


# --- the classic mistakes --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("workflow", "mistake", "call"),
    [
        (mistakes.effect_as_step, verdicts.STEP, "mail#1"),
        (mistakes.effect_as_async_step, verdicts.STEP, "mail_async#1"),
        (mistakes.check_denies, verdicts.CHECK, "charge#1"),
        (mistakes.check_believes, verdicts.CHECK, "ship#1"),
        (mistakes.check_looks_at_half, verdicts.CHECK, "book#1"),
        (mistakes.retry_repeats, verdicts.RETRY, "post#1"),
        (mistakes.undo_repeats, verdicts.UNDO, "reserve.undo#1"),
        (mistakes.state_in_global, verdicts.STATE, "report#1"),
        (mistakes.state_in_file, verdicts.STATE, "state_in_file"),  # what read#1 gave is kept: an effect followed it
        (mistakes.call_skipped, verdicts.STATE, "read#1"),
        (mistakes.result_of_another_type, verdicts.STATE, "result_of_another_type"),
        (mistakes.pool_refused, verdicts.POOL, "notify"),
        (mistakes.pool_unnoticed, verdicts.POOL, "notify"),
        (mistakes.effect_in_body, verdicts.BODY, "effect_in_body"),
        (mistakes.effect_reads_global, verdicts.STATE, "pay_as_whoever#1"),
        (mistakes.retry_reads_global, verdicts.STATE, "put_as_whoever#1"),
        (mistakes.one_call_too_many, verdicts.STATE, "spend#3"),
        (mistakes.others_each_time, verdicts.STEP, "mail#1"),
        (mistakes.retry_raises, verdicts.RETRY, "publish#1"),
        (mistakes.undo_takes_too_much, verdicts.PARTIAL, "post_both#2"),
        (mistakes.check_writes, verdicts.MEDDLING, "file_away#1"),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_a_classic_mistake_is_found_and_the_call_is_named(workflow, mistake, call):
    """What a person gets wrong, before it happens at night. Nothing else is blamed."""
    assert [(mistake, call)] == found(workflow)


def test_what_is_executed_where_nobody_looks_is_said(tmp_path_factory):
    """Real charges over the network, dozens of them: "everything held" alone would be cruel."""
    far = tmp_path_factory.mktemp("far") / "x.txt"

    (note,) = crash_matrix(mistakes.far_away, (str(far),)).notes

    assert re.match(r"write_elsewhere was really executed \d+ times, and reaches out of the folder", note)
    assert str(far) in note
    assert crash_matrix(mistakes.far_away, (str(far),), world=far.exists).notes == []


def test_a_check_that_never_answers_is_said():
    """A typo in it looks like a person who is asked."""
    (note,) = crash_matrix(mistakes.check_never_answers).notes

    assert note.startswith("ring: its check never gave an answer (it raised FileNotFoundError")


def test_what_a_workflow_does_after_a_failure_by_declaration_is_shown():
    """Nobody knows whether the first charge happened, and the second is made: as declared, and perhaps not as meant."""
    (note,) = crash_matrix(mistakes.fails_and_goes_on).notes

    assert 'charge_first_bank#1 failed, as on_crash="fail" says, and the workflow went on' in note
    assert "second.txt should not be there" in note


def test_one_boundary_is_damaged_in_every_way_when_asked_for():
    """To say both and to get a kill without damage would be half a test that looks like a whole one."""
    at = "after:write:StepDone read#1"
    report = crash_matrix(mistakes.paying, (100,), damage=True, at=at)

    assert [at, f"{at}+truncate", f"{at}+flip", f"{at}+zero", f"{at}+older"] == [one.at for one in report.tried]


def test_damage_that_a_person_meets_first_is_loud_too():
    """The store may show its damage only when the answer is written."""
    report = crash_matrix(mistakes.agreeing, damage=True)

    assert len([one for one in report.tried if one.damage]) > 10


def test_a_mistake_is_not_blamed_on_damage():
    """What goes wrong without damage goes wrong with it, and is no bug of ours."""
    with pytest.raises(NotHeld) as raised:
        crash_matrix(mistakes.retry_repeats, damage=True)

    assert [verdicts.RETRY] == [finding.mistake for finding in raised.value.report.findings]
    assert "note: the store was not damaged: mend the above first" in str(raised.value)


def test_a_change_that_the_run_itself_made_and_took_for_drift_is_named():
    """Without a crash nobody looks again, so it shows only at the first resume."""
    Path("watched.txt").write_text("as it was")

    at = "after:write:EffectDone rewrite#1"
    assert [verdicts.DRIFT] == [mistake for mistake, _ in found(mistakes.own_change_is_drift, at=at)]


def test_every_damage_is_tried_whatever_the_first_one_shows(monkeypatch):
    """The first finding of a kind is not the last; and to say that nothing was damaged would be untrue."""
    monkeypatch.setattr(scenarios, "damage", lambda *_, **__: "nothing that is needed is lost")
    monkeypatch.setattr(verdicts.Case, "judge", lambda _: verdicts.Judgement(verdicts.RESUMED))

    with pytest.raises(NotHeld) as raised:
        crash_matrix(mistakes.failure_ends_the_process, damage=True)

    (finding,) = raised.value.report.findings
    written = sum(one.at.startswith("after:write") for one in raised.value.report.tried if not one.damage)
    assert 4 * written == sum(bool(one.damage) for one in raised.value.report.tried)
    assert {"truncate", "flip", "zero", "older"} == {at.rpartition("+")[2] for at in finding.at}
    assert "was not damaged" not in str(raised.value)


def test_what_surefoot_itself_fails_with_is_ours_to_mend(monkeypatch):
    """A person cannot mend our lines: they are asked to report it, and not to look through their own."""
    monkeypatch.setattr(scenarios, "damage", lambda *_, **__: "something is lost")
    monkeypatch.setattr(Matcher, "takes", None)

    assert [(verdicts.SILENT, "paying")] == found(mistakes.paying, 100, at="after:write:StepDone read#1+flip")


def test_a_failure_can_be_reproduced_from_its_line():
    """One line, one boundary, the same finding."""
    with pytest.raises(NotHeld) as raised:
        crash_matrix(mistakes.retry_repeats)
    line = raised.value.report.findings[0].reproduce
    at = re.search(r"at='(.*)'", line)[1]

    with pytest.raises(NotHeld) as again:
        crash_matrix(mistakes.retry_repeats, at=at)
    assert 1 == again.value.report.kills
    assert line in str(again.value)
    assert "executed twice: wall.txt has 2 lines instead of 1" in str(again.value)


# --- worlds ----------------------------------------------------------------------------------------


def test_a_ledger_shows_what_no_file_shows():
    """Effects that leave the machine are noted by the test's own fakes."""
    assert [(verdicts.RETRY, "sms#1")] == found(mistakes.text_twice, world=mistakes.ledger)
    assert [] == mistakes.ledger.lines


def test_a_world_is_a_folder_and_a_ledger(tmp_path):
    """Both are compared."""
    world = World(tmp_path)
    world.note("outside of any scenario")

    assert ["outside of any scenario"] == world.lines
    assert [(verdicts.RETRY, "post#1")] == found(mistakes.retry_repeats, world=world)


def test_a_function_of_the_users_own_says_what_must_be_equal():
    """Files that may differ are nobody's business then."""
    assert crash_matrix(mistakes.retry_repeats, world=lambda: "I did not look", at="after:call:post#1").held
    assert [(verdicts.RETRY, "post#1")] == found(mistakes.retry_repeats, world=lambda: Path("wall.txt").read_text())


def test_a_world_that_outlives_every_process_is_put_back_before_each_scenario(tmp_path, monkeypatch):
    """A database of the user's own."""
    database = mistakes.Database(tmp_path / "rows")
    monkeypatch.setenv("DATABASE", str(database.path))

    assert crash_matrix(mistakes.upserting, world=database).held
    assert [(verdicts.RETRY, "insert#1")] == found(mistakes.inserting, world=database)


def test_a_database_in_the_folder_is_compared_by_its_rows():
    """Where rows lie in a file, and when a marker was made, is nobody's concern."""
    assert crash_matrix(mistakes.transaction).held
    with pytest.raises(NotHeld, match=re.escape("app.db has other rows: numbers 3 instead of 2")):
        crash_matrix(mistakes.no_transaction, at="after:call:as_often_as_you_like#1")


def test_a_database_that_a_killed_writer_left_is_read_and_left_as_it_is():
    """Its newest rows are in its log. Whoever opens and closes it would fold the log in, and change what is compared."""
    subprocess.run([sys.executable, "-c", KILLED_WRITER], check=False)
    left = worlds.files(Path.cwd())

    assert {"left.db", "left.db-shm", "left.db-wal"} == left.keys()
    assert crash_matrix(mistakes.sound, (["ada"],), at="after:call:send#1").held
    assert left == worlds.files(Path.cwd())
    assert [] == worlds.file_differences(Path.cwd(), Path.cwd())
    now = worlds.files(Path.cwd())
    assert (left["left.db"], left["left.db-wal"]) == (now["left.db"], now["left.db-wal"])


KILLED_WRITER = """
import os, signal, sqlite3
db = sqlite3.connect("left.db")
db.execute("PRAGMA journal_mode = wal")
db.execute("CREATE TABLE numbers AS SELECT 1")
os.kill(os.getpid(), signal.SIGKILL)
"""


# --- nothing to explore ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("workflow", "options", "words"),
    [
        (mistakes.failing, {}, "fails without any crash: ValueError: the model is down"),
        (mistakes.endless, {"seconds": 0.5}, "did not end within 0.5 s without any crash"),
        (mistakes.by_luck, {}, r"something else each time.*read#1: it was called with"),
        (mistakes.asking, {}, r"the run asks ask#1 \('how many\?'\)"),
        (mistakes.paying, {"at": "before:nothing", "args": (100,)}, "there is no boundary 'before:nothing'"),
        (
            mistakes.paying,
            {"at": "after:call:nothing#9+flip", "args": (100,)},
            "there is no boundary 'after:call:nothing#9",
        ),
        (mistakes.paying, {"at": "after:call:read#1+flop", "args": (100,)}, r"\+flop'.* one of \+truncate, \+flip"),
        (len, {}, "that is no workflow"),
        (mistakes.sound, {"world": 7}, "world=7: a folder, a Ledger"),
        (mistakes.sound, {"world": "nowhere"}, "nowhere': there is no such folder"),
        (mistakes.sound, {"world": World("nowhere")}, "nowhere': there is no such folder"),
        (
            blamed.interrupts_itself,
            {},
            "does not come to its end without any crash: it raises KeyboardInterrupt",
        ),
        (blamed.leaves, {}, r"it ends the program, with sys.exit\(3\)"),
        (blamed.comes_back_twice, {}, r"a process that it forked came back.*os\._exit\(\)"),
        (mistakes.sound, {"args": "ada"}, "arguments are a sequence or a mapping"),
        (mistakes.sound, {"seconds": 0}, "more than 0"),
        (mistakes.sound, {"seconds": float("nan")}, "more than 0"),
    ],
)
def test_what_cannot_be_explored_is_said_plainly(workflow, options, words):
    """Before anything is killed: there must be something to compare with."""
    with pytest.raises(UsageError, match=re.compile(words, re.DOTALL)):
        crash_matrix(workflow, **options)


@pytest.mark.parametrize(
    "options", [{}, {"damage": True}, {"at": "after:call:pay#1"}, {"at": "after:call:pay#1+older"}]
)
def test_what_was_never_killed_has_not_held(options, monkeypatch):
    """Whoever reads "everything held" must not have seen nothing at all."""
    monkeypatch.setattr(probe, "die", lambda: None)

    with pytest.raises(UsageError, match=r"paying was not killed even once, so nothing is proven: .*after:"):
        crash_matrix(mistakes.paying, (100,), **options)


def test_a_boundary_that_is_not_reached_is_not_counted_as_held(monkeypatch):
    """Of the others it is known that they held; of this one nothing is."""
    scenario = scenarios.Stage.scenario
    missed = "after:call:pay#1"
    monkeypatch.setattr(
        scenarios.Stage, "scenario", lambda stage, at, how: scenario(stage, "nowhere" if at == missed else at, how)
    )

    report = crash_matrix(mistakes.paying, (100,))

    assert [(missed, False, False)] == [(one.at, one.held, one.fired) for one in report.tried if not one.held]
    assert ("call pay", "1", "1") in {row[:3] for row in matrix.rows(report)}
    assert "(1 not reached" in str(report)


def test_a_workflow_that_leaves_its_copy_of_the_folder_is_refused():
    """What one scenario does must not be there in the next."""
    with pytest.raises(UsageError, match=r"changes .* itself \(here\.txt\), not the copy"):
        crash_matrix(mistakes.writes_elsewhere, (os.getcwd(),))


def test_a_folder_that_is_too_large_to_be_copied_is_refused(monkeypatch):
    """Hundreds of copies of a whole project are nobody's wish."""
    monkeypatch.setattr("surefoot.testing.worlds.MOST_FILES", 2)
    for number in range(3):
        Path(f"{number}").touch()

    with pytest.raises(UsageError, match="too large to be copied"):
        crash_matrix(mistakes.sound, (["ada"],))


# --- the kit itself --------------------------------------------------------------------------------


def test_an_engine_that_forgets_what_is_recorded_is_caught(monkeypatch):
    """A negative control: what was on record is executed again, and no file shows it."""
    begin = Session.begin

    def forgetful(session, *rest):
        session.state.calls = {name: call for name, call in session.state.calls.items() if call.kind != "step"}
        return begin(session, *rest)

    monkeypatch.setattr(Session, "begin", forgetful)

    assert (verdicts.AGAIN, "read#1") in found(mistakes.sound, ["ada"], at="after:write:StepDone read#1")


def test_an_engine_that_repeats_effects_in_doubt_is_caught(monkeypatch):
    """A negative control: an effect that asks runs again by itself."""
    begin = Session.begin

    def reckless(session, place, spec, *rest):
        policy, spec.on_crash = spec.on_crash, "retry"
        try:
            return begin(session, place, spec, *rest)
        finally:
            spec.on_crash = policy

    monkeypatch.setattr(Session, "begin", reckless)

    blind = {"world": lambda: "nothing to see", "at": "after:call:send#1"}
    assert [(verdicts.AGAIN, "send#1")] == found(mistakes.sound, ["ada"], **blind)


def test_a_kit_that_gets_no_store_says_why(monkeypatch):
    """A full disk, a missing library: not the workflow's fault, and nothing to go on with."""

    def full(_):
        raise OSError("no space left on device")

    monkeypatch.setattr(scenarios, "_make_store", full)

    with pytest.raises(RuntimeError, match=r"(?s)no store could be made.*no space left on device"):
        crash_matrix(mistakes.paying, (100,))


def test_nothing_is_left_after_a_matrix_nor_after_ctrl_c(tmp_path):
    """No folders in memory, no processes."""
    program = tmp_path / "program.py"
    program.write_text(
        "import os, time\n"
        "import surefoot as sf\n"
        "from surefoot.testing import crash_matrix\n"
        "here = os.getcwd()\n"
        "@sf.step\n"
        "def wait():\n"
        "    open(here + '/../draft', 'w').write(str(os.getpid()))\n"
        "    os.rename(here + '/../draft', here + '/../pid')\n"
        "    time.sleep(100)\n"
        "@sf.workflow\n"
        "def waiting(): wait()\n"
        "crash_matrix(waiting)\n"
    )
    folder = tmp_path / "folder"
    folder.mkdir()
    started = subprocess.Popen(
        [sys.executable, str(program)], cwd=folder, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_for(tmp_path / "pid", started)
    during = kept(started.pid)
    started.send_signal(signal.SIGINT)

    assert "KeyboardInterrupt" in started.communicate(timeout=20)[1]
    wait_until_gone(int((tmp_path / "pid").read_text()))
    assert (1, []) == (len(during), kept(started.pid))


def kept(pid):
    folders = {tempfile.gettempdir(), matrix.MEMORY}
    return [path for folder in folders for path in Path(folder).glob(f"surefoot-crashtest-{pid}-*")]
