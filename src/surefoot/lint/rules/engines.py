"""SF5: Temporal and DBOS. Their workflows are replayed; their activities are tried again for ever unless told otherwise."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from surefoot.lint.flow import Look
from surefoot.lint.module import Function
from surefoot.lint.names import last, listed
from surefoot.lint.roles import Reached, Role
from surefoot.lint.rule import Hit, Rule
from surefoot.lint.rules.declared import deeds
from surefoot.lint.rules.replay import environment, is_yield
from surefoot.lint.rules.texts import rule
from surefoot.lint.vocabulary import SLEEP, TASKS, THREADS, is_chance, is_clock, source_name

_TEMPORAL_LETS = listed(
    "asyncio.sleep asyncio.gather asyncio.create_task asyncio.ensure_future asyncio.TaskGroup "
    "asyncio.Task asyncio.tasks.gather"
)


def _workflows(look: Look) -> Iterator[tuple[Role, Reached]]:
    seen: set[Function] = set()
    for declared in look.roles.having(Role.TEMPORAL_WORKFLOW, Role.DBOS_WORKFLOW):
        for one in look.roles.reach(declared):
            if one.function not in seen:
                seen.add(one.function)
                yield look.roles.of[declared], one


def not_the_same(look: Look) -> Iterator[Hit]:
    for role, at in _workflows(look):
        for call in at.function.all(ast.Call):
            meaning = look.meaning(call.func, at.function)
            if look.roles.is_outside(call, at.function) or not _differs(role, call, meaning):
                continue
            if look.only_told(call, at.function) and (is_clock(call, meaning) or is_chance(call, meaning)):
                continue
            yield Hit(call, f"{source_name(call.func)}()", at.via)


def _differs(role: Role, call: ast.Call, meaning: str) -> bool:
    if meaning.endswith((".time", ".run_in_executor")) and meaning.startswith("asyncio.get_"):
        # The loop of Temporal has the workflow's time; it has no threads.
        return role is Role.DBOS_WORKFLOW or meaning.endswith("run_in_executor")
    if is_clock(call, meaning) or is_chance(call, meaning):
        return meaning != "id"
    if role is Role.TEMPORAL_WORKFLOW and meaning in _TEMPORAL_LETS:
        return False
    if meaning in SLEEP:
        return not is_yield(call)
    return meaning in THREADS | TASKS or meaning in (
        "asyncio.to_thread",
        "?loop.run_in_executor",
        "asyncio.to_thread()",
    )


def world(look: Look) -> Iterator[Hit]:
    for _, at in _workflows(look):
        for call in at.function.all(ast.Call):
            act = look.vocabulary.certain(call, at.function)
            if act is not None and not look.roles.is_outside(call, at.function):
                meaning = look.meaning(call.func, at.function)
                if (
                    act.kind == "read"
                    and look.only_told(call, at.function)
                    and meaning in ("os.getpid", "socket.gethostname")
                ):
                    continue
                yield Hit(call, f"{source_name(call.func)}()", at.via)
        yield from environment(look, at)


def sends_without_key(look: Look) -> Iterator[Hit]:
    seen: set[ast.AST] = set()
    for declared in look.roles.having(Role.ACTIVITY, Role.DBOS_STEP):
        if look.roles.of[declared] is Role.DBOS_STEP and not _is_retried(look, declared):
            continue
        if _tried_once(look, declared):
            continue
        reach = look.roles.reach(declared)
        if any(_has_key(look, one.function) for one in reach):
            continue
        for one in reach:
            for call, act in deeds(look, one, certain=False):
                if (
                    act.sends
                    and call not in seen
                    and not (not act.certain and look.vocabulary.asks_a_model(call, one.function))
                ):
                    seen.add(call)
                    yield Hit(call, f"{source_name(call.func)}()", one.via)


def _is_retried(look: Look, declared: Function) -> bool:
    value = look.roles.option(declared, "retries_allowed")
    return value is not None and not (isinstance(value, ast.Constant) and not value.value)


def _has_key(look: Look, function: Function) -> bool:
    """A key of any sort, or what the engine says of the attempt."""
    if look.speaks_of_keys(function):
        return True
    return any(
        look.meaning(call.func, function).startswith("temporalio.activity.info") for call in function.all(ast.Call)
    ) or any(
        look.meaning(node, function) in ("dbos.DBOS.workflow_id", "dbos.DBOS.step_id")
        for node in function.all(ast.Attribute)
    )


def _tried_once(look: Look, activity: Function) -> bool:
    """Where this module executes it with `maximum_attempts=1`."""
    asked = False
    for function in look.module.everything:
        for call in function.all(ast.Call):
            if (
                not last(source_name(call.func)).startswith(
                    ("execute_activity", "start_activity", "execute_local_activity", "start_local_activity")
                )
                or not call.args
            ):
                continue
            first = call.args[0]
            if look.names.local(look.meaning(first, function)) is not activity and not (
                isinstance(first, ast.Attribute) and first.attr == activity.short_name
            ):
                continue
            asked = True
            policy = next((one.value for one in call.keywords if one.arg == "retry_policy"), None)
            if isinstance(policy, ast.Name):
                values = function.assigned.get(policy.id) or look.module.body.assigned.get(policy.id) or [None]
                policy = values[0]
            if not (
                isinstance(policy, ast.Call)
                and any(
                    one.arg == "maximum_attempts" and isinstance(one.value, ast.Constant) and one.value.value == 1
                    for one in policy.keywords
                )
            ):
                return False
    return asked


RULES: tuple[Rule, ...] = (
    rule("SF501", not_the_same),
    rule("SF502", world),
    rule("SF503", sends_without_key),
)
