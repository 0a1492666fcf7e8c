"""A secret that is known is in no text that is recorded: exceptions repeat what was passed to the call."""

from __future__ import annotations

import base64
import dataclasses
from typing import Any
from urllib.parse import quote_plus

import msgspec
import pytest

from surefoot.core import values
from surefoot.core.cure import Advice, Edit, command
from surefoot.core.entry import Drift, Stop
from surefoot.core.forms import RECORDED
from surefoot.core.masking import Mask, secrets_in
from surefoot.core.values import Secret
from surefoot.errors import StepFailed, UsageError

VALUE = "kän/ary 77'\"+x"


def mask_of(*secrets: Any) -> Mask:
    mask = Mask()
    mask.learn(Secret(secret) for secret in secrets)
    return mask


@pytest.mark.parametrize(
    "form",
    [
        VALUE,
        repr(VALUE)[1:-1],
        quote_plus(VALUE),
        base64.b64encode(VALUE.encode()).decode(),
        base64.urlsafe_b64encode(VALUE.encode()).decode().rstrip("="),
        msgspec.json.encode(VALUE).decode()[1:-1],
    ],
)
def test_a_secret_is_masked_in_the_forms_in_which_it_travels(form):
    assert mask_of(VALUE)(f"<{form}>") == "<***>"


def test_a_url_is_masked_in_parts():
    """Clients tell host and path apart: `Max retries exceeded with url: /hook?token=…`."""
    mask = mask_of("https://ann:pass%20word@api.example/hook?token=CANARY-77&x=1")

    told = mask("HTTPSConnectionPool(host='api.example'): url: /hook?token=CANARY-77&x=1 (pass word, CANARY-77)")

    assert told == "HTTPSConnectionPool(host='api.example'): url: *** (***, ***)"


def test_short_secrets_are_left():
    """To mask `on` would blot out ordinary words; nothing is known of what was only recorded."""
    mask = mask_of("on", "", 7, None, True, RECORDED)

    assert not mask
    assert mask("on and on 7 True None") == "on and on 7 True None"


def test_what_a_secret_holds_is_known():
    mask = mask_of({"user": "ann-77", "keys": [b"bytes-77", 123456]})

    assert mask("ann-77 bytes-77 123456 keys") == "*** *** *** keys"


def test_secrets_are_found_in_containers_and_objects():
    @dataclasses.dataclass
    class Client:
        token: Secret[str]
        self: Any = None

    class Plain:
        def __init__(self) -> None:
            self.inner = Client(Secret("plain"))

    client = Client(Secret("field"))
    client.self = client
    found = secrets_in([{"a": (Secret("item"),)}], {Secret("element")}, client, Plain())

    assert sorted({secret.reveal() for secret in found}) == ["element", "field", "item", "plain"]


@pytest.mark.parametrize(
    "error",
    [
        ValueError("no answer from CANARY-77"),
        OSError(5, "io", "/CANARY-77/file"),
        KeyError(("CANARY-77", [b"xCANARY-77x", {"CANARY-77": {"CANARY-77"}}])),
        UnicodeDecodeError("utf-8", b"CANARY-77\xff", 9, 10, "bad"),
        ExceptionGroup("CANARY-77", [ValueError("CANARY-77")]),
        StepFailed("T", "CANARY-77"),
        RuntimeError(object(), "CANARY-77"),
        ValueError("x" * 9_995 + "CANARY-77" * 5),
    ],
    ids=lambda error: type(error).__name__,
)
def test_no_part_of_a_failure_tells(error):
    error.add_note("noted CANARY-77")
    error.hint = "CANARY-77"
    error.__cause__ = ValueError("because of CANARY-77")

    raw = values.encode_error(error, mask_of("CANARY-77"))

    back = values.decode_error(raw)
    assert b"CANARY" not in raw
    assert base64.b64encode(b"CANARY-77")[:8] not in raw
    assert isinstance(back, type(error))
    assert "CANAR" not in f"{back} {back!r} {vars(back)} {back.__notes__} {back.__cause__!r}"


def test_numbers_are_masked_where_they_are_the_secret():
    back = values.decode_error(values.encode_error(ValueError(123456, 1234567), mask_of(123456)))

    assert back.args == ("***", 1234567)


def test_stops_and_misuse_do_not_tell():
    mask = mask_of("CANARY-77")
    cures = (
        command("settle", "CANARY-77", "a#1", by="CANARY-77", at=("CANARY-77",), when="CANARY-77?", first="CANARY-77"),
        Edit("CANARY-77", "CANARY-77", "on CANARY-77"),
        Advice("CANARY-77", "say CANARY-77"),
    )
    drift = (Drift("file(CANARY-77)", "file:CANARY-77", "changed", "CANARY-77", "CANARY-77", "CANARY-77"),)
    stop = mask.stop(Stop("InDoubt", "raised CANARY-77", "a#1", {"known": "CANARY-77"}, cures, drift))
    assert "CANARY" not in str(msgspec.json.encode(stop))
    misuse = UsageError("touches= failed: CANARY-77")
    misuse.__cause__ = ValueError("CANARY-77")
    harmless = UsageError("no")
    harmless.__cause__ = ValueError("fine")

    assert str(mask.error(misuse)) == "touches= failed: ***"
    assert misuse.__cause__ is None
    assert mask.error(harmless).__cause__ is not None
