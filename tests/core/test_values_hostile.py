"""Whatever bytes are read, they are a value or one of two named stops; nothing is imported, opened or run."""

from __future__ import annotations

import dataclasses
import enum
import json
import sys
import zoneinfo
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.core import forms, values
from surefoot.errors import JournalCorrupt, SchemaMismatch
from tests.hostile import watched
from tests.strategies import SOUP

FORBIDDEN = (
    "import",
    "exec",
    "compile",
    "open",
    "os.",
    "subprocess.",
    "socket.",
    "ctypes.",
    "marshal.",
    "pickle.",
    "code.__new__",
)


@dataclasses.dataclass
class Target:
    x: int


class Colour(enum.Enum):
    RED = 1


@pytest.fixture(autouse=True, scope="module")
def loaded():
    """The imports written in the codec and in zoneinfo happen once, before we watch."""
    with pytest.raises(SchemaMismatch):
        values.decode(b'{"$timezone":"Unknown"}')
    values.register(Target, name="hostile.Target")
    values.register(Colour, name="hostile.Colour")
    for value in (np.zeros(1), np.float64(1), zoneinfo.ZoneInfo("Europe/Berlin")):
        values.decode(values.encode(value))
    for tag in ('{"$path":"x"}', '{"$fraction":[1,3]}', '{"$datetime":["2024-01-01T00:00:00","Europe/Berlin",0]}'):
        values.decode(tag.encode())


def read(raw: bytes) -> None:
    """A value, or JournalCorrupt, or SchemaMismatch; anything else fails the test."""
    value: Any = None
    with watched() as seen, suppress(JournalCorrupt, SchemaMismatch):
        value = values.decode(raw)
    assert seen == []
    values.encode(value)


@given(SOUP)
@settings(max_examples=400)
def test_json_of_our_own_words_in_any_arrangement_is_harmless(tree):
    """Someone who can write to the store knows the format as well as we do."""
    read(json.dumps(tree, separators=(",", ":")).encode())


@given(
    st.binary(max_size=30) | st.text(st.sampled_from('{}[]":,\\$ \tautple0123456789.e-nl'), max_size=30).map(str.encode)
)
@settings(max_examples=300)
def test_bytes_of_any_kind_are_harmless(raw):
    read(raw)


@given(SOUP, st.data())
def test_one_changed_byte_of_a_stored_value_is_harmless(tree, data):
    raw = bytearray(values.encode((tree, b"x", {1: 2})))
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    read(bytes(raw))


DAMAGED = [
    "", " ", "{", "[1,]", "1 2", "nan", "NaN", "'x'", "{1:2}", '{"a":1,"a":2}', '{"a":{"b":1,"b":1}}', '{"$tuple":[1],"$tuple":[2]}', "1e400", '"\\ud800"',
    '{"$nope":1}', '{"$":1}', '{"\\u0024nope":1}', '{"$tuple":[],"a":1}', '{"a":1,"$tuple":[]}', '{"$tuple":{}}', '{"$tuple":"ab"}', '{"$tuple":null}',
    '{"$str":"a"}', '{"$str":["a"]}', '{"$str":[]}', '{"$str":[55296,"a","b"]}', '{"$str":[1114112]}', '{"$str":[-1]}', '{"$str":[65]}', '{"$str":[true]}',
    '{"$int":"0x1"}', '{"$int":"0X400000000000000000"}', '{"$int":"0x0400000000000000000"}', '{"$int":"x"}', '{"$int":5}', '{"$int":"0x' + "f" * 90_000 + '"}',
    '{"$float":"1"}', '{"$float":"NaN"}', '{"$float":1}', '{"$complex":[1,2]}', '{"$complex":[1.0]}', '{"$complex":["1",2.0]}', '{"$fraction":[2,4]}',
    '{"$fraction":[1,0]}', '{"$fraction":[1.0,2]}', '{"$fraction":[true,3]}', '{"$bytes":"A"}', '{"$bytes":"AB=="}', '{"$bytes":"A A="}', '{"$bytes":"AA==\\n"}',
    '{"$bytes":[1]}', '{"$bytearray":"é"}', '{"$set":[2,1]}', '{"$set":[1,1]}', '{"$set":[1,1.0]}', '{"$set":[[1]]}', '{"$set":[true,1]}', '{"$frozenset":[{}]}',
    '{"$set":[{"$decimal":"sNaN"}]}', '{"$dict":[["a",1]]}', '{"$dict":[]}', '{"$dict":[[1]]}', '{"$dict":[[1,2,3]]}', '{"$dict":[[[],1]]}', '{"$dict":[[1,2],[1.0,3]]}',
    '{"$dict":{"a":1}}', '{"$date":"20240101"}', '{"$date":"2024-13-01"}', '{"$date":"2024-W01-1"}', '{"$datetime":"2024-01-01"}', '{"$datetime":"2024-01-01T00:00:00Z"}',
    '{"$datetime":["2024-01-01T00:00:00",null,0]}', '{"$datetime":["2024-01-01T00:00:00","+01:00",0]}',
    '{"$datetime":["2024-01-01T00:00:00",null,2]}', '{"$datetime":["2024-01-01T00:00:00",null,true]}', '{"$datetime":["2024-01-01T00:00:00+01:00",null,1]}',
    '{"$datetime":["2024-01-01T00:00:00","../etc/passwd",0]}', '{"$datetime":["2024-01-01T00:00:00","/etc/passwd",0]}', '{"$time":"25:00:00"}', '{"$time":12}',
    '{"$timezone":"+25:00"}', '{"$timezone":""}', '{"$timezone":["+01:00"]}', '{"$timezone":["+01:00",1]}', '{"$timezone":"a\\u0000b"}',
    '{"$timezone":"tzdata.zoneinfo"}', '{"$timedelta":[0,0,1000000]}', '{"$timedelta":[1.5,0,0]}', '{"$timedelta":[1e308,0,0]}', '{"$timedelta":[0,0]}',
    '{"$decimal":"1e5"}', '{"$decimal":" 1"}', '{"$decimal":"1_0"}', '{"$decimal":"x"}', '{"$decimal":"١"}', '{"$uuid":"x"}', '{"$uuid":"{12345678123456781234567812345678}"}',
    '{"$path":1}', '{"$path":{"$tuple":[]}}', '{"$secret":"x"}', '{"$secret":null}', '{"$type":[]}', '{"$type":["hostile.Target"]}', '{"$type":["hostile.Target",{"$tuple":[]}]}',
    '{"$type":[{"$tuple":[]},{}]}', '{"$ndarray":["|O",[1],"AAAAAAAAAAA="]}', '{"$ndarray":["<f8",[1],"AA=="]}', '{"$ndarray":["<f8",[-1],""]}', '{"$ndarray":["<f8",[1.0],""]}',
    '{"$ndarray":["<f8",[0,99999999999999999999],""]}', '{"$ndarray":["f8,i4",[1],"AAAAAAAAAAAAAAAA"]}', '{"$ndarray":["<M8[xx]",[0],""]}', '{"$ndarray":["<U99999999999999",[0],""]}',
    '{"$ndarray":["<f8",[' + ",".join(["0"] * 100) + '],""]}', '{"$scalar":["<f8","AA=="]}', '{"$scalar":["|O","AAAAAAAAAAA="]}', '{"$scalar":["<U0","AAAAAA=="]}',
    '{"$error":[]}', '{"$error":{"message":"m"}}', "[" * 201 + "]" * 201, '{"a":' * 201 + "1" + "}" * 201, '{"$tuple":[' * 101 + "]}" * 101, "[" * 1_000_000,
    '{"a":' * 1_000_000, '{"$tuple":[' * 300_000, "[" * 900 + "]" * 900, "[" * 5000 + "]" * 5000, "9" * 5000, '"' + "[" * 300, "\ufeff1",
]  # fmt: skip


@pytest.mark.parametrize("text", DAMAGED, ids=range(len(DAMAGED)))
def test_what_no_encoder_writes_is_damage(text):
    """One value has one form: everything else was not written by us."""
    with watched() as seen, pytest.raises(JournalCorrupt, match="a recorded value cannot be read"):
        values.decode(text.encode())
    assert seen == []


@pytest.mark.parametrize(
    "text",
    [
        '{"$type":["os.system",["ls"]]}',
        '{"$type":["subprocess.Popen",{"args":"ls"}]}',
        '{"$error":{"type":"os.system","message":"m","as":"registered","parts":{"args":["ls"]}}}',
        '{"$type":["hostile.Target",{"y":1}]}',
        '{"$type":["hostile.Target",{}]}',
        '{"$type":["hostile.Target",{"x":1},{"version":2}]}',
        '{"$type":["hostile.Colour","__class__"]}',
        '{"$type":["' + "x" * 5000 + '",{}]}',
    ],
)
def test_a_name_in_data_is_looked_up_among_registered_classes_only(text):
    with watched() as seen, pytest.raises(SchemaMismatch) as caught:
        values.decode(text.encode())
    assert seen == []
    assert len(str(caught.value)) < 1000


def test_an_unknown_time_zone_is_a_mismatch():
    """The machine at hand may know fewer zones than the one that wrote the value."""
    for key in ("Mars/Olympus", "America", "Europe/Berlin/x"):
        with pytest.raises(SchemaMismatch, match="tzdata"):
            values.decode(json.dumps({"$timezone": key}).encode())


def test_an_array_without_numpy_is_a_mismatch(monkeypatch):
    raw = values.encode(np.zeros(2))
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(SchemaMismatch, match="pip install numpy"):
        values.decode(raw)


def test_a_value_above_the_size_limit_is_not_read(monkeypatch):
    raw = values.encode(["x" * 1000])
    monkeypatch.setattr(forms, "MAX_BYTES", 1000)
    with pytest.raises(JournalCorrupt, match="limit is 1000"):
        values.decode(raw)


def test_json_of_another_hand_that_means_one_thing_is_read():
    """Spaces and escapes do no harm; a later version may write numbers in another way."""
    assert values.decode(b' {"a" : [1, 1E2, "\\u0041"]}') == {"a": [1, 100.0, "A"]}
    assert values.decode(b'{"\\u0024tuple":[1]}') == (1,)


def test_a_good_value_read_on_an_exhausted_stack_is_not_called_damaged():
    """Calling a sound journal corrupt would send a person to repair it."""
    raw = values.encode([[[[[[[[[[({},)]]]]]]]]]])

    def dive(levels: int) -> Any:
        return values.decode(raw) if levels == 0 else dive(levels - 1)

    outcomes = set()
    for levels in range(sys.getrecursionlimit() - 150, sys.getrecursionlimit()):
        try:
            outcomes.add(type(dive(levels)))
        except RecursionError:
            outcomes.add(RecursionError)

    assert outcomes == {list, RecursionError}
