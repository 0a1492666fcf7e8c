"""Pruning, copying, deleting, a full disk, and what operators see of threads."""

from __future__ import annotations

import operator
from typing import Annotated, TypedDict

import pytest
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import START, StateGraph
from langgraph.types import Command

import surefoot as sf
from surefoot.cli.main import main
from surefoot.engine.upkeep.tombstones import sweep
from surefoot.engine.upkeep.verification import verify_store
from surefoot.langgraph import Saver
from surefoot.store.open import close_all, open_store
from tests.langgraph_threads import THREAD, begun, chat, into_one_file


def grown(before, writes):
    return [*before, *(item for many in writes for item in many)]


class State(TypedDict):
    items: Annotated[list, DeltaChannel(grown, snapshot_frequency=50)]
    count: Annotated[int, operator.add]


def test_pruned_thread_goes_on_and_its_space_comes_back(url):
    begun(url, steps=6)
    saver = Saver(store=url)
    saver.prune(["chat"])
    store = open_store(url, create=False)

    assert len(list(saver.list(THREAD))) == 1
    assert verify_store(store).flaws == []
    assert sweep(store).why == ""
    assert chat(Saver(store=url), steps=6).invoke(Command(resume="yes"), THREAD)["asked"] == ["yes"]


def test_copy_is_a_thread_of_its_own(url):
    begun(url)
    saver = Saver(store=url)
    saver.copy_thread("chat", "copy")
    copied = {"configurable": {"thread_id": "copy"}}

    assert chat(saver).invoke(Command(resume="no"), copied)["asked"] == ["no"]
    assert chat(saver).invoke(Command(resume="yes"), THREAD)["asked"] == ["yes"]
    with pytest.raises(sf.UsageError, match="not empty"):
        saver.copy_thread("chat", "copy")


def test_deleted_thread_is_empty_and_its_content_is_gone(url):
    begun(url)
    saver = Saver(store=url)
    saver.delete_thread("chat")

    assert saver.get_tuple(THREAD) is None
    assert list(saver.list(None)) == []
    store = open_store(url, create=False)
    sweep(store)
    assert store.part_ids() == []
    assert begun(url)


def test_delta_channel_keeps_what_it_needs_when_its_thread_is_pruned(url):
    """The value of such a channel is spread over several checkpoints."""
    builder = StateGraph(State)
    builder.add_node("n", lambda state: {"items": [state["count"]], "count": 1})
    builder.add_edge(START, "n")
    saver = Saver(store=url)
    graph = builder.compile(checkpointer=saver)
    for _ in range(5):
        found = graph.invoke({"items": [], "count": 0}, THREAD)
    saver.prune(["chat"])

    fresh = builder.compile(checkpointer=Saver(store=url))
    assert fresh.get_state(THREAD).values == found


def test_full_disk_loses_nothing(sqlite):
    """What was acknowledged is there; the graph goes on once there is room."""
    begun(sqlite)
    close_all()
    before = Saver(store=sqlite).get_tuple(THREAD)
    store = open_store(sqlite, create=True)
    store._open_writer()
    ((pages,),) = store._execute("PRAGMA page_count").fetchall()
    store._execute(f"PRAGMA max_page_count = {pages}")
    graph = chat(Saver(store=sqlite))

    with pytest.raises(sf.StoreFull):
        graph.invoke({"messages": ["x" * 100_000], "asked": []}, {"configurable": {"thread_id": "other"}})

    close_all()  # and there is room again
    assert Saver(store=sqlite).get_tuple(THREAD) == before
    assert graph.invoke(Command(resume="yes"), THREAD)["asked"] == ["yes"]
    assert verify_store(open_store(sqlite, create=False)).flaws == []


def test_operator_sees_threads_as_threads(sqlite, capsys):
    """`verify`, `inspect` and `export` know what they are."""
    from pathlib import Path

    begun(sqlite)
    assert main(["verify", "--store", sqlite]) == 0
    assert "1 other journal" in capsys.readouterr().out
    database = Path(sqlite.removeprefix("sqlite:///"))
    into_one_file(database)
    assert main(["inspect", str(database)]) == 0
    assert "thread chat" in capsys.readouterr().out
    file = database.parent / "chat.jsonl"
    assert main(["export", "--thread", "chat", "--output", str(file), "--store", sqlite]) == 0
    close_all()
    assert main(["export", "--check", str(file)]) == 0
    assert "thread chat" in capsys.readouterr().out


def test_growth_is_a_fraction_of_what_langgraph_needs(sqlite, tmp_path):
    """100 steps of 1 KB here, 400 in the proof: SqliteSaver writes the whole list at every step."""
    import sqlite3

    from langgraph.checkpoint.sqlite import SqliteSaver

    from tests.langgraph_growth import grow

    grow(Saver(store=sqlite), steps=100)
    close_all()
    theirs = tmp_path / "theirs.db"
    connection = sqlite3.connect(theirs, check_same_thread=False)
    grow(SqliteSaver(connection), steps=100)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()

    ours = sum(path.stat().st_size for path in tmp_path.glob("threads.db*") if path.is_file())
    assert ours * 12 <= theirs.stat().st_size


def test_version_of_a_channel_goes_on_from_texts_too():
    """Threads that were imported have LangGraph's: texts that sort."""
    saver = Saver(store="memory:")

    assert saver.get_next_version(None, None) == 1
    assert saver.get_next_version(1, None) == 2
    old = f"{7:032}.0.123"
    assert saver.get_next_version(old, None) > old


def test_new_checkpoint_of_a_pruned_parent_is_saved(url):
    saver = Saver(store=url)
    config = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    first = saver.put(config, empty_checkpoint(), {"source": "input", "step": -1, "parents": {}}, {})
    second = saver.put(first, empty_checkpoint(), {"source": "loop", "step": 0, "parents": {}}, {})
    saver.prune(["t"])

    third = saver.put(second, empty_checkpoint(), {"source": "loop", "step": 1, "parents": {}}, {})

    assert [one.config for one in saver.list({"configurable": {"thread_id": "t"}})] == [third, second]
