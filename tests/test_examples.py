"""The examples do what their first lines say: they run, they may be killed, they go on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def run(name, *arguments):
    """The example as a person would start it, in the current (temporary) folder."""
    command = [sys.executable, "-W", "error", str(EXAMPLES / name), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)


def killed_after(lines, name, *arguments, with_signal=signal.SIGKILL):
    """Start it, read that many lines, kill it. Returns everything it printed."""
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        seen = [process.stdout.readline() for _ in range(lines)]
        os.kill(process.pid, with_signal)
        return "".join(seen) + process.stdout.read()


def lines_with(word, *outputs):
    return [line for output in outputs for line in output.splitlines() if line.startswith(word)]


@pytest.mark.parametrize(
    ("name", "last_line"),
    [
        ("refactor.py", "50 files refactored by run refactor-1"),
        ("documents.py", "run documents-1000: 990 documents read, 10 unreadable"),
        ("refund.py", "order 1001 is refunded: re_1"),
        ("checkpoint.py", "400 words on 100 pages"),
        ("support_agent.py", "Ticket 81: 48 EUR refunded, the customer has mail."),
        ("inbox_agent.py", "24 complaints settled."),
        (
            "booking_agent.py",
            "Seat 12 in coach 4 of ICE 7 is paid, and you have mail. ICE 7 for 48.00 EUR.",
        ),
        ("agent_loop.py", "after 24 look-ups: summary of 9 messages, the last: page 24 says 7"),
    ],
)
def test_example_runs_and_a_second_start_returns_the_recorded_result(name, last_line):
    """Starting is resuming: the same id is the same run, and a finished run is not executed again."""
    first = run(name)
    second = run(name)

    assert (0, last_line) == (first.returncode, first.stdout.splitlines()[-1]), first.stderr
    assert (0, [last_line]) == (second.returncode, second.stdout.splitlines()), second.stderr


def test_refactoring_killed_in_the_middle_repeats_only_what_was_in_flight():
    """The main promise, with a real SIGKILL: no finished model call is paid for twice."""
    before = killed_after(40, "refactor.py")
    after = run("refactor.py")

    proposed = lines_with("propose", before, after.stdout)
    repeated = len(proposed) - len(set(proposed))
    assert after.stdout.endswith("50 files refactored by run refactor-1\n"), after.stderr
    assert len(set(proposed)) == 50
    assert repeated <= 4, "at most one call per branch may be repeated, and there are four branches"
    assert all("pathlib" in path.read_text() for path in Path("refactor-files").iterdir())


def test_refactoring_interrupted_with_ctrl_c_goes_on():
    """Ctrl-C is an ordinary way to stop for today."""
    before = killed_after(40, "refactor.py", with_signal=signal.SIGINT)
    after = run("refactor.py")

    assert "50 files" not in before
    assert after.stdout.endswith("50 files refactored by run refactor-1\n"), after.stderr


def test_refund_is_paid_once_though_the_process_died_after_paying():
    """The worst moment: the money has moved and nothing was written down."""
    crashed = run("refund.py", "--crash")
    resumed = run("refund.py")

    assert crashed.returncode == -signal.SIGKILL
    assert resumed.stdout.splitlines() == ["attempt 2: the bank says re_1", "order 1001 is refunded: re_1"]
    paid = [json.loads(line) for line in Path("refund-bank.jsonl").read_text().splitlines()]
    assert [("re_1", "1001", 4999)] == [(line["id"], line["order"], line["cents"]) for line in paid]


def test_agent_killed_in_its_third_segment_goes_on_there():
    """A run that continued as new keeps its id and does not fall back to its first segment."""
    before = killed_after(20, "agent_loop.py")
    after = run("agent_loop.py")

    looked_up = lines_with("look up", before, after.stdout)
    assert {f"look up page {n}" for n in range(1, 25)} == set(looked_up), after.stderr
    assert len(looked_up) <= 25, "one call may be repeated, not a segment"
    assert len(lines_with("summarise", before, after.stdout)) in (3, 4)


def test_documents_killed_in_the_middle_are_not_read_again_from_the_start():
    """A thousand calls in twenty branches, in async code."""
    before = killed_after(500, "documents.py", "--trace")
    after = run("documents.py", "--trace")

    assert after.stdout.endswith("run documents-1000: 990 documents read, 10 unreadable\n"), after.stderr
    assert len(lines_with("read", before, after.stdout)) <= 1000 + 20


def test_pages_killed_in_the_middle_go_on_with_the_page_after_the_last_saved():
    """A hand-written loop needs no workflow to survive a kill."""
    before = killed_after(40, "checkpoint.py")
    after = run("checkpoint.py")

    read = lines_with("page", before, after.stdout)
    assert after.stdout.endswith("400 words on 100 pages\n"), after.stderr
    assert len(read) == len(set(read)) >= 99, "a page that was saved and not printed is not read again"


def test_every_example_has_a_test_here():
    """A new example without a test would rot."""
    here = Path(__file__).read_text()
    assert [] == [path.name for path in EXAMPLES.glob("*.py") if f'"{path.name}"' not in here]


@pytest.mark.parametrize("lines", [1, 2, 3])
def test_a_support_agent_killed_before_its_tools_act_refunds_and_mails_once(lines):
    """A framework's agent: what it had asked and read is not asked and read again."""
    before = killed_after(lines, "support_agent.py", "--slow", "0.4")
    after = run("support_agent.py")

    assert after.stdout.splitlines()[-1] == "Ticket 81: 48 EUR refunded, the customer has mail.", after.stderr
    assert len(lines_with("refund", before, after.stdout)) == 1
    assert Path("outbox.txt").read_text().count("ada@example.org") == 1
    assert len(json.loads(Path("bank.json").read_text())) == 1
    assert len(lines_with("look up", before, after.stdout)) == (2 if lines == 2 else 1)


@pytest.mark.parametrize("lines", [9, 17, 40])
def test_an_agent_that_continues_as_new_pays_every_order_once_wherever_it_is_killed(lines):
    """Killed in its first segment, at its first summary, in a later segment: no turn is asked for again, nothing is paid twice."""
    before = killed_after(lines, "inbox_agent.py")
    after = run("inbox_agent.py")

    assert after.stdout.splitlines()[-1] == "24 complaints settled.", after.stderr
    paid = json.loads(Path("inbox-bank.json").read_text())
    assert sorted(order for order, _ in paid.values()) == [str(1000 + number) for number in range(1, 25)]
    assert len(lines_with("look up", before, after.stdout)) <= 25
    assert len(lines_with("refund", before, after.stdout)) <= 25
    assert len(lines_with("summarise", before, after.stdout)) <= 6


@pytest.mark.parametrize("lines", [1, 2, 4, 6])
def test_a_booking_agent_killed_before_its_tools_act_pays_and_mails_once(lines):
    """What its tools wrote into the deps is there again, too."""
    before = killed_after(lines, "booking_agent.py", "--slow", "0.4")
    after = run("booking_agent.py")

    assert after.stdout.splitlines()[-1].endswith("ICE 7 for 48.00 EUR."), after.stderr
    assert len(lines_with("pay 4800", before, after.stdout)) == 1
    assert len(lines_with("reserve", before, after.stdout)) == 1
    assert Path("outbox.txt").read_text().count("ada@example.org") == 1
    assert len(json.loads(Path("bank.json").read_text())) == 1


@pytest.mark.parametrize("answered", [False, True])
def test_a_graph_killed_in_a_node_refunds_and_mails_once(answered):
    """LangGraph executes a node again from its first line; what it did is not done again."""
    pytest.importorskip("langgraph", reason="pip install 'surefoot[langgraph]'")
    asked = run("refund_graph.py") if answered else None
    killed_after(1, "refund_graph.py", *["yes"] * answered, "--slow", "0.4")
    after = run("refund_graph.py")
    if not answered:
        asked, after = after, run("refund_graph.py", "yes")

    assert "waiting for an answer: Run refund#1?" in asked.stdout, asked.stderr
    assert after.stdout.splitlines()[-1] == "ticket 81: re_1, ada@example.org has mail", after.stderr
    assert Path("outbox.txt").read_text().count("ada@example.org") == 1
    assert len(json.loads(Path("bank.json").read_text())) == 1
