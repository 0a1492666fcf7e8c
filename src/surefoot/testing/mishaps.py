"""Failures besides a kill, after which the process is still alive.

A kill ends a process. These strike once, at one boundary, and the run goes on as the engine decides: the answer of an
effect is lost after it has acted, an operation inside an effect fails after others have succeeded, others edit a
file. Only real failures of that point are played: a failure invented by the kit would be no mistake of the code.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path
from typing import Final

from surefoot.core.clients import Known, known
from surefoot.core.proof import NotDoneTypes
from surefoot.engine.declare.call_spec import CallSpec
from surefoot.engine.process.config import settings
from surefoot.errors import Fatal, NotDone

LOST: Final = "lost"
"""The function has returned, and instead of its result an exception arrives: a time-out, or one of `lost_answers`."""
FAILS: Final = "fails"
"""The function's next operation fails, after it has already done something: disk full, connection refused."""
LATE: Final = "late"
"""Killed, and the request or program that the function had started lands later, after the check has run."""
EDITED: Final = "edited"
"""Others edit the files that the run relies on: while a person is asked, or while an effect is in doubt."""
MISHAPS: Final = (LOST, FAILS, LATE, EDITED)
MARK: Final = "edited by somebody else (the testing kit)"
USUAL: Final = TimeoutError.__name__
_OURS: Final = "surefoot."
_ON_THE_WAY: Final = frozenset({TimeoutError, ConnectionResetError, ConnectionAbortedError, BrokenPipeError})
"""Built-in exceptions that a network gives after the request was sent."""
_BY: Final = "(by the testing kit)"
_WORDS: Final = f"the answer was lost {_BY}"


def sort_of(how: str) -> str:
    """The sort of a mishap: `lost-ReadTimeout` is a lost answer."""
    return how.partition("-")[0]


def lost_answers(spec: CallSpec) -> dict[str, Exception]:
    """The exceptions that may be raised instead of a lost result, by name.

    A time-out always. A class that the effect names in `not_done=` only if a network raises it then: known as
    unsure and named itself, or so broad that it includes every OSError. Of any other class the kit cannot know whether
    it is raised after acting: that shows when it happens.
    """
    found: dict[str, Exception] = {USUAL: TimeoutError(_WORDS)}
    if str(spec.fn.__module__).startswith(_OURS):
        return found
    for named in spec.not_done or ():
        if issubclass(OSError, named):
            found[OSError.__name__] = _os_error(errno.EHOSTUNREACH)
        elif (error := _made(named)) is not None and known(error) is Known.UNSURE:
            found[named.__name__] = error
    return found


def _made(named: type[BaseException]) -> Exception | None:
    """An instance of that class; None if it is no network exception, or cannot be made by hand."""
    if named.__module__ == "builtins" and named not in _ON_THE_WAY:
        return None
    try:
        made = named(_WORDS)
    except Exception:  # noqa: BLE001 - whatever its constructor wants, it is not ours to guess
        return None
    return made if isinstance(made, Exception) else None


def failure(event: str) -> Exception:
    """A possible failure of the operation behind an audit event."""
    if event == "socket.connect":
        return _os_error(errno.ECONNREFUSED)
    if event == "sqlite3.connect":
        return sqlite3.OperationalError(f"unable to open database file {_BY}")
    if event.partition(".")[0] in ("ftplib", "http", "imaplib", "smtplib", "socket"):
        return _os_error(errno.ECONNRESET)
    return _os_error(errno.ENOSPC)


def _os_error(number: int) -> OSError:
    """An OSError of Python's class for that number."""
    return OSError(number, f"{os.strerror(number)} {_BY}")


def edit(path: str) -> None:
    """Edit like another program would: add a line."""
    with open(path, "a", encoding="utf-8") as file:
        file.write(f"{MARK}\n")


def is_edited(path: Path) -> bool:
    """Whether the edit is still there."""
    return path.is_file() and MARK.encode() in path.read_bytes()


def bound_of(spec: CallSpec) -> str:
    """The declaration of how long a call that was cut off may still be on its way."""
    timeout = "" if spec.timeout is None else f"timeout={spec.timeout:g}"
    in_flight = "" if spec.in_flight is None else f'in_flight="{spec.in_flight:g}s"'
    if timeout or in_flight:
        return " with ".join(filter(None, (timeout, in_flight)))
    return f'sf.configure(in_flight="{settings.in_flight_seconds:g}s")'


def why_believed(error: BaseException, not_done: NotDoneTypes) -> str:
    """The proof that nothing was done, if an effect ended with an exception that proves it."""
    name = type(error).__name__
    if isinstance(error, Fatal | NotDone):
        return f"sf.{name} says that nothing was done"
    found = known(error)
    if found in (Known.NOT_SENT, Known.REFUSED):
        return f"{name} counts as proof ({found.value})"
    named = [one.__name__ for one in not_done or () if isinstance(error, one)]
    return f"not_done={named[0]} says that nothing was done" if named else f"{name} counts as a guard clause"
