"""Which recorded call the code means when it asks for one now. The code may have changed since.

A step's record belongs to its arguments first, to its number second (`steps.py`); an effect's to its address, or to
the one that a declaration or a person names (`effects.py`). A *new* effect does not begin while a recorded effect that
no call has asked for may be the same one under another name or in another place: that is the fence.

Nothing is executed and nothing is written here: what comes out is one of the answers in `answers.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from surefoot.core.address import on_one_line, split
from surefoot.core.entry import CallCancelled, CodeMatched, Value
from surefoot.core.history import Past, PastCall, is_rewound, may_have_happened
from surefoot.core.matching.answers import Answer, Asked, Changed, Kept, Rerun, Same
from surefoot.core.matching.arguments import Arguments
from surefoot.core.matching.effects import Effects
from surefoot.core.matching.learned import Learned
from surefoot.core.matching.records import Records
from surefoot.core.matching.steps import Steps
from surefoot.core.matching.words import Words


class Matcher:
    """For one replay of one segment of a run."""

    steps: Steps
    effects: Effects

    def __init__(
        self,
        calls: Mapping[str, Past],
        matches: Iterable[tuple[int, CodeMatched]],
        read: Callable[[Value], bytes],
        *,
        learned: Learned | None = None,
        cuts: Mapping[str, CallCancelled] | None = None,
    ) -> None:
        self.learned = learned or Learned()
        self.cuts = dict(cuts or {})
        """Calls that were cut off, or were the first after a cancellation. A call that reaches the place of one
        that was cut off is cut off again, and is not asked about here.
        """
        self.words = Words(matches)
        self.arguments = Arguments(read)
        self.records = Records(calls, self.arguments, self.learned)
        self.past = self.records.past
        """What was on record at an address when the replay began, as it stands now. Not what this drive recorded."""
        self.asked = self.records.asked
        """Recorded calls that the code has asked for."""
        self._rehearsed = learned
        self.is_blank = not calls and self.words.is_none
        """Nothing is on record: every call is new."""
        self._is_plain = self.words.is_none

    def __getattr__(self, name: str) -> Steps | Effects:
        """The searches, made when a call first has to be searched for: a new run needs none. Threads get the same."""
        if name not in ("steps", "effects"):
            raise AttributeError(name)
        records, words = self.records, self.words
        made = Steps(records, words, self._rehearsed, self.cuts) if name == "steps" else Effects(records, words)
        return self.__dict__.setdefault(name, made)  # type: ignore[no-any-return]

    def recorded(self) -> Iterable[Past]:
        """The records when the replay began."""
        return self.records.calls.values()

    def takes(self, past: PastCall, kind: str, digest: str) -> bool:
        """Whether the record at this very address is the call: same kind, same arguments, asked for once."""
        if past.digest != digest or past.kind != kind or past.address in self.asked or not self._is_plain:
            return False
        self.asked.add(past.address)
        if kind == "effect":
            self.effects.names.add(split(past.address)[1])
        return True

    def find(self, asked: Asked) -> Answer:
        """Which recorded call this is. The record is marked as asked for: branches ask one after the other."""
        found = self.effects.find(asked) if asked.fenced else self.steps.find(asked)
        if isinstance(found, Same | Kept | Rerun | Changed):
            self.asked.add(found.past.address)
            if asked.is_new:
                self.records.put_in.add(found.past.address)
        return found

    # -- the fence ----------------------------------------------------------------------------------

    def unasked(self) -> list[PastCall]:
        """Effects on record that the code has not asked for, also in no rehearsal."""
        return self.records.unasked()

    def blocked(
        self, asked: Asked, *, may_still: Callable[[str], bool], was_around: Callable[[str], bool]
    ) -> list[PastCall]:
        """Recorded effects that a new one may be. `may_still`: calls that the code of another scope may still ask for;
        `was_around`: calls of a scope around that another branch declares as its own (`was=`).
        """
        return [past for past in self.unasked() if self._may_be(past, asked, may_still, was_around)]

    def _may_be(
        self, past: PastCall, asked: Asked, may_still: Callable[[str], bool], was_around: Callable[[str], bool]
    ) -> bool:
        if is_rewound(past):  # The person who rewound the run may want another path.
            return self.arguments.is_alike(past, asked)
        if on_one_line(split(past.address)[0], asked.path) and not was_around(past.address):
            return True
        return not may_still(past.address) or self.arguments.same_values(past, asked)

    def moved(self, asked: Asked) -> list[PastCall]:
        """Recorded effects of other scopes with the same arguments that were not asked for here, even if a rehearsal
        asked for them: which task asks for which effect may depend on timing.
        """
        left = [self.records.today(past) for past in self.records.executed() if past.address not in self.asked]
        elsewhere = (past for past in left if not on_one_line(split(past.address)[0], asked.path))
        return [past for past in elsewhere if may_have_happened(past) and self.arguments.same_values(past, asked)]

    def is_left(self, past: Past) -> bool:
        """Whether a person declared that the effect stands and the code leaves it out. Not for effects in doubt."""
        return self.words.leaves(self.records.today(past))

    def twin(self, past: Past, asked: Asked) -> str:
        """Another executed effect of that name with these very arguments that no call has asked for."""
        if not asked.fenced:
            return ""
        beside = self.records.group(asked.kind, asked.path, asked.name).values()
        elsewhere = (one for one in self.unasked() if split(one.address)[1] == asked.name)
        left = (one for one in (*beside, *elsewhere) if one.address not in self.asked and one.address != past.address)
        return next((one.address for one in left if one.kind == asked.kind and self.arguments.same(one, asked)), "")
