"""One run and two bodies of its workflow: the old one is cut off, the new one goes on. For tests of changed code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import surefoot as sf
from surefoot.engine.operate.preflight import Finding, check
from surefoot.engine.process.config import runtime

Body = Callable[[], Any]


class Cut(BaseException):
    """The process ends here, as far as the run can tell."""


def started(body: Body) -> None:
    """The old code, up to where it is cut off."""
    with pytest.raises(Cut):
        resumed(body)


def resumed(body: Body) -> Any:
    """Whatever the code comes to that goes on."""
    return sf.workflow(name="wf")(body).run("r")


def stopped(body: Body) -> sf.CodeChanged:
    """The stop that the code is met with."""
    with pytest.raises(sf.CodeChanged) as stop:
        resumed(body)
    return stop.value


def foreseen(body: Body) -> Finding | None:
    """What a preflight says of it."""
    sf.workflow(name="wf")(body)
    return check(runtime(None, create=False), "r")
