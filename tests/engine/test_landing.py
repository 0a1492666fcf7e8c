"""A check's "not happened" counts once nothing that was begun can still be on its way."""

from __future__ import annotations

import os

import pytest

import surefoot as sf
from surefoot.engine.process.config import settings
from surefoot.view.page import page
from tests.working import kinds

LATE = "import sys, time; sys.stdin.read(); open('ledger', 'a').write('pushed\\n')"


class Post:
    """A world with latency: a letter that was handed over arrives later, whatever became of who sent it."""

    def __init__(self, clock) -> None:
        self.clock = clock
        self.arrives: list[int] = []
        self.mood: list[str] = []
        self.looks: list[int] = []
        self.begun = 0

    def send(self, after: float) -> str:
        self.begun += 1
        mood = self.mood.pop(0) if self.mood else ""
        if mood == "busy":
            raise sf.NotDone("busy")
        if mood != "lost":
            self.arrives.append(self.clock.now() + round(after * 1e6))
        if mood in ("cut off", "lost"):
            raise KeyboardInterrupt
        if mood == "timed out":
            raise TimeoutError("no answer")
        return "sent"

    def look(self):
        self.looks.append(self.clock.now())
        arrived = any(at <= self.clock.now() for at in self.arrives)
        return sf.happened("sent") if arrived else sf.not_happened()


@pytest.fixture
def post(sf_clock):
    return Post(sf_clock)


def sending(post, after=4.0, **options):
    @sf.effect(**options)
    def send() -> str:
        return post.send(after)

    @send.check
    def _():
        return post.look()

    @sf.workflow
    def wf() -> str:
        return send()

    return wf


def _interrupt():
    raise KeyboardInterrupt


def crashed(wf, post, mood="cut off"):
    post.mood.append(mood)
    with pytest.raises(KeyboardInterrupt):
        wf.run("r")
    return sf.get_run("r")


@pytest.mark.parametrize("options", [{}, {"in_flight": "30s"}, {"timeout": "30s"}])
def test_what_a_dead_process_had_begun_is_waited_for(post, options, caplog, monkeypatch):
    """It was still on its way: whoever believes the first look does it twice."""
    monkeypatch.setattr(settings, "in_flight_seconds", 30.0)
    wf = sending(post, **options)
    crashed(wf, post)

    assert wf.run("r") == "sent"
    assert post.begun == 1
    assert len(post.looks) == 2
    assert "send#1: its check does not find it, but it may still be on its way" in caplog.text


def test_service_that_goes_on_after_the_time_out_is_waited_for_too(post):
    """The client stopped waiting after 10 s, the server finished after 14."""
    wf = sending(post, after=14.0, timeout="10s", in_flight="30s")
    crashed(wf, post)

    assert wf.run("r") == "sent"
    assert post.begun == 1


def test_time_out_and_flight_are_added_up(post):
    wf = sending(post, timeout="10s", in_flight="30s")
    crashed(wf, post, "lost")
    begun = post.clock.now()

    assert wf.run("r") == "sent"
    assert post.begun == 2
    assert 39e6 <= post.looks[-1] - begun <= 41e6


def test_time_out_alone_is_the_bound(post):
    """As it is written: who says timeout= and no more says that nothing is on its way after it."""
    wf = sending(post, timeout="10s")
    crashed(wf, post, "lost")
    begun = post.clock.now()

    assert wf.run("r") == "sent"
    assert 9e6 <= post.looks[-1] - begun <= 11e6


@pytest.mark.parametrize("now", [{"timeout": "10s", "in_flight": "30s"}, {"in_flight": "30s"}])
def test_in_flight_that_was_added_after_the_crash_counts_from_the_recorded_time_out(post, now):
    crashed(sending(post, after=14.0, timeout="10s"), post)

    assert sending(post, **now).run("r") == "sent"
    assert post.begun == 1


def test_time_out_that_was_added_after_the_crash_does_not_shorten_the_flight(post):
    """What was begun had no time-out."""
    crashed(sending(post, after=14.0, in_flight="30s"), post)

    assert sending(post, timeout="10s", in_flight="30s").run("r") == "sent"
    assert post.begun == 1


def test_exception_of_a_client_that_gave_up_is_waited_out_for_as_long(post):
    wf = sending(post, after=14.0, timeout="10s", in_flight="30s")
    post.mood.append("timed out")

    assert wf.run("r") == "sent"
    assert post.begun == 1


def test_what_is_not_there_when_the_time_is_over_is_done(post):
    wf = sending(post, in_flight="30s")
    crashed(wf, post, "lost")
    begun = post.clock.now()

    assert wf.run("r") == "sent"
    assert post.begun == 2
    assert post.looks[-1] - begun >= 29e6


def test_happened_is_believed_at_once(post):
    wf = sending(post, after=0.0, in_flight="1h")
    crashed(wf, post)

    assert wf.run("r") == "sent"
    assert len(post.looks) == 1


def test_effect_that_dies_with_its_process_is_not_waited_for(post):
    wf = sending(post, in_flight="0s")
    crashed(wf, post, "lost")

    assert wf.run("r") == "sent"
    assert len(post.looks) == 1


def test_time_counts_from_the_intent_and_not_from_the_resume(post):
    wf = sending(post, in_flight="1h")
    crashed(wf, post, "lost")
    post.clock.forward("2h")

    assert wf.run("r") == "sent"
    assert len(post.looks) == 1


def test_exception_that_proves_nothing_is_waited_out_too(post):
    """The client gave up; the request did not."""
    wf = sending(post, in_flight="30s")
    post.mood.append("timed out")

    assert wf.run("r") == "sent"
    assert post.begun == 1
    assert len(post.looks) == 2


@pytest.mark.parametrize("then", ["", "busy"])
@pytest.mark.parametrize("dies", [False, True])
def test_what_is_on_its_way_is_waited_for_when_its_key_grew_too_old(post, then, dies, monkeypatch):
    """The retry comes too late to be safe by its key, so the check is asked; the first request is still on its way."""
    post.mood += ["timed out", then] if then else ["timed out"]
    wf = sending(
        post, after=120.0, on_crash="retry", key_ttl="70s" if then else "30s", retries=3, in_flight="300s",
        backoff=sf.Backoff("50s", 1, "50s", jitter=False),
    )  # fmt: skip
    nap = post.clock.nap
    if dies:  # in the wait before the attempt that comes too late
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(post.clock, "nap", lambda left: nap(left) if post.mood else _interrupt())
            wf.run("r")

    assert wf.run("r") == "sent"
    assert len(post.arrives) == 1


def test_intent_of_code_that_did_not_say_is_waited_for_as_the_code_says_now(post):
    """A journal from before, or a check that was added after the crash."""

    @sf.effect
    def send() -> str:
        return post.send(4.0)

    @sf.workflow
    def wf() -> str:
        return send()

    crashed(wf, post)
    later = sending(post, in_flight="30s")

    assert sf.get_run("r").status == "queued"
    assert later.run("r") == "sent"
    assert post.begun == 1


def test_word_of_a_person_counts_at_once(post):
    """Whoever has looked need not wait for a clock."""
    wf = sending(post, in_flight="1h")
    crashed(wf, post, "lost")
    sf.get_run("r").settle("send#1", not_happened=True)

    assert wf.run("r") == "sent"
    assert not post.looks


def test_part_of_it_is_believed_only_then_as_well(post):
    undone = []

    @sf.effect(in_flight="30s")
    def send() -> str:
        return post.send(4.0)

    @send.check
    def _():
        found = post.look()
        return found if isinstance(found, type(sf.happened())) else sf.partial("the first page")

    @send.undo
    def _(result):
        undone.append(1)

    @sf.workflow
    def wf() -> str:
        return send()

    crashed(wf, post)

    assert wf.run("r") == "sent"
    assert not undone


def test_cancelled_run_leaves_what_may_still_land_in_doubt(post, caplog):
    """It cannot be undone before it has landed: the person is told."""
    wf = sending(post, in_flight="1h")
    run = crashed(wf, post)

    run.cancel()

    assert run.status == "cancelled"
    assert "send#1" in caplog.text
    assert "If it happened, it is not undone" in caplog.text
    assert "EffectSettled" not in kinds("r")


def test_program_that_outlives_the_killed_process_is_not_started_twice(program):
    """kill -9, and the subprocess it had started goes on."""
    program.write(f"""
        import subprocess, sys, os
        import surefoot as sf

        @sf.effect(in_flight="20s")
        def push():
            with open("pid", "w") as file:
                nowhere = subprocess.DEVNULL
                child = subprocess.Popen([sys.executable, "-c", {LATE!r}], stdin=open("gate"), stdout=nowhere, stderr=nowhere)
                file.write(str(child.pid))
            if os.environ.get("DIE"):
                os.kill(os.getpid(), 9)
            child.wait()
            return "ok"

        @push.check
        def _():
            found = os.path.exists("ledger")
            os.write(os.open("looked", os.O_WRONLY), b"x")
            return sf.happened("ok") if found else sf.not_happened()

        @sf.workflow
        def wf():
            return push()

        print(wf.run("r"))
    """)
    gate, looked = (_pipe(program.folder / name) for name in ("gate", "looked"))
    assert program.run(DIE="1").returncode == -9
    resumed = program.start()
    assert os.read(looked, 1) == b"x"
    os.close(gate)

    out, err = resumed.communicate(timeout=50)

    assert out.strip() == "ok", err
    assert (program.folder / "ledger").read_text().splitlines() == ["pushed"]
    os.close(looked)


def _pipe(path) -> int:
    """With a name, and open at both ends: nobody waits for the other to come."""
    os.mkfifo(path)
    return os.open(path, os.O_RDWR)


def test_worker_lets_go_of_the_run_meanwhile(post, monkeypatch):
    """Nobody keeps it in memory for the time that it takes."""
    from surefoot.engine.drive import perform
    from surefoot.engine.drive.conclusion import Suspended
    from surefoot.engine.drive.takeover import taking_up
    from surefoot.engine.process import config

    wf = sending(post, in_flight="1h")
    crashed(wf, post)
    runtime = config.runtime(create=False)
    found = sf.get_run("r")

    outcome = perform.run(taking_up(runtime, wf.definition.resume_plan(), "r", _loaded(runtime)))

    assert isinstance(outcome, Suspended)

    assert found.status == "sleeping"
    (call,) = page(found.state(), driven=False, now=post.clock.now()).calls
    assert call.result.startswith("may be on its way until ")
    post.clock.forward("1h")
    perform.run(taking_up(runtime, wf.definition.resume_plan(), "r", _loaded(runtime)))
    assert found.result() == "sent"
    assert post.begun == 1


def _loaded(runtime):
    from surefoot.engine.process import journal

    found = journal.load(runtime.store, "r")
    assert found is not None
    return found
