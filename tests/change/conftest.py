"""What tests of changed code share: a process that legs are forked from."""

from __future__ import annotations

import pytest

from tests.change.forms import Warm


@pytest.fixture(scope="module")
def warm():
    process = Warm()
    yield process
    process.close()
