"""Values come back exactly as they went in, or are refused with the path of the bad field."""

from __future__ import annotations

import collections
import copy
import dataclasses
import datetime as dt
import decimal
import enum
import io
import json
import math
import pathlib
import pickle
import subprocess
import sys
import threading
import types
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given

from surefoot.core import forms, values
from surefoot.errors import UsageError, ValueRejected
from tests.exact import EXACT, same
from tests.strategies import JSON, VALUES


def there_and_back(value: Any) -> Any:
    return values.decode(values.encode(value))


@pytest.mark.parametrize("value", EXACT, ids=lambda value: type(value).__name__)
def test_a_value_comes_back_as_it_went_in(value):
    """A replayed workflow that sees another value or another type takes another turn than the live one did."""
    for shape in (value, [value], {"k": value}, (value,), {"deep": [{"x": (value, 1)}]}):
        back = there_and_back(shape)

        assert same(shape, back)
        assert values.encode(shape) == values.encode(back)


def test_every_stored_form_is_json_that_other_tools_read():
    """People look into the journal with sqlite3 and jq."""
    for value in EXACT:
        json.loads(values.encode(value))


def test_dicts_keep_their_order_when_stored():
    """A replayed dict that iterates in another order calls the steps in another order."""
    assert list(there_and_back({"b": 1, "a": {"z": 1, "y": (2,)}})["a"]) == ["z", "y"]
    assert list(there_and_back({3: 1, 1: 2})) == [3, 1]


def test_sets_are_stored_in_one_order_whatever_the_hash_seed():
    assert values.encode({"b", "a", "c"}) == b'{"$set":["a","b","c"]}'
    assert (
        values.encode({frozenset("ba"), frozenset("c")}) == b'{"$set":[{"$frozenset":["a","b"]},{"$frozenset":["c"]}]}'
    )


def test_decoding_gives_a_fresh_object_each_time():
    """What user code does to one delivery must not show in the next."""
    raw = values.encode({"a": [1], "n": np.zeros(2), "b": bytearray(b"x")})
    first: Any = values.decode(raw)
    first["a"].append(2)
    first["n"][0] = 1
    first["b"].append(0)

    assert values.encode(values.decode(raw)) == raw


def test_a_raw_of_msgspec_is_decoded_like_bytes():
    assert values.decode(msgspec.Raw(b'{"a":{"$tuple":[1]}}')) == {"a": (1,)}


def test_the_stored_decimal_does_not_depend_on_the_context():
    with decimal.localcontext(decimal.Context(capitals=0, prec=3, traps=[])):
        raw = values.encode(decimal.Decimal("1.23456E+50"))
        assert str(values.decode(raw)) == "1.23456e+50"
    assert raw == b'{"$decimal":"1.23456E+50"}'


# --- refusals ------------------------------------------------------------------------------------


class Text(str):
    __slots__ = ()


class Number(int):
    pass


class Colour(enum.StrEnum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


class Pair(tuple):
    __slots__ = ()


class Zone(dt.tzinfo):
    pass


class Moment(dt.datetime):
    pass


class Plain:
    pass


@dataclasses.dataclass
class Point:
    x: int


REFUSED = [
    (Text("x"), "str"), (Number(1), "int"), (Colour.RED, "sf.register(Colour)"), (Level.LOW, "sf.register(Level)"), (Pair(), "tuple"),
    (collections.OrderedDict(), "dict(...)"), (collections.defaultdict(list), "dict(...)"), (collections.Counter(), "dict(...)"),
    ((i for i in "ab"), "generator"), (threading.Lock(), "lock"), (lambda: 1, "function"), (math, "module"), (len, "builtin"),
    (Point, "type"), (object(), "object"), (range(3), "range"), (memoryview(b""), "memoryview"), (io.StringIO(), "io"), (iter([]), "iterator"),
    (Plain(), "register it with sf.register(Plain, encode=..., decode=...)"), (Point(1), "register it with sf.register(Point)"),
    (types.SimpleNamespace(), "SimpleNamespace"), (types.MappingProxyType({}), "mappingproxy"), (collections.deque(), "deque"),
    (dt.datetime(2024, 1, 1, tzinfo=Zone()), "Zone"), (Moment(2024, 1, 1), "Moment"), (10**100_001, "digits"),
    (np.array([object()]), "dtype"), (np.zeros(2, dtype="i4,f8"), "dtype"), (np.longdouble(1), "dtype"),
    (np.longlong(1), "longlong"), (np.ma.array([1]), "MaskedArray"), (dt.date, "type"), (NotImplemented, "NotImplementedType"), (..., "ellipsis"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "word"), REFUSED, ids=lambda value: type(value).__name__)
def test_what_would_come_back_as_something_else_is_refused_with_its_path(value, word):
    """A look-alike that quietly turns into its base class is a bug that shows only after a crash."""
    with pytest.raises(ValueRejected) as caught:
        values.encode({"plan": {"files": [1, {"when": value}]}})

    assert caught.value.path == "$.plan.files[1].when"
    assert word in str(caught.value)
    with pytest.raises(ValueRejected, match=r"^\$: "):
        values.encode(value)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"a b": object()}, '$["a b"]'),
        ({1: object()}, "$[1]"),
        ({(1, 2): object()}, "$[<tuple>]"),
        ({Text("k"): 1}, "$<key>"),
        ({"a": {Text("k")}}, "$.a<element>"),
        ((1, (2, object())), "$[1][1]"),
        ({"x": frozenset({(object(),)})}, "$.x<element>[0]"),
    ],
)
def test_paths_lead_to_the_bad_field_through_every_container(value, path):
    with pytest.raises(ValueRejected) as caught:
        values.encode(value)

    assert caught.value.path == path


def test_a_refused_argument_is_named():
    with pytest.raises(ValueRejected) as caught:
        values.encode_args({"client": 1, "plan": [object()]})

    assert caught.value.path == "$.plan[0]"


def test_a_refusal_does_not_show_the_value():
    """Refusals end up in logs; the value may be a password."""
    with pytest.raises(ValueRejected) as caught:
        values.encode({"password": Text("hunter2")})

    assert "hunter2" not in str(caught.value)


def test_a_time_zone_with_an_unwritable_name_is_refused():
    with pytest.raises(ValueRejected, match="lone surrogates"):
        values.encode(dt.timezone(dt.timedelta(0), "\ud800"))


# --- limits --------------------------------------------------------------------------------------


def nested(levels: int, wrap: Any = lambda inner: [inner], core: Any = None) -> Any:
    value = wrap(core)
    for _ in range(levels - 1):
        value = wrap(value)
    return value


@pytest.mark.parametrize(
    ("wrap", "most"),
    [
        (lambda inner: [inner], 200),
        (lambda inner: {"k": inner}, 200),
        (lambda inner: (inner,), 100),
        (lambda inner: {1: inner}, 66),
        (lambda inner: frozenset({inner}), 100),
    ],
    ids=["list", "dict", "tuple", "pairs", "frozenset"],
)
def test_what_is_nested_too_deep_is_refused_and_what_is_not_comes_back(wrap, most):
    """The limit holds on the quick way and on the slow one, and what was let in can be read."""
    for core, room in ((1, most), (2**70, most - 1)):
        raw = values.encode(nested(room, wrap, core))
        assert values.encode(values.decode(raw)) == raw
        with pytest.raises(ValueRejected, match="nested more than 200"):
            values.encode(nested(most + 1, wrap, core))
    with pytest.raises(ValueRejected, match="nested more than 200"):
        values.encode_args({"a": nested(200, wrap)})


def test_nesting_of_a_hundred_thousand_levels_is_refused_not_a_crash():
    value = nested(100_000)
    with pytest.raises(ValueRejected, match="nested more than 200"):
        values.encode(value)


def test_a_cycle_is_named():
    loop: dict[str, Any] = {"a": [{}]}
    loop["a"][0]["back"] = loop["a"]
    with pytest.raises(ValueRejected, match=r"cycle: \$\.a\[0\]\.back leads back to \$\.a,") as caught:
        values.encode(loop)
    assert caught.value.path == "$.a[0].back"

    itself: list[Any] = []
    itself.append((itself,))
    with pytest.raises(ValueRejected, match=r"cycle: \$\[0\]\[0\] leads back to \$,"):
        values.encode(itself)


def test_the_same_object_twice_is_no_cycle():
    shared = [1]
    assert there_and_back([shared, (shared, shared)]) == [[1], ([1], [1])]


def test_lists_that_hold_each_other_twice_do_not_unfold_without_end(monkeypatch):
    """Thirty lines of code can hold a value of a billion elements."""
    monkeypatch.setattr(values, "MAX_CONTAINERS", 10_000)
    monkeypatch.setattr("surefoot.core.encoder.MAX_CONTAINERS", 10_000)
    bomb: list[Any] = []
    for _ in range(100):
        bomb = [bomb, bomb]

    for value in (bomb, [bomb, ()]):
        with pytest.raises(ValueRejected, match="more than 10000 lists"):
            values.encode(value)


def test_a_value_above_the_size_limit_is_refused(monkeypatch):
    monkeypatch.setattr(forms, "MAX_BYTES", 1000)
    assert values.encode("x" * 998)
    for value in ("x" * 999, b"x" * 1001, b"x" * 800, ("x" * 990,)):
        with pytest.raises(ValueRejected, match="limit is 1000"):
            values.encode(value)
        with pytest.raises(ValueRejected, match="limit is 1000"):
            values.encode_args({"a": value})
        with pytest.raises(ValueRejected, match="limit is 1000"):
            values.digest(value)


def test_integers_up_to_a_hundred_thousand_digits_come_back():
    """Python itself refuses to read more than 4,300 decimal digits."""
    assert there_and_back(10**100_000 - 1) == 10**100_000 - 1


def test_a_dict_that_changes_under_way_is_refused():
    """Another thread may still be writing into the value."""

    changing: dict[Any, Any] = {"a": 1, "b": 2}

    @dataclasses.dataclass
    class Meddler:
        x: int

        def __getattribute__(self, name: str) -> Any:
            changing["c"] = 1
            return super().__getattribute__(name)

    changing["a"] = Meddler(1)
    values.register(Meddler, name="test.Meddler")
    with pytest.raises(ValueRejected, match="RuntimeError"):
        values.encode(changing)


# --- secrets -------------------------------------------------------------------------------------


def test_a_secret_is_recorded_and_shown_as_stars_only():
    secret = values.Secret("hunter2")

    raw, digest = values.encode_args({"password": secret, "all": [(secret,)]})

    assert secret.reveal() == "hunter2"
    assert f"{secret} {secret!r} {secret:>4} {[secret]}" == "*** ***  *** [***]"
    assert b"hunter2" not in raw
    assert digest == values.encode_args({"password": values.Secret("other"), "all": [(values.Secret(1),)]})[1]
    assert copy.deepcopy(secret) is secret
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(secret)


def test_a_recorded_secret_cannot_be_revealed():
    with pytest.raises(UsageError, match=r"recorded as \*\*\*"):
        there_and_back(values.Secret("hunter2")).reveal()


# --- properties ----------------------------------------------------------------------------------


@given(VALUES)
def test_any_value_comes_back_exactly_and_is_stored_the_same_again(value):
    raw = values.encode(value)
    back = values.decode(raw)

    assert same(value, back)
    assert values.encode(back) == raw
    assert values.digest(back) == values.digest(value)


@given(JSON)
def test_user_data_never_passes_for_a_tag(value):
    """Text from the web that looks like our own tags comes back as plain data, never as an object."""
    assert same(value, there_and_back(value))
    assert same((value,), there_and_back((value,)))


def shuffled(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: shuffled(item) for key, item in reversed(value.items())}
    if isinstance(value, (list, tuple)):
        return type(value)(map(shuffled, value))
    return value


@given(VALUES)
def test_digests_ignore_the_order_of_dicts_at_every_depth(value):
    """Keyword arguments in another order are the same call."""
    assert values.digest(value) == values.digest(shuffled(value))
    assert values.encode_args({"a": value, "b": 1})[1] == values.encode_args({"b": 1, "a": shuffled(value)})[1]


@given(VALUES)
def test_digest_and_arguments_agree_with_the_stored_form(value):
    raw, digest = values.encode_args({"a": value})

    assert raw == values.encode({"a": value})
    assert digest == values.digest({"a": value})


def test_digests_tell_types_apart():
    different = [
        1,
        1.0,
        True,
        "1",
        b"1",
        (1,),
        [1],
        {1},
        frozenset({1}),
        {"a": 1},
        {1: 1},
        None,
        0.0,
        -0.0,
        decimal.Decimal(1),
        {"$tuple": [1]},
    ]

    assert len({values.digest(value) for value in different}) == len(different)


def test_digests_are_the_same_for_ever():
    """A digest recorded by one version is compared by the next: this one may never change."""
    assert (
        values.digest({"b": [1, 2.5, "é"], "a": (None, {3: b"x"})})
        == "ed814cab6b5a3ce6fde36a1c3de84d157af6da19ebf2e6a2b1baf7238e47b61c"
    )
    assert values.encode_args({"i": 17}) == (
        b'{"i":17}',
        "b7219dbb6fb4e261ea003faf24480f83ec1be932f0dabcbd70c79124a624f59f",
    )


@pytest.mark.processes
def test_nothing_optional_is_loaded_by_the_codec():
    """`import surefoot` has to be quick, and optional packages may be missing."""
    code = (
        "import sys; from surefoot.core import values; values.decode(values.encode({'a': (1, b'x')}))\n"
        "print([m for m in ('numpy', 'pydantic', 'attr', 'attrs', 'asyncio', 'zoneinfo') if m in sys.modules])"
    )
    source = str(pathlib.Path(values.__file__).parents[2])
    done = subprocess.run([sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {[source, *sys.path]!r}\n{code}"],
                          capture_output=True, text=True, check=True)  # fmt: skip
    assert done.stdout == "[]\n"
