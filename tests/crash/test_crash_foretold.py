"""What a person is told would follow from a word is what follows when it is said."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.crash import foretold

pytestmark = pytest.mark.timeout(300)  # seconds on an idle machine
STORIES = 150
ONCE_WRONG = (190, 343, 382, 10482)
"""Stories that have shown something: a KeyError of rewind, keys of a fork, an undo that somebody has to be asked about."""
WORDS = ("settle", "answer", "event", "rewind", "fork", "retry", "cancel", "nothing", "refused")


def test_what_is_foretold_of_a_word_is_what_a_resume_does():
    """On random programs, whose processes die anywhere; up to the first call that is made."""
    said, wrong = Counter(), []

    for one in foretold.told(0, STORIES):
        said.update(one.words)
        wrong += [f"{one.line}\n  {what}" for what in one.wrong]

    assert not wrong, "\n".join(wrong[:10])
    assert min(said[word] for word in WORDS) >= 5, said
    assert said.total() >= 500


@pytest.mark.parametrize("number", ONCE_WRONG)
def test_story_that_was_wrong_once_is_right(number):
    assert [one.wrong for one in foretold.told(number, 1)] == [[]]


@pytest.mark.parametrize("broken", ["foretells the old answer", "foretells nothing", "leaves a trace"])
def test_a_plan_that_lies_is_caught(monkeypatch, broken):
    """The judge would be no help if it agreed with everything."""
    from surefoot.engine.operate import resume_plan, supposing
    from surefoot.engine.process import bell, journal

    if broken == "foretells the old answer":
        monkeypatch.setattr(journal, "suppose", lambda *given: given[3])
    elif broken == "foretells nothing":
        real = resume_plan.plan

        def silent(*args):
            from msgspec.structs import replace

            return replace(real(*args), next=[], ending="")

        monkeypatch.setattr(supposing.resume_plan, "plan", silent)
    else:
        from surefoot.store.contract import Extend

        real_suppose = journal.suppose

        def written(store, clock, state, head, entry):
            from surefoot.core.seal import Sealer

            record, cuts = Sealer(store.id, state.run).entry(
                entry, at=clock.now(), epoch=state.epoch, after=(head.seq, head.seal)
            )
            bell.append(store, Extend(state.run, head, [record], None, cuts))
            return real_suppose(store, clock, state, head, entry)

        monkeypatch.setattr(journal, "suppose", written)

    assert any(one.wrong for one in foretold.told(0, 40))
