"""Flows of the differential oracle: every kind of value and exception, delivered in every way there is.

A flow is a text, and the text is its name: `seen:step.nan,map.own,child.group,end.slotted`; with `async:` in front it runs
as async code. Each word is a way of delivery and an inhabitant of the zoo. `seen:p:` stands in front of a random program
(see `programs.py`), in which the outcome of every command is looked at.
"""

from __future__ import annotations

import asyncio
import functools
import random
from collections.abc import Callable, Coroutine
from functools import lru_cache, partial
from typing import Any

import surefoot as sf
import surefoot.aio as asf
from surefoot.engine.declare import current
from tests.crash import programs
from tests.crash.flows import Flow, finish
from tests.crash.programs import ASYNC, Command, Verbs, _at_once, _Blocking, _Player, _segment, _Waiting, written
from tests.crash.seeing import NO_OUTCOME, Eyes, digest, told
from tests.crash.stage import did, done_parts, stage, stepped
from tests.crash.zoo import EXCEPTIONS, VALUES

PREFIX = "seen:"
PROGRAM = "p:"
WAYS = ("step", "effect", "moody", "map", "gather", "child", "saga", "scope", "asked", "noted")
TIMED = ("asked", "noted")
"""Depends on when a process lived; only within a run it has to be the same."""
END = "end"
"""The last word: what the run itself comes to."""
MOST_WORDS = 5
EVERY_OTHER = 3
"""One flow in so many is a random program."""


# --- calls -------------------------------------------------------------------------------------------------------------


def _made(item: str) -> Any:
    """Given back, or raised."""
    if item in VALUES:
        return VALUES[item]()
    error = EXCEPTIONS[item]()
    raise error


def _step(n: int, item: str) -> Any:
    stepped("give", n)
    return _made(item)


def _effect(n: int, item: str) -> Any:
    if item in VALUES:
        did("hand", n, "keyed", item=item)
    return _made(item)


def _effect_check(n: int, item: str) -> Any:
    """What raises does nothing before; so after a crash it is tried again, and fails."""
    if item in EXCEPTIONS or not done_parts("hand", n, sf.run_id()):
        return sf.not_happened()
    return sf.happened(VALUES[item]())


def _moody(n: int, item: str) -> Any:
    stepped("sulk", n)
    if sf.attempt() < 3:
        raise ConnectionError(f"attempt {sf.attempt()}")
    return [sf.attempt(), _made(item)]


HAND: dict[str, Any] = {"in_flight": "0s", "not_done": (Exception, TimeoutError, OSError, BaseExceptionGroup)}
SULK: dict[str, Any] = {"retries": 3, "retry_on": ConnectionError, "backoff": sf.Backoff(first="10m", jitter=False)}


def _coloured(body: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(body)
    async def coloured(*args: Any) -> Any:
        return body(*args)

    return coloured


_CALLS: dict[str, Any] = {
    "step": sf.step(name="give")(_step),
    "effect": sf.effect(name="hand", **HAND)(_effect),
    "moody": sf.step(name="sulk", **SULK)(_moody),
}
_ASYNC_CALLS: dict[str, Any] = {
    "step": asf.step(name="give")(_coloured(_step)),
    "effect": asf.effect(name="hand", **HAND)(_coloured(_effect)),
    "moody": asf.step(name="sulk", **SULK)(_coloured(_moody)),
}
for _calls in (_CALLS, _ASYNC_CALLS):
    _calls["effect"].check(_effect_check)


# --- delivered ---------------------------------------------------------------------------------------------------------


@sf.workflow
def shown(words: str) -> Any:
    return _at_once(_Viewer(_Blocking, _CALLS, shown).show(words))


@asf.workflow
async def shown_async(words: str) -> Any:
    return await _Viewer(_Waiting, _ASYNC_CALLS, shown_async).show(words)


class _Viewer:
    """Delivers each word, and has looked at whatever came."""

    def __init__(self, verbs: Verbs, calls: dict[str, Any], workflow: Any) -> None:
        self._verbs = verbs
        self._calls = calls
        self._workflow = workflow
        self._eyes = Eyes()

    async def show(self, words: str) -> Any:
        came = []
        for n, word in enumerate(words.split(","), 1):
            way, _, item = word.partition(".")
            if way == END:
                return _made(item)
            came.append(await self._seen(word, partial(self._one, way, n, item)))
        return came

    async def _seen(self, label: str, deliver: Callable[[], Coroutine[Any, Any, Any]]) -> str:
        """What it came to. The way that the code goes on depends on all that can be seen of it."""
        answered = self._eyes.called()
        try:
            value: Any = await deliver()
            way = "gave"
        except NO_OUTCOME:
            raise
        except Exception as error:
            value, way = error, "raised"
        answered()
        self._eyes.saw(f"{label} {way}", value)
        return f"{way} {digest(value) if label.partition('.')[0] not in TIMED else ''}"

    async def _call(self, way: str, n: int, item: str) -> Any:
        found = self._calls[way](n, item)
        return await found if self._verbs is _Waiting else found

    async def _one(self, way: str, n: int, item: str) -> Any:
        verbs = self._verbs
        match way:
            case "map":
                return _parts(await self._mapped(n, item))
            case "gather":
                return await verbs.gather(self._call("step", n, "one"), self._call("effect", n + 100, item))
            case "child":
                return await verbs.child(self._workflow, f"r.{n}", f"step.{item},{END}.{item}")
            case "saga":
                async with verbs.saga():
                    await self._call("effect", n, "one")
                    return await self._call("step", n + 100, item)
            case "scope":
                with sf.scope(f"part {n}"):
                    return await self._call("effect", n, item)
            case "asked":
                yes = await self._decision(n)
                return [yes, await verbs.ask("How much?"), await verbs.wait_event(f"event-{n}")]
            case "noted":
                for name in ("now", "random", "uuid4"):
                    self._eyes.saw_lately(name, getattr(sf, name)())
                return await self._seen("next", lambda: self._call("step", n, item))
            case _:
                return await self._call(way, n, item)

    async def _mapped(self, n: int, item: str) -> Any:
        if self._verbs is _Waiting:
            return await asf.map(
                lambda one: self._call("step", one[0], one[1]), self._items(n, item), key=str, on_error="collect"
            )
        return sf.map(
            lambda one: _at_once(self._call("step", one[0], one[1])), self._items(n, item), key=str, on_error="collect"
        )

    @staticmethod
    def _items(n: int, item: str) -> list[tuple[int, str]]:
        return [(n, "dict"), (n + 100, item), (n + 200, "own")]

    async def _decision(self, n: int) -> Any:
        if self._verbs is _Waiting:
            return await asf.approve("Go on?", details={"n": n})
        return sf.approve("Go on?", details={"n": n})


def _parts(result: Any) -> list[Any]:
    return [result.ok, result.failed, repr(result)]


# --- random programs -----------------------------------------------------------------------------------------------------


class _Watched(_Player):
    """A program whose every outcome is looked at, each in its own line of control."""

    def __init__(self, verbs: Verbs, workflow: Any) -> None:
        super().__init__(verbs, workflow)
        self._eyes = Eyes()

    async def _one(self, command: Command) -> Any:
        line = current.get().scope.path or "main"
        try:
            value = await super()._one(command)
        except NO_OUTCOME:
            raise
        except Exception as error:
            self._eyes.saw(f"{command} raised", error, line)
            raise
        self._eyes.saw(str(command), value, line)
        return value


@sf.workflow
def watched(program: str, first: int) -> list[Any]:
    return _at_once(_segment(_Blocking, watched, program, first, _Watched))


@asf.workflow
async def watched_async(program: str, first: int) -> list[Any]:
    return await _segment(_Waiting, watched_async, program, first, _Watched)


# --- as flows ------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def flow(name: str) -> Flow:
    words = name.removeprefix(PREFIX)
    if words.startswith(PROGRAM):
        return programs.flow_as(name, words.removeprefix(PROGRAM), watched, watched_async)
    plain = words.removeprefix(ASYNC)
    drive = partial(_driven, plain) if plain == words else lambda: asyncio.run(shown_async.run("r", plain))
    return Flow(name, lambda: {"r": finish(lambda: _outside(drive), "r")}, threads=True)


def _driven(words: str) -> Any:
    return shown.run("r", words)


def _outside(drive: Callable[[], Any]) -> str:
    """Whoever waits for the run sees its result or its failure, and the same for ever."""
    try:
        value, way = drive(), "gave"
    except NO_OUTCOME:
        raise
    except Exception as error:
        value, way = error, "raised"
    stage().note(
        "saw", f"the run {way}", run="r", line="outside", index=0, by=f"life {stage().life}", value=told(value)
    )  # fmt: skip
    return f"{way} {digest(value)}"


def drawn(seed: int) -> str:
    """The flow of that number."""
    luck = random.Random(f"seen {seed}")
    if seed % EVERY_OTHER == 0:
        return f"{PREFIX}{PROGRAM}{written(seed + 10_000, branching=True)}"
    zoo = [*VALUES, *EXCEPTIONS, *EXCEPTIONS]
    words = [f"{luck.choice(WAYS)}.{luck.choice(zoo)}" for _ in range(luck.randint(1, MOST_WORDS))]
    words += [f"{END}.{luck.choice(zoo)}"] if luck.random() < 0.5 else []
    return f"{PREFIX}{ASYNC if luck.random() < 0.5 else ''}{','.join(words)}"


programs.ELSEWHERE[PREFIX] = flow
