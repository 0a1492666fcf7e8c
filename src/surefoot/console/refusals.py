"""Errors as answers: the same object as the command line's `--json`, and the status that fits it."""

from __future__ import annotations

from typing import Final

from surefoot import errors
from surefoot.errors import SurefootError
from surefoot.view import facts
from surefoot.view.facts import Facts

WORDS: Final = {
    400: "That is wrong use.",
    401: "Sign in first.",
    403: "You may not do that.",
    404: "There is no such page.",
    405: "That is not possible here.",
    413: "That is too large.",
}

_STATUS: Final[tuple[tuple[type[SurefootError], int], ...]] = (
    (errors.NotFound, 404),
    (errors.Outdated, 409),
    (errors.ValueRejected, 422),
    (errors.StoreFull, 507),
    (errors.StoreUnavailable, 503),
    (errors.UsageError, 400),
)


def status(error: SurefootError) -> int:
    """The first that fits; what is damaged, or not foreseen, is 500."""
    return next((code for kind, code in _STATUS if isinstance(error, kind)), 500)


def told(error: SurefootError) -> Facts:
    return facts.failure(facts.error(error, run=getattr(error, "run_id", ""), exit_code=error.exit_code))
