"""`surefoot crashtest` as a person uses it: a table, an exit code, and one line that shows the failure again."""

from __future__ import annotations

import json
import os
import pty
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from surefoot.testing import matrix
from tests.testing.test_children import wait_for, wait_until_gone
from tests.testing.test_crash_matrix import kept

APP = """
import os, subprocess, time
from pathlib import Path
import surefoot as sf

@sf.effect
def send(to):
    with open("outbox.txt", "a") as outbox:
        outbox.write(to + "\\n")
    print("sent to", to)
    return to

@sf.effect(on_crash="retry")
def post(text):
    with open("wall.txt", "a") as wall:
        wall.write(text + "\\n")

@sf.workflow
def good(to, greeting="dear"):
    sf.sleep("1d")
    return f"{greeting} {send(to)}" if sf.approve("send it?") else "no"

@sf.workflow
def bad(text):
    post(text)

@sf.workflow
def asked():
    post(str(sf.ask("what?")))

@sf.workflow
def failing():
    raise ValueError("no model.")

@sf.workflow
def counting():
    return sf.ask("how many?")

@sf.step
def wait(folder):
    Path(folder, "draft").write_text(str(subprocess.Popen(["sleep", "100"]).pid))
    os.rename(Path(folder, "draft"), Path(folder, "here"))
    time.sleep(100)

@sf.workflow
def waiting(folder):
    wait(folder)
"""


@pytest.fixture
def app(tmp_path):
    folder = tmp_path / "app"
    folder.mkdir()
    (folder / "app.py").write_text(APP)
    (folder / "leaving.py").write_text("import sys\nsys.exit(3)\n")
    return folder


def command(*words):
    return [sys.executable, "-W", "error", "-m", "surefoot", "crashtest", *words]


def crashtest(folder, *words):
    return subprocess.run(command(*words), cwd=folder, capture_output=True, text=True, timeout=50, check=False)


def test_a_sound_workflow_ends_with_zero_and_a_table(app):
    """Proof in CI that one's own workflow survives a kill at every point."""
    ended = crashtest(app, "app:good", "ada", "greeting=hello")

    assert 0 == ended.returncode, ended.stderr
    lines = ended.stdout.splitlines()
    assert ["BOUNDARY", "KILLS", "HELD", "HOW"] == lines[0].split()[:4]
    assert any(line.startswith("call send ") for line in lines)
    assert lines[-1].endswith("kills per second and core: everything held.")
    assert {"app.py", "leaving.py"} == set(os.listdir(app)) - {"__pycache__"}


def test_a_mistake_ends_with_one_the_call_and_a_line_that_shows_it_again(app):
    """What to change, and how to see it once more."""
    ended = crashtest(app, "app:bad", "--", "--hello {world}")

    assert 1 == ended.returncode
    assert "post#1: a retry of an effect that is not idempotent" in ended.stdout
    assert "wall.txt has 2 lines instead of 1" in ended.stdout
    again = next(line for line in ended.stdout.splitlines() if line.startswith("  again")).split(maxsplit=1)[1]
    assert ["surefoot", "crashtest", "app:bad", "--at", "after:call:post#1", "--", "--hello {world}"] == shlex.split(
        again
    )

    shown = crashtest(app, *shlex.split(again)[2:])
    assert 1 == shown.returncode
    assert "killed 1 time at" in shown.stdout


def test_the_line_says_everything_that_was_said(app):
    """Answers in JSON have braces, and a slow workflow needs its time the second time, too."""
    given = ["--answer", 'what?={"ok": true}', "--seconds", "90"]
    ended = crashtest(app, "app:asked", *given)

    again = next(line for line in ended.stdout.splitlines() if line.startswith("  again")).split(maxsplit=1)[1]
    at = ["--at", "after:call:post#1"]
    assert ["surefoot", "crashtest", "app:asked", *given[:3], "90.0", *at] == shlex.split(again)
    assert 1 == crashtest(app, *shlex.split(again)[2:]).returncode


def test_programs_get_json(app):
    """Every fact of the table, and of the findings."""
    ended = crashtest(app, "app:good", "ada", "--json", "--at", "after:call:send#1", "--answer", "approve#1=true")

    found = json.loads(ended.stdout)
    assert (True, 1, "good", []) == (found["held"], found["kills"], found["workflow"], found["findings"])
    (tried,) = found["tried"]
    assert {"at": "after:call:send#1", "how": "in doubt, settled", "held": True, "fired": True, "damage": ""} == tried


def test_people_answer_what_they_are_told_to(app):
    """By the question's text here: with a no, nothing is ever sent."""
    ended = crashtest(app, "app:good", "ada", "--answer", "send it?=false", "--at", "after:call:send#1")

    assert 2 == ended.returncode
    assert "there is no boundary 'after:call:send#1'" in ended.stderr


def test_damage_is_tried_when_asked_for(app):
    """Right or loud, after every write."""
    ended = crashtest(app, "app:bad", "hello", "--damage", "--at", "after:write:EffectIntended post#1+older")

    assert 0 == ended.returncode, ended.stdout
    assert "1 loud: JournalRegressed" in ended.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere:good"], "there is no module 'nowhere'"),
        (["app:nothing"], "has no 'nothing'"),
        (["app:failing"], "failing fails without any crash: ValueError: no model. Mend that first."),
        (["app:counting"], "say what a person would answer, --answer 'ask#1=JSON' on the command line"),
        (
            ["app:good", "ada", "--answer", "aprove#1=false"],
            "nobody asks for 'aprove#1'. Asked was for: 'approve#1' or ",
        ),
        (["app:bad", "hi", "--answer", "ask#1=1"], "nobody asks for 'ask#1'. Nothing was asked."),
        (["app:good", "ada", "--seconds", "-1"], "-1.0 is not in the range"),
        (["leaving:good"], "module 'leaving' cannot be imported: it ends the program, with sys.exit(3)"),
        (["app:good"], "does not take these arguments"),
        (["app:waiting", ".", "--seconds", "0.3"], "did not end within 0.3 s"),
        (["app:good", "ada", "--answer", "yes"], "--answer 'yes': write NAME=JSON"),
        (["app:good", "ada", "--at", "nowhere"], "there is no boundary 'nowhere'"),
        (["app:good", "ada", "--at", "after:write:StepDone nonsense#9+flip"], "there is no boundary 'after:write:"),
    ],
)
def test_what_cannot_be_explored_ends_with_two_and_the_reason(app, words, said):
    """Said plainly, before anything is killed."""
    ended = crashtest(app, *words)

    assert (2, "") == (ended.returncode, ended.stdout)
    assert said in ended.stderr


def test_a_store_that_is_named_is_said_not_to_be_used(app):
    """Whoever names one believes that it is used."""
    words = [sys.executable, "-m", "surefoot", "--store", "sqlite:///x.db", "crashtest", "app:good", "ada"]
    ended = subprocess.run(words, cwd=app, capture_output=True, text=True, timeout=50, check=False)

    assert 0 == ended.returncode
    assert "--store is not used" in ended.stderr
    assert not (app / "x.db").exists()


@pytest.mark.parametrize(("with_signal", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_crashtest_leaves_nothing_behind(app, tmp_path, with_signal, code):
    """Ctrl-C, or the CI server's patience: no folder, and no program that an effect has started."""
    started = subprocess.Popen(command("app:waiting", str(tmp_path)), cwd=app, stderr=subprocess.PIPE, text=True)
    wait_for(tmp_path / "here", started)
    during = kept(started.pid)
    started.send_signal(with_signal)
    _, told = started.communicate(timeout=20)

    assert (code, 1, []) == (started.returncode, len(during), kept(started.pid)), told
    assert not Path(app, ".surefoot").exists()
    wait_until_gone(int((tmp_path / "here").read_text()))


def test_what_a_killed_crashtest_left_is_removed_by_the_next(app, tmp_path):
    """A folder in memory is memory: it would be gone until the machine starts anew. One that is in use stays."""
    killed, living = (waiting(app, tmp_path / name) for name in ("killed", "living"))
    killed.kill()
    killed.communicate(timeout=20)
    wait_until_gone(int((tmp_path / "killed" / "here").read_text()))
    folders = [*kept(killed.pid), *kept(living.pid)]
    for folder in folders:
        os.utime(folder, (0, 0))  # As if they were there since long ago.

    ended = crashtest(app, "app:good", "ada", "--at", "after:call:send#1")
    left = [*kept(killed.pid), *kept(living.pid)]
    living.terminate()
    living.communicate(timeout=20)

    assert (0, 2, folders[1:]) == (ended.returncode, len(folders), left), ended.stderr


def waiting(app, folder):
    folder.mkdir()
    started = subprocess.Popen(command("app:waiting", str(folder)), cwd=app, stderr=subprocess.PIPE, text=True)
    wait_for(folder / "here", started)
    return started


def test_a_folder_that_was_just_made_is_left_alone(tmp_path, monkeypatch):
    """Between its making and its lock there is a moment."""
    monkeypatch.setattr(matrix, "MEMORY", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    young, old = (tmp_path / f"{matrix.SCRATCH}{name}" for name in ("young", "old"))
    for folder, age in ((young, 0), (old, 2 * matrix.TIDY_SECONDS)):
        folder.mkdir()
        os.utime(folder, (time.time() - age,) * 2)

    with matrix.scratch() as ours:
        assert {young, ours} == set(tmp_path.iterdir())
    assert [young] == list(tmp_path.iterdir())


def test_a_person_at_a_terminal_sees_how_far_it_is(app):
    """Hundreds of boundaries take a minute, and silence looks like a hang."""
    ours, theirs = pty.openpty()
    code = (
        "from surefoot.cli import progress; progress.FIRST_LOOK_SECONDS = 0; from surefoot.cli.main import main; main()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, "crashtest", "app:good", "ada"], cwd=app, stdout=subprocess.PIPE, stderr=theirs
    ) as process:
        os.close(theirs)
        said = process.communicate(timeout=50)[0].decode()
    shown = os.read(ours, 1 << 16).decode()
    os.close(ours)

    assert "killed and resumed at 3 of " in shown
    assert shown.endswith("\r\x1b[K")
    assert "boundaries\x1b" not in said


def test_files_are_left_out_by_pattern_and_the_line_says_so(app):
    """What is shown again must be shown under the same rules."""
    assert 0 == crashtest(app, "app:bad", "hi", "--exclude", "wall.*").returncode

    ended = crashtest(app, "app:bad", "hi", "--exclude", "*.csv", "--at", "after:call:post#1")
    assert 1 == ended.returncode
    assert "surefoot crashtest app:bad --exclude '*.csv' --at " in ended.stdout
