"""What a tool is: declared under the framework's decorator, named in `tools=`, hinted at by a server, or an effect that asks.

It is tools that cost twice. So one that nobody has said anything about is taken for something that changes the world: its
intent is on disk before it runs, and if it is cut off, a person is asked.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType
from typing import Any, Literal
from weakref import WeakKeyDictionary

from surefoot.engine.seams import Backoff, Duration, OnCrash, one_of
from surefoot.errors import UsageError

Kind = Literal["effect", "step", "inline"]
Exceptions = type[BaseException] | tuple[type[BaseException], ...]
_MOST_LOOKED_AT = 200
"""Functions that are searched for effects, from one tool on."""


@dataclass(frozen=True)
class Tool:
    """How calls of a tool are recorded. Made with `sf.tool(...)`."""

    kind: Kind = "effect"
    on_crash: OnCrash = "ask"
    check: Callable[..., Any] | None = None
    undo: Callable[..., Any] | None = None
    not_done: Exceptions | None = None
    approve: bool = False
    retries: int | None = None
    backoff: Backoff | None = None
    timeout: Duration | None = None
    in_flight: Duration | None = None
    key_ttl: Duration | None = None
    touches: Sequence[Any] = ()
    was: str | tuple[str, ...] | None = ()
    hinted: bool = False
    """Whether a server said so: its word, and nobody's declaration."""


def tool(
    kind: Kind = "effect",
    *,
    on_crash: OnCrash | None = None,
    check: Callable[..., Any] | None = None,
    undo: Callable[..., Any] | None = None,
    not_done: Exceptions | None = None,
    approve: bool = False,
    retries: int | None = None,
    backoff: Backoff | None = None,
    timeout: Duration | None = None,
    in_flight: Duration | None = None,
    key_ttl: Duration | None = None,
    touches: Sequence[Any] = (),
    was: str | tuple[str, ...] | None = (),
) -> Tool:
    """How calls of a tool that one does not own are recorded: `durable(agent, tools={"create_issue": sf.tool(...)})`.

    The words are those of `@sf.effect`. `check` and `undo` are functions of the tool's arguments, by their names; each takes
    those that it wants. `kind="step"` says that the tool only reads, `kind="inline"` that it is workflow code: it runs again
    on every replay, and calls steps and effects itself.
    """
    one_of(kind, Kind, "sf.tool: kind")
    if kind != "effect" and (on_crash or check or undo or approve or key_ttl or touches or in_flight or not_done):
        raise UsageError(f'sf.tool("{kind}"): on_crash=, check=, undo=, approve= and the like belong to an effect')
    if kind == "inline" and (retries or timeout):
        raise UsageError('sf.tool("inline"): its body is workflow code, so the calls in it have retries= and timeout=')
    if on_crash is not None:
        one_of(on_crash, OnCrash, "sf.tool: on_crash")
    if on_crash == "check" and check is None:
        raise UsageError('sf.tool(on_crash="check") needs check=: a function that looks whether the tool has done it')
    crash: OnCrash = on_crash or ("check" if check is not None else "ask")
    return Tool(
        kind, crash, check, undo, not_done, approve, retries, backoff, timeout, in_flight, key_ttl, tuple(touches), was
    )  # fmt: skip


ASKS = Tool()
"""What a tool is that nobody has said anything about."""
READS = Tool("step", hinted=True)
REPEATS = Tool("effect", "retry", hinted=True)


def named(name: str, tools: Mapping[str, Tool | str]) -> Tool | None:
    """What `tools=` says about a tool; None: nothing."""
    said = tools.get(name)
    if said is None or isinstance(said, Tool):
        return said
    if said not in ("effect", "step", "inline"):
        raise UsageError(f'tools={{"{name}": {said!r}}}: "effect", "step", "inline", or sf.tool(...)')
    return tool(said)  # type: ignore[arg-type]


def hinted(annotations: Any) -> Tool | None:
    """What an MCP server's annotations suggest. A hint that is missing says nothing, and so does a contradiction."""
    reads, destroys, repeats = (
        any(getattr(annotations, spelling, None) is True for spelling in spellings)
        for spellings in (
            ("readOnlyHint", "read_only_hint"),
            ("destructiveHint", "destructive_hint"),
            ("idempotentHint", "idempotent_hint"),
        )
    )
    if reads and not destroys:
        return READS
    return REPEATS if repeats else None


def unknown_names(tools: Mapping[str, Tool | str], known: Sequence[str]) -> UsageError | None:
    """`tools=` names a tool that nobody has. Found at once, else it would be an effect that asks, silently."""
    missing = [name for name in tools if name not in known]
    if not missing:
        return None
    return UsageError(
        f"tools= names {', '.join(missing)}, and there is no such tool: there are {', '.join(known) or 'none'}"
    )


def effect_in(fn: Any, is_recorded: Callable[[Any], bool]) -> str:
    """The name of an effect or workflow that this function's code names; empty: none was found.

    Inside of an effect it would be refused, when the outer intent is durable and cannot be taken back. It is looked for
    once: frameworks offer the same tools in each run.
    """
    looked = _looked.setdefault(fn, {}) if isinstance(fn, FunctionType) else {}
    if is_recorded not in looked:
        looked[is_recorded] = _effect_in(fn, is_recorded)
    return looked[is_recorded]


_looked: WeakKeyDictionary[FunctionType, dict[Callable[[Any], bool], str]] = WeakKeyDictionary()


def _effect_in(fn: Any, is_recorded: Callable[[Any], bool]) -> str:
    home = _package(fn)
    seen, rest = set[int](), [fn]
    while rest and len(seen) < _MOST_LOOKED_AT:
        function = inspect.unwrap(rest.pop()) if rest else None
        if not isinstance(function, FunctionType) or id(function) in seen:
            continue
        seen.add(id(function))
        for name, value in _named_in(function):
            if is_recorded(value):
                return name
            if isinstance(value, FunctionType) and _package(value) == home:
                rest.append(value)
    return ""


def _package(fn: Any) -> str:
    return str(getattr(fn, "__module__", "")).partition(".")[0]


def _named_in(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """The globals, closures and attributes of modules that a function's code names."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=False)
    for name, cell in cells:
        try:
            yield name, cell.cell_contents
        except ValueError:  # It is not made yet.
            continue
    for code in _codes(function.__code__):
        yield from _globals_in(code, function.__globals__)


def _globals_in(code: CodeType, known: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """What is looked up by name, and not as an attribute of something: `file.write` is no `write`."""
    steps = list(dis.get_instructions(code))
    for step, after in zip(steps, [*steps[1:], None], strict=True):
        if step.opname not in ("LOAD_GLOBAL", "LOAD_NAME") or step.argval not in known:
            continue
        value = known[step.argval]
        yield step.argval, value
        is_attribute = after is not None and after.opname in ("LOAD_ATTR", "LOAD_METHOD")
        if isinstance(value, ModuleType) and is_attribute and after.argval in vars(value):  # type: ignore[union-attr]
            yield f"{step.argval}.{after.argval}", vars(value)[after.argval]  # type: ignore[union-attr]


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from _codes(const)


def some_of(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is given all arguments of a tool by name, and takes those that it wants."""
    wanted = inspect.signature(fn).parameters
    takes_all = any(each.kind is each.VAR_KEYWORD for each in wanted.values())

    def chosen(given: dict[str, Any]) -> dict[str, Any]:
        return given if takes_all else {name: value for name, value in given.items() if name in wanted}

    if inspect.iscoroutinefunction(fn):

        async def taking_async(**given: Any) -> Any:
            return await fn(**chosen(given))

        return taking_async

    def taking(**given: Any) -> Any:
        return fn(**chosen(given))

    return taking
