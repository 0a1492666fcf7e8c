"""Nobody outside `store/` knows which backend it has: a fourth one is a row of a table and nothing else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import surefoot

SOURCE = Path(surefoot.__file__).parent
ROOMS = ("surefoot.store.sqlite", "surefoot.store.postgres", "surefoot.store.redis", "surefoot.store.memory")


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        if not name.startswith("store/"):
            yield name, ast.parse(path.read_text())


def test_no_module_outside_imports_from_a_backend():
    found = []
    for name, tree in modules():
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            found += [name for one in names if one.startswith(ROOMS)]

    assert [] == sorted(set(found))


def test_no_module_outside_asks_a_store_what_it_is():
    """`isinstance`, `hasattr` and `getattr` are how one asks; and so is the scheme of a store's URL."""
    found = [
        f"{name}:{node.lineno}: {ast.unparse(node)}"
        for name, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and _asks(node)
    ]

    assert [] == found


def _asks(call: ast.Call) -> bool:
    called = ast.unparse(call.func)
    if called in ("isinstance", "hasattr", "getattr") and call.args:
        asked = ast.unparse(call.args[0])
        return asked == "store" or asked.endswith((".store", "._store"))
    return called.endswith("url.startswith") and "memory" in ast.unparse(call)


def test_every_module_of_a_room_is_in_one_of_the_known_rooms():
    """A new backend's room is to be added above, else nothing guards it."""
    rooms = {path.parent.name for path in (SOURCE / "store").glob("*/__init__.py")}

    assert rooms == {"sqlite", "postgres", "redis"}
