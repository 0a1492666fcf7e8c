"""What a name means: followed through imports, aliases, instances and `self`; `?` for what cannot be known.

A meaning is a dotted path. `requests.Session().post` is a method of an instance, `:load` a function of this module,
`:Store().save` a method of a class of this module, `?client.post` a method of something unknown called `client`.
A local that happens to be called `time` is `?time`: nothing follows from its name.
"""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from surefoot.lint.module import Class, Function, Module

DEEP = 24
_PATHS = re.compile(
    r"^(pathlib\.(?:Pure)?(?:Posix|Windows)?Path(?:\(\)|\.(?:cwd|home)\(\))|anyio\.Path\(\))"
    r"(?:\.(?:parent|with_suffix\(\)|with_name\(\)|with_stem\(\)|joinpath\(\)|resolve\(\)|absolute\(\)|expanduser\(\)))?$"
)
_SAME = {
    "requests.session()": "requests.Session()",
    "io.open": "open",
    "builtins.open": "open",
    "codecs.open": "open",
    "aiofiles.open": "open",
    "gzip.open": "open",
    "bz2.open": "open",
    "lzma.open": "open",
    "dbos._dbos.DBOS": "dbos.DBOS",
    "dbos.DBOS()": "dbos.DBOS",
    "random.Random": "random.Random",
}


@lru_cache(maxsize=20_000)
def words(name: str) -> tuple[str, ...]:
    """`saveProgress_2` is save, progress, 2."""
    return tuple(word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name))


@lru_cache(maxsize=2_000)
def listed(text: str) -> frozenset[str]:
    """A set of words, written as a text."""
    return frozenset(text.split())


def last(meaning: str) -> str:
    return meaning.rpartition(".")[2]


class Names:
    """The meanings of one module's names."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._known: dict[tuple[ast.expr, int], str] = {}

    def of(self, node: ast.expr | None, function: Function, depth: int = 0) -> str:
        """What an expression means, as far as it can be said."""
        if node is None or depth > DEEP:
            return "?"
        key = (node, id(function))
        if (known := self._known.get(key)) is not None:
            return known
        self._known[key] = "?"  # A name that is defined by itself ends here.
        found = self._of(node, function, depth + 1)
        self._known[key] = found
        return found

    def _of(self, node: ast.expr, function: Function, depth: int) -> str:
        match node:
            case ast.Name(id=name):
                return self.name(name, function, depth)
            case ast.Attribute(value=value, attr=attr):
                return self._attribute(self.of(value, function, depth), attr, depth)
            case ast.Call():
                return self._call(node, function, depth)
            case ast.Await(value=value) | ast.NamedExpr(value=value) | ast.Starred(value=value):
                return self.of(value, function, depth)
            case ast.BinOp(op=ast.Div(), left=left, right=right):
                sides = {self.of(left, function, depth), self.of(right, function, depth)}
                return "pathlib.Path()" if "pathlib.Path()" in sides else "?"
            case ast.Subscript(value=value):
                return f"{self.of(value, function, depth)}[]"
            case ast.BoolOp(values=values):
                return self._common([self.of(value, function, depth) for value in values])
            case ast.IfExp(body=body, orelse=orelse):
                return self._common([self.of(body, function, depth), self.of(orelse, function, depth)])
            case ast.Constant(value=str()) | ast.JoinedStr():
                return "str()"
            case ast.Constant(value=None):
                return ""
            case ast.Set() | ast.SetComp():
                return "set()"
            case ast.Dict() | ast.DictComp():
                return "dict()"
            case ast.List() | ast.ListComp():
                return "list()"
            case _:
                return "?"

    def _call(self, node: ast.Call, function: Function, depth: int) -> str:
        called = self.of(node.func, function, depth)
        if (
            called in ("functools.partial", "surefoot.wrap", "copy.copy", "contextlib.closing", "asyncio.run")
            and node.args
        ):
            of = self.of(node.args[0], function, depth)
            return f"surefoot.wrap({of})" if called == "surefoot.wrap" else of
        if called in ("random.Random", "numpy.random.default_rng", "numpy.random.RandomState") and (
            node.args or node.keywords
        ):
            return "seeded()"
        if _declares(called) and node.args:
            return self.of(node.args[0], function, depth)
        if _declares(called.removesuffix("()")) and called.endswith("()") and node.args:
            return self.of(node.args[0], function, depth)
        if called == "__import__" and node.args and isinstance(node.args[0], ast.Constant):
            return str(node.args[0].value)
        if last(called) in ("__enter__", "__aenter__"):
            return called.rpartition(".")[0]
        made = f"{called}()"
        if _PATHS.match(made):
            return "pathlib.Path()"
        return _SAME.get(made, made)

    def _attribute(self, base: str, attr: str, depth: int) -> str:
        if base.startswith(":"):
            owner = self._module.classes.get(base[1:].removesuffix("()"))
            if owner is not None:
                return self._member(owner, base, attr, depth)
        found = f"{base}.{attr}"
        if attr == "parent" and base == "pathlib.Path()":
            return base
        return _SAME.get(found, found)

    def _member(self, owner: Class, base: str, attr: str, depth: int) -> str:
        if self.method(owner, attr) is not None:
            return f"{base}.{attr}"
        for one in self.line(owner):
            if attr in one.attributes:
                return self._common([self.of(value, where, depth) for value, where in one.attributes[attr]]) or "?"
        return f"{base}.{attr}"

    def name(self, name: str, function: Function | None, depth: int = 0) -> str:
        """A bare name, looked up from inside to outside."""
        here = function
        while here is not None:
            if name not in here.outside or here.outer is None:
                found = self._local(name, here, depth)
                if found is not None:
                    return found
            here = here.outer
        return name if name in _BUILTINS else f"?{name}"

    def _local(self, name: str, function: Function, depth: int) -> str | None:
        if name in function.imports and name not in function.params:
            path = function.imports[name]
            return _SAME.get(path, path)
        if name in function.params:
            return self._param(name, function, depth)
        if name in function.inner:
            return f":{function.inner[name].name}"
        if name in function.classes:
            return f":{function.classes[name].name}"
        if name in function.assigned:
            values = function.assigned[name]
            if None in values:
                return f"?{name}"
            found = self._common([self.of(value, function, depth) for value in values])
            return f"?{name}" if found.startswith("?") or not found else found
        return None

    def _param(self, name: str, function: Function, depth: int) -> str:
        if function.owner is not None and name == next(iter(function.params)):
            kinds = {ast.unparse(one) for one in function.decorators}
            if "staticmethod" not in kinds:
                is_class = "classmethod" in kinds
                return f":{function.owner.name}" if is_class else f":{function.owner.name}()"
        if name in function.assigned:
            return f"?{name}"
        annotation = function.params[name]
        kind = self.annotation(annotation, function, depth)
        return f"{kind}()" if kind and not kind.startswith("?") else f"?{name}"

    def annotation(self, node: ast.expr | None, function: Function, depth: int = 0) -> str:
        """The class an annotation names: of `X | None`, `Optional[X]` and `"X"` it is X."""
        match node:
            case ast.BinOp(op=ast.BitOr(), left=left, right=ast.Constant(value=None)):
                return self.annotation(left, function, depth)
            case ast.BinOp(op=ast.BitOr(), left=ast.Constant(value=None), right=right):
                return self.annotation(right, function, depth)
            case ast.Subscript(value=value, slice=inner):
                outer = self.of(value, function.outer or function, depth)
                if outer in ("typing.Optional", "typing.Annotated"):
                    of = inner.elts[0] if isinstance(inner, ast.Tuple) and inner.elts else inner
                    return self.annotation(of, function, depth)
                return outer
            case ast.Constant(value=str(text)):
                try:
                    return self.annotation(ast.parse(text, mode="eval").body, function, depth)
                except SyntaxError:
                    return ""
            case ast.Name() | ast.Attribute():
                return self.of(node, function.outer or function, depth)
            case _:
                return ""

    def _common(self, meanings: list[str]) -> str:
        """What several possible values have in common; `None` says nothing."""
        known = {one for one in meanings if one}
        if len(known) > 1:
            known = {one for one in known if not one.startswith("?")} or {"?"}
        return known.pop() if len(known) == 1 else ("?" if known else "")

    def line(self, owner: Class) -> list[Class]:
        """A class and those of its bases that are in this module."""
        found, todo = [], [owner]
        while todo:
            one = todo.pop(0)
            if one not in found:
                found.append(one)
                for base in one.node.bases:
                    meant = self.of(base, one.outer)
                    if meant[1:] in self._module.classes:
                        todo.append(self._module.classes[meant[1:]])
        return found

    def method(self, owner: Class, name: str) -> Function | None:
        return next((one.methods[name] for one in self.line(owner) if name in one.methods), None)

    def local(self, meaning: str) -> Function | None:
        """The function of this module that a meaning is."""
        if not meaning.startswith(":"):
            return None
        name = meaning[1:]
        if name in self._module.named and "()" not in name:
            return self._module.named[name]
        base, dot, attr = name.rpartition(".")
        owner = self._module.classes.get(base.removesuffix("()")) if dot else None
        if owner is not None:
            return self.method(owner, attr)
        made = self._module.classes.get(name)
        return None if made is None else self.method(made, "__init__") or self.method(made, "__post_init__")

    def called(self, call: ast.Call, function: Function) -> Function | None:
        return self.local(self.of(call.func, function))


_DECLARING = frozenset(("workflow", "step", "effect"))


def _declares(meaning: str) -> bool:
    """`write = sf.effect(_write)` and `sf.effect(on_crash="retry")(_write)` are the function itself."""
    return meaning.startswith("surefoot.") and last(meaning) in _DECLARING


_BUILTINS = frozenset(
    (
        "open", "print", "input", "hash", "id", "set", "frozenset", "list", "tuple", "dict", "sorted", "len", "str",
        "repr", "int", "float", "map", "filter", "enumerate", "reversed", "zip", "iter", "next", "sum", "min", "max",
        "any", "all", "range", "exit", "quit", "eval", "exec", "super", "isinstance", "Exception", "BaseException",
        "ValueError", "OSError", "IOError", "FileNotFoundError", "KeyError", "TypeError", "RuntimeError", "EOFError",
        "PermissionError", "GeneratorExit", "KeyboardInterrupt", "SystemExit", "ConnectionError", "TimeoutError",
        "UnicodeDecodeError", "UnicodeError", "EnvironmentError", "AttributeError", "LookupError", "IndexError",
        "ImportError", "ModuleNotFoundError", "StopIteration", "object", "bool", "bytes", "getattr", "setattr", "vars",
        "globals", "BaseExceptionGroup", "ExceptionGroup", "__import__", "format", "chr", "bytearray", "ArithmeticError",
        "ZeroDivisionError", "NotImplementedError", "IsADirectoryError", "BlockingIOError", "InterruptedError",
        "BrokenPipeError", "delattr", "type", "slice", "pow", "round", "abs", "divmod", "callable", "memoryview",
    )
)  # fmt: skip
