"""What headers of modules claim about the whole of the code is true: these are the claims that nothing else would notice."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from surefoot.engine.declare import code

SOURCE = Path(__file__).resolve().parents[1] / "src" / "surefoot"
CLOCK = "engine/process/clock.py"
READS = {"time.time", "time.time_ns", "datetime.now", "uuid.uuid4", "random.random", "secrets.token_hex"}
NOT_OF_A_RUN = {
    "engine/effects/http.py": "how long a server asks to wait, told by its own date",
    "engine/effects/transaction.py": "a marker's time, for people who look into their database",
    "engine/effects/files.py": "a name of a temporary file outside of a run",
    "engine/upkeep/exports.py": "a name of a temporary file",
    "engine/worker/presence.py": "so that not all workers come at once",
}
WRITTEN_WHERE_LEARNT = {
    ("engine/session/attempt.py", "StepStarted"),
    ("engine/session/late.py", "EffectLandedLate"),
    ("engine/operate/decisions.py", "EffectSettled"),
}
CONTEXT_VARIABLES = {
    "engine/declare/current.py", "engine/declare/lines.py", "engine/declare/placeholder.py", "engine/declare/rehearsal.py",
    "core/shapes.py",
}  # fmt: skip


def calls(folder: str) -> Iterator[tuple[str, str]]:
    """(module, what is called) of every call below this folder."""
    for path in sorted((SOURCE / folder).rglob("*.py")):
        where = path.relative_to(SOURCE).as_posix()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                yield where, ast.unparse(node.func)


def test_only_the_clock_reads_the_time_and_randomness_of_runs():
    """A run that read the time elsewhere could not be simulated, and would not replay."""
    reading = {where for where, called in calls("engine") if called in READS}

    assert reading - {CLOCK} == set(NOT_OF_A_RUN)


@pytest.mark.parametrize("read", sorted(READS))
def test_core_reads_no_time_and_no_randomness(read):
    assert read not in {called for _, called in calls("core")}


def test_our_own_code_is_no_part_of_the_code_digest():
    """It is told by the version. Were it part of the digest, a look at the code would depend on which verbs are loaded."""
    assert Path(code._SUREFOOT) == SOURCE


def test_only_the_programs_of_calls_write_what_came_of_a_call():
    """An outcome that is recorded somewhere else could be recorded before its effect was executed."""
    tree = ast.parse((SOURCE / "core" / "entry.py").read_text())
    entries = {
        node.name for node in tree.body if isinstance(node, ast.ClassDef) and node.name.startswith(("Step", "Effect"))
    }
    written = {(where, called) for folder in ("core", "engine") for where, called in calls(folder) if called in entries}

    assert {one for one in written if not one[0].startswith("core/programs/")} == WRITTEN_WHERE_LEARNT


def test_context_variables_are_known():
    """Each one has to be carried over to threads and tasks by hand somewhere: a new one is looked at twice."""
    assert {
        where
        for folder in ("core", "engine", "store", "world")
        for where, called in calls(folder)
        if called == "ContextVar"
    } == CONTEXT_VARIABLES
