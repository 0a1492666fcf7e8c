"""Which errors of a model say "later", and how long they want us to wait. Clients are known by name, nothing is imported."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from surefoot.adapters.waiting import asked_to_wait, is_passing


def error(name: str, **fields: object) -> Exception:
    made = type(name, (Exception,), {})("x")
    vars(made).update(fields)
    return made


@pytest.mark.parametrize(
    ("raised", "passes"),
    [
        (error("APIStatusError", status_code=503), True),
        (error("APIStatusError", status_code=429), True),
        (error("APIStatusError", status_code=400), False),
        (error("APIConnectionError"), True),
        (error("ModelConnectionError"), True),
        (ConnectionResetError(), True),
        (ValueError("bad"), False),
        (ExceptionGroup("all", [error("A", status_code=400), error("B", status_code=503)]), True),
        (ExceptionGroup("all", [error("A", status_code=400), ValueError()]), False),
    ],
    ids=str,
)
def test_only_what_says_later_is_asked_again(raised, passes):
    """A model that fell back to others by itself is away only when one of them may come back."""
    assert is_passing(raised) is passes


@pytest.mark.parametrize(
    ("fields", "seconds"),
    [
        ({"response": SimpleNamespace(headers={"retry-after": "7"})}, 7),
        ({"retry_after": 9.5}, 9.5),
        ({"retry_after": None}, None),
        ({"retry_after": "soon"}, None),
        ({"retry_after": -1}, None),
        ({}, None),
    ],
    ids=str,
)
def test_a_servers_word_on_how_long_is_honoured(fields, seconds):
    assert asked_to_wait(error("E", **fields)) == seconds
