"""Findings for people: the place, the sentence, the lines around it, the cure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from surefoot.lint.output.report import Row
from surefoot.lint.runner import Seen

NO_PROOF = "Nothing found is no proof: surefoot crashtest app:workflow"


def lines(seen: Seen, rows: list[Row]) -> Iterator[str]:
    for row in rows:
        one = row.finding
        yield f"{one.path}:{one.line}:{one.column}: {one.code} {row.name}: {row.message}"
        for number, text in row.frame:
            yield f"{number:5} | {text}".rstrip()
            if number == one.line:
                yield f"      | {_carets(text, one.column, one.end_line == one.line)}"
        yield f"  cure  {row.cure}   surefoot lint --explain {one.code}"
        yield ""
    yield summary(seen, rows)


def _carets(text: str, column: int, whole: bool) -> str:
    begin = min(column - 1, len(text))
    lead = "".join("\t" if char == "\t" else " " for char in text[:begin])
    return lead + "^" * max(1, len(text.rstrip()) - begin)


def summary(seen: Seen, rows: list[Row]) -> str:
    errors = sum(row.severity == "error" for row in rows)
    files = f"{seen.files} {'file' if seen.files == 1 else 'files'}"
    if not rows:
        return f"0 found in {files}. {NO_PROOF}"
    kinds = f"{_count(errors, 'error')}, {_count(len(rows) - errors, 'warning')}"
    return f"{len(rows)} found in {files} ({kinds}). {NO_PROOF}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def statistics(seen: Seen, rows: list[Row]) -> Iterator[str]:
    counted = Counter((row.finding.code, row.name) for row in rows)
    for (code, name), number in sorted(counted.items(), key=lambda one: (-one[1], one[0])):
        yield f"{number:6}  {code}  {name}"
    yield summary(seen, rows)
