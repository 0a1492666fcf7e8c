"""SF2: what a surefoot workflow does between its calls. That code runs again at every resume.

Helpers of the module count, three calls deep; what is declared as a step or an effect does not.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from surefoot.lint.flow import LOOPS, Look, contains, walk_block
from surefoot.lint.module import Function
from surefoot.lint.names import last, listed
from surefoot.lint.roles import Reached, Role
from surefoot.lint.rule import Hit, Rule
from surefoot.lint.rules.texts import rule
from surefoot.lint.vocabulary import LOOPS as EVENT_LOOPS
from surefoot.lint.vocabulary import SLEEP, TASKS, THREADS, TIMEOUTS, is_chance, is_clock, source_name

WAITS = listed("sleep sleep_until approve ask wait_event watch verify gather map child send_event undo")
_HARMLESS_IN_A_LOG = listed(
    "os.getpid socket.gethostname os.uname platform.node os.cpu_count os.getcwd pathlib.Path.cwd "
    "os.getppid socket.getfqdn"
)
_MUTATORS = listed(
    "append extend insert add update setdefault pop popitem clear remove discard sort reverse appendleft "
    "extendleft popleft rotate subtract move_to_end difference_update intersection_update "
    "symmetric_difference_update put put_nowait push __setitem__"
)
_CONTAINERS = listed(
    "list() dict() set() collections.defaultdict() collections.deque() collections.Counter() "
    "collections.OrderedDict() queue.Queue() asyncio.Queue() bytearray() types.SimpleNamespace() "
    "queue.SimpleQueue() itertools.count() itertools.cycle() iter() collections.ChainMap() queue.deque() "
    "array.array()"
)
_SET_METHODS = frozenset(("union", "intersection", "difference", "symmetric_difference", "copy"))
_KEEPS_ORDER = listed(
    "list tuple iter enumerate reversed zip map filter itertools.chain list.copy tqdm.tqdm "
    "itertools.islice itertools.batched itertools.chain.from_iterable dict.fromkeys random.sample "
    "collections.deque itertools.product itertools.combinations itertools.permutations"
)
_SETTLES_ORDER = listed("sorted sum len min max any all set frozenset")


def workflows(look: Look) -> Iterator[Function]:
    yield from look.roles.having(Role.WORKFLOW)


def reached(look: Look) -> Iterator[Reached]:
    """Everything that runs between the calls of the workflows here, each function once."""
    seen: set[Function] = set()
    for workflow in workflows(look):
        for one in look.roles.reach(workflow):
            if one.function not in seen:
                seen.add(one.function)
                yield one


def calls(look: Look) -> Iterator[tuple[ast.Call, str, Reached]]:
    for one in reached(look):
        for call in one.function.all(ast.Call):
            if not look.roles.is_outside(call, one.function):
                yield call, look.meaning(call.func, one.function), one


def of_run(look: Look, around: ast.AST, function: Function, *, only: frozenset[Role] | None = None) -> bool:
    """Whether something in a node asks the run for something: a step, an effect, a wait; helpers included."""
    return any(isinstance(node, ast.Call) and _asks(look, node, function) for node in ast.walk(around))


def _asks(look: Look, call: ast.Call, function: Function) -> bool:
    meaning = look.meaning(call.func, function)
    if meaning.startswith("surefoot.") and (
        last(meaning) in WAITS | {"continue_as_new", "timeout"} or ".effects." in meaning
    ):
        return True
    handed = (
        value
        for value in (*call.args, *(one.value for one in call.keywords))
        if isinstance(value, ast.Name | ast.Attribute)
    )
    for target in (call.func, *handed):
        helper = look.names.local(look.meaning(target, function))
        if helper is None:
            continue
        if look.roles.of.get(helper) in (Role.STEP, Role.EFFECT, Role.WORKFLOW):
            return True
        if helper not in look.roles.of and any(
            _is_asked(look, inner, one.function)
            for one in look.roles.reach(helper)
            for inner in one.function.all(ast.Call)
        ):
            return True
    return False


def _is_asked(look: Look, call: ast.Call, function: Function) -> bool:
    meaning = look.meaning(call.func, function)
    if meaning.startswith("surefoot.") and last(meaning) in WAITS:
        return True
    helper = look.names.local(meaning)
    return helper is not None and look.roles.of.get(helper) in (Role.STEP, Role.EFFECT, Role.WORKFLOW)


def clocks(look: Look) -> Iterator[Hit]:
    for call, meaning, at in calls(look):
        if is_clock(call, meaning) and not look.only_told(call, at.function):
            yield Hit(call, f"{source_name(call.func)}()", at.via)
    yield from _handed(look, lambda meaning: is_clock(_BARE_CALL, meaning))


_BARE_CALL = ast.Call(func=ast.Name("x", ast.Load()), args=[], keywords=[])


def _handed(look: Look, wanted: Callable[[str], bool]) -> Iterator[Hit]:
    """`retry(clock=time.time)`: a function that is called where it is given to."""
    for call, meaning, at in calls(look):
        if meaning not in ("map", "filter", "sorted", "min", "max", "functools.partial"):
            continue
        for value in (*call.args, *(one.value for one in call.keywords)):
            if isinstance(value, ast.Name | ast.Attribute) and wanted(look.meaning(value, at.function)):
                yield Hit(value, source_name(value), at.via)


def chance(look: Look) -> Iterator[Hit]:
    for call, meaning, at in calls(look):
        if is_chance(call, meaning) and not look.only_told(call, at.function):
            yield Hit(call, f"{source_name(call.func)}()", at.via)
    yield from _handed(look, lambda meaning: meaning not in ("hash", "id") and is_chance(_BARE_CALL, meaning))


def reads(look: Look) -> Iterator[Hit]:
    for call, meaning, at in calls(look):
        act = look.vocabulary.certain(call, at.function)
        if (
            act is not None
            and act.kind == "read"
            and not (meaning in _HARMLESS_IN_A_LOG and look.only_told(call, at.function))
        ):
            yield Hit(call, f"{source_name(call.func)}()", at.via)
    for one in reached(look):
        yield from environment(look, one)


def environment(look: Look, at: Reached) -> Iterator[Hit]:
    """`os.environ["X"]`, `"X" in os.environ`, `sys.stdin` gone through."""
    function = at.function
    for index in function.all(ast.Subscript):
        if (
            isinstance(index.ctx, ast.Load)
            and look.meaning(index.value, function) in ("os.environ", "os.environb")
            and not look.roles.is_outside(index, function)
        ):
            yield Hit(index, "os.environ", at.via)
    for compare in function.all(ast.Compare):
        if any(
            look.meaning(one, function) == "os.environ" for one in compare.comparators
        ) and not look.roles.is_outside(compare, function):
            yield Hit(compare, "os.environ", at.via)
    for loop in function.all(ast.For):
        if look.meaning(loop.iter, function) == "sys.stdin":
            yield Hit(loop.iter, "sys.stdin", at.via)
    for call in function.all(ast.Call):
        if look.meaning(call.func, function) in ("dict", "list", "sorted") and any(
            look.meaning(one, function) == "os.environ" for one in call.args
        ):
            yield Hit(call, "os.environ", at.via)


def changes(look: Look) -> Iterator[Hit]:
    for call, _meaning, at in calls(look):
        act = look.vocabulary.certain(call, at.function)
        if act is not None and act.kind == "change":
            yield Hit(call, f"{source_name(call.func)}()", at.via)


def sleeps(look: Look) -> Iterator[Hit]:
    for call, meaning, at in calls(look):
        if meaning in SLEEP and not is_yield(call):
            yield Hit(call, f"{source_name(call.func)}()", at.via)


def is_yield(call: ast.Call) -> bool:
    """`asyncio.sleep(0)` only lets others go first."""
    return bool(call.args) and isinstance(call.args[0], ast.Constant) and call.args[0].value == 0


def concurrency(look: Look) -> Iterator[Hit]:
    for call, meaning, at in calls(look):
        if meaning in TASKS | THREADS or _on_loop(meaning, ("run_in_executor", "create_task")):
            yield Hit(call, f"{source_name(call.func)}()", at.via)


def _on_loop(meaning: str, names: tuple[str, ...]) -> bool:
    base, _, name = meaning.rpartition(".")
    return name in names and (
        base in EVENT_LOOPS or base in ("?loop", "?event_loop", "asyncio.AbstractEventLoop()", "?self.loop")
    )


def timeouts(look: Look) -> Iterator[Hit]:
    for call, meaning, at in calls(look):
        if meaning in TIMEOUTS:
            yield Hit(call, f"{source_name(call.func)}()", at.via)


# --- memory of the process -------------------------------------------------------------------------


def memory(look: Look) -> Iterator[Hit]:
    for one in reached(look):
        yield from _remembered(look, one)


def _remembered(look: Look, at: Reached) -> Iterator[Hit]:
    function = at.function
    for node, targets in function.assignments():
        for target in targets:
            yield from (Hit(node, name, at.via) for name in _outside_names(look, target, function))
    for call in function.all(ast.Call):
        meaning = look.meaning(call.func, function)
        if isinstance(call.func, ast.Attribute) and call.func.attr in _MUTATORS:
            root = _root(call.func.value)
            if root and _is_outside(look, root, function, containers=True) and not _is_read_result(call.func.value):
                yield Hit(call, root, at.via)
            elif (shared := _class_attribute(look, call.func.value, function)) is not None:
                yield Hit(call, shared, at.via)
        elif (
            meaning == "next"
            and call.args
            and isinstance(call.args[0], ast.Name)
            and _is_outside(look, call.args[0].id, function, containers=True)
        ) or (
            meaning in ("heapq.heappush", "heapq.heappop", "bisect.insort", "random.shuffle", "setattr")
            and call.args
            and isinstance(call.args[0], ast.Name)
            and _is_outside(look, call.args[0].id, function, containers=meaning != "setattr")
        ):
            yield Hit(call, call.args[0].id, at.via)
        elif (
            isinstance(call.func, ast.Attribute)
            and isinstance(call.func.value, ast.Call)
            and look.meaning(call.func.value.func, function) == "globals"
            and call.func.attr in _MUTATORS
        ):
            yield Hit(call, "globals()", at.via)


def _outside_names(look: Look, target: ast.expr, function: Function) -> Iterator[str]:
    if isinstance(target, ast.Tuple | ast.List):
        for one in target.elts:
            yield from _outside_names(look, one, function)
        return
    if isinstance(target, ast.Name):
        if target.id in function.outside:
            yield target.id
        return
    if isinstance(target, ast.Starred):
        yield from _outside_names(look, target.value, function)
        return
    if (
        isinstance(target, ast.Subscript)
        and isinstance(target.value, ast.Call)
        and look.meaning(target.value.func, function) == "globals"
    ):
        yield "globals()"
        return
    root = _root(target)
    if root and _is_outside(look, root, function, containers=isinstance(target, ast.Subscript)):
        yield root
    elif isinstance(target, ast.Attribute) and (shared := _class_attribute(look, target, function)) is not None:
        yield shared


def _class_attribute(look: Look, node: ast.expr, function: Function) -> str | None:
    """`Chat.history` or `cls.history`, kept by the class and not by the run."""
    while isinstance(node, ast.Subscript):
        node = node.value
    if not isinstance(node, ast.Attribute):
        return None
    owner = look.meaning(node.value, function)
    if owner.startswith(":") and owner[1:] in look.module.classes:
        return f"{source_name(node.value)}.{node.attr}"
    return None


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_read_result(node: ast.expr) -> bool:
    return isinstance(node, ast.Call)


def _is_outside(look: Look, name: str, function: Function, *, containers: bool) -> bool:
    """Whether a name is a variable of the module, and nothing else by that name is nearer."""
    here: Function | None = function
    while here is not None and here.outer is not None:
        if here.binds(name):
            return False
        here = here.outer
    module = look.module.body
    if name in module.inner:
        return not containers
    if name in module.classes:
        return False
    if name not in module.assigned or name in module.imports:
        return name in function.outside
    if not containers:
        return True
    meaning = look.names.name(name, module)
    if meaning.startswith(":") and meaning.endswith("()"):
        return True
    return meaning in _CONTAINERS or name in function.outside


# --- order -----------------------------------------------------------------------------------------


def unordered(look: Look) -> Iterator[Hit]:
    for one in reached(look):
        function = one.function
        for loop in function.fors():
            if is_unordered(look, loop.iter, function) and any(of_run(look, part, function) for part in loop.body):
                yield Hit(loop.iter, ast.unparse(loop.iter), one.via)
        for comp in function.comprehensions():
            if any(is_unordered(look, gen.iter, function) for gen in comp.generators) and _comp_asks(
                look, comp, function
            ):
                yield Hit(comp, ast.unparse(comp.generators[0].iter), one.via)
        yield from _given_unordered(look, function, one.via)


def _comp_asks(look: Look, comp: ast.expr, function: Function) -> bool:
    return of_run(look, comp, function)


def _given_unordered(look: Look, function: Function, via: tuple[str, ...]) -> Iterator[Hit]:
    for call in function.all(ast.Call):
        meaning = look.meaning(call.func, function)
        if meaning.startswith("surefoot.") and last(meaning) == "map":
            if (
                len(call.args) > 1
                and is_unordered(look, call.args[1], function)
                and not any(key.arg == "key" for key in call.keywords)
            ):
                yield Hit(call, ast.unparse(call.args[1]), via)
        elif meaning == "map" and len(call.args) > 1 and is_unordered(look, call.args[1], function):
            helper = look.names.local(look.meaning(call.args[0], function))
            if (helper is not None and look.roles.of.get(helper) in (Role.STEP, Role.EFFECT)) or of_run(
                look, call.args[0], function
            ):
                yield Hit(call, ast.unparse(call.args[1]), via)
        elif (
            isinstance(call.func, ast.Attribute)
            and call.func.attr == "pop"
            and not call.args
            and is_unordered(look, call.func.value, function)
        ):
            around = look.loops_around(call)
            if any(of_run(look, part, function) for loop in around for part in loop.body) or (
                not around and isinstance(function.node, ast.FunctionDef | ast.AsyncFunctionDef)
            ):
                yield Hit(call, ast.unparse(call), via)
        elif meaning == "next" and call.args and is_unordered(look, call.args[0], function):
            yield Hit(call, ast.unparse(call), via)
        elif (helper := look.names.local(meaning)) is not None and look.roles.of.get(helper) in (
            Role.STEP,
            Role.EFFECT,
        ):
            for value in call.args:
                if _lists_a_set(look, value, function):
                    yield Hit(value, ast.unparse(value), via)


def _lists_a_set(look: Look, value: ast.expr, function: Function) -> bool:
    """`list(a_set)` or `", ".join(a_set)`, given to a call: other arguments each time."""
    if not isinstance(value, ast.Call) or not value.args:
        return False
    meaning = look.meaning(value.func, function)
    return (meaning in ("list", "tuple") or last(meaning) == "join") and is_unordered(look, value.args[0], function)


def is_unordered(look: Look, node: ast.expr, function: Function, depth: int = 0) -> bool:
    """Whether an expression gives its items in the order of a set."""
    if depth > 8:
        return False
    match node:
        case ast.Set() | ast.SetComp():
            return not (isinstance(node, ast.Set) and len(node.elts) < 2)
        case (
            ast.ListComp(generators=generators)
            | ast.GeneratorExp(generators=generators)
            | ast.DictComp(generators=generators)
        ):
            return is_unordered(look, generators[0].iter, function, depth + 1)
        case ast.BinOp(op=ast.Sub() | ast.BitAnd() | ast.BitOr() | ast.BitXor(), left=left, right=right):
            return any(_is_set(look, side, function, depth + 1) or _is_keys(side) for side in (left, right))
        case ast.Call():
            return _unordered_call(look, node, function, depth)
        case ast.Name(id=name):
            return _unordered_name(look, name, function, depth)
        case ast.Attribute():
            return look.meaning(node, function) in ("set()", "frozenset()")
        case ast.IfExp(body=body, orelse=orelse):
            return is_unordered(look, body, function, depth + 1) or is_unordered(look, orelse, function, depth + 1)
        case ast.BoolOp(values=values):
            return any(is_unordered(look, one, function, depth + 1) for one in values)
        case ast.NamedExpr(value=value) | ast.Starred(value=value):
            return is_unordered(look, value, function, depth + 1)
        case _:
            return False


def _unordered_call(look: Look, node: ast.Call, function: Function, depth: int) -> bool:
    meaning = look.meaning(node.func, function)
    if meaning in ("set", "frozenset"):
        return bool(node.args)
    if meaning in _SETTLES_ORDER:
        return False
    if meaning in _KEEPS_ORDER:
        of = node.args[1:] if meaning in ("map", "filter") else node.args
        return any(is_unordered(look, one, function, depth + 1) for one in of)
    if isinstance(node.func, ast.Attribute):
        if node.func.attr in _SET_METHODS:
            return _is_set(look, node.func.value, function, depth + 1)
        if node.func.attr in ("items", "keys", "values"):
            return is_unordered(look, node.func.value, function, depth + 1) and not _is_set(
                look, node.func.value, function, depth + 1
            )
    helper = look.names.local(meaning)
    if helper is not None and helper not in look.roles.of and depth < 4:
        returned = [one.value for one in helper.all(ast.Return) if one.value is not None]
        return bool(returned) and all(is_unordered(look, one, helper, depth + 2) for one in returned)
    return False


def _is_set(look: Look, node: ast.expr, function: Function, depth: int) -> bool:
    if isinstance(node, ast.Set | ast.SetComp):
        return True
    if isinstance(node, ast.BinOp):
        return is_unordered(look, node, function, depth)
    meaning = look.meaning(node, function)
    if meaning in ("set()", "frozenset()"):
        return True
    if isinstance(node, ast.Name):
        return _unordered_name(look, node.id, function, depth)
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _SET_METHODS
        and _is_set(look, node.func.value, function, depth + 1)
    )


def _is_keys(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("keys", "items")
        and not node.args
    )


def _unordered_name(look: Look, name: str, function: Function, depth: int) -> bool:
    here: Function | None = function
    while here is not None:
        if name in here.params and name not in here.assigned:
            return look.names.annotation(here.params[name], here).rpartition(".")[2] in (
                "set",
                "frozenset",
                "Set",
                "FrozenSet",
                "AbstractSet",
                "MutableSet",
            )
        if name in here.assigned:
            values = [one for one in here.assigned[name] if one is not None]
            if any(isinstance(one, ast.Call) and look.meaning(one.func, here) == "sorted" for one in values):
                return False
            if not values or any(
                call
                for call in function.all(ast.Call)
                if isinstance(call.func, ast.Attribute)
                and call.func.attr == "sort"
                and source_name(call.func.value) == name
            ):
                return False
            return all(
                _is_set(look, one, here, depth + 1) or is_unordered(look, one, here, depth + 1) for one in values
            )
        here = here.outer
    return False


# --- stops -----------------------------------------------------------------------------------------


def swallowed(look: Look) -> Iterator[Hit]:
    for one in reached(look):
        function = one.function
        for tried in function.tries():
            if not any(of_run(look, part, function) for part in tried.body):
                continue
            yield from _swallowing(look, tried, function, one.via)
        for block in function.withs():
            for item in block.items:
                if suppresses(look, item.context_expr, function) & {"BaseException"} and any(
                    of_run(look, part, function) for part in block.body
                ):
                    yield Hit(item.context_expr, "suppress(BaseException)", one.via)


def _swallowing(look: Look, tried: ast.Try | ast.TryStar, function: Function, via: tuple[str, ...]) -> Iterator[Hit]:
    for handler in tried.handlers:
        if look.caught(handler, function) & {"BaseException", "BaseExceptionGroup"}:
            if not look.raises_again(handler):
                yield Hit(handler, "except" if handler.type is None else f"except {ast.unparse(handler.type)}", via)
            return
    for leaving in leaving_finally(tried):
        yield Hit(leaving, f"`{type(leaving).__name__.lower()}` in `finally`", via)


def leaving_finally(tried: ast.Try | ast.TryStar) -> Iterator[ast.stmt]:
    """A `return` in `finally` drops whatever was on its way."""
    for node in walk_block(tried.finalbody):
        if isinstance(node, ast.Return) or (
            isinstance(node, ast.Break | ast.Continue)
            and not any(isinstance(loop, LOOPS) and contains(loop, node) for loop in walk_block(tried.finalbody))
        ):
            yield node


def suppresses(look: Look, expression: ast.expr, function: Function) -> set[str]:
    """The classes that `contextlib.suppress` drops."""
    if isinstance(expression, ast.Call) and look.meaning(expression.func, function) == "contextlib.suppress":
        return {look.meaning(one, function) for one in expression.args}
    return set()


# --- colour ----------------------------------------------------------------------------------------


def colours(look: Look) -> Iterator[Hit]:
    seen: set[ast.AST] = set()
    for workflow in workflows(look):
        for one in look.roles.reach(workflow):
            for hit in _coloured(look, one, in_async=workflow.is_async):
                if hit.node not in seen:
                    seen.add(hit.node)
                    yield hit


def _coloured(look: Look, at: Reached, *, in_async: bool) -> Iterator[Hit]:
    function = at.function
    for call in function.all(ast.Call):
        meaning = look.meaning(call.func, function)
        name = last(meaning)
        is_verb = meaning.startswith("surefoot.") and name in WAITS
        from_aio = meaning.startswith("surefoot.aio.")
        if is_verb and in_async and not from_aio and meaning.count(".") == 1:
            yield Hit(call, f"{source_name(call.func)}() is blocking", at.via)
        elif is_verb and not in_async and from_aio:
            yield Hit(call, f"{source_name(call.func)}() is for async code", at.via)
        elif is_verb and from_aio and in_async and function.is_async and _is_forgotten(look, call, function):
            yield Hit(call, f"{source_name(call.func)}() is not awaited", at.via)
        else:
            called = look.names.local(meaning)
            if (
                called is not None
                and look.roles.of.get(called) in (Role.STEP, Role.EFFECT, Role.WORKFLOW)
                and called.is_async
            ):
                if not function.is_async and not in_async:
                    yield Hit(call, f"{source_name(call.func)}() is async", at.via)
                elif function.is_async and _is_forgotten(look, call, function):
                    yield Hit(call, f"{source_name(call.func)}() is not awaited", at.via)
            elif (
                called is not None
                and called not in look.roles.of
                and called.is_async
                and function.is_async
                and isinstance(look.module.parents.get(call), ast.Expr)
                and of_run(look, call, function)
            ):
                yield Hit(call, f"{source_name(call.func)}() is not awaited", at.via)
    for block in function.all(ast.With):
        for item in block.items:
            meaning = look.meaning(item.context_expr, function)
            if in_async and meaning.startswith("surefoot.") and last(meaning) in ("saga()", "timeout()"):
                yield Hit(
                    item.context_expr, f"`with {source_name(item.context_expr)}()` instead of `async with`", at.via
                )


def _is_forgotten(look: Look, call: ast.Call, function: Function) -> bool:
    """Whether the result of an async call is used as if it were there: not awaited, not handed to what awaits it."""
    parent = look.module.parents.get(call)
    match parent:
        case (
            ast.Expr()
            | ast.Attribute()
            | ast.Compare()
            | ast.BinOp()
            | ast.UnaryOp()
            | ast.FormattedValue()
            | ast.Subscript()
            | ast.AugAssign()
        ):
            return True
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) | ast.Assert(test=test):
            return test is call
        case ast.BoolOp():
            return True
        case ast.For(iter=iterated) | ast.comprehension(iter=iterated):
            return iterated is call
        case (
            ast.Assign(targets=[ast.Name(id=name)])
            | ast.AnnAssign(target=ast.Name(id=name))
            | ast.NamedExpr(target=ast.Name(id=name))
        ):
            return not _is_awaited_later(look, name, function)
        case ast.Call():
            meaning = look.meaning(parent.func, function)
            called = look.names.local(meaning)
            if called is not None and look.roles.of.get(called) in (Role.STEP, Role.EFFECT):
                return True
            return (
                meaning
                in (
                    "bool",
                    "str",
                    "int",
                    "float",
                    "len",
                    "list",
                    "print",
                    "repr",
                    "sum",
                    "sorted",
                    "dict",
                    "tuple",
                    "set",
                    "any",
                    "all",
                    "json.dumps",
                )
                and call in parent.args
            )
        case _:
            return False


def _is_awaited_later(look: Look, name: str, function: Function) -> bool:
    used = look.uses(name, function)
    if not used:
        return False
    for one in used:
        parent = look.module.parents.get(one)
        if isinstance(
            parent, ast.Await | ast.Call | ast.Starred | ast.List | ast.Tuple | ast.Return | ast.Dict | ast.Yield
        ):
            return True
    return False


RULES: tuple[Rule, ...] = (
    rule("SF201", clocks),
    rule("SF202", chance),
    rule("SF203", reads),
    rule("SF204", changes),
    rule("SF205", sleeps),
    rule("SF206", concurrency),
    rule("SF207", timeouts),
    rule("SF208", memory),
    rule("SF209", unordered),
    rule("SF210", swallowed),
    rule("SF211", colours),
)
