"""`sf.wrap(client)`: imported with surefoot, so it knows no client until it is given one."""

from __future__ import annotations

from typing import TypeVar

C = TypeVar("C")


def wrap(client: C) -> C:
    """A client of OpenAI or Anthropic whose model calls are recorded inside of a run, blocking, async or streamed.

    `client = sf.wrap(OpenAI())`, and a workflow around the loop. Outside of a run it is the client itself.
    """
    from surefoot.adapters.clients.wrapper import wrapped

    return wrapped(client)
