"""Two runs side by side, call by call: what is the same, what differs and in what, and what only one of them has.

Calls are matched by address, and compared by what they were asked and what came of it. When, by whom, after how many
attempts and under which key does not count: those differ between any two runs.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from surefoot.core import values
from surefoot.core.entry import Kept, Value
from surefoot.core.history import Past, PastCall, PastNote, PastQuestion, PastWait
from surefoot.core.state import RunState

SAME: Final = "same"
DIFFERS: Final = "differs"
ONLY_A: Final = "only in a"
ONLY_B: Final = "only in b"


class Pair(Struct, frozen=True):
    """One address in both runs."""

    address: str
    verdict: str
    differs: list[str]
    """`kind`, `arguments`, `outcome`, `result`, `error`."""
    a: Past | None
    b: Past | None


class Comparison(Struct, frozen=True):
    differs: list[str]
    """Of the runs themselves: `workflow`, `arguments`, `outcome`, `result`, `error`."""
    calls: list[Pair]

    def count(self, verdict: str) -> int:
        return sum(pair.verdict == verdict for pair in self.calls)


def compare(a: RunState, b: RunState) -> Comparison:
    """The current segments of two runs. What only b has stands behind the call that it follows there."""
    ours, theirs = _calls(a), _calls(b)
    return Comparison(_runs(a, b), [_pair(name, ours.get(name), theirs.get(name)) for name in _merged(ours, theirs)])


def _calls(state: RunState) -> dict[str, Past]:
    """Progress and published values are notes: they are no calls."""
    return {past.address: past for past in state.calls.values() if not isinstance(past, PastNote)}


def _merged(a: dict[str, Past], b: dict[str, Past]) -> list[str]:
    before: dict[str, list[str]] = {}
    """Common address (or the beginning) -> what only b has right behind it."""
    at = ""
    for address in b:
        if address in a:
            at = address
        else:
            before.setdefault(at, []).append(address)
    merged = before.get("", [])
    for address in a:
        merged = [*merged, address, *before.get(address, [])]
    return merged


def _pair(address: str, a: Past | None, b: Past | None) -> Pair:
    if a is None or b is None:
        return Pair(address, ONLY_B if a is None else ONLY_A, [], a, b)
    told = (
        ("kind", a.kind == b.kind),
        ("arguments", _asked(a) == _asked(b)),
        ("outcome", a.state is b.state),
        ("result", _identity(a.value) == _identity(b.value)),
        ("error", a.error is None or b.error is None or _summary(a) == _summary(b)),
    )
    found = [name for name, same in told if not same]
    return Pair(address, DIFFERS if found else SAME, found, a, b)


def _asked(past: Past) -> object:
    """Arguments are compared as replay compares them; what is shown to people and waited for, by its words."""
    match past:
        case PastCall():
            return past.made_with
        case PastQuestion():
            return past.shown
        case PastWait():
            return past.name
        case _:
            return ""


def _summary(failed: Past | RunState) -> tuple[str, str] | None:
    return None if failed.error is None else values.error_summary(failed.error)


def _identity(value: Value | None) -> object:
    """A value that is kept by parts is compared by its size and SHA-256."""
    if isinstance(value, Kept):
        return value.reference.size, value.reference.digest
    return None if value is None else bytes(value)


def _runs(a: RunState, b: RunState) -> list[str]:
    workflows = [state.created.workflow if state.created else "" for state in (a, b)]
    told = (
        ("workflow", workflows[0] == workflows[1]),
        ("arguments", a.digest == b.digest),
        ("outcome", a.status == b.status),
        ("result", _identity(a.value) == _identity(b.value)),
        ("error", _summary(a) == _summary(b)),
    )
    return [name for name, same in told if not same]
