"""Code that has changed more than once since a run began: each edit was declared, or cured, and they hold together."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial

import pytest

import surefoot as sf
from surefoot.engine.declare import call_spec


@pytest.fixture
def deploy(ledger):
    """`deploy(body, effect=options, …)`: the workflow as it is from now on; `tools` has the effects by name."""

    def deployed(body, **effects):
        tools = {}
        for name, options in effects.items():

            def act(text, name=name):
                ledger.write(f"{name} {text}")
                return text

            act.__name__ = act.__qualname__ = name
            tools[name] = sf.effect(ignore=("name",), **options)(act)

        @sf.workflow(name="wf")
        def wf():
            return body(tools)

        return wf

    return deployed


def stopped(wf, kind=sf.WaitingForAnswer):
    with pytest.raises(kind) as caught:
        wf.run("r")
    return caught.value


def test_calls_made_under_both_names_are_found_when_they_move_into_a_scope(deploy, ledger):
    """The first was made before the rename and the second after it: the older one has to be found first."""

    def before(tools):
        tools["mail"]("one")
        sf.wait_event("go")
        tools["mail"]("two")

    def renamed(tools):
        tools["notify"]("one")
        sf.wait_event("go")
        tools["notify"]("two")
        sf.wait_event("end")

    def scoped(tools):
        with sf.scope("tools", was=""):
            tools["notify"]("one")
        sf.wait_event("go")
        with sf.scope("tools", was=""):
            tools["notify"]("two")
        sf.wait_event("end")

    stopped(deploy(before, mail={}))
    sf.send_event("r", "go")
    stopped(deploy(renamed, notify={"was": "mail"}))
    sf.send_event("r", "end")

    deploy(scoped, notify={"was": "mail"}).run("r")

    assert ledger.lines == ["mail one", "notify two"]


@pytest.mark.parametrize("was", ["", "old"])
def test_waits_and_recorded_values_move_with_their_scope(deploy, ledger, was, sf_clock):
    """An event that was taken days ago does not come again, and what was drawn stays drawn."""

    def flow(tools, *, inside, outside):
        with inside():
            drawn = sf.random()
            asked = sf.approve("go on?").approved
            word = sf.wait_event("go")
            sf.sleep("1d")
        with outside():
            later = sf.random()
            end = sf.wait_event("end")
        tools["send"](f"{drawn} {asked} {word} {later} {end}")

    around = nullcontext if was == "" else partial(sf.scope, was)
    first = deploy(partial(flow, inside=around, outside=nullcontext), send={})
    stopped(first)
    sf.get_run("r").answer("approve#1" if was == "" else "[old]/approve#1", True)
    stopped(first)
    sf.send_event("r", "go", "yes")
    stopped(first)
    slept = sf_clock.now()
    drawn = [entry.data["value"] for entry in sf.get_run("r").entries() if entry.kind == "ValueNoted"]
    sf.send_event("r", "end", "over")

    deploy(partial(flow, inside=partial(sf.scope, "new", was=was), outside=nullcontext), send={}).run("r")

    assert sf_clock.now() - slept < 3600e6, "it does not sleep again"
    (line,) = ledger.lines
    assert (str(drawn[0]) in line, len(drawn)) == (True, 2), "nothing is drawn again"
    assert line.endswith(f" True yes {drawn[-1]} over"), "nothing is asked for, or waited for, again"


def test_branches_do_not_guess_whose_a_recorded_value_was(deploy, ledger):
    """What two branches drew one after the other cannot be told apart when they run side by side."""

    def before(tools):
        first, second = str(sf.uuid4()), str(sf.uuid4())
        tools["send"](first)
        tools["send"](second)
        sf.wait_event("go")

    def gathered(tools):
        sf.gather(*[lambda: tools["send"](str(sf.uuid4()))] * 2, was="")
        sf.wait_event("go")

    stopped(deploy(before, send={}))
    sf.send_event("r", "go")

    stopped(deploy(gathered, send={}), sf.CodeChanged)

    assert len(ledger.lines) == 2


def test_a_word_on_the_arguments_does_not_take_back_which_call_it_is(deploy, ledger):
    """First a person says that it has moved, then that its old text stands: the second is no new answer to the first."""

    def one(tools):
        tools["send"]("Dear Ann")
        sf.wait_event("go")

    def moved(tools):
        with sf.scope("mails"):
            tools["send"]("Dear Ann")
        sf.wait_event("go")

    def reworded(tools):
        with sf.scope("mails"):
            tools["send"]("Hello Ann")
        sf.wait_event("go")

    stopped(deploy(one, send={}))
    sf.send_event("r", "go")
    stop = stopped(deploy(moved, send={}), sf.CodeChanged)
    sf.get_run("r").match(stop.facts["asked"], is_="send#1")
    stop = stopped(deploy(reworded, send={}), sf.CodeChanged)
    assert ("what was done stands?", "surefoot match r '[mails]/send#1' --keep") in stop.cures
    sf.get_run("r").match("[mails]/send#1", keep=True)

    deploy(reworded, send={}).run("r")

    assert ledger.lines == ["send Dear Ann"]


def test_what_stands_may_be_named_by_its_recorded_address(deploy, ledger):
    """Operators see and use the recorded addresses, whatever the call is named today."""

    def one(tools):
        tools["mail"]("Dear Ann")
        sf.wait_event("go")

    def two(tools):
        tools["notify"]("Hello Ann")
        sf.wait_event("go")

    stopped(deploy(one, mail={}))
    sf.send_event("r", "go")
    stopped(deploy(two, notify={"was": "mail"}), sf.CodeChanged)
    sf.get_run("r").match("mail#1", keep=True)

    deploy(two, notify={"was": "mail"}).run("r")

    assert ledger.lines == ["mail Dear Ann"]


def test_a_step_that_a_person_calls_new_runs_once(deploy, ledger):
    """The cure is offered for steps too, and must not be asked for at every resume."""

    def flow(tools, *, text):
        @sf.step(on_change="stop")
        def read(text):
            ledger.write(f"read {text}")
            return text

        tools["send"](read(text))
        sf.wait_event("go")
        sf.wait_event("end")

    stopped(deploy(partial(flow, text="a"), send={"on_change": "keep"}))
    sf.send_event("r", "go")
    changed = deploy(partial(flow, text="b"), send={"on_change": "keep"})
    stop = stopped(changed, sf.CodeChanged)
    assert ("another call, new?", "surefoot match r 'read#1' --new") in stop.cures
    sf.get_run("r").match("read#1", new=True)
    stopped(changed)
    sf.send_event("r", "end")

    changed.run("r")

    assert ledger.lines == ["read a", "send a", "read b"]


def test_the_likeliest_of_several_is_offered_as_the_one_that_was_renamed(deploy, ledger, monkeypatch):
    """Two effects are not asked for any more: the one with the same arguments was renamed, the other one is gone."""

    def before(tools):
        tools["book"]("room")
        tools["mail"]("one")
        sf.wait_event("go")

    def after(tools):
        tools["notify"]("one")
        sf.wait_event("go")

    stopped(deploy(before, book={}, mail={}))
    sf.send_event("r", "go")
    monkeypatch.setattr(call_spec, "_effects", {})  # A new process, which has neither of them.

    stop = stopped(deploy(after, notify={}), sf.CodeChanged)

    assert "book#1, which were executed, mail#1 with the same arguments" in str(stop)
    assert dict(stop.cures)["the same, renamed?"] == '@sf.effect(was="mail") on notify'
    assert dict(stop.cures)["gone for good?"] == 'sf.removed("book") in the module'
    assert ledger.lines == ["book room", "mail one"]


def test_code_that_ends_without_an_executed_effect_is_told_the_line_that_helps(deploy, monkeypatch):
    monkeypatch.setattr("surefoot.engine.declare.removal._removed", set())

    def before(tools):
        tools["book"]("room")
        sf.wait_event("go")

    def after(tools):
        sf.wait_event("go")

    stopped(deploy(before, book={}))
    sf.send_event("r", "go")
    stop = stopped(deploy(after), sf.CodeChanged)
    assert dict(stop.cures)["gone for good?"] == 'sf.removed("book") in the module'
    sf.removed("book")

    deploy(after).run("r")


def test_nobody_is_led_to_call_an_effect_gone_that_the_code_still_has(deploy):
    """`sf.removed` lets every such record go: with a name that is in use, the next rename would be done twice."""

    def mails(tools, *, count):
        for number in range(count):
            tools["mail"](str(number))
        sf.wait_event("go")

    stopped(deploy(partial(mails, count=3), mail={}))
    sf.send_event("r", "go")

    stop = stopped(deploy(partial(mails, count=2), mail={}), sf.CodeChanged)

    assert "without asking for mail#3" in stop.summary
    assert "sf.removed" not in str(stop)


def test_a_declaration_that_is_there_already_is_not_offered_again(ledger):
    """Two effects became one: its second call is no first call under the other old name, whatever `was=` says."""

    def flow_of(one, two):
        @sf.workflow(name="wf")
        def wf():
            one("one")
            two("two")
            sf.wait_event("go")

        return wf

    @sf.effect(name="mail")
    def mail(text: str) -> None:
        ledger.write(f"mail {text}")

    @sf.effect(name="post")
    def post(text: str) -> None:
        ledger.write(f"post {text}")

    stopped(flow_of(mail, post))
    sf.send_event("r", "go")

    @sf.effect(name="tell", was=("mail", "post"))
    def tell(text: str) -> None:
        ledger.write(f"tell {text}")

    stop = stopped(flow_of(tell, tell), sf.CodeChanged)

    assert "tell#2, which is not on record, and has not asked for post#1" in stop.summary
    assert not [cure for cure in stop.cures if 'was="' in cure[1]]
    assert ledger.lines == ["mail one", "post two"]
