"""A forked child tells, dies and leaves nothing behind, whatever happens to it or to us."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from surefoot.testing.children import die, in_child


def test_what_a_child_told_survives_its_sigkill():
    """The report of a killed process is all that is known about it."""

    def work(tell):
        tell(b"begun ")
        tell(b"x" * 100_000)
        die()

    ended = in_child(work, seconds=10)

    assert (True, None, signal.SIGKILL) == (ended.killed, ended.code, ended.signal)
    assert ended.report == b"begun " + b"x" * 100_000


def test_a_child_that_returns_ends_with_zero_and_leaves_no_trace_in_the_parent():
    """The rest of the parent's program is not the child's."""
    seen = []

    ended = in_child(lambda tell: (seen.append("in the child"), tell(b"done")), seconds=10)

    assert (0, None, b"done", "", False) == (ended.code, ended.signal, ended.report, ended.trouble, ended.killed)
    assert [] == seen


def test_what_a_child_raised_is_told_with_its_traceback():
    """A kit that fails must say where."""

    def work(tell):
        raise ValueError("no such thing")

    ended = in_child(work, seconds=10)

    assert 1 == ended.code
    assert "ValueError: no such thing" in ended.trouble


@pytest.mark.parametrize(("left_with", "code"), [(3, 3), (None, 0), ("a message", 1)])
def test_a_child_may_leave_by_sys_exit(left_with, code):
    """User code may call it."""
    assert code == in_child(lambda _: sys.exit(left_with), seconds=10).code


def test_a_child_that_does_not_end_is_killed_when_its_time_is_up():
    """A scenario that hangs is an answer, not the end of the exploration."""
    ended = in_child(lambda _: threading.Event().wait(), seconds=0.1)

    assert (True, False) == (ended.late, ended.killed)


def test_children_of_a_child_end_with_it():
    """No leftovers: what user code started is in the same group."""

    def work(tell):
        started = subprocess.Popen(["sleep", "100"])
        tell(str(started.pid).encode())
        die()

    ended = in_child(work, seconds=10)

    wait_until_gone(int(ended.report))


def test_a_child_that_closed_everything_is_waited_for():
    """Some programs close all descriptors to become a service."""

    def work(tell):
        os.closerange(3, 1000)
        os._exit(7)

    assert 7 == in_child(work, seconds=10).code


def test_in_child_may_be_called_inside_a_child():
    """That is how a program with threads gets a warm parent without any."""

    def work(tell):
        tell(repr(in_child(lambda _: die(), seconds=5).killed).encode())

    assert b"True" == in_child(work, seconds=10).report


def test_nothing_is_left_after_ctrl_c(tmp_path):
    """A person who has seen enough leaves neither processes nor waits for them."""
    program = tmp_path / "program.py"
    program.write_text(
        "import os, time\n"
        "from surefoot.testing.children import in_child\n"
        "def inner(tell):\n"
        "    open('inner', 'w').write(str(os.getpid()))\n"
        "    os.rename('inner', 'pid')\n"
        "    time.sleep(100)\n"
        "in_child(lambda tell: in_child(inner, seconds=100), seconds=100)\n"
    )
    started = subprocess.Popen([sys.executable, str(program)], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    wait_for(tmp_path / "pid", started)
    started.send_signal(signal.SIGINT)

    assert "KeyboardInterrupt" in started.communicate(timeout=20)[1]
    wait_until_gone(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize("with_signal", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_what_a_childs_child_has_started_ends_with_us(tmp_path, with_signal):
    """It is in a group that only the process in the middle knows, so that one must be given the time to end it."""
    end_a_program_whose_childs_child_starts_another(tmp_path, "pass", with_signal)

    wait_until_gone(int((tmp_path / "pid").read_text()))


def test_what_a_childs_child_has_started_ends_with_us_even_if_that_child_does_not_listen(tmp_path):
    """User code may ignore SIGTERM: it is not waited for as long as we are."""
    end_a_program_whose_childs_child_starts_another(
        tmp_path, "signal.signal(signal.SIGTERM, signal.SIG_IGN)", signal.SIGINT
    )

    wait_until_gone(int((tmp_path / "pid").read_text()))


def end_a_program_whose_childs_child_starts_another(folder: Path, first: str, with_signal: signal.Signals) -> None:
    program = folder / "program.py"
    program.write_text(
        "import os, signal, subprocess, time\n"
        "from surefoot.testing.children import in_child\n"
        "def inner(tell):\n"
        f"    {first}\n"
        "    open('inner', 'w').write(str(subprocess.Popen(['sleep', '100']).pid))\n"
        "    os.rename('inner', 'pid')\n"
        "    time.sleep(100)\n"
        "in_child(lambda tell: in_child(inner, seconds=100), seconds=100)\n"
    )
    started = subprocess.Popen([sys.executable, str(program)], cwd=folder, stderr=subprocess.DEVNULL, text=True)
    wait_for(folder / "pid", started)
    started.send_signal(with_signal)
    started.wait(timeout=20)


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 30
    while not path.exists():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < until, f"{path} did not appear"
        time.sleep(0.005)


def wait_until_gone(pid: int) -> None:
    """Killed is not gone yet: whoever inherits it has to take notice."""
    until = time.monotonic() + 30
    while Path(f"/proc/{pid}").exists() and "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2][:3]:
        assert time.monotonic() < until, f"process {pid} is still there"
        time.sleep(0.005)
