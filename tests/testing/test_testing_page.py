"""The page about testing explains every word that the kit may say."""

from __future__ import annotations

from pathlib import Path

import pytest

from surefoot.testing import verdicts

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "testing.md").read_text()


@pytest.mark.parametrize("mistake", verdicts.CURES)
def test_every_mistake_has_its_line(mistake):
    """Who reads a finding looks it up there."""
    assert f"\n| {mistake} | " in PAGE


@pytest.mark.parametrize("ending", verdicts.ENDINGS)
def test_every_way_a_resume_may_end_has_its_line(ending):
    """The last column of the table is the answer to what a person came for."""
    assert f"\n| {ending} | " in PAGE
