"""`run.plan()`: what a resume would do now. Nothing is executed and nothing is written by looking."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import pytest

import surefoot as sf
from surefoot import witness


def its_file(path, *_):
    """What a writing effect touches."""
    return witness.file(path)


@pytest.fixture
def plan():
    """The plan of a run; and that looking left every byte of the store, and every run, as it was."""

    def of(run_id: str):
        run = sf.get_run(run_id)
        before, entries = _bytes(), run.entries()
        found = run.plan()
        assert (_bytes(), run.entries()) == (before, entries)
        return found

    return of


def _bytes() -> bytes:
    """By a process of its own: to open the file here, and close it, would drop the locks of the store."""
    files = sorted(str(path) for path in Path(".surefoot").iterdir() if path.is_file() and path.suffix != ".db-shm")
    return subprocess.run(["cat", *files], capture_output=True, check=True).stdout


def cut_off(wf, *args):
    """Run until the workflow interrupts itself."""
    with pytest.raises(KeyboardInterrupt):
        wf.run("r", *args)


def test_replayed_calls_and_the_next_ones_are_named(plan, ledger):
    stop = [True]

    @sf.step
    def read() -> int:
        ledger.write("read")
        return 1

    @sf.effect
    def pay(n: int) -> int:
        ledger.write("pay")
        return n

    @sf.workflow(name="plan_next")
    def wf() -> int:
        n = read()
        if stop:
            raise KeyboardInterrupt
        return pay(n)

    cut_off(wf)
    stop.clear()

    found = plan("r")

    assert (found.replayed, found.next, found.effects) == (["read#1"], [("effect", "pay#1")], ["pay#1"])
    assert (found.in_doubt, found.stops, found.drift, found.questions) == ([], [], [], [])
    assert ledger.lines == ["read"]


@pytest.mark.parametrize(
    ("policy", "told", "runs"),
    [
        ("ask", "stop and ask a person", []),
        ("retry", "run again with the same key", ["pay#1"]),
        ("fail", "fail the call", ["pay#1"]),
        ("check", "ask its check, which decides", ["pay#1"]),
    ],
)
def test_how_each_effect_in_doubt_would_be_settled(plan, ledger, policy, told, runs):
    """A check looks at the world; but to look may cost something too, so it is named and not called."""

    def crash(_signal=None):
        raise KeyboardInterrupt

    @sf.effect(on_crash=policy)
    def pay() -> int:
        ledger.write("pay")
        return crash()

    if policy == "check":

        @pay.check
        def _():
            ledger.write("check")
            return sf.happened(1)

    @sf.workflow(name=f"plan_doubt_{policy}")
    def wf() -> int:
        return pay()

    cut_off(wf)

    found = plan("r")

    assert (found.in_doubt, found.effects) == ([("pay#1", told)], runs)
    assert ledger.lines == ["pay"]


def test_an_effect_that_was_sent_back_is_in_doubt(plan):
    @sf.effect(on_crash="retry")
    def pay() -> int:
        return 1

    @sf.workflow(name="plan_rewound")
    def wf() -> int:
        return pay()

    wf.run("r")
    sf.get_run("r").rewind("pay#1")

    assert plan("r").in_doubt == [("pay#1", "run again with the same key")]


def watching(name, on_drift="stop"):
    """A run that wrote a.txt, was cut off, and would write b.txt next."""
    stop = [True]

    @sf.effect(touches=[its_file])
    def write(path: str) -> None:
        Path(path).write_text(path)

    @sf.workflow(name=name, watch=[witness.files("*.txt")], on_drift=on_drift)
    def wf() -> None:
        write("a.txt")
        if stop:
            raise KeyboardInterrupt
        write("b.txt")

    cut_off(wf)
    stop.clear()
    return wf


def test_drift_is_listed_as_what_would_stop_the_resume(plan):
    wf = watching("plan_drift")
    assert (plan("r").drift, plan("r").effects) == ([], ["write#2"])
    Path("a.txt").write_text("somebody's")

    found = plan("r")

    assert len(found.drift) == 1
    assert found.drift[0].startswith("file:a.txt: changed (expected ")
    assert "recorded by write#1" in found.drift[0]
    assert found.on_drift == "stop"
    assert found.next == [], "a resume would stop before anything runs"
    assert "the world is not as the run left it" in found.stops[0]
    with pytest.raises(sf.Drifted):
        wf.run("r")


def test_a_recorded_stop_that_no_longer_holds_is_not_foretold(plan):
    """Somebody put the file back: the resume would go on, whatever stopped it last time."""
    wf = watching("plan_put_back")
    Path("a.txt").write_text("somebody's")
    with pytest.raises(sf.Drifted):
        wf.run("r")
    Path("a.txt").write_text("a.txt")

    found = plan("r")

    assert (found.stops, found.drift, found.effects) == ([], [], ["write#2"])


def test_drift_is_looked_at_only_once_what_is_open_is_answered(plan):
    """A plan that promises one stop where the resume makes another is believed no more."""

    @sf.workflow(name="plan_open", watch=[witness.file("a.txt")])
    def wf() -> None:
        sf.wait_event("go")

    with pytest.raises(sf.WaitingForAnswer):
        wf.run("r")
    Path("a.txt").write_text("somebody's")

    found = plan("r")

    assert (len(found.drift), found.on_drift) == (1, "later")
    assert ["waiting for event 'go'" in stop for stop in found.stops] == [True]
    with pytest.raises(sf.WaitingForAnswer):
        wf.run("r")
    sf.send_event("r", "go")
    assert plan("r").on_drift == "stop"
    with pytest.raises(sf.Drifted):
        wf.run("r")


@pytest.mark.parametrize("on_drift", ["warn", "accept"])
def test_drift_that_would_be_accepted_is_listed_and_does_not_stop(plan, on_drift):
    watching(f"plan_{on_drift}", on_drift)
    Path("a.txt").write_text("somebody's")

    found = plan("r")

    assert (len(found.drift), found.on_drift, found.stops, found.effects) == (1, on_drift, [], ["write#2"])


def test_a_function_that_decides_about_drift_is_not_called(plan):
    """It is code of the user's: it may tell somebody, or ask."""

    def decide(drift):
        raise AssertionError("called")

    watching("plan_decide", decide)
    Path("a.txt").write_text("somebody's")

    found = plan("r")

    assert (found.on_drift, len(found.drift), found.stops) == ("decide", 1, [])


def test_a_witness_that_cannot_be_observed_would_stop_whatever_the_workflow_says(plan):
    broken: list[int] = []

    def look():
        if broken:
            raise OSError("unreachable")
        return {"x": 1}

    stop = [True]

    @sf.step
    def work() -> int:
        return 1

    @sf.workflow(name="plan_unseen", watch=[witness.observe("thing", look)], on_drift="accept")
    def wf() -> int:
        if stop:
            raise KeyboardInterrupt
        return work()

    cut_off(wf)
    stop.clear()
    broken.append(1)

    found = plan("r")

    assert found.on_drift == "stop"
    assert "cannot be observed" in found.drift[0]
    assert found.next == []


def test_open_questions_are_listed(plan):
    @sf.workflow(name="plan_question")
    def wf() -> bool:
        return bool(sf.approve("Deploy?"))

    with pytest.raises(sf.WaitingForAnswer):
        wf.run("r")

    found = plan("r")

    assert found.questions == [("approve#1", "Deploy?")]
    assert "waiting for an answer" in found.stops[0]


def test_an_effect_that_needs_a_yes_is_asked_about_first(plan, ledger):
    stop = [True]

    @sf.effect(approve=True)
    def pay() -> int:
        ledger.write("pay")
        return 1

    @sf.workflow(name="plan_approval")
    def wf() -> int:
        if stop:
            raise KeyboardInterrupt
        return pay()

    cut_off(wf)
    stop.clear()
    assert plan("r").next == [("approve", "pay#1.approval")]
    with pytest.raises(sf.WaitingForAnswer):
        wf.run("r")
    assert plan("r").questions == [("pay#1.approval", "Run pay#1?")]

    sf.get_run("r").answer("pay#1.approval", True)

    found = plan("r")
    assert (found.next, found.questions) == ([("effect", "pay#1")], [])
    assert ledger.lines == [], "the yes is on record, but looking executes nothing"


def test_every_effect_of_a_supervised_workflow_is_asked_about(plan):
    """What the workflow says about approvals counts in the plan as it does in the resume."""
    stop = [True]

    @sf.effect
    def pay() -> int:
        return 1

    @sf.workflow(name="plan_supervised", approve="every")
    def wf() -> int:
        if stop:
            raise KeyboardInterrupt
        return pay()

    cut_off(wf)
    stop.clear()

    assert plan("r").next == [("approve", "pay#1.approval")]


def test_an_effect_that_the_code_no_longer_asks_for_would_stop_it(plan):
    """The resume would find that out only at the end; whoever asks for the plan wants to know before."""
    changed: list[int] = []

    @sf.effect
    def pay() -> int:
        return 1

    @sf.workflow(name="plan_changed")
    def wf() -> int:
        if changed:
            return 0
        pay()
        raise KeyboardInterrupt

    cut_off(wf)
    changed.append(1)

    found = plan("r")

    assert found.next == []
    assert "without asking for pay#1" in found.stops[0]


def test_other_arguments_than_recorded_would_stop_it(plan):
    amount = [1]

    @sf.effect
    def pay(amount: int) -> int:
        return amount

    @sf.workflow(name="plan_arguments")
    def wf() -> int:
        pay(amount[0])
        raise KeyboardInterrupt

    cut_off(wf)
    amount[0] = 2

    assert "asked for with other arguments" in plan("r").stops[0]


def test_a_renamed_effect_would_not_run(plan):
    """It is found before anything runs; to list it as what is next would promise a second payment."""
    changed: list[int] = []

    @sf.effect
    def pay() -> int:
        return 1

    @sf.effect
    def charge() -> int:
        return 1

    @sf.workflow(name="plan_renamed")
    def wf() -> int:
        charge() if changed else pay()
        raise KeyboardInterrupt

    cut_off(wf)
    changed.append(1)

    found = plan("r")

    assert "asks for the effect charge#1" in found.stops[0]
    assert found.next == []


def test_steps_that_were_put_in_front_are_learnt_as_before_a_resume(plan, ledger):
    """A resume rehearses until it has learnt them. One rehearsal alone would foretell that recorded steps run again."""
    changed: list[int] = []

    @sf.step
    def think(about: str) -> str:
        ledger.write(about)
        return about

    @sf.effect
    def act(thought: str) -> str:
        return thought

    @sf.workflow(name="plan_inserted")
    def wf() -> None:
        if changed:
            think("zero")
        act(think("one"))
        think("two")
        raise KeyboardInterrupt

    cut_off(wf)
    changed.append(1)

    found = plan("r")
    assert (found.stops, found.next) == ([], [("step", "think#3")])

    with pytest.raises(KeyboardInterrupt):
        wf.run("r")
    assert ledger.lines == ["one", "two", "zero"]


def test_a_run_that_would_continue_as_new_says_so(plan):
    stop = [True]

    @sf.workflow(name="plan_continue")
    def wf(n: int) -> int:
        if stop:
            raise KeyboardInterrupt
        return sf.continue_as_new(n + 1)

    cut_off(wf, 1)
    stop.clear()

    assert plan("r").next == [("continue_as_new", "segment 2")]


def test_a_run_that_has_ended_has_nothing_before_it(plan):
    @sf.step
    def read() -> int:
        return 1

    @sf.workflow(name="plan_ended", watch=[witness.files("*.txt")])
    def wf() -> int:
        return read()

    wf.run("r")
    Path("new.txt").write_text("news")

    found = plan("r")

    assert (found.status, found.replayed, found.next, found.drift, found.stops) == ("done", ["read#1"], None, [], [])


def test_async_code_is_rehearsed_too(plan):
    """Also from inside a loop."""
    from surefoot import aio

    stop = [True]

    @aio.effect
    async def pay() -> int:
        return 1

    @aio.workflow(name="plan_async")
    async def wf() -> int:
        if stop:
            raise KeyboardInterrupt
        return await pay()

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(wf.run("r"))
    stop.clear()

    async def look():
        return plan("r")

    assert asyncio.run(look()).effects == ["pay#1"]
