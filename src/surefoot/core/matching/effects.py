"""Which recorded effect the code means; a child run counts as an effect here.

A record belongs to its address, or to the call that a declaration (`was=`) or a person (`surefoot match`) names. With
other arguments it is a stop, unless a declaration lets the record stand.
"""

from __future__ import annotations

from collections.abc import Callable

from surefoot.core.address import split
from surefoot.core.history import Past, PastCall, is_rewound
from surefoot.core.matching.answers import KEEP, Answer, Asked, Changed, Held, InUse, Kept, New, Same
from surefoot.core.matching.records import Records, elsewhere
from surefoot.core.matching.search import ENDED, Search
from surefoot.core.matching.words import IS, NEW, Words, filled


class Effects(Search):
    """For one replay."""

    def __init__(self, records: Records, words: Words) -> None:
        super().__init__(records, words)
        self.names: set[str] = set()
        """Names of effects that the code has asked for."""
        self._aliased: dict[str, str] = {}
        """Old name -> the effect that declares it with `was=`."""
        self._given_away: dict[str, str] = {}
        """Recorded effect -> the call that it is, as declared by a person."""

    def find(self, asked: Asked) -> Answer:
        """However its record is found: if an enum's member in it has another value now, other arguments are asked for.

        A record without an outcome is not judged here: a person is asked, or it is not tried again
        (`engine/session/repetition.py`).
        """
        found = self._find(asked)
        if not isinstance(found, Same) or found.past.state not in ENDED:
            return found
        past = found.past
        if past.digest in (asked.digest, "") or past.kept == asked.digest:
            return found
        return self._with_others(asked, past) if self._arguments.means_another(past, asked.noted) else found

    def _find(self, asked: Asked) -> Answer:
        records = self._records
        self.names.add(asked.name)
        is_plain = not (asked.names or asked.noted or asked.on_change == KEEP or asked.name in self._aliased)
        if is_plain and records.is_used_up() and self._words.is_none:
            return New(records.free(asked), declared=asked.is_new)
        person = self._words.identity(asked)
        if person is not None and person.how == IS:
            other = records.calls.get(filled(person, asked.address))
            if other is not None and (other.address not in records.asked or other.address == asked.address):
                if other.address != asked.address:
                    self._given_away[other.address] = asked.address
                return self.as_recorded(asked, other)
        if person is not None and person.how == NEW:
            return self._declared_new(asked)
        if (displaced := self._displaced(asked)) is not None:
            return Same(records.today(displaced))
        if asked.name in self._aliased:
            return InUse(asked.name, self._aliased[asked.name])
        if asked.address in records.calls and (to := self._given_to(asked.address)):
            return self._behind_given(asked, to)
        old = next((name for name in asked.names if name in self.names), "")
        if old and records.group(asked.kind, asked.path, old):
            return InUse(old, asked.name)
        here = records.at(asked)
        if self._is_loose(asked, here):
            equal = self._holdings.equal(asked)
            if (held := self._held(equal, always=here is None)) is not None:
                return held
            alike = {past.address for past in equal}
            if here is None or here.address not in alike:
                here = next((past for past in equal if past.address not in records.asked), here)
            if here is not None and here.address not in alike and self._is_anothers(asked, here):
                return Changed(here)
        if here is None:
            return self._new_effect(asked, declared=asked.is_new)
        old = split(here.address)[1]
        if old != asked.name and asked.kind == here.kind:
            if old in self.names:
                return InUse(old, asked.name)
            self._aliased[old] = asked.name
        found = self.as_recorded(asked, here)
        if isinstance(found, Same | Kept):
            self._holdings.give(here, asked)
        return found

    # -- a record may stand for other arguments -------------------------------------------------------

    def _is_loose(self, asked: Asked, here: Past | None) -> bool:
        """Whether a record may stand for it with other arguments, so that its number does not identify it."""
        if asked.on_change == KEEP or asked.noted or (here is not None and is_rewound(here)):
            return True
        made = here.first if here is not None else 0
        person = self._words.manner_at(asked, (here or asked).address, made)
        return person is not None and person.how == KEEP

    def _is_anothers(self, asked: Asked, here: Past) -> bool:
        """Whether another branch has a record with these very arguments. Then items were inserted, removed or moved,
        and the number of the branch does not prove that this record is the call's.
        """
        person = self._words.manner(asked, here)
        if is_rewound(here) or (person is not None and person.how == KEEP):
            return False
        return self._arguments.is_loose(here, asked) and bool(self._holdings.beside(asked))

    def _held(self, equal: list[PastCall], *, always: bool) -> Held | None:
        """All records with these arguments are taken, one by a call with others. `always`: the call would be made."""
        if any(past.address not in self._records.asked for past in equal):
            return None
        held = [(past, by) for past in equal if (by := self._holdings.holder(past)) is not None]
        told = [Held(past, by, is_said=self._is_said(by)) for past, by in held]
        return next((one for one in told if always or not one.is_said), None)

    def _is_said(self, asked: Asked) -> bool:
        person = self._words.manner_at(asked, asked.address)
        return person is not None and person.how == KEEP and "*" not in person.address

    # -- what a person declared ---------------------------------------------------------------------------

    def _given_to(self, recorded: str) -> str:
        """The call that a person matched this record with, whether the code has reached that call or not."""
        return self._given_away.get(recorded) or self._words.given_to(recorded)

    def _behind_given(self, asked: Asked, to: str) -> Answer:
        """A person matched the record at its address with another call. The same call again is a mistake. For any other
        call the number does not count: the record with these arguments is its own, here, or at the address of that
        other call.
        """
        if self._arguments.same(self._records.calls[asked.address], asked):
            return InUse(asked.address, to)
        own = self._left_with(asked)
        swapped = self._records.calls.get(to)
        if own is None and isinstance(swapped, PastCall) and to not in self._records.asked:
            own = swapped if self._arguments.same(swapped, asked) else None
        return Same(self._records.today(own)) if own is not None else self._new_effect(asked, declared=asked.is_new)

    def _displaced(self, asked: Asked) -> PastCall | None:
        """A person declared a call in front of this one new: so the record with these arguments is this one's."""
        direct = self._records.calls.get(asked.address)
        if self._words.is_none or (
            direct is not None and direct.address not in self._records.asked and self._arguments.same(direct, asked)
        ):
            return None
        front = (f"{asked.path}{asked.name}#{number}" for number in range(1, asked.number))
        return self._left_with(asked) if any(map(self._words.is_new, front)) else None

    def _left_with(self, asked: Asked) -> PastCall | None:
        """A record of that name with these arguments that no call has asked for, and that no other call was given."""
        left = self._records.left(asked.kind, asked.path, asked.name)
        return self._arguments.likest([past for past in left if not self._given_to(past.address)], asked)

    def _declared_new(self, asked: Asked) -> Answer:
        """A person declared the call new, though its address may be taken. Records made since then may be its own."""
        since = self._words.new_since(asked)
        made = [past for past in self._records.left(asked.kind, asked.path, asked.name) if past.first > since]
        if not made:
            return self._new_effect(asked, declared=True, equal=self._arguments.is_equal)
        return self.as_recorded(asked, self._arguments.likest(made, asked) or made[0])

    def _new_effect(
        self, asked: Asked, *, declared: bool, equal: Callable[[Past, Asked], bool] | None = None
    ) -> Answer:
        """Its own number; or a free one, if that belongs to another call. It may already have a record from before."""
        counted = [(path, name) for path, name, is_counted in elsewhere(asked) if is_counted]
        for path, name in [(asked.path, asked.name), *counted]:
            if f"{path}{name}#{asked.number}" not in self._records.calls:
                continue
            later = self._records.left(asked.kind, path, name, behind=asked.number)
            own = self._arguments.likest([past for past in later if equal is None or equal(past, asked)], asked)
            if own is not None:
                if name != asked.name:
                    self._aliased[name] = asked.name
                return Same(self._records.today(own))
        return New(self._records.free(asked), declared=declared)
