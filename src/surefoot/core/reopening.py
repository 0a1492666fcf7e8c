"""Trying again what failed: which calls that are, and what speaks against it.

Everything that succeeded stays on record, so a call may be tried again only where the effects it builds on still stand.
An effect that a saga has undone since does not stand: a run that went on would be wrong, silently. An undo builds on
nothing but the effect that it takes back, whatever else was undone before and after it.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from typing import Final

from msgspec import Struct

from surefoot.core.cure import NEW_ID, Command, command
from surefoot.core.entry import Stop
from surefoot.core.history import Past, PastCall, PastEffect, PastQuestion, PastState, PastWait
from surefoot.core.state import RunState

_UNDO: Final = ".undo"
_CALL: Final = re.compile(r"((?:.*/)?)([^/]*)#\d+")
"""Scope and name of a call; not what is part of a call (`pay#1.repair1`)."""
_HAPPENED: Final = (PastState.DONE, PastState.IN_DOUBT, PastState.UNSTORABLE)


class Undone(Struct, frozen=True):
    """An effect that was done, and the undo that took it back."""

    effect: PastEffect
    undo: PastEffect
    scope: str
    """Where it was undone."""


def failed_calls(state: RunState) -> list[PastCall]:
    """Steps and effects that failed, also those whose failure the code has caught, in the order they began."""
    found = (past for past in state.calls.values() if isinstance(past, PastCall))
    return sorted((past for past in found if past.state is PastState.FAILED), key=lambda past: past.first)


def failed_undos(state: RunState) -> list[PastCall]:
    """Undos that failed for good: their effects stay done."""
    return [past for past in failed_calls(state) if is_undo(past.address)]


def expired(state: RunState) -> list[PastQuestion | PastWait]:
    """Questions and waits whose time was over. They may be named for another try; by themselves they are no failure."""
    waits = (past for past in state.calls.values() if isinstance(past, PastQuestion | PastWait))
    return [past for past in waits if past.state is PastState.FAILED]


def is_void(past: Past) -> bool:
    """An effect that did nothing, and was reopened for another try: the code may leave it out."""
    return isinstance(past, PastEffect) and past.reopened and past.state is PastState.CLEARED


def undone(calls: Iterable[Past]) -> list[Undone]:
    """Which effects were undone, and by which calls. An undo takes back the newest effect of its name that still
    stands. An undo that failed leaves the effect as it is, and the next undo takes back an earlier one.
    """
    standing: dict[str, list[PastEffect]] = {}
    found: list[Undone] = []
    for past in sorted(calls, key=lambda past: past.first):
        call = _CALL.fullmatch(past.address)
        if call is None or not isinstance(past, PastEffect):
            continue
        scope, name = call.groups()
        if not name.endswith(_UNDO):
            if past.state in _HAPPENED:
                standing.setdefault(name, []).append(past)
            continue
        earlier = standing.get(name.removesuffix(_UNDO), [])
        inside = (effect for effect in reversed(earlier) if effect.address.startswith(scope))
        newest = next(inside, earlier[-1] if earlier else None)  # `sf.undo` may stand in another scope.
        if newest is not None:
            earlier.remove(newest)
            if past.state in _HAPPENED:
                found.append(Undone(newest, past, scope))
    return found


def is_over(one: Undone, asked: Container[str]) -> bool:
    """The code no longer asks for the effect, which is known to be undone: the code may leave out the undo."""
    return one.effect.address not in asked and one.undo.state is PastState.DONE


def undone_around(state: RunState, failed: Sequence[Past]) -> Undone | None:
    """An effect that was done before one of these calls, on the call's line of control, and undone after the call."""
    building = [past for past in failed if not is_undo(past.address)]
    for one in undone(state.calls.values()):
        if any(one.effect.first < past.first < one.undo.first and _on_its_line(past.address, one) for past in building):
            return one
    return None


def undone_across(state: RunState, seq: int) -> Undone | None:
    """The first effect that would stay on record as done, after a rewind to that entry, though it was undone later."""
    found = (one for one in undone(state.calls.values()) if one.effect.first < seq <= one.undo.first)
    return min(found, key=lambda one: one.effect.first, default=None)


def undone_at_last(state: RunState) -> Undone | None:
    """The last call of the run was an undo: so the run ended, and its end is not on record."""
    calls = [past for past in state.calls.values() if isinstance(past, PastCall)]
    last = max(calls, key=lambda past: past.first, default=None)
    return next((one for one in undone(calls) if one.undo is last), None)


def undone_meanwhile(run: str, address: str, known: Iterable[Undone], asked: Container[str]) -> Stop | None:
    """Why a call must not begin in a reopened run: the code treats an effect as done that was undone later."""
    for one in known:
        if one.effect.address in asked and one.undo.address not in asked and _on_its_line(address, one):
            message = f"run {run}, {address}: not begun, for {one.effect.address} no longer stands: " + why_not(one)
            facts = {"recorded": one.undo.address, "asked": address}
            return Stop("CodeChanged", message, address, facts, cures(run, one))
    return None


def why_not(one: Undone) -> str:
    return f"it was done, and {one.undo.address} has undone it since. To go on as if it were done would be wrong."


def cures(run: str, one: Undone) -> tuple[Command, Command]:
    return (
        command("runs fork", run, at=one.effect.address, id=NEW_ID, when="do it once more, under new keys?"),
        command("runs cancel", run, when="leave it undone?"),
    )


def undo_again(run: str, undos: Iterable[str], *, when: str) -> Command:
    """What helps where undos failed for good. Only the undos are named: calls that failed before them stay failed."""
    return command("runs retry", run, at=tuple(undos), when=when)


def is_undo(address: str) -> bool:
    call = _CALL.fullmatch(address)
    return call is not None and call[2].endswith(_UNDO)


def _on_its_line(address: str, one: Undone) -> bool:
    call = _CALL.fullmatch(address)
    scope = call[1] if call is not None else ""
    return scope.startswith(one.scope) or one.scope.startswith(scope)
