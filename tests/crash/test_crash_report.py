"""What README.md and docs/proof.md say about the crash lab is what `make chaos` saw, and enough of it."""

from __future__ import annotations

import json

from tests.crash import report
from tests.crash.broken.engines import ENGINES
from tests.crash.chaos import GOALS
from tests.crash.fleet import ROOT

OPEN = [line for line in (ROOT / "tests" / "crash" / "open.txt").read_text().splitlines() if line[:1] != "#"]
"""Known to fail, and not mended yet: the pages show that, too."""


def seen():
    return json.loads((ROOT / "docs" / "chaos.json").read_text())


def test_the_pages_say_what_was_seen():
    """Nobody edits a number by hand."""
    readme, proof = (ROOT / "README.md").read_text(), (ROOT / "docs" / "proof.md").read_text()

    assert readme == report.fill(readme, report.readme_block(seen()))
    assert proof == report.fill(proof, report.proof_block(seen()))


def test_what_was_violated_is_said_to_be_open_and_every_broken_engine_was_caught():
    """A report with a violation is no proof; it is a bug with a line that shows it."""
    facts = seen()

    assert facts["unnoticed"] == []
    assert facts["failed"] == OPEN, "a line that fails is mended, or said to be open"
    assert {one["engine"] for one in facts["controls"]} == ENGINES.keys()
    assert all(facts["goals"][goal] for goal in GOALS)
