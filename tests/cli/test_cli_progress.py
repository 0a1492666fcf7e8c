"""The progress line: for a person at a terminal, and for nobody else."""

from __future__ import annotations

import os
import pty

from surefoot.cli import progress


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
    updates = []

    class Bar:
        task_ids = (0,)

        def update(self, task, **fields):
            updates.append(fields)

    monkeypatch.setattr(progress, "_new_bar", Bar)
    watcher = progress._Watcher("x", None)
    watcher._show(watcher._look())

    assert updates == [{"description": "x  3 of 10: \\x1b[31mfiles", "total": 10, "completed": 3}]


def test_a_store_in_trouble_is_not_the_progress_lines_business(own_folder):
    assert progress._Watcher("x", "sqlite:///nowhere.db")._look() is None
