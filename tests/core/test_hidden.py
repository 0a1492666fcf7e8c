"""A recorded value with the secrets of the value at hand: everything else is as recorded, or there is no answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from surefoot.core import values
from surefoot.core.secret_places import NoPlace
from surefoot.core.values import Secret

S, T, OTHER = Secret("s"), Secret("t"), Secret("other")


@dataclass
class Login:
    user: str
    token: Secret[str]


@dataclass
class Badge:
    user: str
    token: Secret[str]


@pytest.fixture(autouse=True)
def _registered():
    values.register(Login)
    values.register(Badge)


def shown(value: Any) -> str:
    """A text of the whole value, with what its secrets are."""
    if isinstance(value, Secret):
        return f"<{value.reveal()}>"
    if isinstance(value, Login):
        return f"Login({value.user}, {shown(value.token)})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{shown(key)}: {shown(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}({', '.join(map(shown, value))})"
    return str(value)


@pytest.mark.parametrize(
    ("recorded", "now", "whole"),
    [
        (OTHER, S, "<s>"),
        ({"amount": 5, "auth": OTHER}, {"auth": S, "amount": 9999, "more": T}, "{amount: 5, auth: <s>}"),
        ({"a": {"amount": 5}, "b": [1, OTHER]}, {"a": T, "b": [2, S]}, "{a: {amount: 5}, b: list(1, <s>)}"),
        (Login("ann", OTHER), Login("bob", S), "Login(ann, <s>)"),
        ((5, OTHER, OTHER), (9999, S, T), "tuple(5, <s>, <t>)"),
        ({1: OTHER, "$x": 5}, {"$x": 9999, 1: S}, "{1: <s>, $x: 5}"),
        ([Login("a", OTHER), Login("b", OTHER)], [Login("a", S), Login("b", T)], "list(Login(a, <s>), Login(b, <t>))"),
        ({"tags": {1, 2}, "auth": OTHER}, {"tags": {3}, "auth": S}, "{tags: {1, 2}, auth: <s>}"),
    ],
)
def test_only_the_secrets_are_those_of_the_value_at_hand(recorded, now, whole):
    """What was sent under a key is sent again, with a key to the door that still opens it."""
    assert shown(values.with_secrets(values.encode(recorded), now)) == whole


@pytest.mark.parametrize(
    ("recorded", "now"),
    [
        (OTHER, "plain"),
        (OTHER, None),
        ({"auth": OTHER}, {"token": S}),
        ({"auth": OTHER}, {"auth": "plain"}),
        ({"auth": OTHER}, {"auth": {"inner": S}}),
        ({"auth": {"inner": OTHER}}, {"auth": S}),
        ({"auth": OTHER}, [S]),
        (Login("ann", OTHER), Badge("ann", S)),
        (Login("ann", OTHER), {"user": "ann", "token": S}),
        ([OTHER], []),
        ([OTHER], [S, T]),
        ((1, OTHER), [1, S]),
        ([Login("a", OTHER), Login("b", OTHER)], [Login("b", S), Login("a", T)]),
        ({1: OTHER}, {True: S}),
        ({OTHER: 1}, {S: 1}),
        ({("a", OTHER)}, {("a", S)}),
    ],
)
def test_where_nothing_tells_which_secret_it_is_there_is_no_answer(recorded, now):
    """A guess could open another door: the wrong account, with the right amount."""
    with pytest.raises(NoPlace):
        values.with_secrets(values.encode(recorded), now)
