"""One process driving one run: where calls are looked up, made, recorded and brought to an end.

Replay needs nothing but the folded journal. The run is claimed only when something new has to happen
(*going live*), so looking, planning and meeting the same stop again leave no trace in the journal.
A stop is a state first: once a branch has stopped, every further verb of it raises the same stop, and
a value that is returned anyway is discarded.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from functools import cached_property, partial
from math import inf
from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from surefoot.core import matching, values
from surefoot.core.address import Scope
from surefoot.core.blindness import Blindness
from surefoot.core.changing import (
    held_by_another,
    kept_notes,
    new_effect,
    other_arguments,
    still_in_use,
    taken_for_done,
    too_many,
    two_of_one_name,
)
from surefoot.core.claim import Refusal
from surefoot.core.command import (
    CalledOff,
    Done,
    Ending,
    Failed,
    Halted,
    Pause,
    Program,
    Returned,
)
from surefoot.core.counting import Counts, Differing
from surefoot.core.doubt import Question, open_question
from surefoot.core.entry import (
    NOTHING,
    CallKept,
    Due,
    EffectLandedLate,
    Entry,
    RunAdopted,
    RunContinued,
    RunCreated,
    Sight,
    Stop,
    Value,
    WorldSeen,
)
from surefoot.core.evidence import Evidence
from surefoot.core.expectation import Drift
from surefoot.core.history import Past, PastState, changed, located
from surefoot.core.key import idempotency_key
from surefoot.core.masking import FEW, MANY, Mask, secrets_in
from surefoot.core.matching import Asked, Changed, Held, InUse, Kept, Learned, Matcher, New, Rerun, Same
from surefoot.core.parking import seconds_until
from surefoot.core.programs.calls import Call, called_off, effect, recovered, step, suspected
from surefoot.core.reopening import Undone, undone, undone_meanwhile
from surefoot.core.state import DOUBTFUL, Event, RunState
from surefoot.core.timer import Moment, after, remaining
from surefoot.engine import code, current, late, moving, originals, origins, people, worldview
from surefoot.engine.attempt import Attempt, recorded_ending
from surefoot.engine.clock import Clock
from surefoot.engine.commit import Ticket
from surefoot.engine.config import alert, loud, settings
from surefoot.engine.current import Place
from surefoot.engine.deeds import note
from surefoot.engine.defaults import Gone, Unrepeatable, hides
from surefoot.engine.journal import Journal, evidence, whole
from surefoot.engine.leaving_out import hint
from surefoot.engine.limits import Timeout
from surefoot.engine.originals import Originals
from surefoot.engine.removing import is_open, is_removed
from surefoot.engine.repeating import another_request
from surefoot.engine.replaying import Backlog
from surefoot.engine.request import Request, as_asked, cannot_be_repeated, repeated
from surefoot.engine.runtime import Runtime, usable
from surefoot.engine.signals import (
    CancelSignal,
    ContinueSignal,
    HaltSignal,
    HandBackSignal,
    InterruptSignal,
    LostSignal,
    PlanSignal,
    RunSignal,
    StopSignal,
    SuspendSignal,
)
from surefoot.engine.spec import CallSpec, effect_from, is_effect, unknown
from surefoot.errors import (
    Damaged,
    Fenced,
    Stopped,
    StoreUnavailable,
    SurefootError,
    Unavailable,
    UsageError,
    ValueRejected,
)
from surefoot.store.contract import Head

S = TypeVar("S", bound=RunSignal)
_log = logging.getLogger("surefoot")
REGAIN_SECONDS, REGAIN_LOOK_SECONDS = 30.0, 0.05
HEAR_AGAIN_SECONDS, MOST_HEARINGS = 0.1, 20


class Session:
    """The embedded engine's Context: everything a running workflow reaches the world through."""

    def __init__(
        self, runtime: Runtime, state: RunState, head: Head | None, *, wait_seconds: float = 0.0, dry: bool = False,
        unwind_seconds: float | None = None, learned: Learned | None = None,
    ) -> None:  # fmt: skip
        self.run = state.run
        self.runtime = runtime
        self.clock: Clock = runtime.clock
        self.state = state
        self.journal = Journal(runtime.committer, self.clock, state, head)
        self.journal.on_visit = self._visited
        self.claimed_as = ""
        """The name under which this process claimed the run."""
        self.wait_seconds = wait_seconds
        self.dry = dry
        self.unwind_seconds = unwind_seconds
        """A wait that is longer ends this drive, and the run is taken up again when it is over. None: none does."""
        self.handed_back = False
        self.hearings = 0
        """So often it was let go of to be rehearsed once more."""
        self.may_hear_again = False
        self.is_unheard = False
        """It was let go of to be rehearsed once more."""
        """The worker is being stopped: no call begins any more."""
        self.live = False
        """Whether this process has claimed the run."""
        self.claim_lock = threading.Lock()
        self.lost: Refusal | None = None
        """Another process has claimed the run before this one did: nothing was executed here."""
        self.trouble: SurefootError | None = None
        self.own_damage: SurefootError | None = None
        """Damage that was found in this very run, as against in something that user code looked at."""
        self.stops: list[Stop] = []
        self.dues: list[Due] = []
        """When branches that stand still go on by themselves."""
        self.children: list[str] = []
        """Child runs that branches wait for."""
        self.parked_why = ""
        """What is away that the workflow itself needs (`sf.Unavailable`)."""
        self.on_failure = ""
        """What becomes of the run when the workflow lets an exception out."""
        self.in_flight: dict[str, str] = {}
        """Address -> kind of the calls that are being made."""
        self.loose: tuple[str, ...] = ()
        """Calls that were under way when the function ended: nobody waits for them."""
        self.continuation: ContinueSignal | None = None
        """The workflow has asked to continue as new; whatever it returned afterwards does not count."""
        self.planned: list[tuple[str, str]] = []
        """In a dry replay: (kind, address) of the calls that would be executed next."""
        self.asked_keys: set[str] = set()
        self.undoing = 0
        """How many sagas are being undone: then a cancelled run still makes calls."""
        self.watch: tuple[Any, ...] = ()
        """Witnesses that the workflow at hand names."""
        self.on_drift: worldview.OnDrift = worldview.STOP
        self.approve = ""
        self.left_behind: dict[str, bool] = {}
        """Effects that failed in doubt, or that a saga could not undo; and whether people have been told of it."""
        self._untold: list[Callable[[], None]] = []
        """Alerts of what a replay has only passed: whoever was here first may have died before they were given."""
        self.suspects: list[tuple[str, str]] = []
        """(address, policy) of effects that are in doubt because entries were lost."""
        self.seen_changes = 0
        self.interruption: BaseException | None = None
        """Ctrl-C and the like, once it has cut off a call: user code may catch it, the run does not go on."""
        self.ended = False
        self.is_given_up: Callable[[], bool] = _never
        """Whether whoever waits for this run has been cancelled: then it is released, and goes on another time."""
        self.limits: list[Timeout] = []
        """Blocks with a limit of time (`sf.timeout`) that the code is in."""
        self.tasks_before: Collection[Any] = ()
        """Tasks that were there before the function was invoked: none of them is the workflow's own."""
        self.invoked = 0.0
        """In tasks: when the code was called, by the clock of their loop."""
        self.made_at = -inf
        """The same: when the last call was made to its end."""
        self.matcher = self._matcher(learned)
        self._matching = threading.Lock()
        self.open_branches: dict[str, tuple[str, ...]] = {}
        """Scopes of branches of `sf.map` and `sf.gather` that have not ended."""
        self.ended_branches: set[str] = set()
        self.entered = 0
        """In a rehearsal: how many verbs the code has come to."""
        self.has_strays = False
        """Whether tasks or threads of the workflow's own have opened scopes."""
        self.open_strays: dict[str, tuple[str, ...]] = {}
        """Their scopes, as long as they are in them: nobody can tell what they may still ask for."""
        self.is_gate = False
        """A rehearsal before a drive: each branch ends at its first call without an outcome; nothing looks or asks."""
        self.sees_through_reruns = False
        """A rehearsal goes on behind steps that would run again, with what they gave before."""
        self.met: list[Asked] = []
        """In a rehearsal: the new effects that it came to."""
        self.patient: set[str] = set()
        """New effects of tasks that have waited for other tasks to ask for what is theirs."""
        self.declared: set[str] = set()
        """New effects that a declaration or a person says to be so: nothing is judged about them."""
        self.kept: list[tuple[Past, Asked, str]] = []
        self.told_kept: frozenset[str] = frozenset()
        self.counted: dict[str, Differing] = {}
        """Verbs without arguments of which there are more or less in front of a recorded effect than there were."""
        self.rehearsed = False
        """Whether the code was held against the record, or needs not be, before this drive."""
        self.reruns: list[tuple[Past, Asked]] = []
        self.earlier_stops = state.stops
        self.told: set[tuple[str, str, str]] = set()
        """Stops that people have heard of while the run waited for an answer (`people.identity`)."""
        self.told_map: object | None = None
        """The map whose progress is told, while it runs (`tallying.py`)."""
        self.moved: set[tuple[int, str]] = set()
        """By segment: recorded verbs that are asked for from another scope now (`moving.py`)."""
        self.labels: dict[tuple[int, str, str], str] = {}
        """By segment, old scope and name of a call: the scope that says it was called so (`was=`)."""
        self._patches: dict[tuple[int, str], bool] = {}
        """What `sf.patched` answered, by segment and name."""
        self.mask = Mask()
        """The secrets that were passed to this run and its calls here: they are in no text that is recorded or shown."""
        self.originals = Originals()
        """What user code raised in this process, for whoever waits for the run. Inside of it only copies are seen."""
        self.rehearses = False
        """Whether it is claimed before its code is rehearsed."""
        self._origins: dict[str, str] = {}
        """Name -> where the effect of that name is defined."""
        self._taken: set[str] = set()
        """Events that waits of this drive have taken."""
        self._lock = threading.Lock()

    # -- claiming ---------------------------------------------------------------------------------

    def claim(self, created: RunCreated | None = None) -> Ticket:
        store = self.runtime.store
        claim, folder = self.clock.uuid4().hex, worldview.here()
        self.claimed_as = store.worker
        host, pid = os.uname().nodename, os.getpid()
        adopted = RunAdopted(self.claimed_as, host, pid, claim, folder, code.digest(), self.rehearses)
        return self.journal.claim(adopted, created)

    def claimed(self) -> None:
        self.live = True
        self.runtime.watch(self)

    def _visited(self, entry: Entry) -> None:
        """Somebody else wrote something into the run."""
        if isinstance(entry, EffectLandedLate):
            late.heard(self.run, entry)

    def key_of(self, address: str) -> str:
        return self._key(address)

    def root_place(self, owner: object) -> Place:
        return Place(self, Scope(), owner)

    def result(self, value: object) -> Returned:
        """The workflow's own result, encoded. Refused: the run stays resumable, the code can be mended."""
        if not (self.stops or self.waits) and self.trouble is None:
            try:
                return Returned(Raw(values.encode(value)), 0)
            except ValueRejected as error:
                where = f"run {self.run}: the workflow's result cannot be stored: {error}"
                raise self.misused(ValueRejected(where, path=error.path)) from error
        return Returned(NOTHING, 0)

    # -- the world --------------------------------------------------------------------------------

    def follow(self, watch: tuple[Any, ...], on_drift: worldview.OnDrift, approve: str, on_failure: str = "") -> None:
        """What the workflow at hand says about the world, about people, and about its own failure."""
        self.watch, self.on_drift, self.approve, self.on_failure = watch, on_drift, approve, on_failure

    @property
    def watches(self) -> bool:
        return bool(self.watch or self.state.world.sights)

    def look_at_world(self) -> worldview.Findings:
        """Observe everything again. What branches of this run change meanwhile is theirs to record."""
        with self.journal.folding:
            before = self.state.world.copy()
        findings = worldview.look(before, self.watch)
        with self.journal.folding:
            after = self.state.world.copy()
        return findings if after.version == before.version else worldview.overtaken(findings, before, after)

    def unlike(self, sights: tuple[Sight, ...]) -> tuple[list[Drift], int]:
        """What of this is not as the run expects it, as far as it knows of the world by now."""
        with self.journal.folding:
            return self.state.world.unlike(sights), self.state.world.version

    def judge_before(self, address: str, drift: list[Drift]) -> Stop | None:
        """An effect is about to run on what somebody else has changed. None: the workflow takes that as it is."""
        stop = self.judge(worldview.Findings(drift, (), frozenset()))
        return worldview.before_effect(stop, address) if isinstance(stop, Stop) else None

    def judge(self, findings: worldview.Findings, *, resuming: bool = False) -> Stop | WorldSeen | None:
        """Stop, or say what is expected of the world from here on; None: nothing new. `resuming`: nothing has run yet."""
        verdict = worldview.verdict(findings.drift, self.on_drift)
        if findings.drift and verdict == worldview.STOP:
            return worldview.drifted(self.run, findings.drift, self.state.world.folder, resuming=resuming)
        if findings.drift and verdict == worldview.WARN:
            lines = [f"run {self.run}: the world has drifted", *(one.line() for one in findings.drift)]
            loud("\n  ".join(lines), run=self.run, kind="drift")
        sights = findings.news()
        if not sights:
            return None
        if findings.drift:
            return WorldSeen(sights, why="drift that was accepted, as on_drift says")
        return WorldSeen(sights, why="a look before a resume" if self.state.world.sights else "")

    def recall(self, place: Place, name: str, fits: Callable[[Past], bool] | None = None) -> tuple[str, Past | None]:
        """The next call of that verb, and what is on record of it, which counts as asked for (`moving.py`)."""
        address, past = moving.recorded(place, name, fits)
        self.meet_cancel(place, past)
        self.matcher.asked.add(address)
        return address, past

    def watch_begins(self, place: Place) -> tuple[str, Past | None]:
        """`sf.watch`: seen once, then the same for ever."""
        self.enter_verb(place)
        address, past = self.recall(place, "watch")
        if past is None:
            self.would_do("watch", address)
        elif past.kind != "sight":
            raise self.stopped(place, changed(self.run, address, f"a {past.kind}", "sf.watch()"))
        return address, past

    def sighted(self, place: Place, address: str, seen: tuple[Any, Sight | str]) -> WorldSeen:
        """From here on the run relies on what was seen."""
        value, found = seen
        if isinstance(found, str):
            raise self.stopped(place, worldview.unobservable(self.run, address, found))
        try:
            return WorldSeen((found,), address, value=Raw(values.encode(value)))
        except ValueRejected as error:
            raise self.misused(ValueRejected(f"run {self.run}, {address}: {error}", path=error.path)) from error

    # -- the life of a call -----------------------------------------------------------------------

    def begin(self, place: Place, spec: CallSpec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Ending | Attempt:
        """What the journal answers; or else the attempt that has to be made."""
        self.enter_verb(place)
        if spec.kind == "effect" and self._origins.setdefault(spec.name, spec.origin) != spec.origin:
            raise self.misused(two_of_one_name(self.run, spec.name, self._origins[spec.name], spec.origin))
        address = place.called = place.scope.take(spec.name)
        if place.scope.also or self.labels:
            moving.claim(place, spec.name, address)
        raw_args, digest = self._encoded(address, spec, args, kwargs)
        past: Past | None = None
        if not self.matcher.is_blank:
            past = self.matcher.past(address)
            if past is not None and self._is_direct(place, spec) and self.matcher.takes(past, spec.kind, digest):
                pass  # By far the most common: the call that is on record there.
            else:
                found = self._matched(place, spec, address, raw_args, digest)
                if not isinstance(found, tuple):
                    return found
                address, past = found
                place.called = address
            if past is not None and past.kind == "effect" and not past.rewound:
                self._count(place, past)
        return self._begin(place, address, spec, args, kwargs, raw_args, digest, past)

    def _is_direct(self, place: Place, spec: CallSpec) -> bool:
        """Whether a record with that number and digest is this call's, and no declaration names another first."""
        return not (spec.is_new or spec.noted or place.scope.also)

    def begin_at(
        self, place: Place, address: str, spec: CallSpec, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Ending | Attempt:
        """A call that belongs to another one, and has its address from there."""
        raw_args, digest = self._encoded(address, spec, args, kwargs)
        past = self.state.calls.get(address)
        if past is not None:
            self.matcher.asked.add(address)
            if (past.kind, past.digest or digest) != (spec.kind, digest):
                return Halted(other_arguments(self.run, past, past.address, spec.name, self.bytes_of(past), raw_args))
        return self._begin(place, address, spec, args, kwargs, raw_args, digest, past)

    def is_cut_off_there(
        self, place: Place, past: Past, spec: CallSpec, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> bool:
        """Whether a call comes to where this one was cut off, so that it is cut off again: also a step with other arguments,
        since it gave nothing. A step that was put in front is none: it is on record by itself, or what was done before the
        other one was cut off is yet to come.
        """
        raw, digest = self._encoded(past.address, spec, args, kwargs)
        asked = self.asked(place, spec, past.address, raw, digest)
        if asked.fenced or asked.kind != past.kind or self.matcher.same(past, asked):
            return True
        return not (self.matcher.has_other(asked, past) or self.backlog.is_behind(place, past.first, past.address))

    def require_same(
        self, place: Place, past: Past, spec: CallSpec, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """An effect that is not begun again, since it was cut off: it is the one that is on record, or a stop."""
        raw, digest = self._encoded(past.address, spec, args, kwargs)
        address = f"{place.scope.path}{spec.name}#{place.scope.count(spec.name)}"
        asked = self.asked(place, spec, address, raw, digest)
        found = self.matcher.cut_off(asked, past) if asked.fenced else None
        if isinstance(found, Kept):
            self._keep(past, asked, found.why)
        elif isinstance(found, Changed):
            raise self.stopped(place, self._other_call(past, asked, is_cut_off=True))

    def _encoded(
        self, address: str, spec: CallSpec, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[bytes, str]:
        """The arguments as they are recorded, and the digest of those that are compared."""
        try:
            bound = spec.binder.bind(args, kwargs)
            raw, digest = values.encode_args(bound)
            if spec.noted:
                digest = values.digest({name: value for name, value in bound.items() if name not in spec.noted})
            if (hidden := hides(raw)) or spec.binder.may_hide:
                self.mask.learn(secrets_in(args, kwargs, spec.binder.secrets, most=MANY if hidden else FEW))
        except ValueRejected as error:
            where = f"run {self.run}, {address}: an argument cannot be stored: {error}{hint(spec, error.path)}"
            raise self.misused(ValueRejected(where, path=error.path)) from error
        return raw, digest

    def _matched(
        self, place: Place, spec: CallSpec, address: str, raw: bytes, digest: str
    ) -> tuple[str, Past | None] | Ending:
        """Which recorded call is meant, and where it is on record; or how the call ends, without being made."""
        asked = self.asked(place, spec, address, raw, digest)
        try:
            with self._matching:
                found = self.matcher.find(asked)
        except Stopped as error:
            raise self.store_failed(located(error, self.run, address)) from None
        match found:
            case Same(past):
                return past.address, past
            case Kept(past, matching.ACTED_ON) | Rerun(past, True) if self._is_unheard(past):
                raise self._hear_again(place)
            case Kept(past, matching.NOTED) if is_removed(past):
                return Halted(self._other_call(past, asked))  # Not the one that is left, perhaps: somebody has to say.
            case Kept(past, why):
                self._keep(past, asked, why)
                return recorded_ending(past) or (past.address, past)
            case Rerun(past, counts):
                return self._runs_again(past, asked, counts=counts) or (past.address, None)
            case Changed(past):
                return Halted(self._other_call(past, asked))
            case Held(past, by, is_said):
                return Halted(self._held_by_another(past, by, asked, is_said=is_said))
            case InUse(old, by):
                raise self.misused(still_in_use(self.run, by, old))
            case New(free, declared):
                if not asked.fenced:
                    return free, None
                stop = self._fenced(asked) if not (declared or _is_leaving(place)) else None
                if stop is None and (self._is_unseen(free) if declared else self._is_early()):
                    raise self._hear_again(place)
                return (free, None) if stop is None else Halted(stop)

    def asked(self, place: Place, spec: CallSpec, address: str, raw: bytes, digest: str) -> Asked:
        """The call as the code asks for it now."""
        scope = place.scope
        return Asked(
            address, scope.path, spec.name, scope.count(spec.name), spec.kind, digest, raw, spec.was, scope.also,
            spec.uncompared, spec.binder.names, spec.on_change or self._on_change(spec), spec.is_new,
            spec.binder.defaults.today() if spec.kind == "effect" else NOTHING,
        )  # fmt: skip

    def _on_change(self, spec: CallSpec) -> str:
        """What is configured is for steps: what an effect or a child did is never kept for other arguments unasked."""
        return matching.AUTO if spec.kind == "effect" or spec.name == matching.CHILD else settings.on_change

    @property
    def advanced(self) -> bool:
        """Whether anything new was recorded in this drive."""
        return self.live and self.state.starts == 0

    def _is_unheard(self, past: Past) -> bool:
        """Whether a call that is new hid this one from the rehearsal: nobody knows yet if a later one is the recorded."""
        return self.may_hear_again and self.advanced and past.address not in self.matcher.learned.asked

    def _is_unseen(self, address: str) -> bool:
        """Whether nobody has looked yet what follows an effect that is declared new: it may be a stop."""
        self.declared.add(address)
        heard = address in self.matcher.learned.ahead or not (self.may_hear_again and self.advanced)
        return not (heard or self.dry) and self.may_stop()

    def may_stop(self) -> bool:
        """Whether something on record that the code has not asked for may stop what follows. What was let go counts, too:
        it stops a new effect with the same arguments.
        """
        return bool(self.matcher.unasked() or self.taken_back())

    def missed(self) -> list[Past]:
        """Executed effects and undos that the code has not asked for so far, and that would be missed."""
        unasked = [past for past in self.matcher.unasked() if not (past.rewound or self.lets_go(past))]
        return unasked + [one.undo for one in self.taken_back()]

    def lets_go(self, past: Past) -> bool:
        """Whether the code (`sf.removed`) or a person (`surefoot match --keep`) says that the run goes on without it."""
        return is_removed(past) or self.matcher.is_left(past)

    def taken_back(self) -> list[Undone]:
        """Effects that the code has asked for, and that were undone: so far it goes on as if they stood."""
        asked = self.matcher.asked
        return [one for one in self.undos if one.effect.address in asked and self._is_missed(one.undo)]

    def _is_missed(self, undo: Past) -> bool:
        is_known = undo.rewound or undo.address in self.matcher.asked or undo.address in self.matcher.learned.asked
        return not is_known and matching.may_have_happened(undo)

    def was_undone(self, address: str) -> bool:
        """Whether an earlier process has undone this effect."""
        return any(one.effect.address == address for one in self.undos)

    def _is_early(self) -> bool:
        """Whether a new step hides, in a branch that is open, which recorded effects the code asks for there."""
        hidden = self.matcher.learned.hidden
        if not (hidden and self.may_hear_again):
            return False
        unasked = [past.address for past in self.missed()]
        branches = [
            known for path, known in list(self.open_branches.items()) if any(one.startswith(path) for one in hidden)
        ]
        return any(address.startswith(known) for known in branches for address in unasked)

    def _hear_again(self, place: Place) -> SuspendSignal:
        """The run is let go of, rehearsed once more when what hid the rest has an outcome, and taken up again."""
        self.is_unheard = True
        return self.suspended(place, after(self.now(), HEAR_AGAIN_SECONDS))

    def _other_call(self, past: Past, asked: Asked, *, is_cut_off: bool = False) -> Stop:
        return other_arguments(
            self.run, past, asked.address, asked.name, self.bytes_of(past), asked.args, kind=asked.kind,
            digest=asked.digest, nothing=not self.live, twin="" if is_cut_off else self.matcher.twin(past, asked),
            is_cut_off=is_cut_off, noted=asked.noted,
        )  # fmt: skip

    def _held_by_another(self, past: Past, by: Asked, asked: Asked, *, is_said: bool) -> Stop:
        return held_by_another(self.run, past, by, asked, self.bytes_of(past), is_said=is_said, nothing=not self.live)

    def _matcher(self, learned: Learned | None) -> Matcher:
        """For a replay of what is on record now."""
        state = self.state
        return Matcher(state.calls, state.matches, self._whole_bytes, learned=learned, cuts=state.cuts)

    def learn_from(self, learned: Learned, told_kept: set[str]) -> None:
        """What a rehearsal has found out counts for this drive."""
        self.matcher = self._matcher(learned)
        self.may_hear_again = self.hearings < MOST_HEARINGS
        self.told_kept = frozenset(told_kept)

    def bytes_of(self, past: Past) -> bytes:
        """The arguments of a recorded call, to be shown."""
        return b"" if past.args is None else bytes(self.whole(past.args))

    def _keep(self, past: Past, asked: Asked, why: str) -> None:
        """What is on record stands, though the code asks with other arguments. That is noted, once."""
        self.kept.append((past, asked, why))
        if self.dry:
            return
        digest = asked.whole if why == matching.NOTED else asked.digest
        self.journal.lazily(CallKept(past.address, digest, Raw(asked.args), why))
        if past.address not in self.told_kept:
            _log.warning("%s", kept_notes(self.run, [(past, self.bytes_of(past), asked.args, why)])[0])

    def _count(self, place: Place, effect: Past) -> None:
        """Whether verbs without arguments, which are matched by number, are as many here as they were. Noted once."""
        at: Place | None = place
        while at is not None and at.line is place.line and effect.address.startswith(at.scope.path):
            for found in self._counts.differing(at.scope, effect):
                if found.address not in self.counted:
                    self.counted[found.address] = found
                    self._note_count(found)
            at = at.parent

    def _note_count(self, found: Differing) -> None:
        if self.dry:
            return
        first = self.state.calls.get(found.address)
        if first is None or first.kept != found.digest:
            self.journal.lazily(CallKept(found.address, found.digest, NOTHING, found.why))
        if found.address not in self.told_kept:
            _log.warning("%s", found.note(self.run))

    def _runs_again(self, past: Past, asked: Asked, *, counts: bool) -> Ending | None:
        """A step with other arguments. None: it is to run. A rehearsal goes on with what it gave."""
        if counts:
            with self._lock:
                self.reruns.append((past, asked))
            if not self.dry and len(self.reruns) > settings.rerun_limit:
                return Halted(self.too_many_reruns())
        return recorded_ending(past) if self.sees_through_reruns else None

    def too_many_reruns(self) -> Stop:
        first, asked = min(self.reruns, key=lambda one: one[0].first)
        return too_many(self.run, len(self.reruns), settings.rerun_limit, first, self.bytes_of(first), asked.args)

    def _fenced(self, asked: Asked) -> Stop | None:
        """Why a new effect does not begin. In a rehearsal that is judged at its end, when all branches were heard."""
        if self.dry:
            with self._lock:
                self.met.append(asked)
            return None
        return self.changed_code() or self.fence(asked)

    def changed_code(self) -> Stop | None:
        """What a branch has found in this drive: from then on nothing more begins in any other."""
        with self._lock:
            return next((stop for stop in self.stops if stop.reason == "CodeChanged"), None)

    def fence(self, asked: Asked) -> Stop | None:
        if undone := self._undone_before(asked):
            return self.goes_on_from(undone, asked)
        blocked = self.matcher.blocked(asked, may_still=partial(self._may_still, asked))
        blocked = [past for past in blocked if not self._is_let_go(past, asked)]
        if not blocked and self.has_strays and not self.dry:
            blocked = [past for past in self.matcher.moved(asked) if not self._is_let_go(past, asked)]
        if not blocked:
            return next(iter(self.open_removed()), None)
        alike = [past for past in blocked if self.matcher.same_values(past, asked)]
        likely = [*alike, *(past for past in blocked if past not in alike)]
        names = {matching.split(past.address)[1] for past in likely}
        in_use = self.matcher.in_use() | frozenset(filter(is_effect, names))
        return new_effect(
            self.run, asked, likely, alike=len(alike), in_use=in_use, nothing=not self.live, unknown=unknown(blocked)
        )

    def _undone_before(self, asked: Asked) -> list[Undone]:
        """What was undone and the new effect would build on. An undo itself comes in the order of the code."""
        if asked.name.endswith(".undo"):
            return []
        return [
            one
            for one in self.taken_back()
            if matching.on_one_line(matching.split(one.undo.address)[0], asked.path)
            or not self._may_still(asked, one.undo.address)
        ]

    def goes_on_from(self, undone: list[Undone], asked: Asked | None = None) -> Stop:
        names = dict.fromkeys(matching.split(one.undo.address)[1].removesuffix(".undo") for one in undone)
        specs = [effect_from(name, self._origins.get(name, "")) for name in names]
        gone = [spec.name for spec in specs if spec is not None and spec.undo is None]
        return taken_for_done(self.run, asked, undone, gone=gone, nothing=not self.live)

    def _is_let_go(self, past: Past, asked: Asked) -> bool:
        """Whether a new effect passes by this record: it has other arguments, and a person spoke of the record; or it has
        another name as well, and `sf.removed` names the record's.
        """
        if self.matcher.is_left(past):
            return not self.matcher.is_alike(past, asked)
        is_other = matching.split(past.address)[1] != asked.name and not self.matcher.same_values(past, asked)
        return is_other and is_removed(past)

    def open_removed(self) -> list[Stop]:
        """Effects in doubt that the code no longer has: to leave them out would be to guess."""
        pasts = [past for past in self.unasked_calls() if is_open(past)]
        return [open_question(self.run, past, "the code no longer has it (sf.removed)") for past in pasts]

    def _may_still(self, asked: Asked, address: str) -> bool:
        """Whether the code of another branch, which has not ended, may still ask for that effect."""
        if any(address.startswith(branch) for branch in self.matcher.learned.ended):
            return False  # The rehearsal has heard it to its end.
        branches = [*list(self.open_branches.items()), *list(self.open_strays.items())]
        if any(address.startswith(known) and not asked.path.startswith(branch) for branch, known in branches):
            return True
        return self.has_strays and "[" in address and self.may_be_hidden(asked)

    def may_be_hidden(self, asked: Asked) -> bool:
        """Whether a scope that no task of the workflow's own has opened so far may be opened yet. A task has waited for
        that before it came to a new effect; a thread has not.
        """
        return asked.address not in self.patient

    def stray_opens(self, scope: Scope) -> None:
        """A task or thread of the workflow's own counts its calls there."""
        with self._lock:
            self.has_strays = True
            self.open_strays[scope.path] = _known_as(scope)

    def stray_ends(self, path: str, error: BaseException | None) -> None:
        """In a rehearsal, one that was cut off may only have been so because another came to something new."""
        if not (self.dry and error is not None and not isinstance(error, Exception)):
            with self._lock:
                self.open_strays.pop(path, None)

    def branch_opens(self, scopes: Sequence[Scope]) -> None:
        """Its calls are on record under its path, or where a declaration (`was=`) says."""
        with self._lock:
            for scope in scopes:
                self.open_branches[scope.path] = _known_as(scope)

    def branch_ends(self, path: str, error: BaseException | None) -> None:
        """In a rehearsal, a branch that came to something new has not ended: in the drive it goes on there."""
        if not (self.dry and isinstance(error, RunSignal)):
            with self._lock:
                self.ended_branches.update(self.open_branches.pop(path, ()))

    def _begin(
        self, place: Place, address: str, spec: CallSpec, args: tuple[Any, ...], kwargs: dict[str, Any],
        raw_args: bytes, digest: str, past: Past | None,
    ) -> Ending | Attempt:  # fmt: skip
        if past is not None:
            self.asked_keys.add(past.key)
            if past.kind == "effect":
                self._claim_repairs(past)
            answer = recorded_ending(past)
            if answer is not None:
                return answer
            if (other := another_request(self, past, spec)) is not None:
                return Halted(other)
        if self.state.reopenings and (stop := self._undone_meanwhile(place, address, spec)) is not None:
            return Halted(stop)
        if self.is_gate:
            self.would_do(spec.kind, address)
        request = asked_for = as_asked(spec, args, kwargs, raw_args, digest)
        if past is not None:
            request = repeated(self, past, asked_for)
        try:
            args, kwargs = self._own(address, spec, args, kwargs, request, recorded=request.args != asked_for.args)
        except Unrepeatable as why:
            is_asked_about = past is not None and past.state in DOUBTFUL and spec.on_crash not in ("retry", "check")
            if not (is_asked_about and isinstance(why, Gone)):  # Nothing is called then.
                return Halted(cannot_be_repeated(self.run, address, why))
        undecided = past is not None and past.state is PastState.IN_DOUBT and spec.check is not None
        if not (undecided and self.is_called_off(place)):
            self.meet_cancel(place, past)
            undecided = False
        key = ""
        if spec.kind == "effect":
            key = self._key(address)
        call = Call(
            self.run, address, request.args, request.digest, spec.retry, spec.timeout, key, spec.on_crash, spec.not_done,
            bool(spec.touches), spec.check is not None, spec.undo is not None,
            settings.in_flight_seconds if spec.in_flight is None else spec.in_flight, spec.in_flight is not None,
            "" if spec.marks is None else spec.marks(), spec.key_ttl, None, request.defaults,
            origins.to_record(spec, self.state.created),
        )  # fmt: skip
        if self.state.fallbacks:
            call = self._as_proven(call)
        if self._supervises(spec, address):
            call = msgspec.structs.replace(call, consent=partial(people.consent, place, call, spec.name))
        if past is not None and undecided:
            return Attempt(self, place, spec, call, args, kwargs, past, called_off(call, past))
        program = step(call, past) if spec.kind == "step" else effect(call, past)
        lost = None
        if self.state.fallbacks:
            self.asked_keys.add(key)
            proven, suspicious = self._after_fallback(call, past)
            lost = proven or suspicious
        supervised = lost is None and self.needs_approval(spec, address, past)
        if not supervised:
            self.would_do(spec.kind, address)
        return Attempt(self, place, spec, call, args, kwargs, past, lost or program, supervised=supervised)

    def _own(
        self, address: str, spec: CallSpec, args: tuple[Any, ...], kwargs: dict[str, Any], request: Request, *,
        recorded: bool,
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:  # fmt: skip
        """Now, and not when it is to be executed: what cannot be read back is found before there is an intent."""
        try:
            return spec.own(args, kwargs, request.args, request.defaults, recorded=recorded)
        except Stopped as error:
            raise self.misused(located(error, self.run, address)) from error

    def _supervises(self, spec: CallSpec, address: str) -> bool:
        """Also where a no is on record, and the code no longer asks."""
        if spec.kind != "effect" or self.approve == "never":
            return False
        return spec.approve or self.approve == "every" or people.is_approved(self, address) is False

    def needs_approval(self, spec: CallSpec, address: str, past: Past | None) -> bool:
        """One that is under way was approved. Sent back to before it, the run needs a new yes to run it again."""
        if not self._supervises(spec, address):
            return False
        if past is not None and past.reopened:
            return past.state is PastState.CLEARED
        if past is None or not past.rewound:
            return past is None
        return past.state is PastState.CLEARED or (spec.on_crash == "retry" and not past.spent)

    def _after_fallback(self, call: Call, past: Past | None) -> tuple[Program | None, Program | None]:
        """Entries of this run were lost. Was this effect, or a further attempt of it, recorded there: is it proven, or
        else suspected?
        """
        if not call.key or (past is not None and not self._may_be_behind(past)):
            return None, None
        attempt = 1 if past is None else past.attempt + 1
        proof = self.evidence.proven.get(call.key)
        if proof is not None and proof.digest == call.digest:
            with suppress(Damaged):
                return recovered(call, self.whole(proof.value), attempt), None
        known = call.key in self.evidence.begun or call.address in self.evidence.named
        if not known and not self.blindness.covers(call.address, recorded=past is not None):
            return None, None
        self.suspects.append((call.address, call.policy))
        return None, suspected(call, attempt)

    def _as_proven(self, call: Call) -> Call:
        """An intact record that was set aside also says with which defaults it was executed."""
        proof = self.evidence.proven.get(call.key)
        if proof is None or proof.digest != call.digest:
            return call
        with suppress(Damaged):
            return msgspec.structs.replace(call, defaults=self.whole(proof.defaults))
        return call

    def _may_be_behind(self, past: Past) -> bool:
        """A call that was to run again when the run fell back may have done so in what is lost."""
        waiting = past.state in (PastState.CLEARED, PastState.RETRYING)
        return waiting and any(past.seq < at for at, _ in self.state.fallbacks)

    def no_longer_asked(self) -> list[str]:
        """Effects that intact entries beyond a gap name, and that the code did not ask for this time."""
        if not self.state.fallbacks:
            return []
        return [address for key, address in self.evidence.begun.items() if key not in self.asked_keys]

    def _undone_meanwhile(self, place: Place, address: str, spec: CallSpec) -> Stop | None:
        if place.undoing or spec.undoes:
            return None
        return undone_meanwhile(self.run, address, self.undos, self.matcher.asked)

    @property
    def undos(self) -> list[Undone]:
        """What earlier processes did and took back, as it stands now."""
        calls = self.state.calls
        return [
            Undone(calls.get(one.effect.address, one.effect), calls.get(one.undo.address, one.undo), one.scope)
            for one in self._undone
        ]

    @cached_property
    def _undone(self) -> list[Undone]:
        return undone(self.matcher.recorded())

    @cached_property
    def _counts(self) -> Counts:
        return Counts(self.matcher.recorded())

    @cached_property
    def backlog(self) -> Backlog:
        return Backlog(self)

    @cached_property
    def blindness(self) -> Blindness:
        return Blindness(self.state, self.evidence)

    @cached_property
    def evidence(self) -> Evidence:
        return evidence(self.runtime.store, self.run)

    def _claim_repairs(self, past: Past) -> None:
        """What undid a part of this effect belongs to it, and is not asked for by anybody else."""
        for attempt in range(1, past.attempt + 1):
            repair = self.state.calls.get(f"{past.address}.repair{attempt}")
            if repair is not None:
                self.matcher.asked.add(repair.address)

    def finish(self, place: Place, ending: Ending) -> Any:
        """What the caller gets: always the decoded copy, so first run and replay see equal objects."""
        if type(ending) is Done:
            return self.decoded(ending.raw)
        if type(ending) is Failed:
            if ending.cause is not None:
                originals.log(self.run, ending.cause, self.mask)
            raise self.revive(ending)
        if type(ending) is Halted:
            raise self.stopped(place, ending.stop)
        if type(ending) is CalledOff:
            raise self._felt(place, CancelSignal())
        raise AssertionError(ending)

    def cut_short(self, attempt: Attempt) -> None:
        """The caller of this call was cancelled, so nobody takes its outcome. What it did, and what is open, counts."""
        place = attempt.place
        if isinstance(attempt.ending, Done):
            note(place, attempt.spec, attempt.args, attempt.kwargs, attempt.ending, attempt.call)
        elif isinstance(attempt.ending, Halted):
            self.stopped(place, attempt.ending.stop)
        elif attempt.ending is None and not self.is_given_up():
            past = self.state.calls.get(attempt.call.address)
            if past is not None and past.kind == "effect" and past.state in DOUBTFUL:
                question = Question(self.run, attempt.call.address, "it may have happened", attempt.call.args)
                self.stopped(place, question.stop("its caller was cancelled before that was found out"))

    def while_undoing(self, task: Any, error: BaseException) -> None:
        """What is being undone is undone to the end; unless the run is given up for now. Then it goes on another time."""
        if self.is_given_up():
            self.cut_off(error)
            task.cancel()

    def breaks_off(self, place: Place, error: BaseException) -> bool:
        """Whether a task is cancelled because the run ends here for now. Then it is intact, and nothing is undone; but
        nothing more is called in this branch either, whatever its code makes of the cancellation.
        """
        if self.is_given_up():
            self.cut_off(error)
        elif self.stops:
            self._felt(place, StopSignal(self.stops[0]))
        elif self.continuation is not None:
            self._felt(place, self.continuation)
        else:
            return self.is_cut_off
        return True

    def did(self, ending: Any) -> bool:
        """Whether this run did it. What a fork has from its parent is the parent's deed, and not the fork's to undo."""
        created = self.state.created
        if created is None or not created.parent or not isinstance(ending, Done):
            return True
        past = next((past for past in list(self.state.calls.values()) if past.value is ending.raw), None)
        return past is None or past.key == self._key(past.address)

    def _key(self, address: str) -> str:
        return idempotency_key(self.namespace, self.run, self.state.segment, address)

    def decoded(self, value: Value) -> Any:
        """A recorded value. One that cannot be read is no failure of the run: it stays as it is."""
        try:
            return values.decode(self.whole(value))
        except Stopped as error:
            raise self.store_failed(self._located(error, value)) from None

    def _whole_bytes(self, value: Value) -> bytes:
        return bytes(self.whole(value))

    def whole(self, value: Value) -> Raw:
        return whole(self.runtime.store, self.run, value)

    def revive(self, ending: Failed) -> BaseException:
        try:
            error = values.decode_error(ending.raw)
        except Stopped as unreadable:
            return self.store_failed(self._located(unreadable, ending.raw))
        if ending.cause is not None:
            self.originals.keep(error, ending.cause)
        return error

    def _located(self, error: Stopped, value: object) -> Stopped:
        """The same stop, naming the call whose recorded value cannot be read."""
        pasts = list(self.state.calls.values())
        address = next((past.address for past in pasts if past.value is value or past.error is value), "")
        return located(error, self.run, address)

    def enter_verb(self, place: Place) -> None:
        """Every verb starts here: what has stopped stays stopped."""
        if place.stop is not None:
            raise place.stop
        if self.trouble is not None:
            raise HaltSignal(self.trouble)
        if self.lost is not None:
            raise LostSignal
        if self.interruption is not None:
            raise InterruptSignal
        if self.handed_back and not self.dry:
            raise self._felt(place, self.handing_back())
        if place.segment != self.state.segment or self.ended:
            raise self.misused(
                UsageError(
                    f"run {self.run}: a call from a task or thread that outlived the part of the run it belongs to"
                )
            )
        place.require_owner()

    def meet_cancel(self, place: Place, past: Past | None) -> None:
        """A cancelled run begins nothing new. What is on record is replayed first, so that sagas know what to undo."""
        if past is not None and past.state in (PastState.DONE, PastState.FAILED):
            return
        if self.is_called_off(place):
            raise self._felt(place, CancelSignal())
        if place.line.leaving is not None and _is_leaving(place):
            raise place.line.leaving()

    def is_called_off(self, place: Place) -> bool:
        """Whether the run was cancelled; what undoes is still done."""
        return self.state.cancel is not None and not self.dry and not place.undoing

    def call_begins(self, address: str, kind: str) -> None:
        with self._lock:
            if self.ended:
                raise HaltSignal(UsageError(f"run {self.run}: {address} was called after the workflow had ended"))
            self.in_flight[address] = kind

    def call_ended(self, address: str) -> None:
        self.in_flight.pop(address, None)

    def function_ended(self) -> None:
        """From here on no call begins; those that have begun are known."""
        with self._lock:
            self.ended = True
            self.loose = tuple(sorted(self.in_flight))

    @property
    def has_effects_in_flight(self) -> bool:
        return "effect" in self.in_flight.values()

    # -- values and notes, all lazy -----------------------------------------------------------------

    def note(self, place: Place, name: str, make: Callable[[], object], entry: Callable[[str, Raw], Entry]) -> Any:
        """A recorded value (now, random, …): made once, then the same for ever."""
        self.enter_verb(place)
        address, past = self.recall(place, name)
        if past is not None:
            if past.kind not in ("value", "note"):
                raise self.stopped(place, changed(self.run, address, f"a {past.kind}", f"sf.{name}()"))
            return None if past.value is None else self.decoded(past.value)
        if self.dry:
            return make()
        try:
            raw = Raw(values.encode(make()))
        except ValueRejected as error:
            raise self.misused(ValueRejected(f"run {self.run}, {address}: {error}", path=error.path)) from error
        try:
            self.journal.lazily(entry(address, raw))
        except UsageError as error:
            raise self.misused(error) from None
        return values.decode(raw)

    def sent_back(self) -> list[Past]:
        """Effects that were executed before the run was sent back to before them, newest first."""
        effects = [past for past in list(self.state.calls.values()) if past.rewound]
        return sorted(effects, key=lambda past: past.first, reverse=True)

    def takes_new_way(self, name: str) -> bool:
        """What `sf.patched` answers: the first answer under that name holds for the whole segment, in every branch.

        It is no wherever earlier processes recorded calls that the code has not asked for yet: they went the old way.
        """
        if (known := self._patches.get((self.state.segment, name))) is not None:
            return known
        pasts = list(self.state.calls.values())  # a question of another branch may be added meanwhile
        given = [past for past in pasts if past.kind == "value" and _is_call_of(name, past.address)]
        if given and (first := min(given, key=lambda past: past.first)).value is not None:
            answer = bool(self.decoded(first.value))
        else:
            answer = not self.unasked_calls()
        return self._patches.setdefault((self.state.segment, name), answer)

    # -- trouble and stops --------------------------------------------------------------------------

    def misused(self, error: SurefootError) -> SurefootError:
        """Remember: user code may catch it, but the run does not go on with what came of it."""
        error = self.mask.error(error)
        with self._lock:
            if self.trouble is None:
                self.trouble = error
        return error

    def store_failed(self, error: SurefootError) -> SurefootError:
        """Our own reading or writing of this run went wrong."""
        self.own_damage = self.own_damage or error
        return self.misused(error)

    def interrupted_by(self, error: BaseException) -> None:
        """A wait was cut off by something that is no outcome. Ordinary exceptions and our own signals pass."""
        if not isinstance(error, Exception | RunSignal):
            self.cut_off(error)

    def struck_by(self, error: BaseException) -> None:
        """A step or an effect was cut off outside of its function, whose own exceptions are outcomes and do not get here.

        By Ctrl-C, or by what a signal handler raised (a soft limit of time), be it an ordinary exception: taken for the
        effect's failure, the code would go on as if nothing had been done. Our own errors and signals pass.
        """
        if not isinstance(error, SurefootError | RunSignal):
            self.cut_off(error)

    def cut_off(self, error: BaseException) -> None:
        if self.interruption is None:
            self.interruption = error.__context__ if isinstance(error.__context__, KeyboardInterrupt) else error

    def given_up_by(self, cancelled: BaseException) -> None:
        """Whoever waited for the run was cancelled by this: they get it back as it is."""
        if isinstance(self.interruption, type(cancelled)):
            self.interruption = cancelled

    def check_trouble(self) -> None:
        if self.trouble is not None:
            raise self.trouble
        if self.lost is not None:
            raise LostSignal

    @property
    def is_cut_off(self) -> bool:
        """Whether the run ends here for now: then what comes out of a call is not how it ended."""
        return self.trouble is not None or self.interruption is not None or self.lost is not None

    def refused(self, refusal: Refusal) -> BaseException:
        """Another process has the run. That is no trouble as long as it was only replayed here."""
        if self.live:
            return self.store_failed(Fenced(refusal.why))
        self.lost = refusal
        return LostSignal()

    def stopped(self, place: Place, stop: Stop, due: Due | None = None) -> StopSignal:
        """This branch stands still; with `due`, only until then."""
        stop = self.mask.stop(stop)
        with self._lock:
            if stop not in self.stops:
                self.stops.append(stop)
            if due is not None:
                self.dues.append(due)
            if self.limits and stop.reason == "WaitingForAnswer":
                self.dues += [limit.due for limit in self.limits if limit.due is not None and limit.is_around(place)]
        return self._felt(place, StopSignal(stop))

    def outlasts(self, due: Due) -> bool:
        """Whether waiting until then is not worth keeping the run in memory."""
        return self.unwind_seconds is not None and remaining(due, self.now()) > self.unwind_seconds

    def suspended(self, place: Place, waits_for: Due | str) -> SuspendSignal:
        """This branch waits until then, or for that child. What others do goes on first."""
        with self._lock:
            if isinstance(waits_for, Due):
                self.dues.append(waits_for)
            elif waits_for not in self.children:
                self.children.append(waits_for)
        return self._felt(place, SuspendSignal())

    def parked(self, place: Place, away: Unavailable) -> SuspendSignal:
        """The workflow's own code says, in this branch, that what it needs is away. What others do goes on first."""
        self.park(away)
        return self._felt(place, SuspendSignal())

    def park(self, away: Unavailable) -> None:
        with self._lock:
            self.dues.append(after(self.now(), seconds_until(away, self.state.parks + 1)))
            self.parked_why = self.parked_why or self.mask(str(away))

    @property
    def waits(self) -> bool:
        """Whether a branch has let go until it can go on."""
        return bool(self.dues or self.children)

    def hand_back(self) -> None:
        """Let what is in flight finish, begin nothing more, and let another worker go on."""
        self.handed_back = True

    def handing_back(self) -> HandBackSignal:
        """A branch of a run that is handed back could go on at once."""
        with self._lock:
            self.dues.append(after(self.now(), 0.0))
        return HandBackSignal()

    def continuing(self, place: Place, signal: ContinueSignal) -> ContinueSignal:
        """Like a stop: user code that catches it cannot go on with this segment."""
        self.continuation = signal
        return self._felt(place, signal)

    def _felt(self, place: Place, signal: S) -> S:
        at: Place | None = place
        while at is not None:
            at.stop = at.stop or signal
            at = at.parent
        return signal

    def would_do(self, kind: str, address: str) -> None:
        """In a dry replay: note what a resume would do next, and go no further in this branch."""
        if self.dry:
            with self._lock:
                self.planned.append((kind, address))
            place = current.get()
            signal = PlanSignal()
            mine = place is not None and place is not current.OUTSIDE and place.session is self
            raise self._felt(place, signal) if mine else signal

    def take_event(self, name: str) -> Event | None:
        with self._lock:
            event = self.state.event_for(name, self._taken)
            if event is not None:
                self._taken.add(event.id)
            return event

    # -- the end ------------------------------------------------------------------------------------

    @property
    def namespace(self) -> str:
        created = self.state.created
        return created.namespace if created is not None else ""

    def unasked_calls(self) -> list[Past]:
        """Calls on record that the code has not asked for."""
        recorded = (past.address for past in self.matcher.recorded())
        calls = self.state.calls
        return [calls[address] for address in recorded if address not in self.matcher.asked and address in calls]

    def in_doubt(self) -> list[Past]:
        """Effects of this segment whose outcome is not known, as the journal tells it."""
        with self.journal.folding:
            return self.state.in_doubt()

    def continued(self, request: Request) -> RunContinued:
        """The end of this segment."""
        left, self.left_behind = tuple(self.left_behind), {}
        return RunContinued(request.args, request.digest, request.defaults, left=left)

    def begin_segment(self) -> None:
        """Nothing of the last one is replayed into this one."""
        self.ended = False
        self.continuation = None
        self.__dict__.pop("backlog", None)
        self.__dict__.pop("_counts", None)
        self.__dict__.pop("_undone", None)
        self.counted.clear()
        self.matcher = self._matcher(None)

    def tell(self, message: str, cures: Iterable[tuple[str, str]], *, kind: str) -> None:
        """Alert of it: at once, if it has just happened, and not at every replay; in the end, to be sure."""
        told = partial(alert, message, cures, run=self.run, kind=kind)
        if self.live:
            told()
        else:
            self._untold.append(told)

    def tell_the_rest(self) -> None:
        for told in self._untold:
            told()
        self._untold.clear()

    def say_why(self, pause: Pause) -> None:
        """A wait that nobody asked for is explained to whoever waits for the run."""
        left = remaining(pause.due, self.now()) if pause.why else 0.0
        if left > 0:
            _log.warning("run %s: waiting for %.0f s: %s", self.run, left, self.mask(pause.why))

    def now(self) -> Moment:
        return self.clock.read()

    def regain(self) -> None:
        """The lease ran out, so others may have taken the run up. Go on only if it runs again and nobody did.

        Once it runs again nobody can take the run up, so that look is the last word.
        """
        store, pause = self.runtime.store, threading.Event()
        waited = 0.0
        while not store.holds():
            if not usable(store):
                # Another call of this process met a failure: no outcome could be recorded any more.
                gone = StoreUnavailable(f"run {self.run}: the store was given up after a failure. Run it again.")
                raise self.store_failed(gone)
            if waited > REGAIN_SECONDS:
                lost = Fenced(f"run {self.run}: the lease of this worker ran out and could not be renewed.")
                raise self.store_failed(lost)
            pause.wait(REGAIN_LOOK_SECONDS)
            waited += REGAIN_LOOK_SECONDS
        try:
            refused = self.journal.look()
        except SurefootError as error:
            raise self.store_failed(error) from None
        if refused is not None:
            raise self.refused(refused)


def _is_call_of(name: str, address: str) -> bool:
    called = address.rpartition("#")[0]
    return called == name or called.endswith(f"/{name}")


def _known_as(scope: Scope) -> tuple[str, ...]:
    """Where its calls are on record: under its path, or where a declaration (`was=`) says."""
    return (scope.path, *(path for path, counted in scope.also if counted))


def _is_leaving(place: Place) -> bool:
    """Whether the code is on its way out of a cancelled saga: no call begins there but undos."""
    return place.line.leaving is not None and not place.undoing


def _never() -> bool:
    return False
