"""A driver told by hand what to drive: no worker, no search. What comes of it is a value."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager

import apsw
import pytest

import surefoot as sf
from surefoot.core.timer import MICROS
from surefoot.engine.process import config
from surefoot.engine.worker.driver import Driver
from surefoot.store.open import close_all
from tests.working import kinds, wait_until

SOON = 30.0


@contextmanager
def driving():
    driver = Driver()
    try:
        yield driver
    finally:
        driver.close(SOON)


@pytest.fixture
def driver(store):
    with driving() as found:
        yield found


def now():
    return config.runtime(create=False).clock.now()


def drive(driver, run):
    return driver.drive(run).result(SOON)


@sf.step
def double(n):
    return 2 * n


@sf.workflow
def doubling(n):
    return double(n)


@sf.workflow
async def doubling_async(n):
    await asyncio.sleep(0)
    return double(n)


def test_run_is_driven_to_its_end_whatever_its_colour(driver):
    doubling.start("blocking", 4)
    asyncio.run(doubling_async.start("async", 5))

    found = [one.result(SOON) for one in driver.drive_all(["blocking", "async"])]

    assert [(one.run, one.how, one.stand.status, one.stand.wake) for one in found] == [
        ("blocking", "done", "done", None),
        ("async", "done", "done", None),
    ]
    assert [sf.get_run(run).result() for run in ("blocking", "async")] == [8, 10]
    assert driver.ended == {"done": 2}
    assert driver.busy == ()


@sf.workflow
def failing():
    raise ValueError("no")


def test_failure_of_a_run_is_no_failure_of_its_drive(driver):
    failing.start("bad")

    found = drive(driver, "bad")

    assert (found.how, found.stand.status, found.stand.wake) == ("failed", "failed", None)
    assert str(found.error) == "no"


@sf.workflow
def approved():
    return bool(sf.approve("go on?"))


def test_stop_names_what_is_needed_and_no_moment(driver):
    """Nothing comes of driving it again before somebody has answered."""
    approved.start("asking")

    found = drive(driver, "asking")

    assert (found.how, found.stand.status, found.stand.reason) == ("stopped", "waiting", "WaitingForAnswer")
    assert (found.stand.need.kind, found.stand.need.address) == ("question", "approve#1")
    assert found.stand.wake is None
    sf.get_run("asking").answer("approve#1", value=True, by="ann")
    assert drive(driver, "asking").how == "done"


@sf.workflow
def napping():
    sf.sleep("1h")


@sf.workflow
def patient():
    return sf.wait_event("go", timeout="2h")


@pytest.mark.parametrize(("workflow", "how", "hours"), [(napping, "suspended", 1), (patient, "stopped", 2)])
def test_wait_names_its_moment(driver, workflow, how, hours):
    """Whoever sets a timer for that moment need not look at the store before."""
    workflow.start("waiting")

    found = drive(driver, "waiting")

    assert found.how == how
    assert found.stand.wake - now() == pytest.approx(hours * 3600 * MICROS, abs=60 * MICROS)


def test_run_that_is_driven_too_early_is_left_as_it_is(driver):
    """A ring costs a look. The moment it waits for is the same as before."""
    napping.start("nap")
    first, before = drive(driver, "nap"), kinds("nap")

    found = drive(driver, "nap")

    assert (found.how, found.stand.status) == ("passed by", "sleeping")
    assert abs(found.stand.wake - first.stand.wake) < MICROS
    assert kinds("nap") == before


@sf.workflow
def parent():
    return sf.child(napping, "child")


def test_parent_that_was_woken_in_vain_does_not_ask_to_be_woken_at_once(driver):
    """Else an engine that goes by this value would wake it again and again."""
    parent.start("parent")
    assert drive(driver, "parent").stand.wake > now()
    drive(driver, "child")

    assert drive(driver, "parent").stand.wake > now()


_told = threading.Event()


@sf.step
def linger():
    assert _told.wait(SOON)


@sf.workflow
def waits_beside_a_step():
    return bool(sf.gather(lambda: sf.approve("go on?"), linger)[0])


def test_word_that_comes_while_a_run_is_about_to_stand_still_is_in_the_value(driver):
    """The session does not ring for its own run, so the drive itself says that it can go on at once."""
    _told.clear()
    run = waits_beside_a_step.start("early")
    under_way = driver.drive("early")
    wait_until(lambda: "QuestionAsked" in kinds("early"))
    run.answer("gather#1.0/approve#1", value=True)
    _told.set()

    found = under_way.result(SOON)

    assert found.stand.status == "done" or found.stand.wake <= now()
    assert drive(driver, "early").stand.status == "done"
    assert run.result() is True


_gate, _entered = threading.Event(), threading.Event()


@sf.step
def hold():
    _entered.set()
    assert _gate.wait(SOON)


@sf.workflow
def holding():
    hold()
    return double(1)


@pytest.fixture
def held():
    _gate.clear(), _entered.clear()
    yield
    _gate.set()


def test_run_is_not_driven_twice_at_once(driver, held):
    """Whoever asks again waits for the drive that is under way."""
    holding.start("held")
    first = driver.drive("held")
    assert _entered.wait(SOON)

    assert driver.drive("held") is first
    assert not first.cancel()
    assert driver.busy == ("held",)
    _gate.set()

    assert first.result(SOON).how == "done"
    assert kinds("held").count("RunAdopted") == 1


def test_run_that_another_driver_of_this_process_has_is_passed_by(driver, held):
    holding.start("held")
    first = driver.drive("held")
    assert _entered.wait(SOON)
    with driving() as other:
        assert drive(other, "held").how == "passed by"
    _gate.set()
    assert first.result(SOON).how == "done"


def test_run_that_is_handed_back_can_go_on_elsewhere_at_once(driver, held):
    """The call in flight is recorded, the next one is not begun."""
    holding.start("held")
    under_way = driver.drive("held")
    assert _entered.wait(SOON)
    driver.hand_back(["held"])
    _gate.set()

    found = under_way.result(SOON)

    assert found.stand.status == "queued"
    assert found.stand.wake <= now()
    assert kinds("held")[-2:] == ["StepDone", "RunReleased"]
    with driving() as other:
        assert drive(other, "held").how == "done"


def test_run_that_does_not_exist_is_no_run_that_failed(driver):
    found = drive(driver, "nobody")

    assert isinstance(found.error, sf.NotFound)
    assert found.stand is None


def test_driver_of_a_store_that_is_away_says_so_and_looks_no_more(driver, monkeypatch):
    doubling.start("away", 1)

    def refuse(runs):
        raise sf.StoreUnavailable("away")

    monkeypatch.setattr(driver.runtime.store, "read_all", refuse)

    found = drive(driver, "away")

    assert (found.how, found.stand) == ("trouble", None)


def test_damaged_run_steps_back_and_can_be_driven_again_at_once():
    """What is valid of it goes on; nobody has to look."""
    approved.start("damaged")
    with driving() as driver:
        drive(driver, "damaged")
    close_all()
    connection = apsw.Connection(".surefoot/runs.db")
    connection.execute("UPDATE entries SET body = x'00' WHERE run = 'damaged' AND seq = 2")
    connection.close()

    with driving() as driver:
        found = drive(driver, "damaged")

        assert found.how == "damaged"
        assert found.stand.wake <= now()
        assert drive(driver, "damaged").stand.reason == "WaitingForAnswer"


APP = """
import os, signal, sys
import surefoot as sf
from surefoot.engine.worker.driver import Driver

@sf.step
def look(n):
    print("look", n, flush=True)
    return n

@sf.effect(on_crash={policy!r})
def pay(n):
    print("pay", n, flush=True)
    if os.environ.get("DIES"):
        os.kill(os.getpid(), signal.SIGKILL)
    return n

@sf.workflow
{colour}def order(n):
    return look(n) + pay(n)

if __name__ == "__main__":
    import orders
    driver = Driver()
    driven = driver.drive("order").result(30)
    print(driven.how, driven.stand.status, driven.stand.reason, flush=True)
    driver.close(30)
"""


@pytest.mark.parametrize("colour", ["", "async "])
@pytest.mark.parametrize(
    ("policy", "told"), [("retry", ["pay 7", "done done"]), ("ask", ["stopped stopped InDoubt"])], ids=["retry", "ask"]
)
def test_run_whose_driver_was_killed_is_taken_over_where_it_was(tmp_path, store, policy, told, colour):
    """Steps that are on record do not run again, and the effect that was cut off goes by its policy."""
    (tmp_path / "orders.py").write_text(APP.format(policy=policy, colour=colour))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])}

    def python(*words, **more):
        done = subprocess.run(
            [sys.executable, *words],
            cwd=tmp_path,
            env={**env, **more},
            stdout=subprocess.PIPE,
            text=True,
            check=False,
            timeout=50,
        )
        return done.returncode, [line.strip() for line in done.stdout.splitlines()]

    created = (
        "import asyncio, orders; one = orders.order.start('order', 7); asyncio.iscoroutine(one) and asyncio.run(one)"
    )
    assert python("-c", created) == (0, [])

    assert python("orders.py", DIES="1") == (-signal.SIGKILL, ["look 7", "pay 7"])

    assert python("orders.py") == (0, told)
