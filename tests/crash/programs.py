"""Random programs from a grammar, held against a model: what nobody thought of when the flows were written by hand.

A program is a text, and the text is its name: `charge,failing([reserve,look]),anew,either([put],[wire])`; with `async:` in
front it runs as async code. So a line that failed once says all there is to say about it, whatever later becomes of the
grammar. Commands are numbered in the order of the text. What a program has to answer and to leave in the world is told by walking through it, not by running it: `Model`
knows nothing of the engine.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import functools
import itertools
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import surefoot as sf
import surefoot.aio as asf
from tests.crash import flows
from tests.crash.flows import FLOWS, QUIT, Flow, finish, got, value_of
from tests.crash.stage import comparable, seen, stepped

ANY = "programs"
"""Stands for one program after the other, where a flow is asked for."""
ANEW = ",anew,"
ASYNC = "async:"
SOLD_OUT = "sold out"
PARTS = {
    "charge": [0], "put": [0], "copy": [1, 2], "move": [1, 2], "reserve": [0], "fussy": [0], "lost": [0], "vague": [0],
    "deaf": [0], "wire": [0], "decline": [0],
}  # fmt: skip
"""What each effect leaves in the world."""
UNDONE = ("move", "reserve")
"""Effects that a saga takes back."""
SIMPLE = (*PARTS, "risky", "look", "moody", "stumble", "pair", "now", "sleep", "ask", "approve", "event", QUIT)
"""A run is cancelled as a whole: in a branch or a child, what others have done by then would be a matter of luck."""
CANCELLED = "cancelled"
FORMS = {"saga": 1, "failing": 1, "scope": 1, "child": 1, "either": 2}
"""Commands that hold others, and how many blocks of them."""
MOST_COMMANDS, MOST_DEPTH = 10, 3
AMOUNT = 40


@dataclass(frozen=True)
class Command:
    name: str
    n: int
    blocks: tuple[Block, ...] = ()

    def __str__(self) -> str:
        return self.name + (f"({','.join(f'[{text(block)}]' for block in self.blocks)})" if self.blocks else "")


Block = tuple[Command, ...]


def text(block: Block) -> str:
    return ",".join(map(str, block))


def parsed(program: str, first: int = 1) -> Block:
    """The commands of one segment, numbered from `first` on."""
    return _block(ast.parse(f"[{program}]", mode="eval").body, itertools.count(first))


def _block(node: ast.expr, numbers: Iterator[int]) -> Block:
    if not isinstance(node, ast.List):
        raise TypeError(f"a block is written in brackets: {ast.unparse(node)}")
    return tuple(_command(one, numbers) for one in node.elts)


def _command(node: ast.expr, numbers: Iterator[int]) -> Command:
    match node:
        case ast.Name(name):
            return Command(name, next(numbers))
        case ast.Call(ast.Name(name), blocks):
            return Command(name, next(numbers), tuple(_block(block, numbers) for block in blocks))
        case _:
            raise TypeError(f"no command: {ast.unparse(node)}")


def size(block: Block) -> int:
    return sum(1 + sum(map(size, command.blocks)) for command in block)


# --- written at random -----------------------------------------------------------------------------------------------


def written(number: int, *, branching: bool = False) -> str:
    """The program of that number. With branches, every other one is async."""
    program = _Writer(random.Random(f"program {number}"), {**FORMS, "branches": 2} if branching else FORMS).program()
    return f"{ASYNC}{program}" if branching and number % 2 else program


class _Writer:
    def __init__(self, luck: random.Random, forms: dict[str, int]) -> None:
        self._luck = luck
        self._forms = forms
        self._left = luck.randint(2, MOST_COMMANDS)

    def program(self) -> str:
        segments = []
        while self._left > 0:
            segments.append(self._sequence(self._luck.choice((1, 4, 9, 9)), MOST_DEPTH, SIMPLE))
        return ANEW.join(segments)

    def _sequence(self, most: int, depth: int, simple: tuple[str, ...]) -> str:
        """At least one command, and no more than are left."""
        commands = [self._command(depth, simple)]
        while self._left > 0 and len(commands) < most:
            commands.append(self._command(depth, simple))
        return ",".join(commands)

    def _command(self, depth: int, simple: tuple[str, ...]) -> str:
        self._left -= 1
        if depth == 0 or self._luck.random() < 0.7:
            return self._luck.choice(simple)
        form = self._luck.choice(sorted(self._forms))
        inside = simple if form not in ("child", "branches") else tuple(name for name in simple if name != QUIT)
        blocks = [f"[{self._sequence(self._luck.randint(1, 3), depth - 1, inside)}]" for _ in range(self._forms[form])]
        return f"{form}({','.join(blocks)})"


# --- run by surefoot -------------------------------------------------------------------------------------------------


@sf.step
def stumble(n: int) -> None:
    stepped("stumble", n)
    raise ValueError(f"stumbled over {n}")


@sf.workflow
def programmed(program: str, first: int) -> list[Any]:
    return _at_once(_segment(_Blocking, programmed, program, first))


@asf.workflow
async def programmed_async(program: str, first: int) -> list[Any]:
    return await _segment(_Waiting, programmed_async, program, first)


class _Blocking:
    """The verbs of blocking code, as coroutines that never wait."""

    @staticmethod
    async def call(name: str, n: int, *more: Any) -> Any:
        return got(_CALLS[name], n, *more)

    @staticmethod
    async def sleep(duration: str) -> None:
        sf.sleep(duration)

    @staticmethod
    async def ask(question: str) -> int:
        return sf.ask(question, type=int)

    @staticmethod
    async def approve(question: str, n: int) -> bool:
        return bool(sf.approve(question, details={"n": n}))

    @staticmethod
    async def wait_event(name: str) -> Any:
        return sf.wait_event(name)

    @staticmethod
    async def child(workflow: Any, run: str, *args: Any) -> Any:
        return sf.child(workflow, run, *args)

    @staticmethod
    @contextlib.asynccontextmanager
    async def saga() -> AsyncIterator[None]:
        with sf.saga():
            yield

    @staticmethod
    async def gather(*blocks: Coroutine[Any, Any, Any]) -> list[Any]:
        return sf.gather(*(partial(_at_once, block) for block in blocks))


class _Waiting:
    """The verbs of async code."""

    sleep = asf.sleep
    wait_event = asf.wait_event
    child = asf.child
    saga = asf.saga
    gather = asf.gather

    @staticmethod
    async def call(name: str, n: int, *more: Any) -> Any:
        return seen(sf.run_id(), name, n, await _ASYNC_CALLS[name](n, *more))

    @staticmethod
    async def ask(question: str) -> int:
        return await asf.ask(question, type=int)

    @staticmethod
    async def approve(question: str, n: int) -> bool:
        return bool(await asf.approve(question, details={"n": n}))


Verbs = type[_Blocking] | type[_Waiting]


def _at_once(work: Coroutine[Any, Any, Any]) -> Any:
    """What a coroutine comes to that never waits."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waits")


async def _segment(
    verbs: Verbs, workflow: Any, program: str, first: int, player: type[_Player] | None = None
) -> list[Any]:
    """Segment after segment; the result is the last one's."""
    segment, _, rest = program.partition(ANEW)
    block = parsed(segment, first)
    answers = await (player or _Player)(verbs, workflow).play(block)
    if rest:
        sf.continue_as_new(rest, first + size(block))
    return answers


class _Player:
    """One for both colours: only the verbs differ."""

    def __init__(self, verbs: Verbs, workflow: Any) -> None:
        self._verbs = verbs
        self._workflow = workflow

    async def play(self, block: Block) -> list[Any]:
        return [await self._one(command) for command in block]

    async def _one(self, command: Command) -> Any:
        name, n, blocks, verbs = command.name, command.n, command.blocks, self._verbs
        match name:
            case "look":
                return (await verbs.call(name, n))["n"]
            case "wire":
                return await verbs.call(name, n, AMOUNT)
            case "now":
                return await self._now(n)
            case "sleep":
                return await verbs.sleep("40m")
            case "ask":
                return await verbs.ask("How much?")
            case "approve":
                return await verbs.approve("Go on?", n)
            case "event":
                return (await verbs.wait_event(f"event-{n}"))["name"]
            case "pair":
                one, other = [(await verbs.wait_event(f"event-{n}"))["at"] for _ in range(2)]
                return one != other
            case "decline" | "risky":
                with contextlib.suppress(ValueError, sf.StepFailed):
                    await verbs.call(name, n)
                return f"{name} {n}"
            case "quit":
                return await verbs.wait_event(QUIT)
            case "stumble" | "failing":
                return await self._caught(command)
            case "saga":
                async with verbs.saga():
                    return await self.play(blocks[0])
            case "scope":
                with sf.scope(f"part {n}"):
                    return await self.play(blocks[0])
            case "child":
                child = _child_id(sf.run_id(), command)
                return await verbs.child(self._workflow, child, text(blocks[0]), blocks[0][0].n)
            case "either":
                return await self.play(blocks[(await verbs.call("look", n))["n"] % 2])
            case "branches":
                return await verbs.gather(*(self.play(block) for block in blocks))
            case _:
                return await verbs.call(name, n)

    async def _now(self, n: int) -> int:
        sf.random(), sf.uuid4()
        moment = sf.now().isoformat()
        answer = (await self._verbs.call("look", n))["n"]
        seen(sf.run_id(), "now", n, moment)  # only here: it is on record with the first thing that follows it
        return int(answer)

    async def _caught(self, command: Command) -> str:
        try:
            if command.name == "stumble":
                return str(await self._verbs.call("stumble", command.n))
            async with self._verbs.saga():
                await self.play(command.blocks[0])
                raise ValueError(SOLD_OUT)
        except ValueError as error:
            return str(error)


def _child_id(run: str, command: Command) -> str:
    return f"{run}.{command.n}"


_CALLS = {name: getattr(flows, name) for name in (*PARTS, "risky", "look", "moody")} | {"stumble": stumble}


def _coloured(name: str) -> Callable[..., Any]:
    """The same body, as a coroutine function."""
    body = _CALLS[name].__wrapped__

    async def coloured(*args: Any) -> Any:
        return body(*args)

    return functools.wraps(body)(coloured)


def _async_calls() -> dict[str, Any]:
    options = {
        "put": {"on_crash": "retry"}, "fussy": flows.FUSSY, "wire": {"approve": True}, "risky": {"on_crash": "fail"},
    }  # fmt: skip
    made: dict[str, Any] = {name: asf.effect(**options.get(name, {}))(_coloured(name)) for name in (*PARTS, "risky")}
    made["copy"].check(flows.copied)
    made["move"].check(flows.moved)
    made["move"].undo(on_crash="retry")(flows.move_back)
    made["reserve"].undo(flows.give_back)
    made["reserve"].undo.check(flows.given_back)
    made["vague"].check(flows.guessed)
    steps = {"look": {}, "moody": flows.MOODY, "stumble": {}}
    return made | {name: asf.step(**more)(_coloured(name)) for name, more in steps.items()}


_ASYNC_CALLS = _async_calls()


# --- told by the model -----------------------------------------------------------------------------------------------


class Model:
    """What a program answers, and what it leaves in the world."""

    def __init__(self) -> None:
        self.world: dict[str, list[int]] = {}

    def run(self, program: str, run: str, first: int = 1) -> Any:
        answers: list[Any] = []
        for segment in program.split(ANEW):
            block = parsed(segment, first)
            try:
                answers = self._play(block, run)
            except _Quit:
                return CANCELLED
            first += size(block)
        return answers

    def _play(self, block: Block, run: str) -> list[Any]:
        return [self._one(command, run) for command in block]

    def _one(self, command: Command, run: str) -> Any:
        name, n = command.name, command.n
        match name:
            case "look" | "now":
                return n
            case "stumble":
                return f"stumbled over {n}"
            case "sleep":
                return None
            case "ask":
                return AMOUNT
            case "approve" | "pair":
                return True
            case "risky":
                return f"risky {n}"
            case "decline":
                self.world[f"{run} decline {n}"] = PARTS[name]
                return f"decline {n}"
            case "event":
                return f"event-{n}"
            case "quit":
                raise _Quit
            case "failing":
                with self._undoing(run):
                    self._play(command.blocks[0], run)
                    raise ValueError(SOLD_OUT)
                return SOLD_OUT
            case "saga":
                with self._undoing(run):
                    return self._play(command.blocks[0], run)
            case "scope":
                return self._play(command.blocks[0], run)
            case "either":
                return self._play(command.blocks[n % 2], run)
            case "child":
                return self._play(command.blocks[0], _child_id(run, command))
            case "branches":
                return [self._play(block, run) for block in command.blocks]
            case _:
                if name in PARTS:
                    self.world[f"{run} {name} {n}"] = PARTS[name]
                return value_of(name, n, AMOUNT)

    @contextlib.contextmanager
    def _undoing(self, run: str) -> Iterator[None]:
        """What is left by a failure, or because somebody quits, is taken back."""
        before = set(self.world)
        try:
            yield
        except (ValueError, _Quit) as why:
            self.world = {
                thing: parts for thing, parts in self.world.items() if thing in before or not _is_undone(thing, run)
            }
            if isinstance(why, _Quit):
                raise


class _Quit(Exception):
    """The run is cancelled here."""


def _is_undone(thing: str, run: str) -> bool:
    """What a child did is the child's."""
    whose, name, _ = thing.split()
    return whose == run and name in UNDONE


# --- as a flow -------------------------------------------------------------------------------------------------------


ELSEWHERE: dict[str, Callable[[str], Flow]] = {}
"""Who makes the flows whose names begin so."""


def flow_of(name: str) -> Flow:
    """The flow of that name, or the program that the name is."""
    made = next((made for prefix, made in ELSEWHERE.items() if name.startswith(prefix)), _flow)
    return FLOWS.get(name) or made(name)


def _ended(result: Any) -> Any:
    return CANCELLED if isinstance(result, list) and result[:1] == ["Cancelled"] else result


@lru_cache(maxsize=64)
def _flow(name: str) -> Flow:
    return flow_as(name, name, programmed, programmed_async)


def flow_as(name: str, text: str, workflow: Any, async_workflow: Any) -> Flow:
    """A program, run by these workflows."""
    program = text.removeprefix(ASYNC)
    model = Model()
    answers = comparable({"r": model.run(program, "r")})

    def drive() -> Any:
        return asyncio.run(async_workflow.run("r", program, 1)) if text != program else workflow.run("r", program, 1)

    return Flow(
        name,
        lambda: {"r": _ended(finish(drive, "r"))},
        threads=text != program or "branches" in program,
        told=(answers, dict(sorted(model.world.items()))),
    )
