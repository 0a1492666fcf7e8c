"""The people of a test: they approve by default, and give the answers that the test sets."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from surefoot.engine.operate.handle import Run, get_run
from surefoot.errors import Stopped, UsageError, WaitingForAnswer

BY = "surefoot.testing"
_MOST_ROUNDS = 1_000


class Answers(dict[str, Any]):
    """By the address of a question (`approve#1`), by its text, or by the name of an event; the value is the answer."""

    def run(self, workflow: Any, run_id: str, /, *args: Any, **kwargs: Any) -> Any:
        """Run the workflow, answer whatever it asks, and go on until it ends."""
        for _ in range(_MOST_ROUNDS):
            try:
                result = workflow.run(run_id, *args, **kwargs)
                return asyncio.run(result) if asyncio.iscoroutine(result) else result
            except WaitingForAnswer as stop:
                for one in stop.stops:
                    if not isinstance(one, WaitingForAnswer):
                        raise
                    give(get_run(one.run_id or run_id), one, self)
        raise UsageError(f"run {run_id} has asked {_MOST_ROUNDS} times, and asks again")


class Given(dict[str, Any]):
    """The answers of an exploration: the questions are known even if the asking process is killed."""

    def __init__(self, answers: Mapping[str, Any], asked: Path) -> None:
        super().__init__(answers)
        self._asked = asked

    def note(self, *names: str) -> None:
        """Note the names under which an answer was searched."""
        with self._asked.open("a") as file:
            file.write(f"{json.dumps(names)}\n")

    def unasked(self) -> str:
        """The fault of answers without a question: a mistyped name would silently be an approval."""
        lines = self._asked.read_text().splitlines() if self._asked.exists() else []
        asked = {tuple(json.loads(line)): None for line in lines}
        left = [name for name in self if not any(name in names for names in asked)]
        if not left:
            return ""
        known = ", ".join(" or ".join(map(repr, names)) for names in asked)
        return f"nobody asks for {', '.join(map(repr, left))}. {f'Asked was for: {known}' if asked else 'Nothing was asked'}."


def give(run: Run, stop: Stopped, answers: Mapping[str, Any]) -> None:
    """Answer the question or send the event that a run waits for: for the run of the stop, which may be a child."""
    if event := stop.facts.get("event"):
        _note(answers, event)
        if event not in answers:
            raise UsageError(f"the run waits for event {event!r}: say what comes, {_how_to_say(event)}")
        # Each wait gets one, and each segment counts its waits anew.
        run.send_event(event, answers[event], id=f"{run.state().segment} {stop.address} {event}", by=BY)
        return
    past = next(past for past in run.state().questions() if past.address == stop.address)
    _note(answers, past.address, past.question)
    value = answers.get(past.address, answers.get(past.question, True if past.form == "approve" else _NO_ANSWER))
    if value is _NO_ANSWER:
        raise UsageError(
            f"the run asks {past.address} ({past.question!r}): say what a person would answer, {_how_to_say(past.address)}"
        )
    run.answer(past.address, value, by=next(iter(past.answerers), BY))


def _note(answers: Mapping[str, Any], *names: str) -> None:
    if isinstance(answers, Given):
        answers.note(*names)


def _how_to_say(name: str) -> str:
    word = shlex.quote(f"{name}=JSON")
    return f"--answer {word} on the command line, answers={{{name!r}: VALUE}} for crash_matrix"


_NO_ANSWER: Any = object()
