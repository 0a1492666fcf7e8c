"""Stops in words, and as objects for programs: what helps, and what has changed outside.

Below this layer a cure and a drift are data; only this file knows how to write a command that works when pasted.
`surefoot/__init__.py` passes `told` to `errors.py`, so that every error has the same text everywhere.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec import Struct

from surefoot.core.cure import APP, JSON, Advice, Ask, Command, Cure, Edit, Given
from surefoot.core.entry import Drift, Stop
from surefoot.core.expectation import ACCEPTED, UNSEEN
from surefoot.core.urls import DEFAULT_STORE

UNKNOWN_APP: Final = APP.ask
"""The placeholder in a command for the module with the code, if none was named."""
_BARE: Final = {
    "accept": "witness", "answer": "value", "backup": "path", "inspect": "path", "worker": "app",
}  # fmt: skip
"""The option of a verb that is written without its name."""
_BY_PATH: Final = "inspect"
"""This verb names a file, and needs no store."""


class Help(Struct, frozen=True):
    """A cure for people: when, and what to do. `facts`: the same for `--json`."""

    when: str
    do: str
    facts: dict[str, Any]


def told(data: Cure | Drift | Stop, store: str = "", app: str = UNKNOWN_APP) -> str:
    """The text for people. `store`: the URL of its store; `app`: the module with the code, if it is known."""
    match data:
        case Command():
            line = command_text(data, store, app)
            return f"{data.first}, then {line}" if data.first else line
        case Edit():
            return f"{data.code} {data.at}".rstrip()
        case Advice():
            return data.do
        case Drift():
            return _line(data)
        case Stop():
            return "\n  ".join([data.message, *_findings(data)])


# --- what helps ------------------------------------------------------------------------------------


def helps(cure: Cure, store: str = "", app: str = UNKNOWN_APP) -> Help:
    do = told(cure, store, app)
    facts: dict[str, Any] = {"when": cure.when, "do": do}
    if isinstance(cure, Command):
        facts |= {"verb": cure.verb, "arguments": _arguments(cure), "command": command_text(cure, store, app)}
    elif isinstance(cure, Edit):
        facts |= {"code": cure.code}
    return Help(cure.when, do, facts)


def command_text(cure: Command, store: str = "", app: str = UNKNOWN_APP) -> str:
    """A command that works when pasted: with its store where that is not the default one."""
    words = ["surefoot", cure.verb]
    words += [_written(value, app) for value in (cure.run, cure.address) if value]
    app = app.partition(":")[0] if cure.verb == "worker" else app
    for name, value in cure.options.items():
        words += _option(name, value, app) if name != _BARE.get(cure.verb) else [_written(value, app)]
    if store not in ("", DEFAULT_STORE) and cure.verb != _BY_PATH:
        words += ["--store", shlex.quote(store)]
    return " ".join(words)


def _option(name: str, value: Given, app: str) -> Iterator[str]:
    flag = f"--{name.replace('_', '-')}"
    for each in value if isinstance(value, tuple) else (value,):
        yield flag if each is True else f"{flag} {_written(each, app)}"


def _written(value: Given, app: str) -> str:
    if value == JSON:
        return f"'{JSON.ask}'"  # In quotes, as a value has to be written.
    if value == APP:
        return shlex.quote(app)
    return value.ask if isinstance(value, Ask) else shlex.quote(str(value))


def _arguments(cure: Command) -> dict[str, Any]:
    given = {"run": cure.run, "address": cure.address, **cure.options}
    found: dict[str, Any] = msgspec.to_builtins({name: value for name, value in given.items() if value})
    return found


# --- what has changed outside -------------------------------------------------------------------------


def _findings(stop: Stop) -> Iterator[str]:
    yield from map(_line, stop.drift)
    if more := stop.facts.get("more"):
        yield f"… and {more} more"
    if folder := stop.facts.get("folder"):
        yield f"relative paths: recorded in {folder}, looked for in {stop.facts['looked_in']}"


def _line(found: Drift) -> str:
    if found.what == UNSEEN:
        return f"{found.witness}: cannot be observed: {found.actual}"
    by = found.by if found.by.startswith(ACCEPTED) else f"recorded by {found.by}"
    return f"{found.part}: {found.what} (expected {_short(found.expected)}, {by}; found {_short(found.actual)})"


def _short(value: str) -> str:
    """The beginning of a hash is enough to distinguish it from another."""
    head, _, rest = value.partition(" ")
    return f"{head[:12]}… {rest}".strip() if len(head) > 16 else value
