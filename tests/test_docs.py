"""What README and docs show is true: every Python block runs, every surefoot command ends as it says.

A page's blocks run in order in one folder. A Python block is a program of its own, as it would be when
pasted; `file=NAME` keeps it under that name for the blocks that follow. In a console block each line that
starts with `$ ` is a command; `# exit 3` or `# killed` says how it ends (else: 0), and lines after a
command are its standard output.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)[ \t]*([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROGRAMS = ("surefoot", "python", "cat")


@dataclass(frozen=True)
class Block:
    language: str
    info: str
    text: str
    line: int


def blocks_of(page):
    text = page.read_text()
    return [Block(m[1], m[2], m[3], text.count("\n", 0, m.start()) + 1) for m in BLOCK.finditer(text)]


def runnable(page):
    return [b for b in blocks_of(page) if b.language in ("python", "console") and "no-run" not in b.info]


PAGES_WITH_CODE = [page for page in PAGES if runnable(page)]


@pytest.mark.parametrize("page", PAGES_WITH_CODE, ids=lambda page: page.name)
def test_every_block_of_the_page_runs(page, tmp_path):
    """A newcomer pastes what they read. If it fails, nothing else we say will be believed."""
    for block in runnable(page):
        where = f"{page.name}, line {block.line}"
        if block.language == "python":
            run_python(block, tmp_path, where)
        else:
            run_console(block, tmp_path, where)


def run_python(block, folder, where):
    named = re.search(r"file=(\S+)", block.info)
    path = folder / (named[1] if named else f"block_{block.line}.py")
    path.write_text(block.text)
    ended = subprocess.run(
        [sys.executable, "-W", "error", str(path)],
        cwd=folder, env=environment(), capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    ends = re.search(r"exit=(\d+)", block.info)  # A script with a command line of its own is given no words here.
    assert ended.returncode == int(ends[1] if ends else 0), f"{where}:\n{ended.stderr}"


def run_console(block, folder, where):
    for command, expected_output in commands_of(block.text):
        line, _, comment = command.partition("  # ")
        program = next(word for word in line.split() if "=" not in word)
        assert program in PROGRAMS, f"{where}: {program} is not a program these blocks may use"
        ended = subprocess.run(
            ["bash", "-c", f"exec env {line}" if "=" in line.split()[0] else line],
            cwd=folder, env=environment(), capture_output=True, text=True, timeout=30, check=False,
        )  # fmt: skip
        assert ended.returncode == exit_code(comment), f"{where}: {command}\n{ended.stdout}{ended.stderr}"
        if expected_output:
            assert ended.stdout == expected_output, f"{where}: {command}\n{ended.stderr}"


def commands_of(text):
    """Pairs of a command and the output shown below it."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def exit_code(comment):
    if comment == "killed":
        return -signal.SIGKILL
    return int(comment.removeprefix("exit ")) if comment else 0


def environment():
    """The programs of this virtual environment first; no settings from outside."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SUREFOOT_")}
    return kept | {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}


# --- figures ---------------------------------------------------------------------------------------


def figures():
    return json.loads((ROOT / "docs" / "performance.json").read_text())


def test_the_figures_in_the_readme_are_the_measured_ones():
    """Nobody edits a figure by hand, and nobody forgets one."""
    from bench import report

    readme = (ROOT / "README.md").read_text()

    assert readme == report.fill(readme, report.readme_block(figures()))


def test_the_performance_page_is_the_one_that_was_generated():
    """The page says it is generated; then it must be."""
    from bench import report

    assert (ROOT / "docs" / "performance.md").read_text() == report.performance_page(figures())


def test_the_reference_is_the_one_that_the_code_gives():
    """Every public name is on it, with the signature that it has today: `make reference` writes the page."""
    from docsite import reference

    assert (ROOT / "docs" / "reference.md").read_text() == reference.page()


def test_every_error_has_its_story():
    """The reference links to it."""
    from surefoot import errors

    stories = set(re.findall(r"^### (\w+)$", (ROOT / "docs" / "errors.md").read_text(), re.MULTILINE))

    assert stories == set(errors.__all__)


# --- links and words -------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_inside_the_project_lead_somewhere(page):
    """A dead link at night costs more than it looks."""
    targets = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text())

    assert [] == [target for target in targets if not (page.parent / target).exists()]


def test_the_table_of_exit_codes_has_those_of_the_error_tree():
    """Scripts are written against it."""
    from surefoot import errors

    table = re.findall(r"^\| (\d) \|", (ROOT / "docs" / "operations.md").read_text(), re.MULTILINE)
    codes = {e.exit_code for e in vars(errors).values() if isinstance(e, type) and issubclass(e, errors.SurefootError)}

    assert {int(code) for code in table} == {0, *codes}


def test_the_demo_and_test_commands_of_the_readme_exist():
    """The two commands are the first thing anybody tries."""
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))

    assert set(re.findall(r"`?make ([a-z]+)", (ROOT / "README.md").read_text())) <= targets


# --- the map of the code ---------------------------------------------------------------------------

MODULE = re.compile(r"`([\w/]+\.py)`")


def rooms(page, root):
    """The modules that the tables of a page name. A name without a folder is in that of the one before it in its row."""
    for row in re.findall(r"^\| `.*$", page, re.MULTILINE):
        folder = Path()
        for name in MODULE.findall(row):
            path = Path(name) if "/" in name else folder / name
            folder = path.parent
            if path.name != "VERB.py":
                yield ROOT / path if path.parts[0] == "tests" else root / path


def verbs():
    """Their modules go by one line of the page: they are found by their names."""
    from surefoot.cli import main
    from surefoot.cli.runs import group

    modules = [where.partition(":")[0] for where, _ in (main.VERBS | group.VERBS).values()]
    return {ROOT / "src" / f"{module.replace('.', '/')}.py" for module in modules}


@pytest.mark.parametrize(("half", "folder"), [(0, "src/surefoot"), (1, "tests/crash")], ids=["engine", "crash lab"])
def test_architecture_names_every_module_and_none_that_is_not_there(half, folder):
    """Whoever looks for the place where something is decided starts at this page."""
    page = (ROOT / "docs" / "ARCHITECTURE.md").read_text().split("\n## The crash lab\n")[half]
    named = set(rooms(page, ROOT / folder))
    there = {
        path for path in (ROOT / folder).rglob("*.py") if not path.name.startswith(("__init__", "test_", "conftest"))
    }

    assert sorted(there - named - verbs()) == []
    assert sorted(path for path in named if not path.exists()) == []
