"""What a run expects of the world, compared with what is found: stop, warn, or accept.

What is expected is folded from the journal (`RunState.world`). What witnesses observe is in `drifts.py`.
"""

from __future__ import annotations

import threading
from typing import Any

from surefoot.core.command import Append, Do, Routine
from surefoot.core.entry import Drift, Sight, Stop, WorldSeen
from surefoot.core.state import RunState
from surefoot.engine.declare import drifts
from surefoot.engine.process.config import loud


class World:
    """The workflow's settings about the world of its run."""

    def __init__(self, state: RunState, folding: threading.Lock, *, dry: bool = False) -> None:
        self._state = state
        self._dry = dry
        self._folding = folding
        """Held while the expectation is read: other branches change it."""
        self.watch: tuple[Any, ...] = ()
        """The witnesses that the workflow names."""
        self.on_drift: drifts.OnDrift = drifts.STOP

    @property
    def watches(self) -> bool:
        return bool(self.watch or self._state.world.sights)

    def verified(self, *, resuming: bool = False) -> Routine[Stop | None]:
        """Observe everything the run relies on. Returns the stop if it differs; accepted changes are recorded."""
        if self._dry or not self.watches:
            return None
        found = self.judge((yield Do(self.look)), resuming=resuming)
        if isinstance(found, WorldSeen):
            yield Append(found)
            return None
        return found

    def look(self) -> drifts.Findings:
        """Observe everything again. The branches of this run record their own changes made meanwhile."""
        with self._folding:
            before = self._state.world.copy()
        findings = drifts.look(before, self.watch)
        with self._folding:
            after = self._state.world.copy()
        return findings if after.version == before.version else drifts.overtaken(findings, before, after)

    def unlike(self, sights: tuple[Sight, ...]) -> tuple[list[Drift], int]:
        """The parts of this that are not as the run expects now."""
        with self._folding:
            return self._state.world.unlike(sights), self._state.world.version

    def judge_before(self, address: str, drift: list[Drift]) -> Stop | None:
        """An effect is about to run on parts that others have changed. None: the workflow accepts that."""
        stop = self.judge(drifts.Findings(drift, (), frozenset()))
        return drifts.before_effect(stop, address) if isinstance(stop, Stop) else None

    def judge(self, findings: drifts.Findings, *, resuming: bool = False) -> Stop | WorldSeen | None:
        """Stop, or the entry with what is expected from here on; None: nothing new. `resuming`: nothing has run yet."""
        run, world = self._state.run, self._state.world
        verdict = drifts.verdict(findings.drift, self.on_drift)
        if findings.drift and verdict == drifts.STOP:
            return drifts.drifted(run, findings.drift, world.folder, resuming=resuming)
        if findings.drift and verdict == drifts.WARN:
            lines = [f"run {run}: the world has drifted", *(one.line() for one in findings.drift)]
            loud("\n  ".join(lines), run=run, kind="drift")
        sights = findings.news()
        if not sights:
            return None
        if findings.drift:
            return WorldSeen(sights, why="drift that was accepted, as on_drift says")
        return WorldSeen(sights, why="a look before a resume" if world.sights else "")
