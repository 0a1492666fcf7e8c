"""The example agents of frameworks, killed at every boundary: what we show is what we would do."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import pytest

from surefoot.testing import crash_matrix

pytestmark = pytest.mark.proof
EXAMPLES = Path(__file__).parents[2] / "examples"
AGENTS = [
    ("support_agent", "ticket", ("refund my bike",)),
    ("booking_agent", "trip", ("Rome",)),
    ("inbox_agent", "inbox", (3,)),
]


@pytest.mark.parametrize(("name", "workflow", "args"), AGENTS, ids=[name for name, *_ in AGENTS])
def test_example_agent_survives_a_kill_at_every_boundary(name, workflow, args, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(EXAMPLES))
    example = import_module(name)
    monkeypatch.setattr(example, "SLOW_SECONDS", 0, raising=False)
    try:
        report = crash_matrix(getattr(example, workflow), args)
    finally:
        del sys.modules[name]

    assert report.held
    assert report.kills == report.boundaries > 40
