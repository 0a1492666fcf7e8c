"""Parts that this handle has seen whole in the store: they are neither looked at nor sent again.

Another process may delete parts (`discard`), and counts that in the store. Whoever relies on what was seen holds that
count against the one it was seen under.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from surefoot.core.parts import Cut, Part, lacking

_LIMIT: Final = 100_000


class Sound:
    def __init__(self) -> None:
        self._names: set[bytes] = set()
        self._swept: object = None

    @property
    def swept(self) -> object:
        """How often parts had been deleted when these were seen; None: look that up first."""
        return self._swept if len(self._names) <= _LIMIT else None

    def under(self, swept: object) -> None:
        """How often parts have been deleted by now. If it is another number, what was seen may be gone."""
        if swept is None or swept != self.swept:
            self._names.clear()
            self._swept = swept

    def lacking(self, cuts: Sequence[Cut], fetch: Callable[[Sequence[bytes]], Mapping[bytes, Part]]) -> Iterator[Part]:
        """What has to be written of these values. `fetch`: the parts that the store has, as found."""
        for cut in cuts:
            yield from lacking(cut, self._names, fetch)

    def note(self, cuts: Sequence[Cut]) -> None:
        """Once committed: every part of these values is there, and whole."""
        for cut in cuts:
            self._names.update(cut.leaves, cut.nodes)
