"""An effect is never run twice by our own decision: intent first, outcome after, doubt in between."""

from __future__ import annotations

import contextlib
import functools

import pytest

import surefoot as sf


def test_the_intent_is_recorded_before_and_the_outcome_after(kinds, ledger):
    @sf.effect
    def charge(amount: int) -> str:
        ledger.write(kinds("r")[-1])
        return "ch_1"

    @sf.workflow
    def wf() -> str:
        return charge(5)

    assert wf.run("r") == "ch_1"
    assert ledger.lines == ["EffectIntended"], "while it runs, its intent is already on disk"
    assert kinds("r") == ["RunCreated", "RunAdopted", "EffectIntended", "EffectDone", "RunDone"]


def test_in_doubt_shows_the_arguments_shortened_and_without_secrets():
    """Whether order 7 was paid for cannot be looked up by somebody who is told only that something was."""

    @sf.effect
    def charge(order: int, token: object, note: str) -> None:
        raise TimeoutError("slow")

    @sf.workflow
    def wf() -> None:
        charge(7, sf.Secret("t0k3n"), "\x1b[2J" + "x" * 500)

    said = []
    for _ in range(2):
        with pytest.raises(sf.InDoubt) as stop:
            wf.run("r")
        said.append(stop.value.summary.partition(" Its arguments: ")[2])

    assert said[0].startswith('{"order":7,"token":')
    assert said[0] == said[1]
    assert "t0k3n" not in said[0]
    assert said[0].isprintable()
    assert len(said[0]) <= 200
    assert said[0].endswith("…")


@pytest.mark.parametrize("error", [TimeoutError("slow"), ConnectionResetError("gone")])
def test_an_unsure_ending_stops_the_run_in_doubt(error, ledger):
    """A time-out says nothing about whether the card was charged."""

    @sf.effect
    def charge() -> str:
        ledger.write("charge")
        raise error

    @sf.workflow
    def wf() -> str:
        return charge()

    with pytest.raises(sf.InDoubt, match=type(error).__name__) as stop:
        wf.run("r")
    assert stop.value.address == "charge#1"
    assert "surefoot settle r 'charge#1' --not-happened" in str(stop.value)
    with pytest.raises(sf.InDoubt):
        wf.run("r")
    assert ledger.lines == ["charge"]


def test_an_exception_of_which_nothing_is_known_is_in_doubt(ledger):
    """A client's own error class, a KeyError while reading the answer: the card may have been charged."""

    class GatewayError(Exception): ...

    @sf.effect
    def charge() -> str:
        ledger.write("charge")
        raise GatewayError

    @sf.workflow
    def wf() -> str:
        return charge()

    with pytest.raises(sf.InDoubt):
        wf.run("r")


@pytest.mark.parametrize("error", [ValueError("declined"), sf.Fatal("declined"), sf.NotDone("declined")])
def test_an_exception_that_proves_that_nothing_was_done_is_recorded_as_failed_and_replayed(error, ledger):
    @sf.effect(not_done=ValueError)
    def charge() -> str:
        ledger.write("charge")
        raise error

    @sf.workflow
    def wf() -> str:
        try:
            charge()
        except type(error) as caught:
            if len(ledger.lines) == 1 and not again:
                raise KeyboardInterrupt from None
            return str(caught)
        return "?"

    again: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        wf.run("r")
    again.append(1)
    assert wf.run("r") == "declined"
    assert ledger.lines == ["charge"]


def test_settled_as_happened_gives_the_value_and_does_not_run(ledger):
    @sf.effect
    def charge() -> str:
        ledger.write("charge")
        raise TimeoutError

    @sf.workflow
    def wf() -> str:
        return charge()

    with pytest.raises(sf.InDoubt):
        wf.run("r")
    run = sf.get_run("r")
    run.settle("charge#1", happened="ch_9", by="ann", note="seen in the dashboard")

    assert run.status == "queued"
    assert wf.run("r") == "ch_9"
    assert ledger.lines == ["charge"]
    assert run.steps()[0].learned_by == "person ann"


def test_settled_as_not_happened_runs_again_with_the_same_key_and_is_used_once(ledger):
    """The answer is about one attempt. The next one that ends in doubt is a new question."""

    @sf.effect
    def charge() -> str:
        ledger.write(sf.key())
        raise TimeoutError

    @sf.workflow
    def wf() -> str:
        return charge()

    with pytest.raises(sf.InDoubt):
        wf.run("r")
    sf.get_run("r").settle("charge#1", not_happened=True)
    with pytest.raises(sf.InDoubt):
        wf.run("r")
    with pytest.raises(sf.InDoubt):
        wf.run("r")

    assert len(ledger.lines) == 2
    assert len(set(ledger.lines)) == 1


def test_settling_what_is_not_in_doubt_is_refused():
    @sf.effect
    def charge() -> str:
        return "ok"

    @sf.workflow
    def wf() -> str:
        return charge()

    wf.run("r")
    with pytest.raises(sf.UsageError, match="not in doubt"):
        sf.get_run("r").settle("charge#1", not_happened=True)
    with pytest.raises(sf.UsageError, match="say one of"):
        sf.get_run("r").settle("charge#1")
    with pytest.raises(sf.UsageError, match="say one of"):
        sf.get_run("r").settle("charge#1", not_happened=True, failed=True)


def test_retry_runs_again_with_the_same_key(ledger):
    @sf.effect(on_crash="retry", backoff=sf.Backoff(first=0, jitter=False))
    def charge() -> str:
        ledger.write(sf.key())
        if sf.attempt() < 3:
            raise ConnectionError
        return "ok"

    @sf.workflow
    def wf() -> str:
        return charge()

    assert wf.run("r") == "ok"
    assert len(ledger.lines) == 3
    assert len(set(ledger.lines)) == 1


def test_retry_that_stays_unsure_ends_in_doubt_not_in_failure(ledger):
    """To call it failed would claim that nothing happened."""

    @sf.effect(on_crash="retry", retries=1, backoff=sf.Backoff(first=0))
    def charge() -> str:
        ledger.write("charge")
        raise ConnectionError

    @sf.workflow
    def wf() -> str:
        return charge()

    with pytest.raises(sf.InDoubt, match="as often as allowed"):
        wf.run("r")
    assert len(ledger.lines) == 2


def test_on_crash_fail_fails_the_call_and_says_the_outcome_is_unknown():
    @sf.effect(on_crash="fail")
    def charge() -> str:
        raise TimeoutError

    @sf.workflow
    def wf() -> str:
        try:
            return charge()
        except sf.StepFailed as error:
            return error.type

    assert wf.run("r") == "InDoubt"


DECORATORS = [sf.step, sf.effect, sf.workflow, sf.transaction("sqlite:///own.db")]


@pytest.mark.parametrize("decorate", DECORATORS)
def test_a_generator_is_refused_when_decorated(decorate):
    """To call one runs nothing: "it happened" would be on record for something that never ran."""

    def one_by_one(db: object):
        yield db

    async def one_by_one_async(db: object):
        yield db

    for fn in (one_by_one, one_by_one_async):
        with pytest.raises(sf.UsageError, match=rf"{fn.__name__} is a generator function"):
            decorate(fn)


def test_a_check_or_an_undo_that_is_a_generator_is_refused_when_decorated():
    """It would look at nothing, or undo nothing, the night it is needed."""

    @sf.effect
    def charge() -> int:
        return 1

    with pytest.raises(sf.UsageError, match=r"effect charge: its check: \w+ is a generator function"):

        @charge.check
        def _():
            yield sf.not_happened()

    with pytest.raises(sf.UsageError, match=r"effect charge: its undo: \w+ is a generator function"):

        @charge.undo
        def _(result):
            yield result


@pytest.mark.parametrize("decorate", DECORATORS)
def test_what_has_no_name_to_be_recorded_by_is_refused_when_decorated(decorate):
    with pytest.raises(sf.UsageError, match="Write a function that calls it: def"):
        decorate(functools.partial(print, "x"))


@pytest.mark.parametrize("decorator", [sf.step, sf.effect])
def test_a_backoff_that_is_none_is_refused_when_decorated(decorator):
    """Found only at the first failure, it would make a run fail for good that only had to wait."""
    with pytest.raises(sf.UsageError, match=r"backoff=3: must be an sf\.Backoff"):
        decorator(backoff=3, retries=1)(print)


def test_retries_without_a_reason_why_they_are_safe_are_refused_when_decorated():
    with pytest.raises(sf.UsageError, match="Say why that is safe"):
        sf.effect(retries=3)(lambda: None)


def test_what_not_done_names_is_tried_again(ledger):
    class RateLimited(Exception): ...

    @sf.effect(retries=2, not_done=RateLimited, backoff=sf.Backoff(first=0))
    def charge() -> str:
        ledger.write("charge")
        if sf.attempt() < 3:
            raise RateLimited
        return "ok"

    @sf.workflow
    def wf() -> str:
        return charge()

    assert wf.run("r") == "ok"
    assert len(ledger.lines) == 3


def test_a_result_that_cannot_be_stored_is_known_to_have_happened_and_never_runs_again(ledger):
    @sf.effect
    def charge() -> object:
        ledger.write("charge")
        return object()

    @sf.workflow
    def wf() -> object:
        return charge()

    with pytest.raises(sf.InDoubt, match="it happened, but its result could not be stored"):
        wf.run("r")
    with pytest.raises(sf.InDoubt):
        wf.run("r")
    with pytest.raises(sf.UsageError, match="did happen"):
        sf.get_run("r").settle("charge#1", not_happened=True)
    sf.get_run("r").settle("charge#1", happened="ch_1")

    assert wf.run("r") == "ch_1"
    assert ledger.lines == ["charge"]


def test_an_argument_that_cannot_be_stored_is_refused_before_the_effect_starts(ledger, kinds):
    class Card: ...

    @sf.effect
    def charge(card: object) -> None:
        ledger.write("charge")

    @sf.workflow
    def wf() -> None:
        charge({"card": Card()})

    with pytest.raises(sf.ValueRejected, match="register"):
        wf.run("r")
    assert ledger.lines == []
    assert "EffectIntended" not in kinds("r")


def test_an_effect_inside_a_step_is_refused(ledger):
    """It would have no intent on disk."""

    @sf.effect
    def charge() -> None:
        ledger.write("charge")

    @sf.step
    def look() -> None:
        with contextlib.suppress(Exception):  # A tool that swallows everything.
            charge()

    @sf.workflow
    def wf() -> None:
        look()

    with pytest.raises(sf.UsageError, match="inside step look#1"):
        wf.run("r")
    assert ledger.lines == []


def test_a_step_inside_a_step_is_part_of_it():
    @sf.step
    def inner() -> int:
        return 1

    @sf.step
    def outer() -> int:
        return inner() + inner()

    @sf.workflow
    def wf() -> int:
        return outer()

    assert wf.run("r") == 2
    assert [call.address for call in sf.get_run("r").steps()] == ["outer#1"]


def test_a_blocking_effect_that_outlives_its_time_is_in_doubt(ledger):
    import threading

    release = threading.Event()

    @sf.effect(timeout=0.05)
    def charge() -> None:
        ledger.write("charge")
        release.wait(30)

    @sf.workflow
    def wf() -> None:
        charge()

    with pytest.raises(sf.InDoubt, match="did not return within"):
        wf.run("r")
    release.set()
    assert ledger.lines == ["charge"]


def test_no_check_is_believed_while_a_thread_may_still_come_to_the_effect(monkeypatch, ledger):
    """A started thread that had no turn yet has done nothing, and still will."""
    import threading

    late = []
    start = threading.Thread.start
    timed = "surefoot-timed"
    monkeypatch.setattr(
        threading.Thread, "start", lambda this: late.append(this) if this.name == timed else start(this)
    )

    @sf.effect(timeout=0.05)
    def charge() -> None:
        ledger.write("charge")

    @charge.check
    def charged() -> object:
        return sf.happened(None) if ledger.lines else sf.not_happened()

    @sf.workflow
    def wf() -> None:
        charge()

    with pytest.raises(sf.InDoubt, match="still running in this process"):
        wf.run("r")
    start(late[0])
    late[0].join()
    assert ledger.lines == ["charge"]


def test_keys_differ_between_runs_addresses_and_namespaces():
    keys = []

    @sf.effect
    def act() -> None:
        keys.append(sf.key())

    @sf.workflow
    def wf() -> None:
        act()
        act()

    wf.run("a")
    wf.run("b")
    sf.configure(namespace="live")
    try:
        wf.run("c")
    finally:
        sf.configure(namespace="")

    assert len(set(keys)) == 6
