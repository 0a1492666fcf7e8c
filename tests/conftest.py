"""What holds for every test: a folder of its own, no settings from outside, no surprise from a slow machine."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import settings

# A deadline would turn a busy machine into a failed test; pytest-timeout still bounds the whole test.
settings.register_profile("surefoot", deadline=None, max_examples=100, print_blob=True)
settings.load_profile("surefoot")

# Whoever is started in the background of a script ignores Ctrl-C, and hands that down to every process it starts: those
# that are interrupted here would not notice.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """A test that forgets to name its store must not write into the project, nor read a neighbour's."""
    for name in [name for name in os.environ if name.startswith("SUREFOOT_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def nothing_on_its_way(monkeypatch):
    """The effects of tests land at once or not at all, and die with their process; those about the wait say otherwise."""
    from surefoot.engine.config import settings as chosen

    monkeypatch.setattr(chosen, "in_flight_seconds", 0.0)


_counted: list[str] = []
"""With several processes, what each of them counted is said once, at the end."""


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    _counted.extend(getattr(node, "workeroutput", {}).get("damage", []))


def pytest_terminal_summary(terminalreporter):
    if _counted:
        terminalreporter.section("damage")
        for line in _counted:
            terminalreporter.line(line)
