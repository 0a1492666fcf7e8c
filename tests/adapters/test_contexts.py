"""What calls change in a shared object is found, recorded in plain data, and put back."""

from __future__ import annotations

import dataclasses
import threading
from types import SimpleNamespace
from typing import Any

import pytest

import surefoot as sf
from surefoot.adapters.contexts import Shared, Watch, result_in
from surefoot.engine.seams import storable


@dataclasses.dataclass
class Inner:
    names: list[str] = dataclasses.field(default_factory=list)
    lock: Any = dataclasses.field(default_factory=threading.Lock)


@dataclasses.dataclass
class Context:
    total: int = 0
    inner: Inner = dataclasses.field(default_factory=Inner)
    more: dict[str, Any] = dataclasses.field(default_factory=dict)


def recorded(change: Any, context: Any) -> Any:
    with Shared().watched(context, is_given=True) as watch:
        change(context)
        return watch.packed("result")


def _deep(context: Context) -> None:
    context.total += 5
    context.inner.names.append("ada")
    context.more["k"] = {"v": [1]}


def test_changes_come_back_on_another_object():
    """Also inside of objects that cannot be stored as a whole: a lock is no state of the run."""
    found = recorded(_deep, Context())
    again = Context()

    assert storable(found)
    assert Shared().delivered(again, found, "t") == "result"
    assert (again.total, again.inner.names, again.more) == (5, ["ada"], {"k": {"v": [1]}})


def test_what_is_put_back_is_a_copy():
    """A replay must not share a list with the record."""
    found, again = recorded(_deep, Context()), Context()
    shared = Shared()
    shared.delivered(again, found, "t")
    again.inner.names.append("bob")
    third = Context()
    Shared().delivered(third, found, "t")
    assert third.inner.names == ["ada"]


@pytest.mark.parametrize("context", [{"a": 1, "b": 2}, SimpleNamespace(a=1, b=2)], ids=["dict", "object"])
def test_what_is_gone_is_gone_again(context):
    kind = type(context)

    def take(one: Any) -> None:
        one.pop("a") if isinstance(one, dict) else delattr(one, "a")

    found, again = recorded(take, context), kind(a=1, b=2)
    Shared().delivered(again, found, "t")
    assert (again if isinstance(again, dict) else vars(again)) == {"b": 2}


def test_a_list_as_context_is_seen_too():
    found, again = recorded(lambda one: one.append(3), [1]), [1]
    Shared().delivered(again, found, "t")
    assert again == [1, 3]


def test_without_a_change_the_record_is_what_the_call_gave():
    assert recorded(lambda _: None, Context()) == "result"


def test_a_result_that_looks_like_a_record_is_kept_apart():
    watch = Watch(None)
    given = {"result": 1, "context": [[["total"], 9]]}
    context = Context()
    assert Shared().delivered(context, watch.packed(given), "t") == given
    assert context.total == 0
    assert result_in(watch.packed(given)) == given


def test_a_call_that_fails_has_changed_nothing():
    """On replay it does not run, and fails again."""
    context = Context()
    with pytest.raises(ValueError), Shared().watched(context, is_given=True):
        _deep(context)
        raise ValueError
    assert context == dataclasses.replace(Context(), inner=context.inner)
    assert context.inner.names == []


def test_a_change_while_two_calls_are_at_it_is_refused_on_every_delivery():
    """Nobody can tell whose it is. With one of them in doubt, the other's record would have both changes."""
    context, shared = Context(), Shared()
    with shared.watched(context, is_given=True) as first, shared.watched(context, is_given=True) as second:
        context.total = 3
        found = [first.packed("a"), second.packed("b")]
    for each in found:
        with pytest.raises(sf.UsageError, match="total of the context was changed while another tool was at it"):
            Shared().delivered(Context(), each, "t")


def test_a_call_that_cannot_see_the_context_changes_nothing_in_it():
    context, shared = Context(), Shared()
    with shared.watched(context, is_given=True) as given, shared.watched(context, is_given=False) as blind:
        context.total = 3
        assert given.packed("a") == {"result": "a", "context": [[["total"], 3]]}
        assert blind.packed("b") == "b"


def test_what_is_put_back_meanwhile_is_none_of_a_running_call():
    context, shared = Context(), Shared()
    with shared.watched(context, is_given=True) as running:
        shared.delivered(context, {"result": "a", "context": [[["total"], 5]]}, "t")
        context.more["mine"] = 1
        assert running.packed("b") == {"result": "b", "context": [[["more"], {"mine": 1}]]}
