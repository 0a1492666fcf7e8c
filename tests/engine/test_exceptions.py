"""An effect that raises has failed only if that proves that nothing was done; anything else is doubt."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from typing import Any

import pytest

import surefoot as sf
import surefoot.aio as asf
from surefoot import effects
from surefoot.core import doubt

AT_ONCE = sf.Backoff(first=0, jitter=False)


class Declined(Exception): ...


class Flow:
    """One effect in one workflow, blocking or async, that writes to the ledger and then does as it is told."""

    def __init__(self, colour: str, ledger: Any, **options: Any) -> None:
        self.act: Callable[[], Any] = lambda: "receipt"
        if colour == "blocking":

            @sf.effect(**options)
            def pay(order: str) -> Any:
                ledger.write("pay")
                return self.act()

            @sf.workflow
            def wf() -> Any:
                try:
                    return pay("o1")
                except Exception as error:
                    return f"caught {type(error).__name__}: {error}"

            self._run: Callable[[], Any] = lambda: wf.run("r")
        else:

            @asf.effect(**options)
            async def pay(order: str) -> Any:
                ledger.write("pay")
                return self.act()

            @asf.workflow
            async def wf() -> Any:
                try:
                    return await pay("o1")
                except Exception as error:
                    return f"caught {type(error).__name__}: {error}"

            self._run = lambda: asyncio.run(wf.run("r"))
        self.pay: Any = pay

    def run(self) -> Any:
        return self._run()

    def raises(self, error: BaseException) -> None:
        def act() -> None:
            raise error

        self.act = act


@pytest.fixture(params=["blocking", "async"])
def flow(request, ledger):
    return lambda **options: Flow(request.param, ledger, **options)


# -- what it leads to -----------------------------------------------------------------------------------------


def test_a_mistake_after_the_deed_is_in_doubt_and_the_message_says_what_helps(flow, ledger):
    """The charge went through; reading the answer raised. At every start the same question, and never a second charge."""
    one = flow()
    one.raises(KeyError("id"))

    for _ in range(2):
        with pytest.raises(sf.InDoubt) as stop:
            one.run()
        assert "raised KeyError: 'id', which does not tell whether it happened" in stop.value.summary
        assert dict(stop.value.cures) == {
            "happened?": "surefoot settle r 'pay#1' --happened 'JSON'",
            "did not, try again?": "surefoot settle r 'pay#1' --not-happened",
            "did not, let it fail?": "surefoot settle r 'pay#1' --failed",
            "such an exception proves it?": "@sf.effect(not_done=KeyError) on pay, or raise sf.NotDone",
        }
    assert ledger.lines == ["pay"]


OFFER = "such an exception proves it?"


@pytest.mark.parametrize("error", [ExceptionGroup("two", [KeyError("id")]), asyncio.CancelledError()], ids=repr)
def test_what_not_done_cannot_or_should_not_name_is_not_offered_for_it(error, ledger):
    """Whoever follows a cure to the letter must not meet the same question again."""
    one = Flow("async", ledger)
    one.raises(error)

    for _ in range(2):
        with pytest.raises(sf.InDoubt) as stop:
            one.run()
        assert OFFER not in dict(stop.value.cures)
        assert "did not, let it fail?" in dict(stop.value.cures)


@pytest.mark.parametrize("error", [sf.NotDone("no receipt"), sf.Fatal("no receipt"), KeyError("id")], ids=repr)
def test_what_a_call_inside_raised_is_not_offered_for_not_done(error, flow):
    """To name it would not be believed: it speaks of that call."""

    @sf.step
    def receipt() -> None:
        raise error

    one = flow()
    one.act = receipt

    with pytest.raises(sf.InDoubt, match="a call inside of it") as stop:
        one.run()
    assert OFFER not in dict(stop.value.cures)


@pytest.mark.parametrize("name", ["NotDone", "Fatal", "RetryAfter", "ExceptionGroup", "CancelledError"])
def test_a_later_process_that_has_only_the_name_offers_no_more(name):
    question = doubt.raised("r", "pay#1", f"{name}: x", None)

    assert OFFER not in [cure.when for cure in question.stop("it has no check").cures]
    nameable = doubt.raised("r", "pay#1", "CardNotDone: x", None).stop("it has no check")
    assert OFFER in [cure.when for cure in nameable.cures]


def test_a_mistake_after_the_deed_is_not_repeated_when_the_code_is_replayed(ledger):
    """A start that meets the open question replays nothing; with something to do beside it, the code runs again."""
    replayed = []

    @sf.effect
    def pay(order: str) -> None:
        ledger.write("pay")
        raise KeyError("id")

    @sf.workflow
    def wf() -> None:
        replayed.append(1)
        sf.gather(lambda: pay("o1"), lambda: sf.wait_event("go"))

    with pytest.raises(sf.Stopped):
        wf.run("r")
    sf.send_event("r", "go")

    with pytest.raises(sf.InDoubt):
        wf.run("r")
    assert len(replayed) > 1
    assert ledger.lines == ["pay"]


def test_nobody_is_led_to_declare_that_a_time_out_proves_anything(flow):
    one = flow()
    one.raises(TimeoutError("slow"))

    with pytest.raises(sf.InDoubt) as stop:
        one.run()
    assert [when for when, _ in stop.value.cures] == ["happened?", "did not, try again?", "did not, let it fail?"]


def test_retry_tries_again_under_the_same_key(flow, ledger):
    """Whatever it raised: the other side knows the key."""
    one = flow(on_crash="retry", backoff=AT_ONCE)
    keys = []

    def act() -> str:
        keys.append(sf.key())
        if len(keys) < 3:
            raise KeyError("id")
        return "receipt"

    one.act = act

    assert one.run() == "receipt"
    assert len(keys) == 3
    assert len(set(keys)) == 1


@pytest.mark.parametrize(("found", "result"), [(True, "found"), (False, "caught KeyError: 'id'")])
def test_a_check_looks_and_what_is_not_there_has_failed_with_that_exception(flow, ledger, found, result):
    one = flow()
    one.pay.check(lambda _: sf.happened("found") if found else sf.not_happened())
    one.raises(KeyError("id"))

    assert one.run() == result
    assert ledger.lines == ["pay"]


def test_fail_fails_and_a_rewind_takes_it_for_executed(flow, ledger):
    """It may have happened: sent back, the run asks, and does not charge again."""
    one = flow(on_crash="fail")
    one.raises(KeyError("id"))
    assert one.run().startswith("caught StepFailed: InDoubt: pay#1: raised KeyError")

    sf.get_run("r").rewind("pay#1", by="ann")
    one.act = lambda: "receipt"

    assert one.run().startswith("caught StepFailed: InDoubt: pay#1: it may have been executed")
    assert ledger.lines == ["pay"]


def test_a_rewind_of_an_effect_that_raised_asks(flow, ledger):
    one = flow()
    one.raises(KeyError("id"))
    with pytest.raises(sf.InDoubt):
        one.run()

    sf.get_run("r").rewind("pay#1", by="ann")
    one.act = lambda: "receipt"

    with pytest.raises(sf.InDoubt, match="may have been executed"):
        one.run()
    assert ledger.lines == ["pay"]


def test_retries_repeat_what_was_not_done_and_nothing_else(flow, ledger):
    """`ConnectionRefusedError` proves it, the reset after it does not."""
    one = flow(not_done=Declined, retries=5, backoff=AT_ONCE)
    outcomes = [Declined(), ConnectionRefusedError(), ConnectionResetError()]

    def act() -> None:
        raise outcomes.pop(0)

    one.act = act

    with pytest.raises(sf.InDoubt):
        one.run()
    assert ledger.lines == ["pay"] * 3


def test_a_guard_clause_asks_nobody(ledger):
    """Bad arguments have failed, and are recorded so."""

    @sf.effect
    def pay(amount: int) -> str:
        if amount <= 0:
            raise ValueError(f"{amount} is no price")
        ledger.write("pay")
        raise ValueError("late")

    @sf.workflow
    def wf(amount: int) -> Any:
        return pay(amount)

    with pytest.raises(ValueError, match="is no price"):
        wf.run("early", -1)
    with pytest.raises(sf.InDoubt, match="late"):
        wf.run("late", 1)
    assert sf.get_run("early").status == "failed"


@pytest.mark.parametrize(
    ("error", "options"), [(ConnectionRefusedError("down"), {}), (KeyError("id"), {"not_done": Exception})]
)
def test_what_the_workflow_was_handling_says_nothing_about_an_effect_in_its_except(error, options, ledger):
    """`except TimeoutError: pay_elsewhere()`. Python chains what that raises to the time-out; it is no try of the effect."""

    @sf.step
    def ask() -> None:
        raise TimeoutError("slow")

    @sf.effect(**options)
    def pay() -> None:
        ledger.write("pay")
        raise error

    @sf.workflow
    def wf() -> str:
        try:
            ask()
        except TimeoutError:
            pay()
        return "paid"

    with pytest.raises(type(error)):
        wf.run("r")


@pytest.mark.parametrize("how", ["from the first", "while the first is handled"])
def test_a_second_try_that_was_not_sent_does_not_speak_for_the_first(how, flow):
    """The first bank was slow, the second is down."""
    one = flow(not_done=Exception)

    def act() -> None:
        slow = TimeoutError("first bank")
        if how == "from the first":
            raise ConnectionRefusedError("second bank") from slow
        try:
            raise slow
        except TimeoutError:
            raise ConnectionRefusedError("second bank") from None

    one.act = act

    with pytest.raises(sf.InDoubt):
        one.run()


def test_a_group_by_hand_tells_nothing_of_the_requests_that_got_through(flow, ledger):
    """Two mails, one server is down: to call that failed would send the other mail again at the next try."""
    one = flow()
    one.raises(ExceptionGroup("some mails were not sent", [ConnectionRefusedError("bob")]))

    with pytest.raises(sf.InDoubt):
        one.run()
    assert ledger.lines == ["pay"]


def test_a_group_is_as_bad_as_its_worst(flow):
    one = flow(not_done=Declined)
    one.raises(ExceptionGroup("tasks", [Declined(), ExceptionGroup("more", [TimeoutError()])]))

    with pytest.raises(sf.InDoubt):
        one.run()


def test_not_done_with_nothing_in_it_believes_only_the_express_word(flow):
    """An effect that makes several requests: the second is refused, and the first was carried out."""
    one = flow(not_done=())
    one.raises(ConnectionRefusedError())

    with pytest.raises(sf.InDoubt):
        one.run()
    sf.get_run("r").settle("pay#1", not_happened=True)
    one.raises(sf.NotDone("really not"))
    assert one.run() == "caught NotDone: really not"


# -- when decorated -------------------------------------------------------------------------------------------


def test_retry_on_is_refused_on_effects_and_transactions_with_the_word_for_it():
    """`retry_on=(OSError,)` silently covered ConnectionResetError: sent four times."""
    with pytest.raises(sf.UsageError, match="not_done="):
        sf.effect(retries=3, retry_on=(OSError,))(lambda: None)
    with pytest.raises(sf.UsageError, match="not_done="):
        sf.transaction("sqlite:///app.db", retry_on=OSError)(lambda _: None)


@pytest.mark.parametrize("given", ["KeyError", KeyError("id"), (ValueError, 3), int])
def test_not_done_that_is_no_exception_class_is_refused_when_decorated(given):
    with pytest.raises(sf.UsageError, match="not_done= names exception classes"):
        sf.effect(not_done=given)(lambda: None)


def test_unsure_is_no_word_any_more():
    with pytest.raises(TypeError, match="unsure"):
        sf.effect(unsure=OSError)(lambda: None)  # type: ignore[call-overload]


# -- settled as failed ------------------------------------------------------------------------------------------


def test_settled_as_failed_the_call_fails_with_its_exception_the_same_after_a_crash(flow, ledger):
    """To run it again would raise again; now `except` goes on, and so do sagas."""
    one = flow()
    one.raises(KeyError("id"))
    with pytest.raises(sf.InDoubt):
        one.run()

    sf.get_run("r").settle("pay#1", failed=True, by="ann")

    assert one.run() == "caught KeyError: 'id'"
    assert one.run() == "caught KeyError: 'id'"
    assert ledger.lines == ["pay"]
    assert sf.get_run("r").steps()[0].status == "failed"


def test_settled_as_failed_after_a_crash_it_says_who_did(ledger):
    one = Flow("blocking", ledger)
    one.raises(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        one.run()
    with pytest.raises(sf.InDoubt):
        one.run()

    sf.get_run("r").settle("pay#1", failed=True, by="ann", note="not in the bank's list")

    said = one.run()
    assert said.startswith("caught NotDone: ann has settled that it did not happen")
    assert "not in the bank's list" in said
    assert ledger.lines == ["pay"]


def test_a_saga_goes_on_once_its_effect_was_settled_as_failed(ledger):
    @sf.effect
    def book(n: int) -> int:
        ledger.write(f"book {n}")
        if n == 2:
            raise KeyError("id")
        return n

    @book.undo
    def _(n: int, result: int) -> None:
        ledger.write(f"cancel {n}")

    @sf.workflow
    def trip() -> None:
        with sf.saga():
            book(1)
            book(2)

    with pytest.raises(sf.InDoubt):
        trip.run("r")
    assert ledger.lines == ["book 1", "book 2"], "a stop undoes nothing"
    sf.get_run("r").settle("book#2", failed=True)

    with pytest.raises(KeyError):
        trip.run("r")
    assert ledger.lines == ["book 1", "book 2", "cancel 1"]


def test_what_happened_without_a_value_cannot_be_settled_as_failed(flow):
    one = flow()
    one.act = object
    with pytest.raises(sf.InDoubt):
        one.run()

    with pytest.raises(sf.UsageError, match="did happen"):
        sf.get_run("r").settle("pay#1", failed=True)


# -- what is left behind ------------------------------------------------------------------------------------------


@pytest.fixture
def heard():
    told: list[Any] = []
    sf.configure(alerts=[told.append])
    yield told
    sf.configure(alerts=[])


def entry_of(run: str, kind: str) -> dict[str, Any]:
    return next(entry.data for entry in sf.get_run(run).entries() if entry.kind == kind)


def test_a_saga_names_what_failed_in_doubt_and_the_end_of_the_run_keeps_it(ledger, heard):
    """Not undone, since nobody knows its result; but "rolled back" must not be the last word."""

    @sf.effect
    def flight() -> str:
        ledger.write("flight")
        return "f"

    @flight.undo
    def _(result: str) -> None:
        ledger.write("cancel flight")

    @sf.effect(on_crash="fail")
    def hotel() -> str:
        ledger.write("hotel")
        raise KeyError("id")

    @hotel.undo
    def _(result: str) -> None:
        ledger.write("cancel hotel")

    @sf.effect
    def mail() -> None:
        ledger.write("mail")

    @sf.workflow
    def trip() -> str:
        try:
            with sf.saga():
                flight()
                mail()
                hotel()
        except sf.StepFailed:
            return "rolled back"
        return "booked"

    assert trip.run("r") == "rolled back"

    assert ledger.lines == ["flight", "mail", "hotel", "cancel flight"]
    assert [alert.kind for alert in heard] == ["saga"]
    assert "they have no undo: mail#1" in str(heard[0])
    assert "nobody knows whether they happened: hotel#1" in str(heard[0])
    assert entry_of("r", "RunDone")["left"] == ["hotel#1", "mail#1"]
    assert [run.row.reason for run in sf.runs()] == ["LeftBehind"]


@pytest.mark.parametrize("caught", [True, False])
def test_what_failed_in_doubt_outside_of_sagas_is_told_at_the_end(heard, caught):
    @sf.effect(on_crash="fail")
    def pay() -> str:
        [].append(1)
        raise KeyError("id")

    @sf.workflow
    def wf() -> str:
        if not caught:
            return pay()
        try:
            return pay()
        except sf.StepFailed:
            return "went on"

    if caught:
        assert wf.run("r") == "went on"
    else:
        with pytest.raises(sf.StepFailed, match="InDoubt"):
            wf.run("r")

    assert [(alert.kind, alert.run) for alert in heard] == [("InDoubt", "r")]
    assert "nobody knows whether these effects happened: pay#1" in str(heard[0])
    assert entry_of("r", "RunDone" if caught else "RunFailed")["left"] == ["pay#1"]


def test_a_run_that_leaves_nothing_says_nothing(heard, flow):
    flow().run()

    assert heard == []
    assert "left" not in entry_of("r", "RunDone")


# -- ready-made effects and transactions ----------------------------------------------------------------------------


def test_whatever_a_transaction_raises_before_its_commit_was_not_done(ledger):
    """A time-out in the middle of it is rolled back like everything else: nobody is asked, not even the marker."""
    sqlite3.connect("app.db").close()

    @sf.transaction("sqlite:///app.db", retries=2, backoff=AT_ONCE)
    def copy(db: Any) -> str:
        ledger.write("copy")
        if sf.attempt() < 3:
            raise TimeoutError("slow")
        return "copied"

    @sf.workflow
    def wf() -> str:
        return copy()

    assert wf.run("r") == "copied"
    kinds = [entry.kind for entry in sf.get_run("r").entries()]
    assert kinds.count("EffectRaised") == 2
    assert "EffectDoubted" not in kinds


def test_an_upsert_that_the_database_refuses_has_failed():
    """It is retried after a crash, but not after "no such table"."""
    sqlite3.connect("app.db").close()

    @sf.workflow
    def wf() -> None:
        effects.upsert("sqlite:///app.db", "orders", "id", {"id": 1})

    with pytest.raises(Exception, match="no such table"):
        wf.run("r")
    assert sf.get_run("r").status == "failed"


def test_an_event_for_a_run_that_is_not_there_has_failed():
    @sf.workflow
    def wf() -> None:
        sf.send_event("nobody", "hello")

    with pytest.raises(sf.NotFound):
        wf.run("r")
    assert [entry.kind for entry in sf.get_run("r").entries()].count("EffectDoubted") == 0
