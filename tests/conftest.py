"""What holds for every test: a folder of its own, no settings from outside, no surprise from a slow machine."""

from __future__ import annotations

import os
import signal
import sys

import pytest
from hypothesis import settings

from tests import rings

# A deadline would turn a busy machine into a failed test; pytest-timeout still bounds the whole test.
settings.register_profile("surefoot", deadline=None, max_examples=100, print_blob=True)
settings.load_profile("surefoot")

# Code that is edited within one second of its last start, and stays as long, would be the old code from its byte code.
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"

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
    from surefoot.engine.process.config import settings as chosen

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


# --- rings ---------------------------------------------------------------------------------------------

_started: set[str] = set()
"""What the test at hand has started that does not belong into the quick ring."""
_FOREIGN = {
    "subprocess.Popen": "a process",
    "os.fork": "a process",
    "os.posix_spawn": "a process",
    "socket.bind": "a server",
}


def pytest_addoption(parser):
    parser.addoption("--ring", choices=["quick"], help="Only the tests of this ring: see tests/rings.py.")


def pytest_configure(config):
    if config.getoption("--ring") == "quick":
        sys.addaudithook(lambda event, _: _started.add(_FOREIGN[event]) if event in _FOREIGN else None)


def pytest_ignore_collect(collection_path, config):
    """Files of other rings are not even imported."""
    if config.getoption("--ring") != "quick" or collection_path == rings.TESTS:
        return None
    if collection_path.is_dir():
        return (collection_path.parent == rings.TESTS and collection_path.name not in rings.QUICK) or None
    return (collection_path.name.startswith("test_") and rings.ring_of(collection_path) != "quick") or None


def pytest_collection_modifyitems(config, items):
    if config.getoption("--ring") == "quick":
        items[:] = [item for item in items if _is_quick(item)]


def _is_quick(item):
    return item.get_closest_marker("processes") is None and rings.FIXTURES.isdisjoint(item.fixturenames)


@pytest.fixture(autouse=True)
def in_its_ring(request):
    """A ring is quick as long as nobody puts something slow into it."""
    _started.clear()
    yield
    if request.config.getoption("--ring") == "quick" and _started:
        pytest.fail(f"starts {' and '.join(sorted(_started))}: mark it `processes`, or name its file in tests/rings.py")
