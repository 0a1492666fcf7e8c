"""A run as a picture of its time: every attempt, what is not known, and clocks that do not agree."""

from __future__ import annotations

import pytest
from msgspec import Raw

from surefoot.core import values
from surefoot.core.entry import (
    AnswerGiven,
    CancelRequested,
    Due,
    EffectDone,
    EffectDoubted,
    EffectIntended,
    EffectRaised,
    EffectSettled,
    EffectSuspected,
    QuestionAsked,
    RunAdopted,
    RunContinued,
    RunCreated,
    RunDone,
    RunReleased,
    RunRewound,
    RunStopped,
    StepDone,
    StepRaised,
    StepStarted,
    Stop,
    TimerFired,
    TimerSet,
)
from surefoot.core.seal import Record
from surefoot.view import lanes
from surefoot.view.lanes import FOLD, NARROWEST, timeline

SECOND = 1_000_000
NO = Raw(values.encode_error(ValueError("no")))
ONE = Raw(b"1")
ARGS = Raw(b"{}")


class Journal:
    """Entries with the times at which they were written."""

    def __init__(self) -> None:
        self.story = []
        self.epoch = 0

    def at(self, seconds, entry):
        if isinstance(entry, RunAdopted):
            self.epoch += 1
        record = Record("r", len(self.story) + 1, self.epoch, int(seconds * SECOND), 1, 1, 1, 0, b"", b"")
        self.story.append((record, entry))
        return self

    def begun(self, seconds=0):
        return self.at(seconds, RunCreated("w", ARGS, "d")).claimed(seconds)

    def claimed(self, seconds, pid=1):
        return self.at(seconds, RunAdopted("w" * 16, "h", pid, "c"))

    def step(self, start, end, address, attempt=1):
        return self.at(end, StepDone(address, "d", ARGS, ONE, int(start * SECOND), attempt))

    def drawn(self, *, driven=False, now=0, **window):
        return timeline(self.story, driven=driven, now=int(now * SECOND), **window)


def bars(found):
    return [(bar.address, bar.outcome, bar.start / SECOND, bar.end / SECOND) for bar in found.bars]


def test_each_attempt_has_a_bar_of_its_own():
    """How long it took, three times over, is what one looks for."""
    journal = Journal().begun()
    journal.at(2, StepRaised("s#1", "d", ARGS, NO, 1, Due(5 * SECOND), started=1 * SECOND))
    journal.step(5, 6, "s#1", attempt=2)

    found = journal.at(6, RunDone(ONE)).drawn()

    assert bars(found) == [("s#1", "retrying", 1, 2), ("s#1", "done", 5, 6)]
    assert [bar.attempt for bar in found.bars] == [1, 2]
    assert (found.bars[0].until, found.bars[0].error) == (5 * SECOND, "ValueError: no")


def test_step_that_was_begun_and_cut_off_ends_with_its_process():
    journal = Journal().begun().at(1, StepStarted("s#1", "d", ARGS)).step(1, 3, "other#1").claimed(60, pid=2)
    journal.step(60, 61, "s#1")

    found = journal.at(61, RunDone(ONE)).drawn()

    assert bars(found) == [("s#1", "cut off", 1, 3), ("other#1", "done", 1, 3), ("s#1", "done", 60, 61)]
    assert found.bars[0].open_end


def test_effect_is_in_doubt_from_its_intent_to_the_last_sign_of_its_process():
    intent = EffectIntended("e#1", "d", ARGS, "k", "ask")
    journal = Journal().begun().at(1, intent).step(1, 4, "s#1").claimed(60)

    (doubt, _), (stretch, _) = (journal.drawn().bars, journal.drawn().stretches)

    assert (doubt.outcome, doubt.start, doubt.end, doubt.open_end) == ("in doubt", SECOND, 4 * SECOND, True)
    assert not stretch.ended


def test_settled_by_a_person_it_is_as_long_as_it_was():
    """When it happened nobody knows."""
    journal = Journal().begun().at(1, EffectIntended("e#1", "d", ARGS, "k", "ask"))
    journal.at(2, EffectDoubted("e#1", NO)).at(2, RunStopped((Stop("InDoubt", "m", "e#1"),)))
    journal.at(99, EffectSettled("e#1", True, 1, ONE, "person", "ann"))

    (bar,) = journal.drawn().bars

    assert (bar.outcome, bar.end, bar.by, bar.open_end) == ("done", 2 * SECOND, "ann", False)


def test_settled_before_another_process_took_over_it_is_no_longer_in_doubt():
    """Its process was killed: no entry says that it is in doubt."""
    journal = Journal().begun().at(1, EffectIntended("e#1", "d", ARGS, "k", "ask")).step(1, 4, "s#1")
    journal.at(9, EffectSettled("e#1", True, 1, ONE, "person", "ann")).claimed(60).step(61, 62, "s#2")

    bar = journal.drawn(driven=True, now=70).bars[0]

    assert (bar.outcome, bar.end, bar.by, bar.open_end) == ("done", 4 * SECOND, "ann", False)


@pytest.mark.parametrize(
    ("entry", "outcome"),
    [
        (EffectDone("e#1", ONE), "done"),
        (EffectRaised("e#1", NO), "failed"),
        (EffectRaised("e#1", NO, 1, Due(9)), "retrying"),
        (EffectDoubted("e#1", NO), "in doubt"),
        (EffectSettled("e#1", False, 1), "under way"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_effect_comes_to_what_its_entry_says(entry, outcome):
    journal = Journal().begun().at(1, EffectIntended("e#1", "d", ARGS, "k", "ask")).at(3, entry)

    (bar,) = journal.drawn(driven=True, now=5).bars

    assert bar.outcome == outcome


def test_person_can_say_that_it_did_not_happen():
    journal = Journal().begun().at(1, EffectIntended("e#1", "d", ARGS, "k", "ask")).at(2, EffectDoubted("e#1", NO))

    assert journal.at(3, EffectSettled("e#1", False, 1, by="ann")).drawn().bars[0].outcome == "not happened"


def test_what_is_under_way_grows_with_the_clock_and_what_waits_is_dotted():
    due = Due(99 * SECOND)
    journal = Journal().begun().at(1, StepStarted("s#1", "d", ARGS)).at(1, TimerSet("sleep#1", due))

    found = journal.drawn(driven=True, now=8)

    assert bars(found) == [("s#1", "under way", 1, 8), ("sleep#1", "open", 1, 8)]
    assert found.bars[1].until == 99 * SECOND


def test_wait_goes_on_while_nobody_is_there():
    """It is answered in the gap, or after it: the question was open all the time."""
    journal = Journal().begun().at(1, QuestionAsked("approve#1", "approve", "?", "shown"))
    journal.at(2, RunStopped((Stop("WaitingForAnswer", "m", "approve#1"),)))
    journal.at(500, AnswerGiven("approve#1", "shown", Raw(b"true"), "ann")).claimed(600).at(601, RunDone(ONE))

    (bar,) = journal.drawn().bars

    assert (bar.outcome, bar.by, bar.start / SECOND, bar.end / SECOND) == ("done", "ann", 1, 500)


def test_stretches_are_as_wide_as_they_were_long_and_gaps_are_folded():
    journal = (
        Journal().begun().step(0, 100, "a#1").at(100, RunReleased("why")).claimed(100_000).step(100_000, 100_001, "b#1")
    )

    found = journal.drawn()
    first, second = found.stretches

    assert (first.ended, second.ended, second.gap) == (True, False, 99_900 * SECOND)
    assert first.width > second.width >= NARROWEST
    assert second.x == pytest.approx(first.x + first.width + FOLD)
    assert second.x + second.width == pytest.approx(found.width) == pytest.approx(1.0)


def test_many_stretches_make_the_picture_wider_and_none_narrower():
    journal = Journal().begun()
    for n in range(1, 20):
        journal.step(n, n + 0.5, f"s#{n}").claimed(n + 1)

    found = journal.drawn()

    assert min(stretch.width for stretch in found.stretches) >= NARROWEST - 1e-9
    assert found.width > 3


def test_clock_that_was_set_back_is_said_and_no_bar_is_negative():
    """The next process ran on another machine, or somebody mended the clock."""
    journal = Journal().begun(1000).step(1000, 1010, "a#1").claimed(400).step(390, 405, "b#1")

    found = journal.at(404, StepDone("c#1", "d", ARGS, ONE, 409 * SECOND)).drawn()

    assert found.stretches[1].set_back
    assert all(bar.end >= bar.start and bar.width >= 0 for bar in found.bars)
    assert [bar.x for bar in found.bars] == [*sorted(bar.x for bar in found.bars[:2]), found.bars[2].x]


def test_lanes_are_branches_the_run_itself_first_nested_ones_indented():
    journal = Journal().begun().step(1, 2, "[b]/gather#1.0/s#1").step(1, 2, "gather#1.1/s#1").step(1, 3, "[b]/s#1")
    journal.step(3, 4, "s#1")

    found = journal.drawn()

    assert [(lane.label, lane.depth) for lane in found.lanes] == [
        ("", 0), ("[b]", 1), ("gather#1.0", 2), ("gather#1.1", 1),
    ]  # fmt: skip
    assert [found.lanes[bar.lane].path for bar in found.bars] == ["[b]/gather#1.0/", "gather#1.1/", "[b]/", ""]


def test_label_with_a_slash_is_one_lane():
    found = Journal().begun().step(1, 2, "[src/a.py]/write#1").drawn()

    assert [lane.label for lane in found.lanes] == ["", "[src/a.py]"]


def test_what_was_sent_back_is_set_aside():
    journal = Journal().begun().step(1, 2, "a#1").step(2, 3, "b#1").at(3, RunDone(ONE))
    journal.at(9, RunRewound("b#1", "ann", seq=4)).claimed(10).step(10, 11, "b#1")

    found = journal.drawn()

    assert [(bar.address, bar.set_aside) for bar in found.bars] == [("a#1", False), ("b#1", True), ("b#1", False)]
    assert [(sign.kind, sign.by) for sign in found.signs] == [("RunRewound", "ann")]


def test_same_address_in_another_segment_is_another_call():
    journal = Journal().begun().step(1, 2, "a#1").at(2, RunContinued(ARGS, "d")).step(2, 3, "a#1")

    assert [bar.segment for bar in journal.drawn().bars] == [1, 2]


def test_effect_whose_record_was_lost_is_in_doubt():
    journal = Journal().begun().at(2, EffectSuspected("e#1", "d", ARGS, "k", "ask"))

    assert journal.drawn().bars[0].outcome == "in doubt"


def test_timer_ends_when_it_fires():
    journal = Journal().begun().at(1, TimerSet("sleep#1", Due(3 * SECOND))).at(3, TimerFired("sleep#1"))

    assert bars(journal.drawn()) == [("sleep#1", "done", 1, 3)]


# --- what is folded ----------------------------------------------------------------------------------


def long_run(steps, branches=0):
    journal = Journal().begun(1)
    for n in range(steps):
        journal.step(n + 1, n + 2, f"propose#{n + 1}")
    for n in range(branches):
        journal.step(n, n + 1, f"map#1.{n}/look#1")
    return journal


def test_equal_steps_beside_each_other_become_one_bar():
    """`propose ×412`."""
    journal = long_run(412)
    journal.at(500, StepRaised("propose#413", "d", ARGS, NO, started=499 * SECOND)).step(500, 501, "propose#414")

    found = journal.drawn()

    assert [(bar.name, bar.calls, bar.outcome) for bar in found.bars] == [
        ("propose", 412, "done"), ("propose", 1, "failed"), ("propose", 1, "done"),
    ]  # fmt: skip
    assert (found.bars[0].start, found.bars[0].end) == (1 * SECOND, 413 * SECOND)


def test_effects_are_never_folded_nor_what_went_wrong():
    """Each of them changed the world."""
    journal = Journal().begun()
    for n in range(450):
        journal.at(n, EffectIntended(f"e#{n + 1}", "d", ARGS, "k", "ask")).at(n + 0.5, EffectDone(f"e#{n + 1}", ONE))

    assert len(journal.drawn().bars) == 450


def test_branches_in_which_all_is_done_become_one_lane():
    journal = long_run(1, branches=100)
    journal.at(200, StepRaised("map#1.40/look#2", "d", ARGS, NO, started=199 * SECOND))

    found = journal.drawn()

    assert [(lane.label, lane.is_folded, lane.branches) for lane in found.lanes] == [
        ("", False, 1), ("", True, 40), ("map#1.40", False, 1), ("", True, 59),
    ]  # fmt: skip
    assert [bar.address for bar in found.bars] == ["propose#1", "map#1.40/look#1", "map#1.40/look#2"]
    assert [bar.lane for bar in found.bars] == [0, 2, 2]


def test_window_shows_a_part_and_says_how_much_is_hidden():
    found = long_run(1000).drawn(first=500, last=510)

    assert len(found.bars) == 11
    assert found.hidden == 989


def test_run_that_never_began_is_an_empty_picture():
    found = Journal().at(0, RunCreated("w", ARGS, "d")).at(1, CancelRequested("ann")).drawn()

    assert (found.stretches, found.bars, found.width) == ((), (), 1.0)
    assert [lane.path for lane in found.lanes] == [""]


def test_forty_thousand_entries_are_drawn_in_a_moment():
    """The page of a long run opens."""
    import time

    journal = long_run(40_000)
    began = time.process_time()

    assert len(journal.drawn().bars) == 1

    assert time.process_time() - began < 10  # 0.5 s on an idle machine


def test_lane_kinds_are_all_that_an_outcome_can_be():
    assert {lanes.DONE, lanes.CLEARED} == set(lanes._PLAIN)
