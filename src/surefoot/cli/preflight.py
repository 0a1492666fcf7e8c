"""`surefoot preflight --app M`: which unfinished runs would this code strand? Asked before it is deployed."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from surefoot.cli import output, progress
from surefoot.cli.options import Settings, common
from surefoot.view import text, trouble

if TYPE_CHECKING:
    from surefoot.engine.preflight import Finding
    from surefoot.engine.runtime import Runtime

STRANDED_EXIT, DAMAGED_EXIT = 3, 4
WORTH_A_BAR = 20
"""Fewer runs than this are rehearsed before a bar could be read."""


@click.command()
@click.option(
    "--app",
    "apps",
    metavar="MODULE",
    multiple=True,
    required=True,
    envvar="SUREFOOT_APP",
    show_envvar=True,
    help="A module that defines workflows, as it is about to be deployed; may be given several times.",
)
@common
@click.pass_obj
def preflight(settings: Settings, apps: tuple[str, ...]) -> int:
    """Tell which unfinished runs this code could not go on with, and why, before it is deployed.

    Every unfinished run is replayed from its journal up to the first call that would be executed. Nothing is
    executed and nothing is written. Exit code 0: all would go on; 3: some would be stranded by this code, or perhaps
    would; 4: some are damaged. Runs that wait for a person whatever the code are listed, and do not count.

    Perhaps stranded: an effect that was executed has not been asked for when the first new call would run. Either calls
    were put in front of it, and all is well; or it is gone from the code, and a resume would find that out at its end.
    """
    from surefoot.cli import code, driving
    from surefoot.engine import config

    with driving.answers_only():
        for app in apps:
            code.load_app(app)
        runtime = config.runtime(settings.store, create=False)
        found = _rehearsed(settings, runtime)
    if settings.json:
        output.say_json(facts(apps, runtime.store.url, found))
    else:
        for line in lines(apps, runtime.store.url, found):
            output.say(line)
    return exit_code(found)


def _rehearsed(settings: Settings, runtime: Runtime) -> list[Finding]:
    from surefoot.engine import preflight as engine

    runs = engine.unfinished(runtime)
    found = []
    with progress.bar(settings, wanted=len(runs) >= WORTH_A_BAR) as show:
        for number, one in enumerate(engine.preflight(runtime, runs), 1):
            show(f"rehearsing  {number} of {len(runs)} runs", number, len(runs))
            if one is not None:
                found.append(one)
    return sorted(found, key=lambda one: engine.VERDICTS.index(one.verdict))


def exit_code(found: list[Finding]) -> int:
    verdicts = {one.verdict for one in found}
    if "damaged" in verdicts:
        return DAMAGED_EXIT
    return STRANDED_EXIT if verdicts & {"stranded", "perhaps stranded"} else 0


# --- for people ------------------------------------------------------------------------------------


def lines(apps: tuple[str, ...], where: str, found: list[Finding]) -> list[str]:
    """The findings in words: what is wrong, run by run; of those that go on or only wait, the number."""
    told: list[str] = []
    for one in found:
        if one.verdict in ("damaged", "stranded", "perhaps stranded"):
            told += [*_about(one), ""]
        elif one.verdict == "in doubt" or one.unclaimed:
            told += [*_in_passing(one), ""]
    return [*told, text.visible(summary(apps, where, found))]


def summary(apps: tuple[str, ...], where: str, found: list[Finding]) -> str:
    code = ", ".join(apps)
    if not found:
        return f"{where} has no unfinished runs: {code} can strand none."
    counts = Counter(one.verdict for one in found)
    parts = [
        f"{counts[verdict]} {words}"
        for verdict, words in (
            ("goes on", f"would go on with {code}"),
            ("stranded", "would be stranded by it"),
            ("perhaps stranded", "would perhaps be stranded by it"),
            ("damaged", "damaged"),
            ("in doubt", "in doubt, whatever the code"),
            ("waits", "waiting for a person or an event, whatever the code"),
        )
        if counts[verdict]
    ]
    return f"{len(found)} unfinished run{'s' if len(found) > 1 else ''} in {where}: {', '.join(parts)}."


def _about(one: Finding) -> list[str]:
    told = [text.visible(f"{one.verdict}: run {one.run}{_of_workflow(one)}")]
    for error in one.why:
        told += [f"  {line}" for line in (*_preface(error), *trouble.lines(error), *_where(error))]
    told += [f"  also in doubt: {text.visible(stop.address)}" for stop in one.in_doubt]
    if one.driven:
        told.append("  a living process drives it now, with the code it has; a resume with this code comes after it")
    return told


def _in_passing(one: Finding) -> list[str]:
    """What is worth a line, and no obstacle to this code."""
    told = [text.visible(f"{one.verdict}: run {one.run}{_of_workflow(one)}")]
    told += [f"  {trouble.lines(stop)[0]}" for stop in one.in_doubt]
    if one.unclaimed:
        told.append(text.visible(f"  recorded steps that the code no longer asks for: {', '.join(one.unclaimed)}"))
    return told


def _of_workflow(one: Finding) -> str:
    if not one.workflow:
        return ""
    version = f" version {one.version}"
    if one.code_version and one.code_version != one.version:
        version += f" (the code is version {one.code_version})"
    return f", workflow {one.workflow}{version}, {one.status}"


def _preface(error: BaseException) -> list[str]:
    from surefoot.errors import SurefootError

    return [] if isinstance(error, SurefootError) else ["replayed with this code, the workflow fails:"]


def _where(error: BaseException) -> list[str]:
    from surefoot.cli import failure
    from surefoot.errors import Stopped

    return [] if isinstance(error, Stopped) else failure.user_traceback(error)


# --- for programs ----------------------------------------------------------------------------------


def facts(apps: tuple[str, ...], where: str, found: list[Finding]) -> dict[str, Any]:
    from surefoot.engine.preflight import VERDICTS

    counts = Counter(one.verdict for one in found)
    return {
        "app": list(apps),
        "store": where,
        "exit_code": exit_code(found),
        "counts": {verdict: counts[verdict] for verdict in VERDICTS},
        "runs": [_run_facts(one) for one in found],
    }


def _run_facts(one: Finding) -> dict[str, Any]:
    return {
        "run": one.run,
        "verdict": one.verdict,
        "workflow": one.workflow,
        "version": one.version or None,
        "code_version": one.code_version or None,
        "status": one.status,
        "driven": one.driven,
        "why": [_reason(error) for error in one.why],
        "in_doubt": [_reason(stop) for stop in one.in_doubt],
        "next": [{"kind": kind, "address": address} for kind, address in one.next],
        "unclaimed": list(one.unclaimed),
    }


def _reason(error: BaseException) -> dict[str, Any]:
    found = trouble.facts(error)
    return {name: found[name] for name in ("type", "message", "address", "cures", "facts") if name in found}
