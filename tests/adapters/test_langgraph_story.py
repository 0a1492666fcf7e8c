"""One short story of the adapter for LangGraph; `make test-langgraph` has the rest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("langgraph", reason="pip install 'surefoot[langgraph]'")

ROOT = Path(__file__).parents[2]
PROCESS = """
import os, sys
from langgraph.types import Command
from surefoot.langgraph import Saver
from tests.langgraph_threads import THREAD, begun, chat
if sys.argv[2] == "begin":
    begun(sys.argv[1])
    os.kill(os.getpid(), 9)
print(chat(Saver(store=sys.argv[1])).invoke(Command(resume=sys.argv[2]), THREAD)["asked"])
"""


def test_chat_of_a_process_that_was_killed_goes_on_in_another(tmp_path):
    """The question that was open is answered in a process that knows nothing but the store."""
    url = f"sqlite:///{tmp_path}/threads.db"

    def process(word):
        return subprocess.run(
            [sys.executable, "-c", PROCESS, url, word],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )

    assert process("begin").returncode == -9
    ended = process("yes")

    assert ended.stdout == "['yes']\n", ended.stderr
