"""From a batch of appends to one wish per run, and from the answers back to the batch.

Items that continue each other are one wish. An item that contradicts an earlier one for its run comes after it, in a
round of its own. If the answer of a backend may have been lost, a conflict is checked: our own seal at our own position is
our own commit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from surefoot.core.parts import Cut
from surefoot.core.seal import Record
from surefoot.store.contract import Conflict, Extend, Head, IndexRow


class PlaceTaken(Exception):
    """There is a record already where one was to be put."""


class Wish:
    """What is to be appended to one run, from one or more items of a batch that continue each other."""

    def __init__(self, item: Extend) -> None:
        self.run = item.run
        self.head = item.head
        self.end: Head | None = item.head
        self.places: list[int] = []
        self.records: list[Record] = []
        self.row: IndexRow | None = None
        self.cuts: list[Cut] = []

    def take(self, place: int, item: Extend) -> bool:
        """Take an item in, if it goes right behind what is here."""
        if item.head != self.end:
            return False
        self.places.append(place)
        self.records += item.records
        self.row = item.row or self.row
        self.cuts += item.cuts
        if item.records:
            self.end = Head(item.records[-1].seq, item.records[-1].seal)
        return True


Send = Callable[[list[Wish]], list[bool]]
"""Carry these out, in one transaction: whether each was granted. May raise `PlaceTaken`."""


def grant(batch: Sequence[Extend], send: Send) -> list[Conflict | None]:
    """The answer for each item of a batch, in the order asked."""
    answers: list[Conflict | None] = [None] * len(batch)
    left = list(range(len(batch)))
    while left:
        wishes: dict[str, Wish] = {}
        later = [at for at in left if not wishes.setdefault(batch[at].run, Wish(batch[at])).take(at, batch[at])]
        for wish, granted in zip(wishes.values(), _granted(list(wishes.values()), send), strict=True):
            for at in () if granted else wish.places:
                answers[at] = Conflict(wish.run)
        left = later
    return answers


def _granted(wishes: list[Wish], send: Send) -> list[bool]:
    try:
        return send(wishes)
    except PlaceTaken:
        # There is a record behind a head. The reader of that run will see it. This writer gets a conflict.
        return [False] if len(wishes) == 1 else [granted for wish in wishes for granted in _granted([wish], send)]


def settled(wishes: Sequence[Wish], granted: Sequence[bool], is_there: Callable[[Record], object]) -> list[bool]:
    """After a lost answer: a wish that is refused now may have been granted before. `is_there` says whether the store
    has exactly that record.
    """
    return [
        was or (bool(wish.records) and bool(is_there(wish.records[-1])))
        for wish, was in zip(wishes, granted, strict=True)
    ]
