"""Real processes and the command line: the same run started twice at once, and what operators ask about a run in flight."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import surefoot as sf
from tests.suites.openai_agents.stage import counted

APP = """
import os
from agents import Agent, Model, ModelResponse, Runner, Usage, function_tool, set_tracing_disabled
from agents.testing import assistant_message, function_call
import surefoot.aio as sf
from surefoot.openai_agents import durable

set_tracing_disabled(True)

def trace(line):
    with open("ledger", "a") as ledger:
        ledger.write(line + "\\n")

class Scripted(Model):
    async def get_response(self, system_instructions, input, *_, **__):
        given = [item["output"] for item in input if item.get("type") == "function_call_output"]
        trace(f"model {len(given)}")
        if len(given) == 1 and os.path.exists("die"):
            os.kill(os.getpid(), 9)
        calls = [function_call("TOOL", {"card": "a"}, call_id="call_1")]
        return ModelResponse(output=[assistant_message(given[0])] if given else calls, usage=Usage(), response_id=None)
    def stream_response(self, *_, **__):
        raise NotImplementedError

@function_tool
def TOOL(card: str) -> str:
    trace(f"charge {card}")
    if os.path.exists("gate"):
        with open("here", "w") as here:
            here.write("here")
        with open("gate") as gate:
            gate.read()
    return f"charged {card}"

agent = Agent(name="billing", instructions="WORDS", model=Scripted(), tools=[TOOL])

@sf.workflow
async def ticket(text: str) -> str:
    return str((await Runner.run(durable(agent), text)).final_output)
"""
SECONDS = 120
pytestmark = pytest.mark.timeout(400)  # The SDK alone takes seconds to import, in each process.


def deployed(tool: str = "charge", words: str = "be exact") -> None:
    Path("app.py").write_text(APP.replace("TOOL", tool).replace("WORDS", words))


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "surefoot", *arguments]


@pytest.fixture
def started():
    """Starts the run in a process. None is left behind, wherever the test fails."""
    processes: list[subprocess.Popen[str]] = []

    def start() -> subprocess.Popen[str]:
        run = command("run", "app:ticket", "--id", "r", "hello")
        processes.append(subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        with process:
            pass


def surefoot(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*arguments), capture_output=True, text=True, timeout=SECONDS, check=False)


def test_a_process_that_starts_a_run_which_another_one_drives_waits_for_its_result(started):
    """The card is charged while the second one comes: one charge, and both have the same answer."""
    deployed()
    os.mkfifo("gate")
    os.mkfifo("here")
    first = started()
    assert Path("here").read_text() == "here"

    second = started()
    with open("gate", "w") as gate:  # Opened once the first one reads it: that one is in the tool all the time.
        assert second.poll() is None
        gate.write("go")
    ends = [process.communicate(timeout=SECONDS) for process in (first, second)]

    assert [process.returncode for process in (first, second)] == [0, 0], ends
    assert [json.loads(out) for out, _ in ends] == ["charged a", "charged a"]
    assert counted() == {"model 0": 1, "charge a": 1, "model 1": 1}


def test_processes_that_start_a_run_at_the_same_moment_act_once(started):
    deployed()
    processes = [started() for _ in range(3)]
    ends = [process.communicate(timeout=SECONDS) for process in processes]

    assert [process.returncode for process in processes] == [0, 0, 0], ends
    assert {out.strip() for out, _ in ends} == {'"charged a"'}
    assert counted() == {"model 0": 1, "charge a": 1, "model 1": 1}


@pytest.fixture
def in_flight() -> None:
    """Killed with SIGKILL when the charge is on record and the model was asked what to make of it."""
    deployed()
    Path("die").write_text("")
    assert surefoot("run", "app:ticket", "--id", "r", "hello").returncode == -9
    Path("die").unlink()
    assert counted() == {"model 0": 1, "charge a": 1, "model 1": 1}


@pytest.mark.usefixtures("in_flight")
def test_a_plan_names_the_model_call_that_would_be_made_and_makes_none():
    told = surefoot("runs", "plan", "r", "--app", "app")

    assert told.returncode == 0, told.stderr
    assert "[billing]/model#2" in told.stdout
    assert "[call_1]/charge#1" not in told.stdout.partition("next")[2]
    assert counted()["model 1"] == 1


@pytest.mark.usefixtures("in_flight")
def test_a_preflight_of_the_same_agent_and_of_a_reworded_one_strands_nothing():
    for words in ("be exact", "be kind"):
        deployed(words=words)
        told = surefoot("preflight", "--app", "app", "--strict")
        assert told.returncode == 0, told.stdout + told.stderr
    assert counted() == {"model 0": 1, "charge a": 1, "model 1": 1}
    assert surefoot("run", "app:ticket", "--id", "r", "hello").stdout.strip() == '"charged a"'


@pytest.mark.usefixtures("in_flight")
def test_a_preflight_of_an_agent_with_a_renamed_tool_tells_which_run_is_stranded():
    """Told before it is deployed; nothing is written, and the old code still goes on."""
    deployed(tool="bill")

    told = surefoot("preflight", "--app", "app")

    assert told.returncode == 3, told.stdout + told.stderr
    assert "[call_1]/charge#1" in told.stdout
    deployed()
    assert surefoot("run", "app:ticket", "--id", "r", "hello").stdout.strip() == '"charged a"'
    assert counted()["charge a"] == 1
    assert sf.get_run("r").status == "done"
