"""An agent as a plain `while` loop that outlives its process and its context window.

    python examples/agent_loop.py                      a question that takes 24 look-ups
    python examples/agent_loop.py --look-ups 200 --slow 0.2     a longer one: press Ctrl-C, or kill -9 it
    python examples/agent_loop.py --look-ups 200 --slow 0.2     run it again: it goes on where it was

When the messages grow too long, the agent writes a summary and continues as new: the run keeps its id, the
journal starts a new segment with the summary as its only past. So neither the context nor the replay grows
without end. The "model" and the "library" are scripted: no network, no keys.
"""

from __future__ import annotations

import argparse
import time

import surefoot as sf

MAX_MESSAGES = 8
SLOW_SECONDS = 0.05


@sf.step(retries=3)
def think(messages: list[str], found: int, wanted: int) -> dict[str, str]:
    """Stand-in for the model: it asks for another look-up until it has enough."""
    time.sleep(SLOW_SECONDS)
    if found >= wanted:
        return {"answer": f"after {found} look-ups: {messages[0]}"}
    return {"look_up": f"page {found + 1}"}


@sf.step
def look_up(what: str) -> str:
    print(f"look up {what}", flush=True)
    return f"{what} says {len(what)}"


@sf.step
def summarise(messages: list[str]) -> str:
    """Another model call. It is recorded before the new segment begins, like any step."""
    print(f"summarise {len(messages)} messages", flush=True)
    return f"summary of {len(messages)} messages, the last: {messages[-1]}"


@sf.workflow
def research(question: str, wanted: int, found: int = 0) -> str:
    """Ask, look up, repeat. Nothing here knows about crashes."""
    messages = [question]
    while True:
        reply = think(messages, found, wanted)
        if "answer" in reply:
            return reply["answer"]
        messages.append(look_up(reply["look_up"]))
        found += 1
        sf.progress(found, wanted, "look-ups")
        if len(messages) > MAX_MESSAGES:
            sf.continue_as_new(summarise(messages), wanted, found)


def main() -> None:
    global SLOW_SECONDS  # noqa: PLW0603 - how slow the stand-in is, is no argument of the workflow
    parser = argparse.ArgumentParser(description="A while-loop agent; kill it and run it again.")
    parser.add_argument("--id", default=None, help="the run's id: the same id is the same run")
    parser.add_argument("--look-ups", type=int, default=24)
    parser.add_argument("--slow", type=float, default=SLOW_SECONDS, help="seconds per model call")
    options = parser.parse_args()
    SLOW_SECONDS = options.slow

    run_id = options.id or f"research-{options.look_ups}"
    print(research.run(run_id, "what does the library say?", options.look_ups))


if __name__ == "__main__":
    main()
