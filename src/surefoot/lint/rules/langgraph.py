"""SF4: LangGraph. A node starts again from its top when it is resumed, and `interrupt()` works by raising."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from surefoot.lint.flow import Look, blocks_of, contains, leaves, walk_block
from surefoot.lint.module import Function
from surefoot.lint.names import last, listed
from surefoot.lint.roles import Role
from surefoot.lint.rule import Hit, Rule
from surefoot.lint.rules.replay import leaving_finally, suppresses
from surefoot.lint.rules.texts import rule
from surefoot.lint.vocabulary import source_name

_MEMORY = frozenset(("MemorySaver", "InMemorySaver", "AsyncMemorySaver", "PersistentDict"))
_INTERRUPTS = frozenset(("langgraph.types.interrupt", "langgraph.types.types.interrupt", "langgraph.interrupt"))
_RAISED = frozenset(("GraphInterrupt", "GraphBubbleUp", "NodeInterrupt"))
_RUNS = listed("invoke ainvoke stream astream astream_events batch abatch stream_events compile with_config")


# --- savers ----------------------------------------------------------------------------------------


def memory_savers(look: Look) -> Iterator[Hit]:
    if look.module.settings.demo or "temporalio" in look.module.packages or _has_durable_saver(look):
        return
    for function in look.module.everything:
        for call in function.all(ast.Call):
            if _is_memory_saver(look, call, function) and not _is_default(look, call, function):
                yield Hit(call, f"{source_name(call.func)}()")
                return
            value = next((one.value for one in call.keywords if one.arg == "durability"), None)
            if isinstance(value, ast.Constant) and value.value == "exit" and last(source_name(call.func)) in _RUNS:
                yield Hit(call, 'durability="exit"')
                return


def _is_memory_saver(look: Look, call: ast.Call, function: Function) -> bool:
    meaning = look.meaning(call.func, function)
    if meaning.startswith("langgraph") and last(meaning) in _MEMORY:
        return True
    if "Saver" in meaning and "langgraph" in meaning:
        return any(_is_memory(look, one, function) for one in (*call.args, *(key.value for key in call.keywords)))
    return False


def _is_memory(look: Look, value: ast.expr, function: Function, depth: int = 0) -> bool:
    if isinstance(value, ast.Constant):
        return isinstance(value.value, str) and (value.value == ":memory:" or "mode=memory" in value.value)
    if isinstance(value, ast.Await):
        return _is_memory(look, value.value, function, depth)
    if isinstance(value, ast.Call):
        return (
            bool(value.args)
            and look.meaning(value.func, function).startswith(("sqlite3.", "aiosqlite."))
            and _is_memory(look, value.args[0], function, depth)
        )
    if isinstance(value, ast.Name) and depth < 4:
        for here in (function, look.module.body):
            values = here.assigned.get(value.id)
            if values:
                return all(one is not None and _is_memory(look, one, here, depth + 1) for one in values)
    return False


def _has_durable_saver(look: Look) -> bool:
    for function in look.module.everything:
        for path in function.imports.values():
            name = last(path)
            if path.startswith("surefoot.langgraph") or (
                path.startswith("langgraph")
                and name.endswith(("Saver", "Checkpointer"))
                and name not in _MEMORY
                and name != "BaseCheckpointSaver"
                and "Sqlite" not in name
            ):
                return True
        for call in function.all(ast.Call):
            meaning = look.meaning(call.func, function)
            if (
                "Saver" in meaning
                and "langgraph" in meaning
                and last(meaning) not in _MEMORY
                and meaning.split(".")[-1] not in _MEMORY
                and not meaning.endswith("()")
                and not any(part in _MEMORY for part in meaning.replace("()", "").split("."))
            ):
                if last(meaning) in ("setup", "put", "get", "list", "aput", "aget"):
                    continue
                if not _is_memory_saver(look, call, function):
                    return True
    return False


def _is_default(look: Look, call: ast.Call, function: Function) -> bool:
    """A parameter's default, and `saver or MemorySaver()`: whoever means it gives another."""
    child: ast.AST = call
    for parent in look.module.up(call):
        if isinstance(parent, ast.arguments):
            return True
        if isinstance(parent, ast.BoolOp) and isinstance(parent.op, ast.Or) and child is not parent.values[0]:
            return True
        if isinstance(parent, ast.IfExp) and not isinstance(parent.test, ast.Constant):
            return True
        if (
            isinstance(parent, ast.If)
            and isinstance(parent.test, ast.Compare)
            and any(isinstance(one, ast.Is) for one in parent.test.ops)
        ):
            return True
        if (
            isinstance(parent, ast.If)
            and isinstance(parent.test, ast.UnaryOp)
            and isinstance(parent.test.op, ast.Not)
            and isinstance(parent.test.operand, ast.Name)
            and parent.test.operand.id in function.params
        ):
            return True
        if isinstance(parent, ast.keyword) and parent.arg == "default":
            return True
        child = parent
    return False


# --- interrupts ------------------------------------------------------------------------------------


def interrupts(look: Look, function: Function, depth: int = 0) -> Iterator[ast.Call]:
    """The calls of a function that interrupt the graph, in it or in a helper of the module."""
    for call in function.all(ast.Call):
        meaning = look.meaning(call.func, function)
        if meaning in _INTERRUPTS or (meaning.startswith("langgraph.") and last(meaning) == "interrupt"):
            yield call
            continue
        helper = look.names.local(meaning)
        inside = depth < 3 and helper is not None and helper is not function and helper not in look.roles.of
        if inside and helper is not None and any(True for _ in interrupts(look, helper, depth + 1)):
            yield call


def effects_before(look: Look) -> Iterator[Hit]:
    seen: set[ast.AST] = set()
    for function in look.module.functions:
        if look.roles.of.get(function) is Role.OTHER:
            continue
        for call in interrupts(look, function):
            for block in look.module.up(call):
                if isinstance(block, ast.With | ast.AsyncWith):
                    for item in block.items:
                        for node in ast.walk(item.context_expr):
                            if isinstance(node, ast.Call) and node not in seen:
                                for hit in _effect(look, node, function):
                                    seen.add(node)
                                    yield hit
            for statement in look.before(call, function):
                for hit in _done_in(look, statement, function, call):
                    if hit.node not in seen:
                        seen.add(hit.node)
                        yield hit
            for loop in look.loops_around(call):
                for hit in _done_later_in_the_loop(look, loop, function, call):
                    if hit.node not in seen:
                        seen.add(hit.node)
                        yield hit


def _done_in(look: Look, statement: ast.stmt, function: Function, call: ast.Call) -> Iterator[Hit]:
    for node in _leading_on([statement]):
        if isinstance(node, ast.Call):
            yield from _effect(look, node, function)


def _leading_on(block: list[ast.stmt]) -> Iterator[ast.AST]:
    """The nodes of a block from which the code goes on after it. A branch that returns is another way."""
    for statement in block:
        inner = blocks_of(statement)
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if not inner and not isinstance(statement, ast.Try | ast.TryStar | ast.Match):
            yield from walk_block([statement])
            continue
        for name in ("test", "iter", "items", "subject"):
            part = getattr(statement, name, None)
            for one in part if isinstance(part, list) else [part]:
                if one is not None:
                    yield from ast.walk(one)
        inner = [
            *inner,
            *(handler.body for handler in getattr(statement, "handlers", ())),
            *(case.body for case in getattr(statement, "cases", ())),
        ]
        for one in inner:
            if one and not (leaves(one[-1]) and isinstance(statement, ast.If | ast.Match | ast.Try)):
                yield from _leading_on(one)


def _effect(look: Look, node: ast.Call, function: Function, depth: int = 0, via: tuple[str, ...] = ()) -> Iterator[Hit]:
    act = look.vocabulary.act(node, function)
    if (
        act is not None
        and act.kind == "change"
        and not act.tolerant
        and not look.is_log(node, function)
        and not look.own_temporary(node, function)
    ):
        yield Hit(node, f"{source_name(node.func)}()", via)
        return
    helper = look.names.called(node, function)
    if helper is not None and helper not in look.roles.of and depth < 3:
        way = (*(via or (function.short_name,)), helper.short_name)
        for call in helper.all(ast.Call):
            for hit in _effect(look, call, helper, depth + 1, way):
                yield Hit(hit.node, hit.about, hit.via)


def _done_later_in_the_loop(look: Look, loop: ast.AST, function: Function, call: ast.Call) -> Iterator[Hit]:
    """In a loop what follows an interrupt stands before the next one."""
    statement = look.module.statement(call)
    for node in look.after(statement, function):
        if not contains(loop, node):
            return
        for one in _leading_on([node]):
            if isinstance(one, ast.Call):
                rest = [after for after in look.after(look.module.statement(one), function) if contains(loop, after)]
                if any(isinstance(after, ast.Return | ast.Break | ast.Raise) for after in rest) or isinstance(
                    look.module.statement(one), ast.Return
                ):
                    continue
                yield from _effect(look, one, function)


def swallowed_interrupts(look: Look) -> Iterator[Hit]:
    for function in look.module.functions:
        calls = list(interrupts(look, function))
        if not calls:
            continue
        for tried in function.tries():
            if any(contains(part, call) for part in tried.body for call in calls):
                yield from _swallowing(look, tried, function)
        for block in function.withs():
            if not any(contains(part, call) for part in block.body for call in calls):
                continue
            for item in block.items:
                dropped = {last(one) for one in suppresses(look, item.context_expr, function)}
                if dropped & {"Exception", "BaseException", *_RAISED}:
                    yield Hit(item.context_expr, ast.unparse(item.context_expr))


def _swallowing(look: Look, tried: ast.Try | ast.TryStar, function: Function) -> Iterator[Hit]:
    for handler in tried.handlers:
        caught = {last(one) for one in look.caught(handler, function)}
        if caught & {"Exception", "BaseException", *_RAISED, "ExceptionGroup", "BaseExceptionGroup"}:
            if not look.raises_again(handler):
                yield Hit(handler, "except" if handler.type is None else f"except {ast.unparse(handler.type)}")
            return
    for leaving in leaving_finally(tried):
        yield Hit(leaving, f"`{type(leaving).__name__.lower()}` in `finally`")


RULES: tuple[Rule, ...] = (
    rule("SF401", memory_savers),
    rule("SF402", effects_before),
    rule("SF403", swallowed_interrupts),
)
