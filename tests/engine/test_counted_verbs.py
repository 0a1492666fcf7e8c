"""Verbs without arguments are matched by number: what nobody can tell apart is told, and a name pins one."""

from __future__ import annotations

import asyncio
import logging

import pytest

import surefoot as sf
from surefoot import aio
from surefoot.engine.declare.registry import Definition, registry
from surefoot.engine.drive import start
from surefoot.engine.operate import preflight
from surefoot.engine.process import config


class Cut(BaseException):
    """The process of the old code ends here."""


@sf.effect
def pay(amount):
    return amount


@sf.effect
async def pay_async(amount):
    return amount


@sf.step
def cut():
    raise Cut


def drive(fn):
    """One process with this code."""
    runtime, definition = config.runtime(create=True), Definition(fn, name="flow")
    if definition.is_async:
        return asyncio.run(start.run_async(runtime, definition.plan("r", (), {}), "r", start.Options()))
    return start.run_blocking(runtime, definition.plan("r", (), {}), "r", start.Options())


def begun(fn):
    with pytest.raises(Cut):
        drive(fn)


def kept():
    return [
        (entry.data["address"], entry.data["why"]) for entry in sf.get_run("r").entries() if entry.kind == "CallKept"
    ]


def notes(caplog):
    return [record.getMessage() for record in caplog.records if "matched by number" in record.getMessage()]


VERBS = {"now": sf.now, "random": sf.random, "uuid4": sf.uuid4, "sleep": lambda name=None: sf.sleep(0, name=name)}


@pytest.fixture(params=VERBS)
def verb(request):
    return request.param


def test_another_number_in_front_of_a_recorded_effect_is_noted_once(verb, caplog):
    """One was put in front: the code gets the old value for the new call, and nobody would ever know."""
    ask = VERBS[verb]

    def old():
        ask()
        pay(1)
        pay(2)
        cut()

    def new():
        ask()
        ask()
        pay(1)
        pay(2)
        return "done"

    begun(old)
    with caplog.at_level(logging.WARNING, "surefoot"):
        assert "done" == drive(new)

    (told,) = notes(caplog)
    assert f"sf.{verb}() in the workflow: 1 was recorded in front of pay#1, and 2 are asked for there now" in told
    assert f'sf.{verb}(name="…") pins one' in told
    assert [(f"{verb}#1", "1 was recorded in front of pay#1, and 2 are asked for there now")] == kept()


def test_one_that_is_gone_is_noted_too(verb, caplog):
    ask = VERBS[verb]

    def old():
        ask()
        ask()
        pay(1)
        cut()

    def new():
        ask()
        pay(1)

    begun(old)
    with caplog.at_level(logging.WARNING, "surefoot"):
        drive(new)

    assert "2 were recorded in front of pay#1, and 1 is asked for there now" in caplog.text


def test_code_that_has_not_changed_notes_nothing(verb, caplog):
    """In scopes, loops and branches, over two crashes, with calls behind the last effect."""
    ask, cuts = VERBS[verb], iter([True, True])

    @sf.step
    def maybe_cut():
        if next(cuts, False):
            raise Cut

    def flow():
        ask()
        with sf.scope("first"):
            ask()
            pay(1)
            ask()
        sf.map(lambda n: (ask(), pay(n), ask()), [2, 3], concurrency=2)
        for n in (4, 5):
            pay(n)
            ask()
        maybe_cut()

    begun(flow)
    begun(flow)
    with caplog.at_level(logging.WARNING, "surefoot"):
        drive(flow)

    assert [] == notes(caplog)
    assert [] == kept()


def test_insertion_around_the_scope_of_the_effect_is_noted(caplog):
    def old():
        sf.now()
        with sf.scope("eu"):
            pay(1)
        cut()

    def new():
        sf.now()
        sf.now()
        with sf.scope("eu"):
            pay(1)

    begun(old)
    with caplog.at_level(logging.WARNING, "surefoot"):
        drive(new)

    assert "1 was recorded in front of [eu]/pay#1, and 2 are asked for there now" in caplog.text


def test_note_is_recorded_once_and_told_in_each_drive(caplog):
    def old():
        sf.now()
        pay(1)
        cut()

    def new():
        sf.now()
        sf.now()
        pay(1)
        cut()

    begun(old)
    for _ in range(2):
        caplog.clear()
        with caplog.at_level(logging.WARNING, "surefoot"):
            begun(new)
        assert 1 == caplog.text.count("matched by number")

    assert 1 == len(kept())


def test_name_pins_a_value_whatever_is_put_in_front_of_it(caplog):
    """The cure that the note names."""
    seen = []

    def old():
        seen.append((sf.now(name="opened"), sf.uuid4(name="id"), sf.random(name="luck")))
        sf.sleep(0, name="nap")
        pay(1)
        cut()

    def new():
        sf.now(name="another")
        sf.uuid4(name="another")
        sf.random(name="another")
        sf.sleep(0, name="another")
        seen.append((sf.now(name="opened"), sf.uuid4(name="id"), sf.random(name="luck")))
        sf.sleep(0, name="nap")
        pay(1)

    begun(old)
    with caplog.at_level(logging.WARNING, "surefoot"):
        drive(new)

    assert 1 == len(set(seen))
    assert [] == notes(caplog)
    addresses = [entry.data.get("address") for entry in sf.get_run("r").entries()]
    assert {"now(opened)#1", "uuid4(id)#1", "random(luck)#1", "sleep(nap)#1"} <= set(addresses)


def test_values_of_a_scope_that_was_renamed_stay_its_own():
    """`was=` says that the calls in it are those on record under its old label: the ids in it, too."""
    seen = []

    def old():
        with sf.scope("europe"):
            seen.append(sf.uuid4())
            pay(str(seen[-1]))
        cut()

    def new():
        with sf.scope("eu", was="europe"):
            seen.append(sf.uuid4())
            pay(str(seen[-1]))

    begun(old)
    drive(new)

    assert 1 == len(set(seen))


def test_tasks_are_counted_and_pinned_alike(caplog):
    seen = []

    async def old():
        aio.now()
        seen.append(aio.uuid4(name="id"))
        await aio.sleep(0)
        await aio.sleep(0, name="nap")
        await pay_async(1)
        cut()

    async def new():
        aio.now()
        aio.now()
        seen.append(aio.uuid4(name="id"))
        await aio.sleep(0)
        await aio.sleep(0)
        await aio.sleep(0, name="nap")
        await pay_async(1)

    begun(old)
    with caplog.at_level(logging.WARNING, "surefoot"):
        drive(new)

    assert 1 == len(set(seen))
    assert {"now#1", "sleep#1"} == {address for address, _ in kept()}
    assert 2 == caplog.text.count("1 was recorded in front of pay_async#1, and 2 are asked for there now")


def test_preflight_lists_it(monkeypatch):
    monkeypatch.setattr(registry, "_known", {})

    def old():
        sf.now()
        pay(1)
        cut()

    def new():
        pay(1)

    begun(old)
    registry.add(Definition(new, name="flow"))

    found = preflight.check(config.runtime(create=False), "r")

    assert found is not None
    assert (("now#1", "1 was recorded in front of pay#1, and 0 are asked for there now"),) == found.kept


@pytest.mark.parametrize("name", ["", "a/b"])
def test_name_that_could_be_taken_for_something_else_is_refused(name):
    def flow():
        sf.now(name=name)

    with pytest.raises(sf.UsageError, match="no slash"):
        drive(flow)
