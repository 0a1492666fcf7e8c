"""What every form of output needs of a finding: its rule's words, and a mark that stays when lines move."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass

from surefoot.lint.finding import Finding
from surefoot.lint.rules import BY_CODE
from surefoot.lint.runner import Seen
from surefoot.lint.selection import META

_META_CURES = {
    "SF001": "Name the rule and say why: # surefoot: ignore[SF201] only shown to the user.",
    "SF002": "Take it out: it hides the next finding on this line.",
    "SF003": "Mend the file, or leave it out with exclude.",
}


@dataclass(frozen=True, slots=True)
class Row:
    """A finding with everything that is said of it."""

    finding: Finding
    name: str
    severity: str
    cure: str
    fingerprint: str
    frame: tuple[tuple[int, str], ...]

    @property
    def message(self) -> str:
        way = f" (via {' → '.join(self.finding.via)})" if self.finding.via else ""
        return self.finding.message + way


def rows(seen: Seen) -> list[Row]:
    counted: Counter[tuple[str, str, str]] = Counter()
    found = []
    for one in seen.findings:
        frame = seen.frames.get((one.path, one.line), ())
        line = next((text.strip() for number, text in frame if number == one.line), "")
        key = (one.code, one.path, line)
        counted[key] += 1
        mark = hashlib.sha256("\0".join((*key, str(counted[key]))).encode()).hexdigest()[:32]
        rule = BY_CODE.get(one.code)
        name, severity, cure = (
            (rule.name, rule.severity, rule.cure) if rule else (META[one.code], "warning", _META_CURES[one.code])
        )
        found.append(Row(one, name, "error" if one.code == "SF003" else severity, cure, mark, frame))
    return found
