"""Alerts to people: the sinks of `sf.configure(alerts=[...])`.

A run never waits for an alert. A command or a webhook takes time, so it has a thread of its own, a bounded number of
attempts, and a short time when the process ends. A sink that fails is logged and changes nothing about the run: the
stop itself is in the journal.
"""

from __future__ import annotations

import atexit
import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, Self

from surefoot.core.visible import shorten, visible_lines
from surefoot.errors import UsageError

LAST_SECONDS: Final = 5.0
"""How long the end of the process waits for pending alerts, for all sinks together."""
KEPT: Final = 1000
"""The most alerts that wait for a sink; more are dropped with a warning, since the memory belongs to the run."""
ATTEMPTS: Final = 4
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 10.0
TIMEOUT_SECONDS: Final = 10.0

_log = logging.getLogger("surefoot")


class Alert(str):
    """The argument of a sink: a text with printable lines, and its run and kind."""

    __slots__ = ("kind", "run")
    run: str
    """Empty: the alert is about the whole store."""
    kind: str
    """The name of a stop (`InDoubt`, `WaitingForAnswer`, …), `fallback`, `rebuilt`, `adopted`, `checkpoint`, `drift`."""

    def __new__(cls, text: str, *, run: str = "", kind: str = "") -> Self:
        made = super().__new__(cls, "\n".join(visible_lines(text)))
        made.run, made.kind = run, kind
        return made


Sink = Callable[[Alert], object]


class Undelivered(Exception):
    """`again`: another attempt may succeed."""

    def __init__(self, why: str, *, again: bool = True) -> None:
        super().__init__(why)
        self.again = again


def log(level: int = logging.WARNING) -> Sink:
    """To the logger `surefoot.alerts`."""
    logger = logging.getLogger("surefoot.alerts")
    return lambda alert: logger.log(level, "%s", alert)


def command(argv: Sequence[str], *, timeout: float = TIMEOUT_SECONDS) -> Sink:
    """Run a program for each alert, with the text on its standard input. Never through a shell.

    It finds the run and the kind of the alert in SUREFOOT_ALERT_RUN and SUREFOOT_ALERT_KIND, and is ended when its
    time is over.
    """
    import shutil

    if isinstance(argv, str | bytes) or not argv or not all(isinstance(word, str) for word in argv):
        raise UsageError(f"sf.alerts.command({argv!r}): a list of words, ['notify', '--urgent']; no shell reads it")
    if shutil.which(argv[0]) is None:
        raise UsageError(f"sf.alerts.command: there is no program {argv[0]!r} that could be run")
    _require_time(timeout)
    words = list(argv)
    return Background(f"command {shorten(words[0], 60)}", lambda alert: _run(words, alert, timeout), attempts=1)


def webhook(url: str, *, timeout: float = TIMEOUT_SECONDS) -> Sink:
    """POST each alert as JSON, `{"text": …, "run": …, "kind": …}`; tried a few times, with growing pauses."""
    from surefoot.world.urls import parsed

    target = parsed(url, ("http", "https"))
    _require_time(timeout)
    # Only the host is ever shown: for many services the path is the secret.
    host = target.given.split("/")[2].rpartition("@")[2]
    return Background(f"webhook at {host}", lambda alert: _post(target.given, alert, timeout), attempts=ATTEMPTS)


def _require_time(timeout: Any) -> None:
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout <= 3600:
        raise UsageError(f"timeout={timeout!r}: seconds, more than zero and at most an hour")


class Background:
    """A sink with a thread of its own. The first alert starts the thread, which never keeps the process alive."""

    def __init__(self, name: str, deliver: Callable[[Alert], None], *, attempts: int) -> None:
        self.name = name
        self._deliver = deliver
        self._attempts = attempts
        self._waiting: queue.Queue[Alert] = queue.Queue(KEPT)
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._pid = 0

    def __repr__(self) -> str:
        return f"<alerts by {self.name}>"

    def __call__(self, alert: Alert) -> None:
        with self._lock:
            self._start()
            try:
                self._waiting.put_nowait(alert)
            except queue.Full:
                _log.warning("%s: an alert was dropped, %d are waiting: %s", self.name, KEPT, shorten(alert, 200))

    def _start(self) -> None:
        """A forked child has no thread. The parent delivers the alerts that were waiting at the fork."""
        if self._pid == os.getpid():
            return
        if self._pid:
            self._waiting = queue.Queue(KEPT)
        self._pid = os.getpid()
        threading.Thread(target=self._work, name="surefoot-alerts", daemon=True).start()
        _started.append(self)

    def _work(self) -> None:
        while True:
            alert = self._waiting.get()
            try:
                self._try(alert)
            except Exception:  # noqa: BLE001 - the thread goes on with the next one
                _log.exception("%s: an alert failed", self.name)
            finally:
                self._waiting.task_done()

    def _try(self, alert: Alert) -> None:
        pause = FIRST_PAUSE
        for attempt in range(1, self._attempts + 1):
            try:
                self._deliver(alert)
            except Undelivered as error:
                if attempt == self._attempts or not error.again:
                    _log.warning("%s: an alert could not be delivered (%s): %s", self.name, error, shorten(alert, 200))
                    return
                # When the process ends, the remaining attempts are made at once.
                self._closing.wait(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
            else:
                return

    def finish(self, seconds: float) -> bool:
        """Wait until all is delivered or given up, at most that long. Returns whether it was."""
        self._closing.set()
        waiting = self._waiting
        with waiting.all_tasks_done:
            return waiting.all_tasks_done.wait_for(lambda: not waiting.unfinished_tasks, timeout=seconds)


_started: list[Background] = []


def finish(seconds: float = LAST_SECONDS) -> None:
    """The process ends: pending alerts get a short time. Sinks that need longer are named in the log."""
    deadline = time.monotonic() + seconds
    for sink in _started:
        if sink._pid == os.getpid() and not sink.finish(max(0.0, deadline - time.monotonic())):
            _log.warning("%s: the process ended before all alerts were delivered", sink.name)


atexit.register(finish)


def _run(argv: list[str], alert: Alert, timeout: float) -> None:
    import subprocess

    env = os.environ | {"SUREFOOT_ALERT_RUN": alert.run, "SUREFOOT_ALERT_KIND": alert.kind}
    try:
        # No output is read: a grandchild that keeps a pipe open could block us for ever.
        ended = subprocess.run(  # noqa: S603 - the words are the user's own, given in code, and no shell reads them
            argv,
            input=f"{alert}\n".encode("utf-8", "backslashreplace"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=timeout,
            env=env,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Undelivered(f"it did not end within {timeout:g} s") from None
    except (OSError, ValueError) as error:
        raise Undelivered(f"{type(error).__name__}: {error}") from None
    if ended.returncode:
        raise Undelivered(f"it ended with exit code {ended.returncode}")


def _post(url: str, alert: Alert, timeout: float) -> None:
    import json
    from http.client import HTTPException
    from urllib.error import URLError

    from surefoot.world import http

    body = json.dumps({"text": str(alert), "run": alert.run, "kind": alert.kind}).encode()
    try:
        with http.send("POST", url, {"Content-Type": "application/json"}, body, timeout=timeout) as answer:
            status = answer.status
    except URLError as error:
        raise Undelivered(str(error.reason)) from None  # Without the URL, which may give access.
    except (OSError, HTTPException) as error:
        raise Undelivered(f"{type(error).__name__}: {error}") from None
    if not 200 <= status < 300:
        raise Undelivered(f"the server answered {status}", again=status in (408, 425, 429) or status >= 500)
