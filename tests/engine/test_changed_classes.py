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
