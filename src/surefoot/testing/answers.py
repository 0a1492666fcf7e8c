"""The people of a test: they approve, unless told otherwise, and answer what they were told to answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from surefoot.engine.handle import Run, get_run
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
                    give(get_run(run_id), one, self)
        raise UsageError(f"run {run_id} has asked {_MOST_ROUNDS} times, and asks again")


def give(run: Run, stop: Stopped, answers: Mapping[str, Any]) -> None:
    """Answer the question or send the event that a run waits for."""
    if event := stop.facts.get("event"):
        if event not in answers:
            raise UsageError(f"the run waits for event {event!r}: say what comes, answers={{{event!r}: VALUE}}")
        run.send_event(event, answers[event], id=f"{stop.address} {event}", by=BY)
        return
    past = next(past for past in run.state().questions() if past.address == stop.address)
    value = answers.get(past.address, answers.get(past.question, True if past.form == "approve" else _NO_ANSWER))
    if value is _NO_ANSWER:
        raise UsageError(
            f"the run asks {past.address} ({past.question!r}): say what a person would answer, "
            f"answers={{{past.address!r}: VALUE}}"
        )
    run.answer(past.address, value, by=next(iter(past.answerers), BY))


_NO_ANSWER: Any = object()
