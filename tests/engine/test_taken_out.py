"""One call of an effect was taken out of the code: a person's word lets the run go on without it, and nothing is done twice."""

from __future__ import annotations

import pytest

import surefoot as sf
from surefoot.engine.declare import removal
from tests.redeploys import Cut, foreseen, resumed, started, stopped


@pytest.fixture(autouse=True)
def nothing_removed(monkeypatch):
    monkeypatch.setattr(removal, "_removed", set())


@pytest.fixture
def mail(ledger):
    @sf.effect
    def mail(to: str, dies: bool = False) -> str:
        ledger.write(f"mail {to}")
        if dies:
            raise Cut
        return f"sent to {to}"

    return mail


@pytest.fixture
def tell(ledger):
    @sf.effect
    def tell(to: str) -> str:
        ledger.write(f"tell {to}")
        return f"told {to}"

    return tell


def sends(effect, *names, dies=False):
    def body():
        for name in names:
            effect(name)
        if dies:
            raise Cut
        return "done"

    return body


def keep(address):
    sf.get_run("r").match(address, keep=True)


def test_the_last_of_several_calls(mail, ledger, caplog):
    """It ended with "came to its end without asking for mail#2", and no way but the old code."""
    started(sends(mail, "a", "b", dies=True))
    body = sends(mail, "a")
    stop = stopped(body)
    assert "came to its end without asking for mail#2" in str(stop)
    assert ("taken out, this run only?", "surefoot match r 'mail#2' --keep") in stop.cures

    keep("mail#2")

    assert resumed(body) == "done"
    assert "nothing was undone: mail#2" in caplog.text
    assert ledger.lines == ["mail a", "mail b"]


def test_the_first_of_several_calls_and_a_new_one_behind_them(mail, ledger):
    started(sends(mail, "a", "b", "c", dies=True))
    body = sends(mail, "b", "c", "d")
    stopped(body)
    sf.get_run("r").match("mail#1", is_="mail#2")
    assert ("taken out, this run only?", "surefoot match r 'mail#1' --keep") in stopped(body).cures

    keep("mail#1")

    assert resumed(body) == "done"
    assert ledger.lines == ["mail a", "mail b", "mail c", "mail d"]


def test_an_item_of_a_map_by_a_pattern(mail, ledger):
    def body(*items, dies=False):
        def inner():
            sf.map(mail, items, key=str, concurrency=1)
            if dies:
                raise Cut
            return mail("end")

        return inner

    started(body("a", "b", "c", dies=True))
    stopped(body("b"))

    keep("[*]/mail#1")

    assert resumed(body("b")) == "sent to end"
    assert ledger.lines == ["mail a", "mail b", "mail c", "mail end"]


@pytest.mark.parametrize("same_name", [True, False])
def test_a_new_effect_with_the_same_arguments_is_asked_about_all_the_same(mail, tell, ledger, same_name):
    """It may be the one that was taken out, renamed or in another place: it would be made twice."""
    started(sends(mail, "a", dies=True))
    stopped(lambda: "done")
    keep("mail#1")
    effect = mail if same_name else tell

    def body():
        with sf.scope("later"):
            return effect("a")

    stop = stopped(body)
    assert "has not asked for mail#1, which was executed with the same arguments" in str(stop)
    assert "taken out, this run only?" not in dict(stop.cures)
    assert ledger.lines == ["mail a"]

    sf.get_run("r").match(f"[later]/{'mail' if same_name else 'tell'}#1", new=True)
    resumed(body)
    assert len(ledger.lines) == 2


def test_only_that_call_is_let_go(mail, tell, ledger):
    started(sends(mail, "a", "b", dies=True))
    stopped(lambda: "done")
    keep("mail#1")

    def body():
        return tell("x")

    assert "has not asked for mail#2, which" in str(stopped(body))
    keep("mail#2")
    assert resumed(body) == "told x"
    assert ledger.lines == ["mail a", "mail b", "tell x"]


def test_a_word_about_other_arguments_lets_nothing_go(mail, ledger):
    """Said of a call that the code asks for with other arguments, it is no word on code that does not ask at all."""
    started(sends(mail, "a", dies=True))
    stopped(sends(mail, "A"))
    keep("mail#1")

    assert "without asking for mail#1" in str(stopped(lambda: "done"))


def test_a_pattern_about_other_arguments_lets_nothing_go(mail, ledger):
    started(sends(mail, "a", "b", dies=True))
    stopped(sends(mail, "A", "B"))
    keep("*")

    assert "without asking for mail#1, mail#2" in str(stopped(lambda: "done"))


def test_if_the_code_asks_for_it_again_it_has_what_was_done(mail, ledger):
    started(sends(mail, "a", dies=True))
    stopped(lambda: "done")
    keep("mail#1")

    assert resumed(sends(mail, "a")) == "done"
    assert ledger.lines == ["mail a"]


def test_one_in_doubt_is_settled_first(mail, ledger):
    started(lambda: mail("a", dies=True))
    stop = stopped(lambda: "done")
    assert ("mail#1 happened?", "surefoot settle r 'mail#1' --happened 'JSON'") in stop.cures
    assert "taken out, this run only?" not in dict(stop.cures)

    with pytest.raises(sf.UsageError, match=r"mail#1 is in doubt\. Settle it first"):
        keep("mail#1")
    keep("mail*")
    assert "without asking for mail#1" in str(stopped(lambda: "done"))

    sf.get_run("r").settle("mail#1", happened="sent")
    keep("mail#1")
    assert resumed(lambda: "done") == "done"


def test_what_was_undone_goes_with_its_effect(ledger):
    @sf.effect
    def hold(x: str) -> str:
        ledger.write(f"hold {x}")
        return x

    @hold.undo
    def _(x: str, result: str) -> None:
        ledger.write(f"unhold {x}")

    def old():
        try:
            with sf.saga():
                hold("a")
                raise LookupError
        except LookupError:
            raise Cut from None

    started(old)
    assert "without asking for hold#1, but" in str(stopped(lambda: "done"))
    with pytest.raises(sf.UsageError, match=r"hold\.undo#1 is an undo, and belongs to its effect"):
        keep("hold.undo#1")

    keep("hold#1")

    assert resumed(lambda: "done") == "done"


def test_preflight_says_that_the_run_has_to_stop_first(mail):
    """A word on what a run does not stand at is another one: it would not help."""
    started(sends(mail, "a", "b", dies=True))

    (why,) = foreseen(sends(mail, "a")).why

    assert "taken out, this run only? (once it has stopped)" in dict(why.cures)


def test_an_item_that_was_dropped_stops_before_what_is_said_to_be_new(mail, ledger):
    """`sf.removed` lets nothing go that still has the name: the look behind what is new has to see that."""

    def body(*items, dies=False):
        def inner():
            sf.map(mail, items, key=str, concurrency=1)
            if dies:
                raise Cut
            return mail("end")

        return inner

    started(body("a", "b", dies=True))
    sf.removed("mail")
    new = body("b", "c")
    stopped(new)
    sf.get_run("r").match("[c]/mail#1", new=True)

    assert "asks for the effect mail#1" in str(stopped(new))
    assert ledger.lines == ["mail a", "mail b"], "something was executed in a drive that stops"


@pytest.mark.parametrize("address", ["[0]/send", "[0]/send#1", "send#1", "gather#1.0/send#2"])
def test_an_address_is_no_name_of_what_was_removed(address):
    """It was accepted, and did nothing."""
    with pytest.raises(sf.UsageError, match="it takes the name of an effect, and this is the address of a call"):
        sf.removed(address)


def test_an_effect_that_the_code_still_has_is_not_called_gone(mail, tell, ledger):
    """The code had merely not asked for it yet; with `sf.removed` its record would be passed by."""
    started(sends(mail, "a", dies=True))

    def body():
        tell("x")
        mail("a")

    assert not any("sf.removed" in do for do in dict(stopped(body).cures).values())


def test_a_note_is_about_what_happened(ledger, caplog):
    """It said that a result is kept, and the step ran."""

    @sf.step
    def ask(q: str) -> str:
        ledger.write(f"ask {q}")
        return q

    @sf.effect
    def send(to: str) -> None:
        ledger.write(f"send {to}")

    @sf.effect
    def book(to: str) -> None:
        ledger.write(f"book {to}")

    def old():
        ask("plan")
        send("fixed")
        ask("next")
        book("q")
        raise Cut

    def new():
        ask("pre")
        ask("plan well")
        send("fixed")
        ask("next!")
        book("q")
        return "done"

    started(old)

    assert resumed(new) == "done"
    ran = [line.removeprefix("ask ") for line in ledger.lines[4:]]
    notes = [record.getMessage() for record in caplog.records if "is kept" in record.getMessage()]
    assert ran
    assert not [note for note in notes for line in ran if note.endswith(f'-> "{line}"')]
