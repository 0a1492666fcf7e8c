"""A checkpointer for LangGraph whose threads are sealed journals in a store of surefoot.

What LangGraph asks for is answered from `engine/threads.py`: the newest checkpoint that can be read, never nothing where
something is unreadable; one line per thread, so that a second process is `Fenced`; a whole state at every step, of which
only what is new is stored. This file translates between LangGraph's objects and those.

Blocking and async methods do the same. The async ones encode at once, since other tasks may change the state meanwhile, and
wait for the store in threads of their own: the loop's are there for the nodes, which may wait for us.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_serializable_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from surefoot.adapters.langgraph import serde as codec
from surefoot.engine.seams import OnCorruption
from surefoot.engine.threads import Found, Key, Listed, Threads
from surefoot.errors import CorruptCheckpoint, UsageError

P = ParamSpec("P")
R = TypeVar("R")

_WORKERS: Final = 8
_DELTA: Final = "counters_since_delta_snapshot"
_STRATEGIES: Final = ("keep_latest", "delete")
_BY_HAND: Final = ("update", "fork")


GUARDED: Final = "__surefoot_guarded"
"""In a config: what the graph was invoked with was looked at already."""


class Newest(NamedTuple):
    """Where the outermost graph of a thread stands: its newest checkpoint, or one that it stood at."""

    id: str
    settled: frozenset[str]
    """The tasks whose writes are saved with it."""


class Saver(BaseCheckpointSaver[Any]):
    """A checkpointer: `builder.compile(checkpointer=Saver())`.

    `store` is the URL of a store; without one it is that of `sf.configure`, SUREFOOT_STORE, or a file beside the work.
    `on_corruption` says what happens if the newest checkpoint cannot be read: `"fallback"` to the newest that can be,
    loudly, or `"stop"`; without it, as configured. `serde` is for values that surefoot does not know (see
    `sf.register`), by default LangGraph's with its strict list of types; any other one is used for all values.
    """

    def __init__(
        self,
        store: str | None = None,
        *,
        serde: SerializerProtocol | None = None,
        on_corruption: OnCorruption | None = None,
    ) -> None:
        super().__init__(serde=serde or JsonPlusSerializer(allowed_msgpack_modules=None))
        self._threads = Threads(store, on_corruption)
        self._memory = codec.Memory()
        self.hosts: dict[str, Any] = {}
        """Of the middleware, by name. LangGraph makes copies of a saver, which share these."""

    @staticmethod
    def on_input(saver: Saver, thread: str) -> None:
        """Called before new input of a thread is saved. What records effects in nodes puts a check here (`middleware.py`)."""

    @staticmethod
    def on_fallback(saver: Saver, thread: str) -> None:
        """The same, before anything is saved behind a checkpoint that was fallen back to."""

    def __repr__(self) -> str:
        return f"Saver({self._threads.where!r})"

    # --- reading -----------------------------------------------------------------------------------------

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that is named, else the newest. None only if nothing was ever saved there."""
        thread, ns, id_ = _place(config)
        found = self._threads.one(thread, ns, id_) if id_ else self._threads.newest(thread, ns)
        return None if found is None else self._tuple(found)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - LangGraph's name for it
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Checkpoints, the newest first."""
        left = limit
        for listed in self._chosen(config, filter, before, limit):
            if left is not None and left <= 0:
                return
            found = self._threads.load(listed)
            if found is not None:
                left = None if left is None else left - 1
                yield self._tuple(found)

    def _chosen(
        self,
        config: RunnableConfig | None,
        wanted: Mapping[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> Sequence[Listed]:
        named = {} if config is None else config["configurable"]
        names = self._threads.names() if config is None else [_place(config)[0]]
        until = None if before is None else before["configurable"].get("checkpoint_id")
        found = [
            listed
            for name in names
            for listed in self._threads.listed(name)
            if ("checkpoint_ns" not in named or named["checkpoint_ns"] == listed.ns)
            and (not named.get("checkpoint_id") or named["checkpoint_id"] == listed.id)
            # By id, as LangGraph does it: ids of all namespaces are in order, and a replay asks across them.
            and (not until or listed.id < until)
            and (not wanted or self._matches(listed, wanted))
        ]
        if config is None:
            found.sort(key=lambda listed: listed.id, reverse=True)
        elif until and limit == 1:
            self._threads.replayed(names[0], named.get("checkpoint_ns", ""), found[0].id if found else "")
        return found

    def _matches(self, listed: Listed, wanted: Mapping[str, Any]) -> bool:
        meta = codec.decode_meta(listed.meta(), self.serde)
        return all(name in meta and meta[name] == value for name, value in wanted.items())

    def _tuple(self, found: Found) -> CheckpointTuple:
        wrote = ((one.task, one.path, codec.decode_writes(one.value, self.serde)) for one in found.wrote)
        return CheckpointTuple(
            _config(found.thread, found.ns, found.id),
            cast("Checkpoint", codec.decode_checkpoint(found.state, found.id, self.serde)),
            cast("CheckpointMetadata", codec.decode_meta(found.meta, self.serde)),
            _config(found.thread, found.ns, found.parent) if found.parent else None,
            codec.merged(wrote),
        )

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """What was written to channels since the last checkpoint that has their values, along the line of parents."""
        thread, ns, id_ = _place(config)
        line = _line({listed.id: listed for listed in self._threads.listed(thread) if listed.ns == ns}, id_)
        history: dict[str, DeltaChannelHistory] = {channel: {"writes": []} for channel in channels}
        left = set(channels)
        for listed in line:
            found = self._threads.load(listed) if left else None
            if found is None:
                break
            one = self._tuple(found)
            for channel in left:
                wrote = [write for write in one.pending_writes or () if write[1] == channel]
                history[channel]["writes"][:0] = wrote
            for channel in left & one.checkpoint["channel_values"].keys():
                history[channel]["seed"] = one.checkpoint["channel_values"][channel]
                left.discard(channel)
        return history

    # --- writing -----------------------------------------------------------------------------------------

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint, durable on return. `sf.Fenced`, if somebody else went on from its parent."""
        return self._save(config, checkpoint, metadata)()

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Save what a task gave, durable on return."""
        self._write(config, writes, task_id, task_path)()

    def _save(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata
    ) -> Callable[[], RunnableConfig]:
        """Encoded now; written when it is called."""
        thread, ns, parent = _place(config)
        id_ = checkpoint["id"]
        source = metadata.get("source")
        is_input = source == "input" and bool(parent) and not ns
        is_looked_at = GUARDED in config["configurable"] or source in _BY_HAND
        with self._settling(thread, begins=True):
            state = codec.encode_checkpoint(checkpoint, self.serde, self._memory, (thread, ns))
            meta = codec.encode_meta(get_serializable_checkpoint_metadata(config, metadata), self.serde)

        def save() -> RunnableConfig:
            with self._settling(thread):
                if not is_looked_at:
                    self._look(thread, is_input=is_input)
                self._threads.save(thread, ns, id_, parent, state=state, meta=meta)
            return _config(thread, ns, id_)

        return save

    def _look(self, thread: str, *, is_input: bool) -> None:
        if is_input:
            self.on_input(self, thread)
        elif self._threads.fell_back(thread):
            self.on_fallback(self, thread)

    @contextmanager
    def _settling(self, thread: str, *, begins: bool = False) -> Iterator[None]:
        """A node may wait for its checkpoint: it is told that it is durable, or why it will not be."""
        try:
            yield
        except BaseException as error:
            self._threads.settle(thread, error)
            raise
        if not begins:
            self._threads.settle(thread)

    def wait_for(self, thread: str, ids: Iterable[str]) -> None:
        """Return once these checkpoints are durable."""
        for id_ in ids:
            self._threads.wait_for(thread, id_)

    def made(self, thread: str, ids: Iterable[str]) -> bool:
        """Whether these checkpoints were made in this process, and not found: nobody can have executed their tasks before."""
        return not any(self._threads.was_found(thread, id_) for id_ in ids)

    def newest_of(self, thread: str) -> Newest | None:
        """Where the outermost graph of a thread stands. None: nothing was ever saved there."""
        found = self._threads.newest(thread, "")
        return None if found is None else self._place_of(found)

    def left_behind(self, thread: str) -> Iterator[Newest]:
        """The checkpoints that the newest one was put behind by hand (`update_state`), and not by the graph."""
        found = self._threads.newest(thread, "")
        if found is None or codec.decode_meta(found.meta, self.serde).get("source") not in _BY_HAND:
            return
        ids = {listed.id: listed for listed in self._threads.listed(thread) if not listed.ns}
        for listed in _line(ids, found.id):
            one = self._threads.load(listed)
            if one is None:
                return
            yield self._place_of(one)
            if codec.decode_meta(one.meta, self.serde).get("source") not in _BY_HAND:
                return

    def _place_of(self, found: Found) -> Newest:
        wrote = {one.task: codec.decode_writes(one.value, self.serde) for one in found.wrote}
        settled = frozenset(task for task, many in wrote.items() if any(number >= 0 for number, _, _ in many))
        return Newest(found.id, settled)

    def lost(self, thread: str, ids: Collection[str]) -> set[str]:
        """Which of these checkpoints were saved and cannot be read."""
        return self._threads.unreadable(thread, ids)

    @property
    def store_url(self) -> str | None:
        """As it was given; None: as configured."""
        return self._threads.url

    def _write(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str
    ) -> Callable[[], None]:
        thread, ns, id_ = _place(config)
        value = codec.encode_writes(writes, self.serde, self._memory)
        return partial(self._threads.write, thread, ns, id_, task=task_id, path=task_path, value=value)

    # --- deleting and copying ----------------------------------------------------------------------------

    def delete_thread(self, thread_id: str) -> None:
        """Delete a thread. Its space comes back with `surefoot prune`."""
        self._threads.delete(str(thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints of these runs of LangGraph, in all threads."""
        gone = {str(run_id) for run_id in run_ids}
        left: CorruptCheckpoint | None = None
        for thread in self._threads.names() if gone else []:
            try:
                self._threads.keep(thread, "deleted for runs", lambda found: self._of_other_runs(found, gone))
            except CorruptCheckpoint as error:
                left = left or error
        if left is not None:
            raise left

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all checkpoints of a thread, with what their tasks wrote, to one that is empty."""
        self._threads.copy(str(source_thread_id), str(target_thread_id))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete all but the newest checkpoint of each namespace, or (`"delete"`) everything."""
        if strategy not in _STRATEGIES:
            raise UsageError(f"prune(strategy={strategy!r}): one of {', '.join(map(repr, _STRATEGIES))}.")
        for thread in thread_ids:
            if strategy == "delete":
                self._threads.delete(str(thread), "pruned")
            else:
                self._threads.keep(str(thread), "pruned: the newest of each namespace stay", self._latest)

    def _of_other_runs(self, found: Sequence[Listed], gone: Collection[str]) -> set[Key]:
        return {
            Key(one.ns, one.id)
            for one in found
            if str(codec.decode_meta(one.meta(), self.serde).get("run_id")) not in gone
        }

    def _latest(self, found: Sequence[Listed]) -> set[Key]:
        """The newest of each namespace, and those that it needs: the values of delta channels are spread over several."""
        spaces: dict[str, dict[str, Listed]] = {}
        for one in found:
            spaces.setdefault(one.ns, {})[one.id] = one
        return {Key(ns, one.id) for ns, ids in spaces.items() for one in self._needed(ids)}

    def _needed(self, ids: dict[str, Listed]) -> Iterator[Listed]:
        newest = next(iter(ids.values()))
        left = set(codec.decode_meta(newest.meta(), self.serde).get(_DELTA) or ())
        for one in [newest, *_line(ids, newest.id)]:
            yield one
            if left:
                state = codec.decode_checkpoint(one.state(), one.id, self.serde)
                left -= state["channel_values"].keys()
            if not left:
                return

    # --- async -------------------------------------------------------------------------------------------

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """As `get_tuple`."""
        return await off_the_loop(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - LangGraph's name for it
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """As `list`."""
        found = self.list(config, filter=filter, before=before, limit=limit)
        while (one := await off_the_loop(next, found, None)) is not None:
            yield one

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """As `put`."""
        return await off_the_loop(self._save(config, checkpoint, metadata))

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """As `put_writes`."""
        await off_the_loop(self._write(config, writes, task_id, task_path))

    async def adelete_thread(self, thread_id: str) -> None:
        """As `delete_thread`."""
        await off_the_loop(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """As `delete_for_runs`."""
        await off_the_loop(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """As `copy_thread`."""
        await off_the_loop(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """As `prune`."""
        await off_the_loop(partial(self.prune, strategy=strategy), thread_ids)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """As `get_delta_channel_history`."""
        return await off_the_loop(partial(self.get_delta_channel_history, config=config, channels=channels))

    # --- versions of channels ----------------------------------------------------------------------------

    def get_next_version(self, current: Any, channel: None) -> Any:
        """Whole numbers; in threads that were imported, texts that sort behind those that are there."""
        if isinstance(current, str):
            return f"{int(current.partition('.')[0]) + 1:032}.{'0' * 16}"
        return 1 if current is None else current + 1


def _place(config: RunnableConfig) -> tuple[str, str, str]:
    """Thread, namespace and id of the checkpoint that a config names. Without an id: the newest."""
    named = config.get("configurable", {})
    thread = named.get("thread_id")
    if thread is None:
        raise UsageError('a checkpointer needs a thread: config={"configurable": {"thread_id": "…"}}')
    return str(thread), named.get("checkpoint_ns") or "", named.get("checkpoint_id") or ""


def _config(thread: str, ns: str, id_: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ns, "checkpoint_id": id_}}


def _line(ids: Mapping[str, Listed], id_: str) -> Sequence[Listed]:
    """The parents of a checkpoint (without an id: of the newest), the nearest first."""
    one = ids.get(id_) if id_ else next(iter(ids.values()), None)
    line: dict[str, Listed] = {}
    while one is not None and (one := ids.get(one.parent)) is not None and one.id not in line:
        line[one.id] = one
    return list(line.values())


# --- threads of our own --------------------------------------------------------------------------------------

_pools: dict[int, ThreadPoolExecutor] = {}


def _pool() -> ThreadPoolExecutor:
    """Of this very process: no thread survives a fork."""
    found = _pools.get(os.getpid())
    if found is None:
        _pools.clear()
        found = _pools[os.getpid()] = ThreadPoolExecutor(_WORKERS, thread_name_prefix="surefoot-saver")
    return found


async def off_the_loop(blocking: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Wait for a blocking call without holding up the loop. Once begun it is carried out, cancelled or not."""
    context = contextvars.copy_context()
    call = partial(context.run, blocking, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_pool(), call)
