"""What verbs of operators share: finding the run, and reporting what was recorded and how to go on."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from surefoot.cli import output
from surefoot.cli.options import Settings
from surefoot.console import reads
from surefoot.core.cure import APP, command
from surefoot.view import page, text, words
from surefoot.view.facts import Facts

if TYPE_CHECKING:
    from surefoot.engine.operate.handle import Run


def open_run(settings: Settings, run_id: str) -> Run:
    from surefoot.engine.process import config

    return reads.open_run(config.runtime(settings.store, create=False), run_id)


def where(settings: Settings) -> str:
    """The URL of the store, for commands that are suggested."""
    from surefoot.engine.process.config import store_url
    from surefoot.store.open import shown

    return shown(store_url(settings.store))


def app_named(app: str | None = None) -> str:
    """The module with the code, for commands that are suggested: as given, or from SUREFOOT_APP."""
    return app or os.environ.get("SUREFOOT_APP") or words.UNKNOWN_APP


def page_of(settings: Settings, run: Run, app: str | None = None) -> page.Page:
    """The run for people, as it is now, with commands that name its store and its code."""
    return reads.page_of(run, where=where(settings), app=app_named(app))


def resume_command(settings: Settings, run_id: str, app: str | None = None) -> str:
    return words.command_text(command("runs resume", run_id, app=APP), where(settings), app_named(app))


def after_failure(settings: Settings, run: Run) -> tuple[words.Help, ...]:
    """What helps a run that is recorded as failed; nothing for any other."""
    return reads.after_failure(run, where(settings))


def report(
    settings: Settings, run: Run, what: Facts, sentence: str, *, by: str, note: str, app: str | None = None
) -> None:
    """What was recorded, what is still open, and the command that resumes."""
    found = reads.report(run, what, by=by, note=note, where=where(settings), app=app_named(app))
    lines = [f"{sentence}: {note}" if note else sentence]
    for reason in found.shown.reasons:
        lines += ["still open:", f"  {text.visible_lines(f'{reason.type}: {reason.message}')[0]}"]
        lines += [f"    {cure.when} {cure.do}" for cure in reason.cures]
    lines += ["its process is alive and goes on by itself."] if found.driven else []
    lines += ["a worker of the engine goes on with it."] if found.by_engine else []
    lines += [f"go on with: {found.resume}"] if found.resume else []
    lines += [f"to go on: {found.elsewhere}"] if found.elsewhere else []
    output.answer(settings, found.told, *lines)
