"""One lab for each file, and what all of them saw, said at the end."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.crash.fleet import LabProcess
from tests.crash.plan import counted_at_least

_said: Counter[str] = Counter()


@pytest.fixture(scope="module")
def lab():
    with LabProcess() as process:
        yield process


@pytest.fixture
def lived(lab):
    """Live a part of the plan: nothing is violated, and nearly everything counts."""

    def live(part):
        outcomes = list(lab.outcomes(plan=part.plan, flow=part.flow, count=part.count, seed=1))
        note(outcomes)
        wrong = [f"{one.line}: {'; '.join(one.violations)}" for one in outcomes if one.violations]
        assert not wrong, "\n".join(wrong[:10])
        counted = sum(one.counted for one in outcomes)
        assert counted >= counted_at_least(part), Counter(one.uncounted for one in outcomes)
        return outcomes

    return live


def note(outcomes):
    for one in outcomes:
        _said["scenarios" if one.counted else f"not counted: {one.uncounted}"] += 1
        _said["real SIGKILLs"] += one.kills
        _said["errors of system calls"] += one.errors
        _said["of these, rightly in silence"] += len(one.silent)
        _said["violations"] += bool(one.violations)


def pytest_sessionfinish(session):
    """With several processes, each hands over what it counted."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["crash"] = dict(_said)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    _said.update(getattr(node, "workeroutput", {}).get("crash", {}))


def pytest_terminal_summary(terminalreporter):
    if _said:
        terminalreporter.section("crash lab")
        for what, count in sorted(_said.items()):
            terminalreporter.line(f"{what}: {count:,}")
