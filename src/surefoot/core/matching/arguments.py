"""Whether a recorded call was made with the arguments that the code passes now, as today's classes read them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from surefoot.core import values
from surefoot.core.entry import Value
from surefoot.core.history import Past, PastCall, PastEffect
from surefoot.core.matching.answers import Asked
from surefoot.core.members import changed_members
from surefoot.errors import SchemaMismatch, ValueRejected


class Arguments:
    """Compares them. What was read and digested is remembered for one replay."""

    def __init__(self, read: Callable[[Value], bytes]) -> None:
        self._read = read
        self._digests: dict[tuple[str, frozenset[str]], str] = {}
        self._other_members: dict[tuple[str, frozenset[str]], bool] = {}

    def same(self, past: Past, asked: Asked) -> bool:
        """Whether it was recorded with these arguments. Compared ones are equal; noted ones may differ."""
        if not isinstance(past, PastCall) or past.digest in (asked.digest, ""):
            return True
        if not asked.fenced and self.means_another(past, asked.noted):
            return False  # For an effect this decides about its record, not about which one it is: `Effects.find`.
        if self._digest_today(past, asked.noted) == asked.digest:
            return True
        recorded = self.recorded(past)
        renamed = recorded is not None and _is_renamed(recorded, asked, asked.noted)
        return renamed or (asked.name.endswith(".undo") and self._has_more(past, asked))

    def is_equal(self, past: Past, asked: Asked) -> bool:
        """Whether all arguments are equal, including those that are only noted."""
        recorded = self.recorded(past)
        if recorded is None:
            return False
        return values.digest(recorded) == asked.whole or _is_renamed(recorded, asked)

    def is_loose(self, past: Past, asked: Asked) -> bool:
        """Whether it is known to have been made with other arguments."""
        return past.args is not None and not self.is_equal(past, asked)

    def likest(self, pasts: Sequence[PastCall], asked: Asked) -> PastCall | None:
        """A call that was made with these arguments: all of them, or else all that are compared."""
        whole = (past for past in pasts if asked.noted and self.is_equal(past, asked))
        return next(whole, None) or next((past for past in pasts if self.same(past, asked)), None)

    def is_alike(self, past: PastCall, asked: Asked) -> bool:
        """Whether a new effect may be this record, by its arguments alone."""
        return self.same_values(past, asked) or self._says_more(past, asked)

    def same_values(self, past: PastCall, asked: Asked) -> bool:
        """Whether a call of another name was made with the same values, in the same order. Or with the same values
        after defaults are filled in for parameters that each of them left out, or after values equal to a default are
        left out.
        """
        effect = past if isinstance(past, PastEffect) else None
        if asked.digest in (past.digest, effect.executed_with if effect is not None else ""):
            return True
        recorded, now = self.recorded(past), values.again(asked.args)
        if recorded is None or _values(recorded) == _values(now):
            return recorded is not None
        theirs = [recorded, {**(self._decoded(effect.defaults if effect is not None else None) or {}), **recorded}]
        defaults = values.again(asked.defaults) or {}
        spoken = {name: value for name, value in now.items() if not _is_default(name, value, defaults)}
        ours = [now, spoken, {**defaults, **now}]
        return any(sorted(_values(their)) == sorted(_values(our)) for their in theirs for our in ours)

    def _says_more(self, past: PastCall, asked: Asked) -> bool:
        """Whether it is made with the same values, and others for parameters that have a default."""
        recorded, optional = self.recorded(past), values.again(asked.defaults) or {}
        now = {name: value for name, value in values.again(asked.args).items() if name not in optional}
        return bool(recorded) and _values(recorded or {}) == _values(now)

    def _has_more(self, past: PastCall, asked: Asked) -> bool:
        """Whether it only has additional parameters. An undo is passed all of them, those with today's defaults too."""
        recorded = self.recorded(past)
        now = iter(_values(values.again(asked.args)))
        return recorded is not None and all(value in now for value in _values(recorded))

    def has_other_names(self, past: PastCall, asked: Asked) -> bool:
        """Whether it was recorded with a parameter that the call does not have any more."""
        recorded = self.recorded(past)
        return recorded is not None and not asked.parameters.issuperset(recorded)

    def digests(self, past: PastCall, noted: frozenset[str]) -> Iterable[str]:
        """Digests of what is compared: as recorded, and as today's classes read it."""
        today = "" if self.means_another(past, noted) else self._digest_today(past, noted)
        return {past.digest, today} - {""}

    def _digest_today(self, past: PastCall, noted: frozenset[str]) -> str:
        key = (past.address, noted)
        known = self._digests.get(key)
        if known is None:
            recorded = self.recorded(past)
            known = ""
            if recorded is not None:
                known = values.digest({name: value for name, value in recorded.items() if name not in noted})
            self._digests[key] = known
        return known

    def means_another(self, past: PastCall, noted: frozenset[str]) -> bool:
        """Whether an enum's member in what is compared had another value then: it is read back by its name."""
        key = (past.address, noted)
        known = self._other_members.get(key)
        if known is None:
            known = past.args is not None and bool(changed_members(self._read(past.args), without=noted))
            self._other_members[key] = known
        return known

    def recorded(self, past: Past) -> dict[str, Any] | None:
        """The recorded arguments. None: today's classes cannot read them."""
        return self._decoded(past.args)

    def _decoded(self, recorded: Value | None) -> dict[str, Any] | None:
        try:
            found = None if recorded is None else values.decode(self._read(recorded))
        except (SchemaMismatch, ValueRejected):
            return None
        return found if isinstance(found, dict) else None


def _is_renamed(recorded: dict[str, Any], asked: Asked, noted: frozenset[str] = frozenset()) -> bool:
    """Whether only a parameter has another name: the same values in the same order. A noted value under its old name
    may differ; a value whose own name differs too is compared.
    """
    now = values.again(asked.args)
    if len(recorded) != len(now):
        return False
    for (old, before), (new, value) in zip(recorded.items(), now.items(), strict=True):
        if old != new and (old in asked.parameters or new in recorded):
            return False
        if (new not in noted or old != new) and values.digest(before) != values.digest(value):
            return False
    return True


def _is_default(name: str, value: object, defaults: dict[str, Any]) -> bool:
    return name in defaults and values.digest(defaults[name]) == values.digest(value)


def _values(arguments: dict[str, Any]) -> list[str]:
    return [values.digest(value) for value in arguments.values()]
