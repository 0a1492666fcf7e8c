"""`surefoot crashtest` on an agent with three parallel tools: killed at every boundary, every one of them held."""

from __future__ import annotations

from pathlib import Path

import pytest
from agents import Agent, Runner, function_tool, set_tracing_disabled

import surefoot as sf
from surefoot.openai_agents import durable
from surefoot.testing import crash_matrix
from tests.suites.openai_agents.stage import Script, call

set_tracing_disabled(True)


@function_tool
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


@function_tool
def note(text: str) -> str:
    with Path("notes").open("a") as file:
        file.write(f"{text}\n")
    return "noted"


def _answer(given: list[str]) -> object:
    calls = [call("charge", 1, card="a"), call("write", 2, path="a.txt"), call("note", 3, text="done")]
    return "; ".join(given) if given else calls


class Silent(Script):
    """Asking a model changes nothing in the world."""

    def _items(self, conversation: object) -> list[object]:
        from tests.suites.openai_agents.stage import outputs, says

        found = _answer(outputs(conversation))
        return found if isinstance(found, list) else [says(str(found))]


AGENT = Agent(name="billing", model=Silent(_answer), tools=[charge, function_tool(write), note])


@sf.workflow
async def three_at_once(text: str) -> str:
    return str((await Runner.run(durable(AGENT), text)).final_output)


@sf.workflow
async def three_streamed(text: str) -> str:
    result = Runner.run_streamed(durable(AGENT), text)
    async for _ in result.stream_events():
        pass
    return str(result.final_output)


class Quiet(Silent):
    async def stream_response(self, *args: object, **options: object):  # type: ignore[override]
        from tests.suites.openai_agents import stage

        kept, stage.trace = stage.trace, lambda _: None
        try:
            async for event in super().stream_response(*args, **options):
                yield event
        finally:
            stage.trace = kept


@pytest.mark.timeout(900)
@pytest.mark.parametrize("workflow", [three_at_once, three_streamed], ids=["whole", "streamed"])
def test_every_boundary_of_an_agent_with_three_parallel_tools_holds(workflow):
    AGENT.model = Quiet(_answer)
    report = crash_matrix(workflow, ("go",), seconds=60)

    assert report.held
    assert report.boundaries >= 30
