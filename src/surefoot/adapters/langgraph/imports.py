"""Threads of LangGraph's own savers, read in: whole or not at all, theirs untouched, ours held against theirs afterwards.

What their serialiser no longer gives back as it was saved (a class that is gone, changed or not allowed) is not imported
as something else: the thread is refused, with the reason.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import unquote

from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from msgspec import Struct

from surefoot.adapters.langgraph import serde as codec
from surefoot.adapters.langgraph.saver import Saver
from surefoot.engine.seams import visible
from surefoot.engine.threads import Found, Given
from surefoot.errors import NotFound, SurefootError, UsageError

IMPORTED, THERE, REFUSED = "imported", "there already", "refused"
_TABLES: Final = {"checkpoints", "writes"}
_POSTGRES: Final = ("postgresql://", "postgres://")


class Outcome(Struct, frozen=True):
    """What became of one thread."""

    thread: str
    what: str
    """`imported`, `there already` or `refused`."""
    checkpoints: int = 0
    why: str = ""


class Changed(Exception):
    """What their serialiser gives is not what was saved."""


class Careful(JsonPlusSerializer):
    """LangGraph's serialiser, with its strict list of types. What would not be saved the same again is not loaded."""

    def __init__(self, allowed: Sequence[tuple[str, ...]] = ()) -> None:
        super().__init__(allowed_msgpack_modules=list(allowed) or None)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        kind, raw = data
        if kind == "pickle":
            raise Changed("it was pickled, and pickles are never loaded")
        found = super().loads_typed((kind, raw))
        if kind == "msgpack" and self.dumps_typed(found) != (kind, bytes(raw)):
            raise Changed(
                "a value does not come back as it was saved: its class is gone, has changed, or is not allowed "
                "(--allow MODULE:CLASS, or sf.register in the module named with --app)"
            )
        return found


def import_threads(
    source: BaseCheckpointSaver[Any], target: Saver, threads: Sequence[str] | None = None
) -> Iterator[Outcome]:
    """All threads of a saver, or those that are named; what became of each, one by one."""
    for thread in _threads_of(source) if threads is None else threads:
        try:
            yield _imported(source, target, thread)
        except (SurefootError, Changed) as error:
            yield Outcome(thread, REFUSED, why=str(error).splitlines()[0])


def _imported(source: BaseCheckpointSaver[Any], target: Saver, thread: str) -> Outcome:
    theirs = sorted(source.list(_config(thread)), key=lambda one: one.checkpoint["id"])
    if not theirs:
        return Outcome(thread, REFUSED, why="there is no such thread")
    if not target._threads.fill(thread, [_found(one, target) for one in theirs]):
        known = {(one.ns, one.id) for one in target._threads.listed(thread)}
        if {_key(one) for one in theirs} <= known:
            return Outcome(thread, THERE, len(theirs))
        return Outcome(thread, REFUSED, why="there is another thread of this id, and it is left as it is")
    why = _difference(theirs, target, thread)
    if why:
        target._threads.delete(thread, f"imported, and not the same: {why}")
        return Outcome(thread, REFUSED, why=why)
    return Outcome(thread, IMPORTED, len(theirs))


def _difference(theirs: Sequence[CheckpointTuple], target: Saver, thread: str) -> str:
    """What is not the same in ours, read back by somebody who knows nothing of the import."""
    fresh = Saver(target._threads.url, serde=target.serde, on_corruption="stop")
    if fresh._threads.check(thread) != len(theirs):
        return "not all checkpoints are there"
    ours = {_key(one): one for one in fresh.list(_config(thread))}
    for one in theirs:
        other = ours.get(_key(one))
        if other is None:
            return f"checkpoint {one.checkpoint['id']} is missing"
        for name in ("checkpoint", "metadata", "parent_config", "pending_writes"):
            if _comparable(getattr(other, name)) != _comparable(getattr(one, name)):
                return f"checkpoint {one.checkpoint['id']}: {name} is not the same"
    return ""


def _comparable(value: Any) -> Any:
    if isinstance(value, dict) and "configurable" in value:
        return value["configurable"].get("checkpoint_id")
    return value or None


def _found(one: CheckpointTuple, target: Saver) -> Found:
    ns, id_ = _key(one)
    packer, memory = target.serde, target._memory
    parent = (one.parent_config or {}).get("configurable", {}).get("checkpoint_id") or ""
    state = codec.encode_checkpoint(one.checkpoint, packer, memory, ())
    wrote: dict[str, list[tuple[str, Any]]] = {}
    for task, channel, value in one.pending_writes or ():
        wrote.setdefault(task, []).append((channel, value))
    given = tuple(
        # Their order is that of paths, which they do not tell: the order stands in for them.
        Given(task, f"~imported {number:06}", codec.encode_writes(writes, packer, memory))
        for number, (task, writes) in enumerate(wrote.items())
    )
    return Found("", ns, id_, parent, state, codec.encode_meta(one.metadata or {}, packer), given)


def _key(one: CheckpointTuple) -> tuple[str, str]:
    return one.config["configurable"].get("checkpoint_ns") or "", one.checkpoint["id"]


def _config(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


def _threads_of(source: BaseCheckpointSaver[Any]) -> list[str]:
    """The ids of all threads, without loading what is in them where that can be had."""
    cursor = getattr(source, "_surefoot_threads", None)
    if cursor is not None:
        return list(cursor())
    storage = getattr(source, "storage", None)
    if isinstance(storage, dict):  # LangGraph's saver in memory
        return sorted(map(str, storage))
    return sorted({str(one.config["configurable"]["thread_id"]) for one in source.list(None)})


# --- their savers, opened to be read ------------------------------------------------------------------------------


@contextmanager
def opened(url: str, allowed: Sequence[tuple[str, ...]] = ()) -> Iterator[BaseCheckpointSaver[Any]]:
    """A saver of LangGraph over its database, which cannot write to it."""
    if url.startswith(_POSTGRES):
        with _postgres(url, allowed) as found:
            yield found
    else:
        with _sqlite(url, allowed) as found:
            yield found


@contextmanager
def _sqlite(url: str, allowed: Sequence[tuple[str, ...]]) -> Iterator[BaseCheckpointSaver[Any]]:
    import sqlite3
    from contextlib import closing
    from urllib.parse import quote

    path = unquote(url.removeprefix("sqlite:///")) if url.startswith("sqlite:") else url
    if not os.path.isfile(path):
        raise NotFound(f"there is no file {visible(path)}. Write sqlite:///FILE, or postgresql://…")
    try:
        from langgraph.checkpoint.sqlite import SqliteSaver
    except ImportError:
        raise _missing("langgraph-checkpoint-sqlite") from None
    with closing(sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True, check_same_thread=False)) as connection:
        try:
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        except sqlite3.DatabaseError as error:
            raise UsageError(f"{visible(path)} cannot be read as an SQLite database: {error}") from error
        if not tables >= _TABLES:
            raise UsageError(f"{visible(path)} has no threads of LangGraph's SqliteSaver in it.")
        saver = SqliteSaver(connection, serde=Careful(allowed))
        saver.is_setup = True  # its setup writes: that is not ours to do
        columns = {row[1] for row in connection.execute("PRAGMA table_info(writes)")}
        saver._has_task_path = "task_path" in columns
        question = "SELECT DISTINCT thread_id FROM checkpoints ORDER BY 1"
        vars(saver)["_surefoot_threads"] = lambda: [str(thread) for (thread,) in connection.execute(question)]
        yield saver


@contextmanager
def _postgres(url: str, allowed: Sequence[tuple[str, ...]]) -> Iterator[BaseCheckpointSaver[Any]]:
    try:
        import psycopg
        from langgraph.checkpoint.postgres import PostgresSaver
        from psycopg.rows import dict_row
    except ImportError:
        raise _missing("langgraph-checkpoint-postgres") from None
    try:
        connection = psycopg.connect(url, autocommit=True, prepare_threshold=0, row_factory=dict_row)
    except psycopg.OperationalError as error:
        raise UsageError(f"the database cannot be reached: {str(error).splitlines()[0]}") from None
    with connection:
        connection.execute("SET default_transaction_read_only = on")
        rows = connection.execute(
            "SELECT to_regclass('checkpoints') AS a, to_regclass('checkpoint_writes') AS b"
        ).fetchone()
        if rows is None or None in rows.values():
            raise UsageError("the database has no threads of LangGraph's PostgresSaver in it.")
        saver = PostgresSaver(connection, serde=Careful(allowed))
        question = "SELECT DISTINCT thread_id FROM checkpoints ORDER BY 1"
        vars(saver)["_surefoot_threads"] = lambda: [str(row["thread_id"]) for row in connection.execute(question)]
        yield saver


def _missing(package: str) -> UsageError:
    return UsageError(f"their saver is needed to read it: pip install {package}")
