"""What a thread has begun and not finished: a graph that begins anew would do it again.

LangGraph names the tasks of a graph by the checkpoint that they were made from. So a node that was cut off in an effect, that
waits for an answer, or whose result was never saved, would be executed under a new name, and would know nothing of what it
did, wherever the graph goes on from another checkpoint than that one:

- It is invoked with new input. A chat server that sends the input again, where `None` was meant, does just that.
- It is invoked from a checkpoint that is named: LangGraph makes a fork of it.
- `update_state` has put a checkpoint behind that one, and the same node is next.
- That checkpoint cannot be read any more, and the thread has fallen back to an older one.

A node that the graph no longer has would not be executed at all, and what it did would be forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, Final, Literal, NamedTuple

import surefoot as sf
from surefoot.adapters.langgraph.saver import Newest, Saver
from surefoot.engine.seams import command, visible
from surefoot.errors import RunConflict

Way = Literal["new input", "a checkpoint that was named"]
_MOST_LOOKED_AT: Final = 1000
"""Runs of a thread, from the newest on."""
_ENDED: Final = ("cancelled", "failed")
_NOT_SAVED: Final = "has ended, and what it gave was not saved in the thread"


class _Begun(NamedTuple):
    """A run of a thread that was not given up, and where it belongs."""

    run: Any
    status: str
    root: str
    """The checkpoint of the outermost graph that it was made from."""
    node: str
    """Of the outermost graph."""
    task: str
    """Of the outermost graph."""
    checkpoint: str
    """Of its own graph."""

    def is_open(self, at: Newest) -> bool:
        """Whether it has not come to its end, or what it gave is not saved with the checkpoint that it was made from."""
        return self.status != "done" or (self.root == at.id and self.task not in at.settled)

    @property
    def acted(self) -> bool:
        """Whether it has begun an effect. Its steps may be repeated freely."""
        return any(call.kind == "effect" for call in self.run.steps())


class Graph(NamedTuple):
    """What is asked of the graph that is invoked."""

    nodes: Collection[str]
    upcoming: Callable[[], Collection[str]]
    """The nodes that are executed next."""


def refuse_input(saver: Saver, thread: str, way: Way = "new input") -> None:
    """Raise if something of the thread is under way: the stop that it stands at, or `RunConflict`."""
    newest = saver.newest_of(thread)
    if newest is None:
        return  # Nothing was ever saved there, so nothing was executed.
    begun = list(_begun(saver, thread))
    if way == "new input":
        _refuse_lost(saver, thread, newest, begun)
    else:  # What was made from a checkpoint that is lost cannot be gone on with: its thread is taken back by name.
        lost = _lost_ids(saver, thread, newest, begun)
        begun = [one for one in begun if one.root not in lost]
    for one in begun:
        if not one.is_open(newest):
            continue
        if one.status == "done":
            what = _NOT_SAVED
        elif one.run.is_driven():
            what = "is being executed"
        elif one.run.stop is not None:
            raise one.run.stop
        else:
            what = "has not come to its end"
        if one.acted:
            raise _conflict(one.run, thread, way, what)


def refuse_lost(saver: Saver, thread: str, graph: Graph | None = None) -> None:
    """`RunConflict`, if the graph would go on, and not come back to a run with effects that is open."""
    newest = saver.newest_of(thread)
    if newest is None:
        return
    begun = list(_begun(saver, thread))
    _refuse_lost(saver, thread, newest, begun)
    if graph is not None:
        _refuse_gone(thread, newest, begun, graph)
        _refuse_left(thread, saver.left_behind(thread), begun, graph)


def has_lost(saver: Saver, thread: str, newest: Newest) -> bool:
    """Whether there are runs that were made from checkpoints that cannot be read."""
    return bool(_lost_ids(saver, thread, newest, list(_begun(saver, thread))))


def _refuse_lost(saver: Saver, thread: str, newest: Newest, begun: list[_Begun]) -> None:
    lost = _lost_ids(saver, thread, newest, begun)
    for one in begun:
        if (one.root in lost or one.checkpoint in lost) and one.acted:
            raise _lost(one, thread, newest)


def _lost_ids(saver: Saver, thread: str, newest: Newest, begun: list[_Begun]) -> set[str]:
    wanted = {one.root for one in begun} | {one.checkpoint for one in begun if one.root == newest.id}
    return saver.lost(thread, wanted - {newest.id})


def _refuse_gone(thread: str, newest: Newest, begun: list[_Begun], graph: Graph) -> None:
    for one in begun:
        if one.root == newest.id and one.node not in graph.nodes and one.is_open(newest) and one.acted:
            raise _gone(one, thread)


def _refuse_left(thread: str, edited: Iterable[Newest], begun: list[_Begun], graph: Graph) -> None:
    for at in edited:
        for one in begun:
            if one.root == at.id and one.is_open(at) and one.acted and one.node in graph.upcoming():
                raise _left(one, thread)


def _begun(saver: Saver, thread: str) -> Iterator[_Begun]:
    for run in sf.runs(labels={"thread": thread}, limit=_MOST_LOOKED_AT, store=saver.store_url):
        status, labels = (run.row.status, run.row.labels) if run.row is not None else (run.status, run.labels)
        if status not in _ENDED:
            root, _, place = labels.get("task", "").partition("/")
            node, _, task = place.rpartition(":")
            yield _Begun(run, status, root, node, task, labels.get("checkpoint", root))


# --- what is said --------------------------------------------------------------------------------------------


def _conflict(run: Any, thread: str, way: Way, what: str) -> RunConflict:
    then = ", and then with the input" if way == "new input" else ", without that name"
    return RunConflict(
        f"thread {visible(thread)}: {way}, and run {visible(run.id)} {what}: with {way} LangGraph would begin anew, and "
        "the effects of that run would be executed again. Nothing was executed.\n"
        f"  go on?       invoke the graph with None instead{then}\n"
        f"  give it up?  {command('runs cancel', run.id)}\n"
        '  I mean it    guard(graph, on_new_input="allow")'
    )


def _lost(one: _Begun, thread: str, newest: Newest) -> RunConflict:
    return RunConflict(
        f"thread {visible(thread)}: run {visible(one.run.id)} has executed effects, and the checkpoint that it was made from "
        "cannot be read. From an older one LangGraph would come to the same node under another name, and execute its effects "
        "again. Nothing was executed.\n"
        "  a copy?      put the store back from it\n"
        f"  look at it   {command('runs show', one.run.id)}\n"
        f'  it counts?   graph.update_state(config, {{…what the node gave…}}, as_node="{visible(one.node)}")\n'
        f'  all again?   name the checkpoint to begin from: "checkpoint_id": "{visible(newest.id)}" beside the thread_id'
    )


def _gone(one: _Begun, thread: str) -> RunConflict:
    return RunConflict(
        f"thread {visible(thread)}: run {visible(one.run.id)} of node {visible(one.node)} has executed effects and is not over, "
        "and the graph has no such node any more: what it did would be forgotten. Nothing was executed.\n"
        "  renamed?     put the node back under its old name, invoke the graph with None, and rename it afterwards\n"
        f"  look at it   {command('runs show', one.run.id)}\n"
        f"  give it up?  {command('runs cancel', one.run.id)}"
    )


def _left(one: _Begun, thread: str) -> RunConflict:
    return RunConflict(
        f"thread {visible(thread)}: update_state was called while run {visible(one.run.id)} was not over, and its node "
        f"{visible(one.node)} is next: it would be executed under another name, and its effects again. Nothing was executed.\n"
        f"  look at it   {command('runs show', one.run.id)}\n"
        f'  it counts?   graph.update_state(config, {{…what the node gave…}}, as_node="{visible(one.node)}")\n'
        f"  give it up?  {command('runs cancel', one.run.id)}\n"
        '  I mean it    guard(graph, on_new_input="allow")'
    )
