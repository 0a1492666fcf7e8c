"""What was shown is what happens, with full counts: `run.plan(supposing=…)` on random programs."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.crash import foretold

pytestmark = [pytest.mark.proof, pytest.mark.timeout(3000)]
AT_LEAST = 2_000
FIRST, PACKAGE = 10_000, 200


def test_two_thousand_words_come_to_what_was_foretold(report):
    """Not counted: what was refused, though it has to be refused in the same words; and plans without a word."""
    said, wrong, first = Counter(), [], FIRST

    while sum(said[word] for word in said if word not in ("refused", foretold.UNSAID)) < AT_LEAST:
        for one in foretold.told(first, PACKAGE):
            said.update(one.words)
            wrong += [f"{one.line}\n  {what}" for what in one.wrong]
        assert not wrong, "\n".join(wrong[:10])
        first += PACKAGE

    told = ", ".join(f"{count:,} {word}" for word, count in said.most_common())
    report("words of people supposed, said, and held against the resume", f"{told}; 0 differences")
