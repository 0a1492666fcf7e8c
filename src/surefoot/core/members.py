"""Enums whose members mean something else now: recorded by name, sent by value.

A recorded member comes back by its name. But what was asked for, done and shown had the value of then. With another
value, the argument differs, a retry under a used key would be another request, and an undo would take back something
else.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterator
from typing import Any

import msgspec

from surefoot.core import registry
from surefoot.core.encoder import Refused, Walk
from surefoot.core.forms import MAX_DEPTH, load


def changed_members(raw: bytes | msgspec.Raw, *, without: Collection[str] = ()) -> list[str]:
    """The members in recorded values whose value differs today: `Currency.EUR: "eur" -> "EUR"`.

    `without`: arguments that do not count.
    """
    data = bytes(raw)
    if b'"$type"' not in data or b'"value"' not in data:
        return []
    tree = load(data)
    if without and type(tree) is dict:
        tree = {name: item for name, item in tree.items() if name not in without}
    return list(dict.fromkeys(_changed(tree)))


def _changed(node: Any) -> Iterator[str]:
    if type(node) is list:
        for item in node:
            yield from _changed(item)
    elif type(node) is dict:
        for item in node.values():
            yield from _changed(item)
        if node.keys() == {"$type"}:
            yield from _of_member(node["$type"])


def _of_member(content: Any) -> Iterator[str]:
    if type(content) is not list or len(content) != 3 or type(content[1]) is not str or type(content[2]) is not dict:
        return
    name, member, about = content
    known = registry.known(name)
    if "value" not in about or known is None or not issubclass(known.cls, enum.Enum):
        return
    now = known.cls.__members__.get(member)
    if now is None:
        return  # Reading it raises SchemaMismatch.
    try:
        value = Walk().tag(now.value, MAX_DEPTH)
    except Refused:
        value = "<what cannot be stored>"
    if type(value) is not type(about["value"]) or value != about["value"]:
        yield f"{name}.{member}: {_shown(about['value'])} -> {_shown(value)}"


def _shown(value: Any) -> str:
    return msgspec.json.encode(value).decode()[:100]
