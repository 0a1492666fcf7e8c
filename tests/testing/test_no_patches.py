"""The kit patches nothing: what it tests is the engine as it is, and not one that was changed for the test.

It has an observer, a store that is wrapped when it is opened, a clock, settings, and Python's audit hooks. Each is given to
the engine through a function of the engine's own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import surefoot

SOURCE = Path(surefoot.__file__).parent
KIT = [*sorted((SOURCE / "testing").glob("*.py")), SOURCE / "pytest_plugin.py"]
OWN = {
    "sys.dont_write_bytecode", "sys.stdout", "sys.stderr",
    "observer.is_on", "writer.kind", "other.alone", "call.notes", "call.returned", "verdict.wrong", "_depth",
}  # fmt: skip
"""What it assigns to besides `self`: Python's own, and objects of the kit."""
SETTERS = ("setattr", "delattr", "setitem", "patch", "__setattr__", "addHandler", "addFilter", "settrace", "setprofile")


def patches(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=targets) | ast.Delete(targets=targets):
                yield from (found for target in targets for found in _reaching(target))
            case ast.AnnAssign(target=target) | ast.AugAssign(target=target) | ast.For(target=target):
                yield from _reaching(target)
            case ast.withitem(optional_vars=ast.expr() as target):
                yield from _reaching(target)
            case ast.Call(func=func) if ast.unparse(func).rpartition(".")[2] in SETTERS:
                yield ast.unparse(node)
            case ast.Global(names=names):
                yield from names
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                yield from (alias.name for alias in aliases if "mock" in alias.name)
            case _:
                pass


def _reaching(target: ast.expr) -> Iterator[str]:
    """Attributes and items of something, other than of `self` or of a plain local name."""
    for node in target.elts if isinstance(target, ast.Tuple | ast.List) else [target]:
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) != "self":
            yield ast.unparse(node)
        if isinstance(node, ast.Subscript) and not isinstance(node.value, ast.Name):
            base = ast.unparse(node.value)
            yield from [] if base.startswith("self._") and base.count(".") == 1 else [base]


@pytest.mark.parametrize("path", KIT, ids=lambda path: path.name)
def test_the_kit_changes_nothing_of_the_engine(path):
    assert set(patches(ast.parse(path.read_text()))) <= OWN


@pytest.mark.parametrize(
    "way",
    [
        "SqliteStore.append = watched",
        "drive.execute, drive.look = execute, look",
        "setattr(Session, 'begin', watched)",
        "kept, settings.store = settings.store, url",
        "for known in runtime.known(): known.clock = clock",
        "vars(gate)['is_needed'] = never",
        "logging.getLogger('surefoot').addHandler(handler)",
        "with opened() as drive.execute: pass",
        "monkeypatch.setattr(drive, 'look', look)",
        "mock.patch.object(Session, 'begin').__enter__(); mock.patch('x')",
    ],
)
def test_a_patch_would_be_found(way):
    assert list(patches(ast.parse(way)))
