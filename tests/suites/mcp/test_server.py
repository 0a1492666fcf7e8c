"""`surefoot mcp`: an agent may look at runs and can change nothing."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, ClientSession, StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError

import surefoot as sf
from surefoot.adapters import versions
from surefoot.cli import tool_server
from surefoot.cli.main import main
from surefoot.cli.options import Settings
from surefoot.store.open import close_all

pytestmark = pytest.mark.timeout(240)  # Plans are made in processes of their own.
APP = """
import surefoot as sf

print("imported")

def trace(line):
    with open("ledger", "a") as ledger:
        ledger.write(line + "\\n")

@sf.step
def look(order: str) -> str:
    trace("look")
    print("looking")
    return f"{order}: \\x1b[31m5 EUR"

@sf.effect
def pay(order: str) -> str:
    trace("pay")
    return "paid"

@sf.workflow
def refund(order: str) -> str:
    found = look(order)
    if not sf.approve(f"Refund {order}?", details={"found": found}, by="ann"):
        return "no"
    return pay(order)

@sf.workflow
def looks(order: str) -> str:
    return look(order)

@sf.workflow
def hangs() -> None:
    sf.approve("Go on?")
    while True:
        pass
"""


@pytest.fixture(autouse=True)
def _waiting_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A run that waits for ann, and one that is done."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SUREFOOT_STORE", raising=False)
    monkeypatch.delenv("SUREFOOT_APP", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("shop.py").write_text(APP)
    assert surefoot("run", "shop:refund", "--id", "r-1", "o-7").returncode == 3
    assert surefoot("run", "shop:looks", "--id", "r-2", "o-8").returncode == 0
    yield
    close_all()


def surefoot(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "surefoot", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)


def talk(body: Callable[[Any], Awaitable[Any]], app: str | None = "shop") -> Any:
    """With a client in memory."""

    async def main() -> Any:
        async with Client(tool_server.made(Settings(), app)) as client:
            return await body(client)

    return asyncio.run(main())


def called(tool: str, /, **arguments: Any) -> Any:
    result = talk(lambda client: client.call_tool(tool, arguments))
    assert not result.is_error, result.content
    return json.loads(result.content[0].text)


def refused(tool: str, /, **arguments: Any) -> str:
    try:
        result = talk(lambda client: client.call_tool(tool, arguments))
    except MCPError as error:
        return str(error)
    assert result.is_error
    return str(result.content[0].text)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    capsys.readouterr()
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def journal() -> Any:
    """Everything that is on record, and what really ran."""
    entries = {run.id: [entry.kind for entry in run.entries()] for run in sf.runs()}
    return entries, Path("ledger").read_text()


def test_there_are_four_tools_and_all_of_them_only_read():
    """Nothing that starts, answers, settles or cancels: an agent must not answer for itself."""
    tools = talk(lambda client: client.list_tools()).tools

    assert sorted(tool.name for tool in tools) == ["list_runs", "open_questions", "plan_run", "show_run"]
    assert all(tool.annotations.read_only_hint and tool.annotations.destructive_hint is False for tool in tools)


def test_what_tools_give_is_what_the_command_prints_for_programs(capsys):
    assert called("list_runs") == printed(capsys, "runs", "list")
    assert called("list_runs", status="done") == printed(capsys, "runs", "list", "--status", "done")
    assert called("list_runs", needs_a_person=True) == printed(capsys, "runs", "list", "--need", "*")
    assert called("list_runs", limit=1, before="r-2") == printed(
        capsys, "runs", "list", "--limit", "1", "--before", "r-2"
    )
    assert called("show_run", run="r-1") == printed(capsys, "runs", "show", "r-1", "--app", "shop")


def test_of_a_long_run_the_last_calls_are_told_and_how_many_are_left_out():
    """An agent's context is small; a run may have ten thousand calls."""

    @sf.step
    def count(n: int) -> int:
        return n

    @sf.workflow
    def long() -> int:
        return sum(count(n) for n in range(60))

    long.run("r-9")

    told = called("show_run", run="r-9")
    assert (len(told["calls"]), told["calls_left_out"]) == (50, 10)
    assert told["calls"][-1]["address"] == "count#60"
    assert len(called("show_run", run="r-9", last_calls=200)["calls"]) == 60
    assert "from 1 to 200" in refused("show_run", run="r-9", last_calls=0)


def test_a_plan_executes_nothing_and_user_code_may_print(capsys):
    """Standard output belongs to the client; and new code counts without a new server."""
    before = journal()

    found = called("plan_run", run="r-1")

    assert found == printed(capsys, "runs", "plan", "r-1", "--app", "shop")
    assert found["questions"] == [{"address": "approve#1", "question": "Refund o-7?"}]
    assert journal() == before


def test_open_questions_are_told_with_all_that_a_person_is_shown():
    (question,) = called("open_questions")["questions"]

    assert (question["run"], question["name"], question["question"]) == ("r-1", "approve#1", "Refund o-7?")
    assert question["details"] == {"found": "o-7: \x1b[31m5 EUR"}
    assert question["by"] == ["ann"]
    assert any("surefoot approve r-1" in cure["do"] for cure in question["cures"])
    assert called("open_questions", run="r-1")["questions"] == [question]
    assert called("open_questions", run="r-2") == {"questions": []}


def test_nothing_is_changed_by_looking():
    before = journal()

    for tool in ("list_runs", "open_questions"):
        called(tool)
    for run in ("r-1", "r-2"):
        called("show_run", run=run)
        called("plan_run", run=run)

    assert journal() == before


def test_recorded_text_cannot_act_on_a_terminal():
    result = talk(lambda client: client.call_tool("show_run", {"run": "r-1"}))
    assert "\x1b" not in result.content[0].text


def test_what_cannot_be_told_is_an_error_with_the_reason():
    assert "NotFound" in refused("show_run", run="nobody")
    assert "NotFound" in refused("plan_run", run="nobody")
    assert "from 1 to 200" in refused("list_runs", limit=0)
    assert "status" in refused("list_runs", status="odd")
    assert "run" in refused("show_run")


def test_a_run_id_is_no_option():
    assert "NotFound" in refused("plan_run", run="--help")


def test_code_that_hangs_is_given_up(monkeypatch):
    assert surefoot("run", "shop:hangs", "--id", "r-3").returncode == 3
    sf.get_run("r-3").answer("approve#1", True, by="ann")
    monkeypatch.setattr(tool_server, "PLAN_SECONDS", 3.0)

    assert "took more than 3 seconds" in refused("plan_run", run="r-3")


def test_a_client_that_starts_the_command_gets_the_tools():
    """Over standard input and output, as agents start it."""

    async def main() -> Any:
        command = StdioServerParameters(
            command=sys.executable, args=["-m", "surefoot", "mcp", "--app", "shop"], cwd=os.getcwd()
        )
        async with stdio_client(command) as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            listed = await session.call_tool("list_runs", {})
            planned = await session.call_tool("plan_run", {"run": "r-1"})
            return [json.loads(each.content[0].text) for each in (listed, planned)]

    listed, planned = asyncio.run(main())
    assert [run["run"] for run in listed["runs"]] == ["r-1", "r-2"]
    assert planned["run"] == "r-1"


def test_a_store_that_is_not_there_is_told_at_once_and_not_made():
    ended = surefoot("mcp", "--store", "sqlite:///elsewhere/runs.db")

    assert ended.returncode == 2
    assert "elsewhere" in ended.stderr
    assert not Path("elsewhere").exists()


@pytest.mark.parametrize(("version", "why"), [(None, "not installed"), ("1.9", "from 2.3 on and below 3")])
def test_without_the_package_the_command_names_what_to_install(monkeypatch, capsys, version, why):
    monkeypatch.setattr(versions, "installed", lambda _: version)
    for name in [
        name for name in sys.modules if name.startswith(("surefoot.adapters.mcp", "surefoot.cli.tool_server"))
    ]:
        monkeypatch.delitem(sys.modules, name)

    assert main(["mcp"]) == 2
    told = capsys.readouterr().err
    assert why in told
    assert "pip install 'surefoot[mcp]'" in told
