"""One list of everything that waits for a person, which can be emptied."""

from __future__ import annotations

import json
import time

import pytest

import surefoot as sf
from surefoot import witness
from surefoot.core.entry import NOTHING, RunAdopted, RunCreated
from surefoot.engine.operate import inbox as engine
from surefoot.engine.process.config import runtime
from surefoot.store.contract import Serving, WorkerSeen
from surefoot.view import inbox
from tests.engine.test_fallback import garble
from tests.folded import folded


def page(*, workers=(), now=0, kinds=(), limit=50, cursor=""):
    found = runtime(None, create=False)
    waiting = engine.waiting(found, cursor)
    return inbox.page(waiting, list(workers), now=now or found.clock.now(), kinds=kinds, limit=limit)


def listed(**query):
    return [(item.kind, item.run, item.address) for item in page(**query).items]


@sf.effect
def pay() -> int:
    raise ConnectionError("lost")


@sf.workflow(name="inbox_paying")
def paying() -> int:
    return pay()


@sf.workflow(name="inbox_asking")
def asking(timeout=None) -> bool:
    return bool(sf.approve("Deploy now?", by=["ann", "release"], timeout=timeout))


@sf.workflow(name="inbox_waiting")
def expecting() -> str:
    return sf.wait_event("paid")


@sf.workflow(name="inbox_failing")
def failing() -> None:
    raise ValueError("no such \x1b[31m order")


@sf.workflow(name="inbox_failing_softly", on_failure="stop")
def failing_softly() -> None:
    raise ValueError("not yet")


@sf.workflow(name="inbox_cut_off")
def cut_off() -> None:
    raise KeyboardInterrupt


@sf.workflow(name="inbox_done")
def done() -> int:
    return 1


def stopped(workflow, run, *args):
    with pytest.raises(sf.Stopped):
        workflow.run(run, *args)


def test_what_has_to_be_decided_comes_first_and_by_urgency(own_folder):
    """Whoever has one minute begins at the top."""
    watched = own_folder / "a.txt"
    watched.write_text("1")

    @sf.workflow(name="inbox_drift", watch=[witness.file("a.txt")])
    def drifting() -> str:
        return sf.wait_event("go")

    stopped(drifting, "drifted")
    watched.write_text("2")
    sf.get_run("drifted").send_event("go", 1, id="1")
    stopped(drifting, "drifted")
    with pytest.raises(ValueError):
        failing.run("failed")
    stopped(expecting, "event")
    stopped(asking, "asks-for-ever")
    stopped(asking, "asks-late", "2h")
    stopped(asking, "asks-soon", "1h")
    stopped(failing_softly, "softly")
    stopped(paying, "doubt-1")
    stopped(paying, "doubt-2")
    done.run("done")

    assert listed() == [
        ("in_doubt", "doubt-1", "pay#1"), ("in_doubt", "doubt-2", "pay#1"), ("drift", "drifted", ""),
        ("failed", "softly", ""), ("question", "asks-soon", "approve#1"), ("question", "asks-late", "approve#1"),
        ("question", "asks-for-ever", "approve#1"), ("event", "event", "wait_event#1"), ("failed", "failed", ""),
    ]  # fmt: skip
    assert [item.decide for item in page().items] == [True] * 8 + [False]


def test_item_is_a_question_in_plain_words_with_what_can_be_said():
    stopped(asking, "r", "1h")
    stopped(paying, "d")
    doubt, asked = page().items

    assert asked.title == "Deploy now?"
    assert (asked.by, asked.actions) == (("ann", "release"), ("answer", "cancel"))
    assert asked.until - asked.since == pytest.approx(3_600_000_000, abs=1_000_000)
    assert doubt.title.startswith("Did pay#1 happen? It raised ConnectionError: lost")
    assert (doubt.actions, doubt.workflow) == (("settle", "rewind", "cancel"), "inbox_paying")


def test_title_cannot_act_on_a_terminal():
    with pytest.raises(ValueError):
        failing.run("r")

    (item,) = page().items

    assert item.title.isprintable()
    assert item.actions == ("retry", "fork", "acknowledge")


def test_everything_of_a_run_stays_together():
    """Answering one of two things is half of the work."""

    @sf.effect
    def refund() -> int:
        raise ConnectionError("lost")

    @sf.workflow(name="inbox_both")
    def both() -> None:
        sf.gather(refund, lambda: sf.approve("Go on?"))

    stopped(both, "both")
    stopped(asking, "asks", "1s")

    assert listed() == [
        ("in_doubt", "both", "gather#1.0/refund#1"), ("question", "both", "gather#1.1/approve#1"),
        ("question", "asks", "approve#1"),
    ]  # fmt: skip


def test_emptied_it_is_empty():
    """An inbox that cannot be emptied is not read."""
    with pytest.raises(ValueError):
        failing.run("failed")
    stopped(paying, "doubt")
    stopped(asking, "asks")
    stopped(failing_softly, "softly")

    sf.get_run("failed").acknowledge()
    sf.get_run("doubt").settle("pay#1", happened=1)
    sf.get_run("asks").answer("approve#1", True, by="ann")
    sf.get_run("softly").cancel()

    assert listed() == []


def test_run_whose_process_died_waits_only_if_no_worker_takes_it_up(killed):
    """It goes on by itself, or it never does."""
    assert listed() == [("cut_off", "r", "")]
    mine = WorkerSeen("w", "h", 1, 0, None, Serving(("inbox_killed",)))
    elsewhere = WorkerSeen("w", "h", 1, 0, None, Serving(("inbox_killed",), ("mail",)))

    assert listed(workers=[mine]) == []
    assert listed(workers=[elsewhere]) == [("cut_off", "r", "")]


def test_unit_of_a_framework_whose_process_died_says_to_invoke_the_graph_again():
    """No worker takes it up: to start one would not help."""
    born = RunCreated("agent.node", NOTHING, "d", labels={"thread": "chat-1"}, hosted="LangGraph")
    state = folded(born, RunAdopted("w", "h", 1, "c"))
    namesake = WorkerSeen("w", "h", 1, 0, None, Serving(("agent.node",)))

    (item,) = inbox.of_run(state, [namesake], driven=False, now=9)

    assert item.kind == "cut_off"
    assert "invoke the graph of LangGraph again on thread chat-1" in item.title


@pytest.fixture
def killed(program):
    """A run whose process was killed in a step."""
    program.write(
        """
        import os, signal
        import surefoot as sf

        @sf.step
        def look():
            os.kill(os.getpid(), signal.SIGKILL)

        @sf.workflow(name="inbox_killed")
        def wf():
            look()

        wf.run("r")
        """
    )
    program.run()


def test_damaged_run_is_told_as_damaged():
    """Nobody can say what else it needs. It is found when it is read, and stands where the index had it."""
    stopped(paying, "doubt")
    done.run("r")
    stopped(asking, "asks")
    garble(2, "asks")

    first, second = page().items

    assert (first.kind, first.run, first.actions) == ("in_doubt", "doubt", ("settle", "rewind", "cancel"))
    assert (second.kind, second.run, second.actions) == ("damage", "asks", ("repair",))


def test_pages_have_every_item_once_in_the_same_order():
    for n in range(3):
        stopped(paying, f"doubt-{n}")
        stopped(asking, f"asks-{n}", f"{n + 1}h")
        with pytest.raises(ValueError):
            failing.run(f"failed-{n}")
    found, cursor = [], ""

    while True:
        one = page(limit=2, cursor=cursor)
        found += [(item.kind, item.run, item.address) for item in one.items]
        cursor = one.next
        if not cursor:
            break

    assert found == listed()
    assert len(set(found)) == len(found) == 9


@pytest.mark.parametrize("cursor", ["x", "[]", '["decide"]', '["decide", 1, "a", 2, 3]', json.dumps(["know", 1, 2])])
def test_cursor_that_nobody_handed_out_is_refused(cursor):
    done.run("r")

    with pytest.raises(sf.UsageError, match="cursor"):
        page(cursor=cursor)


def test_one_kind_is_found_also_behind_a_more_urgent_one():
    """The index knows one thing of each run, and a run may need two."""

    @sf.effect
    def refund() -> int:
        raise ConnectionError("lost")

    @sf.workflow(name="inbox_kinds")
    def both() -> None:
        sf.gather(refund, lambda: sf.approve("Go on?"))

    stopped(both, "both")

    assert listed(kinds=["question"]) == [("question", "both", "gather#1.1/approve#1")]


def test_question_with_which_a_living_process_waits_is_in_it():
    """`wait=`: the run has not stopped, and somebody is asked all the same."""
    import threading

    thread = threading.Thread(target=lambda: asking.using(wait="1m").run("r"))
    sf.Run  # noqa: B018 - loads the engine before the thread does
    done.run("first")
    thread.start()
    until = time.monotonic() + 30
    while not listed() and time.monotonic() < until:
        time.sleep(0.01)

    assert listed() == [("question", "r", "approve#1")]
    sf.get_run("r").answer("approve#1", True, by="ann")
    thread.join()
    assert listed() == []


def test_effect_left_in_doubt_and_one_left_done_are_told_apart():
    """The first may have to be looked for outside."""

    @sf.effect(on_crash="fail")
    def lost() -> int:
        raise ConnectionError("lost")

    @sf.workflow(name="inbox_left")
    def leaving() -> str:
        try:
            lost()
        except sf.StepFailed:
            return "went on"
        return "done"

    leaving.run("r")

    (item,) = page().items
    assert (item.kind, item.decide, item.address, item.actions) == ("left_in_doubt", False, "lost#1", ("acknowledge",))


def test_a_run_that_goes_on_as_new_is_listed_with_what_it_left(own_folder):
    """The crash lab found that only its journal said so until the run stopped: a killed run was in nobody's inbox."""
    heard = []

    @sf.effect(on_crash="fail")
    def mail() -> None:
        raise ConnectionError("lost")

    @sf.step
    def look() -> None:
        heard.extend(listed())

    @sf.workflow(name="inbox_going_on")
    def going_on(segment: int) -> None:
        if segment == 1:
            with pytest.raises(sf.StepFailed):
                mail()
            sf.continue_as_new(2)
        look()

    going_on.run("r", 1)

    assert [("left_in_doubt", "r", "mail#1")] == heard
