"""Every witness gives an answer in bounded time; a spec gives the same witness back; nothing else does."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import threading
from contextvars import ContextVar
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import surefoot as sf
from surefoot import witness
from surefoot.core.entry import ABSENT
from surefoot.core.expectation import Unseen
from surefoot.errors import UsageError
from surefoot.world.observation import AT_ONCE, look

mark = ContextVar("mark", default="none")


def seen(one, **options):
    return witness.observe_all([one], **options)[one.name]


# --- bounded ----------------------------------------------------------------------------------------


def test_function_that_never_returns_costs_its_patience_once(own_folder):
    """And the others are seen all the same."""
    never = threading.Event()
    stuck = [witness.observe(f"stuck {number}", never.wait) for number in range(AT_ONCE + 1)]
    try:
        found = witness.observe_all([*stuck, witness.file("a")], seconds=0.2)
    finally:
        never.set()

    assert found.pop("file(a)") == {"file:a": ABSENT}
    assert set(found.values()) == {Unseen("no answer within 0.2 s")}
    assert len(found) == AT_ONCE + 1


def test_look_that_gets_on_is_waited_for(own_folder, monkeypatch):
    """Hashing much data takes longer than the limit: the limit is on hearing nothing."""
    release = threading.Event()

    class Slow(witness.Witness):
        def look(self, pulse):
            for _ in range(20):
                release.wait(0.05)
                pulse.beat()
            return witness.Look({"slow": "1"})

    assert seen(Slow("slow"), seconds=0.3) == {"slow": "1"}


def test_abandoned_look_ends_at_its_next_sign():
    """Nobody waits for it: hashing on would only cost."""
    go_on, ended = threading.Event(), threading.Event()

    class Stuck(witness.Witness):
        def look(self, pulse):
            go_on.wait()
            try:
                pulse.beat()
            finally:
                ended.set()

    assert isinstance(seen(Stuck("stuck"), seconds=0.1), Unseen)
    go_on.set()
    assert ended.wait(10)


@pytest.mark.processes
def test_process_ends_although_a_look_hangs():
    code = (
        "import threading; from surefoot import witness as w;"
        "print(w.observe_all([w.observe('x', threading.Event().wait)], seconds=0.1))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert "no answer within 0.1 s" in done.stdout


@pytest.mark.parametrize(
    "error", [ValueError("bad"), KeyboardInterrupt(), SystemExit(3), RecursionError(), OSError(5, "I/O")]
)
def test_whatever_a_function_raises_is_not_seen(error):
    def raises():
        raise error

    assert isinstance(seen(witness.observe("x", raises)), Unseen)


def test_function_knows_of_no_run():
    """It must look the same before the run is resumed as inside it."""
    mark.set("inside")
    assert witness.observe("x", mark.get).value() == "inside"
    assert look(witness.observe("x", mark.get)).value == "none"


def test_value_and_fingerprint_are_of_one_look():
    """A value from before a change with a fingerprint from after it would hide the change for ever."""
    values = iter(range(10))
    one = look(witness.observe("x", lambda: next(values)))
    assert one.value == 0
    assert one.parts == witness.observe("x", lambda: 0).fingerprint()


def test_order_of_the_answers_is_the_order_asked():
    names = [f"n{number}" for number in range(30)]
    assert list(witness.observe_all([witness.observe(name, lambda: 1) for name in names])) == names


# --- names ------------------------------------------------------------------------------------------


def test_two_witnesses_of_one_name_are_refused():
    """One would hide the other."""
    with pytest.raises(UsageError, match="two different witnesses"):
        witness.observe_all([witness.file("a", name="x"), witness.file("b", name="x")])
    with pytest.raises(UsageError, match="two different witnesses"):
        witness.observe_all([witness.observe("x", int), witness.observe("x", str)])


def test_same_witness_twice_is_looked_at_once():
    assert witness.observe_all([witness.file("a"), witness.file("./a")]) == {"file(a)": {"file:a": ABSENT}}


@pytest.mark.parametrize("given", [None, "file(a)", witness.Witness, object()])
def test_what_is_no_witness_is_refused(given):
    with pytest.raises(UsageError, match="is no witness"):
        witness.observe_all([given])


def test_object_with_a_name_and_a_fingerprint_will_do():
    """What `Checkpoint.save(watch=)` takes as well."""

    class Own:
        name = "own"

        def __init__(self, found):
            self.found = found

        def fingerprint(self):
            return self.found

    assert seen(Own({"a": "1"})) == {"a": "1"}
    for wrong in (None, {"a": 1}, {1: "a"}, [("a", "1")], {"a": "\ud800"}):
        assert isinstance(seen(Own(wrong)), Unseen)


@pytest.mark.parametrize("name", ["", " ", 3, "x" * 2000, "\ud800"])
def test_names_that_are_none_are_refused(name):
    with pytest.raises(UsageError):
        witness.observe(name, int)


def test_checkpoint_takes_witnesses(own_folder):
    Path("a").write_text("x")
    checkpoint = sf.Checkpoint("c", store="memory:")
    checkpoint.save({"n": 1}, watch=[witness.file("a"), witness.model("m", name="planner")])
    (generation,) = checkpoint.generations()
    assert generation.watch == {
        "file(a)": witness.file("a").fingerprint(),
        "planner": {"model:planner": "m"},
    }


# --- what has a name --------------------------------------------------------------------------------


def test_variable_is_recorded_by_its_hash_only(monkeypatch):
    """It may be a password."""
    monkeypatch.setenv("KEY", "hunter2")
    assert witness.env("KEY").value() == "hunter2"
    assert "hunter2" not in repr(witness.env("KEY").fingerprint())
    monkeypatch.setenv("KEY", "\udcff")
    assert witness.env("KEY").fingerprint()


def test_package_is_seen_by_its_version():
    assert witness.package("msgspec").fingerprint() == {"package:msgspec": importlib.metadata.version("msgspec")}
    assert witness.package("no-such-package").fingerprint() == {"package:no-such-package": ABSENT}


def test_model_can_only_be_told_by_the_code():
    """A recorded name would always agree with itself."""
    assert witness.model("gpt-x").fingerprint() == {"model:gpt-x": "gpt-x"}
    assert witness.model("gpt-x", name="planner").fingerprint() == {"model:planner": "gpt-x"}
    assert witness.model("gpt-x").spec == {}
    with pytest.raises(UsageError):
        witness.model(ABSENT)


@pytest.mark.parametrize("value", [None, 1, 1.5, "x", [1, {"a": (1, 2)}], {1, 2}, Path("x"), b"\xff", "\ud800"])
def test_function_may_return_what_can_be_stored(value):
    one = look(witness.observe("x", lambda: value))
    assert one.value == value
    assert one.parts.keys() == {"observe:x"}


@pytest.mark.parametrize("value", [object(), int, lambda: 1, sf.Secret("x"), {"deep": [sf.Secret("x")]}])
def test_function_that_returns_what_cannot_be_told_apart_is_not_seen(value):
    """A secret is recorded as ***: any two would look the same."""
    assert isinstance(seen(witness.observe("x", lambda: value)), Unseen)


def test_async_function_is_refused():
    async def look_there():
        return 1

    with pytest.raises(UsageError, match="blocking"):
        witness.observe("x", look_there)


def test_function_that_returns_a_coroutine_is_not_seen():
    """Its value would be the address of an object."""

    async def look_there():
        return 1

    def call():
        return look_there()

    assert "async" in seen(witness.observe("x", call)).why


@pytest.mark.parametrize("wrong", ["", None, 3, "A=B", "A\0"])
def test_names_of_variables(wrong):
    with pytest.raises(UsageError):
        witness.env(wrong)


# --- specs ------------------------------------------------------------------------------------------

EVERY = [
    lambda **name: witness.file("src/a.txt", **name),
    lambda **name: witness.files("src/**/*.py", **name),
    lambda **name: witness.git_head("repo", **name),
    lambda **name: witness.sql("sqlite:///a.db", "SELECT 1", **name),
    lambda **name: witness.db_schema("sqlite:///a.db", **name),
    lambda **name: witness.db_schema("postgresql://u@h/d", tables=["b", "a, b", "ü"], **name),
    lambda **name: witness.http_json("https://h/x?page=1", "/a~1b/0", **name),
    lambda **name: witness.http_json("https://h/x", **name),
    lambda **name: witness.http_header("https://h/x", "ETag", **name),
    lambda **name: witness.env("HOME", **name),
    lambda **name: witness.package("msgspec", **name),
]


def held(one):
    """All that a witness has; its look by the code, and by what that was given."""
    look = one._look
    return vars(one) | {"_look": (look.__code__, [cell.cell_contents for cell in look.__closure__])}


@pytest.mark.parametrize("name", [{}, {"name": "given"}])
@pytest.mark.parametrize("make", EVERY)
def test_spec_gives_the_same_witness_back(make, name):
    """A resume looks without the user's code."""
    one = make(**name)
    again = witness.from_spec(one.spec)

    assert type(again) is type(one)
    assert (again.name, again.spec) == (one.name, one.spec)
    assert held(again) == held(one)
    assert all(type(text) is str for pair in one.spec.items() for text in pair)


@pytest.mark.parametrize(
    "spec",
    [{}, None, [], "file", {"look": "file"}, {"look": "os.system", "path": "x"}, {"look": "file", "path": "a", "more": "b"},
     {"look": "file", "path": ""}, {"look": "file", "path": "./a"}, {"look": "file", "path": 3}, {3: "file"}, {"path": "a"},
     {"look": "model", "model": "m"}, {"look": "observe", "name": "x"}, {"look": "sql", "url": "x", "query": "SELECT 1"},
     {"look": "db_schema", "url": "sqlite:///a", "tables": "{}"}, {"look": "db_schema", "url": "sqlite:///a", "tables": "["},
     {"look": "db_schema", "url": "sqlite:///a", "tables": "[1]"}, {"look": "http_json", "url": "file:///etc/passwd", "pointer": ""},
     {"look": "http_json", "url": "http://u:p@h/", "pointer": ""}, {"look": "file", "path": "a", "name": ""}, {"look": "env", "variable": "="},
     {"look": "db_schema", "url": "sqlite:///a", "tables": "[" * 100_000}],
)  # fmt: skip
def test_nonsense_is_no_spec(spec):
    """It comes out of a store, and anybody may have written there."""
    assert witness.from_spec(spec) is None


@given(
    st.dictionaries(
        st.sampled_from(["look", "path", "glob", "url", "query", "tables", "name", "repo", "pointer", "header", "variable"]),
        st.sampled_from(["file", "files", "sql", "db_schema", "http_json", "sqlite:///a", "a", "/", "null", "[]"]) | st.text(),
    )
)  # fmt: skip
def test_no_spec_whatsoever_raises(spec):
    found = witness.from_spec(spec)
    assert found is None or found.spec == spec


@pytest.mark.processes
def test_looking_loads_nothing_that_is_not_needed():
    """`import surefoot` and watching files need neither a web client nor a database."""
    code = "from surefoot import witness; witness.file('a').fingerprint(); import sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"sqlite3", "http.client", "urllib.request", "socket", "ssl", "psycopg", "asyncio"}.intersection(loaded)
