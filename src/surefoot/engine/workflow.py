"""The decorators. A decorated function stays a function: same signature, docstring, annotations, colour."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, TypedDict, TypeVar, Unpack, overload

from surefoot.core.choice import Approval, OnChange, OnCorruption, OnCrash, OnEffectChange, OnFailure, one_of
from surefoot.core.retry import Backoff
from surefoot.core.timer import Duration, after, seconds
from surefoot.engine.declare import current, rehearsal
from surefoot.engine.declare.call_spec import CallSpec
from surefoot.engine.declare.drifts import OnDrift
from surefoot.engine.declare.plan import Options, Plan, created_entry, require_same
from surefoot.engine.declare.registry import Definition, is_async, like, registry, spread
from surefoot.engine.drive import acts, perform, start
from surefoot.engine.operate.handle import Run
from surefoot.engine.process import config, journal
from surefoot.engine.process.runtime import Runtime
from surefoot.errors import UsageError

if TYPE_CHECKING:
    from surefoot.engine.verbs.tasks import AsyncRun

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
F = TypeVar("F", bound=Callable[..., Any])
LONGEST_QUEUE = 200
LONGEST_LABEL = 1000
Exceptions = type[BaseException] | tuple[type[BaseException], ...]

# -- steps and effects -------------------------------------------------------------------------------------


class CallOptions(TypedDict, total=False):
    """What a step and an effect take alike. `CallSpec` has the defaults."""

    name: str | None
    retries: int | None
    backoff: Backoff | None
    timeout: Duration | None
    ignore: str | tuple[str, ...]
    noted: str | tuple[str, ...]
    was: str | tuple[str, ...] | None


class StepOptions(CallOptions, total=False):
    retry_on: Exceptions | None
    on_change: OnChange | None


class EffectOptions(CallOptions, total=False):
    on_crash: OnCrash
    on_change: OnEffectChange | None
    touches: Sequence[Any]
    key_ttl: Duration | None
    approve: bool
    not_done: Exceptions | None
    in_flight: Duration | None


class WorkflowOptions(TypedDict, total=False):
    """What a workflow takes. `Definition` has the defaults."""

    name: str | None
    version: int
    watch: Sequence[Any]
    on_drift: OnDrift
    on_corruption: OnCorruption | None
    approve: Approval
    was: str | tuple[str, ...]
    on_failure: OnFailure


def _decorator(options: type[Any], made: type[Any], *more: str) -> Callable[[Callable[..., Any]], Any]:
    """Makes a decorator that is used bare or with options. `help` shows the options; any other one is refused.

    `more`: options that type checkers refuse, and that are told what helps when they are given.
    """
    known = inspect.signature(made).parameters
    fn = inspect.Parameter("fn", inspect.Parameter.POSITIONAL_ONLY, default=None)
    signature = inspect.Signature([fn, *(known[name] for name in (*options.__annotations__, *more))])

    def shaped(build: Callable[..., Any]) -> Any:
        @functools.wraps(build)
        def decorator(fn: Callable[..., Any] | None = None, /, **given: Any) -> Any:
            try:
                signature.bind(fn, **given)
            except TypeError as error:
                raise TypeError(f"{build.__name__}() {error}") from None
            decorate = functools.partial(build, **given)
            return decorate if fn is None else decorate(fn)

        vars(decorator).update(__signature__=signature)
        return decorator

    return shaped


@overload
def step(fn: F, /) -> F: ...
@overload
def step(**options: Unpack[StepOptions]) -> Callable[[F], F]: ...
@_decorator(StepOptions, CallSpec)
def step(fn: Callable[..., Any], /, **options: Unpack[StepOptions]) -> Any:
    """A call that may be repeated freely: a read, a computation, a model call. Recorded once it returned.

    `noted` names parameters that are recorded and shown, and not compared: a prompt, a model. `on_change` says what
    happens when the code asks with other arguments than are on record: `"auto"`, `"keep"`, `"rerun"` or `"stop"`. `was`
    names what it was called before: calls on record under these names are its own.
    """
    return _wrap(CallSpec(fn, "step", **options))


class Undo(Protocol):
    """Decorates the compensation of an effect, bare or with a policy of its own."""

    @overload
    def __call__(self, fn: F, /) -> F: ...
    @overload
    def __call__(self, *, on_crash: OnCrash) -> Callable[[F], F]: ...
    def check(self, fn: F, /) -> F:
        """Decorates the function that looks whether the undo happened."""


class Effect(Protocol[P, R_co]):
    """A function that changes the world. Called as before; `check` and `undo` decorate what belongs to it."""

    undo: Undo

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    def __get__(self, instance: Any, owner: Any = None) -> Callable[..., R_co]: ...
    def check(self, fn: F, /) -> F:
        """Decorates the function that looks whether the effect happened; makes on_crash "check"."""


class EffectDecorator(Protocol):
    def __call__(self, fn: Callable[P, R], /) -> Effect[P, R]: ...


@overload
def effect(fn: Callable[P, R], /) -> Effect[P, R]: ...
@overload
def effect(**options: Unpack[EffectOptions]) -> EffectDecorator: ...
@_decorator(EffectOptions, CallSpec, "retry_on")
def effect(fn: Callable[..., Any], /, **options: Unpack[EffectOptions]) -> Any:
    """A call that changes the outside world. Its intent is durable before it runs, its outcome after.

    `on_crash` says what to do when it was cut off in between: `"ask"` a person, `"retry"` with the same key, `"check"`
    the world with the function decorated by `.check`, or `"fail"` the call. `touches` names the witnesses of what it
    changes (or functions of its arguments that give one). After `key_ttl`, a retry is no longer considered safe.
    With `approve=True` a person has to agree before it runs.

    `not_done` names exceptions which prove that nothing was done, besides what is known of common clients and what its
    own first lines raise; after any other the effect is in doubt, and `on_crash` decides. `not_done=()`: none does but
    `sf.NotDone` and the like. `retries` tries again what was not done.

    `timeout` is when we stop waiting for it. If the service may finish later than that, say `in_flight` too: for how
    long a call that was cut off, or given up, may still be on its way (without `timeout`: since it began). `noted`, `on_change` and `was` as for
    a step; `was=None` says that it is new: no effect on record is this one.
    """
    return _effect(CallSpec(fn, "effect", **options))


def _effect(spec: CallSpec) -> Callable[..., Any]:
    call: Any = _wrap(spec)

    def check(fn: F) -> F:
        spec.set_check(fn)
        return fn

    def undo(fn: Callable[..., Any] | None = None, /, *, on_crash: OnCrash | None = None) -> Any:
        if on_crash is not None:
            one_of(on_crash, OnCrash, f"effect {spec.name}.undo: on_crash")

        def decorate(fn: F) -> F:
            spec.set_undo(fn, on_crash)
            return fn

        return decorate if fn is None else decorate(fn)

    def check_undo(fn: F) -> F:
        if spec.undo is None:
            raise UsageError(f"effect {spec.name} has no undo yet: decorate that first, then its check")
        spec.undo.set_check(fn)
        return fn

    undo.check = check_undo  # type: ignore[attr-defined]
    call.check, call.undo = check, undo
    return call  # type: ignore[no-any-return]


def _wrap(spec: CallSpec) -> Any:
    call: Any = perform.call
    if is_async(spec.fn):
        from surefoot.engine.drive import perform_async

        call = perform_async.call
    made = like(spec.fn, call, spec)
    made.spec = spec
    return made


# -- workflows ---------------------------------------------------------------------------------------------


class Bound(Protocol[P, R_co]):
    """A workflow with options set by `.using(...)`."""

    def run(self, run_id: str, /, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    def start(self, run_id: str, /, *args: P.args, **kwargs: P.kwargs) -> Run: ...


class AsyncBound(Protocol[P, R_co]):
    async def run(self, run_id: str, /, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    async def start(self, run_id: str, /, *args: P.args, **kwargs: P.kwargs) -> AsyncRun: ...


class RunOptions(TypedDict, total=False):
    """What `.using(...)` takes."""

    store: str | None
    queue: str | None
    delay: Duration | None
    wait: Duration | None
    labels: dict[str, str] | None


class Workflow(Bound[P, R_co], Protocol[P, R_co]):
    """A blocking function whose progress is recorded."""

    name: str
    version: int

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    def using(self, **options: Unpack[RunOptions]) -> Bound[P, R_co]: ...


class AsyncWorkflow(AsyncBound[P, R_co], Protocol[P, R_co]):
    """A coroutine function whose progress is recorded."""

    name: str
    version: int

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    def using(self, **options: Unpack[RunOptions]) -> AsyncBound[P, R_co]: ...


class _Starter(Generic[P, R]):
    """`.run` and `.start` of one workflow with one set of options."""

    def __init__(self, definition: Definition, options: Options) -> None:
        self._definition = definition
        self._options = options

    def _opened(self, run: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Plan, Runtime]:
        if config.settings.loading:
            raise UsageError(
                f"module {config.settings.loading!r} starts run {run!r} while it is only being imported. "
                "Put the call under `if __name__ == '__main__':`, so that commands can look at the workflow."
            )
        plan = self._definition.plan(run, args, kwargs)
        rehearsal.would_do("run", run)
        return plan, config.runtime(self._options.store, create=True)

    def _queue(self, run: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Run:
        plan, runtime = self._opened(run, args, kwargs)
        delay = self._options.delay_seconds
        due = None if delay is None else after(runtime.clock.read(), delay)
        state = journal.create(runtime.store, runtime.clock, run, created_entry(plan, self._options, due))
        require_same(plan, state, runtime.store)
        return Run(runtime, run)


class BlockingStarter(_Starter[P, R]):
    def run(self, run_id: str, /, *args: Any, **kwargs: Any) -> Any:
        """Start, or resume, or return the recorded result; waits if a living process drives the run."""
        acts.write_down(current.get())
        plan, runtime = self._opened(run_id, args, kwargs)
        return start.run_blocking(runtime, plan, run_id, self._options)

    def start(self, run_id: str, /, *args: Any, **kwargs: Any) -> Run:
        """Queue the run for a worker, or for whoever resumes it."""
        acts.write_down(current.get())
        return self._queue(run_id, args, kwargs)


class AsyncStarter(_Starter[P, R]):
    async def run(self, run_id: str, /, *args: Any, **kwargs: Any) -> Any:
        """Start, or resume, or return the recorded result; waits if a living process drives the run."""
        current.require_asyncio(f"{self._definition.name}.run")
        from surefoot.engine.drive import acts_async

        if (place := current.get()) is not None:
            await acts_async.hop(acts.write_down, place)
        plan, runtime = self._opened(run_id, args, kwargs)
        return await start.run_async(runtime, plan, run_id, self._options)

    async def start(self, run_id: str, /, *args: Any, **kwargs: Any) -> AsyncRun:
        """Queue the run for a worker, or for whoever resumes it. Gives the handle of async code."""
        current.require_asyncio(f"{self._definition.name}.start")
        from surefoot.engine.drive import acts_async
        from surefoot.engine.verbs import tasks

        rehearsal.would_do("run", run_id)  # here, where the context is the caller's
        await acts_async.hop(acts.write_down, current.get())
        return tasks.AsyncRun(await acts_async.hop(self._queue, run_id, args, kwargs))


@overload
def workflow(fn: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncWorkflow[P, R]: ...  # type: ignore[overload-overlap]
@overload
def workflow(fn: Callable[P, R], /) -> Workflow[P, R]: ...
@overload
def workflow(**options: Unpack[WorkflowOptions]) -> _WorkflowDecorator: ...
@_decorator(WorkflowOptions, Definition)
def workflow(fn: Callable[..., Any], /, **options: Unpack[WorkflowOptions]) -> Any:
    """A function whose progress is recorded and which is replayed from its journal after a crash.

    `on_corruption` says what to do when its journal is damaged: `"fallback"` to the longest valid prefix, loudly, with
    every effect that may have been recorded beyond it in doubt; or `"stop"`. Without it, as `sf.configure` says.

    `watch` names the witnesses of what the run relies on; they are observed before its first call and again before
    every resume. `on_drift` says what to do if they no longer match: `"stop"`, `"warn"`, `"accept"`, or a function that
    is given the list of differences and answers with one of these. `approve` says which effects need a person's yes:
    `"declared"` ones, `"every"` effect, or `"never"` any. `was` names what the workflow was called before (`"old"`, or
    `"old_module:old"` where it has moved). With `on_failure="stop"` an exception that it lets out stops the run, and
    `surefoot runs retry` opens it again; else the run has failed.
    """
    return _workflow(Definition(fn, **options))


class _WorkflowDecorator(Protocol):
    @overload
    def __call__(self, fn: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncWorkflow[P, R]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, fn: Callable[P, R], /) -> Workflow[P, R]: ...


def _workflow(definition: Definition) -> Any:
    fn = definition.fn
    starter_class = AsyncStarter if definition.is_async else BlockingStarter
    starter = starter_class(definition, Options())  # type: ignore[var-annotated]

    def using(
        *,
        store: str | None = None,
        queue: str | None = None,
        delay: Duration | None = None,
        wait: Duration | None = None,
        labels: dict[str, str] | None = None,
    ) -> Any:
        """Options, kept apart from the workflow's own parameters."""
        options = Options(
            store=store,
            queue=_checked_queue(str(queue or "")),
            labels=_checked_labels(labels),
            delay_seconds=None if delay is None else seconds(delay),
            wait_seconds=None if wait is None else seconds(wait),
        )
        return starter_class(definition, options)

    # Called as a function it is just the function: inside a run, that inlines it.
    inline = like(fn, spread, fn)
    inline.run, inline.start, inline.using = starter.run, starter.start, using
    inline.name, inline.version, inline.definition = definition.name, definition.version, definition
    registry.add(definition)
    return inline


def _checked_queue(name: str) -> str:
    """It becomes part of an index row, in every kind of store."""
    if len(name) > LONGEST_QUEUE or not name.isprintable():
        raise UsageError(f"a queue's name has at most {LONGEST_QUEUE} characters, all of them printable: {name[:40]!r}")
    return name


def _is_text(words: str) -> bool:
    try:
        words.encode()
    except UnicodeEncodeError:
        return False
    return True


def _checked_labels(labels: dict[str, str] | None) -> dict[str, str]:
    for key, value in (labels or {}).items():
        if type(key) is not str or type(value) is not str:
            raise UsageError(f"labels are words: {key!r}={value!r} is not a pair of strings")
        if max(len(key), len(value)) > LONGEST_LABEL or not _is_text(key + value):
            raise UsageError(
                f"a label has at most {LONGEST_LABEL} characters, and no half of a surrogate: {key[:40]!r}"
            )
    return dict(labels or {})
