"""Runs are rehearsed in a process of its own: the user's code may hang there, or end the process, and others go on.

The parent knows no code of the user's. It starts the child, reads what it found line by line, and ends it if one run takes
too long; another child goes on with the rest. What user code prints goes to standard error.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import IO, Any, Final, Self

from msgspec import Struct
from msgspec.structs import asdict

from surefoot.cli import findings
from surefoot.cli.findings import Told
from surefoot.cli.options import Settings
from surefoot.errors import SurefootError, UsageError
from surefoot.view import facts, trouble
from surefoot.view.facts import Facts

HANGS_SECONDS: Final = 60.0
"""A run that is rehearsed for longer is given up, and with it the process that rehearses it."""
TELLS_SECONDS: Final = 10.0
"""After so many seconds the command says where the code is."""


class Refused(Exception):
    """There is nothing to rehearse: the code cannot be imported, the store not opened."""

    def __init__(self, lines: list[str], facts: Facts, exit_code: int) -> None:
        super().__init__(*lines)
        self.lines, self.facts, self.exit_code = lines, facts, exit_code


class Rehearsed(Struct):
    """The whole answer."""

    store: str = ""
    runs: list[Told] = []


def rehearse(settings: Settings, apps: tuple[str, ...], show: Callable[[int, int], None]) -> Rehearsed:
    """Have every unfinished run rehearsed. `show` is told how many are done, of how many."""
    answer, done = Rehearsed(), list[str]()
    while True:
        request = {"apps": apps, "store": settings.store, "without": done, "tells": TELLS_SECONDS}
        with _Child(request) as child:
            left = child.opened(answer)
            of = len(done) + len(left)
            for run in left:
                show(len(done), of)
                told = child.about(run)
                if told is not None:
                    answer.runs.append(told)
                done.append(run)
                if child.is_over:
                    break
            else:
                return answer


# --- the parent's side -----------------------------------------------------------------------------


class _Child:
    """The process that has the user's code."""

    def __init__(self, request: dict[str, Any]) -> None:
        warnings = [f"-W{option}" for option in sys.warnoptions]
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, *warnings, "-m", "surefoot.cli.rehearsals"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        self._lines: SimpleQueue[bytes | None] = SimpleQueue()
        self.is_over = False
        self._where = ""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        with suppress(BrokenPipeError):
            self._pipe(self._process.stdin).write(json.dumps(request).encode() + b"\n")
            self._pipe(self._process.stdin).flush()

    @staticmethod
    def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
        if pipe is None:
            raise AssertionError
        return pipe

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """With everything that the user's code has started there."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(BrokenPipeError):
                self._pipe(pipe).close()

    def _read(self) -> None:
        for line in self._pipe(self._process.stdout):
            self._lines.put(line)
        self._lines.put(None)

    def _next(self, seconds: float | None) -> dict[str, Any] | None:
        """What it says next; None: it has ended."""
        line = self._lines.get(timeout=seconds)
        return None if line is None else json.loads(line)

    def opened(self, answer: Rehearsed) -> list[str]:
        """The runs that it is about to rehearse."""
        said = self._next(None)
        if said is None:
            told = (
                f"the process that imports the code ended with exit code {self._process.wait()} before it could begin."
            )
            raise Refused([told], facts.error(UsageError(told), exit_code=UsageError.exit_code), UsageError.exit_code)
        if "refused" in said:
            raise Refused(said["refused"], said["facts"], said["exit_code"])
        answer.store = said["store"]
        return list(said["runs"])

    def about(self, run: str) -> Told | None:
        end = time.monotonic() + HANGS_SECONDS
        try:
            while (said := self._next(max(end - time.monotonic(), 0.0))) is not None and "slow" in said:
                self._where = said["slow"]
        except Empty:
            self.is_over = True
            return findings.hanging(run, HANGS_SECONDS, self._where)
        if said is None:
            self.is_over = True
            return findings.ended(run, self._process.wait())
        return None if said["found"] is None else Told(**said["found"])


# --- the child's side ------------------------------------------------------------------------------


def _serve(say: Callable[[dict[str, Any]], None], request: dict[str, Any]) -> None:
    from surefoot.cli import code
    from surefoot.engine.operate import preflight
    from surefoot.engine.process import config

    for app in request["apps"]:
        code.load_app(app)
    runtime = config.runtime(request["store"], create=False)
    runs = [run for run in preflight.unfinished(runtime) if run not in set(request["without"])]
    say({"store": runtime.store.url, "runs": runs})
    patience = preflight.Patience(request["tells"], lambda where: say({"slow": where}))
    for run in runs:
        found = preflight.check(runtime, run, patience=patience)
        say({"found": None if found is None else asdict(findings.told(found))})


def _answers(stream: IO[str]) -> Callable[[dict[str, Any]], None]:
    writing, me = threading.Lock(), os.getpid()

    def say(what: dict[str, Any]) -> None:
        if os.getpid() != me:
            os._exit(0)  # The user's code has forked, and left its child to go on as we do.
        with writing:
            stream.write(json.dumps(what) + "\n")
            stream.flush()

    return say


def _end_with(parent: IO[bytes]) -> None:
    """Nobody waits for the answer any more, whatever the user's code is doing."""
    parent.read()
    os._exit(1)


def main() -> None:
    """In the child: nobody but us writes to the pipe."""
    asked = os.fdopen(os.dup(0), "rb")
    say = _answers(os.fdopen(os.dup(1), "w"))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    request = json.loads(asked.readline())
    threading.Thread(target=_end_with, args=(asked,), daemon=True).start()
    try:
        _serve(say, request)
    except SurefootError as error:
        told = facts.error(error, exit_code=error.exit_code)
        say({"refused": trouble.lines(error), "facts": told, "exit_code": error.exit_code})
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # Threads that user code has left behind wait for nobody.


if __name__ == "__main__":
    main()
