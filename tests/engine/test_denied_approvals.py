"""A no is what became of the call: on record, so that every replay gives it, and nothing runs without a yes."""

from __future__ import annotations

import pytest

import surefoot as sf
from surefoot import witness

APPROVAL = "pay#1.approval"


def kinds(run_id):
    return [entry.kind for entry in sf.get_run(run_id).entries()]


def paying(ledger, *, approve=True, told=True, n=5):
    """A payment that needs a yes, and what the code does about a no. Made anew, it is what a deploy brings."""

    @sf.effect(approve=approve)
    def pay(amount):
        ledger.write(f"paid {amount}")
        return "paid"

    @sf.effect
    def tell(what):
        ledger.write(f"told {what}")

    @sf.workflow(name="paying or telling")
    def wf():
        try:
            said = pay(n)
        except sf.Fatal as error:
            said = str(error)
            if told:
                tell("denied")
        sf.wait_event("go")
        return said

    return wf


def waits(wf, address=APPROVAL):
    with pytest.raises(sf.WaitingForAnswer) as met:
        wf.run("r")
    assert met.value.address == address


def say(approved, address=APPROVAL, by="boss"):
    sf.get_run("r").answer(address, approved, by=by)


def denied(wf):
    waits(wf)
    say(False)
    waits(wf, "wait_event#1")


def test_after_a_no_that_the_code_has_caught_the_run_goes_on_with_the_same_code(ledger):
    """The effect behind it is on record, so the replay has to come past the denied one."""
    wf = paying(ledger)
    denied(wf)
    sf.send_event("r", "go", 1)

    assert wf.run("r") == "pay#1 was denied by boss"
    assert ledger.lines == ["told denied"]


@pytest.mark.parametrize("heard", [True, False], ids=["heard by the code", "not heard yet"])
def test_a_no_stands_when_a_deploy_drops_the_approval(ledger, heard):
    wf = paying(ledger)
    waits(wf)
    say(False)
    if heard:
        waits(wf, "wait_event#1")
    sf.send_event("r", "go", 1)

    assert paying(ledger, approve=False).run("r") == "pay#1 was denied by boss"
    assert ledger.lines == ["told denied"]


def test_a_denied_call_with_other_arguments_is_another_one(ledger):
    """A no to five is no word about six."""
    denied(paying(ledger, told=False))
    sf.send_event("r", "go", 1)

    with pytest.raises(sf.CodeChanged) as met:
        paying(ledger, told=False, n=6).run("r")
    assert met.value.address == "pay#1"
    assert ledger.lines == []


def test_what_a_denied_effect_touches_may_change_later_and_nobody_is_asked_again(ledger, tmp_path):
    page = tmp_path / "a.txt"
    page.write_text("old")

    @sf.effect(approve=True, touches=[witness.file(str(page))])
    def pay():
        ledger.write("written")

    @sf.workflow
    def wf():
        try:
            pay()
        except sf.Fatal:
            sf.wait_event("go")
            return "denied"

    denied(wf)
    page.write_text("edited by somebody else")
    sf.send_event("r", "go", 1)

    assert wf.run("r") == "denied"
    assert ledger.lines == []
    assert kinds("r").count("QuestionAsked") == 1


def test_a_denied_call_that_is_tried_again_asks_again(ledger):
    @sf.effect(approve=True)
    def pay(amount):
        ledger.write(f"paid {amount} in attempt {sf.attempt()}")
        return "paid"

    @sf.workflow
    def wf():
        return pay(5)

    waits(wf)
    say(False)
    with pytest.raises(sf.Fatal, match="denied by boss"):
        wf.run("r")

    assert sf.get_run("r").retry() == ["pay#1"]
    waits(wf)
    assert ledger.lines == []
    say(True)
    assert wf.run("r") == "paid"
    assert ledger.lines == ["paid 5 in attempt 1"], "the attempt that was denied was never made"


def test_a_run_that_is_sent_back_to_before_the_question_asks_again(ledger):
    wf = paying(ledger, told=False)
    denied(wf)
    sf.get_run("r").rewind(APPROVAL)

    waits(wf)
    assert sf.get_run("r").state().in_doubt() == []


def test_a_no_to_run_it_again_does_not_say_that_it_never_happened(ledger):
    """It was executed once, and the run was sent back to before it. Denied now, it is failed, and left to look at."""

    @sf.effect(approve=True, on_crash="retry")
    def pay():
        ledger.write("paid")

    @sf.workflow
    def wf():
        pay()

    waits(wf)
    say(True)
    wf.run("r")
    sf.get_run("r").rewind("pay#1")
    waits(wf)
    say(False)
    with pytest.raises(sf.Fatal, match="denied"):
        wf.run("r")

    assert sf.get_run("r").state().calls["pay#1"].gave_up
    sf.get_run("r").retry()
    assert [past.address for past in sf.get_run("r").state().in_doubt()] == ["pay#1"]
    waits(wf)
    assert ledger.lines == ["paid"]


def test_a_large_argument_that_was_denied_is_kept_like_any_other(ledger):
    wf = paying(ledger, n="x" * 5000)
    denied(wf)
    sf.send_event("r", "go", 1)

    assert wf.run("r") == "pay#1 was denied by boss"


def test_a_plan_of_a_run_that_was_denied_records_nothing(ledger):
    wf = paying(ledger)
    waits(wf)
    say(False)
    before = kinds("r")

    assert sf.get_run("r").plan().effects == ["tell#1"]
    assert kinds("r") == before
