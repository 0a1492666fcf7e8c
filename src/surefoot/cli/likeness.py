"""Whether a value that a person gives for an effect looks like earlier results of the same effect in this run.

If the code is at hand, its annotation decides (`engine/operate/return_type.py`). Without it there is only the journal:
it cannot prove that a value is right, but a text where there were always objects is most likely a typing error, and
the workflow would find that only after the answer is on record.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from surefoot.core import values
from surefoot.core.entry import NOTHING
from surefoot.core.history import PastState

if TYPE_CHECKING:
    from surefoot.engine.operate.handle import Run

_KINDS = {bool: "true or false", int: "a number", float: "a number", str: "a text", list: "a list", dict: "an object"}


def unlike(run: Run, address: str, value: Any) -> str:
    """How it differs from all earlier results of the effect; empty: it does not, or there are none."""
    before = list(_given_before(run, address))
    if not before:
        return ""
    given = json.loads(values.encode(value))
    kinds = dict.fromkeys(_kind(one) for _, one in before)
    last = before[-1][0]
    if _kind(given) not in kinds:
        return f"this is {_kind(given)}, and what it gave before was {' or '.join(kinds)} ({last})"
    missing = _in_all([one for _, one in before if _kind(one) == "an object"]) - set(given if _is_object(given) else ())
    if _is_object(given) and missing:
        return f"this has no {', '.join(sorted(missing))}, which everything that it gave before has ({last})"
    return ""


def _given_before(run: Run, address: str) -> Iterable[tuple[str, Any]]:
    """The results that other calls of the same name returned themselves: a value given by a person proves nothing."""
    for past in run.state().effects():
        returned = past.state is PastState.DONE and not past.learned_by
        if returned and past.address != address and _name(past.address) == _name(address):
            yield past.address, json.loads(bytes(run.whole(past.value or NOTHING)))


def _name(address: str) -> str:
    """`[src/a.py]/write#3` -> `write`."""
    return address.rpartition("/")[2].rpartition("#")[0]


def _kind(data: Any) -> str:
    if data is None:
        return "null"
    if not isinstance(data, dict) or _is_object(data):
        return _KINDS[type(data)]
    (tag, content), *_ = data.items()
    return f"a {content[0]}" if tag == "$type" else f"a value with {tag}"


def _is_object(data: Any) -> bool:
    """A plain object, not a class, a tuple, a path and the like, which are written with a tag."""
    return isinstance(data, dict) and not any(name.startswith("$") for name in data)


def _in_all(objects: list[dict[str, Any]]) -> set[str]:
    return set.intersection(*map(set, objects)) if objects else set()
