"""The child of the console's planner: the process that has the user's code, and answers what would follow.

It imports what a person named when the console was started, never because of stored data. It writes nothing into a store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from surefoot.console import child
from surefoot.console.plans import Planned, Wanted, answered
from surefoot.errors import UsageError


def _answer(requests: Iterator[dict[str, Any]], say: Callable[[dict[str, Any]], None]) -> None:
    from surefoot.engine.process import config
    from surefoot.store.open import shown

    begun = next(requests)
    broken = _loaded(begun["apps"])
    for request in requests:
        wanted = msgspec.convert(request, Wanted)
        if broken:
            say(msgspec.to_builtins(Planned(unknown=broken)))
            continue
        runtime = config.runtime(begun["store"], create=False)
        say(msgspec.to_builtins(answered(runtime, wanted, shown(begun["store"]))))


def _loaded(apps: list[str]) -> str:
    """Why the code cannot be imported; empty: it is."""
    from surefoot.cli import code

    try:
        for app in apps:
            code.load_app(app)
    except UsageError as error:
        return f"The code cannot be imported: {error}"
    return ""


if __name__ == "__main__":
    child.serve(_answer)
