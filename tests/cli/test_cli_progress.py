"""The progress line: for a person at a terminal, and for nobody else."""

from __future__ import annotations

import io
import os
import pty
import sys

import pytest

from surefoot.cli import progress
from surefoot.cli.options import Settings
from surefoot.engine.upkeep.verification import Progress


def test_a_long_run_shows_how_far_it_is_and_leaves_the_result_alone(child):
    """The line goes to the terminal; what is piped is the result and nothing else."""
    ours, theirs = pty.openpty()
    started = child.start("run", "app:sitting", "--id", "x", stderr=theirs)
    os.close(theirs)
    child.wait_until_it_sits()

    shown = b""
    while b"calls recorded" not in shown:
        shown += os.read(ours, 4096)
    child.let_go()
    out = read_all(started, ours)

    assert (started.returncode, out) == (0, '"sat"\n')
    assert b"x  0 calls recorded" in shown


def read_all(started, ours):
    """Until the child closes the terminal; a full terminal would keep it from ending."""
    try:
        while os.read(ours, 4096):
            pass
    except OSError:  # Linux: the other side is closed.
        os.close(ours)
    return started.communicate()[0]


def test_without_a_terminal_there_is_no_line_and_no_thread(capsys):
    with progress.shown("x", None, wanted=True):
        pass

    assert capsys.readouterr() == ("", "")


def test_what_the_workflow_says_about_its_progress_is_shown(monkeypatch):
    import surefoot as sf

    @sf.workflow(name="telling")
    def telling() -> None:
        sf.progress(3, 10, "\x1b[31mfiles")

    telling.run("x")
    drawn = Bar()
    monkeypatch.setattr(progress, "_new_bar", lambda: drawn)
    watcher = progress._Watcher("x", None)
    watcher._show(watcher._look())

    assert drawn.updates == [{"description": "x  3 of 10: \\x1b[31mfiles", "total": 10, "completed": 3}]


class Bar:
    """Remembers what it was told to show."""

    task_ids = (0,)

    def __init__(self):
        self.updates = []
        self.stopped = False

    def update(self, task, **fields):
        self.updates.append(fields)

    def stop(self):
        self.stopped = True


class Terminal(io.StringIO):
    """Standard error where a person sits."""

    def isatty(self):
        return True


@pytest.fixture
def settle_down(monkeypatch):
    def at_a_terminal(quick=-1):
        """From now on; not before the test runs, since pytest puts its own standard error there."""
        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setattr(progress, "FIRST_LOOK_SECONDS", quick)
        monkeypatch.setattr(progress, "PAUSE_SECONDS", -1)
        return terminal

    return at_a_terminal


def test_reading_every_journal_shows_how_many_of_them_and_the_bar_goes_whatever_happens(settle_down, monkeypatch):
    """A bar that stays behind would be written over by the message that says what is wrong."""
    drawn = Bar()
    monkeypatch.setattr(progress, "_new_bar", lambda: drawn)
    settle_down()

    with pytest.raises(OSError), progress.journals(Settings(), "verifying") as watch:
        watch(Progress(3, 10, 5_000_000))
        raise OSError

    assert drawn.updates == [{"description": "verifying  3 of 10 journals, 5 MB", "total": 10, "completed": 3}]
    assert drawn.stopped


def test_a_long_look_is_told_on_one_line_that_is_gone_in_the_end(settle_down):
    """It may name what was found in a damaged file."""
    terminal = settle_down()

    with progress.line(Settings()) as tell:
        tell("copying")
        tell("looking at \x1b[31m")

    assert terminal.getvalue() == "\r\x1b[Kcopying\r\x1b[Klooking at \\x1b[31m\r\x1b[K"


def test_what_is_quick_leaves_no_line(settle_down):
    """It would only flicker."""
    terminal = settle_down(quick=1000)

    with progress.line(Settings()) as tell:
        tell("copying")

    assert terminal.getvalue() == ""


def test_a_program_that_asked_for_json_gets_no_bar_and_no_line(settle_down):
    """It may well keep what comes on standard error, or show it to somebody."""
    terminal = settle_down()
    asked = Settings(said_json=True)

    with progress.line(asked) as tell, progress.bar(asked) as show:
        tell("copying")
        show("copying", 1, 2)

    assert terminal.getvalue() == ""


def test_a_store_in_trouble_is_not_the_progress_lines_business(own_folder):
    assert progress._Watcher("x", "sqlite:///nowhere.db")._look() is None
