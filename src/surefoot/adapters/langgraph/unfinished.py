"""What a thread has begun and not finished: new input would have it done again.

A graph that is invoked with new input makes a new checkpoint, and names its tasks anew. So a node that was cut off in an
effect, that waits for an answer, or whose result was never saved, would be executed under a new name, and would know nothing
of what it did. A chat server that sends the input again, where `None` was meant, does just that.
"""

from __future__ import annotations

from typing import Any, Final

import surefoot as sf
from surefoot.adapters.langgraph.saver import Saver
from surefoot.engine.seams import command, visible
from surefoot.errors import RunConflict

_MOST_LOOKED_AT: Final = 1000
"""Runs of a thread, from the newest on."""
_ENDED: Final = ("cancelled", "failed")


def refuse_input(saver: Saver, thread: str) -> None:
    """Raise if something of the thread is under way: the stop that it stands at, or `RunConflict`."""
    newest = saver.newest_of(thread)
    if newest is None:
        return  # Nothing was ever saved there, so nothing was executed.
    found = sf.runs(labels={"thread": thread}, limit=_MOST_LOOKED_AT, store=saver.store_url)
    for run in found:
        status, labels = (run.row.status, run.row.labels) if run.row is not None else (run.status, run.labels)
        if status in _ENDED:
            continue
        if status == "done":
            checkpoint, _, task = labels.get("task", "").partition("/")
            if checkpoint != newest.id or task in newest.settled:
                continue
            what = "has ended, and what it gave was not saved in the thread"
        elif run.is_driven():
            what = "is being executed"
        elif run.stop is not None:
            raise run.stop
        else:
            what = "has not come to its end"
        if any(call.kind == "effect" for call in run.steps()):
            raise _conflict(run, thread, what)


def _conflict(run: Any, thread: str, what: str) -> RunConflict:
    return RunConflict(
        f"thread {visible(thread)}: new input, and run {visible(run.id)} {what}: with new input LangGraph would begin anew, and "
        "the effects of that run would be executed again. Nothing was executed.\n"
        "  go on?       invoke the graph with None instead of the input, and then with the input\n"
        f"  give it up?  {command('runs cancel', run.id)}\n"
        '  I mean it    guard(graph, on_new_input="allow")'
    )
