"""LangGraph on Redis: a thread whose server lost its last steps is refused, and no node does anything again."""

from __future__ import annotations

import operator
import shutil
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.graph import END, START, StateGraph

import surefoot as sf
from surefoot.errors import JournalRegressed
from surefoot.langgraph import Saver, guard
from surefoot.store.open import close_all
from tests.redis import serving

THREAD: dict[str, Any] = {"configurable": {"thread_id": "order-81"}}
NODES = ("reserve", "charge", "mail", "pack", "ship")
did: list[str] = []
stops: set[str] = set()


class Order(TypedDict):
    log: Annotated[list[str], operator.add]


@sf.effect
def act(name: str) -> str:
    did.append(name)
    return name


def graph() -> Any:
    def made(name: str) -> Any:
        def node(_: Order) -> dict[str, list[str]]:
            if name in stops:
                raise ConnectionError(f"{name} is away")
            return {"log": [act(name)]}

        return node

    builder = StateGraph(Order)
    for name, follows in zip(NODES, (START, *NODES), strict=False):
        builder.add_node(name, made(name))
        builder.add_edge(follows, name)
    builder.add_edge(NODES[-1], END)
    return guard(builder.compile(checkpointer=Saver()))


def test_thread_whose_last_steps_are_lost_is_refused_and_nothing_is_repeated(tmp_path, monkeypatch):
    did.clear()
    with serving(tmp_path / "server") as server:
        monkeypatch.setenv("SUREFOOT_STORE", server.url)
        stops.update({"charge"})
        with pytest.raises(ConnectionError):
            graph().invoke({"log": []}, THREAD)
        older = shutil.copytree(server.folder, tmp_path / "older")
        stops.clear()
        stops.add("ship")
        with pytest.raises(ConnectionError):
            graph().invoke(None, THREAD)
        assert did == ["reserve", "charge", "mail", "pack"]
        right = shutil.copytree(server.folder, tmp_path / "right")
        stops.clear()

        for copy, answer in ((older, None), (right, list(NODES))):
            close_all()
            server.stop()
            shutil.rmtree(server.folder)
            shutil.copytree(copy, server.folder)
            server.start()
            if answer is None:
                for given in (None, {"log": []}):
                    with pytest.raises(JournalRegressed):
                        graph().invoke(given, THREAD)
                with pytest.raises(JournalRegressed):
                    Saver().get_tuple(THREAD)
                assert did == ["reserve", "charge", "mail", "pack"]
            else:
                assert graph().invoke(None, THREAD)["log"] == answer
        assert did == list(NODES)
        close_all()
