"""Shapes and words of what a run is and needs. Colour means that somebody has to look: what is in order has none."""

from __future__ import annotations

from typing import Final

from surefoot.console.pages.parts import Kind
from surefoot.core import need
from surefoot.view import inbox

OF_NEED: Final = {
    need.DAMAGE: Kind("damage", "damage", "damaged"),
    need.IN_DOUBT: Kind("doubt", "doubt", "in doubt"),
    need.DRIFT: Kind("drift", "drift", "drifted"),
    need.CODE_CHANGED: Kind("code", "code", "code changed"),
    need.SCHEMA_MISMATCH: Kind("code", "code", "types changed"),
    need.QUARANTINED: Kind("held", "held", "quarantined"),
    need.QUESTION: Kind("ask", "ask", "asks you"),
    need.EVENT: Kind("event", "calm", "waits for an event"),
    need.STOPPED: Kind("failed", "failed", "stopped"),
    need.FAILED: Kind("failed", "failed", "failed"),
    need.FELL_BACK: Kind("back", "calm", "fell back"),
    need.LANDED_LATE: Kind("late", "doubt", "landed late"),
    need.LEFT: Kind("doubt", "doubt", "left effects"),
    inbox.CUT_OFF: Kind("cut", "calm", "cut off"),
    inbox.LEFT_IN_DOUBT: Kind("doubt", "doubt", "left in doubt"),
    inbox.LEFT_DONE: Kind("done", "calm", "left done"),
}
_OF_STATUS: Final = {
    "damaged": OF_NEED[need.DAMAGE],
    "cut off": OF_NEED[inbox.CUT_OFF],
    "failed": OF_NEED[need.FAILED],
    "stopped": Kind("failed", "failed", "stopped"),
    "waiting": OF_NEED[need.QUESTION],
    "running": Kind("running", "calm", "running"),
    "sleeping": Kind("sleeping", "calm", "sleeping"),
    "queued": Kind("queued", "calm", "queued"),
    "ready": Kind("queued", "calm", "ready"),
    "done": Kind("done", "calm", "done"),
    "cancelled": Kind("cancelled", "calm", "cancelled"),
}


def of_status(status: str, needs: str = "") -> Kind:
    """Of a run in a list: what it needs, if it stands still for that; else how it is."""
    if needs in OF_NEED and needs not in need.TO_KNOW and status in ("stopped", "waiting"):
        return OF_NEED[needs]
    return _OF_STATUS.get(status) or _OF_STATUS.get(status.partition(",")[0]) or Kind("queued", "calm", status)
