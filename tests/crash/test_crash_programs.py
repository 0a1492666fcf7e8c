"""Random programs, held against a model of them (L1, L3, L5)."""

from __future__ import annotations

import pytest

from tests.crash.plan import QUICK
from tests.crash.programs import ANEW, ASYNC, Model, parsed, text, written
from tests.crash.simulation import scenarios

pytestmark = pytest.mark.timeout(300)  # seconds on an idle machine, but every scenario is several processes


@pytest.mark.parametrize("part", QUICK["programs"], ids=lambda part: part.plan)
def test_a_program_that_nobody_has_thought_of_does_what_the_model_says(part, lived):
    """Whatever is combined with whatever."""
    lived(part)


def test_a_program_is_its_text():
    """A line that failed once has to mean the same for ever."""
    for number in range(200):
        for segment in written(number, branching=True).removeprefix(ASYNC).split(ANEW):
            assert text(parsed(segment)) == segment


def test_the_model_takes_back_what_a_failing_saga_undoes():
    """It would be no help if it agreed with everything."""
    model = Model()

    answers = model.run("charge,failing([reserve,charge,child([move])]),anew,either([put],[look])", "r")

    assert answers == [[9]]
    assert model.world == {"r charge 1": [0], "r charge 4": [0], "r.5 move 6": [1, 2]}


def test_the_model_takes_back_what_was_under_way_when_somebody_quits():
    """Sagas that have ended well stay; nothing follows."""
    model = Model()

    answers = model.run("saga([reserve]),saga([move,saga([reserve]),quit,charge]),charge", "r")

    assert answers == "cancelled"
    assert model.world == {"r reserve 2": [0]}


@pytest.mark.parametrize("engine", ["doubt-is-done", "fenced-writer-goes-on", "new-key-per-attempt"])
def test_programs_catch_a_broken_engine(engine, lab):
    """Without being told where to look."""
    lines = [str(one) for one in scenarios("programs", range(60), engine)]

    assert any(one.violations for one in lab.outcomes(lines=lines))
