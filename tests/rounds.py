"""One round of a value, and one series of hostile inputs: what `make test` and `make proof` do in other numbers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from surefoot.core import values
from surefoot.core.parts import cut, expand
from tests.exact import same


def round_trip(value: Any) -> None:
    """There and back, whole and by parts, exactly."""
    raw = values.encode(value)
    back = values.decode(raw)
    assert same(value, back)
    assert values.encode(back) == raw
    assert values.digest(back) == values.digest(value)
    pieces = cut(raw)
    parts = {part.id: part for part in pieces.parts()}
    assert expand(pieces.reference, lambda ids: {name: parts[name] for name in ids}) == raw


def hostile_inputs(count: int, *, seed: int) -> dict[str, Any]:
    """In a process of its own, since an audit hook stays for ever."""
    ended = subprocess.run(
        [sys.executable, "-m", "tests.hostile", str(count), str(seed)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(ended.stdout)
    return found
