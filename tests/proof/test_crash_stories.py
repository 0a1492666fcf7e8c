"""The stories of a crash around an effect, each policy at each moment, with a ledger process as the world."""

from __future__ import annotations

import pytest

from tests.stories import DONE, MOMENTS, Story, ledger_process, tell

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
