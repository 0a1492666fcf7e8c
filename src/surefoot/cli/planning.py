"""The child of the console's planner: the process that has the user's code, and answers what would follow.

It imports what a person named when the console was started, never because of stored data. It writes nothing into a store.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import msgspec

from surefoot.console import child
from surefoot.console.plans import Planned, Wanted, answered
from surefoot.errors import UsageError

_INSTALLED: Final = tuple({sysconfig.get_path(one) for one in ("stdlib", "purelib", "platlib")})


def _answer(requests: Iterator[dict[str, Any]], say: Callable[[dict[str, Any]], None]) -> None:
    from surefoot.engine.process import config
    from surefoot.store.open import shown

    begun = next(requests)
    own = set(sys.modules)
    broken = _loaded(begun["apps"])
    code = _files(set(sys.modules) - own)
    say({"ready": True})
    for request in requests:
        if broken or code != _marks(code):
            say(msgspec.to_builtins(Planned(is_stale=bool(code != _marks(code)), unknown=broken)))
            continue
        wanted = msgspec.convert(request, Wanted)
        runtime = config.runtime(begun["store"], create=False)
        say(msgspec.to_builtins(answered(runtime, wanted, shown(begun["store"]))))


def _files(modules: set[str]) -> dict[str, int]:
    """The files of the user's code, each with a mark that changes with its content."""
    files = (getattr(sys.modules.get(name), "__file__", None) for name in modules)
    return _marks([file for file in files if file and not file.startswith(_INSTALLED)])


def _marks(files: Iterable[str]) -> dict[str, int]:
    return {file: os.stat(file).st_mtime_ns if os.path.exists(file) else 0 for file in files}


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
