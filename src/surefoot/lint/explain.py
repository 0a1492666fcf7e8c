"""A rule explained, and the page of all rules. Both are written from the rules' own texts."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import indent

from surefoot.lint.rule import Rule
from surefoot.lint.rules import ALL

FAMILIES = (
    ("SF1", "Code that keeps its own checkpoints", "No surefoot is needed for these."),
    (
        "SF2",
        "Between the calls of a surefoot workflow",
        "The code between calls runs again at every resume; helpers of the module are read too, three calls deep.",
    ),
    ("SF3", "What is declared as what", "A step may be repeated, an effect may not, a check only looks."),
    ("SF4", "LangGraph", "A node starts again from its top when it is resumed."),
    ("SF5", "Temporal and DBOS", "Workflows are replayed; activities are tried again for ever unless told otherwise."),
)


def explained(rule: Rule) -> Iterator[str]:
    """What `--explain` prints."""
    yield f"{rule.code} {rule.name} ({rule.severity})"
    yield rule.message("…")
    yield ""
    yield f"why    {rule.why}"
    yield f"cure   {rule.cure}"
    yield f"quiet  {rule.quiet}"
    if rule.preview:
        yield f"only with --preview: {rule.preview}"
    yield ""
    yield "bad:"
    yield indent(rule.bad, "    ").rstrip()
    yield ""
    yield "good:"
    yield indent(rule.good, "    ").rstrip()


def rules_of_the_page() -> str:
    """The part of `docs/lint.md` that has a section for each rule."""
    parts = []
    for family, title, about in FAMILIES:
        parts += [f"## {family}: {title}", "", about, ""]
        for rule in ALL:
            if rule.code.startswith(family):
                parts += _section(rule)
    return "\n".join(parts).rstrip() + "\n"


def _section(rule: Rule) -> list[str]:
    lines = [
        f"### {rule.code}",
        "",
        f"**{rule.name}** ({rule.severity}). It says: *{rule.message('…')}*",
        "",
        rule.why,
        "",
    ]
    lines += [f"**Cure.** {rule.cure}", "", f"**Quiet when:** {rule.quiet}", ""]
    if rule.preview:
        lines += [f"**Only with `--preview`:** {rule.preview}", ""]
    return [
        *lines,
        "Bad:",
        "",
        "```py",
        rule.bad.rstrip(),
        "```",
        "",
        "Good:",
        "",
        "```py",
        rule.good.rstrip(),
        "```",
        "",
    ]
