"""Somebody's tool as an effect or a step of its own name, with its arguments by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import surefoot.aio as sf
from surefoot.adapters import contexts, policy
from surefoot.adapters.policy import Tool
from surefoot.engine.seams import Duration, as_tool, signature


def recorded(
    name: str,
    schema: Mapping[str, Any],
    said: Tool,
    body: Callable[..., Any],
    *,
    approve: bool = False,
    timeout: Duration | None = None,
    fn: Any = None,
) -> Callable[..., Any]:
    """`schema`: of its arguments, as JSON schema. `fn`: the user's own function, whose guard clauses count.

    The call has the colour of `body`.
    """
    body.__name__ = body.__qualname__ = name
    body.__module__ = "tool"
    found = signature(_parameters(schema))
    if found is not None:
        body.__signature__ = found  # type: ignore[attr-defined]
    timeout = said.timeout or timeout
    if said.kind == "step":
        return as_tool(sf.step(name=name, retries=said.retries, backoff=said.backoff, timeout=timeout)(body))
    call = sf.effect(
        name=name,
        on_crash="ask" if said.check else said.on_crash,
        retries=said.retries,
        backoff=said.backoff,
        timeout=timeout,
        touches=said.touches,
        key_ttl=said.key_ttl,
        approve=approve or said.approve,
        not_done=said.not_done,
        in_flight=said.in_flight,
        was=said.was,
    )(body)
    if said.check is not None:
        call.check(policy.some_of(said.check))
    if said.undo is not None:
        call.undo(_undoing(said.undo, is_async=inspect.iscoroutinefunction(body)))
    return as_tool(call, fn)


def _undoing(undo: Callable[..., Any], *, is_async: bool) -> Callable[..., Any]:
    """It gets what the tool gave, without what is recorded beside it."""
    taking = policy.some_of(undo)
    if not is_async:
        return lambda *, result, **arguments: taking(**arguments, result=contexts.result_in(result))

    async def undone(*, result: Any, **arguments: Any) -> Any:
        found = taking(**arguments, result=contexts.result_in(result))
        return await found if inspect.isawaitable(found) else found

    return undone


def _parameters(schema: Mapping[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties") or {}
    return {name: each.get("default") if isinstance(each, dict) else None for name, each in properties.items()}
