"""A retry repeats the request: under a used key, only the same request is sent.

And an undo takes back what was done. If the code at hand cannot do that, it is a stop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Raw

from surefoot.core.code_changes import cures, run_again
from surefoot.core.cure import Cure, Cures
from surefoot.core.doubt import settling
from surefoot.core.entry import Stop
from surefoot.core.history import PastCall, PastEffect, PastState
from surefoot.core.members import changed_members

if TYPE_CHECKING:
    from surefoot.engine.declare.call_spec import CallSpec
    from surefoot.engine.declare.context import Context

_UNDER_ITS_KEY = frozenset({PastState.IN_DOUBT, PastState.RETRYING})


def another_request(session: Context, past: PastCall, spec: CallSpec) -> Stop | None:
    """Why an effect that was begun is neither tried again nor checked: enums in its arguments have other values now."""
    if not isinstance(past, PastEffect) or past.args is None or past.state not in _UNDER_ITS_KEY:
        return None
    if past.state is PastState.IN_DOUBT and spec.on_crash not in ("retry", "check"):
        return None  # A person is asked, or it fails: nothing is sent.
    changed = [
        each for part in (past.args, past.defaults) if part is not None for each in changed_members(session.whole(part))
    ]
    if not changed:
        return None
    message = (
        f"run {session.run}, {past.address}: it was begun, and to go on with it now would be another request under the "
        f"same key: {', '.join(changed)}. It was not executed."
    )
    told: Cures = (_old_value(session.run),)
    if past.state is PastState.IN_DOUBT:
        told += settling(session.run, past.address, "happened?", "did not? run it with the new value")
    return Stop("CodeChanged", message, past.address, {"changed": ", ".join(changed)}, told)


def another_undo(run: str, address: str, *recorded: Raw) -> Stop | None:
    """Why an effect that was done is not undone: enums in its arguments or in its result have other values now."""
    changed = list(dict.fromkeys(each for part in recorded for each in changed_members(part)))
    if not changed:
        return None
    message = (
        f"run {run}, {address}: it was done, and to undo it now would take back something else: {', '.join(changed)}. "
        "It was not undone."
    )
    return Stop("CodeChanged", message, address, {"changed": ", ".join(changed)}, (_old_value(run), cures(run)[1]))


def _old_value(run: str) -> Cure:
    return run_again("the old value?", "put it back", run)
