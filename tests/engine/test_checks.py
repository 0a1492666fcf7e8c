"""An effect is in doubt: its check looks at the world, and only what it proves is believed."""

from __future__ import annotations

import asyncio
import contextlib
import threading

import pytest
from msgspec import Raw

import surefoot as sf
from surefoot import aio
from surefoot.core.entry import EffectSettled
from surefoot.core.timer import Moment
from surefoot.engine.process import config, journal
from surefoot.engine.process.clock import SystemClock
from tests.ledger import ledger_process
from tests.stories import MOMENTS, Story, tell

FAST = sf.Backoff(first=0, jitter=False)


class SetClock(SystemClock):
    """The clocks of this machine, moved by hand; naps take no time."""

    def __init__(self) -> None:
        super().__init__()
        self.wall = self.boot = 0.0

    def read(self) -> Moment:
        real = super().read()
        return Moment(real.wall + round(self.wall * 1e6), real.boot, real.boot_at + round(self.boot * 1e6))

    def now(self) -> int:
        return super().now() + round(self.wall * 1e6)

    def nap(self, left: float) -> float:
        self.forward(left)
        return 0.0

    def forward(self, seconds: float) -> None:
        self.wall += seconds
        self.boot += seconds


@pytest.fixture
def clock():
    clock = SetClock()
    config.runtime(create=True).clock = clock
    return clock


class World:
    """What was done, and how the next call ends: `lost` after it was done, `down` before."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.keys: list[str] = []
        self.looks = 0
        self.mood: list[str] = []

    def do(self, what: object) -> str:
        mood = self.mood.pop(0) if self.mood else ""
        self.keys.append(sf.key())
        if mood == "down":
            raise ConnectionError("refused")
        self.done.append(str(what))
        if mood == "lost":
            raise ConnectionError("lost")
        if mood == "killed":
            raise KeyboardInterrupt
        return f"did {what}"

    def look(self, what: object):
        self.looks += 1
        return sf.happened(f"did {what}") if str(what) in self.done else sf.not_happened()


@pytest.fixture
def world():
    return World()


def made(world, **options):
    """An effect with a check, in a workflow."""

    @sf.effect(**options)
    def pay(n: int) -> str:
        return world.do(n)

    @pay.check
    def _(n):
        return world.look(n)

    @sf.workflow
    def wf() -> str:
        return pay(1)

    return wf


def entries(run_id="r"):
    return [entry.kind for entry in sf.get_run(run_id).entries()]


# -- the three stories, with a real SIGKILL and a ledger process ------------------------------------------


@pytest.fixture
def story(tmp_path):
    with ledger_process() as port:
        yield lambda *told: Story(tmp_path, port, *told)


@pytest.mark.processes
@pytest.mark.parametrize("policy", ["ask", "retry", "check", "fail"])
@pytest.mark.parametrize(("colour", "moment"), [*zip(("async", "blocking") * 2, MOMENTS, strict=True)])
def test_crash_around_an_effect_ends_as_promised(story, policy, colour, moment):
    """C-03 to C-06. `make proof` tells every story in both colours, and kills the recovery too."""
    tell(story(colour, policy), policy, moment)


@pytest.mark.processes
@pytest.mark.parametrize("policy", ["retry", "ask"])
def test_half_done_is_undone_and_done_again_also_if_the_undo_is_killed(story, policy):
    """C-04, C-09: the repair is an effect like any other."""
    told = story("blocking", "check", policy)
    told.killed("half")
    told.killed("before undo")
    if policy == "ask":
        assert told.stops() == "charge#2.repair1"
        told.run.settle("charge#2.repair1", not_happened=True)

    assert told.ends() == ["ch_0", "ch_1", "ch_2"]
    told.require_kept(attempts=3, undos=1)


# -- what a check says --------------------------------------------------------------------------------------


def test_effect_found_by_its_check_is_not_repeated(world):
    """The connection broke after the money was paid."""
    world.mood = ["lost"]

    assert made(world).run("r") == "did 1"
    assert world.done == ["1"]
    assert [call.learned_by for call in sf.get_run("r").steps()] == ["check"]


def test_effect_found_missing_is_not_tried_again_unless_retries_say_so(world):
    """Without retries= the failure is the outcome, and it is the original one."""
    world.mood = ["down"]

    for _ in range(2):
        with pytest.raises(ConnectionError, match="refused"):
            made(world).run("r")
    assert (world.done, world.looks) == ([], 1)


def test_effect_found_missing_is_tried_again_as_often_as_allowed_with_the_same_key(world):
    world.mood = ["down", "down", "lost"]

    assert made(world, on_crash="check", retries=2, backoff=FAST).run("r") == "did 1"
    assert (world.done, world.looks, len(set(world.keys))) == (["1"], 3, 1)


def test_when_no_try_is_left_the_original_exception_is_raised(world):
    world.mood = ["down", "down", "down"]

    with pytest.raises(ConnectionError, match="refused"):
        made(world, on_crash="check", retries=2, backoff=FAST).run("r")
    assert (len(world.keys), world.done, world.looks) == (3, [], 3)


def test_retries_count_over_a_crash(world):
    """A resume does not give a failing effect all its tries anew."""
    world.mood = ["down", "killed"]
    wf = made(world, on_crash="check", retries=1, backoff=FAST)
    with pytest.raises(KeyboardInterrupt):
        wf.run("r")
    world.done.clear()
    world.mood = ["down"]

    with pytest.raises(ConnectionError):
        wf.run("r")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (sf.unknown("the bank is closed"), "could not tell: the bank is closed"),
        (sf.partial("half of it"), "happened in part: half of it"),
        (True, "returned bool"),
        (None, "returned NoneType"),
        (sf.happened, "returned function"),
        (sf.happened(object()), "cannot be stored"),
        (RuntimeError("no route"), "raised RuntimeError: no route"),
    ],
)
def test_a_check_that_cannot_tell_is_a_stop_that_a_cron_job_may_meet_again(world, said, told):
    """Nothing is executed, and the journal does not grow from looking."""

    @sf.effect
    def pay() -> str:
        return world.do(1)

    @pay.check
    def _():
        if isinstance(said, Exception):
            raise said
        return said

    @sf.workflow
    def wf() -> str:
        return pay()

    world.mood = ["lost"]
    with pytest.raises(sf.InDoubt, match=told):
        wf.run("r")
    before = entries()
    for _ in range(3):
        with pytest.raises(sf.InDoubt, match=told):
            wf.run("r")
    assert entries() == before
    assert world.done == ["1"]

    sf.get_run("r").settle("pay#1", happened="seen", by="ann", note="rang the bank")
    assert wf.run("r") == "seen"
    assert [call.learned_by for call in sf.get_run("r").steps()] == ["person ann"]


def test_a_settled_answer_is_used_once(world):
    """`not happened` was said of the first attempt; the second one may be in doubt again."""

    @sf.effect
    def pay() -> str:
        return world.do(1)

    @sf.workflow
    def wf() -> str:
        return pay()

    world.mood = ["lost", "lost"]
    with pytest.raises(sf.InDoubt):
        wf.run("r")
    sf.get_run("r").settle("pay#1", not_happened=True)
    with pytest.raises(sf.InDoubt):
        wf.run("r")
    with pytest.raises(sf.InDoubt):
        wf.run("r")
    assert world.done == ["1", "1"]
    sf.get_run("r").settle("pay#1", happened="once")
    with pytest.raises(sf.UsageError, match="not in doubt"):
        sf.get_run("r").settle("pay#1", happened="twice")
    assert wf.run("r") == "once"


def test_a_check_sees_the_key_and_the_arguments_however_they_were_passed(world):
    seen = []

    @sf.effect
    def pay(n: int, to: str = "bob", *, currency: str = "EUR") -> str:
        return world.do(n)

    @pay.check
    def _(number, who, *, currency):
        seen.append((sf.key(), number, who, currency))
        return sf.happened("found")

    @sf.workflow
    def wf() -> str:
        return pay(to="ann", n=3)

    world.mood = ["lost"]
    assert wf.run("r") == "found"
    assert seen == [(world.keys[0], 3, "ann", "EUR")]


def test_a_check_that_changes_the_world_is_refused(world):
    """It looks; whatever it did would be on no record."""

    @sf.effect
    def mail() -> None:
        world.done.append("mail")

    for number, verb in enumerate([mail, sf.uuid4, lambda: sf.sleep(1), lambda: sf.approve("?"), sf.verify]):

        @sf.effect(name=f"pay{number}")
        def pay() -> str:
            return world.do(1)

        @pay.check
        def _(verb=verb):
            with contextlib.suppress(sf.UsageError):
                verb()
            return sf.happened("nonsense")

        @sf.workflow(name=f"wf{number}")
        def wf(pay=pay) -> str:
            return pay()

        world.mood = ["lost"]
        with pytest.raises(sf.UsageError, match=f"inside check pay{number}#1"):
            wf.run(f"r{number}")
        assert sf.get_run(f"r{number}").status == "queued"
    assert "mail" not in world.done


# -- refused when decorated ---------------------------------------------------------------------------------


def _no(n):
    return sf.not_happened()


async def _async_check(n):
    return sf.not_happened()


@pytest.mark.parametrize(
    "check",
    [lambda: 0, lambda n, m: (n, m), lambda *, n: n, _async_check, "no function"],
)
def test_a_check_with_the_wrong_signature_or_colour_is_refused_when_decorated(check):
    """Not at night, when it is needed."""

    @sf.effect
    def pay(n: int) -> None: ...

    with pytest.raises(sf.UsageError, match="effect pay"):
        pay.check(check)


def test_there_is_one_check_and_it_has_to_be_there(world):
    @sf.effect
    def pay(n: int) -> None: ...

    pay.check(_no)
    with pytest.raises(sf.UsageError, match="has a check already"):
        pay.check(_no)

    @sf.effect(on_crash="check")
    def lost() -> str:
        return world.do(1)

    @sf.workflow
    def wf() -> str:
        return lost()

    world.mood = ["lost"]
    with pytest.raises(sf.UsageError, match=r"decorate one with @lost.check"):
        wf.run("r")


@pytest.mark.parametrize("undo", [lambda: 0, lambda n: n, lambda n, result, more: (n, result, more), "no function"])
def test_an_undo_with_the_wrong_signature_is_refused_when_decorated(undo):
    @sf.effect
    def pay(n: int) -> None: ...

    with pytest.raises(sf.UsageError, match="effect pay"):
        pay.undo(undo)


# -- half done ------------------------------------------------------------------------------------------------


def test_a_part_is_undone_with_the_arguments_however_they_were_passed(world):
    log = []

    @sf.effect
    def copy(source: str, *, to: str) -> str:
        log.append(f"copy {source} {to}")
        if len(log) == 1:
            raise ConnectionError
        return to

    @copy.check
    def _(source, *, to):
        return sf.partial("one file of two")

    @copy.undo
    def _(source, result, *, to):
        log.append(f"remove {source} {to} {result}")

    @sf.workflow
    def wf() -> str:
        return copy(source="a", to="b")

    assert wf.run("r") == "b"
    assert log == ["copy a b", "remove a b None", "copy a b"]


def test_an_undo_of_a_part_that_fails_leaves_a_run_that_can_be_settled(world):
    fails = [True]

    @sf.effect
    def pay() -> str:
        return world.do(1)

    @pay.check
    def _():
        return sf.partial("half") if len(world.done) == 1 else sf.happened("did 1")

    @pay.undo
    def _(result):
        if fails[0]:
            raise RuntimeError("cannot")
        world.done.clear()

    @sf.workflow
    def wf() -> str:
        return pay()

    world.mood = ["lost"]
    with pytest.raises(sf.InDoubt) as stop:
        wf.run("r")
    assert stop.value.address == "pay#1.repair1"
    fails[0] = False
    sf.get_run("r").settle("pay#1.repair1", not_happened=True)
    assert wf.run("r") == "did 1"
    assert world.done == ["1"]


# -- time -----------------------------------------------------------------------------------------------------


def test_while_a_timed_out_call_is_still_running_nobody_checks_in_this_process(world):
    """It may do its work at any moment: what a check sees now proves nothing, in this run or in the next."""
    release, ended = threading.Event(), threading.Event()

    @sf.effect(timeout=0.05)
    def pay() -> None:
        release.wait(30)
        world.done.append("1")
        ended.set()

    @pay.check
    def _():
        return world.look(1)

    @sf.workflow
    def wf() -> str:
        return pay()

    for _ in range(2):
        with pytest.raises(sf.InDoubt, match="still running in this process"):
            wf.run("r")
    assert world.looks == 0
    release.set()
    assert ended.wait(30)
    for thread in threading.enumerate():
        if thread.name == "surefoot-timed":
            thread.join(30)

    assert wf.run("r") == "did 1"
    assert (world.done, world.looks) == (["1"], 1)


def test_while_a_timed_out_task_is_still_running_nobody_checks(world, monkeypatch):
    """The async twin: a task that does not let itself be cancelled."""
    monkeypatch.setattr("surefoot.engine.drive.acts_async.LAST_SECONDS", 0.01)

    @aio.effect(timeout=0.01)
    async def pay() -> None:
        for _ in range(2):
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        world.done.append("1")

    @pay.check
    async def _():
        return world.look(1)

    @aio.workflow
    async def wf() -> str:
        return await pay()

    async def main():
        with pytest.raises(aio.InDoubt, match="still running in this process"):
            await wf.run("r")
        with pytest.raises(aio.InDoubt, match="still running in this process"):
            await wf.run("r")
        assert world.looks == 0
        release.set()
        await asyncio.sleep(0.05)
        return await wf.run("r")

    release = asyncio.Event()
    assert asyncio.run(main()) == "did 1"
    assert world.done == ["1"]


def test_not_happened_is_believed_only_after_the_deadline(world, clock, caplog):
    """The call was given an hour. It may still be on its way, in a process that we know nothing of.

    The check looks at once, since "happened" would be believed; and again when the hour is over.
    """
    looked_at = []

    @sf.effect(timeout="1h")
    def pay() -> str:
        return world.do(1)

    @pay.check
    def _():
        looked_at.append(clock.boot)
        return world.look(1)

    @sf.workflow
    def wf() -> str:
        return pay()

    world.mood = ["killed"]
    with pytest.raises(KeyboardInterrupt):
        wf.run("r")
    world.done.clear()

    assert wf.run("r") == "did 1"
    assert looked_at[0] < 3599
    assert looked_at[1] >= 3599
    assert len(looked_at) == 2
    assert "waiting for 3600 s: pay#1: its check does not find it, but it may still be on its way" in caplog.text


def test_a_check_that_cannot_tell_leaves_no_trace_also_if_the_call_had_a_deadline(world, clock):
    @sf.effect(timeout="1h")
    def pay() -> str:
        return world.do(1)

    @pay.check
    def _():
        return sf.unknown("closed")

    @sf.workflow
    def wf() -> str:
        return pay()

    world.mood = ["killed"]
    with pytest.raises(KeyboardInterrupt):
        wf.run("r")
    with pytest.raises(sf.InDoubt):
        wf.run("r")
    before = entries()
    with pytest.raises(sf.InDoubt):
        wf.run("r")
    assert entries() == before


def keyed(world, **options):
    @sf.effect(on_crash="retry", key_ttl="24h", retries=5, backoff=FAST, **options)
    def pay() -> str:
        return world.do(1)

    @sf.workflow
    def wf() -> str:
        return pay()

    return pay, wf


def cut_off(wf, world, run_id="r"):
    world.mood = ["killed"]
    with pytest.raises(KeyboardInterrupt):
        wf.run(run_id)


def test_a_fresh_key_is_retried_and_an_old_one_is_asked_about(world, clock):
    """The other side forgets keys after a day: then a retry would pay twice."""
    _, wf = keyed(world)
    cut_off(wf, world)
    clock.forward(23 * 3600)
    cut_off(wf, world)
    clock.forward(2 * 3600)

    with pytest.raises(sf.InDoubt, match="its key is older than key_ttl"):
        wf.run("r")
    before = entries()
    with pytest.raises(sf.InDoubt):
        wf.run("r")
    assert (len(world.done), entries()) == (2, before)
    sf.get_run("r").settle("pay#1", happened="yes")
    assert wf.run("r") == "yes"


def test_an_old_key_is_looked_up_if_there_is_a_check(world, clock):
    pay, wf = keyed(world)
    pay.check(lambda: world.look(1))
    cut_off(wf, world)
    clock.forward(25 * 3600)

    assert wf.run("r") == "did 1"
    assert (len(world.done), world.looks) == (1, 1)


def test_a_key_that_grows_too_old_while_it_is_retried_is_asked_about(world, clock):
    """Judged before every attempt, not only when the call begins: the back-off may be long."""

    @sf.effect(on_crash="retry", key_ttl="24h", retries=5, backoff=sf.Backoff("10h", 1, "10h", jitter=False))
    def pay() -> str:
        return world.do(1)

    @sf.workflow
    def wf() -> str:
        return pay()

    world.mood = ["lost"] * 5
    with pytest.raises(sf.InDoubt, match="its key is older than key_ttl"):
        wf.run("r")
    assert len(world.done) == 3, "after 0, 10 and 20 hours; 30 is too late"
    before = entries()
    with pytest.raises(sf.InDoubt, match="its key is older than key_ttl"):
        wf.run("r")
    assert entries() == before


@pytest.mark.parametrize("crash", [False, True])
def test_a_key_that_grows_too_old_while_the_other_side_is_busy_is_asked_about(world, clock, crash):
    """The second attempt did nothing, but the first one may have: in doubt, and a person can settle it."""
    calls = []

    @sf.effect(on_crash="retry", key_ttl="24h", backoff=FAST)
    def pay() -> str:
        calls.append(sf.attempt())
        if len(calls) == 1:
            raise ConnectionError("lost")
        raise sf.RetryAfter(25 * 3600, "busy")

    @sf.workflow
    def wf() -> str:
        return pay()

    if crash:
        nap = clock.nap
        clock.nap = lambda left: (_ for _ in ()).throw(KeyboardInterrupt) if left > 3600 else nap(left)
        with pytest.raises(KeyboardInterrupt):
            wf.run("r")
        clock.nap = nap
    with pytest.raises(
        sf.InDoubt, match=r"did nothing \(.*busy\), but an earlier one may have happened \(its key is older"
    ):
        wf.run("r")
    assert calls == [1, 2]
    sf.get_run("r").settle("pay#1", happened="by hand")
    assert wf.run("r") == "by hand"


def test_a_key_that_was_certainly_not_used_does_not_grow_old(world, clock):
    """Nothing was sent under it, so nothing can be done twice."""
    calls = []

    @sf.effect(on_crash="retry", key_ttl="1h")
    def pay() -> str:
        calls.append(1)
        if len(calls) == 1:
            raise sf.RetryAfter(2 * 3600, "busy")
        return "paid"

    @sf.workflow
    def wf() -> str:
        return pay()

    assert wf.run("r") == "paid"


def test_a_check_decides_about_a_key_that_grew_too_old_while_it_was_retried(world, clock):
    @sf.effect(on_crash="retry", key_ttl="1h", retries=3, backoff=sf.Backoff("2h", 1, "2h", jitter=False))
    def pay() -> str:
        return world.do(1)

    pay.check(lambda: world.look(1))

    @sf.workflow
    def wf() -> str:
        return pay()

    world.mood = ["down", "lost"]
    assert wf.run("r") == "did 1"
    assert (len(world.keys), world.looks) == (2, 2)


@pytest.mark.parametrize("days", [-10, 10])
def test_a_wrong_wall_clock_makes_no_key_old_and_none_new(world, clock, days):
    """Within one boot the boot clock decides."""
    _, wf = keyed(world)
    cut_off(wf, world)
    clock.wall += days * 86400

    assert wf.run("r") == "did 1"
    assert len(world.done) == 2

    cut_off(wf, world, "r2")
    clock.boot += 25 * 3600
    with pytest.raises(sf.InDoubt):
        wf.run("r2")


def test_an_effect_tried_as_often_as_allowed_is_a_stop_that_a_cron_job_may_meet_again(world):
    @sf.effect(on_crash="retry", retries=1, backoff=FAST)
    def pay() -> str:
        return world.do(1)

    @sf.workflow
    def wf() -> str:
        return pay()

    world.mood = ["lost", "lost"]
    with pytest.raises(sf.InDoubt, match="as often as allowed"):
        wf.run("r")
    before = entries()
    with pytest.raises(sf.InDoubt):
        wf.run("r")
    assert (entries(), len(world.done)) == (before, 2)


# -- people and checks at the same time -------------------------------------------------------------------------


@pytest.mark.parametrize(("happened", "wanted"), [(True, "by ann"), (False, "did 1")])
def test_a_person_who_settles_while_the_check_looks_is_right(world, happened, wanted):
    """The first durable answer counts, and both the process and every replay go by it."""

    @sf.effect
    def pay() -> str:
        return world.do(1)

    @pay.check
    def _():
        if len(world.done) == 1:
            runtime = config.runtime(create=False)
            said = EffectSettled("pay#1", happened, 1, Raw(b'"by ann"' if happened else b"null"), by="ann")
            journal.visit(runtime.store, runtime.clock, "r", lambda _: said)
        return sf.happened("by check")

    @sf.workflow
    def wf() -> str:
        return pay()

    cut_off(wf, world)

    assert wf.run("r") == wanted
    assert [call.result for call in sf.get_run("r").steps()] == [f'"{wanted}"']
    assert len(world.done) == (1 if happened else 2)


# -- async ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("colour", ["async", "blocking"])
def test_async_effects_have_checks_and_undos_of_either_colour(world, colour):
    log = []

    @aio.effect
    async def pay(n: int) -> str:
        return world.do(n)

    if colour == "async":

        @pay.check
        async def _(n):
            return sf.partial("half") if not log else sf.happened("found")

        @pay.undo
        async def _(n, result):
            log.append(n)
    else:

        @pay.check
        def _(n):
            return sf.partial("half") if not log else sf.happened("found")

        @pay.undo
        def _(n, result):
            log.append(n)

    @aio.workflow
    async def wf() -> str:
        return await pay(7)

    world.mood = ["lost", "lost"]
    assert asyncio.run(wf.run("r")) == "found"
    assert (log, world.done) == ([7], ["7", "7"])


def test_a_later_attempt_that_did_nothing_does_not_undo_an_earlier_doubt():
    """Attempt 1 charged, and the line broke; attempt 2 was refused. To call that failed would lose the charge."""
    charged = []

    @sf.effect(on_crash="retry", backoff=sf.Backoff(first="1ms"))
    def pay() -> None:
        if not charged:
            charged.append(1)
            raise TimeoutError
        raise sf.NotDone("connection refused")

    @sf.workflow
    def wf() -> str:
        try:
            pay()
        except sf.SurefootError:
            return "plan B"
        return "paid"

    with pytest.raises(sf.InDoubt, match="an earlier one may have happened"):
        wf.run("r")
    sf.get_run("r").settle("pay#1", happened=None)
    assert wf.run("r") == "paid"
