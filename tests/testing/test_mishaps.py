"""What goes wrong without a kill is tried too: whoever says that nothing was done must be right about it."""

from __future__ import annotations

import os
import re
import threading
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

import surefoot as sf
from surefoot.core.command import RunCheck
from surefoot.core.programs import calls
from surefoot.core.programs.landing import Landing
from surefoot.engine.declare import drifts
from surefoot.testing import NotHeld, crash_matrix, mishaps, probe, scenarios, verdicts
from surefoot.testing.acting import Eyes
from surefoot.testing.children import in_child
from surefoot.testing.survivor import Survivor
from tests.testing import mistakes
from tests.testing.test_crash_matrix import found


@pytest.mark.parametrize(
    ("workflow", "call"),
    [
        (mistakes.declined_after_charging, "charge_then_decline#1"),
        (mistakes.cannot_read_the_answer, "charge_and_read#1"),
        (mistakes.says_not_done_itself, "charge_and_regret#1"),
        (mistakes.any_exception_is_proof, "charge_whatever#1"),
        (mistakes.any_exception_is_proof_async, "charge_whatever_async#1"),
        (mistakes.one_is_right_and_one_is_not, "charge_whatever#1"),
        (mistakes.time_out_is_proof, "charge_in_time#1"),
        (mistakes.converts_what_went_wrong, "charge_and_convert#1"),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_an_effect_that_acts_and_says_that_it_did_not_is_found(workflow, call):
    """A saga leaves the charge behind, a retry charges again, a person is told that nothing happened."""
    assert found(workflow) == [(verdicts.ACTING, call)]


@pytest.mark.parametrize(
    "workflow",
    [
        mistakes.declined_before_charging,
        mistakes.broad_names_are_no_proof,
        mistakes.takes_back_what_went_wrong,
        mistakes.nothing_changes_by_it,
    ],
    ids=lambda workflow: workflow.name,
)
def test_who_is_right_about_it_is_not_blamed(workflow):
    """The class is the same; it is raised where nothing was done, or nothing was left, or nobody believes it."""
    assert crash_matrix(workflow).held


def test_a_mishap_is_reproduced_from_its_line():
    """One line, one mishap, the same finding; nobody is killed for it."""
    with pytest.raises(NotHeld) as raised:
        crash_matrix(mistakes.any_exception_is_proof)
    at = re.search(r"at='(.*)'", raised.value.report.findings[0].reproduce)[1]
    assert at == "after:call:charge_whatever#1+lost-OSError"

    with pytest.raises(NotHeld, match="not_done=Exception says that nothing was done") as again:
        crash_matrix(mistakes.any_exception_is_proof, at=at)
    assert ([], [at]) == ([one.at for one in again.value.report.tried], [one.at for one in again.value.report.mishaps])
    assert f"struck at  {at}" in str(again.value)


class ReadTimeout(Exception):
    """As httpx has one; of a module that is known."""


ReadTimeout.__module__ = "httpx"


class Odd(ConnectionResetError):
    """Cannot be made by hand."""

    def __init__(self, one, two):
        super().__init__(one, two)


@pytest.mark.parametrize(
    ("not_done", "ways"),
    [
        (None, ["TimeoutError"]),
        ((), ["TimeoutError"]),
        (ValueError, ["TimeoutError"]),
        (KeyError, ["TimeoutError"]),
        (ConnectionError, ["TimeoutError"]),
        (mistakes.CardDeclined, ["TimeoutError"]),
        (ConnectionRefusedError, ["TimeoutError"]),
        (Odd, ["TimeoutError"]),
        (TimeoutError, ["TimeoutError"]),
        (ConnectionResetError, ["TimeoutError", "ConnectionResetError"]),
        (ReadTimeout, ["TimeoutError", "ReadTimeout"]),
        (OSError, ["TimeoutError", "OSError"]),
        ((Exception, ReadTimeout), ["TimeoutError", "OSError", "ReadTimeout"]),
    ],
)
def test_only_what_a_network_can_give_is_raised_instead_of_an_answer(not_done, ways):
    """A lie that only the kit has invented is nobody's mistake."""

    @sf.effect(not_done=not_done)
    def act() -> None:
        """Never called."""

    assert list(mishaps.lost_answers(act.spec)) == ways


# --- what lands after a kill ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("workflow", "call", "words"),
    [
        (mistakes.program_outlives, "mail_by_program#1", 'in_flight="0s" is not true'),
        (mistakes.program_takes_longer, "mail_by_hasty_program#1", 'in_flight="0.001s" is not true'),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_a_program_that_outlives_its_process_is_waited_for_or_found(workflow, call, words):
    """kill -9, and what the dead process had started still goes on: its check looks too early, and it is done twice."""
    with pytest.raises(NotHeld) as raised:
        crash_matrix(workflow)

    (finding,) = raised.value.report.findings
    assert (finding.mistake, finding.call) == (verdicts.LANDING, call)
    assert words in finding.what
    assert "mailed.txt has 2 lines instead of 1" in finding.what


@pytest.mark.parametrize(
    "workflow",
    [mistakes.program_is_waited_for, mistakes.program_has_its_time, mistakes.dies_with_its_process],
    ids=lambda workflow: workflow.name,
)
def test_a_check_that_is_believed_in_time_is_not_blamed(workflow):
    """It looks at once, and again when nothing can be on its way any more; or nothing ever is."""
    assert crash_matrix(workflow).held


def test_what_a_fake_notes_may_land_late():
    """A line of the ledger stands for something elsewhere, which goes on without us."""
    assert found(mistakes.texts_at_once, world=mistakes.ledger) == [(verdicts.LANDING, "sms_at_once#1")]
    report = crash_matrix(mistakes.texts_in_a_while, world=mistakes.ledger)
    assert {one.at: one.how for one in report.mishaps}["inside:call:sms_in_a_while#1 open+late"] == verdicts.FOUND


class Bank(BaseHTTPRequestHandler):
    """Wires what is posted to it, and says what it has wired. "clear" puts it back."""

    wired: ClassVar[list[str]] = []

    def do_POST(self):
        words = self.rfile.read(int(self.headers["Content-Length"])).decode()
        if words == "clear":
            self.wired.clear()
        else:
            self.wired.append(words)
        self.answer(words)

    def do_GET(self):
        self.answer(" ".join(self.wired))

    def answer(self, words):
        self.send_response(200)
        self.send_header("Content-Length", str(len(words)))
        self.end_headers()
        self.wfile.write(words.encode())

    def log_message(self, *_):
        pass


@pytest.fixture
def bank(monkeypatch):
    """A world of its own: it lives on whoever dies, and is asked over the network."""
    Bank.wired.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Bank) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setenv("BANK", f"http://127.0.0.1:{server.server_port}/")
        yield BankWorld()
        server.shutdown()
        thread.join()


class BankWorld:
    def reset(self):
        mistakes.ask_bank("clear")

    def snapshot(self):
        return mistakes.ask_bank("").split()


def test_a_request_that_arrives_after_the_kill_is_waited_for_or_found(bank):
    """The other side works on it, whoever has died."""
    assert found(mistakes.wires_at_once, world=bank) == [(verdicts.LANDING, "wire_at_once#1")]
    assert crash_matrix(mistakes.wires_in_a_while, world=bank).held


def test_two_requests_in_one_effect_are_not_proven_undone_by_the_second(bank):
    """A connection that was refused proves that this request was not sent. The first one was."""
    with pytest.raises(NotHeld) as raised:
        crash_matrix(mistakes.two_requests, world=bank)

    (finding,) = raised.value.report.findings
    assert (finding.mistake, finding.call) == (verdicts.ACTING, "wire_and_read#1")
    assert "counts as proof (the request was not sent)" in finding.what
    assert finding.at == ["inside:call:wire_and_read#1 socket.connect~2+fails"]
    assert crash_matrix(mistakes.two_requests_and_says_so, world=bank).held


def outliving(survivor, path):
    """A process that dies, and leaves something that writes."""

    def lives(_):
        survivor.stay()
        path.write_text("landed")
        os._exit(0)

    ended = in_child(lives, seconds=20)
    assert ended.killed
    survivor.begin(1_000)


def test_what_outlives_its_process_waits_until_it_is_let_go(tmp_path):
    """When it lands is said by the kit's clock, and not by luck."""
    with closing(Survivor(500, patience=20)) as survivor:
        outliving(survivor, tmp_path / "x")

        assert (survivor.due, (tmp_path / "x").exists()) == (1_500, False)
        assert survivor.land()
        assert (tmp_path / "x").read_text() == "landed"
        assert not survivor.land()


def test_what_outlives_its_process_does_not_outlive_the_scenario(tmp_path):
    """Not let go, it is ended; nothing of it is left, and nothing is done."""
    survivor = Survivor(0, patience=20)
    outliving(survivor, tmp_path / "x")
    pid = survivor._pid
    survivor.close()

    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert not (tmp_path / "x").exists()


# --- who has changed the world -------------------------------------------------------------------------------------------


def test_what_others_change_meanwhile_is_not_blamed_on_a_call():
    """Two branches side by side: only what a call has reached for counts."""
    world = {"a": "1", "b": "1"}
    eyes = Eyes(lambda: dict(world))
    eyes.begins("one")
    eyes.begins("two")
    eyes.reaches("one", "a")
    eyes.reaches("two", "b")
    world["b"] = "2"

    assert (eyes.ends("one"), eyes.ends("two")) == (False, True)


def test_a_call_that_is_alone_has_done_whatever_was_done():
    """Also what a program of its own did, which nobody can see into."""
    world = {"a": "1"}
    eyes = Eyes(lambda: dict(world), only="one")
    eyes.begins("one")
    world["c"] = "1"
    assert eyes.ends("one") is True

    eyes.begins("one")
    assert eyes.ends("one") is None  # It reached for nothing that is compared.
    eyes.begins("one")
    eyes.reaches("one", "c")
    assert eyes.ends("one") is False


# --- twice in one process ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "workflow",
    [mistakes.remembers_that_it_began, mistakes.uses_up_a_list, mistakes.keeps_its_turn],
    ids=lambda workflow: workflow.name,
)
def test_lines_that_do_not_bear_to_run_twice_in_one_process_are_named(workflow, monkeypatch):
    """A resumed run is rehearsed first. What its own lines remember from that is not there in the process before."""
    monkeypatch.setattr(scenarios, "LEAST_SECONDS", 3.0)

    assert found(workflow) == [(verdicts.TWICE, workflow.name)]


def test_resumes_that_do_not_end_are_enough_wherever_that_comes_from(monkeypatch):
    """A lock that stays taken would be waited for at every boundary."""
    monkeypatch.setattr(scenarios, "LEAST_SECONDS", 3.0)
    with pytest.raises(NotHeld) as raised:
        crash_matrix(mistakes.keeps_its_turn)

    report = raised.value.report
    assert sum(not one.held for one in report.tried) == 2
    assert any(note.startswith("not tried: ") for note in report.notes)


def test_lines_that_bear_it_are_not_blamed():
    """A lock that is given back, a list that is copied."""
    assert crash_matrix(mistakes.takes_its_turn).held


# --- somebody else writes ------------------------------------------------------------------------------------------------


@pytest.fixture
def page():
    Path("page.txt").write_text("old")


@pytest.mark.usefixtures("page")
def test_a_change_of_somebody_else_that_is_overwritten_is_found():
    """While the person thinks about it, the file is edited; the yes was for another one."""
    with pytest.raises(NotHeld) as raised:
        crash_matrix(mistakes.accepts_what_it_overwrites)

    (finding,) = raised.value.report.findings
    assert (finding.mistake, finding.call) == (verdicts.OVERWRITTEN, "rewrite_page#1")
    assert "page.txt, edited by somebody else after QuestionAsked of approve#1, was overwritten" in finding.what
    assert "on_drift='accept' lets it be" in finding.what
    assert len(finding.at) == 2  # while it waits, and while the effect is in doubt


@pytest.mark.usefixtures("page")
def test_a_change_that_stops_the_run_is_noticed():
    """The default."""
    report = crash_matrix(mistakes.stops_before_it_overwrites)

    edited = {one.at: one.how for one in report.mishaps if one.at.endswith("+edited")}
    assert edited == {
        "after:write:QuestionAsked approve#1+edited": verdicts.NOTICED,
        "after:write:EffectIntended rewrite_page#1+edited": verdicts.NOTICED,
    }


@pytest.mark.usefixtures("page")
def test_a_change_after_the_question_is_asked_about_again():
    """The yes was for what the person was shown."""
    at = "after:write:QuestionAsked rewrite_page_if_allowed#1.approval+edited"
    (tried,) = crash_matrix(mistakes.asks_again_before_it_overwrites, at=at).mishaps

    assert tried.how == verdicts.ASKED_AGAIN


@pytest.mark.usefixtures("page")
@pytest.mark.parametrize(
    ("workflow", "words"),
    [
        (mistakes.warns_of_what_it_overwrites, "on_drift='warn' lets it be, with a warning."),
        (mistakes.runs_again_whatever_it_finds, 'on_crash="retry" lets it be.'),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_a_change_that_is_overwritten_as_declared_is_said(workflow, words):
    """Declared, and perhaps not as meant."""
    (note,) = crash_matrix(workflow).notes

    assert "page.txt, edited by somebody else" in note
    assert note.endswith(words)


@pytest.mark.usefixtures("page")
def test_files_that_do_not_count_are_not_edited():
    """Who says that nobody else has anything to say about a file is believed."""
    report = crash_matrix(mistakes.accepts_what_it_overwrites, exclude="page.txt")

    assert not any(one.at.endswith("+edited") for one in report.mishaps)


# --- negative controls ---------------------------------------------------------------------------------------------------


def test_an_engine_that_believes_a_check_at_once_is_caught(monkeypatch):
    """The declaration is true; whoever does not wait for it does the effect twice."""

    def hasty(_landing, **_):
        return (yield RunCheck())

    monkeypatch.setattr(Landing, "looked", hasty)

    at = "inside:call:mail_by_bounded_program#1 subprocess.Popen+late"
    assert found(mistakes.program_is_waited_for, at=at) == [(verdicts.LANDING, "mail_by_bounded_program#1")]


def test_an_engine_that_believes_a_broad_name_is_caught(monkeypatch):
    """A lost connection is known as unsure: `not_done=` of a class above it does not speak for it."""
    monkeypatch.setattr(calls, "proves_not_done", believed)
    monkeypatch.setattr(probe, "proves_not_done", believed)

    at = "after:call:charge_whatever#1+lost"
    assert found(mistakes.any_exception_is_proof, at=at) == [(verdicts.ACTING, "charge_whatever#1")]


def believed(error, not_done, *, guarded=False):
    return guarded or isinstance(error, not_done or ())


@pytest.mark.usefixtures("page")
def test_an_engine_that_accepts_what_it_should_stop_at_is_caught(monkeypatch):
    """Somebody else's change is gone, and nobody was told."""
    monkeypatch.setattr(drifts, "verdict", lambda *_: drifts.ACCEPT)

    at = "after:write:QuestionAsked approve#1+edited"
    assert found(mistakes.stops_before_it_overwrites, at=at) == [(verdicts.OVERWRITTEN, "rewrite_page#1")]
