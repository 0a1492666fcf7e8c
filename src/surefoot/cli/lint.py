"""`surefoot lint`: what looks wrong in somebody's code. It is read, never imported or run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from surefoot.cli import output
from surefoot.cli.options import Settings, verb
from surefoot.errors import UsageError
from surefoot.view import facts

if TYPE_CHECKING:
    from surefoot.lint.runner import Seen
    from surefoot.lint.selection import Selection

FOUND = 1
FORMATS = ("text", "json", "github", "sarif")


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH]…")
@click.option("--select", multiple=True, metavar="CODES", help="Only these rules: SF1,SF301. Default: all but preview.")
@click.option("--ignore", multiple=True, metavar="CODES", help="Not these rules.")
@click.option("--preview", is_flag=True, help="Also what is still being tried.")
@click.option("--format", "form", type=click.Choice(FORMATS), default=None, help="How to say it. Default: text.")
@click.option("--explain", metavar="CODE", help="Explain a rule: why, a bad and a good example, the cure.")
@click.option("--rules", is_flag=True, help="List the rules.")
@click.option("--statistics", is_flag=True, help="Only how often each rule found something.")
@click.option("--diff", metavar="REF", help="Only lines that have changed since this commit or branch of git.")
@verb
def lint(
    settings: Settings,
    *,
    paths: tuple[str, ...],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    preview: bool,
    form: str | None,
    explain: str | None,
    rules: bool,
    statistics: bool,
    diff: str | None,
) -> int:
    """Find code that will do something twice, lose it, or start afresh without a word.

    PATH is a file, a folder, or - for standard input. Default: the current folder. The code is read and never
    imported. Exit code: 0 if nothing was found, 1 if something was.
    """
    from surefoot.lint import runner, selection

    form = form or ("json" if settings.json else "text")
    if explain is not None:
        return _explain(explain, form)
    if rules:
        return _rules(form)
    chosen = selection.narrowed(selection.configured(Path.cwd()), select=select, ignore=ignore, preview=preview)
    if paths == ("-",):
        seen = runner.look_at_text("-", _standard_input(), chosen)
    else:
        files = selection.files(paths or (".",), chosen)
        seen = runner.look_at(files.paths, chosen)
        for folder in files.closed:
            seen.add(runner.closed_folder(folder, chosen))
    if diff is not None:
        _keep_changed(seen, diff, chosen)
    _say(seen, form, statistics=statistics)
    return FOUND if seen.findings else 0


def _standard_input() -> str:
    raw = sys.stdin.buffer.read()
    return raw.decode("utf-8", errors="replace")


def _say(seen: Seen, form: str, *, statistics: bool) -> None:
    from surefoot import __version__
    from surefoot.lint.output import github, json, report, sarif, text
    from surefoot.view.text import visible

    rows = report.rows(seen)
    if form == "json":
        output.say_json(facts.of_lint(json.facts(seen, rows)))
    elif form == "sarif":
        output.say_json(facts.of_lint(sarif.log(rows, __version__)))
    elif form == "github":
        for line in github.lines(rows):
            output.say(line)
    else:
        shown = text.statistics(seen, rows) if statistics else text.lines(seen, rows)
        output.say("\n".join(line if line.isascii() and line.isprintable() else visible(line) for line in shown))


def _explain(code: str, form: str) -> int:
    from surefoot.lint import explain, selection
    from surefoot.lint.output import json
    from surefoot.lint.rules import BY_CODE

    (known, *_) = selection.checked([code], "--explain") or ("",)
    if known not in BY_CODE:
        raise UsageError(f"--explain {code}: name one rule. All of them: surefoot lint --rules")
    rule = BY_CODE[known]
    if form == "json":
        output.say_json(facts.of_lint(json.rule_facts(rule)))
    else:
        output.say("\n".join(explain.explained(rule)))
    return 0


def _rules(form: str) -> int:
    from surefoot.lint.output import json
    from surefoot.lint.rules import ALL

    if form == "json":
        output.say_json(facts.of_lint(json.rules_facts(ALL)))
        return 0
    for rule in ALL:
        output.say(f"{rule.code}  {rule.name:22} {rule.severity:8} {rule.message('…')}")
    return 0


def _keep_changed(seen: Seen, ref: str, chosen: Selection) -> None:
    """Only findings on lines that git says have changed since a commit."""
    from surefoot.cli.changed_lines import changed_lines

    changed = changed_lines(ref, chosen.root)
    seen.findings = [
        one for one in seen.findings if not changed.get(one.path, set()).isdisjoint(range(one.line, one.end_line + 1))
    ]
