"""SF3: what a function is declared as, and what it does. A step may be repeated, an effect may not, a check only looks."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from surefoot.lint.flow import Look
from surefoot.lint.module import Function, position
from surefoot.lint.names import last, listed, words
from surefoot.lint.roles import Reached, Role
from surefoot.lint.rule import Hit, Rule
from surefoot.lint.rules.replay import WAITS
from surefoot.lint.rules.texts import rule
from surefoot.lint.vocabulary import Act, source_name

_CHANGING = listed(
    "append extend insert add update setdefault pop popitem clear remove discard sort reverse appendleft "
    "extendleft popleft difference_update intersection_update symmetric_difference_update"
)
_AMBIGUOUS = listed("add update insert remove pop clear append extend")
_SERVICES = listed(
    "client db session conn connection cursor cache store queue api service writer log logger repo "
    "repository dao bar collection index redis driver sheet worksheet table api tracker counter metrics "
    "registry manager bus broker ctx context pipeline console crm mailer"
)
_GIVEN_FIRST = listed(
    "random.shuffle heapq.heappush heapq.heappop heapq.heapify bisect.insort bisect.insort_left "
    "bisect.insort_right setattr heapq.heapreplace numpy.random.shuffle operator.setitem delattr"
)
_CONTAINER_KINDS = listed(
    "list dict set bytearray deque defaultdict Counter OrderedDict List Dict Set MutableMapping "
    "MutableSequence MutableSet Any object MutableList Deque DefaultDict"
)


def within(look: Look, *roles: Role) -> Iterator[tuple[Function, Reached]]:
    """What runs inside of functions of these roles, each with the function that is declared."""
    for declared in look.roles.having(*roles):
        for one in look.roles.reach(declared):
            yield declared, one


def deeds(look: Look, at: Reached, *, certain: bool = True) -> Iterator[tuple[ast.Call, Act]]:
    """The changes of the world in a function, without temporary files of its own."""
    for call, act in look.acts(at.function, certain=certain):
        if (
            act.kind == "change"
            and not look.own_temporary(call, at.function)
            and not look.roles.is_outside(call, at.function)
        ):
            yield call, act


def effects_as_steps(look: Look) -> Iterator[Hit]:
    seen: set[ast.AST] = set()
    for _, at in within(look, Role.STEP):
        for call, act in deeds(look, at, certain=False):
            if act.tolerant or call in seen or (not act.certain and not _leaves_the_house(look, call, at.function)):
                continue
            seen.add(call)
            yield Hit(call, f"{source_name(call.func)}()", at.via)


def _leaves_the_house(look: Look, call: ast.Call, function: Function) -> bool:
    """A guess from a name counts where the call is of something of the user's own that this module does not define."""
    meaning = look.meaning(call.func, function)
    return (
        look.names.local(meaning) is None
        and not look.is_log(call, function)
        and not look.vocabulary.asks_a_model(call, function)
    )


def waits_in_steps(look: Look) -> Iterator[Hit]:
    seen: set[ast.AST] = set()
    for _, at in within(look, Role.STEP):
        for call in at.function.all(ast.Call):
            if call in seen or look.roles.is_outside(call, at.function):
                continue
            about = _of_run(look, call, at.function)
            if about:
                seen.add(call)
                yield Hit(call, about, at.via)


def _of_run(look: Look, call: ast.Call, function: Function) -> str:
    meaning = look.meaning(call.func, function)
    shown = f"{source_name(call.func)}()"
    if meaning.startswith("surefoot.effects."):
        return shown
    if meaning.startswith("surefoot.") and last(meaning) in WAITS - listed("verify watch undo gather map send_event"):
        return shown
    if meaning.startswith("surefoot.") and last(meaning) in ("map", "gather", "send_event"):
        return (
            shown
            if last(meaning) == "send_event" or any(_is_effect(look, one, function) for one in ast.walk(call))
            else ""
        )
    called = look.names.local(meaning)
    return shown if called is not None and look.roles.of.get(called) is Role.EFFECT else ""


def _is_effect(look: Look, node: ast.AST, function: Function) -> bool:
    if not isinstance(node, ast.Name | ast.Attribute):
        return False
    called = look.names.local(look.meaning(node, function))
    return called is not None and look.roles.of.get(called) is Role.EFFECT


def retried_without_key(look: Look) -> Iterator[Hit]:
    for effect in look.roles.having(Role.EFFECT):
        crash = look.roles.option(effect, "on_crash")
        if not (isinstance(crash, ast.Constant) and crash.value == "retry"):
            continue
        reach = look.roles.reach(effect)
        if any(_uses_key(look, one.function) for one in reach):
            continue
        for one in reach:
            for call, act in deeds(look, one, certain=False):
                if act.sends and not _is_idempotent_by_name(act, call):
                    yield Hit(call, f"{source_name(call.func)}()", one.via)


def _is_idempotent_by_name(act: Act, call: ast.Call) -> bool:
    said = words(last(source_name(call.func)))
    return (
        not act.certain
        and bool(said)
        and said[0]
        in ("write", "delete", "cancel", "upload", "save", "drop", "remove", "deploy", "update", "revoke", "grant")
    )


def _uses_key(look: Look, function: Function) -> bool:
    if any(
        look.meaning(call.func, function) in ("surefoot.key", "surefoot.aio.key") for call in function.all(ast.Call)
    ):
        return True
    return look.speaks_of_keys(function)


def checks_that_change(look: Look) -> Iterator[Hit]:
    for _, at in within(look, Role.CHECK):
        for call, _act in deeds(look, at, certain=False):
            if _act.certain or _leaves_the_house(look, call, at.function):
                yield Hit(call, f"{source_name(call.func)}()", at.via)
        for call in at.function.all(ast.Call):
            about = _of_run(look, call, at.function)
            called = look.names.called(call, at.function)
            if about and (called is not None or ".effects." in look.meaning(call.func, at.function)):
                yield Hit(call, about, at.via)


# --- arguments -------------------------------------------------------------------------------------


def changed_arguments(look: Look) -> Iterator[Hit]:
    for step in look.roles.having(Role.STEP):
        ignored = _ignored(look, step)
        for name in step.params:
            if (
                name in ignored
                or (step.owner is not None and name == next(iter(step.params)))
                or _is_returned(step, name)
            ):
                continue
            yield from changes_of(look, step, name)


def changes_of(look: Look, function: Function, name: str, depth: int = 0) -> Iterator[Hit]:
    """Where a function changes what it was given under a name."""
    rebound = min(
        (
            position(node)
            for node in function.all(ast.Assign)
            if any(isinstance(t, ast.Name) and t.id == name for t in node.targets)
        ),
        default=None,
    )
    aliases = {name, *_aliases(function, name)}
    for node, about in _mutations(look, function, aliases, name):
        if rebound is None or position(node) < rebound:
            yield Hit(node, about)
    if depth < 2:
        for call in function.all(ast.Call):
            helper = look.names.called(call, function)
            if helper is None or helper in look.roles.of:
                continue
            names = [
                one for one in helper.params if not (helper.owner is not None and one == next(iter(helper.params)))
            ]
            for given, param in zip(call.args, names, strict=False):
                if (
                    isinstance(given, ast.Name)
                    and given.id in aliases
                    and (rebound is None or position(call) < rebound)
                ) and any(True for _ in changes_of(look, helper, param, depth + 1)):
                    yield Hit(call, name, (function.short_name, helper.short_name))


def _ignored(look: Look, step: Function) -> set[str]:
    option = look.roles.option(step, "ignore")
    if option is None:
        return set()
    return {str(node.value) for node in ast.walk(option) if isinstance(node, ast.Constant)}


def _is_returned(function: Function, name: str) -> bool:
    return any(
        isinstance(node, ast.Name) and node.id == name
        for one in function.all(ast.Return)
        if one.value is not None
        for node in _as_it_is(one.value)
    )


def _as_it_is(value: ast.expr) -> Iterator[ast.expr]:
    """The parts of a returned value that are given back as they are, not what is calculated from them."""
    stack = [value]
    while stack:
        node = stack.pop()
        yield node
        match node:
            case ast.Tuple(elts=elts) | ast.List(elts=elts):
                stack += elts
            case ast.Dict(values=values):
                stack += values
            case ast.IfExp(body=body, orelse=orelse):
                stack += [body, orelse]
            case ast.BoolOp(values=values):
                stack += values
            case ast.Call(func=ast.Name(id="list" | "dict" | "set" | "tuple" | "sorted"), args=args):
                stack += args
            case ast.Call(func=ast.Attribute(value=base, attr="copy" | "model_dump" | "to_dict")):
                stack.append(base)
            case ast.Subscript(value=inner, slice=ast.Constant(value=str())):
                stack.append(inner)
            case ast.Starred(value=inner) | ast.NamedExpr(value=inner):
                stack.append(inner)


def _aliases(function: Function, name: str) -> set[str]:
    """Other names for the argument or for what is in it: `for m in messages`, `h = state["history"]`."""
    found = {name}
    for _ in range(3):
        for assign in function.all(ast.Assign):
            if (
                len(assign.targets) == 1
                and isinstance(assign.targets[0], ast.Name)
                and len(function.assigned[assign.targets[0].id]) == 1
            ) and _path_of(assign.value) in found:
                found.add(assign.targets[0].id)
        loops: list[ast.For | ast.AsyncFor | ast.comprehension] = [*function.fors(), *function.all(ast.comprehension)]
        for loop in loops:
            if _iterated(loop.iter) in found:
                targets = loop.target.elts if isinstance(loop.target, ast.Tuple) else [loop.target]
                found |= {one.id for one in targets if isinstance(one, ast.Name)}
    return found - {name}


def _path_of(node: ast.expr) -> str:
    """The name at the root of `a`, `a["x"]`, `a.x`: the same object, or a part of it."""
    while isinstance(node, ast.Subscript | ast.Attribute):
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            return ""
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _iterated(node: ast.expr) -> str:
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("values", "items") and not node.args:
            return _path_of(node.func.value)
        if (
            isinstance(node.func, ast.Name)
            and node.func.id in ("enumerate", "reversed", "sorted", "list", "zip")
            and node.args
        ):
            return _iterated(node.args[0])
        return ""
    return _path_of(node)


def _mutations(look: Look, function: Function, names: set[str], name: str) -> Iterator[tuple[ast.AST, str]]:
    for call in function.all(ast.Call):
        if isinstance(call.func, ast.Attribute) and call.func.attr in _CHANGING and _path_of(call.func.value) in names:
            if call.func.attr not in _AMBIGUOUS or _is_container(
                look, function, _path_of(call.func.value), name, call.func.value
            ):
                yield call, name
        elif (
            (look.meaning(call.func, function) in _GIVEN_FIRST and call.args and _path_of(call.args[0]) in names)
            or (
                isinstance(call.func, ast.Attribute)
                and _path_of(call.func.value) in names
                and any(
                    one.arg == "inplace" and isinstance(one.value, ast.Constant) and one.value.value is True
                    for one in call.keywords
                )
            )
            or (
                look.meaning(call.func, function)
                in ("list.append", "list.sort", "dict.update", "dict.pop", "set.add", "list.extend")
                and call.args
                and _path_of(call.args[0]) in names
            )
        ):
            yield call, name
    for node, targets in function.assignments():
        for target in _flat(targets):
            if isinstance(target, ast.Subscript | ast.Attribute) and _path_of_target(target) in names:
                if isinstance(target, ast.Attribute) and _is_service(function, _path_of_target(target)):
                    continue
                yield node, name
            elif (
                isinstance(node, ast.AugAssign)
                and isinstance(target, ast.Name)
                and target.id == name
                and _adds_to_a_list(look, function, name, node)
            ):
                yield node, name


def _path_of_target(target: ast.Subscript | ast.Attribute) -> str:
    node: ast.expr = target
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _flat(targets: list[ast.expr]) -> Iterator[ast.expr]:
    for one in targets:
        if isinstance(one, ast.Tuple | ast.List):
            yield from _flat(one.elts)
        else:
            yield one


def _adds_to_a_list(look: Look, function: Function, name: str, node: ast.AugAssign) -> bool:
    kind = last(look.names.annotation(function.params.get(name), function))
    if kind in ("list", "List", "dict", "Dict", "set", "Set", "bytearray", "deque"):
        return True
    return isinstance(node.value, ast.List | ast.ListComp | ast.Set | ast.Dict) and not kind


def _is_service(function: Function, name: str) -> bool:
    return bool(set(words(name)) & _SERVICES)


def _is_container(look: Look, function: Function, root: str, name: str, base: ast.expr) -> bool:
    """Whether `x.update(...)` changes x, and is no call of a service that happens to be called so."""
    if _is_service(function, root) or _is_service(function, last(source_name(base))):
        return False
    if root != name or not isinstance(base, ast.Name):
        return True
    annotation = function.params.get(name)
    if annotation is None:
        return True
    kind = last(look.names.annotation(annotation, function)) or ast.unparse(annotation)
    return kind in _CONTAINER_KINDS or kind.startswith(("list", "dict", "set"))


# --- sagas -----------------------------------------------------------------------------------------


def sagas(look: Look) -> Iterator[Hit]:
    seen: set[tuple[int, str]] = set()
    for function in look.module.everything:
        for block in function.withs():
            if not any(
                look.meaning(item.context_expr, function) in ("surefoot.saga()", "surefoot.aio.saga()")
                for item in block.items
            ):
                continue
            for node, effect, via in _called_in(look, block, function):
                if effect not in look.roles.undone and (id(node), effect.name) not in seen:
                    seen.add((id(node), effect.name))
                    yield Hit(node, f"{effect.short_name}()", via)


def _called_in(
    look: Look, block: ast.With | ast.AsyncWith, function: Function
) -> Iterator[tuple[ast.AST, Function, tuple[str, ...]]]:
    for kind in (ast.Name, ast.Attribute):
        for node in look.module.inside(block, function, kind):
            if node.lineno == block.lineno and node.col_offset <= block.items[-1].context_expr.col_offset:
                continue
            called = look.names.local(look.meaning(node, function))
            if called is None or not isinstance(getattr(node, "ctx", None), ast.Load):
                continue
            if look.roles.of.get(called) is Role.EFFECT:
                yield node, called, ()
            elif called not in look.roles.of:
                for one in look.roles.reach(called):
                    for call in one.function.all(ast.Call):
                        inner = look.names.called(call, one.function)
                        if inner is not None and look.roles.of.get(inner) is Role.EFFECT:
                            yield call, inner, (function.short_name, *(one.via or (called.short_name,)))


RULES: tuple[Rule, ...] = (
    rule("SF301", effects_as_steps),
    rule("SF302", waits_in_steps),
    rule("SF303", retried_without_key),
    rule("SF304", checks_that_change),
    rule("SF305", changed_arguments),
    rule("SF306", sagas),
)
