"""A chat of a few steps in LangGraph, and damage to its thread: for the suite of the adapter and for the proof."""

from __future__ import annotations

import logging
import operator
import random
import shutil
from pathlib import Path
from typing import Annotated, Any, TypedDict

import apsw
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import interrupt

from surefoot.errors import Damaged
from surefoot.langgraph import Saver
from surefoot.store.open import close_all

THREAD: dict[str, Any] = {"configurable": {"thread_id": "chat"}}


class Chat(TypedDict):
    messages: Annotated[list[Any], add_messages]
    asked: Annotated[list[str], operator.add]


def chat(saver: Any, *, steps: int = 4) -> Any:
    """So many answers of 1.5 KB each, then a question to a person."""

    def answer(state: Chat) -> dict[str, Any]:
        count = len(state["messages"])
        return {"messages": [AIMessage(content=f"{count} {random.Random(count).randbytes(700).hex()}", id=f"a{count}")]}

    def ask(state: Chat) -> dict[str, Any]:
        return {"asked": [interrupt({"question": "Go on?", "seen": len(state["messages"])})]}

    builder = StateGraph(Chat)
    builder.add_node("answer", answer)
    builder.add_node("ask", ask)
    builder.add_edge(START, "answer")
    builder.add_conditional_edges("answer", lambda state: "ask" if len(state["messages"]) > steps else "answer")
    builder.add_edge("ask", END)
    return builder.compile(checkpointer=saver)


def begun(url: str, *, steps: int = 4) -> list[Any]:
    """A chat that waits for a person. Its checkpoints, the newest first."""
    saver = Saver(store=url)
    chat(saver, steps=steps).invoke(
        {"messages": [HumanMessage("hello", id="h")], "asked": []}, THREAD, durability="sync"
    )
    return list(saver.list(THREAD))


def into_one_file(database: Path) -> None:
    close_all()
    connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        connection.close()


def newest_places(database: Path) -> list[range]:
    """Where in the file the newest checkpoint lies: its record, its head, and every part of the store."""
    return places_of(
        database,
        "SELECT body, seal FROM entries WHERE kind = 70 ORDER BY pos DESC LIMIT 1",
        "SELECT run, seal FROM heads",
        "SELECT id, body FROM parts",
    )


def places_of(database: Path, *questions: str) -> list[range]:
    """Where in the file the values lie that these select, each with what stands before it in its row."""
    connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        rows = [row for question in questions for row in connection.execute(question).fetchall()]
    finally:
        connection.close()
    content = database.read_bytes()
    found = []
    for row in rows:
        for value in row:
            wanted = value.encode() if isinstance(value, str) else value
            at = content.find(wanted)
            if at >= 0:
                found.append(range(max(at - 12, 0), at + len(wanted)))
    return found


class Flips:
    """One bit of a copy of a store is flipped, a new saver looks, and what it says is judged."""

    def __init__(self, folder: Path, *, steps: int = 4) -> None:
        self.folder = folder
        self.database = folder / "threads.db"
        self.checkpoints = begun(f"sqlite:///{self.database}", steps=steps)
        into_one_file(self.database)
        self.places = newest_places(self.database)
        self.outcomes: dict[str, int] = {}

    def flip(self, seed: int, records: Any) -> str:
        luck = random.Random(seed)
        place = luck.choice(self.places)
        bit = luck.choice(place) * 8 + luck.randrange(8)
        copy = self.folder / "flipped" / "threads.db"
        shutil.rmtree(copy.parent, ignore_errors=True)
        copy.parent.mkdir()
        content = bytearray(self.database.read_bytes())
        content[bit // 8] ^= 1 << bit % 8
        copy.write_bytes(content)
        copy.chmod(0o600)
        shutil.copy(f"{self.database}-anchor", f"{copy}-anchor")
        records.clear()
        outcome = self._judged(copy, records)
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1
        return outcome

    def _judged(self, copy: Path, records: Any) -> str:
        try:
            found = Saver(store=f"sqlite:///{copy}").get_tuple(THREAD)
        except Damaged:
            return "refused"
        finally:
            close_all()
        loud = any(
            record.levelno >= logging.WARNING and "fell back" in record.getMessage() for record in records.records
        )
        if found is None:
            return "WRONG: nothing there"
        if found == self.checkpoints[0]:
            return "right"
        if found in self.checkpoints:
            return "fell back" if loud else "WRONG: an older one, silently"
        older = [one for one in self.checkpoints if one.checkpoint == found.checkpoint]
        return "fell back" if older and loud else "WRONG: something else"
