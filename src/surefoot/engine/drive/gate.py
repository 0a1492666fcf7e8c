"""The gate: before a run goes on, the code is replayed dry, so that a stop comes before anything is executed.

A rehearsal is a session that only replays: the journal answers recorded calls, each branch ends at its first call
without an outcome, no check and no witness looks, nothing is claimed and nothing is written. The findings are judged at
its end, when all branches were followed: a new effect that may be a recorded one under another name, recorded effects
that no call asks for, more steps to run again than a person would want to pay for unasked.

So the code between calls runs once more. It must be safe to run again anyway.
"""

from __future__ import annotations

import logging
import sys
import threading
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from msgspec.structs import replace

from surefoot.core.address import split
from surefoot.core.code_changes import kept_notes, undecorated
from surefoot.core.command import Returned
from surefoot.core.entry import Stop
from surefoot.core.guard import is_raised_by_code
from surefoot.core.history import CHILD, PastEffect, PastState, PastStep, is_child
from surefoot.core.matching.learned import Learned
from surefoot.core.state import RunState
from surefoot.engine.declare import code, origins
from surefoot.engine.declare.call_spec import decorated_as, is_effect, is_noted, is_old_name, is_workflow
from surefoot.engine.declare.current import Place
from surefoot.engine.declare.rehearsal import rehearsing
from surefoot.engine.drive.conclusion import foreseen
from surefoot.engine.process.config import settings
from surefoot.engine.process.runtime import Runtime
from surefoot.engine.session.session import Session
from surefoot.errors import Damaged, SchemaMismatch
from surefoot.store.contract import Head

MANY_STEPS: Final = 10
"""A run with more recorded steps than this is rehearsed even if it has executed no effect."""
MOST_REHEARSALS: Final = 5
PATIENCE_SECONDS: Final = 10.0
"""A rehearsal that takes longer is logged."""
log = logging.getLogger("surefoot")


class Rehearsal(Session):
    """A dry session: it changes nothing of the folded run."""

    def __init__(
        self, runtime: Runtime, state: RunState, head: Head | None, *, learned: Learned | None = None,
        claimed: bool = False,
    ) -> None:  # fmt: skip
        known = replace(learned, unproven=frozenset()) if learned is not None else Learned()
        super().__init__(runtime, state, head, dry=True, learned=known)
        self.is_gate = self.lookup.sees_through_reruns = True
        self.patience_seconds = PATIENCE_SECONDS
        self._is_claimed = claimed
        """Whether the run was claimed before it is rehearsed."""
        self._owner: object = None
        """The thread or task that the code runs in."""

    def root_place(self, owner: object) -> Place:
        self._owner = owner
        return super().root_place(owner)

    def takes_long(self) -> None:
        """Called by another thread, once: log where it is, for the caller that waits."""
        where = f" It is at {at}." if (at := self.where()) else ""
        log.warning(
            "run %s: its code is being replayed before the run is taken up, for %g s by now, and has not come to "
            "anything new.%s Nothing was executed%s.",
            self.run, self.patience_seconds, where, "" if self._is_claimed else ", and nothing is claimed",
        )  # fmt: skip

    def where(self) -> str:
        """The line of the user's code that the rehearsal is at."""
        frame = next((frame for frame in _frames(self._owner) if code.is_projects(frame.f_code.co_filename)), None)
        return "" if frame is None else f"{frame.f_code.co_filename}, line {frame.f_lineno}, in {frame.f_code.co_name}"

    def judged(self, outcome: Returned | BaseException) -> list[Stop]:
        """The differences to the record, after every branch was followed. Waits for people are left to the drive."""
        stops = [stop for stop in self.stops.found if stop.reason == "CodeChanged"]
        stops += self.costly()
        fenced = (self.fence.stop(asked) for asked in sorted(self.fence.met, key=lambda asked: asked.address))
        stops += [stop for stop in fenced if stop is not None][:1]
        if not (self.stops.found or stops or self.stops.planned or self.stops.trouble) and self.state.cancel is None:
            stops += self._at_the_end(outcome)
        return stops or (self.fence.open_removed() if self.state.cancel is None else [])

    def costly(self) -> list[Stop]:
        """The stop if more steps would run again than a person would want to pay for unasked."""
        return [self.lookup.too_many_reruns()] if len(self.lookup.reruns) > settings.rerun_limit else []

    def hides_what_follows(self) -> bool:
        """Includes new calls that are not among the effects judged here: the calls after them were not seen."""
        judged = {one.address for one in self.fence.met}
        unheard = any(address not in judged for _, address in self.stops.planned)
        return unheard or bool(self.stops.found or self.stops.waits or self.backlog.is_cut_short)

    def hidden(self) -> frozenset[str]:
        planned = ((kind, *split(address)) for kind, address in self.stops.planned)
        return frozenset(path for kind, path, name, _ in planned if kind in ("step", "effect") and name != CHILD)

    def _at_the_end(self, outcome: Returned | BaseException) -> list[Stop]:
        """The code came to its end without new calls. Nothing is appended: the entries of a drive are dropped."""
        foreseen(self, outcome)
        return [stop for stop in self.stops.found if stop.reason == "CodeChanged"]

    def learnt(self) -> Learned:
        """The findings for the next rehearsal, or for the drive."""
        planned = (split(address)[0] for _, address in self.stops.planned)
        return Learned(
            self.replay.matcher.learned.inserted | self.replay.matcher.steps.found_inserted,
            frozenset(self.replay.matcher.asked),
            frozenset(self.scopes.ended),
            self.hidden(),
            self.replay.matcher.steps.unproven(planned, self.replay.lets_go),
            self.replay.matcher.learned.outdone,
        )

    def otherwise(self) -> Learned | None:
        """The findings to rehearse with if this one leads to a stop: without answers that were later asked for anew."""
        known, outdone = self.replay.matcher.learned, self.replay.matcher.steps.outdone()
        return replace(known, outdone=known.outdone | outdone) if outdone else None

    def notes(self, unproven: frozenset[str]) -> list[str]:
        """What the drive will do. `unproven`: steps that it does not keep, though they were kept here."""
        known = ((past, asked, why) for past, asked, why in self.lookup.kept if past.address not in unproven)
        kept = [(past, self.replay.bytes_of(past), asked.args, why) for past, asked, why in known]
        counted = [found.note(self.run) for found in self.lookup.counted.values()]
        return kept_notes(self.run, sorted(kept, key=lambda one: one[0].first)) + counted


def is_needed(state: RunState) -> bool:
    """Whether something may be done twice, or much may be paid for twice, if the code has changed."""
    steps = 0
    for past in state.calls.values() if settings.rehearses else ():
        if isinstance(past, PastEffect):
            return True
        if isinstance(past, PastStep):
            steps += past.state in (PastState.DONE, PastState.FAILED)
            # Noted arguments are not compared: only later calls show whether a call was inserted in front.
            if steps > MANY_STEPS or is_child(past) or is_noted(split(past.address)[1]):
                return True
    return False


def plain_functions(state: RunState, fn: Any) -> Stop | None:
    """A recorded effect that is a plain function or a workflow now, where it was defined or in the workflow's module: a
    replay would execute it.
    """
    names: dict[str, list[PastEffect]] = {}
    for past in state.effects():
        if past.origin != origins.BY_HAND:  # Also a failed one: nothing was done yet, and the replay would do it.
            names.setdefault(split(past.address)[1], []).append(past)
    module = getattr(fn, "__globals__", {})
    workflows = "" if state.created is None else state.created.module.partition(":")[0]
    for name, pasts in names.items():
        if is_old_name(name):
            continue  # Another effect declares these calls as its own: a function of that name is unrelated now.
        if not is_effect(name) and (origin := next(filter(origins.is_plain_at, (past.origin for past in pasts)), "")):
            at, _, qualname = origin.partition(":")
            return undecorated(state.run, name, at, pasts, qualname=qualname)
        found = module.get(name)
        if is_workflow(found) and all(past.origin for past in pasts):
            continue  # The effect was not the function of this name.
        if found is not None and origins.is_plain(found) and not decorated_as(name, found):
            now = "a workflow" if is_workflow(found) else "a plain function"
            return undecorated(state.run, name, getattr(fn, "__module__", "") or "its module", pasts, now=now)
        if found is None and not is_effect(name) and origins.is_plain_at(f"{workflows}:{name}"):
            return undecorated(state.run, name, workflows, pasts)  # The workflow has moved, the function has not.
    return None


def as_stop(run: str, trouble: BaseException | None) -> Stop | None:
    """A recorded value that today's classes cannot read stops the run; damage and misuse are raised as they are."""
    if not isinstance(trouble, SchemaMismatch) or isinstance(trouble, Damaged) or trouble.run_id != run:
        return None
    facts = {str(name): str(value) for name, value in trouble.facts.items()}
    return Stop("SchemaMismatch", trouble.summary, trouble.address, facts, trouble.remedies)


@contextmanager
def on_stage(rehearsal: Rehearsal) -> Iterator[None]:
    """Calls inside this block do not happen. A rehearsal that takes long is logged."""
    timer = threading.Timer(rehearsal.patience_seconds, rehearsal.takes_long)
    timer.daemon = True
    timer.start()
    try:
        with rehearsing(rehearsal.stops):
            yield
    finally:
        timer.cancel()


def _frames(owner: Any) -> list[types.FrameType]:
    """The frames of a thread or a task, innermost first."""
    found: list[types.FrameType] = []
    if isinstance(owner, int):
        frame = sys._current_frames().get(owner)
        while frame is not None:
            found.append(frame)
            frame = frame.f_back
        return found
    waiting = owner.get_coro() if hasattr(owner, "get_coro") else None
    while (frame := getattr(waiting, "cr_frame", None)) is not None:
        found.insert(0, frame)
        waiting = waiting.cr_await  # type: ignore[union-attr]
    return found


def interrupts(outcome: Returned | BaseException, rehearsal: Rehearsal) -> bool:
    """Whether the rehearsal was cut off from outside: by Ctrl-C, or by the caller that waits for the run.

    Code that raises KeyboardInterrupt by itself is no Ctrl-C. It may come after new calls: the drive reaches it later.
    """
    if isinstance(outcome, KeyboardInterrupt):
        return not is_raised_by_code(outcome)
    return rehearsal.stops.is_given_up() and isinstance(outcome, BaseException)
