"""One process driving one run: where a call is begun, and what its caller gets.

Replay needs only the folded journal. The run is claimed only when something new has to happen. A session's knowledge is
in its parts: may we write (`claim.py`), what is recorded (`replay.py`, `lookup.py`, `fence.py`, `losses.py`), what has
stopped where (`stops.py`, `flight.py`, `scopes.py`), what is expected (`world.py`), what was reported (`notices.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import msgspec
from msgspec import Raw

from surefoot.core import values
from surefoot.core.address import Scope
from surefoot.core.code_changes import changed, other_arguments, two_of_one_name
from surefoot.core.command import Done, Ending, Failed, Halted, Returned
from surefoot.core.entry import NOTHING, Entry, RunContinued, Value
from surefoot.core.history import DOUBTFUL, Past, PastCall, PastEffect, PastNote, PastState, PastValue
from surefoot.core.masking import Mask
from surefoot.core.matching.answers import Changed, Kept
from surefoot.core.matching.learned import Learned
from surefoot.core.programs.calls import Call, called_off, effect, step
from surefoot.core.reopening import undone_meanwhile
from surefoot.core.state import RunState
from surefoot.core.stops import located
from surefoot.core.timer import Moment
from surefoot.engine.declare import origins
from surefoot.engine.declare.call_spec import CallSpec
from surefoot.engine.declare.context import Args, Kwargs
from surefoot.engine.declare.current import ForeignCall, Place
from surefoot.engine.declare.defaults import Gone, Unrepeatable
from surefoot.engine.declare.drifts import OnDrift
from surefoot.engine.declare.omission import hint
from surefoot.engine.declare.request import Request, as_asked, cannot_be_repeated, encoded, repeated
from surefoot.engine.declare.signals import CancelSignal
from surefoot.engine.process.config import settings
from surefoot.engine.process.journal import Journal, evidence, whole
from surefoot.engine.process.runtime import Runtime
from surefoot.engine.session import late, moved, originals, questions
from surefoot.engine.session.attempt import Attempt, recorded_ending
from surefoot.engine.session.claim import Claim
from surefoot.engine.session.fence import Fence
from surefoot.engine.session.flight import Flight
from surefoot.engine.session.lookup import Lookup
from surefoot.engine.session.losses import Losses
from surefoot.engine.session.notices import Notices
from surefoot.engine.session.originals import Originals
from surefoot.engine.session.repetition import another_request
from surefoot.engine.session.replay import Replay
from surefoot.engine.session.scopes import Scopes
from surefoot.engine.session.stops import Stops
from surefoot.engine.session.turns import Backlog
from surefoot.engine.session.world import World
from surefoot.errors import Stopped, UsageError, ValueRejected
from surefoot.store.contract import Head, Readable


class Session:
    """The embedded engine's Context: everything a running workflow reaches the world through."""

    def __init__(
        self, runtime: Runtime, state: RunState, head: Head | None, *, wait_seconds: float = 0.0, dry: bool = False,
        unwind_seconds: float | None = None, learned: Learned | None = None,
    ) -> None:  # fmt: skip
        run = self.run = state.run
        self.runtime = runtime
        clock = self.clock = runtime.clock
        self.state = state
        self.dry = dry
        self.wait_seconds = wait_seconds
        self.approve = self.on_failure = ""
        """Which effects a person has to approve; what happens to the run when the workflow raises."""
        self.rehearsed = False
        """Whether the code was compared with the record before this drive, or need not be."""
        self.is_gate = False
        """A rehearsal before a drive: each branch ends at its first call without an outcome; nothing looks or asks."""
        self.seen_changes = 0
        self.failed_with = 0, ""
        """The exception that a call has raised last, by its identity, and the address of that call."""
        mask = self.mask = Mask()
        """The secrets that were passed to this run and its calls here: no recorded or shown text contains them."""
        self.originals = Originals()
        """Exceptions of user code in this process, for the caller outside the run. Code inside the run gets copies."""
        journal = self.journal = Journal(runtime.committer, clock, state, head)
        journal.on_visit = partial(late.heard, run)
        stops = self.stops = Stops(state, mask, clock, dry=dry, unwind_seconds=unwind_seconds)
        claim = self.claim = Claim(runtime, state, journal, stops)
        scopes = self.scopes = Scopes(dry=dry)
        # No part of an ordinary session refers back to it: it is freed when its run ends, not by the next garbage
        # collection.
        replay = self.replay = Replay(state, partial(_whole_bytes, runtime.store, run), learned)
        hides, hidden = (self.hides_what_follows, self.hidden) if dry else (bool, frozenset[str])
        fence = self.fence = Fence(run, replay, scopes, stops, claim, dry=dry, hides=hides, hidden=hidden)
        self.lookup = Lookup(state, journal, clock, replay, fence, stops, claim, dry=dry)
        self.losses = Losses(state, partial(whole, runtime.store, run), partial(evidence, runtime.store, run))
        self.flight = Flight(run)
        self.world = World(state, journal.folding, dry=dry)
        self.notices = Notices(run, runtime.store.url, mask, clock, lambda: claim.live, state.stops)

    def claimed(self) -> None:
        self.claim.live = True
        self.runtime.watch(self)
        created = self.state.created
        self.runtime.observer.run_began(self.run, created.workflow if created else "", resumed=self.state.epoch > 1)

    def follow(self, watch: tuple[Any, ...], on_drift: OnDrift, approve: str, on_failure: str = "") -> None:
        """Take over the workflow's settings about the world, about people, and about its own failure."""
        self.world.watch, self.world.on_drift = watch, on_drift
        self.approve, self.on_failure = approve, on_failure

    def root_place(self, owner: object) -> Place:
        return Place(self, Scope(), owner)

    def now(self) -> Moment:
        return self.clock.read()

    def hides_what_follows(self) -> bool:
        """Whether a new call hid later calls from the rehearsal. Never outside rehearsals."""
        return False

    def hidden(self) -> frozenset[str]:
        """In a rehearsal: the scopes in which a step or effect without an outcome hides what follows."""
        return frozenset()

    # -- the life of a call -----------------------------------------------------------------------

    def enter_verb(self, place: Place) -> None:
        """Every verb starts here: a stopped branch stays stopped."""
        self.flight.entered += 1
        self.stops.meet(place)
        if place.segment != self.state.segment or self.flight.ended:
            raise self.stops.misuse(
                f"run {self.run}: a call from a task or thread that outlived the part of the run it belongs to"
            )
        place.require_owner()

    def begin(
        self, place: Place, spec: CallSpec, args: Args, kwargs: Kwargs, *, entered: bool = False
    ) -> Ending | Attempt:
        """The journal's answer; or else the attempt that has to be made. `entered`: the verb was entered just now."""
        try:
            if not entered:
                self.enter_verb(place)
        except ForeignCall as error:
            self.runtime.observer.call_refused(self.run, spec.name, spec.kind, error)
            raise
        if spec.kind == "effect" and self.fence.origins.setdefault(spec.name, spec.origin) != spec.origin:
            known = self.fence.origins[spec.name]
            raise self.stops.misused(two_of_one_name(self.run, spec.name, known, spec.origin))
        address = place.called = place.scope.take(spec.name)
        replay = self.replay
        if place.scope.also or replay.labels:
            moved.claim(place, spec.name, address)
        raw_args, digest = self._encoded(address, spec, args, kwargs)
        past: PastCall | None = None
        matcher = replay.matcher
        if not matcher.is_blank:
            there = matcher.past(address)
            declares = spec.is_new or spec.noted or place.scope.also  # Then another record may be meant.
            if isinstance(there, PastCall) and not declares and matcher.takes(there, spec.kind, digest):
                past = there
                if spec.kind == "step" and (answer := recorded_ending(there)) is not None:
                    return answer  # By far the most common: there is nothing else to ask about it.
            else:
                found = self.lookup.find(place, self.lookup.asked(place, spec, address, raw_args, digest))
                if not isinstance(found, tuple):
                    return found
                address, past = found
                place.called = address
            if isinstance(past, PastEffect) and not past.rewound:
                self.lookup.count(place, past)
        return self._begin(place, address, spec, args, kwargs, raw_args, digest, past)

    def begin_at(self, place: Place, address: str, spec: CallSpec, args: Args, kwargs: Kwargs) -> Ending | Attempt:
        """A call that belongs to another one, and gets its address from it."""
        raw_args, digest = self._encoded(address, spec, args, kwargs)
        past = self.state.calls.get(address)
        if past is not None:
            self.replay.matcher.asked.add(address)
            if not isinstance(past, PastCall) or (past.kind, past.digest or digest) != (spec.kind, digest):
                shown = self.replay.bytes_of(past)
                return Halted(other_arguments(self.run, past, past.address, spec.name, shown, raw_args))
        return self._begin(place, address, spec, args, kwargs, raw_args, digest, past)

    def is_cut_off_there(self, place: Place, past: Past, spec: CallSpec, args: Args, kwargs: Kwargs) -> bool:
        """Whether this call is in the place of a recorded one that was cut off, so that it is cut off again. It may be
        a step with other arguments, since a cut-off step had no result. An inserted step is not in that place: it has a
        record of its own, or effects recorded before the cut are still to come.
        """
        raw, digest = self._encoded(past.address, spec, args, kwargs)
        asked, matcher = self.lookup.asked(place, spec, past.address, raw, digest), self.replay.matcher
        if asked.fenced or asked.kind != past.kind or matcher.arguments.same(past, asked):
            return True
        return not (matcher.steps.has_other(asked, past) or self.backlog.is_behind(place, past.first, past.address))

    def require_same(self, place: Place, past: Past, spec: CallSpec, args: Args, kwargs: Kwargs) -> None:
        """An effect that is not begun again, since it was cut off: it is the recorded one, or a stop."""
        raw, digest = self._encoded(past.address, spec, args, kwargs)
        address = f"{place.scope.path}{spec.name}#{place.scope.count(spec.name)}"
        asked = self.lookup.asked(place, spec, address, raw, digest)
        found = self.replay.matcher.effects.as_recorded(asked, past) if asked.fenced else None
        if isinstance(found, Kept):
            self.lookup.keep(past, asked, found.why)
        elif isinstance(found, Changed):
            raise self.stops.stopped(place, self.lookup.other_call(past, asked, is_cut_off=True))

    def _encoded(self, address: str, spec: CallSpec, args: Args, kwargs: Kwargs) -> tuple[bytes, str]:
        try:
            return encoded(spec, args, kwargs, self.mask)
        except ValueRejected as error:
            where = f"run {self.run}, {address}: an argument cannot be stored: {error}{hint(spec, error.path)}"
            raise self.stops.misused(ValueRejected(where, path=error.path)) from error

    def _begin(
        self, place: Place, address: str, spec: CallSpec, args: Args, kwargs: Kwargs,
        raw_args: bytes, digest: str, past: PastCall | None,
    ) -> Ending | Attempt:  # fmt: skip
        if past is not None:
            if isinstance(past, PastEffect):
                self.losses.asked_keys.add(past.key)
                self.replay.claim_repairs(past)
            answer = recorded_ending(past)
            if answer is not None:
                return answer
            if (other := another_request(self, past, spec)) is not None:
                return Halted(other)
        if self.state.reopenings and not (place.undoing or spec.undoes):
            stop = undone_meanwhile(self.run, address, self.replay.undos, self.replay.matcher.asked)
            if stop is not None:
                return Halted(stop)
        if self.is_gate:
            self.stops.would_do(spec.kind, address)
        request = asked_for = as_asked(spec, args, kwargs, raw_args, digest)
        if past is not None:
            request = repeated(self, past, asked_for)
        is_recorded = request.args != asked_for.args
        try:  # Before the intent: unreadable arguments are found now, not when the effect is executed.
            args, kwargs = spec.own(args, kwargs, request.args, request.defaults, recorded=is_recorded)
        except Stopped as error:
            raise self.stops.misused(located(error, self.run, address)) from error
        except Unrepeatable as why:
            is_asked_about = past is not None and past.state in DOUBTFUL and spec.on_crash not in ("retry", "check")
            if not (is_asked_about and isinstance(why, Gone)):  # Then nothing is called.
                return Halted(cannot_be_repeated(self.run, address, why))
        undecided = past is not None and past.state is PastState.IN_DOUBT and spec.check is not None
        if not (undecided and self.stops.is_called_off(place)):
            self.stops.meet_cancel(place, past)
            undecided = False
        number, is_effect = place.scope.count(spec.name), spec.kind == "effect"
        is_as_numbered = is_effect or address.endswith(f"#{number}")
        call = Call(
            self.run, address, request.args, request.digest, spec.retry, spec.timeout,
            self.replay.key_of(address) if is_effect else "", spec.on_crash, spec.not_done,
            bool(spec.touches), spec.check is not None, spec.undo is not None,
            settings.in_flight_seconds if spec.in_flight is None else spec.in_flight, spec.in_flight is not None,
            "" if spec.marks is None else spec.marks(), spec.key_ttl, None, request.defaults,
            origins.to_record(spec, self.state.created), 0 if is_as_numbered else number,
        )  # fmt: skip
        if self.state.fallbacks:
            call = self.losses.as_proven(call)
        if is_effect and questions.supervises(self, spec, address):
            call = msgspec.structs.replace(call, consent=partial(questions.consent, place, call, spec.name))
        begun = past if isinstance(past, PastEffect) else None
        if begun is not None and undecided:
            self.stops.would_do(spec.kind, address)
            return Attempt(self, place, spec, call, args, kwargs, begun, called_off(call, begun))
        program = effect(call, begun) if is_effect else step(call, past)
        lost = self.losses.program(call, past) if self.state.fallbacks else None
        supervised = is_effect and lost is None and questions.needs_approval(self, spec, address, begun)
        if not supervised:
            self.stops.would_do(spec.kind, address)
        return Attempt(self, place, spec, call, args, kwargs, past, lost or program, supervised=supervised)

    def finish(self, place: Place, ending: Ending) -> Any:
        """The result for the caller: always the decoded copy, so first run and replay get equal objects."""
        if type(ending) is Done:
            return self.decoded(ending.raw)
        if type(ending) is Failed:
            if ending.cause is not None:
                originals.log(self.run, ending.cause, self.mask)
            error = self.revive(ending)
            self.failed_with = id(error), place.called
            raise error
        if type(ending) is Halted:
            raise self.stops.stopped(place, ending.stop)
        raise self.stops.felt(place, CancelSignal())  # CalledOff

    # -- recorded values ----------------------------------------------------------------------------

    def whole(self, value: Value) -> Raw:
        return value if type(value) is Raw else whole(self.runtime.store, self.run, value)

    def decoded(self, value: Value) -> Any:
        """A recorded value. An unreadable one is no failure of the run: the run stays as it is."""
        try:
            return values.decode(value if type(value) is Raw else self.whole(value))
        except Stopped as error:
            raise self.stops.store_failed(self._located(error, value)) from None

    def revive(self, ending: Failed) -> BaseException:
        try:
            error = values.decode_error(ending.raw)
        except Stopped as unreadable:
            return self.stops.store_failed(self._located(unreadable, ending.raw))
        if ending.cause is not None:
            self.originals.keep(error, ending.cause)
        return error

    def _located(self, error: Stopped, value: object) -> Stopped:
        """The same stop, naming the call whose recorded value cannot be read."""
        pasts = list(self.state.calls.values())
        address = next((past.address for past in pasts if past.value is value or past.error is value), "")
        return located(error, self.run, address)

    def recall(self, place: Place, name: str, fits: Callable[[Past], bool] | None = None) -> tuple[str, Past | None]:
        """The next call of that verb, and its record, which counts as asked for (`moved.py`)."""
        address, past = moved.recorded(place, name, fits)
        self.stops.meet_cancel(place, past)
        self.replay.matcher.asked.add(address)
        return address, past

    def record(self, entry: Entry) -> None:
        """Record lazily: the entry is durable no later than anything that depends on it."""
        self.journal.lazily(entry)

    def note(self, place: Place, name: str, make: Callable[[], object], entry: Callable[[str, Raw], Entry]) -> Any:
        """A recorded value (now, random, …): made once, then the same for ever."""
        self.enter_verb(place)
        address, past = self.recall(place, name)
        if past is not None:
            if not isinstance(past, PastValue | PastNote):
                raise self.stops.stopped(place, changed(self.run, address, f"a {past.kind}", f"sf.{name}()"))
            return None if past.value is None else self.decoded(past.value)
        if self.dry:
            return make()
        try:
            raw = Raw(values.encode(make()))
        except ValueRejected as error:
            raise self.stops.misused(ValueRejected(f"run {self.run}, {address}: {error}", path=error.path)) from error
        try:
            self.journal.lazily(entry(address, raw))
        except UsageError as error:
            raise self.stops.misused(error) from None
        return values.decode(raw)

    # -- the end of the function ----------------------------------------------------------------------

    def result(self, value: object) -> Returned:
        """The workflow's own result, encoded. Refused: the run stays resumable, the code can be fixed."""
        stops = self.stops
        if not (stops.found or stops.waits) and stops.trouble is None:
            try:
                return Returned(Raw(values.encode(value)), 0)
            except ValueRejected as error:
                where = f"run {self.run}: the workflow's result cannot be stored: {error}"
                raise stops.misused(ValueRejected(where, path=error.path)) from error
        return Returned(NOTHING, 0)

    @cached_property
    def backlog(self) -> Backlog:
        return Backlog(self)

    def continued(self, request: Request) -> RunContinued:
        """The end of this segment."""
        left, self.notices.left_behind = tuple(self.notices.left_behind), {}
        return RunContinued(request.args, request.digest, request.defaults, left=left)

    def begin_segment(self) -> None:
        """Nothing of the last segment is replayed into this one."""
        self.flight.ended = False
        self.stops.continuation = None
        self.__dict__.pop("backlog", None)
        self.lookup.counted.clear()
        self.replay.learn(None)


def _whole_bytes(store: Readable, run: str, value: Value) -> bytes:
    return bytes(whole(store, run, value))
