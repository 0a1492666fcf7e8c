"""The list of runs in pages: every run is on one page of a view, and on one only."""

from __future__ import annotations

import contextlib

import pytest

import surefoot as sf
from surefoot.console.pages import runs
from surefoot.engine.process import config
from tests.console.conftest import asking, paying, working


@pytest.fixture
def made(own_folder):
    """Runs that wait, that are in doubt and that are done, in turn, so that each kind is older and newer than others."""
    names = []
    for number in range(14):
        names.append(f"r-{number:02}")
        with contextlib.suppress(sf.Stopped):
            workflow, args = ((working, (number,)), (asking, ()), (working, (number,)), (paying, (number,)))[number % 4]
            workflow.run(names[-1], *args)
    return names


def pages_of(view):
    runtime = config.runtime(None, create=False)
    before = ""
    while True:
        found = runs.read(runtime, view, (), before, glance=False)
        yield [row.run for row in found.rows]
        if not found.next:
            return
        before = found.next


@pytest.mark.parametrize(("view", "wanted"), [("all", {0, 1, 2, 3}), ("need", {1, 3}), ("done", {0, 2})])
def test_every_run_is_on_one_page(made, monkeypatch, view, wanted):
    """A page that ranks first and cuts then leaves out the runs between."""
    monkeypatch.setattr(runs, "SIZE", 3)

    shown = list(pages_of(view))

    assert [name for number, name in enumerate(made) if number % 4 in wanted] == sorted(
        name for page in shown for name in page
    )
    assert len(shown) >= 3
    assert all(len(page) <= 3 for page in shown)


def test_what_needs_a_person_comes_first_within_its_page(made, monkeypatch):
    monkeypatch.setattr(runs, "SIZE", 4)

    first = next(pages_of("all"))

    assert {"r-11", "r-13"} == set(first[:2])
