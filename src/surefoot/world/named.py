"""What has a name in this process: environment variables, installed packages, models, and anything a function can see."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from hashlib import sha256
from typing import Any

from surefoot.core import values
from surefoot.core.entry import ABSENT
from surefoot.errors import UsageError
from surefoot.world.base import Look, NotObservable, Pulse, Specified, Witness, text_argument


class Env(Specified):
    def __init__(self, variable: str, name: str | None) -> None:
        self.variable = variable
        super().__init__(name, f"env({variable})", look="env", variable=variable)

    def look(self, pulse: Pulse) -> Look:
        value = os.environ.get(self.variable)
        # Only its hash is recorded here: it may be a password. `sf.watch` records the value, because it is asked to.
        seen = ABSENT if value is None else sha256(os.fsencode(value)).hexdigest()
        return Look({f"env:{self.variable}": seen}, value)


class Package(Specified):
    def __init__(self, package: str, name: str | None) -> None:
        self.package = package
        super().__init__(name, f"package({package})", look="package", package=package)

    def look(self, pulse: Pulse) -> Look:
        from importlib import metadata

        try:
            version = metadata.version(self.package)
        except metadata.PackageNotFoundError:
            return Look({f"package:{self.package}": ABSENT})
        return Look({f"package:{self.package}": str(version)}, str(version))


class Model(Witness):
    """No spec: what the code names now is what there is to see. A recorded name would only ever agree with itself."""

    def __init__(self, model: str, name: str | None) -> None:
        self.model = model
        super().__init__(name or f"model({model})")
        self._part = f"model:{name or model}"

    def look(self, pulse: Pulse) -> Look:
        return Look({self._part: self.model}, self.model)


class Observe(Witness):
    def __init__(self, name: str, function: Callable[[], Any]) -> None:
        self.function = function
        super().__init__(name)

    def look(self, pulse: Pulse) -> Look:
        value = self.function()
        if inspect.iscoroutine(value):
            value.close()
            raise NotObservable("its function is async; give one that returns the value")
        raw = values.encode(value)
        if b'"$secret"' in raw:
            raise NotObservable("an sf.Secret is recorded as ***, so a change of it could not be seen; return a hash")
        return Look({f"observe:{self.name}": values.digest(value)}, value)


def env(variable: str, *, name: str | None = None) -> Witness:
    """An environment variable. Its value is the text, or None."""
    text_argument("env", variable)
    if "=" in variable or "\0" in variable:
        raise UsageError(f"{variable!r:.200} cannot be the name of an environment variable.")
    return Env(variable, name)


def package(distribution: str, *, name: str | None = None) -> Witness:
    """The installed version of a package, by the name it is installed under. None where it is not installed."""
    return Package(text_argument("package", distribution), name)


def model(model: str, *, name: str | None = None) -> Witness:
    """A model's name and version, as the code gives it: `model("gpt-x-2026-05", name="planner")`.

    With a `name=` that stays, a new model is a change from the old one to the new. Without, the old one is missed.
    """
    if text_argument("model", model) == ABSENT:
        raise UsageError(f"a model called {ABSENT!r} could not be told from none.")
    return Model(model, name)


def observe(name: str, fn: Callable[[], Any]) -> Witness:
    """Whatever a function returns, as long as it can be stored: a prompt, a tool's schema, an offset in a queue.

    It must only look, return the same for the same, and be quick. Raising means: could not be seen.
    """
    if not callable(fn):
        raise UsageError(f"observe({name!r:.100}, …) takes a function, not {fn!r:.100}.")
    if inspect.iscoroutinefunction(fn):
        raise UsageError(f"observe({name!r:.100}, …) takes a blocking function; inside, asyncio.run(…) will do.")
    return Observe(name, fn)
