"""The workflows this process knows. Code is named by people, never imported because stored data says so."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from surefoot.core import values
from surefoot.engine.config import checked_policy
from surefoot.engine.spec import Binder, require_named
from surefoot.engine.start import APPROVALS, DECLARED, Plan, check_id
from surefoot.engine.worldview import STOP, OnDrift, checked_on_drift, checked_witnesses
from surefoot.errors import UsageError, ValueRejected

LONGEST_NAME = 200


def is_async(fn: Callable[..., Any]) -> bool:
    """By the code's own flag: asking asyncio would import it."""
    return inspect.iscoroutinefunction(fn)


class Definition:
    """A workflow as it was defined in this process."""

    def __init__(
        self,
        fn: Callable[..., Any],
        name: str | None,
        version: int,
        *,
        on_corruption: str | None = None,
        watch: Sequence[Any] = (),
        on_drift: OnDrift = STOP,
        approve: str = DECLARED,
    ) -> None:
        if type(version) is not int or version < 1:
            raise UsageError(f"@sf.workflow(version={version!r}): must be a whole number, one or more")
        self.fn = require_named(fn, "@sf.workflow")
        self.name = name or fn.__name__
        if not self.name.isprintable() or len(self.name) > LONGEST_NAME:
            raise UsageError(f"@sf.workflow(name={self.name[:40]!r}): at most {LONGEST_NAME} printable characters")
        self.version = version
        self.watch = checked_witnesses(watch)
        self.on_drift = checked_on_drift(on_drift)
        self.approve = _checked_approval(approve)
        self.on_corruption = None if on_corruption is None else checked_policy(on_corruption)
        self.binder = Binder(fn)
        self.is_async = is_async(fn)
        self.origin = f"{fn.__module__}:{fn.__qualname__}"
        values.register_annotations(fn)

    def plan(self, run: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Plan:
        check_id(run)
        try:
            raw, digest = values.encode_args(self.binder.bind(args, kwargs))
        except ValueRejected as error:
            raise ValueRejected(f"run {run}: an argument cannot be stored: {error}", path=error.path) from error
        return self._plan(raw, digest)

    def resume_plan(self) -> Plan:
        return self._plan(None, "")

    def _plan(self, args: bytes | None, digest: str) -> Plan:
        return Plan(
            self.name, self.version, self.fn, self.binder, args, digest, self.on_corruption, self.watch, self.on_drift,
            self.approve,
        )  # fmt: skip


def _checked_approval(policy: str) -> str:
    if policy not in APPROVALS:
        raise UsageError(f"@sf.workflow(approve={policy!r}): must be one of {', '.join(map(repr, APPROVALS))}")
    return policy


class Registry:
    """The workflows this process knows by name. Code is named by people, never by stored data."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, Definition]] = {}

    def add(self, definition: Definition) -> None:
        self._known.setdefault(definition.name, {})[definition.origin] = definition

    def known(self, name: str) -> Definition | None:
        """The only workflow of that name, if there is just one."""
        found = self._known.get(name, {})
        return next(iter(found.values())) if len(found) == 1 else None

    def names(self) -> tuple[str, ...]:
        """Those that name just one workflow."""
        return tuple(name for name in self._known if self.known(name) is not None)

    def ambiguous(self) -> dict[str, list[str]]:
        """Names that several workflows share, and where these are."""
        return {name: sorted(found) for name, found in self._known.items() if len(found) > 1}

    def find(self, name: str) -> Definition:
        found = self._known.get(name, {})
        if not found:
            raise UsageError(
                f"no workflow {name!r} is defined in this process: import the module that defines it first, "
                "or name it: surefoot runs resume ID --app module"
            )
        if len(found) > 1:
            raise UsageError(
                f"several workflows are called {name!r}: {', '.join(sorted(found))}. Give each a name= of its own."
            )
        return next(iter(found.values()))


registry = Registry()
