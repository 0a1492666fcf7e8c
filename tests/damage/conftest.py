"""Each original is made once per session; what the sweeps counted is said at the end."""

from __future__ import annotations

from functools import cache

import pytest

from tests.damage.stores import build, scratch

_said: list[str] = []


@pytest.fixture(scope="session")
def originals(tmp_path_factory):
    """Call it with a name of `LIVES`."""

    @cache
    def made(name):
        return build(name, tmp_path_factory.mktemp(name))

    return made


@pytest.fixture
def folder(tmp_path):
    with scratch(tmp_path) as made:
        yield made


@pytest.fixture
def count():
    """Call it with (what was done, what was seen)."""
    return lambda what, seen: _said.append(f"{what}: {seen}")


def pytest_sessionfinish(session):
    """With several processes, each hands over what it counted."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["damage"] = list(_said)


def pytest_terminal_summary(terminalreporter):
    if _said:
        terminalreporter.section("damage")
        for line in _said:
            terminalreporter.line(line)
