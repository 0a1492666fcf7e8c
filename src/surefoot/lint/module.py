"""One parsed file: its functions with their nodes, names and imports, collected in one walk.

Rules look at what is collected here and walk no tree of their own. A node belongs to the innermost function around
it; a lambda and a comprehension belong to the function they stand in; decorators and defaults to the one outside.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar, cast

N = TypeVar("N", bound=ast.AST)
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Module

_NO_CHILDREN = frozenset(
    ("ctx", "op", "ops", "id", "attr", "arg", "kind", "type_comment", "level", "module", "is_async", "conversion",
     "type_params", "asname", "returns", "annotation", "type_ignores", "simple", "names", "rest", "kwd_attrs", "str"),
)  # fmt: skip
CHILDREN = {
    cls: tuple(name for name in cls._fields if name not in _NO_CHILDREN)
    for cls in vars(ast).values()
    if isinstance(cls, type) and issubclass(cls, ast.AST)
}
CHILDREN[ast.Constant] = CHILDREN[ast.MatchSingleton] = ()
for _named in (ast.ExceptHandler, ast.MatchAs, ast.MatchStar, ast.alias):
    CHILDREN[_named] = tuple(name for name in CHILDREN[_named] if name != "name")
CHILDREN[ast.arguments] = ("defaults", "kw_defaults")


@dataclass(eq=False, slots=True)
class Class:
    """A class, with what its methods assign to `self`."""

    name: str
    node: ast.ClassDef
    outer: Function
    methods: dict[str, Function] = field(default_factory=dict)
    attributes: dict[str, list[tuple[ast.expr, Function]]] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Function:
    """A function, or the module itself as the outermost one."""

    name: str
    node: FunctionNode
    owner: Class | None = None
    outer: Function | None = None
    nodes: dict[type[ast.AST], list[ast.AST]] = field(default_factory=lambda: defaultdict(list))
    ordered: set[type[ast.AST]] = field(default_factory=set)
    params: dict[str, ast.expr | None] = field(default_factory=dict)
    imports: dict[str, str] = field(default_factory=dict)
    assigned: dict[str, list[ast.expr | None]] = field(default_factory=lambda: defaultdict(list))
    outside: set[str] = field(default_factory=set)
    """Names it declares as global."""
    inner: dict[str, Function] = field(default_factory=dict)
    classes: dict[str, Class] = field(default_factory=dict)

    @property
    def is_async(self) -> bool:
        return isinstance(self.node, ast.AsyncFunctionDef)

    @property
    def short_name(self) -> str:
        return self.name.rpartition(".")[2]

    @property
    def decorators(self) -> list[ast.expr]:
        return [] if isinstance(self.node, ast.Module) else self.node.decorator_list

    def all(self, kind: type[N]) -> list[N]:
        """Its own nodes of a kind, in the order of the text. The list is not the caller's to change."""
        found: list[N] = self.nodes.get(kind, [])  # type: ignore[assignment]
        if kind not in self.ordered:
            self.ordered.add(kind)
            found.sort(key=position)
        return found

    def tries(self) -> list[ast.Try | ast.TryStar]:
        return [*self.all(ast.Try), *self.all(ast.TryStar)]

    def withs(self) -> list[ast.With | ast.AsyncWith]:
        return [*self.all(ast.With), *self.all(ast.AsyncWith)]

    def fors(self) -> list[ast.For | ast.AsyncFor]:
        return [*self.all(ast.For), *self.all(ast.AsyncFor)]

    def loops(self) -> list[ast.For | ast.AsyncFor | ast.While]:
        return [*self.fors(), *self.all(ast.While)]

    def comprehensions(self) -> list[ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp]:
        return [
            *self.all(ast.ListComp), *self.all(ast.SetComp), *self.all(ast.GeneratorExp), *self.all(ast.DictComp),
        ]  # fmt: skip

    def assignments(self) -> list[tuple[ast.stmt, list[ast.expr]]]:
        """The statements that assign to something, or delete it, each with its targets."""
        found: list[tuple[ast.stmt, list[ast.expr]]] = []
        found += [(node, node.targets) for node in self.all(ast.Assign)]
        found += [(node, [node.target]) for node in self.all(ast.AugAssign)]
        found += [(node, [node.target]) for node in self.all(ast.AnnAssign)]
        found += [(node, node.targets) for node in self.all(ast.Delete)]
        return found

    def binds(self, name: str) -> bool:
        return name not in self.outside and (
            name in self.assigned or name in self.params or name in self.imports or name in self.inner
        )


def position(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


class Module:
    """A file, read."""

    def __init__(self, path: str, text: str, *, settings: Settings | None = None) -> None:
        self.path = path
        self.text = text
        self.tree = ast.parse(text, path)
        self.settings = settings or Settings()
        self.body = Function("", self.tree)
        self.functions: list[Function] = []
        self.classes: dict[str, Class] = {}
        self.named: dict[str, Function] = {}
        self.parents: dict[ast.AST, ast.AST] = {}
        self.owners: dict[ast.AST, Function] = {}
        self.packages: set[str] = set()
        """The first part of every import."""
        _Walk(self).run()

    @cached_property
    def lines(self) -> list[str]:
        return self.text.split("\n")  # as Python counts: a form feed ends no line

    @cached_property
    def everything(self) -> list[Function]:
        """The functions, and the module itself first."""
        return [self.body, *self.functions]

    def up(self, node: ast.AST) -> Iterator[ast.AST]:
        """What is around a node, from inside to outside, up to the function it belongs to."""
        while (parent := self.parents.get(node)) is not None:
            yield parent
            if isinstance(parent, FunctionNode):
                return
            node = parent

    def statement(self, node: ast.AST) -> ast.stmt:
        """The statement a node is part of."""
        while not isinstance(node, ast.stmt) and node in self.parents:
            node = self.parents[node]
        return cast("ast.stmt", node)

    def within(self, node: ast.AST, around: ast.AST) -> bool:
        """Whether one node is inside of the other (or is it)."""
        return node is around or any(parent is around for parent in self.up(node))

    def inside(self, around: ast.AST, function: Function, kind: type[N]) -> list[N]:
        """The nodes of a kind within another node, of the same function, in order."""
        begin, end = position(around), (getattr(around, "end_lineno", 0), getattr(around, "end_col_offset", 0))
        return [node for node in function.all(kind) if begin <= position(node) < end]


@dataclass(frozen=True, slots=True)
class Settings:
    """What the configuration says about names: `*` stands for anything."""

    effects: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    harmless: tuple[str, ...] = ()
    demo: bool = False
    """Whether the file is a demonstration: rules that are matters of taste there are quiet."""


class _Walk:
    def __init__(self, module: Module) -> None:
        self._module = module
        self._stack: list[tuple[ast.AST, Function, Class | None]] = []

    def run(self) -> None:
        module, stack, parents = self._module, self._stack, self._module.parents
        self._push_all(module.tree, module.tree.body, module.body, None)
        while stack:
            node, function, owner = stack.pop()
            kind = type(node)
            function.nodes[kind].append(node)
            special = _SPECIAL.get(kind)
            if special is not None and special(self, node, function, owner):
                continue
            for name in CHILDREN[kind]:
                value = getattr(node, name)
                if value.__class__ is list:
                    for child in value:
                        if child is not None:
                            parents[child] = node
                            stack.append((child, function, owner))
                elif value is not None:
                    parents[value] = node
                    stack.append((value, function, owner))

    def _push(self, parent: ast.AST, child: ast.AST | None, function: Function, owner: Class | None) -> None:
        if child is not None:
            self._module.parents[child] = parent
            self._stack.append((child, function, owner))

    def _push_all(self, parent: ast.AST, nodes: list[N], function: Function, owner: Class | None) -> None:
        # In reverse, so that they are taken in the order of the text: imports before what uses them.
        for child in reversed(nodes):
            self._push(parent, child, function, owner)

    def _function(self, node: Any, function: Function, owner: Class | None) -> bool:
        prefix = owner.name if owner else function.name
        made = Function(f"{prefix}.{node.name}" if prefix else node.name, node, owner, function)
        arguments = node.args
        for arg in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            made.params[arg.arg] = arg.annotation
        for star in (arguments.vararg, arguments.kwarg):
            if star is not None:
                made.params[star.arg] = None
        self._module.functions.append(made)
        self._module.owners[node] = made
        self._module.named[made.name] = made
        (owner.methods if owner else function.inner)[node.name] = made
        self._push_all(node, node.body, made, None)
        self._push(node, arguments, function, owner)
        self._push_all(node, node.decorator_list, function, owner)
        return True

    def _class(self, node: Any, function: Function, owner: Class | None) -> bool:
        prefix = owner.name if owner else function.name
        made = Class(f"{prefix}.{node.name}" if prefix else node.name, node, function)
        self._module.classes[made.name] = made
        if owner is None:
            function.classes[node.name] = made
        self._push_all(node, node.body, function, made)
        self._push_all(node, [*node.bases, *node.decorator_list], function, owner)
        return True

    def _import(self, node: Any, function: Function, owner: Class | None) -> bool:
        for alias in node.names:
            root = alias.name.partition(".")[0]
            self._module.packages.add(root)
            function.imports[alias.asname or root] = alias.name if alias.asname else root
        return True

    def _import_from(self, node: Any, function: Function, owner: Class | None) -> bool:
        home = "." * node.level + (node.module or "")
        self._module.packages.add((node.module or "").partition(".")[0])
        for alias in node.names:
            separator = "" if home.endswith(".") else "."
            function.imports[alias.asname or alias.name] = f"{home}{separator}{alias.name}"
        return True

    def _assign(self, node: Any, function: Function, owner: Class | None) -> bool:
        for target in node.targets:
            self._bind(node, target, node.value, function, owner)
        self._push(node, node.value, function, owner)
        return True

    def _ann_assign(self, node: Any, function: Function, owner: Class | None) -> bool:
        if node.value is not None:
            self._bind(node, node.target, node.value, function, owner)
            self._push(node, node.value, function, owner)
        return True

    def _named(self, node: Any, function: Function, owner: Class | None) -> bool:
        self._bind(node, node.target, node.value, function, owner)
        self._push(node, node.value, function, owner)
        return True

    def _with_item(self, node: Any, function: Function, owner: Class | None) -> bool:
        if node.optional_vars is not None:
            self._bind(node, node.optional_vars, node.context_expr, function, owner)
        self._push(node, node.context_expr, function, owner)
        return True

    def _bind(
        self, parent: ast.AST, target: ast.expr, value: ast.expr, function: Function, owner: Class | None
    ) -> None:
        if isinstance(target, ast.Name):
            self._module.parents[target] = parent
            if owner is not None:
                owner.attributes.setdefault(target.id, []).append((value, function))
            else:
                function.assigned[target.id].append(value)
            return
        if (
            isinstance(target, ast.Tuple)
            and isinstance(value, ast.Tuple)
            and len(target.elts) == len(value.elts)
            and not any(isinstance(one, ast.Starred) for one in (*target.elts, *value.elts))
        ):
            self._module.parents[target] = parent
            for one, its in zip(target.elts, value.elts, strict=True):
                self._bind(target, one, its, function, owner)
            return
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and function.owner is not None:
            first = next(iter(function.params), "")
            if target.value.id == first:
                function.owner.attributes.setdefault(target.attr, []).append((value, function))
        self._push(parent, target, function, owner)

    def _name(self, node: Any, function: Function, owner: Class | None) -> bool:
        if not isinstance(node.ctx, ast.Load):
            function.assigned[node.id].append(None)
        return True

    def _global(self, node: Any, function: Function, owner: Class | None) -> bool:
        function.outside.update(node.names)
        return True

    def _captures(self, node: Any, function: Function, owner: Class | None) -> bool:
        name = getattr(node, "name", None) or getattr(node, "rest", None)
        if isinstance(name, str):
            function.assigned[name].append(None)
        return False


_SPECIAL = {
    ast.FunctionDef: _Walk._function,
    ast.AsyncFunctionDef: _Walk._function,
    ast.ClassDef: _Walk._class,
    ast.Import: _Walk._import,
    ast.ImportFrom: _Walk._import_from,
    ast.Assign: _Walk._assign,
    ast.AnnAssign: _Walk._ann_assign,
    ast.NamedExpr: _Walk._named,
    ast.withitem: _Walk._with_item,
    ast.Name: _Walk._name,
    ast.Global: _Walk._global,
    ast.ExceptHandler: _Walk._captures,
    ast.MatchAs: _Walk._captures,
    ast.MatchStar: _Walk._captures,
    ast.MatchMapping: _Walk._captures,
}
