"""Parts that this handle has read whole in the store: they are neither read nor sent again.

Another process may delete parts (`discard`). Each deletion is counted in the store. The known parts are only relied on
while that count is the same as when they were read.
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
        """The count of deletions when these were read; None: not known, read it first."""
        return self._swept if len(self._names) <= _LIMIT else None

    def under(self, swept: object) -> None:
        """Note the present count of deletions. If it differs, forget all known parts: they may be gone."""
        if swept is None or swept != self.swept:
            self._names.clear()
            self._swept = swept

    def lacking(self, cuts: Sequence[Cut], fetch: Callable[[Sequence[bytes]], Mapping[bytes, Part]]) -> Iterator[Part]:
        """The parts of these values that have to be written. `fetch`: the parts that the store has, as found."""
        for cut in cuts:
            yield from lacking(cut, self._names, fetch)

    def note(self, cuts: Sequence[Cut]) -> None:
        """After the commit: every part of these values is stored whole."""
        for cut in cuts:
            self._names.update(cut.leaves, cut.nodes)
