"""Values on record of classes that changed meanwhile: nothing is loaded as something else in silence."""

from __future__ import annotations

import dataclasses
import enum
import importlib
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from surefoot.core import members, registry, shapes, values
from surefoot.errors import SchemaMismatch, UsageError

KINDS = {
    "dataclass": ("import dataclasses\n@dataclasses.dataclass\nclass Answer:", "dataclasses.field(default_factory=list)"),
    "frozen": ("import dataclasses\n@dataclasses.dataclass(frozen=True, slots=True)\nclass Answer:", "dataclasses.field(default_factory=list)"),
    "attrs": ("import attrs\n@attrs.define\nclass Answer:", "attrs.field(factory=list)"),
    "msgspec": ("import msgspec\nclass Answer(msgspec.Struct, kw_only=True):", "msgspec.field(default_factory=list)"),
    "pydantic": ("import pydantic\nclass Answer(pydantic.BaseModel):", "pydantic.Field(default_factory=list)"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def heard(monkeypatch):
    """What was told; classes registered by one test must not answer in another."""
    told: list[str] = []
    for name in ("BY_CLASS", "_by_name", "_contested", "_upcasters"):
        monkeypatch.setattr(registry, name, {})
    monkeypatch.setattr(shapes, "_told", set())
    monkeypatch.setattr(shapes, "_listeners", [told.append])
    return told


class Package:
    """A module that is installed, or one of the user's own; it can be released anew."""

    def __init__(self, folder: Path, monkeypatch: Any) -> None:
        self.folder = folder
        self.monkeypatch = monkeypatch
        folder.mkdir(parents=True)
        monkeypatch.syspath_prepend(folder)
        monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def release(self, head: str, *fields: str) -> Any:
        (self.folder / "acme.py").write_text(head + "".join(f"\n    {field}" for field in fields) + "\n")
        self.monkeypatch.delitem(sys.modules, "acme", raising=False)
        importlib.invalidate_caches()
        module = importlib.import_module("acme")
        values.register(module.Answer)
        return module.Answer


@pytest.fixture
def installed(tmp_path, monkeypatch):
    yield Package(tmp_path / "lib" / "site-packages", monkeypatch)
    sys.modules.pop("acme", None)


@pytest.fixture
def own(tmp_path, monkeypatch):
    yield Package(tmp_path / "project", monkeypatch)
    sys.modules.pop("acme", None)


@pytest.mark.parametrize("kind", KINDS)
def test_an_installed_class_that_gained_optional_fields_is_filled_in_and_that_is_told(kind, installed, heard):
    """An SDK was upgraded while runs stood still; nobody who upgrades it can write an upcaster for each of its classes."""
    head, many = KINDS[kind]
    raw = values.encode([installed.release(head, "text: str")(text="hi")] * 2)
    newer = installed.release(head, "text: str", "tokens: int = 7", f"tags: list = {many}")

    first, second = values.decode(raw)  # type: ignore[misc]

    assert type(first) is newer
    assert (first.text, first.tokens, first.tags) == ("hi", 7, [])
    assert first.tags is not second.tags
    (told,) = heard
    assert told.startswith("recorded values of acme.Answer are from another version of its package: ")
    assert told.endswith(": tags=[] was filled in; tokens=7 was filled in")
    assert values.digest(newer(text="hi")) == values.digest(first)


@pytest.mark.parametrize("kind", KINDS)
def test_an_installed_class_that_lost_a_field_drops_it_and_that_is_told(kind, installed, heard):
    head, _ = KINDS[kind]
    raw = values.encode(installed.release(head, "text: str", "old: int")(text="hi", old=3))
    installed.release(head, "text: str")

    assert not hasattr(values.decode(raw), "old")
    (told,) = heard
    assert told.startswith("recorded values of acme.Answer are from another version of its package: ")
    assert told.endswith(": old is no field of it any more and was dropped")


def test_a_model_that_allows_extra_fields_keeps_what_it_no_longer_declares(installed, heard):
    """SDKs of model providers allow extra fields on purpose: nothing that the provider sent is lost."""
    head = "import pydantic\nclass Answer(pydantic.BaseModel, extra='allow'):"
    raw = values.encode(installed.release(head, "text: str", "old: int")(text="hi", old=3, more=4))
    installed.release(head, "text: str", "tokens: int = 0")

    back: Any = values.decode(raw)

    assert (back.model_extra, back.tokens, back.model_fields_set) == ({"more": 4, "old": 3}, 0, {"text", "old", "more"})
    assert "old is no field of it any more and was kept as extra" in heard[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("field", ["lang: str", "lang: object = FACTORY"])
def test_a_new_field_without_a_steady_default_is_a_mismatch(kind, field, installed):
    """What would be another value at each replay (an id, the time) is no default that could be filled in."""
    head, many = KINDS[kind]
    raw = values.encode(installed.release(head, "text: str")(text="hi"))
    fresh = many.replace("=list", "=__import__('uuid').uuid4")
    installed.release(head, "text: str", field.replace("FACTORY", fresh))

    with pytest.raises(SchemaMismatch, match=r"has no field 'lang', which acme\.Answer has now"):
        values.decode(raw)


@pytest.mark.parametrize("kind", KINDS)
def test_a_class_of_ones_own_is_a_mismatch_with_the_line_that_helps(kind, own, heard):
    """Whether "EUR" is right for orders of last week only their author knows."""
    head, _ = KINDS[kind]
    raw = values.encode(own.release(head, "text: str")(text="hi"))
    newer = own.release(head, "text: str", 'currency: str = "EUR"')

    with pytest.raises(SchemaMismatch) as caught:
        values.decode(raw)
    assert "sf.register(Answer, version=2, added={\"currency\": 'EUR'})" in str(caught.value)
    assert "@sf.upcast('Answer', 1)" in str(caught.value)

    values.register(newer, version=2, added={"currency": "CHF"})
    back: Any = values.decode(raw)
    assert (back.text, back.currency) == ("hi", "CHF")
    assert heard == []


def test_a_named_tuple_takes_its_defaults(installed):
    raw = values.encode(installed.release("import typing\nclass Answer(typing.NamedTuple):", "text: str")("hi"))
    installed.release("import typing\nclass Answer(typing.NamedTuple):", "text: str", "tokens: int = 7")

    assert values.decode(raw) == ("hi", 7)


@dataclasses.dataclass
class Order:
    id: int
    currency: str = "?"
    tags: list[str] = dataclasses.field(default_factory=list)


OLD = b'{"$type":["Order",{"id":1}]}'


def test_added_fields_are_a_fresh_copy_each_time_and_give_way_to_what_is_recorded():
    values.register(Order, version=3, added={"currency": "EUR", "tags": ["old"]})

    one, other = values.decode(OLD), values.decode(OLD)

    assert one == other == Order(1, "EUR", ["old"])
    assert one.tags is not other.tags  # type: ignore[attr-defined]
    assert values.decode(b'{"$type":["Order",{"id":1,"currency":"CHF"},{"version":2}]}') == Order(1, "CHF", ["old"])


def test_an_upcaster_says_more_than_added_fields():
    values.register(Order, version=3, added={"tags": []})
    values.upcast("Order", 1)(lambda parts: {**parts, "currency": f"of {parts['id']}"})

    assert values.decode(OLD) == Order(1, "of 1", [])


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"added": {"currency": "EUR"}}, "higher version="),
        ({"version": 2, "added": ["currency"]}, "takes a dict"),
        ({"version": 2, "added": {"curency": "EUR"}}, "no field 'curency'"),
    ],
)
def test_added_fields_that_cannot_be_meant_are_refused(wrong, why):
    with pytest.raises(UsageError, match=why):
        values.register(Order, **wrong)


def test_without_any_word_about_older_versions_both_ways_are_named():
    values.register(Order, version=2)

    with pytest.raises(SchemaMismatch, match=r"sf\.upcast\(\"Order\", 1\)[^$]*added={…}"):
        values.decode(OLD)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("where", ["own", "installed"])
def test_a_field_that_was_a_number_and_is_text_now_is_a_mismatch(kind, where, request):
    """`amount: int` became `amount: str`: code that joins texts would get a number, on replay only."""
    package = request.getfixturevalue(where)
    head, _ = KINDS[kind]
    raw = values.encode(package.release(head, "amount: int")(amount=5))
    package.release(head, "amount: str | None")

    with pytest.raises(SchemaMismatch, match=r"has a number in its field 'amount', where .* declares text now"):
        values.decode(raw)


def test_what_was_never_as_declared_comes_back_as_it_was():
    """Nobody keeps code from putting a text where a number is declared; its class has not changed for that."""

    class Pair(NamedTuple):
        left: int
        right: str

    values.register(Order)
    values.register(Pair)
    for loose in (Order("7", 5), Order(None, b""), Order(1.5, None), Pair("a", 2)):  # type: ignore[arg-type]
        assert values.decode(values.encode(loose)) == loose
        assert values.digest(values.decode(values.encode(loose))) == values.digest(loose)


class Currency(enum.Enum):
    EUR = "eur"
    USD = "usd"


class Level(enum.IntEnum):
    LOW = 1


class Odd(enum.Enum):
    PAIR = (1, 2)


def test_a_member_is_recorded_with_its_value_and_comes_back_by_its_name(monkeypatch):
    """What reads it goes on; but what was asked for, sent and done had the value of then."""
    for cls in (Currency, Level, Odd):
        values.register(cls)
    raw = values.encode({"c": [Currency.EUR, Currency.USD], "l": Level.LOW, "o": Odd.PAIR})
    assert b'{"$type":["Currency","EUR",{"value":"eur"}]}' in raw
    assert members.changed_members(raw) == []
    values.register(enum.Enum("Currency", {"EUR": "EUR", "USD": "usd"}, module=__name__))  # type: ignore[arg-type]
    values.register(enum.IntEnum("Level", {"LOW": 10}, module=__name__))  # type: ignore[arg-type]

    assert members.changed_members(raw) == ['Currency.EUR: "eur" -> "EUR"', "Level.LOW: 1 -> 10"]
    assert members.changed_members(raw, without={"c"}) == ["Level.LOW: 1 -> 10"]
    assert values.decode(raw)["c"][0].value == "EUR"  # type: ignore[index, call-overload]


def test_members_recorded_without_their_value_read_as_before():
    """Of older journals nobody knows what the value was: nothing is claimed."""
    values.register(Currency)
    raw = b'{"c":{"$type":["Currency","EUR"]},"value":{"$type":["Gone","A",{"value":1}]}}'

    assert members.changed_members(raw) == []
    assert values.decode(b'{"$type":["Currency","EUR"]}') is Currency.EUR
