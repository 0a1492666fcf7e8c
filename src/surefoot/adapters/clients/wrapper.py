"""A client whose model calls are steps. Everything else that it can do is refused inside of a run, unless in a step or effect.

Compared on replay is the conversation without our own words: system and developer messages, instructions, model, tools and
settings are noted, so that a reworded prompt strands no run. An answer that may have acted where the model runs (hosted
code, hosted MCP) is an effect that asks. A stream is recorded whole, and then handed out piece by piece.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from functools import cache
from importlib import import_module
from typing import Any, Self, TypeVar

import surefoot.aio as sf
from surefoot.adapters import versions
from surefoot.adapters.clients import anthropic, openai
from surefoot.adapters.clients.table import Method, Table, joined, split
from surefoot.adapters.records import Form, jsonable
from surefoot.adapters.waiting import waiting_for
from surefoot.engine.seams import in_run, refused

C = TypeVar("C")
TABLES = {table.package: table for table in (openai.TABLE, anthropic.TABLE)}
_COPIES = ("with_options", "copy")
_FOR_EVER = 1_000_000
"""How often is decided where it is asked (`waiting.py`)."""
_ANYTHING = Form(Any)
_UNSENT = ("NotGiven", "Omit")


def wrapped(client: C) -> C:
    if isinstance(client, Wrapped):
        return client
    table = TABLES.get(type(client).__module__.partition(".")[0])
    names = {cls.__name__ for cls in type(client).__mro__}
    if table is None or not names & {"SyncAPIClient", "AsyncAPIClient"}:
        raise sf.UsageError(f"sf.wrap takes a client of {' or '.join(TABLES)}, not {type(client).__name__}")
    versions.require(table.extra, {table.package: table.tested})
    return Wrapped(client, "", table, is_async="AsyncAPIClient" in names)  # type: ignore[return-value]


class Wrapped:
    """A client, or a part of one (`client.chat.completions`)."""

    def __init__(self, inner: Any, path: str, table: Table, *, is_async: bool) -> None:
        self._inner, self._path, self._table, self._is_async = inner, path, table, is_async

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        path = f"{self._path}.{name}".lstrip(".")
        if name in _COPIES and not self._path:
            return lambda *args, **options: self._again(found(*args, **options))
        if inspect.ismethod(found) or inspect.isfunction(found):
            return _method(found, path, self._table, is_async=self._is_async)
        is_part = type(found).__module__.partition(".")[0] == self._table.package and not name.startswith("_")
        return Wrapped(found, path, self._table, is_async=self._is_async) if is_part else found

    def _again(self, client: Any) -> Wrapped:
        return Wrapped(client, "", self._table, is_async=self._is_async)

    def __repr__(self) -> str:
        return f"sf.wrap({self._inner!r})"

    def __enter__(self) -> Self:
        self._inner.__enter__()
        return self

    def __exit__(self, *error: object) -> Any:
        return self._inner.__exit__(*error)

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> Any:
        return await self._inner.__aexit__(*error)


def _method(found: Callable[..., Any], path: str, table: Table, *, is_async: bool) -> Callable[..., Any]:
    known = table.methods.get(path)

    def called(*args: Any, **arguments: Any) -> Any:
        if not in_run():
            return found(*args, **arguments)
        if known is None or args:
            raise refused(_unknown(table, path))
        call = Call(
            found, path, table, known, {key: value for key, value in arguments.items() if not _is_unsent(value)}
        )
        return call.recorded_async() if is_async else call.recorded()

    return called


def _is_unsent(value: Any) -> bool:
    return type(value).__name__ in _UNSENT


def _unknown(table: Table, path: str) -> sf.UsageError:
    return sf.UsageError(
        f"{table.package}: client.{path}(…) inside of a run is not recorded, so it would be made again on every resume. Put it into a "
        f"function of your own with @sf.step (it only reads) or @sf.effect (it changes something). Recorded are: "
        f"{', '.join(table.methods)}, with keyword arguments."
    )


class Call:
    """One call of a known method."""

    def __init__(
        self, found: Callable[..., Any], path: str, table: Table, method: Method, arguments: dict[str, Any]
    ) -> None:
        self._found = found
        self._table = table
        self._method = method
        self._streams = bool(arguments.get("stream"))
        conversation, self._ours, self._rest = split(method, arguments)
        self._is_whole = not method.conversation
        self._conversation = _ANYTHING.plain(conversation)
        self._is_acting = table.acts(arguments)
        self._path = path
        self._form = _form(method.piece if self._streams else method.answer)

    def _noted(self) -> dict[str, Any]:
        options = jsonable(self._rest)
        shown = {"instructions": [each for _, each in self._ours], "model": options.pop("model", None)}
        if self._method.instructions in options:
            shown["instructions"] = [*shown["instructions"], options.pop(self._method.instructions)]
        return {**shown, "options": options}

    def _asked(self, conversation: Any) -> Any:
        if self._is_whole:
            return self._found(**conversation)
        given = joined(conversation, self._ours)
        return (
            self._found(**self._rest)
            if given is None
            else self._found(**{self._method.conversation: given}, **self._rest)
        )

    def _spec(self, *, is_async: bool) -> Any:
        return _recorded(self._path, is_acting=self._is_acting, is_async=is_async)

    def recorded(self) -> Any:
        def ask(conversation: Any) -> Any:
            if self._is_acting:
                return self._plain(self._asked(conversation))
            with waiting_for(self._table.package):
                return self._plain(self._asked(conversation))

        found = self._spec(is_async=False)(self._conversation, ask=ask, **self._noted())
        return Pieces([self._form.revived(each) for each in found]) if self._streams else self._form.revived(found)

    async def recorded_async(self) -> Any:
        async def ask(conversation: Any) -> Any:
            if self._is_acting:
                return await self._plain_async(self._asked(conversation))
            with waiting_for(self._table.package):
                return await self._plain_async(self._asked(conversation))

        found = await self._spec(is_async=True)(self._conversation, ask=ask, **self._noted())
        return AsyncPieces([self._form.revived(each) for each in found]) if self._streams else self._form.revived(found)

    def _plain(self, answer: Any) -> Any:
        return [self._proved(each) for each in answer] if self._streams else self._proved(answer)

    async def _plain_async(self, coming: Any) -> Any:
        answer = await coming
        return [self._proved(each) async for each in answer] if self._streams else self._proved(answer)

    def _proved(self, answer: Any) -> Any:
        try:
            return self._form.plain(answer)
        except sf.ValueRejected as error:
            why = (
                f"{self._table.package}: client.{self._path} answered with a {type(answer).__name__} that cannot be recorded, and the run "
                f"does not go on with it; resumed, it asks again: {error}"
            )
            raise refused(sf.ValueRejected(why)) from error


@cache
def _form(name: str) -> Form:
    module, _, wanted = name.partition(":")
    return Form(getattr(import_module(module), wanted))


@cache
def _recorded(name: str, *, is_acting: bool, is_async: bool) -> Any:
    """The step, or the effect, that a method is recorded as."""

    def model(conversation: Any, instructions: Any, model: Any, options: Any, ask: Callable[[Any], Any]) -> Any:
        return ask(conversation)

    async def model_async(
        conversation: Any, instructions: Any, model: Any, options: Any, ask: Callable[[Any], Any]
    ) -> Any:
        return await ask(conversation)

    told: dict[str, Any] = {"name": name, "noted": ("instructions", "model", "options"), "ignore": "ask"}
    fn: Any = model_async if is_async else model
    return sf.effect(**told)(fn) if is_acting else sf.step(retries=_FOR_EVER, retry_on=(), **told)(fn)


class Pieces:
    """A stream that is on record: the same pieces, the first time as on replay."""

    def __init__(self, pieces: list[Any]) -> None:
        self._pieces = iter(pieces)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self._pieces)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._pieces = iter(())


class AsyncPieces:
    """The same in tasks."""

    def __init__(self, pieces: list[Any]) -> None:
        self._pieces = iter(pieces)

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        try:
            return next(self._pieces)
        except StopIteration:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        self._pieces = iter(())
