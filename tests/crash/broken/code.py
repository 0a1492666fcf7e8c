"""Engines that get changed code wrong (L13): each breaks one rule of what a recorded call is."""

# ruff: noqa: ARG005 - what is replaced keeps its signature

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from surefoot.core.address import split
from surefoot.core.matching.answers import Changed, Kept, New, Same
from surefoot.core.matching.matcher import Matcher
from surefoot.core.matching.records import Records
from surefoot.core.matching.search import Search
from surefoot.core.matching.steps import Steps
from surefoot.engine.declare import call_spec
from surefoot.engine.drive import conclusion, gate
from surefoot.engine.process.config import settings
from surefoot.engine.session import fence, lookup, replay, session
from surefoot.engine.session.fence import Fence
from tests.crash.broken.engines import ENGINES

CODE: list[str] = []
"""Those of this file."""


def engine(break_: Callable[[], None]) -> Callable[[], None]:
    CODE.append(break_.__name__.replace("_", "-"))
    ENGINES[CODE[-1]] = break_
    return break_


@engine
def no_rehearsal() -> None:
    gate.is_needed = lambda state: False


@engine
def no_fence() -> None:
    """A new name is a new effect."""
    Matcher.blocked = lambda *_, **__: []
    conclusion._unsettled = lambda *_: ()


@engine
def fence_by_scope_only() -> None:
    """An effect on record counts only where the new one is."""
    Matcher._may_be = lambda self, past, asked, *_: split(past.address)[0] == asked.path
    conclusion._unsettled = lambda *_: ()


@engine
def number_before_arguments() -> None:
    """A step is the how-manieth it is, whatever it is asked with."""

    def equal(self: Any, asked: Any, here: Any) -> Any:
        own = here is not None and here.address not in self._records.asked and self._arguments.same(here, asked)
        return here if own else None

    Steps._equal = equal


@engine
def renamed_gets_a_new_key() -> None:
    """What was recorded under the old name and is in doubt begins anew under the new one."""
    real = Search.as_recorded

    def as_recorded(self: Any, asked: Any, past: Any) -> Any:
        if split(past.address)[1] != asked.name and past.value is None:
            self._records.asked.add(past.address)
            return New(asked.address, declared=True)
        return real(self, asked, past)

    Search.as_recorded = as_recorded


@engine
def removed_is_ignored() -> None:
    replay.is_removed = lookup.is_removed = fence.is_removed = lambda past: False


def _instead_of_a_changed_step(answer: Callable[[Any, Any, Any], Any]) -> None:
    Steps._changed_step = answer


@engine
def changed_step_always_kept() -> None:
    _instead_of_a_changed_step(lambda self, asked, here: Kept(here, "always"))


@engine
def changed_step_never_kept() -> None:
    """It takes the next number, whether or not something was done because of what it gave."""
    _instead_of_a_changed_step(lambda self, asked, here: New(self._records.free(asked)))


@engine
def changed_effect_accepted() -> None:
    """What is on record is the answer, whatever is asked."""
    real = Search.as_recorded

    def as_recorded(self: Any, asked: Any, past: Any) -> Any:
        found = real(self, asked, past)
        return Same(past) if isinstance(found, Changed) else found

    Search.as_recorded = as_recorded


@engine
def rerun_limit_ignored() -> None:
    settings.rerun_limit = 1 << 30


@engine
def new_default_on_a_retry() -> None:
    call_spec.Binder.with_defaults = lambda self, args, kwargs, recorded: (args, kwargs)


@engine
def enum_value_ignored() -> None:
    session.another_request = lambda *_: None


@engine
def step_behind_its_effects_kept() -> None:
    """A call that comes behind what was done because of the recorded one is taken for it."""
    Records.is_passed = lambda self, past: False


@engine
def hidden_step_not_heard_again() -> None:
    """What a new call hid from the rehearsal is decided without one."""
    Fence.was_hidden = lambda self, past: False


@engine
def unproven_answer_kept() -> None:
    """Kept, though the effects that would prove it lie behind something new."""
    Steps.unproven = lambda *_: frozenset()


@engine
def effect_becomes_a_step() -> None:
    """Only an effect at the very same place is missed."""
    Steps._was_effect = lambda self, asked: None
    conclusion._unsettled = lambda *_: ()


@engine
def plain_function_replayed() -> None:
    gate.plain_functions = lambda *_: None


@engine
def ended_branch_may_still_ask() -> None:
    """A branch that has ended without asking for its effect is waited for."""
    Fence._may_still = lambda self, asked, address: True
