"""`surefoot runs`: look at runs, resume and cancel them. Without a verb: the list."""

from __future__ import annotations

import click

from surefoot.cli.options import LazyGroup, common

VERBS = {
    "list": ("surefoot.cli.runs.list:list_", "The runs, those that need a person first. (The default.)"),
    "show": ("surefoot.cli.runs.show:show", "One run: how it stands, why, what helps, and all its calls."),
    "tail": ("surefoot.cli.runs.tail:tail", "The journal of a run as it grows, until the run ends."),
    "plan": ("surefoot.cli.runs.plan:plan", "What a resume would do now. Nothing is executed."),
    "resume": ("surefoot.cli.runs.resume:resume", "Go on with a run in this process."),
    "fork": ("surefoot.cli.runs.fork:fork", "A new run that goes on from a point of another."),
    "diff": ("surefoot.cli.runs.diff:diff", "Compare two runs call by call."),
    "retry": ("surefoot.cli.runs.retry:retry", "Have the calls of a run that failed tried again."),
    "rewind": ("surefoot.cli.runs.rewind:rewind", "Send a run back to before a call."),
    "release": ("surefoot.cli.runs.release:release", "Let a quarantined run be tried again."),
    "cancel": ("surefoot.cli.runs.cancel:cancel", "Ask a run to end."),
}


@click.group(cls=LazyGroup, verbs=VERBS, default="list")
@common
def runs() -> None:
    """Look at runs, resume and cancel them. Without a verb: the list."""
