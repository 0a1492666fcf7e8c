"""`surefoot run`: one result on standard output, one exit code, and a run that is safe however it ends."""

from __future__ import annotations

import json
import shlex
import signal

import pytest

from surefoot.cli import execution
from surefoot.cli.options import Settings


def test_only_the_result_goes_to_standard_output(shell):
    """`surefoot run … | jq` must work whatever the workflow and its child processes print."""
    ended = shell("run", "app:notify", "--id", "monday", '["Ada", "Bob"]')

    assert (ended.code, ended.out) == (0, "2\n")
    assert "drafting Ada" in ended.err
    assert "from a child process" in ended.err


def test_a_finished_run_gives_its_recorded_result_and_does_nothing(shell, app):
    """Starting is resuming: the same command twice is one run."""
    shell("run", "app:notify", "--id", "monday", '["Ada"]')

    again = shell("run", "app:notify", "--id", "monday", '["Ada"]')

    assert (again.code, again.out) == (0, "1\n")
    assert (app / "ledger").read_text() == "draft Ada\nsend Ada\n"


def test_arguments_are_json_or_strings_and_keywords_have_names(shell):
    """The rule is short enough to remember; what looks like a number is one."""
    ended = shell("run", "app:echo", "--id", "x", "1", "one", '"1"', '{"a": null}', "NaN", "k=2", "text=a=b", "q=")

    assert ended.json == [[1, "one", "1", {"a": None}, "NaN"], {"k": 2, "text": "a=b", "q": ""}]


def test_an_argument_is_read_as_its_parameter_says(shell):
    """A date on the command line is a text; inside the run it would be a TypeError, and the id spent."""
    words = ("1", "2026-01-02", "where=a/b", "name=42", "price=1.10", "limit=null")

    assert shell("run", "app:typed", "--id", "x", *words).json == (
        "1 datetime.date(2026, 1, 2) PosixPath('a/b') '42' Decimal('1.10') None"
    )


def test_who_waits_for_another_process_is_told_for_whom(child, app):
    """A second terminal, or a driver that died with its lease: silence looks like a hang."""
    first = child.start("run", "app:sitting", "--id", "x")
    child.wait_until_it_sits()

    second = child.start("run", "app:sitting", "--id", "x")
    line = second.stderr.readline()

    assert line.startswith("run x: waiting for worker ")
    assert f"(pid {first.pid}), which drives it or is not known to be dead yet" in line
    child.let_go()
    assert [one.communicate()[0] for one in (first, second)] == ['"sat"\n'] * 2


def test_who_waited_in_vain_is_not_told_that_the_run_failed(child, shell):
    """It goes on in another process: a cure for a failure would destroy it."""
    first = child.start("run", "app:sitting", "--id", "x")
    child.wait_until_it_sits()

    ended = shell("run", "app:sitting", "--id", "x", "--wait", "10ms")

    assert ended.code == 1
    assert "run x: TimeoutError: run x is still driven by worker " in ended.err
    assert "fixed?" not in ended.err
    child.let_go()
    assert first.communicate()[0] == '"sat"\n'


def test_an_argument_that_begins_with_a_dash_follows_two_dashes(shell):
    assert shell("run", "app:echo", "--id", "x", "--", "-5", "--json").json == [[-5, "--json"], {}]


def test_other_arguments_for_the_same_id_are_refused(shell):
    """One id is one task; a typo must not silently continue another one."""
    shell("run", "app:notify", "--id", "monday", '["Ada"]')

    ended = shell("run", "app:notify", "--id", "monday", '["Bob"]')

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("RunConflict: run monday ")


@pytest.mark.parametrize(
    ("words", "cure"),
    [
        (("run", "nowhere:notify", "--id", "x"), "Run the command in the folder that holds it"),
        (("run", "app.py:notify", "--id", "x"), "Did you mean app?"),
        (("runs", "shwo", "x"), "No such command 'shwo'. Did you mean show?"),
        (("run", "app:typed", "--id", "x", "x", "2026-01-01"), "does not take 'x' as n, which is int"),
        (("run", "app:typed", "--id", "x", "1", "when=soon"), "does not take 'soon' as when, which is date"),
        (("run", "./app:notify", "--id", "x"), "without slashes"),
        (("run", "app", "--id", "x"), "Write app:WORKFLOW. Workflows there: acting, echo, failing"),
        (("run", "app:notfy", "--id", "x"), "Workflows there: acting, echo, failing"),
        (("run", "app:not_a_workflow", "--id", "x"), "decorate it with @sf.workflow"),
        (("run", "app:notify", "--id", "x"), "missing a required argument: 'customers'"),
        (("run", "app:notify", "--id", "x", "[]", "color=1"), "unexpected keyword argument 'color'"),
        (("run", "app:notify", "--id", "x", "customers=[]", "b"), "put it before"),
        (("run", "app:notify", "--id", " x", "[]"), "a run id has"),
        (("run", "app:notify", "[]"), "Missing option '--id'"),
    ],
)
def test_wrong_use_is_refused_with_the_cure_before_anything_is_created(shell, app, words, cure):
    """A run that could only fail must not take the id; a mistake must not leave a store behind."""
    ended = shell(*words)

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("UsageError: ")
    assert cure in ended.err
    assert "Traceback" not in ended.err
    assert not (app / ".surefoot").exists()


def test_a_module_that_cannot_be_imported_shows_the_line_that_is_wrong(shell, app):
    """The person who typed the command is the one who can mend the module."""
    (app / "bad.py").write_text("import json\n\n1 / 0\n")

    ended = shell("run", "bad:work", "--id", "x")

    assert (ended.code, ended.out) == (2, "")
    assert 'bad.py", line 3' in ended.err
    assert "UsageError: module 'bad' cannot be imported: ZeroDivisionError" in ended.err
    assert "importlib" not in ended.err


def test_a_failed_workflow_shows_the_users_own_lines_and_ends_with_1(shell, app):
    """The first question is where; frames of surefoot would only be in the way."""
    ended = shell("run", "app:failing", "--id", "f", "luck")

    assert (ended.code, ended.out) == (1, "")
    assert "in failing" in ended.err
    assert "in break_down" in ended.err
    assert "surefoot/engine" not in ended.err
    assert ended.err.endswith("run f failed: Broken: no more luck\n  fixed?   surefoot runs retry f --failed\n")


def test_a_recorded_failure_is_told_again(shell):
    """Failures are results too: the second start does not try again behind anybody's back."""
    shell("run", "app:failing", "--id", "f", "luck")

    again = shell("run", "app:failing", "--id", "f", "luck")

    assert again.code == 1
    assert again.err == "run f failed: Broken: no more luck\n  fixed?   surefoot runs retry f --failed\n"


def test_with_json_a_failure_is_an_object_on_standard_output(shell):
    """Programs read one stream."""
    ended = shell("--json", "run", "app:failing", "--id", "f", "luck")

    error = ended.json["error"]
    assert ended.code == 1
    assert (error["type"], error["message"], error["run"]) == ("Broken", "no more luck", "f")
    assert error["cures"][0]["do"] == "surefoot runs retry f --failed"


def test_an_effect_in_doubt_ends_with_3_and_says_what_to_do(shell):
    """The process died after sending and before writing it down."""
    words = ("run", "app:notify", "--id", "tick-81", '["Ada", "Bob"]')
    assert shell(*words, DIE_AFTER_SENDING_TO="Bob").code == -signal.SIGKILL

    ended, as_json = shell(*words), shell(*words, "--json")

    assert (ended.code, ended.out) == (3, "")
    first, *cures = ended.err.splitlines()
    assert first.startswith("InDoubt: run tick-81, send#2: started ")
    assert [cure.split()[-1] for cure in cures] == ["'JSON'", "--not-happened"]
    error = as_json.json["error"]
    assert (as_json.code, error["type"], error["run"], error["address"]) == (3, "InDoubt", "tick-81", "send#2")
    assert error["cures"][1]["do"] == "surefoot settle tick-81 'send#2' --not-happened"


def test_a_result_that_is_not_plain_is_printed_as_tagged_json_without_raw_controls(shell):
    """Types are not dropped on the way out, and a result cannot act on the terminal."""
    ended = shell("run", "app:shape", "--id", "s")

    assert ended.out == '{"$tuple":[1,{"$path":"a"},"\\u001b[31m \\u202e \\u007f é"]}\n'


def test_json_stays_json_where_the_stream_knows_only_ascii(shell):
    """A cron job without a locale must not get half a result."""
    ended = shell("run", "app:shape", "--id", "s", PYTHONIOENCODING="ascii")

    assert ended.out.isascii()
    assert json.loads(ended.out)["$tuple"][2].endswith("é")


def test_leaving_the_workflow_through_sys_exit_is_not_success(shell):
    """Exit code 0 means done; the run is not done."""
    ended = shell("run", "app:leaving", "--id", "l")

    assert (ended.code, ended.out) == (1, "")
    assert "left by SystemExit" in ended.err
    assert shell("runs", "show", "l", "--json").json["status"] == "queued"


@pytest.mark.parametrize("before", [True, False])
def test_the_store_may_be_named_before_or_after_the_verb(shell, app, before):
    where = ("--store", "sqlite:///elsewhere.db")
    run = ("run", "app:echo", "--id", "x")

    shell(*((*where, *run) if before else (*run, *where)))

    assert (app / "elsewhere.db").exists()
    assert shell("runs", "--json", *where).json["runs"][0]["run"] == "x"
    assert shell("runs", "--json", SUREFOOT_STORE=where[1]).json["runs"][0]["run"] == "x"


@pytest.mark.parametrize("workflow", ["sitting", "sitting_async"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_in_a_step_leaves_a_run_that_goes_on_where_it_was(child, shell, app, workflow, number, code):
    """Ctrl-C is how people stop things, SIGTERM how machines do. Neither may cost what was recorded."""
    words = ("run", f"app:{workflow}", "--id", "x")
    started = child.start(*words)
    child.wait_until_it_sits()

    started.send_signal(number)
    out, err = started.communicate()

    assert (started.returncode, out) == (code, "")
    assert err.endswith(f"stopped by you: run x is safe; go on with: surefoot run app:{workflow} --id x\n")
    assert shell("runs", "show", "x", "--json").json["stands"] == "ready"
    (app / "go").touch()
    assert shell(*words).out == '"sat"\n'


def test_a_signal_inside_an_effect_says_that_its_outcome_is_not_known(child, shell, app):
    """It may have happened: the person who pressed Ctrl-C hears it at once, and is asked at the next start."""
    started = child.start("run", "app:acting", "--id", "x")
    child.wait_until_it_sits()

    started.send_signal(signal.SIGINT)
    _, err = started.communicate()

    assert started.returncode == 130
    assert "act#1 was under way: whether it happened is not known" in err
    assert shell("run", "app:acting", "--id", "x").code == 3


def test_with_json_an_interrupted_run_is_an_object_too(child, app):
    started = child.start("--json", "run", "app:sitting", "--id", "x")
    child.wait_until_it_sits()

    started.send_signal(signal.SIGTERM)
    out, _ = started.communicate()

    assert json.loads(out)["error"]["exit_code"] == 143


def test_who_only_waited_for_another_process_is_told_that_it_goes_on(child, app):
    """Ctrl-C at the second terminal ends the waiting, not the run."""
    started = child.start("run", "app:sitting", "--id", "x")
    child.wait_until_it_sits()

    told = execution._after_interrupt(Settings(), "x", "surefoot run …")

    assert told == "stopped waiting: another process drives run x and goes on with it"
    child.let_go()
    assert started.communicate()[0] == '"sat"\n'


def test_who_stops_before_anything_was_recorded_hears_that(cli):
    assert "before anything was recorded" in execution._after_interrupt(Settings(), "x", "surefoot run …")


def test_who_cannot_be_told_how_the_run_stands_gets_a_command_that_finds_it(own_folder):
    """An id may have a blank in it, and the store need not be the one that is meant by default."""
    store = own_folder / "it's.db"
    store.write_bytes(b"no database")

    told = execution._after_interrupt(Settings(store="sqlite:///it's.db"), "x y", "surefoot run …")

    look = told.partition("look again with: ")[2]
    assert shlex.split(look) == ["surefoot", "runs", "show", "x y", "--store", "sqlite:///it's.db"]


@pytest.mark.parametrize("word", ["team", "=a", ""])
def test_a_label_that_is_no_pair_is_named(cli, word):
    """Of several it is the one to mend."""
    ended = cli("runs", "--label", "team=a", "--label", word)

    assert (ended.code, ended.err) == (2, f"UsageError: --label {word!r}: write NAME=VALUE.\n")


def test_labels_of_a_new_run_are_read_alike_before_anything_is_recorded(shell, app):
    """A run that was started without its label would not be found by it."""
    ended = shell("run", "app:echo", "--id", "x", "--label", "team")

    assert (ended.code, ended.err) == (2, "UsageError: --label 'team': write NAME=VALUE.\n")
    assert not (app / ".surefoot").exists()


def test_an_event_is_waited_for_only_if_asked(shell, app):
    """Without --wait a run that needs an event ends at once, so that nobody sits and wonders."""
    (app / "waits.py").write_text(
        "import surefoot as sf\n@sf.workflow\ndef wait():\n    return sf.wait_event('paid')\n"
    )

    ended = shell("run", "waits:wait", "--id", "w", "--label", "team=a")

    assert ended.code == 3
    assert "\nWaitingForAnswer: run w, wait_event#1" in ended.err
    assert shell("runs", "--label", "team=a", "--json").json["runs"][0]["stands"] == "waiting"
    assert shell("run", "waits:wait", "--id", "w", "--wait", "soon").code == 2
