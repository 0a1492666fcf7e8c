"""What each function is declared as, and what a workflow or step reaches in its own module.

A function that is declared as something of its own (a step, an effect, an activity, a task) ends the way: what is in
it runs by its own rules. Everything else that is called, three calls deep, belongs to the caller.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from surefoot.lint.module import Class, Function, Module
from surefoot.lint.names import Names, last, words

DEPTH = 3


class Role(Enum):
    WORKFLOW = "workflow"
    STEP = "step"
    EFFECT = "effect"
    CHECK = "check"
    UNDO = "undo"
    TEMPORAL_WORKFLOW = "workflow of Temporal"
    TEMPORAL_ASIDE = "query or validator of Temporal"
    ACTIVITY = "activity of Temporal"
    DBOS_WORKFLOW = "workflow of DBOS"
    DBOS_STEP = "step of DBOS"
    OTHER = "declared elsewhere"


SUREFOOT = frozenset((Role.STEP, Role.EFFECT))
_DECLARED = {"workflow": Role.WORKFLOW, "step": Role.STEP, "effect": Role.EFFECT, "transaction": Role.EFFECT}
_DBOS = {
    "workflow": Role.DBOS_WORKFLOW,
    "scheduled": Role.DBOS_WORKFLOW,
    "step": Role.DBOS_STEP,
    "transaction": Role.DBOS_STEP,
    "communicator": Role.DBOS_STEP,
}
_OWN_WORDS = frozenset(("step", "task", "activity", "transaction", "flow", "workflow", "op", "asset"))


@dataclass(frozen=True, slots=True)
class Reached:
    """A function that runs as part of another, and the way there."""

    function: Function
    via: tuple[str, ...]


class Roles:
    """The declarations of one module."""

    def __init__(self, module: Module, names: Names) -> None:
        self._module, self._names = module, names
        self.of: dict[Function, Role] = {}
        self.options: dict[Function, ast.Call] = {}
        self.undone: set[Function] = set()
        self.checked: set[Function] = set()
        self._wrapped()
        for function in module.functions:
            self._decorated(function)
        for owner in module.classes.values():
            self._temporal(owner)
        self._reached: dict[Function, list[Reached]] = {}

    def having(self, *roles: Role) -> list[Function]:
        return [function for function in self._module.functions if self.of.get(function) in roles]

    def option(self, function: Function, name: str) -> ast.expr | None:
        call = self.options.get(function)
        return None if call is None else next((one.value for one in call.keywords if one.arg == name), None)

    # --- declarations ------------------------------------------------------------------------------

    def _decorated(self, function: Function) -> None:
        outside = function.outer or self._module.body
        for decorator in function.decorators:
            call = decorator if isinstance(decorator, ast.Call) else None
            target = decorator.func if isinstance(decorator, ast.Call) else decorator
            meaning = self._names.of(target, outside)
            role = self._role(meaning, target, outside)
            if role is not None:
                self.of[function] = role
                if call is not None:
                    self.options[function] = call

    def _role(self, meaning: str, target: ast.expr, outside: Function) -> Role | None:
        if meaning.startswith("functools.") or "lru_cache" in meaning:
            return None
        name = last(meaning)
        if meaning.startswith("surefoot."):
            return _DECLARED.get(name)
        if meaning.startswith("temporalio.activity."):
            return Role.ACTIVITY
        if meaning.startswith(("temporalio.workflow.query", "temporalio.workflow.update.")):
            return Role.TEMPORAL_ASIDE
        if meaning.startswith("temporalio."):
            return None
        if meaning.startswith("dbos.") or self._is_dbos(meaning):
            return _DBOS.get(name)
        if isinstance(target, ast.Attribute) and name in ("check", "undo", "validator"):
            return self._about(target, name, outside)
        if meaning.startswith("langgraph.func."):
            return Role.OTHER if name == "task" else None
        if words(name) and words(name)[-1] in _OWN_WORDS:
            return Role.OTHER
        return None

    def _is_dbos(self, meaning: str) -> bool:
        return "dbos" in self._module.packages and meaning.lower().startswith(("?dbos.", "dbos()."))

    def _about(self, target: ast.Attribute, name: str, outside: Function) -> Role | None:
        """`@write.check`, `@write.undo`, `@write.undo.check`."""
        if name == "validator":
            return Role.TEMPORAL_ASIDE if "temporalio" in self._module.packages else None
        base = target.value
        if isinstance(base, ast.Attribute) and base.attr == "undo":
            return Role.CHECK
        about = self._names.local(self._names.of(base, outside))
        if about is not None and self.of.get(about) is Role.EFFECT:
            (self.checked if name == "check" else self.undone).add(about)
        elif "surefoot" not in self._module.packages or self._names.of(base, outside).startswith("?"):
            return None
        return Role.CHECK if name == "check" else Role.UNDO

    def _wrapped(self) -> None:
        """`write = sf.effect(_write)`, and with options."""
        for function in self._module.everything:
            for call in function.all(ast.Call):
                inner = call.func if isinstance(call.func, ast.Call) else call
                meaning = self._names.of(inner.func, function)
                if not meaning.startswith("surefoot.") or not call.args:
                    continue
                role = _DECLARED.get(last(meaning))
                about = self._names.local(self._names.of(call.args[0], function))
                if role is not None and about is not None:
                    self.of[about] = role
                    self.options[about] = inner

    def _temporal(self, owner: Class) -> None:
        if not any(
            self._names.of(one.func if isinstance(one, ast.Call) else one, owner.outer) == "temporalio.workflow.defn"
            for one in owner.node.decorator_list
        ):
            return
        for method in (one for kin in self._names.line(owner) for one in kin.methods.values()):
            kinds = {
                self._names.of(one.func if isinstance(one, ast.Call) else one, owner.outer) for one in method.decorators
            }
            if kinds & {f"temporalio.workflow.{name}" for name in ("run", "signal", "update", "init")}:
                self.of[method] = Role.TEMPORAL_WORKFLOW

    # --- what is reached ---------------------------------------------------------------------------

    def reach(self, function: Function) -> list[Reached]:
        """The function itself and its helpers, without those that are declared as something."""
        known = self._reached.get(function)
        if known is None:
            known = self._reached[function] = list(self._walk(function))
        return known

    def _walk(self, start: Function) -> Iterator[Reached]:
        seen, ring = {start}, [Reached(start, ())]
        for depth in range(DEPTH + 1):
            following: list[Reached] = []
            for one in ring:
                yield one
                if depth == DEPTH:
                    continue
                way = one.via or (start.short_name,)
                for helper in self.helpers(one.function):
                    if helper not in seen and helper not in self.of:
                        seen.add(helper)
                        following.append(Reached(helper, (*way, helper.short_name)))
            ring = following

    def helpers(self, function: Function) -> Iterator[Function]:
        """The functions of this module that it calls, or hands to something that calls them at once."""
        for call in function.all(ast.Call):
            if self.is_outside(call, function):
                continue
            helper = self._names.called(call, function)
            if helper is not None:
                yield helper
            if self._hands_on(self._names.of(call.func, function)):
                for value in (*call.args, *(one.value for one in call.keywords)):
                    yield from self._handed(value, function)

    def _handed(self, value: ast.expr, function: Function) -> Iterator[Function]:
        if isinstance(value, ast.Name | ast.Attribute):
            helper = self._names.local(self._names.of(value, function))
            if helper is not None:
                yield helper

    @staticmethod
    def _hands_on(called: str) -> bool:
        """Whether a function that is given as an argument runs here, and not in a thread or later."""
        return called in _APPLY or called in ("surefoot.gather", "surefoot.map", "surefoot.aio.map")

    def is_outside(self, node: ast.AST, function: Function) -> bool:
        """In a block that says the rules of the engine do not hold there."""
        for parent in self._module.up(node):
            if isinstance(parent, ast.With | ast.AsyncWith):
                if any(
                    self._names.of(item.context_expr, function).endswith(
                        ("unsafe.sandbox_unrestricted()", "unsafe.imports_passed_through()", "surefoot.outside()")
                    )
                    for item in parent.items
                ):
                    return True
            elif isinstance(parent, ast.If) and _asks_if_replaying(parent.test) and not _within(node, parent.orelse):
                return True
        return False


_APPLY = frozenset(
    ("map", "filter", "sorted", "min", "max", "functools.partial", "functools.reduce", "itertools.starmap", "any", "all",
     "list.sort"),
)  # fmt: skip


def _within(node: ast.AST, block: list[ast.stmt]) -> bool:
    line = getattr(node, "lineno", 0)
    return any(one.lineno <= line <= (one.end_lineno or one.lineno) for one in block)


def _asks_if_replaying(test: ast.expr) -> bool:
    return isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) and "is_replaying" in ast.dump(test.operand)
