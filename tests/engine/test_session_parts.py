"""The parts of a session, each by itself: no store, no thread, no workflow, unless the part is about one."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest
from msgspec import Raw

import surefoot as sf
from surefoot.core import values
from surefoot.core.address import Scope
from surefoot.core.entry import (
    CancelRequested,
    EffectDone,
    EffectIntended,
    EventSent,
    FellBack,
    RunAdopted,
    RunCreated,
    RunSuspended,
    Sight,
    StepDone,
    Stop,
    ValueNoted,
    WorldSeen,
)
from surefoot.core.evidence import Evidence, Proof
from surefoot.core.masking import Mask
from surefoot.core.matching.learned import Learned
from surefoot.core.programs.calls import Call
from surefoot.core.retry import RetryPolicy
from surefoot.core.timer import after
from surefoot.engine.declare import drifts
from surefoot.engine.declare.current import Place
from surefoot.engine.declare.signals import (
    CancelSignal,
    ContinueSignal,
    HaltSignal,
    HandBackSignal,
    InterruptSignal,
    PlanSignal,
    StopSignal,
    SuspendSignal,
)
from surefoot.engine.process import config
from surefoot.engine.process.journal import Journal
from surefoot.engine.session import claim
from surefoot.engine.session.claim import Claim
from surefoot.engine.session.fence import Fence
from surefoot.engine.session.flight import Flight
from surefoot.engine.session.lookup import Lookup
from surefoot.engine.session.losses import Losses
from surefoot.engine.session.notices import Notices
from surefoot.engine.session.replay import Replay
from surefoot.engine.session.scopes import Scopes
from surefoot.engine.session.stops import Stops
from surefoot.engine.session.world import World
from surefoot.errors import Fenced, Unavailable, UsageError
from surefoot.testing.clock import FastClock
from tests.folded import folded

ARGS = Raw(b"{}")
DIGEST = values.encode_args({})[1]
BEGUN = RunCreated("wf", ARGS, "d"), RunAdopted("w", "h", 1, "c")
ADOPTED = RunAdopted("w2", "h", 2, "c2")
WHY = Stop("InDoubt", "why", "pay#1")


def paid(address="pay#1", **arguments):
    raw, digest = values.encode_args(arguments)
    return EffectIntended(address, digest, Raw(raw), f"key of {address}", "ask"), EffectDone(address, Raw(b"1"))


class Parts:
    """Those of a session that do without a store, for a run with these entries."""

    def __init__(self, *recorded, dry=False, unwind_seconds=None, learned=None):
        self.state, self.mask, self.clock, self.live = folded(*BEGUN, *recorded), Mask(), FastClock(0), False
        self.run, self.noted = "r", []
        self.stops = Stops(self.state, self.mask, self.clock, dry=dry, unwind_seconds=unwind_seconds)
        self.scopes, self.replay = Scopes(dry=dry), Replay(self.state, bytes, learned)
        self.hides = False
        self.fence = Fence(
            "r", self.replay, self.scopes, self.stops, self, dry=dry, hides=lambda: self.hides
        )  # it stands for its claim itself
        self.lookup = Lookup(self.state, self, self.clock, self.replay, self.fence, self.stops, self, dry=dry)

    advanced = True

    def lazily(self, entry):
        self.noted.append(entry)

    def place(self, path="", parent=None):
        return Place(self, Scope(path), threading.get_ident(), parent=parent)

    def asked(self, fn, *args, place=None):
        """A call of this function, as the code asks for it."""
        spec, place = fn.spec, place or self.place()
        raw, digest = values.encode_args(spec.binder.bind(args, {}))
        return self.lookup.asked(place, spec, place.scope.take(spec.name), raw, digest)


def an_effect(name):
    def fn(**_):
        return None

    fn.__name__ = fn.__qualname__ = name
    return sf.effect(fn)


# --- stops ----------------------------------------------------------------------------------------------------------


def test_a_stop_is_met_again_by_every_verb_of_its_branch():
    """And by what it was opened from, since nobody joins it later; not by a branch beside it."""
    parts = Parts()
    around = parts.place()
    place = parts.place("[a]/", parent=around)

    signal = parts.stops.stopped(place, WHY)

    for one in (place, around):
        with pytest.raises(StopSignal) as met:
            parts.stops.meet(one)
        assert met.value is signal
    parts.stops.meet(parts.place("[b]/"))
    assert parts.stops.found == [WHY]


def test_the_same_stop_in_two_branches_is_one():
    parts = Parts()
    parts.stops.stopped(parts.place(), WHY)
    parts.stops.stopped(parts.place(), WHY)

    assert parts.stops.found == [WHY]


@pytest.mark.parametrize(
    ("strike", "signal"),
    [
        (lambda stops: stops.misused(UsageError("no")), HaltSignal),
        (lambda stops: stops.cut_off(KeyboardInterrupt()), InterruptSignal),
        (lambda stops: stops.hand_back(), HandBackSignal),
    ],
    ids=["trouble", "interruption", "handing back"],
)
def test_what_strikes_one_branch_is_met_by_all(strike, signal):
    parts = Parts()

    strike(parts.stops)

    with pytest.raises(signal):
        parts.stops.meet(parts.place())


def test_the_first_trouble_is_kept():
    """What follows from it would hide why."""
    parts = Parts()
    first = parts.stops.store_failed(Fenced("taken over"))
    parts.stops.misused(UsageError("no"))

    assert parts.stops.trouble is parts.stops.own_damage is first


def test_outcomes_and_our_own_signals_are_no_interruption():
    parts = Parts()
    parts.stops.interrupted_by(ValueError())
    parts.stops.struck_by(UsageError("ours"))
    parts.stops.struck_by(SuspendSignal())
    assert parts.stops.interruption is None

    parts.stops.struck_by(error := ValueError("a soft limit of time"))
    parts.stops.struck_by(KeyboardInterrupt())

    assert parts.stops.interruption is error


def test_a_branch_that_waits_stands_still_until_then_or_for_a_child():
    parts = Parts(unwind_seconds=5.0)
    due = after(parts.clock.read(), 6.0)

    assert parts.stops.outlasts(due)
    assert not parts.stops.outlasts(after(parts.clock.read(), 4.0))
    assert not Parts().stops.outlasts(due)  # every wait is sat out
    parts.stops.suspended(parts.place(), due)
    parts.stops.suspended(parts.place(), "child")
    parts.stops.suspended(parts.place(), "child")
    assert (parts.stops.dues, parts.stops.children, parts.stops.waits) == ([due], ["child"], True)


def test_a_run_that_was_parked_before_waits_longer():
    """What is away for long is not asked for every few seconds."""

    def waited(parts):
        parts.stops.park(Unavailable("the model is down"))
        return parts.stops.dues[0].at

    once, often = Parts(), Parts(*[RunSuspended(None, why="down"), ADOPTED] * 3)

    assert waited(often) > waited(once) > 0
    assert once.stops.parked_why == "the model is down"


def test_a_dry_replay_goes_no_further_than_what_it_would_do():
    parts = Parts(dry=True)

    with pytest.raises(PlanSignal):
        parts.stops.would_do("effect", "pay#1")
    assert parts.stops.planned == [("effect", "pay#1")]
    Parts().stops.would_do("effect", "pay#1")  # a drive does it


def test_a_cancelled_run_begins_nothing_new_but_undos():
    parts = Parts(CancelRequested("ann"))
    place, undoing = parts.place(), parts.place()
    undoing.undoing = True

    with pytest.raises(CancelSignal):
        parts.stops.meet_cancel(place, None)
    parts.stops.meet_cancel(undoing, None)


def test_a_cancelled_task_of_a_run_that_goes_on_is_not_broken_off():
    """Only what ends the whole run for now leaves its sagas as they are."""
    parts = Parts()
    place, error = parts.place(), RuntimeError()
    assert not parts.stops.breaks_off(place, error)

    parts.stops.continuing(parts.place("[b]/"), signal := ContinueSignal((), {}))

    assert parts.stops.breaks_off(place, error)
    assert place.stop is signal


# --- scopes and flight -----------------------------------------------------------------------------------------------


def test_an_open_branch_may_still_ask_for_what_is_recorded_in_it():
    scopes = Scopes()
    scopes.branch_opens([Scope("[a]/"), Scope("[b]/")])
    assert scopes.may_come("[a]/pay#1", "[b]/")
    assert not scopes.may_come("[a]/pay#1", "[a]/")  # it has come to something else instead

    scopes.branch_ends("[a]/", None)

    assert not scopes.may_come("[a]/pay#1", "[b]/")
    assert scopes.ended == {"[a]/"}


@pytest.mark.parametrize("signal", [SuspendSignal(), StopSignal(WHY)], ids=["it waits", "it was stopped"])
def test_a_branch_that_goes_on_later_has_not_ended(signal):
    """Else the order in which threads come to a call would decide whether another branch may begin an effect."""
    scopes = Scopes()
    scopes.branch_opens([Scope("[a]/"), Scope("[b]/")])
    scopes.stray_opens(Scope("[c]/"))

    scopes.branch_ends("[a]/", signal)
    scopes.stray_ends("[c]/", signal)

    assert scopes.may_come("[a]/pay#1", "[b]/")
    assert scopes.may_come("[c]/pay#1", "[b]/")
    assert not scopes.ended


def test_in_a_rehearsal_a_branch_that_came_to_something_new_has_not_ended():
    scopes = Scopes(dry=True)
    scopes.branch_opens([Scope("[a]/")])
    scopes.stray_opens(Scope("[b]/"))

    scopes.branch_ends("[a]/", PlanSignal())
    scopes.stray_ends("[b]/", PlanSignal())

    assert (scopes.ended, list(scopes.branches), list(scopes.strays)) == (set(), ["[a]/"], ["[b]/"])


def test_no_call_begins_once_the_function_has_ended():
    flight = Flight("r")
    flight.call_begins("pay#1", "effect")
    assert flight.has_effects

    flight.function_ended()

    assert flight.loose == ("pay#1",)
    with pytest.raises(HaltSignal, match="after the workflow had ended"):
        flight.call_begins("pay#2", "effect")
    flight.call_ended("pay#1")
    assert not flight.has_effects


# --- what is recorded ------------------------------------------------------------------------------------------------


def test_what_was_asked_for_is_not_missed():
    parts = Parts(StepDone("read#1", DIGEST, ARGS, ARGS, 1), *paid(), ADOPTED)
    assert [past.address for past in parts.replay.unasked()] == ["read#1", "pay#1"]
    assert [past.address for past in parts.replay.missed()] == ["pay#1"]  # a step may be left out

    parts.replay.matcher.asked.add("pay#1")

    assert not parts.replay.missed()
    assert not parts.replay.may_stop()


def test_learning_begins_the_replay_anew():
    parts = Parts(*paid(), ADOPTED)
    parts.replay.matcher.asked.add("pay#1")

    parts.replay.learn(Learned(ended=frozenset({"[a]/"})))

    assert parts.replay.missed()
    assert parts.replay.matcher.learned.ended == {"[a]/"}


def test_an_event_is_taken_once():
    parts = Parts(EventSent("paid", Raw(b"1"), "a"), EventSent("paid", Raw(b"2"), "b"))

    taken = [parts.replay.take_event("paid") for _ in range(3)]

    assert [event and event.id for event in taken] == ["a", "b", None]


def test_a_key_belongs_to_run_and_address():
    parts = Parts()

    assert parts.replay.key_of("pay#1") == parts.replay.key_of("pay#1") != parts.replay.key_of("pay#2")


@pytest.mark.parametrize(
    ("recorded", "answer"),
    [([], True), ([*paid()], False), ([ValueNoted("patched(x)#1", Raw(b"true")), *paid()], True)],
    ids=["nothing on record", "the old path was taken", "answered before"],
)
def test_patched_takes_the_new_way_only_where_nothing_was_passed(recorded, answer):
    parts = Parts(*recorded, ADOPTED)

    assert parts.replay.takes_new_way("patched(x)", values.decode) is answer


# --- lookup and fence ------------------------------------------------------------------------------------------------


def test_a_recorded_effect_is_found_at_its_address():
    pay = an_effect("pay")
    parts = Parts(*paid(), ADOPTED)

    address, past = parts.lookup.find(parts.place(), parts.asked(pay))

    assert (address, past.address) == ("pay#1", "pay#1")


def test_a_new_effect_does_not_pass_one_that_nobody_asked_for():
    """It may be the recorded one under another name."""
    parts = Parts(*paid(), ADOPTED)

    found = parts.lookup.find(parts.place(), parts.asked(an_effect("transfer")))

    assert found.stop.reason == "CodeChanged"
    assert "pay#1" in found.stop.message


def test_a_new_effect_passes_what_an_open_branch_may_still_ask_for():
    parts = Parts(*paid("[a]/pay#1", to="ann"), ADOPTED)
    parts.scopes.branch_opens([Scope("[a]/"), Scope("[b]/")])
    asked = parts.asked(an_effect("transfer"), place=parts.place("[b]/"))
    assert parts.fence.stop(asked) is None

    parts.scopes.branch_ends("[a]/", None)

    assert parts.fence.stop(asked) is not None


@pytest.mark.parametrize(
    ("hidden", "may_hear_again", "stops"),
    [({"gather#1.0/"}, True, False), ({"gather#1.0/"}, False, True), (set(), True, True)],
    ids=["hidden by a new step", "not heard again", "nothing hides it"],
)
def test_a_declared_call_of_a_scope_around_may_be_asked_for_where_a_new_step_hides_it(hidden, may_hear_again, stops):
    """`sf.gather(…, was="")`: it does not stop a new effect in another branch, which waits for the next rehearsal."""
    parts = Parts(*paid("pay#1", to="ann"), ADOPTED, learned=Learned(hidden=frozenset(hidden)))
    parts.fence.may_hear_again = may_hear_again
    around = Scope()
    around.take("gather")
    parts.scopes.branch_opens([around.branch("gather", index, "", shared=True) for index in (0, 1)])
    asked = parts.asked(an_effect("transfer"), place=parts.place("gather#1.1/"))

    assert (parts.fence.stop(asked) is not None) is stops
    assert parts.fence.is_early() is not stops


def test_a_rehearsal_judges_new_effects_at_its_end():
    parts = Parts(*paid(), ADOPTED, dry=True)
    asked = parts.asked(an_effect("transfer"))

    assert parts.lookup.find(parts.place(), asked) == ("transfer#1", None)
    assert parts.fence.met == [asked]
    assert parts.fence.stop(asked) is not None


def test_nothing_new_begins_once_another_branch_found_changed_code():
    parts = Parts()
    asked = parts.asked(an_effect("transfer"))
    assert parts.fence.refuses(asked) is None

    parts.stops.stopped(parts.place("[b]/"), changed := Stop("CodeChanged", "why", "pay#1"))

    assert parts.fence.refuses(asked) == changed


def test_a_run_is_heard_again_only_as_often_as_is_allowed():
    """Else code that always has something new would be rehearsed for ever."""
    parts = Parts()
    parts.lookup.hearings = 20
    parts.lookup.learn_from(Learned(), set())
    assert not parts.fence.may_hear_again

    parts.lookup.hearings = 19
    parts.lookup.learn_from(Learned(), set())

    assert parts.fence.may_hear_again


# --- losses ----------------------------------------------------------------------------------------------------------


def lost(evidence, *recorded):
    state = folded(*BEGUN, *recorded, FellBack(2, 1, -1, "damaged"))
    return Losses(state, lambda value: value, lambda: evidence)


def a_call(key="k", digest="d"):
    return Call("r", "pay#1", ARGS, digest, RetryPolicy(), key=key, policy="ask")


def test_an_effect_that_nobody_can_read_any_more_is_suspected():
    losses = lost(Evidence())

    assert losses.program(a_call(), None) is not None
    assert losses.suspects == [("pay#1", "ask")]


def test_an_effect_that_was_proven_is_recovered_and_not_asked_about():
    evidence = Evidence()
    evidence.proven["k"] = Proof("d", Raw(b"7"), ARGS)
    evidence.begun["k"] = "pay#1"
    losses = lost(evidence)

    assert losses.program(a_call(), None) is not None
    assert (losses.suspects, losses.no_longer_asked()) == ([], [])
    assert losses.as_proven(a_call()).defaults == ARGS


def test_what_was_begun_and_is_not_asked_for_any_more_is_named():
    evidence = Evidence()
    evidence.begun["k"] = "pay#1"

    assert lost(evidence).no_longer_asked() == ["pay#1"]


# --- the world -------------------------------------------------------------------------------------------------------

SEEN = WorldSeen((Sight("file:a", {"file:a": "1"}, {}),))


def test_what_was_seen_is_expected():
    world = World(folded(*BEGUN, SEEN), threading.Lock())

    assert world.watches
    drift, _ = world.unlike((Sight("file:a", {"file:a": "2"}, {}),))
    assert [one.part for one in drift] == ["file:a"]
    assert not world.unlike(SEEN.sights)[0]


@pytest.mark.parametrize(("on_drift", "kind"), [("stop", Stop), ("accept", WorldSeen)])
def test_drift_is_judged_as_the_workflow_says(on_drift, kind):
    world = World(folded(*BEGUN, SEEN), threading.Lock())
    world.on_drift = on_drift
    changed = Sight("file:a", {"file:a": "2"}, {})
    drift, _ = world.unlike((changed,))

    found = world.judge(drifts.Findings(drift, (changed,), frozenset({"file:a"})))

    assert isinstance(found, kind)


def test_an_effect_is_named_in_the_drift_that_holds_it_back():
    world = World(folded(*BEGUN, SEEN), threading.Lock())
    drift, _ = world.unlike((Sight("file:a", {"file:a": "2"}, {}),))

    stop = world.judge_before("pay#1", drift)

    assert "pay#1 was not executed" in stop.message


# --- notices ---------------------------------------------------------------------------------------------------------


def test_what_a_replay_only_passes_is_told_at_the_end(monkeypatch):
    """At every replay would be too often; never, if whoever was here first died before it told."""
    told, live = [], [False]
    monkeypatch.setattr("surefoot.engine.session.notices.alert", lambda message, *_, **__: told.append(message))
    notices = Notices("r", "memory:", Mask(), FastClock(0), lambda: live[0])

    notices.tell("passed", (), kind="saga")
    live[0] = True
    notices.tell("happened", (), kind="saga")
    assert told == ["happened"]
    notices.tell_the_rest()
    notices.tell_the_rest()

    assert told == ["happened", "passed"]


# --- the claim -------------------------------------------------------------------------------------------------------


class Store:
    """A lease that runs, or does not."""

    def __init__(self, *, holds, usable=True):
        self.worker, self.usable, self._holds = "me", usable, iter([*holds, *[holds[-1]] * 1000])

    def holds(self):
        return next(self._holds)


class Looked:
    def __init__(self, error=None):
        self.looks, self.error = 0, error

    def look(self):
        self.looks += 1
        if self.error is not None:
            raise self.error


def a_claim(store, looked):
    parts = Parts()
    return Claim(SimpleNamespace(store=store, clock=parts.clock), parts.state, looked, parts.stops), parts


def test_a_lease_that_runs_again_is_not_trusted_before_a_look(monkeypatch):
    """Somebody may have taken the run meanwhile. Once the lease runs again nobody can."""
    monkeypatch.setattr(claim, "REGAIN_LOOK_SECONDS", 0.0)
    regained, _ = a_claim(Store(holds=[False, False, True]), looked := Looked())

    regained.regain()

    assert looked.looks == 1


@pytest.mark.parametrize(
    ("store", "error"),
    [
        (Store(holds=[True]), Fenced("taken over")),
        (Store(holds=[False], usable=False), None),
        (Store(holds=[False]), None),
    ],
    ids=["taken over", "the store was given up", "never renewed"],
)
def test_a_claim_that_is_lost_is_trouble_of_the_run(store, error, monkeypatch):
    """No effect begins after it."""
    monkeypatch.setattr(claim, "REGAIN_LOOK_SECONDS", 10.0)
    monkeypatch.setattr(threading.Event, "wait", lambda *_: False)
    lost, parts = a_claim(store, Looked(error))

    with pytest.raises(Exception, match=r"run r|taken over") as met:
        lost.regain()

    assert parts.stops.own_damage is met.value


def test_a_claim_names_who_makes_it():
    runtime, parts = config.runtime(create=True), Parts()
    journal = Journal(runtime.committer, runtime.clock, parts.state, None)
    made = Claim(runtime, parts.state, journal, parts.stops)

    ticket = made.ticket()

    assert made.worker == runtime.store.worker
    assert isinstance(ticket.entries[0][0], RunAdopted)
    assert not made.live  # it is not durable yet


@pytest.mark.parametrize("is_async", [False, True])
def test_a_session_is_freed_when_its_run_ends(is_async):
    """What only the garbage collector frees stays in memory for long, where many runs come and go."""
    import asyncio
    import gc

    from surefoot.engine.session.session import Session

    if is_async:

        @sf.step
        async def add(n: int) -> int:
            return n + 1

        @sf.workflow
        async def adding() -> int:
            return await add(await add(1))

        def run() -> int:
            return asyncio.run(adding.run("freed"))
    else:

        @sf.step
        def add(n: int) -> int:
            return n + 1

        @sf.workflow
        def adding() -> int:
            return add(add(1))

        def run() -> int:
            return adding.run("freed")

    gc.collect()
    gc.disable()
    try:
        assert 3 == run()
        assert not [one for one in gc.get_objects() if isinstance(one, Session) and one.run == "freed"]
    finally:
        gc.enable()
