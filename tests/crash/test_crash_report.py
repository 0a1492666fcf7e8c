"""What README.md and docs/proof.md say about the crash lab is what `make chaos` saw, and enough of it."""

from __future__ import annotations

import json

from tests.crash import report
from tests.crash.broken.engines import ENGINES
from tests.crash.chaos import GOALS
from tests.crash.fleet import ROOT


def seen():
    return json.loads((ROOT / "docs" / "chaos.json").read_text())


def test_the_pages_say_what_was_seen():
    """Nobody edits a number by hand."""
    readme, proof = (ROOT / "README.md").read_text(), (ROOT / "docs" / "proof.md").read_text()

    assert readme == report.fill(readme, report.readme_block(seen()))
    assert proof == report.fill(proof, report.proof_block(seen()))


def test_nothing_was_violated_and_every_broken_engine_was_caught():
    """A report with a violation is no proof; it is a bug with a line that shows it."""
    facts = seen()

    assert (facts["failed"], facts["unnoticed"], report.total(facts, "violations")) == ([], [], 0)
    assert {one["engine"] for one in facts["controls"]} == ENGINES.keys()
    assert all(facts["goals"][goal] for goal in GOALS)
