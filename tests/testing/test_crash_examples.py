"""Every example survives a kill at every boundary: what we show is what we would do."""

from __future__ import annotations

import sys
import threading
from http.server import ThreadingHTTPServer
from importlib import import_module
from pathlib import Path

import pytest

from surefoot.testing import crash_matrix

EXAMPLES = Path(__file__).parents[2] / "examples"
EXPLORED = {"agent_loop", "documents", "refactor", "refund"}
IN_THE_PROOF = {"booking_agent", "inbox_agent", "support_agent"}
"""Agents of frameworks have many boundaries: tests/proof/test_example_agents.py."""
WITHOUT_WORKFLOW = {"checkpoint", "refund_graph"}
"""The graph is LangGraph's: tests/suites/langgraph kills one like it."""


@pytest.fixture
def example(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    before = set(sys.modules)

    def load(name):
        module = import_module(name)
        monkeypatch.setattr(module, "SLOW_SECONDS", 0, raising=False)
        return module

    yield load
    for name in EXPLORED & (set(sys.modules) - before):
        del sys.modules[name]


def test_agent_loop_survives_with_two_segments(example, monkeypatch):
    """Killed before, while and after it continues as new."""
    loop = example("agent_loop")
    monkeypatch.setattr(loop, "MAX_MESSAGES", 2)
    report = crash_matrix(loop.research, ("what?", 3))

    assert "after:write:RunContinued" in {one.at for one in report.tried}


def test_documents_survives(example):
    """Tasks side by side, in async code."""
    assert crash_matrix(example("documents").digest, (4,)).held


def test_refactor_survives_with_all_files_right(example):
    """Branches in threads; every file is compared."""
    refactor = example("refactor")
    refactor.make_files(Path("refactor-files"), 2)

    assert crash_matrix(refactor.refactor, ("refactor-files", 2, "use pathlib")).held


def test_refund_is_paid_once_wherever_it_is_killed(example, monkeypatch, tmp_path):
    """The bank lives on when the process dies, and is put back before each scenario."""
    refund = example("refund")
    monkeypatch.setattr(refund, "LEDGER", tmp_path / "bank.jsonl")

    class BankWorld:
        def reset(self):
            refund.LEDGER.unlink(missing_ok=True)

        def snapshot(self):
            return refund.LEDGER.read_text().splitlines()

    with ThreadingHTTPServer(("127.0.0.1", 0), refund.Bank) as bank:
        thread = threading.Thread(target=bank.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setattr(refund, "BANK_URL", f"http://127.0.0.1:{bank.server_port}/refunds")
        try:
            report = crash_matrix(refund.refund_order, ("1001",), world=BankWorld())
        finally:
            bank.shutdown()
            thread.join()

    assert report.kills == report.boundaries
    assert any(one.at.startswith("inside:call:refund#1 http.client.send") for one in report.tried)


def test_every_example_is_explored():
    """A new one must not be forgotten."""
    assert EXPLORED | IN_THE_PROOF | WITHOUT_WORKFLOW == {path.stem for path in EXAMPLES.glob("*.py")}
    assert not any("@sf.workflow" in (EXAMPLES / f"{name}.py").read_text() for name in WITHOUT_WORKFLOW)
