"""What hypothesis draws values from: those that can be stored, and forgeries of their stored form."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.exact import BERLIN, EXACT, INDIA, UTC, Colour, Pair, Point
from tests.hostile import NAMES, TAGS, WORDS

ZONES = st.sampled_from([None, UTC, INDIA, BERLIN, dt.timezone(dt.timedelta(hours=-3), "X")])
ATOMS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.integers(-(2**70), 2**70), st.floats(), st.text(st.characters(codec=None)),
    st.sampled_from(["$", "$tuple", "$type", '"$', "\ud800", "$é"]), st.binary(max_size=20), st.decimals(), st.uuids(),
    st.datetimes(timezones=st.just(None) | ZONES), st.dates(), st.times(), st.timedeltas(), st.complex_numbers(), st.fractions(),
)  # fmt: skip
KEYS = st.one_of(
    ATOMS.filter(lambda a: not (isinstance(a, decimal.Decimal) and a.is_snan())), st.tuples(st.text(), st.integers())
)


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(st.text() | st.sampled_from(["$", "$tuple", "$dict", "$x", "a"]), inner, max_size=4),
        st.dictionaries(KEYS, inner, max_size=3),
        st.sets(KEYS, max_size=3),
        st.frozensets(KEYS, max_size=3),
    )


VALUES = st.recursive(ATOMS, containers, max_leaves=12)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3) | st.sampled_from(["$tuple", "nan", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["$tuple", "$set", "$float", "$dict", "$type", "$error", "$secret", "$", "a", "b"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=10,
)

# --- everything that can be stored -------------------------------------------------------------------------------

ARRAYS = st.builds(
    lambda dtype, shape, raw: np.frombuffer((raw * 64)[: int(np.prod(shape)) * dtype.itemsize], dtype).reshape(shape),
    st.sampled_from(
        [np.dtype(name) for name in ("<f8", ">f4", "<i8", "|u1", "<c16", "<f2", "<M8[s]", "<m8[ns]", "|S3")]
    ),
    st.sampled_from([(), (0,), (1,), (3,), (2, 3), (2, 0, 1)]),
    st.binary(min_size=16, max_size=24),
)
EVERY_ATOM = ATOMS | st.sampled_from(range(len(EXACT))).map(lambda n: EXACT[n]) | st.sampled_from(list(Colour)) | ARRAYS
EVERYTHING = st.recursive(
    EVERY_ATOM,
    lambda inner: containers(inner) | st.builds(Point, inner, inner) | st.builds(Pair, inner, inner),
    max_leaves=12,
)
"""Values of every kind: those of the standard library, of numpy, and of registered classes."""

# --- forgeries ---------------------------------------------------------------------------------------------------

SCRAPS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
    st.sampled_from(WORDS),
)
SOUP = st.recursive(
    SCRAPS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
        st.tuples(st.sampled_from(TAGS), inner).map(lambda pair: {pair[0]: pair[1]}),
        st.tuples(st.sampled_from(TAGS), st.lists(inner, max_size=3)).map(lambda pair: {pair[0]: pair[1]}),
    ),
    max_leaves=15,
)
"""JSON of our own words in any arrangement."""
