"""What people decide on does not change under their hand, and whose word it is, is on record."""

from __future__ import annotations

import pytest

import surefoot as sf
from surefoot import witness


def doubtful(name="seen_pay"):
    @sf.effect
    def pay(n: int) -> int:
        raise ConnectionError("lost")

    @sf.workflow(name=name)
    def wf(n: int) -> int:
        return pay(n)

    with pytest.raises(sf.InDoubt):
        wf.run("r", 1)
    return sf.get_run("r")


def asking(**options):
    @sf.workflow(name="seen_ask")
    def wf() -> bool:
        return bool(sf.approve("Go on?", **options))

    with pytest.raises(sf.WaitingForAnswer):
        wf.run("r")
    return sf.get_run("r")


def moved(run):
    """Something is recorded of it, by somebody else."""
    sf.get_run(run.id).send_event("news", None, id="1")


VERBS = {
    "settle": lambda run, seen: run.settle("pay#1", not_happened=True, seen=seen),
    "rewind": lambda run, seen: run.rewind("pay#1", seen=seen),
    "cancel": lambda run, seen: run.cancel(seen=seen),
    "fork": lambda run, seen: run.fork("new", at="pay#1", seen=seen),
    "send_event": lambda run, seen: run.send_event("n", 1, id="2", seen=seen),
}


@pytest.mark.parametrize("verb", VERBS)
def test_nothing_is_recorded_if_the_run_has_moved_on_since(verb):
    """Whoever clicked looked at another run than this one is now."""
    run = doubtful()
    seen = run.seen
    moved(run)
    before = run.entries()

    with pytest.raises(
        sf.Outdated, match=r"run r has changed since you looked: it is at entry \d+, and was at entry \d+"
    ):
        VERBS[verb](run, seen)

    assert before == run.entries()
    assert [one.id for one in sf.runs()] == ["r"]


@pytest.mark.parametrize("verb", VERBS)
def test_what_was_seen_and_is_so_still_is_decided(verb):
    run = doubtful()
    run.state()

    VERBS[verb](run, run.seen)


def test_run_that_moves_at_the_last_moment_is_outdated_too(monkeypatch):
    """It is checked under the same compare-and-append: between the look and the write nothing gets in."""
    from surefoot.engine.process import bell

    run = doubtful()
    real, quick = bell.append, [True]

    def append(store, item):
        if quick and quick.pop():
            moved(run)
        return real(store, item)

    monkeypatch.setattr(bell, "append", append)

    with pytest.raises(sf.Outdated):
        run.settle("pay#1", not_happened=True, seen=run.seen)

    assert "EffectSettled" not in [entry.kind for entry in run.entries()]


def test_another_history_of_the_same_length_is_another_one():
    """A store that was put back from a copy and went on has the same numbers."""
    run = doubtful()
    seen = type(run.seen)(run.seen.seq, "00" * 32)

    with pytest.raises(sf.Outdated, match="has another history"):
        run.rewind("pay#1", seen=seen)
    with pytest.raises(sf.UsageError, match="is no seal"):
        run.rewind("pay#1", seen=type(seen)(1, "xyz"))


def test_answer_to_another_question_than_was_shown_is_outdated():
    run = asking()

    with pytest.raises(sf.Outdated, match="asks something else than you saw"):
        run.answer("approve#1", True, shown="0000")


def test_question_for_a_group_is_answered_by_whoever_is_in_it():
    """Who answered and as what is on record: the group is part of the reason why it counted."""
    run = asking(by=["release"])

    with pytest.raises(sf.UsageError, match="for release, not for ann"):
        run.answer("approve#1", True, by="ann", groups=["staff"])
    run.answer("approve#1", True, by="ann", groups=["staff", "release"])

    told = run.entries()[-1].data
    assert (told["by"], told["groups"]) == ("ann", ["staff", "release"])


def test_way_by_which_a_word_came_is_recorded():
    run = doubtful()

    run.settle("pay#1", not_happened=True, by="ann", via="console, token ann-laptop")
    run.rewind("pay#1", by="ann", via="console")
    run.cancel(by="bob")

    told = [(entry.kind, entry.data.get("via")) for entry in run.entries() if entry.data.get("by")]
    assert told == [
        ("EffectSettled", "console, token ann-laptop"), ("RunRewound", "console"), ("CancelRequested", None),
    ]  # fmt: skip


# --- the world ---------------------------------------------------------------------------------------


@pytest.fixture
def drifted(own_folder):
    """A run that has drifted in two of three files."""
    for name in "abc":
        (own_folder / f"{name}.txt").write_text("as it was")

    @sf.workflow(name="seen_drift", watch=[witness.files("*.txt")])
    def wf() -> str:
        return sf.wait_event("go")

    with pytest.raises(sf.WaitingForAnswer):
        wf.run("r")
    for name in "ab":
        (own_folder / f"{name}.txt").write_text("by somebody else")
    return sf.get_run("r")


def _found(run):
    return {found.part: found.actual for found in run.drift()}


def test_drift_is_accepted_as_it_was_shown(drifted):
    assert drifted.accept_drift(only=_found(drifted)) == ["files(*.txt)"]
    assert drifted.drift() == []


@pytest.mark.parametrize("then", ["changed again", "one more", "changed back"])
def test_drift_that_has_changed_again_is_not_accepted(drifted, own_folder, then):
    """What was shown to a person is not what would be accepted."""
    shown, before = _found(drifted), drifted.entries()
    if then == "changed again":
        (own_folder / "a.txt").write_text("and once more")
    elif then == "one more":
        (own_folder / "c.txt").write_text("this one too")
    else:
        (own_folder / "b.txt").write_text("as it was")

    with pytest.raises(sf.Outdated, match="the world has changed since you looked"):
        drifted.accept_drift(only=shown)

    assert before == drifted.entries()


def test_part_of_what_one_witness_saw_is_not_accepted_alone(drifted):
    """A sight is taken whole: the part that was left out would be accepted unseen."""
    ((part, value), *_) = _found(drifted).items()

    with pytest.raises(sf.Outdated):
        drifted.accept_drift(only={part: value})
