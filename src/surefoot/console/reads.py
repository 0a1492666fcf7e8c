"""What is shown of one run: read from a store, and put into the words and objects of `view`. Nothing here writes.

The command line and the HTTP API give the same objects because both take them from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from surefoot.console.listings import Listing, runs
from surefoot.core.address import as_recorded
from surefoot.core.cure import APP, command
from surefoot.core.state import ENDED, RunState
from surefoot.engine.operate import run_list
from surefoot.engine.process.runtime import Runtime
from surefoot.view import facts, page, standing, words
from surefoot.view.facts import Facts

if TYPE_CHECKING:
    from surefoot.engine.operate.handle import Run

__all__ = ["Listing", "Report", "after_failure", "call_of", "look", "open_run", "page_of", "report", "runs"]


def open_run(runtime: Runtime, run_id: str) -> Run:
    """A handle that reads the journal once, and after that only what is new."""
    from surefoot.engine.declare.plan import check_id
    from surefoot.engine.operate.handle import Run

    check_id(run_id)
    run = Run(runtime, run_id, keeps=True)
    run.state()
    return run


def look(run: Run) -> tuple[RunState, bool]:
    """The run, and whether a living process drives it, both at the same moment."""
    return run_list.look(run.runtime, run.state)


def page_of(run: Run, *, where: str, app: str = words.UNKNOWN_APP) -> page.Page:
    """The run for people, as it is now, with commands that name its store and its code."""
    state, driven = look(run)
    return page.page(state, driven=driven, now=run.runtime.clock.now(), where=where, app=app, whole=run.whole)


def call_of(run: Run, address: str) -> tuple[page.CallPage, Facts]:
    """One call, whole: its page, and the object for programs. `UsageError`, if there is none of that name."""
    state, driven = look(run)
    wanted, now = as_recorded(address), run.runtime.clock.now()
    seen = page.call_page(state, wanted, run.story(), driven=driven, now=now, whole=run.whole)
    if seen is None:
        from surefoot.engine.operate import forks

        raise forks.unknown_call(run.id, wanted, list(state.calls))
    return seen, facts.call(seen, [entry for entry in run.entries() if entry.seq in seen.seqs])


def after_failure(run: Run, where: str) -> tuple[words.Help, ...]:
    """What helps a run that is recorded as failed; nothing for any other."""
    how = standing.stands(run.state(), driven=False, now=run.runtime.clock.now())
    return () if how.failure is None else standing.what_helps(run.id, how, where)


class Report(Struct, frozen=True):
    """What was recorded, what is still open, and how to go on."""

    told: Facts
    shown: page.Page
    resume: str
    """The command that resumes; empty: it goes on by itself, has ended, or something is still open."""
    driven: bool
    by_engine: bool
    """An engine that drives by itself goes on with it."""
    elsewhere: str
    """How a run goes on that no worker takes up: its host does."""


def report(run: Run, what: Facts, *, by: str, note: str, where: str, app: str) -> Report:
    """After a word of somebody: `what` that was, and the run as it is now."""
    from surefoot.engine.process import engines

    state, driven = look(run)
    now = run.runtime.clock.now()
    shown = page.page(state, driven=driven, now=now, where=where, app=app)
    is_over = state.status in ENDED or bool(state.stops)
    by_engine = not driven and not is_over and engines.bell().drives
    stays = is_over or driven or by_engine
    elsewhere = "" if stays else standing.stands(state, driven=driven, now=now).elsewhere
    resume = "" if stays or elsewhere else words.command_text(command("runs resume", run.id, app=APP), where, app)
    told = facts.action(what, shown, by=by, note=note, resume=resume)
    return Report(told, shown, resume, driven, by_engine, elsewhere)
