"""`durable(session)`: an MCP client in a workflow, with a server in memory."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp_types import ToolAnnotations

import surefoot as sf
from surefoot.mcp import durable
from surefoot.store.open import close_all
from surefoot.testing.children import die, in_child

deadly: set[str] = set()


def trace(line: str) -> None:
    with Path("ledger").open("a") as file:
        file.write(f"{line}\n")
    if line in deadly:
        die()


def counted() -> Counter[str]:
    return Counter(Path("ledger").read_text().splitlines() if Path("ledger").exists() else [])


@pytest.fixture(autouse=True)
def _fresh_store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SUREFOOT_STORE", raising=False)
    yield
    close_all()


server = MCPServer("shop")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def look(order: str) -> str:
    trace(f"look {order}")
    return f"{order}: 5 EUR"


@server.tool(annotations=ToolAnnotations(idempotent_hint=True))
def put(order: str, ctx: Context) -> str:
    meta: Any = ctx.request_context.meta
    trace(f"key {meta['surefoot/key'] if isinstance(meta, dict) else meta.model_dump()['surefoot/key']}")
    return f"put {order}"


@server.tool()
def order(item: str) -> str:
    trace(f"order {item}")
    return f"ordered {item}"


@server.resource("shop://prices")
def prices() -> str:
    trace("prices")
    return "tea: 5 EUR"


def flow(*calls: tuple[str, dict[str, Any]], **options: Any) -> Any:
    @sf.workflow(name="shopping")
    async def shopping() -> list[str]:
        async with durable(Client(server), **options) as client:
            found = [await client.call_tool(name, arguments) for name, arguments in calls]
            return [each.content[0].text for each in found]

    return lambda: asyncio.run(shopping.run("r"))


def kinds() -> dict[str, tuple[str, str]]:
    return {each.address: (each.kind, each.on_crash) for each in sf.get_run("r").steps()}


CALLS = (("look", {"order": "a"}), ("put", {"order": "a"}), ("order", {"item": "tea"}))


def test_calls_are_what_the_servers_hints_say():
    run = flow(*CALLS)

    assert run() == run() == ["a: 5 EUR", "put a", "ordered tea"]
    assert kinds() == {
        "list_tools#1": ("step", ""),
        "look#1": ("step", ""),
        "put#1": ("effect", "retry"),
        "order#1": ("effect", "ask"),
    }
    key = next(each.key for each in sf.get_run("r").steps() if each.address == "put#1")
    assert counted() == {"look a": 1, f"key {key}": 1, "order tea": 1}


def test_hints_are_overruled_and_switched_off():
    flow(*CALLS, hints=False, tools={"look": sf.tool(on_crash="fail"), "order": "step"})()
    assert [kinds()[name] for name in ("look#1", "put#1", "order#1")] == [
        ("effect", "fail"),
        ("effect", "ask"),
        ("step", ""),
    ]


def test_killed_inside_of_a_tool_a_person_is_asked_and_finished_calls_are_not_made_again():
    run = flow(*CALLS)

    def dies(_: Any) -> None:
        deadly.add("order tea")
        run()

    assert in_child(dies, seconds=40).killed
    with pytest.raises(sf.InDoubt, match="order#1"):
        run()
    sf.get_run("r").settle("order#1", happened={"content": [{"type": "text", "text": "by hand"}]}, by="ann")

    assert run() == ["a: 5 EUR", "put a", "by hand"]
    assert (counted()["look a"], counted()["order tea"]) == (1, 1)


def test_resources_are_read_once():
    @sf.workflow
    async def reading() -> str:
        async with durable(Client(server)) as client:
            found = await client.read_resource("shop://prices")
        return str(found.contents[0].text)

    assert asyncio.run(reading.run("r")) == asyncio.run(reading.run("r")) == "tea: 5 EUR"
    assert counted()["prices"] == 1


def test_what_is_not_recorded_is_refused():
    @sf.workflow
    async def subscribing() -> None:
        async with durable(Client(server)) as client:
            await client.subscribe_resource("shop://prices")

    with pytest.raises(BaseException, match=r"is not recorded") as raised:
        asyncio.run(subscribing.run("r"))
    assert isinstance(raised.value, sf.UsageError | BaseExceptionGroup)


def test_outside_of_a_run_it_is_the_client():
    async def main() -> str:
        async with durable(Client(server)) as client:
            return str((await client.call_tool("order", {"item": "x"})).content[0].text)

    assert asyncio.run(main()) == "ordered x"
    with pytest.raises(sf.NotFound):
        sf.get_run("r")


def test_a_wrong_word_about_a_tool_and_no_client_are_refused():
    with pytest.raises(sf.UsageError, match="cannot be inline"):
        durable(Client(server), tools={"look": "inline"})
    with pytest.raises(sf.UsageError, match=r"mcp\.Client"):
        durable({})  # type: ignore[type-var]
    with pytest.raises(BaseException, match="no such tool"):
        flow(*CALLS, tools={"lok": "step"})()
