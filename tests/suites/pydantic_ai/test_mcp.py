"""Tools of MCP servers, over a real pipe: what their hints mean, and that hints can be overruled and switched off."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset

import surefoot as sf
from surefoot.pydantic_ai import Durable
from tests.suites.pydantic_ai.stage import Script, addresses, call, counted, killed_at, trace, traces

pytestmark = pytest.mark.timeout(240)  # Each run starts a server in a process of its own.

SERVER = Path(__file__).with_name("shop_server.py")


def shop(**options: Any) -> MCPToolset[Any]:
    env = {"LEDGER": str(Path("ledger").resolve())}
    return MCPToolset(
        StdioTransport(sys.executable, [str(SERVER)], env=env, keep_alive=False), init_timeout=60, **options
    )


def running(*calls: Any, toolset: Any = shop, **options: Any) -> Any:
    @sf.workflow(name="shopping")
    async def shopping() -> str:
        script = Script(lambda given: "; ".join(given) if given else list(calls))
        agent = Agent(script.model, name="shopper", toolsets=[toolset()], capabilities=[Durable(**options)])
        return str((await agent.run("go")).output)

    return lambda: asyncio.run(shopping.run("r"))


def recorded() -> dict[str, tuple[str, str]]:
    return {each.address: (each.kind, each.on_crash) for each in sf.get_run("r").steps() if "call_" in each.address}


CALLS = (call("look", 1, order="a"), call("put", 2, order="a"), call("order", 3, item="tea"))


def test_a_servers_hints_say_what_its_tools_are():
    run = running(*CALLS)

    found = run()
    assert found == run()
    assert all(text in found for text in ("a: 5 EUR", "put a", "ordered tea"))
    assert recorded() == {
        "[call_1]/look#1": ("step", ""),
        "[call_2]/put#1": ("effect", "retry"),
        "[call_3]/order#1": ("effect", "ask"),
    }
    assert counted()["look a"] == counted()["order tea"] == 1


def test_a_call_that_may_be_repeated_has_the_same_key_in_every_request():
    """The key travels in `_meta`: a server that knows it does not do it twice."""

    async def hook(ctx: Any, call_tool: Any, name: str, args: dict[str, Any]) -> Any:
        trace(f"hook {name}")
        return await call_tool(name, args, metadata={"mine": 1})

    running(call("put", 1, order="a"), toolset=lambda: shop(process_tool_call=hook))()
    put = next(line for line in traces() if line.startswith("put"))
    key = next(each.key for each in sf.get_run("r").steps() if "put" in each.address)
    assert put == f'put a "{key}"'
    assert counted()["hook put"] == 1


def test_hints_are_a_servers_word_and_can_be_overruled():
    run = running(*CALLS, tools={"order": "step", "look": sf.tool(on_crash="fail")})
    run()
    assert recorded()["[call_1]/look#1"] == ("effect", "fail")
    assert recorded()["[call_3]/order#1"] == ("step", "")


def test_hints_can_be_switched_off():
    running(*CALLS, hints=False)()
    assert set(recorded().values()) == {("effect", "ask")}


def test_which_tools_a_server_has_is_on_record_too():
    """A resume asks the server for nothing that it has said."""
    run = running(call("look", 1, order="a"))
    killed_at("model 1", run)
    assert "[shopper.MCPToolset]/get_tools#1" in addresses()

    run()
    assert counted()["look a"] == 1


def test_killed_behind_a_server_that_has_acted_a_person_is_asked():
    async def dies(ctx: Any, call_tool: Any, name: str, args: dict[str, Any]) -> Any:
        found = await call_tool(name, args)
        trace("ordered")
        return found

    run = running(call("order", 1, item="tea"), toolset=lambda: shop(process_tool_call=dies))
    killed_at("ordered", run)
    with pytest.raises(sf.InDoubt, match=r"\[call_1\]/order#1"):
        run()
    assert counted()["order tea"] == 1
