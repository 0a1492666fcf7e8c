"""What `approve`, `deny` and `answer` share: finding the question that is meant, and recording the answer to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from surefoot.cli import operators
from surefoot.cli.options import F, Settings, operator, told_app_option
from surefoot.core.history import PastQuestion, PastState
from surefoot.errors import UsageError
from surefoot.view import facts, text

if TYPE_CHECKING:
    from surefoot.engine.operate.handle import Run


def answering(fn: F) -> F:
    """A verb that answers: it also gets the question as seen, the code for the next command, and who answers."""
    shown = click.option(
        "--shown",
        metavar="DIGEST",
        default="",
        help="The question as you saw it (`shown as` in `surefoot runs show`); another one is not answered.",
    )
    group = click.option(
        "--group", "groups", multiple=True, metavar="NAME", help="A group you answer for, if the question is for one."
    )
    return shown(group(told_app_option(operator(fn))))


def give(
    settings: Settings,
    run_id: str,
    name: str | None,
    value: Any,
    word: str,
    *,
    by: str,
    note: str,
    shown: str,
    groups: tuple[str, ...],
    app: str | None,
) -> None:
    """Record the answer, and report to which question. Nothing is executed by answering."""
    from surefoot.core.address import as_recorded

    run = operators.open_run(settings, run_id)
    address = as_recorded(name) if name is not None else _the_only_one(run)
    run.answer(address, value, by=by, groups=groups, note=note, shown=shown)
    asked = run.state().question(address)
    question = asked.question if asked is not None else ""
    sentence = f"recorded: run {run_id}, {address} ({text.shorten(question, 100)}) {word} by {by}"
    operators.report(settings, run, facts.answer(address, question, value), sentence, by=by, note=note, app=app)


def _the_only_one(run: Run) -> str:
    state = run.state()
    questions = [past for past in state.calls.values() if isinstance(past, PastQuestion)]
    open_ = [past for past in questions if past.state is PastState.OPEN]
    if len(open_) == 1:
        return open_[0].address
    if open_:
        names = "".join(f"\n  {past.address}: {text.shorten(past.question, 100)}" for past in open_)
        raise UsageError(f"run {run.id} has {len(open_)} open questions; name the one that is meant:{names}")
    said = "".join(f"\n  {past.address}: answered by {past.learned_by}" for past in questions if past.learned_by)
    raise UsageError(f"run {run.id} has no open question.{said}")
