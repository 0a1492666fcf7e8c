"""After a fallback: which effects the lost entries may have recorded.

Records that were set aside still prove some of these (`Evidence`), and what may be hidden is bounded (`Blindness`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cached_property

import msgspec
from msgspec import Raw

from surefoot.core.command import Program
from surefoot.core.entry import Value
from surefoot.core.evidence import Evidence
from surefoot.core.history import PastCall, PastState
from surefoot.core.lost import Blindness
from surefoot.core.programs.calls import Call, recovered, suspected
from surefoot.core.state import RunState
from surefoot.errors import Damaged


class Losses:
    """What was lost of one run, as far as is known."""

    def __init__(self, state: RunState, whole: Callable[[Value], Raw], look: Callable[[], Evidence]) -> None:
        self._state = state
        self._whole = whole
        self._look = look
        self.asked_keys: set[str] = set()
        """Keys of the effects that the code has asked for."""
        self.suspects: list[tuple[str, str]] = []
        """(address, policy) of effects that are in doubt because entries were lost."""

    @cached_property
    def evidence(self) -> Evidence:
        return self._look()

    @cached_property
    def blindness(self) -> Blindness:
        return Blindness(self._state, self.evidence)

    def program(self, call: Call, past: PastCall | None) -> Program | None:
        """Was this effect, or a further attempt, recorded in a lost entry? Proven, or else suspected. None: no."""
        self.asked_keys.add(call.key)
        if not call.key or (past is not None and not self._may_be_behind(past)):
            return None
        attempt = 1 if past is None else past.attempt + 1
        proof = self.evidence.proven.get(call.key)
        if proof is not None and proof.digest == call.digest:
            with suppress(Damaged):
                return recovered(call, self._whole(proof.value), attempt)
        known = call.key in self.evidence.begun or call.address in self.evidence.named
        if not known and not self.blindness.covers(call.address, recorded=past is not None):
            return None
        self.suspects.append((call.address, call.policy))
        return suspected(call, attempt)

    def as_proven(self, call: Call) -> Call:
        """The call with the defaults of its execution, from an intact record that was set aside."""
        proof = self.evidence.proven.get(call.key)
        if proof is None or proof.digest != call.digest:
            return call
        with suppress(Damaged):
            return msgspec.structs.replace(call, defaults=self._whole(proof.defaults))
        return call

    def _may_be_behind(self, past: PastCall) -> bool:
        """A call that was due to run again when the run fell back may have run in the lost entries."""
        waiting = past.state in (PastState.CLEARED, PastState.RETRYING)
        return waiting and any(past.seq < at for at, _ in self._state.fallbacks)

    def no_longer_asked(self) -> list[str]:
        """Effects in intact entries beyond a gap that the code did not ask for this time."""
        if not self._state.fallbacks:
            return []
        return [address for key, address in self.evidence.begun.items() if key not in self.asked_keys]
