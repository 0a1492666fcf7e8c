"""Which classes may be stored, under which name, and how they are taken apart and put together.

Stored data names a type; only a class that the running code has registered under that name is used for
it. Nothing here imports or looks up anything by a name found in data. Objects are put together field by
field, without their constructors: what was recorded comes back, and no code runs because of it.
"""

from __future__ import annotations

import builtins
import contextlib
import enum
import functools
import inspect
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypedDict, TypeVar, Unpack, overload

import msgspec

from surefoot.core import shapes
from surefoot.core.cure import Advice, Edit
from surefoot.errors import SchemaMismatch, UsageError

C = TypeVar("C", bound=type)
F = TypeVar("F", bound=Callable[..., Any])

Parts = tuple[object, dict[str, object]]
"""The parts of a value, and further facts about it (mostly none)."""

_HEAP_TYPE: Final = 1 << 9
_ENUM_VALUES: Final = frozenset({type(None), bool, int, float, str, bytes})
"""Types of enum values that are recorded beside the name: plain ones, which may be part of a request."""
_BOOKKEEPING: Final = frozenset({"__orig_class__", "_attrs_cached_hash"})
"""Attributes that typing and attrs leave on instances; they are no part of the value."""
_NATIVE: Final = frozenset(
    {
        "builtins": "NoneType bool int float complex str bytes bytearray list tuple dict set frozenset",
        "datetime": "datetime date time timedelta timezone",
        "decimal": "Decimal",
        "fractions": "Fraction",
        "uuid": "UUID",
        "pathlib": "Path PosixPath WindowsPath PurePosixPath PureWindowsPath",
        "zoneinfo": "ZoneInfo",
        "numpy": "ndarray",
    }.items()
)


class Unstorable(Exception):
    """A value of a registered class holds something that would not come back. `field` names the place."""

    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class Registered(msgspec.Struct, frozen=True, eq=False):
    """One class, its stored name and version, and the two functions that take apart and put together."""

    cls: type
    name: str
    version: int
    take: Callable[[Any], Parts]
    make: Callable[[Any, Mapping[str, Any]], Any]
    automatic: bool
    """The class was found in annotations, and not registered by hand."""
    added: Mapping[str, Any] | None = None
    """Fields that values of older versions lack, if no upcaster fills them."""


BY_CLASS: Final[dict[type, Registered]] = {}
_by_name: Final[dict[str, Registered]] = {}
_contested: Final[dict[str, tuple[str, str]]] = {}
"""Names that two classes claim through annotations alone. Neither gets it: which one came first depends
on the order of imports, and the next process may import in another order."""
_upcasters: Final[dict[tuple[str, int], Callable[[Any], Any]]] = {}


# --- registering ---------------------------------------------------------------------------------


class _Options(TypedDict, total=False):
    name: str | None
    version: int
    encode: Callable[[Any], object] | None
    decode: Callable[[Any], Any] | None
    added: Mapping[str, Any] | None


@overload
def register(cls: C, **options: Unpack[_Options]) -> C: ...
@overload
def register(cls: None = None, **options: Unpack[_Options]) -> Callable[[C], C]: ...
def register(
    cls: type | None = None,
    *,
    name: str | None = None,
    version: int = 1,
    encode: Callable[[Any], object] | None = None,
    decode: Callable[[Any], Any] | None = None,
    added: Mapping[str, Any] | None = None,
) -> Any:
    """Let values of a class be stored under a name. A function and a decorator.

    Dataclasses, attrs classes, pydantic models, msgspec structs, named tuples, enums and exceptions
    need nothing else; any other class needs `encode` (to plain data) and `decode` (back).

    A class that changed gets a higher `version`. If it only has more fields, `added` says what they are in
    values of older versions: `sf.register(Order, version=2, added={"currency": "EUR"})`; else write an `sf.upcast`.
    """
    if cls is None:
        return functools.partial(register, name=name, version=version, encode=encode, decode=decode, added=added)
    _check_request(cls, name, version, encode, decode)
    _check_added(cls, added, version)
    how = _custom_shape(cls, encode, decode) if encode and decode else _shape_of(cls)
    if how is None:
        raise UsageError(
            f"{full_name(cls)} is of no kind that surefoot can take apart by itself. "
            f"Say how: sf.register({cls.__name__}, encode=to_plain_data, decode=from_plain_data)."
        )
    stored = default_name(cls) if name is None else name
    _enter(Registered(cls, stored, version, *how, automatic=False, added=added))
    return cls


def upcast(name: str, from_version: int) -> Callable[[F], F]:
    """Decorate the function that turns one version's plain fields into the next version's."""

    def decorator(function: F) -> F:
        key = (name, from_version)
        taken = _upcasters.get(key)
        if taken is not None and not _same_place(taken, function):
            raise UsageError(
                f"{name} version {from_version} already has an upcaster, {full_name(taken)}. Remove one of the two."
            )
        _upcasters[key] = function
        return function

    return decorator


def register_annotations(fn: Callable[..., Any]) -> None:
    """Register the storable classes that a function's annotations mention, and those in their fields."""
    seen: set[type] = set()
    pending = [cls for _, hint in _hints_of_function(fn) for cls in _classes_in(hint)]
    while pending:
        cls = pending.pop()
        if cls in seen:
            continue
        seen.add(cls)
        how = None if _is_native(cls) else _shape_of(cls)
        if how is None:
            continue
        if cls not in BY_CLASS:
            _enter(Registered(cls, default_name(cls), 1, *how, automatic=True))
        pending.extend(found for _, hint in _declared(cls) for found in _classes_in(hint))


def mentions(fn: Callable[..., Any], cls: type) -> bool:
    """Whether a function's annotations of its parameters name this class."""
    return any(cls in _classes_in(hint) for name, hint in _hints_of_function(fn) if name != "return")


def returned_by(fn: Callable[..., Any]) -> Any:
    """The annotated return type of a function; None if there is none, or it cannot be read."""
    return dict(_hints_of_function(fn)).get("return")


def fields_of(cls: type) -> tuple[str, ...]:
    """The names of a class's fields, if it is of a kind that has some."""
    if _is_model(cls):
        return tuple(cls.model_fields)  # type: ignore[attr-defined]
    return getattr(cls, "__struct_fields__", None) or _field_names(cls) or ()


def names() -> list[str]:
    """The names that stored data may use for classes."""
    return sorted(_by_name)


def default_name(cls: type) -> str:
    """The name a class is stored under by default: no module, no enclosing function."""
    return cls.__qualname__.rpartition("<locals>.")[2]


def full_name(thing: Any) -> str:
    """The name of a class or a function in messages."""
    module = getattr(thing, "__module__", None)
    name = getattr(thing, "__qualname__", None) or type(thing).__qualname__
    return str(name) if module in (None, "builtins") else f"{module}.{name}"


def advice(cls: type) -> str:
    """What helps when a value of this unregistered class is to be stored."""
    call = cls.__name__
    now = _by_name.get(default_name(cls))
    if now is not None and now.cls is not cls and _same_place(now.cls, cls):
        return "the class was defined again since this object was made; make the object anew"
    if now is not None or default_name(cls) in _contested:
        return (
            f"another class answers to the name {default_name(cls)!r}; "
            f"register it with sf.register({call}, name={_own_name(cls)!r})"
        )
    if _shape_of(cls) is not None:
        return f"register it with sf.register({call})"
    return f"register it with sf.register({call}, encode=..., decode=...)"


def _check_request(cls: Any, name: Any, version: Any, encode: Any, decode: Any) -> None:
    if not isinstance(cls, type):
        raise UsageError(f"sf.register takes a class, not {type(cls).__name__}.")
    if _is_native(cls):
        raise UsageError(f"{full_name(cls)} is stored as it is; it needs no registration and allows none.")
    if (encode is None) != (decode is None):
        raise UsageError(f"sf.register({cls.__name__}, ...) needs both encode= and decode=, or neither.")
    if type(version) is not int or version < 1:
        raise UsageError(f"sf.register({cls.__name__}, version=...) takes a whole number from 1 on.")
    if name is not None and (type(name) is not str or not name):
        raise UsageError(f"sf.register({cls.__name__}, name=...) takes a string that is not empty.")


def _check_added(cls: type, added: Any, version: int) -> None:
    if added is None:
        return
    call = f"sf.register({cls.__name__}, added=...)"
    if not isinstance(added, Mapping) or not all(isinstance(name, str) for name in added):
        raise UsageError(f"{call} takes a dict: for each new field its value in what was recorded before.")
    if version == 1:
        raise UsageError(
            f"{call} says what values of older versions lack: give the class a higher version=, such as 2."
        )
    if unknown := sorted(set(added) - set(fields_of(cls))):
        raise UsageError(f"{call}: {full_name(cls)} has no field {unknown[0]!r}.")


def _is_native(cls: type) -> bool:
    root = cls.__module__.partition(".")[0]
    if issubclass(cls, BaseException) and root in ("builtins", "surefoot"):
        return True
    return any(module == root and cls.__qualname__ in names.split() for module, names in _NATIVE)


def _enter(new: Registered) -> None:
    taken = _by_name.get(new.name)
    if taken is not None and taken.cls is not new.cls and not _same_place(taken.cls, new.cls):
        if new.automatic:
            _contest(taken, new)
            return
        raise UsageError(
            f"{full_name(taken.cls)} is already registered as {new.name!r}. "
            f"Give {full_name(new.cls)} a name of its own: "
            f"sf.register({new.cls.__name__}, name={_own_name(new.cls)!r})."
        )
    if new.automatic and new.name in _contested:
        return
    _contested.pop(new.name, None)
    if taken is not None:
        BY_CLASS.pop(taken.cls, None)
    former = BY_CLASS.get(new.cls)
    if former is not None and former.automatic:
        _by_name.pop(former.name, None)
    _by_name[new.name] = new
    BY_CLASS[new.cls] = new


def _contest(taken: Registered, new: Registered) -> None:
    """A name given by a person stays; a name that comes only from annotations is taken from both classes."""
    if taken.automatic:
        _contested[new.name] = (full_name(taken.cls), full_name(new.cls))
        del _by_name[taken.name]
        BY_CLASS.pop(taken.cls, None)


def _own_name(cls: type) -> str:
    return f"{cls.__module__.rpartition('.')[2]}.{default_name(cls)}"


def _same_place(one: Any, other: Any) -> bool:
    """Whether two classes come from the same lines of code: reloaded, or run as __main__ and imported."""
    if getattr(one, "__qualname__", None) != getattr(other, "__qualname__", None):
        return False
    modules = {one.__module__, other.__module__}
    if len(modules) == 1:
        return True
    if "__main__" not in modules:
        return False
    (imported,) = modules - {"__main__"}
    files = [getattr(sys.modules.get(name), "__file__", None) for name in ("__main__", imported)]
    return None in files or files[0] == files[1]


# --- finding -------------------------------------------------------------------------------------


def known(name: str) -> Registered | None:
    """The class of a name, if there is exactly one."""
    return _by_name.get(name)


def find(name: str) -> Registered:
    """The class of a recorded name."""
    found = _by_name.get(name)
    if found is not None:
        return found
    claims = _contested.get(name)
    if claims is not None:
        raise SchemaMismatch(
            f"a recorded value is of type {name!r}, and both {claims[0]} and {claims[1]} would answer to it.",
            cures=(Advice("say which", f"sf.register(TheClass, name={name!r}), and another name= for the other"),),
        )
    raise SchemaMismatch(
        f"a recorded value is of type {_short(name)}, which nothing in this process has registered.",
        cures=(
            Advice("import", "the module that defines or registers it, before resuming"),
            Edit("renamed?", f"sf.register(TheClass, name={_short(name)})"),
        ),
    )


def rebuild(name: str, parts: Any, *, version: int = 1, about: Mapping[str, Any] | None = None) -> Any:
    """Put a recorded value together, upgraded to its class's present version."""
    known = find(name)
    if version == known.version:
        return known.make(parts, about or {})
    newer = _brought_up(known, parts, version)
    return known.make(newer, {**(about or {}), "older": frozenset(parts) if type(parts) is dict else None})


def _brought_up(known: Registered, parts: Any, version: int) -> Any:
    if version > known.version:
        raise SchemaMismatch(
            f"a recorded {known.name} has version {version}; the class at hand is version {known.version}.",
            cures=(Advice("use", "the newer code that wrote it"),),
        )
    for step in range(version, known.version):
        function = _upcasters.get((known.name, step))
        if function is None and known.added is not None:
            parts = shapes.added(known.added, parts)
            continue
        if function is None:
            raise SchemaMismatch(
                f"a recorded {known.name} has version {step}; the class at hand is version {known.version}, "
                f"and nothing says how to get from {step} to {step + 1}.",
                cures=(
                    Edit("say how", f'@sf.upcast("{known.name}", {step})'),
                    Edit(
                        "only new fields?", f"sf.register({known.cls.__name__}, version={known.version}, added={{…}})"
                    ),
                ),
            )
        parts = _call_user(function, parts, f"the upcaster of {known.name} from version {step}")
    return parts


def _call_user(function: Callable[[Any], Any], parts: Any, who: str) -> Any:
    try:
        return function(parts)
    except Exception as error:
        raise SchemaMismatch(f"{who} raised {type(error).__name__}: {error}") from error


def _short(name: str) -> str:
    return repr(name if len(name) <= 100 else name[:100] + "...")


# --- kinds of classes ----------------------------------------------------------------------------

Shape = tuple[Callable[[Any], Parts], Callable[[Any, Mapping[str, Any]], Any]]


def _shape_of(cls: type) -> Shape | None:
    """How values of a class are taken apart and put together, or None if it is of no known kind."""
    if issubclass(cls, enum.Enum):
        return _enum_shape(cls)
    if issubclass(cls, BaseException):
        return (take_error, functools.partial(make_error, cls)) if issubclass(cls, Exception) else None
    if issubclass(cls, msgspec.Struct):
        return _struct_shape(cls)
    if issubclass(cls, tuple):
        return _named_tuple_shape(cls) if _is_named_tuple(cls) else None
    if not all(base is object or base.__flags__ & _HEAP_TYPE for base in cls.__mro__):
        return None  # a dict, str, ... underneath would be lost
    if _is_model(cls):
        return _model_shape(cls)
    names = _field_names(cls)
    return None if names is None else _fields_shape(cls, names)


def _field_names(cls: type) -> tuple[str, ...] | None:
    if hasattr(cls, "__dataclass_fields__"):
        import dataclasses  # loaded already if the class is one; surefoot itself does not need it

        return tuple(field.name for field in dataclasses.fields(cls))
    if hasattr(cls, "__attrs_attrs__"):
        return tuple(field.name for field in cls.__attrs_attrs__)
    return None


def _is_named_tuple(cls: type) -> bool:
    fields = getattr(cls, "_fields", None)
    return isinstance(fields, tuple) and all(isinstance(name, str) for name in fields)


def _is_model(cls: type) -> bool:
    pydantic = sys.modules.get("pydantic")
    base = getattr(pydantic, "BaseModel", None)
    return isinstance(base, type) and issubclass(cls, base) and hasattr(base, "model_fields")


def _shape(
    cls: type,
    names: tuple[str, ...],
    build: Callable[[dict[str, Any]], Any],
    *,
    read: Callable[[Any], dict[str, object]] | None = None,
) -> Shape:
    """The shape of a class with fields. `build` makes a value; `read` reads fields of a value without attributes."""
    fields = _Fields(cls, names)
    allowed = _passing_attributes(cls) | (fields.known if read is None else frozenset())

    def take(value: Any) -> Parts:
        _refuse_extra(value, allowed)
        return fields.noted(_read_fields(value, names) if read is None else read(value))

    def make(parts: Any, about: Mapping[str, Any]) -> Any:
        return build(fields.fitted(parts, about))

    return take, make


def _fields_shape(cls: type, names: tuple[str, ...]) -> Shape:
    caches_hash = "_attrs_cached_hash" in getattr(getattr(cls.__hash__, "__code__", None), "co_names", ())

    def build(parts: dict[str, Any]) -> Any:
        made: Any = object.__new__(cls)
        for name in names:
            object.__setattr__(made, name, parts[name])
        if caches_hash:
            object.__setattr__(made, "_attrs_cached_hash", None)
        return made

    return _shape(cls, names, build)


def _struct_shape(cls: Any) -> Shape:
    names: tuple[str, ...] = cls.__struct_fields__
    slots = {name: getattr(cls, name) for name in names}

    def build(parts: dict[str, Any]) -> Any:
        # A struct cannot be made without its constructor, so the changes of __post_init__ are corrected after it.
        made = _call_user(lambda fields: cls(**fields), parts, f"__post_init__ of {full_name(cls)}")
        for name, slot in slots.items():
            slot.__set__(made, parts[name])
        return made

    return _shape(cls, names, build)


def _named_tuple_shape(cls: Any) -> Shape:
    names: tuple[str, ...] = cls._fields

    def read(value: Any) -> dict[str, object]:
        items = tuple(tuple.__iter__(value))
        if len(items) != len(names):
            raise Unstorable(f"it has {len(items)} items for {len(names)} fields")
        return dict(zip(names, items, strict=True))

    return _shape(cls, names, lambda parts: tuple.__new__(cls, [parts[name] for name in names]), read=read)


def _enum_shape(cls: type[enum.Enum]) -> Shape:
    members = cls.__members__

    def take(value: enum.Enum) -> Parts:
        name: Any = value.name  # None, or "A|B", for combined flags
        if members.get(name) is not value:
            return value.value, {}
        return name, {"value": value.value} if type(value.value) in _ENUM_VALUES else {}

    def make(parts: Any, about: Mapping[str, Any]) -> Any:
        if type(parts) is str:
            found = members.get(parts)
            if found is None:
                raise SchemaMismatch(
                    f"a recorded {default_name(cls)} is {_short(parts)}, which {full_name(cls)} no longer has.",
                    cures=(Advice("put back", "the member, or bump version= and write an sf.upcast"),),
                )
            return found
        if type(parts) is not int or not issubclass(cls, enum.Flag):
            raise TypeError
        return _call_user(cls, parts, full_name(cls))

    return take, make


def _model_shape(cls: Any) -> Shape:
    names = tuple(cls.model_fields)
    simple = _Fields(cls, names)
    allowed = simple.known | _passing_attributes(cls)
    base = sys.modules["pydantic"].BaseModel
    open_ended = cls.model_config.get("extra") == "allow"

    def take(value: Any) -> Parts:
        _refuse_extra(value, allowed)
        fields = _read_fields(value, names)
        extra, private = value.__pydantic_extra__ or {}, value.__pydantic_private__ or {}
        about: dict[str, object] = {}
        if set(value.__pydantic_fields_set__) != simple.known | set(extra):
            about["set"] = sorted(value.__pydantic_fields_set__)
        if extra:
            about["extra"] = dict(extra)
        if private:
            about["private"] = dict(private)
        return fields, {**about, **simple.noted(fields)[1]}

    def make(parts: Any, about: Mapping[str, Any]) -> Any:
        extra, private = dict(about.get("extra", {})), dict(about.get("private", {}))
        was_set = set(about.get("set", [*(about.get("older") or parts), *extra]))
        gone = set(private) - set(cls.__private_attributes__)
        if (extra and not open_ended) or gone:
            if not shapes.is_installed(cls):
                raise SchemaMismatch(
                    f"a recorded {default_name(cls)} has attributes that {full_name(cls)} no longer has."
                )
            shapes.told_of_dropped(cls, sorted({*extra, *gone} if not open_ended else gone))
            private = {name: item for name, item in private.items() if name not in gone}
            extra = extra if open_ended else {}
        parts = simple.fitted(parts, about, extra=extra if open_ended else None)
        state = {
            "__dict__": {name: parts[name] for name in names},
            "__pydantic_extra__": extra if open_ended else None,
            "__pydantic_fields_set__": was_set & (simple.known | extra.keys()),
            "__pydantic_private__": private if cls.__private_attributes__ else None,
        }
        made = cls.__new__(cls)
        base.__setstate__(made, state)
        return made

    return take, make


class _Fields:
    """The fields of a class. Annotations are read when first needed: they may name classes below."""

    def __init__(self, cls: type, names: tuple[str, ...]) -> None:
        self._cls = cls
        self.known = frozenset(names)

    @functools.cached_property
    def found(self) -> dict[str, str]:
        return shapes.simple_fields(dict(_declared(self._cls)), fields_of(self._cls))

    def noted(self, fields: dict[str, object]) -> Parts:
        """The fields, and which of them are not of the declared type."""
        loose = shapes.loose(self.found, fields)
        return fields, {"loose": loose} if loose else {}

    def fitted(self, parts: Any, about: Mapping[str, Any], *, extra: dict[str, Any] | None = None) -> dict[str, Any]:
        fields = parts
        if type(parts) is not dict or parts.keys() != self.known:
            fields = shapes.fitted(self._cls, self.known, parts, extra=extra, **self._as_registered())
        if "older" in about:
            return fields  # type: ignore[no-any-return] # what an upcaster gives is what the user wants
        odd = [name for name in shapes.loose(self.found, fields) if name not in about.get("loose", ())]
        if odd:
            raise shapes.retyped(self._cls, odd[0], fields[odd[0]], self.found[odd[0]], **self._as_registered())
        return fields  # type: ignore[no-any-return]

    def _as_registered(self) -> dict[str, Any]:
        now = BY_CLASS.get(self._cls)
        called, version = (default_name(self._cls), 1) if now is None else (now.name, now.version)
        return {"called": called, "version": version}


def _custom_shape(cls: type, encode: Callable[[Any], object], decode: Callable[[Any], Any]) -> Shape:
    def take(value: Any) -> Parts:
        try:
            return encode(value), {}
        except Exception as error:
            raise Unstorable(f"its encode= function raised {type(error).__name__}") from error

    def make(parts: Any, about: Mapping[str, Any]) -> Any:
        made = _call_user(decode, parts, f"the decode= function of {full_name(cls)}")
        if type(made) is not cls:
            raise SchemaMismatch(f"the decode= function of {full_name(cls)} returned {full_name(type(made))}.")
        return made

    return take, make


def _read_fields(value: Any, names: tuple[str, ...]) -> dict[str, object]:
    fields: dict[str, object] = {}
    for name in names:
        try:
            fields[name] = getattr(value, name)
        except AttributeError:
            raise Unstorable("the field was never set", field=name) from None
    return fields


def _refuse_extra(value: Any, allowed: frozenset[str]) -> None:
    """Attributes that are no fields would be lost: an error now is better than a loss after a crash."""
    for name in getattr(value, "__dict__", ()):
        if name not in allowed:
            raise Unstorable(
                "the attribute is no field of the class and would be lost; "
                "make it a field, or register the class with encode= and decode=",
                field=name,
            )


def _passing_attributes(cls: type) -> frozenset[str]:
    """Attributes that instances may have beside their fields: caches that are computed again on access."""
    cached = {
        name for base in cls.__mro__ for name, item in vars(base).items() if isinstance(item, functools.cached_property)
    }
    return _BOOKKEEPING | cached


# --- exceptions ----------------------------------------------------------------------------------

_ERROR_FIELDS: Final[tuple[tuple[type[Exception], tuple[str, ...]], ...]] = (
    (OSError, ("filename", "filename2")),
    (ImportError, ("name", "path")),
    (NameError, ("name",)),
    (AttributeError, ("name",)),
)
"""Attributes of built-in exceptions outside `args` and `__dict__`."""


def take_error(error: BaseException) -> Parts:
    """The arguments and the attributes of an exception."""
    parts: dict[str, object] = {"args": list(error.args)}
    state = {name: item for name, item in error.__dict__.items() if name != "__notes__"}
    for name in _held_outside(type(error)):
        item = getattr(error, name, None)
        if item is not None:
            state[name] = item
    if state:
        parts["state"] = state
    return parts, {}


def make_error(cls: type[BaseException], parts: Any, about: Mapping[str, Any] | None = None) -> Any:
    """An exception with these arguments and attributes, made without the constructors of user code."""
    args, state = parts["args"], parts.get("state", {})
    base: Any = cls
    while getattr(builtins, base.__name__, None) is not base:
        base = base.__base__
    made = base.__new__(cls, *args)
    base.__init__(made, *args)  # type: ignore[misc] # the constructor of the built-in class, on purpose
    outside = _held_outside(cls)
    for name, item in state.items():
        if name in outside:
            setattr(made, name, item)
        else:
            made.__dict__[name] = item
    return made


def _held_outside(cls: type) -> list[str]:
    found = [name for base, names in _ERROR_FIELDS if issubclass(cls, base) for name in names]
    for base in cls.__mro__:
        if base.__flags__ & _HEAP_TYPE:
            slots = base.__dict__.get("__slots__", ())
            found.extend(name for name in ([slots] if isinstance(slots, str) else slots) if not name.startswith("__"))
    return found


# --- annotations ---------------------------------------------------------------------------------


def _hints_of_function(fn: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    function = inspect.unwrap(fn)
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    cells = getattr(function, "__closure__", None) or ()
    local: dict[str, Any] = {}
    for name, cell in zip(names, cells, strict=False):
        try:
            local[name] = cell.cell_contents
        except ValueError:
            continue  # not bound yet: a class defined further down
    return _resolved(_annotations(function), getattr(function, "__globals__", {}), local)


def _declared(cls: Any) -> Iterator[tuple[str, Any]]:
    """The fields of a class and their hints, with those of its bases first."""
    if _is_model(cls):
        yield from ((name, field.annotation) for name, field in cls.model_fields.items())
        return
    for base in reversed(cls.__mro__):
        space = vars(sys.modules[base.__module__]) if base.__module__ in sys.modules else {}
        yield from _resolved(_annotations(base), space, {base.__name__: base})


def _annotations(thing: Any) -> dict[str, Any]:
    try:
        found = vars(thing).get("__annotations__") if isinstance(thing, type) else thing.__annotations__
    except Exception:  # noqa: BLE001 - evaluated lazily from 3.14 on, and then user code may raise anything
        return {}
    return dict(found) if isinstance(found, dict) else {}


def _resolved(annotations: dict[str, Any], space: dict[str, Any], local: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Each hint by itself, so that one name known only to type checkers does not break the others."""
    for name, annotation in annotations.items():
        single = types.SimpleNamespace(__annotations__={name: annotation})
        hint: Any = None
        # Annotations may hold anything; unreadable ones register nothing.
        with contextlib.suppress(Exception):
            hint = typing.get_type_hints(single, space, local)[name]
        yield name, hint


def _classes_in(hint: Any) -> Iterator[type]:
    origin = typing.get_origin(hint)
    if origin is None:
        behind = getattr(hint, "__supertype__", None) or getattr(hint, "__value__", None)  # NewType; `type X = ...`
        if isinstance(hint, type):
            yield hint
        elif behind is not None:
            yield from _classes_in(behind)
        return
    if origin is type or origin is typing.Literal or getattr(origin, "__name__", "") == "Callable":
        return  # about classes, constants and functions, not about values
    if isinstance(origin, type):
        yield origin
    for argument in typing.get_args(hint):
        yield from _classes_in(argument)
