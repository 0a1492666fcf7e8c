"""What would follow if somebody said that, computed before it is said. Stories by the hundred are in `tests/crash`."""

from __future__ import annotations

import pytest

import surefoot as sf
from surefoot import witness
from tests.engine.test_fallback import garble
from tests.engine.test_plan import _bytes
from tests.working import wait_until


@pytest.fixture
def supposed():
    """What would follow; and that looking left every byte of the store, and every run, as it was."""

    def of(run_id="r", **said):
        run = sf.get_run(run_id)
        before, entries = _bytes(), run.entries()
        found = run.plan(supposing=said)
        assert (_bytes(), run.entries()) == (before, entries)
        return found

    return of


@sf.step
def read() -> int:
    return 1


@sf.effect
def hold(n: int) -> int:
    return n


@hold.undo
def _(n: int, result: int) -> None:
    pass


@sf.effect
def pay(n: int) -> int:
    raise ConnectionError("lost")


@sf.step
def tell(n: int) -> int:
    return n


@sf.workflow(name="supposed_trip")
def trip() -> int:
    with sf.saga():
        return tell(pay(hold(read())))


@sf.workflow(name="supposed_asking")
def asking() -> str:
    if sf.approve("Go on?", by=["ann"]):
        return str(tell(2))
    return "denied"


def stopped(workflow, *args):
    with pytest.raises(sf.Stopped):
        workflow.run("r", *args)


@pytest.mark.parametrize(
    ("how", "next_", "again"),
    [
        ({"happened": 3}, [("step", "tell#1")], []),
        ({"not_happened": True}, [("effect", "pay#1")], ["pay#1"]),
        ({"failed": True}, [("effect", "hold.undo#1")], []),
    ],
    ids=["happened", "not happened", "failed"],
)
def test_three_ways_to_settle(supposed, how, next_, again):
    """The person sees which of them sends the money once more, and which takes the booking back."""
    stopped(trip)

    found = supposed(do="settle", address="pay#1", **how)

    assert (found.next, found.runs_again, found.in_doubt, found.stops) == (next_, again, [], [])
    assert found.do == "settle"


@pytest.mark.parametrize(("value", "next_", "ending"), [(True, [("step", "tell#1")], ""), (False, [], "done")])
def test_yes_and_no(supposed, value, next_, ending):
    stopped(asking)

    found = sf.get_run("r").plan(supposing={"do": "answer", "question": "approve#1", "value": value}, by="ann")

    assert (found.next, found.plan.ending, found.stops) == (next_, ending, [])


def test_what_the_verb_would_refuse_is_refused():
    """In the same words: who asks beforehand is told beforehand."""
    stopped(asking)
    run = sf.get_run("r")

    with pytest.raises(sf.UsageError, match="is for ann, not for bob"):
        run.plan(supposing={"do": "answer", "question": "approve#1", "value": True}, by="bob")
    with pytest.raises(sf.UsageError, match="yes-or-no question"):
        run.plan(supposing={"do": "answer", "question": "approve#1", "value": "maybe"}, by="ann")
    with pytest.raises(sf.UsageError, match="not in doubt"):
        run.plan(supposing={"do": "settle", "address": "approve#1", "not_happened": True})
    with pytest.raises(sf.UsageError, match="not quarantined"):
        run.plan(supposing={"do": "release"})
    for nonsense in ({"do": "fly"}, {}, {"do": "rewind"}, {"do": "rewind", "at": "x#1", "with": 1}, "rewind"):
        with pytest.raises(sf.UsageError):
            run.plan(supposing=nonsense)


def test_rewind_tells_what_is_set_aside_what_runs_again_and_what_is_in_doubt(supposed):
    stopped(trip)

    found = supposed(do="rewind", at="read#1")

    assert found.sets_aside == ["read#1", "hold#1"]
    assert found.runs_again == ["read#1"]
    assert [address for address, _ in found.in_doubt] == ["hold#1", "pay#1"]
    assert found.next == [("step", "read#1")]


def test_cancel_tells_what_is_undone_and_what_stays_in_doubt(supposed):
    stopped(trip)

    found = supposed(do="cancel")

    assert found.next == [("effect", "hold.undo#1")]
    assert found.in_doubt == [("pay#1", "leave it in doubt: the run ends")]


def test_cancel_of_a_run_that_has_done_nothing_ends_it(supposed):
    stopped(asking)

    found = supposed(do="cancel")

    assert (found.next, found.stops, found.plan.ending) == ([], [], "cancelled")


def test_fork_tells_what_it_would_do_again(supposed):
    stopped(trip)
    sf.get_run("r").settle("pay#1", happened=1)

    found = supposed(do="fork", at="hold#1", id="new")

    assert found.sets_aside == ["hold#1", "pay#1"]
    assert found.next == [("effect", "hold#1")]
    with pytest.raises(sf.NotFound):
        sf.get_run("new")


def test_retry_tells_what_is_tried_again(supposed):
    @sf.step
    def fetch() -> int:
        raise KeyError("id")

    @sf.workflow(name="supposed_failing")
    def wf() -> int:
        return read() + fetch()

    with pytest.raises(KeyError):
        wf.run("r")

    found = supposed(do="retry", failed=True)

    assert (found.sets_aside, found.runs_again, found.next) == (["fetch#1"], ["fetch#1"], [("step", "fetch#1")])


def test_match_tells_whether_the_code_goes_on_then(supposed):
    @sf.workflow(name="supposed_renamed")
    def wf() -> int:
        return hold(1) + pay(2)

    stopped(wf)
    sf.get_run("r").settle("pay#1", happened=2)

    @sf.effect
    def reserve(n: int) -> int:
        return n

    @sf.workflow(name="supposed_renamed")  # type: ignore[no-redef]
    def wf() -> int:
        return reserve(1) + pay(2) + tell(3)

    stopped(wf)

    renamed = supposed(**{"do": "match", "address": "reserve#1", "is": "hold#1"})
    new = supposed(do="match", address="reserve#1", new=True)

    assert (renamed.next, renamed.stops) == ([("step", "tell#1")], [])
    assert (new.next, new.stops) == ([("effect", "reserve#1")], [])


def test_release_tells_what_would_be_tried_once_more(supposed, monkeypatch):
    monkeypatch.setattr("surefoot.core.readiness.LONGEST_BACK_OFF", 0)
    broken = [True]

    @sf.workflow(name="supposed_fragile")
    def fragile() -> int:
        if broken:
            raise sf.UsageError("the code is wrong")
        return tell(1)

    run = fragile.start("r")
    with sf.Worker(workflows=[fragile]):
        wait_until(lambda: run.status == "stopped")
    broken.clear()

    assert run.plan().next == []
    assert supposed(do="release").next == [("step", "tell#1")]


def test_accept_tells_what_comes_after_the_drift(supposed, own_folder):
    watched = own_folder / "a.txt"
    watched.write_text("1")

    @sf.workflow(name="supposed_drift", watch=[witness.file("a.txt")])
    def wf() -> int:
        n = read()
        if stop:
            raise KeyboardInterrupt
        return tell(n)

    stop = [True]
    with pytest.raises(KeyboardInterrupt):
        wf.run("r")
    stop.clear()
    watched.write_text("2")
    shown = {found.part: found.actual for found in sf.get_run("r").drift()}

    found = supposed(do="accept", found=shown)

    assert (found.next, found.stops, found.plan.drift) == ([("step", "tell#1")], [], [])
    watched.write_text("3")
    with pytest.raises(sf.Outdated):
        supposed(do="accept", found=shown)


def test_event_is_taken_by_the_wait(supposed):
    @sf.workflow(name="supposed_event")
    def wf() -> int:
        return tell(sf.wait_event("paid"))

    stopped(wf)

    taken = supposed(do="event", name="paid", value=3, id="1")
    assert taken.next == [("wait_event", "wait_event#1")]
    assert supposed(do="event", name="other", value=3, id="1").stops


def test_large_value_is_supposed_without_being_stored(supposed):
    """Its parts are in no store, and the code may look at all of it."""
    seen = []

    @sf.effect
    def fetch() -> list[str]:
        raise ConnectionError("lost")

    @sf.workflow(name="supposed_large")
    def wf() -> int:
        found = fetch()
        seen.append(len(found))
        return tell(len(found))

    stopped(wf)

    found = supposed(do="settle", address="fetch#1", happened=["lorem ipsum"] * 5000)

    assert found.next == [("step", "tell#1")]
    assert seen == [5000]


def test_what_was_supposed_can_be_said_of_that_very_run(supposed):
    """`seen` is the run that was asked about: if it has moved, nothing is recorded."""
    stopped(trip)
    found = supposed(do="settle", address="pay#1", happened=3)

    sf.get_run("r").settle("pay#1", happened=3, seen=found.seen)
    with pytest.raises(sf.Outdated):
        sf.get_run("r").rewind("read#1", seen=found.seen)


def test_without_the_code_what_follows_is_not_known(program):
    program.write(
        """
        import surefoot as sf

        @sf.effect
        def pay():
            raise ConnectionError("lost")

        @sf.workflow(name="supposed_elsewhere")
        def wf():
            return pay()

        try:
            wf.run("r")
        except sf.InDoubt:
            pass
        """
    )
    program.run()

    found = sf.get_run("r").plan(supposing={"do": "settle", "address": "pay#1", "happened": 1})

    assert (found.next, found.in_doubt) == (None, [])
    assert sf.get_run("r").plan(supposing={"do": "cancel"}).next is None


def test_damage_is_no_plan():
    stopped(trip)
    garble(3)

    with pytest.raises(sf.JournalCorrupt):
        sf.get_run("r").plan(supposing={"do": "cancel"})
