"""What a person is told when code and journal no longer agree. The words are those that were promised."""

from __future__ import annotations

import pytest
from msgspec import Raw

from surefoot.core import code_changes, values
from surefoot.core.code_changes import no_longer_asked
from surefoot.core.history import PastEffect, PastState, PastStep
from surefoot.core.matching.answers import Asked
from surefoot.core.stops import revive


def past(address, kind="effect", state=PastState.DONE, **args):
    raw, digest = values.encode_args(args)
    made = PastEffect if kind == "effect" else PastStep
    return made(address, state, 0, Raw(raw), digest=digest)


def asked(address, path="", name="notify", kind="effect"):
    return Asked(address, path, name, 1, kind, "", b"{}")


def told(stop):
    """What helps, as people read it."""
    return revive((stop,), "r", "").cures


def cures(stop):
    return [do for _, do in told(stop)]


NONE: frozenset[str] = frozenset()
"""No effect that the code has asked for."""


def test_a_new_effect_that_may_be_a_renamed_one():
    mails = [past(f"send_mail#{n}") for n in (1, 2, 3)]

    stop = code_changes.new_effect("job-1", asked("notify#1"), mails, alike=3, in_use=NONE, nothing=True)

    assert stop.message == (
        "run job-1: the code now asks for the effect notify#1, which is not on record, and has not asked for "
        "send_mail#1, send_mail#2, send_mail#3, which were executed with the same arguments. Renamed, moved, or new? "
        "Nothing was executed."
    )
    assert told(stop)[0] == ("the same, renamed?", '@sf.effect(was="send_mail") on notify')
    assert (
        "new?",
        '@sf.effect(was=None) on notify, or keep the old way for this run: if sf.patched("…"): … else: …',
    ) in told(stop)
    assert told(stop)[-1] == ("neither?", "put the old code back and run job-1 again")


def test_what_no_loaded_code_has_may_have_been_called_as_a_plain_function():
    """Renamed, and without its decorator: to say that nothing was executed would be a guess."""
    pay = past("pay#1")

    stop = code_changes.new_effect(
        "r", asked("notify#1"), [pay], alike=0, in_use=NONE, nothing=True, unknown=frozenset({"pay"})
    )
    ended = no_longer_asked("r", [pay], unknown=frozenset({"pay"}))

    assert "No effect was executed. If pay has lost its decorator, the replay has called it" in stop.message
    assert "If pay has lost its decorator, the replay has called it" in ended.message
    assert "lost its decorator" not in no_longer_asked("r", [pay]).message


@pytest.mark.parametrize(("state", "keeps"), [(PastState.STARTED, False), (PastState.DONE, True)])
def test_a_child_run_whose_workflow_is_another_one_is_told_of_the_workflow(state, keeps):
    """`child` is our own verb: nobody can put a decorator on it. One that has not ended needs its own workflow."""
    child = past("child#1", kind="step", state=state)

    stop = code_changes.other_arguments("r", child, "child#1", "child", b'{"workflow":"sub"}', b'{"workflow":"kid"}')

    assert told(stop)[0] == ("the same workflow, renamed?", '@sf.workflow(was="sub") on kid')
    assert ("surefoot match r 'child#1' --keep" in cures(stop)) is keeps
    assert not any("on child" in cure or "--rerun" in cure for cure in cures(stop))


def test_one_that_was_moved_is_told_its_scope():
    stop = code_changes.new_effect(
        "r", asked("[eu]/send#1", "[eu]/", "send"), [past("send#1")], alike=1, in_use=NONE, nothing=True
    )

    assert 'was= on its scope: sf.scope("…", was="")' in cures(stop)
    assert not any('@sf.effect(was="send")' in cure for cure in cures(stop))


def test_one_from_another_scope_is_told_its_label():
    stop = code_changes.new_effect(
        "r", asked("send#1", "", "send"), [past("[a]/[b]/send#1")], alike=1, in_use=NONE, nothing=True
    )

    assert 'was= on its scope: sf.scope("…", was="b")' in cures(stop)


@pytest.mark.parametrize(
    ("recorded", "now", "cure"),
    [
        ("send#1", "gather#1.0/send#1", 'sf.gather(…, was="")'),
        ("[a]/send#1", "map#1.2/send#1", 'sf.map(…, was="a")'),
        ("gather#1.0/send#1", "send#1", None),
    ],
)
def test_of_branches_only_what_their_verb_can_say_is_offered(recorded, now, cure):
    """`sf.scope(…, was="gather#1.0")` was offered, and did nothing."""
    path = now.rpartition("/")[0]
    here = asked(now, f"{path}/" if path else "", "send")

    stop = code_changes.new_effect("r", here, [past(recorded)], alike=1, in_use=NONE, nothing=True)

    assert [words for why, words in told(stop) if why == "the same, moved?"] == ([cure] if cure else [])


def test_many_are_counted_and_doubt_is_named():
    found = [past("send#1", state=PastState.IN_DOUBT), *(past(f"send#{n}") for n in range(2, 8))]

    stop = code_changes.new_effect("r", asked("notify#1"), found, alike=0, in_use=NONE, nothing=True)

    assert "send#1, send#2, send#3, send#4, send#5 and 2 more, which were executed; send#1 is in doubt." in stop.message


def test_those_with_the_same_arguments_are_named():
    """Only one of them can have been renamed."""
    found = [past("charge#1"), past("mail#1")]

    stop = code_changes.new_effect("r", asked("notify#1"), found, alike=1, in_use=NONE, nothing=True)

    assert "charge#1, mail#1, which were executed, charge#1 with the same arguments. Renamed" in stop.message


def test_one_that_was_taken_out_is_kept_for_this_run():
    """Not the one with the same arguments: that one was renamed or moved. Nor one in doubt."""
    found = [past("charge#1"), past("mail#1"), past("mail#2", state=PastState.IN_DOUBT)]

    stop = code_changes.new_effect("r", asked("notify#1"), found, alike=1, in_use=NONE, nothing=True)

    assert [do for do in cures(stop) if "--keep" in do] == ["surefoot match r 'mail#1' --keep"]


def test_what_was_executed_in_this_very_drive_is_not_denied():
    stop = code_changes.new_effect("r", asked("notify#1"), [past("send#1")], alike=0, in_use=NONE, nothing=False)

    assert stop.message.endswith("notify#1: nothing was executed.")


@pytest.mark.parametrize(("new", "old"), [("child", "send"), ("notify", "child"), ("child", "child")])
def test_a_child_run_is_not_told_what_only_effects_can_say(new, old):
    stop = code_changes.new_effect(
        "r", asked(f"{new}#1", name=new), [past(f"{old}#1")], alike=0, in_use=NONE, nothing=True
    )

    assert not any('@sf.effect(was="' in cure for cure in cures(stop))
    assert ("@sf.effect(was=None)" in str(cures(stop))) is (new != "child")
    assert any("--is" in cure for cure in cures(stop)) is (new == old), "an effect is no run"


def test_hostile_run_ids_cannot_act_in_a_shell():
    """Cures are pasted."""
    stop = code_changes.new_effect(
        "r; rm -rf $HOME", asked("notify#1"), [past("send#1")], alike=0, in_use=NONE, nothing=True
    )

    assert "surefoot match 'r; rm -rf $HOME' 'notify#1' --new" in cures(stop)


def test_other_arguments_are_shown_where_they_differ():
    done = past("send#1", to="a", n=1)
    other, _ = values.encode_args({"to": "b", "n": 1})

    stop = code_changes.other_arguments("r", done, "send#1", "send", bytes(done.args), other)

    assert stop.message == (
        'run r, send#1: asked for with other arguments than it was executed with:\n    to: "a" -> "b"\n'
        "  Nothing was executed."
    )
    assert told(stop)[:2] == (
        ("what was done stands?", "surefoot match r 'send#1' --keep"),
        ("never compare it?", '@sf.effect(noted=("to",)) on send'),
    )


def test_a_call_under_another_name_today_is_told_by_both():
    done = past("send#1", to="a")

    stop = code_changes.other_arguments("r", done, "tell#1", "tell", b"{}", b"[]")

    assert "run r, tell#1 (on record as send#1): asked for" in stop.message


def test_an_effect_in_doubt_is_settled_before_anything_else():
    open_ = past("send#1", state=PastState.IN_DOUBT, to="a")

    stop = code_changes.other_arguments("r", open_, "send#1", "send", b"{}", b"[]")

    assert [words for words, _ in told(stop)[:2]] == ["in doubt; it happened?", "it did not?"]
    assert not any("--keep" in cure for cure in cures(stop))


def test_a_step_may_run_again():
    step = past("ask#1", "step", q="A")

    stop = code_changes.other_arguments("r", step, "ask#1", "ask", b'{"q":"A"}', b'{"q":"B"}')

    assert "than it was recorded with" in stop.message
    assert "surefoot match r 'ask#1' --rerun" in cures(stop)
    assert '@sf.step(noted=("q",)) on ask' in cures(stop)


def test_too_many_are_counted_and_the_first_is_shown():
    stop = code_changes.too_many("r", 150, 10, past("read#1", "step"), b'{"p":"A"}', b'{"p":"B"}')

    assert stop.message == (
        "run r: 150 recorded steps are asked for with other arguments and would run again (more than 10); the first is "
        'read#1: p: "A" -> "B". Nothing was executed.'
    )


def test_equal_notes_are_one_line():
    kept = [
        (past(f"call_model#{n}", "step"), b'{"m":"You are a clerk."}', b'{"m":"You are a careful clerk."}', "effects were executed after it")
        for n in range(1, 47)
    ]  # fmt: skip
    kept.append((past("other#1", "step"), b'{"x":1}', b'{"x":2}', "on_change"))

    assert code_changes.kept_notes("r", kept) == [
        'run r: call_model#1 … call_model#46: what they gave is kept (effects were executed after them), though their arguments have changed: m: "You are a clerk." -> "You are a careful clerk."',
        "run r: other#1: what it gave is kept (on_change), though its arguments have changed: x: 1 -> 2",
    ]


def test_a_function_that_lost_its_decorator_is_told_by_name_and_module():
    stop = code_changes.undecorated("r", "send", "app", [past("send#1"), past("send#2")])

    assert "send#1, send#2" in stop.message
    assert "send in app is a plain function now: to replay the code would execute it" in stop.message
    assert cures(stop)[:2] == ["put @sf.effect back on send", 'rename it, and sf.removed("send")']


def test_misuse_of_was_names_both():
    assert "tell says was='send', but the code still asks for send by itself" in str(
        code_changes.still_in_use("r", "tell", "send")
    )
