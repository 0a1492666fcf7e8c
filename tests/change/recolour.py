"""A blocking program as the same one in async code: for cases that are written down once and have to hold in both.

Decorated functions become `async def`, so does whatever calls them or waits, and every such call is awaited. What is
called side by side (`sf.gather`) is handed over as the coroutines themselves.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

DECORATORS = frozenset({"step", "effect", "workflow", "transaction", "undo", "check"})
WAITING = frozenset(
    {"gather", "map", "sleep", "sleep_until", "approve", "ask", "wait_event", "child", "verify", "watch", "undo",
     "send_event"}
)  # fmt: skip
"""Verbs of `surefoot.aio` that are awaited."""
BLOCKS = frozenset({"saga", "timeout"})
"""Blocks that are entered with `async with`."""


def is_async(source: str) -> bool:
    """Whether it is written so already."""
    return any(isinstance(node, ast.AsyncFunctionDef) for node in ast.walk(ast.parse(source)))


def coroutines(sources: Iterable[str]) -> frozenset[str]:
    """The names of all functions that are async in the translation: also in code that has lost a decorator since."""
    trees = [ast.parse(source) for source in sources]
    functions = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    found = {function.name for function in functions if any(map(_is_ours, function.decorator_list))} - {"_"}
    while more := {each.name for each in functions if _waits(each, found)} - found - {"_"}:
        found |= more
    return frozenset(found)


def recoloured(source: str, names: frozenset[str]) -> str:
    tree = _Recolour(names).visit(ast.parse(source))
    return ast.unparse(ast.fix_missing_locations(tree)).replace("import surefoot as sf", "import surefoot.aio as sf")


def _is_ours(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(called, ast.Attribute) and called.attr in DECORATORS


def _verb(node: ast.AST) -> str:
    """The verb of ours that is called, or nothing."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        owner = node.func.value
        return node.func.attr if isinstance(owner, ast.Name) and owner.id == "sf" else ""
    return ""


def _is_awaited(node: ast.AST, names: Iterable[str]) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in names
    return _verb(node) in WAITING


def _waits(function: ast.FunctionDef, names: Iterable[str]) -> bool:
    inner = [node for statement in function.body for node in ast.walk(statement)]
    return any(_is_awaited(node, names) or _verb(node) in BLOCKS for node in inner)


class _Recolour(ast.NodeTransformer):
    def __init__(self, names: frozenset[str]) -> None:
        self.names = names
        self.inside = 0
        """How deep in functions that can wait."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        ours = any(map(_is_ours, node.decorator_list))
        if not (node.name in self.names or ours or _waits(node, self.names)):
            return self.generic_visit(node)
        self.inside += 1
        self.generic_visit(node)
        self.inside -= 1
        return ast.AsyncFunctionDef(**{name: getattr(node, name) for name in node._fields if hasattr(node, name)})

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        """It cannot wait: it hands the coroutine over."""
        inside, self.inside = self.inside, 0
        self.generic_visit(node)
        self.inside = inside
        return node

    def visit_With(self, node: ast.With) -> Any:
        self.generic_visit(node)
        if not any(_verb(item.context_expr) in BLOCKS for item in node.items):
            return node
        return ast.AsyncWith(items=node.items, body=node.body)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> Any:
        self.generic_visit(node)
        if any(isinstance(inner, ast.Await) for inner in ast.walk(node)):
            return ast.ListComp(elt=node.elt, generators=node.generators)
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        if _verb(node) == "gather":
            node.args = [_coroutine(thunk) for thunk in node.args]
        return ast.Await(value=node) if self.inside and _is_awaited(node, self.names) else node


def _coroutine(thunk: ast.expr) -> ast.expr:
    if isinstance(thunk, ast.Lambda):
        return thunk.body
    if isinstance(thunk, ast.Starred):
        return thunk
    return ast.Call(func=thunk, args=[], keywords=[])
