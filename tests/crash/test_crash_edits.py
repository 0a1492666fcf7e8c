"""Code is edited between a kill and the resume (L13): random programs, random edits."""

from __future__ import annotations

import random

import pytest

from tests.crash import edits
from tests.crash.deploys import STOPPED, WENT_ON
from tests.crash.plan import QUICK

pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize("part", QUICK["edits"], ids=lambda part: part.plan)
def test_an_edit_does_nothing_twice_and_strands_nothing(part, lived):
    """Whatever was edited, wherever the process died."""
    outcomes = lived(part)

    assert {WENT_ON, STOPPED} <= {goal for one in outcomes for goal in one.goals}, "vacuous"


def test_a_program_and_its_edits_are_texts():
    """A line that failed once has to mean the same for ever; and what is written from it has to be Python."""
    for number in range(300):
        text = edits.written(number)
        program = edits.parsed(text)
        edited = edits.edited(program, edits.drawn(program, random.Random(number)))

        assert (edits.ASYNC if program.is_async else "") + edits.text(program.block) == text
        compile(edits.source(edited.program), "<edited>", "exec")


def test_every_edit_is_drawn():
    """An edit that never fits is never tried."""
    drawn = set[str]()
    for number in range(1_500):
        program = edits.parsed(edits.written(number))
        drawn |= {one.partition(":")[0] for one in edits.drawn(program, random.Random(number)).split("+")}

    assert drawn == edits.EDITS.keys()


def test_no_two_calls_get_one_name():
    """The module would have the later definition for both of them, with the parameters of one."""
    with pytest.raises(edits.Unfit, match="bill"):
        edits.edited(edits.parsed("put(1),pay(2)"), "rename:put>bill!+rename:pay>bill!")
