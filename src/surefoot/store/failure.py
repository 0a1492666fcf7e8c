"""Failures that several stores have in common. No message contains a password.

A server fails in two ways: the connection is gone, or the server refuses.
"""

from __future__ import annotations

from surefoot.core.cure import NEWER_VERSION
from surefoot.errors import SchemaMismatch, StoreUnavailable


class Lost(Exception):
    """The connection is gone. The request may have been executed, or not."""


class Rejected(Exception):
    """The server refused: nothing of the request was executed."""

    def __init__(self, code: str, message: str, constraint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.constraint = constraint


def unreachable(where: str, why: str, seconds: float) -> StoreUnavailable:
    tried = f" Tried for {seconds:.0f} s." if seconds >= 1 else ""
    return StoreUnavailable(
        f"{where}: the server cannot be reached: {why}.{tried} Nothing that was acknowledged is lost; what was under way "
        "is found out by reading at the next resume."
    )


def newer_format(what: str, found: int, known: int) -> SchemaMismatch:
    return SchemaMismatch(
        f"{what} has format {found}, this version of surefoot knows up to {known}.", cures=(NEWER_VERSION,)
    )
