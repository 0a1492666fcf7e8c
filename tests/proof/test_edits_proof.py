"""Random programs, random edits, a kill behind every boundary: what CHANGE promises, with full counts."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.crash.deploys import STOPPED, WENT_ON
from tests.crash.fleet import LabProcess
from tests.crash.programs import ANY
from tests.crash.scenario import Outcome, parse

pytestmark = [pytest.mark.proof, pytest.mark.timeout(3000)]
AT_LEAST = 20_000
LABS, PACKAGE = 2, 40
FIRST = int(os.environ.get("EDITS_FIRST", "1000"))
"""Others than those that `make test` lives; `EDITS_FIRST=77000` lives others again."""


def _lived(lab_number: int, counted: Counter[str]) -> Iterator[Outcome]:
    """Package after package, until the labs together have enough."""
    with LabProcess() as lab:
        seed = FIRST + lab_number
        while counted["cases"] < AT_LEAST:
            for outcome in lab.outcomes(plan="L13s", flow=ANY, count=PACKAGE, seed=seed):
                counted["cases"] += outcome.counted
                yield outcome
            seed += LABS


def test_twenty_thousand_edits_behind_every_boundary(report):
    """No effect twice without a declaration, none in a drive that stops, no value that differs, nothing stranded."""
    counted, goals, kinds = Counter[str](), Counter[str](), Counter[str]()
    wrong: list[str] = []

    def live(number: int) -> None:
        for outcome in _lived(number, counted):
            goals.update(outcome.goals)
            edits = parse(outcome.line).flow.split(";")[1].replace("!", "").split("+")
            kinds.update(edit.partition(":")[0] for edit in edits)
            if outcome.violations:
                wrong.append(f"{outcome.line}: {'; '.join(outcome.violations)}")

    with ThreadPoolExecutor(LABS) as pool:
        list(pool.map(live, range(LABS)))

    assert not wrong, "\n".join(wrong[:20])
    assert counted["cases"] >= AT_LEAST
    assert min(goals[WENT_ON], goals[STOPPED]) > AT_LEAST / 10
    assert len(kinds) >= 20
    report(
        f"random programs x random edits ({len(kinds)} kinds) x a kill behind every write and every act",
        f"{counted['cases']:,} cases: {goals[WENT_ON]:,} went on, {goals[STOPPED]:,} stopped; of these "
        f"{goals['cured: by hand']:,} stand where effects of the new code are out already, and were not cured further, all "
        "others were cured as offered; 0 effects twice, 0 values that differ, 0 new effects before a stop but declared ones, "
        "and those in branches beside a new step",
    )
