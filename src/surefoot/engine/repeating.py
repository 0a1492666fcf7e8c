"""A retry repeats the request: under a key that was used, nothing else than what was asked for then is sent."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from surefoot.core.entry import Stop, Value
from surefoot.core.history import Past, PastState
from surefoot.core.members import changed_members

if TYPE_CHECKING:
    from surefoot.engine.session import Session
    from surefoot.engine.spec import CallSpec

_UNDER_ITS_KEY = frozenset({PastState.IN_DOUBT, PastState.RETRYING})


def another_request(session: Session, past: Past, spec: CallSpec) -> Stop | None:
    """Why an effect that was begun is not tried again, nor looked for: enums in its arguments have other values now."""
    if past.kind != "effect" or past.args is None or past.state not in _UNDER_ITS_KEY:
        return None
    if past.state is PastState.IN_DOUBT and spec.on_crash not in ("retry", "check"):
        return None  # A person is asked, or it fails: nothing is sent.
    changed = [each for part in (past.args, past.defaults) if part is not None for each in _changed(session, part)]
    if not changed:
        return None
    settle = f"surefoot settle {shlex.quote(session.run)} {shlex.quote(past.address)}"
    message = (
        f"run {session.run}, {past.address}: it was begun, and to go on with it now would be another request under the "
        f"same key: {', '.join(changed)}. It was not executed."
    )
    cures: tuple[tuple[str, str], ...] = (("the old value?", f"put it back and run {shlex.quote(session.run)} again"),)
    if past.state is PastState.IN_DOUBT:
        cures += (
            ("happened?", f"{settle} --happened 'JSON'"),
            ("did not? run it with the new value", f"{settle} --not-happened"),
        )
    return Stop("CodeChanged", message, past.address, {"changed": ", ".join(changed)}, cures)


def _changed(session: Session, part: Value) -> list[str]:
    return changed_members(session.whole(part))
