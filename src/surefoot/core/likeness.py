"""A failure that cannot come back as itself comes back as a `StepFailed` that is also of its class: `except` matches.

The class is looked up by recorded module and name among the modules that are loaded; nothing is imported, and no
attribute hook of a module or a class is asked. The failure is made past every constructor of the user's, and what the
user's class overrides (`__str__`, `__getattr__`, …) does not get in the way of what is recorded.

A replay may need the failure before the code has loaded the module: a step that is answered from the journal does not
run its own `import`. Then the failure has the name of its class and the bases of other modules all the same (`OSError`
of a client's error), and `isinstance` looks for the class when it is asked. Only an `except` clause that itself loads
the module cannot match: it is held against the real bases.
"""

from __future__ import annotations

import abc
import builtins
import functools
import re
import sys
import types
from typing import Any, Final, NoReturn

from surefoot.errors import Fenced, StepFailed, Stopped, StoreUnavailable, UsageError

MAIN: Final = "__main__"
_OF_THE_ENGINE: Final = (UsageError, Stopped, StoreUnavailable, Fenced)
"""Let out of a workflow, these are no failure of the run. What a call has recorded as its failure is one."""
_OF_ALL: Final = (Exception, BaseException, object)
_made: Final[dict[tuple[type, ...], type[StepFailed] | None]] = {}


class _Recorded:
    """Stands in front of the user's class: what is recorded is what is seen."""

    __slots__ = ()

    def __init_subclass__(cls, **_: object) -> None:
        """The user's class does not hear of it: it may count its subclasses, or want arguments."""

    __init__ = BaseException.__init__
    __str__ = BaseException.__str__
    __repr__ = BaseException.__repr__
    __eq__ = object.__eq__
    __hash__ = object.__hash__
    __getattribute__ = object.__getattribute__
    __setattr__ = object.__setattr__
    __delattr__ = object.__delattr__
    args = BaseException.args
    add_note = BaseException.add_note
    with_traceback = BaseException.with_traceback
    __traceback__ = BaseException.__traceback__
    __cause__ = BaseException.__cause__
    __context__ = BaseException.__context__
    __suppress_context__ = BaseException.__suppress_context__
    derive = BaseExceptionGroup.derive

    def __getattr__(self, name: str) -> NoReturn:
        kind = self.__dict__.get("type", "failure")
        raise AttributeError(
            f"{name!r} of this {kind} was not recorded with the failure: only attributes that can be stored, and are "
            f"small, come back. sf.register({kind.rpartition('.')[2]}) says how the whole exception is stored.",
            name=name,
            obj=self,
        )

    @property
    def __notes__(self) -> Any:
        notes = self.__dict__.get("__notes__")
        if notes is None:
            raise AttributeError("__notes__", name="__notes__", obj=self)
        return notes

    @__notes__.setter
    def __notes__(self, notes: Any) -> None:
        self.__dict__["__notes__"] = notes

    type = property(lambda self: self.__dict__["type"])
    message = property(lambda self: self.__dict__["message"])
    module = property(lambda self: self.__dict__["module"])


def is_likeness(error: BaseException) -> bool:
    """Whether it is a copy of a failure of another class, which is recorded as what it is a copy of."""
    return issubclass(type(error), _Recorded) or (type(error) is StepFailed and bool(error.module))


def import_name(module: str) -> str:
    """The name by which a module is imported: as the program that was started, it is called `__main__`."""
    if module != MAIN:
        return module
    main = _contents(MAIN)
    spec, file = main.get("__spec__"), main.get("__file__")
    name = getattr(spec, "name", None)
    if isinstance(name, str) and name:
        return name
    if not isinstance(file, str) or not file:
        return MAIN
    return re.split(r"[/\\]", file)[-1].removesuffix(".py") or MAIN


def home(cls: type) -> str:
    """The module in which a class is found by its name, as it is recorded; empty if it is found in none."""
    try:
        recorded, name = import_name(cls.__module__), cls.__qualname__
        return recorded if any(found is cls for found in find(recorded, name)) else ""
    except Exception:  # noqa: BLE001 - a metaclass of the user's may say anything about its classes
        return ""


def find(module: str, name: str) -> tuple[type[Exception], ...]:
    """The exception classes of that name: the module may be loaded twice, as the program itself and as a module."""
    places = [module] if module == MAIN or import_name(MAIN) != module else [MAIN, module]
    found: list[type[Exception]] = []
    for place in places:
        cls = _reached(_contents(place), name)
        if _is_exception(cls) and cls not in found:
            found.append(cls)
    return tuple(found)


def bases(cls: type) -> str:
    """Classes of other modules that it is of, the nearest first: they may be loaded where it is not."""
    try:
        found = [base for base in type.__dict__["__mro__"].__get__(cls)[1:] if base not in _OF_ALL]
        homes = {base: home(base) for base in found if base.__module__ != cls.__module__}
        return " ".join(f"{where}:{base.__qualname__}" for base, where in homes.items() if where)
    except Exception:  # noqa: BLE001 - a metaclass of the user's may say anything about its classes
        return ""


def make(
    kind: str, text: str, module: str, *, state: dict[str, Any], errors: list[Exception] | None, bases: str = ""
) -> StepFailed:  # fmt: skip
    """The failure of a class of that name in that module."""
    made = None
    if module:
        cls = _class_once(find(module, kind)) or _named(module, kind, _loaded(bases))
        made = _made_past_constructors(cls, text, errors)
    if made is None:
        made = StepFailed(kind, text, module=module)
    made.__dict__["__bases__"] = bases
    fields = made.__dict__
    for name, value in state.items():
        try:
            object.__setattr__(made, name, value)
        except (AttributeError, TypeError):
            fields[name] = value
    made.args = (f"{kind}: {text}" if text else kind,)
    fields.update(type=kind, message=text)
    if module:
        fields["module"] = module
    return made


def _contents(module: str) -> dict[str, Any]:
    """What a loaded module holds. One that loads itself when it is looked at is not loaded."""
    loaded = sys.modules.get(module)
    if not issubclass(type(loaded), types.ModuleType):
        return {}
    found: dict[str, Any] = object.__getattribute__(loaded, "__dict__")
    return found


def _reached(space: dict[str, Any], name: str) -> Any:
    outer, dot, rest = name.partition(".")
    found = space.get(outer)
    if not dot:
        return found
    return _reached(type.__dict__["__dict__"].__get__(found), rest) if issubclass(type(found), type) else None


def _is_exception(cls: Any) -> bool:
    if not issubclass(type(cls), type):
        return False
    return issubclass(cls, Exception) and not any(issubclass(cls, base) for base in _OF_THE_ENGINE)


def _class_of(classes: tuple[type, ...]) -> type[StepFailed] | None:
    """Named after the class that was raised: `type(error).__name__` says what happened."""
    name: str = type.__dict__["__name__"].__get__(classes[0])
    space = {
        "__module__": type.__dict__["__dict__"].__get__(classes[0]).get("__module__", "builtins"),
        "__qualname__": name,
        "__doc__": StepFailed.__doc__,
    }
    return _joined(_Recorded, classes, space)


def _joined(front: type, classes: tuple[type, ...], space: dict[str, Any]) -> type[StepFailed] | None:
    ours = () if any(StepFailed in cls.__mro__ for cls in (front, *classes)) else (StepFailed,)
    kind, name = type(classes[0]) if classes else type, space["__qualname__"]
    try:
        if kind is abc.ABCMeta:
            return abc.ABCMeta(name, (front, *ours, *classes), space)  # type: ignore[return-value]
        return type.__new__(kind, name, (front, *ours, *classes), space)  # past a metaclass of the user's
    except Exception:  # noqa: BLE001 - layouts, metaclasses or orders of bases that do not go together
        return None


class _Unloaded(_Recorded, StepFailed):
    """A failure of a class that is not loaded yet, or that does not go together with ours."""

    @property  # type: ignore[misc]  # typeshed has it writable
    def __class__(self) -> Any:
        """What `isinstance` asks for after the real type: by then the module may be loaded."""
        return _class_once(find(self.__dict__["module"], self.__dict__["type"])) or type(self)


@functools.lru_cache(1_000)
def _named(module: str, kind: str, bases: tuple[type, ...]) -> type[StepFailed]:
    space = {"__module__": module, "__qualname__": kind.rpartition(".")[2], "__doc__": StepFailed.__doc__}
    return _joined(_Unloaded, bases, space) or _joined(_Unloaded, (), space) or _Unloaded


def _loaded(bases: str) -> tuple[type, ...]:
    """Those that are there, without what comes with another one."""
    found = [cls for base in bases.split() for cls in find(*base.split(":", 1))[:1]]
    return tuple(cls for cls in found if not any(cls is not other and issubclass(other, cls) for other in found))


def _class_once(classes: tuple[type, ...]) -> type[StepFailed] | None:
    if not classes:
        return None
    return _made[classes] if classes in _made else _made.setdefault(classes, _class_of(classes))


def _made_past_constructors(cls: Any, text: str, errors: list[Exception] | None) -> StepFailed | None:
    base: Any = cls
    while getattr(builtins, base.__name__, None) is not base:
        base = base.__base__
    inside = (text, errors) if issubclass(cls, BaseExceptionGroup) else ()
    try:
        made: StepFailed = base.__new__(cls, *inside)
    except Exception:  # noqa: BLE001 - a group without its children, a base that is not a plain exception
        return None
    return made
