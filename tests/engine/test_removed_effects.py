"""`sf.removed`: what the code no longer has is let go, and nothing else. It answers for nothing that is in doubt."""

from __future__ import annotations

import pytest

import surefoot as sf
from surefoot.engine.declare import removal
from tests.redeploys import Cut, foreseen, resumed, started


@pytest.fixture(autouse=True)
def nothing_removed(monkeypatch):
    monkeypatch.setattr(removal, "_removed", set())


@pytest.fixture
def pay(ledger):
    @sf.effect
    def pay(to: str, dies: bool = False) -> str:
        ledger.write(f"pay {to}")
        if dies:
            raise Cut
        return f"paid {to}"

    return pay


@pytest.fixture
def mail(ledger):
    @sf.effect
    def mail(to: str) -> str:
        ledger.write(f"mail {to}")
        return f"sent to {to}"

    return mail


def test_one_in_doubt_is_settled_first(pay, mail, ledger):
    """Nobody knows whether the money is gone: to take the line out of the code answers nothing."""
    started(lambda: pay("ann", dies=True))
    sf.removed("pay")

    def body():
        return mail("bob")

    for _ in range(2):
        with pytest.raises(sf.InDoubt, match=r"pay#1.*no longer has it \(sf\.removed\)"):
            resumed(body)
    assert ledger.lines == ["pay ann"]
    assert foreseen(body).verdict == "in doubt"

    sf.get_run("r").settle("pay#1", happened="paid ann")
    assert resumed(body) == "sent to bob"


def test_one_in_doubt_is_settled_also_where_nothing_is_left_to_do(pay, ledger):
    started(lambda: pay("ann", dies=True))
    sf.removed("pay")

    with pytest.raises(sf.InDoubt, match="pay#1"):
        resumed(lambda: "over")
    sf.get_run("r").settle("pay#1", not_happened=True)

    assert resumed(lambda: "over") == "over"
    assert ledger.lines == ["pay ann"]


def test_what_the_code_still_asks_for_is_not_let_go(mail, ledger):
    """The calls were moved into a scope, and said to be removed: each would be mailed twice."""

    def old():
        mail("ann")
        raise Cut

    def body():
        with sf.scope("mails"):
            return mail("bob"), mail("ann")

    started(old)
    sf.removed("mail")

    assert foreseen(body).verdict == "stranded"
    with pytest.raises(sf.CodeChanged, match=r"\[?mails\]?/mail#1.*has not asked for mail#1"):
        resumed(body)
    assert ledger.lines == ["mail ann"]


def test_a_new_effect_with_the_arguments_of_a_removed_one_is_asked_about(pay, mail, ledger):
    """It is the removed one under another name, for all that anybody can tell."""

    def old():
        pay("ann")
        raise Cut

    started(old)
    sf.removed("pay")

    with pytest.raises(sf.CodeChanged, match=r"mail#1.*has not asked for pay#1, which was executed with the same"):
        resumed(lambda: mail("ann"))
    assert ledger.lines == ["pay ann"]

    sf.get_run("r").match("mail#1", new=True)
    assert resumed(lambda: mail("ann")) == "sent to ann"


def test_another_effect_with_other_arguments_passes(pay, mail, ledger):
    def old():
        pay("ann")
        raise Cut

    started(old)
    sf.removed("pay")

    assert resumed(lambda: mail("bob")) == "sent to bob"
    assert ledger.lines == ["pay ann", "mail bob"]
