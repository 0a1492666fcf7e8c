"""The process that has the code: what it foretells is what a resume does, and nothing that the code does there harms us."""

from __future__ import annotations

import os
import threading
import time

import pytest

import surefoot as sf
from surefoot.console.plans import PLAN, Wanted
from surefoot.console.principals import Principal
from surefoot.engine.operate.decisions import Who
from tests.console.conftest import Browser

pytestmark = pytest.mark.timeout(300)

SHOP = """
import os, sys, time
import surefoot as sf
{at_import}

@sf.step
def look() -> int:
    return 1

@sf.effect
def pay(n: int) -> dict:
    raise ConnectionError("lost")

@sf.effect
def mail(text: str) -> str:
    return text

@sf.workflow(name="planned")
def planned(n: int) -> str:
    look()
    {at_replay}
    pay(n)
    return mail("paid")
"""
WHO = Who("ann")


@pytest.fixture
def shop(tmp_path, monkeypatch, consoles):
    """A console whose code is this; the run `p` was made by the sound version of it."""
    from surefoot.cli.main import main

    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))

    def of(*, at_import="", at_replay="pass", seconds=10.0):
        name = f"shop_{tmp_path.name[-8:].replace('-', '_')}_{time.time_ns()}"
        path = tmp_path / f"{name}.py"
        path.write_text(SHOP.format(at_import="", at_replay="pass"))
        main(["run", f"{name}:planned", "--id", "p", "5"])
        path.write_text(SHOP.format(at_import=at_import, at_replay=at_replay))
        console = consoles(apps=(name,))
        console.planner._seconds = seconds
        return Browser(console, Principal("ann", "admin"))

    return of


def plan(who, **said):
    return who.post("/api/v1/runs/p/plan", {"supposing": said} if said else {})


def test_each_answer_leads_to_what_the_code_would_do(shop):
    who = shop()

    happened = plan(who, do="settle", address="pay#1", happened={"id": 1}).json()
    again = plan(who, do="settle", address="pay#1", not_happened=True).json()

    assert happened["supposed"]["next"] == [{"kind": "effect", "address": "mail#1"}]
    assert again["supposed"]["next"] == [{"kind": "effect", "address": "pay#1"}]


def test_a_value_is_held_against_the_code_before_it_is_recorded(shop):
    """The workflow would meet it hours later."""
    who = shop()
    before = len(sf.get_run("p").entries())

    wrong = who.say("p", do="settle", address="pay#1", happened="paid")
    assert (wrong.status_code, wrong.json()["error"]["type"]) == (400, "UsageError")
    assert "returns dict" in wrong.json()["error"]["message"]
    assert len(sf.get_run("p").entries()) == before

    right = who.say("p", do="settle", address="pay#1", happened={"id": 1}, note="seen")
    assert right.status_code == 200, right.text
    data = sf.get_run("p").entries()[-1].data
    assert (data["by"], data["note"], data["via"], data["value"]) == ("ann", "seen", "console", {"id": 1})


BAD = {
    "hangs": {"at_replay": "time.sleep(600)"},
    "ends": {"at_replay": "os._exit(7)"},
    "exits": {"at_replay": "sys.exit(3)"},
    "is killed": {"at_replay": "os.kill(os.getpid(), 9)"},
    "cannot be imported": {"at_import": "raise RuntimeError('no')"},
    "ends at import": {"at_import": "os._exit(3)"},
}


@pytest.mark.parametrize("how", BAD)
def test_code_that_misbehaves_leaves_the_page_saying_what_is_not_known(shop, how):
    """And the console goes on: the next question gets a new process."""
    who = shop(**BAD[how], seconds=2.0 if how == "hangs" else 30.0)
    before = sf.get_run("p").entries()

    for _ in range(2):
        found = plan(who)
        assert found.status_code in (503, 200), found.text
        if found.status_code == 503:
            assert found.json()["error"]["type"] == "Unknown"
    assert found.status_code == 503 or how == "exits"
    said = who.say("p", do="settle", address="pay#1", happened={"id": 1})
    assert said.status_code != 200 or how == "exits" or how in ("hangs", "ends", "is killed")
    assert who.get("/api/v1/runs/p").status_code == 200
    assert sf.get_run("p").entries()[: len(before)] == before


@pytest.mark.parametrize(
    "at_replay", ["print('{\"plan\": 1}'); sys.stdout.flush()", "os.write(1, b'{}\\n')", "os.fork() or os._exit(0)"]
)
def test_what_the_code_prints_is_no_answer_and_its_children_are_nobody(shop, at_replay):
    who = shop(at_replay=at_replay)

    found = plan(who)

    assert found.status_code == 200, found.text
    assert found.json()["plan"]["run"] == "p"


def test_a_child_that_hangs_takes_its_own_children_with_it(shop, tmp_path):
    pid = tmp_path / "pid"
    who = shop(
        at_replay=f"import subprocess; c = subprocess.Popen(['sleep', '600']); open({str(pid)!r}, 'w').write(str(c.pid)); c.wait()",
        seconds=5.0,
    )

    assert plan(who).status_code == 503

    while is_alive(int(pid.read_text())):
        os.sched_yield()


def is_alive(pid):
    """Also false while it waits for somebody to take note of its end."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_code_that_was_edited_answers_at_once(shop, tmp_path):
    """Whoever mends the code looks at the same page again."""
    who = shop(at_replay="raise RuntimeError('bug')")
    (app,) = who.console.options.apps
    broken = plan(who).json()
    who.console.planner._kept.clear()

    (tmp_path / f"{app}.py").write_text(SHOP.format(at_import="", at_replay="pass"))

    said = plan(who, do="settle", address="pay#1", not_happened=True).json()
    assert said["supposed"]["next"] == [{"kind": "effect", "address": "pay#1"}], broken


def test_no_more_than_two_at_once_and_the_same_question_once(shop):
    """Ten browsers that look at one run ask the code once."""
    who = shop()
    asked, most, lock = [], [0], threading.Lock()
    planner, original, now = who.console.planner, who.console.planner._answer, [0]

    def answer(child, wanted):
        with lock:
            asked.append(wanted)
            now[0] += 1
            most[0] = max(most[0], now[0])
        try:
            return original(child, wanted)
        finally:
            with lock:
                now[0] -= 1

    planner._answer = answer
    runtime = who.console.runtime()
    first = planner.ask(runtime, Wanted(PLAN, "p", WHO))
    assert planner.ask(runtime, Wanted(PLAN, "p", WHO)) is first
    assert len(asked) == 1
    said = [{"do": "settle", "address": "pay#1", "happened": {"id": n}} for n in range(6)]
    threads = [threading.Thread(target=planner.ask, args=(runtime, Wanted(PLAN, "p", WHO, one))) for one in said]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(asked) == 7
    assert most[0] <= 2


def test_nothing_is_left_when_the_console_ends(shop):
    who = shop()
    plan(who)
    (child,) = who.console.planner._alive

    who.console.close()

    assert child._process.poll() is not None
