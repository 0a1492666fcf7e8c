"""Which recorded step the code means. A record belongs to its arguments first, to its number second: calls may be
inserted, removed and swapped.

A step with other arguments runs again if nothing was done because of its result; else the record is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from surefoot.core.address import on_one_line, split
from surefoot.core.entry import CallCancelled
from surefoot.core.history import CHILD, Past, PastCall, PastStep
from surefoot.core.matching.answers import ACTED_ON, KEEP, RERUN, STOP, Answer, Asked, Changed, Kept, New, Rerun, Same
from surefoot.core.matching.learned import Learned
from surefoot.core.matching.records import Records
from surefoot.core.matching.search import ENDED, Search
from surefoot.core.matching.words import IS, NEW, Words, filled

RENAMED: Final = "renamed"
"""In an index of digests: records with a parameter that has another name now. No digest finds them."""
Place = tuple[str, str, int]
"""Scope, name and number of a call."""


class Steps(Search):
    """For one replay."""

    def __init__(
        self, records: Records, words: Words, learned: Learned | None, cuts: Mapping[str, CallCancelled]
    ) -> None:
        super().__init__(records, words)
        self._learned = learned or Learned()
        self._is_rehearsed = learned is not None
        self._cuts = cuts
        self.found_inserted: set[Place] = set()
        self._taken: dict[str, Place] = {}
        """Record -> the call that took it with other arguments."""
        self._loosely: dict[str, Place] = {}
        """The same where only noted arguments may differ."""
        self._moved_away: set[str] = set()
        """Steps on record that a call in another scope asks for with equal arguments."""
        self._by_digest: dict[tuple[str, str, frozenset[str]], dict[str, list[PastCall]]] = {}
        self._anywhere: dict[str, list[PastCall]] | None = None
        """Digest -> steps on record, of any name, in any scope."""
        self._effect_names: frozenset[str] | None = None

    def find(self, asked: Asked) -> Answer:
        records = self._records
        if records.is_used_up() and self._words.is_none and not (self._taken or self._loosely or self._moved_away):
            return New(records.free(asked), declared=asked.is_new)
        person = self._words.identity(asked)
        if person is not None and person.how == IS and (other := records.calls.get(filled(person, asked.address))):
            return self.as_recorded(asked, other)
        found = records.at(asked, exact=True)
        if found is not None and found.kind != asked.kind and found.address not in records.asked:
            return Changed(found)
        here = found if isinstance(found, PastCall) else None
        if asked.noted and (whole := self._whole(asked, here)) is not None:
            return Same(records.today(whole))
        if asked.noted and (beside := self._holdings.beside(asked)):
            # In another branch: items were inserted, removed or moved, and the call that took this record is not its
            # own.
            self.found_inserted.update(self._loosely[past.address] for past in beside if past.address in self._loosely)
            self._moved_away.update(past.address for past in beside)
            return New(records.free(asked))
        is_put_in = asked.me in self._learned.inserted
        equal = None if asked.noted and is_put_in else self._equal(asked, here)
        if equal is not None and asked.noted and equal.address in self._moved_away:
            return New(records.free(asked))
        if equal is not None:
            who = self._taken.get(equal.address)
            if who is None:
                if asked.noted:
                    self._loosely[equal.address] = asked.me
                return Same(records.today(equal))
            self.found_inserted.add(who)  # The record is ours: the call that took it was inserted in front of us.
        if (effect := self._was_effect(asked)) is not None:
            return Changed(effect)
        is_new = asked.is_new or (person is not None and person.how == NEW)
        is_moved, is_asked = self._is_moved(asked), here is not None and here.address in records.asked
        if here is None or is_asked or is_put_in or is_new or is_moved or records.is_passed(here):
            return New(records.free(asked), declared=is_new)
        if here.address in self._moved_away:
            return New(records.free(asked))
        self._taken[here.address] = asked.me
        return self._changed_step(asked, here)

    def _whole(self, asked: Asked, here: PastCall | None) -> PastCall | None:
        """The record with all of its arguments, including those that are only noted. It belongs to this call, even if a
        call in front, with other arguments, was given it: that call was inserted.
        """
        whole = self._holdings.equal(asked)
        left = [past for past in whole if past.address not in self._records.asked]
        if left:
            return here if here in left else left[0]
        taken = next((past for past in whole if past.address in self._loosely), None)
        if taken is not None:
            self.found_inserted.add(self._loosely.pop(taken.address))
        return taken

    def _equal(self, asked: Asked, here: PastCall | None) -> PastCall | None:
        """A record with these arguments, at any number: its own number first."""
        if here is not None and here.address not in self._records.asked and self._arguments.same(here, asked):
            return here
        found: PastCall | None = None
        for (_, path, name), group in self._records.groups_of(asked):
            index = self._index(asked, path, name, group)
            renamed = [past for past in index.get(RENAMED, ()) if self._arguments.same(past, asked)]
            for past in index.get(asked.digest, []) + renamed:
                if past.address not in self._records.asked:
                    return past
                if past.address in self._taken:
                    found = found or past
        return found

    def _index(self, asked: Asked, path: str, name: str, group: Mapping[int, PastCall]) -> dict[str, list[PastCall]]:
        key = (path, name, asked.noted)
        index = self._by_digest.get(key)
        if index is None:
            index = self._by_digest[key] = {}
            for _, past in sorted(group.items()):
                for digest in self._arguments.digests(past, asked.noted):
                    index.setdefault(digest, []).append(past)
                if self._arguments.has_other_names(past, asked):
                    index.setdefault(RENAMED, []).append(past)
        return index

    def _is_moved(self, asked: Asked) -> bool:
        """Whether it is on record in another scope, where no call has asked for it. Then no other record is its own,
        and no other call takes that one with other arguments.
        """
        if self._anywhere is None:
            self._anywhere = {}
            for past in self._records.calls.values():
                if isinstance(past, PastStep) and past.digest:
                    self._anywhere.setdefault(past.digest, []).append(past)
        known = [past for past in self._anywhere.get(asked.digest, ()) if split(past.address)[1] == asked.name]
        taken = [past for past in known if past.address in self._taken]
        heard = (self._records.asked, self._learned.asked)
        left = [past for past in known if not any(past.address in one for one in heard)]
        self.found_inserted.update(self._taken[past.address] for past in taken)
        self._moved_away.update(past.address for past in left)
        return bool(taken or left)

    def _was_effect(self, asked: Asked) -> PastCall | None:
        """An executed effect of that name, in another place, asked for by no call: as a step it would be repeated."""
        if self._effect_names is None:
            self._effect_names = frozenset(split(past.address)[1] for past in self._records.executed())
        if asked.name not in self._effect_names or asked.name == CHILD:
            return None
        return next((past for past in self._records.unasked() if split(past.address)[1] == asked.name), None)

    def _changed_step(self, asked: Asked, here: PastCall) -> Answer:
        here = self._records.today(here)
        if here.state not in ENDED:
            cut = self._cuts.get(here.address)
            if cut is not None and not cut.before:
                del self._taken[here.address]
                return New(self._records.free(asked))  # Inserted in front of one that was cut off.
            return Rerun(here, counts=False)  # An attempt that was cut off runs with today's arguments.
        if here.kept == asked.digest:
            return Same(here)
        how, by = self._manner(asked, here)
        if how == STOP:
            return Changed(here)
        if how == KEEP:
            return Kept(here, by)
        if how == RERUN:
            return Rerun(here, counts=False)
        is_acted_on = self._records.is_acted_on(here)
        unproven = is_acted_on and here.address in self._learned.unproven
        if is_acted_on and not self._is_shifted(asked) and not unproven:
            return Kept(here, ACTED_ON)
        if not self._is_rehearsed or unproven or self._is_hidden(asked):
            # A later call may still be the recorded one: this one takes a number of its own.
            del self._taken[here.address]
            return New(self._records.free(asked), again=here)
        return Rerun(here, counts=True)

    def _is_hidden(self, asked: Asked) -> bool:
        """Whether something new hid the rest of this line from the rehearsal."""
        return any(on_one_line(asked.path, path) for path in self._learned.hidden)

    def _is_shifted(self, asked: Asked) -> bool:
        """Whether calls of that name were inserted, so that its number does not identify it."""
        return any(where == asked.path and name == asked.name for where, name, _ in self._learned.inserted)

    def has_other(self, asked: Asked, past: Past) -> bool:
        """Whether another recorded step, which no call has asked for, has these arguments."""
        left = self._records.left(asked.kind, asked.path, asked.name)
        return any(self._arguments.same(one, asked) for one in left if one.address != past.address)

    def unproven(self, cut: Iterable[str], is_removed: Callable[[Past], bool]) -> frozenset[str]:
        """Steps that a call takes over, while no call was seen to ask for the effects after them. That is right only if
        the code no longer has those effects, and the replay was not cut short there.
        """
        paths, records = list(cut), self._records
        taken = (records.calls[address] for address in self._taken)
        return frozenset(
            past.address
            for past in taken
            if not records.is_passed(past)
            and (
                any(on_one_line(split(past.address)[0], path) for path in paths)
                or not all(map(is_removed, records.acting(past)))
            )
        )

    def outdone(self) -> frozenset[str]:
        """Steps that the code has asked for, and for which it asked anew with other arguments on an earlier drive. Only
        the later answer was acted on, and no call has asked for that one now. So if this replay leads to a stop, the
        arguments are those of the first time again, and the newer answer may be the right one.
        """
        records, found = self._records, set[str]()
        again = (past for past in records.calls.values() if isinstance(past, PastStep) and past.asked_as)
        for past in again:
            if past.address not in records.asked and records.is_acted_on(past):
                path, name, _ = split(past.address)
                first = records.calls.get(f"{path}{name}#{past.asked_as}")
                if first is not None and first.address in records.asked and not self._is_used(first, past.first):
                    found.add(first.address)
        return frozenset(found)

    def _is_used(self, past: Past, until: int) -> bool:
        return any(other.first < until for other in self._records.acting(past))
