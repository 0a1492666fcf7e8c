"""Options that take one of a few words are checked where they are given, and a slip is told with the word that was meant."""

from __future__ import annotations

import asyncio

import pytest

import surefoot as sf
from surefoot import aio


def effect(**options):
    @sf.effect(**options)
    def pay() -> None: ...

    return pay


def transaction(**options):
    @sf.transaction("sqlite:///db", **options)
    def book(db) -> None: ...


def workflow(**options):
    @sf.workflow(**options)
    def wf() -> None: ...


@pytest.mark.parametrize(
    ("give", "told"),
    [
        (lambda: effect(on_crash="rety"), r"pay: on_crash='rety' is none of 'ask'.* Did you mean 'retry'\?"),
        (lambda: effect().undo(on_crash="chek"), r"pay.undo: on_crash='chek' is none .* Did you mean 'check'\?"),
        (lambda: effect(on_change="kep"), r"on_change='kep' is none of .* Did you mean 'keep'\?"),
        (lambda: effect(on_change="rerun"), r"on_change='rerun' is none of 'auto', 'keep', 'stop'\."),
        (lambda: effect(approve="every"), r'approve=.every.: must be True or False. .*@sf.workflow\(approve="every"\)'),
        (lambda: transaction(approve="yes"), r"approve='yes': must be True or False"),
        (lambda: workflow(approve="evry"), r"approve='evry' is none of .* Did you mean 'every'\?"),
        (lambda: workflow(on_drift="wran"), r"on_drift='wran' is none of .*, nor a function. Did you mean 'warn'\?"),
        (lambda: workflow(on_failure="stpo"), r"on_failure='stpo' is none of .* Did you mean 'stop'\?"),
        (lambda: workflow(on_corruption="fall back"), r"on_corruption='fall back' is .* Did you mean 'fallback'\?"),
        (lambda: sf.configure(on_corruption="halt"), r"on_corruption='halt' is none of 'fallback', 'stop'\.$"),
        (lambda: sf.configure(on_change=3), r"on_change=3 is none of 'auto', 'keep', 'rerun', 'stop'\.$"),
    ],
)
def test_a_slip_is_found_where_it_is_written(give, told):
    """Found at the crash it would be a run that does something else, at night."""
    with pytest.raises(sf.UsageError, match=told):
        give()


def blocking():
    @sf.workflow(name="slips")
    def wf(verb: str) -> None:
        sf.map(len, [], on_error="colect") if verb == "map" else sf.approve("Go?", on_timeout="aprove")  # type: ignore[call-overload]

    return wf.run


def tasks():
    @sf.workflow(name="slips_async")
    async def wf(verb: str) -> None:
        if verb == "map":
            await aio.map(asyncio.sleep, [], on_error="colect")  # type: ignore[call-overload]
        await aio.approve("Go?", on_timeout="aprove")

    return lambda *args: asyncio.run(wf.run(*args))


@pytest.mark.parametrize("make", [blocking, tasks])
@pytest.mark.parametrize(("verb", "meant"), [("map", "collect"), ("approve", "approve")])
def test_a_slip_in_a_verb_is_told_before_anything_is_asked(own_folder, make, verb, meant):
    """The verb has done nothing yet: mend the word, and the same run goes on."""
    with pytest.raises(sf.UsageError, match=f"Did you mean '{meant}'"):
        make()("r", verb)

    assert sf.get_run("r").state().questions() == []


# --- arguments that are no inputs --------------------------------------------------------------------------


class Client:
    """Holds a connection; nobody can store it."""

    def __init__(self) -> None:
        self.send = lambda: None


class Desk(Client):
    @sf.step
    def look(self, n: int) -> int:
        return n

    @sf.effect(ignore="n")
    def act(self, n: int) -> int:
        return n


@sf.step
def fetch(client: object, order: dict) -> None: ...


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: Desk().look(1), r'look is a method: @sf.step\(ignore="self"\) leaves "self" out of the record'),
        (lambda: Desk().act(1), r'act is a method: @sf.effect\(ignore=\("n", "self"\)\) leaves "self" out'),
        (lambda: fetch(Client(), {}), r'If client is no input .*: @sf.step\(ignore="client"\) leaves it out'),
        (lambda: fetch(1, {"a": Client()}), r"\$\.order\.a: (?!.*ignore)"),
    ],
)
def test_an_argument_that_is_no_input_is_refused_with_the_word_that_leaves_it_out(own_folder, call, told):
    """Whoever decorates a method meets this first. Data inside an argument is another matter: the call needs it."""

    @sf.workflow(name="no_inputs")
    def wf() -> None:
        call()

    with pytest.raises(sf.ValueRejected, match=told):
        wf.run("r")
