"""Buckets on real servers, and a store with runs that have ended."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import servers

from surefoot.store.open import close_all

_numbers = itertools.count()


@pytest.fixture(autouse=True)
def _keys(monkeypatch):
    for name, value in servers.KEYS.items():
        monkeypatch.setenv(name, value)
    yield
    close_all()


@pytest.fixture(scope="session")
def moto(tmp_path_factory):
    with servers.moto(tmp_path_factory.mktemp("moto")) as url:
        yield url


@pytest.fixture(scope="session")
def seaweed(tmp_path_factory):
    with servers.seaweed(tmp_path_factory.mktemp("weed")) as url:
        yield url


@pytest.fixture(scope="session")
def rclone(tmp_path_factory):
    with servers.rclone(tmp_path_factory.mktemp("rclone")) as url:
        yield url


@pytest.fixture(params=["moto", "seaweed"])
def bucket(request):
    """The URL of an empty prefix of a bucket."""
    url = request.getfixturevalue(request.param)
    return url.replace("/shop?", f"/shop{next(_numbers)}?")
