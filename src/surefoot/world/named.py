"""Named things in this process: environment variables, packages, models, and anything that a function returns."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from hashlib import sha256
from typing import Any

from surefoot.core import values
from surefoot.core.entry import ABSENT
from surefoot.errors import UsageError
from surefoot.world.base import Look, NotObservable, Pulse, Ready, Witness, text_argument


def env(variable: str, *, name: str | None = None) -> Witness:
    """An environment variable. Its value is the text, or None."""
    text_argument("env", variable)
    if "=" in variable or "\0" in variable:
        raise UsageError(f"{variable!r:.200} cannot be the name of an environment variable.")

    def look(_: Pulse) -> Look:
        value = os.environ.get(variable)
        # Only its hash is recorded here: it may be a password. `sf.watch` records the value, because the code asks for
        # it.
        seen = ABSENT if value is None else sha256(os.fsencode(value)).hexdigest()
        return Look({f"env:{variable}": seen}, value)

    return Ready(name, f"env({variable})", look, look="env", variable=variable)


def package(distribution: str, *, name: str | None = None) -> Witness:
    """The installed version of a package, by the name it is installed under. None where it is not installed."""
    text_argument("package", distribution)

    def look(_: Pulse) -> Look:
        from importlib import metadata

        try:
            version = str(metadata.version(distribution))
        except metadata.PackageNotFoundError:
            return Look({f"package:{distribution}": ABSENT})
        return Look({f"package:{distribution}": version}, version)

    return Ready(name, f"package({distribution})", look, look="package", package=distribution)


def model(model: str, *, name: str | None = None) -> Witness:
    """A model's name and version, as the code gives it: `model("gpt-x-2026-05", name="planner")`.

    With a `name=` that stays, a new model is a change from the old one to the new. Without, the old one is missed.
    """
    if text_argument("model", model) == ABSENT:
        raise UsageError(f"a model called {ABSENT!r} could not be told from none.")
    # No spec: only the code's present name can be observed. A recorded name would always agree with itself.
    return Ready(name, f"model({model})", lambda _: Look({f"model:{name or model}": model}, model))


def observe(name: str, fn: Callable[[], Any]) -> Witness:
    """Whatever a function returns, as long as it can be stored: a prompt, a tool's schema, an offset in a queue.

    It must only look, return the same for the same, and be quick. Raising means: could not be seen.
    """
    if not callable(fn):
        raise UsageError(f"observe({name!r:.100}, …) takes a function, not {fn!r:.100}.")
    if inspect.iscoroutinefunction(fn):
        raise UsageError(f"observe({name!r:.100}, …) takes a blocking function; inside, asyncio.run(…) will do.")

    def look(_: Pulse) -> Look:
        value = fn()
        if inspect.iscoroutine(value):
            value.close()
            raise NotObservable("its function is async; give one that returns the value")
        if b'"$secret"' in values.encode(value):
            raise NotObservable("an sf.Secret is recorded as ***, so a change of it could not be seen; return a hash")
        return Look({f"observe:{name}": values.digest(value)}, value)

    return Ready(None, name, look)
