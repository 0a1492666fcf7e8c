"""A small flow inside one function: what is new each time, what is kept, what comes before, what is tried again.

Each question has one answer here. What cannot be seen counts as harmless: a rule that asks stays quiet then.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cached_property

from surefoot.lint.module import CHILDREN, Function, Module, position
from surefoot.lint.names import Names, last, listed, words
from surefoot.lint.roles import Roles
from surefoot.lint.vocabulary import CLEANUP, Act, Vocabulary, is_chance, is_clock, source_name

STATE = listed(
    "checkpoint checkpoints ckpt ckpts state states progress snapshot snapshots resume resumption cursor "
    "watermark checkpointer bookmark completed processed"
)
HANDLERS = (ast.Try, ast.TryStar)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
_LOG_METHODS = listed(
    "debug info warning warn error exception critical log print echo secho write_line trace success notice msg"
)
_LOG_OWNERS = listed(
    "log logger logging logs console rich click typer structlog loguru _log _logger lg tqdm progress_bar "
    "activity_logger"
)
_BROAD = frozenset(("Exception", "BaseException"))
_TIME_FORMAT = re.compile(r"%[-#]?[HIMSfpcXTsRr]")
_RETRY_WORDS = listed("retry retries retrying retryable retrier backoff attempts attempt retried redo")
_COUNTERS = listed(
    "attempt attempts try tries trial trials retry retries retried n i _ k count counter left remaining "
    "delay delays backoff wait pause sleep failures tried errors again"
)
IDEMPOTENT = re.compile(
    r"idempot|on\s+conflict|dedup|client_?token|client_?request_?token|upsert|if-none-match|if-match|or\s+ignore|on\s+duplicate"
    r"|request_?id\b.*header|not\s+exists",
    re.IGNORECASE,
)


class Look:
    """Everything that rules ask about one module."""

    def __init__(self, module: Module) -> None:
        self.module = module

    @cached_property
    def names(self) -> Names:
        return Names(self.module)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary(self.module, self.names)

    @cached_property
    def roles(self) -> Roles:
        return Roles(self.module, self.names)

    def meaning(self, node: ast.expr, function: Function) -> str:
        return self.names.of(node, function)

    def source(self, node: ast.AST) -> str:
        """The text of a node, with everything that is in it."""
        begin, end = getattr(node, "lineno", 1), getattr(node, "end_lineno", 1)
        return "\n".join(self.module.lines[begin - 1 : end])

    # --- effects -----------------------------------------------------------------------------------

    def acts(self, function: Function, *, certain: bool) -> Iterator[tuple[ast.Call, Act]]:
        """What a function's own calls do, in order. Without what only logs."""
        for call in function.all(ast.Call):
            act = self.vocabulary.act(call, function)
            if act is not None and (act.certain or not certain):
                yield call, act

    def own_temporary(self, call: ast.Call, function: Function) -> bool:
        """Whether a call works on a temporary file or folder that the function made itself, or in memory."""
        made = self._temporary(function)
        if not made:
            return False
        return any(isinstance(node, ast.Name) and node.id in made for node in ast.walk(call))

    def _temporary(self, function: Function) -> set[str]:
        found: set[str] = set()
        changed = True
        while changed:
            changed = False
            for name, values in function.assigned.items():
                if name not in found and any(
                    value is not None and self._is_temporary(value, function, found) for value in values
                ):
                    found.add(name)
                    changed = True
            for assign in function.all(ast.Assign):
                for target in assign.targets:
                    if isinstance(target, ast.Tuple) and self._is_temporary(assign.value, function, found):
                        for one in target.elts:
                            if isinstance(one, ast.Name) and one.id not in found:
                                found.add(one.id)
                                changed = True
        return found

    def _is_temporary(self, value: ast.expr, function: Function, known: set[str]) -> bool:
        for node in ast.walk(value):
            if isinstance(node, ast.Name) and node.id in known:
                return True
            if isinstance(node, ast.Call) and self.meaning(node.func, function).startswith("tempfile."):
                return True
        return False

    # --- values ------------------------------------------------------------------------------------

    def fresh(self, node: ast.expr | None, function: Function, depth: int = 0) -> bool:
        """Whether a value is another one each time: chance or a clock, also inside of a text. `given or new` is not."""
        if node is None or depth > 6:
            return False
        match node:
            case ast.Call():
                return self._fresh_call(node, function, depth)
            case ast.Attribute(value=value):
                return self.fresh(value, function, depth + 1)
            case ast.Subscript(value=value):
                return self.fresh(value, function, depth + 1)
            case ast.JoinedStr(values=values):
                return any(self.fresh(value, function, depth + 1) for value in values)
            case ast.FormattedValue(value=value, format_spec=spec):
                text = (
                    "".join(str(one.value) for one in spec.values if isinstance(one, ast.Constant))
                    if isinstance(spec, ast.JoinedStr)
                    else ""
                )
                if "%" in text and not _TIME_FORMAT.search(text):
                    return False
                return self.fresh(value, function, depth + 1)
            case ast.BinOp(left=left, right=right):
                return self.fresh(left, function, depth + 1) or self.fresh(right, function, depth + 1)
            case ast.Tuple(elts=elts):
                return any(self.fresh(one, function, depth + 1) for one in elts)
            case ast.NamedExpr(value=value):
                return self.fresh(value, function, depth + 1)
            case ast.Name(id=name):
                bound = function.assigned.get(name)
                if bound is None or name in function.params:
                    return False
                return len(bound) == 1 and self.fresh(bound[0], function, depth + 1)
            case _:
                return False

    def _fresh_call(self, node: ast.Call, function: Function, depth: int) -> bool:
        meaning = self.meaning(node.func, function)
        if is_chance(node, meaning) or (is_clock(node, meaning) and meaning != "datetime.date.today"):
            return meaning not in ("id", "hash")
        name = last(meaning)
        if isinstance(node.func, ast.Attribute):
            if name == "strftime" and node.args and isinstance(node.args[0], ast.Constant):
                formatted = str(node.args[0].value)
                return bool(_TIME_FORMAT.search(formatted)) and (
                    meaning == "time.strftime" or self.fresh(node.func.value, function, depth + 1)
                )
            if name in ("date", "toordinal", "weekday", "isocalendar", "date_string"):
                return False
            if name in ("format", "join"):
                return any(
                    self.fresh(one, function, depth + 1) for one in (*node.args, *(one.value for one in node.keywords))
                )
            if name in (
                "isoformat",
                "timestamp",
                "hex",
                "replace",
                "lower",
                "upper",
                "decode",
                "encode",
                "astimezone",
                "strip",
                "urn",
                "total_seconds",
                "hexdigest",
                "time",
                "removeprefix",
            ):
                return self.fresh(node.func.value, function, depth + 1)
        if meaning in (
            "str",
            "int",
            "repr",
            "float",
            "round",
            "format",
            "uuid.UUID",
            "base64.b64encode",
            "base64.urlsafe_b64encode",
            "hex",
            "abs",
        ) or name in ("sha256", "md5", "sha1", "b64encode"):
            return any(self.fresh(one, function, depth + 1) for one in node.args)
        helper = self.names.local(meaning)
        if helper is not None and not helper.params and "()" not in meaning:
            returned = [one.value for one in helper.all(ast.Return)]
            return bool(returned) and all(self.fresh(one, helper, depth + 1) for one in returned)
        return False

    def uses(self, name: str, function: Function) -> list[ast.Name]:
        return [one for one in function.all(ast.Name) if one.id == name and isinstance(one.ctx, ast.Load)]

    def is_log(self, call: ast.Call, function: Function) -> bool:
        """Whether a call only tells people something."""
        meaning = self.meaning(call.func, function)
        name = last(meaning)
        if meaning in (
            "print",
            "pprint.pprint",
            "warnings.warn",
            "sys.stderr.write",
            "sys.stdout.write",
            "rich.print",
            "typer.echo",
            "click.echo",
            "builtins.print",
            "traceback.print_exc",
            "sys.stdout.flush",
        ):
            return True
        if name in _LOG_METHODS:
            if meaning.startswith(("temporalio.", "logging.")):
                return True
            owner = source_name(call.func).rpartition(".")[0].lower()
            return bool(set(words(owner)) & _LOG_OWNERS) or owner.endswith("log")
        return False

    def only_told(self, node: ast.AST, function: Function, depth: int = 0) -> bool:
        """Whether a value goes to a log or the screen and nowhere else."""
        if depth > 4:
            return False
        child = node
        for parent in self.module.up(node):
            match parent:
                case ast.Call():
                    if self.is_log(parent, function):
                        return True
                    by_method = child is parent.func and isinstance(parent.func, ast.Attribute)
                    if not by_method and (child is parent.func or not _is_plain(self.meaning(parent.func, function))):
                        return False
                case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                    used = self.uses(name, function)
                    return (
                        name not in function.outside
                        and bool(used)
                        and all(self.only_told(one, function, depth + 1) for one in used)
                    )
                case ast.Expr():
                    return False
                case ast.stmt():
                    return False
                case ast.Compare() | ast.Dict() | ast.IfExp() | ast.Lambda() | ast.BoolOp():
                    return False
            child = parent
        return False

    # --- blocks ------------------------------------------------------------------------------------

    def before(self, node: ast.AST, function: Function) -> Iterator[ast.stmt]:
        """The statements that were executed before a node and lead to it: from its own block outwards."""
        child: ast.AST = self.module.statement(node)
        for parent in self.module.up(child):
            for block in blocks_of(parent):
                if child in block:
                    yield from reversed(block[: block.index(child)])
            if isinstance(parent, ast.Try | ast.TryStar) and (child in parent.orelse or child in parent.finalbody):
                yield from reversed(parent.body)
            child = parent

    def after(self, node: ast.AST, function: Function) -> Iterator[ast.stmt]:
        """What follows in the same block; out of `with` and `try` also what follows them."""
        child: ast.AST = self.module.statement(node)
        for parent in self.module.up(child):
            for block in blocks_of(parent):
                if child in block:
                    rest = block[block.index(child) + 1 :]
                    yield from rest
                    if any(leaves(one) for one in rest):
                        return
            if isinstance(parent, ast.Try | ast.TryStar) and child in parent.body:
                yield from parent.orelse
            if not isinstance(parent, ast.With | ast.AsyncWith | ast.Try | ast.TryStar):
                return
            child = parent

    def loops_around(self, node: ast.AST) -> list[ast.For | ast.AsyncFor | ast.While]:
        return [one for one in self.module.up(node) if isinstance(one, LOOPS)]

    # --- handlers ----------------------------------------------------------------------------------

    def caught(self, handler: ast.ExceptHandler, function: Function) -> set[str]:
        """The classes a handler names; a bare one catches BaseException."""
        if handler.type is None:
            return {"BaseException"}
        kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        if len(kinds) == 1 and isinstance(kinds[0], ast.Name):
            value = function.assigned.get(kinds[0].id) or self.module.body.assigned.get(kinds[0].id)
            if value and len(value) == 1 and isinstance(value[0], ast.Tuple):
                kinds = value[0].elts
        return {self.meaning(one, function) for one in kinds}

    def raises_again(self, handler: ast.ExceptHandler) -> bool:
        """`raise`, or `raise e` of the very exception, anywhere in the handler."""
        for node in _walk_block(handler.body):
            if isinstance(node, ast.Raise):
                if node.exc is None:
                    return True
                if isinstance(node.exc, ast.Name) and node.exc.id == handler.name:
                    return True
                if (
                    isinstance(node.exc, ast.Call)
                    and isinstance(node.exc.func, ast.Attribute)
                    and isinstance(node.exc.func.value, ast.Name)
                    and node.exc.func.value.id == handler.name
                ):
                    return True
        return False

    def gives_up(self, body: Iterable[ast.stmt], function: Function) -> bool:
        """Whether a block raises, or ends the program."""
        for node in _walk_block(body):
            if isinstance(node, ast.Raise):
                return True
            if isinstance(node, ast.Call):
                meaning = self.meaning(node.func, function)
                if meaning in ("sys.exit", "exit", "quit", "os._exit", "os.abort") or last(meaning) in (
                    "exit",
                    "abort",
                    "fail",
                    "fatal",
                    "die",
                    "skip",
                ):
                    return True
        return False

    # --- trying again ------------------------------------------------------------------------------

    def retried_by(self, function: Function) -> bool:
        """Whether a decorator calls the function again when it fails."""
        outside = function.outer or self.module.body
        for decorator in function.decorators:
            target = decorator.func if isinstance(decorator, ast.Call) else decorator
            meaning = self.meaning(target, outside)
            if meaning.startswith(("surefoot.", "dbos.", "temporalio.")):
                continue
            name = source_name(target)
            if (
                set(words(last(meaning))) & _RETRY_WORDS
                or set(words(name)) & _RETRY_WORDS
                or meaning.startswith(("tenacity.", "backoff.", "stamina.", "retrying."))
            ):
                if meaning.startswith("pytest") or "flaky" in name or "mark" in words(name):
                    continue
                if isinstance(decorator, ast.Call) and _tries_once(decorator):
                    continue
                return True
            if isinstance(decorator, ast.Call) and any(one.arg == "autoretry_for" for one in decorator.keywords):
                return True
            if (
                isinstance(decorator, ast.Call)
                and last(meaning) in ("task", "flow")
                and meaning.startswith("prefect")
                and any(
                    one.arg == "retries" and not (isinstance(one.value, ast.Constant) and not one.value.value)
                    for one in decorator.keywords
                )
            ):
                return True
        return False

    def retry_loop(self, node: ast.AST, function: Function) -> ast.AST | None:
        """The loop that does this again because it failed: it catches, goes round, and leaves when it succeeded."""
        for loop in self.loops_around(node):
            if isinstance(loop, ast.For | ast.AsyncFor) and isinstance(loop.iter, ast.Call):
                meaning = self.meaning(loop.iter, function)
                if (
                    last(meaning.removesuffix("()")) in ("Retrying", "AsyncRetrying", "retry_context")
                    or "stamina" in meaning
                ):
                    return loop
            if not self._counts_attempts(loop, function):
                continue
            for parent in self.module.up(node):
                if (
                    isinstance(parent, HANDLERS)
                    and self.module.within(parent, loop)
                    and self._goes_round(parent, node, loop)
                ):
                    return loop
        return None

    def _counts_attempts(self, loop: ast.For | ast.AsyncFor | ast.While, function: Function) -> bool:
        if isinstance(loop, ast.While):
            return True
        name = source_name(loop.target) if isinstance(loop.target, ast.Name) else ""
        if isinstance(loop.target, ast.Tuple) and loop.target.elts and isinstance(loop.target.elts[0], ast.Name):
            name = loop.target.elts[0].id
        if isinstance(loop.iter, ast.Call) and self.meaning(loop.iter.func, function) in (
            "range",
            "itertools.count",
            "itertools.repeat",
        ):
            return True
        said = set(words(name)) | set(words(source_name(loop.iter)))
        return bool(said & (_COUNTERS - listed("n i k count left _ remaining"))) or (
            isinstance(loop.iter, ast.Tuple | ast.List)
            and all(isinstance(one, ast.Constant) and isinstance(one.value, int | float) for one in loop.iter.elts)
        )

    def _goes_round(self, tried: ast.Try | ast.TryStar, node: ast.AST, loop: ast.AST) -> bool:
        if not any(_contains(one, node) for one in tried.body) or not tried.handlers:
            return False
        if not any(self._falls_through(handler.body) for handler in tried.handlers):
            return False
        statement = self.module.statement(node)
        if any(_contains(one, node) for one in _walk_block(tried.body) if isinstance(one, ast.Return)):
            return True
        rest = [*tried.body, *tried.orelse]
        if any(isinstance(one, ast.Return | ast.Break) for one in _walk_block(rest)):
            return True
        later = [one for one in self.after(tried, Function("", ast.Module([], []))) if one is not statement]
        if any(isinstance(one, ast.Return | ast.Break) for one in later):
            return True
        return isinstance(loop, ast.While) and self._flag_ends(loop, tried)

    @staticmethod
    def _flag_ends(loop: ast.While, tried: ast.Try | ast.TryStar) -> bool:
        """`while not sent: try: ...; sent = True`."""
        asked = {one.id for one in ast.walk(loop.test) if isinstance(one, ast.Name)}
        for one in _walk_block([*tried.body, *tried.orelse]):
            if isinstance(one, ast.Assign) and any(
                isinstance(target, ast.Name) and target.id in asked for target in one.targets
            ):
                return True
        return False

    @staticmethod
    def _falls_through(body: list[ast.stmt]) -> bool:
        """Whether a handler can lead to the next round. `if attempt == 2: raise` does not hinder it."""
        return not leaves(body[-1]) or isinstance(body[-1], ast.Continue)

    def speaks_of_keys(self, function: Function) -> bool:
        return bool(IDEMPOTENT.search(self.source(function.node)))


def leaves(statement: ast.stmt) -> bool:
    """Whether nothing after a statement is executed in its block."""
    match statement:
        case ast.Return() | ast.Raise() | ast.Continue() | ast.Break():
            return True
        case ast.If(body=body, orelse=orelse):
            return bool(orelse) and leaves(body[-1]) and leaves(orelse[-1])
        case ast.With(body=body) | ast.AsyncWith(body=body):
            return leaves(body[-1])
        case _:
            return False


def blocks_of(node: ast.AST) -> list[list[ast.stmt]]:
    found = [getattr(node, name, None) for name in ("body", "orelse", "finalbody")]
    return [block for block in found if isinstance(block, list)]


def _walk_block(body: Iterable[ast.stmt]) -> Iterator[ast.AST]:
    """All nodes of a block, without those of functions defined in it."""
    stack: list[ast.AST] = list(body)
    while stack:
        node = stack.pop()
        yield node
        if node.__class__ in _CLOSED:
            continue
        for name in CHILDREN[node.__class__]:
            value = getattr(node, name)
            if value.__class__ is list:
                stack.extend(child for child in value if child is not None)
            elif value is not None:
                stack.append(value)


_CLOSED = frozenset((ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda))
walk_block = _walk_block


def _contains(around: ast.AST, node: ast.AST) -> bool:
    begin, end = position(around), (getattr(around, "end_lineno", 0), getattr(around, "end_col_offset", 0))
    return begin <= position(node) < end


def contains(around: ast.AST, node: ast.AST) -> bool:
    return _contains(around, node)


def _is_plain(meaning: str) -> bool:
    return meaning in (
        "str",
        "int",
        "float",
        "round",
        "repr",
        "format",
        "max",
        "min",
        "len",
        "abs",
        "datetime.timedelta",
    )


def _tries_once(decorator: ast.Call) -> bool:
    for one in decorator.keywords:
        value = one.value
        if (
            one.arg in ("max_tries", "attempts", "tries", "max_attempts", "stop_max_attempt_number")
            and isinstance(value, ast.Constant)
            and value.value == 1
        ):
            return True
        if (
            one.arg == "stop"
            and isinstance(value, ast.Call)
            and value.args
            and isinstance(value.args[0], ast.Constant)
            and value.args[0].value == 1
        ):
            return True
    return False


def said_in(node: ast.AST | None) -> set[str]:
    """The words of an expression: names, texts, and of `a.b.c` only the last."""
    found: set[str] = set()
    if node is None:
        return found
    stack = [node]
    while stack:
        one = stack.pop()
        match one:
            case ast.Constant(value=str(text)):
                found |= set(words(text))
            case ast.Name(id=name):
                found |= set(words(name))
            case ast.Attribute(attr=attr, value=value):
                found |= set(words(attr))
                if isinstance(value, ast.Call):
                    stack.append(value)
            case ast.Call(func=func, args=args, keywords=keywords):
                stack += [*args, *(key.value for key in keywords)]
                if isinstance(func, ast.Attribute):
                    found |= set(words(func.attr)) if not args else set()
                    stack.append(func.value)
                elif isinstance(func, ast.Name):
                    found |= set(words(func.id))
            case ast.Subscript(value=value, slice=index):
                stack += [value, index]
            case _:
                stack += list(ast.iter_child_nodes(one))
    return found


def cleans_up(shown: str) -> bool:
    said = words(last(shown))
    return bool(said) and (said[0] in CLEANUP or "temp" in said or "tmp" in said)
