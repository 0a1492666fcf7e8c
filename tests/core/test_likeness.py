"""`except MyError` matches a failure that comes back, whatever the class is like; no code of the class is run for it."""

from __future__ import annotations

import abc
import contextlib
import importlib.util
import sys
import threading
import types
from typing import Any

import pytest

from surefoot import errors
from surefoot.core import likeness, values
from surefoot.errors import StepFailed

HEARD: list[object] = []


def replayed(error: BaseException) -> Any:
    """Twice: a copy that a workflow lets out is recorded once more, and is still the same failure."""
    raw = values.encode_error(error)
    back = values.decode_error(raw)
    assert values.encode_error(back) == raw
    return back


class Slow(Exception):
    pass


class Wants(Exception):
    def __init__(self, code: int, *, why: str) -> None:
        HEARD.append(code)
        super().__init__(why)
        self.code = code
        self.reply = threading.Lock()
        self.body = "x" * 5_000

    def __str__(self) -> str:
        return f"{self.code} {self.reply.locked()}"


class Slotted(Exception):
    __slots__ = ("code",)

    def __init__(self, code: int) -> None:
        self.code = code


class OfSystem(OSError):
    pass


class OfOurs(StepFailed):
    pass


class Counting(type):
    def __new__(cls, name: str, bases: tuple[type, ...], space: dict[str, Any], **more: Any) -> Any:
        HEARD.append((name, more))
        return super().__new__(cls, name, bases, space)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        HEARD.append(args)
        return super().__call__(*args, **kwargs)

    def __instancecheck__(cls, instance: object) -> bool:
        HEARD.append(instance)
        return super().__instancecheck__(instance)


class Counted(Exception, metaclass=Counting):
    def __init_subclass__(cls, code: int) -> None:
        HEARD.append(cls)


class Abstract(Exception, abc.ABC):
    @abc.abstractmethod
    def code(self) -> int: ...


class Concrete(Abstract):
    def code(self) -> int:
        return 5


class Delegating(Exception):
    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class Telling(Exception):
    @property
    def message(self) -> str:
        raise RuntimeError

    type = message
    args = message  # type: ignore[assignment]
    __notes__ = message  # type: ignore[assignment]


class Undecodable(UnicodeDecodeError):
    pass


class Outer:
    class Inner(Exception):
        pass


class Lot(ExceptionGroup[Exception]):
    def __new__(cls, code: int, found: list[Exception]) -> Any:
        made = super().__new__(cls, "a lot", found)
        made.code = code  # type: ignore[attr-defined]
        return made

    def derive(self, found: Any) -> Any:
        HEARD.append(found)
        return Lot(self.code, found)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "error",
    [
        Slow("x"), Wants(7, why="no"), Slotted(3), OfSystem(2, "no", "f"), OfOurs("T", "m"), Counted("x"), Concrete("x"),
        Delegating("x"), Telling("x"), Undecodable("utf-8", b"a", 0, 1, "r"), Outer.Inner("x"), Lot(1, [Slow("a")]),
        ValueError(object()), Exception(object()),
    ],
    ids=lambda error: type(error).__name__,
)  # fmt: skip
def test_a_failure_is_a_step_failed_and_of_its_class(error):
    """Both `except sf.StepFailed` and `except MyError` were right to hope for it."""
    odd = isinstance(error, Telling | Delegating)  # add_note asks them for attributes
    if not odd:
        error.add_note("noted")
    HEARD.clear()

    back = replayed(error)

    with contextlib.suppress(type(error)):
        raise back
    assert StepFailed in type(back).__mro__
    assert back.type == type(error).__qualname__
    assert back.module == type(error).__module__
    assert (type(back).__name__, type(back).__module__) == (type(error).__name__, type(error).__module__)
    assert HEARD == []
    if not odd:
        assert back.__notes__ == ["noted"]


def test_what_code_behind_except_looks_at_comes_along():
    """`if error.code == 7` is why people catch their own class; what is large or cannot be stored is left, and says so."""
    back = replayed(Wants(7, why="no"))

    assert back.code == 7
    assert (replayed(Slotted(3)).code, replayed(OfSystem(2, "no", "f")).errno) == (3, 2)
    for name in ("reply", "body"):
        with pytest.raises(AttributeError, match=rf"'{name}' of this Wants was not recorded.*sf\.register\(Wants\)"):
            getattr(back, name)


def test_a_group_of_the_users_comes_back_with_its_children():
    """`except*` looks into it."""
    met = []
    HEARD.clear()
    try:
        raise replayed(Lot(5, [Slow("a"), ValueError("b")]))
    except* Slow as slow:
        met += slow.exceptions
    except* ValueError as other:
        met += other.exceptions

    assert [str(error) for error in met] == ["Slow: a", "b"]
    assert HEARD == []


def test_a_local_class_is_a_plain_step_failed_also_the_first_time(monkeypatch):
    """It cannot be found by its name, and another one of that name is another class."""

    class Hidden(Exception):
        pass

    monkeypatch.setitem(globals(), "Hidden", Slow)
    assert type(replayed_plainly(Hidden("x"))) is StepFailed
    shadowed = type("Slow", (Exception,), {"__module__": __name__, "__qualname__": "Slow"})
    assert type(replayed_plainly(shadowed("x"))) is StepFailed


def replayed_plainly(error: Exception) -> Any:
    return values.decode_error(values.encode_error(error))


def test_where_the_module_is_not_loaded_it_has_the_name_and_stays_findable(monkeypatch):
    """A process that does not have the class passes the failure on as it is; nothing is imported for it."""
    raw = values.encode_error(Wants(7, why="no"))
    with monkeypatch.context() as patch:
        patch.delitem(sys.modules, __name__)
        plain = values.decode_error(raw)
        passed_on = values.encode_error(plain)
        assert __name__ not in sys.modules

        assert not isinstance(plain, Wants)

    assert (type(plain).__name__, plain.code) == ("Wants", 7)
    assert isinstance(plain, StepFailed)
    assert passed_on == raw
    assert isinstance(plain, Wants), "the module was loaded meanwhile"
    assert isinstance(values.decode_error(passed_on), Wants)


def test_a_module_that_loads_itself_when_looked_at_is_not_loaded(monkeypatch):
    """Recorded data must not make anything be imported or run."""

    class Lazy(types.ModuleType):
        def __getattribute__(self, name: str) -> Any:
            raise AssertionError(name)

    class NoModule:
        def __getattribute__(self, name: str) -> Any:
            raise AssertionError(name)

    raw = values.encode_error(Slow("x")).replace(__name__.encode(), b"elsewhere")
    for module in (Lazy("elsewhere"), NoModule()):
        monkeypatch.setitem(sys.modules, "elsewhere", module)
        assert values.decode_error(raw).__class__.__mro__[1] is likeness._Unloaded


def test_bases_of_other_modules_are_there_before_the_module_is_loaded(monkeypatch):
    """`except OSError` around a client's error, whose module only the step imports: the same branch after a crash."""
    client = types.ModuleType("client")
    client.Refused = type("Refused", (ConnectionError, Slow), {"__module__": "client"})  # type: ignore[attr-defined]
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "client", client)
        raw = values.encode_error(client.Refused("x"))
        first = values.decode_error(raw)

    replayed = values.decode_error(raw)
    with pytest.raises(OSError, match="Refused: x") as caught:
        raise replayed
    assert isinstance(caught.value, Slow)
    assert (type(replayed).__name__, str(replayed)) == (type(first).__name__, str(first))
    assert values.encode_error(replayed) == raw


def test_the_program_itself_is_known_by_its_import_name(tmp_path, monkeypatch):
    """Started by `python app.py`, taken up by a worker that imports `app`; or both loaded in one process."""
    (tmp_path / "app.py").write_text("class Slow(Exception):\n    pass\n")

    def loaded(name: str) -> Any:
        spec = importlib.util.spec_from_file_location(name, tmp_path / "app.py")
        module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
        spec.loader.exec_module(module)  # type: ignore[union-attr]
        return module

    program, imported = loaded("__main__"), loaded("app")
    program.__spec__ = None
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "__main__", program)
        raw = values.encode_error(program.Slow("x"))
        assert b'"module":"app"' in raw
        assert isinstance(values.decode_error(raw), program.Slow)
        patch.setitem(sys.modules, "app", imported)
        both = values.decode_error(raw)
    assert isinstance(both, program.Slow)
    assert isinstance(both, imported.Slow)
    monkeypatch.setitem(sys.modules, "app", imported)
    assert isinstance(values.decode_error(raw), imported.Slow)


def test_a_module_run_with_dash_m_is_known_by_its_whole_name(monkeypatch):
    program = types.ModuleType("__main__")
    program.__spec__ = types.SimpleNamespace(name="pkg.app")  # type: ignore[assignment]
    monkeypatch.setitem(sys.modules, "__main__", program)

    assert likeness.import_name("__main__") == "pkg.app"
    assert likeness.import_name("other") == "other"
    program.__spec__ = None
    assert likeness.import_name("__main__") == "__main__"


@pytest.mark.parametrize("base", [errors.UsageError, errors.InDoubt, errors.StoreFull, errors.Fenced])
def test_what_means_something_to_the_engine_does_not_come_back_as_that(base, monkeypatch):
    """Let out of a workflow, a misuse or a stop is no failure of the run. A recorded failure is one."""
    mine = type("Mine", (base,), {"__module__": __name__, "__qualname__": "Mine"})
    monkeypatch.setitem(globals(), "Mine", mine)

    assert type(replayed_plainly(mine("x"))) is StepFailed


def test_a_failure_as_a_value_is_the_same_failure():
    """`sf.map(on_error="collect")` hands failures out, and workflows return them."""
    back = replayed(Wants(7, why="no"))

    value: Any = values.decode(values.encode([back]))

    assert isinstance(value[0], Wants)
    assert value[0].code == 7


def caused() -> Exception:
    try:
        try:
            raise Slow("first")
        except Slow as slow:
            raise Wants(7, why="then") from slow
    except Wants as error:
        return error


def test_what_led_to_it_comes_back_as_failures_of_their_own():
    """`isinstance(error.__cause__, Slow)` decides what is done next, so it has one answer."""
    back = replayed(caused())

    assert isinstance(back.__cause__, Slow)
    assert back.__context__ is back.__cause__
    assert back.__suppress_context__
    assert back.__traceback__ is None


@pytest.mark.parametrize("suppress", [False, True])
def test_what_was_being_handled_comes_back(suppress):
    try:
        try:
            raise Slow("first")
        except Slow:
            if suppress:
                raise ValueError("then") from None
            raise ValueError("then")  # noqa: B904 - on purpose
    except ValueError as error:
        back = replayed(error)

    assert type(back) is ValueError
    assert isinstance(back.__context__, Slow)
    assert (back.__cause__, back.__suppress_context__) == (None, suppress)


def test_stories_without_end_are_cut():
    """Retries in a loop chain their exceptions; exceptions can lead to each other."""
    chain: Exception = Slow("start")
    for number in range(100):
        following = Slow(str(number))
        following.__cause__ = chain
        chain = following
    one, other = ValueError("one"), ValueError("other")
    one.__cause__, other.__cause__ = other, one

    links, at = 0, replayed(chain)
    while (at := at.__cause__) is not None:
        links += 1

    assert links == 10
    assert str(replayed(one).__cause__) == "other"
    assert replayed(one).__cause__.__cause__ is None


def test_an_exception_of_a_newer_python_comes_back_as_step_failed():
    """Damage means damage; a name that this Python does not have yet is none."""
    raw = b'{"$error":{"type":"FutureError","message":"m","as":"builtins","parts":{"args":["m"]}}}'

    back: Any = values.decode_error(raw)

    assert isinstance(back, StepFailed)
    assert (type(back).__name__, back.type, back.message, back.module) == (
        "FutureError",
        "FutureError",
        "m",
        "builtins",
    )
    assert isinstance(values.decode_error(raw.replace(b'"builtins"', b'"surefoot"')), StepFailed)


def test_old_failures_read_as_before():
    """Journals written before classes were recorded have no module: no class is guessed."""
    back: Any = values.decode_error(b'{"$error":{"type":"Slow","message":"m","notes":["n"]}}')

    assert (type(back), back.type, back.message, back.module, back.__notes__) == (StepFailed, "Slow", "m", "", ["n"])
    assert back.__cause__ is None
