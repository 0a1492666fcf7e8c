"""`sf.main(workflow)`: a script that is its own `surefoot run`, and says how to go on with itself."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys

import pytest

from tests.cli.conftest import Ended

SCRIPT = """
from app import sf, aio, draft, send, sit, sit_async, act, break_down, typed, leaving

@sf.workflow
def notify(customers: list[str]) -> int:
    \"\"\"Write to customers.\"\"\"
    for customer in customers:
        send(customer, draft(customer))
    return len(customers)

@sf.workflow
def sitting() -> str:
    return sit()

@sf.workflow
async def sitting_async() -> str:
    return await sit_async()

@sf.workflow
def acting() -> str:
    return act()

@sf.workflow
def failing(what: str) -> None:
    break_down(what)

if __name__ == "__main__":
    {face}.main({workflow})
"""


@pytest.fixture
def script(app):
    """Writes a script that ends with `sf.main(workflow)`; gives the words that start it."""

    def write(workflow: str, face: str = "sf") -> list[str]:
        (app / "job.py").write_text(SCRIPT.format(workflow=workflow, face=face))
        return [sys.executable, "-W", "error", "job.py"]

    return write


@pytest.fixture
def started(app):
    def run(words: list[str], **env: str) -> Ended:
        ended = subprocess.run(
            words, cwd=app, env=os.environ | env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        return Ended(ended.returncode, ended.stdout, ended.stderr)

    return run


def test_a_script_is_its_own_command(script, started, app):
    """The result alone on standard output, and the same command again is the same run."""
    words = [*script("notify"), "--id", "monday", '["Ada"]']

    first, again = started(words), started(words)

    assert [(one.code, one.out) for one in (first, again)] == [(0, "1\n")] * 2
    assert "drafting Ada" in first.err
    assert (app / "ledger").read_text() == "draft Ada\nsend Ada\n"


@pytest.mark.parametrize("face", ["sf", "aio"])
def test_arguments_are_read_as_by_surefoot_run(script, started, face):
    """There is one rule, and keywords have names."""
    words = [*script("typed", face), "--id", "x", "1", "2026-01-02", "name=42"]

    assert started(words).json == "1 datetime.date(2026, 1, 2) None '42' None 3"


@pytest.mark.parametrize(
    ("workflow", "words", "cure"),
    [
        ("notify", ["[]"], "Missing option '--id'"),
        ("notify", ["--id", "x"], "missing a required argument: 'customers'"),
        ("notify", ["--id", "x", "[]", "color=1"], "unexpected keyword argument 'color'"),
        ("notify", ["--id", "x", "--colour", "[]"], "help: job.py --help"),
        ("draft", ["--id", "x", "a"], "Decorate the function with @sf.workflow"),
    ],
)
def test_wrong_use_is_refused_before_anything_is_created(script, started, app, workflow, words, cure):
    """A run that could only fail must not take the id."""
    ended = started([*script(workflow), *words])

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("UsageError: ")
    assert cure in ended.err
    assert "Traceback" not in ended.err
    assert not (app / ".surefoot").exists()


def test_an_async_script_may_not_start_a_loop_inside_a_loop(started, app):
    """The error of asyncio would come with the run already there."""
    (app / "late.py").write_text(
        "import asyncio\nfrom app import aio, sitting_async\n\nasync def late():\n    aio.main(sitting_async)\n\nasyncio.run(late())\n"
    )

    ended = started([sys.executable, "-W", "error", "late.py", "--id", "x"])

    assert ended.code == 2
    assert ended.err.startswith("UsageError: sf.main(sitting_async) was called inside an event loop")
    assert not (app / ".surefoot").exists()


def test_help_tells_of_the_workflow(script, started):
    """Whoever gets the script has not read it."""
    ended = started([*script("notify"), "--help"])

    assert ended.code == 0
    assert ended.out.startswith("Usage: job.py [OPTIONS] [ARGS]...\n\n  Write to customers.\n")
    assert "notify(customers: 'list[str]') -> 'int'" in ended.out or "notify(customers: list[str]) -> int" in ended.out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("workflow", ["sitting", "sitting_async"])
def test_a_signal_leaves_a_safe_run_and_the_command_that_goes_on(script, child, started, app, workflow, number):
    """It is pasted as it stands: this interpreter, this script, this id."""
    process = child.start_words([*script(workflow), "--id", "x y"])
    child.wait_until_it_sits()

    process.send_signal(number)
    out, err = process.communicate()

    assert (process.returncode, out) == (128 + number, "")
    assert "Traceback" not in err
    told = err.splitlines()[-1]
    assert told.startswith("stopped by you: run x y is safe; go on with: ")
    (app / "go").touch()
    assert started(shlex.split(told.partition("go on with: ")[2])).out == '"sat"\n'


def test_a_stop_names_the_cure_and_the_script(script, started, app):
    """The process is killed after sending and before writing it down. What helps is surefoot's, what goes on is not."""
    words = [*script("notify"), "--id", "tick-81", '["Ada", "Bob"]']
    assert started(words, DIE_AFTER_SENDING_TO="Bob").code == -signal.SIGKILL

    ended, as_json = started(words), started([*words, "--json"])

    assert (ended.code, ended.out) == (3, "")
    first, *cures, last = ended.err.splitlines()
    assert first.startswith("InDoubt: run tick-81, send#2: started ")
    assert len(cures) == 2
    assert last == f"run tick-81 is safe; once that is answered, go on with: {shlex.join(words)}"
    assert as_json.json["error"]["type"] == "InDoubt"
    assert as_json.err == ""
    settled = started([sys.executable, "-m", "surefoot", "settle", "tick-81", "send#2", "--happened", '"mail-Bob"'])
    assert settled.code == 0
    assert started(shlex.split(last.partition("go on with: ")[2])).out == "2\n"
    assert (app / "ledger").read_text().count("send Bob") == 1


def test_a_failure_shows_the_users_own_lines_and_none_of_ours(script, started):
    """The first question is where."""
    ended = started([*script("failing"), "--id", "f", "luck"])

    assert (ended.code, ended.out) == (1, "")
    assert "in break_down" in ended.err
    assert "/surefoot/" not in ended.err  # a file of ours
    assert "run f failed: Broken: no more luck\n" in ended.err


def test_leaving_the_workflow_is_not_success(script, started):
    """Exit code 0 would claim a result."""
    assert started([*script("leaving"), "--id", "l"]).code == 1
