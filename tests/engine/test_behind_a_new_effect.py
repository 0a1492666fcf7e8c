"""What would stop the run behind an effect that is declared new stops it before that effect is executed."""

from __future__ import annotations

import asyncio

import pytest

import surefoot as sf
from surefoot import aio


class Cut(BaseException):
    """The process ends here, as far as the run can tell."""


@pytest.fixture
def effects(ledger):
    @sf.effect
    def pay(to: str) -> str:
        ledger.write(f"pay {to}")
        return f"paid {to}"

    @sf.effect
    def charge(to: str) -> str:
        ledger.write(f"charge {to}")
        return f"charged {to}"

    @sf.effect(was=None)
    def audit(what: object) -> str | None:
        ledger.write("audit")
        return None if what == "nothing" else f"audited {what}"

    @sf.step
    def look() -> int:
        ledger.write("look")
        return 7

    def old():
        pay("ann")
        raise Cut

    with pytest.raises(Cut):
        sf.workflow(name="wf")(old).run("r")
    return pay, charge, audit, look


def resumed(body):
    return sf.workflow(name="wf")(body).run("r")


def refused(body, ledger, why):
    with pytest.raises(sf.CodeChanged, match=why) as stop:
        resumed(body)
    assert ledger.lines == ["pay ann"], "something was executed in a drive that stops"
    assert "Nothing was executed" in str(stop.value) or "came to its end" in str(stop.value)


def test_other_arguments_behind_it(effects, ledger):
    pay, _, audit, _ = effects

    def body():
        audit("x")
        pay("bob")

    refused(body, ledger, "other arguments")


def test_a_rename_behind_it(effects, ledger):
    _, charge, audit, _ = effects

    def body():
        audit("x")
        charge("ann")

    refused(body, ledger, "asks for the effect charge#1")


def test_an_end_behind_it_without_what_was_executed(effects, ledger):
    _, _, audit, _ = effects

    refused(lambda: audit("x"), ledger, "without asking for pay#1")


def test_behind_several_of_them_and_a_new_step_between(effects, ledger):
    pay, _, audit, look = effects

    def body():
        audit("x")
        audit(look())
        pay("bob")

    refused(body, ledger, "other arguments")


def test_what_a_person_called_new_is_looked_behind_too(effects, ledger):
    pay, charge, _, _ = effects

    def body():
        charge("cleo")
        pay("bob")

    with pytest.raises(sf.CodeChanged):
        resumed(body)
    sf.get_run("r").match("charge#1", new=True)

    refused(body, ledger, "other arguments")


def test_a_new_step_in_front_of_it_hides_nothing(effects, ledger):
    """The step runs; then the rest is heard, before the effect begins."""
    pay, _, audit, look = effects

    def body():
        audit(look() + 1)
        pay("bob")

    with pytest.raises(sf.CodeChanged, match="other arguments"):
        resumed(body)
    assert ledger.lines == ["pay ann", "look"]


def test_in_tasks_it_is_the_same(effects, ledger):
    _, charge, audit, _ = effects

    @sf.workflow(name="wf")
    async def body():
        await aio.gather(asyncio.sleep(0))
        audit("x")
        charge("ann")

    with pytest.raises(sf.CodeChanged, match="asks for the effect charge#1"):
        asyncio.run(body.run("r"))
    assert ledger.lines == ["pay ann"]


def test_what_goes_on_as_recorded_is_made_once(effects, ledger):
    pay, _, audit, _ = effects

    def body():
        audit("x")
        return pay("ann")

    assert resumed(body) == "paid ann"
    assert ledger.lines == ["pay ann", "audit"]


def test_code_that_asks_whether_it_gave_nothing_is_not_stopped_for_it(effects, ledger):
    """That cannot be noticed: so it is a stop only if it is one both ways."""
    pay, _, audit, _ = effects

    def body():
        return pay("ann") if audit("nothing") is None else pay("bob")

    assert resumed(body) == "paid ann"
    assert ledger.lines == ["pay ann", "audit"]


def test_code_that_refuses_a_placeholder_is_not_stopped_for_it(effects, ledger):
    import json

    pay, _, audit, _ = effects

    def body():
        json.dumps([audit("x")])
        return pay("ann")

    assert resumed(body) == "paid ann"
    assert ledger.lines == ["pay ann", "audit"]


def test_new_calls_without_an_end_end_the_look(effects, ledger, monkeypatch):
    """It would never come back from there."""
    from surefoot.engine.drive import lookahead

    monkeypatch.setattr(lookahead, "MOST_PASSED", 5)
    _, _, audit, _ = effects

    def body():
        while True:
            if audit("x") is not None and len(ledger.lines) > 7:
                raise Cut

    with pytest.raises(Cut):
        resumed(body)
    assert ledger.lines == ["pay ann", *["audit"] * 7]
