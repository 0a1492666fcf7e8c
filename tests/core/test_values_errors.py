"""A failure looks the same the first time and on replay: as itself where that can be proved, else as StepFailed."""

from __future__ import annotations

import dataclasses
import errno
import threading
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.core import failures, registry, values
from surefoot.errors import (
    Fatal,
    JournalCorrupt,
    NotDone,
    NotFound,
    RetryAfter,
    SchemaMismatch,
    StepFailed,
    ValueRejected,
)


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    """Classes registered by one test must not answer in another."""
    for name in ("BY_CLASS", "_by_name", "_contested", "_upcasters"):
        monkeypatch.setattr(registry, name, {})


def replayed(error: BaseException) -> Any:
    return values.decode_error(values.encode_error(error))


class Declined(Exception):
    """A constructor that takes something else than it passes on."""

    def __init__(self, code: int, *, reason: str) -> None:
        super().__init__(f"declined: {reason} ({code})")
        self.code = code
        self.reason = reason


class Missing(FileNotFoundError):
    def __init__(self, path: str) -> None:
        super().__init__(errno.ENOENT, "no such document", path)


class Slotted(ValueError):
    __slots__ = ("extra",)

    def __init__(self, extra: int) -> None:
        super().__init__("slotted")
        self.extra = extra


class Both(KeyError, AttributeError):
    pass


@dataclasses.dataclass
class Field(Exception):
    name: str


class Mood(Exception):
    """Says something else every time it is made."""

    made = 0

    def __str__(self) -> str:
        Mood.made += 1
        return f"mood {Mood.made}"


class Group(ExceptionGroup[Exception]):
    pass


def raised(function: Any) -> Exception:
    try:
        function()
    except Exception as error:
        return error
    raise AssertionError


BUILTIN = [
    ValueError("bad"), ValueError(), ValueError("a", 1, (2.5, b"x")), KeyError("k"), IndexError(3), TypeError("\ud800"), RuntimeError({"a": [1]}),
    OSError(), OSError("only text"), FileNotFoundError(errno.ENOENT, "no", "file.txt"), OSError(errno.EXDEV, "x", "from", None, "to"),
    PermissionError(errno.EACCES, "no"), BlockingIOError(errno.EAGAIN, "x", 5), TimeoutError("late"), ConnectionResetError(errno.ECONNRESET, "gone"),
    raised(lambda: open("/no/such/file")), raised(lambda: {}["x"]), raised(lambda: [].nope), raised(lambda: nope), raised(lambda: 1 / 0),  # type: ignore[attr-defined] # noqa: F821, SIM115
    raised(b"\xff".decode), raised("\ud800".encode), raised(lambda: compile("1 +", "f.py", "exec")), raised(lambda: __import__("nope_")),
    StopIteration(4), MemoryError("m"), RecursionError("r"), NotImplementedError(), AssertionError("x"), UserWarning("w"), ArithmeticError(),
    ImportError("i", name="n", path="p"), Fatal("no"), NotDone("not done"), RetryAfter(2.5), RetryAfter(1, "slow down"), StepFailed("T", "m"),
    NotFound("x"), ValueRejected("bad", path="$.a"),
]  # fmt: skip


@pytest.mark.parametrize("error", BUILTIN, ids=lambda error: type(error).__name__)
def test_a_known_exception_comes_back_as_itself(error):
    """`except FileNotFoundError as e: e.filename` must do the same after a crash."""
    error.add_note("while testing")
    for back in (replayed(error), values.decode(values.encode([error]))[0]):  # type: ignore[index]
        assert type(back) is type(error)
        assert (str(back), back.args, back.__notes__) == (str(error), error.args, ["while testing"])
        for name in (
            "filename",
            "filename2",
            "errno",
            "name",
            "path",
            "seconds",
            "type",
            "message",
            "value",
            "start",
            "lineno",
        ):
            assert getattr(back, name, None) == getattr(error, name, None)
    assert values.error_summary(values.encode_error(error)) == (type(error).__name__, str(error))


@pytest.mark.parametrize(
    "error",
    [Declined(5, reason="funds"), Missing("a.txt"), Slotted(3), Both("x"), Field("f")],
    ids=lambda e: type(e).__name__,
)
def test_a_registered_exception_comes_back_as_itself_whatever_its_constructor(error):
    values.register(type(error))

    back = replayed(error)

    assert type(back) is type(error)
    assert (str(back), back.args) == (str(error), error.args)
    for name in ("code", "reason", "filename", "errno", "extra", "name"):
        assert getattr(back, name, None) == getattr(error, name, None)


def test_any_other_exception_comes_back_as_step_failed():
    error = Declined(5, reason="funds")
    error.add_note("card 1")

    back = replayed(error)

    assert isinstance(back, StepFailed)
    assert (back.type, back.message, back.__notes__) == ("Declined", "declined: funds (5)", ["card 1"])
    assert (str(back), repr(back)) == (
        "Declined: declined: funds (5)",
        "Declined('Declined: declined: funds (5)')",
    )


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ValueError(object()), "ValueError"),
        (ValueError(threading.Lock()), "ValueError"),
        (KeyboardInterrupt("x"), "KeyboardInterrupt"),
        (SystemExit(3), "SystemExit"),
        (GeneratorExit(), "GeneratorExit"),
        (RuntimeError(Declined(1, reason="inside")), "RuntimeError"),
        (Mood(), "Mood"),
    ],
)
def test_what_cannot_come_back_as_itself_comes_back_as_step_failed(error, kind):
    values.register(Mood)

    back = replayed(error)

    assert isinstance(back, StepFailed)
    assert back.type == kind


def test_attributes_that_cannot_be_stored_do_not_hide_the_exception():
    """HTTP libraries hang their responses on their errors; the `except` clause matters more."""
    values.register(Declined)
    error = Declined(5, reason="funds")
    error.response = threading.Lock()  # type: ignore[attr-defined]

    back = replayed(error)

    assert (type(back), back.code) == (Declined, 5)
    assert not hasattr(back, "response")
    with pytest.raises(ValueRejected) as caught:
        values.encode({"e": error})
    assert caught.value.path == "$.e.state.response"


def test_an_unregistered_exception_as_a_value_is_refused():
    """As a failure it may turn into StepFailed; as a value it would be something else in silence."""
    with pytest.raises(ValueRejected, match=r"sf\.register\(Declined\)") as caught:
        values.encode({"found": [Declined(1, reason="x")]})
    assert caught.value.path == "$.found[0]"
    with pytest.raises(ValueRejected):
        values.encode(KeyboardInterrupt())
    with pytest.raises(ValueRejected):
        values.encode(ExceptionGroup("g", [ValueError(), Declined(1, reason="x")]))


def test_groups_come_back_with_their_children():
    group = ExceptionGroup(
        "both", [ValueError(1), ExceptionGroup("inner", [OSError(2, "no", "f"), Declined(1, reason="x")])]
    )

    back = replayed(group)

    assert type(back) is ExceptionGroup
    assert str(back) == str(group)
    inner = back.exceptions[1]
    assert [type(error) for error in (*back.exceptions, inner.exceptions[0])] == [
        ValueError,
        ExceptionGroup,
        FileNotFoundError,
    ]
    assert isinstance(inner.exceptions[1], StepFailed)
    assert isinstance(inner.exceptions[1], Declined)
    assert inner.exceptions[0].filename == "f"


def test_a_group_with_more_than_exceptions_comes_back_as_an_exception():
    back = replayed(BaseExceptionGroup("stop", [KeyboardInterrupt("now"), ValueError("x")]))

    assert type(back) is ExceptionGroup
    assert [str(error) for error in back.exceptions] == ["KeyboardInterrupt: now", "x"]


def test_a_registered_group_comes_back_as_itself():
    values.register(Group)

    assert type(replayed(Group("g", [ValueError("x")]))) is Group
    assert type(values.decode(values.encode(Group("g", [ValueError("x")])))) is Group


def test_exceptions_can_say_how_they_are_stored_and_have_versions():
    values.register(
        Declined,
        name="pay.Declined",
        version=2,
        encode=lambda e: [e.code, e.reason],
        decode=lambda p: Declined(p[0], reason=p[1]),
    )
    values.upcast("pay.Declined", 1)(lambda parts: [parts["code"], "unknown"])
    raw = values.encode_error(Declined(5, reason="funds"))

    assert values.decode_error(raw).reason == "funds"  # type: ignore[attr-defined]
    assert values.error_summary(raw) == ("pay.Declined", "declined: funds (5)")
    old = b'{"$error":{"type":"pay.Declined","message":"m","as":"registered","parts":{"code":7}}}'
    assert str(values.decode_error(old)) == "declined: unknown (7)"


def test_a_registered_exception_is_a_mismatch_where_nobody_registered_it(monkeypatch):
    """Coming back as something else would let another `except` clause answer than in the first run."""
    values.register(Declined)
    raw = values.encode_error(Declined(5, reason="funds"))
    monkeypatch.setattr(registry, "_by_name", {})

    with pytest.raises(SchemaMismatch, match="Declined"):
        values.decode_error(raw)
    assert values.error_summary(raw) == ("Declined", "declined: funds (5)")


def test_a_class_of_the_users_named_like_a_builtin_is_not_the_builtin():
    mine = type("TimeoutError", (Exception,), {"__qualname__": "TimeoutError"})
    assert type(replayed(mine("x"))) is StepFailed
    values.register(mine)
    assert type(replayed(mine("x"))) is mine
    assert type(replayed(TimeoutError("x"))) is TimeoutError


def test_long_messages_are_cut_and_say_so():
    back = replayed(Declined(1, reason="x" * 50_000))

    assert len(back.message) < failures.MAX_MESSAGE + 100
    assert back.message.endswith("characters]")


def test_exceptions_that_misbehave_are_recorded_all_the_same():
    """The failure of a step must never be lost because its exception is badly written."""

    class Silent(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    class Evil(Exception):
        @property
        def __notes__(self) -> Any:
            raise RuntimeError

        @property
        def args(self) -> Any:
            raise RuntimeError

    assert replayed(Silent()).message == "<its __str__ raised RuntimeError>"
    values.register(Evil)
    assert replayed(Evil("x")).type == "Evil"
    itself = ValueError()
    itself.args = (itself,)
    assert isinstance(replayed(itself), StepFailed)
    nested: Exception = ValueError("x")
    for _ in range(300):
        nested = ExceptionGroup("g", [nested])
    assert isinstance(replayed(nested), (ExceptionGroup, StepFailed))


def test_an_exception_too_large_to_store_comes_back_as_step_failed(monkeypatch):
    monkeypatch.setattr("surefoot.core.forms.MAX_BYTES", 30_000)

    assert type(replayed(ValueError("x" * 20_000, "y" * 20_000))) is StepFailed


def test_only_failures_are_read_as_failures():
    for raw in (
        b"1",
        b"[]",
        b'{"$tuple":[]}',
        b'{"a":1}',
        b"not json",
        b'{"$error":1}',
        b'{"$error":{"type":1,"message":""}}',
    ):
        with pytest.raises(JournalCorrupt):
            values.decode_error(raw)
        with pytest.raises(JournalCorrupt):
            values.error_summary(raw)
    assert values.error_summary(msgspec.Raw(b'{"$error":{"type":"T","message":"m"}}')) == ("T", "m")


@pytest.mark.parametrize(
    "payload",
    [
        {"as": "builtins", "parts": {"args": ["x"]}, "type": "SystemExit"},
        {"as": "builtins", "parts": {"args": ["x"]}, "type": "eval"},
        {"as": "os", "parts": {"args": ["x"]}},
        {"as": "builtins", "parts": {}},
        {"as": "builtins", "parts": []},
        {"as": "builtins"},
        {"as": ["builtins"], "parts": {"args": []}},
        {"as": "builtins", "parts": {"args": []}, "type": "UnicodeDecodeError"},
        {"as": "builtins", "parts": {"args": ["m"]}, "type": "ExceptionGroup", "errors": [1]},
        {"as": "builtins", "parts": {"args": ["m"]}, "type": "ExceptionGroup", "errors": []},
        {"notes": "abc"},
        {"notes": [1]},
        {"more": 1},
        {"module": 1},
        {"module": "os", "state": []},
        {"module": "os", "errors": [1]},
        {"cause": 1},
        {"cause": {"$error": {"type": "T", "message": "m"}}, "suppress": 3},
        {"context": {"a": 1}},
    ],
)
def test_failures_of_the_wrong_shape_are_damage(payload):
    raw = msgspec.json.encode({"$error": {"type": "ValueError", "message": "m", **payload}})
    with pytest.raises(JournalCorrupt):
        values.decode_error(raw)


@given(st.lists(st.text(st.characters(codec=None)) | st.integers() | st.floats() | st.binary() | st.none(), max_size=3))
def test_any_arguments_come_back(args):
    back = replayed(ValueError(*args))

    assert type(back) is ValueError
    assert values.encode(back.args) == values.encode(tuple(args))
