"""What takes longer than an answer may: verifying the store, and the doctor. Each in a child process, one at a time.

The child is the command itself, so what it prints is what `surefoot verify --json` prints. Its result stays until the next.
"""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

VERIFY: Final = "verify"
DOCTOR: Final = "doctor"
_MOST: Final = 20


class Job(Struct, frozen=True):
    id: str
    what: str
    """`verify` or `doctor`."""
    by: str
    began: int
    """Microseconds since 1970."""
    ended: int = 0
    """0: it is at work."""
    exit_code: int = 0
    result: dict[str, Any] | None = None
    """As the command prints it; None: it is at work, or was ended."""


class Jobs:
    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._known: dict[str, Job] = {}
        self._children: set[subprocess.Popen[bytes]] = set()
        self._closed = False

    def start(self, what: str, by: str) -> Job:
        """Begin one; of one kind only one is at work, and that one is the answer."""
        with self._lock:
            going = next((one for one in self._known.values() if one.what == what and not one.ended), None)
            if going is not None:
                return going
            job = Job(secrets.token_urlsafe(12), what, by, time.time_ns() // 1000)
            while len(self._known) >= _MOST:
                del self._known[next(iter(self._known))]
            self._known[job.id] = job
        threading.Thread(target=self._work, args=(job,), name=f"surefoot-{what}", daemon=True).start()
        return job

    def get(self, name: str) -> Job | None:
        with self._lock:
            return self._known.get(name)

    def newest(self, what: str) -> Job | None:
        """The last one of that kind that has ended."""
        with self._lock:
            return next((one for one in reversed(self._known.values()) if one.what == what and one.ended), None)

    def close(self) -> None:
        with self._lock:
            self._closed, children = True, list(self._children)
        for child in children:
            child.kill()

    def _work(self, job: Job) -> None:
        command = [sys.executable, "-m", "surefoot", job.what, "--json", "--store", self._url]
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)  # noqa: S603 - our own command
        with self._lock:
            self._children.add(child)
            if self._closed:
                child.kill()
        said, _ = child.communicate()
        result = None
        with suppress(ValueError):
            result = json.loads(said)
        done = replace(job, ended=time.time_ns() // 1000, exit_code=child.returncode, result=result)
        with self._lock:
            self._children.discard(child)
            self._known[job.id] = done
