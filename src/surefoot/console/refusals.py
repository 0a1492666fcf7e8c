"""Errors as answers: the same object as the command line's `--json`, and the status that fits it."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import Response

from surefoot import errors
from surefoot.errors import SurefootError
from surefoot.view import facts, text
from surefoot.view.facts import Facts


class Refusal(SurefootError):
    """What the process with the code said about a word: as the verb would have refused it."""

    def __init__(self, told: dict[str, Any], status: int) -> None:
        super().__init__(told["message"])
        self.told, self.status, self.exit_code = told, status, int(told["exit_code"])


class Forbidden(SurefootError):
    """Somebody may not say that."""

    exit_code = 1


WORDS: Final = {
    400: "That is wrong use.",
    401: "Sign in first.",
    403: "You may not do that.",
    404: "There is no such page.",
    405: "That is not possible here.",
    413: "That is too large.",
}

_STATUS: Final[tuple[tuple[type[SurefootError], int], ...]] = (
    (Forbidden, 403),
    (errors.NotFound, 404),
    (errors.Outdated, 409),
    (errors.ValueRejected, 422),
    (errors.StoreFull, 507),
    (errors.StoreUnavailable, 503),
    (errors.UsageError, 400),
)


def as_json(told: Facts, code: int = 200) -> Response:
    """The bytes that the command line prints."""
    return Response(f"{text.to_json(told, indent=2)}\n", code, media_type="application/json")


def status(error: SurefootError) -> int:
    """The first that fits; what is damaged, or not foreseen, is 500."""
    if isinstance(error, Refusal):
        return error.status
    return next((code for kind, code in _STATUS if isinstance(error, kind)), 500)


def told(error: SurefootError) -> Facts:
    if isinstance(error, Refusal):
        return facts.failure(facts.passed_on(error.told))
    return facts.failure(facts.error(error, run=getattr(error, "run_id", ""), exit_code=error.exit_code))
