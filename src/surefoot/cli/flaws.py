"""Damage in words, for every verb that finds it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from surefoot.errors import Damaged
from surefoot.view import text, words

if TYPE_CHECKING:
    from surefoot.engine.upkeep.verification import Flaw

DAMAGED = Damaged.exit_code


def many(count: int, what: str) -> str:
    if count != 1:
        what = what.removesuffix("y") + "ies" if what.endswith("y") else what + "s"
    return f"{count:,} {what}"


def told(flaw: Flaw, store: str = "") -> str:
    """One line, with what to do now."""
    cures = "; ".join(f"{cure.when}: {words.told(cure, store)}" for cure in flaw.cures)
    return text.visible(f"damaged: {flaw}" + (f" [{cures}]" if cures else ""))
