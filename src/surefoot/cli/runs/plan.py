"""`surefoot runs plan ID`: what a resume would do now, found by replaying without executing anything."""

from __future__ import annotations

from typing import Any

import click

from surefoot.cli import operators, output
from surefoot.cli.options import Settings, app_option, by_option, verb
from surefoot.errors import UsageError
from surefoot.view import facts, outlook


@click.command()
@click.argument("run_id", metavar="ID")
@click.option(
    "--supposing",
    metavar="JSON",
    help='If this were said before: {"do": "settle", "address": "pay#1", "failed": true}.',
)
@app_option
@by_option
@verb
def plan(settings: Settings, run_id: str, supposing: str | None, app: str | None, by: str) -> None:
    """Tell what a resume would do now: what is replayed, what is in doubt, what would run next.

    Nothing is executed. What would run next is known only with the code at hand (--app).

    --supposing tells what it would do if somebody had settled, answered, accepted, matched, retried, rewound, cancelled,
    released or forked before: `do` is the verb, and the rest its arguments. It is refused as the verb would refuse it, and
    nothing is recorded.
    """
    from surefoot.cli import code, execution

    with execution.answers_only():
        code.load_app(app)
        run = operators.open_run(settings, run_id)
        supposed = None if supposing is None else run.plan(supposing=_object(supposing), by=by)
        found = run.plan() if supposed is None else supposed.plan
    cures, seen = operators.after_failure(settings, run), operators.page_of(settings, run, app)
    if supposed is not None:
        output.answer(settings, facts.supposed(supposed, seen), *outlook.told(outlook.of_supposed(supposed)))
        return
    told = (*outlook.told(outlook.of_plan(found, seen.headline)), *(f"  {cure.when:<10} {cure.do}" for cure in cures))
    output.answer(settings, facts.plan(found, seen, cures), *told)


def _object(given: str) -> dict[str, Any]:
    from surefoot.cli.code import parse_word

    is_json, said = parse_word(given)
    if not is_json or not isinstance(said, dict):
        raise UsageError(f'--supposing {given[:40]!r} is no JSON object: \'{{"do": "rewind", "at": "pay#1"}}\'')
    return said
