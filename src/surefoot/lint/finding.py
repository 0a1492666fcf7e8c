"""What a rule found: where, and which rule. A plain value; it compares by place."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One place in one file. Lines and columns count from 1."""

    path: str
    line: int
    column: int
    code: str
    end_line: int
    message: str
    via: tuple[str, ...] = ()
    """The functions through which a workflow or step gets there, if it is not in that function itself."""
    preview: bool = False
    first_line: int = 0
    """Where the statement begins: an ignore may stand there too."""
