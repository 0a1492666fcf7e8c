"""A rule: its texts, and the function that finds.

The page `docs/lint.md`, `--explain` and SARIF are written from these texts, and the tests run `bad` and `good`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import ast

    from surefoot.lint.flow import Look

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Hit:
    """What a rule's function gives: a node, what is filled into the rule's sentence, and the way there."""

    node: ast.AST
    about: str = ""
    via: tuple[str, ...] = ()
    preview: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. `says` has `{}` where the name of the call or variable goes."""

    code: str
    name: str
    severity: Severity
    says: str
    cure: str
    why: str
    quiet: str
    bad: str
    good: str
    words: tuple[str, ...]
    """A file without any of these words cannot have a finding: the rule does not look at it."""
    find: Callable[[Look], Iterator[Hit]]
    preview: str = ""
    """Which part of the rule needs `--preview`; empty: none."""

    def message(self, about: str) -> str:
        return self.says.replace("{}", about)
