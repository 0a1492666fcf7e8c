"""SF1: code that keeps its own checkpoints. No surefoot is needed for these.

They judge people's own names, so each of them has words that veto: a cache may be lost, a log may be torn.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from surefoot.lint.flow import LOOPS, STATE, Look, cleans_up, contains, said_in, walk_block
from surefoot.lint.module import Function, position
from surefoot.lint.names import last, listed, words
from surefoot.lint.roles import Role
from surefoot.lint.rule import Hit, Rule
from surefoot.lint.rules.texts import rule
from surefoot.lint.vocabulary import (
    NOTICES,
    Act,
    is_clock,
    opened_as,
    source_name,
    speaks_of_an_effect,
)

DONE = listed(
    "done complete completed finished processed sent paid shipped delivered handled success succeeded "
    "charged published uploaded refunded imported migrated applied executed emailed mailed notified "
    "posted submitted settled billed fulfilled transferred deployed exported synced booked converted "
    "invoiced resolved"
)
_SAVING = listed(
    "save store persist write flush dump checkpoint put record commit sync update set append upsert mark "
    "serialize saves"
)
_SAVED = STATE | {"done", "sent", "processed", "ledger", "journal"}
_ANY_DONE = re.compile("|".join(sorted(DONE)) + r"|ack|delete_message", re.IGNORECASE)
_KEEPS = listed("save commit flush persist put store update upsert asave write set")
"""Whatever they are called on: right after `job.status = "done"` they make it last."""
_CACHE = listed(
    "cache caches cached config configs configuration settings setting preference preferences prefs theme "
    "locale option options"
)
_WORK = listed(
    "process handle execute run perform work do apply convert import migrate render build generate "
    "compute train transform ingest index fetch download"
)
_TRAINING = listed(
    "torch jax keras tensorflow flax pytorch_lightning lightning transformers accelerate mxnet paddle "
    "deepspeed optax sklearn xgboost lightgbm"
)


def effect(look: Look, call: ast.Call, function: Function) -> Act | None:
    """What changes the world for these rules: known calls and names; no clean-up, no logs."""
    if look.is_log(call, function):
        return None
    act = look.vocabulary.act(call, function)
    if act is None or act.kind != "change" or act.tolerant:
        return None
    return act


def effects_in(look: Look, node: ast.AST, function: Function, depth: int = 0) -> Iterator[tuple[ast.Call, Act]]:
    """The effects in a node, also those of helpers of this module."""
    for call in ast.walk(node):
        if not isinstance(call, ast.Call):
            continue
        act = effect(look, call, function)
        if act is not None:
            yield call, act
            continue
        helper = look.names.called(call, function)
        if helper is not None and depth < 3 and helper is not function:
            for inner in helper.all(ast.Call):
                deed = effect(look, inner, helper)
                if deed is not None or any(True for _ in _deeper(look, inner, helper, depth + 1)):
                    yield call, deed or Act("change", source_name(call.func), certain=False)
                    break


def _deeper(look: Look, call: ast.Call, function: Function, depth: int) -> Iterator[Act]:
    helper = look.names.called(call, function)
    if helper is not None and depth < 3 and helper is not function:
        for inner in helper.all(ast.Call):
            deed = effect(look, inner, helper)
            if deed is not None:
                yield deed
            else:
                yield from _deeper(look, inner, helper, depth + 1)


# --- SF101 -----------------------------------------------------------------------------------------


def done_before_effect(look: Look) -> Iterator[Hit]:
    if not _ANY_DONE.search(look.module.text):
        return
    for function in look.module.functions:
        if set(words(function.short_name)) & DONE and words(function.short_name)[0] in (
            "mark",
            "set",
            "update",
            "record",
            "is",
        ):
            continue
        marks = list(_marks(look, function))
        for mark in marks:
            lost = _lost_after(look, mark, function)
            if (
                lost is not None
                and not _stands_before(look, mark, function)
                and not _marked_again(look, mark, marks, lost, function)
            ):
                yield Hit(mark, f"{source_name(lost.func)}()")


def _marks(look: Look, function: Function) -> list[ast.Call]:
    found = [call for call in function.all(ast.Call) if _is_mark(look, call, function)]
    for call in function.all(ast.Call):
        if (
            call not in found
            and (last(source_name(call.func)) in _KEEPS or is_save(look, call, function))
            and _said_done_before(look, call, function)
        ):
            found.append(call)
    return sorted(found, key=position)


def _is_mark(look: Look, call: ast.Call, function: Function) -> bool:
    """Whether a call says somewhere that something is done."""
    shown = source_name(call.func)
    receiver, _, name = shown.rpartition(".")
    said = words(name)
    if not said or (look.names.called(call, function) is not None and _only_returns(look, call, function)):
        return False
    if look.is_log(call, function):
        return False
    verb, nouns = said[0], set(said[1:])
    if (
        verb in ("mark", "record", "set", "flag", "update", "log", "register", "save")
        and nouns & DONE
        and verb != "log"
        and "not" not in nouns
    ):
        return True
    if verb in (
        "set",
        "update",
        "change",
        "save",
        "mark",
        "write",
        "put",
        "transition",
        "hset",
        "advance",
        "move",
        "as",
        "update_one",
    ) and _says_done(call):
        return (
            bool(listed("status state stage phase job task as step hset") & set(said))
            or bool({"status", "state"} & said_in_keywords(call))
            or verb in ("mark", "hset", "transition")
        )
    if (
        name
        in (
            "complete",
            "finish",
            "mark",
            "complete_job",
            "complete_task",
            "finish_job",
            "finish_task",
            "complete_step",
            "set_done",
        )
        and receiver
        and (call.args or name != "finish")
        and name != "mark"
    ):
        by = set(words(last(receiver)))
        return bool(
            by
            & listed(
                "queue tracker store db jobs ledger journal progress state repo tasks outbox inbox checkpoint registry"
            )
        )
    if name in (
        "ack",
        "acknowledge",
        "basic_ack",
        "task_done",
        "delete_message",
        "xack",
        "ack_message",
        "complete_message",
    ):
        return not any(arg.arg == "requeue" for arg in call.keywords)
    if (
        name in ("sadd", "add", "append", "insert", "rpush", "lpush", "hset", "setex")
        and name in ("sadd", "rpush", "lpush", "hset")
        and call.args
    ):
        return bool(said_in(call.args[0]) & DONE)
    if name == "set" and set(words(last(receiver))) & listed("redis r cache kv db store") and call.args:
        return bool(said_in(call.args[0]) & DONE) or _says_done(call)
    if name == "touch":
        return bool(said_in(call.func.value if isinstance(call.func, ast.Attribute) else None) & (DONE | {"success"}))
    if name in ("execute", "executemany"):
        text = look.vocabulary.text(call.args[0], function) if call.args else None
        return text is not None and _sql_marks(text, call)
    return False


def _only_returns(look: Look, call: ast.Call, function: Function) -> bool:
    helper = look.names.called(call, function)
    return (
        helper is not None
        and not helper.all(ast.Call)
        and not helper.all(ast.Assign)
        and not helper.all(ast.AugAssign)
        and bool(helper.all(ast.Return))
    )


def said_in_keywords(call: ast.Call) -> set[str]:
    return {word for one in call.keywords if one.arg for word in words(one.arg)}


def _says_done(call: ast.Call) -> bool:
    for node in (*call.args, *(one.value for one in call.keywords)):
        for one in ast.walk(node):
            if isinstance(one, ast.Constant) and isinstance(one.value, str) and one.value.lower() in DONE:
                return True
            if (
                isinstance(one, ast.Attribute)
                and one.attr.lower() in DONE
                and (one.attr.isupper() or set(words(source_name(one.value))) & {"status", "state"})
            ):
                return True
    return False


def _sql_marks(text: str, call: ast.Call) -> bool:
    update = re.search(r"^\s*UPDATE\b.*?\bSET\b(.*?)(?:\bWHERE\b|$)", text, re.IGNORECASE | re.DOTALL)
    if update:
        assigned = update[1]
        if re.search(r"=\s*'(\w+)'", assigned) and any(
            value.lower() in DONE for value in re.findall(r"'(\w+)'", assigned)
        ):
            return True
        if any(
            set(words(name)) & DONE
            for name in re.findall(r"(\w+)\s*=\s*(?:1|TRUE|NOW\(\)|CURRENT_TIMESTAMP)", assigned, re.IGNORECASE)
        ):
            return True
        return bool(re.search(r"\bstatus\s*=\s*(?:\?|%s|\$1|:\w+)", assigned, re.IGNORECASE)) and _says_done(call)
    insert = re.match(r"\s*INSERT\s+(?:OR\s+\w+\s+)?INTO\s+(\w+)", text, re.IGNORECASE)
    return bool(insert and set(words(insert[1])) & DONE)


def _said_done_before(look: Look, save: ast.Call, function: Function) -> bool:
    """Whether right before a save something was said to be done: `state["status"] = "done"`, `done.add(x)`."""
    statement = look.module.statement(save)
    said = set(words(source_name(save.func))) | said_in(save)
    for node in _preceding(look, statement):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            target = node.targets[0]
            if isinstance(target, ast.Attribute | ast.Subscript):
                name = said_in(target.slice) if isinstance(target, ast.Subscript) else set(words(target.attr))
                value = node.value.value
                if (isinstance(value, str) and value.lower() in DONE) or (value is True and name & DONE):
                    return True
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Subscript):
            base = said_in(node.targets[0].value)
            if base & DONE or (isinstance(node.value, ast.Attribute) and node.value.attr.lower() in DONE):
                return True
            if isinstance(node.targets[0].slice, ast.Constant) and set(words(str(node.targets[0].slice.value))) & DONE:
                return True
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            shown = source_name(node.value.func)
            receiver, _, verb = shown.rpartition(".")
            if (
                verb in ("add", "append", "extend", "update")
                and (set(words(receiver.rpartition(".")[2])) | _index_words(node.value)) & DONE
            ):
                return True
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Attribute)
            and node.targets[0].attr in ("status", "state")
            and isinstance(node.value, ast.Attribute)
            and node.value.attr.lower() in DONE
        ):
            return True
    del said
    return False


def _index_words(call: ast.Call) -> set[str]:
    base = call.func.value if isinstance(call.func, ast.Attribute) else None
    return said_in(base.slice) if isinstance(base, ast.Subscript) else set()


def _preceding(look: Look, statement: ast.stmt) -> Iterator[ast.stmt]:
    """The few statements right before one, in its block; out of a `with` also before that."""
    child: ast.AST = statement
    for parent in look.module.up(statement):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(parent, name, None)
            if isinstance(block, list) and child in block:
                yield from block[max(0, block.index(child) - 4) : block.index(child)]
        if not isinstance(parent, ast.With | ast.AsyncWith):
            return
        child = parent


def _lost_after(look: Look, mark: ast.Call, function: Function) -> ast.Call | None:
    """The first effect after the mark, or the work on the same thing."""
    about = {
        node.id
        for arg in (*mark.args, *(one.value for one in mark.keywords))
        for node in ast.walk(arg)
        if isinstance(node, ast.Name)
    }
    statement = look.module.statement(mark)
    for following in look.after(statement, function):
        if isinstance(following, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        for call, act in effects_in(look, following, function):
            if _is_lost(look, call, act, function):
                return call
        for node in walk_block([following]):
            if (
                isinstance(node, ast.Call)
                and _is_work(look, node, function)
                and about & {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
            ):
                return node
    return None


def _is_lost(look: Look, call: ast.Call, act: Act, function: Function) -> bool:
    shown = source_name(call.func)
    said = set(words(last(shown)))
    if said & NOTICES or cleans_up(shown) or _is_mark(look, call, function) or is_save(look, call, function):
        return False
    meaning = look.meaning(call.func, function)
    if last(meaning) in (
        "commit",
        "mkdir",
        "makedirs",
        "chmod",
        "touch",
        "unlink",
        "remove",
        "rmtree",
        "rename",
        "replace",
        "rollback",
    ):
        return False
    if look.own_temporary(call, function):
        return False
    if act.process:
        return True
    if act.sql:
        text = look.vocabulary.text(call.args[0], function) if call.args else ""
        return (
            bool(text)
            and not re.match(r"\s*(DELETE|DROP|TRUNCATE|VACUUM|CREATE)", text or "", re.IGNORECASE)
            and not re.search(r"\b(log|logs|audit|history|events?|metrics?)\b", text or "", re.IGNORECASE)
        )
    if act.certain and opened_as(call, meaning) is not None:
        return not (said_in(call) & listed("log logs audit report summary progress metrics"))
    return not (said_in(call) & {"log", "webhook", "metrics"} and not act.certain)


def _is_work(look: Look, call: ast.Call, function: Function) -> bool:
    said = words(last(source_name(call.func)))
    if not said or look.is_log(call, function):
        return False
    return (
        said[0] in ("process", "handle", "fulfil", "fulfill")
        and len(said) > 1
        and not set(said)
        & listed("next callbacks hooks event events signals pending remaining error errors exception failure")
    )


def _stands_before(look: Look, mark: ast.Call, function: Function) -> bool:
    """Whether the effect, or the work itself, was done before the mark."""
    for statement in look.before(mark, function):
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom):
            continue
        for node in walk_block([statement]):
            if not isinstance(node, ast.Call):
                continue
            said = words(last(source_name(node.func)))
            if (
                said
                and said[0] in _WORK | {"call", "invoke"}
                and not look.is_log(node, function)
                and not (
                    len(said) == 1 and said[0] in ("index", "fetch", "build", "run", "do", "apply") and not node.args
                )
            ) and said[0] not in ("render", "build", "generate", "compute", "fetch", "index", "download", "transform"):
                return True
            act = effect(look, node, function)
            if (
                act is not None
                and not _is_mark(look, node, function)
                and not is_save(look, node, function)
                and (act.certain or speaks_of_an_effect(source_name(node.func)))
            ):
                if set(words(last(source_name(node.func)))) & NOTICES or cleans_up(source_name(node.func)):
                    continue
                return True
            helper = look.names.called(node, function)
            if (
                helper is not None
                and any(True for _ in effects_in(look, node, function))
                and not _is_mark(look, node, function)
            ):
                return True
    return any(
        contains(node, mark)
        and node is not mark
        and effect(look, node, function) is not None
        and not is_save(look, node, function)
        for node in function.all(ast.Call)
    )


def _marked_again(look: Look, mark: ast.Call, marks: list[ast.Call], lost: ast.Call, function: Function) -> bool:
    """A second mark after the effect: the first one said something else."""
    return any(
        position(other) > position(lost) and other is not mark and not _in_handler(look, other) for other in marks
    )


def _in_handler(look: Look, node: ast.AST) -> bool:
    return any(isinstance(parent, ast.ExceptHandler) for parent in look.module.up(node))


# --- saves -----------------------------------------------------------------------------------------


def is_save(look: Look, call: ast.Call, function: Function) -> bool:
    """Whether a call saves a checkpoint: `save_progress(x)`, `ckpt.save()`, `json.dump(state, f)`."""
    if look.is_log(call, function):
        return False
    shown = source_name(call.func)
    receiver, _, name = shown.rpartition(".")
    said = words(name)
    if not said or look.meaning(call.func, function).startswith(("torch.", "surefoot.")):
        return False
    by = set(words(last(receiver)))
    if set(said) & _CACHE or by & (_CACHE | {"metrics"}):
        return False
    verb = next(
        (word for word in said if word not in ("self", "async", "maybe", "atomic", "safe", "do", "try", "force")), ""
    )
    if (
        verb in _SAVING
        and set(said[1:] if verb == said[0] else said) & (_SAVED - {"checkpoint"} | {"checkpoint"})
        and len(said) > 1
    ):
        return verb not in ("set", "mark", "append", "update", "record") or (
            bool(set(said) & STATE) and verb in ("record", "update")
        )
    if (
        verb == "checkpoint"
        and isinstance(look.module.parents.get(call), ast.Expr | ast.Await)
        and (len(said) == 1 or "state" in said)
    ):
        return True
    if name in (
        "save",
        "persist",
        "flush",
        "dump",
        "store",
        "write",
        "commit",
        "put",
        "aput",
        "sync",
        "save_to_disk",
        "checkpoint",
        "save_json",
        "to_disk",
        "write_text",
        "write_bytes",
    ) and by & (STATE | {"saver", "checkpointer", "ledger"}):
        return True
    meaning = look.meaning(call.func, function)
    if last(meaning) in ("dump", "safe_dump") and meaning.startswith(
        ("json.", "pickle.", "yaml.", "marshal.", "cloudpickle.", "dill.", "joblib.", "msgpack.")
    ):
        target = said_in(call.args[1]) if len(call.args) > 1 else set()
        return bool(
            (said_in(call.args[0] if call.args else None) | target | set(words(function.short_name)))
            & (STATE | {"done"})
        )
    return False


# --- SF102 -----------------------------------------------------------------------------------------


def coarse_checkpoint(look: Look) -> Iterator[Hit]:
    if look.module.packages & _TRAINING:
        return
    for function in look.module.everything:
        for loop in function.loops():
            saves = [
                call
                for call in look.module.inside(loop, function, ast.Call)
                if _saves(look, call, function) and loop in look.loops_around(call)
            ]
            hit = _seldom(look, loop, saves, function) if saves else _after_the_loop(look, loop, function)
            if hit is not None:
                yield hit


def _saves(look: Look, call: ast.Call, function: Function) -> bool:
    if is_save(look, call, function):
        return True
    helper = look.names.called(call, function)
    return (
        helper is not None
        and bool(set(words(helper.short_name)) & (_SAVED | {"save", "persist"}))
        and any(
            is_save(look, one, helper)
            or ((act := look.vocabulary.act(one, helper)) is not None and act.kind == "change")
            for one in helper.all(ast.Call)
        )
    )


def _seldom(
    look: Look, loop: ast.For | ast.AsyncFor | ast.While, saves: list[ast.Call], function: Function
) -> Hit | None:
    conditions: list[tuple[ast.Call, ast.If]] = []
    for save in saves:
        around = [
            parent
            for parent in look.module.up(save)
            if isinstance(parent, ast.If)
            and contains(loop, parent)
            and any(contains(part, save) for part in parent.body)
        ]
        seldom = next((one for one in around if _is_seldom(look, one, function)), None) or _turned_back(
            look, save, loop
        )
        if seldom is None:
            if not _in_handler(look, save):
                return None
            continue
        conditions.append((save, seldom))
    for save, condition in conditions:
        for part in loop.body:
            for call, _act in effects_in(look, part, function):
                if (
                    contains(condition, call)
                    or _saves(look, call, function)
                    or cleans_up(source_name(call.func))
                    or look.own_temporary(call, function)
                ):
                    continue
                return Hit(save, f"{source_name(call.func)}()")
    return None


def _turned_back(look: Look, save: ast.Call, loop: ast.For | ast.AsyncFor | ast.While) -> ast.If | None:
    """`if count % 50: continue` before the save."""
    statement = look.module.statement(save)
    block = loop.body
    if statement not in block:
        return None
    for one in block[: block.index(statement)]:
        if (
            isinstance(one, ast.If)
            and isinstance(one.body[-1], ast.Continue)
            and any(isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) for node in ast.walk(one.test))
        ):
            return one
    return None


def _is_seldom(look: Look, condition: ast.If, function: Function) -> bool:
    """`i % 10 == 0`, a counter that is reset, a buffer that is full, an interval."""
    test = condition.test
    for node in ast.walk(test):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            return True
        if isinstance(node, ast.Call) and (is_clock(node, look.meaning(node.func, function))):
            return True
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test = test.operand
    compares = [node for node in ast.walk(test) if isinstance(node, ast.Compare)]
    for compare in compares:
        if not any(isinstance(op, ast.Gt | ast.GtE | ast.Eq) for op in compare.ops):
            continue
        left = compare.left
        if isinstance(left, ast.Call) and look.meaning(left.func, function) == "len":
            return True
        name = source_name(left)
        for node in walk_block(condition.body):
            if (
                isinstance(node, ast.Assign)
                and any(source_name(target) == name for target in node.targets)
                and isinstance(node.value, ast.Constant | ast.Call)
            ):
                return True
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "clear":
                return True
        if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Sub):
            return True
    name = source_name(test) if isinstance(test, ast.Name) else ""
    return bool(name) and any(
        isinstance(one, ast.BinOp) and isinstance(one.op, ast.Mod)
        for value in function.assigned.get(name, [])
        if value is not None
        for one in ast.walk(value)
    )


def _after_the_loop(look: Look, loop: ast.For | ast.AsyncFor | ast.While, function: Function) -> Hit | None:
    """Saved only after a loop that skips what is done: the loop is meant to be resumed, and cannot be."""
    skipped = _skipped(loop)
    if not skipped:
        return None
    save = next(
        (
            call
            for statement in look.after(loop, function)
            for call in _calls_in(statement)
            if _saves(look, call, function)
        ),
        None,
    )
    if save is None:
        save = next(
            (
                call
                for parent in look.module.up(loop)
                if isinstance(parent, ast.Try)
                for part in parent.finalbody
                for call in _calls_in(part)
                if _saves(look, call, function)
            ),
            None,
        )
    if save is None:
        return None
    grown = any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("add", "append", "update")
        and ast.unparse(node.func.value) in skipped
        for node in walk_block(loop.body)
    ) or any(
        isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Subscript)
        and ast.unparse(node.targets[0].value) in skipped
        for node in walk_block(loop.body)
    )
    if not grown:
        return None
    for part in loop.body:
        for call, _act in effects_in(look, part, function):
            if not _saves(look, call, function) and not cleans_up(source_name(call.func)):
                return Hit(save, f"{source_name(call.func)}()")
    return None


def _calls_in(statement: ast.stmt) -> Iterator[ast.Call]:
    for node in walk_block([statement]):
        if isinstance(node, ast.Call):
            yield node


def _skipped(loop: ast.For | ast.AsyncFor | ast.While) -> set[str]:
    """What a loop looks into to skip an item: `if x in done: continue`, or `if x not in done: ...`."""
    found: set[str] = set()
    for node in walk_block(loop.body):
        if isinstance(node, ast.If):
            for compare in ast.walk(node.test):
                if isinstance(compare, ast.Compare) and any(isinstance(op, ast.In | ast.NotIn) for op in compare.ops):
                    found |= {ast.unparse(one) for one in compare.comparators}
                if (
                    isinstance(compare, ast.Call)
                    and isinstance(compare.func, ast.Attribute)
                    and compare.func.attr == "get"
                ):
                    found.add(ast.unparse(compare.func.value))
    if isinstance(loop, ast.For):
        for comp in ast.walk(loop.iter):
            if isinstance(comp, ast.Compare) and any(isinstance(op, ast.NotIn) for op in comp.ops):
                found |= {ast.unparse(one) for one in comp.comparators}
    return found


# --- SF103 -----------------------------------------------------------------------------------------

_MEMORY_WORDS = DONE | {"seen", "already", "progress"}
_EMPTY = listed(
    "dict() list() set() collections.defaultdict() collections.OrderedDict() collections.Counter() collections.deque()"
)


def state_in_memory(look: Look) -> Iterator[Hit]:
    module = look.module.body
    for name, values in module.assigned.items():
        if (
            not set(words(name)) & _MEMORY_WORDS
            or set(words(name)) & _CACHE
            or not values
            or not all(_is_empty(look, one, module) for one in values)
        ):
            continue
        for function in look.module.functions:
            if function.binds(name) or _is_given_away(look, name):
                continue
            if _remembers(look, name, function):
                place = next(
                    (
                        node
                        for node in look.module.tree.body
                        if isinstance(node, ast.Assign | ast.AnnAssign) and _targets(node, name)
                    ),
                    look.module.tree.body[0],
                )
                yield Hit(place, name)
                break
    for owner in look.module.classes.values():
        for name, places in owner.attributes.items():
            if (
                not set(words(name)) & (DONE | {"already"})
                or set(words(name)) & _CACHE
                or not all(_is_empty(look, value, where) for value, where in places)
            ):
                continue
            if any(_saves_itself(method) for method in owner.methods.values()) or _attribute_given_away(
                look, owner.methods.values(), name
            ):
                continue
            for method in owner.methods.values():
                if _remembers(look, f"self.{name}", method) and method.short_name != "__init__":
                    yield Hit(
                        look.module.statement(places[0][0]) if places[0][0] in look.module.parents else owner.node,
                        f"self.{name}",
                    )
                    break


def _saves_itself(method: Function) -> bool:
    said = set(words(method.short_name))
    return bool(
        said & listed("save load persist dump restore checkpoint snapshot serialize to_dict getstate flush store")
    )


def _attribute_given_away(look: Look, methods: Iterable[Function], name: str) -> bool:
    for method in methods:
        for call in method.all(ast.Call):
            if look.is_log(call, method) or look.meaning(call.func, method) in ("len", "print", "str", "bool"):
                continue
            for arg in (*call.args, *(one.value for one in call.keywords)):
                if any(isinstance(node, ast.Attribute) and node.attr == name for node in ast.walk(arg)):
                    return True
        for one in method.all(ast.Return):
            if (
                one.value is not None
                and any(isinstance(node, ast.Attribute) and node.attr == name for node in ast.walk(one.value))
                and not isinstance(one.value, ast.Compare)
            ):
                return True
    return False


def _is_empty(look: Look, value: ast.expr | None, function: Function) -> bool:
    match value:
        case ast.Dict(keys=[]) | ast.List(elts=[]):
            return True
        case ast.Call(args=args):
            return f"{look.meaning(value.func, function)}()" in _EMPTY and all(
                not isinstance(one, ast.Call | ast.List | ast.Set)
                or "defaultdict" in look.meaning(value.func, function)
                for one in args
            )
        case _:
            return False


def _targets(node: ast.Assign | ast.AnnAssign, name: str) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return any(isinstance(one, ast.Name) and one.id == name for one in targets)


def _is_given_away(look: Look, name: str) -> bool:
    """Whether a name of the module goes to anything that may keep it."""
    for function in look.module.everything:
        for call in function.all(ast.Call):
            if look.is_log(call, function) or look.meaning(call.func, function) in (
                "len",
                "bool",
                "sorted",
                "enumerate",
                "any",
                "all",
                "sum",
            ):
                continue
            for arg in (*call.args, *(one.value for one in call.keywords)):
                for node in ast.walk(arg):
                    if (
                        isinstance(node, ast.Name)
                        and node.id == name
                        and not isinstance(look.module.parents.get(node), ast.Subscript | ast.Compare)
                    ):
                        return True
            if (
                isinstance(call.func, ast.Attribute)
                and source_name(call.func.value) == name
                and call.func.attr == "update"
                and call.args
                and isinstance(call.args[0], ast.Call)
            ):
                return True
        if any(
            one.value is not None
            and any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(one.value))
            for one in function.all(ast.Return)
            if not isinstance(one.value, ast.Compare)
        ):
            return True
    return False


def _remembers(look: Look, name: str, function: Function) -> bool:
    """Whether a function looks into a container, does something, and notes it there."""
    asks = any(
        isinstance(op, ast.In | ast.NotIn) and ast.unparse(one) in (name, f"{name}.keys()")
        for compare in function.all(ast.Compare)
        for op, one in zip(compare.ops, compare.comparators, strict=True)
    ) or any(
        isinstance(call.func, ast.Attribute) and call.func.attr == "get" and ast.unparse(call.func.value) == name
        for call in function.all(ast.Call)
    )
    notes = any(
        isinstance(call.func, ast.Attribute)
        and call.func.attr in ("add", "append", "update", "setdefault", "appendleft", "extend")
        and ast.unparse(call.func.value) == name
        for call in function.all(ast.Call)
    ) or any(
        isinstance(target, ast.Subscript) and ast.unparse(target.value) == name
        for node, targets in function.assignments()
        if not isinstance(node, ast.Delete)
        for target in targets
    )
    if not (asks and notes):
        return False
    return any(
        _counts(look, call, act, function)
        for part in function.node.body
        for call, act in effects_in(look, part, function)
    )


def _counts(look: Look, call: ast.Call, act: Act, function: Function) -> bool:
    return not cleans_up(source_name(call.func)) and not look.own_temporary(call, function)


# --- SF104 -----------------------------------------------------------------------------------------

_REMEMBERED = listed(
    "last since checkpoint state saved previous prev seen cursor watermark synced processed known "
    "recorded stored after run ran indexed imported backup baseline old exported resume progress"
)
_NOT_STATE = listed(
    "cache caches cached reload reloader watch watcher watching ttl expire expired expiry stale lru hot "
    "memo autoreload prune age refresh unmodified request header headers"
)


def time_as_change(look: Look) -> Iterator[Hit]:
    for function in look.module.everything:
        said = set(words(function.name)) | set(words(look.module.path.rpartition("/")[2]))
        if said & _NOT_STATE:
            continue
        for compare in function.all(ast.Compare):
            if len(compare.ops) != 1 or not isinstance(compare.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE):
                continue
            for here, there in ((compare.left, compare.comparators[0]), (compare.comparators[0], compare.left)):
                if (
                    _is_file_time(look, here, function)
                    and not _is_file_time(look, there, function)
                    and _is_remembered(look, there, function)
                ):
                    yield Hit(compare, ast.unparse(here))
                    break


def _is_file_time(look: Look, node: ast.expr, function: Function, depth: int = 0) -> bool:
    if depth > 4:
        return False
    for one in ast.walk(node):
        if isinstance(one, ast.Attribute) and one.attr in ("st_mtime", "st_mtime_ns", "st_ctime", "st_ctime_ns"):
            return not _is_about_now(look, node, function)
        if isinstance(one, ast.Call) and look.meaning(one.func, function) in ("os.path.getmtime", "os.path.getctime"):
            return not _is_about_now(look, node, function)
        if isinstance(one, ast.Name) and isinstance(node, ast.Name | ast.Call | ast.BinOp):
            values = function.assigned.get(one.id, [])
            if (
                len(values) == 1
                and values[0] is not None
                and one.id not in function.params
                and not isinstance(values[0], ast.ListComp | ast.DictComp)
                and _is_file_time(look, values[0], function, depth + 1)
            ):
                return True
        if isinstance(one, ast.Call):
            helper = look.names.called(one, function)
            if helper is not None and depth < 3:
                returned = [r.value for r in helper.all(ast.Return) if r.value is not None]
                if returned and all(_is_file_time(look, value, helper, depth + 2) for value in returned):
                    return True
    return False


def _is_about_now(look: Look, node: ast.AST, function: Function) -> bool:
    return any(
        isinstance(one, ast.Call) and is_clock(one, look.meaning(one.func, function)) for one in ast.walk(node)
    ) or any(isinstance(one, ast.Name) and "now" in words(one.id) for one in ast.walk(node))


def _is_remembered(look: Look, node: ast.expr, function: Function) -> bool:
    if _is_about_now(look, node, function):
        return False
    said: set[str] = set()
    for one in ast.walk(node):
        match one:
            case ast.Name(id=name):
                said |= set(words(name))
                values = function.assigned.get(name, [])
                if any(value is not None and _is_about_now(look, value, function) for value in values):
                    return False
                for value in values:
                    if value is not None and len(values) == 1:
                        said |= said_in(value)
            case ast.Attribute(attr=attr):
                said |= set(words(attr))
            case ast.Constant(value=str(text)):
                said |= set(words(text))
    return bool(said & _REMEMBERED) and not said & _NOT_STATE


# --- SF105 -----------------------------------------------------------------------------------------

_NOT_KEPT = listed(
    "log logs logger logging prompt prompts response responses digest report reports hash fingerprint "
    "print message messages event events html cache cached debug render display tool tools output outputs "
    "api show dumped pretty view repr format trace telemetry metric metrics sse stream websocket ws http "
    "request body signature checksum key sha256 md5 sha1 hexdigest diff compare console summary text "
    "markdown export"
)
_DUMPS = listed(
    "json.dump json.dumps orjson.dumps simplejson.dump simplejson.dumps ujson.dumps ujson.dump "
    "rapidjson.dumps msgpack.packb msgpack.dumps srsly.json_dumps"
)
_KEPT_STATE = STATE - {"completed", "processed"} | {"ckpt", "resume"}


def default_str(look: Look) -> Iterator[Hit]:
    for function in look.module.everything:
        for call in function.all(ast.Call):
            if look.meaning(call.func, function) not in _DUMPS and last(source_name(call.func)) != "to_json":
                continue
            value = next((one.value for one in call.keywords if one.arg in ("default", "default_handler")), None)
            if value is None or not _makes_text(look, value, function):
                continue
            if _is_state(look, call, function) and not _is_for_reading(look, call, function):
                yield Hit(call, ast.unparse(value))


def _makes_text(look: Look, value: ast.expr, function: Function) -> bool:
    if look.meaning(value, function) in ("str", "repr", "builtins.str", "format"):
        return True
    if isinstance(value, ast.Lambda):
        body, given = value.body, value.args.args[0].arg if value.args.args else ""
        if (
            isinstance(body, ast.Call)
            and isinstance(body.func, ast.Name)
            and body.func.id in ("str", "repr")
            and len(body.args) == 1
        ):
            return isinstance(body.args[0], ast.Name) and body.args[0].id == given
        return isinstance(body, ast.JoinedStr)
    return False


def _is_state(look: Look, call: ast.Call, function: Function) -> bool:
    said = set(words(function.short_name))
    if call.args:
        said |= said_in(call.args[0])
    statement = look.module.statement(call)
    if not isinstance(statement, ast.With | ast.AsyncWith | ast.Try | ast.For | ast.If | ast.While):
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and contains(node, call) and node is not call:
                said |= set(words(last(source_name(node.func)))) | {
                    word for arg in node.args if not contains(arg, call) for word in said_in(arg)
                }
                said |= set(words(source_name(node.func).rpartition(".")[0]))
        if isinstance(statement, ast.Assign):
            said |= {word for target in statement.targets for word in said_in(target)}
    for parent in look.module.up(call):
        if isinstance(parent, ast.With | ast.AsyncWith):
            said |= {word for item in parent.items for word in said_in(item.context_expr)}
    if len(call.args) > 1:
        said |= said_in(call.args[1])
    return bool(said & _KEPT_STATE)


def _is_for_reading(look: Look, call: ast.Call, function: Function) -> bool:
    if set(words(function.short_name)) & _NOT_KEPT or (look.retried_by(function) and False):
        return True
    if call.args and said_in(call.args[0]) & (
        _NOT_KEPT - listed("text key output outputs messages message events event tools")
    ):
        return True
    for node in look.module.up(call):
        if isinstance(node, ast.Call):
            meaning = look.meaning(node.func, function)
            if (
                look.is_log(node, function)
                or meaning.startswith(("hashlib.", "hash", "zlib.crc32", "hmac."))
                or last(meaning) in ("sha256", "md5", "len", "print")
            ):
                return True
            if set(words(last(source_name(node.func)))) & (_NOT_KEPT - {"output", "key", "format", "text", "export"}):
                return True
        if isinstance(node, ast.Return) and set(words(function.short_name)) & {"str", "describe", "preview"}:
            return True
        if isinstance(node, ast.Compare):
            return True
        if isinstance(node, ast.Assign):
            target = {word for one in node.targets for word in said_in(one)}
            if target & (_NOT_KEPT - {"text", "body", "output", "message"}):
                return True
            if isinstance(node.targets[0], ast.Name) and look.only_told(call, function):
                return True
        if isinstance(node, ast.BinOp | ast.JoinedStr) and isinstance(look.module.statement(call), ast.Return):
            return True
    return False


# --- SF106 -----------------------------------------------------------------------------------------

_LOADERS = re.compile(
    r"^(json|simplejson|orjson|ujson|pickle|cloudpickle|dill|yaml|toml|tomllib|tomli|msgpack|marshal|joblib|torch|numpy|srsly|ruamel\.yaml\.YAML\(\)|jsonpickle|msgspec\.json|shelve|cbor2|bson)\.(load|loads|safe_load|full_load|unpackb|unpack|decode|read_json|open|unsafe_load)$"
)
_LOADING = listed("load read restore get fetch resume recover open parse deserialize init")
_MISSING_ONLY = listed(
    "FileNotFoundError ModuleNotFoundError ImportError IsADirectoryError NotADirectoryError StopIteration "
    "KeyboardInterrupt asyncio.CancelledError BlockingIOError TimeoutError"
)
_STATE_NOUNS = STATE | {"completed", "done", "processed", "ledger"}


def start_fresh(look: Look) -> Iterator[Hit]:
    for function in look.module.everything:
        for tried in function.tries():
            yield from _start_fresh(look, tried, function)
        for block in function.all(ast.With):
            for item in block.items:
                dropped = _suppressed(look, item.context_expr, function)
                if dropped and not dropped <= _MISSING_ONLY and _loads_state(look, block.body, function):
                    yield Hit(item.context_expr, "")


def _suppressed(look: Look, expression: ast.expr, function: Function) -> set[str]:
    if isinstance(expression, ast.Call) and look.meaning(expression.func, function) == "contextlib.suppress":
        return {look.meaning(one, function) for one in expression.args}
    return set()


def _start_fresh(look: Look, tried: ast.Try | ast.TryStar, function: Function) -> Iterator[Hit]:
    if not _loads_state(look, tried.body, function):
        return
    for handler in tried.handlers:
        caught = look.caught(handler, function)
        if caught <= _MISSING_ONLY or not _is_unreadable(caught):
            continue
        if falls_back(look, handler, tried, function):
            yield Hit(handler, "")
            return


def _is_unreadable(caught: set[str]) -> bool:
    """Whether a handler catches what a damaged or unreadable file raises. A missing key is something else."""
    return any(
        (
            name.startswith("?") is False
            and (
                last(name)
                in (
                    "Exception",
                    "BaseException",
                    "ValueError",
                    "JSONDecodeError",
                    "UnpicklingError",
                    "PickleError",
                    "EOFError",
                    "OSError",
                    "IOError",
                    "EnvironmentError",
                    "UnicodeDecodeError",
                    "UnicodeError",
                    "YAMLError",
                    "TOMLDecodeError",
                    "PermissionError",
                    "TypeError",
                    "RuntimeError",
                    "BadZipFile",
                    "Error",
                    "DatabaseError",
                    "SQLAlchemyError",
                    "RedisError",
                    "ValidationError",
                    "AttributeError",
                    "OperationalError",
                    "ExceptionGroup",
                    "ConnectionError",
                    "ClientError",
                )
                or "orrupt" in name
                or "Decode" in name
                or "Unpack" in name
            )
        )
        or (name.startswith("?") and ("orrupt" in name or "Decode" in name))
        for name in caught
    )


def _loads_state(look: Look, body: list[ast.stmt], function: Function) -> bool:
    said = set(words(function.short_name))
    owner = set(words(function.owner.name)) if function.owner is not None else set()
    if (said | owner) & _CACHE:
        return False
    loads = [node for node in walk_block(body) if isinstance(node, ast.Call) and not look.is_log(node, function)]
    if any(
        said_in(node) & _CACHE
        for node in loads
        if _LOADERS.match(look.meaning(node.func, function))
        or opened_as(node, look.meaning(node.func, function)) is not None
    ):
        return False
    for call in loads:
        if _calls_loader(look, call, function):
            return True
    if function.short_name in ("load", "restore", "read", "from_file", "open", "resume"):
        said |= owner
    context = (
        said
        if said & (_LOADING | listed("ckpt checkpoint init start state progress")) or function.short_name == "__init__"
        else set()
    ) & _STATE_NOUNS
    for call in loads:
        meaning = look.meaning(call.func, function)
        if not _LOADERS.match(meaning) and not (
            last(meaning) in ("read_text", "read_bytes", "read")
            and meaning.startswith(("pathlib.Path()", "open()", "?"))
        ):
            continue
        if _LOADERS.match(meaning) and not _from_a_store(look, call, meaning, function, body):
            continue
        if context or _about_state(look, call, function):
            return True
    return False


def _calls_loader(look: Look, call: ast.Call, function: Function) -> bool:
    """`self.checkpoints.load_checkpoint(run)`, `ckpt.load()`, `read_state(path)`."""
    shown = source_name(call.func)
    receiver, _, name = shown.rpartition(".")
    said = words(name)
    if (
        not said
        or set(said) & _CACHE
        or look.meaning(call.func, function).startswith(("surefoot.", "torch."))
        or "dict" in said
    ):
        return False
    verb = next((word for word in said if word not in ("async", "try", "maybe", "a", "aload")), "")
    if verb in ("load", "read", "restore", "resume", "recover", "fetch") and set(said[1:]) & (_STATE_NOUNS - {"done"}):
        return True
    if verb == "get" and set(said[1:]) & {"checkpoint", "checkpoints", "progress", "snapshot"} and "status" not in said:
        return True
    if name in (
        "load",
        "read",
        "restore",
        "aload",
        "load_latest",
        "latest",
        "aget",
        "aget_tuple",
        "get_tuple",
        "load_from_file",
        "from_file",
        "model_validate_json",
        "from_json",
    ):
        by = set(words(last(receiver)))
        if name in ("model_validate_json", "from_json"):
            return bool(by & _STATE_NOUNS) and _reads_something(look, call, function)
        return bool(by & (STATE - {"state"} | {"checkpointer", "saver"})) or (bool(by & {"state"}) and name == "load")
    return False


def _reads_something(look: Look, call: ast.Call, function: Function) -> bool:
    return any(
        isinstance(node, ast.Call)
        and last(look.meaning(node.func, function)) in ("read_text", "read_bytes", "read", "get")
        for arg in call.args
        for node in ast.walk(arg)
    )


def _from_a_store(look: Look, call: ast.Call, meaning: str, function: Function, body: list[ast.stmt]) -> bool:
    """Whether what is parsed comes from a file or a store. A text that was handed in may come from a model."""
    if not call.args:
        return True
    source = call.args[0]
    if last(meaning) in ("load", "safe_load", "open", "full_load") and "loads" not in meaning:
        opened = look.meaning(source, function)
        if (
            not meaning.startswith(("yaml", "ruamel"))
            or opened.startswith(("open()", "pathlib.Path().open"))
            or "open" in opened
        ):
            return not (isinstance(source, ast.Name) and source.id in function.params and meaning.startswith("yaml"))
    for node in ast.walk(source):
        if isinstance(node, ast.Call):
            return True
        if isinstance(node, ast.Name):
            here: Function | None = function
            while here is not None:
                values = here.assigned.get(node.id)
                if values and any(
                    value is None
                    or any(isinstance(one, ast.Call | ast.Subscript | ast.Await) for one in ast.walk(value))
                    for value in values
                ):
                    return True
                here = here.outer
        if isinstance(node, ast.Subscript) and not (
            isinstance(node.value, ast.Name) and node.value.id in function.params and "row" not in words(node.value.id)
        ):
            return True
    return False


def _about_state(look: Look, call: ast.Call, function: Function) -> bool:
    """Whether the path, the key or the variable of a load speaks of state."""
    found: set[str] = set()
    for arg in call.args:
        found |= said_in(arg)
        for node in ast.walk(arg):
            if isinstance(node, ast.Name):
                for value in function.assigned.get(node.id, []):
                    if value is not None and not isinstance(value, ast.Subscript):
                        found |= said_in(value)
    if isinstance(call.func, ast.Attribute):
        found |= said_in(call.func.value)
    statement = look.module.statement(call)
    if isinstance(statement, ast.Assign):
        found |= {word for target in statement.targets for word in said_in(target)}
    for parent in look.module.up(call):
        if isinstance(parent, ast.With | ast.AsyncWith):
            found |= {word for item in parent.items for word in said_in(item.context_expr)}
    if found & listed("fetchone fetchall fetch execute conn connection"):
        found.discard("cursor")  # That of a database is no place in a list.
    return bool(found & (STATE | {"completed", "done"})) and not found & (
        _CACHE | {"model", "llm", "response", "reply", "dict"}
    )


def falls_back(look: Look, handler: ast.ExceptHandler, tried: ast.Try | ast.TryStar, function: Function) -> bool:
    """Whether a handler goes on with nothing instead: no error, nothing set aside, nothing older tried."""
    body = handler.body
    if look.gives_up(body, function):
        return False
    for node in walk_block(body):
        if not isinstance(node, ast.Call) or look.is_log(node, function):
            continue
        name = last(source_name(node.func))
        said = set(words(name))
        if name in ("rename", "replace", "renames") or said & listed(
            "move copy copy2 copyfile backup quarantine archive aside older previous fallback recover "
            "restore salvage repair"
        ):
            return False
        if said & {"load", "read", "loads", "bak"} or (look.names.called(node, function) is function):
            return False
        if opened_as(node, look.meaning(node.func, function)) is not None:
            return False
    if any(
        isinstance(node, ast.Assign)
        and any(said_in(target) & listed("error failed corrupt damaged invalid broken") for target in node.targets)
        for node in walk_block(body)
    ):
        return False
    end = body[-1]
    if isinstance(end, ast.Return):
        return _is_nothing(look, end.value, function)
    if isinstance(end, ast.Continue | ast.Break):
        return isinstance(end, ast.Break)
    if any(isinstance(node, ast.Assign) and not _is_nothing(look, node.value, function) for node in body):
        return False
    following = list(look.after(tried, function))
    if following and isinstance(following[-1], ast.Raise):
        return False
    if any(
        isinstance(parent, LOOPS) and isinstance(parent, ast.For | ast.AsyncFor) for parent in look.module.up(tried)
    ) and any(isinstance(node, ast.Return | ast.Break) for node in walk_block([*tried.body, *tried.orelse])):
        return False  # The next one is tried.
    return not any(
        isinstance(one, ast.Try | ast.TryStar) and _loads_state(look, one.body, function) for one in following
    )


def _is_nothing(look: Look, value: ast.expr | None, function: Function) -> bool:
    """An empty value, or one that is made anew: `{}`, `None`, `set()`, `State()`."""
    match value:
        case None | ast.Constant() | ast.Dict() | ast.List() | ast.Set() | ast.Tuple() | ast.Name() | ast.Attribute():
            return not (isinstance(value, ast.Constant) and isinstance(value.value, str) and value.value)
        case ast.Call():
            said = set(words(last(source_name(value.func))))
            return not said & listed("load read backup previous older recover restore")
        case ast.Subscript() | ast.BinOp() | ast.BoolOp() | ast.IfExp():
            return True
        case _:
            return True


# --- SF107 -----------------------------------------------------------------------------------------


def id_anew(look: Look) -> Iterator[Hit]:
    if look.module.settings.demo:
        return
    for function in look.module.everything:
        for call in function.all(ast.Call):
            yield from _started_anew(look, call, function)
            yield from _loaded_anew(look, call, function)
        if "langgraph" in look.module.packages or any(one.startswith("langchain") for one in look.module.packages):
            yield from _threads_anew(look, function)


def _started_anew(look: Look, call: ast.Call, function: Function) -> Iterator[Hit]:
    name = last(source_name(call.func))
    if (
        name in ("run", "start")
        and isinstance(call.func, ast.Attribute)
        and _is_workflow(look, call.func.value, function)
    ):
        given = (
            call.args[0]
            if call.args
            else next((one.value for one in call.keywords if one.arg in ("id", "run_id")), None)
        )
        if given is not None and look.fresh(given, function) and not _is_kept(look, given, call, function):
            yield Hit(call, ast.unparse(given))
        return
    meaning = look.meaning(call.func, function)
    if (
        meaning in ("surefoot.Checkpoint", "surefoot.aio.Checkpoint")
        and call.args
        and look.fresh(call.args[0], function)
        and not _is_kept(look, call.args[0], call, function)
    ):
        yield Hit(call, ast.unparse(call.args[0]))
        return
    if "temporalio" in look.module.packages and name in ("start_workflow", "execute_workflow", "signal_with_start"):
        given = next((one.value for one in call.keywords if one.arg == "id"), None)
        loop = look.retry_loop(call, function)
        if (
            given is not None
            and look.fresh(given, function)
            and (look.retried_by(function) or (loop is not None and _made_within(look, given, loop, function)))
        ):
            yield Hit(call, ast.unparse(given), preview=True)


def _is_workflow(look: Look, node: ast.expr, function: Function) -> bool:
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "using":
        node = node.func.value
    called = look.names.local(look.meaning(node, function))
    if called is not None:
        return look.roles.of.get(called) is Role.WORKFLOW
    meaning = look.meaning(node, function)
    if meaning.startswith(("?", ":")) or "surefoot" not in look.module.packages or "()" in meaning:
        return False
    root = meaning.lstrip(".").partition(".")[0]
    return root not in (
        "asyncio",
        "subprocess",
        "uvicorn",
        "anyio",
        "trio",
        "mlflow",
        "wandb",
        "surefoot",
        "threading",
        "asyncio",
    )


def _loaded_anew(look: Look, call: ast.Call, function: Function) -> Iterator[Hit]:
    """Something is looked up under an id that nobody can have used before."""
    said = words(last(source_name(call.func)))
    if not said or said[0] not in ("load", "resume", "restore", "recover") or not call.args:
        return
    if not (
        set(said[1:]) & (STATE | {"run", "workflow", "session", "thread"})
        or set(words(last(source_name(call.func).rpartition(".")[0]))) & STATE
    ):
        return
    for given in (*call.args, *(one.value for one in call.keywords if one.arg and words(one.arg)[-1] == "id")):
        if look.fresh(given, function) and (
            not isinstance(given, ast.Name) or "id" in words(given.id) or set(words(given.id)) & {"name", "key", "run"}
        ):
            yield Hit(call, ast.unparse(given))
            return


def _threads_anew(look: Look, function: Function) -> Iterator[Hit]:
    for made in function.all(ast.Dict):
        for key, value in zip(made.keys, made.values, strict=True):
            if (
                isinstance(key, ast.Constant)
                and key.value == "thread_id"
                and look.fresh(value, function)
                and not _is_kept(look, value, made, function)
                and _is_invoked(look, made, function)
            ):
                yield Hit(value, ast.unparse(value), preview=True)
    for call in function.all(ast.Call):
        for one in call.keywords:
            if (
                one.arg == "thread_id"
                and look.fresh(one.value, function)
                and not _is_kept(look, one.value, call, function)
                and last(source_name(call.func)) in ("dict", "RunnableConfig")
            ):
                yield Hit(one.value, ast.unparse(one.value), preview=True)


def _is_invoked(look: Look, made: ast.Dict, function: Function) -> bool:
    """Whether a graph is run with it here, and the configuration itself goes nowhere else."""
    statement = look.module.statement(made)
    if isinstance(statement, ast.Return):
        return any(
            isinstance(node, ast.Call) and last(source_name(node.func)) in ("invoke", "ainvoke", "stream", "astream")
            for node in ast.walk(statement)
        )
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
        name = statement.targets[0].id
        for used in look.uses(name, function):
            parent = look.module.parents.get(used)
            if isinstance(parent, ast.Return | ast.Tuple | ast.Dict | ast.Assign):
                return False
            if isinstance(parent, ast.Subscript) and not _inside_call(look, used):
                return False
            if isinstance(parent, ast.Subscript) and _inside_log(look, used, function):
                return False
    return not (isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Attribute | ast.Subscript))


def _inside_call(look: Look, node: ast.AST) -> bool:
    return any(isinstance(parent, ast.Call) for parent in look.module.up(node))


def _inside_log(look: Look, node: ast.AST, function: Function) -> bool:
    return any(isinstance(parent, ast.Call) and look.is_log(parent, function) for parent in look.module.up(node))


def _is_kept(look: Look, given: ast.expr, call: ast.AST, function: Function) -> bool:
    """Whether somebody learns the id: returned, printed, logged, stored, or given on."""
    names = (
        {given.id}
        if isinstance(given, ast.Name)
        else {
            node.id
            for node in ast.walk(given)
            if isinstance(node, ast.Name) and node.id in function.assigned and look.fresh(node, function)
        }
    )
    walrus = next(
        (
            node.target.id
            for node in ast.walk(given)
            if isinstance(node, ast.NamedExpr) and isinstance(node.target, ast.Name)
        ),
        None,
    )
    if walrus:
        names.add(walrus)
    todo, seen = list(names), set(names)
    while todo:
        name = todo.pop()
        if name in function.outside:
            return True
        for used in look.uses(name, function):
            if contains(call, used):
                continue
            for parent in look.module.up(used):
                if isinstance(parent, ast.Return | ast.Yield | ast.Raise):
                    value = parent.value if isinstance(parent, ast.Return | ast.Yield) else parent
                    if not (isinstance(parent, ast.Return) and contains(parent, call) and value is call):
                        return True
                if isinstance(parent, ast.Call) and not contains(parent, call) and parent is not call:
                    meaning = look.meaning(parent.func, function)
                    if meaning not in ("str", "int", "len", "format", "repr"):
                        return True
                if isinstance(parent, ast.Assign):
                    target = parent.targets[0]
                    if isinstance(target, ast.Attribute | ast.Subscript):
                        return True
                    if isinstance(target, ast.Name) and target.id not in seen and not contains(parent, call):
                        seen.add(target.id)
                        todo.append(target.id)
                if (
                    isinstance(parent, ast.Dict)
                    and not contains(parent, call)
                    and isinstance(look.module.statement(parent), ast.Return)
                ):
                    return True
    if function.name == "" and any(
        name in used.outside or not used.binds(name)
        for name in names
        for used in look.module.functions
        if look.uses(name, used)
    ):
        return True
    statement = look.module.statement(call)
    if isinstance(call, ast.Call) and last(source_name(call.func)) == "start":
        if isinstance(statement, ast.Return | ast.Assign) and _unwrapped(statement.value) is call:
            return (
                isinstance(statement, ast.Return)
                or isinstance(statement.targets[0], ast.Attribute | ast.Subscript)
                or any(look.uses(one.id, function) for one in statement.targets if isinstance(one, ast.Name))
            )
        return any(isinstance(parent, ast.Attribute) and parent.attr == "id" for parent in look.module.up(call))
    if (
        isinstance(call, ast.Call)
        and isinstance(statement, ast.Return | ast.Assign)
        and last(source_name(call.func)) == "Checkpoint"
    ):
        return False
    return False


def _unwrapped(value: ast.expr | None) -> ast.expr | None:
    return value.value if isinstance(value, ast.Await) else value


# --- SF108 -----------------------------------------------------------------------------------------

_KEY_NAMES = re.compile(
    r"idempot|client_?(request_?)?token|dedup(lication)?_?id|request_?token|^idem_?key$|^x-request-id$|insert_?id$",
    re.IGNORECASE,
)


def key_anew(look: Look) -> Iterator[Hit]:
    for function in look.module.functions:
        for value, place in _keys(look, function):
            if not look.fresh(value, function):
                continue
            if _is_repeated(look, value, place, function):
                yield Hit(value if hasattr(value, "lineno") else place, ast.unparse(value))


def _keys(look: Look, function: Function) -> Iterator[tuple[ast.expr, ast.AST]]:
    """The values that are given as idempotency keys."""
    for call in function.all(ast.Call):
        for one in call.keywords:
            if one.arg and _KEY_NAMES.search(one.arg):
                yield one.value, call
        if (
            last(source_name(call.func)) in ("setdefault", "add_header", "__setitem__", "add")
            and len(call.args) == 2
            and _is_key_name(call.args[0])
        ):
            yield call.args[1], call
    for made in function.all(ast.Dict):
        for key, value in zip(made.keys, made.values, strict=True):
            if key is not None and _is_key_name(key):
                yield value, made
    for assign in function.all(ast.Assign):
        for target in assign.targets:
            if isinstance(target, ast.Subscript) and _is_key_name(target.slice):
                yield assign.value, assign
    for pair in function.all(ast.Tuple):
        if len(pair.elts) == 2 and _is_key_name(pair.elts[0]):
            yield pair.elts[1], pair


def _is_key_name(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return bool(_KEY_NAMES.search(node.value))
    return isinstance(node, ast.Name | ast.Attribute) and bool(
        _KEY_NAMES.search(node.id if isinstance(node, ast.Name) else node.attr)
    )


def _is_repeated(look: Look, value: ast.expr, place: ast.AST, function: Function) -> bool:
    """Whether the making of the key is done again with each attempt."""
    loop = look.retry_loop(place, function)
    if loop is not None and _made_within(look, value, loop, function):
        return True
    loop = look.retry_loop(_origin(look, value, function), function)
    if loop is not None:
        return True
    here: Function | None = function
    while here is not None and here.outer is not None:
        if look.retried_by(here) or _is_tried_again(look, here):
            return True
        here = here.outer
    return _called_again(look, function)


def _is_tried_again(look: Look, function: Function) -> bool:
    role = look.roles.of.get(function)
    if role in (Role.STEP, Role.EFFECT, Role.ACTIVITY):
        return True
    return role is Role.DBOS_STEP and look.roles.option(function, "retries_allowed") is not None


def _called_again(look: Look, function: Function) -> bool:
    """A helper of what is tried again makes the key each time."""
    for caller in look.module.functions:
        if caller is function:
            continue
        for call in caller.all(ast.Call):
            if look.names.called(call, caller) is function and (
                look.retried_by(caller) or _is_tried_again(look, caller) or look.retry_loop(call, caller) is not None
            ):
                return True
    return False


def _origin(look: Look, value: ast.expr, function: Function) -> ast.AST:
    if isinstance(value, ast.Name):
        values = function.assigned.get(value.id, [])
        if len(values) == 1 and values[0] is not None:
            return values[0]
    return value


def _made_within(look: Look, value: ast.expr, loop: ast.AST, function: Function) -> bool:
    for node in ast.walk(value):
        if isinstance(node, ast.Name) and node.id in function.assigned:
            values = function.assigned[node.id]
            if len(values) == 1 and values[0] is not None:
                return contains(loop, values[0])
    return contains(loop, value)


# --- SF109 -----------------------------------------------------------------------------------------

_NOT_TORN = listed(
    "tmp temp temporary partial part new tempfile swap scratch cache cached config configs settings "
    "report reports log logs lock pid dict statement"
)
_WRITERS = listed(
    "save store write dump persist flush record update checkpoint sync serialize export put mark set commit"
)
_TORN_STATE = listed(
    "checkpoint checkpoints ckpt ckpts state states progress snapshot resume cursor watermark bookmark"
)


def torn_write(look: Look) -> Iterator[Hit]:
    for function in look.module.everything:
        for call in function.all(ast.Call):
            path = _written_in_place(look, call, function)
            if path is None or not _speaks_of_state(look, path, call, function) or _is_atomic(look, function):
                continue
            yield Hit(call, ast.unparse(path))


def _written_in_place(look: Look, call: ast.Call, function: Function) -> ast.expr | None:
    """The path that a call truncates and writes, if it does."""
    meaning = look.meaning(call.func, function)
    name = last(meaning)
    mode = opened_as(call, meaning)
    if mode is not None:
        if not set(mode) & set("w+") or "a" in mode or "x" in mode or ("+" in mode and "w" not in mode):
            return None
        if meaning.startswith(("zipfile", "tarfile", "shelve")):
            return None
        if meaning == "open":
            return call.args[0] if call.args else next((one.value for one in call.keywords if one.arg == "file"), None)
        return call.func.value if isinstance(call.func, ast.Attribute) else None
    if name in ("write_text", "write_bytes") and isinstance(call.func, ast.Attribute):
        return call.func.value
    if meaning in ("joblib.dump", "numpy.save") and len(call.args) > 1:
        return call.args[1] if meaning == "joblib.dump" else call.args[0]
    return None


def _speaks_of_state(look: Look, path: ast.expr, call: ast.Call, function: Function) -> bool:
    said = _path_words(look, path, function)
    if said & _NOT_TORN:
        return False
    name = words(function.short_name)
    if said & _TORN_STATE:
        return not (set(name) & {"config", "settings", "report", "cache", "test"})
    if set(name) & _NOT_TORN or set(name) & listed("test html plot figure template reply page schema diagram machine"):
        return False
    nouns = set(name) & _TORN_STATE
    if not nouns or not (set(name) & _WRITERS):
        return False
    return len(name) <= 4 and name[0] != "load"


def _path_words(look: Look, path: ast.expr, function: Function) -> set[str]:
    said = said_in(path)
    for node in ast.walk(path):
        if isinstance(node, ast.Name):
            here: Function | None = function
            while here is not None:
                values = here.assigned.get(node.id)
                if values:
                    said |= {word for value in values if value is not None for word in _text_words(value)}
                    break
                here = here.outer
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and function.owner is not None
            and node.value.id == next(iter(function.params), "")
        ):
            for value, _ in function.owner.attributes.get(node.attr, []):
                said |= _text_words(value)
    return said


def _text_words(value: ast.expr) -> set[str]:
    """Words of the texts of a value, and of its names where it is put together from names."""
    return {
        word
        for node in ast.walk(value)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for word in words(node.value)
    } | (said_in(value) if isinstance(value, ast.BinOp | ast.Attribute | ast.JoinedStr | ast.Name) else set())


def _is_atomic(look: Look, function: Function) -> bool:
    """Whether a function writes beside the file and renames, or has somebody do so."""
    for call in function.all(ast.Call):
        meaning = look.meaning(call.func, function)
        name = last(meaning)
        if meaning in ("os.replace", "os.rename", "shutil.move", "os.link", "os.renames") or meaning.startswith(
            "tempfile."
        ):
            return True
        if (
            name in ("rename", "replace")
            and isinstance(call.func, ast.Attribute)
            and len(call.args) == 1
            and not meaning.startswith("str()")
        ):
            return True
        if "atomic" in words(source_name(call.func)) or "atomic" in source_name(call.func).lower():
            return True
    return "atomic" in words(function.short_name) or "tmp" in words(function.short_name)


# --- SF110 -----------------------------------------------------------------------------------------


def save_error_swallowed(look: Look) -> Iterator[Hit]:
    for function in look.module.everything:
        for tried in function.tries():
            if not _tries_to_save(look, tried.body, function):
                continue
            for handler in tried.handlers:
                if _goes_on(look, handler, tried, function):
                    yield Hit(handler, "")
                    break
        for block in function.withs():
            for item in block.items:
                if _suppressed(look, item.context_expr, function) - {"FileExistsError"} and _tries_to_save(
                    look, block.body, function
                ):
                    yield Hit(item.context_expr, "")


def _tries_to_save(look: Look, body: list[ast.stmt], function: Function) -> bool:
    for node in walk_block(body):
        if not isinstance(node, ast.Call):
            continue
        if is_save(look, node, function) and not _is_one_of_many(node, body):
            return True
        path = _written_in_place(look, node, function)
        if path is not None and _speaks_of_state(look, path, node, function):
            return True
        if (
            look.meaning(node.func, function) in ("os.replace", "os.rename")
            and set(words(function.short_name)) & _TORN_STATE
            and set(words(function.short_name)) & _WRITERS
        ):
            return True
    return False


def _is_one_of_many(node: ast.Call, body: list[ast.stmt]) -> bool:
    """A `try` around the whole work is about the work: its handler is no answer to the save alone."""
    calls = [one for one in walk_block(body) if isinstance(one, ast.Call)]
    statements = sum(1 for one in walk_block(body) if isinstance(one, ast.stmt))
    return statements > 8 or (len(calls) > 8 and statements > 6)


def _goes_on(look: Look, handler: ast.ExceptHandler, tried: ast.Try | ast.TryStar, function: Function) -> bool:
    body = handler.body
    caught = look.caught(handler, function)
    if caught and caught <= listed(
        "FileExistsError KeyboardInterrupt asyncio.CancelledError KeyError StopIteration ImportError AttributeError"
    ):
        return False
    if any("Interrupt" in one or "Cancelled" in one for one in caught):
        return False
    if look.gives_up(body, function):
        return False
    for node in walk_block(body):
        if isinstance(node, ast.Call) and not look.is_log(node, function):
            said = set(words(last(source_name(node.func))))
            if is_save(look, node, function) or said & listed(
                "save write store persist retry rollback stop cancel shutdown fail raise backup put "
                "enqueue handle set terminate close"
            ):
                return False
            if opened_as(node, look.meaning(node.func, function)) is not None:
                return False
        if isinstance(node, ast.Break):
            return False
        if isinstance(node, ast.Return) and (
            node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None)
        ):
            return False
        if isinstance(node, ast.Return) and look.loops_around(tried):
            return False
        if isinstance(node, ast.Assign) and (
            not isinstance(node.targets[0], ast.Name) or isinstance(node.value, ast.Constant | ast.Name)
        ):
            return False
        if isinstance(node, ast.Assign | ast.AugAssign) and not isinstance(node, ast.Assign):
            return False
    if any(
        isinstance(node, ast.Return | ast.Break) for node in walk_block([*tried.body, *tried.orelse])
    ) and look.loops_around(tried):
        return False  # Tried again.
    return not (look.loops_around(tried) and isinstance(body[-1], ast.Continue) and False)


# --- SF111 -----------------------------------------------------------------------------------------

_OFF = re.compile(
    r"PRAGMA\s+(?:\w+\.)?synchronous\s*[=(]\s*['\"]?(?:OFF|0)\b|PRAGMA\s+(?:\w+\.)?journal_mode\s*[=(]\s*['\"]?(?:OFF|MEMORY)\b"
    r"|synchronous_commit\s*(?:=|TO)\s*['\"]?(?:off|false|0)\b|\bfsync\s*(?:=|TO)\s*['\"]?off\b|full_page_writes\s*(?:=|TO)\s*['\"]?off\b"
    r"|appendfsync\s+no\b|appendonly\s+no\b|innodb_flush_log_at_trx_commit\s*=\s*[02]|\bSET\s+UNLOGGED\b|CREATE\s+UNLOGGED\s+TABLE",
    re.IGNORECASE,
)
_SCRATCH = listed(
    "cache cached caches bench benchmark benchmarks scratch temp tmp test tests temporary memory fixture throwaway"
)


def durability_off(look: Look) -> Iterator[Hit]:
    if set(words(look.module.path.rpartition("/")[2])) & _SCRATCH:
        return
    for function in look.module.everything:
        said = set(words(function.name))
        if said & _SCRATCH:
            continue
        in_memory = any(one.value == ":memory:" for one in function.all(ast.Constant) if isinstance(one.value, str))
        for text in function.all(ast.Constant):
            if (
                isinstance(text.value, str)
                and (found := _OFF.search(text.value))
                and not in_memory
                and _is_used(look, text)
            ):
                yield Hit(text, found[0])
        for made in function.all(ast.Dict):
            for key, value in zip(made.keys, made.values, strict=True):
                if (
                    isinstance(key, ast.Constant)
                    and isinstance(value, ast.Constant)
                    and _is_off(str(key.value).lower(), value.value)
                    and not in_memory
                ):
                    yield Hit(value, f"{key.value!s} = {value.value!s}")
        for call in function.all(ast.Call):
            yield from _switched_off(look, call, function)


def _is_used(look: Look, text: ast.Constant) -> bool:
    """A docstring, or a word that is compared, switches nothing off."""
    return not isinstance(look.module.parents.get(text), ast.Expr | ast.Compare) and not any(
        isinstance(parent, ast.Raise)
        or (
            isinstance(parent, ast.Call)
            and last(source_name(parent.func))
            in ("compile", "warning", "info", "error", "debug", "print", "search", "match")
        )
        for parent in look.module.up(text)
    )


def _is_off(key: str, value: object) -> bool:
    said = str(value).lower()
    return (
        (key == "synchronous" and said in ("off", "0"))
        or (key in ("synchronous_commit", "fsync", "full_page_writes") and said in ("off", "false", "0"))
        or (key == "appendfsync" and said == "no")
        or (key == "journal_mode" and said == "off")
    )


def _switched_off(look: Look, call: ast.Call, function: Function) -> Iterator[Hit]:
    name = last(source_name(call.func))
    given = [one.value if isinstance(one, ast.Constant) else None for one in call.args]
    if name == "config_set" and len(given) == 2 and given in (["appendfsync", "no"], ["appendonly", "no"]):
        yield Hit(call, f"{given[0]!s} {given[1]!s}")
    elif look.meaning(call.func, function) in ("lmdb.open", "lmdb.Environment") or name == "WriteConcern":
        for one in call.keywords:
            if isinstance(one.value, ast.Constant) and (
                (one.arg == "sync" and one.value.value is False)
                or (one.arg == "w" and one.value.value == 0 and not isinstance(one.value.value, bool))
            ):
                yield Hit(call, f"{one.arg}={one.value.value!s}")
    elif name in ("pragma", "set_pragma") and len(given) == 2 and _is_off(str(given[0]).lower(), given[1]):
        yield Hit(call, f"{given[0]!s} = {given[1]!s}")


# --- SF112 -----------------------------------------------------------------------------------------

_READING = listed(
    "get list read fetch find search query lookup load check is has count describe ping poll wait "
    "download login authenticate connect test validate verify predict complete generate embed ask chat "
    "summarize summarise classify translate"
)


def retry_without_key(look: Look) -> Iterator[Hit]:
    for function in look.module.functions:
        if look.roles.of.get(function) is not None and look.roles.of[function] is not Role.OTHER:
            continue
        if look.speaks_of_keys(function):
            continue
        name = words(function.short_name)
        if look.retried_by(function):
            yield from _sent_again(look, function, name)
            continue
        seen = False
        for call in function.all(ast.Call):
            if not seen and look.retry_loop(call, function) is not None and _sends(look, call, function):
                seen = True
                yield Hit(call, f"{source_name(call.func)}()")
        yield from _handed_to_a_retrier(look, function)
    yield from _handed_to_a_retrier(look, look.module.body)


def _sent_again(look: Look, function: Function, name: tuple[str, ...]) -> Iterator[Hit]:
    for call in function.all(ast.Call):
        if _sends(look, call, function):
            yield Hit(call, f"{source_name(call.func)}()")
            return
    for call in function.all(ast.Call):
        helper = look.names.called(call, function)
        if helper is not None and helper not in look.roles.of and not look.speaks_of_keys(helper):
            for inner in helper.all(ast.Call):
                if _sends(look, inner, helper):
                    yield Hit(call, f"{source_name(inner.func)}()", (function.short_name, helper.short_name))
                    return
    if (
        speaks_of_an_effect(function.short_name)
        and not _asks_a_model_by_name(look, function)
        and name[0] not in _READING
        and name[0]
        not in ("delete", "upload", "write", "cancel", "save", "update", "drop", "revoke", "grant", "remove", "export")
        and _does_something(look, function)
    ):
        yield Hit(function.node, f"{function.short_name}()")


def _does_something(look: Look, function: Function) -> bool:
    """By its name alone a function counts only if it calls something unknown, and writes no file or reads only."""
    calls = [call for call in function.all(ast.Call) if not look.is_log(call, function)]
    http = [call for call in calls if (act := look.vocabulary.act(call, function)) is not None and act.certain]
    return bool(calls) and not http


def _asks_a_model_by_name(look: Look, function: Function) -> bool:
    said = set(words(function.name)) | {word for name in function.params for word in words(name)}
    return bool(said & listed("prompt prompts llm completion embedding embeddings model chat messages"))


def _sends(look: Look, call: ast.Call, function: Function) -> bool:
    act = look.vocabulary.act(call, function)
    if act is None or act.kind != "change" or not act.sends or look.is_log(call, function):
        return False
    if act.certain and opened_as(call, look.meaning(call.func, function)) is not None:
        return False
    said = words(last(source_name(call.func)))
    if not act.certain:
        if said and (
            said[0]
            in (
                "delete",
                "upload",
                "write",
                "cancel",
                "save",
                "update",
                "drop",
                "revoke",
                "grant",
                "remove",
                "export",
                "append",
                "insert",
            )
        ):
            return False
        return not _asks_a_model_by_name(look, function)
    if look.meaning(call.func, function).startswith("?") and function.params and _asks_a_model_by_name(look, function):
        return False
    return not (words(function.short_name)[:1] and words(function.short_name)[0] in _READING)


def _handed_to_a_retrier(look: Look, function: Function) -> Iterator[Hit]:
    """`retry_call(send_invoice, ...)`, `with_retries(lambda: requests.post(...))`, `retry(requests.post)(url)`."""
    for call in function.all(ast.Call):
        said = set(words(last(source_name(call.func))))
        meaning = look.meaning(call.func, function)
        if meaning.startswith(("surefoot.", "temporalio.", "dbos.")) or not said & listed(
            "retry retries retrying retrier backoff resilient"
        ):
            continue
        for value in call.args:
            if isinstance(value, ast.Lambda) and not re.search("idempot", ast.unparse(value), re.IGNORECASE):
                if any(isinstance(node, ast.Call) and _sends(look, node, function) for node in ast.walk(value)):
                    yield Hit(call, f"{source_name(call.func)}()")
            elif isinstance(value, ast.Name | ast.Attribute):
                if look.meaning(value, function) in (
                    "requests.post",
                    "httpx.post",
                    "requests.Session().post",
                    "httpx.Client().post",
                    "httpx.AsyncClient().post",
                    "stripe.Charge.create",
                    "stripe.PaymentIntent.create",
                ) and not any("idempot" in ast.unparse(one).lower() for one in (*call.args, *call.keywords)):
                    yield Hit(call, f"{source_name(value)}()")
                    continue
                helper = look.names.local(look.meaning(value, function))
                if (
                    helper is not None
                    and helper not in look.roles.of
                    and not look.speaks_of_keys(helper)
                    and not look.retried_by(helper)
                    and any(_sends(look, inner, helper) for inner in helper.all(ast.Call))
                ):
                    yield Hit(call, f"{helper.short_name}()")


RULES: tuple[Rule, ...] = (
    rule("SF101", done_before_effect),
    rule("SF102", coarse_checkpoint),
    rule("SF103", state_in_memory),
    rule("SF104", time_as_change),
    rule("SF105", default_str),
    rule("SF106", start_fresh),
    rule("SF107", id_anew),
    rule("SF108", key_anew),
    rule("SF109", torn_write),
    rule("SF110", save_error_swallowed),
    rule("SF111", durability_off),
    rule("SF112", retry_without_key),
)
