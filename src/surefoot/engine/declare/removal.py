"""Effects that the code no longer has: runs that executed them go on without them, and that is noted.

`sf.removed("book")` is declared once, at module level, in the deploy that removes the effect. It undoes nothing. It
does not cover an effect in doubt, nor a record that a new effect may be: one of that name, or with the same arguments.
"""

from __future__ import annotations

from typing import Any

from surefoot.core.address import escape, is_address, split
from surefoot.core.cure import ANY_RUN, command
from surefoot.core.history import DOUBTFUL, Past, PastEffect
from surefoot.errors import UsageError

_removed: set[str] = set()


def removed(*names: Any) -> None:
    """Say that the code no longer has effects of these names. What they did outside stays done."""
    for name in names:
        if not isinstance(name, str) or not name:
            raise UsageError(f"sf.removed({name!r:.60}): the name of an effect that the code no longer has")
        if name.endswith(".undo"):
            effect = name.removesuffix(".undo")
            raise UsageError(f'sf.removed({name!r:.60}): an undo belongs to its effect: sf.removed("{effect}")')
        if is_address(name):
            raise UsageError(
                f"sf.removed({name!r:.60}): it takes the name of an effect, and this is the address of a call. For one call of "
                f"one run: {command('match', ANY_RUN, name, keep=True)}"
            )
        _removed.add(escape(name))


def is_removed(past: Past) -> bool:
    """Whether the code declares this effect as removed."""
    return split(past.address)[1].removesuffix(".undo") in _removed


def is_open(past: PastEffect) -> bool:
    """Whether a removed effect is in doubt: a person has to settle it first."""
    return past.state in DOUBTFUL and not past.rewound and is_removed(past)
