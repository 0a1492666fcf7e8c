"""A worker in this process: what it takes up, what it lets go of, and what it never does."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from datetime import UTC, datetime

import msgspec
import pytest

import surefoot as sf
import surefoot.aio
from surefoot.core.entry import CancelRequested
from surefoot.engine.process import config, journal
from surefoot.engine.worker import queues, search
from surefoot.store.contract import Extend
from tests.working import ended, kinds, wait_until


@sf.step
def double(n):
    return 2 * n


@sf.workflow
def doubling(n):
    return double(n)


@sf.workflow
async def doubling_async(n):
    return await double_async(n)


@sf.step
async def double_async(n):
    await asyncio.sleep(0)
    return 2 * n


def test_queued_runs_of_either_colour_are_driven_to_their_end(store):
    for n in range(5):
        doubling.start(f"blocking-{n}", n)
        asyncio.run(doubling_async.start(f"async-{n}", n))

    with sf.Worker():
        results = [sf.get_run(f"{colour}-{n}").result(timeout=30) for n in range(5) for colour in ("blocking", "async")]

    assert results == [0, 0, 2, 2, 4, 4, 6, 6, 8, 8]


def test_run_that_is_queued_while_a_worker_waits_is_taken_up(store):
    """Nobody polls by hand: the worker is woken."""
    with sf.Worker():
        run = doubling.start("later", 21)
        assert run.result(timeout=30) == 42


def test_run_id_queued_twice_is_one_run(store):
    doubling.start("twice", 1)
    doubling.start("twice", 1)
    with pytest.raises(sf.RunConflict):
        doubling.start("twice", 2)

    with sf.Worker():
        sf.get_run("twice").result(timeout=30)

    assert kinds("twice").count("RunCreated") == 1


@sf.workflow
def napping():
    sf.sleep("0.2s")
    before = sf.now()
    sf.sleep("1h")
    return before


def test_worker_lets_go_of_a_run_that_sleeps_long(store):
    """It costs nobody anything until its time has come; its short nap was not worth the trouble."""
    napping.start("nap")

    with sf.Worker() as worker:
        wait_until(lambda: "RunSuspended" in kinds("nap"))
        wait_until(lambda: not worker.busy)

    assert sf.get_run("nap").status == "sleeping"
    assert not sf.get_run("nap").is_driven()
    assert kinds("nap").count("RunAdopted") == 1
    assert worker.ended == {"suspended": 1}


@sf.workflow
def short_sleep(seconds):
    sf.sleep(seconds)
    return "awake"


def test_sleeping_run_goes_on_when_its_time_has_come(store, monkeypatch):
    """Not before, and only once; the worker may have been away meanwhile."""
    monkeypatch.setattr("surefoot.engine.drive.takeover.UNWIND_SECONDS", 0.0)
    short_sleep.start("sleeper", 0.5)
    with sf.Worker():
        assert sf.get_run("sleeper").result(timeout=30) == "awake"

    entries = sf.get_run("sleeper").entries()
    told = {entry.kind: entry.at for entry in entries}
    assert (told["TimerFired"] - told["TimerSet"]).total_seconds() >= 0.5
    assert [entry.kind for entry in entries].count("RunSuspended") == 1


def test_run_with_a_delay_is_not_begun_before(store):
    run = doubling.using(delay="1h").start("in an hour", 1)
    soon = doubling.using(delay="0.3s").start("soon", 1)

    with sf.Worker():
        assert soon.result(timeout=30) == 2

    assert run.status == "queued"
    created, adopted = soon.entries()[:2]
    assert (adopted.at - created.at).total_seconds() >= 0.3


@sf.workflow
def approved():
    return bool(sf.approve("go on?"))


def test_answered_run_is_woken(store):
    """The question is answered by another process, and no person starts anything."""
    run = approved.start("ask")
    with sf.Worker() as worker:
        wait_until(lambda: run.status == "waiting")
        wait_until(lambda: not worker.busy)
        run.answer("approve#1", value=True, by="ann")
        assert run.result(timeout=30) is True


@sf.workflow
def told():
    return sf.wait_event("go")


def test_event_wakes_its_run(store):
    run = told.start("listener")
    with sf.Worker():
        wait_until(lambda: run.status == "waiting")
        sf.send_event("listener", "go", 7)
        assert run.result(timeout=30) == 7


@sf.workflow
def impatient():
    try:
        return sf.wait_event("never", timeout="0.3s")
    except TimeoutError:
        return "gave up"


def test_question_whose_time_is_over_wakes_its_run(store):
    run = impatient.start("impatient")
    with sf.Worker():
        wait_until(ended("impatient"))
    assert run.result() == "gave up"


_gate = threading.Event()
_entered = threading.Semaphore(0)


@sf.step
def hold(n):
    _entered.release()
    assert _gate.wait(30)
    return n


@sf.workflow
def holding(n):
    return hold(n) + double(n)


@pytest.fixture
def gate():
    _gate.clear()
    while _entered.acquire(blocking=False):
        pass
    yield _gate
    _gate.set()


def test_worker_drives_no_more_runs_at_once_than_it_was_told(store, gate):
    for n in range(4):
        holding.start(f"h{n}", n)
    with sf.Worker(concurrency=2) as worker:
        assert _entered.acquire(timeout=30)
        assert _entered.acquire(timeout=30)
        assert len(worker.busy) == 2
        assert not _entered.acquire(timeout=0.3)
        gate.set()
        wait_until(ended("h0", "h1", "h2", "h3"))


def test_queue_allows_no_more_runs_at_once_than_it_says(store, gate):
    """Over all workers; other queues are not held up."""
    sf.Queue("narrow", concurrency=1)
    for n in range(3):
        holding.using(queue="narrow").start(f"n{n}", n)
    free = doubling.start("free", 4)
    with sf.Worker(), sf.Worker():
        assert _entered.acquire(timeout=30)
        assert free.result(timeout=30) == 8
        assert not _entered.acquire(timeout=0.3)
        gate.set()
        wait_until(ended("n0", "n1", "n2"))


def test_worker_of_one_queue_leaves_the_others_alone(store):
    mail = doubling.using(queue="mail").start("mail", 1)
    other = doubling.using(queue="other").start("other", 1)
    with sf.Worker(queue="mail"):
        assert mail.result(timeout=30) == 2
    assert other.status == "queued"


def test_rate_of_a_queue_holds_over_time(store):
    sf.Queue("slow", rate="2/1s")
    runs = [doubling.using(queue="slow").start(f"s{n}", n) for n in range(5)]
    with sf.Worker():
        wait_until(ended(*(run.id for run in runs)))
    taken = sorted(run.entries()[1].at for run in runs)
    assert (taken[2] - taken[0]).total_seconds() > 0.9
    assert (taken[4] - taken[2]).total_seconds() > 0.9


def test_worker_that_is_stopped_hands_its_runs_back(store, gate):
    """The call in flight is recorded; nothing else begins; the next worker goes on at once."""
    run = holding.start("handed", 5)
    worker = sf.Worker()
    thread = threading.Thread(target=worker.run)
    thread.start()
    assert _entered.acquire(timeout=30)
    worker.stop()
    wait_until(lambda: all(session.stops.handed_back for session in worker.runtime.driven()))
    gate.set()
    thread.join(30)

    assert kinds("handed")[-2:] == ["StepDone", "RunReleased"]
    assert run.status == "queued"
    with sf.Worker():
        assert run.result(timeout=30) == 15
    assert kinds("handed").count("StepDone") == 2


@sf.workflow
def broken():
    raise sf.UsageError("the code is wrong")


def test_run_that_gets_nowhere_is_quarantined_and_released_by_a_person(store, monkeypatch):
    """A run that cannot go on must not keep workers busy for ever, nor be forgotten."""
    monkeypatch.setattr("surefoot.core.readiness.LONGEST_BACK_OFF", 0)
    run = broken.start("broken")
    with sf.Worker() as worker:
        wait_until(lambda: run.status == "stopped")
        wait_until(lambda: not worker.busy)
    assert isinstance(run.stop, sf.Quarantined)
    assert kinds("broken").count("RunAdopted") == 6
    assert "surefoot runs release broken" in str(run.stop)
    assert "UsageError: the code is wrong" in str(run.stop)
    with pytest.raises(sf.Quarantined):
        broken.run("broken")

    run.release(by="ann", note="mended")

    assert run.status == "queued"
    with pytest.raises(sf.UsageError, match="not quarantined"):
        run.release()


@sf.workflow
def family(n):
    return sum(sf.map(lambda i: sf.child(doubling, f"{sf.run_id()}/{i}", i), range(n), key=str))


def test_children_are_shared_out_and_their_results_come_back(store):
    """One place is enough: a parent that waits takes none."""
    family.start("family", 4)
    with sf.Worker(concurrency=1):
        assert sf.get_run("family").result(timeout=30) == 12
    assert sf.get_run("family/3").result() == 6
    assert kinds("family").count("StepDone") == 4


def test_child_of_an_embedded_run_is_driven_by_its_parent(store):
    assert family.run("alone", 3) == 6
    assert sf.get_run("alone/2").result() == 4


@sf.workflow
def failing_child():
    raise ValueError("no")


@sf.workflow
async def parent_of_failure():
    try:
        await surefoot.aio.child(failing_child, "bad")
    except ValueError as error:
        return f"it said {error}"


def test_failure_of_a_child_is_its_parents_to_handle(store):
    asyncio.run(parent_of_failure.start("parent"))
    with sf.Worker():
        assert sf.get_run("parent").result(timeout=30) == "it said no"


@sf.workflow
def failing_loudly():
    raise ValueError("no\x1b[31m\nway")


def test_what_fails_or_stops_in_a_worker_is_a_line_of_its_log(store, caplog):
    """Nobody waits for such a run: if the log says nothing, nobody ever looks."""
    caplog.set_level("DEBUG", "surefoot")
    failing_loudly.start("bad")
    told.start("listener")
    with sf.Worker() as worker:
        wait_until(lambda: worker.ended.keys() == {"failed", "stopped"})

    warned = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert r"worker: run bad failed: ValueError: no\x1b[31m\nway" in warned
    assert "worker: run listener stopped: WaitingForAnswer: wait_event#1: waiting for event 'go'." in warned
    assert "in failing_loudly" in caplog.text


def test_queue_that_nobody_knows_is_doubted(store, caplog):
    """`--queue mial` would wait for ever for what is put into `mail`."""
    sf.Queue("doubted-declared")
    doubling.using(queue="doubted-used").start("one", 1)
    with sf.Worker(queue=["doubted-declared", "doubted-used", "", "mial"]):
        wait_until(ended("one"))

    doubts = [line for line in caplog.messages if "nor is it declared" in line]
    assert len(doubts) == 1
    assert doubts[0].startswith("worker: no run is in queue 'mial'")


@sf.workflow
def parent_of_sleeper():
    return sf.child(napping, "asleep")


def test_cancelled_parent_cancels_its_child(store):
    run = parent_of_sleeper.start("cancelling")
    with sf.Worker():
        wait_until(lambda: run.status == "waiting")
        wait_until(lambda: sf.get_run("asleep").status == "sleeping")
        run.cancel(by="ann")
        wait_until(ended("cancelling", "asleep"))
    assert sf.get_run("asleep").status == "cancelled"


@sf.workflow
def mixed():
    slept, answer = sf.gather(lambda: sf.sleep("0.4s"), lambda: bool(sf.approve("well?")))
    return slept, answer


def test_branch_that_sleeps_goes_on_while_another_waits_for_a_person(store, monkeypatch):
    monkeypatch.setattr("surefoot.engine.drive.takeover.UNWIND_SECONDS", 0.0)
    run = mixed.start("mixed")
    with sf.Worker():
        wait_until(lambda: "TimerFired" in kinds("mixed"))
        wait_until(lambda: run.status == "waiting")
        run.answer("gather#1.1/approve#1", value=True)
        assert run.result(timeout=30) == (None, True)


def test_worker_that_knows_no_workflow_says_so(store):
    with pytest.raises(sf.UsageError, match="not a workflow"):
        sf.Worker(workflows=[double])
    with pytest.raises(sf.UsageError, match="knows no workflow"):
        sf.Worker(workflows=[]).run()


@pytest.mark.parametrize("bad", [0, -1, 1.5, "2", True])
def test_concurrency_must_be_a_whole_number(store, bad):
    with pytest.raises(sf.UsageError, match="whole number"):
        sf.Worker(concurrency=bad)


@pytest.mark.parametrize("rate", ["", "10", "0/s", "10/fortnight", "x/s", 10])
def test_rate_must_be_understood(rate):
    with pytest.raises(sf.UsageError, match="how many in which time"):
        sf.Queue("q", rate=rate)


def test_time_of_entries_is_the_stores(store):
    run = doubling.start("clock", 1)
    assert abs((run.entries()[0].at - datetime.now(UTC)).total_seconds()) < 3600


@sf.workflow
def beside_a_child():
    return sf.gather(lambda: (sf.sleep("0.3s"), double(1)), lambda: sf.child(told, "beside"))


def test_timer_beside_a_child_is_not_put_off(store, monkeypatch):
    """The parent looks for its child every few minutes; its other branches have times of their own."""
    monkeypatch.setattr("surefoot.engine.drive.takeover.UNWIND_SECONDS", 0.0)
    run = beside_a_child.start("beside-parent")
    with sf.Worker():
        wait_until(lambda: "StepDone" in kinds("beside-parent"))
        wait_until(lambda: sf.get_run("beside").status == "waiting")
        sf.send_event("beside", "go", 5)
        assert run.result(timeout=30) == [(None, 2), 5]


@sf.effect
def book():
    return "booked"


@book.undo
def cancel_booking(result):
    raise ConnectionError("nobody knows")


@sf.workflow
def trip():
    with sf.saga():
        book()
        sf.wait_event("never")


def test_cancelled_run_that_needs_a_person_is_not_taken_up_again_and_again(store):
    """Its undo is in doubt: taking it up once more changes nothing, and a thousand times neither."""
    run = trip.start("trip")
    with sf.Worker() as worker:
        wait_until(lambda: run.status == "waiting")
        with contextlib.suppress(sf.InDoubt):  # either of the two may be the one that undoes
            run.cancel(by="ann")
        wait_until(lambda: isinstance(run.stop, sf.InDoubt))
        wait_until(lambda: not worker.busy)
        doubling.start("meanwhile", 1)
        wait_until(ended("meanwhile"))
        wait_until(lambda: not worker.busy)
    assert kinds("trip").count("RunAdopted") <= 3


_sent: list[str] = []


@sf.effect(on_crash="retry", backoff=sf.Backoff(first=0.3, factor=1, jitter=False))
def unsure():
    _sent.append(sf.key())
    if len(_sent) == 1:
        raise TimeoutError("no answer")
    return "sent"


@sf.workflow
def sending():
    return unsure()


def test_effect_in_doubt_is_tried_again_once_its_back_off_is_over(store, monkeypatch):
    """The worker lets go of the run meanwhile; the wait is on record and does not begin anew."""
    monkeypatch.setattr("surefoot.engine.drive.takeover.UNWIND_SECONDS", 0.0)
    _sent.clear()
    run = sending.start("sending")
    with sf.Worker():
        assert run.result(timeout=30) == "sent"
    assert len(_sent) == 2
    assert len(set(_sent)) == 1
    assert kinds("sending").count("RunSuspended") == 1


_looked_for: list[float] = []


@sf.effect(on_crash="check", retries=2, backoff=sf.Backoff(first=1, factor=1, jitter=False))
def looked_for():
    _looked_for.append(time.monotonic())
    if len(_looked_for) == 1:
        raise TimeoutError("no answer")
    return "sent"


@looked_for.check
def was_it_sent():
    return sf.not_happened()


@sf.workflow
def looking():
    return looked_for()


def test_back_off_after_a_check_is_on_record_and_not_cut_short(store, monkeypatch):
    """It did not happen, so it is tried again; not at once, whoever takes the run up meanwhile."""
    monkeypatch.setattr("surefoot.engine.drive.takeover.UNWIND_SECONDS", 0.0)
    _looked_for.clear()
    looking.start("looking")
    with sf.Worker():
        wait_until(lambda: "RunSuspended" in kinds("looking"))

    assert looking.run("looking") == "sent"

    first, second = _looked_for
    assert second - first >= 1.0
    assert kinds("looking")[-8:-1].count("EffectRaised") == 1


_sought_in_vain: list[int] = []


@sf.effect(on_crash="check", retries=2, backoff=sf.Backoff(first=0.1, factor=1, jitter=False))
def sought_in_vain():
    _sought_in_vain.append(sf.attempt())
    raise TimeoutError("no answer")


@sought_in_vain.check
def was_it_not():
    return sf.not_happened()


@sf.workflow
def seeking():
    return sought_in_vain()


def test_each_failure_counts_once_however_often_the_run_is_let_go_of(store, monkeypatch):
    """It is on record as doubtful, then as not happened, then as failed: that is one failure, not two."""
    monkeypatch.setattr("surefoot.engine.drive.takeover.UNWIND_SECONDS", 0.0)
    _sought_in_vain.clear()
    seeking.start("seeking")
    with sf.Worker():
        wait_until(ended("seeking"))

    assert _sought_in_vain == [1, 2, 3]
    assert kinds("seeking").count("RunSuspended") == 2


_undone: list[float] = []


@sf.effect
def rent():
    return "rented"


@rent.undo
def give_back(result):
    _undone.append(1.0)
    if len(_undone) == 1:
        raise sf.RetryAfter(0.5)


@sf.workflow
def renting():
    with sf.saga():
        rent()
        sf.wait_event("never")


def test_cancelled_run_waits_out_the_back_off_of_its_undo(store, monkeypatch):
    """It lets go of the run meanwhile, like any other wait, and is not taken up at full speed."""
    monkeypatch.setattr("surefoot.engine.drive.takeover.UNWIND_SECONDS", 0.0)
    _undone.clear()
    run = renting.start("renting")
    worker = sf.Worker()
    with worker:
        wait_until(lambda: run.status == "waiting")
        wait_until(lambda: not worker.busy)
        journal.visit(  # as the command line does where the code is not at hand
            worker.runtime.store, worker.runtime.clock, "renting", lambda _: CancelRequested("ann")
        )
        worker.runtime.store.nudge()
        wait_until(ended("renting"))
    assert len(_undone) == 2
    assert kinds("renting").count("RunAdopted") <= 4


@sf.effect(on_crash="fail")
async def leaving():
    raise SystemExit(3)


@sf.workflow
async def left():
    await leaving()


def test_async_effect_that_ends_the_process_ends_only_its_run(store):
    """The worker's loop serves all async runs; one that calls sys.exit() must not take it along."""
    asyncio.run(left.start("left"))
    with sf.Worker():
        wait_until(ended("left"))
        asyncio.run(doubling_async.start("after", 4))
        assert sf.get_run("after").result(timeout=30) == 8


def test_rewound_parent_goes_on_at_once(store):
    run = parent_of_sleeper.start("rewound")
    with sf.Worker() as worker:
        wait_until(lambda: run.status == "waiting")
        wait_until(lambda: not worker.busy)
    run.rewind("child#1", by="ann")
    with sf.Worker():
        wait_until(lambda: kinds("rewound").count("RunSuspended") == 2)
    assert (run.status, kinds("rewound").count("RunRewound")) == ("waiting", 1)


def test_run_that_is_not_ready_after_all_does_not_count_as_done(store):
    """The index is a cache: a line that is wrong costs a look, and is put right; the numbers stay true."""
    run = doubling.start("wrong", 1)
    assert doubling.run("wrong", 1) == 2
    runtime = config.runtime(create=False)
    state, head = journal.load(runtime.store, "wrong")
    ready = msgspec.structs.replace(journal.index_row(state), status="queued", wake=1)
    runtime.store.append([Extend("wrong", head, [], ready)])

    with sf.Worker() as worker:
        wait_until(lambda: worker.ended)

    assert worker.ended == {"passed by": 1}
    assert run.result() == 2
    assert kinds("wrong").count("RunAdopted") == 1


def test_damage_is_told_to_nobody_but_its_own_run(store, monkeypatch):
    """Runs are read together; another run must not be stopped, nor step back, for what is wrong with one of them."""
    for n in range(3):
        doubling.start(f"d{n}", n)
    with sf.Worker() as worker:
        monkeypatch.setattr(worker.runtime.store, "read_all", _refusing(sf.JournalCorrupt("one of them is damaged")))
        assert [sf.get_run(f"d{n}").result(timeout=30) for n in range(3)] == [0, 2, 4]


def test_store_that_is_away_is_waited_for_once(store, monkeypatch):
    """Each wait for a server takes half a minute; not so for each of two hundred runs, one after the other."""
    for n in range(3):
        doubling.start(f"a{n}", n)
    worker = sf.Worker()
    refusing = _refusing(sf.StoreUnavailable("away"))
    monkeypatch.setattr(worker.runtime.store, "read_all", refusing)
    with worker:
        wait_until(lambda: worker.ended.get("trouble", 0) >= 3)

    assert refusing.asked[0] == ["a0", "a1", "a2"]
    assert worker.ended == {"trouble": sum(map(len, refusing.asked))}


def _refusing(error):
    def read_all(runs):
        read_all.asked.append(sorted(runs))
        raise error

    read_all.asked = []
    return read_all


def test_worker_that_has_seen_everything_looks_no_more_because_a_run_ended(store, gate, monkeypatch):
    """Two hundred runs that end would be two hundred searches, each as dear as several steps."""
    monkeypatch.setattr(search, "POLL_SECONDS", 600.0)
    monkeypatch.setattr(queues, "_declared", {})  # the end of a run may let in another of a queue with limits
    for n in range(4):
        holding.start(f"s{n}", n)
    with sf.Worker() as worker:
        looks, reserve = [], worker.runtime.store.reserve
        monkeypatch.setattr(worker.runtime.store, "reserve", lambda wanted: looks.append(wanted) or reserve(wanted))
        for _ in range(4):
            assert _entered.acquire(timeout=30)
        wait_until(lambda: not worker._server._more)
        doubling.start("last", 1).result(timeout=30)
        wait_until(lambda: not worker._server._more)  # it may look once more for what came with the last one
        before = len(looks)
        gate.set()
        wait_until(ended("s0", "s1", "s2", "s3"))

    assert len(looks) <= before + 1
