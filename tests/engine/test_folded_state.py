"""What a run has been through is folded in core, once. Nobody else changes it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

import surefoot
from surefoot.core.state import RunState

SOURCE = Path(surefoot.__file__).parent
FIELDS = {name for name in vars(RunState("r")) if not name.startswith("_")}
CHANGING = {"add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "setdefault", "update"}


def chain(node: ast.expr) -> list[str]:
    """`session.state.calls[a]` -> session, state, calls. Empty: it does not begin with a name."""
    if isinstance(node, ast.Subscript | ast.Starred):
        return chain(node.value)
    if isinstance(node, ast.Attribute):
        around = chain(node.value)
        return [*around, node.attr] if around else []
    return [node.id] if isinstance(node, ast.Name) else []


def is_in_a_state(node: ast.expr) -> bool:
    """Whether this is a part of a folded run: what is called a state, and a field of one behind it."""
    names = chain(node)
    return any(one in ("state", "_state") and after in FIELDS for one, after in pairwise(names))


def targets(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        return [one for target in node.targets for one in getattr(target, "elts", [target])]
    if isinstance(node, ast.AugAssign | ast.AnnAssign):
        return [node.target]
    if isinstance(node, ast.Delete):
        return node.targets
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGING:
        return [node.func.value]
    return []


def changes(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        for target in targets(node):
            if is_in_a_state(target):
                yield f"line {target.lineno}: {ast.unparse(target)}"


@pytest.mark.parametrize(
    "line",
    [
        "session.state.calls[a] = past",
        "self._state.world.folder = x",
        "state.starts += 1",
        "a, state.cancel = b",
        "del state.calls[a]",
        "session.state.calls.pop(a)",
        "session.state.events.append(e)",
    ],
)
def test_a_change_of_a_folded_run_is_seen(line):
    """Else the scan below would find nothing for another reason."""
    assert list(changes(ast.parse(line)))


def test_nobody_but_core_changes_a_folded_run():
    """A second hand in it would be a second truth, which the journal knows nothing of."""
    files = [path for path in SOURCE.rglob("*.py") if path.relative_to(SOURCE).parts[0] != "core"]
    found = {str(path.relative_to(SOURCE)): list(changes(ast.parse(path.read_text()))) for path in files}

    assert len(files) > 100
    assert {name: lines for name, lines in found.items() if lines} == {}
