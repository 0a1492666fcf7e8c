"""The records of a run, and which of them the code has asked for so far. Nothing here writes or stops.

`Matcher` says whether a call *was* made when this drive began; `RunState.calls` has the state of a call now.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cached_property

from surefoot.core.command import Done, Ending
from surefoot.core.counts import Counts
from surefoot.core.entry import Value
from surefoot.core.history import Past, PastCall, PastEffect, PastValue, is_rewound
from surefoot.core.key import idempotency_key
from surefoot.core.matching.learned import Learned
from surefoot.core.matching.matcher import Matcher
from surefoot.core.reopening import Undone, undone
from surefoot.core.state import Event, RunState
from surefoot.engine.declare.removal import is_removed


class Replay:
    """The recorded calls of one segment, as replayed code gets them."""

    def __init__(self, state: RunState, whole: Callable[[Value], bytes], learned: Learned | None = None) -> None:
        self._state = state
        self._whole = whole
        """The bytes of a recorded value, which may be kept by parts."""
        self._lock = threading.Lock()
        self._taken: set[str] = set()
        """Events that waits of this drive have taken."""
        self._patches: dict[tuple[int, str], bool] = {}
        """The answers of `sf.patched`, by segment and name."""
        self.moved: set[tuple[int, str]] = set()
        """By segment: recorded verbs that are asked for from another scope now (`moved.py`)."""
        self.labels: dict[tuple[int, str, str], str] = {}
        """By segment, old scope and name of a call: the scope that declares it as its former name (`was=`)."""
        self.learn(learned)

    def learn(self, learned: Learned | None) -> None:
        """Begin with the present records, and with the findings of a rehearsal. Nothing was asked for yet."""
        state = self._state
        self.matcher = Matcher(state.calls, state.matches, self._whole, learned=learned, cuts=state.cuts)
        self.__dict__.pop("counts", None)
        self.__dict__.pop("_undone", None)

    def key_of(self, address: str) -> str:
        """The idempotency key of a call of this segment."""
        created = self._state.created
        namespace = created.namespace if created is not None else ""
        return idempotency_key(namespace, self._state.run, self._state.segment, address)

    def bytes_of(self, past: Past) -> bytes:
        """The arguments of a recorded call, to be shown."""
        return b"" if past.args is None else self._whole(past.args)

    # -- what was not asked for ---------------------------------------------------------------------------

    def unasked(self) -> list[Past]:
        """Recorded calls that the code has not asked for, as they are now."""
        if self.matcher.records.is_used_up():
            return []
        recorded = (past.address for past in self.matcher.recorded())
        calls = self._state.calls
        return [calls[address] for address in recorded if address not in self.matcher.asked and address in calls]

    def missed(self) -> list[PastCall]:
        """Executed effects and undos that the code has not asked for so far, and may not leave out."""
        unasked = [past for past in self.matcher.unasked() if not (is_rewound(past) or self.lets_go(past))]
        return unasked + [one.undo for one in self.taken_back()]

    def may_stop(self) -> bool:
        """Whether a record that the code has not asked for may stop what follows. Records that a person or the code
        leaves out count too: they stop a new effect with the same arguments.
        """
        return bool(self.matcher.unasked() or self.taken_back())

    def lets_go(self, past: Past) -> bool:
        """Whether the code (`sf.removed`) or a person (`surefoot match --keep`) leaves this call out."""
        return is_removed(past) or self.matcher.is_left(past)

    def claim_repairs(self, past: PastEffect) -> None:
        """The repairs of this effect belong to it, and no other call asks for them."""
        for attempt in range(1, past.attempt + 1):
            repair = self._state.calls.get(f"{past.address}.repair{attempt}")
            if repair is not None:
                self.matcher.asked.add(repair.address)

    # -- what was undone ----------------------------------------------------------------------------------

    @cached_property
    def _undone(self) -> list[Undone]:
        return undone(self.matcher.recorded())

    @property
    def undos(self) -> list[Undone]:
        """Effects that earlier processes did and took back, as they are now."""
        return [Undone(self._today(one.effect), self._today(one.undo), one.scope) for one in self._undone]

    def _today(self, past: PastEffect) -> PastEffect:
        return self._state.effect(past.address) or past

    def taken_back(self) -> list[Undone]:
        """Effects that the code has asked for, and that were undone: so far it goes on as if they were done."""
        asked = self.matcher.asked
        return [one for one in self.undos if one.effect.address in asked and self._is_missed(one.undo)]

    def _is_missed(self, undo: PastEffect) -> bool:
        is_known = undo.rewound or undo.address in self.matcher.asked or undo.address in self.matcher.learned.asked
        return not is_known and undo.may_have_happened

    def was_undone(self, address: str) -> bool:
        """Whether an earlier process has undone this effect."""
        return any(one.effect.address == address for one in self.undos)

    def did(self, ending: Ending | None) -> bool:
        """Whether this run did it. Effects that a fork has from its parent are the parent's: the fork does not undo them."""
        created = self._state.created
        if created is None or not created.parent or not isinstance(ending, Done):
            return True
        past = next((past for past in list(self._state.calls.values()) if past.value is ending.raw), None)
        return not isinstance(past, PastEffect) or past.key == self.key_of(past.address)

    # -- verbs that are identified by number or name -----------------------------------------------------

    @cached_property
    def counts(self) -> Counts:
        """How many verbs without arguments came in front of each recorded effect."""
        return Counts(self.matcher.recorded())

    def take_event(self, name: str) -> Event | None:
        """The first event of that name that no wait has taken."""
        with self._lock:
            event = self._state.event_for(name, self._taken)
            if event is not None:
                self._taken.add(event.id)
            return event

    def takes_new_way(self, name: str, decoded: Callable[[Value], object]) -> bool:
        """The answer of `sf.patched`: the first answer under that name holds for the whole segment, in every branch.

        False while recorded calls are not reached: the old path was taken.
        """
        if (known := self._patches.get((self._state.segment, name))) is not None:
            return known
        pasts = list(self._state.calls.values())  # a question of another branch may be added meanwhile
        given = [past for past in pasts if isinstance(past, PastValue) and _is_call_of(name, past.address)]
        if given and (first := min(given, key=lambda past: past.first)).value is not None:
            answer = bool(decoded(first.value))
        else:
            answer = not self.unasked()
        return self._patches.setdefault((self._state.segment, name), answer)


def _is_call_of(name: str, address: str) -> bool:
    called = address.rpartition("#")[0]
    return called == name or called.endswith(f"/{name}")
