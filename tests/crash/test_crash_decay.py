"""Corruption of whole stores: bits, tails, blocks, pages, rows, older copies (L6)."""

from __future__ import annotations

import pytest

from tests.crash import decay
from tests.crash.plan import QUICK
from tests.damage import stores

pytestmark = pytest.mark.timeout(300)  # seconds on an idle machine, but every scenario is several processes


@pytest.mark.parametrize("part", QUICK["decay"], ids=lambda part: f"{part.plan}-{part.flow}")
def test_damage_is_said_or_harmless(part, lived):
    """Unreadable is never nothing there."""
    lived(part)


def test_no_fault_is_counted_twice(tmp_path):
    """A number that counts the same bit again and again proves nothing."""
    original = stores.build("closed", tmp_path)  # it has the fewest

    first, second = (
        {sort: [str(fault) for fault in decay._faults(original, tmp_path / "rows", sort, seed)] for sort in decay.SIZES}
        for seed in (0, 1)
    )

    assert {sort: len(set(found)) for sort, found in second.items()} == decay.SIZES
    assert not [sort for sort in decay.UNLUCKY if set(first[sort]) & set(second[sort])]
    assert decay._fault(original, tmp_path / "rows", "replaced", decay.SIZES["replaced"], 0) is None


def test_a_store_in_which_something_was_found_is_kept(tmp_path, monkeypatch):
    """Made anew it has other bytes, and the line that was printed means another fault."""
    monkeypatch.setattr(decay, "FOUND", tmp_path / "found")
    (tmp_path / "made").mkdir()
    original = stores.build("closed", tmp_path / "made")

    again = decay._original(tmp_path, decay._kept(original))

    assert again == original
    assert decay._kept(again) == decay._kept(original)
