"""Which run of an agent the code at hand is part of.

The framework calls `wrap_run` of a capability around each run, and hands on the context variables that are set there to
whichever task makes a step or runs a tool.
"""

from __future__ import annotations

from collections import Counter
from contextvars import ContextVar
from typing import Any
from weakref import WeakKeyDictionary

from pydantic_ai.tools import RunContext

import surefoot.aio as sf
from surefoot.adapters.turns import Loop
from surefoot.engine.seams import driver, place_name

_here: ContextVar[AgentLoop | None] = ContextVar("surefoot_pydantic_ai_loop", default=None)
_begun: WeakKeyDictionary[Any, Counter[tuple[str, str]]] = WeakKeyDictionary()


class AgentLoop(Loop):
    """One `agent.run`."""

    def __init__(self, agent: str, run_id: str | None) -> None:
        super().__init__(f"the agent {agent!r}")
        self.agent = agent
        self.run_id = run_id
        self.to_ask: set[str] = set()
        """Tool calls that a person has to agree to, which the recorded call asks for."""
        self.names: dict[str | None, str] = {}
        """What the model calls the tool of each call. Toolsets may have another name for it."""


def of(agent: str, context: RunContext[Any]) -> AgentLoop:
    """The loop of that run. It begins here, if this is the first that is heard of it: in a task that lives as long."""
    loop = _here.get()
    if loop is None or (loop.agent, loop.run_id) != (agent, context.run_id):
        loop = AgentLoop(agent, context.run_id)
        loop.seen()
        _here.set(loop)
    return loop


def next_id(agent: str) -> str:
    """An id for the next run of that agent: the same on every replay."""
    place = place_name()
    known = _begun.setdefault(driver(), Counter())
    known[place, agent] += 1
    return f"{sf.run_id()}:{place}[{agent}]#{known[place, agent]}"
