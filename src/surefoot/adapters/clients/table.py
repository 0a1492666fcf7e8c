"""What is known of a client: which of its methods are model calls, and what of their arguments is conversation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from surefoot.adapters.versions import Range

_DATE = re.compile(r"_20\d\d[\d_]*$")
_WORDS_OF_OURS = frozenset({"system", "developer"})


@dataclass(frozen=True)
class Method:
    """A method that asks a model, or only reads."""

    answer: str
    """What it returns, as `module:name`."""
    piece: str = ""
    """What comes of it piece by piece with `stream=True`; empty: it does not stream."""
    conversation: str = ""
    """The parameter that has the conversation; empty: all arguments are compared."""
    instructions: str = ""
    """The parameter with the instructions, beside those in the conversation."""


@dataclass(frozen=True)
class Table:
    """One client, by the package that its classes come from."""

    package: str
    extra: str
    tested: Range
    methods: Mapping[str, Method]
    harmless: frozenset[str]
    """Types of tools that only read where the model runs, or that the caller itself carries out; without their dates. Of any
    other nobody has said what it does: it may act."""
    acting_arguments: frozenset[str] = field(default_factory=frozenset)

    def acts(self, arguments: Mapping[str, Any]) -> bool:
        """Whether the answer may have acted by itself, where the model runs."""
        types = (_type(tool) for tool in arguments.get("tools") or ())
        hosted = any(_DATE.sub("", kind) not in self.harmless for kind in types)
        return hosted or any(arguments.get(name) for name in self.acting_arguments)


def split(method: Method, arguments: Mapping[str, Any]) -> tuple[Any, list[Any], dict[str, Any]]:
    """(the conversation, which is compared; our own words in it with their places; all other arguments)."""
    rest = dict(arguments)
    if not method.conversation:
        return rest, [], {}
    given = rest.pop(method.conversation, None)
    if not isinstance(given, list | tuple):
        return given, [], rest
    ours = [[place, each] for place, each in enumerate(given) if _is_ours(each)]
    return [each for each in given if not _is_ours(each)], ours, rest


def joined(conversation: Any, ours: list[Any]) -> Any:
    """The conversation with our own words in their places."""
    if not ours:
        return conversation
    found = list(conversation)
    for place, each in ours:
        found.insert(place, each)
    return found


def _type(tool: Any) -> str:
    found = tool.get("type") if isinstance(tool, Mapping) else getattr(tool, "type", None)
    return str(found or "function")


def _is_ours(message: Any) -> bool:
    role = message.get("role") if isinstance(message, Mapping) else getattr(message, "role", None)
    return role in _WORDS_OF_OURS
