"""Negative controls: a lab that finds nothing wrong is worth what it finds in engines that are wrong."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from types import ModuleType

import pytest

from tests.crash import broken
from tests.crash.broken import CRASHES, ENGINES
from tests.crash.controls import HUNTS

pytestmark = pytest.mark.timeout(300)


def test_none_has_gone():
    """FAULTS.md asks for thirty; one that was caught once stays."""
    assert len(ENGINES) == 116
    assert HUNTS.keys() == ENGINES.keys()


ROOMS = sorted(path.stem for path in Path(broken.__path__[0]).glob("*.py") if path.stem != "__init__")


@pytest.mark.parametrize("room", ROOMS)
def test_broken_engine_replaces_only_what_is_there(room):
    """Else it breaks nothing, or breaks down by itself, and what the lab notices is not the mistake it stands for."""
    module = importlib.import_module(f"{broken.__name__}.{room}")

    gone = [name for name in _replaced(module) if not _is_there(module, name)]

    assert gone == []


def _replaced(module: ModuleType) -> list[str]:
    """`sqlite.SqliteStore.read` and the like: what is assigned to, inside of modules and classes of the engine."""
    tree = ast.parse(Path(module.__file__ or "").read_text())
    targets = [target for node in ast.walk(tree) if isinstance(node, ast.Assign) for target in node.targets]
    flat = [one for target in targets for one in (target.elts if isinstance(target, ast.Tuple) else [target])]
    names = [ast.unparse(one) for one in flat if isinstance(one, ast.Attribute)]
    return [name for name in names if isinstance(getattr(module, name.partition(".")[0], None), ModuleType | type)]


def _is_there(module: ModuleType, name: str) -> bool:
    found: object = module
    for part in name.split("."):
        if not hasattr(found, part):
            return False
        found = getattr(found, part)
    return True


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_broken_engine_is_caught(engine, lab):
    """With the scenarios of the levels, and by the invariants that everything is held to."""
    (caught,) = lab.ask(hunt=engine)

    assert caught is not None, f"{engine} went unnoticed"


def test_engine_that_merely_crashes_is_not_caught(lab):
    """Else every engine that cannot do anything would count as one whose mistake was found."""
    (caught,) = lab.ask(hunt=CRASHES)

    assert caught is None
