"""What the exceptions of well-known clients prove about a request: a table, and the rules to read it.

Never wrong beats convenient: whatever is not certain is *unsure*. Classes, with their bases, are known by package
and name: nothing is imported. Three things weaken what a client's exception proves, and all three are checked:
the client may have retried by itself, it may have followed a redirection (the first server did what it was asked to),
and the exception may only wrap what really happened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from itertools import islice
from typing import Any, Final

from msgspec import Struct

MANY: Final = 20
"""The depth to which exceptions that wrap each other are read."""


class Known(Enum):
    NOT_SENT = "the request was not sent"
    REFUSED = "the other side refused it"
    UNSURE = "nobody can tell whether it was carried out"


class Family(Struct, frozen=True):
    """The exceptions of one client, by the names of their classes. A class that is not named is unsure."""

    not_sent: frozenset[str] = frozenset()
    refused: frozenset[str] = frozenset()
    wraps: frozenset[str] = frozenset()
    """Classes that prove something only by the exception that they wrap."""
    unsure: frozenset[str] | None = None
    """Classes that are unsure. None: all others. Else only these, and nothing is known of the others."""
    status: tuple[str, ...] = ()
    """Where the HTTP status of an answer is found."""
    codes: tuple[str, frozenset[Any]] | None = None
    """Where another code is found, and which of them are refusals."""
    method: str = ""
    """Where the method is found, if the client silently sends all but POST and PATCH once more."""
    retries: bool = False
    """Whether the client tries again by itself: then its exception tells only of the last try."""


def _names(names: str) -> frozenset[str]:
    return frozenset(names.split())


_HTTPX: Final = Family(not_sent=_names("ConnectError ConnectTimeout PoolTimeout"), status=("response.status_code",))
_HTTPCORE: Final = Family(not_sent=_names("ConnectError ConnectTimeout PoolTimeout"))
_REQUESTS: Final = Family(
    not_sent=_names("ConnectTimeout"),
    wraps=_names("ConnectTimeout ConnectionError"),
    status=("response.status_code",),
)
_URLLIB3: Final = Family(
    not_sent=_names("NewConnectionError NameResolutionError ConnectTimeoutError"),
    wraps=_names("MaxRetryError SSLError ProxyError"),
)
_AIOHTTP: Final = Family(
    not_sent=_names("ClientConnectorError ConnectionTimeoutError"),
    status=("status",),
    method="request_info.method",
)
_SMTP: Final = Family(
    not_sent=_names("SMTPConnectError SMTPNotSupportedError"),
    refused=_names("SMTPRecipientsRefused SMTPSenderRefused SMTPHeloError SMTPAuthenticationError"),
    codes=("smtp_code", frozenset(range(400, 600))),  # Any answer but 250 is an SMTPDataError.
)
_GRPC: Final = Family(
    # Codes that the library itself never gives to a call which the server may have carried out.
    codes=(
        "code.name",
        _names("INVALID_ARGUMENT NOT_FOUND FAILED_PRECONDITION OUT_OF_RANGE PERMISSION_DENIED UNAUTHENTICATED"),
    )
)
_DATABASE: Final = Family(refused=_names("IntegrityError DataError"))
_MODEL_API: Final = Family(status=("status_code",), retries=True)
_BOTO: Final = Family(
    not_sent=_names("ParamValidationError NoCredentialsError"),
    status=("response.ResponseMetadata.HTTPStatusCode",),
    retries=True,
)
_STRIPE: Final = Family(refused=_names("CardError"), status=("http_status",), retries=True)
_CLOUD: Final = Family(status=("status_code", "code", "resp.status"), retries=True)
_UNSURE: Final = Family()

FAMILIES: Final[dict[str, Family]] = {
    "builtins": Family(not_sent=_names("ConnectionRefusedError"), unsure=_names("TimeoutError ConnectionError")),
    "socket": Family(not_sent=_names("gaierror"), unsure=_names("herror")),
    "ssl": Family(not_sent=_names("SSLCertVerificationError"), unsure=_names("SSLError")),
    "subprocess": Family(unsure=_names("TimeoutExpired")),
    "asyncio": Family(unsure=_names("IncompleteReadError")),
    "anyio": Family(unsure=_names("BrokenResourceError ClosedResourceError EndOfStream IncompleteRead")),
    "surefoot.errors": Family(refused=_names("HttpError"), unsure=_names("HttpUnsure")),
    "http.client": _UNSURE,
    "urllib.error": Family(wraps=_names("URLError"), status=("code",)),
    "httpx": _HTTPX,
    "httpx2": _HTTPX,
    "httpcore": _HTTPCORE,
    "httpcore2": _HTTPCORE,
    "requests": _REQUESTS,
    "urllib3": _URLLIB3,
    "aiohttp": _AIOHTTP,
    "smtplib": _SMTP,
    "grpc": _GRPC,
    "psycopg": _DATABASE,
    "psycopg2": _DATABASE,
    "sqlalchemy.exc": _DATABASE,
    "sqlite3": _DATABASE,
    "django.db.utils": _DATABASE,
    "asyncpg": Family(refused=_names("IntegrityConstraintViolationError DataError")),
    "openai": _MODEL_API,
    "anthropic": _MODEL_API,
    "botocore": _BOTO,
    "boto3": _BOTO,
    "stripe": _STRIPE,
    "azure": _CLOUD,
    "google.api_core": _CLOUD,
    "google.auth": _CLOUD,
    "google.cloud": _CLOUD,
    "google.genai": _CLOUD,
    "googleapiclient": _CLOUD,
    "redis": _UNSURE,
    "pymongo": _UNSURE,
    # Raised by a tool instead of doing it: it is called again once somebody agreed.
    "pydantic_ai.exceptions": Family(refused=_names("ApprovalRequired CallDeferred"), unsure=frozenset()),
}
"""Package or module -> what its exceptions mean."""

NO_REFUSAL: Final = frozenset({408, 409})
"""A gateway may answer 408 after it has passed the request on; 409 may be the answer to an earlier request."""
REFUSED_AFTER_RETRIES: Final = frozenset({400, 401, 403, 404, 405, 413, 415, 422})
"""The refusals of a client that retries by itself. Not 429: an earlier try may have got through."""
SENT_ONCE: Final = ("POST", "PATCH")
"""aiohttp sends a request of any other method once more if the connection was lost."""
_RETRIES: Final = ("response.ResponseMetadata.RetryAttempts", "response.request.headers.x-stainless-retry-count")
"""Where clients that retry by themselves keep the number of retries."""
_EARLIER: Final = ("response.history", "history")
"""Where clients keep the answers that redirected them."""


def known(error: BaseException) -> Known | None:
    """What this exception proves, by the client it comes from. None: the client is not known."""
    return _known(error, MANY)


def _known(error: BaseException, depth: int, *, alone: bool = False) -> Known | None:
    """`alone`: only this one request counts, whatever the client did before it."""
    for cls in type(error).__mro__:
        family = _family(cls.__module__)
        if family is None or (family.unsure is not None and not _is_named(family, cls.__name__)):
            continue
        if depth <= 0 or (not alone and _was_elsewhere_before(error, depth)):
            return Known.UNSURE
        # Only the family of the nearest class counts: botocore has errors that are urllib3's too, and retries.
        return _within(family, error, depth)
    return None


def _within(family: Family, error: BaseException, depth: int) -> Known:
    for name in (cls.__name__ for cls in type(error).__mro__ if _family(cls.__module__) is family):
        inner = _wrapped(error) if name in family.wraps else None
        if inner is not None:
            return Known.NOT_SENT if _known(inner, depth - 1) is Known.NOT_SENT else Known.UNSURE
        if name in family.not_sent:
            return Known.NOT_SENT
        if name in family.refused:
            return Known.REFUSED
        if name in (family.unsure or ()):
            return Known.UNSURE
    return Known.REFUSED if _is_refusal(family, error) else Known.UNSURE


def _is_refusal(family: Family, error: BaseException) -> bool:
    if family.codes is not None:
        return _reach(error, family.codes[0]) in family.codes[1]
    if family.method and _reach(error, family.method) not in SENT_ONCE:
        return False
    status = next((found for path in family.status if type(found := _reach(error, path)) is int), 0)
    if not family.retries:
        return 400 <= status < 500 and status not in NO_REFUSAL
    tried_again = any(str(_reach(error, path) or 0) != "0" for path in _RETRIES)
    return status in REFUSED_AFTER_RETRIES and not tried_again


def _is_named(family: Family, name: str) -> bool:
    return name in family.not_sent | family.refused | family.wraps | (family.unsure or frozenset())


def _family(module: str) -> Family | None:
    """The family of the longest part of a module's name that is in the table."""
    while module:
        if (found := FAMILIES.get(module)) is not None:
            return found
        module = module.rpartition(".")[0]
    return None


def is_caught_in_client(error: BaseException) -> bool:
    """Whether the exception went no further than the code of a client that is known here."""
    trace = error.__traceback__
    return trace is not None and _family(str(trace.tb_frame.f_globals.get("__name__"))) is not None


def _wrapped(error: BaseException) -> BaseException | None:
    carried = (_reach(error, "reason"), _reach(error, "original_error"), *error.args)
    return next((one for one in carried if isinstance(one, BaseException) and one is not error), None)


def _reach(thing: Any, path: str) -> Any:
    """Follow names and keys; None where there is none. This runs code of others: its errors are ignored."""
    try:
        for name in path.split("."):
            thing = thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)
            if callable(thing) and name == "code":  # gRPC has it as a method
                thing = thing()
    except Exception:  # noqa: BLE001 - whatever it is, it tells us nothing
        return None
    return thing


# -- what came before ---------------------------------------------------------------------------------


def _was_elsewhere_before(error: BaseException, depth: int) -> bool:
    """Whether the client had sent a request that may have been carried out before this one: redirected, or retried."""
    if any(_reach(error, path) for path in _EARLIER) or _got_through(_reach(error, "response.raw.retries"), depth):
        return True
    for module, function, names in _frames(error):
        look = _TRACES.get((module, function))
        if look is not None and look(names, depth):
            return True
    return False


def _frames(error: BaseException) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    trace = error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        if (str(frame.f_globals.get("__name__")), frame.f_code.co_name) in _TRACES:
            yield str(frame.f_globals.get("__name__")), frame.f_code.co_name, frame.f_locals
        trace = trace.tb_next


def _has_history(names: Mapping[str, Any], depth: int) -> bool:
    return bool(names.get("history"))


def _aiohttp_again(names: Mapping[str, Any], depth: int) -> bool:
    """A lost connection makes aiohttp repeat some requests once. aiohttp keeps no record of the first one."""
    once_more = names.get("retry_persistent_connection") is False
    return bool(names.get("history")) or (once_more and names.get("method") not in SENT_ONCE)


def _got_through(retries: Any, depth: int) -> bool:
    """Retries of urllib3, which requests uses, keep the outcome of each try. Tries that were not sent change nothing.

    A 404 may be the answer to the second try of a DELETE whose first try was carried out.
    """
    tries = _reach(retries, "history")
    errors = (getattr(one, "error", None) for one in islice(tries if isinstance(tries, tuple | list) else (), 1000))
    return any(error is None or _known(error, depth - 1, alone=True) is not Known.NOT_SENT for error in errors)


def _always(names: Mapping[str, Any], depth: int) -> bool:
    return True


_TRACES: Final[dict[tuple[str, str], Callable[[Mapping[str, Any], int], bool]]] = {
    ("httpx._client", "_send_handling_redirects"): _has_history,
    ("httpx2._client", "_send_handling_redirects"): _has_history,
    ("aiohttp.client", "_request"): _aiohttp_again,
    ("urllib3.connectionpool", "urlopen"): lambda names, depth: _got_through(names.get("retries"), depth),
    ("requests.sessions", "resolve_redirects"): _always,
    ("urllib.request", "http_error_302"): _always,
}
"""Module and function of a client through which an exception came -> whether the request had been sent before."""
