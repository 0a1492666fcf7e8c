"""Sending a run back: what was recorded from there on is set aside, and what was done to the world is not forgotten."""

from __future__ import annotations

import contextlib
import logging
import signal
import threading

import pytest

import surefoot as sf
from surefoot import witness


def its_file(path, *_):
    """What a writing effect touches."""
    return witness.file(path)


def statuses(run_id):
    return {call.address: call.status for call in sf.get_run(run_id).steps()}


@pytest.fixture
def broken(ledger):
    """A run that paid, and then failed on what a step had given it."""
    mended: list[int] = []

    @sf.step
    def quote() -> int:
        ledger.write("quote")
        return 7 if mended else -7

    @sf.effect
    def pay(what: str) -> str:
        ledger.write(f"pay {what} {sf.key()}")
        return f"paid {what}"

    @sf.step
    def book(amount: int) -> int:
        ledger.write("book")
        if amount < 0:
            raise ValueError("negative")
        return amount

    @sf.workflow
    def wf() -> list:
        return [pay("a"), quote_and_book(), pay("b")]

    def quote_and_book() -> int:
        return book(quote())

    wf.mended = mended
    return wf


def test_a_failed_run_is_mended_by_going_back(broken, ledger):
    """The same run, the same id: what came before the point is kept."""
    with pytest.raises(ValueError, match="negative"):
        broken.run("r")
    broken.mended.append(1)
    with pytest.raises(ValueError, match="negative"):
        broken.run("r")  # It has failed, and stays so until somebody says otherwise.

    assert sf.get_run("r").rewind("quote#1", by="ann", note="the price was wrong") == []

    assert sf.get_run("r").status == "queued"
    assert broken.run("r") == ["paid a", 7, "paid b"]
    assert [line.split()[0] for line in ledger.lines] == ["pay", "quote", "book", "quote", "book", "pay"]
    entry = next(entry for entry in sf.get_run("r").entries() if entry.kind == "RunRewound")
    assert (entry.data["by"], entry.data["note"]) == ("ann", "the price was wrong")


def test_a_done_run_is_taken_up_again_and_its_effects_are_in_doubt(broken, ledger):
    """They were executed, and looking away does not undo that."""
    broken.mended.append(1)
    assert broken.run("r") == ["paid a", 7, "paid b"]
    keys = {call.address: call.key for call in sf.get_run("r").steps()}

    assert sf.get_run("r").rewind("quote#1") == ["pay#2"]

    assert statuses("r") == {"pay#1": "done", "pay#2": "in doubt"}
    with pytest.raises(sf.InDoubt, match=r"pay#2: it may have been executed before the run was sent back"):
        broken.run("r")
    sf.get_run("r").settle("pay#2", not_happened=True, by="ann")
    assert broken.run("r") == ["paid a", 7, "paid b"]
    assert {call.address: call.key for call in sf.get_run("r").steps()} == keys, "the same key"
    assert sum(line.startswith("pay b") for line in ledger.lines) == 2


def one_effect(ledger, on_crash, check=None):
    @sf.effect(on_crash=on_crash)
    def pay(amount: int) -> str:
        ledger.write(f"pay {amount} {sf.key()}")
        return f"paid {len(ledger.lines)}"

    if check is not None:

        @pay.check
        def _(amount: int):
            assert amount == 5
            return check

    @sf.workflow
    def wf(amounts: tuple) -> str:
        return pay(sum(amounts))

    assert wf.run("r", (5,)) == "paid 1"
    assert sf.get_run("r").rewind("pay#1") == ["pay#1"]
    return wf


def test_asking_stops(ledger):
    wf = one_effect(ledger, "ask")

    with pytest.raises(sf.InDoubt):
        wf.run("r", (5,))
    assert len(ledger.lines) == 1


def test_retrying_runs_it_again_with_the_same_key(ledger):
    wf = one_effect(ledger, "retry")

    assert wf.run("r", (5,)) == "paid 2"
    assert len(set(ledger.lines)) == 1
    assert len(ledger.lines) == 2


def test_failing_fails_the_call(ledger):
    wf = one_effect(ledger, "fail")

    with pytest.raises(sf.StepFailed, match="InDoubt"):
        wf.run("r", (5,))
    assert len(ledger.lines) == 1


def test_what_failed_because_it_was_in_doubt_is_in_doubt_after_a_rewind(ledger):
    """To run it now as if nothing had happened would be to do it twice, silently."""
    wf = one_effect(ledger, "fail")
    with pytest.raises(sf.StepFailed, match="InDoubt"):
        wf.run("r", (5,))

    assert sf.get_run("r").rewind("pay#1") == ["pay#1"]

    with pytest.raises(sf.StepFailed, match="InDoubt"):
        wf.run("r", (5,))
    assert len(ledger.lines) == 1


def test_an_effect_that_failed_and_so_did_nothing_just_runs_again(ledger):
    declined = [True]

    @sf.effect
    def pay() -> str:
        ledger.write("pay")
        if declined:
            raise sf.NotDone("declined")
        return "paid"

    @sf.workflow
    def wf() -> str:
        return pay()

    with pytest.raises(sf.NotDone):
        wf.run("r")
    declined.clear()

    assert sf.get_run("r").rewind("pay#1") == []
    assert wf.run("r") == "paid"


def test_a_check_that_says_happened_adopts(ledger):
    wf = one_effect(ledger, "check", sf.happened("found"))

    assert wf.run("r", (5,)) == "found"
    assert len(ledger.lines) == 1
    assert sf.get_run("r").steps()[0].learned_by == "check"


def test_a_check_that_says_not_happened_runs_it_again(ledger):
    wf = one_effect(ledger, "check", sf.not_happened())

    assert wf.run("r", (5,)) == "paid 2"
    assert len(set(ledger.lines)) == 1


def test_a_check_that_cannot_tell_stops(ledger):
    wf = one_effect(ledger, "check", sf.unknown("no connection"))

    with pytest.raises(sf.InDoubt, match="no connection"):
        wf.run("r", (5,))
    assert len(ledger.lines) == 1


def test_a_retry_with_other_arguments_is_no_retry(ledger):
    """Under the same key the provider would answer for the old amount: that is not ours to decide."""
    amount = [5]

    @sf.step
    def how_much() -> int:
        return amount[0]

    @sf.effect(on_crash="retry")
    def pay(amount: int) -> int:
        ledger.write(f"pay {amount}")
        return amount

    @sf.workflow
    def wf() -> int:
        return pay(how_much())

    wf.run("r")
    amount[0] = 6
    sf.get_run("r").rewind("how_much#1")

    with pytest.raises(sf.InDoubt, match="to run it now would be no retry"):
        wf.run("r")
    assert ledger.lines == ["pay 5"]
    sf.get_run("r").settle("pay#1", not_happened=True, note="refunded")
    assert wf.run("r") == 6


def test_an_inherited_effect_of_a_fork_is_no_retry_either(ledger):
    """It was executed under the parent's key; the fork's own would do it a second time."""
    wf = one_effect(ledger, "retry")
    assert wf.run("r", (5,)) == "paid 2"

    @sf.step
    def end() -> None: ...

    @sf.effect(on_crash="retry")
    def pay() -> None:
        ledger.write("pay")

    @sf.workflow
    def two() -> None:
        pay()
        end()

    two.run("p")
    fork = sf.get_run("p").fork("f", at="end#1").run
    fork.rewind("pay#1")

    with pytest.raises(sf.InDoubt, match="no retry"):
        two.run("f")
    assert ledger.lines.count("pay") == 1


def test_effects_that_are_not_asked_for_any_more_are_warned_about(ledger, caplog):
    """The person sent it back so that it goes another way. That something was done must not be forgotten, though."""
    other: list[int] = []

    @sf.step
    def decide() -> bool:
        return bool(other)

    @sf.effect
    def pay() -> str:
        ledger.write("pay")
        return "paid"

    @sf.workflow
    def wf() -> str:
        return "did not pay" if decide() else pay()

    assert wf.run("r") == "paid"
    other.append(1)
    sf.get_run("r").rewind("decide#1")

    with caplog.at_level(logging.WARNING, "surefoot"):
        assert wf.run("r") == "did not pay"

    assert "executed before the run was sent back" in caplog.text
    unclaimed = next(entry for entry in sf.get_run("r").entries() if entry.kind == "CallsUnclaimed")
    assert unclaimed.data["addresses"] == ["pay#1"]


def test_a_settled_effect_that_is_not_asked_for_is_no_code_change_either(ledger):
    other: list[int] = []

    @sf.step
    def decide() -> bool:
        return bool(other)

    @sf.effect
    def pay() -> str:
        return "paid"

    @sf.workflow
    def wf() -> str:
        return "did not pay" if decide() else pay()

    wf.run("r")
    other.append(1)
    sf.get_run("r").rewind("decide#1")
    sf.get_run("r").settle("pay#1", happened="paid")

    assert wf.run("r") == "did not pay"


def test_without_a_rewind_the_same_is_a_code_change():
    """The exception is for those who were sent back, and for nobody else."""
    other: list[int] = []

    @sf.effect
    def pay() -> str:
        return "paid"

    @sf.workflow
    def wf() -> str:
        if other:
            return "did not pay"
        pay()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        wf.run("r")
    other.append(1)

    with pytest.raises(sf.CodeChanged):
        wf.run("r")


def test_events_that_were_taken_after_the_point_are_taken_again():
    """They were sent once, and nobody will send them a second time."""

    @sf.step
    def before() -> None: ...

    @sf.workflow
    def wf() -> list:
        early = sf.wait_event("early")
        before()
        return [early, sf.wait_event("late")]

    with pytest.raises(sf.WaitingForAnswer):
        wf.run("r")
    run = sf.get_run("r")
    run.send_event("early", 1, id="1")
    run.send_event("late", 2, id="2")
    assert wf.run("r") == [1, 2]

    run.rewind("before#1")

    assert wf.run("r") == [1, 2]
    taken = [entry.data["id"] for entry in run.entries() if entry.kind == "EventTaken"]
    assert taken == ["1", "2", "2"]


def test_questions_from_there_on_are_asked_again():
    @sf.workflow
    def wf() -> list:
        return [bool(sf.approve("one?")), bool(sf.approve("two?"))]

    run = None
    for name in ("approve#1", "approve#2"):
        with pytest.raises(sf.WaitingForAnswer, match=name):
            wf.run("r")
        run = sf.get_run("r")
        run.answer(name, True)
    assert wf.run("r") == [True, True]

    run.rewind("approve#2")

    with pytest.raises(sf.WaitingForAnswer, match="approve#2"):
        wf.run("r")
    run.answer("approve#2", False)
    assert wf.run("r") == [True, False]


def test_what_was_recorded_of_the_world_after_the_point_is_taken_as_found(tmp_path):
    """The cure that a drift stop offers: do it again. It must not stop at the very thing that it is to mend."""
    (tmp_path / "keep.txt").write_text("0")

    @sf.effect(on_crash="retry", touches=[its_file])
    def write(path: str, text: str) -> int:
        (tmp_path / path).write_text(text)
        return len(text)

    go: list[int] = []

    @sf.workflow(watch=[witness.files("*.txt")])
    def wf() -> int:
        total = write("a.txt", "1") + write("b.txt", "22")
        if not go:
            raise KeyboardInterrupt
        return total

    with pytest.raises(KeyboardInterrupt):
        wf.run("r")
    go.append(1)
    (tmp_path / "b.txt").write_text("somebody's")
    with pytest.raises(sf.Drifted, match=r"runs rewind r --at 'write#2'"):
        wf.run("r")

    sf.get_run("r").rewind("write#2")

    assert wf.run("r") == 3
    assert (tmp_path / "b.txt").read_text() == "22"


def test_what_was_recorded_before_the_point_is_still_expected(tmp_path):
    @sf.effect(on_crash="retry", touches=[its_file])
    def write(path: str, text: str) -> int:
        (tmp_path / path).write_text(text)
        return len(text)

    @sf.workflow(watch=[witness.files("*.txt")])
    def wf() -> int:
        return write("a.txt", "1") + write("b.txt", "22")

    wf.run("r")
    sf.get_run("r").rewind("write#2")
    (tmp_path / "a.txt").write_text("somebody's")

    with pytest.raises(sf.Drifted, match=r"file:a.txt: changed .* recorded by write#1"):
        wf.run("r")


def test_an_effect_in_doubt_before_the_point_is_judged_by_nobody(tmp_path):
    """What it touches is settled with it, not reported as drift, also if another branch was sent back."""
    writing = threading.Event()

    @sf.effect(touches=[its_file])
    def write(path: str) -> str:
        (tmp_path / path).write_text("half")
        writing.set()
        raise ConnectionError

    @sf.step
    def other() -> int:
        return 1

    def other_then() -> int:
        assert writing.wait(30)
        return other()

    @sf.workflow
    def wf() -> list:
        return list(sf.gather(lambda: write("a.txt"), other_then))

    with pytest.raises(sf.InDoubt):
        wf.run("r")
    run = sf.get_run("r")
    run.rewind("gather#1.1/other#1")

    assert run.drift() == []
    with pytest.raises(sf.InDoubt):
        wf.run("r")


def test_a_run_can_be_sent_back_twice(broken, ledger):
    broken.mended.append(1)
    broken.run("r")
    run = sf.get_run("r")

    run.rewind("pay#2")
    assert run.rewind("quote#1") == ["pay#2"]

    assert statuses("r") == {"pay#1": "done", "pay#2": "in doubt"}
    run.settle("pay#2", happened="paid b")
    assert broken.run("r") == ["paid a", 7, "paid b"]
    assert run.rewind("pay#1") == ["pay#1", "pay#2"]
    assert sum(line.startswith("pay") for line in ledger.lines) == 2


def test_an_effect_that_ran_again_belongs_to_where_it_ran_again(ledger):
    """Sent back a second time, to before a call that is new: what was executed behind it is in doubt again."""
    longer: list[int] = []

    @sf.step
    def extra() -> int:
        return 1

    @sf.effect(on_crash="retry")
    def pay() -> str:
        ledger.write("pay")
        return "paid"

    @sf.workflow
    def wf() -> str:
        if longer:
            extra()
        return pay()

    wf.run("r")
    run = sf.get_run("r")
    run.rewind("pay#1")
    longer.append(1)
    wf.run("r")

    assert run.rewind("extra#1") == ["pay#1"]


def test_a_run_that_a_living_process_drives_is_not_sent_back():
    here, go = threading.Event(), threading.Event()

    @sf.step
    def slow() -> int:
        here.set()
        assert go.wait(30)
        return 1

    @sf.step
    def first() -> int:
        return 1

    @sf.workflow
    def wf() -> int:
        return first() + slow()

    thread = threading.Thread(target=lambda: wf.run("r"))
    thread.start()
    assert here.wait(30)
    try:
        with pytest.raises(sf.UsageError, match="which is alive"):
            sf.get_run("r").rewind("first#1")
    finally:
        go.set()
        thread.join()


@pytest.mark.parametrize("bad", ["first#2", "nonsense", ""])
def test_an_unknown_address_is_refused_and_leaves_no_trace(broken, bad):
    with contextlib.suppress(ValueError):
        broken.run("r")
    before = sf.get_run("r").entries()

    with pytest.raises(sf.UsageError, match="has no recorded call"):
        sf.get_run("r").rewind(bad)
    assert sf.get_run("r").entries() == before


def test_a_crash_right_after_the_rewind_loses_nothing(program, ledger):
    """The rewind is one durable entry: whoever comes next goes on from there."""
    program.write(
        """
        import os, signal, sys
        import surefoot as sf

        def ledger(line):
            with open("ledger", "a") as file:
                file.write(line + "\\n")

        @sf.step
        def one():
            ledger("one")
            return 1

        @sf.effect(on_crash="retry")
        def two():
            ledger("two " + sf.key())
            if sys.argv[1] == "dying":
                os.kill(os.getpid(), signal.SIGKILL)
            return 2

        @sf.workflow
        def wf():
            return one() + two()

        print(wf.run("r"))
        if sys.argv[1] == "rewinding":
            sf.get_run("r").rewind("one#1")
            os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    assert program.run("rewinding").returncode == -signal.SIGKILL
    assert statuses("r") == {"two#1": "in doubt"}
    assert program.run("dying").returncode == -signal.SIGKILL

    ended = program.run("calmly")

    assert ended.stdout == "3\n", ended.stderr
    assert ledger.counts["one"] == 2, "a step that was recorded again is not repeated"
    assert len({line for line in ledger.lines if line.startswith("two")}) == 1, "always the same key"


def test_branches_and_scopes_are_sent_back_by_what_was_recorded_when(ledger):
    """The point is a moment of the run: whatever was recorded later is set aside, in every branch."""

    @sf.step
    def work(name: str) -> str:
        ledger.write(name)
        return name

    @sf.workflow
    def wf() -> list:
        with sf.scope("first/a"):
            one = work("scoped")
        return [one, *sf.map(work, ["b", "c"], key=str, concurrency=1), work("last")]

    result = wf.run("r")
    run = sf.get_run("r")
    middle = run.steps()[1].address

    run.rewind(middle)

    assert list(statuses("r")) == ["[first/a]/work#1"]
    assert wf.run("r") == result
    assert ledger.lines == ["scoped", "b", "c", "last", "b", "c", "last"]
    run.rewind("[first%2Fa]/work#1")
    assert run.steps() == []


def test_a_cancelled_run_that_is_sent_back_is_not_cancelled_any_more():
    """Somebody changed their mind, and said so on record."""
    calls: list[int] = []

    @sf.step
    def work() -> int:
        calls.append(1)
        if len(calls) == 1:
            sf.get_run("r").cancel(by="bob")
        return 1

    @sf.workflow
    def wf() -> int:
        return work() + work()

    with pytest.raises(sf.Cancelled):
        wf.run("r")

    sf.get_run("r").rewind("work#1", by="ann")

    assert wf.run("r") == 2


class Hotel:
    """Knows keys: a second request under a key is answered like the first, and does nothing."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.booked: set[str] = set()

    def request(self, act) -> None:
        if sf.key() not in self.seen:
            self.seen.add(sf.key())
            act()


def undone_trip(hotel, *, check=False, **options):
    """A run that booked, failed, and undid the booking."""
    mended: list[int] = []

    @sf.effect(on_crash="retry", **options)
    def book(what: str) -> str:
        hotel.request(lambda: hotel.booked.add(what))
        return what

    @book.undo
    def _(what: str, result: str) -> None:
        hotel.request(lambda: hotel.booked.discard(what))

    if check:
        book.check(lambda what: sf.happened(what) if what in hotel.booked else sf.not_happened())

    @sf.step
    def look() -> None:
        if not mended:
            raise ValueError("no")

    @sf.workflow
    def wf() -> str:
        with sf.saga():
            book("room")
            look()
        return "booked"

    with pytest.raises(ValueError):
        wf.run("r")
    assert not hotel.booked
    mended.append(1)
    wf.mended = mended
    return wf


@pytest.mark.parametrize("check", [False, True])
def test_an_effect_that_was_undone_is_not_sent_again_under_its_used_key(check):
    """The other side would answer as it did then and do nothing, and the run would take that for a booking."""
    hotel = Hotel()
    wf = undone_trip(hotel, check=check)
    sf.get_run("r").rewind("book#1")
    assert "stop" in dict(sf.get_run("r").plan().in_doubt)["book#1"]

    for _ in range(2):
        with pytest.raises(sf.InDoubt, match=r"book\.undo#1 may have undone it") as stop:
            wf.run("r")
    assert any("surefoot runs fork r --at 'book#1'" in do for _, do in stop.value.cures)

    sf.get_run("r").fork("again", at="book#1")
    assert wf.run("again") == "booked"
    assert hotel.booked == {"room"}


def test_a_check_that_finds_it_settles_an_effect_that_was_undone():
    """Somebody has booked it by hand meanwhile."""
    hotel = Hotel()
    wf = undone_trip(hotel, check=True)
    sf.get_run("r").rewind("book#1")
    hotel.booked.add("room")

    assert wf.run("r") == "booked"


def test_an_undo_is_not_sent_again_under_its_used_key_after_its_effect_was_made_good():
    """The booking is there again, by hand: the old cancellation would be answered, and not cancel it."""
    hotel = Hotel()
    wf = undone_trip(hotel)
    sf.get_run("r").rewind("book#1")
    hotel.booked.add("room")
    sf.get_run("r").settle("book#1", happened="room")
    wf.mended.clear()

    with pytest.raises(sf.InDoubt, match=r"book\.undo#1: .* what it undid may have been done again"):
        wf.run("r")


def test_an_effect_that_nobody_undid_is_retried_as_ever():
    """Only earlier ones of the same name count as undone."""
    hotel = Hotel()

    @sf.effect(on_crash="retry")
    def book(what: str) -> str:
        hotel.request(lambda: hotel.booked.add(what))
        return what

    @book.undo
    def _(what: str, result: str) -> None:
        hotel.request(lambda: hotel.booked.discard(what))

    @sf.workflow
    def wf() -> str:
        with contextlib.suppress(ValueError), sf.saga():
            book("room")
            raise ValueError
        return book("flat")

    wf.run("r")
    sf.get_run("r").rewind("book#2")

    assert wf.run("r") == "flat"
    assert hotel.booked == {"flat"}


def test_an_undone_effect_that_needs_a_yes_is_not_asked_about_before_it_may_run():
    """A yes is for one execution, and there is none."""
    hotel = Hotel()
    with pytest.raises(sf.WaitingForAnswer):
        undone_trip(hotel, approve=True)
    sf.get_run("r").answer("book#1.approval", True)
    wf = undone_trip(hotel, approve=True)
    sf.get_run("r").rewind("book#1")

    with pytest.raises(sf.InDoubt, match="may have undone it"):
        wf.run("r")
    sf.get_run("r").settle("book#1", not_happened=True)
    with pytest.raises(sf.WaitingForAnswer):
        wf.run("r")


@pytest.fixture
def refunded(ledger):
    """A run that charged, was denied, refunded, and failed."""

    @sf.effect
    def charge(order: str) -> str:
        ledger.write(f"charge {order}")
        return "ch_1"

    @charge.undo
    def refund(order: str, result: str | None) -> None:
        ledger.write(f"refund {result}")

    @sf.effect
    def ship(order: str) -> str:
        ledger.write(f"ship {order}")
        return "shipped"

    @sf.workflow
    def wf() -> str:
        with sf.saga():
            charge("o1")
            if not sf.approve("Ship?"):
                raise sf.Fatal("not approved")
            return ship("o1")

    ended = denied(wf)
    assert ended.status == "failed"
    assert ledger.lines == ["charge o1", "refund ch_1"]
    return wf


def denied(wf):
    with pytest.raises(sf.WaitingForAnswer):
        wf.run("r")
    sf.get_run("r").answer("approve#1", False, by="ann")
    with pytest.raises(sf.Fatal):
        wf.run("r")
    return sf.get_run("r")


def test_a_run_does_not_go_back_to_between_an_effect_and_its_undo(refunded, ledger):
    """The charge would count as done: goods are shipped for money that was given back."""
    run = sf.get_run("r")
    place = r"charge\.undo#1 has undone it since[\s\S]*surefoot runs rewind r --at 'charge#1'"

    with pytest.raises(sf.UsageError, match=place):
        run.rewind("approve#1")
    with pytest.raises(sf.UsageError, match=place):
        run.set_aside_by_rewind("approve#1")

    assert run.status == "failed"
    assert ledger.lines == ["charge o1", "refund ch_1"]


def test_the_place_that_is_named_can_be_gone_back_to(refunded, ledger):
    sf.get_run("r").rewind("charge#1")

    with pytest.raises(sf.InDoubt, match=r"charge#1.*may have undone it"):
        refunded.run("r")
    assert ledger.lines == ["charge o1", "refund ch_1"]


def test_an_undo_that_was_settled_after_a_rewind_counts_from_there_on(refunded):
    """It is on record since before the question was put again, and stands behind it now."""
    run = sf.get_run("r")
    run.rewind("charge#1")
    run.settle("charge#1", happened="ch_2")
    with pytest.raises(sf.WaitingForAnswer):
        refunded.run("r")
    run.answer("approve#1", False, by="ann")
    with pytest.raises(sf.InDoubt, match=r"charge\.undo#1"):
        refunded.run("r")
    run.settle("charge.undo#1", happened=None)
    with pytest.raises(sf.Fatal):
        refunded.run("r")

    with pytest.raises(sf.UsageError, match="has undone it since"):
        run.rewind("approve#1")


def test_an_undo_that_did_not_happen_keeps_no_run_from_going_back(ledger):
    @sf.effect
    def book(what: str) -> str:
        ledger.write(f"book {what}")
        return "b_1"

    @book.undo
    def unbook(what: str, result: str | None) -> None:
        raise ConnectionRefusedError("not there")

    @sf.step
    def look() -> str:
        raise ValueError("no")

    @sf.workflow
    def wf() -> None:
        with sf.saga():
            book("room")
            look()

    with pytest.raises(sf.InDoubt, match=r"book\.undo#1"):
        wf.run("r")
    with pytest.raises(sf.UsageError, match="cannot go back to before look#1"):
        sf.get_run("r").rewind("look#1")
    sf.get_run("r").settle("book.undo#1", not_happened=True)

    sf.get_run("r").rewind("look#1")
    assert "book#1" not in {past.address for past in sf.get_run("r").state().in_doubt()}


def test_run_that_asks_again_after_a_no_can_be_sent_back():
    """The question stands behind its effect then. It was looked for once more after it had gone with it."""

    @sf.effect(approve=True)
    def wire() -> str:
        return "sent"

    @sf.workflow(name="rewound_denied")
    def wf() -> str:
        return wire()

    with pytest.raises(sf.WaitingForAnswer):
        wf.run("r")
    run = sf.get_run("r")
    run.answer("wire#1.approval", False)
    with pytest.raises(sf.Fatal):
        wf.run("r")
    run.retry(failed=True)
    with pytest.raises(sf.WaitingForAnswer):
        wf.run("r")

    assert run.rewind("wire#1") == []
    with pytest.raises(sf.WaitingForAnswer):
        wf.run("r")
