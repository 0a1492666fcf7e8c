"""`surefoot preflight` has the user's code in a process of its own: whatever it does there, all runs are heard."""

from __future__ import annotations

import subprocess
import sys

import pytest

from surefoot.cli import rehearsals
from surefoot.cli.options import Settings

APP = r"""
import asyncio, os, sys, threading
import surefoot as sf

@sf.effect
def pay(name: str) -> None:
    pass

@sf.workflow
def first(name: str) -> None:
    pay(name)
    sf.wait_event("go")

@sf.workflow
def second(name: str) -> None:
    pay(name)
    sf.wait_event("go")

@sf.workflow
async def third(name: str) -> None:
    await asyncio.sleep(0)
    sf.patched("x")
"""
BEGIN = """
import app, contextlib, surefoot as sf
for name in ("first", "second"):
    with contextlib.suppress(sf.Stopped): getattr(app, name).run(name, name)
"""


@pytest.fixture
def folder(app):
    (app / "app.py").write_text(APP)
    subprocess.run([sys.executable, "-W", "error", "-c", BEGIN], cwd=app, check=True)
    return app


def change(folder, workflow, line):
    before = f"def {workflow}(name: str) -> None:\n"
    source = (folder / "app.py").read_text()
    assert source.count(before) == 1
    (folder / "app.py").write_text(source.replace(before, before + f"    {line}\n"))


def verdicts(monkeypatch):
    monkeypatch.setattr(rehearsals, "HANGS_SECONDS", 5.0)
    monkeypatch.setattr(rehearsals, "TELLS_SECONDS", 0.1)
    found = rehearsals.rehearse(Settings(), ("app",), lambda _done, _of: None)
    return {one.run: one for one in found.runs}


HANGS = {"in a wait": "threading.Event().wait()", "in a loop": "while True: pass"}


@pytest.mark.parametrize("hang", HANGS.values(), ids=HANGS.keys())
def test_code_that_hangs_is_ended_and_the_others_are_heard(folder, monkeypatch, capfd, hang):
    """In CI a hanging check is worse than a failing one; and it must not hide the run that is stranded."""
    change(folder, "second", hang)
    change(folder, "first", "return")

    found = verdicts(monkeypatch)

    assert {"second": "perhaps stranded", "first": "stranded"} == {run: one.verdict for run, one in found.items()}
    assert "did not come to anything new" in found["second"].lines[1]
    line = next(n for n, text in enumerate((folder / "app.py").read_text().splitlines(), 1) if hang in text)
    assert f"app.py, line {line}, in second" in found["second"].lines[1]
    assert (
        "run second: its code is being replayed before the run is taken up, for 0.1 s by now" in capfd.readouterr().err
    )


def test_task_that_waits_for_ever_is_named_by_its_line(folder, monkeypatch):
    subprocess.run(
        [sys.executable, "-c", "import app, asyncio; asyncio.run(app.third.start('third', 'x'))"],
        cwd=folder,
        check=True,
    )
    change(folder, "third", "await asyncio.Event().wait()")

    third = verdicts(monkeypatch)["third"]

    assert "perhaps stranded" == third.verdict
    assert "in third" in third.lines[1]


ENDS = {"exit": "os._exit(7)", "signal": "os.kill(os.getpid(), 9)"}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS.keys())
def test_code_that_ends_the_process_strands_its_run_alone(folder, monkeypatch, end):
    """Every resume would end so."""
    change(folder, "second", end)

    found = verdicts(monkeypatch)

    assert {"second": "stranded", "first": "waits"} == {run: one.verdict for run, one in found.items()}
    assert "ends the process that replays it" in found["second"].lines[1]


def test_process_that_code_forks_says_nothing(folder):
    """It comes back from the same calls: each run would be answered twice."""
    change(folder, "second", "os.fork()")

    found = rehearsals.rehearse(Settings(), ("app",), lambda _done, _of: None)

    assert [("second", "waits"), ("first", "waits")] == [(one.run, one.verdict) for one in found.runs]


def test_what_code_prints_is_no_part_of_the_answer(folder, shell):
    """Standard output belongs to the answer, also that of what the code starts."""
    change(folder, "second", "print('hello'); os.system('echo hello')")
    (folder / "app.py").write_text("print('hello')\n" + (folder / "app.py").read_text())

    ended = shell("preflight", "--app", "app", "--json")

    assert 0 == ended.code
    assert {"waits": 2} == {name: count for name, count in ended.json["counts"].items() if count}
    assert 3 == ended.err.count("hello")


def test_code_that_ends_the_process_when_imported_is_refused(folder, shell):
    (folder / "app.py").write_text("import os; os._exit(0)")

    ended = shell("preflight", "--app", "app")

    assert (2, "") == (ended.code, ended.out)
    assert "before it could begin" in ended.err


@pytest.mark.parametrize("code", ["import os; os._exit(0)", "import nothing_of_that_name"])
def test_a_refusal_has_the_fields_of_every_other_error(folder, shell, code):
    """A script reads `error.exit_code` whatever went wrong; it said 1 here, where the command ended with 2."""
    (folder / "app.py").write_text(code)

    ended = shell("preflight", "--app", "app", "--json")

    assert {"type", "message", "run", "address", "cures", "exit_code"} == set(ended.json["error"])
    assert (2, 2) == (ended.code, ended.json["error"]["exit_code"])
