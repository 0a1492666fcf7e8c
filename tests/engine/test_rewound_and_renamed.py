"""Sent back to before an effect, the run does not do it again under another name because of one more argument."""

from __future__ import annotations

import pytest

import surefoot as sf


class Cut(BaseException):
    """The process ends here, as far as the run can tell."""


@pytest.fixture
def effects(ledger):
    @sf.effect
    def pay(to: str) -> None:
        ledger.write(f"pay {to}")

    @sf.effect
    def transfer(to: str, currency: str = "EUR") -> None:
        ledger.write(f"transfer {to} {currency}")

    @sf.effect
    def charge(to: str, currency: str = "EUR") -> None:
        ledger.write(f"charge {to} {currency}")

    return pay, transfer, charge


def sent_back(call):
    def body():
        call()
        raise Cut

    with pytest.raises(Cut):
        sf.workflow(name="wf")(body).run("r")
    run = sf.get_run("r")
    run.rewind(next(iter(run.state().calls)))


def resumed(call):
    return sf.workflow(name="wf")(call).run("r")


@pytest.mark.parametrize("given", [(), ("EUR",), ("USD",)], ids=["left out", "its default", "another"])
def test_a_parameter_more_hides_no_rename(given, effects, ledger):
    pay, _, charge = effects
    sent_back(lambda: pay("ann"))

    with pytest.raises(sf.CodeChanged, match="has not asked for pay#1"):
        resumed(lambda: charge("ann", *given))
    assert ledger.lines == ["pay ann"]


@pytest.mark.parametrize(("was", "now"), [((), ("EUR",)), (("EUR",), ()), ((), ("USD",))])
def test_a_default_and_the_same_value_passed_are_one_call(was, now, effects, ledger):
    _, transfer, charge = effects
    sent_back(lambda: transfer("ann", *was))

    with pytest.raises(sf.CodeChanged, match="has not asked for transfer#1"):
        resumed(lambda: charge("ann", *now))
    assert len(ledger.lines) == 1


def test_moved_into_a_scope_with_a_default_it_is_found_too(effects, ledger):
    _, transfer, _ = effects
    sent_back(lambda: transfer("ann"))

    def moved():
        with sf.scope("eu"):
            transfer("ann", "EUR")

    with pytest.raises(sf.CodeChanged, match="has not asked for transfer#1"):
        resumed(moved)
    assert len(ledger.lines) == 1


def test_another_way_is_free_to_be_gone(effects, ledger):
    """That is why the run was sent back."""
    pay, _, charge = effects
    sent_back(lambda: pay("ann"))

    resumed(lambda: charge("bob"))

    assert ledger.lines == ["pay ann", "charge bob EUR"]
