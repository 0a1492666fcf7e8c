"""From recorded data back to a witness: a closed table, nothing is imported by name and no code of the user runs.

A spec comes from a store, so it is not trusted: each field is checked as if a person had typed it, and data that is not
exactly a known spec is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from surefoot.errors import UsageError
from surefoot.world import databases, files, git, named, web
from surefoot.world.base import Witness
from surefoot.world.paths import unshown

_LOOKS: Final[dict[str, tuple[tuple[str, ...], Callable[..., Witness]]]] = {
    "file": (("path",), lambda path, name: files.file(unshown(path), name=name)),
    "files": (("glob",), lambda glob, name: files.files(unshown(glob), name=name)),
    "git_head": (("repo",), lambda repo, name: git.git_head(unshown(repo), name=name)),
    "sql": (("url", "query"), lambda url, query, name: databases.sql(url, query, name=name)),
    "db_schema": (
        ("url", "tables"),
        lambda url, tables, name: databases.db_schema(url, tables=_tables(tables), name=name),
    ),
    "http_json": (("url", "pointer"), lambda url, pointer, name: web.http_json(url, pointer, name=name)),
    "http_header": (("url", "header"), lambda url, header, name: web.http_header(url, header, name=name)),
    "env": (("variable",), lambda variable, name: named.env(variable, name=name)),
    "package": (("package",), lambda package, name: named.package(package, name=name)),
}


def from_spec(spec: object) -> Witness | None:
    """The witness of this spec; None if the spec is unknown here."""
    if not isinstance(spec, dict) or not all(isinstance(each, str) for pair in spec.items() for each in pair):
        return None
    fields: dict[str, Any] = dict(spec)
    known = _LOOKS.get(fields.pop("look", ""))
    name = fields.pop("name", None)
    if known is None or fields.keys() != set(known[0]):
        return None
    try:
        witness = known[1](**fields, name=name)
    except (UsageError, ValueError, RecursionError):
        return None
    return witness if witness.spec == spec else None


def _tables(text: str) -> list[str] | None:
    tables = json.loads(text)
    if tables is not None and not isinstance(tables, list):
        raise ValueError
    return tables
