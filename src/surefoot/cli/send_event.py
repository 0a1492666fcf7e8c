"""`surefoot send-event ID NAME JSON`: an event for a run that waits for it, or will."""

from __future__ import annotations

import click

from surefoot.cli import operators
from surefoot.cli.options import Settings, by_option, told_app_option, verb
from surefoot.errors import UsageError
from surefoot.view import facts


@click.command("send-event", context_settings={"ignore_unknown_options": True})
@click.argument("run_id", metavar="ID")
@click.argument("name", metavar="NAME")
@click.argument("value", metavar="[JSON]", default="null")
@click.option("--id", "event_id", metavar="TEXT", help="Sent twice under one id, it is one event. Default: a new one.")
@told_app_option
@by_option
@verb
def send_event(
    settings: Settings, run_id: str, name: str, value: str, event_id: str | None, app: str | None, by: str
) -> None:
    """Send an event to a run: `sf.wait_event(NAME)` there gets the value. A text needs its quotes: '"paid"'.

    It is kept until a wait takes it, and recorded with your name. Nothing is executed by sending.
    """
    from surefoot.cli.code import parse_word

    is_json, given = parse_word(value)
    if not is_json:
        raise UsageError(f"{value[:40]!r} is not JSON. A text needs its quotes: '\"…\"'.")
    run = operators.open_run(settings, run_id)
    event_id = event_id or str(run.runtime.clock.uuid4())
    run.send_event(name, given, id=event_id, by=by)
    sentence = f"recorded: run {run_id}, event {name} sent by {by}"
    operators.report(settings, run, facts.event(name, given, event_id), sentence, by=by, note="", app=app)
