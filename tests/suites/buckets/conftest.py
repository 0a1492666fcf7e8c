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


def emptied(url):
    """An empty prefix of that bucket."""
    return url.replace("/shop?", f"/shop{next(_numbers)}?")


@pytest.fixture
def bucket(seaweed):
    """The URL of an empty prefix of a bucket that keeps conditions."""
    return emptied(seaweed)


@pytest.fixture(params=["moto", "seaweed"])
def either(request):
    """For one request after the other. moto compares and writes in two steps: of writers at once, several may win."""
    return emptied(request.getfixturevalue(request.param))
