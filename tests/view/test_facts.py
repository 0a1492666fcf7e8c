"""Objects for programs are made in `view/facts.py` and nowhere else, so that all that hand them out say the same."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import surefoot

SRC = Path(surefoot.__file__).parent
FACTS = SRC / "view" / "facts.py"
COMMANDS = [*(SRC / "cli").rglob("*.py"), SRC / "testing" / "crashtest.py"]
MAKES_JSON = {"dumps", "to_json", "to_builtins", "asdict"}
ALLOWED = {
    "cli/output.py": "the one printer",
    "cli/planning.py": "what two processes of ours tell each other",
    "cli/rehearsals.py": "what two processes of ours tell each other",
    "cli/runs/show.py": "the details of a question, laid out for people",
    "cli/demo/stage.py": "a result inside of a sentence",
}


def _calls(file: Path) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Call):
            yield getattr(node.func, "attr", getattr(node.func, "id", "")), node


def _named(file: Path) -> str:
    return file.relative_to(SRC).as_posix()


def test_nothing_else_makes_an_object_for_programs():
    """`output.say_json` takes a `Facts`, which mypy checks; so a field can only be added where all of them are."""
    telling = (file for file in SRC.rglob("*.py") if "Facts(" in file.read_text())
    made = {_named(file) for file in telling for name, _ in _calls(file) if name == "Facts"}

    assert {"view/facts.py"} == made


@pytest.mark.parametrize("file", COMMANDS, ids=_named)
def test_commands_put_no_json_together(file):
    """A verb chooses text or JSON. What it built itself, an HTTP API could not hand out as well."""
    writes = {name for name, _ in _calls(file)} & MAKES_JSON
    built = [
        ast.unparse(call)
        for name, call in _calls(file)
        if name in ("say_json", "answer", "report")
        and any(isinstance(part, ast.Dict | ast.DictComp) for part in ast.walk(call))
    ]

    assert not writes or _named(file) in ALLOWED
    assert [] == built


def test_names_the_types_above_it_for_the_type_checker_only():
    """The layers are checked by import-linter, which is told to look away here: at run time nothing is imported."""
    tree = ast.parse(FACTS.read_text())
    checked = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    hidden = {id(node) for block in checked for node in ast.walk(block)}
    imported = [
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom) and id(node) not in hidden
    ]

    assert not [line for line in imported if "surefoot.engine" in line or "surefoot.testing" in line]


def test_an_error_that_is_no_stop_has_the_same_fields():
    """Scripts read `error.cures` and `error.run` whatever went wrong."""
    from surefoot.view import facts

    assert {"type", "message", "run", "address", "cures", "exit_code"} == set(facts.error(ValueError("no")))


def test_workers_are_told_with_what_they_serve():
    """A page says how many go on with a run by themselves."""
    from surefoot.store.contract import Serving, WorkerSeen
    from surefoot.view import facts

    serving = WorkerSeen("w", "h", 7, 1_000_000, 2_000_000, Serving(("pay",), ("mail",), "c0de"))
    driving = WorkerSeen("d", "h", 8, 1_000_000)

    first, second = facts.workers([serving, driving])["workers"]

    assert first["serving"] == {"workflows": ["pay"], "queues": ["mail"], "code": "c0de"}
    assert (first["worker"], first["pid"], first["heard"].second) == ("w", 7, 2)
    assert (second["serving"], second["heard"]) == (None, None)
