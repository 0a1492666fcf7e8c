"""Runs on record whose classes changed with a new version of a package, or of the user's own code."""

from __future__ import annotations

import pytest

BLOCKING = """
import os, sys
sys.path.insert(0, "lib/site-packages")
import surefoot as sf
from acme import Answer

def out(line):
    with open("out", "a") as file:
        file.write(line + "\\n")

@sf.step
def ask() -> Answer:
    out("ask")
    return Answer(text="hi")

@sf.effect
def send(answer: Answer) -> str:
    out("send")
    return answer.text

@sf.workflow
def wf():
    answer = ask()
    send(answer)
    send(Answer(text="again"))
    if os.environ.get("DIE"):
        os._exit(9)
    return repr(answer)

if __name__ == "__main__":
    print(wf.run("r"))
"""
IN_TASKS = (
    BLOCKING.replace("def ask", "async def ask").replace("def send", "async def send").replace("def wf", "async def wf")
    .replace("= ask()", "= await ask()").replace("    send(", "    await send(")
    .replace('print(wf.run("r"))', 'import asyncio; print(asyncio.run(wf.run("r")))')
)  # fmt: skip
CLASS = "from dataclasses import dataclass\n@dataclass\nclass Answer:\n    text: str\n"


@pytest.mark.parametrize("source", [BLOCKING, IN_TASKS], ids=["blocking", "in tasks"])
def test_a_run_goes_on_after_its_sdk_was_upgraded(source, program):
    """Recorded answers, and recorded arguments of effects, are read with the new class: the same call is asked for."""
    (program.folder / "lib" / "site-packages").mkdir(parents=True)
    program.write(source)
    program.write(CLASS, name="lib/site-packages/acme.py")
    assert program.run(DIE="1", PYTHONDONTWRITEBYTECODE="1").returncode == 9
    program.write(CLASS + "    tokens: int = 0\n", name="lib/site-packages/acme.py")

    gone_on = program.run(PYTHONDONTWRITEBYTECODE="1")

    assert gone_on.stdout == "Answer(text='hi', tokens=0)\n", gone_on.stderr
    assert (program.folder / "out").read_text() == "ask\nsend\nsend\n"
    assert gone_on.stderr.count("recorded values of acme.Answer are from another version of its package") == 1


ENUM = """
import enum, os
import surefoot as sf

class Currency(enum.Enum):
    EUR = os.environ["EUR"]

def out(line):
    with open("out", "a") as file:
        file.write(line + "\\n")

@sf.effect(on_crash=os.environ["POLICY"])
def pay(currency: Currency) -> str:
    out(f"pay {currency.value}")
    if os.environ.get("DIE"):
        os._exit(9)
    return currency.value

if os.environ["POLICY"] == "check":
    @pay.check
    def _(currency):
        out(f"look for {currency.value}")
        return sf.not_happened()

@sf.workflow
def wf():
    return pay(Currency.EUR)

if __name__ == "__main__":
    import sys
    if sys.argv[1:] == ["settle"]:
        sf.get_run("r").settle("pay#1", not_happened=True, by="ann")
    try:
        print(wf.run("r"))
    except sf.Stopped as stop:
        print(type(stop).__name__, stop)
"""


@pytest.mark.parametrize("policy", ["retry", "check"])
def test_an_effect_in_doubt_is_not_repeated_with_another_value(policy, program):
    """Under the same key the other side would refuse it, answer for the first one, or do something else."""
    program.write(ENUM)
    assert program.run(EUR="eur", POLICY=policy, DIE="1").returncode == 9

    for _ in range(2):
        told = program.run(EUR="EUR", POLICY=policy).stdout
        assert told.startswith("CodeChanged run r, pay#1:")
        assert 'Currency.EUR: "eur" -> "EUR"' in told
    assert (program.folder / "out").read_text() == "pay eur\n"
    assert program.run("settle", EUR="EUR", POLICY=policy).stdout == "EUR\n"


def test_the_old_value_put_back_is_the_same_request(program):
    program.write(ENUM)
    assert program.run(EUR="eur", POLICY="retry", DIE="1").returncode == 9
    program.run(EUR="EUR", POLICY="retry")

    assert program.run(EUR="eur", POLICY="retry").stdout == "eur\n"


DONE = """
import enum, os, sys
from dataclasses import dataclass
import surefoot as sf

HOW, VALUE = sys.argv[1], int(os.environ["VALUE"])

class Depot(enum.Enum):
    MAIN = VALUE

@dataclass(frozen=True)
class Order:
    depot: Depot

def out(line):
    with open("out", "a") as file:
        file.write(line + "\\n")

def place(what):
    return what.depot.value if isinstance(what, Order) else what.value

@sf.effect(on_crash="retry")
def reserve(what: Depot | Order = Depot.MAIN) -> Depot:
    out(f"reserve in {place(what)}")
    return Depot.MAIN

@reserve.undo
def _(what, result):
    out(f"release in {place(what)}")

@sf.effect(on_crash="retry")
def book(name: str) -> Depot:
    out(f"book in {Depot.MAIN.value}")
    return Depot.MAIN

@book.undo
def _(name, result):
    out(f"cancel in {result.value}")

@sf.effect(on_crash="retry")
def pack() -> str:
    out("pack")
    return "box"

@pack.undo
def _(result):
    out("unpack")

@sf.step
def look() -> None:
    if VALUE == 1:
        os._exit(9)
    raise ValueError("nothing there")

@sf.workflow
def wf():
    with sf.saga():
        if HOW == "argument":
            reserve(Depot.MAIN)
        if HOW == "field":
            reserve(Order(Depot.MAIN))
        if HOW == "default":
            reserve()
        if HOW == "result":
            book("ann")
        pack()
        look()

if sys.argv[2:] == ["keep"]:
    sf.get_run("r").match("reserve#1", keep=True, by="ann")
try:
    wf.run("r")
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize("how", ["argument", "field", "default", "result"])
def test_a_saga_does_not_undo_something_else_once_a_member_has_another_value(how, program):
    """What is undone is what was done. It stops before the first undo: the box would be unpacked, and stay reserved."""
    program.write(DONE)
    assert program.run(how, VALUE="1").returncode == 9
    done = (program.folder / "out").read_text()

    told = program.run(how, VALUE="2").stdout
    assert told.startswith("CodeChanged run r, ")
    if how in ("argument", "field"):  # Asked for with other arguments: what was done stands, ann says.
        assert f"{'what' if how == 'argument' else 'what.depot'}.value: 1 -> 2" in told
        told = program.run(how, "keep", VALUE="2").stdout

    assert "to undo it now would take back something else: Depot.MAIN: 1 -> 2" in told
    assert (program.folder / "out").read_text() == done

    assert program.run(how, VALUE="1").stdout == "ValueError nothing there\n"
    undone = "cancel in 1" if how == "result" else "release in 1"
    assert (program.folder / "out").read_text() == f"{done}unpack\n{undone}\n"


def test_a_default_whose_member_has_another_value_runs_anew_as_it_is_recorded(program):
    """Settled as not happened, it is a request of its own: the record must not say the value of the first one."""
    program.write(
        """
        import enum, os, surefoot as sf

        class Depot(enum.Enum):
            MAIN = int(os.environ["VALUE"])

        @sf.effect(on_crash="retry")
        def reserve(depot: Depot = Depot.MAIN) -> int:
            if depot.value == 1:
                os._exit(9)
            return depot.value

        @sf.workflow
        def wf():
            return reserve()

        if os.environ["VALUE"] == "2":
            sf.get_run("r").settle("reserve#1", not_happened=True, by="ann")
        print(wf.run("r"))
        print([e.data["defaults"] for e in sf.get_run("r").entries() if e.kind == "EffectIntended"])
        """
    )
    assert program.run(VALUE="1").returncode == 9

    result, recorded = program.run(VALUE="2").stdout.splitlines()
    assert result == "2"
    assert recorded.index("'value': 1") < recorded.index("'value': 2")


STEP = """
import enum, os, sys
import surefoot as sf

class Model(enum.Enum):
    BEST = os.environ["BEST"]

def out(line):
    with open("out", "a") as file:
        file.write(line + "\\n")

@sf.step
def price(model: Model) -> str:
    out(f"ask {model.value}")
    return f"price of {model.value}"

@sf.effect(on_crash="retry")
def order(what: str) -> None:
    out(f"order {what}")

@sf.step
def end() -> None:
    if os.environ["BEST"] == "a":
        os._exit(9)

@sf.workflow
def wf(acts):
    found = price(Model.BEST)
    if acts:
        order("it")
    end()
    return found

print(wf.run("r", sys.argv[1] == "acts"))
"""


def test_a_steps_answer_is_not_given_to_a_member_that_has_another_value(program):
    """It was asked about one model, and the code now asks about another: by whatever name."""
    program.write(STEP)
    assert program.run("looks", BEST="a").returncode == 9

    assert program.run("looks", BEST="b").stdout == "price of b\n"
    assert (program.folder / "out").read_text() == "ask a\nask b\n"


def test_a_steps_answer_that_was_acted_on_is_kept_and_the_other_value_is_told(program):
    """As with any argument that has changed: what was ordered must agree with what was asked, and somebody is told."""
    program.write(STEP)
    assert program.run("acts", BEST="a").returncode == 9

    gone_on = program.run("acts", BEST="b")

    assert gone_on.stdout == "price of a\n", gone_on.stderr
    assert 'model.value: "a" -> "b"' in gone_on.stderr
    assert (program.folder / "out").read_text() == "ask a\norder it\n"


def test_an_effect_that_was_done_is_not_asked_for_with_another_value(program):
    """Other arguments than it was executed with: what was done may not be what is wanted now."""
    program.write(
        """
        import enum, os, sys, surefoot as sf

        class Currency(enum.Enum):
            EUR = os.environ["EUR"]

        @sf.effect(on_crash="retry", noted=("note",))
        def pay(currency: Currency, note: Currency | None = None) -> str:
            return "paid"

        @sf.workflow
        def wf(what):
            if what == "noted":
                pay("EUR", note=Currency.EUR)
            else:
                pay(Currency.EUR)
            return end()

        @sf.step
        def end():
            if Currency.EUR.value == "eur":
                os._exit(9)
            return "over"

        try:
            print(wf.run(sys.argv[1], sys.argv[1]))
        except sf.Stopped as stop:
            print(type(stop).__name__, stop)
        """
    )
    for run in ("compared", "noted"):
        assert program.run(run, EUR="eur").returncode == 9

    told = program.run("compared", EUR="EUR").stdout
    assert told.startswith("CodeChanged run compared, pay#1: asked for with other arguments than it was executed with:")
    assert 'currency.value: "eur" -> "EUR"' in told
    assert "surefoot match compared 'pay#1' --keep" in told
    assert program.run("noted", EUR="EUR").stdout == "over\n"
