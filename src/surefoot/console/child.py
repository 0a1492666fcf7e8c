"""A process that has the user's code: the code may hang there, end the process, fork or print, and we go on.

The parent loads no code of the user. It sends lines and reads lines, and ends the child with everything it has started. What
user code prints goes to standard error.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import SimpleQueue
from typing import IO, Any, Self

Say = Callable[[dict[str, Any]], None]


class Child:
    """The parent's side. `module` is one of ours, with a `main` that calls `serve`."""

    def __init__(self, module: str) -> None:
        warnings = [f"-W{option}" for option in sys.warnoptions]
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, *warnings, "-m", module],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        self._lines: SimpleQueue[bytes | None] = SimpleQueue()
        self._reader = threading.Thread(target=self._read, name="surefoot-child", daemon=True)
        self._reader.start()

    @staticmethod
    def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
        if pipe is None:
            raise AssertionError
        return pipe

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def say(self, request: dict[str, Any]) -> None:
        with suppress(BrokenPipeError):  # It has ended; the next answer says so.
            self._pipe(self._process.stdin).write(json.dumps(request).encode() + b"\n")
            self._pipe(self._process.stdin).flush()

    def next(self, seconds: float | None) -> dict[str, Any] | None:
        """The next answer; None: the child has ended. `queue.Empty`, if there is none within that time."""
        line = self._lines.get(timeout=seconds)
        return None if line is None else json.loads(line)

    def exit_code(self) -> int:
        """Of a child that has ended."""
        return self._process.wait()

    def end(self) -> None:
        """End the child, with everything that the user's code has started in it."""
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


# --- the child's side ------------------------------------------------------------------------------


def serve(answer: Callable[[Iterator[dict[str, Any]], Say], None]) -> None:
    """Answer requests as they come. Only this code writes to the pipe; the process ends when the parent does."""
    asked = os.fdopen(os.dup(0), "rb")
    say = _answers(os.fdopen(os.dup(1), "w"))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    requests: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_take, args=(asked, requests), daemon=True).start()
    answer(iter(lambda: json.loads(requests.get()), object()), say)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # Threads that user code has left behind are not waited for.


def _take(asked: IO[bytes], requests: SimpleQueue[bytes]) -> None:
    """When the parent has ended, no process waits for an answer: end, even if the user's code still runs."""
    for line in asked:
        requests.put(line)
    os._exit(1)


def _answers(stream: IO[str]) -> Say:
    writing, me = threading.Lock(), os.getpid()

    def say(what: dict[str, Any]) -> None:
        if os.getpid() != me:
            os._exit(0)  # The user's code has forked, and its child would go on like us.
        with writing:
            stream.write(json.dumps(what) + "\n")
            stream.flush()

    return say
