"""`sf.wrap(client)`: model calls of plain clients are recorded, blocking, async and streamed; all else is refused in a run."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest
from anthropic import Anthropic, AsyncAnthropic
from openai import AsyncOpenAI, OpenAI

import surefoot as sf
import surefoot.aio as asf
from surefoot.store.open import close_all
from surefoot.testing.children import die, in_child
from surefoot.testing.clock import FastClock, installed


def openai(service: Any, kind: Any = OpenAI) -> Any:
    return sf.wrap(kind(api_key="k", base_url=f"{service.url}/v1", max_retries=0))


def anthropic(service: Any, kind: Any = Anthropic) -> Any:
    return sf.wrap(kind(api_key="k", base_url=service.url, max_retries=0))


def chat(client: Any, text: str, system: str = "be exact", **options: Any) -> Any:
    messages = [{"role": "system", "content": system}, {"role": "user", "content": text}]
    return client.chat.completions.create(model="tiny", messages=messages, **options)


def test_a_blocking_call_is_asked_once(service):
    client = openai(service)

    @sf.workflow
    def wf() -> str:
        return str(chat(client, "a").choices[0].message.content) + str(chat(client, "b").choices[0].message.content)

    assert wf.run("r") == wf.run("r") == "answer to aanswer to b"
    assert len(service.asked) == 2
    assert [each.address for each in sf.get_run("r").steps()] == [
        "chat.completions.create#1",
        "chat.completions.create#2",
    ]


def test_an_async_call_is_asked_once(service):
    """Trap 5: `inspect.iscoroutinefunction` is false for the client's own methods."""

    @sf.workflow
    async def wf() -> str:
        async with openai(service, AsyncOpenAI) as client:
            found = await asf.gather(chat(client, "a"), chat(client, "b"))
        return "".join(each.choices[0].message.content for each in found)

    assert asyncio.run(wf.run("r")) == asyncio.run(wf.run("r")) == "answer to aanswer to b"
    assert len(service.asked) == 2


def test_killed_after_an_answer_it_is_not_asked_again(service):
    client = openai(service)

    def steps(dies: bool) -> Any:
        @sf.workflow(name="wf")
        def wf() -> str:
            first = chat(client, "a").choices[0].message.content
            if dies:
                die()
            return f"{first}; {chat(client, 'b').choices[0].message.content}"

        return wf

    close_all()
    assert in_child(lambda _: steps(dies=True).run("r"), seconds=40).killed
    assert steps(dies=False).run("r") == "answer to a; answer to b"
    assert [body["messages"][-1]["content"] for body in service.asked] == ["a", "b"]


def test_a_reworded_system_prompt_strands_no_run(service):
    """The conversation is compared, without our own words."""
    client = openai(service)

    def flow(system: str) -> Any:
        @sf.workflow(name="wf")
        def wf() -> str:
            found = chat(client, "a", system).choices[0].message.content
            sf.approve("ok?")
            return str(found)

        return wf

    with pytest.raises(sf.WaitingForAnswer):
        flow("old").run("r")
    sf.get_run("r").answer("approve#1", True)
    assert flow("new words").run("r") == "answer to a"
    assert len(service.asked) == 1
    assert service.asked[0]["messages"][0] == {"role": "system", "content": "old"}


def test_a_stream_is_recorded_whole_and_handed_out_in_pieces(service):
    client = openai(service)

    @sf.workflow
    def wf() -> list[str]:
        with chat(client, "a", stream=True) as stream:
            return [chunk.choices[0].delta.content for chunk in stream]

    assert wf.run("r") == wf.run("r") == ["answer ", "to ", "a "]
    assert len(service.asked) == 1


def test_a_stream_in_tasks_and_from_anthropic(service):
    client = anthropic(service, AsyncAnthropic)

    @sf.workflow
    async def wf() -> list[str]:
        stream = await client.messages.create(
            model="tiny", max_tokens=9, system="s", messages=[{"role": "user", "content": "a"}], stream=True
        )
        return [event.type async for event in stream]

    first = asyncio.run(wf.run("r"))
    assert first == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_stop",
    ]
    assert asyncio.run(wf.run("r")) == first
    assert len(service.asked) == 1


def test_anthropic_messages_are_recorded_with_what_was_asked(service):
    client = anthropic(service)

    @sf.workflow
    def wf() -> str:
        found = client.messages.create(
            model="tiny", max_tokens=9, system="s", messages=[{"role": "user", "content": "a"}]
        )
        return str(found.content[0].text)

    assert wf.run("r") == "answer to a"
    shown = json.loads(sf.get_run("r").steps()[0].args)
    assert (shown["conversation"], shown["instructions"], shown["model"]) == (
        [{"role": "user", "content": "a"}],
        ["s"],
        "tiny",
    )


def test_a_response_is_a_step_and_one_that_runs_hosted_code_an_effect(service):
    client = openai(service)

    @sf.workflow
    def wf() -> str:
        client.responses.create(model="tiny", input="a")
        hosted: Any = [{"type": "code_interpreter", "container": {"type": "auto"}}]
        return str(client.responses.create(model="tiny", input="b", tools=hosted).output_text)

    assert wf.run("r") == "done"
    assert [(each.kind, each.on_crash) for each in sf.get_run("r").steps()] == [("step", ""), ("effect", "ask")]


@pytest.mark.parametrize(
    ("company", "tool", "kind"),
    [
        ("openai", {"type": "function", "name": "f"}, "step"),
        ("openai", {"type": "web_search_preview_2025_03_11"}, "step"),
        ("openai", {"type": "mcp", "server_label": "s", "server_url": "http://127.0.0.1"}, "effect"),
        ("openai", {"type": "programmatic_tool_calling"}, "effect"),
        ("anthropic", {"name": "f", "input_schema": {"type": "object"}}, "step"),
        ("anthropic", {"type": "web_fetch_20260318", "name": "web_fetch"}, "step"),
        ("anthropic", {"type": "code_execution_20260521", "name": "code_execution"}, "effect"),
        ("anthropic", {"type": "browser_toolset_20260801", "name": "browser"}, "effect"),
    ],
)
def test_a_hosted_tool_of_which_nobody_knows_what_it_does_may_act(service, company, tool, kind):
    """It is a kind of tomorrow: asked again, it might act again."""

    @sf.workflow
    def wf() -> None:
        if company == "openai":
            openai(service).responses.create(model="tiny", input="a", tools=[tool])
        else:
            anthropic(service).messages.create(
                model="tiny", max_tokens=9, messages=[{"role": "user", "content": "a"}], tools=[tool]
            )

    wf.run("r")
    assert [each.kind for each in sf.get_run("r").steps()] == [kind]


def test_a_service_that_is_away_is_asked_again_and_then_the_run_is_parked(service):
    client = openai(service)
    service.refusals = [503, 429, 500, 503, 502, 503]

    @sf.workflow
    def wf() -> str:
        return str(chat(client, "a").choices[0].message.content)

    with installed(FastClock()):
        assert wf.run("r") == "answer to a"
    assert len(service.asked) == 7
    assert any(entry.data.get("parked") for entry in sf.get_run("r").entries())


def test_a_refusal_is_a_failure(service):
    client = openai(service)
    service.refusals = [400]

    @sf.workflow
    def wf() -> None:
        chat(client, "a")

    with pytest.raises(Exception, match="400"):
        wf.run("r")
    assert len(service.asked) == 1


@pytest.mark.parametrize(
    "use",
    [
        lambda client: client.files.create(file=b"x", purpose="assistants"),
        lambda client: client.chat.completions.with_raw_response.create(model="m", messages=[]),
        lambda client: client.chat.completions.parse(model="m", messages=[]),
        lambda client: client.post("/x", cast_to=str),
    ],
    ids=["files", "raw", "parse", "post"],
)
def test_what_is_not_recorded_is_refused_in_a_run(service, use):
    """Unrecorded it would be done again at every resume."""
    client = openai(service)

    @sf.workflow
    def wf() -> None:
        use(client)

    with pytest.raises(sf.UsageError, match=r"is not recorded.*@sf\.step.*@sf\.effect"):
        wf.run("r")
    assert service.asked == []


def test_inside_of_a_step_or_outside_of_a_run_it_is_the_client_itself(service):
    client = openai(service)

    @sf.step
    def own() -> str:
        return str(chat(client.with_options(timeout=9), "a").choices[0].message.content)

    @sf.workflow
    def wf() -> str:
        return own()

    assert chat(client, "x").choices[0].message.content == "answer to x"
    assert wf.run("r") == "answer to a"
    assert [each.address for each in sf.get_run("r").steps()] == ["own#1"]


def test_options_are_kept_recorded(service):
    @sf.workflow
    def wf() -> str:
        return str(chat(openai(service).with_options(timeout=9), "a").choices[0].message.content)

    assert wf.run("r") == wf.run("r") == "answer to a"
    assert len(service.asked) == 1


def test_something_else_than_a_client_is_refused():
    with pytest.raises(sf.UsageError, match="takes a client of openai or anthropic, not dict"):
        sf.wrap({})


def test_wrapping_twice_is_wrapping_once(service):
    client = openai(service)
    assert sf.wrap(client) is client


JSON = "application/json"


@pytest.mark.parametrize(
    ("body", "kind"),
    [(b"<html>busy</html>", "text/html"), (b'{"odd": 1}', JSON), (b"[]", JSON), (b'"hello"', JSON), (b"null", JSON)],
    ids=["html", "object", "list", "text", "null"],
)
def test_an_answer_that_is_none_is_not_recorded_and_asked_for_again(service, body, kind):
    """A proxy in between, or another server than it seems. The client takes nearly anything; a record has to be sound."""
    client = openai(service)
    service.nonsense.append((body, kind))

    @sf.workflow
    def wf() -> str:
        return str(chat(client, "a").choices[0].message.content)

    with pytest.raises(
        sf.ValueRejected, match=r"openai: client\.chat\.completions\.create answered with a .* recorded"
    ):
        wf.run("r")
    assert sf.get_run("r").status != "failed"
    assert wf.run("r") == "answer to a"
    assert len(service.asked) == 2


def test_two_processes_that_start_a_run_at_once_ask_once(service):
    """The second waits for the first, and gets its result."""
    client = openai(service)

    @sf.workflow(name="wf")
    def wf() -> str:
        return str(chat(client, "a").choices[0].message.content)

    close_all()
    ends: list[Any] = []
    both = [threading.Thread(target=lambda: ends.append(in_child(lambda _: wf.run("r"), seconds=40))) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()

    assert [each.code for each in ends] == [0, 0], ends
    assert wf.run("r") == "answer to a"
    assert len(service.asked) == 1
