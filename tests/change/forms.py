"""The cases of the corpus in every form: as written, in async code, and both of them driven by a worker.

A case is judged by its own `_case.main`. Only what starts processes is put in its place here: legs are forked from a
process that is warm already, and the code is translated right before it runs.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from tests.change.recolour import coroutines, is_async, recoloured

HERE = Path(__file__).parent
CORPUS = HERE / "corpus"
FORMS = ("blocking", "async", "worker", "async worker")
LOOKED_SECONDS = 40.0
BY_WORKER = '''
def drive_by_worker(*args, run="r"):
    """Start the run, or go on with it, and serve it until it stands still; then tell what came of it."""
    import asyncio, inspect, logging
    import surefoot
    try:
        if inspect.isawaitable(started := w.start(run, *args)): asyncio.run(_awaited(started))
        witness = surefoot.workflow(name="witness_of_the_worker")(_nothing)
        mine = surefoot.get_run(run)
        with surefoot.Worker(grace="1s") as worker:
            seen = witness.start(f"seen-{os.getpid()}")
            seen.result(timeout=LOOKED)
            deadline = time.monotonic() + LOOKED
            while run in worker.busy or mine.status in ("queued", "sleeping", "running", "interrupted"):
                if time.monotonic() > deadline or ("trouble" in worker.ended and run not in worker.busy): break
                time.sleep(0.005)
        got = mine.result(timeout=0)
        print("DONE", json.dumps(got, default=str))
    except surefoot.Stopped as stop: print("STOP", type(stop).__name__, str(stop))
    except Exception as error: print("FAILED", type(error).__name__, str(error))
async def _awaited(what): return await what
def _nothing(): return 1
'''.replace("LOOKED", str(LOOKED_SECONDS))


def load(path: Path) -> ModuleType:
    """A file of cases, without its being a script."""
    spec = importlib.util.spec_from_file_location(f"change_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(CORPUS))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(CORPUS))
    return module


class Warm:
    """The process that legs are forked from."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "warm.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._answer() == b"ready"

    def _answer(self) -> bytes:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def leg(self, leg: str, arguments: list[str], folder: str, env: dict[str, str]) -> SimpleNamespace:
        out, err = Path(folder) / ".stdout", Path(folder) / ".stderr"
        order = {
            "leg": leg, "arguments": arguments, "folder": folder, "env": env, "out": str(out), "err": str(err),
        }  # fmt: skip
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        self._process.stdin.flush()
        code = int(self._answer())
        return SimpleNamespace(returncode=code, stdout=out.read_text(), stderr=err.read_text())

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)
        self._process.stdout.close()


class Stage:
    """Stands where a case expects `subprocess`."""

    def __init__(self, warm: Warm, case: dict[str, Any], form: str, *, store: str = "") -> None:
        self._warm = warm
        self._form = form
        self._store = store
        texts = [case["OLD"], edited(case), *_python(case)]
        self._names = coroutines(texts) if "async" in form and not any(map(is_async, texts)) else frozenset[str]()

    def run(self, command: list[str], *, cwd: str, env: dict[str, str], **_: Any) -> SimpleNamespace:
        if command[1] == "-c":
            return SimpleNamespace(stdout="")  # Which surefoot is judged: the one that the tests import.
        if self._store:
            env = {**env, "SUREFOOT_STORE": self._store}
        if command[1] == "-m":
            return self._warm.leg("command", command[3:], cwd, env)
        self._translate(Path(cwd))
        return self._warm.leg("worker" if "worker" in self._form else "script", [cwd], cwd, env)

    def _translate(self, folder: Path) -> None:
        """What the case has written down just now; the second time there is nothing left to do."""
        for path in folder.rglob("*.py"):
            source = path.read_text()
            if self._names and "surefoot.aio" not in source:
                source = recoloured(source, self._names)
            if path.name == "app.py" and "worker" in self._form and BY_WORKER not in source:
                source += BY_WORKER
            path.write_text(source)


def edited(case: dict[str, Any]) -> str:
    new = case.get("NEW") or case["OLD"]
    for before, after in case.get("EDIT", ()):
        new = new.replace(before, after)
    return str(new)


def _python(case: dict[str, Any]) -> list[str]:
    files = {**(case.get("OLD_FILES") or {}), **(case.get("NEW_FILES") or {})}
    return [text for name, text in files.items() if name.endswith(".py")]


def holds(judge: ModuleType, warm: Warm, case: dict[str, Any], form: str, monkeypatch: Any, *, store: str = "") -> bool:
    """Whether the case holds in that form; what is wrong is printed."""
    if "worker" in form and "WORKER" in case:
        case = {**case, "WANT": {**case["WANT"], **case["WORKER"]}}
    monkeypatch.setattr(judge, "subprocess", Stage(warm, case, form, store=store))
    monkeypatch.setattr(judge, "lines", _lines)
    monkeypatch.setattr(sys, "argv", ["case"])
    return bool(judge.main(case))


def _lines(folder: str, name: str) -> Counter[str]:
    """As the judge counts them, with the file closed."""
    path = Path(folder) / name
    return Counter(path.read_text().split("\n")[:-1] if path.exists() else [])
