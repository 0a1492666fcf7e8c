"""Killed in a call of a plain client, and in a stream: what was answered is not asked again, what was cut off is."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from anthropic import Anthropic, AsyncAnthropic
from openai import AsyncOpenAI, OpenAI

import surefoot as sf
import surefoot.aio as asf
from surefoot.store.open import close_all
from surefoot.testing.children import in_child
from tests.suites.clients.test_wrap import anthropic, chat, openai

STREAMED = pytest.mark.parametrize("streamed", [False, True], ids=["in a call", "in a stream"])


def said(service: Any, company: str, text: str, *, streamed: bool) -> str:
    """One question to a blocking client."""
    if company == "openai":
        found = chat(openai(service, OpenAI), text, stream=streamed)
        if not streamed:
            return str(found.choices[0].message.content)
        return "".join(each.choices[0].delta.content for each in found).strip()
    messages = [{"role": "user", "content": text}]
    found = anthropic(service, Anthropic).messages.create(
        model="tiny", max_tokens=9, messages=messages, stream=streamed
    )
    if not streamed:
        return str(found.content[0].text)
    return "".join(each.delta.text for each in found if each.type == "content_block_delta")


async def said_async(service: Any, company: str, text: str, *, streamed: bool) -> str:
    """The same in tasks."""
    if company == "openai":
        found = await chat(openai(service, AsyncOpenAI), text, stream=streamed)
        if not streamed:
            return str(found.choices[0].message.content)
        return "".join([each.choices[0].delta.content async for each in found]).strip()
    messages = [{"role": "user", "content": text}]
    client = anthropic(service, AsyncAnthropic)
    found = await client.messages.create(model="tiny", max_tokens=9, messages=messages, stream=streamed)
    if not streamed:
        return str(found.content[0].text)
    return "".join([each.delta.text async for each in found if each.type == "content_block_delta"])


def killed(service: Any, run: Any, *, at: int) -> None:
    """In a process of its own, which the service kills in the middle of its answer to that request."""

    def body(_: Any) -> None:
        Path("pid").write_text(str(os.getpid()))
        run()

    service.deadly = {at}
    close_all()
    ended = in_child(body, seconds=50)
    assert ended.killed, ended
    service.deadly = set()


@STREAMED
@pytest.mark.parametrize("company", ["openai", "anthropic"])
@pytest.mark.parametrize("colour", ["blocking", "async"])
def test_killed_while_a_model_answers_only_that_call_is_made_again(service, company, colour, streamed):
    @sf.effect
    def charge(card: str) -> str:
        with Path("ledger").open("a") as ledger:
            ledger.write(f"charge {card}\n")
        return f"charged {card}"

    @sf.workflow(name="research")
    def blocking() -> str:
        first = said(service, company, "a", streamed=streamed)
        return f"{first}; {charge('c')}; {said(service, company, 'b', streamed=streamed)}"

    @asf.workflow(name="research")
    async def in_tasks() -> str:
        first = await said_async(service, company, "a", streamed=streamed)
        charged = await asyncio.to_thread(charge, "c")
        return f"{first}; {charged}; {await said_async(service, company, 'b', streamed=streamed)}"

    def run() -> str:
        return str(blocking.run("r") if colour == "blocking" else asyncio.run(in_tasks.run("r")))

    killed(service, run, at=2)
    found = run()

    assert found.count("charged c") == 1
    assert Path("ledger").read_text() == "charge c\n"
    assert [body["messages"][-1]["content"] for body in service.asked] == ["a", "b", "b"]
    assert run() == found
    assert len(service.asked) == 3


def test_killed_while_hosted_code_runs_a_person_is_asked(service):
    """The answer may have acted where the model runs: asked again, it would act again."""
    hosted: Any = [{"type": "code_interpreter", "container": {"type": "auto"}}]

    @sf.workflow(name="computing")
    def computing() -> str:
        return str(openai(service).responses.create(model="tiny", input="go", tools=hosted).output_text)

    killed(service, lambda: computing.run("r"), at=1)

    for _ in range(2):
        with pytest.raises(sf.InDoubt, match=r"responses\.create#1"):
            computing.run("r")
    assert len(service.asked) == 1
    sf.get_run("r").settle("responses.create#1", not_happened=True, by="ann")
    assert computing.run("r") == "done"
    assert len(service.asked) == 2
