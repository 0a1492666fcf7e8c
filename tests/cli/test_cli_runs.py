"""`surefoot runs …`: looking never changes a run, acting leaves a name and a reason."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess

import pytest

import surefoot as sf
from surefoot.cli import operators
from surefoot.cli.options import Settings
from surefoot.engine.process import journal

RAW = re.compile(r"[^\n -~\u00a0-\uffff]|[\u200b-\u200f\u202a-\u202e\u2066-\u2069\x7f-\x9f]")
"""Characters that could act on a terminal or reorder its text."""


def in_doubt(shell, run="tick-81"):
    shell("run", "app:notify", "--id", run, '["Ada", "Bob"]', DIE_AFTER_SENDING_TO="Bob")
    assert shell("run", "app:notify", "--id", run, '["Ada", "Bob"]').code == 3


# --- looking ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [("runs",), ("runs", "list")])
def test_the_list_begins_with_what_needs_a_person(cli, runs, words):
    """An operator at night looks at the first line."""
    ended = cli(*words)

    heading, *lines = ended.out.splitlines()
    assert ended.code == 0
    assert heading.split() == ["STATUS", "RUN", "WORKFLOW", "STARTED", "WHY"]
    assert [line.split()[:2] for line in lines] == [
        ["stopped", "stopped-1"],
        ["waiting", "waiting-1"],
        ["queued", "queued-1"],
        ["failed", "failed-1"],
        ["done", "done-1"],
    ]
    assert lines[0].rstrip().endswith("InDoubt charge#1")
    assert lines[1].rstrip().endswith("wait_event#1: waiting for event 'paid'")
    assert r"ValueError: \x1b[31mred" in lines[3]


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        (("--need", "*"), ["stopped-1", "waiting-1", "failed-1"]),
        (("--need", "in_doubt"), ["stopped-1"]),
        (("--need", "event"), ["waiting-1"]),
        (("--need", "drift"), []),
        (("--before", "stopped-1"), ["failed-1", "done-1"]),
        (("--queue", "mail"), []),
        (("--workflow", "quick", "--status", "done"), ["done-1"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_the_list_is_filtered_by_what_people_ask_for(cli, runs, filters, found):
    """An inbox, a page further down, one queue."""
    listed = cli("runs", "--json", *filters).json["runs"]

    assert [one["run"] for one in listed] == found


def test_what_waits_for_a_person_is_told_by_kind_until_it_is_answered(cli, runs):
    """Programs that show an inbox read this."""
    first = cli("runs", "--json", "--need", "in_doubt").json["runs"][0]
    assert (first["need"], first["why"], first["marks"]) == ("in_doubt", "InDoubt charge#1", [])

    cli("settle", "stopped-1", "charge#1", "--not-happened")

    assert cli("runs", "--json", "--need", "in_doubt").json["runs"] == []


def test_a_run_killed_inside_an_effect_shows_its_question_at_once(shell):
    """By its journal it runs, and no process has met the doubt yet; in the morning a person must see it."""
    shell("run", "app:notify", "--id", "x", '["Bob"]', DIE_AFTER_SENDING_TO="Bob")

    listed = shell("runs", "--json").json["runs"][0]
    page = shell("runs", "show", "x")

    assert (listed["status"], listed["stands"], listed["needs_a_person"]) == ("running", "stopped", True)
    assert "status     stopped: needs a person" in page.out
    assert "surefoot settle x 'send#1' --not-happened" in page.out
    assert re.search(r"driven by  worker \w+ on host .* \(pid \d+\), whose process is gone", page.out)


def test_an_old_stop_is_listed_however_many_newer_runs_there_are(cli, runs):
    """The list is short, but never at the price of what needs a person."""
    listed = cli("runs", "--limit", "1", "--json").json["runs"]

    assert [run["run"] for run in listed][:2] == ["stopped-1", "waiting-1"]


def test_the_list_can_be_narrowed(cli, runs):
    assert [run["run"] for run in cli("runs", "--status", "done", "--json").json["runs"]] == ["done-1"]
    assert [run["run"] for run in cli("runs", "--json", "list", "--workflow", "broken").json["runs"]] == ["failed-1"]
    assert [run["run"] for run in cli("runs", "--label", "team=[bold]", "--json").json["runs"]] == ["done-1"]
    assert cli("runs", "--workflow", "nothing").err.startswith("no such runs in sqlite:///")
    assert cli("runs", "--label", "team").code == 2


def test_looking_where_there_is_no_store_creates_none(cli, own_folder):
    """A typo in a path must not become an empty store that then looks healthy."""
    ended = cli("runs", "--store", "sqlite:///typo.db")

    assert ended.code == 2
    assert ended.err.startswith("NotFound: ")
    assert list(own_folder.iterdir()) == []


def test_a_damaged_run_stands_first_and_hides_no_other(cli, runs, monkeypatch):
    """One bad record must not blind the person who has to look after all the other runs."""
    whole = journal.load

    def load(store, run, *more):
        if run == "queued-1":
            raise sf.JournalCorrupt("entry 1 is damaged")
        return whole(store, run, *more)

    monkeypatch.setattr(journal, "load", load)

    ended = cli("runs")
    shown = cli("runs", "show", "queued-1")

    assert ended.out.splitlines()[1].split()[:2] == ["damaged", "queued-1"]
    assert len(ended.out.splitlines()) == 6
    assert (shown.code, shown.err) == (4, "JournalCorrupt: entry 1 is damaged\n")


def test_a_page_tells_why_it_stopped_what_helps_and_every_call(cli, runs):
    """One page has to do."""
    ended = cli("runs", "show", "stopped-1")

    assert ended.code == 0
    assert "status     stopped: needs a person" in ended.out
    assert "InDoubt: run stopped-1, charge#1: raised ConnectionError" in ended.out
    assert re.search(r"did not, try again\? +surefoot settle stopped-1 'charge#1' --not-happened", ended.out)
    assert re.search(r"^charge#1 +effect +in doubt +1 ", ended.out, re.MULTILINE)
    assert re.search(rf"process 1: worker \w+ on host .* \(pid {os.getpid()}\)", ended.out)


def test_a_failed_run_says_how_to_try_again_once_the_cause_is_fixed(shell):
    """The same id gives the same failure for ever: without a way on, people invent new ids and do everything twice."""
    shell("run", "app:failing", "--id", "f", "luck")

    cure = "surefoot runs retry f --failed"
    assert f"  fixed?   {cure}\n" in shell("runs", "show", "f").out
    assert f"  fixed?     {cure}\n" in shell("runs", "plan", "f").out
    [told] = shell("runs", "plan", "f", "--json").json["cures"]
    assert (told["when"], told["do"], told["command"]) == ("fixed?", cure, cure)
    assert (told["verb"], told["arguments"]) == ("runs retry", {"run": "f", "failed": True})
    assert shell("runs", "retry", "f", "--failed", "--yes").code == 0


def test_what_is_suggested_names_the_module_where_that_is_known(cli, runs, monkeypatch):
    """A command with a blank in it is a riddle at night."""
    monkeypatch.setenv("SUREFOOT_APP", "shop")

    assert "surefoot runs resume queued-1 --app shop\n" in cli("runs", "show", "queued-1").out
    assert "surefoot worker shop\n" in cli("runs", "show", "queued-1").out
    forked = cli("runs", "fork", "stopped-1", "--at", "charge#1", "--id", "g", "--yes")
    assert "go on with: surefoot runs resume g --app shop\n" in forked.out


def test_a_page_for_programs_leaves_nothing_out(cli, runs, hostile):
    page = cli("runs", "show", "stopped-1", "--json").json

    first, second = page["calls"]
    assert (page["status"], page["stands"], page["driven"]) == ("stopped", "stopped", False)
    assert (first["address"], first["result"], first["args"]) == ("read#1", hostile, {"name": hostile})
    assert (second["in_doubt"], second["on_crash"], len(second["key"]) > 10) == (True, "ask", True)
    assert page["stops"][0]["cures"][0]["do"].startswith("surefoot settle stopped-1 ")


def test_commands_on_a_page_name_the_store_if_it_is_not_the_default_one(cli, own_folder):
    """What is printed works when pasted."""
    url = "sqlite:///other place.db"
    with pytest.raises(sf.SurefootError):
        from_here(url)

    ended = cli("runs", "show", "x", "--store", url)

    assert "--not-happened --store 'sqlite:///other place.db'" in ended.out


def from_here(url):
    @sf.effect
    def lose() -> None:
        raise TimeoutError

    @sf.workflow(name="losing")
    def losing() -> None:
        lose()

    losing.using(store=url).run("x")


def test_an_unknown_run_is_not_found(cli, runs):
    for verb in ("show", "tail", "plan", "cancel"):
        ended = cli("runs", verb, "nobody")

        assert (ended.code, ended.out) == (2, "")
        assert ended.err.startswith("NotFound: there is no run 'nobody' in sqlite:///.surefoot/runs.db")


def test_nothing_recorded_reaches_the_terminal_raw(cli, runs):
    """A model's answer must not be able to hide a line, fake one, or retitle the window."""
    shown = [cli("runs"), cli("runs", "--json")]
    for run in ("done-1", "failed-1", "stopped-1"):
        shown += [cli("runs", "show", run), cli("runs", "show", run, "--json")]
        shown += [cli("runs", "tail", run, "--no-follow"), cli("runs", "tail", run, "--no-follow", "--json")]
        shown += [cli("runs", "plan", run)]

    assert [] == [found for ended in shown for found in RAW.findall(ended.out + ended.err)]
    assert "\\x1b[31mred\\x07\\u202eevil\\x9b2J[bold]" in cli("runs", "show", "failed-1").out


def test_the_journal_is_told_entry_by_entry(cli, runs):
    ended = cli("runs", "tail", "waiting-1", "--no-follow")

    whats = [re.split(r"  +", line)[1] for line in ended.out.splitlines()]
    assert ended.code == 0
    assert whats == ["run created", "claimed", "waiting", "STOPPED"]


def test_the_journal_for_programs_is_one_object_per_line(cli, runs):
    ended = cli("runs", "tail", "done-1", "--json", "--last", "2")

    entries = [json.loads(line) for line in ended.out.splitlines()]
    assert [entry["kind"] for entry in entries] == ["StepDone", "RunDone"]


def test_following_a_journal_ends_when_the_run_ends(child):
    """`tail` is what people leave open in a second window."""
    started = child.start("run", "app:sitting", "--id", "x")
    child.wait_until_it_sits()
    tail = child.start("runs", "tail", "x", "--json")
    assert json.loads(tail.stdout.readline())["kind"] == "RunCreated"

    child.let_go()

    kinds = [json.loads(line)["kind"] for line in tail.communicate()[0].splitlines()]
    assert (tail.returncode, kinds[-1]) == (0, "RunDone")
    assert started.wait() == 0


@pytest.mark.parametrize("run", ["waiting-1", "stopped-1", "queued-1"])
def test_a_journal_that_nobody_writes_is_not_waited_for(cli, runs, run):
    """In a pipe, nobody is there to press Ctrl-C."""
    ended = cli("runs", "tail", run)

    assert (ended.code, len(ended.out.splitlines())) == (0, len(sf.get_run(run).entries()))
    assert f"run {run}: " in ended.err
    assert "Nobody drives it; wait for more with --follow." in ended.err


def test_tail_ends_when_the_process_that_drove_the_run_is_gone(child):
    started = child.start("run", "app:sitting", "--id", "x")
    child.wait_until_it_sits()
    tail = child.start("runs", "tail", "x", "--json")
    tail.stdout.readline()

    started.kill()

    assert "cut off: its process is gone" in tail.communicate()[1]
    assert tail.returncode == 0


def test_follow_waits_for_whoever_takes_the_run_up(child, shell):
    """The other wish: to see all of it, however long nobody drives it."""
    started = child.start("run", "app:sitting", "--id", "x")
    child.wait_until_it_sits()
    started.kill()
    started.wait()
    tail = child.start("runs", "tail", "x", "--json", "--follow")
    assert json.loads(tail.stdout.readline())["kind"] == "RunCreated"

    again = child.start("run", "app:sitting", "--id", "x")
    child.wait_until_it_sits()
    child.let_go()

    assert json.loads(tail.communicate()[0].splitlines()[-1])["kind"] == "RunDone"
    assert (tail.returncode, again.wait()) == (0, 0)


def test_a_run_whose_process_is_gone_is_ready_to_go_on_and_not_running(child, shell):
    """By its journal it runs; the journal does not know that its process was killed."""
    started = child.start("run", "app:sitting", "--id", "x")
    child.wait_until_it_sits()
    started.kill()
    started.wait()

    planned = shell("runs", "plan", "x", "--app", "app")
    facts = shell("runs", "plan", "x", "--app", "app", "--json").json

    assert planned.out.startswith(
        "run x: cut off: its process is gone, everything it recorded is safe, and it is ready"
    )
    assert "running" not in planned.out
    assert (facts["status"], facts["stands"]) == ("running", "cut off")
    assert "its process is gone; ready to go on" in shell("runs").out


def test_an_interrupted_run_is_ready_and_one_that_nobody_began_is_queued(cli, runs):
    """There is no queue in sight for the one; for the other, a worker is the answer."""

    @sf.workflow(name="interrupted")
    def wf():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        wf.run("cut-1")

    listed = {line.split()[1]: line.split(maxsplit=1)[0] for line in cli("runs").out.splitlines()}
    facts = {one["run"]: (one["status"], one["stands"], one["why"]) for one in cli("runs", "--json").json["runs"]}

    assert (listed["cut-1"], listed["queued-1"]) == ("ready", "queued")
    assert facts["cut-1"] == ("queued", "ready", "ready to go on")
    assert facts["queued-1"] == ("queued", "queued", "waits for a worker or a resume")
    assert "status     ready to go on; nobody drives it" in cli("runs", "show", "cut-1").out


@pytest.mark.parametrize(
    "words",
    [
        ("approve", "r"), ("deny", "r"), ("answer", "r", "ask#1", "1"), ("settle", "r", "a#1", "--not-happened"),
        ("accept", "r"), ("runs", "show", "r"), ("runs", "plan", "r"), ("runs", "tail", "r"), ("runs", "resume", "r"),
        ("runs", "cancel", "r"), ("runs", "rewind", "r", "--at", "a#1"), ("runs", "diff", "r", "r"),
        ("runs", "fork", "r", "--at", "a#1", "--id", "n"), ("runs", "release", "r"),
    ],
)  # fmt: skip
def test_every_verb_on_a_run_takes_the_code(cli, runs, words):
    """Whoever has to remember which verbs take it, types it wrong at night."""
    ended = cli(*words, "--app", "tests.cli.conftest")

    assert ended.code != 0
    assert "No such option" not in ended.err


def test_what_is_suggested_names_the_code(cli, runs, monkeypatch):
    """A command to paste, not one to fill in; and nothing is imported to look at a run."""
    monkeypatch.setenv("SUREFOOT_APP", "no_such_module")

    assert "surefoot runs resume queued-1 --app no_such_module" in cli("runs", "show", "queued-1").out
    assert "surefoot runs resume queued-1 --app other" in cli("runs", "show", "queued-1", "--app", "other").out


def test_ctrl_c_ends_the_looking_and_not_the_run(child, shell):
    started = child.start("run", "app:sitting", "--id", "x")
    child.wait_until_it_sits()
    tail = child.start("runs", "tail", "x")
    tail.stdout.readline()

    tail.send_signal(signal.SIGINT)

    _, err = tail.communicate()
    assert (tail.returncode, err.strip()) == (130, "")
    assert shell("runs", "show", "x", "--json").json["stands"] == "running"
    child.let_go()
    assert started.wait() == 0


# --- planning and resuming -------------------------------------------------------------------------------


def test_a_plan_tells_what_would_run_and_runs_nothing(shell, app):
    """Looking first is how people dare to resume."""
    in_doubt(shell)
    before = (app / "ledger").read_text()

    without_code = shell("runs", "plan", "tick-81")
    with_code = shell("runs", "plan", "tick-81", "--app", "app", "--json").json
    shell("settle", "tick-81", "send#2", "--not-happened")
    settled = shell("runs", "plan", "tick-81", "--app", "app")

    assert "in doubt   send#2: a resume would stop and ask a person" in without_code.out
    assert "add --app MODULE" in without_code.out
    assert (with_code["effects"], with_code["in_doubt"][0]["address"]) == ([], "send#2")
    assert "next       effect send#2" in settled.out
    assert (app / "ledger").read_text() == before


def test_resuming_without_a_terminal_needs_yes(shell, app):
    """A script must say that it means it."""
    in_doubt(shell)
    shell("settle", "tick-81", "send#2", "--not-happened")
    before = (app / "ledger").read_text()

    refused = shell("runs", "resume", "tick-81", "--app", "app")
    agreed = shell("runs", "resume", "tick-81", "--yes", SUREFOOT_APP="app")

    assert (refused.code, refused.out) == (2, "")
    assert "next       effect send#2" in refused.err
    assert "add --yes" in refused.err
    assert (agreed.code, agreed.out) == (0, "2\n")
    assert (app / "ledger").read_text() == before + "send Bob\n"


@pytest.mark.parametrize(("answer", "code", "out"), [("n", 1, ""), ("y", 0, "2\n")])
def test_resuming_at_a_terminal_asks_first(shell, child, answer, code, out):
    in_doubt(shell)
    shell("settle", "tick-81", "send#2", "--happened", '"mail-Bob"')
    ours, theirs = pty.openpty()
    asked = child.start("runs", "resume", "tick-81", "--app", "app", stdin=theirs)
    os.close(theirs)

    os.write(ours, f"{answer}\n".encode())
    said, err = asked.communicate()
    os.close(ours)

    assert (asked.returncode, said) == (code, out)
    assert "go on? [y/N]" in err


def test_resuming_needs_the_code_and_never_takes_it_from_the_journal(shell, app):
    """Code is named by the person. Stored data says what was run, not what to import."""
    in_doubt(shell)
    (app / "other.py").write_text("")

    unnamed = shell("runs", "resume", "tick-81", "--yes")
    wrong = shell("runs", "resume", "tick-81", "--app", "other", "--yes")

    assert (unnamed.code, wrong.code) == (2, 2)
    assert "--app MODULE, or SUREFOOT_APP" in unnamed.err
    assert "run tick-81 belongs to workflow 'notify'; --app other" in wrong.err


def test_resuming_a_run_with_an_open_question_asks_the_same_question(shell):
    in_doubt(shell)

    ended = shell("runs", "resume", "tick-81", "--app", "app", "--yes")

    assert (ended.code, ended.out) == (3, "")
    assert "InDoubt: run tick-81, send#2" in ended.err


def test_a_script_that_resumes_a_run_which_needs_a_person_hears_of_the_stop(shell, app):
    """Exit code 2 would say that the command is wrong, and `--yes` is not what is missing: nothing would run."""
    in_doubt(shell)
    before = (app / "ledger").read_text()

    ended = shell("runs", "resume", "tick-81", "--app", "app")
    facts = shell("runs", "resume", "tick-81", "--app", "app", "--json").json["error"]

    assert (ended.code, ended.out) == (3, "")
    assert "InDoubt: run tick-81, send#2" in ended.err
    assert "surefoot settle tick-81 'send#2' --not-happened" in ended.err
    assert "--yes" not in ended.err
    assert (facts["type"], facts["exit_code"], facts["run"]) == ("InDoubt", 3, "tick-81")
    assert (app / "ledger").read_text() == before


def test_a_script_hears_of_a_stop_that_is_not_on_record_yet(shell, app):
    """The process was killed, and the code has changed since: the first resume finds it, and executes nothing."""
    shell("run", "app:notify", "--id", "tick-81", '["Ada", "Bob"]', DIE_AFTER_SENDING_TO="Bob")
    edit(app, "def send(", "def mail(")
    edit(app, "send(customer, draft", "mail(customer, draft")
    before = (app / "ledger").read_text()

    ended = shell("runs", "resume", "tick-81", "--app", "app")

    assert (ended.code, ended.out) == (3, "")
    assert "the code now asks for the effect mail#1" in ended.err
    assert "surefoot runs resume tick-81 --app app --yes" in ended.err
    assert (app / "ledger").read_text() == before


@pytest.mark.parametrize("verb", [("plan",), ("resume",), ("resume", "--yes")], ids=" ".join)
def test_an_effect_that_lost_its_decorator_is_not_executed_by_looking(shell, app, verb):
    """To replay the code would execute it, unrecorded; who only looks at a plan would have sent it twice."""
    shell("run", "app:notify", "--id", "tick-81", '["Ada", "Bob"]', DIE_AFTER_SENDING_TO="Bob")
    edit(app, "@sf.effect\ndef send(", "def send(")
    before = (app / "ledger").read_text()

    ended = shell("runs", verb[0], "tick-81", "--app", "app", *verb[1:])

    assert ended.code == (0 if verb == ("plan",) else 3)
    assert "send in app is a plain function now" in ended.out + ended.err
    assert (app / "ledger").read_text() == before


def edit(app, old, new):
    code = (app / "app.py").read_text()
    assert old in code
    (app / "app.py").write_text(code.replace(old, new))


def test_resuming_an_async_run_that_is_done_prints_its_result(shell, app):
    (app / "go").touch()
    shell("run", "app:sitting_async", "--id", "x")

    assert shell("runs", "resume", "x", "--app", "app").out == '"sat"\n'


# --- cancelling --------------------------------------------------------------------------------------------


def test_cancelling_ends_a_run_at_once_and_records_who_and_why(cli, runs):
    ended = cli("runs", "cancel", "waiting-1", "--by", "ada", "--note", "customer left")

    assert (ended.code, ended.out) == (0, "recorded: run waiting-1 cancelled, said by ada: customer left\n")
    assert cli("runs", "show", "waiting-1", "--json").json["cancel_asked_by"] == "ada: customer left"
    again = cli("runs", "cancel", "waiting-1")
    assert (again.code, again.err) == (2, "UsageError: run waiting-1 has ended already: cancelled\n")


def test_cancelling_names_what_is_in_doubt_and_so_does_show_afterwards(shell):
    """It may have happened, and nothing undid it: a person has to look outside."""
    in_doubt(shell)

    ended = shell("runs", "cancel", "tick-81", "--by", "ada", "--yes")
    shown = shell("runs", "show", "tick-81")

    assert "InDoubt: run tick-81, send#2: " in ended.out
    assert "If it happened, it is not undone." in ended.out
    assert "what became of 1 effect is not known" in shown.out
    assert "see outside what became of it" in shown.out
    assert shell("settle", "tick-81", "send#2", "--happened", '"mail"', "--by", "ada").code == 0
    assert "is not known" not in shell("runs", "show", "tick-81").out


def test_cancelling_names_the_operating_system_user_by_default(cli, runs, monkeypatch):
    monkeypatch.setenv("LOGNAME", "grace")

    assert cli("runs", "cancel", "queued-1", "--json").json["recorded"]["by"] == "grace"


UNDOING = """
import surefoot as sf

def log(line):
    with open("ledger", "a") as ledger:
        ledger.write(line + "\\n")

@sf.effect
def book():
    log("book")

@book.undo
def _(result):
    log("undo")

@sf.workflow
def trip():
    with sf.saga():
        book()
        sf.approve("Pay?")
"""


@pytest.fixture
def trip(shell, app):
    (app / "travel.py").write_text(UNDOING)
    assert shell("run", "travel:trip", "--id", "x").code == 3
    return app


def test_cancelling_with_the_code_at_hand_undoes(shell, trip):
    ended = shell("runs", "cancel", "x", "--app", "travel", "--by", "ada")

    assert (ended.code, ended.out) == (0, "recorded: run x cancelled, said by ada\n")
    assert (trip / "ledger").read_text().split() == ["book", "undo"]


def test_cancelling_without_the_code_says_what_stays_done_and_how_to_undo_it(shell, trip):
    """Nothing can be undone afterwards, so it is said before."""
    unasked = shell("runs", "cancel", "x")
    assert unasked.code == 2
    assert "Done, and left as it is: book#1" in unasked.err
    assert "surefoot runs cancel x --app MODULE" in unasked.err
    assert shell("runs", "show", "x", "--json").json["status"] == "waiting"

    ended = shell("runs", "cancel", "x", "--yes", "--json")

    assert ended.json["recorded"]["left_done"] == ["book#1"]
    assert "nothing of it was undone: its code is not at hand. Done, and left as it is: book#1" in ended.err
    assert (trip / "ledger").read_text().split() == ["book"]


def test_a_run_that_is_driven_is_asked_and_ends_by_itself(child, shell):
    started = child.start("run", "app:sitting", "--id", "x")
    child.wait_until_it_sits()

    ended = shell("runs", "cancel", "x", "--by", "ada")
    child.let_go()
    _, err = started.communicate()

    assert "asked to cancel; its process ends it at the next call" in ended.out
    assert started.returncode == 1
    assert err.endswith("\nCancelled: run x was cancelled by ada\n")
    assert shell("run", "app:sitting", "--id", "x").code == 1


# --- a reader that goes away -----------------------------------------------------------------------------


def test_a_reader_that_goes_away_is_no_crash(shell, app, child):
    """`surefoot runs tail x | head -1`."""
    shell("run", "app:notify", "--id", "x", json.dumps([str(number) for number in range(50)]))
    reading, writing = os.pipe()
    os.close(reading)

    ended = child.start("runs", "tail", "x", stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)

    assert "Traceback" not in ended.communicate()[1]


def test_looking_at_a_module_that_starts_runs_at_import_executes_nothing(shell, own_folder):
    """`plan` says that nothing is executed; importing the module must not be the exception."""
    (own_folder / "eager.py").write_text(
        "import surefoot as sf\n"
        "@sf.effect\n"
        "def act():\n    open('acted', 'a').write('x')\n"
        "@sf.workflow\n"
        "def wf():\n    act()\n"
        "wf.run('eager-1')\n"
    )
    shell("run", "app:notify", "--id", "x", '["Bob"]')
    looked = shell("runs", "plan", "x", "--app", "eager")

    assert looked.code == 2
    assert "if __name__ == '__main__'" in looked.err
    assert not (own_folder / "acted").exists()


def test_a_command_that_is_suggested_does_not_show_the_password_of_the_store():
    """It would end up in terminals, logs and screenshots."""
    told = operators.resume_command(Settings(store="postgresql://app:geheim@db/runs"), "r")

    assert told == "surefoot runs resume r --app MODULE --store 'postgresql://app:***@db/runs'"


# --- one call ------------------------------------------------------------------------------------------


def test_one_call_is_shown_whole(cli, runs):
    """In the list of calls it is cut; here nobody has to guess what was asked of the other side."""
    shown = cli("runs", "show", "stopped-1", "charge#1")
    found = cli("runs", "show", "stopped-1", "charge#1", "--json").json

    assert shown.code == 0
    assert shown.out.splitlines()[0] == "run stopped-1, effect charge#1: in doubt"
    assert "ConnectionError: lost" in shown.out
    assert "\x1b" not in shown.out
    assert (found["run"], found["address"], found["status"], found["in_doubt"]) == (
        "stopped-1",
        "charge#1",
        "in doubt",
        True,
    )
    assert [(one["attempt"], one["outcome"]) for one in found["made"]] == [(1, "in doubt")]
    assert [entry["kind"] for entry in found["entries"]] == ["EffectIntended", "EffectDoubted"]
    assert found["key"]


def test_call_that_is_not_there_is_refused_with_those_near_it(cli, runs):
    shown = cli("runs", "show", "stopped-1", "charge#2")

    assert shown.code == 2
    assert "charge#1" in shown.err


def test_run_says_where_its_journal_ended(cli, runs):
    """What is decided on it can be bound to that (`seen=`)."""
    found = cli("runs", "show", "stopped-1", "--json").json
    entries = cli("runs", "tail", "stopped-1", "--no-follow", "--json").out.splitlines()

    assert found["head"]["seq"] == len(entries)
    assert len(found["head"]["seal"]) == 64


def test_supposed_words_are_told_and_not_recorded(cli, runs):
    before = cli("runs", "tail", "stopped-1", "--no-follow").out

    told = cli("runs", "plan", "stopped-1", "--supposing", '{"do": "rewind", "at": "read#1"}')
    found = cli("runs", "plan", "stopped-1", "--json", "--supposing", '{"do": "rewind", "at": "read#1"}').json
    wrong = cli("runs", "plan", "stopped-1", "--supposing", "rewind")

    assert told.code == 0
    assert "set aside  read#1, and runs again" in told.out
    assert set(found) == {"plan", "supposed", "seen"}
    assert found["supposed"]["sets_aside"] == ["read#1"]
    assert wrong.code == 2
    assert before == cli("runs", "tail", "stopped-1", "--no-follow").out


def test_event_is_sent_and_the_run_goes_on(cli, runs):
    said = cli("send-event", "waiting-1", "paid", '{"cents": 5}', "--id", "e-1", "--by", "ann", "--json")

    assert said.code == 0
    assert said.json["recorded"] == {
        "run": "waiting-1", "event": "paid", "value": {"cents": 5}, "id": "e-1", "by": "ann", "note": "",
    }  # fmt: skip
    assert said.json["status"] == "queued"
    assert cli("send-event", "waiting-1", "paid", "no json").code == 2
    assert cli("send-event", "done-1", "paid").code == 2
