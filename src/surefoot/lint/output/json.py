"""Findings, and the rules themselves, as one object for programs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from surefoot.lint.output.report import Row
from surefoot.lint.rule import Rule
from surefoot.lint.runner import Seen

RULE = ("code", "name", "severity", "preview", "says", "why", "cure", "quiet", "bad", "good")


def rule_facts(rule: Rule) -> dict[str, Any]:
    return {name: getattr(rule, name) for name in RULE}


def rules_facts(rules: Iterable[Rule]) -> dict[str, Any]:
    return {"version": 1, "rules": [rule_facts(rule) for rule in rules]}


def facts(seen: Seen, rows: list[Row]) -> dict[str, Any]:
    return {
        "version": 1,
        "findings": [
            {
                "code": row.finding.code,
                "name": row.name,
                "severity": row.severity,
                "path": row.finding.path,
                "line": row.finding.line,
                "column": row.finding.column,
                "end_line": row.finding.end_line,
                "message": row.finding.message,
                "cure": row.cure,
                "via": list(row.finding.via),
                "fingerprint": row.fingerprint,
            }
            for row in rows
        ],
        "files": seen.files,
        "unreadable": seen.unreadable,
    }
