"""Engines that are wrong about the world: when a call is over, what an exception proves, what was asked for, who wrote a file.

Each breaks one rule of *truth above the store*, as `engines.py` breaks those of the store itself.
"""

# ruff: noqa: ARG005 - what is replaced keeps its signature

from __future__ import annotations

from typing import Any

from surefoot.core import clients
from surefoot.core.clients import Family
from surefoot.core.command import Pause, RunCheck
from surefoot.core.entry import NOTHING
from surefoot.core.programs import calls, landing
from surefoot.core.programs.landing import GONE, Landing
from surefoot.core.verdict import NotHappened, Partial
from surefoot.engine.process import journal
from surefoot.engine.session import attempt, effects_done, late, questions, session
from surefoot.engine.session.attempt import Attempt
from surefoot.errors import Fatal, NotDone
from tests.crash.broken.engines import engine

# --- calls that are still on their way -----------------------------------------------------------------------------------


@engine
def not_happened_believed_at_once() -> None:
    def looked(self: Any, *, patient: bool = True) -> Any:
        return (yield RunCheck())

    Landing.looked = looked


@engine
def in_flight_ignored() -> None:
    """Only a time-out is waited for."""
    Landing.of = classmethod(
        lambda cls, past, in_flight, lingers=False: cls(
            past.address, past.deadline, past.deadline is not None, elsewhere=True, landed=past.landed is not None
        )
    )


@engine
def bound_looked_at_after_the_check() -> None:
    """The time may have run out while the check was looking."""

    def looked(self: Any, *, patient: bool = True) -> Any:
        while True:
            verdict = yield RunCheck()
            if not isinstance(verdict, NotHappened | Partial):
                return verdict
            if self.due is None or (yield from landing._is_over(self.due)):
                return verdict
            yield Pause(self.due, "it may still be on its way")

    Landing.looked = looked


@engine
def half_believed_at_once() -> None:
    """A part that is there is undone, while the rest is on its way."""
    real = Landing.looked

    def looked(self: Any, *, patient: bool = True) -> Any:
        verdict = yield RunCheck()
        return verdict if isinstance(verdict, Partial) else (yield from real(self, patient=patient))

    Landing.looked = looked


@engine
def cancelled_without_patience() -> None:
    """Who cancels does not wait; so what a check does not find did not happen."""
    real = Landing.looked

    def looked(self: Any, *, patient: bool = True) -> Any:
        return (yield from real(self)) if patient else (yield RunCheck())

    Landing.looked = looked


# --- processes that are only silent ----------------------------------------------------------------------------------------


@engine
def silent_is_dead() -> None:
    attempt.traced = lambda this, past: GONE


@engine
def fenced_worker_silent() -> None:
    late.refused = lambda this, entries, error: None


@engine
def late_landing_not_heard() -> None:
    late.heard = lambda run, entry: None


@engine
def entries_of_another_claim_taken_for_ours() -> None:
    """Whoever waits without a claim goes on behind what the process before has written since."""
    real = journal.Journal.__init__

    def init(self: Any, *args: Any, **more: Any) -> None:
        real(self, *args, **more)
        self._claims = True

    journal.Journal.__init__ = init


# --- what an exception proves -----------------------------------------------------------------------------------------------


@engine
def exception_is_failed() -> None:
    calls.proves_not_done = lambda error, not_done, **_: True


@engine
def key_error_proves_not_done() -> None:
    """It is only a bug in reading the answer, after all."""
    known = clients.FAMILIES["builtins"]
    clients.FAMILIES["builtins"] = Family(not_sent=known.not_sent | {"KeyError"}, unsure=known.unsure)


@engine
def clients_that_retry_are_believed() -> None:
    """Their last word is taken for the whole story."""
    for name in ("openai", "anthropic"):
        clients.FAMILIES[name] = Family(status=("status_code",))


@engine
def broad_not_done_covers_unsure() -> None:
    real = calls.proves_not_done

    def proves(error: BaseException, not_done: Any, *, guarded: bool = False) -> bool:
        return real(error, not_done, guarded=guarded) or isinstance(error, not_done or ())

    calls.proves_not_done = proves


@engine
def empty_not_done_ignored() -> None:
    """`not_done=()` says that not even what is known of a client is a proof."""
    real = calls.proves_not_done
    calls.proves_not_done = lambda error, not_done, **more: real(error, not_done or None, **more)


@engine
def group_is_as_good_as_its_best() -> None:
    real = calls.proves_not_done

    def proves(error: BaseException, not_done: Any, *, guarded: bool = False) -> bool:
        parts = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
        return real(error, not_done, guarded=guarded) or any(isinstance(one, Fatal | NotDone) for one in parts)

    calls.proves_not_done = proves


@engine
def saga_forgets_what_failed_in_doubt() -> None:
    effects_done.was_in_doubt = lambda raw: False


# --- executed = recorded = shown = undone -------------------------------------------------------------------------------------


@engine
def defaults_of_today_used_on_retry() -> None:
    session.repeated = lambda this, past, asked: asked


@engine
def undo_with_defaults_of_today() -> None:
    real = effects_done._recorded
    effects_done._recorded = lambda this, address, ending: (real(this, address, ending)[0], NOTHING)


@engine
def approval_not_looked_at_again() -> None:
    real = questions.consent

    def consent(*args: Any) -> Any:
        ending, _ = yield from real(*args)
        return ending, False

    questions.consent = consent


# --- who wrote a file -----------------------------------------------------------------------------------------------------------


@engine
def look_not_held_against_expectation() -> None:
    Attempt.held = lambda self, sights: None


@engine
def foreign_write_taken_for_own() -> None:
    """What is found after an effect is its own, whatever the effect says."""
    Attempt.left = lambda self: (self.sights()[0], ())
