"""Code that changes under a run, case by case: the old code dies half-way, the new code goes on.

Each case is a script of its own (`corpus/NNN_….py`): it runs both in processes of their own, and counts what was done
outside. No effect twice, and what must stop stops before anything is executed.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import surefoot

CORPUS = Path(__file__).parent / "corpus"
CASES = sorted(path.name for path in CORPUS.glob("[0-9]*.py"))


def test_the_corpus_is_whole():
    """A case that is not found is not run, and nobody would notice."""
    assert len(CASES) == 76


@pytest.mark.parametrize("case", CASES)
def test_change_while_a_run_is_unfinished(case):
    source = Path(surefoot.__file__).parents[1]

    done = subprocess.run(
        [sys.executable, str(CORPUS / case), str(source)], capture_output=True, text=True, timeout=55, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
