"""The workflows that this process knows. Code is named by people, never imported because stored data says so."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from surefoot.core import values
from surefoot.core.choice import Approval, OnCorruption, OnFailure, one_of
from surefoot.core.cure import ANY_RUN, Ask, command
from surefoot.core.entry import RunCreated
from surefoot.core.masking import secrets_in
from surefoot.core.registry import mentions
from surefoot.core.visible import visible
from surefoot.engine.declare.call_spec import Binder, checked_was, require_named
from surefoot.engine.declare.defaults import hides
from surefoot.engine.declare.drifts import OnDrift, checked_on_drift, checked_witnesses
from surefoot.engine.declare.identity import Identity, origin_of
from surefoot.engine.declare.plan import Plan, check_id
from surefoot.engine.process.config import checked_policy
from surefoot.errors import UsageError, ValueRejected

LONGEST_NAME = 200


def is_async(fn: Callable[..., Any]) -> bool:
    """By the flag of the code object: asking asyncio would import it."""
    return inspect.iscoroutinefunction(fn)


def like(fn: Callable[..., Any], call: Callable[[Any, Any, Any], Any], given: Any) -> Any:
    """A function with the name, signature and colour of `fn`. When called, it returns `call(given, args, kwargs)`."""
    if is_async(fn):

        @functools.wraps(fn)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            return await call(given, args, kwargs)

        return awaited

    @functools.wraps(fn)
    def called(*args: Any, **kwargs: Any) -> Any:
        return call(given, args, kwargs)

    return called


def spread(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return fn(*args, **kwargs)


class Definition:
    """A workflow as it was defined in this process."""

    def __init__(
        self,
        fn: Callable[..., Any],
        *,
        name: str | None = None,
        version: int = 1,
        watch: Sequence[Any] = (),
        on_drift: OnDrift = "stop",
        on_corruption: OnCorruption | None = None,
        approve: Approval = "declared",
        was: str | tuple[str, ...] = (),
        on_failure: OnFailure = "fail",
        hosted: str = "",
    ) -> None:
        one_of(on_failure, OnFailure, "@sf.workflow: on_failure")
        if type(version) is not int or version < 1:
            raise UsageError(f"@sf.workflow(version={version!r}): must be a whole number, one or more")
        self.fn = require_named(fn, "@sf.workflow")
        self.name = name or fn.__name__
        if not self.name.isprintable() or len(self.name) > LONGEST_NAME:
            raise UsageError(f"@sf.workflow(name={self.name[:40]!r}): at most {LONGEST_NAME} printable characters")
        self.version = version
        self.is_named = name is not None
        """Whether the name was given with `name=`: then the name alone identifies the workflow."""
        self.was = checked_was(was, f"workflow {self.name}")
        """Its former names: `old`, or `old_module:old`."""
        self.on_failure = on_failure
        self.hosted = hosted
        """The framework that hands in what is executed; empty: it is a workflow, and this function is."""
        self.watch = checked_witnesses(watch)
        self.on_drift = checked_on_drift(on_drift)
        self.approve: str = one_of(approve, Approval, "@sf.workflow: approve")
        self.on_corruption = None if on_corruption is None else checked_policy(on_corruption)
        self.binder = Binder(fn)
        self.is_async = is_async(fn)
        known_as = origin_of(fn)
        self.origin = known_as or f"{fn.__module__}:{fn.__qualname__}"
        self.identity = Identity(self.name, known_as, self.is_named, self.was)
        self._warned = False
        values.register_annotations(fn)
        if mentions(fn, values.Secret):
            self._warn_of_secret("it declares a parameter that is an sf.Secret")

    def plan(self, run: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Plan:
        check_id(run)
        try:
            raw, digest = values.encode_args(self.binder.bind(args, kwargs))
        except ValueRejected as error:
            raise ValueRejected(f"run {run}: an argument cannot be stored: {error}", path=error.path) from error
        secrets: tuple[values.Secret[Any], ...] = ()
        if hides(raw):
            self._warn_of_secret("it was given an sf.Secret")
            secrets = tuple(secrets_in(args, kwargs))
        return Plan(self, raw, digest, secrets, self.binder.left_out(args, kwargs))

    def _warn_of_secret(self, what: str) -> None:
        """Once, at the declaration: else the step that uses it finds out at night."""
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"workflow {self.name}: {what}. A secret is recorded as ***, so no workflow can reveal one that was "
                "passed to it. Read it in the step or effect that uses it, for example from os.environ.",
                RuntimeWarning,
                stacklevel=4,
            )

    def resume_plan(self) -> Plan:
        return Plan(self)


class Registry:
    """The workflows that this process knows, by name. Code is named by people, never by stored data."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, Definition]] = {}

    def add(self, definition: Definition) -> None:
        self._known.setdefault(definition.name, {})[definition.origin] = definition

    def known(self, name: str) -> Definition | None:
        """The workflow of that name, if there is exactly one."""
        found = self._known.get(name, {})
        return next(iter(found.values())) if len(found) == 1 else None

    def names(self) -> tuple[str, ...]:
        """The names of exactly one workflow."""
        return tuple(name for name in self._known if self.known(name) is not None)

    def all(self) -> list[Definition]:
        return [definition for found in self._known.values() for definition in found.values()]

    def find(self, name: str) -> Definition:
        found = self._known.get(name)
        if not found:
            raise UsageError(
                f"no workflow {name!r} is defined in this process. Elsewhere? Import the module that defines it first, or name "
                f'it: {command("runs resume", ANY_RUN, app=Ask("module"))}. Renamed? @sf.workflow(was="{name}") on the function that '
                "it is now."
            )
        if len(found) > 1:
            raise several(name, found.values())
        return next(iter(found.values()))

    def known_for(self, created: RunCreated | None) -> Definition | None:
        """The workflow that a run belongs to, if this process knows exactly one."""
        owners = [] if created is None else owning(self.all(), created)
        return owners[0] if len(owners) == 1 else None

    def find_for(self, created: RunCreated | None) -> Definition:
        """The same. UsageError with the reason, if there is none."""
        if created is None:
            return self.find("")
        if created.hosted:
            raise UsageError(goes_on_elsewhere(created))
        if len(owners := owning(self.all(), created)) == 1:
            return owners[0]
        if owners:
            raise several(created.workflow, owners)
        if others := self._known.get(created.workflow):
            raise UsageError(another(created, others.values()))
        return self.find(created.workflow)


def owning(definitions: Iterable[Definition], created: RunCreated) -> list[Definition]:
    """The definitions that claim that run; the function that created it counts before any other."""
    if created.hosted:
        return []
    owners = [each for each in definitions if each.identity.owns(created)]
    exact = [each for each in owners if created.module and each.identity.origin == created.module]
    return exact or owners


def goes_on_elsewhere(created: RunCreated) -> str:
    """How a run goes on that a framework hosts: no code of ours can take it up."""
    thread = f" on thread {visible(created.labels['thread'])}" if "thread" in created.labels else ""
    return f"a graph of {created.hosted} executes it, and nobody else: invoke the graph again{thread}, with None as its input"


def several(name: str, found: Iterable[Definition]) -> UsageError:
    where = ", ".join(sorted(each.origin for each in found))
    return UsageError(f"several workflows are called {name!r}: {where}. Give each a name= of its own.")


def another(created: RunCreated, found: Iterable[Definition]) -> str:
    """Why none of these workflows can drive a run of that name."""
    where = ", ".join(sorted(each.origin for each in found))
    return (
        f"workflow {created.workflow!r} is {created.module} on record, and the code at hand has {where}: another one is "
        f'not taken for it. If it has moved or was renamed: @sf.workflow(was="{created.module}").'
    )


registry = Registry()
