"""Fixtures for tests of workflows, there as soon as surefoot is installed.

Loaded with every pytest session where surefoot is installed, so the kit itself is imported when a fixture is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from surefoot.testing.answers import Answers
    from surefoot.testing.clock import FastClock
    from surefoot.testing.stores import TestedStore
    from surefoot.testing.worlds import World


@pytest.fixture
def sf_store(tmp_path: Path) -> Iterator[TestedStore]:
    """A store of the test's own: runs go there. `.url`, `.reopen()`, `.damage("truncate" | "flip" | "zero" | "older")`."""
    from surefoot.testing.stores import configured

    with configured(tmp_path / "surefoot" / "runs.db") as store:
        yield store


@pytest.fixture
def sf_clock() -> Iterator[FastClock]:
    """Sleeps take no time, and `.forward("3h")` lets time pass."""
    from surefoot.testing.clock import FastClock, installed

    with installed(FastClock()) as clock:
        yield clock


@pytest.fixture
def sf_answers() -> Answers:
    """The people of the test: `sf_answers["approve#1"] = False`, then `sf_answers.run(workflow, "id", ...)`."""
    from surefoot.testing.answers import Answers

    return Answers()


@pytest.fixture
def sf_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """An empty folder, which is the working folder of the test, and a ledger: `sf_world.note("mail ada")`."""
    from surefoot.testing.worlds import World

    folder = tmp_path / "world"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return World(folder)
