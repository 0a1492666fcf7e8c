"""Code and classes change while runs are in flight: a run goes on where they fit, and is refused by name where not."""

from __future__ import annotations

import pytest

import surefoot as sf
from surefoot.engine.operate.handle import Run


@sf.step
def fetch(order: str) -> str:
    return f"order {order}"


@sf.effect
def charge(order: str, cents: int) -> str:
    return f"charged {order} {cents}"


def version_1():
    @sf.workflow(name="orders")
    def orders(order: str) -> str:
        charge(fetch(order), 100)
        return f"{sf.wait_event('paid')} by version 1"

    return orders


def version_2(*, cents: int):
    @sf.workflow(name="orders", version=2)
    def orders(order: str) -> str:
        charge(fetch(order), cents)
        return f"{sf.wait_event('paid')} by version 2"

    return orders


@pytest.fixture
def in_flight():
    """A run that version 1 has begun, charged for, and left waiting."""
    with pytest.raises(sf.WaitingForAnswer):
        version_1().run("o-1", "a")
    return sf.get_run("o-1")


def recorded_version(run: Run) -> int:
    created = run.entries()[0]
    assert "RunCreated" == created.kind
    return created.data.get("version", 1)


def test_an_old_run_goes_on_with_newer_code_that_fits(in_flight):
    """A new version is no reason to stop: only a difference that matters is."""
    sf.send_event("o-1", "paid", "paid")

    assert "paid by version 2" == version_2(cents=100).run("o-1", "a")
    assert 1 == recorded_version(in_flight)


def test_an_old_run_is_refused_by_newer_code_that_does_not_fit(in_flight):
    """The customer was charged 100. Code that believes it charged 250 must not go on from there."""
    sf.send_event("o-1", "paid", "paid")

    with pytest.raises(sf.CodeChanged) as stopped:
        version_2(cents=250).run("o-1", "a")

    assert "charge#1" == stopped.value.address
    assert '"cents":100' in stopped.value.facts["recorded"]
    assert '"cents":250' in stopped.value.facts["asked"]
    assert 1 == recorded_version(in_flight)
    assert "paid by version 1" == version_1().run("o-1", "a")


def test_a_run_is_created_with_the_version_of_its_code():
    """Whoever looks at a run later has to know which code began it."""
    with pytest.raises(sf.WaitingForAnswer):
        version_2(cents=100).run("o-2", "b")

    assert 2 == recorded_version(sf.get_run("o-2"))


# --- classes -------------------------------------------------------------------------------------------

APP = """
import sys
from dataclasses import dataclass, replace
{imports}
import surefoot as sf

{order}

@sf.step
def fetch(name: str) -> Order:
    with open("ledger", "a") as ledger:
        ledger.write("fetch\\n")
    return {made}

@sf.effect
def charge(order: Order) -> str:
    with open("ledger", "a") as ledger:
        ledger.write("charge\\n")
    return "charged"

@sf.workflow
def orders(name: str) -> str:
    order = fetch(name)
    {then}
    sf.wait_event("go")
    return repr(order)

@sf.workflow
def of_order(order: Order) -> str:
    sf.wait_event("go")
    return repr(order)

def left_off(begin):
    # Begin a run, and leave it as one that could go on at once.
    try:
        begin()
    except sf.WaitingForAnswer:
        sf.send_event("o-1", "go")

if __name__ == "__main__":
    name = "a"
    try:
        print({asked})
    except (sf.Stopped, sf.RunConflict) as stop:
        facts = getattr(stop, "facts", {{}})
        print(type(stop).__name__, "|", getattr(stop, "address", ""), "|", facts.get("field", ""), "|", stop)
"""
RUN = 'orders.run("o-1", "a")'
BEGIN = f"left_off(lambda: {RUN})"
RESUME = 'sf.get_run("o-1").resume()'
BEGIN_OF_ORDER = 'left_off(lambda: of_order.run("o-1", Order("a", 5)))'

KINDS = {
    "dataclass": ("", "@dataclass\nclass Order:\n"),
    "struct": ("import msgspec", "class Order(msgspec.Struct):\n"),
    "model": ("import pydantic", "class Order(pydantic.BaseModel):\n"),
}
OLD, NEW = "    name: str\n    cents: int\n", "    name: str\n    cents: int\n    currency: str = 'EUR'\n"
UPCAST = """
sf.register(Order, version=2)

@sf.upcast("Order", 1)
def _(parts):
    return parts | {"currency": "USD"}
"""


@pytest.fixture
def app(program):
    """An app whose class has these fields; what it prints when it is asked to do something."""

    def answer(asked: str, kind: str = "dataclass", fields: str = OLD, more: str = "", *, then: str = "pass") -> str:
        imports, head = KINDS[kind]
        order = head + fields + more
        program.write(
            APP.format(imports=imports, order=order, made="Order(name=name, cents=5)", then=then, asked=asked)
        )
        ended = program.run()
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    return answer


@pytest.mark.parametrize("kind", KINDS)
def test_a_value_whose_fields_changed_is_refused_with_field_and_step(app, ledger, kind):
    """Filled in with a default, a recorded order would silently become one that nobody placed."""
    app(BEGIN, kind)

    stop, address, field, text = app(RUN, kind, NEW).split(" | ")

    assert ("SchemaMismatch", "fetch#1", "currency") == (stop, address, field)
    assert "run o-1, fetch#1: a recorded Order has no field 'currency', which __main__.Order has now." in text
    assert "sf.upcast('Order', 1)" in text
    assert ["fetch"] == ledger.lines


@pytest.mark.parametrize("kind", KINDS)
def test_a_field_that_is_gone_is_refused_with_its_name(app, kind):
    """Dropping what was recorded is a change like any other."""
    app(BEGIN, kind, NEW)

    stop, address, field, text = app(RUN, kind, OLD).split(" | ")

    assert ("SchemaMismatch", "fetch#1", "currency") == (stop, address, field)
    assert "has a field 'currency', which __main__.Order no longer has" in text


@pytest.mark.parametrize("kind", KINDS)
def test_an_upcaster_brings_a_recorded_value_up_to_date(app, ledger, kind):
    """The one who changed the class says what the old ones mean."""
    app(BEGIN, kind)

    assert "currency='USD'" in app(RUN, kind, NEW, UPCAST)
    assert ["fetch"] == ledger.lines


def test_an_effect_keeps_its_outcome_when_its_argument_is_brought_up_to_date(app, ledger):
    """The recorded argument, upcast, is the one that is passed: it is the same call, and it must not run again."""
    app(BEGIN, then="charge(order)")

    assert "currency='USD'" in app(RUN, "dataclass", NEW, UPCAST, then="charge(order)")
    assert ["fetch", "charge"] == ledger.lines


def test_another_argument_is_a_change_of_code_upcaster_or_not(app, ledger):
    """Only what was recorded, brought up to date, counts as the same."""
    app(BEGIN, then="charge(order)")

    stop, address, _, text = app(
        RUN, "dataclass", NEW, UPCAST, then="charge(replace(order, currency='CHF'))"
    ).split(" | ")  # fmt: skip

    assert ("CodeChanged", "charge#1") == (stop, address)
    assert "CHF" in text
    assert ["fetch", "charge"] == ledger.lines


def test_upcasters_are_chained(app):
    """A run may have slept through several versions."""
    chained = UPCAST.replace("version=2", "version=3") + (
        '\n@sf.upcast("Order", 2)\ndef _(parts):\n    return parts | {"currency": parts["currency"] + "!"}\n'
    )
    app(BEGIN)

    assert "currency='USD!'" in app(RUN, "dataclass", NEW, chained)


def test_a_missing_link_of_the_chain_is_refused_with_the_step(app):
    """Halfway up to date is not up to date."""
    app(BEGIN)

    stop, address, _, text = app(RUN, "dataclass", NEW, UPCAST.replace("version=2", "version=3")).split(" | ")

    assert ("SchemaMismatch", "fetch#1") == (stop, address)
    assert "nothing says how to get from 2 to 3" in text


def test_a_value_of_a_newer_version_is_refused_by_older_code(app):
    """After a rollback: the old code cannot know what the new one meant."""
    app(BEGIN, "dataclass", NEW, UPCAST)

    stop, address, _, text = app(RUN, "dataclass", OLD).split(" | ")

    assert ("SchemaMismatch", "fetch#1") == (stop, address)
    assert "has version 2; the class at hand is version 1" in text


def test_the_arguments_of_a_run_are_refused_with_the_field(app):
    """They are recorded values like any other, only not those of a step."""
    app(BEGIN_OF_ORDER)

    stop, _, field, text = app(RESUME, "dataclass", NEW).split(" | ")

    assert ("SchemaMismatch", "currency") == (stop, field)
    assert "run o-1, its arguments: a recorded Order has no field 'currency'" in text


def test_the_arguments_of_a_run_are_brought_up_to_date(app):
    """Who starts the run again gives the order as it is today; whether it is the same, the upcaster says."""
    again = 'of_order.run("o-1", Order("a", 5, "USD"))'
    app(BEGIN_OF_ORDER)

    assert app(again.replace("USD", "CHF"), "dataclass", NEW, UPCAST).startswith("RunConflict")
    assert "currency='USD'" in app(again, "dataclass", NEW, UPCAST)
    assert "currency='USD'" in app(RESUME, "dataclass", NEW, UPCAST)


def test_the_result_of_a_run_is_refused_with_the_field(app):
    """Asked for again after the class has changed, a result is not handed out in a shape it never had."""
    finished = 'sf.workflow(fetch).run("o-1", "a")'
    app(finished)

    stop, _, field, text = app(finished, "dataclass", NEW).split(" | ")

    assert ("SchemaMismatch", "currency") == (stop, field)
    assert "run o-1, its result: a recorded Order has no field 'currency'" in text
