"""Which recorded call is meant by a call that the code makes now, and what becomes of a call that differs.

`Matcher` decides. This part carries that out in a drive: what is kept is noted, what runs again is counted, what is new
stands before the fence, and what cannot be told yet lets go of the run until it can.
"""

from __future__ import annotations

import logging
import threading

from msgspec import Raw

from surefoot.core.code_changes import held_by_another, kept_notes, other_arguments, still_in_use, too_many
from surefoot.core.command import Ending, Halted
from surefoot.core.counts import Differing
from surefoot.core.entry import NOTHING, CallKept, Stop
from surefoot.core.history import CHILD, Past, PastCall, PastEffect, PastState
from surefoot.core.matching import answers
from surefoot.core.matching.answers import AUTO, Asked, Changed, Held, InUse, Kept, New, Rerun, Same
from surefoot.core.matching.learned import Learned
from surefoot.core.state import RunState
from surefoot.core.stops import located
from surefoot.core.timer import after
from surefoot.engine.declare.call_spec import CallSpec
from surefoot.engine.declare.current import Place
from surefoot.engine.declare.removal import is_removed
from surefoot.engine.declare.signals import SuspendSignal
from surefoot.engine.process.clock import Clock
from surefoot.engine.process.config import settings
from surefoot.engine.process.journal import Journal
from surefoot.engine.session.attempt import recorded_ending
from surefoot.engine.session.claim import Claim
from surefoot.engine.session.fence import Fence
from surefoot.engine.session.replay import Replay
from surefoot.engine.session.stops import Stops
from surefoot.errors import Stopped

HEAR_AGAIN_SECONDS, MOST_HEARINGS = 0.1, 20
_log = logging.getLogger("surefoot")


class Lookup:
    def __init__(
        self, state: RunState, journal: Journal, clock: Clock, replay: Replay, fence: Fence, stops: Stops, claim: Claim,
        *, dry: bool = False,
    ) -> None:  # fmt: skip
        self._state = state
        self._journal = journal
        self._clock = clock
        self._replay = replay
        self._fence = fence
        self._stops = stops
        self._claim = claim
        self._dry = dry
        self._lock = threading.Lock()
        self._matching = threading.Lock()
        """Held while one call is matched: two branches may not get the same record."""
        self.kept: list[tuple[Past, Asked, str]] = []
        """What stands although the code asks with other arguments, and why."""
        self.reruns: list[tuple[Past, Asked]] = []
        """Steps that run again, with the arguments they have now, and count against the limit."""
        self.again: list[Past] = []
        """All recorded steps that run again, or would, though they had ended."""
        self.counted: dict[str, Differing] = {}
        """Verbs without arguments of which there are more or less in front of a recorded effect than there were."""
        self.sees_through_reruns = False
        """A rehearsal goes on behind steps that would run again, with what they gave before."""
        self.hearings = 0
        """So often the run was let go of to be rehearsed once more."""
        self.is_unheard = False
        """Whether this drive lets go of the run to be rehearsed once more."""
        self._told: frozenset[str] = frozenset()
        """What the rehearsal has told people of."""

    def learn_from(self, learned: Learned, told: set[str]) -> None:
        """What a rehearsal has found out counts for this drive."""
        self._replay.learn(learned)
        self._fence.may_hear_again = self.hearings < MOST_HEARINGS
        self._told = frozenset(told)

    def asked(self, place: Place, spec: CallSpec, address: str, raw: bytes, digest: str) -> Asked:
        """The call as the code asks for it now."""
        scope = place.scope
        return Asked(
            address, scope.path, spec.name, scope.count(spec.name), spec.kind, digest, raw, spec.was, scope.also,
            spec.uncompared, spec.binder.names, spec.on_change or _on_change(spec), spec.is_new,
            spec.binder.defaults.today() if spec.kind == "effect" else NOTHING,
        )  # fmt: skip

    def find(self, place: Place, asked: Asked) -> tuple[str, PastCall | None] | Ending:
        """Which recorded call is meant, and where it is on record; or how the call ends, without being made."""
        try:
            with self._matching:
                found = self._replay.matcher.find(asked)
        except Stopped as error:
            raise self._stops.store_failed(located(error, self._state.run, asked.address)) from None
        fence = self._fence
        match found:
            case Same(past):
                return past.address, past
            case Kept(past, answers.ACTED_ON) | Rerun(past, True) | New(_, _, PastCall() as past) if fence.was_hidden(
                past
            ):
                raise self._hear_again(place)
            case Kept(past, answers.NOTED) if is_removed(past):
                return Halted(self.other_call(past, asked))  # Not the one that is left, perhaps: somebody has to say.
            case Kept(past, why):
                self.keep(past, asked, why)
                return recorded_ending(past) or (past.address, past)
            case Rerun(past, counts):
                return self._runs_again(past, asked, counts=counts) or (past.address, None)
            case Changed(past):
                return Halted(self.other_call(past, asked))
            case Held(past, by, is_said):
                shown, nothing = self._replay.bytes_of(past), not self._claim.live
                return Halted(
                    held_by_another(self._state.run, past, by, asked, shown, is_said=is_said, nothing=nothing)
                )
            case InUse(old, by):
                raise self._stops.misused(still_in_use(self._state.run, by, old))
            case New(free, _, PastCall() as past):
                return self._runs_again(past, asked, counts=True) or (free, None)
            case New(free, declared):
                if not asked.fenced:
                    return free, None
                stop = fence.refuses(asked) if not (declared or place.is_leaving) else None
                if stop is None and (fence.is_unseen(free) if declared else fence.is_early()):
                    raise self._hear_again(place)
                return (free, None) if stop is None else Halted(stop)

    def _hear_again(self, place: Place) -> SuspendSignal:
        """The run is let go of, rehearsed once more when what hid the rest has an outcome, and taken up again."""
        self.is_unheard = True
        return self._stops.suspended(place, after(self._clock.read(), HEAR_AGAIN_SECONDS))

    def other_call(self, past: Past, asked: Asked, *, is_cut_off: bool = False) -> Stop:
        """The code asks for something else than is on record there."""
        replay = self._replay
        return other_arguments(
            self._state.run, past, asked.address, asked.name, replay.bytes_of(past), asked.args, kind=asked.kind,
            digest=asked.digest, nothing=not self._claim.live,
            twin="" if is_cut_off else replay.matcher.twin(past, asked), is_cut_off=is_cut_off, noted=asked.noted,
            parameters=asked.parameters,
        )  # fmt: skip

    def keep(self, past: Past, asked: Asked, why: str) -> None:
        """What is on record stands, though the code asks with other arguments. That is noted, once."""
        self.kept.append((past, asked, why))
        if self._dry:
            return
        digest = asked.whole if why == answers.NOTED else asked.digest
        self._journal.lazily(CallKept(past.address, digest, Raw(asked.args), why))
        if past.address not in self._told:
            shown = self._replay.bytes_of(past)
            _log.warning("%s", kept_notes(self._state.run, [(past, shown, asked.args, why)])[0])

    def count(self, place: Place, effect: PastEffect) -> None:
        """Whether verbs without arguments, which are matched by number, are as many here as they were. Noted once."""
        for at in place.around():
            if at.line is not place.line or not effect.address.startswith(at.scope.path):
                break
            for found in self._replay.counts.differing(at.scope, effect):
                if found.address in self.counted:
                    continue
                self.counted[found.address] = found
                if self._dry:
                    continue
                first = self._state.calls.get(found.address)
                if first is None or first.kept != found.digest:
                    self._journal.lazily(CallKept(found.address, found.digest, NOTHING, found.why))
                if found.address not in self._told:
                    _log.warning("%s", found.note(self._state.run))

    def _runs_again(self, past: Past, asked: Asked, *, counts: bool) -> Ending | None:
        """A step with other arguments. None: it is to run. A rehearsal goes on with what it gave."""
        if past.state in (PastState.DONE, PastState.FAILED):
            self.again.append(past)
        if counts:
            with self._lock:
                self.reruns.append((past, asked))
            if not self._dry and len(self.reruns) > settings.rerun_limit:
                return Halted(self.too_many_reruns())
        return recorded_ending(past) if self.sees_through_reruns else None

    def too_many_reruns(self) -> Stop:
        first, asked = min(self.reruns, key=lambda one: one[0].first)
        shown = self._replay.bytes_of(first)
        return too_many(self._state.run, len(self.reruns), settings.rerun_limit, first, shown, asked.args)


def _on_change(spec: CallSpec) -> str:
    """What is configured is for steps: what an effect or a child did is never kept for other arguments unasked."""
    return AUTO if spec.kind == "effect" or spec.name == CHILD else settings.on_change
