"""The findings of a preflight about one run, in words and as facts; if its process ended early, what is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from surefoot.cli import failure
from surefoot.errors import Stopped, SurefootError, UsageError
from surefoot.view import facts, text, trouble

if TYPE_CHECKING:
    from surefoot.engine.operate.preflight import Finding

MOST_NAMES: Final = 10


class Told(Struct):
    """One run, as shown."""

    run: str
    verdict: str
    lines: list[str]
    facts: dict[str, Any]


def told(one: Finding) -> Told:
    """Words for problems and remarks; none for a run that only goes on or waits."""
    lines: list[str] = []
    if one.verdict in ("damaged", "stranded", "perhaps stranded"):
        lines = _about(one)
    elif one.verdict == "in doubt" or one.unclaimed or one.kept or one.again or one.filled_in:
        lines = _in_passing(one)
    return Told(one.run, one.verdict, lines, facts.rehearsal(one))


def hanging(run: str, seconds: float, where: str) -> Told:
    """Its code hung, and was ended there."""
    at = f" It was at {where}." if where else ""
    return _cut_short(run, "perhaps stranded", f"was replayed for {seconds:g} s and did not come to anything new.{at}")


def ended(run: str, exit_code: int) -> Told:
    """Its code ended the whole process."""
    how = f"by signal {-exit_code}" if exit_code < 0 else f"with exit code {exit_code}"
    return _cut_short(run, "stranded", f"ends the process that replays it, {how}: every resume would end so.")


def _cut_short(run: str, verdict: str, what: str) -> Told:
    from surefoot.engine.operate.preflight import Finding

    return told(Finding(run, verdict, why=(UsageError(f"run {run}: its code {what} Nothing was executed."),)))


# --- for people ------------------------------------------------------------------------------------


def _about(one: Finding) -> list[str]:
    told = [text.visible(f"{one.verdict}: run {one.run}{_of_workflow(one)}")]
    for error in one.why:
        preface = [] if isinstance(error, SurefootError) else ["replayed with this code, the workflow fails:"]
        where = [] if isinstance(error, Stopped) else failure.user_traceback(error)
        told += [f"  {line}" for line in (*preface, *trouble.lines(error), *where)]
    told += [f"  also in doubt: {text.visible(stop.address)}" for stop in one.in_doubt]
    told += _on_the_way(one)
    if one.driven:
        told.append("  a living process drives it now, with the code it has; a resume with this code comes after it")
    return told


def _in_passing(one: Finding) -> list[str]:
    """Remarks that are no obstacle to this code."""
    told = [text.visible(f"{one.verdict}: run {one.run}{_of_workflow(one)}")]
    told += [f"  {trouble.lines(stop)[0]}" for stop in one.in_doubt]
    told += _on_the_way(one)
    return told


def _on_the_way(one: Finding) -> list[str]:
    """What a resume would do with the record, without asking a person."""
    kept: dict[str, list[str]] = {}
    for address, why in one.kept:
        kept.setdefault(why, []).append(address)
    told = [f"  kept: {text.some(names, MOST_NAMES)}: {why}" for why, names in kept.items()]
    if one.again:
        told.append(f"  would run again, with other arguments: {text.some(one.again, MOST_NAMES)}")
    told += [f"  filled in: {what}" for what in one.filled_in]
    if one.unclaimed:
        told.append(f"  recorded calls that the code no longer asks for: {', '.join(one.unclaimed)}")
    return [text.visible(line) for line in told]


def _of_workflow(one: Finding) -> str:
    if not one.workflow:
        return ""
    version = f" version {one.version}"
    if one.code_version and one.code_version != one.version:
        version += f" (the code is version {one.code_version})"
    return f", workflow {one.workflow}{version}, {one.status}"
