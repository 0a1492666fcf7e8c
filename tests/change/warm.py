"""A process that has surefoot imported already, and forks for each leg of a case: as new as a fresh one, and quicker.

Nothing of surefoot is used here but its modules: each leg opens its own store, dies its own death, and leaves by the
ordinary end of a Python process. Orders come in as lines of JSON, exit codes go out as lines.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import types
from pathlib import Path

LONGEST_SECONDS = 50
"""A leg that hangs is ended by the system, and not left behind."""
WARM = (
    "asyncio", "surefoot", "surefoot.aio", "surefoot.cli.main", "surefoot.cli.match", "surefoot.cli.settle",
    "surefoot.cli.approve", "surefoot.engine.drive.gate", "surefoot.engine.worker.worker", "surefoot.engine.drive.perform_async",
    "surefoot.engine.drive.acts_async", "surefoot.store.sqlite", "surefoot.engine.operate.preflight",
)  # fmt: skip


def script(folder: str) -> None:
    """`python app.py`."""
    main = types.ModuleType("__main__")
    main.__dict__["__file__"] = str(Path(folder) / "app.py")
    sys.modules["__main__"] = main
    exec(compile(Path("app.py").read_bytes(), "app.py", "exec"), main.__dict__)


def command(*arguments: str) -> None:
    """`surefoot …`."""
    from surefoot.cli.main import main

    sys.argv = ["surefoot", *arguments]
    sys.exit(main())


def worker(folder: str) -> None:
    """A worker that serves the module until its run stands still; then what came of it is told as a script would."""
    sys.modules.pop("__main__")
    sys.modules["__main__"] = types.ModuleType("__main__")
    app = importlib.import_module("app")
    app.drive_by_worker(*json.loads(os.environ.get("ARGS", "[]")))


LEGS = {"script": script, "command": command, "worker": worker}


def become(order: dict) -> None:
    signal.alarm(LONGEST_SECONDS)
    sys.dont_write_bytecode = True  # A file edited within a second, as long as before, would be taken for what it was.
    null = os.open(os.devnull, os.O_RDONLY)
    for number, name in ((0, None), (1, order["out"]), (2, order["err"])):
        source = null if name is None else os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(source, number)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - it is the standard input
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["env"])
    sys.argv = ["app.py"]
    sys.path.insert(0, order["folder"])
    LEGS[order["leg"]](*order["arguments"])


def serve() -> None:
    for name in WARM:
        importlib.import_module(name)
    orders = os.fdopen(os.dup(0), "rb", buffering=0)
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    answers.write(b"ready\n")
    while line := orders.readline():
        child = os.fork()
        if child == 0:
            orders.close()
            answers.close()
            become(json.loads(line))
            return
        _, status = os.waitpid(child, 0)
        answers.write(b"%d\n" % os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    serve()
