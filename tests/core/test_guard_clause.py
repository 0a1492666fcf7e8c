"""A guard clause asks nobody. It is a convenience, so what is tested first is where it must *not* be believed."""

from __future__ import annotations

import asyncio
import os
import signal
from decimal import Decimal

import pytest

from surefoot.core.guard import is_guard, is_raised_by_code

HERE = frozenset({__name__})
LIMIT = 100
OUTBOX: list[object] = []


class Declined(Exception):
    """The card was declined."""

    code = 402


class Charging(Exception):
    def __init__(self, amount: object) -> None:
        super().__init__(amount)
        OUTBOX.append(amount)


class MadeElsewhere(Exception):
    def __new__(cls, amount: object):
        OUTBOX.append(amount)
        return super().__new__(cls, amount)


class Inherited(Charging): ...


class Speaking(Exception):
    def __str__(self) -> str:
        OUTBOX.append("said")
        return "said"


class Disguised(Exception):
    __module__ = "builtins"

    def __init__(self, amount: object) -> None:
        OUTBOX.append(amount)


class Sending(Exception):
    @classmethod
    def index(cls, what: object) -> Sending:
        OUTBOX.append(what)
        return cls()


class Eager(type):
    def __call__(cls, *args):
        OUTBOX.append(args)
        return super().__call__(*args)


class Posting(Exception, metaclass=Eager): ...


class Order:
    """Looks like data, and acts."""

    def __init__(self) -> None:
        self.amount = -1

    def __eq__(self, other: object) -> bool:
        OUTBOX.append(other)
        return False

    def __format__(self, spec: str) -> str:
        OUTBOX.append(spec)
        return ""

    def __iter__(self):
        OUTBOX.append("iter")
        return iter(())

    @property
    def count(self) -> int:
        OUTBOX.append("count")
        return -1

    __hash__ = None  # type: ignore[assignment]


def send(what: object) -> None:
    OUTBOX.append(what)


def judged(fn, *args, **kwargs) -> bool:
    with pytest.raises(Exception) as raised:
        fn(*args, **kwargs)
    return is_guard(raised.value, fn, HERE)


# -- guards -------------------------------------------------------------------------------------------------


def of_an_order(order, amount, items=(), *, currency="EUR", **more):
    if not order.startswith("o") or len(order) > 9:
        raise ValueError(f"bad order {order!r:>3}")
    if amount <= 0 or amount > LIMIT:
        raise Declined(amount)
    if currency not in ("EUR", "USD"):
        raise KeyError("no such currency: %s" % currency) from None  # noqa: UP031 - an operator more
    for item in items:
        if item["n"] < 1:
            raise ValueError(item["n"])
    total = sum(more.values())
    if not total < 3:
        raise AssertionError(total)
    send(order)


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        (("x", 1), {}),
        (("o1", Decimal(-1)), {}),
        (("o1", 101), {}),
        (("o1", 1), {"currency": "DM"}),
        (("o1", 1, [{"n": 1}, {"n": 0}]), {}),
        (("o1", 1, [{}]), {}),
        (("o1", "1"), {}),
        (("o1", 1), {"a": 5}),
        (("o1",), {}),
        ((), {"order": "o1", "amount": 1, "count": "x"}),
    ],
)
def test_what_the_first_lines_raise_is_a_guard(args, kwargs):
    """Bad arguments, and mistakes in looking at them."""
    OUTBOX.clear()

    assert judged(of_an_order, *args, **kwargs)
    assert OUTBOX == []


def test_a_guard_of_a_coroutine():
    async def pay(amount):
        if amount < 0:
            raise ValueError(amount)
        await asyncio.sleep(0)
        raise ValueError("late")

    for amount, guarded in ((-1, True), (1, False)):
        with pytest.raises(ValueError) as raised:
            asyncio.run(pay(amount))
        assert is_guard(raised.value, pay, HERE) is guarded


def test_objects_that_are_not_looked_at_do_not_matter():
    def pay(client, amount):
        if amount < 0:
            raise ValueError(amount)
        client.send()

    assert judged(pay, Order(), -1)


# -- no guards ----------------------------------------------------------------------------------------------


def after_a_call(x):
    send(x)
    raise ValueError


def with_a_call_in_the_raise(x):
    raise Declined(send(x))


def by_an_exception_that_acts_when_made(x):
    raise Charging(x)


def by_an_exception_that_acts_before_it_is_there(x):
    raise MadeElsewhere(x)


def by_an_exception_whose_base_acts(x):
    raise Inherited(x)


def by_an_exception_that_says_to_be_a_built_in(x):
    raise Disguised(x)


def by_a_class_alone(x):
    if x:
        raise Charging


def after_an_exception_was_put_into_a_text(x):
    raise ValueError(f"{Speaking(x)}")


def after_a_method(x):
    x.append(1)
    raise ValueError


def after_a_property(x):
    if x.count < 0:
        raise ValueError


def after_an_attribute(x):
    if x.amount < 0:
        raise ValueError


def after_a_comparison(x):
    if x == 1:
        return
    raise ValueError


def after_a_text(x):
    raise ValueError(f"{x}")


def after_a_loop_over(x):
    for _ in x:
        pass
    raise ValueError


def after_a_store(x):
    x[0] = 1
    raise ValueError


def after_a_store_in_an_object(x):
    x.amount = 1
    raise ValueError


def after_a_global(x):
    global LIMIT  # noqa: PLW0603 - what is tested
    LIMIT = LIMIT + 0
    raise ValueError


def after_adding_in_place(x):
    y = x
    y += [1]
    raise ValueError


def after_an_import(x):
    import this_is_no_module  # noqa: F401

    raise ValueError


def after_a_with(x):
    with open(os.devnull):
        raise ValueError


def after_a_comprehension(x):
    [send(one) for one in (1,)]
    raise ValueError


def after_a_mapping(x):
    list(map(send, [1]))
    raise ValueError


def after_a_sort(x):
    sorted([1], key=send)
    raise ValueError


def after_print(x):
    print(x)  # noqa: T201 - what is tested
    raise ValueError


def after_setattr(x):
    send.mark = 1
    raise ValueError


def in_a_handler(x):
    try:  # noqa: SIM105 - what is tested
        send(x)
    except KeyError:
        pass
    raise ValueError


def from_a_handler(x):
    try:
        return x["a"]
    except KeyError:
        raise ValueError from None
    finally:
        send(x)


def with_a_finally_that_acts(x):
    try:
        if x:
            raise ValueError(x)
    finally:
        send(x)


def with_a_handler_that_acts_and_raises_it_again(x):
    try:
        if x:
            raise ValueError(x)
    except ValueError:
        send(x)
        raise


def with_a_handler_that_acts_and_raises_it_by_name(x):
    try:
        if x:
            raise ValueError(x)
    except ValueError as error:
        send(x)
        raise error


def with_a_handler_inside_of_another(x):
    try:
        try:
            raise ValueError(x)
        except KeyError:
            pass
    finally:
        send(x)


def in_the_second_round(x):
    for one in (1, 2):
        if one == 2:
            raise ValueError
        send(one)


def of_another_frame(x):
    raise_it()


def raise_it():
    raise ValueError


def with_a_class_that_acts(x):
    raise Sending.index(x)


def with_a_metaclass_that_acts(x):
    raise Posting(x)


def with_a_parameter_that_was_something_else(x):
    y = x.count
    x = 1
    raise ValueError(x, y)


def with_a_shadowed_builtin(x):
    if len(x) > 0:
        raise ValueError


with_a_shadowed_builtin = type(with_a_shadowed_builtin)(
    with_a_shadowed_builtin.__code__, {"len": lambda x: OUTBOX.append(x) or 1, "__builtins__": __builtins__}
)

NO_GUARDS = {
    after_a_call: 1, after_a_method: [], after_a_property: Order(), after_an_attribute: Order(),
    after_a_comparison: Order(), after_a_text: Order(), after_a_loop_over: Order(), after_a_store: [0],
    after_a_store_in_an_object: Order(), after_a_global: 1, after_adding_in_place: [], after_an_import: 1,
    after_a_with: 1, after_a_comprehension: 1, after_a_mapping: 1, after_a_sort: 1, after_print: 1, after_setattr: 1,
    with_a_finally_that_acts: 1, with_a_handler_that_acts_and_raises_it_again: 1,
    with_a_handler_that_acts_and_raises_it_by_name: 1, with_a_handler_inside_of_another: 1,
    in_a_handler: 1, from_a_handler: {}, in_the_second_round: 1, of_another_frame: 1, with_a_class_that_acts: 1,
    with_a_metaclass_that_acts: 1, with_a_parameter_that_was_something_else: Order(), with_a_shadowed_builtin: [1],
    with_a_call_in_the_raise: 1, by_an_exception_that_acts_when_made: 1,
    by_an_exception_that_acts_before_it_is_there: 1, by_an_exception_whose_base_acts: 1,
    by_an_exception_that_says_to_be_a_built_in: 1, by_a_class_alone: 1, after_an_exception_was_put_into_a_text: 1,
}  # fmt: skip


@pytest.mark.parametrize("fn", NO_GUARDS, ids=lambda fn: fn.__name__)
def test_whatever_may_have_done_something_is_no_guard(fn):
    assert not judged(fn, NO_GUARDS[fn])


def pay_all(prices):
    if prices and prices[0] <= 0:
        raise ValueError(prices[0])
    if prices:
        send(prices[0])
        pay_all(prices[1:])


def test_a_guard_of_a_call_of_itself_is_none_of_the_effect():
    """It paid the first price, and called itself for the rest: the guard speaks of the rest."""
    assert judged(pay_all, [0])
    assert not judged(pay_all, [500, 0])


def test_a_guard_of_a_call_of_itself_in_a_coroutine_is_none_of_the_effect():
    async def pay_later(prices):
        if prices and prices[0] <= 0:
            raise ValueError(prices[0])
        send(prices[0])
        await asyncio.gather(pay_later(prices[1:]))

    for prices, guarded in (([0], True), ([500, 0], False)):
        with pytest.raises(ValueError) as raised:
            asyncio.run(pay_later(prices))
        assert is_guard(raised.value, pay_later, HERE) is guarded


def test_a_try_that_does_not_surround_the_guard_takes_nothing_from_it():
    """Most effects have one further on."""

    def pay(amount):
        if amount < 0:
            raise ValueError(amount)
        try:
            send(amount)
        finally:
            send("closed")

    assert judged(pay, -1)


def test_a_function_that_is_no_plain_one_has_no_guard():
    """A C function leaves no frame: nobody can say what it did."""
    with pytest.raises(TypeError) as raised:
        os.mkdir("a", 0o700, 3, 4, 5)

    assert not is_guard(raised.value, os.mkdir, HERE)


def test_a_type_error_from_within_is_not_taken_for_arguments_that_did_not_fit():
    def pay(order):
        return send(order, 1)

    def wrapped(order):
        return pay(order)

    assert judged(pay, 1, 2), "the call itself did not fit"
    assert not judged(pay, 1), "the function ran, and a call within did not fit"
    assert not judged(wrapped, 1)


def test_a_raise_of_the_code_is_told_from_a_signal():
    """A rehearsal that took the code's own KeyboardInterrupt for Ctrl-C would end every resume before it began."""

    def by_itself() -> None:
        raise KeyboardInterrupt

    def struck() -> None:
        signal.raise_signal(signal.SIGINT)

    for act, is_its_own in ((by_itself, True), (struck, False)):
        with pytest.raises(KeyboardInterrupt) as caught:
            act()
        assert is_raised_by_code(caught.value) is is_its_own
