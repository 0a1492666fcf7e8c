"""Where a run's world can be looked at: on the host and in the folder of its last sight, and nowhere else.

In another place the same names mean other things. There what counts is what the stop recorded, no more and no less.
"""

from __future__ import annotations

import os

from surefoot.core.cure import command
from surefoot.core.entry import Drift, Sight
from surefoot.core.expectation import UNSEEN
from surefoot.core.state import RunState
from surefoot.engine.declare import drifts
from surefoot.errors import UsageError


def host() -> str:
    return os.uname().nodename


def is_here(state: RunState) -> bool:
    """Whether this process stands where the run saw its world last."""
    world = state.world
    return world.host == host() and world.folder == drifts.here() != ""


def recorded(state: RunState) -> list[Drift]:
    """What the process that stopped had found."""
    return [found for stop in state.stops for found in stop.drift]


def as_recorded(state: RunState, drift: list[Drift]) -> drifts.Findings:
    """The same as if it had just been looked at: every part as expected but these."""
    found = {one.part: one.actual for one in drift if one.part}
    sights = []
    for name in sorted({one.witness for one in drift if one.what != UNSEEN}):
        known = state.world.sights.get(name, Sight(name, {}))
        parts = {part: state.world.parts[part].hash for part in known.parts if part in state.world.parts}
        parts |= {one.part: one.actual for one in drift if one.witness == name}
        parts |= {part: found[part] for part in known.parts if part in found}
        sights.append(Sight(name, parts, known.spec))
    return drifts.Findings(drift, tuple(sights), frozenset(one.witness for one in sights))


def require_known(state: RunState, taken: list[Drift]) -> None:
    """What an effect left there and nobody has looked at since is not in the stop: only a look can tell it."""
    world = state.world
    for name in sorted({one.witness for one in taken if one.what != UNSEEN}):
        seen = world.sights.get(name)
        if seen is None or name in world.fresh_witnesses or world.fresh & seen.parts.keys():
            raise UsageError(
                f"run {state.run}: what {name} sees is not on record, and it cannot be looked at from here. Nothing was "
                f"recorded. On {world.host or 'its host'}, in {world.folder or 'its folder'}: "
                f"{command('accept', state.run)}"
            )
