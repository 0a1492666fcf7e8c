"""Damage to stores with full counts: what a reader gets, and what running again does."""

from __future__ import annotations

import pytest

from tests.damage import resuming, stores
from tests.damage.reading import sweep, truth

pytestmark = [pytest.mark.proof, pytest.mark.timeout(1800)]

FLIPS = 7_000
RESUMED = {"flips": 700, "truncations": 60, "zeroed": 250, "misplaced": 100, "replaced": 1, "rows": 25}


@pytest.fixture(params=stores.LIVES)
def original(request, tmp_path):
    made = tmp_path / "original"
    made.mkdir()
    return stores.build(request.param, made)


@pytest.fixture
def folder(tmp_path):
    with stores.scratch(tmp_path) as made:
        yield made


def faults(original, folder):
    return {
        "single bits flipped in database, log and anchor": stores.flips(original, FLIPS, "proof"),
        "tails cut off": stores.truncations(original, 400, "proof"),
        "every block of 512 and 4096 bytes zeroed": stores.zeroed(original),
        "pages written to the place of another": stores.misplaced(original, 500, "proof"),
        "older copies put back, files deleted": stores.replaced(original),
        "records and parts swapped, replaced, deleted, altered": stores.rows(original, folder, 150, "proof"),
    }


def test_damage_is_detected_or_harmless(original, folder, report):
    """0 silent differences, 0 silent fresh starts."""
    expected = truth(original, folder / "truth")
    for what, cases in faults(original, folder / "rows").items():
        tally = sweep(cases, expected, folder / "damaged")
        tally.check()
        report(f"{original.name} store of three runs: {what}", tally.line())


def test_running_again_after_damage_repeats_nothing_blindly(original, folder, report):
    outcomes = resuming.sweep(original, folder, counts=RESUMED, seed="proof")

    report(f"{original.name} store of three runs damaged, then run again", resuming.line(outcomes))
