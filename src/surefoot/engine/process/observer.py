"""Observers: each thing that this process does is reported, as it happens, to all that are registered.

The engine reports a fact once and does not know who listens. Meters, alerts and the crash kit are observers; so will be
traces for OpenTelemetry. A fact that no observer listens to costs an empty call.

The rules for an observer:

- It is called by the thread that does the thing, while it does it. In async code that is the thread of the event loop. So it
  returns quickly and waits for nothing. Several threads may call it at once.
- It must not raise. One that raises an `Exception` is logged once and left out from then on; the run goes on. What is no
  `Exception` (Ctrl-C) passes, as it does anywhere.
- It must not call surefoot's verbs, nor change what it is given.
- A replay tells nothing: calls that the journal answers are not made again, and a rehearsal executes nothing.
"""

from __future__ import annotations

import inspect
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

from msgspec import Struct

if TYPE_CHECKING:
    from surefoot.core.command import Outcome
    from surefoot.core.entry import Stop
    from surefoot.core.verdict import Verdict
    from surefoot.engine.declare.call_spec import CallSpec
    from surefoot.engine.process.alerts import Alert
    from surefoot.store.contract import Extend

_log = logging.getLogger("surefoot")


class Call(Struct, frozen=True):
    """One attempt at a step or an effect."""

    run: str
    segment: int
    """Counted from 1; more after `sf.continue_as_new`."""
    address: str
    attempt: int
    key: str
    declared: CallSpec
    """What its decorator was told: its name, its kind (`step` or `effect`), its policy."""


class AnswerLost(BaseException):
    """For the crash kit, out of `call_ended`: the call ends as if its function had raised this, after it has acted."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


class Observer:
    """Told of everything, and does nothing. Override what you want to know."""

    is_strict: ClassVar = False
    """Whether what it raises is passed on to the run. The crash kit is: left out, it would prove nothing. So are the meters,
    which cannot fail."""

    def run_began(self, run: str, workflow: str, *, resumed: bool) -> None:
        """This process has claimed the run, and the claim is durable. `resumed`: it was claimed before, by any process."""

    def run_ended(self, run: str, status: str) -> None:
        """This process drives the run no longer. `status` is how it stands: `done`, `stopped`, `sleeping`, …

        Told once for each `run_began`.
        """

    def run_stopped(self, run: str, stops: Sequence[Stop]) -> None:
        """The run needs a person; that is on record. Told before `run_ended`."""

    def run_fell_back(self, run: str, summary: str) -> None:
        """The journal was damaged, and the run goes on from its longest valid prefix; that is on record."""

    def call_began(self, call: Call) -> None:
        """The function of a step or effect is about to be called. An effect's intent is durable."""

    def call_retried(self, call: Call) -> None:
        """The same, for every attempt after the first; told before `call_began`."""

    def call_ended(self, call: Call, outcome: Outcome) -> None:
        """The function has returned or raised. Nothing of that is on record yet.

        Not told of a call that was cut off: a step that was cancelled, or Ctrl-C.
        """

    def call_refused(self, run: str, name: str, kind: str, error: Exception) -> None:
        """A call came from a thread or task that belongs to no run (`run` is empty), or to no branch of its run."""

    def check_began(self, call: Call) -> None:
        """The check of an effect is about to be called."""

    def check_ended(self, call: Call, verdict: Verdict) -> None:
        """The check has answered. One that raised could not tell: `Unknown`."""

    def appended(self, batch: Sequence[Extend], seconds: float) -> None:
        """One transaction of the runs that this process drives is durable; the store took so long.

        `batch` is what the store has taken. Empty: others had written first, and all of it is tried again or given up. Of
        one store, told by one thread at a time.
        """

    def append_failed(self, error: Exception) -> None:
        """A transaction failed. What was in it is in the store or not: the next reader finds out."""

    def alerted(self, alert: Alert) -> None:
        """Something that a person should know at once."""


FACTS: Final = tuple(name for name, fact in vars(Observer).items() if inspect.isfunction(fact))


class Observers(Observer):
    """Hands each fact to all who are registered and listen to it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._registered: tuple[Observer, ...] = ()
        self.hear_calls = False
        """Whether anybody listens to calls or checks. Asked first: a `Call` is not made for nobody."""

    def add(self, observer: Observer) -> None:
        with self._lock:
            self._register((*self._registered, observer))

    def remove(self, observer: Observer) -> None:
        with self._lock:
            self._register(tuple(one for one in self._registered if one is not observer))

    def _register(self, registered: tuple[Observer, ...]) -> None:
        """A fact that somebody listens to is an attribute here; else the method that does nothing is found."""
        self._registered = registered
        for fact in FACTS:
            nothing = getattr(Observer, fact)
            listening = [one for one in registered if getattr(type(one), fact) is not nothing]
            told = [getattr(one, fact) for one in listening]
            if not listening:
                self.__dict__.pop(fact, None)
            elif len(listening) == 1 and listening[0].is_strict:
                (self.__dict__[fact],) = told  # Nothing to guard: the meters cost what they count.
            else:
                self.__dict__[fact] = partial(self._tell, fact, told)
        self.hear_calls = any(fact in self.__dict__ for fact in _OF_CALLS)

    def _tell(self, fact: str, listening: Sequence[Callable[..., None]], *facts: Any, **named: Any) -> None:
        for hear in listening:
            try:
                hear(*facts, **named)
            except Exception:
                observer: Any = getattr(hear, "__self__", None)
                if observer.is_strict:
                    raise
                self.remove(observer)
                _log.exception("observer %r failed at %s, and is left out from now on", observer, fact)


_OF_CALLS: Final = ("call_began", "call_ended", "check_began", "check_ended")

observers: Final = Observers()
"""Those of this process, whatever stores it has open (`Runtime.observer`)."""


@contextmanager
def observed(by: Observer) -> Iterator[None]:
    """While this lasts, that one is told."""
    observers.add(by)
    try:
        yield
    finally:
        observers.remove(by)
