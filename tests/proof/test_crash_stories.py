"""The stories of a crash around an effect, each policy at each moment, with a ledger process as the world."""

from __future__ import annotations

import pytest

from tests.engine.conftest import Program
from tests.engine.test_drift import twenty_files
from tests.ledger import ledger_process
from tests.refactoring import kill_and_resume_refactor
from tests.stories import DONE, MOMENTS, Story, tell
from tests.undoing import POINTS, kill_while_undoing

pytestmark = [pytest.mark.proof, pytest.mark.timeout(300)]
COLOURS = ("blocking", "async")


@pytest.fixture
def story(tmp_path):
    with ledger_process() as port:
        yield lambda *told: Story(tmp_path, port, *told)


@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize("policy", ["ask", "retry", "check", "fail"])
@pytest.mark.parametrize("moment", MOMENTS)
def test_crash_around_an_effect(story, colour, policy, moment, report):
    """C-03 to C-06: no effect twice by our own decision other than under the same key, none lost."""
    seen = tell(story(colour, policy), policy, moment)

    report(f"{colour} effect, on_crash={policy}, SIGKILL {WORDS[moment]}", seen)


WORDS = {
    "before": "after the intent, before the call",
    "half": "half-way through the call",
    "after": "after the call, before its record",
    "outcome": "while its record is being written",
}


@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize("policy", ["retry", "ask"])
@pytest.mark.parametrize("moment", ["before undo", "after undo", "check"])
def test_crash_while_a_part_is_being_undone(story, colour, policy, moment, report):
    """C-04 and C-09: killed half-way, and again while recovering from that."""
    told = story(colour, "check", policy)
    told.killed("half")
    told.killed(moment)
    seen = "undone once, then run once"
    if (policy, moment) == ("ask", "before undo"):
        assert told.stops() == "charge#2.repair1"
        told.run.settle("charge#2.repair1", not_happened=True, by="ann")
        seen = "stopped in doubt at the undo until a person settled it; undone once, then run once"
    assert told.ends() == DONE
    told.require_kept(attempts=3, undos=1)
    report(f"{colour} effect, half done, SIGKILL again {moment} (undo: {policy})", seen)


@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize("policy", ["ask", "retry", "check"])
def test_a_saga_killed_at_every_point_of_undoing(tmp_path_factory, colour, policy, report):
    """C-11: five effects, the fifth fails; killed before and after each of the four undos."""
    seen = {point: kill_while_undoing(tmp_path_factory.mktemp("saga"), colour, policy, point) for point in POINTS}

    report(
        f"{colour} saga of 5 failing at the fifth, undo on_crash={policy}, SIGKILL before and after each of 4 undos",
        f"{len(seen)} kills: {', '.join(sorted(set(seen.values())))}",
    )


def test_own_writes_are_no_drift_in_200_crashes(tmp_path, report):
    """Twenty files, all watched, written by an effect that touches them and is torn half-way."""
    kills = twenty_files(tmp_path, Program(tmp_path), cycles=200, seed=7)

    report(
        "20-file refactor with a check and an undo of its own, every file watched, SIGKILL at random calls",
        f"{kills} kills; 0 times its own writes were called drift; every file right",
    )


def test_own_writes_with_the_ready_made_effect_are_no_drift_in_200_crashes(tmp_path, report):
    tally = kill_and_resume_refactor(tmp_path, kills=200, seed=7)

    report(
        "20-file refactor with sf.effects.write_file, every file watched, SIGKILL at random moments",
        f"{tally.kills} kills in {tally.rounds} runs; 0 times its own writes were called drift; every file right",
    )
