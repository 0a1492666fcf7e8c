"""What the tests of the linter share: the codes of a text, and the command in this process."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from surefoot.cli.main import main
from surefoot.lint.runner import look_at_text
from surefoot.lint.selection import Selection


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def codes(self):
        return [one["code"] for one in self.json["findings"]]


def found(text, path="app.py", **options):
    """The findings of a text, with what is in preview."""
    return look_at_text(path, text, Selection(Path(), preview=True, **options)).findings


@pytest.fixture
def codes():
    def of(text, path="app.py", **options):
        return {one.code for one in found(text, path, **options)}

    return of


@pytest.fixture
def lint(capsys, tmp_path, monkeypatch):
    """`surefoot lint`, in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def run(*words):
        capsys.readouterr()
        code = main(["lint", *words])
        out, err = capsys.readouterr()
        return Ended(code, out, err)

    return run
