"""An error for people and programs: what happened, to which run, and what helps."""

from __future__ import annotations

from surefoot.errors import StepFailed, Stopped
from surefoot.view import text
from surefoot.view.standing import Reason
from surefoot.view.words import helps


def lines(error: BaseException) -> list[str]:
    """`InDoubt: run tick-81, refund#1: …`, then its cures. Later lines are indented: none looks like another error."""
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


def reason(stop: Stopped) -> Reason:
    """A raised stop, in the form of a recorded one."""
    cures = tuple(helps(cure, stop.store) for cure in stop.remedies)
    return Reason(type(stop).__name__, stop.summary, stop.address, cures, stop.facts, stop.drift)


def type_of(error: BaseException) -> str:
    """The exception's name; if it could not come back as itself, the recorded name."""
    return error.type if isinstance(error, StepFailed) else type(error).__name__


def message_of(error: BaseException) -> str:
    try:
        return error.message if isinstance(error, StepFailed) else str(error)
    except Exception as broken:  # noqa: BLE001 - __str__ of user code; the error must be shown all the same
        return f"<its __str__ raised {type(broken).__name__}>"
