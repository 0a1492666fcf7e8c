"""Classes come back as themselves if they are registered, in every version they ever had, or the run says why not."""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import sys
import types
import typing
from typing import Annotated, Any, Generic, NamedTuple, NewType, Optional, TypeVar

import attrs
import msgspec
import pydantic
import pytest

from surefoot.core import registry, values
from surefoot.errors import JournalCorrupt, SchemaMismatch, UsageError, ValueRejected

T = TypeVar("T")


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    """Classes registered by one test must not answer in another."""
    for name in ("BY_CLASS", "_by_name", "_contested", "_upcasters"):
        monkeypatch.setattr(registry, name, {})


def there_and_back(value: Any) -> Any:
    return values.decode(values.encode(value))


@dataclasses.dataclass
class Order:
    id: int
    lines: list[Line] = dataclasses.field(default_factory=list)
    note: str = dataclasses.field(default="", init=False)


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Line:
    sku: str
    count: int = 1


@dataclasses.dataclass
class Checked:
    """A constructor that is not the inverse of its fields."""

    cents: int
    seen: dataclasses.InitVar[list[int]]

    def __post_init__(self, seen: list[int]) -> None:
        seen.append(self.cents)
        self.cents *= 100

    @functools.cached_property
    def euros(self) -> float:
        return self.cents / 100


@attrs.define
class Slotted:
    x: int
    _hidden: str = "h"


@attrs.frozen(cache_hash=True, slots=False)
class Hashed:
    x: int


class Model(pydantic.BaseModel):
    a: int = 1
    line: Line | None = None
    _token: int = pydantic.PrivateAttr(default=7)


class Open(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow", frozen=True)
    a: int = 1


class Box(pydantic.BaseModel, Generic[T]):
    held: T


class Listed(pydantic.RootModel[list[int]]):
    pass


class Record(msgspec.Struct, frozen=True, kw_only=True):
    x: int
    y: str = "a"

    def __post_init__(self) -> None:
        assert self.x > 0


class Doubling(msgspec.Struct):
    x: int

    def __post_init__(self) -> None:
        self.x *= 2


class Place(NamedTuple):
    x: int
    y: str = "b"


Old = collections.namedtuple("Old", "a b")  # noqa: PYI024 - such classes exist


class Colour(enum.Enum):
    RED = 1
    ROUGE = 1  # noqa: PIE796 - an alias is the same member
    BLUE = "blue"


class Shade(enum.StrEnum):
    DARK = "dark"


class Level(enum.IntEnum):
    LOW = 1


class Right(enum.Flag):
    READ = 1
    WRITE = 2


@dataclasses.dataclass
class Holder(Generic[T]):
    held: T


def made_order() -> Order:
    order = Order(1, [Line("a"), Line("b", 2)])
    order.note = "late"
    return order


def touched(checked: Checked) -> Checked:
    assert checked.euros
    return checked


INSTANCES = [
    made_order(), Line("x"), touched(Checked(3, [])), Slotted(1, "z"), Hashed(5), Model(), Model(a=2, line=Line("q")), Open(b=[1, 2], a=3),
    Box[int](held=3), Listed([1, 2]), Record(x=1), Doubling(2), Place(1), Old(1, (2,)), Colour.RED, Colour.BLUE, Shade.DARK, Level.LOW,
    Right.READ, Right.READ | Right.WRITE, Right(0), Holder[int](3),
]  # fmt: skip


@pytest.mark.parametrize("value", INSTANCES, ids=lambda value: type(value).__name__)
def test_a_registered_class_comes_back_as_itself(value):
    """Whatever its constructor does: the fields are what was recorded."""
    values.register(type(value))
    if type(value) is not Line:
        values.register(Line)

    back = there_and_back({"a": [value]})["a"][0]

    assert type(back) is type(value)
    assert back == value
    assert repr(back) == repr(value)
    assert values.encode(back) == values.encode(value)


def test_frozen_objects_come_back_as_keys_and_elements():
    for cls in (Line, Hashed, Colour):
        values.register(cls)
    value = {Line("a"): {Hashed(1), Hashed(2)}, Colour.RED: frozenset({Line("b")})}

    assert there_and_back(value) == value


def test_a_model_remembers_which_fields_were_set_and_what_was_private():
    """`model_dump(exclude_unset=True)` must give the same after a crash."""
    for cls in (Model, Open):
        values.register(cls)
    model = Model()
    model._token = 9

    back = there_and_back(model)

    assert (back.model_fields_set, back._token) == (set(), 9)
    assert there_and_back(Open(b=1)).model_fields_set == {"b"}
    assert there_and_back(Open(**{"$tuple": [1]})).model_extra == {"$tuple": [1]}


def test_constructors_do_not_run_when_a_value_is_read():
    """A constructor may count, connect or pay; reading the journal must do none of it."""
    values.register(Checked)
    seen: list[int] = []
    raw = values.encode(Checked(1, seen))
    values.decode(raw)

    assert seen == [1]


def test_an_unregistered_class_is_refused_with_the_cure():
    with pytest.raises(ValueRejected, match=r"register it with sf\.register\(Line\)") as caught:
        values.encode({"lines": [Line("a")]})
    assert caught.value.path == "$.lines[0]"


def test_a_subclass_of_a_registered_class_is_not_that_class():
    @dataclasses.dataclass
    class Special(Order):
        extra: int = 0

    values.register(Order)
    with pytest.raises(ValueRejected, match="Special"):
        values.encode(Special(1))


def test_attributes_that_are_no_fields_are_refused_not_dropped():
    values.register(Order)
    order = Order(1)
    order.surprise = 1  # type: ignore[attr-defined]
    with pytest.raises(ValueRejected, match="no field of the class") as caught:
        values.encode([order])
    assert caught.value.path == "$[0].surprise"


def test_a_field_that_was_never_set_is_refused():
    values.register(Order)
    order = Order(1)
    del order.id
    with pytest.raises(ValueRejected, match="never set"):
        values.encode(order)


def test_a_bad_field_of_an_object_is_named_by_its_path():
    for cls in (Order, Line):
        values.register(cls)
    with pytest.raises(ValueRejected) as caught:
        values.encode({"order": Order(1, [Line("a"), Line(object())])})  # type: ignore[arg-type]
    assert caught.value.path == "$.order.lines[1].sku"


def test_an_object_that_contains_itself_is_named():
    values.register(Holder)
    holder: Holder[Any] = Holder(None)
    holder.held = [holder]
    with pytest.raises(ValueRejected, match=r"cycle: \$\.held\[0\] leads back to \$,"):
        values.encode(holder)


# --- registering ---------------------------------------------------------------------------------


class Temperature:
    def __init__(self, degrees: float) -> None:
        self.degrees = degrees


def test_any_class_can_say_how_it_is_stored():
    values.register(
        Temperature, name="temp", encode=lambda t: {"degrees": t.degrees}, decode=lambda d: Temperature(**d)
    )

    assert values.encode(Temperature(2.5)) == b'{"$type":["temp",{"degrees":2.5}]}'
    assert there_and_back((Temperature(2.5),))[0].degrees == 2.5


def test_register_works_as_a_decorator_with_and_without_arguments():
    @values.register
    @dataclasses.dataclass
    class One:
        x: int

    @values.register(name="zwei", version=3)
    @dataclasses.dataclass
    class Two:
        x: int

    assert values.encode(One(1)) == b'{"$type":["One",{"x":1}]}'
    assert values.encode(Two(1)) == b'{"$type":["zwei",{"x":1},{"version":3}]}'
    assert there_and_back(Two(1)) == Two(1)


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        ((Temperature,), {}, "encode="),
        ((Temperature,), {"encode": str}, "both"),
        ((Line("x"),), {}, "takes a class"),
        ((str,), {"encode": str, "decode": str}, "stored as it is"),
        ((ValueError,), {}, "stored as it is"),
        ((KeyboardInterrupt,), {}, "stored as it is"),
        ((Line,), {"version": 0}, "from 1 on"),
        ((Line,), {"name": ""}, "not empty"),
    ],
)
def test_a_registration_that_cannot_work_says_so_at_once(arguments, options, words):
    with pytest.raises(UsageError, match=words):
        values.register(*arguments, **options)


def clone(name: str, module: str, **fields: type) -> type:
    cls = dataclasses.make_dataclass(name, list(fields.items()))
    cls.__module__ = module
    return cls


def test_two_classes_cannot_have_one_name():
    """Which of them came back would depend on the order of imports."""
    first, second = clone("Thing", "one", x=int), clone("Thing", "two", x=int)
    values.register(first)
    with pytest.raises(UsageError, match=r"sf\.register\(Thing, name='two\.Thing'\)"):
        values.register(second)
    values.register(second, name="two.Thing")

    assert type(there_and_back(second(1))) is second
    assert type(there_and_back(first(1))) is first


def test_a_module_loaded_again_replaces_its_classes():
    first, second = clone("Thing", "shop", x=int), clone("Thing", "shop", x=int)
    values.register(first)
    raw = values.encode(first(1))
    values.register(second)

    assert type(values.decode(raw)) is second
    with pytest.raises(ValueRejected, match="defined again"):
        values.encode(first(1))


def test_a_script_and_the_module_of_the_same_file_share_names(monkeypatch):
    """`python app.py` makes every class twice if something else imports `app`."""
    main, same_file, other = (types.ModuleType(name) for name in ("__main__", "app", "lib"))
    main.__file__ = same_file.__file__ = "/x/app.py"
    other.__file__ = "/x/lib.py"
    for module in (main, same_file, other):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    values.register(clone("Thing", "__main__", x=int))
    values.register(clone("Thing", "app", x=int))
    values.register(clone("Thing", "__main__", x=int))
    with pytest.raises(UsageError, match="already registered"):
        values.register(clone("Thing", "lib", x=int))


# --- changed classes -----------------------------------------------------------------------------


def test_a_type_nobody_registered_is_a_mismatch_that_names_the_cure():
    with pytest.raises(SchemaMismatch, match="'Order', which nothing in this process has registered") as caught:
        values.decode(b'{"$type":["Order",{"id":1}]}')
    assert "import" in str(caught.value)


@pytest.mark.parametrize(
    ("stored", "field"),
    [('{"sku":"a"}', "count"), ('{"sku":"a","count":1,"colour":2}', "colour")],
)
@pytest.mark.parametrize("kind", ["dataclass", "attrs", "model", "struct", "namedtuple"])
def test_changed_fields_are_a_mismatch_that_names_type_and_field(stored, field, kind):
    cls = {
        "dataclass": lambda: dataclasses.make_dataclass("Item", [("sku", str), ("count", int, 1)]),
        "attrs": lambda: attrs.make_class("Item", {"sku": attrs.field(), "count": attrs.field(default=1)}),
        "model": lambda: pydantic.create_model("Item", sku=(str, ...), count=(int, 1)),
        "struct": lambda: msgspec.defstruct("Item", [("sku", str), ("count", int, 1)]),
        "namedtuple": lambda: collections.namedtuple("Item", "sku count", defaults=[1]),  # noqa: PYI024 - made on the fly
    }[kind]()
    values.register(cls)
    with pytest.raises(SchemaMismatch, match=f"Item.*{field!r}") as caught:
        values.decode(f'{{"$type":["Item",{stored}]}}'.encode())
    assert caught.value.facts["field"] == field
    assert "sf.upcast" in str(caught.value)


def test_older_versions_are_brought_up_step_by_step():
    values.register(Line, version=3)

    @values.upcast("Line", 1)
    def _(fields):
        return {"sku": fields["name"]}

    @values.upcast("Line", 2)
    def _(fields):
        return {**fields, "count": 5}

    assert values.decode(b'{"$type":["Line",{"name":"a"}]}') == Line("a", 5)
    assert values.decode(b'{"$type":["Line",{"sku":"a"},{"version":2}]}') == Line("a", 5)
    assert there_and_back(Line("a", 7)) == Line("a", 7)


def test_a_gap_between_versions_and_a_newer_version_are_mismatches():
    values.register(Line, version=3)
    values.upcast("Line", 1)(lambda fields: fields)
    with pytest.raises(SchemaMismatch, match=r"from 2 to 3"):
        values.decode(b'{"$type":["Line",{"name":"a"}]}')
    with pytest.raises(SchemaMismatch, match="version 4"):
        values.decode(b'{"$type":["Line",{"name":"a"},{"version":4}]}')


def test_two_upcasters_for_one_step_are_refused():
    values.upcast("Line", 1)(made_order)
    values.upcast("Line", 1)(made_order)
    with pytest.raises(UsageError, match="already has an upcaster"):
        values.upcast("Line", 1)(touched)


def test_user_code_that_fails_while_reading_is_a_mismatch():
    """A stop that a person can answer, not a crash of the engine."""
    values.register(Temperature, encode=lambda t: t.degrees, decode=lambda _: 1 / 0)
    values.register(Line, version=2)
    values.upcast("Line", 1)(lambda fields: fields["gone"])
    values.register(Record)
    values.register(Order, encode=id, decode=str)
    for stored in (b'["Temperature",1.5]', b'["Line",{}]', b'["Record",{"x":0,"y":""}]', b'["Order",1]'):
        with pytest.raises(SchemaMismatch):
            values.decode(b'{"$type":' + stored + b"}")


def test_an_encode_function_that_raises_is_a_refusal():
    values.register(Temperature, encode=lambda t: t.gone, decode=Temperature)
    with pytest.raises(ValueRejected, match="encode= function raised AttributeError"):
        values.encode([Temperature(1)])


def test_a_member_that_is_gone_is_a_mismatch():
    values.register(Colour)
    with pytest.raises(SchemaMismatch, match="'GREEN', which"):
        values.decode(b'{"$type":["Colour","GREEN"]}')


def test_a_class_that_lost_its_hash_is_a_mismatch():
    cls = dataclasses.make_dataclass("Line", [("sku", str)])
    values.register(cls)
    with pytest.raises(SchemaMismatch, match="hashes or compares"):
        values.decode(b'{"$set":[{"$type":["Line",{"sku":"a"}]}]}')


@pytest.mark.parametrize(
    "stored",
    [b'["Colour",1]', b'["Colour",null]', b'["Line",[]]', b'["Line"]', b"[1,{}]", b"{}", b'["Line",{},{"version":"2"}]', b'["Line",{},{"x":1}]',
     b'["Line",{},{},{}]', b'["Model",{"a":1,"line":null},{"set":1}]', b'["Failure",{"args":[]}]'],
)  # fmt: skip
def test_objects_of_the_wrong_shape_are_damage(stored):
    class Failure(Exception):
        pass

    for cls in (Colour, Line, Model, Failure):
        values.register(cls)
    with pytest.raises(JournalCorrupt):
        values.decode(b'{"$type":' + stored + b"}")


# --- annotations ---------------------------------------------------------------------------------

UserId = NewType("UserId", Place)


def uses(
    a: list[Order], b: dict[str, Slotted | None], c: Optional[Model], d: Annotated[Colour, "x"], e: tuple[Record, ...],  # noqa: UP045 - people write it
    f: NoSuchName, g: type[Shade], h: typing.Callable[[Level], Right], i: int, j: Any, k: Temperature, l: UserId, m: T,  # noqa: E741, F821
) -> Holder[Hashed]: ...  # fmt: skip


def test_classes_in_annotations_are_registered_with_those_in_their_fields():
    """`Line` is mentioned only inside `Order`."""
    values.register_annotations(uses)

    assert set(registry.BY_CLASS) == {Order, Line, Slotted, Model, Colour, Record, Place, Holder, Hashed}
    assert there_and_back(made_order()) == made_order()


def test_annotations_find_classes_of_an_enclosing_function():
    @dataclasses.dataclass
    class Local:
        x: int

    def step(a: Local) -> list[Local]:
        return [Local(1)]

    @functools.wraps(step)
    def wrapper(*args):
        return step(*args)

    values.register_annotations(wrapper)

    assert there_and_back(Local(1)) == Local(1)


def test_annotations_leave_a_registration_by_hand_alone():
    values.register(Order, name="shop.Order", version=2)
    values.register_annotations(uses)

    assert values.encode(Order(1)).startswith(b'{"$type":["shop.Order"')


def test_a_registration_by_hand_replaces_one_by_annotation():
    values.register_annotations(uses)
    values.register(Order, name="shop.Order")

    assert values.encode(Order(1)).startswith(b'{"$type":["shop.Order"')
    with pytest.raises(SchemaMismatch):
        values.decode(b'{"$type":["Order",{"id":1}]}')


def test_a_name_that_two_annotations_claim_belongs_to_neither():
    """The first one imported would win, and the next process may import in another order."""
    first, second = clone("Thing", "one", x=int), clone("Thing", "two", x=int)
    for cls in (first, second):
        values.register_annotations(types.SimpleNamespace(__annotations__={"a": cls}))  # type: ignore[arg-type]

    for cls in (first, second):
        with pytest.raises(ValueRejected, match="another class answers to the name 'Thing'"):
            values.encode(cls(1))
    with pytest.raises(SchemaMismatch, match=r"one\.Thing and two\.Thing"):
        values.decode(b'{"$type":["Thing",{"x":1}]}')

    values.register(first)
    values.register(second, name="other")
    assert type(values.decode(b'{"$type":["Thing",{"x":1}]}')) is first


def test_functions_without_usable_annotations_register_nothing():
    broken = types.SimpleNamespace(__annotations__={"a": "1 +", "b": 3, "c": "list[gone]"})
    for fn in (len, lambda x: x, functools.partial(uses), broken, Order(1)):
        values.register_annotations(fn)  # type: ignore[arg-type]

    assert registry.BY_CLASS == {}
