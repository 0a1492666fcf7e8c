"""Threads of LangGraph's own savers, read in: whole or not at all, theirs untouched, ours the same."""

from __future__ import annotations

import dataclasses
import json
import sqlite3
from hashlib import sha256

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from surefoot.adapters.langgraph.imports import import_threads
from surefoot.cli.main import main
from surefoot.langgraph import Saver
from surefoot.store.open import close_all
from tests.langgraph_threads import THREAD, chat

FIRST = {"messages": [HumanMessage("hello", id="h")], "asked": []}
DONE = {"configurable": {"thread_id": "done"}}


def fill(saver):
    """One chat that waits for a person, and one that is over."""
    graph = chat(saver)
    for thread in (THREAD, DONE):
        graph.invoke(FIRST, thread)
    graph.invoke(Command(resume="yes"), DONE)


@pytest.fixture
def theirs(tmp_path):
    path = tmp_path / "theirs.db"
    connection = sqlite3.connect(path, check_same_thread=False)
    fill(SqliteSaver(connection))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return path


def test_threads_of_sqlite_go_on_with_ours(theirs, sqlite, capsys):
    """The pause that a person was asked at is the same, and the database is byte for byte as it was."""
    before = sha256(theirs.read_bytes()).hexdigest()

    assert main(["langgraph", "import", "--from", f"sqlite:///{theirs}", "--store", sqlite]) == 0

    out = capsys.readouterr().out
    assert "imported      chat, 6 checkpoints" in out
    assert "imported      done, 7 checkpoints" in out
    assert sha256(theirs.read_bytes()).hexdigest() == before
    close_all()
    graph = chat(Saver(store=sqlite))
    assert graph.get_state(THREAD).interrupts[0].value["seen"] == 5
    assert graph.invoke(Command(resume="yes"), THREAD)["asked"] == ["yes"]
    assert graph.get_state(DONE).values["asked"] == ["yes"]
    assert main(["verify", "--store", sqlite]) == 0


def test_import_can_be_given_again_and_takes_what_is_named(theirs, sqlite, capsys):
    source = f"sqlite:///{theirs}"
    assert main(["langgraph", "import", "chat", "--from", source, "--store", sqlite, "--json"]) == 0
    assert [one["what"] for one in json.loads(capsys.readouterr().out)["threads"]] == ["imported"]

    assert main(["langgraph", "import", "--from", source, "--store", sqlite, "--json"]) == 0

    told = {one["thread"]: one["what"] for one in json.loads(capsys.readouterr().out)["threads"]}
    assert told == {"chat": "there already", "done": "imported"}


def test_thread_of_the_same_id_is_not_written_over(theirs, sqlite, capsys):
    chat(Saver(store=sqlite)).invoke(FIRST, THREAD)
    mine = Saver(store=sqlite).get_tuple(THREAD)

    assert main(["langgraph", "import", "--from", f"sqlite:///{theirs}", "--store", sqlite]) == 1

    assert "another thread of this id" in capsys.readouterr().out
    assert Saver(store=sqlite).get_tuple(THREAD) == mine


def test_threads_of_postgres(server, sqlite, capsys):
    import psycopg

    source = server.emptied("theirs")
    with PostgresSaver.from_conn_string(source) as saver:
        saver.setup()
        fill(saver)

    assert main(["langgraph", "import", "--from", source, "--store", sqlite]) == 0

    assert chat(Saver(store=sqlite)).invoke(Command(resume="yes"), THREAD)["asked"] == ["yes"]
    with psycopg.connect(source) as connection:
        assert connection.execute("SELECT count(*) FROM checkpoints").fetchone() == (13,)


def test_threads_in_memory_are_imported_in_their_process(url):
    source = InMemorySaver()
    fill(source)

    outcomes = list(import_threads(source, Saver(store=url)))

    assert [(one.thread, one.what) for one in outcomes] == [("chat", "imported"), ("done", "imported")]
    assert chat(Saver(store=url)).invoke(Command(resume="yes"), THREAD)["asked"] == ["yes"]


@dataclasses.dataclass
class Order:
    number: int


def test_class_that_is_not_allowed_is_not_imported_as_a_dict(tmp_path, sqlite, capsys):
    """Their serialiser gives a dict, with a line in a log."""
    path = tmp_path / "theirs.db"
    connection = sqlite3.connect(path, check_same_thread=False)
    checkpoint = empty_checkpoint() | {"channel_values": {"order": Order(1)}}
    SqliteSaver(connection).put({"configurable": {"thread_id": "t", "checkpoint_ns": ""}}, checkpoint, {}, {})
    connection.close()
    command = ["langgraph", "import", "--from", f"sqlite:///{path}", "--store", sqlite]

    assert main(command) == 1
    assert "refused       t: a value does not come back" in capsys.readouterr().out
    assert Saver(store=sqlite).get_tuple({"configurable": {"thread_id": "t"}}) is None

    assert main([*command, "--allow", f"{Order.__module__}:Order"]) == 0


@pytest.mark.parametrize("what", ["missing", "empty", "garbage", "ours"])
def test_what_is_no_database_of_theirs_is_refused(tmp_path, sqlite, what, capsys):
    path = tmp_path / "file.db"
    if what == "empty":
        sqlite3.connect(path).execute("CREATE TABLE t (x)").connection.close()
    elif what == "garbage":
        path.write_bytes(b"garbage" * 1000)
    elif what == "ours":
        chat(Saver(store=f"sqlite:///{path}")).invoke(FIRST, THREAD)
        close_all()

    assert main(["langgraph", "import", "--from", f"sqlite:///{path}", "--store", sqlite]) == 2
