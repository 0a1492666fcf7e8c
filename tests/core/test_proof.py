"""What an exception of an effect proves. Wrong on one side it costs a question, on the other a second charge."""

from __future__ import annotations

import http.client
import smtplib
import socket
import sqlite3
import ssl
import subprocess
import urllib.error
from types import ModuleType, SimpleNamespace

import pytest

from surefoot.core.clients import Known, known
from surefoot.core.proof import proves_not_done
from surefoot.errors import Fatal, HttpError, HttpUnsure, NotDone, RetryAfter, Unavailable


def of(package: str, *names: str, **fields: object) -> BaseException:
    """An exception of a client that need not be installed: a class of that package for each name, the last one raised."""
    module = ModuleType(package)
    made: type[Exception] = Exception
    for name in names:
        made = type(name, (made,), {"__module__": module.__name__})
    error = made(*fields.pop("args", ("said",)))  # type: ignore[misc]
    vars(error).update(fields)
    return error


def answered(status: int, **more: object) -> SimpleNamespace:
    return SimpleNamespace(status_code=status, history=[], **more)


NOT_SENT, REFUSED, UNSURE = Known.NOT_SENT, Known.REFUSED, Known.UNSURE
TABLE = {
    "a refused connection": (ConnectionRefusedError(), NOT_SENT),
    "a name that does not resolve": (socket.gaierror(), NOT_SENT),
    "a certificate that is not good": (ssl.SSLCertVerificationError(), NOT_SENT),
    "TLS broke": (ssl.SSLError(), UNSURE),
    "a time-out": (TimeoutError(), UNSURE),
    "a reset": (ConnectionResetError(), UNSURE),
    "a pipe": (BrokenPipeError(), UNSURE),
    "a process that took too long": (subprocess.TimeoutExpired("deploy", 1), UNSURE),
    "a bug": (KeyError("id"), None),
    "an OSError": (OSError(5, "io"), None),
    "http_request refused": (HttpError(402, "no"), REFUSED),
    "http_request unsure": (HttpUnsure(500, "?"), UNSURE),
    "half an answer": (http.client.IncompleteRead(b"x"), UNSURE),
    "no answer": (http.client.RemoteDisconnected(), UNSURE),
    "urllib, no connection": (urllib.error.URLError(ConnectionRefusedError()), NOT_SENT),
    "urllib, a time-out": (urllib.error.URLError(TimeoutError()), UNSURE),
    "urllib, words": (urllib.error.URLError("unknown url type"), UNSURE),
    "a mail refused": (smtplib.SMTPRecipientsRefused({}), REFUSED),
    "a mail refused at its end": (smtplib.SMTPDataError(554, b"no"), REFUSED),
    "a mail taken with another code": (smtplib.SMTPDataError(252, b"well"), UNSURE),
    "the mail server hung up": (smtplib.SMTPServerDisconnected(), UNSURE),
    "a row twice": (sqlite3.IntegrityError(), REFUSED),
    "a locked database": (sqlite3.OperationalError(), UNSURE),
    "SQLAlchemy, a row twice": (of("sqlalchemy.exc", "DatabaseError", "IntegrityError"), REFUSED),
    "httpx, no connection": (of("httpx", "TransportError", "ConnectError"), NOT_SENT),
    "httpx, a subclass of yours": (type("Mine", (type(of("httpx", "ConnectError")),), {})(), NOT_SENT),
    "httpx, a time-out": (of("httpx", "TimeoutException", "ReadTimeout"), UNSURE),
    "httpx, 402": (of("httpx", "HTTPStatusError", response=answered(402)), REFUSED),
    "httpx, 408": (of("httpx", "HTTPStatusError", response=answered(408)), UNSURE),
    "httpx, 409": (of("httpx", "HTTPStatusError", response=answered(409)), UNSURE),
    "httpx, 500": (of("httpx", "HTTPStatusError", response=answered(500)), UNSURE),
    "httpx, 404 elsewhere": (
        of("httpx", "HTTPStatusError", response=SimpleNamespace(status_code=404, history=[answered(302)])),
        UNSURE,
    ),
    "requests, which wraps what was not sent": (
        of("requests.exceptions", "ConnectionError", args=(of("urllib3.exceptions", "NewConnectionError"),)),
        NOT_SENT,
    ),
    "requests, which wraps something else": (
        of("requests.exceptions", "ConnectionError", args=(of("urllib3.exceptions", "ProtocolError"),)),
        UNSURE,
    ),
    "requests, which wraps nothing": (of("requests.exceptions", "ConnectionError"), UNSURE),
    "openai, 400": (of("openai", "APIStatusError", status_code=400), REFUSED),
    "openai, 429": (of("openai", "APIStatusError", "RateLimitError", status_code=429), UNSURE),
    "openai, no connection": (of("openai", "APIConnectionError"), UNSURE),
    "openai, 404 at the second try": (
        of(
            "openai",
            "APIStatusError",
            status_code=404,
            response=answered(404, request=SimpleNamespace(headers={"x-stainless-retry-count": "1"})),
        ),
        UNSURE,
    ),
    "boto, 400": (
        of("botocore.exceptions", "ClientError", response={"ResponseMetadata": {"HTTPStatusCode": 400}}),
        REFUSED,
    ),
    "boto, 400 after a retry": (
        of(
            "botocore.exceptions",
            "ClientError",
            response={"ResponseMetadata": {"HTTPStatusCode": 400, "RetryAttempts": 2}},
        ),
        UNSURE,
    ),
    "boto, whose classes are urllib3's too": (
        type("ConnectTimeoutError", (type(of("urllib3.exceptions", "ConnectTimeoutError")),),
             {"__module__": "botocore.exceptions"})(),
        UNSURE,
    ),
    "a card declined": (of("stripe", "StripeError", "CardError", http_status=402), REFUSED),
    "stripe, 429": (of("stripe", "StripeError", "RateLimitError", http_status=429), UNSURE),
    "azure, 403": (of("azure.core.exceptions", "HttpResponseError", status_code=403), REFUSED),
    "azure, not sent at last": (of("azure.core.exceptions", "ServiceRequestError"), UNSURE),
    "google, 404": (of("google.api_core.exceptions", "NotFound", code=404), REFUSED),
    "google, 503": (of("google.api_core.exceptions", "ServiceUnavailable", code=503), UNSURE),
    "gRPC, refused": (of("grpc", "RpcError", code=lambda: SimpleNamespace(name="INVALID_ARGUMENT")), REFUSED),
    "gRPC, not there": (of("grpc", "RpcError", code=lambda: SimpleNamespace(name="UNAVAILABLE")), UNSURE),
    "gRPC, broken": (of("grpc", "RpcError", code=lambda: 1 / 0), UNSURE),
}  # fmt: skip


@pytest.mark.parametrize("case", TABLE)
def test_what_is_known_of_a_client(case):
    error, expected = TABLE[case]

    assert known(error) is expected


def test_exceptions_that_wrap_each_other_without_end_are_unsure():
    """Whatever a client builds, nothing here may hang or overflow."""
    error = urllib.error.URLError("x")
    error.reason = urllib.error.URLError(error)  # type: ignore[assignment]

    assert known(error) is UNSURE


class Declined(Exception): ...


class Odd(Declined): ...


class Late(Declined, TimeoutError): ...


class AllDeclined(ExceptionGroup[Exception]): ...


@pytest.mark.parametrize(
    ("error", "not_done", "proves"),
    [
        (KeyError("id"), None, False),
        (Declined(), None, False),
        (Fatal(), None, True),
        (NotDone(), (), True),
        (RetryAfter(1), (), True),
        (Unavailable("down"), (), True),
        (ConnectionRefusedError(), None, True),
        (ConnectionRefusedError(), (), False),
        (ConnectionRefusedError(), (Declined,), True),
        (Declined(), (Declined,), True),
        (Odd(), (Declined,), True),
        (Late(), (Declined,), False),
        (Late(), (Late,), True),
        (KeyError("id"), (Exception,), True),
        (TimeoutError(), (Exception,), False),
        (TimeoutError(), (Exception, TimeoutError), True),
        (ConnectionResetError(), (OSError,), False),
        (ConnectionResetError(), (ConnectionError,), False),
        (KeyboardInterrupt(), (Exception,), False),
        (ExceptionGroup("tasks", [Declined(), Odd()]), (Declined,), True),
        (ExceptionGroup("tasks", [Declined(), ExceptionGroup("more", [TimeoutError()])]), (Exception,), False),
        (ExceptionGroup("tasks", [NotDone(), KeyError()]), None, False),
        (BaseExceptionGroup("tasks", [KeyboardInterrupt()]), (Exception,), False),
        (ExceptionGroup("by hand", [NotDone(), Fatal()]), (), True),
        (ExceptionGroup("by hand", [ConnectionRefusedError()]), None, False),
        (ExceptionGroup("by hand", [HttpError(402, "no")]), None, False),
        (ExceptionGroup("by hand", [NotDone(), ConnectionRefusedError()]), None, False),
        (ExceptionGroup("by hand", [Declined(), ConnectionRefusedError()]), (Declined,), False),
        (ExceptionGroup("by hand", [Declined(), ConnectionRefusedError()]), (Declined, ConnectionRefusedError), True),
        (AllDeclined("by hand", [Declined(), ConnectionRefusedError()]), (AllDeclined,), True),
        (AllDeclined("by hand", [Declined(), TimeoutError()]), (AllDeclined,), False),
        (AllDeclined("by hand", [Declined()]), (ExceptionGroup,), False),
        (ExceptionGroup("by hand", [AllDeclined("more", [Odd()]), NotDone()]), (AllDeclined,), True),
    ],
)
def test_what_not_done_means(error, not_done, proves):
    """A broad class does not speak for what is known as unsure. A group is as bad as its worst, and does not tell of the
    requests that got through: that one was refused or not sent says nothing about those.
    """
    assert proves_not_done(error, not_done) is proves


def raised(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as caught:
        return caught


def caused(error: BaseException, *causes: BaseException) -> BaseException:
    """As `raise error from cause` leaves it, and that one from the next."""
    last = error
    for cause in causes:
        last.__cause__ = cause
        last = cause
    return error


def in_context(error: BaseException, earlier: BaseException) -> BaseException:
    error.__context__ = earlier
    return error


@pytest.mark.parametrize(
    ("error", "not_done", "proves"),
    [
        (caused(ConnectionRefusedError(), TimeoutError()), None, False),
        (caused(HttpError(404, "no"), KeyError(), TimeoutError()), None, False),
        (in_context(HttpError(404, "no"), caused(KeyError(), TimeoutError())), None, False),
        (caused(HttpError(404, "no"), in_context(KeyError(), TimeoutError())), None, False),
        (caused(ConnectionRefusedError(), socket.gaierror()), None, True),
        (caused(NotDone(), TimeoutError()), (), True),
        (caused(Declined(), TimeoutError()), (Declined,), True),
        (caused(Odd(), TimeoutError()), (Declined,), False),
        (in_context(KeyError("id"), TimeoutError()), (Exception,), False),
        (caused(ConnectionRefusedError(), raised(ExceptionGroup("tasks", [socket.gaierror()]))), None, False),
    ],
)
def test_what_comes_from_something_unsure_is_no_proof_unless_the_code_says_so(error, not_done, proves):
    """The first host was slow, the second is down, `raise second from first`: the first may have carried it out."""
    assert proves_not_done(error, not_done) is proves


@pytest.mark.parametrize(("second", "proves"), [(ConnectionRefusedError(), True), (TimeoutError(), False)])
def test_a_group_that_lists_the_addresses_of_one_connection_is_judged_by_them(second, proves):
    """anyio raises "all connection attempts failed" from such a group, which was never raised itself."""
    tried = ExceptionGroup("multiple connection attempts failed", [OSError("unreachable"), second])
    error = caused(of("httpx", "ConnectError"), of("httpcore", "ConnectError"), OSError("all failed"), tried)

    assert proves_not_done(error, None) is proves


def test_exceptions_that_lead_to_each_other_in_a_circle_are_looked_at_once():
    first, second = KeyError("a"), KeyError("b")
    caused(first, second)
    in_context(second, first)

    assert proves_not_done(first, (Exception,))


def test_a_guard_clause_proves_it_unless_nothing_but_the_express_word_counts():
    assert proves_not_done(ValueError(), None, guarded=True)
    assert proves_not_done(ValueError(), (Declined,), guarded=True)
    assert not proves_not_done(ValueError(), (), guarded=True)
