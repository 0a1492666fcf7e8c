"""`surefoot crashtest` on an agent with three parallel tools: killed at every boundary, every one of them held."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent

import surefoot as sf
from surefoot.pydantic_ai import Durable
from surefoot.testing import crash_matrix
from tests.suites.pydantic_ai.stage import Script, call


@sf.effect(on_crash="retry")
def charge(card: str) -> str:
    Path(f"charge {card}").write_text(sf.key())
    return f"charged {card}"


@sf.effect
def write(path: str) -> str:
    Path(path).write_text("text")
    return f"wrote {path}"


@write.check
def _(path: str) -> object:
    return sf.happened(f"wrote {path}") if Path(path).exists() else sf.not_happened()


def note(text: str) -> str:
    with Path("notes").open("a") as file:
        file.write(f"{text}\n")
    return "noted"


def _answer(given: list[str]) -> object:
    calls = [call("charge", 1, card="a"), call("write", 2, path="a.txt"), call("note", 3, text="done")]
    return "; ".join(given) if given else calls


AGENT = Agent(Script(_answer, silent=True).model, name="billing", tools=[charge, write, note], capabilities=[Durable()])


@sf.workflow
async def three_at_once(text: str) -> str:
    return (await AGENT.run(text)).output


async def _watched(_: Any, events: Any) -> None:
    async for _event in events:
        pass


@sf.workflow
async def three_streamed(text: str) -> str:
    return (await AGENT.run(text, event_stream_handler=_watched)).output


@pytest.mark.timeout(900)
@pytest.mark.parametrize("workflow", [three_at_once, three_streamed], ids=["whole", "streamed"])
def test_every_boundary_of_an_agent_with_three_parallel_tools_holds(workflow):
    """Asking a model changes nothing in the world; the tools do."""
    report = crash_matrix(workflow, ("go",), seconds=60)

    assert report.held
    assert report.boundaries >= 30
