"""Secrets are not recorded: a recorded value is completed with those that the value at hand has in the same places.

All else stays as recorded. Where the value at hand has no such place, or where it is unclear which of its secrets
belongs there (a set; a list whose items were exchanged), there is no answer: another secret would be a guess.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from surefoot.core.forms import Secret, dump_sorted


class NoPlace(Exception):
    """The value at hand has no secret where the recorded one has."""


def filled(recorded: Any, now: Any, secrets: Sequence[Secret[Any]]) -> Any:
    """A recorded tree with secrets in it. `now`: the tree of the value at hand, in which they are numbered."""
    if not _hides(recorded):
        return recorded
    if type(recorded) is not type(now):
        raise NoPlace
    if type(recorded) is list:
        return _items(recorded, now, secrets)
    tag = next(iter(recorded))
    if tag[:1] != "$":
        return {key: filled(item, _at(now, key), secrets) for key, item in recorded.items()}
    return {tag: _content(tag, recorded[tag], _at(now, tag), secrets)}


def _content(tag: str, recorded: Any, now: Any, secrets: Sequence[Secret[Any]]) -> Any:
    match tag:
        case "$secret":
            return secrets[now]
        case "$tuple":
            return _items(recorded, now, secrets)
        case "$type" if recorded[0] == now[0]:
            (name, parts, *about), (_, others, *more) = recorded, now
            facts = [filled(about[0], more[0] if more else {}, secrets)] if about else []
            return [name, filled(parts, others, secrets), *facts]
        case "$dict" if not any(_hides(key) for key, _ in recorded):
            known = {dump_sorted(key): item for key, item in now}
            return [[key, filled(item, _at(known, dump_sorted(key)), secrets)] for key, item in recorded]
    raise NoPlace


def _items(recorded: list[Any], now: list[Any], secrets: Sequence[Secret[Any]]) -> list[Any]:
    """If several items have secrets, only the data around the secrets distinguishes the items."""
    if len(recorded) != len(now):
        raise NoPlace
    pairs = list(zip(recorded, now, strict=True))
    several = sum(_hides(item) for item in recorded) > 1
    if several and not all(_alike(item, other) for item, other in pairs if _hides(item)):
        raise NoPlace
    return [filled(item, other, secrets) for item, other in pairs]


def _at(now: Any, key: Any) -> Any:
    if key not in now:
        raise NoPlace
    return now[key]


def _hides(node: Any) -> bool:
    if type(node) is dict:
        return "$secret" in node or any(map(_hides, node.values()))
    return type(node) is list and any(map(_hides, node))


def _alike(recorded: Any, now: Any) -> bool:
    """Whether they are the same except for the numbers of secrets."""
    if type(recorded) is not type(now):
        return False
    if type(recorded) is list:
        return len(recorded) == len(now) and all(map(_alike, recorded, now))
    if type(recorded) is dict:
        if recorded.keys() != now.keys():
            return False
        return "$secret" in recorded or all(_alike(item, now[key]) for key, item in recorded.items())
    return bool(recorded == now)
