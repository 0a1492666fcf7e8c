"""Which workflow a run belongs to: its name, and the function that had that name when the run was created."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec import Raw

import surefoot as sf
from surefoot.core.entry import RunCreated
from surefoot.engine.declare.identity import Identity
from surefoot.engine.declare.registry import registry

BODY = """
import surefoot as sf

@sf.effect
def do(x):
    with open("done.txt", "a") as file:
        file.write(f"{__name__} {x}\\n")
    return __name__

@sf.workflow%s
def %s(x):
    return do(x)
"""


def created(workflow: str, module: str, *, named: bool = False) -> RunCreated:
    return RunCreated(workflow, Raw(b"{}"), "", module=module, named=named)


@pytest.mark.parametrize(
    ("mine", "recorded", "owns"),
    [
        (Identity("process", "ma:process"), created("process", "ma:process"), True),
        (Identity("process", "mb:process"), created("process", "ma:process"), False),
        (Identity("process", "ma:B.process"), created("process", "ma:A.process"), False),
        (Identity("process", "ma:new.<locals>.process"), created("process", "ma:old.<locals>.process"), True),
        (Identity("process", "mb:old.<locals>.process"), created("process", "ma:old.<locals>.process"), False),
        (Identity("process", "mb:process"), created("process", ""), True),
        (Identity("process", ""), created("process", "ma:process"), True),
        (Identity("process", "mb:process", True), created("process", "ma:process", named=True), True),
        (Identity("process", "mb:process", True), created("process", "ma:process"), False),
        (Identity("process", "mb:process"), created("process", "ma:process", named=True), False),
        (Identity("process", "ma:handle", True), created("process", "ma:process"), True),
        (Identity("handle", "ma:handle", was=("process",)), created("process", "ma:process"), True),
        (Identity("handle", "mb:handle", was=("process",)), created("process", "ma:process"), False),
        (Identity("handle", "mb:handle", was=("ma:process",)), created("process", "ma:process"), True),
        (Identity("handle", "mb:handle", was=("mc:process",)), created("process", "ma:process"), False),
        (Identity("process", "mb:process", was=("ma:A.process",)), created("process", "ma:A.process"), True),
        (Identity("handle", "mb:handle", True, ("process",)), created("process", "ma:process", named=True), True),
        (Identity("handle", "ma:handle"), created("process", "ma:process"), False),
    ],
)  # fmt: skip
def test_run_belongs_to_the_function_that_created_it_or_to_the_one_that_says_so(mine, recorded, owns):
    """Each row is a deploy: moved, renamed, named, or another team's function of the same name."""
    assert mine.owns(recorded) is owns


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("ma", "mb"):
        (tmp_path / f"{name}.py").write_text(BODY % ("", "process"))
    return tmp_path


def python(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *filter(None, sys.path)])}
    env.pop("SUREFOOT_STORE", None)
    return subprocess.run(
        [sys.executable, *words], check=False, cwd=folder, env=env, capture_output=True, text=True, timeout=60
    )


def done(folder: Path) -> list[str]:
    file = folder / "done.txt"
    return file.read_text().splitlines() if file.exists() else []


@pytest.mark.processes
def test_run_of_another_modules_workflow_is_refused_with_the_cure(folder):
    """Two teams share a store and a name: neither gets the other's result, and nothing of it is executed."""
    python(folder, "-c", "import ma; ma.process.run('order-1', 'x')")

    asked = python(folder, "-c", "import mb; mb.process.run('order-1', 'x')")

    assert done(folder) == ["ma x"]
    assert "CodeChanged" in asked.stderr
    assert 'was="ma:process"' in asked.stderr


@pytest.mark.processes
def test_workflow_that_moved_goes_on_once_the_code_says_so(folder):
    python(folder, "-c", "import ma; ma.process.start('order-1', 'x')")
    (folder / "mb.py").write_text(BODY % ('(was="ma:process")', "handle"))

    moved = python(folder, "-c", "import mb, surefoot; print(surefoot.get_run('order-1').resume())")

    assert moved.stdout.split() == ["mb"], moved.stderr
    assert done(folder) == ["mb x"]


@pytest.mark.processes
def test_name_given_in_both_modules_says_that_they_are_the_same(folder):
    for name in ("ma", "mb"):
        (folder / f"{name}.py").write_text(BODY % ('(name="orders")', "process"))
    python(folder, "-c", "import ma; ma.process.start('order-1', 'x')")

    assert python(folder, "-c", "import mb; print(mb.process.run('order-1', 'x'))").stdout.split() == ["mb"]


@pytest.mark.processes
def test_script_that_is_started_counts_as_the_module_of_its_file(folder):
    """`python ma.py` queues what `surefoot worker ma` drives, also from inside a package."""
    (folder / "pack").mkdir()
    (folder / "pack" / "__init__.py").touch()
    for file, run in (("ma.py", "plain"), ("pack/mc.py", "packed")):
        (folder / file).write_text(
            BODY % ("", "process") + f"\nif __name__ == '__main__': process.start('{run}', 'x')\n"
        )
        assert python(folder, file).returncode == 0

    python(folder, "-c", "import ma, surefoot; surefoot.get_run('plain').resume()")
    python(folder, "-c", "import pack.mc, surefoot; surefoot.get_run('packed').resume()")

    assert done(folder) == ["ma x", "pack.mc x"]


def test_run_of_before_modules_were_recorded_is_taken_up_by_its_name(sf_store):
    """Nobody can say whose it was: as it always was, the name decides."""
    from surefoot.engine.process import config, journal

    @sf.workflow
    def legacy() -> str:
        return "done"

    runtime = config.runtime(create=True)
    journal.create(runtime.store, runtime.clock, "old", RunCreated("legacy", Raw(b"{}"), ""))

    assert sf.get_run("old").resume() == "done"


def test_several_of_one_name_are_told_apart_by_what_is_on_record():
    """A process may know both; each run finds its own."""
    one = registry.known_for(created("registered_twice", f"{__name__}:{_one.__qualname__}"))

    assert one is not None
    assert one.fn is _one
    assert registry.known_for(created("registered_twice", "")) is None


def _one() -> None: ...


def _two() -> None: ...


def _register() -> None:
    from surefoot.engine.declare.registry import Definition

    for fn in (_one, _two):
        registry.add(Definition(fn, name="registered_twice"))


_register()
