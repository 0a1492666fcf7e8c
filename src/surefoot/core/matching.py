"""Which recorded call the code means when it asks for one now. The code may have changed since.

A step's record belongs to its arguments first, to its number second: calls may be inserted, removed and swapped. An
effect's record belongs to its address, or to the one that a declaration (`was=`) or a person (`surefoot match`) names;
with other arguments it is a stop. A *new* effect does not begin while one on record that nobody has asked for may be
it under another name or in another place: that is the fence. A child run counts as an effect here.

Nothing is executed and nothing is written here: what comes out is one of the answers below.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

from msgspec import Raw, Struct

from surefoot.core import values
from surefoot.core.entry import NOTHING, CallCancelled, CodeMatched, Value
from surefoot.core.history import Past, PastCall, PastEffect, PastState, PastStep, is_rewound
from surefoot.core.holdings import Group, Holdings
from surefoot.core.members import changed_members

_P = TypeVar("_P", bound=Past)
AUTO: Final = "auto"
KEEP: Final = "keep"
RERUN: Final = "rerun"
STOP: Final = "stop"
CHILD: Final = "child"
IDENTITY: Final = ("is", "new")
"""What a person may say: which call it is …"""
MANNER: Final = (KEEP, RERUN)
"""… and what becomes of a record whose arguments are others now."""
UNASKED: Final = "unasked"
"""In place of arguments: a person speaks of recorded calls that the code did not ask for."""
NOTED: Final = "only what noted= names differs"
ACTED_ON: Final = "effects were executed after it"
_BELONGS: Final = re.compile(r"\.undo$|#\d+\.repair\d+$")
"""Undos and repairs belong to their effect: nobody takes another call for one."""


class Asked(Struct, frozen=True):
    """A call as the code asks for it now."""

    address: str
    path: str
    name: str
    number: int
    """The how-manieth of that name in that scope, counted from 1."""
    kind: str
    digest: str
    """Of what is compared: all arguments but those that are only noted."""
    args: bytes
    """All arguments, as they would be recorded."""
    names: tuple[str, ...] = ()
    """What it was called before (`was=`)."""
    also: tuple[tuple[str, bool], ...] = ()
    """Where else its calls may be on record: (path, whether calls are counted there as they are here)."""
    noted: frozenset[str] = frozenset()
    """Parameters that are not compared, or not recorded."""
    parameters: frozenset[str] = frozenset()
    on_change: str = AUTO
    is_new: bool = False
    defaults: Raw = NOTHING
    """Of an effect: what each parameter has as its default today."""

    @property
    def whole(self) -> str:
        """The digest of all arguments."""
        return values.digest(values.again(self.args))

    @property
    def fenced(self) -> bool:
        return self.kind == "effect" or self.name == CHILD


class Same(Struct, frozen=True):
    """It is this recorded call."""

    past: PastCall


class Kept(Struct, frozen=True):
    """It is this recorded call, asked for with other arguments: what is on record stands, and that is noted."""

    past: PastCall
    why: str


class Rerun(Struct, frozen=True):
    """It is this recorded step, asked for with other arguments, and nothing was done because of it: it runs again."""

    past: PastCall
    counts: bool
    """Whether a person is asked once there are many of these."""


class New(Struct, frozen=True):
    """No recorded call is this one."""

    address: str
    declared: bool = False
    """A declaration or a person says so: it passes the fence."""
    again: PastCall | None = None
    """Of a step: the record that it would run again, if nobody else asks for that one."""


class Changed(Struct, frozen=True):
    """It is this recorded call, asked for in another way, and a person has to say what is right."""

    past: Past


class Held(Struct, frozen=True):
    """It was recorded with these arguments, and another call has been given it, which asks with others."""

    past: PastCall
    by: Asked
    """Whoever has it."""
    is_said: bool
    """A person said that it stands for that call."""


class InUse(Struct, frozen=True):
    """`was=` names a call that the code still asks for by itself."""

    old: str
    by: str
    """The effect that says so."""


Answer = Same | Kept | Rerun | New | Changed | Held | InUse


def split(address: str) -> tuple[str, str, int]:
    """Scope, name and number of an address; the number is 0 for what belongs to another call."""
    path, slash, last = address.rpartition("/")
    name, _, number = last.rpartition("#")
    return path + slash, name, int(number) if number.isdigit() else 0


def is_child(past: Past) -> bool:
    return past.kind == "step" and split(past.address)[1] == CHILD


def may_have_happened(past: Past) -> bool:
    """Of an effect or a child: whether something of it may be out there."""
    return past.may_have_happened if isinstance(past, PastEffect) else is_child(past)


def on_one_line(path: str, other: str) -> bool:
    """Whether two scopes are the same, or one is inside the other: then one call follows the other."""
    return path.startswith(other) or other.startswith(path)


class Learned(Struct, frozen=True):
    """What a rehearsal has found out, for the next one and for the drive that follows."""

    inserted: frozenset[tuple[str, str, int]] = frozenset()
    """(scope, name, number) of steps that were put in front of recorded ones."""
    asked: frozenset[str] = frozenset()
    """Recorded calls that the code asks for, somewhere."""
    ended: frozenset[str] = frozenset()
    """Branches that were heard to their end: whatever they have not asked for, they will not."""
    hidden: frozenset[str] = frozenset()
    """Scopes in which a call without an outcome hides what follows it."""
    unproven: frozenset[str] = frozenset()
    """Steps that somebody takes over with other arguments, while nobody was heard to ask for what was done after them."""
    outdone: frozenset[str] = frozenset()
    """Steps that were asked anew: what is on record of the first time is nobody's (`Matcher.outdone`)."""
    ahead: frozenset[str] = frozenset()
    """New effects behind which it was looked whether the code goes on as recorded."""


class Matcher:
    """For one replay of one segment of a run."""

    def __init__(
        self,
        calls: Mapping[str, Past],
        matches: Iterable[tuple[int, CodeMatched]],
        read: Callable[[Value], bytes],
        *,
        learned: Learned | None = None,
        cuts: Mapping[str, CallCancelled] | None = None,
    ) -> None:
        self._calls = dict(calls)
        """As they were on record when the replay began. What is recorded meanwhile is no past of it."""
        self._live = calls
        self.cuts = dict(cuts or {})
        """Calls that were cut off, or were the first after a cancellation, by then. Whoever comes to one in the place of one
        that was cut off is cut off again, and is not asked about here.
        """
        self.learned = learned or Learned()
        self.asked: set[str] = set(self.learned.outdone)
        """Recorded calls that the code has asked for."""
        self._matches = tuple(matches)
        self._read = read
        self.rehearsed = learned is not None
        self.is_blank = not calls and not self._matches
        """Nothing is on record: every call is new."""
        self.is_plain = not self._matches
        self._groups: dict[tuple[str, str, str], dict[int, PastCall]] | None = None
        self._by_digest: dict[Any, dict[str, list[PastCall]]] = {}
        self._compared: dict[tuple[str, frozenset[str]], str] = {}
        self._other_members: dict[tuple[str, frozenset[str]], bool] = {}
        self._taken: dict[str, tuple[str, str, int]] = {}
        """Record -> who took it although its arguments are others."""
        self._loosely: dict[str, tuple[str, str, int]] = {}
        """The same where only what is noted may differ."""
        self._places: dict[tuple[str, str], dict[int, PastCall]] = {}
        self._given: dict[tuple[str, str], int] = {}
        """The highest number given to a new call."""
        self._asked_names: set[str] = set()
        self._aliased: dict[str, str] = {}
        self._given_away: dict[str, str] = {}
        """Recorded effect -> the call that it is, as a person said."""
        self._holdings = Holdings(self._recorded, self._is_renamed)
        self._executed_before: list[PastCall] | None = None
        self._put_in: set[str] = set()
        """Effects that were declared new: they may have been executed late, in front of older ones."""
        self._effect_names: frozenset[str] | None = None
        self._steps_with: dict[tuple[str, str], list[PastCall]] | None = None
        """(name, digest) -> steps on record, in whatever scope."""
        self._moved_away: set[str] = set()
        """Steps on record that a call in another scope asks for with equal arguments."""
        self._all_asked = False
        self.found_inserted: set[tuple[str, str, int]] = set()

    def recorded(self) -> Iterable[Past]:
        """What was on record when the replay began."""
        return self._calls.values()

    def past(self, address: str) -> Past | None:
        """What was on record there when the replay began, as it stands now. Not what this drive has recorded itself: a
        call that was new has a number which a later one may ask for by itself.
        """
        return self._live.get(address) if address in self._calls else None

    def takes(self, past: PastCall, kind: str, digest: str) -> bool:
        """The call that is on record under the very address: the same kind, the same arguments, asked for once."""
        if past.digest != digest or past.kind != kind or past.address in self.asked or not self.is_plain:
            return False
        self.asked.add(past.address)
        if kind == "effect":
            self._asked_names.add(split(past.address)[1])
        return True

    # -- which call it is ---------------------------------------------------------------------------

    def find(self, asked: Asked) -> Answer:
        """Which recorded call this is. The record is marked as asked for: branches ask one after the other."""
        found = self._as_meant(asked, self._effect(asked)) if asked.fenced else self._step(asked)
        if isinstance(found, Same | Kept | Rerun | Changed):
            self.asked.add(found.past.address)
            if asked.is_new:
                self._put_in.add(found.past.address)
        return found

    def _step(self, asked: Asked) -> Answer:
        person = self._said_of(asked, asked.address, IDENTITY)
        if person is not None and person.how == "is" and (other := self._calls.get(_filled(person, asked.address))):
            return self._as_recorded(asked, other)
        found = self._at(asked, exact=True)
        if found is not None and found.kind != asked.kind and found.address not in self.asked:
            return Changed(found)
        here = found if isinstance(found, PastCall) else None
        me = (asked.path, asked.name, asked.number)
        if asked.noted and (whole := self._whole(asked, here)) is not None:
            return Same(self._today(whole))
        if asked.noted and (beside := self._beside(asked)):
            # In another branch: items were put in, taken out or moved, and whoever was given that one is not its own.
            self.found_inserted.update(self._loosely[past.address] for past in beside if past.address in self._loosely)
            self._moved_away.update(past.address for past in beside)
            return New(self._free(asked))
        is_put_in = bool(asked.noted) and me in self.learned.inserted
        equal = None if is_put_in else self._equal(asked, here)
        if equal is not None and asked.noted and equal.address in self._moved_away:
            return New(self._free(asked))
        if equal is not None:
            who = self._taken.get(equal.address)
            if who is None:
                if asked.noted:
                    self._loosely[equal.address] = me
                return Same(self._today(equal))
            self.found_inserted.add(who)  # The record is ours: whoever took it before was put in front of us.
        if (effect := self._was_effect(asked)) is not None:
            return Changed(effect)
        is_new = asked.is_new or (person is not None and person.how == "new")
        is_moved, is_asked = self._is_moved(asked), here is not None and here.address in self.asked
        if here is None or is_asked or me in self.learned.inserted or is_new or is_moved or self._is_passed(here):
            return New(self._free(asked), declared=is_new)
        if here.address in self._moved_away:
            return New(self._free(asked))
        self._taken[here.address] = me
        return self._changed_step(asked, here)

    def _whole(self, asked: Asked, here: PastCall | None) -> PastCall | None:
        """The record that has all of its arguments, those that are only noted, too. It is this call's, also if one in front
        was given it, with other ones: that one was put in.
        """
        whole = self._holdings.equal(asked, self._groups_of(asked))
        left = [past for past in whole if past.address not in self.asked]
        if left:
            return here if here in left else left[0]
        taken = next((past for past in whole if past.address in self._loosely), None)
        if taken is not None:
            self.found_inserted.add(self._loosely.pop(taken.address))
        return taken

    def _is_moved(self, asked: Asked) -> bool:
        """Whether it is on record in another scope, where nobody has asked for it. Then no other record is its own, and
        nobody else takes that one with other arguments.
        """
        if self._steps_with is None:
            self._steps_with = {}
            for past in self._calls.values():
                if isinstance(past, PastStep) and past.digest:
                    key = (split(past.address)[1], past.digest)
                    self._steps_with.setdefault(key, []).append(past)
        known = self._steps_with.get((asked.name, asked.digest), ())
        taken = [past for past in known if past.address in self._taken]
        heard = (self.asked, self.learned.asked)
        left = [past for past in known if not any(past.address in one for one in heard)]
        self.found_inserted.update(self._taken[past.address] for past in taken)
        self._moved_away.update(past.address for past in left)
        return bool(taken or left)

    def _was_effect(self, asked: Asked) -> PastCall | None:
        """An executed effect of that name, in another place, that nobody has asked for: as a step it would be repeated."""
        if self._effect_names is None:
            self._effect_names = frozenset(split(past.address)[1] for past in self._executed())
        if asked.name not in self._effect_names or asked.name == CHILD:
            return None
        return next((past for past in self.unasked() if split(past.address)[1] == asked.name), None)

    def _changed_step(self, asked: Asked, here: PastCall) -> Answer:
        here = self._today(here)
        if here.state not in (PastState.DONE, PastState.FAILED):
            cut = self.cuts.get(here.address)
            if cut is not None and not cut.before:
                del self._taken[here.address]
                return New(self._free(asked))  # Put in front of one that was cut off.
            return Rerun(here, counts=False)  # An attempt that was cut off just runs with what is asked for now.
        if here.kept == asked.digest:
            return Same(here)
        person = self._manner(asked, here)
        how = asked.on_change if person is None else person.how
        if how == STOP:
            return Changed(here)
        if how == KEEP:
            return Kept(here, "on_change" if person is None else f"said by {person.by}")
        if how == RERUN:
            return Rerun(here, counts=False)
        unproven = here.address in self.learned.unproven and self.acted_on(here)
        if self.acted_on(here) and not self._is_shifted(asked) and not unproven:
            return Kept(here, ACTED_ON)
        if not self.rehearsed or unproven or self._is_cut(asked):
            # Nobody knows yet whether a later call is the recorded one: this one takes a number of its own.
            del self._taken[here.address]
            return New(self._free(asked), again=here)
        return Rerun(here, counts=True)

    def _is_cut(self, asked: Asked) -> bool:
        """Whether something new hid from the rehearsal what follows on this line."""
        return any(on_one_line(asked.path, path) for path in self.learned.hidden)

    def _effect(self, asked: Asked) -> Answer:
        self._asked_names.add(asked.name)
        person = self._said_of(asked, asked.address, IDENTITY)
        if person is not None and person.how == "is":
            other = self._calls.get(_filled(person, asked.address))
            if other is not None and (other.address not in self.asked or other.address == asked.address):
                if other.address != asked.address:
                    self._given_away[other.address] = asked.address
                return self._as_recorded(asked, other)
        if person is not None and person.how == "new":
            return self._declared_new(asked)
        if (displaced := self._displaced(asked)) is not None:
            return Same(self._today(displaced))
        if asked.name in self._aliased:
            return InUse(asked.name, self._aliased[asked.name])
        if asked.address in self._calls and (to := self._given_to(asked.address)):
            return self._behind_given(asked, to)
        old = next((name for name in asked.names if name in self._asked_names), "")
        if old and self._group(asked.kind, asked.path, old):
            return InUse(old, asked.name)
        here = self._at(asked, exact=False)
        if self._is_loose(asked, here):
            equal = self._holdings.equal(asked, self._groups_of(asked))
            if (held := self._held(asked, equal, always=here is None)) is not None:
                return held
            alike = {past.address for past in equal}
            if here is None or here.address not in alike:
                here = next((past for past in equal if past.address not in self.asked), here)
            if here is not None and here.address not in alike and self._is_anothers(asked, here):
                return Changed(here)
        if here is None:
            return self._new_effect(asked, declared=asked.is_new)
        old = split(here.address)[1]
        if old != asked.name and asked.kind == here.kind:
            if old in self._asked_names:
                return InUse(old, asked.name)
            self._aliased[old] = asked.name
        found = self._as_recorded(asked, here)
        if isinstance(found, Same | Kept):
            self._holdings.give(here, asked)
        return found

    def _is_anothers(self, asked: Asked, here: Past) -> bool:
        """Whether another branch has a record with these very arguments. So items were put in, taken out or moved: the
        number of the branch does not tell that this record is the call's.
        """
        person = self._manner(asked, here)
        if is_rewound(here) or (person is not None and person.how == KEEP) or not self._holdings.is_loose(here, asked):
            return False
        return bool(self._beside(asked))

    def _beside(self, asked: Asked) -> list[PastCall]:
        """Records of that name in other scopes with all of these arguments."""
        groups = {
            key: group for key, group in self._all_groups().items() if key[0] == asked.kind and key[2] == asked.name
        }
        groups.pop((asked.kind, asked.path, asked.name), None)
        return self._holdings.equal(asked, groups.items())

    def _given_to(self, recorded: str) -> str:
        """The call that a person said this recorded one to be, whether the code has come to that call or not."""
        if self.is_plain or recorded not in self._calls or recorded in self._given_away:
            return self._given_away.get(recorded, "")
        newest = {match.address: match for _, match in self._matches if match.how in IDENTITY}
        said = (match for match in newest.values() if match.how == "is" and match.address != recorded)
        return next((match.address for match in said if match.other == recorded), "")

    def _behind_given(self, asked: Asked, to: str) -> Answer:
        """The record at its address is another call's, as a person said. The same call once more is a mistake. For any other
        the number does not count: the record with these arguments is its own, here, or where that other call was.
        """
        if self.same(self._calls[asked.address], asked):
            return InUse(asked.address, to)
        own = self._left_with(asked)
        swapped = self._calls.get(to)
        if own is None and isinstance(swapped, PastCall) and to not in self.asked and self.same(swapped, asked):
            own = swapped
        return Same(self._today(own)) if own is not None else self._new_effect(asked, declared=asked.is_new)

    def _is_loose(self, asked: Asked, here: Past | None) -> bool:
        """Whether a record may stand for it with other arguments, so that its number does not tell which one it is."""
        if asked.on_change == KEEP or asked.noted or (here is not None and is_rewound(here)):
            return True
        made = here.first if here is not None else 0
        person = None if self.is_plain else self._said_of(asked, (here or asked).address, MANNER, made)
        return person is not None and person.how == KEEP

    def _groups_of(self, asked: Asked) -> Iterable[tuple[Group, Mapping[int, PastCall]]]:
        """The records that its own may be among."""
        places = ((asked.path, asked.name), *((path, name) for path, name, _ in self._elsewhere(asked)))
        for path, name in dict.fromkeys(places):
            yield (asked.kind, path, name), self._group(asked.kind, path, name)

    def _held(self, asked: Asked, equal: list[PastCall], *, always: bool) -> Held | None:
        """All records with these arguments are taken, one of them by a call with others. `always`: it would be made."""
        if any(past.address not in self.asked for past in equal):
            return None
        held = [(past, by) for past in equal if (by := self._holdings.holder(past)) is not None]
        told = [Held(past, by, is_said=self._is_said(by)) for past, by in held]
        return next((one for one in told if always or not one.is_said), None)

    def _is_said(self, asked: Asked) -> bool:
        person = self._said_of(asked, asked.address, MANNER)
        return person is not None and person.how == KEEP and "*" not in person.address

    def _declared_new(self, asked: Asked) -> Answer:
        """A person says that it is new, though its address may be taken. What was recorded since may be its own."""
        since = self._since(asked, "new")
        group = sorted(self._group(asked.kind, asked.path, asked.name).items())
        made = [past for _, past in group if past.first > since and past.address not in self.asked]
        own = self._likest(made, asked) or (made[0] if made else None)
        if own is None:
            return self._new_effect(asked, declared=True, equal=self._holdings.is_equal)
        return self._as_recorded(asked, own)

    def _likest(self, pasts: list[PastCall], asked: Asked) -> PastCall | None:
        """One that was made with these arguments: all of them, or else all that are compared."""
        whole = (past for past in pasts if asked.noted and self._holdings.is_equal(past, asked))
        return next(whole, None) or next((past for past in pasts if self.same(past, asked)), None)

    def _is_same_workflow(self, past: Past, asked: Asked) -> bool:
        """Of a child run that has not ended: whether the workflow that is asked for can go on with it."""
        recorded = self._recorded(past) if is_child(past) else None
        return recorded is not None and recorded.get("workflow") == values.again(asked.args).get("workflow")

    def _displaced(self, asked: Asked) -> PastCall | None:
        """A person said that a call in front of this one is new: so the record with these arguments is this one's."""
        direct = self._calls.get(asked.address)
        own = direct is not None and direct.address not in self.asked and self.same(direct, asked)
        if self.is_plain or own:
            return None
        words = [match.address for _, match in self._matches if match.how == "new"]
        front = (f"{asked.path}{asked.name}#{number}" for number in range(1, asked.number))
        if not any(fits(word, address) for address in front for word in words):
            return None
        return self._left_with(asked)

    def _left_with(self, asked: Asked) -> PastCall | None:
        """A record of that name with these arguments that nobody has asked for, and that is nobody else's."""
        group = sorted(self._group(asked.kind, asked.path, asked.name).items())
        left = [past for _, past in group if past.address not in self.asked and not self._given_to(past.address)]
        return self._likest(left, asked)

    def _new_effect(
        self, asked: Asked, *, declared: bool, equal: Callable[[Past, Asked], bool] | None = None
    ) -> Answer:
        """Its own number; or, if that belongs to another call, one that is free: perhaps it has one from before."""
        places = [
            (asked.path, asked.name),
            *((path, name) for path, name, counted in self._elsewhere(asked) if counted),
        ]
        for path, name in places:
            if f"{path}{name}#{asked.number}" not in self._calls:
                continue
            group = sorted(self._group(asked.kind, path, name).items())
            later = [past for number, past in group if number > asked.number and past.address not in self.asked]
            own = self._likest([past for past in later if equal is None or equal(past, asked)], asked)
            if own is not None:
                if name != asked.name:
                    self._aliased[name] = asked.name
                return Same(self._today(own))
        return New(self._free(asked), declared=declared)

    def cut_off(self, asked: Asked, past: Past) -> Answer:
        """An effect where this one was cut off: the same, one with other arguments that it stands for, or a stop."""
        return self._as_recorded(asked, past)

    def _as_recorded(self, asked: Asked, past: Past) -> Answer:
        past = self._today(past)
        if not isinstance(past, PastCall) or past.kind != asked.kind:
            return Changed(past)
        if not past.digest or self.same(past, asked) or past.kept == asked.digest:
            return Kept(past, NOTED) if self._differs_as_noted(past, asked) else Same(past)
        if past.state is PastState.CLEARED:
            return Same(past)  # It did not happen: it runs with what is asked for now.
        return self._with_others(asked, past)

    def _as_meant(self, asked: Asked, found: Answer) -> Answer:
        """Whichever way its record was found: with a member that has another value now, other arguments are asked for.

        One that has no outcome is not judged here: a person is asked, or it is not tried again (`engine/session/repetition.py`).
        """
        if not isinstance(found, Same) or found.past.state not in (PastState.DONE, PastState.FAILED):
            return found
        past = found.past
        if past.digest in (asked.digest, "") or past.kept == asked.digest or not self._means_another(past, asked.noted):
            return found
        return self._with_others(asked, past)

    def _with_others(self, asked: Asked, past: PastCall) -> Answer:
        person = self._manner(asked, past)
        how = asked.on_change if person is None else person.how
        if how == KEEP and (past.state in (PastState.DONE, PastState.FAILED) or self._is_same_workflow(past, asked)):
            return Kept(past, "on_change" if person is None else f"said by {person.by}")
        return Changed(past)

    def _today(self, past: _P) -> _P:
        """Somebody may have settled it since the replay began."""
        live = self._live.get(past.address)
        return live if isinstance(live, type(past)) else past

    def _differs_as_noted(self, past: Past, asked: Asked) -> bool:
        """Whether an effect that was done stands for one with other noted values: it is not made, which has to be told."""
        is_done = asked.fenced and bool(asked.noted) and past.state in (PastState.DONE, PastState.FAILED)
        return is_done and past.kept != asked.whole and self._holdings.is_loose(past, asked)

    def has_other(self, asked: Asked, past: Past) -> bool:
        """Whether a step on record that nobody has asked for, and not that one, has these arguments."""
        group = self._group(asked.kind, asked.path, asked.name).values()
        left = (one for one in group if one.address != past.address and one.address not in self.asked)
        return any(self.same(one, asked) for one in left)

    def at(self, asked: Asked) -> Past | None:
        """The record that a call leads to whose arguments nobody knows yet."""
        return self._at(asked, exact=False)

    def _at(self, asked: Asked, *, exact: bool) -> Past | None:
        """The record that its number leads to: in the scope as it was called before, here, or under an old name. What was
        counted together with others comes last.
        """
        around: list[PastCall] = []
        numbered: list[Past] = []
        for path, name, counted in self._elsewhere(asked):
            if not counted:
                around += self._group(asked.kind, path, name).values()
                continue
            past = self._numbered(path, name, asked)
            if past is not None and past.address not in self.asked:
                numbered.append(past)
        if numbered and (moved := [past for past in numbered if split(past.address)[0] != asked.path]):
            return moved[0]
        direct = self._numbered(asked.path, asked.name, asked)
        if direct is not None and (direct.address not in self.asked or exact):
            return direct
        return numbered[0] if numbered else self._first_of(around, asked)

    def _numbered(self, path: str, name: str, asked: Asked) -> Past | None:
        """The record of that number. A step that was asked anew has another number in its address, and the newest that the
        code asked for by this one is meant: what it asked before was not acted on.
        """
        past = self._calls.get(f"{path}{name}#{asked.number}")
        if asked.fenced or (past is not None and past.kind != asked.kind):
            return past
        places = self._places.get((path, name))
        if places is None:
            group = sorted(self._group("step", path, name).items(), key=lambda one: one[1].first)
            places = self._places[path, name] = {
                past.asked_as or number: past for number, past in group if isinstance(past, PastStep)
            }
        return places.get(asked.number)

    def _first_of(self, around: list[PastCall], asked: Asked) -> PastCall | None:
        """Calls that were counted together with others: the first with these arguments, else the first."""
        left = sorted((past for past in around if past.address not in self.asked), key=lambda past: past.first)
        return self._likest(left, asked) or (left[0] if left else None)

    def _elsewhere(self, asked: Asked) -> Iterable[tuple[str, str, bool]]:
        for name in asked.names:
            yield asked.path, name, True
        for path, counted in asked.also:
            for name in (asked.name, *asked.names):
                yield path, name, counted

    def _equal(self, asked: Asked, here: PastCall | None) -> PastCall | None:
        """A record with these arguments, wherever it is numbered: at its own number first."""
        if here is not None and here.address not in self.asked and self.same(here, asked):
            return here
        places = [(asked.path, asked.name), *((path, name) for path, name, _ in self._elsewhere(asked))]
        found: PastCall | None = None
        for path, name in places:
            for past in self._index(asked, path, name).get(asked.digest, ()):
                if past.address not in self.asked:
                    return past
                if past.address in self._taken:
                    found = found or past
        return found

    def _index(self, asked: Asked, path: str, name: str) -> dict[str, list[PastCall]]:
        key = (path, name, asked.noted)
        index = self._by_digest.get(key)
        if index is None:
            index = self._by_digest[key] = {}
            for _, past in sorted(self._group("step", path, name).items()):
                today = "" if self._means_another(past, asked.noted) else self._digest_today(past, asked.noted)
                for digest in {past.digest, today} - {""}:
                    index.setdefault(digest, []).append(past)
        return index

    def _group(self, kind: str, path: str, name: str) -> dict[int, PastCall]:
        return self._all_groups().get((kind, path, name), {})

    def _all_groups(self) -> dict[Group, dict[int, PastCall]]:
        if self._groups is None:
            self._groups = {}
            for past in self._calls.values():
                if isinstance(past, PastCall):
                    where, called, number = split(past.address)
                    self._groups.setdefault((past.kind, where, called), {})[number] = past
        return self._groups

    def _free(self, asked: Asked) -> str:
        """The next number that no record and no new call has."""
        key = (asked.path, asked.name)
        number = asked.number
        highest = max([*self._group(asked.kind, *key), self._given.get(key, 0)], default=0)
        if asked.address in self._calls or number <= self._given.get(key, 0):
            number = highest + 1
        self._given[key] = max(number, self._given.get(key, 0))
        return f"{asked.path}{asked.name}#{number}"

    def _is_shifted(self, asked: Asked) -> bool:
        """Whether calls of that name were inserted, so that its number does not tell which one it is."""
        return any(where == asked.path and name == asked.name for where, name, _ in self.learned.inserted)

    # -- arguments ----------------------------------------------------------------------------------

    def same(self, past: Past, asked: Asked) -> bool:
        """Whether it was recorded with these arguments, as today's classes read them."""
        if not isinstance(past, PastCall) or past.digest in (asked.digest, ""):
            return True
        if not asked.fenced and self._means_another(past, asked.noted):
            return False  # Of an effect this decides what becomes of its record, not which one it is: `_as_meant`.
        if self._digest_today(past, asked.noted) == asked.digest:
            return True
        recorded = self._recorded(past)
        renamed = recorded is not None and self._is_renamed(recorded, asked, asked.noted)
        return renamed or (asked.name.endswith(".undo") and self._has_more(past, asked))

    def same_values(self, past: PastCall, asked: Asked) -> bool:
        """Whether a call of another name was made with the same values, in the same order; or with the same once what
        each of them left out is put in, or what says no more than a default is left out.
        """
        effect = past if isinstance(past, PastEffect) else None
        if asked.digest in (past.digest, effect.executed_with if effect is not None else ""):
            return True
        recorded, now = self._recorded(past), values.again(asked.args)
        if recorded is None or _values(recorded) == _values(now):
            return recorded is not None
        theirs = [recorded, {**self._decoded(effect.defaults if effect is not None else None), **recorded}]
        defaults = values.again(asked.defaults) or {}
        spoken = {name: value for name, value in now.items() if not _is_default(name, value, defaults)}
        ours = [now, spoken, {**defaults, **now}]
        return any(sorted(_values(their)) == sorted(_values(our)) for their in theirs for our in ours)

    def _says_more(self, past: Past, asked: Asked) -> bool:
        """Whether it is made with the same values, and with others for parameters that have a default."""
        recorded, optional = self._recorded(past), values.again(asked.defaults) or {}
        now = {name: value for name, value in values.again(asked.args).items() if name not in optional}
        return bool(recorded) and _values(recorded or {}) == _values(now)

    def _digest_today(self, past: Past, noted: frozenset[str]) -> str:
        key = (past.address, noted)
        known = self._compared.get(key)
        if known is None:
            recorded = self._recorded(past)
            known = ""
            if recorded is not None:
                known = values.digest({name: value for name, value in recorded.items() if name not in noted})
            self._compared[key] = known
        return known

    def _means_another(self, past: Past, noted: frozenset[str]) -> bool:
        """Whether an enum's member in what is compared had another value then: it is read back by its name."""
        key = (past.address, noted)
        known = self._other_members.get(key)
        if known is None:
            known = past.args is not None and bool(changed_members(self._read(past.args), without=noted))
            self._other_members[key] = known
        return known

    def _recorded(self, past: Past) -> dict[str, Any] | None:
        """The recorded arguments. None: today's classes cannot read them."""
        from surefoot.errors import SchemaMismatch, ValueRejected

        if past.args is None:
            return None
        try:
            found = values.decode(self._read(past.args))
        except (SchemaMismatch, ValueRejected):
            return None
        return found if isinstance(found, dict) else None

    def _decoded(self, defaults: Value | None) -> dict[str, Any]:
        """Recorded defaults, as far as today's classes can read them."""
        from surefoot.errors import SchemaMismatch, ValueRejected

        try:
            found = None if defaults is None else values.decode(self._read(defaults))
        except (SchemaMismatch, ValueRejected):
            return {}
        return found if isinstance(found, dict) else {}

    def _is_renamed(self, recorded: dict[str, Any], asked: Asked, noted: frozenset[str] = frozenset()) -> bool:
        """Whether only a parameter has another name: the same values in the same order. What is noted under its old name
        may differ; a value that has another name as well is compared.
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

    def twin(self, past: Past, asked: Asked) -> str:
        """Another executed effect of that name with these very arguments that nobody has asked for."""
        if not asked.fenced:
            return ""
        beside = self._group(asked.kind, asked.path, asked.name).values()
        elsewhere = (one for one in self.unasked() if split(one.address)[1] == asked.name)
        left = (one for one in (*beside, *elsewhere) if one.address not in self.asked and one.address != past.address)
        return next((one.address for one in left if one.kind == asked.kind and self.same(one, asked)), "")

    def in_use(self) -> frozenset[str]:
        """Names of effects that the code has asked for."""
        return frozenset(self._asked_names)

    def _has_more(self, past: Past, asked: Asked) -> bool:
        """Whether there are only parameters more. An undo is passed all of them, those with today's defaults too."""
        recorded = self._recorded(past)
        now = iter(_values(values.again(asked.args)))
        return recorded is not None and all(value in now for value in _values(recorded))

    # -- the fence ----------------------------------------------------------------------------------

    def acted_on(self, past: Past) -> bool:
        """Whether an effect or a child on its line was recorded after it."""
        return any(True for _ in self._acting(past))

    def _acting(self, past: Past) -> Iterable[PastCall]:
        path = split(past.address)[0]
        return (
            other for other in self._executed() if other.first > past.seq and on_one_line(path, split(other.address)[0])
        )

    def _is_passed(self, past: Past) -> bool:
        """Whether the code has asked already for what was done because of it: what it asks for now comes behind that."""
        return any(other.address in self.asked and other.address not in self._put_in for other in self._acting(past))

    def unproven(self, cut: Iterable[str], is_removed: Callable[[Past], bool]) -> frozenset[str]:
        """Steps that somebody takes over, though nobody was heard to ask for what was done because of them. That is right
        only if the code no longer has those effects, and the replay was not cut short there.
        """
        paths = list(cut)
        return frozenset(
            address
            for address in self._taken
            if not self._is_passed(self._calls[address])
            and not (
                all(is_removed(other) for other in self._acting(self._calls[address]))
                and not any(on_one_line(split(address)[0], path) for path in paths)
            )
        )

    def outdone(self) -> frozenset[str]:
        """Steps that the code has asked for, and that it asked anew with other arguments when it came there before. Only what
        was answered then was acted on, and nobody has asked for that. So where this replay leads to a stop, the arguments
        are those of the first time again, and the newer answer may be the right one.
        """
        found = set[str]()
        for past in self._calls.values():
            if isinstance(past, PastStep) and past.asked_as and past.address not in self.asked and self.acted_on(past):
                path, name, _ = split(past.address)
                first = self._calls.get(f"{path}{name}#{past.asked_as}")
                if first is not None and first.address in self.asked and not self._is_used(first, past.first):
                    found.add(first.address)
        return frozenset(found)

    def _is_used(self, past: Past, until: int) -> bool:
        return any(other.first < until for other in self._acting(past))

    def _executed(self) -> list[PastCall]:
        if self._executed_before is None:
            calls = (past for past in self._calls.values() if isinstance(past, PastCall))
            self._executed_before = [past for past in calls if may_have_happened(past) and not _belongs(past)]
        return self._executed_before

    def unasked(self) -> list[PastCall]:
        """Effects on record that the code has not asked for, and that no rehearsal has heard it ask for."""
        if self._all_asked:
            return []
        known = self.asked | self.learned.asked
        left = [past for past in self._executed() if past.address not in known]
        self._all_asked = not left  # Whatever is asked for stays so.
        return [past for past in map(self._today, left) if may_have_happened(past)]

    def blocked(self, asked: Asked, *, may_still: Callable[[str], bool]) -> list[PastCall]:
        """Recorded effects that a new one may be. `may_still`: a scope whose code may still ask for its own."""
        return [past for past in self.unasked() if self._may_be(past, asked, may_still)]

    def moved(self, asked: Asked) -> list[PastCall]:
        """Recorded effects of other scopes with the same arguments that were not asked for here, whatever a rehearsal heard:
        which task asks for what may be a matter of timing.
        """
        left = [self._today(past) for past in self._executed() if past.address not in self.asked]
        elsewhere = (past for past in left if not on_one_line(split(past.address)[0], asked.path))
        return [past for past in elsewhere if may_have_happened(past) and self.same_values(past, asked)]

    def is_left(self, past: Past) -> bool:
        """Whether a person said that what was done stands, and that the code goes on without it. Not what is in doubt."""
        past = self._today(past)
        if self.is_plain or past.state not in (PastState.DONE, PastState.FAILED):
            return False
        said = [match for seq, match in self._matches if match.how == KEEP and past.first < seq]
        about_it = [match for match in said if fits(match.address, past.address)]
        # Said of one call and of no arguments, it is about the record, whatever the code asks for.
        return any(UNASKED in match.shown or not (match.shown or "*" in match.address) for match in about_it)

    def is_alike(self, past: PastCall, asked: Asked) -> bool:
        """Whether a new effect may be this one by its arguments alone."""
        return self.same_values(past, asked) or self._says_more(past, asked)

    def _may_be(self, past: PastCall, asked: Asked, may_still: Callable[[str], bool]) -> bool:
        path = split(past.address)[0]
        if is_rewound(past):  # Whoever rewound the run may want another way.
            return self.is_alike(past, asked)
        if on_one_line(path, asked.path):
            return True
        return not may_still(past.address) or self.same_values(past, asked)

    # -- what people have said ------------------------------------------------------------------------

    def _said_of(self, asked: Asked, address: str, about: tuple[str, ...], made: int = 0) -> CodeMatched | None:
        """The newest word of a person about this call. Which one it is, and what becomes of it, are two questions.

        `made`: the entry that made its record. A pattern is no word on what was recorded behind it.
        """
        said = ((seq, match) for seq, match in reversed(self._matches) if match.how in about)
        known = (match for seq, match in said if seq > made or "*" not in match.address)
        return next((match for match in known if _is_about(match, address, asked.digest)), None)

    def _since(self, asked: Asked, how: str) -> int:
        """The entry in which that was said."""
        said = ((seq, match) for seq, match in reversed(self._matches) if match.how == how)
        return next((seq for seq, match in said if _is_about(match, asked.address, asked.digest)), 0)

    def _manner(self, asked: Asked, past: Past) -> CodeMatched | None:
        """Whether a person said that it is kept, or runs again: by its name of today, or by the recorded one."""
        today = self._said_of(asked, asked.address, MANNER, past.first)
        return today or self._said_of(asked, past.address, MANNER, past.first)

    def keeps(self, past: Past, digest: str) -> bool:
        """Whether a person said that what is on record of a verb stands, though it asks for something else now."""
        said = (
            match
            for seq, match in self._matches
            if match.how == KEEP and (seq > past.first or "*" not in match.address)
        )
        return any(_is_about(match, past.address, digest) for match in said)


def _is_about(match: CodeMatched, address: str, digest: str) -> bool:
    """A word counts for what was shown: the same call with other arguments is asked about again."""
    return fits(match.address, address) and (not match.shown or digest in match.shown)


def fits(pattern: str, address: str) -> bool:
    """`*` stands for any characters, also for none."""
    return pattern == address or _starred(pattern).fullmatch(address) is not None


def _starred(pattern: str) -> re.Pattern[str]:
    return re.compile("(.*)".join(map(re.escape, pattern.split("*"))), re.DOTALL)


def _filled(match: CodeMatched, address: str) -> str:
    """The recorded call that is meant: what the stars of the pattern stand for is put in."""
    found = _starred(match.address).fullmatch(address)
    parts = match.other.split("*")
    stars = list(found.groups()) if found is not None else []
    return "".join(part + (stars[i] if i < min(len(stars), len(parts) - 1) else "") for i, part in enumerate(parts))


def _belongs(past: Past) -> bool:
    return _BELONGS.search(split(past.address)[1]) is not None or _BELONGS.search(past.address) is not None


def _is_default(name: str, value: object, defaults: dict[str, Any]) -> bool:
    return name in defaults and values.digest(defaults[name]) == values.digest(value)


def _values(arguments: dict[str, Any]) -> list[str]:
    return [values.digest(value) for value in arguments.values()]
