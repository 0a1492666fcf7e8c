"""What a saga has undone is not taken for done: code that goes on as if it stood stops before anything is executed."""

from __future__ import annotations

import asyncio

import pytest

import surefoot as sf
from surefoot import aio
from surefoot.engine.declare import removal
from tests.redeploys import Cut, foreseen, resumed, started, stopped


@pytest.fixture(autouse=True)
def nothing_removed(monkeypatch):
    monkeypatch.setattr(removal, "_removed", set())


class Shop:
    """Effects of which one has an undo; `cut` says at which line of the ledger the process ends."""

    def __init__(self, ledger, *, has_undo=True, cut=""):
        def write(line):
            ledger.write(line)
            if line == cut:
                raise Cut

        @sf.effect
        def hold(x: str) -> str:
            write(f"hold {x}")
            return x

        if has_undo:

            @hold.undo
            def _(x: str, result: str) -> None:
                write(f"unhold {x}")

        @sf.effect
        def book(x: str) -> str:
            write(f"book {x}")
            return f"booked {x}"

        self.hold, self.book = hold, book

    def trip(self, *, fails, in_between=None, behind=None):
        """Two holds in a saga, which fails or is booked."""

        def body():
            try:
                with sf.saga():
                    self.hold("a")
                    self.hold("b")
                    if in_between is not None:
                        in_between()
                    if fails:
                        raise LookupError
                    self.book("in")
            except LookupError:
                pass
            return behind() if behind is not None else self.book("out")

        return body


UNDONE = ["hold a", "hold b", "unhold b", "unhold a"]


def dies():
    raise Cut


def test_code_that_no_longer_fails_does_not_build_on_what_was_undone(ledger):
    """The room was given back. To book the trip on top of it would be wrong, and nobody would notice."""
    shop = Shop(ledger)
    started(shop.trip(fails=True, behind=dies))
    mended = shop.trip(fails=False)

    stop = stopped(mended)

    assert "book#1: hold#1 was undone (hold.undo#2), hold#2 was undone (hold.undo#1), and the code goes on" in str(stop)
    assert "as if they stood. Nothing was executed." in str(stop)
    assert "sf.removed" not in str(stop)
    assert foreseen(mended).verdict == "stranded"
    assert ledger.lines == UNDONE


@pytest.mark.parametrize("cut", ["unhold b", "unhold a"])
def test_an_undo_that_has_begun_counts(ledger, cut):
    """Nobody knows whether the room was given back."""
    started(Shop(ledger, cut=cut).trip(fails=True))
    before = ledger.lines

    stop = stopped(Shop(ledger).trip(fails=False))

    assert "may have been undone (hold.undo#" in str(stop)
    assert ledger.lines == before


def test_an_undo_that_did_not_happen_is_none(ledger):
    """A person looked: the room is still held, so the code may build on it."""
    started(Shop(ledger, cut="unhold b").trip(fails=True))
    mended = Shop(ledger).trip(fails=False)
    cure = "surefoot settle r 'hold.undo#1' --not-happened"
    assert dict(stopped(mended).cures)["hold#2 was not undone?"] == cure

    sf.get_run("r").settle("hold.undo#1", not_happened=True)

    assert resumed(mended) == "booked out"


def test_the_old_code_goes_on(ledger):
    shop = Shop(ledger)
    started(shop.trip(fails=True, behind=dies))
    stopped(shop.trip(fails=False))

    assert resumed(shop.trip(fails=True)) == "booked out"
    assert ledger.lines == [*UNDONE, "book out"]


def test_the_run_goes_back_to_before_it(ledger):
    """The cure that is printed: each effect is asked about, and nothing is repeated under its spent key."""
    shop = Shop(ledger)
    started(shop.trip(fails=True, behind=dies))
    mended = shop.trip(fails=False)
    assert ("do it once more, asked about each?", "surefoot runs rewind r --at 'hold#1'") in stopped(mended).cures

    run = sf.get_run("r")
    run.rewind("hold#1")
    for address, value in (("hold#1", "a"), ("hold#2", "b")):
        with pytest.raises(sf.InDoubt, match=address):
            resumed(mended)
        run.settle(address, happened=value)

    assert resumed(mended) == "booked out"
    assert ledger.lines == [*UNDONE, "book in", "book out"]


def test_the_run_is_given_up_and_what_is_undone_is_not_undone_again(ledger):
    shop = Shop(ledger)
    started(shop.trip(fails=True, behind=dies))
    mended = shop.trip(fails=False)
    assert ("leave it undone?", "surefoot runs cancel r") in stopped(mended).cures

    sf.get_run("r").cancel()

    with pytest.raises(sf.Cancelled):
        resumed(mended)
    assert ledger.lines == UNDONE


def test_an_effect_put_in_front_of_the_failure_is_asked_about_and_made_once(ledger):
    """The saga still fails behind it: then its undos are those on record."""
    shop = Shop(ledger)
    started(shop.trip(fails=True, behind=dies))
    body = shop.trip(fails=True, in_between=lambda: shop.book("log"))
    assert "surefoot match r 'book#1' --new" in dict(stopped(body).cures).values()

    sf.get_run("r").match("book#1", new=True)

    assert resumed(body) == "booked out"
    assert ledger.lines == [*UNDONE, "book log", "book out"]


def test_a_new_effect_that_a_person_calls_new_is_not_built_on_what_was_undone(ledger):
    """The look behind it finds that nothing fails there."""
    shop = Shop(ledger)
    started(shop.trip(fails=True, behind=dies))
    mended = shop.trip(fails=False, behind=lambda: "over")
    stopped(mended)
    sf.get_run("r").match("book#1", new=True)

    assert "goes on as if they stood" in str(stopped(mended))
    assert ledger.lines == UNDONE


def test_code_that_ends_there_is_told_the_same(ledger):
    shop = Shop(ledger)
    started(shop.trip(fails=True, behind=dies))

    def body():
        return [shop.hold("a"), shop.hold("b")]

    assert "hold#1 was undone (hold.undo#2)" in str(stopped(body))


def test_a_new_step_runs_and_the_effect_behind_it_does_not(ledger):
    """The rehearsal cannot see behind the step: the fence looks again."""

    @sf.step
    def look() -> bool:
        return False

    shop = Shop(ledger)
    started(shop.trip(fails=True, behind=dies))

    stop = stopped(shop.trip(fails=False, in_between=look))

    assert "book#1: hold#1 was undone" in str(stop)
    assert ledger.lines == UNDONE


def test_to_call_it_removed_does_not_help_while_the_code_still_asks_for_it(ledger):
    shop = Shop(ledger)
    started(shop.trip(fails=True, behind=dies))
    sf.removed("hold")

    assert "goes on as if they stood" in str(stopped(shop.trip(fails=False)))
    assert "goes on as if they stood" in str(stopped(shop.trip(fails=False, behind=lambda: 1)))
    assert ledger.lines == UNDONE


def test_an_undo_is_not_called_removed_by_itself(ledger):
    """It was accepted, and did nothing."""
    with pytest.raises(sf.UsageError, match=r"an undo belongs to its effect: sf\.removed\(\"hold\"\)"):
        sf.removed("hold.undo")


def test_an_undo_that_was_taken_out_after_it_ran_is_not_denied(ledger, caplog):
    """It said that the holds were left as they are."""

    @sf.step
    def look() -> None:
        """New: so the code is driven up to the saga, and behind it."""

    started(Shop(ledger).trip(fails=True, behind=dies))
    without = Shop(ledger, has_undo=False)

    for body in (without.trip(fails=True), without.trip(fails=True, behind=look)):
        stop = stopped(body)
        assert "hold#1 was undone (hold.undo#2)" in str(stop)
        assert "the code has no undo of hold any more" in str(stop)
        assert ("by mistake?", "put the undo of hold back, and run r again") in stop.cures
    assert "they have no undo" not in caplog.text
    assert ledger.lines == UNDONE
    assert resumed(Shop(ledger).trip(fails=True)) == "booked out"


def test_what_was_undone_elsewhere_by_a_word_counts(ledger):
    """`sf.undo` in another scope than the effect."""
    shop = Shop(ledger)

    def old():
        with sf.scope("one"):
            shop.hold("a")
        with sf.scope("two"):
            sf.undo(shop.hold)
        raise Cut

    def new():
        with sf.scope("one"):
            shop.hold("a")
        return shop.book("x")

    started(old)

    assert "[one]/hold#1 was undone ([two]/hold.undo#1)" in str(stopped(new))
    assert ledger.lines == ["hold a", "unhold a"]


def test_in_tasks_it_is_the_same(ledger):
    shop = Shop(ledger)

    def trip(*, fails):
        @sf.workflow(name="wf")
        async def body():
            try:
                async with aio.saga():
                    shop.hold("a")
                    await asyncio.sleep(0)
                    if fails:
                        raise LookupError
                    shop.book("in")
            except LookupError:
                raise Cut from None

        return body

    with pytest.raises(Cut):
        asyncio.run(trip(fails=True).run("r"))

    with pytest.raises(sf.CodeChanged, match=r"hold#1 was undone \(hold.undo#1\)"):
        asyncio.run(trip(fails=False).run("r"))
    assert ledger.lines == ["hold a", "unhold a"]
