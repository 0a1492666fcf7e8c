"""Which tests run when is written down, and true."""

from __future__ import annotations

import re

import pytest

from tests import rings

README = (rings.TESTS / "README.md").read_text()
FOLDERS = {path.parent.name for path in rings.TESTS.glob("*/test_*.py")}


def test_every_folder_of_tests_has_its_ring_in_the_table():
    """A folder that nobody has put anywhere would be found by whoever waits for it."""
    table = "\n".join(line for line in README.split("\n") if line.startswith("|"))

    assert set() == FOLDERS - set(re.findall(r"`([a-z]+)`", table))


@pytest.mark.parametrize("name", rings.SLOW)
def test_files_that_are_left_out_are_there_and_would_be_in(name):
    """A name that is wrong leaves nothing out."""
    assert (rings.TESTS / name).is_file()
    assert name.partition("/")[0] in rings.QUICK


@pytest.mark.parametrize(
    ("name", "ring"),
    [("core/test_state.py", "quick"), ("core/test_values_rounds.py", "test"), ("cli/test_cli_run.py", "test"),
     ("test_docs.py", "test"), ("proof/test_engine.py", "proof"), ("suites/console/test_pages.py", "test-console")],
)  # fmt: skip
def test_ring_of_a_file(name, ring):
    assert ring == rings.ring_of(rings.TESTS / name)
