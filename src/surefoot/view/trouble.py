"""An error as people and programs read it: what happened, to which run, and what helps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from surefoot.errors import StepFailed, Stopped
from surefoot.view import text
from surefoot.view.words import Help, helps


def lines(error: BaseException) -> list[str]:
    """`InDoubt: run tick-81, refund#1: …`, then its cures. Lines after the first are indented: none can pose as one."""
    if not isinstance(error, Stopped):
        return _headed(type_of(error), message_of(error))
    found: list[str] = []
    for stop in error.stops:
        found += _headed(type(stop).__name__, stop.summary)
        width = max((len(when) for when, _ in stop.cures), default=0)
        found += [f"  {text.visible(when):<{width}}   {text.visible(do)}" for when, do in stop.cures]
    return found


def _headed(kind: str, message: str) -> list[str]:
    first, *rest = text.visible_lines(f"{kind}: {message}" if message else kind)
    return [first, *(line if line.startswith("  ") else f"  {line}" for line in rest)]


def facts(error: BaseException, *, run: str = "", exit_code: int = 1, cures: Iterable[Help] = ()) -> dict[str, Any]:
    """The same for `--json`."""
    found: dict[str, Any] = {
        "type": type_of(error),
        "message": message_of(error),
        "run": run,
        "address": "",
        "cures": [cure.facts for cure in cures],
        "exit_code": exit_code,
    }
    if isinstance(error, Stopped):
        found |= _stop(error) | {"run": error.run_id or run}
        found["stops"] = [_stop(stop) for stop in error.stops]
    path = getattr(error, "path", None)
    if isinstance(path, str):
        found["path"] = path
    return found


def _stop(stop: Stopped) -> dict[str, Any]:
    return {
        "type": type(stop).__name__,
        "message": stop.summary,
        "address": stop.address,
        "cures": [helps(cure, stop.store).facts for cure in stop.remedies],
        "drift": msgspec.to_builtins(stop.drift),
        "facts": {name: value if isinstance(value, int | float) else str(value) for name, value in stop.facts.items()},
    }


def type_of(error: BaseException) -> str:
    """The exception's name; of one that could not come back as itself, the name on record."""
    return error.type if isinstance(error, StepFailed) else type(error).__name__


def message_of(error: BaseException) -> str:
    try:
        return error.message if isinstance(error, StepFailed) else str(error)
    except Exception as broken:  # noqa: BLE001 - __str__ of user code; the error must be shown all the same
        return f"<its __str__ raised {type(broken).__name__}>"
