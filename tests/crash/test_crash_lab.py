"""The lab itself: what counts, what is repeated for ever, and that it covers what it says."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.crash.faults import Shim
from tests.crash.fleet import ROOT
from tests.crash.invariants import TABLE
from tests.crash.plan import AT_LEAST, KILLS_AT_LEAST, QUICK, counted_at_least, level_of
from tests.crash.scenario import Scenario, parse

pytestmark = pytest.mark.timeout(300)
WORLDLY = ("play", "latency", "haunting", "raising", "meddling")
"""Levels that have rules of their own."""
REGRESSIONS = [
    line for line in (Path(__file__).parent / "regressions.txt").read_text().splitlines() if line and line[0] != "#"
]
KILLED = ("L3", "L9", "L14a", "L14s")
"""Each scenario of these is a real SIGKILL, at least."""


def test_enough_is_lived_in_every_run_of_the_tests():
    """What has to count in each part, added up: the parts assert that it did."""
    parts = [part for file in QUICK.values() for part in file]

    assert sum(counted_at_least(part) for part in parts) >= AT_LEAST
    assert sum(counted_at_least(part) for part in parts if level_of(part.plan) in KILLED) >= KILLS_AT_LEAST


@pytest.mark.parametrize("line", REGRESSIONS)
def test_what_once_failed_holds(line, lab):
    """Each bug that the lab found, with the line that shows it."""
    (outcome,) = lab.outcomes(lines=[line])

    assert outcome.violations == []


def test_a_line_says_the_whole_scenario():
    """Whoever reads it in a report can live it again."""
    scenario = Scenario("saga", "L9", "57:torn/12:kill", 7, "no-intent")

    assert str(scenario) == "flow=saga level=L9 at=57:torn/12:kill seed=7 broken=no-intent"
    assert parse(str(scenario)) == scenario
    assert scenario.plans() == [{57: "torn"}, {12: "kill"}]


def test_a_fault_that_does_not_fire_does_not_count(lab):
    """Else a lab whose faults miss would look best."""
    (beyond,) = lab.outcomes(lines=["flow=secret level=L3 at=5000:kill seed=0"])
    (nothing,) = lab.outcomes(lines=["flow=secret level=L3 seed=0"])

    assert (beyond.counted, beyond.uncounted) == (False, "the boundary was not reached")
    assert not nothing.counted


def test_the_same_seed_is_the_same_schedule(lab):
    """A seed that fails has to fail again."""
    lines = [f"flow=saga level=L1 seed={seed}" for seed in range(20)]

    first, second = ([(one.fired, one.goals, one.uncounted) for one in lab.outcomes(lines=lines)] for _ in range(2))

    assert first == second
    assert any(fired for fired, *_ in first)


def test_a_schedule_that_fails_is_shrunk_to_a_line_that_fails(lab):
    """Five faults explain nothing; those that it takes do: without any of them nothing is wrong."""
    lines = [f"flow=linear level=L1 seed={seed} broken=fenced-writer-goes-on" for seed in range(40)]
    failed, *_ = [one for one in lab.outcomes(lines=lines) if one.violations]
    scenario = parse(failed.line)
    faults = [f"{number}:{fault}" for number, fault in scenario.plans()[0].items()]

    again, *fewer = lab.outcomes(
        lines=[failed.line]
        + [str(replace(scenario, at=",".join(one for one in faults if one != left_out))) for left_out in faults]
    )

    assert again.violations
    assert 2 <= len(faults) <= 3
    assert [one.violations for one in fewer] == [[]] * len(faults)


def test_a_scenario_can_be_lived_again_from_its_line():
    """The one line of a report is all that is needed."""
    ended = subprocess.run(
        [sys.executable, "-m", "tests.crash.repro", "flow=linear level=L3 at=80:torn seed=0"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.endswith("held\n")


def test_a_write_through_a_file_object_is_a_boundary(tmp_path):
    """Checkpoints in files are written so: a full disk there would never be tried."""
    shim = Shim(str(tmp_path), {2: "enospc"})
    fd = os.open(tmp_path / "saved", os.O_CREAT | os.O_WRONLY, 0o600)

    with shim._fdopen(os.fdopen)(fd, "wb") as file:
        file.write(b"one")
        with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
            file.write(b"two")

    assert shim.log == [("write", "saved")] * 2
    assert (tmp_path / "saved").read_bytes() == b"one"


def test_damage_that_is_refused_by_another_name_is_noticed():
    """Held against itself, an engine that refuses with the wrong error, or not at all, would always be right."""
    ended = subprocess.run(
        [sys.executable, "-c", _OTHERWISE_REFUSED], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )

    assert "has to be refused with NotFound, and came to" in ended.stderr


_OTHERWISE_REFUSED = """
from msgspec.structs import replace
from tests.crash.flows import FLOWS
from tests.crash.lab import open_lab

FLOWS["forged-codec"] = replace(FLOWS["forged-codec"], refused="NotFound")
with open_lab() as lab:
    lab.golden("forged-codec")
"""


def test_each_invariant_that_is_named_is_checked():
    """The table is a promise: each number in it appears in the checker."""
    source = (Path(__file__).parent / "invariants.py").read_text()
    told = source.split("MOST_TIMES = ")[1]
    told += "".join((Path(__file__).parent / f"{name}.py").read_text() for name in WORLDLY)
    elsewhere = {"I-17": "I-11"}

    assert [name for name in TABLE if f'"{elsewhere.get(name, name)}"' not in told] == []
