"""Which run of the SDK's loop the code at hand is part of.

The SDK hands no object of its loop to models and tools. One run of it has one context wrapper, which agents and guardrails
are given; and an agent is asked for its tools in the very task that then asks the model and starts the tools. So that is
where a turn begins for us, and where options are met that would go around what is recorded.
"""

from __future__ import annotations

import inspect
import sys
from contextvars import ContextVar
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary

from agents import Agent, RunConfig, RunContextWrapper
from agents.models.interface import ModelProvider
from agents.run_internal import run_loop

from surefoot.adapters import versions
from surefoot.adapters.openai_agents import EXTRA, PACKAGES, tracing
from surefoot.adapters.openai_agents.sessions import DurableSession
from surefoot.adapters.turns import Loop
from surefoot.engine.seams import in_run, refused
from surefoot.errors import UsageError

_TURNS = tuple(getattr(run_loop, name, None) for name in ("run_single_turn", "run_single_turn_streamed"))
_READ = ("run_config", "session")
_MOST_FRAMES = 6


def _missing() -> list[str]:
    found = [
        f"run_loop.{name}({wanted})"
        for name in ("run_single_turn", "run_single_turn_streamed")
        for wanted in _READ
        if not (fn := getattr(run_loop, name, None)) or wanted not in inspect.signature(fn).parameters
        if not (name.endswith("streamed") and wanted == "session" and fn)
    ]
    return found + [name for name in ("get_all_tools", "get_system_prompt") if not hasattr(Agent, name)]


versions.require_names(EXTRA, PACKAGES, _missing())
_CODES = {fn.__code__ for fn in _TURNS if fn is not None}

_of_wrapper: WeakKeyDictionary[RunContextWrapper[Any], AgentLoop] = WeakKeyDictionary()
_here: ContextVar[AgentLoop | None] = ContextVar("surefoot_agent_loop", default=None)


class AgentLoop(Loop):
    """One `Runner.run`."""

    def __init__(self, agent: str) -> None:
        super().__init__(f"the agent {agent!r}")
        self.provider: ModelProvider | None = None
        """Where models come from that agents have by name only; None: from where the SDK has them."""


def of(wrapper: RunContextWrapper[Any], agent: str) -> AgentLoop:
    """The loop that this context wrapper belongs to."""
    known = _of_wrapper.get(wrapper)
    if known is None or not known.is_here():
        known = _of_wrapper[wrapper] = AgentLoop(agent)
    return known


def here() -> AgentLoop | None:
    """The loop whose turn this is; None: no durable agent's."""
    loop = _here.get()
    return loop if loop is not None and loop.is_here() else None


def turn_begins(wrapper: RunContextWrapper[Any], agent: Agent[Any]) -> None:
    """An agent is asked for its tools: the model is asked next, in this task."""
    if not in_run():
        return
    tracing.hold_back()  # Whoever provides traces may be another one by now.
    loop = of(wrapper, agent.name)
    loop.seen()
    _here.set(loop)
    turn = _turn(sys._getframe(1))
    if turn is None:
        return
    config = turn.get("run_config")
    if isinstance(config, RunConfig):
        _check(config, agent)
        loop.provider = config.model_provider
    _check_session(turn.get("session"))


def _turn(frame: FrameType | None) -> dict[str, Any] | None:
    """The arguments of the SDK's function that makes this turn."""
    for _ in range(_MOST_FRAMES):
        if frame is None:
            return None
        if frame.f_code in _CODES:
            return frame.f_locals
        frame = frame.f_back
    return None


def _check(config: RunConfig, agent: Agent[Any]) -> None:
    if config.model is not None:
        raise refused(
            UsageError(
                f"RunConfig(model=…) goes around the recorded model of {agent.name!r}: its answers would be asked for again after a "
                f"crash. Give the agent the model: durable(agent.clone(model=…))."
            )
        )
    for where in ("input_guardrails", "output_guardrails"):
        loose = [each.get_name() for each in getattr(config, where) or []]
        if loose:
            raise refused(
                UsageError(
                    f"RunConfig({where}=…): {', '.join(loose)} is not recorded, so that after a crash it may say something else. Give it "
                    f"to the agent: durable(agent.clone({where}=[…]))."
                )
            )


def _check_session(session: Any) -> None:
    if session is not None and not isinstance(session, DurableSession):
        raise refused(
            UsageError(
                f"the session {getattr(session, 'session_id', '')!r} ({type(session).__name__}) is not recorded: after a crash it has "
                "items that the run has yet to add. Wrap it: Runner.run(…, session=durable.session(session))."
            )
        )
