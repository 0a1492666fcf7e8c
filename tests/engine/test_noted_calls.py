"""What `noted=` names is not compared. So which record a call is given must not be left to its number alone."""

from __future__ import annotations

import logging

import pytest

import surefoot as sf

RECORDED = ["which room?", "summarise"]


def asking(prompts, *, stands):
    """A workflow that asks the model these, and stands still behind it."""

    @sf.step(noted=("prompt",), name="ask")
    def ask(prompt: str) -> str:
        return f"answer to <{prompt}>"

    @sf.workflow(name="asking")
    def flow():
        found = [ask(prompt) for prompt in prompts]
        if stands:
            sf.wait_event("go")
        return found

    return flow


@pytest.mark.parametrize(
    ("prompts", "answered"),
    [
        (["is this spam?", *RECORDED], ["is this spam?", *RECORDED]),
        (["which room?", "is this spam?", "summarise"], ["which room?", "is this spam?", "summarise"]),
        (["summarise"], ["summarise"]),
        (["summarise", "which room?"], ["summarise", "which room?"]),
        (["what room?", "summarise"], ["which room?", "summarise"]),
        (["what room?", "sum up"], RECORDED),
    ],
    ids=["in front", "between", "taken out", "swapped", "reworded", "all reworded"],
)
def test_a_model_call_is_given_the_answer_to_its_own_prompt(prompts, answered):
    """By number alone, a call put in front was given the next one's answer, and each behind it the wrong one."""
    with pytest.raises(sf.Stopped):
        asking(RECORDED, stands=True).run("r")
    sf.send_event("r", "go")

    assert asking(prompts, stands=True).run("r") == [f"answer to <{prompt}>" for prompt in answered]


def mailing(texts, ledger, *, stands):
    @sf.effect(noted=("text",), name="mail")
    def mail(to: str, text: str) -> str:
        ledger.write(f"mail {text}")
        return text

    @sf.workflow(name="mailing")
    def flow():
        found = [mail("ann", text) for text in texts]
        if stands:
            sf.wait_event("go")
        return [*found, mail("ann", "done")]

    return flow


@pytest.fixture
def mailed(ledger):
    with pytest.raises(sf.Stopped):
        mailing(["begun"], ledger, stands=True).run("r")
    sf.send_event("r", "go")
    return ledger


def test_an_effect_that_stands_for_other_noted_values_is_told(mailed, caplog):
    """It is not made, and may have been another one: nobody would know."""
    flow = mailing([], mailed, stands=False)
    with caplog.at_level(logging.WARNING, logger="surefoot"):
        assert flow.run("r") == ["begun"]

    told = [record.getMessage() for record in caplog.records if "mail#1" in record.getMessage()]
    assert len(told) == 1
    assert "only what noted= names differs" in told[0]
    assert '"begun" -> "done"' in told[0]
    assert mailed.lines == ["mail begun"]


@pytest.fixture
def removed(monkeypatch):
    monkeypatch.setattr("surefoot.engine.declare.removal._removed", {"mail"})


@pytest.mark.usefixtures("removed")
def test_an_effect_that_was_removed_stands_for_no_other_call(mailed):
    """`sf.removed("mail")`, and one more mail that differs in its text only: it was taken for the removed one, unsent."""
    with pytest.raises(sf.CodeChanged, match="asked for with other arguments"):
        mailing([], mailed, stands=False).run("r")
    assert mailed.lines == ["mail begun"]


def test_noted_is_not_offered_where_nothing_would_be_left_to_compare(ledger):
    """Then any call of the effect would be taken for the recorded one, and not be made."""

    def flow_of(to):
        @sf.effect(name="tell")
        def tell(to: str, text: str) -> None:
            ledger.write(f"tell {to}")

        @sf.workflow(name="telling")
        def flow():
            tell(to, f"hello {to}")
            sf.wait_event("go")

        return flow

    with pytest.raises(sf.Stopped):
        flow_of("ann").run("r")
    sf.send_event("r", "go")

    with pytest.raises(sf.CodeChanged) as stop:
        flow_of("bob").run("r")
    assert not [cure for cure in stop.value.cures if "noted=" in cure[1]]


def test_noted_is_not_offered_for_a_parameter_that_is_gone(ledger):
    """Pasted, it would be refused."""

    def flow_of(tell):
        @sf.workflow(name="telling")
        def flow():
            tell("ann")
            sf.wait_event("go")

        return flow

    @sf.effect(name="tell")
    def tells(to: str, text: str) -> None:
        ledger.write(f"tell {to}")

    with pytest.raises(sf.Stopped):
        flow_of(lambda to: tells(to, "hello")).run("r")
    sf.send_event("r", "go")

    @sf.effect(name="tell")
    def tell(to: str) -> None:
        ledger.write(f"tell {to}")

    with pytest.raises(sf.CodeChanged, match=r"text: .* not there") as stop:
        flow_of(tell).run("r")
    assert not [cure for cure in stop.value.cures if "noted=" in cure[1]]
    assert ledger.lines == ["tell ann"]


def branching(verb, kind, texts, ledger, *, stands):
    """Branches without a key, each with a call that differs only in what is noted."""

    def say(to: str, text: str) -> str:
        ledger.write(text)
        return text

    said = (sf.effect if kind == "effect" else sf.step)(noted=("text",), name="say")(say)

    @sf.workflow(name="branching")
    def flow():
        if verb == "map":
            found = sf.map(lambda text: said("ann", text), texts)
        else:
            found = sf.gather(*(lambda text=text: said("ann", text) for text in texts))
        if stands:
            sf.wait_event("go")
        return found

    return flow


@pytest.mark.parametrize("verb", ["map", "gather"])
@pytest.mark.parametrize("texts", [["0", "1", "2"], ["2", "3"], ["2", "1"]], ids=["in front", "shifted", "swapped"])
def test_branches_that_were_put_in_front_or_moved_are_a_stop(verb, texts, ledger):
    """By the number of its branch each was given what the next one did: one was sent twice, another never."""
    with pytest.raises(sf.Stopped):
        branching(verb, "effect", ["1", "2"], ledger, stands=True).run("r")
    sf.send_event("r", "go")

    with pytest.raises(sf.CodeChanged, match="asked for with other arguments") as stop:
        branching(verb, "effect", texts, ledger, stands=False).run("r")

    assert sorted(ledger.lines) == ["1", "2"]
    assert not [cure for cure in stop.value.cures if "noted=" in cure[1]], "it is noted already"


@pytest.mark.parametrize("verb", ["map", "gather"])
@pytest.mark.parametrize(
    ("texts", "given"),
    [(["0", "1", "2"], ["0", "1", "2"]), (["2", "3", "4"], ["2", "3", "4"]), (["a", "b"], ["1", "2"])],
    ids=["in front", "shifted", "reworded"],
)
def test_a_step_in_a_branch_is_given_no_answer_of_another_branch(verb, texts, given, ledger):
    with pytest.raises(sf.Stopped):
        branching(
            verb, "step", ["1", "2", "3"][: len(texts)] if texts[0] == "2" else ["1", "2"], ledger, stands=True
        ).run("r")
    sf.send_event("r", "go")

    assert branching(verb, "step", texts, ledger, stands=False).run("r") == given
