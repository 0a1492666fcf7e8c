"""`surefoot inbox`: everything that waits for a person, and what somebody should know."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from surefoot.cli import output, paint
from surefoot.cli.options import Settings, operator
from surefoot.errors import UsageError
from surefoot.view import facts, inbox, text

if TYPE_CHECKING:
    from surefoot.engine.process.runtime import Runtime

HEADINGS = ("WHAT", "RUN", "SINCE", "UNTIL", "")


@click.command("inbox")
@click.option("--kind", "kinds", type=click.Choice(inbox.KINDS), multiple=True, help="Only items of this kind.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="So many items.")
@click.option("--cursor", default="", metavar="TEXT", help="The next page, as the page before it says.")
@click.option("--seen", multiple=True, metavar="ID", help="Say that what is only to be known of this run was seen.")
@operator
def inbox_(
    settings: Settings, kinds: tuple[str, ...], limit: int, cursor: str, seen: tuple[str, ...], by: str, note: str
) -> None:
    """List everything that waits for a person, the most urgent first; then what somebody should know.

    What is only to be known (a run has failed, fell back, left effects behind) goes off the list once somebody has seen it:
    --seen ID, for as many runs as you like. That is recorded with your name and note, and changes nothing else. What has to
    be decided goes off it when it is decided: `surefoot runs show ID` says how.
    """
    if seen:
        _acknowledge(settings, seen, by, note)
        return
    from surefoot.engine.operate.inbox import waiting
    from surefoot.engine.process import config

    runtime = config.runtime(settings.store, create=False)
    now = runtime.clock.now()
    found = inbox.page(waiting(runtime, cursor), runtime.store.workers(), now=now, kinds=kinds, limit=limit)
    if settings.json:
        output.say_json(facts.inbox(found))
    else:
        _draw(runtime, found, now)


def _draw(runtime: Runtime, found: inbox.Page, now: int) -> None:
    if not found.items:
        output.tell(text.visible(f"nobody waits for you in {runtime.store.url}"))
        return
    paint.draw(HEADINGS, [_row(item, now) for item in found.items], flexible=(4,))
    if found.next:
        output.tell(text.visible(f"there is more: --cursor {shlex.quote(found.next)}"))


def _row(item: inbox.Item, now: int) -> tuple[str, ...]:
    what = item.kind.replace("_", " ")
    since = text.ago(item.since, now) if item.since else ""
    until = text.clock_time(item.until) if item.until else ""
    return (what, text.visible(item.run), since, until, item.title)


def _acknowledge(settings: Settings, runs: tuple[str, ...], by: str, note: str) -> None:
    from surefoot.cli import operators

    told = []
    for run_id in dict.fromkeys(runs):
        about = operators.open_run(settings, run_id).acknowledge(by=by, note=note)
        told.append((run_id, about))
    if len(told) == 1 and not told[0][1]:
        raise UsageError(
            f"run {told[0][0]}: nothing of it is only to be known. `surefoot runs show` says how it stands."
        )
    lines = [
        f"recorded: run {run}, seen by {by}: {', '.join(about)}" if about else f"run {run}: nothing is only to be known"
        for run, about in told
    ]
    output.answer(settings, facts.acknowledgements(told, by=by, note=note), *lines)
