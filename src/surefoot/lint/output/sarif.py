"""Findings as SARIF 2.1.0, for code scanners. An alert stays the same when its line moves."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from surefoot.lint.output.report import Row
from surefoot.lint.rules import ALL
from surefoot.lint.selection import META

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def log(rows: list[Row], version: str) -> dict[str, Any]:
    codes = [*META, *(rule.code for rule in ALL)]
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "surefoot lint", "semanticVersion": version, "rules": _rules()}},
                "columnKind": "unicodeCodePoints",
                "results": [_result(row, codes) for row in rows],
            }
        ],
    }


def _rules() -> list[dict[str, Any]]:
    meta = [
        {"id": code, "name": name, "shortDescription": {"text": name}, "defaultConfiguration": {"level": "warning"}}
        for code, name in META.items()
    ]
    own = [
        {
            "id": rule.code,
            "name": rule.name,
            "shortDescription": {"text": rule.message("…")},
            "fullDescription": {"text": rule.why},
            "help": {"text": f"{rule.why}\n\nCure: {rule.cure}\n\nQuiet: {rule.quiet}"},
            "defaultConfiguration": {"level": rule.severity},
        }
        for rule in ALL
    ]
    return meta + own


def _result(row: Row, codes: list[str]) -> dict[str, Any]:
    one = row.finding
    region = {"startLine": one.line, "startColumn": one.column, "endLine": one.end_line}
    uri = quote(one.path)
    place = {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": region}}
    return {
        "ruleId": one.code,
        "ruleIndex": codes.index(one.code),
        "level": row.severity,
        "message": {"text": f"{row.message}. {row.cure}"},
        "locations": [place],
        "partialFingerprints": {"surefoot/v1": row.fingerprint},
    }
