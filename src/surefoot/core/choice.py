"""Options that take one of a few words. A word that is none of them is refused where it is given, with the nearest one.

The words of an option are its type, so that a type checker refuses a wrong one in the editor. The same type is asked at
run time: found there it is a typing error on somebody's screen; found later it is a run that does something else at night.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeVar, get_args

from surefoot.errors import UsageError

W = TypeVar("W")

OnCrash = Literal["ask", "retry", "check", "fail"]
OnChange = Literal["auto", "keep", "rerun", "stop"]
OnEffectChange = Literal["auto", "keep", "stop"]  # An effect is never executed again for other arguments.
OnCorruption = Literal["fallback", "stop"]
OnDriftWord = Literal["stop", "warn", "accept"]
OnError = Literal["raise", "collect"]
OnFailure = Literal["fail", "stop"]
OnTimeout = Literal["deny", "approve", "raise"]
Approval = Literal["declared", "every", "never"]


def one_of(given: W, option: Any, what: str, *, more: str = "") -> W:
    """The word, if it is one of this type's. `what` names the option as people write it: `effect pay: on_crash`."""
    words = get_args(option)
    if isinstance(given, str) and given in words:
        return given
    raise UsageError(f"{what}={given!r:.100} is none of {', '.join(map(repr, words))}{more}.{_meant(given, words)}")


def yes_or_no(given: object, what: str, *, hint: str = "") -> bool:
    """A switch is on or off: any other word would count as on, whatever it says."""
    if isinstance(given, bool):
        return given
    raise UsageError(f"{what}={given!r:.100}: must be True or False.{f' {hint}' if hint else ''}")


def _meant(given: object, words: Sequence[str]) -> str:
    from difflib import get_close_matches  # only needed for a word that is misspelt

    close = get_close_matches(given.lower(), words, n=1, cutoff=0.5) if isinstance(given, str) else []
    return f" Did you mean {close[0]!r}?" if close else ""
