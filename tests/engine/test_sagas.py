"""What was done is taken back, newest first, each undo an effect of its own; a crash in the middle goes on undoing."""

from __future__ import annotations

import asyncio
import threading
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest

import surefoot as sf
from surefoot import aio, witness
from surefoot.core.state import RunState
from surefoot.view.standing import stands, what_helps
from tests.undoing import POINTS, kill_while_undoing


class Agency:
    """Books and cancels; may be told to fail, and to be cut off."""

    def __init__(self, **undo):
        self.log: list[str] = []
        self.cut = ""
        self.fails = ""

        @sf.effect(not_done=RuntimeError)
        def book(n: object) -> str:
            self.do(f"book {n}")
            return f"#{n}"

        @book.undo(**undo) if undo else book.undo
        def _(n, result):
            self.do(f"cancel {n} {result}")

        @sf.effect(not_done=RuntimeError)
        def mail(n: object) -> None:
            self.do(f"mail {n}")

        self.book, self.mail = book, mail

    def do(self, what):
        if self.fails == what:
            raise RuntimeError("no")
        self.log.append(what)
        if self.cut == what:
            raise KeyboardInterrupt


@pytest.fixture
def agency():
    return Agency()


@pytest.fixture
def heard():
    """What alerts were told."""
    told = []
    sf.configure(alerts=[told.append])
    yield told
    sf.configure(alerts=[])


def kinds(run_id="r"):
    return [entry.kind for entry in sf.get_run(run_id).entries()]


# -- killed at every point of undoing -----------------------------------------------------------------------


@pytest.mark.processes
@pytest.mark.parametrize(
    ("policy", "point"),
    [
        ("retry", POINTS[1]),
        ("retry", POINTS[2]),
        ("check", POINTS[0]),
        ("check", POINTS[5]),
        ("ask", POINTS[3]),
        ("ask", POINTS[6]),
    ],
)
def test_a_saga_killed_while_undoing_goes_on_undoing(tmp_path, policy, point):
    """C-11. Every point, every policy and both colours in `make proof`."""
    kill_while_undoing(tmp_path, "blocking", policy, point)


@pytest.mark.parametrize("undo", [4, 3, 2, 1])
@pytest.mark.parametrize("policy", ["retry", "check"])
def test_cut_off_in_each_undo_everything_is_undone_in_reverse_order(policy, undo):
    """The same in this process, at every undo."""
    agency = Agency(on_crash=policy)
    if policy == "check":
        agency.book.undo.check(lambda n, result: _found(agency, n, result))

    @sf.workflow
    def trip() -> None:
        with sf.saga():
            for n in range(1, 6):
                agency.fails = "book 5"
                agency.book(n)

    agency.cut = f"cancel {undo} #{undo}"
    with pytest.raises(KeyboardInterrupt):
        trip.run("r")
    agency.cut = ""

    with pytest.raises(RuntimeError, match="no"):
        trip.run("r")
    cancels = [line for line in agency.log if line.startswith("cancel")]
    if policy == "retry":
        cancels = list(dict.fromkeys(cancels))
    assert cancels == [f"cancel {n} #{n}" for n in (4, 3, 2, 1)]
    assert sf.get_run("r").status == "failed"


def _found(agency, n, result):
    return sf.happened() if f"cancel {n} {result}" in agency.log else sf.not_happened()


# -- what is undone, and in which order -------------------------------------------------------------------------


def test_a_saga_that_succeeds_undoes_nothing_and_effects_without_undo_are_left_out(agency):
    @sf.workflow
    def trip(fail: bool) -> None:
        with sf.saga():
            agency.book(1)
            agency.mail(1)
            if fail:
                raise ValueError("no")

    trip.run("r1", fail=False)
    assert agency.log == ["book 1", "mail 1"]
    with pytest.raises(ValueError, match="no"):
        trip.run("r2", fail=True)
    assert agency.log[2:] == ["book 1", "mail 1", "cancel 1 #1"]


def test_what_has_no_undo_is_named_once_however_many_sagas_fail(agency, heard, caplog):
    """'It was undone' is taken for everything. The mail is out, and somebody has to write another one."""

    @sf.workflow
    def trip() -> None:
        agency.mail(0)
        with sf.saga():
            agency.book(1)
            with sf.saga():
                sf.map(agency.mail, ["a", "b"], key=str)
                agency.mail(1)
                raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        trip.run("r")

    left = "Left as they are, they have no undo: [a]/mail#1, [b]/mail#1, mail#2"
    assert [record.message for record in caplog.records if "no undo" in record.message] == [
        f"run r: a saga did not succeed. {left}"
    ]
    assert [(alert.run, alert.kind) for alert in heard] == [("r", "saga")]
    assert agency.log[-1] == "cancel 1 #1"


def test_what_has_no_undo_is_named_by_async_sagas_and_not_alerted_of_at_every_replay(agency, heard, caplog):
    """A run that went on after its saga had failed passes there at every resume."""

    @sf.workflow
    async def trip() -> None:
        try:
            async with aio.saga():
                agency.mail(1)
                raise ValueError("no")
        except ValueError:
            await aio.wait_event("go")

    for _ in range(2):
        with pytest.raises(sf.WaitingForAnswer):
            asyncio.run(trip.using(wait="10ms").run("r"))

    assert "they have no undo: mail#1" in caplog.text
    assert [alert.kind for alert in heard] == ["saga", "WaitingForAnswer"]


def test_nested_sagas_undo_from_the_inside_and_nothing_twice(agency):
    @sf.workflow
    def trip(inner: bool) -> str:
        with sf.saga():
            agency.book("a")
            try:
                with sf.saga():
                    agency.book("b")
                    if inner:
                        raise ValueError("inner")
            except ValueError:
                agency.mail("instead")
            agency.book("c")
            raise RuntimeError("outer")

    with pytest.raises(RuntimeError, match="outer"):
        trip.run("r", inner=True)
    assert agency.log == ["book a", "book b", "cancel b #b", "mail instead", "book c", "cancel c #c", "cancel a #a"]
    agency.log.clear()
    with pytest.raises(RuntimeError, match="outer"):
        trip.run("r2", inner=False)
    assert agency.log == ["book a", "book b", "book c", "cancel c #c", "cancel b #b", "cancel a #a"]


def test_what_branches_did_is_undone_in_the_order_of_the_branches(agency):
    """However the threads were scheduled: a replay has to ask for the same undos."""
    second = threading.Event()

    def slow():
        second.wait(20)
        agency.book("first")

    def quick():
        agency.book("second")
        second.set()

    @sf.workflow
    def trip() -> None:
        with sf.saga():
            agency.book("before")
            sf.gather(slow, quick)
            sf.map(agency.book, ["x", "y"], key=str)
            raise ValueError("no")

    agency.cut = "cancel second #second"
    with pytest.raises(KeyboardInterrupt):
        trip.run("r")
    agency.cut = ""
    with pytest.raises(sf.InDoubt) as stop:
        trip.run("r")
    assert stop.value.address == "book.undo#3"
    sf.get_run("r").settle("book.undo#3", happened=None)
    with pytest.raises(ValueError, match="no"):
        trip.run("r")
    cancels = [line.split()[1] for line in agency.log if line.startswith("cancel")]
    assert cancels == ["y", "x", "second", "first", "before"]


def test_a_saga_in_a_branch_undoes_that_branch_only(agency):
    def branch(n):
        with sf.saga():
            agency.book(n)
            if n == 2:
                raise ValueError("no")

    @sf.workflow
    def trip() -> None:
        with sf.saga():
            sf.gather(lambda: branch(1), lambda: branch(2))

    with pytest.raises(ValueError, match="no"):
        trip.run("r")
    assert sorted(agency.log[:2]) == ["book 1", "book 2"]
    assert agency.log.count("cancel 2 #2") == agency.log.count("cancel 1 #1") == 1
    assert [call.address for call in sf.get_run("r").steps() if "undo" in call.address] == [
        "gather#1.1/book.undo#1",
        "book.undo#1",
    ]


def test_an_undo_gets_the_arguments_however_they_were_passed_and_the_result():
    seen = []

    @sf.effect
    def move(source: str, to: str = "b", *, force: bool = False) -> str:
        return f"{source}->{to}"

    @move.undo
    def _(a, b, result, *, force):
        seen.append((a, b, force, result, sf.key() != ""))

    @sf.effect
    def save(result: str) -> int:
        return len(result)

    @save.undo
    def _(result, size):
        seen.append((result, size))

    @sf.workflow
    def wf() -> None:
        with sf.saga():
            move(to="c", source="a")
            move("x", force=True)
            save(result="four")
            raise ValueError

    with pytest.raises(ValueError):
        wf.run("r")
    assert seen == [("four", 4), ("x", "b", True, "x->b", True), ("a", "c", False, "a->c", True)]


# -- when a saga does not undo ----------------------------------------------------------------------------------


def test_a_stop_undoes_nothing(agency):
    """Such a run is intact: it goes on once a person has answered."""

    @sf.workflow
    def trip() -> str:
        with sf.saga():
            agency.book(1)
            sf.approve("on?")
            agency.book(2)
        return "done"

    with pytest.raises(sf.WaitingForAnswer):
        trip.run("r")
    assert agency.log == ["book 1"]
    sf.get_run("r").answer("approve#1", value=True)
    assert trip.run("r") == "done"
    assert agency.log == ["book 1", "book 2"]


def test_ctrl_c_undoes_nothing(agency):
    @sf.workflow
    def trip() -> str:
        with sf.saga():
            agency.book(1)
            agency.mail(2)
        return "done"

    agency.cut = "mail 2"
    with pytest.raises(KeyboardInterrupt):
        trip.run("r")
    assert agency.log == ["book 1", "mail 2"]
    sf.get_run("r").settle("mail#1", happened=None)
    assert trip.run("r") == "done"


@pytest.mark.parametrize("error", [sf.UsageError("misuse"), sf.StoreUnavailable("gone"), sf.InDoubt("another run's")])
def test_what_leaves_the_run_resumable_undoes_nothing(agency, error):
    """Nothing that this run did: mended code goes on with what was done."""
    raises = [True]

    @sf.workflow
    def trip() -> str:
        with sf.saga():
            agency.book(1)
            if raises[0]:
                raise error
        return "done"

    with pytest.raises(type(error)):
        trip.run("r")
    raises[0] = False
    assert trip.run("r") == "done"
    assert agency.log == ["book 1"]


# -- cancellation --------------------------------------------------------------------------------------------------


def cancelled_trip(agency, *, at):
    """Asked to cancel while it books number `at`."""

    @sf.workflow
    def trip() -> None:
        agency.book("outside")
        with sf.saga():
            for n in range(1, 5):
                if n == at:
                    with sf.outside():
                        sf.get_run("r").cancel(by="ann")
                agency.book(n)

    return trip


def test_cancellation_in_a_saga_undoes(agency):
    with pytest.raises(sf.Cancelled):
        cancelled_trip(agency, at=3).run("r")

    # The request is met when the third is about to be recorded; what was under way is finished first.
    cancels = ["cancel 3 #3", "cancel 2 #2", "cancel 1 #1"]
    assert agency.log == ["book outside", "book 1", "book 2", "book 3", *cancels]
    assert sf.get_run("r").status == "cancelled"


@pytest.mark.parametrize("cut", ["cancel 2 #2", "cancel 1 #1"])
def test_a_cancelled_saga_that_was_cut_off_while_undoing_goes_on_undoing(cut):
    """What was done is replayed first; else nobody would know what there is to undo."""
    agency = Agency(on_crash="retry")
    asked = []

    @sf.workflow
    def trip() -> None:
        with sf.saga():
            agency.book(1)
            sf.now()
            agency.book(2)
            if not asked:
                asked.append(True)
                with sf.outside():
                    sf.get_run("r").cancel()
            sf.sleep("1h")
            agency.book(3)

    agency.cut = cut
    with pytest.raises(KeyboardInterrupt):
        trip.run("r")
    agency.cut = ""
    with pytest.raises(sf.Cancelled):
        trip.run("r")
    assert list(dict.fromkeys(agency.log)) == ["book 1", "book 2", "cancel 2 #2", "cancel 1 #1"]
    assert sf.get_run("r").status == "cancelled"


def test_a_run_that_stands_still_is_undone_when_it_is_cancelled(agency):
    """Given up while it waits for an answer: what its saga did is taken back."""

    @sf.workflow(name="given up")
    def trip() -> None:
        with sf.saga():
            agency.book("done")
        with sf.saga():
            agency.book(1)
            sf.approve("on?")

    with pytest.raises(sf.WaitingForAnswer):
        trip.run("r")

    sf.get_run("r").cancel(by="ann")

    assert sf.get_run("r").status == "cancelled"
    assert agency.log == ["book done", "book 1", "cancel 1 #1"]


def test_a_run_whose_code_has_changed_can_still_be_given_up(agency, caplog):
    number = [1]

    @sf.workflow(name="given up and changed")
    def trip() -> None:
        with sf.saga():
            agency.book(number[0])
            sf.approve("on?")

    with pytest.raises(sf.WaitingForAnswer):
        trip.run("r")
    number[0] = 2
    sf.get_run("r").cancel()
    assert sf.get_run("r").status == "cancelled"
    assert "nothing of it was undone" in caplog.text


def test_other_branches_of_a_cancelled_run_make_no_calls_while_one_undoes(agency):
    undoing, over = threading.Event(), threading.Event()

    @sf.effect
    def hold() -> None: ...

    @hold.undo
    def _(result):
        undoing.set()
        over.wait(20)

    def cancels():
        with sf.saga():
            hold()
            with sf.outside():
                sf.get_run("r").cancel()
            agency.mail("last")
            agency.mail("never")

    def other():
        undoing.wait(20)
        try:
            agency.mail("neither")
        finally:
            over.set()

    @sf.workflow
    def wf() -> None:
        sf.gather(cancels, other)

    with pytest.raises(sf.Cancelled):
        wf.run("r")
    assert agency.log == ["mail last"]


# -- an undo that fails ------------------------------------------------------------------------------------------------


def failing_trip(agency):
    @sf.workflow
    def trip() -> None:
        with sf.saga():
            for n in (1, 2, 3):
                agency.book(n)
            raise ValueError("trip failed")

    return trip


def test_an_undo_that_raises_is_in_doubt_and_the_run_stays_resumable(agency):
    """Nobody knows what it did: a person looks, and the rest is undone."""
    trip = failing_trip(agency)
    agency.fails = "cancel 2 #2"
    for _ in range(2):
        with pytest.raises(sf.InDoubt, match=r"(raised|ended with) RuntimeError") as stop:
            trip.run("r")
        assert stop.value.address == "book.undo#2"
    agency.fails = ""
    sf.get_run("r").settle("book.undo#2", not_happened=True, by="ann")

    with pytest.raises(ValueError, match="trip failed"):
        trip.run("r")
    assert agency.log[3:] == ["cancel 3 #3", "cancel 2 #2", "cancel 1 #1"]


def test_an_undo_that_failed_for_good_does_not_keep_the_others_from_being_undone():
    agency = Agency(on_crash="fail")
    agency.fails = "cancel 2 #2"

    with pytest.raises(sf.StepFailed, match=r"InDoubt: book\.undo#2"):
        failing_trip(agency).run("r")

    assert agency.log[3:] == ["cancel 3 #3", "cancel 1 #1"]


def closed_trip(colour, seen, *, cut=(), nested=False):
    """The hotel cannot be cancelled; the workflow takes that for rolled back."""

    @sf.effect(name="hotel")
    def hotel() -> str:
        return "room"

    @hotel.undo
    def _(result):
        raise sf.NotDone("closed")

    def rolled_back(error):
        seen.append((repr(error), repr(error.__context__)))
        if cut:
            raise KeyboardInterrupt
        return "rolled back"

    @sf.workflow(name="closed_blocking")
    def blocking() -> str:
        try:
            with sf.saga(), sf.saga() if nested else nullcontext():
                hotel()
                raise ValueError("no flight")
        except sf.NotDone as error:
            return rolled_back(error)

    @sf.workflow(name="closed_async")
    async def in_tasks() -> str:
        try:
            async with aio.saga(), aio.saga() if nested else nullcontext():
                hotel()
                raise ValueError("no flight")
        except sf.NotDone as error:
            return rolled_back(error)

    return blocking.run if colour == "blocking" else lambda run_id: asyncio.run(in_tasks.run(run_id))


@pytest.mark.parametrize("colour", ["blocking", "async"])
@pytest.mark.parametrize("nested", [False, True])
def test_an_effect_whose_undo_failed_for_good_is_told_and_stays_on_record(colour, nested, heard):
    """The run is done and says "rolled back"; the hotel is still booked."""
    assert closed_trip(colour, [], nested=nested)("r") == "rolled back"

    (alert,) = heard
    assert (alert.run, alert.kind) == ("r", "saga")
    assert "Left as they are, their undos failed: hotel#1 (hotel.undo#1)" in alert
    assert "surefoot runs retry r --at 'hotel.undo#1'" in alert
    run = sf.get_run("r")
    assert run.state().left == ("hotel#1",)
    how = stands(run.state(), driven=False, now=0)
    assert how.rank < stands(RunState("other"), driven=False, now=0).rank
    assert [cure.do for cure in what_helps("r", how)] == ["surefoot runs retry r --at 'hotel.undo#1'"]
    assert kinds().count("EffectIntended") == 2, "the saga around it does not try again"


@pytest.mark.parametrize("colour", ["blocking", "async"])
def test_what_had_failed_stays_in_sight_behind_an_undo_that_fails(colour):
    """Also on replay, where the undo's failure comes from the journal."""
    seen, cut = [], [True]
    trip = closed_trip(colour, seen, cut=cut)
    with pytest.raises(KeyboardInterrupt):
        trip("r")
    cut.clear()
    trip("r")

    assert set(seen) == {("NotDone('closed')", "ValueError('no flight')")}


def test_a_no_to_an_undo_is_told_too(heard):
    """Whoever denies it leaves the room booked, and the run ends."""

    @sf.effect
    def hotel() -> str:
        return "room"

    @hotel.undo
    def _(result):
        pass

    @sf.workflow(approve="every")
    def trip() -> None:
        with sf.saga():
            hotel()
            raise ValueError("no flight")

    for address, answer in (("hotel#1", True), ("hotel.undo#1", False)):
        with pytest.raises(sf.WaitingForAnswer):
            trip.run("r")
        sf.get_run("r").answer(f"{address}.approval", answer, by="bob")
    with pytest.raises(sf.Fatal, match="denied by bob"):
        trip.run("r")

    assert [alert.kind for alert in heard] == ["WaitingForAnswer", "WaitingForAnswer", "saga"]
    assert sf.get_run("r").state().left == ("hotel#1",)


def test_an_undo_that_is_settled_as_failed_is_told_though_the_saga_is_only_replayed(agency, heard):
    """Nothing happens in the process that passes the saga; the one before could not know."""

    @sf.workflow
    def trip() -> None:
        with sf.saga():
            agency.book(1)
            raise ValueError("trip failed")

    agency.fails = "cancel 1 #1"
    with pytest.raises(sf.InDoubt):
        trip.run("r")
    sf.get_run("r").settle("book.undo#1", failed=True, by="ann")
    with pytest.raises(RuntimeError):
        trip.run("r")

    assert [alert.kind for alert in heard] == ["InDoubt", "saga"]
    assert sf.get_run("r").state().left == ("book#1",)


@pytest.mark.parametrize("colour", ["blocking", "async"])
def test_an_undo_by_hand_that_failed_is_told_too(colour, heard):
    """The code may catch it and go on."""

    @sf.effect
    def hotel() -> str:
        return "room"

    @hotel.undo
    def _(result):
        raise sf.NotDone("closed")

    @sf.workflow(name="by_hand_blocking")
    def blocking() -> None:
        hotel()
        with suppress(sf.NotDone):
            sf.undo(hotel)

    @sf.workflow(name="by_hand_async")
    async def in_tasks() -> None:
        hotel()
        with suppress(sf.NotDone):
            await aio.undo(hotel)

    blocking.run("r") if colour == "blocking" else asyncio.run(in_tasks.run("r"))

    assert "their undos failed: hotel#1 (hotel.undo#1)" in heard[0]
    assert sf.get_run("r").state().left == ("hotel#1",)


def test_an_undos_own_writes_are_no_drift():
    """It touches what its effect touches."""
    cut = [True]

    @sf.effect(touches=[witness.file])
    def write(path: str) -> None:
        Path(path).write_text("new")

    @write.undo
    def _(path, result):
        Path(path).unlink()

    @sf.workflow(watch=[witness.files("*.txt")])
    def wf() -> None:
        try:
            with sf.saga():
                write("a.txt")
                raise ValueError("no")
        except ValueError:
            if cut[0]:
                raise KeyboardInterrupt from None

    with pytest.raises(KeyboardInterrupt):
        wf.run("r")
    assert sf.get_run("r").drift() == []
    cut[0] = False
    assert wf.run("r") is None


# -- sf.undo -------------------------------------------------------------------------------------------------------------


def test_undo_takes_back_what_these_effects_did_and_nothing_twice(agency):
    @sf.effect
    def rent(n: int) -> int:
        agency.do(f"rent {n}")
        return n

    @rent.undo
    def _(n, result):
        agency.do(f"return {n} {result}")

    @sf.workflow
    def wf() -> str:
        agency.book(1)
        rent(2)
        agency.book(3)
        sf.undo(agency.book)
        sf.undo(agency.book)
        sf.undo()
        return "home"

    assert wf.run("r") == "home"
    assert agency.log == ["book 1", "rent 2", "book 3", "cancel 3 #3", "cancel 1 #1", "return 2 2"]
    assert wf.run("r") == "home"
    assert len(agency.log) == 6


def test_undo_of_what_has_none_is_refused(agency):
    @sf.workflow
    def wf() -> None:
        agency.mail(1)
        sf.undo(agency.mail)

    with pytest.raises(sf.UsageError, match="takes effects that have an undo"):
        wf.run("r")


def test_policies_of_undos_are_checked_when_decorated(agency):
    with pytest.raises(sf.UsageError, match="has an undo already"):
        agency.book.undo(lambda n, result: (n, result))
    with pytest.raises(sf.UsageError, match="on_crash='perhaps'"):
        agency.mail.undo(on_crash="perhaps")(lambda n, result: (n, result))
    with pytest.raises(sf.UsageError, match="has no undo yet"):
        sf.effect(lambda: None).undo.check(lambda result: result)


@pytest.mark.parametrize("policy", ["ask", "retry", "fail"])
def test_an_undo_inherits_the_policy_of_its_effect(policy):
    @sf.effect(on_crash=policy)
    def act() -> None: ...

    act.undo(lambda result: result)

    assert act.spec.undo.on_crash == policy


# -- async -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("colour", ["async", "blocking"])
def test_async_sagas_undo_with_undos_of_either_colour(colour):
    log = []

    @aio.effect
    async def book(n: int) -> int:
        log.append(f"book {n}")
        return n

    if colour == "async":

        @book.undo
        async def _(n, result):
            log.append(f"cancel {n} {result}")
    else:

        @book.undo
        def _(n, result):
            log.append(f"cancel {n} {result}")

    @aio.workflow
    async def trip() -> None:
        async with aio.saga():
            await aio.gather(book(1), book(2))
            await book(3)
            await aio.undo(book)
            await book(4)
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        asyncio.run(trip.run("r"))
    assert sorted(log[:2]) == ["book 1", "book 2"]
    assert log[2:] == ["book 3", "cancel 3 3", "cancel 2 2", "cancel 1 1", "book 4", "cancel 4 4"]


def test_a_task_with_a_scope_of_its_own_is_undone_too():
    """Nobody joins it, but what it did is done all the same; by the names of the scopes, so that replay agrees."""
    log = []

    @aio.effect
    async def book(n: str) -> None:
        log.append(f"book {n}")

    @book.undo
    async def _(n, result):
        log.append(f"cancel {n}")

    async def one(name):
        with aio.scope(name):
            await book(name)

    @aio.workflow
    async def trip() -> None:
        async with aio.saga():
            await book("own")
            async with asyncio.TaskGroup() as group:
                group.create_task(one("b"))
                group.create_task(one("a"))
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        asyncio.run(trip.run("r"))
    assert log[3:] == ["cancel b", "cancel a", "cancel own"]


def test_blocking_words_for_async_sagas_are_refused():
    @aio.effect
    async def book() -> None: ...

    @book.undo
    async def _(result): ...

    @aio.workflow
    async def with_saga() -> None:
        with aio.saga():
            pass

    @aio.workflow
    async def with_undo() -> None:
        await book()
        sf.undo(book)

    with pytest.raises(sf.UsageError, match="async with"):
        asyncio.run(with_saga.run("r1"))
    with pytest.raises(sf.UsageError, match=r"await sf\.undo"):
        asyncio.run(with_undo.run("r2"))
