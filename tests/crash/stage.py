"""What a process of the lab has around it: the ledger that is its world, the shim, and a clock that nobody waits for.

One stage per process. The code of the flows reaches it through `stage()`; in the process of the lab itself, and outside
of any scenario, there is none.
"""

from __future__ import annotations

import logging
import os
import threading
from typing import Any

import surefoot as sf
from surefoot.core import values
from surefoot.core.timer import MICROS
from surefoot.engine.declare import current
from surefoot.engine.process import runtime
from surefoot.engine.process.config import settings
from surefoot.store.open import close_all
from surefoot.testing.clock import FastClock
from tests.crash.faults import WORLD, Shim
from tests.ledger import Line

EPOCH_SECONDS = 1_800_000_000
LIFE_SECONDS = 7 * 24 * 3600
"""How much later the next process lives: longer than any timer of the flows."""

_stage: Stage | None = None


class Stage:
    """The surroundings of one process in one scenario."""

    def __init__(self, port: int, room: str, shim: Shim, life: int) -> None:
        self.room = room
        self.shim = shim
        self.life = life
        self.goals: set[str] = set()
        """Rare things that happened here, by name."""
        self.loud: list[str] = []
        """What the logger `surefoot` said."""
        self.declined: list[str] = []
        """Why something was left undone, where that is an answer and no error. Nothing is given up by that."""
        self._line = Line(port)
        self._lock = threading.Lock()

    def enter(self) -> None:
        global _stage  # noqa: PLW0603 - one per process, like the process itself
        _stage = self
        os.chdir(self.shim.folder)
        settings.store = f"sqlite:///{self.shim.folder}/runs.db"
        settings.alerts = ()
        start = (EPOCH_SECONDS + self.life * LIFE_SECONDS) * MICROS
        runtime.default_clock = lambda: FastClock(start)
        hush(self.loud)
        self.shim.install()

    def leave(self) -> None:
        close_all()
        self._line.close()

    # --- the world -----------------------------------------------------------------------------------

    def note(self, do: str, what: str, **more: Any) -> None:
        """Written down at once; no place to be killed at."""
        self._ask(do, what, more)

    def act(self, do: str, what: str, **more: Any) -> None:
        """Something is done in the world: a boundary."""
        self.shim.at(WORLD, f"{do} {what}", lambda: self._ask(do, what, more))

    def look(self, what: str = "*") -> list[dict[str, Any]]:
        with self._lock:
            return list(self._line.ask(room=self.room, do="look", what=what))

    def _ask(self, do: str, what: str, more: dict[str, Any]) -> None:
        line = {"do": do, "what": what, "life": self.life, **more}
        with self._lock:
            self._line.ask(room=self.room, **line)
            if self.shim.events is not None:
                self.shim.events.append(("line", line))


def hush(told: list[str]) -> None:
    """What the logger says is kept, and not printed."""
    log = logging.getLogger("surefoot")
    log.handlers, log.propagate = [_Told(told)], False


class _Told(logging.Handler):
    def __init__(self, told: list[str]) -> None:
        super().__init__()
        self.told = told

    def emit(self, record: logging.LogRecord) -> None:
        self.told.append(record.getMessage())


def stage() -> Stage:
    if _stage is None:
        raise AssertionError("the flows of the lab run in a scenario")
    return _stage


# --- what the calls of the flows do ----------------------------------------------------------------------------------


def place() -> dict[str, Any]:
    """Which call of which run the code is in."""
    here = current.get()
    inside = here.inside if here is not None else None
    if inside is None:
        raise AssertionError("outside of a call")
    return {"run": sf.run_id(), "address": inside.address, "attempt": inside.attempt}


def stepped(name: str, n: int) -> None:
    stage().note("step", f"{name} {n}", **place())


def did(name: str, n: int, kind: str, *, part: int = 0, **args: Any) -> None:
    """An effect changes the world. `kind`: once, keyed, probed; `part`: 1 or 2 where it takes two acts."""
    digest = values.encode_args({"n": n, **args})[1]
    stage().act("did", f"{name} {n}", kind=kind, part=part, key=sf.key(), digest=digest, **place())


def undid(name: str, n: int, kind: str) -> None:
    """An undo takes it back. `kind`: keyed, if it may be told so twice; probed, if a check looks first."""
    stage().act("undid", f"{name} {n}", kind=kind, key=sf.key(), **place())


def done_parts(name: str, n: int, run: str) -> set[int]:
    """What the world holds of it, after all that was done and undone."""
    return parts_of([line for line in stage().look(f"{name} {n}") if line.get("run") == run])


def parts_of(lines: list[dict[str, Any]]) -> set[int]:
    parts: set[int] = set()
    for line in lines:
        if line["do"] == "did":
            parts.add(line["part"])
        elif line["do"] == "undid":
            parts.clear()
    return parts


def comparable(result: Any) -> str:
    """A result as surefoot would store it: there a tuple is no list, and True is not 1."""
    return values.encode(result).decode()


def seen(run: str, name: str, n: int, value: Any) -> Any:
    """User code has the result in its hands: it was acknowledged, and has to be the same for ever."""
    stage().note("seen", f"{name} {n}", run=run, value=comparable(value))
    return value
