"""The tables in docstrings name tests that there are: one that is renamed or removed is missed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.parametrize("table", ["test_stories.py", "test_bad_input.py"])
def test_every_story_that_is_told_has_its_test(table):
    told = (HERE / table).read_text().split('"""')[1]
    there = "".join(path.read_text() for path in HERE.glob("test_*.py"))
    names = re.findall(r"test_\w+(?:\.py)?", told)

    assert len(names) > 7
    assert [] == [
        name for name in names if not ((HERE / name).exists() if name.endswith(".py") else f"def {name}(" in there)
    ]
