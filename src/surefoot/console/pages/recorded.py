"""After something was recorded: what that is, what is still open, and who goes on."""

from __future__ import annotations

from msgspec import Struct

from surefoot.console.context import Request
from surefoot.console.pages import kinds
from surefoot.console.pages.decisions import goes_on
from surefoot.console.pages.looked import Looked, look_at
from surefoot.console.principals import VIEW
from surefoot.errors import NotFound
from surefoot.view import timeline


class Recorded(Struct, frozen=True):
    what: str
    more: str


async def recorded(request: Request) -> Recorded | None:
    """The word that the form before this page left in its journal; None: there was none."""
    seq, run = request.query.get("recorded", ""), request.query.get("of", "")
    if not (seq.isdecimal() and run and request.may(VIEW)):
        return None
    try:
        seen = await request.look(look_at, run)
    except NotFound:
        return None
    if not isinstance(seen, Looked):
        return None
    said = next((timeline.line(one) for one in seen.run.entries() if one.seq == int(seq)), None)
    if said is None:
        return None
    what = f"Recorded in {run}, entry {said.seq}: {said.what}{f' {said.address}' if said.address else ''}."
    still = [f"{kinds.OF_NEED[one.kind].word} {one.address}".strip() for one in seen.items if one.decide]
    if still:
        return Recorded(what, f"Still open: {', '.join(still[:3])}.")
    return Recorded(what, goes_on(seen) if seen.state.status not in ("done", "failed", "cancelled") else "")
