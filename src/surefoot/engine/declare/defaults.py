"""Defaults in force: what a function takes for parameters that its caller leaves out, as recorded and as it comes back.

A default is part of what is executed, and the code may have another one by the time of a retry, a check or an undo. So
defaults are recorded beside the arguments (not in their digest: a new parameter is no change), and a call that is on
record is made with those it was recorded with.

Where today's default is the recorded one, the function takes its own: a sentinel that is compared with `is` keeps working.
What cannot be stored (a private `object()`, a function, a client) is part of the code, and is not recorded; a secret is
recorded as `***`. Of both, today's are taken; what is recorded around a secret stays as recorded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import Enum
from typing import Any, Final

import msgspec
from msgspec import Raw

from surefoot.core import values
from surefoot.core.entry import NOTHING
from surefoot.core.secret_places import NoPlace
from surefoot.errors import SurefootError, ValueRejected

_DOLLAR: Final = ord("$")
FIXED: Final = frozenset({str, int, float, bool, type(None), bytes})
"""Values of these types cannot be changed in place, so they need no copy."""
_MOST_KNOWN: Final = 64
"""Ways to call a function that are kept ready."""


class Unrepeatable(Exception):
    """Parameters for which the code at hand cannot be given what is on record."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(names)
        super().__init__(", ".join(self.names))


class Gone(Unrepeatable):
    """They were recorded with a default, and today's function no longer has them."""


class Unplaced(Unrepeatable):
    """A secret was in them, which is not recorded, and today's value has none there."""


def completed(name: str, recorded: Raw | bytes, today: Any) -> Any:
    """What is recorded for a parameter, with the secrets that today's value has there. All else is as recorded."""
    try:
        return today if values.encode(today) == bytes(recorded) else values.with_secrets(recorded, today)
    except NoPlace:
        raise Unplaced([name]) from None


class Defaults:
    """Those of one signature, without what `ignore=` names."""

    def __init__(self, parameters: Iterable[str], optional: Mapping[str, Any], ignored: Iterable[str]) -> None:
        self._parameters = frozenset(parameters)
        self._ignored = frozenset(ignored)
        self._optional = {name: value for name, value in optional.items() if name not in self._ignored}
        self._fixed: dict[str, bytes | None] = {}
        """Of defaults that cannot change while the process runs: their stored form; None: there is none."""
        self._known: dict[tuple[Any, ...], Raw] = {}
        self._ours: set[bytes] = set()
        """Stored forms that say what today's code says."""

    def __bool__(self) -> bool:
        return bool(self._optional)

    def left_out(
        self, names: tuple[str, ...], keywords: frozenset[str], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Raw:
        """The stored form of those that this call leaves out. `names`: of the parameters that `args` stand for, and
        `keywords`: of those that `kwargs` may.
        """
        if not self._optional:
            return NOTHING
        shape = (len(args), *kwargs)
        found = self._known.get(shape)
        return (
            found if found is not None else self._stored(shape, {*names[: len(args)], *keywords.intersection(kwargs)})
        )

    def _stored(self, shape: tuple[Any, ...], passed: set[str]) -> Raw:
        left = [name for name in self._optional if name not in passed]
        forms = {name: form for name in left if (form := self._form(name)) is not None}
        raw = Raw(msgspec.json.encode({name: Raw(form) for name, form in forms.items()})) if forms else NOTHING
        if len(self._known) < _MOST_KNOWN and all(name in self._fixed for name in left):
            self._known[shape] = raw
            self._ours.add(bytes(raw))
        return raw

    def today(self) -> Raw:
        """The stored form of all of them, whether a call leaves them out or not."""
        return self._stored((), set())

    def _form(self, name: str) -> bytes | None:
        if name in self._fixed:
            return self._fixed[name]
        value = self._optional[name]
        form = _stored_form(value)
        if form is None or _is_fixed(value):
            self._fixed[name] = form
        return form

    def others(
        self, recorded: Raw | bytes, passed: Collection[str] = (), *, may_be_gone: bool = False
    ) -> dict[str, Any]:
        """The recorded ones that are not today's, each a fresh object. `Unrepeatable` if it cannot be given one.

        `passed`: parameters that the call does not leave out.
        """
        data = bytes(recorded)
        if data == b"null" or data in self._ours:
            return {}
        forms = msgspec.json.decode(data, type=dict[str, Raw])
        gone = [name for name in forms if name not in self._parameters]
        if gone and not (may_be_gone or self._are_renamed(gone, forms, passed)):
            raise Gone(gone)
        return {
            name: self._as_recorded(name, form) for name, form in forms.items() if self._is_other(name, bytes(form))
        }

    def _as_recorded(self, name: str, form: Raw) -> Any:
        return completed(name, form, self._optional[name]) if hides(form) else values.decode(form)

    def _are_renamed(self, gone: list[str], forms: Mapping[str, Raw], passed: Collection[str]) -> bool:
        """Whether they only have other names today: as many others that are left out, with the same defaults in order."""
        came = [name for name in self._optional if name not in forms and name not in passed]
        return [self._form(name) for name in came] == [bytes(forms[name]) for name in gone]

    def _is_other(self, name: str, recorded: bytes) -> bool:
        if name in self._ignored or name not in self._parameters:
            return False
        if hides(recorded) and name not in self._optional:
            return False  # It has to be passed now.
        return name not in self._optional or self._form(name) != recorded


def hides(raw: Raw | bytes) -> bool:
    """Whether there is a secret in it: then what is recorded is not what the function needs."""
    data = raw if type(raw) is bytes else bytes(raw)
    return _DOLLAR in data and b'"$secret"' in data  # Looking for one byte first is several times as fast.


def _stored_form(value: object) -> bytes | None:
    """None if it cannot be stored, or not be read back."""
    try:
        form = values.encode(value)
        values.decode(form)
    except (ValueRejected, SurefootError):
        return None
    return form


def _is_fixed(value: object) -> bool:
    if type(value) in (tuple, frozenset):
        return all(map(_is_fixed, value))  # type: ignore[call-overload]
    return type(value) in FIXED or isinstance(value, Enum)
