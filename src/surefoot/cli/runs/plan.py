"""`surefoot runs plan ID`: what a resume would do now, found by replaying without executing anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from surefoot.cli import operators, output
from surefoot.cli.options import Settings, app_option, verb
from surefoot.view import facts, text

if TYPE_CHECKING:
    from surefoot.engine.operate.resume_plan import ResumePlan


@click.command()
@click.argument("run_id", metavar="ID")
@app_option
@verb
def plan(settings: Settings, run_id: str, app: str | None) -> None:
    """Tell what a resume would do now: what is replayed, what is in doubt, what would run next.

    Nothing is executed. What would run next is known only with the code at hand (--app).
    """
    from surefoot.cli import code, execution

    with execution.answers_only():
        code.load_app(app)
        run = operators.open_run(settings, run_id)
        found = run.plan()
    cures, seen = operators.after_failure(settings, run), operators.page_of(settings, run, app)
    told = (*lines(found, seen.headline), *(f"  {cure.when:<10} {cure.do}" for cure in cures))
    output.answer(settings, facts.plan(found, seen, cures), *told)


def lines(found: ResumePlan, headline: str) -> list[str]:
    """The plan in words."""
    told = [f"run {found.run_id}: {headline}", _replayed(found)]
    told += [f"  in doubt   {address}: a resume would {what}" for address, what in found.in_doubt]
    told += [f"  question   {address}: {question}" for address, question in found.questions]
    if found.drift:
        told += [*(f"  drift      {one}" for one in found.drift), f"             {_ON_DRIFT[found.on_drift]}"]
    told += [f"  stop       {part}" for stop in _other_stops(found) for part in stop.split("\n")]
    if found.next is None:
        told += ["  next       not known without the code: add --app MODULE"] if found.status not in _OVER else []
    elif upcoming := facts.upcoming(found):
        told += [f"  next       {kind} {address}" for kind, address in upcoming]
        told += ["             what follows is decided by what these give"]
    elif not found.stops and not found.in_doubt:
        told += ["  next       nothing: the workflow would return"]
    told += _unasked(found)
    return [text.visible(line) for line in told]


def _replayed(found: ResumePlan) -> str:
    """The calls that are really replayed: up to where the resume stops or goes on, as far as the code at hand shows."""
    calls = "1 recorded call" if found.recorded == 1 else f"{found.recorded} recorded calls"
    if found.next is None and found.status not in _OVER:
        return f"  recorded   {calls.replace('recorded ', '')}; which of them the code asks for is not known"
    if len(found.replayed) == found.recorded:
        return f"  replayed   {calls}, none runs again"
    where = "before the stop" if found.stops else "up to what is next"
    return f"  replayed   {len(found.replayed)} of {calls} {where}"


def _unasked(found: ResumePlan) -> list[str]:
    if not found.unasked:
        return []
    were, it = ("were", "them") if len(found.unasked) > 1 else ("was", "it")
    return [
        f"  unasked    {', '.join(found.unasked)} {were} executed before, and the code has not asked for {it} up to there:",
        "             perhaps the run is stranded by this code, and would stop at its end, after what is next",
    ]


def _other_stops(found: ResumePlan) -> list[str]:
    """The stops, without one that only repeats drift that is already listed."""
    return [stop for stop in found.stops if not any(one in stop for one in found.drift)]


_ON_DRIFT = {
    "stop": "the resume would stop there, before anything runs",
    "warn": "the resume would warn, and go on with the world as it is now",
    "accept": "the resume would accept that, and go on with the world as it is now",
    "later": "looked at once what is open is answered: until then the resume stops at that",
    "decide": "the on_drift function of the workflow decides",
}
_OVER = ("done", "failed", "cancelled")
