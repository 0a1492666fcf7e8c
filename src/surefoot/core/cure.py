"""What helps against a stop, as data: what an operator can do. A stop is recorded with it, an error carries it.

A closed set of three kinds. A `Command` names a verb of the command line and its arguments as fields, an `Edit` is a
change of the user's code, and `Advice` is anything else. No shell text is made here: `view/words.py` renders a cure as a
line to paste or as an object for programs, and a console may render it as a button.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from surefoot import errors


class Ask(Struct, frozen=True, forbid_unknown_fields=True):
    """A part that only the reader can supply, named in capitals: `JSON`, `TEXT`."""

    ask: str


JSON: Final = Ask("JSON")
APP: Final = Ask("MODULE")
"""The module with the code. The code that renders the command may know it."""
NEW_ID: Final = Ask("NEW")
ANY_RUN: Final = Ask("ID")
TEXT: Final = Ask("TEXT")

Verb = Literal[
    "accept", "adopt", "answer", "approve", "backup", "copy", "deny", "doctor", "inspect", "match", "repair", "restore",
    "settle", "verify", "worker", "runs", "runs cancel", "runs fork", "runs release", "runs resume", "runs retry", "runs rewind", "runs show",
]  # fmt: skip
Given = str | bool | Ask | tuple[str, ...]


class Command(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, tag_field="kind", tag="command"):
    """A verb of the command line. `str()` gives the line to paste, without a store."""

    when: str
    verb: Verb
    run: str | Ask = ""
    address: str = ""
    """The recorded call that the command is about; `*`: all of them."""
    options: dict[str, Given] = {}
    first: str = ""
    """What has to be done before it, in words."""

    def __str__(self) -> str:
        return errors.in_words(self, "")


class Edit(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, tag_field="kind", tag="edit"):
    """A line of Python, and the place where it belongs: `on pay`, `in the module`."""

    when: str
    code: str
    at: str = ""


class Advice(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, tag_field="kind", tag="advice"):
    """Any other help, in words."""

    when: str
    do: str


Cure = Command | Edit | Advice
Cures = tuple[Cure, ...]


def command(
    verb: Verb, run: str | Ask = "", address: str = "", /, *, when: str = "", first: str = "", **options: Given
) -> Command:
    """The options as the command line has them: `not_happened=True`, `is_="pay#2"`. Empty options are left out."""
    given = {name.rstrip("_"): value for name, value in options.items() if value}
    return Command(when, verb, run, address, given, first)


NEWER_VERSION: Final = Advice("use", "the version of surefoot that wrote it, or a newer one")
ADOPT: Final = command("adopt", reason=TEXT, when="really lost?")
"""For a store that is older than it once was."""
