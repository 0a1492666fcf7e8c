"""What verbs of operators share: finding the run, and telling what was recorded and how to go on."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Any

from surefoot.cli import output
from surefoot.cli.options import Settings
from surefoot.core.state import DRIVEN, ENDED, RunState
from surefoot.view import page, standing, text

if TYPE_CHECKING:
    from surefoot.engine.handle import Run


def open_run(settings: Settings, run_id: str) -> Run:
    from surefoot.engine.handle import opened

    return opened(run_id, settings.store, keeps=True)


def look(run: Run) -> tuple[RunState, bool]:
    """The run, and whether a living process drives it, both true of the same moment."""
    from surefoot.engine import claimant

    while True:
        state = run.state()
        if state.status not in DRIVEN:
            return state, False
        if claimant.is_driven(run.runtime, state):
            return state, True
        # Its process is gone. Perhaps it ended in good order after we read: then there is more to read.
        if run.state().seq == state.seq:
            return state, False


def where(settings: Settings) -> str:
    """What a command needs to find the same store again."""
    from surefoot.engine.config import store_url
    from surefoot.engine.pasting import DEFAULT_STORE
    from surefoot.store.open import shown

    url = store_url(settings.store)
    return "" if url == DEFAULT_STORE else f" --store {shlex.quote(shown(url))}"


def app_named(app: str | None = None) -> str:
    """The module with the code, for commands that are suggested: as given, or as SUREFOOT_APP says."""
    return app or os.environ.get("SUREFOOT_APP") or standing.UNKNOWN_APP


def page_of(settings: Settings, run: Run, app: str | None = None) -> page.Page:
    """The run as people see it now, with commands that name its store and its code."""
    state, driven = look(run)
    now = run.runtime.clock.now()
    return page.page(state, driven=driven, now=now, where=where(settings), app=app_named(app), whole=run.whole)


def resume_command(settings: Settings, run_id: str, app: str | None = None) -> str:
    return f"surefoot runs resume {shlex.quote(run_id)} --app {shlex.quote(app_named(app))}{where(settings)}"


def after_failure(settings: Settings, run: Run) -> tuple[standing.Cure, ...]:
    """What helps a run that is recorded as failed; nothing for any other."""
    how = standing.stands(run.state(), driven=False, now=run.runtime.clock.now())
    return () if how.failure is None else standing.what_helps(run.id, how, where(settings))


def report(settings: Settings, run: Run, recorded: dict[str, Any], sentence: str, *, app: str | None = None) -> None:
    """What was recorded, what is still open, and the command that resumes."""
    state, driven = look(run)
    told = page.page(state, driven=driven, now=run.runtime.clock.now(), where=where(settings), app=app_named(app))
    resume = "" if state.status in ENDED or state.stops or driven else resume_command(settings, run.id, app)
    if settings.json:
        open_ = [{"type": one.type, "address": one.address, "message": one.message} for one in told.reasons]
        output.say_json({"recorded": recorded, "status": state.status, "open": open_, "resume": resume})
        return
    note = f": {recorded['note']}" if recorded.get("note") else ""
    output.say(text.visible(sentence + note))
    for reason in told.reasons:
        output.say("still open:")
        output.say(f"  {text.visible_lines(f'{reason.type}: {reason.message}')[0]}")
        for cure in reason.cures:
            output.say(text.visible(f"    {cure.when} {cure.do}"))
    if driven:
        output.say("its process is alive and goes on by itself.")
    if resume:
        output.say(text.visible(f"go on with: {resume}"))
