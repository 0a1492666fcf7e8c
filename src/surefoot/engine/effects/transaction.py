"""Effects in the user's own database: a marker row commits with the user's rows, and afterwards the marker decides.

`@sf.transaction(url)` makes an effect with a check of its own. After a cut-off at any moment, the database has both,
the rows and the marker, or neither; so the check always knows the outcome, and the effect happens exactly once. The
transaction searches for the marker too: the check's answer may be old by then, and a second execution must not commit.

A missing marker is a proof only if there would have to be one: the intent records the database for the marker. An
effect that was begun as no transaction, or in another database, leaves no marker here.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from msgspec import Raw

from surefoot.core import values
from surefoot.core.retry import Backoff
from surefoot.core.timer import Duration
from surefoot.core.verdict import Verdict, happened, not_happened, unknown
from surefoot.engine.declare import current
from surefoot.engine.declare.call_spec import CallSpec, require_named
from surefoot.engine.declare.registry import is_async, like, spread
from surefoot.engine.effects.databases.contract import Database, Marker, MarkerUnclear, Meddled, Work
from surefoot.engine.effects.databases.opening import database_of
from surefoot.engine.workflow import Effect, Exceptions, _effect
from surefoot.errors import UsageError, ValueRejected

P = ParamSpec("P")
R = TypeVar("R")


class TransactionDecorator(Protocol):
    def __call__(self, fn: Callable[Concatenate[Any, P], R], /) -> Effect[P, R]: ...


def transaction(
    url_or_engine: Any,
    /,
    *,
    name: str | None = None,
    retries: int | None = None,
    backoff: Backoff | None = None,
    timeout: Duration | None = None,
    not_done: Exceptions | None = None,
    retry_on: Exceptions | None = None,
    ignore: str | tuple[str, ...] = (),
    touches: Sequence[Any] = (),
    approve: bool = False,
) -> TransactionDecorator:
    """An effect in your own database, exactly once. The function's first parameter is the open connection.

    Given `sqlite:///app.db`, `postgresql://…` or a SQLAlchemy engine. Callers do not pass the connection; it is neither
    recorded nor compared. What the function does with it is committed when it returns and rolled back when it raises: then
    nothing was done. A commit that fails is looked up by its marker.
    Its undo, if there is one (`@copy.undo`), gets a connection too and is a transaction of its own.
    """
    database = database_of(url_or_engine)

    def decorate(fn: Callable[..., Any]) -> Any:
        inner = _Transaction(database, fn)
        spec = CallSpec(
            inner.call, "effect", name=name, retries=retries, backoff=backoff, timeout=timeout, retry_on=retry_on,
            ignore=ignore, on_crash="check", not_done=not_done, touches=touches, approve=approve, in_flight="0s",
        )  # fmt: skip
        inner.settle(spec)
        made: Any = _effect(spec)
        made.undo = _undo_decorator(database, spec, made.undo)
        return made

    return decorate


def _undo_decorator(database: Database, spec: CallSpec, plain: Any) -> Callable[..., Any]:
    def undo(fn: Callable[..., Any]) -> Callable[..., Any]:
        inner = _Transaction(database, fn)
        inner.settle(spec.set_undo(inner.call, None))
        return fn

    undo.check = plain.check  # type: ignore[attr-defined]
    return undo


class _Transaction:
    """A function of the user that works in a database, as an effect without the connection among its arguments."""

    def __init__(self, database: Database, fn: Callable[..., Any]) -> None:
        require_named(fn, "@sf.transaction")
        self._database = database
        self._fn = fn
        self._ignored: tuple[str, ...] = ()
        self._signature = _without_connection(fn)
        self.call = self._shaped(self._run_async if is_async(fn) else self._run)

    def settle(self, spec: CallSpec) -> None:
        """The marker is the check of this effect."""
        spec.marks = self._database.place  # The marker is unique: of two executions on their way, one commits.
        self._ignored = spec.binder.ignored
        spec.set_check(self._look_async if is_async(self._fn) else self._look)

    def _shaped(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """The method with the user's name, docstring and parameters, without the first."""
        shaped = like(self._fn, spread, method)
        shaped.__signature__ = self._signature
        known = {*self._signature.parameters, "return"}
        shaped.__annotations__ = {name: hint for name, hint in self._fn.__annotations__.items() if name in known}
        return shaped  # type: ignore[no-any-return]

    # -- execution ----------------------------------------------------------------------------

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        key = _key()
        work, found = self._begin(key, functools.partial(self._digest, args, kwargs))
        if work is None:
            return found
        try:
            with work.guarded():
                value = self._fn(work.db, *args, **kwargs)
        except BaseException as error:
            raise _give_up(work, error) from error
        _conclude(work, key, value)
        return value

    async def _run_async(self, *args: Any, **kwargs: Any) -> Any:
        """The same, with everything that blocks in a thread. Only this task commits; cancelled, it does not."""
        key = _key()
        (work, found), cancelled = await _to_the_end(self._begin, key, functools.partial(self._digest, args, kwargs))
        if work is None and cancelled is None:
            return found
        try:
            if cancelled is not None:
                raise cancelled  # noqa: TRY301 - rolled back below, as any other end
            with work.guarded():
                value = await self._fn(AsyncConnection(work.db), *args, **kwargs)
        except BaseException as error:
            if work is not None:
                given_up, _ = await _to_the_end(_give_up, work, error)
                raise given_up from error
            raise
        _, cancelled = await _to_the_end(_conclude, work, key, value)
        if cancelled is not None:
            raise cancelled
        return value

    def _begin(self, key: str, as_before: Callable[[], str]) -> tuple[Work | None, Any]:
        """An open transaction with its marker written; or the result in the existing marker."""
        try:
            work = self._database.begin()
        except UsageError as error:
            raise _misused(error) from error
        except Exception as error:
            current.rolled_back(error)  # Nothing was begun.
            raise
        try:
            found = work.mark(key, current.inside().digest, datetime.now(UTC).isoformat()) if key else None
        except BaseException as error:
            raise _give_up(work, error) from error
        if found is None:
            return work, None
        work.rollback()
        work.close()
        if (why := _unclear(found, as_before)) is not None:
            raise MarkerUnclear(why)
        return None, _value_of(found)

    def _digest(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """The digest of the request, as in earlier versions: values equal to today's defaults do not count."""
        bound = self._signature.bind(*args, **kwargs).arguments
        asked = {name: value for name, value in bound.items() if not self._is_default(name, value)}
        return values.encode_args(asked)[1]

    def _is_default(self, name: str, value: object) -> bool:
        default = self._signature.parameters[name].default
        if name in self._ignored or value is default:
            return True
        return default is not inspect.Parameter.empty and values.encode(value) == values.encode(default)

    # -- the check --------------------------------------------------------------------------------

    def _look(self, *args: Any, **kwargs: Any) -> Verdict:
        return self._verdict(self._database.find(_key()), functools.partial(self._digest, args, kwargs))

    async def _look_async(self, *args: Any, **kwargs: Any) -> Verdict:
        found, cancelled = await _to_the_end(self._database.find, _key())
        if cancelled is not None:
            raise cancelled
        return self._verdict(found, functools.partial(self._digest, args, kwargs))

    def _verdict(self, found: Marker | None, as_before: Callable[[], str]) -> Verdict:
        if found is None:
            return not_happened()
        why = _unclear(found, as_before)
        return happened(_value_of(found)) if why is None else unknown(f"{why} ({self._database.name})")


def _without_connection(fn: Callable[..., Any]) -> inspect.Signature:
    signature = inspect.signature(fn)
    given = list(signature.parameters.values())
    if not given or given[0].kind not in (given[0].POSITIONAL_ONLY, given[0].POSITIONAL_OR_KEYWORD):
        raise UsageError(
            f"transaction {fn.__name__}: its first parameter is the connection, and it has none: {signature}"
        )
    return signature.replace(parameters=given[1:])


def _key() -> str:
    """The key of the effect that is being executed or checked; empty outside a run, where no marker is needed."""
    return current.inside().key


def _conclude(work: Work, key: str, value: object) -> None:
    """Commit, with the value in the marker. An unstorable value is found before: then nothing has happened."""
    try:
        work.require_open()
        if key:
            work.finish(key, values.encode(value).decode())
    except BaseException as error:
        raise _give_up(work, error) from error
    try:
        work.commit()
    finally:
        work.close()


def _give_up(work: Work, error: BaseException) -> BaseException:
    """Roll back. Returns the exception to raise: misuse as such, so that fixed code can go on."""
    found: BaseException = error
    if isinstance(error, Exception):
        try:
            work.require_open(failed=True)
        except Meddled as meddled:
            found = meddled
        except Exception:  # noqa: BLE001 - a connection that is lost ends no transaction of ours
            found = error
    work.rollback()
    work.close()
    return _misused(found) if isinstance(found, Meddled | ValueRejected) else current.rolled_back(found)


def _misused(error: UsageError) -> UsageError:
    place = current.get()
    if place is None or place is current.OUTSIDE or place.inside is None:
        return error
    return place.session.stops.misused(place.inside.misused(error))  # type: ignore[no-any-return]


def _unclear(found: Marker, as_before: Callable[[], str]) -> str | None:
    """Why this marker does not prove that the present call was executed; None: it does."""
    digest = current.inside().digest  # As recorded. Defaults are no part of it: the recorded ones are used anyway.
    if found.digest not in (digest, as_before()):
        return (
            "there is a marker of it in the database, but with other arguments: it was carried out with the digest "
            f"{found.digest[:12]}…, now it is asked for with {digest[:12]}…"
        )
    if found.value is None:
        return "there is an unfinished marker of it in the database: the function itself committed half-way"
    return None


def _value_of(found: Marker) -> Any:
    return values.decode(Raw((found.value or "null").encode()))


# -- async ------------------------------------------------------------------------------------------


async def _to_the_end(fn: Callable[..., Any], *args: Any) -> tuple[Any, BaseException | None]:
    """Run in a thread, and wait even if the task is cancelled meanwhile: a commit that was begun is not abandoned."""
    import asyncio

    from surefoot.engine.drive.acts_async import to_the_end

    return await to_the_end(asyncio.to_thread(fn, *args))


class AsyncConnection:
    """The connection in an `async def` transaction: `await db.execute(…)`, `await rows.fetchall()`, in a thread."""

    def __init__(self, db: Any) -> None:
        import asyncio

        self.blocking = db
        """The connection itself, for other methods: use it in `asyncio.to_thread`."""
        self._turn = asyncio.Lock()

    async def _in_turn(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        async with self._turn:
            result, cancelled = await _to_the_end(functools.partial(fn, *args, **kwargs))
        if cancelled is not None:
            raise cancelled
        return result

    async def execute(self, *args: Any, **kwargs: Any) -> AsyncRows:
        return AsyncRows(await self._in_turn(self.blocking.execute, *args, **kwargs), self._in_turn)

    async def executemany(self, *args: Any, **kwargs: Any) -> AsyncRows:
        cursor = self.blocking.cursor()
        await self._in_turn(cursor.executemany, *args, **kwargs)
        return AsyncRows(cursor, self._in_turn)


class AsyncRows:
    def __init__(self, rows: Any, in_turn: Callable[..., Awaitable[Any]]) -> None:
        self._rows = rows
        self._in_turn = in_turn

    def __getattr__(self, name: str) -> Any:
        """`rowcount`, `lastrowid`, `description`: known values need no wait."""
        return getattr(self._rows, name)

    async def fetchone(self) -> Any:
        return await self._in_turn(self._rows.fetchone)

    async def fetchmany(self, size: int = 1) -> Any:
        return await self._in_turn(self._rows.fetchmany, size)

    async def fetchall(self) -> Any:
        return await self._in_turn(self._rows.fetchall)
