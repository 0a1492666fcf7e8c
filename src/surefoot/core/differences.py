"""Where two recorded values differ, for a person who has to decide whether that matters.

The stored forms (tagged JSON) are compared: no code of the user runs, and what is recorded as `***` stays `***`.
At most a few places are named, each with a little of the text around the change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import msgspec
from msgspec import Struct

from surefoot.core.visible import visible

MOST_PLACES: Final = 5
AROUND: Final = 24
"""Characters that are shown on each side of a change."""
_RANDOM: Final = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}|[0-9a-fA-F]{16,}")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d|1[0-9]{9}(\.\d+)?|1[0-9]{12}")
_ABSENT: Final = object()
_IDENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Change(Struct, frozen=True):
    """One place at which they differ."""

    path: str
    """As written in code: `messages[0].content`."""
    before: str
    now: str

    def line(self) -> str:
        return f"{self.path}: {self.before} -> {self.now}"


def changes(recorded: bytes, asked: bytes) -> list[Change]:
    """The first places at which two stored values differ."""
    return list(islice(_walk("", _loaded(recorded), _loaded(asked)), MOST_PLACES))


def hints(recorded: bytes, asked: bytes) -> list[str]:
    """Hints, if a difference looks like a common mistake."""
    before, now = _loaded(recorded), _loaded(asked)
    found = changes(recorded, asked)
    told = [_hint(one) for one in found] if len(found) == 1 else []
    if _same_items(before, now):
        told.append("the same items in another order: was a set, a dict or a folder iterated?")
    return [hint for hint in told if hint]


def _loaded(raw: bytes) -> Any:
    try:
        return msgspec.json.decode(raw)
    except msgspec.DecodeError:
        return raw.decode("utf-8", "replace")


def _walk(path: str, before: Any, now: Any) -> Iterator[Change]:
    if type(before) is not type(now):
        yield _change(path, before, now)
    elif _is_object(before) and _is_object(now) and before["$type"][0] == now["$type"][0]:
        (_, parts, *about), (_, others, *more) = before["$type"], now["$type"]
        yield from _walk(path, parts, others)
        yield from _walk(path, about[0] if about else {}, more[0] if more else {})
    elif isinstance(before, dict):
        for key in {**before, **now}:
            yield from _below(_member(path, key), before.get(key, _ABSENT), now.get(key, _ABSENT))
    elif isinstance(before, list):
        for index in range(max(len(before), len(now))):
            old = before[index] if index < len(before) else _ABSENT
            new = now[index] if index < len(now) else _ABSENT
            yield from _below(f"{path}[{index}]", old, new)
    elif before != now:
        yield _change(path, before, now)


def _is_object(node: Any) -> bool:
    """An object of a class: its name, its fields, and other known facts, such as the value of an enum's member."""
    found = node.get("$type") if isinstance(node, dict) and len(node) == 1 else None
    return isinstance(found, list) and len(found) in (2, 3)


def _below(path: str, before: Any, now: Any) -> Iterator[Change]:
    if before is _ABSENT or now is _ABSENT:
        yield Change(path, _whole(before), _whole(now))
    else:
        yield from _walk(path, before, now)


def _member(path: str, key: str) -> str:
    if key.startswith("$"):
        return path  # A tag of the stored form: a person thinks of the value itself.
    if not _IDENT.fullmatch(key):
        return f"{path}[{_quoted(key)}]"
    return f"{path}.{key}" if path else key


def _change(path: str, before: Any, now: Any) -> Change:
    if isinstance(before, str) and isinstance(now, str):
        return Change(path or "it", *_around(before, now))
    return Change(path or "it", _whole(before), _whole(now))


def _around(before: str, now: str) -> tuple[str, str]:
    """Both texts, cut to where they differ."""
    shortest = min(len(before), len(now))
    start = next((i for i in range(shortest) if before[i] != now[i]), shortest)
    end = 0
    while end < shortest - start and before[-1 - end] == now[-1 - end]:
        end += 1
    return _excerpt(before, start, end), _excerpt(now, start, end)


def _excerpt(text: str, start: int, end: int) -> str:
    stop = len(text) - end
    low, high = max(0, start - AROUND), min(len(text), stop + AROUND)
    if stop - start > 4 * AROUND:
        shown = text[low : start + 2 * AROUND] + "…" + text[stop - AROUND : high]
    else:
        shown = text[low:high]
    return _quoted(f"{'…' if low else ''}{shown}{'…' if high < len(text) else ''}")


def _quoted(text: str) -> str:
    return f'"{visible(text)}"'


def _whole(value: Any) -> str:
    if value is _ABSENT:
        return "not there"
    text = visible(msgspec.json.encode(value).decode("utf-8", "replace"))
    return text if len(text) <= 4 * AROUND else f"{text[: 3 * AROUND]}… ({len(text)} characters)"


def _hint(change: Change) -> str:
    where = change.path
    if _TIME.search(change.before) and _TIME.search(change.now):
        return f"only {where} differs, and looks like a time: use sf.now()"
    if _RANDOM.search(change.before) and _RANDOM.search(change.now):
        return f"only {where} differs, and looks random: make it with sf.uuid4() or in a step, or name it in noted="
    return ""


def _same_items(before: Any, now: Any) -> bool:
    """Whether somewhere a list has the same items in another order, and nothing else differs."""
    if isinstance(before, dict) and isinstance(now, dict) and before.keys() == now.keys():
        differing = [key for key in before if before[key] != now[key]]
    elif isinstance(before, list) and isinstance(now, list) and before != now and len(before) == len(now):
        if sorted(map(_key, before)) == sorted(map(_key, now)):
            return True
        differing = [index for index in range(len(before)) if before[index] != now[index]]
    else:
        return False
    return len(differing) == 1 and _same_items(before[differing[0]], now[differing[0]])


def _key(item: Any) -> bytes:
    return msgspec.json.encode(item, order="deterministic")
