"""The scripts of the corpus of changed code as they are: each leg a Python process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import surefoot
from tests.change.forms import CORPUS

pytestmark = pytest.mark.proof
SCRIPTS = sorted(path.name for path in CORPUS.glob("[0-9]*.py"))


@pytest.mark.parametrize("script", SCRIPTS)
def test_script_of_the_corpus(script):
    """What anybody can run by hand; in `make test` the same cases are forked from a warm process, in every form."""
    source = Path(surefoot.__file__).parents[1]

    done = subprocess.run(
        [sys.executable, str(CORPUS / script), str(source)], capture_output=True, text=True, timeout=55, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
