"""Look at many witnesses at once: each gives an answer in bounded time, even if only "not observable".

Each look runs in a thread of its own, which is abandoned when it shows no progress: a dead network drive or a
function that never returns costs the waiting time once, and neither the process nor the run hangs. The threads belong
to no run: a function given to `observe()` that calls an effect is refused like any other stray call.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Iterable
from contextvars import Context
from typing import Any, Final

from surefoot.core.expectation import Unseen
from surefoot.errors import UsageError
from surefoot.world.base import LIMIT_SECONDS, Look, Pulse, Witness, in_words, storable

AT_ONCE: Final = 8
_GRACE_SECONDS: Final = 0.1

Observed = dict[str, dict[str, str] | Unseen]
Answers = queue.SimpleQueue[tuple[str, Look | Unseen]]


def look(witness: Any, *, seconds: float = LIMIT_SECONDS) -> Look | Unseen:
    """One look, value and fingerprint of the same moment."""
    return _look_at([witness], seconds)[witness.name]


def observe_all(witnesses: Iterable[Any], *, seconds: float = LIMIT_SECONDS) -> Observed:
    """The observation of each witness now, by name. Faults of the world become `Unseen`; only a mistake in the code
    raises.

    Besides those of `surefoot.witness`, any object with a `name` and a `fingerprint()` will do.
    """
    found = _look_at(distinct(witnesses), seconds)
    return {name: seen if isinstance(seen, Unseen) else seen.parts for name, seen in found.items()}


def distinct(witnesses: Iterable[Any]) -> list[Any]:
    """Each witness once. Two different ones with the same name would hide each other: refused."""
    found: dict[str, Any] = {}
    for witness in witnesses:
        name = getattr(witness, "name", None)
        if (
            isinstance(witness, type)
            or not isinstance(name, str)
            or not callable(getattr(witness, "fingerprint", None))
        ):
            raise UsageError(
                f"{witness!r:.200} is no witness. Take one of surefoot.witness: file(path), files(glob), git_head(repo), "
                "sql(url, query), db_schema(url), http_json(url, pointer), env(name), observe(name, function), …"
            )
        other = found.setdefault(name, witness)
        spec = getattr(witness, "spec", {})
        if other is not witness and (not spec or spec != getattr(other, "spec", {})):
            raise UsageError(f"two different witnesses are called {name!r}: give one of them another name=.")
    return list(found.values())


def _look_at(witnesses: list[Any], seconds: float) -> dict[str, Look | Unseen]:
    answers: Answers = queue.SimpleQueue()
    found: dict[str, Look | Unseen] = {}
    waiting = deque(witnesses)
    under_way: dict[str, Pulse] = {}
    while waiting or under_way:
        while waiting and len(under_way) < AT_ONCE:
            witness = waiting.popleft()
            pulse = under_way[witness.name] = Pulse(seconds)
            _start(witness, pulse, answers)
        answer = _next_answer(answers, max(0.0, min(pulse.left() for pulse in under_way.values())))
        if answer is None:
            for name in [name for name, pulse in under_way.items() if pulse.left() <= 0]:
                under_way.pop(name).give_up()
                found[name] = Unseen(f"no answer within {seconds:g} s")
        elif under_way.pop(answer[0], None) is not None:  # else it comes too late: already reported as unseen
            found[answer[0]] = answer[1]
    return {witness.name: found[witness.name] for witness in witnesses}


def _next_answer(answers: Answers, seconds: float) -> tuple[str, Look | Unseen] | None:
    # The second, short wait is for a process that was itself suspended: then no thread had a chance to answer.
    for patience in (seconds, _GRACE_SECONDS):
        try:
            return answers.get(timeout=patience)
        except queue.Empty:
            continue
    return None


def _start(witness: Any, pulse: Pulse, answers: Answers) -> None:
    def work() -> None:
        answers.put((witness.name, Context().run(_look_once, witness, pulse)))

    try:
        threading.Thread(target=work, name=f"surefoot looks at {witness.name}", daemon=True).start()
    except RuntimeError as error:  # no more threads, or the interpreter is about to end
        answers.put((witness.name, Unseen(in_words(error))))


def _look_once(witness: Any, pulse: Pulse) -> Look | Unseen:
    try:
        seen = witness.look(pulse) if isinstance(witness, Witness) else Look(witness.fingerprint())
        return _checked(seen)
    except BaseException as error:  # noqa: BLE001 - also what a user's function raises to end the process
        return Unseen(in_words(error, pulse.seconds, getattr(witness, "_secrets", ())))


def _checked(seen: object) -> Look | Unseen:
    """Results of the user's classes are checked before use."""
    if not isinstance(seen, Look) or not isinstance(seen.parts, dict):
        return Unseen("its fingerprint is no dict of texts")
    if not all(type(part) is str and type(value) is str for part, value in seen.parts.items()):
        return Unseen("its fingerprint is no dict of texts")
    for part, value in seen.parts.items():
        storable(part)
        storable(value)
    return seen
