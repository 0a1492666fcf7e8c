"""Code that changes under a run, case by case: the old code dies half-way, the new code goes on.

Each case is a script of its own (`corpus/NNN_….py`): old and new code run in processes of their own, and what was done
outside is counted. No effect twice, and what must stop stops before anything is executed. Here each is run in every
form; `make proof` also runs the scripts as they are.
"""

from __future__ import annotations

import json

import pytest

from tests.change.forms import CORPUS, FORMS, holds, load
from tests.change.recolour import is_async

CASES = sorted(path.name for path in CORPUS.glob("[0-9]*.py"))
JUDGE = load(CORPUS / "_case.py")
WRITTEN_ASYNC = {"104_asyncio_timeout_nothing_acted_on_quicker_on_resu.py": "asyncio.timeout has no blocking form"}
"""Cases that are async in every form, and why. All others are translated."""
WHO_RUNS = """
import inspect, threading
@sf.step
def think() -> str: return "x"
@sf.workflow
def w():
    think()
    die("x")
    return [threading.current_thread().name.rpartition("-")[0], inspect.iscoroutinefunction(w.definition.fn)]
"""
RUNS_IN = {
    "blocking": ["", False], "async": ["", True], "worker": ["surefoot-run", False], "async worker": ["surefoot", True],
}  # fmt: skip


def test_the_corpus_is_whole():
    """A case that is not found is not run, and nobody would notice."""
    assert len(CASES) == 76


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", CASES)
def test_change_while_a_run_is_unfinished(name, form, warm, monkeypatch, capsys):
    assert holds(JUDGE, warm, load(CORPUS / name).CASE, form, monkeypatch), capsys.readouterr().out


def test_every_case_is_translated_but_those_that_say_why():
    """A case that is left as it is would be counted as async, and show nothing."""
    written = {name for name in CASES if is_async(load(CORPUS / name).CASE["OLD"])}

    assert written == set(WRITTEN_ASYNC)


@pytest.mark.parametrize("form", FORMS)
def test_each_form_is_what_it_says(form, warm, monkeypatch, capsys):
    """Else four times the same would be shown: who drives the run, and the colour of its code, are told by the run."""
    case = {"TITLE": "who runs it", "OLD": WHO_RUNS, "WANT": {"said": f"DONE {json.dumps(RUNS_IN[form])}"}}

    assert holds(JUDGE, warm, case, form, monkeypatch), capsys.readouterr().out


@pytest.mark.parametrize("form", FORMS)
def test_a_case_that_does_not_hold_is_seen(form, warm, monkeypatch, capsys):
    """An effect that is done twice, as a retry that was declared: the judge has to see both lines."""
    case = {**load(CORPUS / "100_on_crash_changed_while_in_doubt_ask_to_retry.py").CASE, "MAY_REPEAT": False}

    assert not holds(JUDGE, warm, case, form, monkeypatch)
    assert "TWICE: {'pay o1': 2}" in capsys.readouterr().out
