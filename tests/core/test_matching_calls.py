"""Which recorded call is meant: steps by arguments first, effects by address or declaration, and the fence."""

from __future__ import annotations

import pytest
from msgspec import Raw
from msgspec.structs import replace

from surefoot.core import values
from surefoot.core.address import on_one_line, split
from surefoot.core.entry import CodeMatched
from surefoot.core.history import PastCall, PastEffect, PastState, PastStep, may_have_happened
from surefoot.core.matching.answers import Asked, Changed, InUse, Kept, New, Rerun, Same
from surefoot.core.matching.learned import Learned
from surefoot.core.matching.matcher import Matcher
from surefoot.core.matching.words import fits


class Record:
    """What is on record, in this order."""

    def __init__(self):
        self.calls: dict[str, PastCall] = {}
        self.matches: list[tuple[int, CodeMatched]] = []
        self.counts: dict[tuple[str, str], int] = {}

    def call(self, address, kind, state=PastState.DONE, /, **args):
        raw, digest = values.encode_args(args)
        at = self._next()
        made = PastEffect if kind == "effect" else PastStep
        past = self.calls[address] = made(address, state, 0, Raw(raw), digest=digest, first=at, seq=at)
        return past

    def changed(self, address, /, **facts):
        past = self.calls[address] = replace(self.calls[address], **facts)
        return past

    def step(self, address, /, **args):
        return self.call(address, "step", **args)

    def effect(self, address, /, **args):
        return self.call(address, "effect", **args)

    def said(self, address, how, other="", shown=()):
        self.matches.append((self._next(), CodeMatched(address, how, "ann", other, "", shown)))

    def _next(self):
        return len(self.calls) + len(self.matches) + 1

    def matcher(self, learned=None):
        """As in a rehearsal, or in the drive behind one."""
        self.counts.clear()
        return Matcher(self.calls, self.matches, bytes, learned=learned or Learned())

    def asked(self, name, path="", /, *, kind="effect", args=None, noted=(), **more):
        number = self.counts[path, name] = self.counts.get((path, name), 0) + 1
        raw, digest = values.encode_args(args or {})
        if noted:
            digest = values.digest({key: value for key, value in args.items() if key not in noted})
        return Asked(
            f"{path}{name}#{number}", path, name, number, kind, digest, raw, noted=frozenset(noted),
            parameters=frozenset(args or {}), **more,
        )  # fmt: skip


@pytest.fixture
def record():
    return Record()


def ask(record, matcher, name, path="", /, **more):
    return matcher.find(record.asked(name, path, **more))


# -- steps --------------------------------------------------------------------------------------------------


def test_a_step_is_the_record_with_its_arguments_wherever_that_is_numbered(record):
    first, second = record.step("ask#1", q="A"), record.step("ask#2", q="B")
    matcher = record.matcher()

    assert ask(record, matcher, "ask", kind="step", args={"q": "B"}) == Same(second)
    assert ask(record, matcher, "ask", kind="step", args={"q": "A"}) == Same(first)


def test_a_step_whose_parameter_was_renamed_is_the_record_with_its_values_wherever_that_is_numbered(record):
    """By its number it would get the answer to another question, where effects were executed after it."""
    first, second = record.step("ask#1", q="A"), record.step("ask#2", q="B")
    record.effect("send#1", to="a")
    matcher = record.matcher()

    assert ask(record, matcher, "ask", kind="step", args={"question": "B"}) == Same(second)
    assert ask(record, matcher, "ask", kind="step", args={"question": "A"}) == Same(first)


def test_a_record_is_given_to_one_call_only(record):
    """Two calls with equal arguments are two calls."""
    only = record.step("ask#1", q="A")
    matcher = record.matcher()

    assert ask(record, matcher, "ask", kind="step", args={"q": "A"}) == Same(only)
    assert ask(record, matcher, "ask", kind="step", args={"q": "A"}) == New("ask#2")


def test_a_step_that_was_put_in_front_is_found_out_and_takes_a_free_number(record):
    """The first rehearsal learns it, the second knows."""
    kept = record.step("ask#1", q="A")
    matcher = record.matcher()
    ask(record, matcher, "ask", kind="step", args={"q": "B"})
    ask(record, matcher, "ask", kind="step", args={"q": "A"})
    assert matcher.steps.found_inserted == {("", "ask", 1)}

    matcher = record.matcher(Learned(frozenset(matcher.steps.found_inserted)))

    assert ask(record, matcher, "ask", kind="step", args={"q": "B"}) == New("ask#2")
    assert ask(record, matcher, "ask", kind="step", args={"q": "A"}) == Same(kept)
    assert ask(record, matcher, "ask", kind="step", args={"q": "C"}) == New("ask#3")


def test_a_changed_step_is_kept_if_it_was_acted_on_and_else_runs_again(record):
    acted_on = record.step("ask#1", q="A")
    record.effect("send#1", to="a")
    free = record.step("ask#2", q="B")
    matcher = record.matcher()

    assert ask(record, matcher, "ask", kind="step", args={"q": "A!"}) == Kept(
        acted_on, "effects were executed after it"
    )
    assert ask(record, matcher, "ask", kind="step", args={"q": "B!"}) == Rerun(free, counts=True)


@pytest.mark.parametrize(
    ("on_change", "answer"), [("keep", Kept), ("rerun", Rerun), ("stop", Changed), ("auto", Rerun)]
)
def test_what_the_code_says_about_a_changed_step_counts(record, on_change, answer):
    record.step("ask#1", q="A")

    found = ask(record, record.matcher(), "ask", kind="step", args={"q": "B"}, on_change=on_change)

    assert isinstance(found, answer)
    assert not (isinstance(found, Rerun) and found.counts and on_change == "rerun"), "asked for: not counted"


@pytest.mark.parametrize(("how", "answer"), [("keep", Kept), ("rerun", Rerun)])
def test_what_a_person_says_about_a_changed_step_comes_before_the_code(record, how, answer):
    record.step("ask#1", q="A")
    record.said("ask#*", how)

    found = ask(record, record.matcher(), "ask", kind="step", args={"q": "B"}, on_change="stop")

    assert isinstance(found, answer)


@pytest.mark.parametrize("state", [PastState.OPEN, PastState.RETRYING])
def test_a_step_that_was_cut_off_runs_with_what_is_asked_now(record, state):
    cut = record.call("ask#1", "step", state, q="A")

    assert ask(record, record.matcher(), "ask", kind="step", args={"q": "B"}, on_change="stop") == Rerun(
        cut, counts=False
    )


def test_a_reworded_step_behind_an_inserted_one_is_not_given_the_answer_of_another(record):
    """Its number no longer tells which one it is, so nothing can be kept for it."""
    record.step("ask#1", q="A")
    second = record.step("ask#2", q="B")
    record.effect("send#1", to="a")
    matcher = record.matcher(Learned(frozenset({("", "ask", 1)})))
    ask(record, matcher, "ask", kind="step", args={"q": "C"})

    assert ask(record, matcher, "ask", kind="step", args={"q": "A!"}) == Rerun(second, counts=True)


@pytest.mark.parametrize("kind", ["step", "effect"])
def test_what_was_kept_once_is_the_same_from_then_on(record, kind):
    """It is noted once, also if the code says nothing about it any more."""
    past = record.call("ask#1", kind, q="A")
    past = record.changed(past.address, kept=values.encode_args({"q": "B"})[1])

    assert ask(record, record.matcher(), "ask", kind=kind, args={"q": "B"}, on_change="stop") == Same(past)
    assert ask(record, record.matcher(), "ask", kind=kind, args={"q": "C"}, on_change="stop") == Changed(past)


def test_an_effect_in_another_branch_does_not_mean_that_a_step_was_acted_on(record):
    step = record.step("[a]/ask#1", q="A")
    record.effect("[b]/send#1", to="a")
    matcher = record.matcher()

    assert not matcher.records.is_acted_on(step)
    record.effect("[a]/[deep]/send#1", to="a")
    assert record.matcher().records.is_acted_on(step)


def test_an_undo_does_not_mean_that_a_step_was_acted_on(record):
    step = record.step("ask#1", q="A")
    record.effect("send#1.undo", to="a")
    record.effect("send#1.repair1", to="a")

    assert not record.matcher().records.is_acted_on(step)


def test_what_is_only_noted_is_not_compared_also_if_it_was_when_recorded(record):
    past = record.step("ask#1", q="A", prompt="old")

    found = ask(record, record.matcher(), "ask", kind="step", args={"q": "A", "prompt": "new"}, noted=("prompt",))

    assert found == Same(past)


# -- effects ------------------------------------------------------------------------------------------------


def test_an_effect_is_the_record_at_its_address_and_nothing_else(record):
    """Equal arguments elsewhere do not count: a second mail with the same text is a second mail."""
    record.effect("send#1", to="a")
    second = record.effect("send#2", to="b")
    matcher = record.matcher()

    assert ask(record, matcher, "send", args={"to": "b"}) == Changed(record.calls["send#1"])
    assert ask(record, matcher, "send", args={"to": "b"}) == Same(second)


def test_an_old_name_leads_to_the_record_of_the_same_number(record):
    first, second = record.effect("send#1", to="a"), record.effect("send#2", to="b")
    matcher = record.matcher()

    assert ask(record, matcher, "tell", args={"to": "a"}, names=("mail", "send")) == Same(first)
    assert ask(record, matcher, "tell", args={"to": "b"}, names=("mail", "send")) == Same(second)
    assert ask(record, matcher, "tell", args={"to": "c"}, names=("mail", "send")) == New("tell#3")


def test_an_old_name_with_other_arguments_is_a_stop(record):
    first = record.effect("send#1", to="a")

    assert ask(record, record.matcher(), "tell", args={"to": "z"}, names=("send",)) == Changed(first)


def test_an_old_name_that_is_asked_for_before_or_after_is_misuse(record):
    record.effect("send#1", to="a")
    record.effect("send#2", to="b")
    matcher = record.matcher()
    ask(record, matcher, "send", args={"to": "a"})
    record.counts["", "tell"] = 1
    assert ask(record, matcher, "tell", args={"to": "b"}, names=("send",)) == InUse("send", "tell")

    matcher = record.matcher()
    ask(record, matcher, "tell", args={"to": "a"}, names=("send",))
    assert ask(record, matcher, "send", args={"to": "a"}) == InUse("send", "tell")


def test_an_old_scope_leads_to_the_record_there(record):
    moved = record.effect("[europe]/send#1", to="a")

    assert ask(record, record.matcher(), "send", "[eu]/", args={"to": "a"}, also=(("[europe]/", True),)) == Same(moved)


def test_calls_from_the_scope_around_are_found_by_their_arguments(record):
    """There they were counted together with others."""
    first, second = record.effect("send#1", to="a"), record.effect("send#2", to="b")
    matcher = record.matcher()

    assert ask(record, matcher, "send", "[b]/", args={"to": "b"}, also=(("", False),)) == Same(second)
    assert ask(record, matcher, "send", "[a]/", args={"to": "a"}, also=(("", False),)) == Same(first)


def test_only_another_name_of_a_parameter_is_no_change(record):
    past = record.effect("send#1", to="a", n=1)

    assert ask(record, record.matcher(), "send", args={"recipient": "a", "n": 1}) == Same(past)


def test_two_parameters_that_changed_places_are_a_change(record):
    record.effect("send#1", a="x", b="x")

    assert isinstance(ask(record, record.matcher(), "send", args={"b": "x", "c": "x"}), Changed)


def test_an_effect_that_did_not_happen_runs_with_what_is_asked_now(record):
    cleared = record.call("send#1", "effect", PastState.CLEARED, to="a")

    assert ask(record, record.matcher(), "send", args={"to": "b"}) == Same(cleared)


@pytest.mark.parametrize("state", [PastState.IN_DOUBT, PastState.UNSTORABLE])
def test_an_effect_in_doubt_is_not_kept_before_it_is_settled(record, state):
    open_ = record.call("send#1", "effect", state, to="a")

    assert ask(record, record.matcher(), "send", args={"to": "b"}, on_change="keep") == Changed(open_)


def test_an_effect_is_kept_where_the_code_or_a_person_says_so(record):
    done = record.effect("send#1", to="a")

    assert ask(record, record.matcher(), "send", args={"to": "b"}, on_change="keep") == Kept(done, "on_change")
    record.said("send#1", "keep")
    assert ask(record, record.matcher(), "send", args={"to": "b"}) == Kept(done, "said by ann")


@pytest.mark.parametrize("on_change", ["auto", "rerun", "stop"])
def test_an_effect_never_runs_again_because_its_arguments_changed(record, on_change):
    done = record.effect("send#1", to="a")
    record.said("*", "rerun")

    assert ask(record, record.matcher(), "send", args={"to": "b"}, on_change=on_change) == Changed(done)


@pytest.mark.parametrize(("recorded", "asked"), [("step", "effect"), ("effect", "step")])
def test_a_call_of_another_kind_is_a_stop(record, recorded, asked):
    past = record.call("send#1", recorded, to="a")

    assert ask(record, record.matcher(), "send", kind=asked, args={"to": "a"}) == Changed(past)


def test_a_person_says_which_recorded_call_it_is_with_a_star_for_all(record):
    first, second = record.effect("send#1", to="a"), record.effect("send#2", to="b")
    record.said("[eu]/tell#*", "is", "send#*")
    matcher = record.matcher()

    assert ask(record, matcher, "tell", "[eu]/", args={"to": "a"}) == Same(first)
    assert ask(record, matcher, "tell", "[eu]/", args={"to": "b"}) == Same(second)


def test_the_newest_word_of_a_person_counts(record):
    first, second = record.effect("send#1", to="a"), record.effect("send#2", to="a")
    record.said("tell#1", "is", "send#1")
    record.said("tell#1", "is", "send#2")
    matcher = record.matcher()

    assert ask(record, matcher, "tell", args={"to": "a"}) == Same(second)
    assert first.address not in matcher.asked


def test_two_calls_that_a_person_gives_the_same_record_do_not_both_get_it(record):
    only = record.effect("send#1", to="a")
    record.said("tell#1", "is", "send#1")
    record.said("call#1", "is", "send#1")
    matcher = record.matcher()

    assert ask(record, matcher, "tell", args={"to": "a"}) == Same(only)
    assert ask(record, matcher, "call", args={"to": "a"}) == New("call#1")


def test_a_word_on_a_record_that_is_gone_gives_it_to_nobody(record):
    """The run was rewound to before a child: the word is still there, and what it names is not."""
    record.said("child#2", "is", "child#1")

    assert ask(record, record.matcher(), "child", kind="step", args={"run_id": "a"}) == New("child#1")


def test_what_a_person_says_is_new_takes_a_free_number(record):
    record.effect("send#1", to="a")
    record.said("send#1", "new")
    matcher = record.matcher()

    assert ask(record, matcher, "send", args={"to": "z"}) == New("send#2", declared=True)


def test_what_is_declared_new_finds_its_own_record_the_next_time(record):
    """It ran, and the run was killed: then it is on record, and is not done again."""
    record.effect("send#1", to="a")
    own = record.effect("send#2", to="z")
    record.said("send#1", "new")

    assert ask(record, record.matcher(), "send", args={"to": "z"}) == Same(own)


# -- the fence ----------------------------------------------------------------------------------------------


def blocked(record, name, path="", /, *, may_still=(), was_around=(), args=None, matcher=None):
    matcher = matcher or record.matcher()
    found = matcher.blocked(
        record.asked(name, path, args=args),
        may_still=lambda address: address.startswith(may_still),
        was_around=lambda address: address in was_around,
    )
    return [past.address for past in found]


def test_a_new_effect_waits_for_every_unasked_one_on_its_line(record):
    """Also if the arguments differ: a rename with a new text is a rename."""
    record.effect("send#1", to="a")
    record.effect("[eu]/book#1", x="b")

    assert blocked(record, "tell", args={"to": "z"}) == ["send#1", "[eu]/book#1"]
    assert blocked(record, "tell", "[eu]/[de]/", args={"to": "z"}) == ["send#1", "[eu]/book#1"]


def test_what_lies_inside_the_own_scope_holds_back_though_its_branch_is_open(record):
    record.effect("[a]/[x]/send#1", to="a")

    assert blocked(record, "tell", "[a]/", may_still="[a]/", args={"to": "z"}) == ["[a]/[x]/send#1"]


def test_what_was_asked_for_holds_nobody_back(record):
    record.effect("send#1", to="a")
    matcher = record.matcher()
    ask(record, matcher, "send", args={"to": "a"})

    assert blocked(record, "tell", args={"to": "a"}, matcher=matcher) == []


def test_what_a_rehearsal_heard_the_code_ask_for_holds_nobody_back(record):
    record.effect("send#1", to="a")

    assert blocked(record, "tell", matcher=record.matcher(Learned(asked=frozenset({"send#1"})))) == []


def test_an_open_branch_may_still_ask_for_its_own_unless_the_arguments_are_equal(record):
    record.effect("[b]/send#1", to="a")

    assert blocked(record, "tell", "[a]/", may_still="[b]/", args={"to": "z"}) == []
    assert blocked(record, "tell", "[a]/", may_still="[b]/", args={"to": "a"}) == ["[b]/send#1"]
    assert blocked(record, "tell", "[a]/", may_still="[c]/", args={"to": "z"}) == ["[b]/send#1"]


def test_what_another_branch_declares_as_its_own_holds_only_its_equal_back(record):
    """`sf.gather(…, was="")`: the branch's calls were counted in the scope around it."""
    record.effect("send#1", to="a")
    declared = {"may_still": "send#1", "was_around": ["send#1"]}

    assert blocked(record, "tell", "gather#1.1/", **declared, args={"to": "z"}) == []
    assert blocked(record, "tell", "gather#1.1/", **declared, args={"to": "a"}) == ["send#1"]


def test_what_a_rewind_set_aside_holds_only_its_equal_back(record):
    """Whoever sent the run back may want another way."""
    aside = record.call("send#1", "effect", PastState.IN_DOUBT, to="a")
    aside = record.changed(aside.address, rewound=True)

    assert blocked(record, "tell", args={"to": "z"}) == []
    assert blocked(record, "tell", args={"to": "a"}) == ["send#1"]
    assert blocked(record, "tell", args={"recipient": "a"}) == ["send#1"]


def test_a_child_holds_back_and_is_held_back_as_an_effect(record):
    record.step("child#1", workflow="w", run_id="c")

    assert blocked(record, "tell") == ["child#1"]
    assert record.asked("child", kind="step").fenced
    assert not record.asked("ask", kind="step").fenced


@pytest.mark.parametrize(
    ("state", "gave_up", "may"),
    [
        (PastState.DONE, False, True),
        (PastState.IN_DOUBT, False, True),
        (PastState.UNSTORABLE, False, True),
        (PastState.FAILED, True, True),
        (PastState.FAILED, False, False),
        (PastState.CLEARED, False, False),
    ],
)
def test_only_what_may_be_out_there_holds_back(record, state, gave_up, may):
    past = record.call("send#1", "effect", state, to="a")
    past = record.changed(past.address, gave_up=gave_up)

    assert may_have_happened(past) is may
    assert blocked(record, "tell") == (["send#1"] if may else [])


def test_undos_and_repairs_belong_to_their_effect(record):
    record.effect("send#1.repair1", to="a")
    record.effect("send#1.undo", to="a")
    record.effect("send.undo#1", to="a")

    assert blocked(record, "tell") == []


# -- names --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("send#1", ("", "send", 1)),
        ("[eu]/send#12", ("[eu]/", "send", 12)),
        ("map#1[3]/[a/b]/x#2", ("map#1[3]/[a/b]/", "x", 2)),
        ("send#1.repair1", ("", "send", 0)),
    ],
)
def test_an_address_is_taken_apart(address, parts):
    assert split(address) == parts


def test_scopes_on_one_line():
    assert on_one_line("", "[a]/")
    assert on_one_line("[a]/[b]/", "[a]/")
    assert not on_one_line("[a]/", "[b]/")
    assert not on_one_line("[a]/", "[ab]/"), "a label that begins alike is another one"


@pytest.mark.parametrize(
    ("pattern", "address", "fit"),
    [
        ("send#1", "send#1", True),
        ("send#1", "send#12", False),
        ("send#*", "send#12", True),
        ("*", "[eu]/send#1", True),
        ("[*]/send#1", "[eu]/send#1", True),
        ("send.1", "send#1", False),
        ("send#1*", "send#1", True),
    ],
)
def test_a_star_stands_for_any_characters_and_nothing_else_does(pattern, address, fit):
    assert fits(pattern, address) is fit
