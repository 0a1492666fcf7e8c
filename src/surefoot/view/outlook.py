"""What a word would lead to, line by line: shown before anything is recorded, in a terminal or on a page.

An outlook is a value: a page can lay out its lines, a terminal prints them (`told`). What a resume would do comes from the
plan (`ResumePlan`, `Supposed`), and is not guessed here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from surefoot.core.cure import APP, command
from surefoot.core.doubt import on_resume
from surefoot.core.state import ENDED, reversed_since
from surefoot.view import text
from surefoot.view.words import command_text

if TYPE_CHECKING:
    from surefoot.core.entry import Drift
    from surefoot.core.history import Past, PastEffect
    from surefoot.engine.drive.fallback import Damage
    from surefoot.engine.operate.forks import Draft
    from surefoot.engine.operate.resume_plan import ResumePlan
    from surefoot.engine.operate.retries import Reopening
    from surefoot.engine.operate.supposing import Supposed

_WIDTH: Final = 10


class Line(Struct, frozen=True):
    """One thing that would follow."""

    label: str
    """A word or two: `in doubt`, `effect`, `next` …; empty: it goes on with the line before."""
    text: str
    address: str = ""
    """The call it is about, if it is about one."""


class Outlook(Struct, frozen=True):
    sentence: str
    lines: tuple[Line, ...] = ()


def told(outlook: Outlook) -> list[str]:
    """For a terminal: nothing in it can act on one."""
    return [text.visible(outlook.sentence), *(text.visible(_row(line)) for line in outlook.lines)]


def _row(line: Line) -> str:
    return f"  {line.label:<{_WIDTH}} {line.text}" if line.label else f"  {line.text}"


# --- verbs that set something aside ------------------------------------------------------------------


def of_rewind(run: str, address: str, aside: Sequence[Past], executed: Iterable[PastEffect]) -> Outlook:
    steps = sum(past.kind == "step" for past in aside)
    are = "1 recorded call is" if len(aside) == 1 else f"{len(aside)} recorded calls are"
    again = "1 of them a step that runs" if steps == 1 else f"{steps} of them steps that run"
    sentence = f"run {run} would go back to before {address}: {are} set aside and kept, {again} again."
    spent = reversed_since(aside)
    lines = [
        Line(
            "in doubt",
            f"{past.address}: it happened or may have; a resume would "
            f"{on_resume(past.policy, spent.get(past.address, ''))}",
            past.address,
        )
        for past in executed
    ]
    return Outlook(sentence, tuple(lines) or (Line("", "no effect was executed from there on."),))


def of_fork(run: str, new: str, draft: Draft) -> Outlook:
    reused = f"{len(draft.reused)} recorded call{'s' * (len(draft.reused) != 1)}, none runs again"
    effects = [
        Line("effect", f"{address} would be executed again, with a key of its own", address)
        for address in draft.would_execute
    ]
    none = [Line("effects", "none on record from there on")]
    return Outlook(
        f"run {new} would go on from run {run}, before {draft.at}", (Line("reused", reused), *(effects or none))
    )


def of_retry(one: Reopening) -> Outlook:
    many = len(one.addresses)
    what = "the workflow itself failed; it is opened again" if not many else f"{many} of its calls tried again"
    lines = [Line("step", f"{address} runs again", address) for address in one.steps]
    lines += [Line("effect", f"{address} did nothing, and runs under its key", address) for address in one.effects]
    asks = "it happened or may have; a resume would stop and ask a person"
    lines += [Line("in doubt", f"{address}: {asks}", address) for address in one.in_doubt]
    lines += [Line("wait", f"{address} begins anew", address) for address in one.waits]
    stays = "its time was over, and that stays so; --at names it"
    lines += [Line("not named", f"{address}: {stays}", address) for address in one.expired]
    return Outlook(f"run {one.run} would be taken up again: {what}. What succeeded stays.", tuple(lines))


# --- verbs that end something ------------------------------------------------------------------------


def of_cancel(run: str, left: Sequence[str], where: str) -> Outlook:
    """Of a run whose code is not at hand. `where`: the URL of the store, for the command."""
    said = f"run {run}: its code is not at hand, so nothing is undone. Done, and left as it is: {', '.join(left)}"
    cure = command_text(command("runs cancel", run, app=APP), where)
    return Outlook(said, (Line("", f"with the code, its sagas are undone: {cure}"),))


def of_watching_no_more(run: str, unseen: Drift) -> list[str]:
    """Of accepting that a witness cannot be observed."""
    return [
        text.visible(unseen.line()),
        text.visible(
            f"run {run} would no longer watch it: whatever happens there from now on, the run does not notice."
        ),
    ]


def of_repair(damage: Damage) -> Outlook:
    return Outlook(damage.outlook())


def of_giving_up(run: str) -> Outlook:
    return Outlook(f"run {run} would end as failed; what is left of it is kept for inspection.")


# --- what a resume would do --------------------------------------------------------------------------


def upcoming(found: ResumePlan) -> list[tuple[str, str]]:
    """The calls that would be executed; effects in doubt are listed apart, with the reaction of a resume."""
    doubtful = {address for address, _ in found.in_doubt}
    return [(kind, address) for kind, address in found.next or [] if address not in doubtful]


def of_plan(found: ResumePlan, headline: str) -> Outlook:
    return Outlook(f"run {found.run_id}: {headline}", tuple(_plan(found)))


def of_supposed(found: Supposed) -> Outlook:
    """What would follow from a word that was only supposed."""
    return Outlook(f"run {found.plan.run_id}: if that is recorded", tuple(_supposed(found)))


def _supposed(found: Supposed) -> Iterator[Line]:
    for address in found.sets_aside:
        again = ", and runs again" if address in found.runs_again else ""
        yield Line("set aside", f"{address}{again}", address)
    yield from _plan(found.plan)


def _plan(found: ResumePlan) -> Iterator[Line]:
    yield _replayed(found)
    for address, what in found.in_doubt:
        yield Line("in doubt", f"{address}: a resume would {what}", address)
    for address, question in found.questions:
        yield Line("question", f"{address}: {question}", address)
    if found.drift:
        yield from (Line("drift", one) for one in found.drift)
        yield _further(_ON_DRIFT[found.on_drift])
    for stop in _other_stops(found):
        yield from (Line("stop", part) for part in stop.split("\n"))
    yield from _next(found)
    if found.unasked:
        were, it = ("were", "them") if len(found.unasked) > 1 else ("was", "it")
        names = ", ".join(found.unasked)
        yield Line("unasked", f"{names} {were} executed before, and the code has not asked for {it} up to there:")
        yield _further("perhaps the run is stranded by this code, and would stop at its end, after what is next")


def _next(found: ResumePlan) -> Iterator[Line]:
    if found.next is None:
        if found.status not in ENDED:
            yield Line("next", "not known without the code: add --app MODULE")
    elif coming := upcoming(found):
        yield from (Line("next", f"{kind} {address}", address) for kind, address in coming)
        yield _further("what follows is decided by what these give")
    elif not found.stops and not found.in_doubt:
        yield Line("next", _ENDS.get(found.ending, "nothing: the workflow would return"))


def _further(words: str) -> Line:
    return Line("", f"{'':<{_WIDTH}} {words}")


def _replayed(found: ResumePlan) -> Line:
    """The calls that are really replayed: up to where the resume stops or goes on, as far as the code at hand shows."""
    calls = "1 recorded call" if found.recorded == 1 else f"{found.recorded} recorded calls"
    if found.next is None and found.status not in ENDED:
        return Line("recorded", f"{calls.replace('recorded ', '')}; which of them the code asks for is not known")
    if len(found.replayed) == found.recorded:
        return Line("replayed", f"{calls}, none runs again")
    where = "before the stop" if found.stops else "up to what is next"
    return Line("replayed", f"{len(found.replayed)} of {calls} {where}")


def _other_stops(found: ResumePlan) -> list[str]:
    """The stops, without one that only repeats drift that is already listed."""
    return [stop for stop in found.stops if not any(one in stop for one in found.drift)]


_ENDS: Final = {
    "failed": "nothing: the run would fail",
    "cancelled": "nothing: the run would be cancelled",
}
_ON_DRIFT: Final = {
    "stop": "the resume would stop there, before anything runs",
    "warn": "the resume would warn, and go on with the world as it is now",
    "accept": "the resume would accept that, and go on with the world as it is now",
    "later": "looked at once what is open is answered: until then the resume stops at that",
    "decide": "the on_drift function of the workflow decides",
}
