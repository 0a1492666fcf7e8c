"""Findings as commands of GitHub's workflows: they appear beside the lines of a pull request."""

from __future__ import annotations

from collections.abc import Iterator

from surefoot.lint.output.report import Row


def lines(rows: list[Row]) -> Iterator[str]:
    for row in rows:
        one = row.finding
        places = f"file={_property(one.path)},line={one.line},col={one.column},endLine={one.end_line}"
        yield f"::{row.severity} {places},title={_property(f'{one.code} {row.name}')}::{_data(row.message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
