"""What a call left out is part of it: under another name it is found, and a retry repeats it."""

from __future__ import annotations

import pytest

import surefoot as sf


class Cut(BaseException):
    """The process ends here, as far as the run can tell."""


@pytest.fixture
def old(ledger):
    @sf.effect
    def pay(to: str, cur: str = "EUR") -> str:
        ledger.write(f"pay {to} {cur}")
        return "paid"

    @pay.undo
    def _back(to: str, cur: str, result: str) -> None:
        ledger.write(f"back {to} {cur}")

    return pay


def renamed(ledger, default):
    @sf.effect(name="pay")
    def pay(to: str, currency: str = default) -> str:
        ledger.write(f"pay {to} {currency}")
        return "paid"

    @pay.undo
    def _back(to: str, currency: str, result: str) -> None:
        ledger.write(f"back {to} {currency}")

    return pay


def without(ledger):
    @sf.effect(name="pay")
    def pay(to: str) -> str:
        ledger.write(f"pay {to}")
        return "paid"

    @pay.undo
    def _back(to: str, result: str) -> None:
        ledger.write(f"back {to}")

    return pay


def saga(effect, error):
    def body():
        try:
            with sf.saga():
                effect("ann")
                if error is not None:
                    raise error
        except ValueError:
            return "undone"
        return "done"

    return sf.workflow(name="wf")(body)


def begun(effect):
    with pytest.raises(Cut):
        saga(effect, Cut()).run("r")


@pytest.mark.parametrize(
    ("error", "end", "lines"),
    [(None, "done", []), (ValueError(), "undone", ["back ann EUR"])],
    ids=["done", "undone"],
)
def test_an_optional_parameter_that_was_renamed_strands_no_run(error, end, lines, old, ledger):
    begun(old)

    assert saga(renamed(ledger, "EUR"), error).run("r") == end
    assert ledger.lines == ["pay ann EUR", *lines]


def test_one_that_is_gone_matters_only_if_it_has_to_be_undone(old, ledger):
    begun(old)

    assert saga(without(ledger), None).run("r") == "done"


@pytest.mark.parametrize("new", [without, lambda ledger: renamed(ledger, "USD")], ids=["gone", "another default"])
def test_what_cannot_be_undone_as_it_was_done_is_a_stop_with_a_cure(new, old, ledger):
    """It was done in euros; nobody undoes it in dollars."""
    begun(old)

    with pytest.raises(sf.CodeChanged, match="called with a default for cur") as stop:
        saga(new(ledger), ValueError()).run("r")
    assert ledger.lines == ["pay ann EUR"]
    assert "give the new parameter the default that cur had" in stop.value.cures[0][1]

    assert saga(renamed(ledger, "EUR"), ValueError()).run("r") == "undone"
    assert ledger.lines == ["pay ann EUR", "back ann EUR"]


def test_nothing_is_undone_before_it_is_known_that_all_can_be(old, ledger):
    """Undone newest first, the run would stop half-way."""

    @sf.effect
    def book() -> None:
        ledger.write("book")

    @book.undo
    def _unbook(result: None) -> None:
        ledger.write("unbook")

    def flow(pay, error):
        def body():
            with sf.saga():
                pay("ann")
                book()
                raise error

        return sf.workflow(name="wf")(body)

    with pytest.raises(Cut):
        flow(old, Cut()).run("r")

    with pytest.raises(sf.CodeChanged, match="called with a default for cur"):
        flow(without(ledger), ValueError()).run("r")
    assert ledger.lines == ["pay ann EUR", "book"]


def test_a_value_under_another_name_is_compared_though_that_is_noted(ledger):
    """`noted=` can only name what the function has now: it says nothing about what was recorded as `to`."""

    def effect(new):
        if new:

            @sf.effect(name="pay", noted="recipient")
            def pay(recipient: str) -> None:
                ledger.write(f"pay {recipient}")
        else:

            @sf.effect(name="pay")
            def pay(to: str) -> None:
                ledger.write(f"pay {to}")

        return pay

    def flow(pay, to, error):
        def body():
            pay(to)
            if error:
                raise error
            return "done"

        return sf.workflow(name="wf")(body)

    with pytest.raises(Cut):
        flow(effect(new=False), "ann", Cut()).run("r")

    with pytest.raises(sf.CodeChanged) as stop:
        flow(effect(new=True), "bob", None).run("r")
    assert ("never compare it?", '@sf.effect(noted=("recipient",)) on pay') not in stop.value.cures
    assert flow(effect(new=True), "ann", None).run("r") == "done"
    assert ledger.lines == ["pay ann"]


def failing(ledger, default, *, fails, **more):
    @sf.effect(name="pay", **more)
    def pay(to: str, amount: int = default) -> None:
        ledger.write(f"pay {to} {amount} {sf.key()}")
        if fails:
            raise sf.NotDone("away")

    return sf.workflow(name="wf")(lambda: pay("ann"))


@pytest.mark.parametrize("more", [{}, {"noted": "to"}], ids=["plain", "noted"])
def test_a_retry_of_what_failed_repeats_it_with_its_recorded_default(more, ledger):
    """Under a key that was used, another amount would be sent."""
    with pytest.raises(sf.NotDone):
        failing(ledger, 10, fails=True, **more).run("r")
    sf.get_run("r").retry(failed=True)

    failing(ledger, 99, fails=False, **more).run("r")

    first, second = ledger.lines
    assert first == second
    assert first.startswith("pay ann 10 ")
