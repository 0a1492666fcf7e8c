"""A witness observes something outside and keeps the observation as a fingerprint: part -> hash.

A witness only observes: it changes nothing, remembers nothing between two observations, and takes content as evidence,
never a time. An observation that fails is not "unchanged": it raises `NotObservable`, and that is a stop, not a pass.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from surefoot.core.entry import Sight
from surefoot.core.urls import Url
from surefoot.errors import SurefootError, UsageError

LIMIT_SECONDS: Final = 10.0
"""How long a look may take without progress."""
LONGEST_SECONDS: Final = 3600.0
"""How long a look with progress may take: hashing much data takes time, but at most this."""
_MAX_WORDS: Final = 500


class NotObservable(SurefootError):
    """Something outside could not be observed. Whether it changed is unknown."""


class Look(Struct, frozen=True):
    """One look: the fingerprint, and its value, observed at the same time."""

    parts: dict[str, str]
    value: Any = None


class Pulse:
    """A look's sign of life: the caller gives up when the look has not called `beat` for `seconds`."""

    def __init__(self, seconds: float = LIMIT_SECONDS) -> None:
        self.seconds = seconds
        self._begun = self._last = time.monotonic()
        self._given_up = False

    def beat(self) -> None:
        """Report progress of the look. Raises if no caller waits for it any more, so that it ends."""
        self._last = time.monotonic()
        if self._given_up or self.left() <= 0:
            raise TimeoutError

    def left(self) -> float:
        """Seconds until the caller gives up."""
        now = time.monotonic()
        return min(self._last + self.seconds - now, self._begun + LONGEST_SECONDS - now)

    def give_up(self) -> None:
        self._given_up = True


class Witness:
    """The base of all witnesses. A class of your own needs a name and `look`.

    `spec` describes how to look again without the code that asked for it (`specs.py`). It is empty if only that code
    can: a function of the user, or a URL with a password in it, which is kept nowhere.
    """

    _secrets: tuple[str, ...] = ()
    """Texts that no message may contain."""

    def __init__(self, name: str, spec: dict[str, str] | None = None) -> None:
        self.name = checked_name(name)
        self.spec: dict[str, str] = spec or {}

    def __repr__(self) -> str:
        return f"<witness {self.name}>"

    def look(self, pulse: Pulse) -> Look:
        raise NotImplementedError

    def fingerprint(self) -> dict[str, str]:
        """The present state: part -> hash. `NotObservable` if that is unknown."""
        return self._seen().parts

    def value(self) -> Any:
        """What `sf.watch` returns, as plain data."""
        return self._seen().value

    def _seen(self) -> Look:
        pulse = Pulse()
        try:
            return self.look(pulse)
        except Exception as error:  # noqa: BLE001 - whatever the world or a user's function does
            why = in_words(error, pulse.seconds, self._secrets)
            # The cause may quote the URL; if there is a secret, the cause is not shown.
            raise NotObservable(f"{self.name} cannot be observed: {why}") from (None if self._secrets else error)


class Ready(Witness):
    """A ready-made witness: a function that looks, and the spec to look again."""

    def __init__(
        self, name: str | None, called: str, look: Callable[[Pulse], Look], at: Url | None = None, /, **spec: str
    ) -> None:
        """`called`: its default name. `at`: the URL that it looks at, if there is one."""
        self._look = look
        if at is not None:
            self.url, self._secrets = at, at.secrets
        spec |= {"name": name} if name and spec else {}
        super().__init__(name or called, {} if at is not None and at.is_secret else spec)

    def look(self, pulse: Pulse) -> Look:
        return self._look(pulse)


def sight(witness: Any, parts: dict[str, str]) -> Sight:
    """The observation of a witness, in recorded form."""
    return Sight(witness.name, parts, dict(getattr(witness, "spec", {})))


def checked_name(name: object) -> str:
    if not isinstance(name, str) or not name.strip() or len(name) > 1000:
        raise UsageError(f"a witness needs a name of 1 to 1000 characters, not {name!r:.100}.")
    return storable(name)


def storable(text: str) -> str:
    """The same text; refused if it cannot be recorded."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{text!a:.100}: a text with lone surrogates cannot be recorded.") from None
    return text


def text_argument(name: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise UsageError(f"{name}= takes a text, not {value!r:.100}.")
    return storable(value)


def in_words(error: BaseException, seconds: float = LIMIT_SECONDS, secrets: tuple[str, ...] = ()) -> str:
    """Why a look failed, for a person."""
    text = _words(error, seconds)
    for secret in secrets:
        text = text.replace(secret, "***")
    if len(text) > _MAX_WORDS:
        text = f"{text[:_MAX_WORDS]}…"
    return text.encode("utf-8", "backslashreplace").decode()


def _words(error: BaseException, seconds: float) -> str:
    if isinstance(error, SurefootError):
        return str(error)
    if isinstance(error, TimeoutError):
        return f"no answer within {seconds:g} s"
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if isinstance(error.filename, str) else ""
        return f"{where}{error.strerror[:1].lower()}{error.strerror[1:]}"
    message = str(error).strip()
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
