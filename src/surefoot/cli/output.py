"""The two streams: answers go to standard output, everything else to standard error.

Text from data is made visible before it gets here or on its way (`view.text`); nothing recorded can act on
the terminal of the reader.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import IO, TYPE_CHECKING

from surefoot.cli.options import Settings

if TYPE_CHECKING:
    from surefoot.view.facts import Facts
    from surefoot.view.words import Help


def never_fail_on_characters() -> None:
    """A terminal that cannot show a character gets an escape, not a crash."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def say(line: str = "") -> None:
    """An answer, for standard output."""
    _write(sys.stdout, line)


def tell(*lines: str) -> None:
    """Anything else, for standard error."""
    for line in lines:
        _write(sys.stderr, line)


def say_json(value: Facts, *, indent: int | None = 2) -> None:
    """An object for programs, as made by `view/facts.py`. A verb makes none of its own."""
    say(_fit(json_text(value, indent=indent)))


def json_text(value: Facts, *, indent: int | None = None) -> str:
    """The same for a program that does not read standard output."""
    from surefoot.view import text

    return text.to_json(value, indent=indent)


def answer(settings: Settings, what: Facts, *lines: str) -> None:
    """The same answer for a program that asked for JSON, and for people: made visible, line by line."""
    from surefoot.view import text

    if settings.json:
        say_json(what)
        return
    for line in lines:
        say(text.visible(line))


def say_raw_json(raw: bytes) -> None:
    """A value as recorded: plain JSON, or JSON with tags where the value is not plain."""
    from surefoot.view import text

    say(_fit(text.safe_json(raw.decode("utf-8"))))


def complain(
    settings: Settings, error: BaseException, *, exit_code: int, run: str = "", more: Iterable[str] = (),
    cures: Iterable[Help] = (),
) -> int:  # fmt: skip
    """Show an error; the exit code to end with."""
    from surefoot.view import facts, trouble

    if settings.json:
        say_json(facts.failure(facts.error(error, run=run, exit_code=exit_code, cures=cures)))
    else:
        tell(*trouble.lines(error))
    tell(*more)
    return exit_code


def _fit(json_text: str) -> str:
    """If the stream supports only some characters, the others are written as JSON escapes."""
    import json

    if (sys.stdout.encoding or "utf-8").lower().replace("-", "") == "utf8" or json_text.isascii():
        return json_text
    return "".join(char if char.isascii() else json.dumps(char)[1:-1] for char in json_text)


def _write(stream: IO[str], line: str) -> None:
    stream.write(line + "\n")
    stream.flush()
