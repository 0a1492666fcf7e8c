"""Defaults in force are recorded beside the arguments. What is executed is what is recorded, shown, checked and undone."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys

import pytest

import surefoot as sf

OLD, NEW = "old", "new"


def intents(run_id, address):
    return [
        entry.data.get("defaults")
        for entry in sf.get_run(run_id).entries()
        if entry.kind == "EffectIntended" and entry.data["address"] == address
    ]


def created(run_id):
    return next(entry.data for entry in sf.get_run(run_id).entries() if entry.kind in ("RunCreated", "RunContinued"))


RETRY = """
import os, signal, sys
import surefoot as sf

def tell(line):
    with open("ledger", "a") as file:
        file.write(line + "\\n")

DEFAULT = sys.argv[1]

@sf.effect(on_crash=sys.argv[2], in_flight="0s")
def charge(who, amount=DEFAULT, /, *, currency=DEFAULT, tags=[DEFAULT]):
    tell(f"charge {who} {amount} {currency} {tags}")
    if DEFAULT == "old":
        os.kill(os.getpid(), signal.SIGKILL)
    return amount

if sys.argv[2] == "check":
    @charge.check
    def _(who, amount, *, currency, tags):
        tell(f"look for {who} {amount} {currency} {tags}")
        return sf.not_happened()

@sf.workflow
def wf():
    return charge("ann")

print(wf.run("r"))
"""


@pytest.mark.parametrize("policy", ["retry", "check"])
def test_a_retry_and_a_check_use_the_defaults_that_were_recorded(program, ledger, policy):
    """A default that was edited between crash and resume must not send another amount under a used key."""
    program.write(RETRY)
    assert program.run("old", policy).returncode == -signal.SIGKILL
    assert program.run("new", policy).stdout == "old\n"

    looked = ["look for ann old old ['old']"] if policy == "check" else []
    assert ledger.lines == ["charge ann old old ['old']", *looked, "charge ann old old ['old']"]
    assert intents("r", "charge#1") == [{"amount": OLD, "currency": OLD, "tags": [OLD]}] * 2


UNDO = """
import sys
import surefoot as sf
from surefoot import aio

def tell(line):
    with open("ledger", "a") as file:
        file.write(line + "\\n")

@sf.effect
def reserve(n, warehouse=sys.argv[1]):
    tell(f"reserve {n} in {warehouse}")
    return n

@reserve.undo
def _(n, warehouse, result):
    tell(f"unreserve {n} in {warehouse}")

@sf.workflow
def blocking():
    with sf.saga():
        reserve(7)
        sf.wait_event("go")
        raise ValueError("so undo it")

@sf.effect
async def book(n, warehouse=sys.argv[1]):
    tell(f"reserve {n} in {warehouse}")
    return n

@book.undo
async def _(n, warehouse, result):
    tell(f"unreserve {n} in {warehouse}")

@sf.workflow
async def asynchronous():
    async with aio.saga():
        await book(7)
        await aio.wait_event("go")
        raise ValueError("so undo it")

try:
    if sys.argv[2] == "blocking":
        blocking.run("r")
    else:
        import asyncio
        asyncio.run(asynchronous.run("r"))
except sf.WaitingForAnswer:
    print("waits")
except ValueError as error:
    print(error)
"""


@pytest.mark.parametrize("kind", ["blocking", "asynchronous"])
def test_a_saga_in_a_later_process_undoes_what_was_done(program, ledger, kind):
    """The old warehouse holds the goods; to release them in the new one would be wrong in both."""
    program.write(UNDO)
    assert program.run("old", kind).stdout == "waits\n"
    sf.send_event("r", "go")

    assert program.run("new", kind).stdout == "so undo it\n"

    assert ledger.lines == ["reserve 7 in old", "unreserve 7 in old"]


def wiring(default, ledger):
    @sf.effect(approve=True)
    def wire(to: str, amount: int = default) -> int:
        ledger.write(f"wire {to} {amount}")
        return amount

    @sf.workflow(name="wiring")
    def wf() -> int:
        return wire("ann")

    return wf


def test_a_yes_shows_the_defaults_and_is_void_once_they_are_others(ledger):
    """Nobody has agreed to an amount that nobody was shown."""
    with pytest.raises(sf.WaitingForAnswer) as asked:
        wiring(100, ledger).run("r")
    assert '"defaults":{"amount":100}' in str(asked.value)
    sf.get_run("r").answer("wire#1.approval", True, by="boss")

    with pytest.raises(sf.WaitingForAnswer) as again:
        wiring(9999, ledger).run("r")
    assert '"defaults":{"amount":9999}' in str(again.value)
    assert ledger.lines == []

    sf.get_run("r").answer("wire#1.approval", True, by="boss")
    assert wiring(9999, ledger).run("r") == 9999
    assert intents("r", "wire#1") == [{"amount": 9999}]


def test_whoever_is_asked_about_an_effect_in_doubt_is_told_its_defaults(program):
    """Nobody can look for a payment whose amount they are not told."""
    program.write(RETRY)
    program.run("old", "ask")
    told = program.run("new", "ask")

    assert "InDoubt" in told.stderr
    assert '"amount":"old"' in told.stderr


def continuing(ledger, default):
    @sf.workflow(name="continuing")
    def wf(rounds: int, label: str = default, extra: str = "-") -> str:
        ledger.write(f"{rounds} {label}")
        if rounds:
            sf.continue_as_new(rounds - 1)
        sf.wait_event("go")
        return label

    return wf


@pytest.mark.parametrize("rounds", [0, 1])
def test_a_resumed_workflow_has_the_defaults_it_began_with(ledger, rounds):
    """A deploy between two processes of one run must not change what the run is about, in no segment of it."""
    with pytest.raises(sf.WaitingForAnswer):
        continuing(ledger, OLD).run("r", rounds)
    sf.send_event("r", "go")

    assert continuing(ledger, NEW).run("r", rounds) == OLD

    assert created("r")["defaults"] == {"label": OLD, "extra": "-"}


def test_a_new_parameter_takes_the_default_of_today_and_a_dropped_one_is_no_matter():
    """Adding or dropping an optional parameter of a workflow is an ordinary edit: it strands no run."""

    @sf.workflow(name="wf")
    def first(n: int, dropped: str = "x") -> int:
        sf.wait_event("go")
        return n

    with pytest.raises(sf.WaitingForAnswer):
        first.run("r", 1)
    sf.send_event("r", "go")

    @sf.workflow(name="wf")
    def second(n: int, added: str = "today") -> str:
        sf.wait_event("go")
        return added

    assert second.run("r", 1) == "today"


def test_a_retry_that_cannot_be_given_its_recorded_default_stops(ledger):
    """The code has no such parameter any more: to call it without would be another request under a used key."""

    def paying(fn, **options):
        pay = sf.effect(name="pay", **options)(fn)

        @sf.workflow(name="paying")
        def wf() -> str:
            return pay("ann")

        return wf

    def with_currency(who: str, currency: str = "EUR") -> str:
        raise KeyboardInterrupt

    def without(who: str) -> str:
        ledger.write(f"pay {who}")
        return who

    with pytest.raises(KeyboardInterrupt):
        paying(with_currency, on_crash="retry").run("r")
    with pytest.raises(sf.CodeChanged, match="a default for currency"):
        paying(without, on_crash="retry").run("r")
    with pytest.raises(sf.InDoubt):
        paying(without, on_crash="ask").run("r")
    assert ledger.lines == []


def test_a_default_that_the_function_changes_in_place_stays_as_recorded(ledger):
    """`def f(seen=[])` is a trap of the language. A retry must not get what the first attempt has made of it."""

    @sf.effect(on_crash="retry", retries=1, backoff=sf.Backoff(first="1ms"))
    def pay(seen: list[int] = []) -> int:  # noqa: B006 - the trap
        ledger.write(seen)
        seen.append(1)
        if len(ledger.lines) == 1:
            raise sf.NotDone("once more")
        return len(seen)

    @pay.undo
    def _(seen: list[int], result: int) -> None:
        ledger.write(f"undo {seen}")

    @sf.workflow
    def wf() -> None:
        with sf.saga():
            pay()
            raise ValueError("undo")

    with pytest.raises(ValueError, match="undo"):
        wf.run("r")
    assert ledger.lines == ["[]", "[]", "undo []"]


class Sentinel:
    """Told by identity, and nothing that could be stored."""


MISSING = Sentinel()
NOT_GIVEN = sf.Secret("hush")


def test_what_cannot_be_stored_is_part_of_the_code_and_a_secret_stays_one():
    """A private sentinel, a client, a function: existing code keeps working, and told by `is` they are themselves."""

    @sf.effect
    def look(n: int, missing: object = MISSING, how=len, token: sf.Secret = NOT_GIVEN, kept: tuple = (1,)) -> bool:
        return missing is MISSING and how is len and token.reveal() == "hush" and kept == (1,)

    @sf.workflow
    def wf() -> bool:
        return look(1)

    assert wf.run("r") is True
    (recorded,) = intents("r", "look#1")
    assert set(recorded) == {"token", "kept"}
    assert "hush" not in str(recorded)


def test_what_ignore_names_is_not_recorded_as_a_default_either():
    @sf.effect(ignore="client")
    def send(to: str, client: str = "prod", cc: str = "") -> str:
        return client

    @sf.workflow
    def wf() -> str:
        return send("ann")

    assert wf.run("r") == "prod"
    assert intents("r", "send#1") == [{"cc": ""}]


def test_a_call_that_passes_everything_or_has_no_defaults_records_none():
    """Left out when empty: older programs read such journals as before."""

    @sf.effect
    def send(to: str, cc: str = "") -> str:
        return to + cc

    @sf.workflow
    def wf(n: int) -> str:
        return send("a", "b") + send("a", cc="c")

    assert wf.run("r", 1) == "abac"
    assert intents("r", "send#1") == intents("r", "send#2") == [None]
    assert "defaults" not in created("r")


def test_an_async_retry_uses_the_recorded_defaults_too(ledger):
    def paying(default):
        @sf.effect(name="pay", on_crash="retry")
        async def pay(who: str, amount: int = default) -> int:
            ledger.write(f"{who} {amount}")
            if len(ledger.lines) == 1:
                raise KeyboardInterrupt
            return amount

        @sf.workflow(name="paying")
        async def wf() -> int:
            return await pay("ann")

        return wf

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(paying(1).run("r"))
    assert asyncio.run(paying(2).run("r")) == 1
    assert ledger.lines == ["ann 1", "ann 1"]


def test_runs_show_tells_the_defaults_in_force(program, ledger):
    """Of the workflow and of each effect: what was executed is what is shown."""
    program.write(RETRY)
    program.run("old", "ask")

    shown = subprocess.run(
        [sys.executable, "-m", "surefoot", "runs", "show", "r", "--json"], capture_output=True, check=True
    )
    (call,) = json.loads(shown.stdout)["calls"]
    assert call["args"] == {"who": "ann"}
    assert call["defaults"] == {"amount": OLD, "currency": OLD, "tags": [OLD]}


def test_a_retry_repeats_what_was_passed_for_a_parameter_that_is_only_noted(ledger):
    """`noted=` lets the wording change. Under a used key it is the recorded wording that is sent again."""

    def sending(text):
        @sf.effect(name="send", on_crash="retry", noted="text")
        def send(to: str, text: str, token: sf.Secret) -> str:
            ledger.write(f"{to} {text} {token.reveal()}")
            if len(ledger.lines) == 1:
                raise KeyboardInterrupt
            return text

        @send.undo
        def _(to: str, text: str, token: sf.Secret, result: str) -> None:
            ledger.write(f"undo {to} {text}")

        @sf.workflow(name="sending")
        def wf() -> None:
            with sf.saga():
                send("ann", text=text, token=sf.Secret("hush"))
                raise ValueError("undo")

        return wf

    with pytest.raises(KeyboardInterrupt):
        sending(OLD).run("r")
    with pytest.raises(ValueError, match="undo"):
        sending(NEW).run("r")
    assert ledger.lines == ["ann old hush", "ann old hush", "undo ann old"]


def test_an_undo_takes_back_what_was_done_and_not_what_is_asked_for_now(ledger):
    """`on_change="keep"`: what was done stands, though the code asks with other arguments by now."""

    def reserving(**passed):
        @sf.effect(name="reserve", on_change="keep")
        def reserve(n: int, warehouse: str = "main", *, urgent: bool = False) -> int:
            return n

        @reserve.undo
        def _(n: int, warehouse: str, result: int, *, urgent: bool) -> None:
            ledger.write(f"unreserve {n} in {warehouse} {urgent}")

        @sf.workflow(name="reserving")
        def wf() -> None:
            with sf.saga():
                reserve(**passed)
                sf.wait_event("go")
                raise ValueError("undo")

        return wf

    with pytest.raises(sf.WaitingForAnswer):
        reserving(n=7, warehouse="east").run("r")
    sf.send_event("r", "go")
    with pytest.raises(ValueError, match="undo"):
        reserving(n=8, urgent=True).run("r")
    assert ledger.lines == ["unreserve 7 in east False"]
