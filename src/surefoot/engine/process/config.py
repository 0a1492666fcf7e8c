"""Settings of this process. The store of runs: `sf.configure`, then SUREFOOT_STORE, then a file beside the work."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from surefoot import errors
from surefoot.core import shapes
from surefoot.core.choice import OnChange, OnCorruption, one_of
from surefoot.core.cure import Cure
from surefoot.core.timer import Duration, seconds
from surefoot.core.urls import DEFAULT_STORE
from surefoot.engine.process import engines
from surefoot.engine.process.alerts import Alert, Sink
from surefoot.engine.process.observer import Observer, observers
from surefoot.engine.process.runtime import Runtime, runtime_of
from surefoot.engine.process.whereabouts import at
from surefoot.errors import Damaged, Stopped, UsageError
from surefoot.store.open import backend_of, open_store, shown

FALLBACK: Final = "fallback"
log = logging.getLogger("surefoot")
shapes.announce_to(log.warning)


class Settings:
    def __init__(self) -> None:
        self.store: str | None = None
        self.namespace = ""
        self.on_corruption = FALLBACK
        self.alerts: tuple[Sink, ...] = ()
        self.on_change = "auto"
        """What happens to recorded steps that are asked for with other arguments, where they do not declare it."""
        self.rerun_limit = 10
        """How many recorded steps may run again in one resume because their arguments have changed; more are a stop."""
        self.in_flight_seconds = 30.0
        """For how long a call that was cut off may still be on its way, where its effect does not declare it."""
        self.rehearses = True
        """Whether a resumed run is replayed before it goes on. The testing kit also tries without."""
        self.loading = ""
        """The module that a command is importing to know its workflows. Looking at code starts no run."""


settings = Settings()
_warned: set[str] = set()


def configure(
    *,
    store: str | None = None,
    namespace: str | None = None,
    on_corruption: OnCorruption | None = None,
    alerts: Iterable[Sink] | None = None,
    on_change: OnChange | None = None,
    rerun_limit: int | None = None,
    in_flight: Duration | None = None,
    engine: str | None = None,
) -> None:
    """Set how this process works. What is not given stays as it is.

    The namespace is part of every idempotency key: give each environment (test, live) its own. `on_corruption` says
    what to do with a run whose journal is damaged: `"fallback"` to its longest valid prefix, or `"stop"`. Each of
    `alerts` is called with the text of whatever a person should know at once: a function of yours, or one of
    `sf.alerts.command([...])`, `sf.alerts.webhook(url)` and `sf.alerts.log()`.

    `on_change` says what happens to recorded steps that changed code asks for with other arguments, unless they say it
    themselves; `rerun_limit`, how many of them may run again before a person is asked. `in_flight` is the time for which
    a call that was cut off may still be on its way: so long its check's "not happened" is not believed. `engine` says who
    drives runs: `"embedded:"`, surefoot's own workers, is the default; `"temporal://HOST:PORT/NAMESPACE"`.
    """
    if on_change is not None:
        settings.on_change = one_of(on_change, OnChange, "sf.configure: on_change")
    if rerun_limit is not None:
        settings.rerun_limit = _checked_limit(rerun_limit)
    if in_flight is not None:
        settings.in_flight_seconds = seconds(in_flight)
    if on_corruption is not None:
        settings.on_corruption = checked_policy(on_corruption)
    if alerts is not None:
        settings.alerts = _checked_sinks(alerts)
    if engine is not None:
        engines.configure(engine)
    if store is not None:
        settings.store = store
    if namespace is not None:
        settings.namespace = namespace


def checked_policy(on_corruption: OnCorruption) -> OnCorruption:
    return one_of(on_corruption, OnCorruption, "on_corruption")


def _checked_limit(rerun_limit: int) -> int:
    if type(rerun_limit) is not int or rerun_limit < 0:
        raise UsageError(f"sf.configure(rerun_limit={rerun_limit!r}): must be a whole number, zero or more")
    return rerun_limit


def _checked_sinks(alerts: Any) -> tuple[Sink, ...]:
    if isinstance(alerts, str) or callable(alerts):
        raise UsageError("sf.configure(alerts=[…]): a list of functions that take a text")
    found = tuple(alerts)
    for sink in found:
        if not callable(sink):
            raise UsageError(f"sf.configure(alerts=[…]): {sink!r} is not a function that takes a text")
    return found


def loud(message: str, *, run: str = "", kind: str = "") -> None:
    """Report something important: a warning, and every alert."""
    log.warning("%s", message)
    alert(message, run=run, kind=kind)


def alert_error(error: Stopped, run: str = "") -> None:
    kind = type(error).__name__
    alert(f"{kind}: {error.summary}", error.remedies, store=error.store, run=run, kind=kind)


def alert(message: str, cures: Iterable[Cure] = (), *, store: str = "", run: str = "", kind: str) -> None:
    """Alert people at once, with the commands that help.

    Recipients may be on another host, so the commands name the store.
    """
    helps = (f"  {cure.when} {errors.in_words(cure, store)}" for cure in cures)
    observers.alerted(Alert("\n".join([message, *helps]), run=run, kind=kind))


class Sinks(Observer):
    """Passes alerts to the configured sinks. A failing sink changes nothing for the others, nor for the run."""

    def alerted(self, alert: Alert) -> None:
        for sink in settings.alerts:
            try:
                sink(alert)
            except Exception:
                log.exception("an alert failed")


observers.add(Sinks())


@contextmanager
def overridden(**others: Any) -> Iterator[None]:
    """These settings are changed inside this block: for tests."""
    kept = {name: getattr(settings, name) for name in others}
    for name, value in others.items():
        setattr(settings, name, value)
    try:
        yield
    finally:
        for name, value in kept.items():
            setattr(settings, name, value)


def store_url(given: str | None = None) -> str:
    return given or settings.store or os.environ.get("SUREFOOT_STORE") or DEFAULT_STORE


def is_store_named(given: str | None = None) -> bool:
    """Whether somebody said which store is meant: for those who must not guess."""
    return bool(given or settings.store or os.environ.get("SUREFOOT_STORE"))


def runtime(url: str | None = None, *, create: bool) -> Runtime:
    """The open store. Only verbs that write may create one, and they ask for it."""
    engines.require_known()  # An unknown engine is refused now, not after something was written.
    where = store_url(url)
    if not backend_of(where).durable and where not in _warned:
        _warned.add(where)
        log.warning("store %s is not durable: its runs end with this process", where)
    try:
        with at(shown(where)):
            return runtime_of(open_store(where, create=create, announce=log.warning))
    except Damaged as error:
        if create:  # The caller wants to write, not only to read: a person is needed, and nothing can be recorded.
            alert_error(error)
        raise
