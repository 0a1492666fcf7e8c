"""A graph of three nodes with effects, killed at random moments: for the suite of the adapter and for the proof.

Processes are forked from a warm one, so that a kill costs no import of LangGraph. The world is a ledger file.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import operator
import os
import random
import time
from collections import Counter
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph

import surefoot as sf
from surefoot.langgraph import Saver, guard

THREAD: dict[str, Any] = {"configurable": {"thread_id": "order-81"}}
NODES = ("reserve", "charge", "mail")
EACH = 3
"""Effects in each node."""


class Broken(Exception):
    """What a node raises that breaks."""


class Order(TypedDict):
    log: Annotated[list[str], operator.add]


def write(line: str) -> None:
    handle = os.open("ledger", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, f"{line}\n".encode())
    os.close(handle)


def lines() -> list[str]:
    return Path("ledger").read_text().splitlines() if Path("ledger").exists() else []


def _work() -> None:
    until = time.perf_counter() + 0.001
    while time.perf_counter() < until:
        pass


@sf.effect
def act(name: str) -> str:
    _work()
    write(f"act {name}")
    _work()
    return name


@act.check
def acted(name: str) -> Any:
    return sf.happened(name) if f"act {name}" in lines() else sf.not_happened()


@sf.effect
async def async_act(name: str) -> str:
    _work()
    write(f"act {name}")
    _work()
    return name


async_act.check(acted)


def graph(saver: Saver, *, is_async: bool = False, breaks_in: str = "") -> Any:
    """`breaks_in`: the node that raises when it has done everything."""

    def blocking(name: str) -> Any:
        def node(_: Order) -> dict[str, list[str]]:
            log = [act(f"{name}{number}") for number in range(EACH)]
            if name == breaks_in:
                raise Broken(name)
            return {"log": log}

        return node

    def tasks(name: str) -> Any:
        async def node(_: Order) -> dict[str, list[str]]:
            return {"log": [await async_act(f"{name}{number}") for number in range(EACH)]}

        return node

    builder = StateGraph(Order)
    for name, follows in zip(NODES, (START, *NODES), strict=False):
        builder.add_node(name, (tasks if is_async else blocking)(name))
        builder.add_edge(follows, name)
    builder.add_edge(NODES[-1], END)
    return guard(builder.compile(checkpointer=saver))


_PATIENCE = 200
"""Seconds until a process counts as hanging, on a machine that is busy with other things."""


def drive(folder: str, durability: str, is_async: bool) -> None:
    """What an operator does after a crash: with the input if nothing is there, else with None."""
    os.chdir(folder)
    saver = Saver(store=f"sqlite:///{folder}/store.db")
    app = graph(saver, is_async=is_async)
    given = {"log": ["in"]} if saver.get_tuple(THREAD) is None else None
    write("begun")
    if is_async:
        found = asyncio.run(app.ainvoke(given, THREAD, durability=durability))
    else:
        found = app.invoke(given, THREAD, durability=durability)
    Path("result").write_text(" ".join(found["log"]))


def processes() -> Any:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


def killed(folder: Path, seed: int, durability: str, *, is_async: bool, kills: int = 3) -> int:
    """Drive the graph to its end, killed so often at random moments. How often it was struck; the ledger is judged."""
    luck, struck = random.Random(seed), 0
    folder.mkdir()
    for number in range(kills + 1):
        process = processes().Process(target=drive, args=(str(folder), durability, is_async))
        process.start()
        if number < kills:
            _await_begun(folder, number + 1)
            process.join(luck.uniform(0, 0.12))
            process.kill()
        process.join(_PATIENCE)
        struck += process.exitcode == -9
        if process.exitcode == 0:
            break
    assert process.exitcode == 0, "the last one was not killed, and did not come to its end"
    judge(folder)
    return struck


def _await_begun(folder: Path, times: int) -> None:
    until = time.monotonic() + _PATIENCE
    ledger = folder / "ledger"
    while not ledger.exists() or ledger.read_text().count("begun") < times:
        assert time.monotonic() < until, "the process did not begin"
        time.sleep(0.001)


WANTED = [f"{name}{number}" for name in NODES for number in range(EACH)]


def judge(folder: Path) -> None:
    did = Counter(line for line in (folder / "ledger").read_text().splitlines() if line != "begun")
    assert did == Counter(f"act {name}" for name in WANTED)
    assert (folder / "result").read_text().split() == ["in", *WANTED]


def plain(folder: str, durability: str) -> None:
    """Nodes that act, with a Saver and no `guard`, as LangGraph has them. The process dies in the second one, once."""
    os.chdir(folder)
    saver = Saver(store=f"sqlite:///{folder}/store.db")

    def node(name: str) -> Any:
        def execute(_: Order) -> dict[str, list[str]]:
            write(name)
            if name == NODES[1] and lines().count(name) == 1:
                os.kill(os.getpid(), 9)
            return {"log": [name]}

        return execute

    builder = StateGraph(Order)
    for name, follows in zip(NODES, (START, *NODES), strict=False):
        builder.add_node(name, node(name))
        builder.add_edge(follows, name)
    app = builder.compile(checkpointer=saver)
    given = {"log": ["in"]} if saver.get_tuple(THREAD) is None else None
    Path("result").write_text(" ".join(app.invoke(given, THREAD, durability=durability)["log"]))  # type: ignore[arg-type]


def killed_plain(folder: Path, durability: str) -> list[str]:
    """What was executed, in two processes of which the first is killed."""
    folder.mkdir()
    for code in (-9, 0):
        process = processes().Process(target=plain, args=(str(folder), durability))
        process.start()
        process.join(_PATIENCE)
        assert process.exitcode == code
    assert (folder / "result").read_text().split() == ["in", *NODES]
    return (folder / "ledger").read_text().split()
