"""Tools of MCP servers, over a real pipe: what their hints mean, and that hints can be overruled and switched off."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, Runner
from agents.mcp import MCPServerStdio

import surefoot as sf
from surefoot.openai_agents import durable
from tests.suites.openai_agents.stage import Script, call, counted, killed_at, trace, traces

pytestmark = pytest.mark.timeout(240)  # Each run starts a server in a process of its own, some runs three times.

SERVER = Path(__file__).with_name("shop_server.py")


def running(*calls: Any, **options: Any) -> Any:
    def answer(given: list[str]) -> Any:
        return "; ".join(each if isinstance(each, str) else each[0]["text"] for each in given) if given else list(calls)

    params: Any = {"command": sys.executable, "args": [str(SERVER)], "env": {"LEDGER": str(Path("ledger").resolve())}}

    @sf.workflow(name="shopping")
    async def shopping() -> str:
        async with MCPServerStdio(params, name="shop", client_session_timeout_seconds=60) as server:
            agent = Agent(name="shopper", model=Script(answer), mcp_servers=[server])
            return str((await Runner.run(durable(agent, **options), "go")).final_output)

    return lambda: asyncio.run(shopping.run("r"))


def recorded() -> dict[str, tuple[str, str]]:
    return {each.address: (each.kind, each.on_crash) for each in sf.get_run("r").steps() if "call_" in each.address}


CALLS = (call("look", 1, order="a"), call("put", 2, order="a"), call("order", 3, item="tea"))


def test_a_servers_hints_say_what_its_tools_are():
    run = running(*CALLS)

    assert run() == run() == "a: 5 EUR; put a; ordered tea"
    assert recorded() == {
        "[call_1]/look#1": ("step", ""),
        "[call_2]/put#1": ("effect", "retry"),
        "[call_3]/order#1": ("effect", "ask"),
    }
    assert counted()["look a"] == counted()["order tea"] == 1


def test_a_call_that_may_be_repeated_has_the_same_key_in_every_request():
    """The key travels in `_meta`: a server that knows it does not do it twice."""
    run = running(call("put", 1, order="a"))
    run()
    put = next(line for line in traces() if line.startswith("put"))
    key = next(each.key for each in sf.get_run("r").steps() if "put" in each.address)
    assert put == f'put a "{key}"'


def test_hints_are_a_servers_word_and_can_be_overruled():
    run = running(*CALLS, tools={"order": "step", "look": sf.tool(on_crash="fail")})
    run()
    assert recorded()["[call_1]/look#1"] == ("effect", "fail")
    assert recorded()["[call_3]/order#1"] == ("step", "")


def test_hints_can_be_switched_off():
    running(*CALLS, hints=False)()
    assert set(recorded().values()) == {("effect", "ask")}


def test_killed_behind_a_server_that_has_acted_a_person_is_asked():
    run = running(call("order", 1, item="tea"))

    def dies() -> None:
        from agents.mcp import util

        invoke = util.MCPUtil.invoke_mcp_tool

        async def invoked(*args: Any, **options: Any) -> Any:
            found = await invoke(*args, **options)
            trace("ordered")
            return found

        util.MCPUtil.invoke_mcp_tool = staticmethod(invoked)  # type: ignore[method-assign]
        run()

    killed_at("ordered", dies)
    with pytest.raises(sf.InDoubt, match=r"\[call_1\]/order#1"):
        run()
    assert counted()["order tea"] == 1
