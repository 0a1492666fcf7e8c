"""Runs are rehearsed in a process of its own: the user's code may hang there, or end the process, and others go on.

The parent loads no code of the user. It starts the child, reads its findings line by line, and ends it if one run takes
too long; another child goes on with the rest. What user code prints goes to standard error.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from queue import Empty
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict

from surefoot.cli import findings
from surefoot.cli.findings import Told
from surefoot.cli.options import Settings
from surefoot.console import child
from surefoot.errors import SurefootError, UsageError
from surefoot.view import facts, trouble
from surefoot.view.facts import Facts

HANGS_SECONDS: Final = 60.0
"""A run that is rehearsed for longer is given up, and with it the process that rehearses it."""
TELLS_SECONDS: Final = 10.0
"""After this many seconds the command reports where the code is."""


class Refused(Exception):
    """There is nothing to rehearse: the code cannot be imported, or the store cannot be opened."""

    def __init__(self, lines: list[str], facts: Facts, exit_code: int) -> None:
        super().__init__(*lines)
        self.lines, self.facts, self.exit_code = lines, facts, exit_code


class Rehearsed(Struct):
    """The whole answer."""

    store: str = ""
    runs: list[Told] = []


def rehearse(settings: Settings, apps: tuple[str, ...], show: Callable[[int, int], None]) -> Rehearsed:
    """Rehearse every unfinished run. `show` gets how many are done, of how many."""
    answer, done = Rehearsed(), list[str]()
    while True:
        request = {"apps": apps, "store": settings.store, "without": done, "tells": TELLS_SECONDS}
        with _Child(request) as rehearsing:
            left = rehearsing.opened(answer)
            of = len(done) + len(left)
            for run in left:
                show(len(done), of)
                told = rehearsing.about(run)
                if told is not None:
                    answer.runs.append(told)
                done.append(run)
                if rehearsing.is_over:
                    break
            else:
                return answer


# --- the parent's side -----------------------------------------------------------------------------


class _Child(child.Child):
    """The process that has the user's code."""

    def __init__(self, request: dict[str, Any]) -> None:
        super().__init__("surefoot.cli.rehearsals")
        self.is_over = False
        self._where = ""
        self.say(request)

    def opened(self, answer: Rehearsed) -> list[str]:
        """The runs that the child is about to rehearse."""
        said = self.next(None)
        if said is None:
            told = f"the process that imports the code ended with exit code {self.exit_code()} before it could begin."
            raise Refused([told], facts.error(UsageError(told), exit_code=UsageError.exit_code), UsageError.exit_code)
        if "refused" in said:
            raise Refused(said["refused"], said["facts"], said["exit_code"])
        answer.store = said["store"]
        return list(said["runs"])

    def about(self, run: str) -> Told | None:
        end = time.monotonic() + HANGS_SECONDS
        try:
            while (said := self.next(max(end - time.monotonic(), 0.0))) is not None and "slow" in said:
                self._where = said["slow"]
        except Empty:
            self.is_over = True
            return findings.hanging(run, HANGS_SECONDS, self._where)
        if said is None:
            self.is_over = True
            return findings.ended(run, self.exit_code())
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


def _answer(requests: Iterator[dict[str, Any]], say: Callable[[dict[str, Any]], None]) -> None:
    try:
        _serve(say, next(requests))
    except SurefootError as error:
        told = facts.error(error, exit_code=error.exit_code)
        say({"refused": trouble.lines(error), "facts": told, "exit_code": error.exit_code})


if __name__ == "__main__":
    child.serve(_answer)
