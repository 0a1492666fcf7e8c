"""How a run stands, as it is shown in Temporal: no arguments, no values, unless `mirror=values` asks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from surefoot.core.cure import command
from surefoot.core.state import ENDED
from surefoot.engine.worker.stand import Stand
from surefoot.view import words

if TYPE_CHECKING:
    from surefoot.temporal.engine import Temporal


def shown(found: Stand, engine: Temporal, *, attributes: bool, wait: float | None = None) -> dict[str, Any]:
    """What the loop gets of a drive."""
    need = found.need
    memo = {"reason": found.reason, "need": need.kind, "address": need.address} if found.reason or need.kind else {}
    if memo and engine.address.mirror and need.brief:
        memo["brief"] = need.brief
    return {
        "status": found.status,
        "reason": found.reason,
        "ended": found.status in ENDED,
        "wait": wait,
        "attributes": attributes,
        "memo": memo or None,
        "details": _details(found, memo),
        "result": None,
        "type": "",
        "message": "",
    }


def _details(found: Stand, memo: dict[str, str]) -> str:
    lines = [f"**{found.status}**" + (f" ({found.reason})" if found.reason else "")]
    lines += [f"{memo['need']}: `{memo['address']}`" if memo["address"] else memo["need"]] if memo.get("need") else []
    lines += [memo["brief"]] if memo.get("brief") else []
    return "\n\n".join([*lines, f"`{show_command(found.run)}`"])


def show_command(run: str) -> str:
    """Without the store: its address is for those who have surefoot's settings, and not for all who see the cluster."""
    return words.command_text(command("runs show", run))
